//! Hosts that do not exist, described file by file; what is expected follows from the description by hand.

use plumb_geometry::{Bytes, SECTOR};
use plumb_stack::linux::{self, Elsewhere, Host, Identified, Kernel, NoAnswer, Root};
use plumb_stack::node::keys;
use plumb_stack::{Builder, Kind, Node, Placing, Stack, Verdict, What};
use plumb_sys::{FileExtent, FileExtents, Limits, Mapped, SysError, Target};
use plumb_testkit::fake_sysfs::{FakeArray, FakeDisk, FakeHost};
use plumb_testkit::temp_dir;

fn collect(fake: &FakeHost, kernel: &dyn Kernel) -> (Stack, Host) {
    let root = Root::open(fake.root(), kernel).expect("the root");
    let mut builder = Builder::default();
    let host = linux::collect(&root, &mut builder).expect("a host");
    (builder.finish(), host)
}

fn stack_of(fake: &FakeHost) -> Stack {
    collect(fake, &Elsewhere).0
}

fn node<'a>(stack: &'a Stack, name: &str) -> &'a Node {
    stack.node(stack.find(name).unwrap_or_else(|| panic!("no {name}")))
}

/// On physical blocks alone.
fn verdicts(stack: &Stack, top: &str) -> Vec<Verdict> {
    let standings = stack.standings(stack.find(top).unwrap_or_else(|| panic!("no {top}")));
    let physical = standings.into_iter().filter(|one| one.fact.what == What::PhysicalBlock);
    physical.map(|one| one.verdict).collect()
}

fn misaligned(by: u64) -> Verdict {
    Verdict::Misaligned { by: Bytes(by) }
}

fn grid(node: &Node, what: What) -> Option<(u64, u64, bool)> {
    let fact = node.grids.iter().find(|fact| fact.what == what)?;
    Some((fact.granularity().0, fact.grid.offset().0, fact.is_believed()))
}

/// Four starts on three drives, with the answers of arithmetic: (512·start − offset) mod 4096.
#[test]
fn partitions_stand_on_the_grid_of_their_disk() {
    let dir = temp_dir("partitions");
    let mut fake = FakeHost::new(dir.path());
    fake.disk(&FakeDisk::named("sda"));
    fake.disk(&FakeDisk { alignment_offset: 3584, ..FakeDisk::named("sdb") });
    fake.disk(&FakeDisk { logical: 4096, ..FakeDisk::named("nvme0n1") });
    let starts = [34, 63, 2047, 2048];
    for disk in ["sda", "sdb", "nvme0n1"] {
        for (number, start) in (1..).zip(starts) {
            fake.partition(disk, number, start, 8);
        }
    }
    // The kernel's word for a partition is derived from the disk's, and must not count again.
    fake.attribute("sdb4", "alignment_offset", "3584");
    let stack = stack_of(&fake);
    let of =
        |disk: &str| (1..=4).map(|number| verdicts(&stack, &format!("{disk}{number}"))).collect::<Vec<_>>();
    let plain = [1024, 3584, 3584, 0];
    let moved = [1536, 0, 0, 512];
    let expected = |phases: [u64; 4]| {
        let verdict = |phase| if phase == 0 { Verdict::Aligned } else { misaligned(phase) };
        phases.map(|phase| vec![verdict(phase)]).to_vec()
    };
    assert_eq!(of("sda"), expected(plain));
    assert_eq!(of("sdb"), expected(moved));
    assert_eq!(of("nvme0n1p"), expected(plain));
    let part = node(&stack, "nvme0n1p3");
    assert_eq!((part.kind, part.size), (Kind::Partition, Some(Bytes(8 * SECTOR))));
    assert_eq!(part.number(keys::PARTITION_NUMBER), Some(3));
    assert!(stack.problems().is_empty() && stack.notes().is_empty(), "{:?}", stack.notes());
}

