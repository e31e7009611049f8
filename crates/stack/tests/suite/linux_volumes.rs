//! Mapped devices and arrays on loop devices of this host. No stated position is trusted: unique sectors are written to
//! the volume, and searched in the files below.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_geometry::{Bytes, SECTOR};
use plumb_stack::linux::{self, Live, Root};
use plumb_stack::node::keys;
use plumb_stack::node_facts::LbaFormat;
use plumb_stack::{
    Builder, CellKind, GridFact, Kind, Landing, Node, NodeId, Source, Stack, Verdict,
};
use plumb_sys::{BlockDevice, scsi};
use plumb_testkit::loop_device::{LoopDevice, run};
use plumb_testkit::wait::RunLimited;
use plumb_testkit::{require, temp_dir, wait};

const DISK_BYTES: u64 = 24 << 20;

/// Loop devices on files of zeros.
struct Disks {
    disks: Vec<(LoopDevice, PathBuf)>,
    _dir: plumb_testkit::tempdir::TempDir,
}

impl Disks {
    fn new(count: usize) -> Disks {
        let dir = temp_dir("volumes");
        let disks = (0..count).map(|number| {
            let path = dir.path().join(format!("disk{number}"));
            File::create(&path)
                .and_then(|file| file.set_len(DISK_BYTES))
                .expect("a file of zeros");
            (LoopDevice::attach(&path, &[]), path)
        });
        Disks {
            disks: disks.collect(),
            _dir: dir,
        }
    }

    fn path(&self, at: usize) -> String {
        self.disks[at].0.path().display().to_string()
    }
}

/// A mapped device, removed at the end.
struct Volume(String);

impl Volume {
    fn create(name: &str, uuid: &str, table: &str) -> Volume {
        // Without udev, dmsetup makes the nodes itself; with it, both agree.
        let mut command = Command::new("dmsetup");
        command
            .env("DM_DISABLE_UDEV", "1")
            .args(["create", name, "--table", table]);
        if !uuid.is_empty() {
            command.args(["--uuid", uuid]);
        }
        run(&mut command);
        Volume(name.to_owned())
    }

    fn path(&self) -> PathBuf {
        Path::new("/dev/mapper").join(&self.0)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let remove = ["remove", "--retry", &self.0];
        let _ = Command::new("dmsetup")
            .env("DM_DISABLE_UDEV", "1")
            .args(remove)
            .output();
    }
}

/// An array, stopped at the end.
struct MdArray(PathBuf);

impl MdArray {
    fn create(number: u32, options: &[&str], members: &[String]) -> MdArray {
        let path = PathBuf::from(format!("/dev/md{number}"));
        let mut command = Command::new("mdadm");
        command
            .arg("--create")
            .arg(&path)
            .args(["--run", "--metadata=1.2", "--assume-clean"])
            .args(options);
        run(command.args(members));
        MdArray(path)
    }
}

impl Drop for MdArray {
    fn drop(&mut self) {
        let _ = Command::new("mdadm").arg("--stop").arg(&self.0).output();
    }
}

fn stack() -> Stack {
    let kernel = Live::default();
    let root = Root::open(Path::new("/"), &kernel).expect("this host");
    let mut builder = Builder::default();
    linux::collect(&root, &mut builder).expect("block devices");
    builder.finish()
}

fn node<'a>(stack: &'a Stack, name: &str) -> &'a Node {
    stack.node(stack.find(name).unwrap_or_else(|| panic!("no {name}")))
}

/// A sector that contains its position.
fn marker(position: u64) -> Vec<u8> {
    format!("plumb wrote this at byte {position:>20} of a volume\n")
        .repeat(10)
        .into_bytes()[..SECTOR as usize]
        .to_vec()
}

/// Odd sectors all over the volume.
fn positions(len: u64) -> impl Iterator<Item = u64> {
    (0..len / SECTOR).step_by(61).map(|sector| sector * SECTOR)
}

