//! Collections put together by hand, after `docs/formats/collection.md`.

use std::path::{Path, PathBuf};

use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};
use plumb_testkit::tempdir::TempDir;

/// The content of the first entry.
pub const FORM_OF_FILES: &str = "plumb-collection 1\n";
pub const FORM: &str = "plumb-collection 2\n";

/// Nothing was read of any device.
pub const NO_DEVICES: (&str, &str) = ("devices.json", "{\"devices\": [], \"images\": []}");
pub const NO_ANSWERS: (&str, &str) = ("answers.json", "{}");

/// The identity of the unit of [`Lab::shown_by_lio`].
pub const LIO_IDENTITY: &str = "naa.60014056f1d1c0e92a54f7cb6a00e1f0";

/// Packs the tree of a host and other entries.
pub fn pack(to: &Path, form: &str, root: &Path, entries: &[(&str, &str)]) {
    let mut tar = tar::Builder::new(Vec::new());
    tar.follow_symlinks(false);
    let add = |tar: &mut tar::Builder<Vec<u8>>, name: &str, text: &str| {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, text.as_bytes())
            .expect("an entry");
    };
    add(&mut tar, "plumb-collection", form);
    tar.append_dir_all("root", root).expect("the files");
    for (name, text) in entries {
        add(&mut tar, name, text);
    }
    let tar = tar.into_inner().expect("the archive");
    std::fs::write(to, zstd::encode_all(&tar[..], 3).expect("a frame")).expect("a file");
}

/// Hosts and the collections of them, in a directory that vanishes.
pub struct Lab(TempDir);