#[test]
fn a_disk_states_grids_and_settings() {
    let dir = temp_dir("disk");
    let mut fake = FakeHost::new(dir.path());
    fake.disk(&FakeDisk {
        optimal_io: 65_535 * 512,
        chunk_sectors: 256,
        discard_granularity: 8192,
        discard_alignment: 512,
        ..FakeDisk::named("sda")
    });
    fake.disk(&FakeDisk {
        optimal_io: 1 << 20,
        chunk_sectors: 524_288,
        zoned: "host-managed".to_owned(),
        ..FakeDisk::named("sdb")
    });
    let stack = stack_of(&fake);
    let sda = node(&stack, "/dev/sda");
    assert_eq!(sda.kind, Kind::Disk);
    assert_eq!(grid(sda, What::LogicalBlock), Some((512, 0, true)));
    assert_eq!(grid(sda, What::OptimalIo), Some((33_553_920, 0, false)));
    assert_eq!(grid(sda, What::IoBoundary), Some((128 << 10, 0, true)));
    assert_eq!(grid(sda, What::DiscardUnit), Some((8192, 512, true)));
    for (key, value) in [
        (keys::MODEL, "ATA PLAIN DRIVE"),
        (keys::SCHEDULER, "mq-deadline"),
        (keys::READ_AHEAD, "131072"),
        (keys::MAX_REQUEST, "1310720"),
        (keys::QUEUE_DEPTH, "64"),
        (keys::ROTATIONAL, "1"),
        (keys::WRITE_CACHE, "write back"),
    ] {
        assert_eq!(sda.word(key), Some(value), "{key}");
    }
    let sdb = node(&stack, "sdb");
    assert_eq!(grid(sdb, What::Zone), Some((256 << 20, 0, true)));
    assert_eq!(grid(sdb, What::OptimalIo), Some((1 << 20, 0, true)));
    assert_eq!(grid(sdb, What::DiscardUnit), None, "discards are off");
    assert_eq!(sdb.word(keys::ZONED), Some("host-managed"));
}

#[test]
fn what_a_hypervisor_shows_is_no_disk() {
    let dir = temp_dir("virtual");
    let mut fake = FakeHost::new(dir.path());
    let kinds = [
        ("vda", "", "", Kind::VirtualDisk),
        ("xvda", "", "", Kind::VirtualDisk),
        ("sda", "VMware", "Virtual disk", Kind::VirtualDisk),
        ("sdb", "QEMU", "QEMU HARDDISK", Kind::VirtualDisk),
        ("sdc", "Msft", "Virtual Disk", Kind::VirtualDisk),
        ("sdd", "Google", "PersistentDisk", Kind::VirtualDisk),
        ("nvme1n1", "", "Amazon Elastic Block Store", Kind::VirtualDisk),
        ("nvme2n1", "", "SAMSUNG MZ7L3960", Kind::Disk),
        ("sde", "SUN", "T300", Kind::Disk),
        ("zram0", "", "", Kind::Ram),
    ];
    for (name, vendor, model, _) in kinds {
        let (vendor, model) = (vendor.to_owned(), model.to_owned());
        fake.disk(&FakeDisk { vendor, model, ..FakeDisk::named(name) });
    }
    let stack = stack_of(&fake);
    for (name, .., kind) in kinds {
        assert_eq!(node(&stack, name).kind, kind, "{name}");
    }
    assert!(matches!(verdicts(&stack, "vda")[..], [Verdict::Unknown { .. }]), "below is not seen");
}