fn predicts(landing: &Landing, on: NodeId, upper: u64, found: u64) -> bool {
    let inside = upper >= landing.upper.0
        && landing
            .len
            .is_none_or(|len| upper < landing.upper.0 + len.0);
    let off = i128::from(found) - i128::from(upper) - landing.shift;
    let fits = landing.period.map_or(off == 0, |Bytes(period)| {
        off.rem_euclid(i128::from(period)) == 0
    });
    landing.on == on && inside && fits
}

/// Every marker is found, each where some landing says, and each landing on a disk has markers. Returns how often markers
/// were found at most.
fn prove(disks: &Disks, volume: &Path) -> usize {
    let stack = stack();
    let top = stack
        .find(volume.to_str().expect("a plain path"))
        .expect("the volume");
    let len = stack.node(top).size.expect("its size").0;
    let file = OpenOptions::new()
        .write(true)
        .open(volume)
        .expect("the volume");
    for position in positions(len) {
        file.write_all_at(&marker(position), position)
            .expect("write");
    }
    file.sync_all().expect("sync");
    let markers: HashMap<Vec<u8>, u64> = positions(len)
        .map(|position| (marker(position), position))
        .collect();
    let landings = stack.landings(top).all;
    let (mut times, mut used) = (BTreeMap::<u64, usize>::new(), vec![false; landings.len()]);
    for (device, path) in &disks.disks {
        let Some(disk) = stack.find(&device.name()) else {
            panic!("no {}", device.name())
        };
        let bytes = std::fs::read(path).expect("the file below");
        for (place, sector) in (0..)
            .step_by(SECTOR as usize)
            .zip(bytes.chunks(SECTOR as usize))
        {
            let Some(position) = markers.get(sector) else {
                continue;
            };
            let by = landings
                .iter()
                .position(|landing| predicts(landing, disk, *position, place));
            let Some(by) = by else {
                panic!(
                    "byte {position} lies at {place} of {}, but {landings:?}",
                    device.name()
                )
            };
            used[by] = true;
            *times.entry(*position).or_default() += 1;
        }
        let missed = landings
            .iter()
            .zip(&used)
            .find(|(landing, used)| landing.on == disk && !**used);
        assert!(missed.is_none(), "no marker lies where {missed:?} says");
    }
    assert_eq!(times.len(), markers.len(), "some markers were not found");
    times.values().copied().max().unwrap_or(0)
}

/// Leaves the test unless the kernel has these targets; modules are not loaded for it.
macro_rules! require_targets {
    ($($target:literal),+) => {
        require!(Loop, Tool("dmsetup"));
        for target in [$($target),+] {
            let out = Command::new("dmsetup").arg("targets").limited_output();
            let list = String::from_utf8_lossy(&out.stdout).into_owned();
            if !list.lines().any(|line| line.split_whitespace().next() == Some(target)) {
                plumb_testkit::skip!(&format!("the kernel has no dm target {target}, or has not loaded it"));
            }
        }
    };
}

/// Leaves the test unless the kernel has md.
macro_rules! require_md {
    ($level:literal) => {
        require!(Loop, Tool("mdadm"));
        let personalities = std::fs::read_to_string("/proc/mdstat").unwrap_or_default();
        if !personalities.contains(concat!("[", $level, "]")) {
            plumb_testkit::skip!(concat!(
                "the kernel has no ",
                $level,
                ", or has not loaded it"
            ));
        }
    };
}

#[test]
fn segments_linear_and_striped() {
    require_targets!("linear", "striped");
    let disks = Disks::new(2);
    let (a, b) = (disks.path(0), disks.path(1));
    let table = format!("0 8192 linear {a} 2049\n8192 8192 striped 2 128 {a} 16384 {b} 33\n");
    let volume = Volume::create("plumb--t-segments", "LVM-plumbtest", &table);
    assert_eq!(prove(&disks, &volume.path()), 1);
    let stack = stack();
    let lv = node(&stack, "plumb-t/segments");
    assert_eq!(lv.kind, Kind::LogicalVolume);
    assert_eq!(node(&stack, "plumb-t/segments[1]").kind, Kind::Stripe);
}