impl Lab {
    pub fn new() -> Lab {
        Lab(plumb_testkit::temp_dir("join"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn host(&self, name: &str) -> FakeHost {
        let host = FakeHost::new(&self.path(name));
        host.write("proc/sys/kernel/hostname", &format!("{name}\n"));
        host
    }

    /// A guest of that name with a file system on a partition of its disk.
    pub fn guest(&self, name: &str, sectors: u64, start: u64) -> PathBuf {
        let mut host = self.host(name);
        host.disk(&FakeDisk {
            sectors,
            vendor: String::new(),
            model: String::new(),
            ..FakeDisk::named("vda")
        });
        host.partition("vda", 1, start, 1 << 20);
        host.mount("vda1", "/srv", "ext4", "rw");
        // Of the same name as the disk of its host.
        host.disk(&FakeDisk::named("sda"));
        let label = format!(
            "label: gpt\ndevice: /dev/vda\nunit: sectors\nfirst-lba: 34\nlast-lba: {}\nsector-size: 512\n\n\
             /dev/vda1 : start= {start}, size= {}\n",
            sectors - 34,
            1 << 20
        );
        self.pack(
            &host,
            name,
            FORM,
            &[NO_ANSWERS, NO_DEVICES, ("dumps/sfdisk", &label)],
        )
    }

    /// A host with the volume `vg/guest1`, a mebibyte into a physical volume that begins there.
    pub fn kvm(&self, name: &str, sectors: u64, pv_start: u64) -> PathBuf {
        let mut host = self.host(name);
        host.disk(&FakeDisk::named("sda"));
        host.partition("sda", 1, pv_start, 1 << 30);
        host.mapped(
            "dm-0",
            "vg-guest1",
            "LVM-u3BhU2dfVh6tcXcPyO9ZKfpBmVyCGRnH",
            sectors,
            &["sda1"],
        );
        self.pack(
            &host,
            name,
            FORM,
            &[(NO_ANSWERS.0, &table(&host, sectors)), NO_DEVICES],
        )
    }

    /// A host that gives a guest a partition of its disk, which begins there.
    pub fn kvm_of_partition(&self, name: &str, sectors: u64, start: u64) -> PathBuf {
        let mut host = self.host(name);
        host.disk(&FakeDisk {
            sectors: 4 * sectors,
            ..FakeDisk::named("sdb")
        });
        host.partition("sdb", 1, start, sectors);
        let label = format!(
            "label: gpt\ndevice: /dev/sdb\nunit: sectors\nfirst-lba: 34\nlast-lba: {}\nsector-size: 512\n\n\
             /dev/sdb1 : start= {start}, size= {sectors}\n",
            4 * sectors - 34
        );
        self.pack(
            &host,
            name,
            FORM,
            &[NO_ANSWERS, NO_DEVICES, ("dumps/sfdisk", &label)],
        )
    }

    /// A guest with a file system on a whole disk.
    pub fn guest_of_disk(&self, name: &str, sectors: u64) -> PathBuf {
        let mut host = self.host(name);
        host.disk(&FakeDisk {
            sectors,
            vendor: String::new(),
            model: String::new(),
            ..FakeDisk::named("vda")
        });
        host.mount("vda", "/srv", "ext4", "rw");
        self.pack(&host, name, FORM, &[NO_ANSWERS, NO_DEVICES])
    }

    /// A host that shows `vg/guest1` as a unit of LIO, on a physical volume one sector off, and a guest whose disk `sdc`
    /// has that identity and that many sectors.
    pub fn shown_by_lio(&self, sectors: u64, (identity, seen): (&str, u64)) -> [PathBuf; 2] {
        let mut guest = self.host("web1");
        let vendor = "LIO-ORG".to_owned();
        guest.disk(&FakeDisk {
            sectors: seen,
            vendor,
            model: "g1".to_owned(),
            ..FakeDisk::named("sdc")
        });
        guest.attribute("sdc", "device/wwid", identity);
        guest.partition("sdc", 1, 2048, 1 << 20);
        let mut host = self.host("kvm3");
        host.disk(&FakeDisk::named("sda"));
        host.partition("sda", 1, 2049, 1 << 30);
        host.mapped(
            "dm-0",
            "vg-guest1",
            "LVM-u3BhU2dfVh6tcXcPyO9ZKfpBmVyCGRnH",
            sectors,
            &["sda1"],
        );
        let (major, minor) = host
            .number("dm-0")
            .split_once(':')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .expect("two");
        let info = format!(
            "iBlock device: dm-0  UDEV PATH: /dev/vg/guest1  readonly: 0\n  Major: {major} Minor: {minor}  CLAIMED: IBLOCK"
        );
        host.backstore(
            "iblock_0/guest1",
            &info,
            512,
            "6f1d1c0e-92a5-4f7c-b6a0-0e1f0a5b2c3d",
        );
        host.lun(
            "iscsi/iqn.2026-11.org.example:kvm3/tpgt_1",
            0,
            "iblock_0/guest1",
        );
        let entries = [(NO_ANSWERS.0, table(&host, sectors))];
        let entries = [(entries[0].0, entries[0].1.as_str()), NO_DEVICES];
        [
            self.pack(&guest, "web1", FORM, &[NO_ANSWERS, NO_DEVICES]),
            self.pack(&host, "kvm3", FORM, &entries),
        ]
    }

    pub fn pack(
        &self,
        host: &FakeHost,
        name: &str,
        form: &str,
        entries: &[(&str, &str)],
    ) -> PathBuf {
        let path = self.path(&format!("{name}.tar.zst"));
        pack(&path, form, host.root(), entries);
        path
    }
}

/// The answer of a kernel whose `dm-0` is linear on `sda1` from a mebibyte on.
pub fn table(host: &FakeHost, sectors: u64) -> String {
    let (number, below) = (host.number("dm-0"), host.number("sda1"));
    format!(
        "{{\"tables\": {{\"{number}\": {{\"answer\": {{\"name\": \"vg-guest1\", \"uuid\": \"LVM-\", \"targets\": \
         [[0, {sectors}, \"linear\", \"{below} 2048\"]]}}}}}}}}"
    )
}