/// md over partitions of which one is off: RAID 5 with a data offset, degraded RAID 10, and a chain of lengths.
#[test]
fn arrays_are_laid_by_their_data_offsets() {
    let dir = temp_dir("arrays");
    let mut fake = FakeHost::new(dir.path());
    for disk in ["sda", "sdb", "sdc"] {
        fake.disk(&FakeDisk::named(disk));
        fake.partition(disk, 1, 2048, 1 << 20);
    }
    fake.partition("sdc", 2, 2_097_215, 1 << 20);
    let members =
        [("sda1", Some(0), 2048, 1000), ("sdb1", Some(1), 2048, 1000), ("sdc2", Some(2), 2048, 1000)];
    let raid5 =
        FakeArray { name: "md0", level: "raid5", layout: 2, chunk: 64 << 10, disks: 3, members: &members };
    fake.array(&raid5, 4000);
    fake.array(
        &FakeArray { name: "md1", level: "raid10", layout: 0x102, disks: 4, members: &members[..2], ..raid5 },
        4000,
    );
    let spare = [("sda1", Some(1), 3, 10), ("sdb1", Some(0), 8, 20), ("sdc1", None, 8, 20)];
    fake.array(&FakeArray { name: "md2", level: "linear", disks: 2, members: &spare, ..raid5 }, 60);
    fake.partition("md0", 1, 34, 100);
    let stack = stack_of(&fake);

    // 63 + 2048 sectors and one sector past 1 GiB: 512 bytes times 63 on 4 KiB is 3584.
    assert_eq!(verdicts(&stack, "md0"), [Verdict::Aligned, Verdict::Aligned, misaligned(3584)]);
    // The partition begins at 34: 34 mod 8 = 2 sectors more, on every member.
    assert_eq!(verdicts(&stack, "md0p1"), [misaligned(1024), misaligned(1024), misaligned(512)]);
    let md0 = node(&stack, "md0");
    let Placing::Chunks(chunks) = &md0.placing else { panic!("{:?}", md0.placing) };
    assert_eq!(chunks.stripe_bytes(), Some(Bytes(128 << 10)));
    assert_eq!((md0.kind, md0.word(keys::LEVEL)), (Kind::ParityRaid, Some("raid5")));
    assert_eq!(grid(md0, What::MinimumIo), Some((64 << 10, 0, false)), "a stacked limit");
    assert_eq!(grid(md0, What::PhysicalBlock), Some((4096, 0, false)), "a stacked limit");

    let Placing::Chunks(chunks) = &node(&stack, "md1").placing else { panic!("no chunks") };
    assert_eq!((chunks.members.len(), chunks.copies, chunks.data_chunks()), (4, 2, 2));
    assert!(stack.notes().iter().any(|note| note == "md1 runs without its member 3"), "{:?}", stack.notes());

    let Placing::Parts { parts } = &node(&stack, "md2").placing else { panic!("no parts") };
    let found: Vec<_> = parts
        .iter()
        .map(|part| (stack.node(part.node).name.as_str(), part.upper.0, part.start.0, part.len))
        .collect();
    assert_eq!(
        found,
        [("sdb1", 0, 4096, Some(Bytes(20 << 10))), ("sda1", 20 << 10, 1536, Some(Bytes(10 << 10)))]
    );
}

#[test]
fn arrays_that_do_not_run_are_unknown() {
    let dir = temp_dir("stopped");
    let mut fake = FakeHost::new(dir.path());
    fake.disk(&FakeDisk::named("sda"));
    let array = FakeArray { name: "md0", level: "raid0", layout: -1, chunk: 4096, disks: 1, members: &[] };
    fake.array(&array, 8);
    fake.attribute("md0", "md/array_state", "inactive");
    fake.slaves("md0", &["sda"]);
    let members = [("sda", Some(0), 8, 10)];
    fake.array(&FakeArray { name: "md1", members: &members, ..array }, 8);
    fake.attribute("md1", "md/reshape_position", "2048");
    fake.attribute("md1", "md/raid_disks", "4 (3)");
    let stack = stack_of(&fake);
    let why = |name| {
        let lost = stack.landings(stack.find(name).expect(name)).lost;
        lost.into_iter().map(|(_, why)| why).collect::<Vec<_>>().join("; ")
    };
    assert!(why("md0").contains("superblocks"), "{}", why("md0"));
    assert!(why("md1").contains("reshaped"), "{}", why("md1"));
    assert_eq!(stack.above(stack.find("sda").expect("it")).len(), 2, "it is known what they stand on");
}

/// Start, length, target and parameters of a line.
type Row = (u64, u64, &'static str, &'static str);