#[test]
fn mirrors_have_two_places() {
    require_targets!("mirror");
    let disks = Disks::new(2);
    let table = format!(
        "0 4096 mirror core 2 64 nosync 2 {} 100 {} 333",
        disks.path(0),
        disks.path(1)
    );
    let volume = Volume::create("plumb-mirror", "", &table);
    assert_eq!(prove(&disks, &volume.path()), 2);
}

#[test]
fn thin_blocks_are_anywhere() {
    require_targets!("thin-pool", "thin", "linear");
    let disks = Disks::new(2);
    let (a, b) = (disks.path(0), disks.path(1));
    let data = Volume::create("plumb-data", "", &format!("0 32768 linear {b} 65"));
    let data_path = data.path().display().to_string();
    let pool = Volume::create(
        "plumb-pool",
        "",
        &format!("0 32768 thin-pool {a} {data_path} 128 0"),
    );
    run(Command::new("dmsetup")
        .arg("message")
        .arg(pool.path())
        .args(["0", "create_thin 0"]));
    let volume = Volume::create(
        "plumb-thin",
        "",
        &format!("0 16384 thin {} 0", pool.path().display()),
    );
    assert_eq!(prove(&disks, &volume.path()), 1);
    assert_eq!(node(&stack(), "plumb-thin").kind, Kind::ThinVolume);
    // In this order in all cases: upper before lower.
    drop((volume, pool, data));
}

#[test]
fn encryption_is_found_without_its_key() {
    require_targets!("crypt");
    let disks = Disks::new(1);
    let key = "0123456789abcdef".repeat(4);
    let table = format!(
        "0 8192 crypt aes-xts-plain64 {key} 0 {} 2056 1 sector_size:4096",
        disks.path(0)
    );
    let _volume = Volume::create("plumb-crypt", "", &table);
    let stack = stack();
    let landings = stack.landings(stack.find("plumb-crypt").expect("it")).all;
    assert_eq!(landings[1].shift, 2056 * 512);
    assert_eq!(node(&stack, "plumb-crypt").kind, Kind::Crypt);
    let all = stack
        .nodes()
        .map(|(_, node)| format!("{node:?}"))
        .collect::<String>();
    assert!(!all.contains(&key[..16]), "a key was kept");
}

#[test]
fn arrays_of_chunks() {
    require_md!("raid0");
    let disks = Disks::new(2);
    let array = MdArray::create(
        120,
        &["--level=0", "--raid-devices=2", "--chunk=64"],
        &[disks.path(0), disks.path(1)],
    );
    assert_eq!(prove(&disks, &array.0), 1);
}

#[test]
fn arrays_with_parity() {
    require_md!("raid5");
    let disks = Disks::new(3);
    let members: Vec<String> = (0..3).map(|at| disks.path(at)).collect();
    let array = MdArray::create(
        121,
        &["--level=5", "--raid-devices=3", "--chunk=32"],
        &members,
    );
    // Parity of a sector that is alone in its stripe is the sector itself.
    assert!((1..=2).contains(&prove(&disks, &array.0)));
    let stack = stack();
    let plumb_stack::Placing::Chunks(chunks) = &node(&stack, "md121").placing else {
        panic!("no chunks")
    };
    assert_eq!(chunks.stripe_bytes(), Some(Bytes(64 << 10)));
}

#[test]
fn arrays_of_copies() {
    require_md!("raid10");
    let disks = Disks::new(4);
    let members: Vec<String> = (0..4).map(|at| disks.path(at)).collect();
    let array = MdArray::create(
        122,
        &["--level=10", "--raid-devices=4", "--chunk=64"],
        &members,
    );
    assert_eq!(prove(&disks, &array.0), 2);
}

/// Leaves the test outside of the guest, which has devices that no other machine has.
macro_rules! require_guest {
    () => {
        if std::env::var_os("PLUMB_IN_GUEST").is_none() {
            plumb_testkit::skip!("runs in the guest alone, see all_of_it_in_a_guest");
        }
    };
}

fn grid(node: &Node, what: CellKind) -> Option<(u64, u64, bool)> {
    let fact = node.grids.iter().find(|fact| fact.what == what)?;
    Some((
        fact.granularity().0,
        fact.grid.offset().0,
        fact.is_believed(),
    ))
}

/// `physblk_exp=3 lowest_aligned=7 opt_blks=128` of scsi_debug, through the kernel.
#[test]
fn disks_with_an_offset() {
    require_guest!();
    let path = Path::new("/dev/sda");
    for (number, start) in [("1", "2047"), ("2", "4096")] {
        run(Command::new("addpart")
            .arg(path)
            .args([number, start, "1024"]));
    }
    let stack = stack();
    let sda = node(&stack, "sda");
    assert_eq!(
        grid(sda, CellKind::PhysicalBlock),
        Some((4096, 7 * 512, true))
    );
    assert_eq!(grid(sda, CellKind::OptimalIo), Some((128 * 512, 0, true)));
    let verdict = |name: &str| {
        let standings = stack.standings(stack.find(name).expect(name));
        standings
            .into_iter()
            .map(|one| one.verdict)
            .collect::<Vec<_>>()
    };
    let drive = BlockDevice::open(path).and_then(|device| {
        Ok((
            scsi::capacity(&device)?,
            scsi::page(&device, scsi::Page::BlockLimits)?,
        ))
    });
    let (capacity, limits) = drive.expect("the drive's own word");
    assert_eq!(
        (capacity.logical_per_physical, capacity.lowest_aligned_block),
        (8, 7)
    );
    assert_eq!(capacity.blocks * 512, sda.size.expect("a size").0);
    assert_eq!(
        limits[12..16],
        128u32.to_be_bytes(),
        "optimal transfer length"
    );
    assert_eq!(verdict("sda1"), [Verdict::Aligned]);
    assert_eq!(verdict("sda2"), [Verdict::Misaligned { by: Bytes(512) }]);
}

/// The configured granularity of discards of the emulator.
#[test]
fn namespaces_identify_themselves() {
    require_guest!();
    let stack = stack();
    let namespace = node(&stack, "nvme0n1");
    assert_eq!(namespace.kind, Kind::VirtualDisk);
    let stated = namespace.grids.iter().find(|fact| {
        fact.source
            == Source::Drive {
                field: "NPDG".to_owned(),
            }
    });
    assert_eq!(stated.map(GridFact::granularity), Some(Bytes(16 << 10)));
    let formats = namespace.value(keys::LBA_FORMATS).expect("formats");
    let format = LbaFormat {
        block: Bytes(512),
        metadata: Bytes(0),
        performance: 0,
        is_in_use: true,
    };
    assert!(formats.contains(&format), "{formats:?}");
}

/// Everything above once more in a guest, for hosts whose kernel has neither the device mapper nor md. There nothing may be
/// skipped.
#[test]
fn all_of_it_in_a_guest() {
    if std::env::var_os("PLUMB_IN_GUEST").is_some() {
        return;
    }
    require!(Qemu);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/test-in-guest");
    let this = std::env::current_exe().expect("path of the test program");
    let mut command = Command::new(&script);
    command.arg(this).args(["--", "linux_volumes::"]);
    command.stdin(std::process::Stdio::null());
    let out = wait::output_within(wait::GUEST_PATIENCE, &mut command);
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    if out.status.code() == Some(5) {
        let why = said
            .lines()
            .find(|line| line.contains("lacking"))
            .unwrap_or("the guest lacks something");
        plumb_testkit::skip!(why);
    }
    assert!(out.status.success() && !said.contains("SKIPPED"), "{said}");
    assert!(
        said.contains("test linux_volumes::segments_linear_and_striped ... "),
        "the guest ran other tests:\n{said}"
    );
}