/// What a kernel would answer.
#[derive(Default)]
struct Scripted {
    tables: Vec<(u32, u32, &'static [Row])>,
    extents: Vec<FileExtent>,
}

impl Kernel for Scripted {
    fn table(&self, major: u32, minor: u32) -> Result<Mapped, NoAnswer> {
        let found = self.tables.iter().find(|table| (table.0, table.1) == (major, minor));
        let Some((.., lines)) = found else {
            let path = "/dev/mapper/control".into();
            return Err(SysError::NotPermitted { path, asked: "it", capability: "CAP_SYS_ADMIN" }.into());
        };
        let targets = lines.iter().map(|(start, len, kind, params)| Target {
            start_sectors: *start,
            len_sectors: *len,
            kind: (*kind).to_owned(),
            params: (*params).to_owned(),
        });
        Ok(Mapped { targets: targets.collect(), ..Mapped::default() })
    }

    fn identify(&self, _: &str) -> Result<Identified, NoAnswer> {
        Err(NoAnswer::Elsewhere)
    }

    fn limits(&self, _: &str) -> Result<Limits, NoAnswer> {
        Ok(Limits {
            size_bytes: 1 << 30,
            logical_block_bytes: 512,
            physical_block_bytes: 8192,
            minimum_io_bytes: 512,
            optimal_io_bytes: 0,
            alignment_offset_bytes: 0,
        })
    }

    fn extents(&self, _: &str, _: usize) -> Result<FileExtents, NoAnswer> {
        Ok(FileExtents { size_bytes: 3 << 20, extents: self.extents.clone(), is_cut: false })
    }
}

/// LVM on a partition at sector 63 whose first extent makes up for it, encryption on top; numbers as the fake gives them.
#[test]
fn tables_are_followed_by_device_number() {
    let dir = temp_dir("mapped");
    let mut fake = FakeHost::new(dir.path());
    fake.disk(&FakeDisk::named("sda")); // 259:0
    fake.partition("sda", 1, 63, 1 << 20); // 259:1
    fake.mapped("dm-0", "vg--a-data", "LVM-x", 65536, &["sda1"]); // 259:2
    fake.mapped("dm-1", "secret", "CRYPT-LUKS2-y", 4096, &["dm-0"]); // 259:3
    fake.mapped("dm-2", "vg--a-lost", "LVM-z", 8192, &["sda1"]); // 259:4
    assert_eq!((fake.number("sda1"), fake.number("dm-1")), ("259:1".to_owned(), "259:3".to_owned()));
    let kernel = Scripted {
        tables: vec![
            (259, 2, &[(0, 65536, "linear", "259:1 2049")]),
            (259, 3, &[(0, 4096, "crypt", "aes-xts-plain64 - 0 259:2 32768 1 sector_size:4096")]),
        ],
        ..Scripted::default()
    };
    let (stack, _) = collect(&fake, &kernel);
    assert_eq!(verdicts(&stack, "sda1"), [misaligned(63 * 512 % 4096)]);
    assert_eq!(verdicts(&stack, "vg-a/data"), [Verdict::Aligned]);
    assert_eq!(verdicts(&stack, "/dev/mapper/secret"), [Verdict::Aligned]);
    for alias in ["/dev/dm-0", "/dev/mapper/vg--a-data", "vg--a-data"] {
        assert_eq!(stack.find(alias), stack.find("vg-a/data"), "{alias}");
    }
    let secret = node(&stack, "secret");
    assert_eq!((secret.kind, grid(secret, What::CryptSector)), (Kind::Crypt, Some((4096, 0, true))));
    let lost = stack.landings(stack.find("vg-a/lost").expect("it")).lost;
    assert_eq!(lost[0].1, "table not readable without root");
    assert_eq!(stack.above(stack.find("sda1").expect("it")).len(), 2, "sysfs tells what it stands on");
}

#[test]
fn file_systems_swaps_and_files_stand_on_devices() {
    let dir = temp_dir("mounts");
    let mut fake = FakeHost::new(dir.path());
    fake.disk(&FakeDisk::named("sda"));
    let (data, swap, pool) = (
        fake.partition("sda", 1, 2048, 1 << 20),
        fake.partition("sda", 2, 63, 8),
        fake.partition("sda", 3, 4096, 8),
    );
    fake.mount(&data, "/srv/my\\040data", "ext4", "rw,stripe=16");
    fake.mount_line(&format!("50 1 {} /sub /bind rw - ext4 /dev/{data} rw", fake.number(&data)));
    fake.mount_line(&format!("51 1 0:45 / /pool rw - btrfs /dev/{pool} rw,subvol=/"));
    fake.mount_line("52 1 0:46 / /tmp rw - tmpfs tmpfs rw");
    fake.swap(&format!("/dev/{swap}"), "partition");
    fake.loop_device("loop0", "/bind/disk.img", 1_048_576, 2048);
    fake.loop_device("loop1", "/tmp/disk.img", 0, 2048);
    fake.loop_device("loop2", "/pool/disk.img", 0, 2048);
    fake.loop_device("loop3", "/gone (deleted)", 0, 2048);
    let extent = |logical, physical, len, flags| FileExtent {
        logical_bytes: logical,
        physical_bytes: physical,
        len_bytes: len,
        flags,
    };
    let extents = vec![
        extent(0, 1 << 20, 1 << 20, 0),
        // A neighbour, and one that is not written yet.
        extent(1 << 20, 2 << 20, 1 << 19, 0x800),
        extent(2 << 20, 0, 4096, 0x2 | 0x4),
    ];
    let (stack, _) = collect(&fake, &Scripted { extents, ..Scripted::default() });

    let ext4 = node(&stack, "/srv/my data");
    assert_eq!((ext4.kind, ext4.word(keys::CONTENT)), (Kind::FileSystem, Some("ext4")));
    assert_eq!(ext4.word(keys::MOUNT_OPTIONS), Some("rw,rw,stripe=16"));
    assert_eq!(verdicts(&stack, "/srv/my data"), [Verdict::Aligned]);
    assert_eq!(stack.find("/bind"), None, "a view of the same file system");
    assert_eq!(verdicts(&stack, "swap on sda2"), [misaligned(3584)]);

    // Byte 0 of the loop device is byte 1 MiB of the file, 2 MiB of the file system, 3 MiB of the disk.
    let landings = stack.landings(stack.find("loop0").expect("it"));
    let way: Vec<_> = landings.all.iter().map(|one| (stack.node(one.on).name.as_str(), one.shift)).collect();
    let mib = 1 << 20;
    assert_eq!(
        way,
        [
            ("loop0", 0),
            ("/bind/disk.img", mib),
            ("/srv/my data", 2 * mib),
            ("sda1", 2 * mib),
            ("sda", 3 * mib)
        ]
    );
    assert!(stack.notes().iter().any(|note| note.contains("1 extents have no place")), "{:?}", stack.notes());

    for (name, expected) in [
        ("loop1", "tmpfs does not lie on a block device"),
        ("loop2", "btrfs places"),
        ("loop3", "was deleted"),
    ] {
        let lost = stack.landings(stack.find(name).expect(name)).lost;
        assert!(lost.iter().any(|(_, why)| why.contains(expected)), "{name}: {lost:?}");
        assert_eq!(verdicts(&stack, name), [], "nothing is said of {name}");
    }
}

#[test]
fn paths_of_nvme_and_bcache_are_joined() {
    let dir = temp_dir("paths");
    let mut fake = FakeHost::new(dir.path());
    for name in ["nvme0n1", "nvme0c0n1", "nvme0c1n1"] {
        fake.disk(&FakeDisk::named(name));
    }
    fake.disk(&FakeDisk { sectors: 1000, ..FakeDisk::named("sda") });
    fake.disk(&FakeDisk { sectors: 984, ..FakeDisk::named("bcache0") });
    let bcache = fake.root().join("sys/devices/virtual/block/bcache0/bcache");
    std::os::unix::fs::symlink("../../../pci0000:00/sda-host/block/sda/bcache", bcache).expect("a link");
    let stack = stack_of(&fake);
    assert_eq!(node(&stack, "nvme0n1").kind, Kind::Multipath);
    assert_eq!(node(&stack, "nvme0c1n1").kind, Kind::Path);
    let head = stack.landings(stack.find("nvme0n1").expect("it"));
    assert_eq!(head.all.len(), 3, "itself and both paths");
    let Placing::Parts { parts } = &node(&stack, "bcache0").placing else { panic!("no parts") };
    assert_eq!(parts[0].start, Bytes(8192), "1000 - 984 sectors");
    assert!(stack.problems().is_empty(), "{:?}", stack.problems());
}

#[test]
fn damaged_trees_give_notes() {
    let dir = temp_dir("damaged");
    let mut fake = FakeHost::new(dir.path());
    for disk in ["sda", "sdb", "sdc"] {
        fake.disk(&FakeDisk::named(disk));
    }
    fake.attribute("sda", "queue/physical_block_size", "four");
    fake.attribute("sda", "alignment_offset", "-1");
    std::fs::remove_file(fake.root().join("sys/devices/pci0000:00/sdb-host/block/sdb/size"))
        .expect("removed");
    std::fs::remove_dir_all(fake.root().join("sys/devices/pci0000:00/sdc-host/block/sdc/queue"))
        .expect("removed");
    let class = fake.root().join("sys/class/block");
    std::os::unix::fs::symlink("sdz", class.join("sdz")).expect("a circle");
    std::os::unix::fs::symlink("/etc", class.join("sdy")).expect("a way out");
    std::fs::write(class.join("sdx"), "a file").expect("a file");
    fake.write("proc/self/mountinfo", "\u{0}\nno mount\n1 2 999:9 / /x rw - ext4 /dev/none rw\n");
    let (stack, _) = collect(&fake, &Scripted::default());
    let notes = stack.notes().join("\n");
    for expected in
        ["sda/physical_block_size: found \"four\"", "block/sdz cannot be opened", "block/sdx cannot"]
    {
        assert!(notes.contains(expected), "{expected}: {notes}");
    }
    let sda = node(&stack, "sda");
    assert_eq!((grid(sda, What::PhysicalBlock), sda.word(keys::ALIGNMENT_OFFSET)), (None, Some("-1")));
    assert_eq!(stack.find("sdb"), None, "no size, no device");
    assert_eq!(grid(node(&stack, "sdc"), What::PhysicalBlock), Some((8192, 0, true)), "asked by ioctl");

    let error = Root::open(&dir.path().join("none"), &Elsewhere).err().expect("no root").to_string();
    assert!(error.contains("cannot be opened"), "{error}");
    let empty = temp_dir("empty");
    let root = Root::open(empty.path(), &Elsewhere).expect("a root");
    let error = linux::collect(&root, &mut Builder::default()).expect_err("no sysfs").to_string();
    assert!(error.contains("is sysfs mounted"), "{error}");
}

/// Work grows with the devices, by no more than some thirty files each; partitions and what has no medium take few. There
/// are enough of them for several threads.
#[test]
fn reading_is_one_pass() {
    let dir = temp_dir("many");
    let mut fake = FakeHost::new(dir.path());
    let (disks, partitions) = (40, 8);
    for number in 0..disks {
        let name = format!("sd{number}x");
        fake.disk(&FakeDisk::named(&name));
        for partition in 1..=partitions {
            fake.partition(&name, partition, 2048 * u64::from(partition), 8);
        }
        fake.disk(&FakeDisk { sectors: 0, ..FakeDisk::named(&format!("loop{number}")) });
    }
    let (stack, host) = collect(&fake, &Elsewhere);
    assert_eq!(stack.nodes().count(), disks * (1 + partitions as usize));
    let (disks, partitions) = (disks as u64, u64::from(partitions));
    let work = host.work();
    assert!(work.files <= disks * (26 + 6 * partitions + 1), "{work:?}");
    assert!(work.directories <= disks * (3 + partitions + 1), "{work:?}");
    assert!(work.files >= disks * (15 + 4 * partitions), "too few to be true: {work:?}");
}
