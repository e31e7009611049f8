//! The kernel's counts of individually known calls, on a separate file system.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_capture::{
    AccessWay, Asker, Attached, CallKind, Calls, FileCalls, FileSystem, MappedPages, Vfs,
};
use plumb_testkit::loop_device::{LoopDevice, Mounted, run};
use plumb_testkit::rng::Rng;
use plumb_testkit::{machine, require, skip};
use plumb_trace::{Layer, Op};
use tempfile::TempDir;

const SIZE: u64 = 64 << 20;
const MODULUS: u64 = 1 << 20;

/// ext4 on a loop device, mounted, with a file of 32 MiB in it that is not in the cache.
struct Ext4Disk {
    _mounted: Mounted,
    device: LoopDevice,
    room: TempDir,
}

impl Ext4Disk {
    fn new() -> Ext4Disk {
        let room = tempfile::tempdir().expect("a directory");
        let image = room.path().join("disk");
        File::create(&image)
            .and_then(|file| file.set_len(SIZE))
            .expect("room for a sparse file");
        let device = LoopDevice::attach_hidden(&image, &[]);
        run(Command::new("mkfs.ext4")
            .args(["-q", "-E", "nodiscard"])
            .arg(device.path()));
        let at = room.path().join("at");
        std::fs::create_dir(&at).expect("a directory");
        let disk = Ext4Disk {
            _mounted: Mounted::mount(device.path(), &at),
            device,
            room,
        };
        std::fs::write(disk.file(), vec![7; 32 << 20]).expect("a file");
        rustix::fs::sync();
        disk
    }

    fn file(&self) -> PathBuf {
        self.room.path().join("at/data")
    }

    fn file_system(&self) -> FileSystem {
        FileSystem {
            dev: number(std::fs::metadata(self.file()).expect("the file").dev()),
            is_node: false,
        }
    }

    fn node(&self) -> FileSystem {
        FileSystem {
            dev: number(
                std::fs::metadata(self.device.path())
                    .expect("the node")
                    .rdev(),
            ),
            is_node: true,
        }
    }
}

/// As the kernel packs it.
fn number(dev: u64) -> u32 {
    rustix::fs::major(dev) << 20 | rustix::fs::minor(dev)
}

fn name(file_system: FileSystem) -> String {
    format!(
        "{:x}{}",
        file_system.dev,
        if file_system.is_node { " node" } else { "" }
    )
}

fn open(path: &Path, flags: rustix::fs::OFlags) -> File {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .custom_flags(flags.bits() as i32);
    options.open(path).expect("the file")
}

/// The requests of a process to a file system.
fn find(asked: &FileCalls, pid: u32, file_system: FileSystem) -> &Asker {
    let mut of_it = asked
        .askers
        .iter()
        .filter(|a| a.pid == pid && a.file_system == Some(file_system));
    let found = of_it
        .next()
        .unwrap_or_else(|| panic!("no {pid} on {file_system:?} in {:?}", asked.askers));
    assert!(of_it.next().is_none());
    found
}

/// (operation, residue, length) to I/O.
fn table(asked: &FileCalls, file_system: FileSystem) -> BTreeMap<(u8, u64, u64), u64> {
    let profile = asked
        .profiles
        .find(&name(file_system), Layer::Vfs)
        .expect("a profile");
    let unit = profile.places.table.unit_bytes();
    let mut counted = BTreeMap::new();
    for (key, row) in profile.places.table.iter() {
        *counted
            .entry((key.op() as u8, key.residue() * unit, key.length() * unit))
            .or_default() += row.ios;
    }
    counted
}

/// 1,009 reads and writes anywhere in a file, in odd lengths, by either way to attach, buffered and direct.
#[test]
fn every_call_is_counted_at_its_position() {
    require!(Bpf, Loop, Tool("mkfs.ext4"));
    [Attached::TypedTracepoints, Attached::RawTracepoints]
        .into_iter()
        .for_each(count_every_call);
}

fn count_every_call(by: Attached) {
    let disk = Ext4Disk::new();
    let mut vfs = Vfs::attach(Some(by)).expect("programs that this kernel takes");
    assert_eq!(vfs.attached(), by);
    let file = open(&disk.file(), rustix::fs::OFlags::empty());
    let direct = open(&disk.file(), rustix::fs::OFlags::DIRECT);
    let mut buffer = vec![0; 80 << 10];
    let aligned = buffer.as_ptr().align_offset(4096);
    let (mut table_expected, mut expected) = (BTreeMap::new(), [Calls::default(); 4]);
    let mut rng = Rng::new(11);
    for _ in 0..1009 {
        let is_write = rng.below(3) == 0;
        let is_direct = rng.below(4) == 0;
        let len = if is_direct {
            4096
        } else {
            [1, 997, 4096, 65_536][rng.below(4) as usize]
        };
        let start = if is_direct {
            rng.below(8000) * 4096
        } else {
            rng.below((32 << 20) - len)
        };
        let (file, from) = if is_direct {
            (&direct, aligned)
        } else {
            (&file, 0)
        };
        let room = &mut buffer[from..from + len as usize];
        match is_write {
            true => file.write_all_at(room, start).expect("a write"),
            false => file.read_exact_at(room, start).expect("a read"),
        }
        let op = if is_write { Op::Write } else { Op::Read };
        *table_expected
            .entry((op as u8, start % MODULUS, len))
            .or_default() += 1;
        expected[usize::from(is_write) + 2 * usize::from(is_direct)] += Calls {
            calls: 1,
            asked_bytes: len,
            moved_bytes: len,
        };
    }
    // Behind the end: asked, and nothing got.
    assert_eq!(
        file.read_at(&mut buffer[..4096], 64 << 20)
            .expect("the end"),
        0
    );
    expected[0] += Calls {
        calls: 1,
        asked_bytes: 4096,
        moved_bytes: 0,
    };
    let asked = vfs.read(name);
    let mine = find(&asked, std::process::id(), disk.file_system());
    assert_eq!(mine.calls, expected);
    assert_eq!(
        (mine.is_whole(), mine.ways.as_slice()),
        (true, [AccessWay::Calls].as_slice())
    );
    assert_eq!((mine.failed, mine.unplaced), (0, 0));
    assert_eq!(table(&asked, disk.file_system()), table_expected);
    // Each reading returns its counts once.
    assert!(
        vfs.read(name)
            .askers
            .iter()
            .all(|asker| asker.file_system != Some(disk.file_system()))
    );
}

/// Calls that move on a position, that take several buffers, that append, and that copy from file to file.
#[test]
fn calls_of_all_forms() {
    require!(Bpf, Loop, Tool("mkfs.ext4"));
    let disk = Ext4Disk::new();
    let mut vfs = Vfs::attach(None).expect("programs that this kernel takes");
    let mut file = open(&disk.file(), rustix::fs::OFlags::empty());
    let mut expected = BTreeMap::new();
    let mut expect = |op: Op, start: u64, len: u64| {
        *expected
            .entry((op as u8, start % MODULUS, len))
            .or_insert(0) += 1;
    };
    file.seek(SeekFrom::Start(3 << 20 | 1000)).expect("a seek");
    let mut room = [0; 3000];
    for at in 0..101 {
        file.read_exact(&mut room).expect("a read");
        expect(Op::Read, (3 << 20 | 1000) + at * 3000, 3000);
    }
    let (one, two) = room.split_at_mut(1234);
    file.seek(SeekFrom::Start(77)).expect("a seek");
    for at in 0..7 {
        let mut buffers = [IoSliceMut::new(one), IoSliceMut::new(two)];
        assert_eq!(file.read_vectored(&mut buffers).expect("a read"), 3000);
        expect(Op::Read, 77 + at * 3000, 3000);
    }
    let mut end = OpenOptions::new()
        .append(true)
        .open(disk.file())
        .expect("the file");
    for at in 0..5 {
        let buffers = [IoSlice::new(&room[..500]), IoSlice::new(&room[..11])];
        assert_eq!(end.write_vectored(&buffers).expect("a write"), 511);
        expect(Op::Write, (32 << 20) + at * 511, 511);
    }
    let buffers = &mut [IoSliceMut::new(&mut room[..700])];
    assert_eq!(
        rustix::io::preadv(&file, buffers, 9 << 20 | 13).expect("a read"),
        700
    );
    expect(Op::Read, 13, 700);
    let other = File::create(disk.room.path().join("at/other")).expect("a file");
    let mut from = 5 << 20 | 300;
    let copied =
        rustix::fs::copy_file_range(&file, Some(&mut from), &other, None, 8191).expect("a copy");
    assert_eq!(copied, 8191);
    expect(Op::Read, 300, 8191);
    expect(Op::Write, 0, 8191);
    let mut from = 6 << 20 | 5;
    assert_eq!(
        rustix::fs::sendfile(&other, &file, Some(&mut from), 4099).expect("a copy"),
        4099
    );
    expect(Op::Read, 5, 4099);
    expect(Op::Write, 8191, 4099);
    let read_only = File::open(disk.file()).expect("the file");
    assert!(rustix::io::write(&read_only, &[0]).is_err());
    let asked = vfs.read(name);
    let mine = find(&asked, std::process::id(), disk.file_system());
    assert_eq!(table(&asked, disk.file_system()), expected);
    let sum = |op: Op| -> (u64, u64) {
        let of = expected.iter().filter(|((code, ..), _)| *code == op as u8);
        of.fold((0, 0), |(ios, bytes), ((_, _, len), count)| {
            (ios + count, bytes + len * count)
        })
    };
    for (kind, op) in [(CallKind::Read, Op::Read), (CallKind::Write, Op::Write)] {
        let Calls {
            calls,
            asked_bytes,
            moved_bytes,
        } = mine.calls_of(kind);
        assert_eq!(
            (calls, asked_bytes, moved_bytes),
            (sum(op).0, sum(op).1, sum(op).1)
        );
    }
    assert_eq!((mine.failed, mine.is_whole()), (1, true));
    // 100 reads and six with two buffers follow one that is known, four writes at the end, and that of sendfile.
    let profile = asked
        .profiles
        .find(&name(disk.file_system()), Layer::Vfs)
        .expect("a profile");
    assert_eq!(profile.ordered.continuing, 100 + 6 + 4 + 1);
}

/// A device that is read by its node is separate from the file system on it.
#[test]
fn a_node_is_no_file_system() {
    require!(Bpf, Loop, Tool("mkfs.ext4"));
    let disk = Ext4Disk::new();
    let mut vfs = Vfs::attach(None).expect("programs that this kernel takes");
    let node = open(disk.device.path(), rustix::fs::OFlags::empty());
    let file = File::open(disk.file()).expect("the file");
    let mut room = [0; 512];
    (0..31).for_each(|at| node.read_exact_at(&mut room, at * 1024).expect("a read"));
    (0..37).for_each(|at| file.read_exact_at(&mut room, at * 1024).expect("a read"));
    let asked = vfs.read(name);
    assert_eq!(
        find(&asked, std::process::id(), disk.node())
            .calls_of(CallKind::Read)
            .calls,
        31
    );
    assert_eq!(
        find(&asked, std::process::id(), disk.file_system())
            .calls_of(CallKind::Read)
            .calls,
        37
    );
    assert_eq!(disk.node().dev, disk.file_system().dev);
}

/// A file that is mapped is read without a call: before the watch began, and after.
#[test]
fn mapped_files_are_unknown() {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    require!(Bpf, Loop, Tool("mkfs.ext4"));
    for maps_before in [true, false] {
        let disk = Ext4Disk::new();
        let file = File::open(disk.file()).expect("the file");
        let map = || {
            // SAFETY: a new mapping at an address of the kernel's choice, from which nothing is read.
            unsafe {
                mmap(
                    std::ptr::null_mut(),
                    8192,
                    ProtFlags::READ,
                    MapFlags::PRIVATE,
                    &file,
                    0,
                )
            }
        };
        let before = maps_before.then(|| map().expect("a mapping"));
        let mut vfs = Vfs::attach(None).expect("programs that this kernel takes");
        let after = (!maps_before).then(|| map().expect("a mapping"));
        if let Some(after) = after {
            // SAFETY: mapped above with this length, and not used.
            unsafe { munmap(after, 8192) }.expect("unmapped");
        }
        file.read_exact_at(&mut [0; 4096], 0).expect("a read");
        let asked = vfs.read(name);
        let mine = find(&asked, std::process::id(), disk.file_system());
        assert_eq!(mine.ways, [AccessWay::Calls, AccessWay::Mapped]);
        assert!(!mine.is_whole());
        // Nobody touched the pages.
        assert_eq!(mine.mapped, None);
        assert_eq!(
            mine.calls_of(CallKind::Read),
            Calls {
                calls: 1,
                asked_bytes: 4096,
                moved_bytes: 4096
            }
        );
        if let Some(before) = before {
            // SAFETY: as above.
            unsafe { munmap(before, 8192) }.expect("unmapped");
        }
    }
}

/// Whether page faults of files count; they must on a kernel that has their tracepoint.
fn shows_faults(vfs: &Vfs) -> bool {
    let is_shown = machine::has_tracepoint("mm_filemap_fault");
    assert_eq!(vfs.sees_mapped(), is_shown);
    is_shown
}

/// Each touched page has one fault, even if the kernel repeats the fault after the disk gave the page. Each page that is stored to
/// becomes dirty once. Pages in the page cache cause no fault of the file system.
#[test]
fn faults_and_stores_of_mapped_files_are_counted() {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
    require!(Bpf, Loop, Tool("mkfs.ext4"));
    for by in [Attached::TypedTracepoints, Attached::RawTracepoints] {
        let disk = Ext4Disk::new();
        let file = open(&disk.file(), rustix::fs::OFlags::empty());
        let len = 32 << 20;
        let mut vfs = Vfs::attach(Some(by)).expect("programs that this kernel takes");
        if !shows_faults(&vfs) {
            skip!("Linux before 6.11 shows no page faults of files");
        }
        // SAFETY: a new mapping at an address of the kernel's choice, of a file that nobody shortens.
        let map = unsafe {
            let both = ProtFlags::READ | ProtFlags::WRITE;
            let map = mmap(std::ptr::null_mut(), len, both, MapFlags::SHARED, &file, 0);
            map.expect("a mapping").cast::<u8>()
        };
        // SAFETY: mapped above with this length.
        unsafe { madvise(map.cast(), len, Advice::LinuxDontNeed) }.expect("advice");
        // SAFETY: as above.
        unsafe { madvise(map.cast(), len, Advice::Random) }.expect("advice");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
        // Their distance is more than the kernel maps around a fault.
        let at = |number: usize| {
            // SAFETY: 98 times 256 KiB are less than 32 MiB.
            unsafe { map.add(number << 18) }
        };
        for number in 0..61 {
            // SAFETY: within the mapping.
            unsafe { at(number).read_volatile() };
        }
        // Two threads wait for the disk by turns.
        let base = map as usize;
        std::thread::scope(|scope| {
            for first in [61, 62] {
                scope.spawn(move || {
                    for number in (first..98).step_by(2) {
                        let page = (base + (number << 18)) as *mut u8;
                        // SAFETY: within the mapping, and no other thread uses this page.
                        unsafe { page.write_volatile(1) };
                    }
                });
            }
        });
        let asked = vfs.read(name);
        let mine = find(&asked, std::process::id(), disk.file_system());
        let expected = MappedPages {
            faults: 98,
            dirtied: 37,
        };
        assert_eq!(mine.mapped, Some(expected), "{by:?}");
        assert_eq!(mine.ways, [AccessWay::Mapped]);
        // The same pages again: all of them are mapped, and some are dirty.
        for number in 0..98 {
            // SAFETY: within the mapping.
            unsafe { at(number).read_volatile() };
        }
        let again = vfs.read(name);
        let of_it = |asker: &&Asker| asker.file_system == Some(disk.file_system());
        assert_eq!(again.askers.iter().find(of_it), None, "{by:?}");
        // SAFETY: mapped above with this length, and not used after this.
        unsafe { munmap(map.cast(), len) }.expect("unmapped");
    }
}

/// Runs fio over 211 random reads of 8 KiB and returns the bytes it says it read.
fn fio(disk: &Ext4Disk, engine: &str, is_direct: bool) -> u64 {
    let out = run(Command::new("fio")
        .args([
            "--name=ask",
            "--rw=randread",
            "--bs=8k",
            "--io_size=1688k",
            "--size=32m",
            "--output-format=json",
        ])
        .args(["--invalidate=0", "--fadvise_hint=0"])
        .arg(format!("--filename={}", disk.file().display()))
        .args([
            format!("--ioengine={engine}"),
            format!("--direct={}", u8::from(is_direct)),
            "--iodepth=8".into(),
        ]));
    let (_, read) = out.split_once("\"io_bytes\" : ").expect("what fio says");
    read.split(',')
        .next()
        .and_then(|bytes| bytes.trim().parse().ok())
        .expect("a number")
}

/// Reads of 211 different pages of a mapped file that is not in the cache, by fio, are as many faults.
#[test]
fn faults_of_fio() {
    require!(Bpf, Loop, Tool("mkfs.ext4"), Tool("fio"));
    let disk = Ext4Disk::new();
    let file = File::open(disk.file()).expect("the file");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
    let mut vfs = Vfs::attach(None).expect("programs that this kernel takes");
    if !shows_faults(&vfs) {
        skip!("Linux before 6.11 shows no page faults of files");
    }
    let out = run(Command::new("fio")
        .args(["--name=ask", "--ioengine=mmap", "--rw=randread", "--bs=4k"])
        .args(["--io_size=844k", "--size=32m", "--output-format=json"])
        .args(["--invalidate=0", "--fadvise_hint=random"])
        .arg(format!("--filename={}", disk.file().display())));
    assert!(out.contains("\"total_ios\" : 211,"), "{out}");
    let asked = vfs.read(name);
    let mapped = asked
        .askers
        .iter()
        .filter(|asker| asker.file_system == Some(disk.file_system()))
        .filter_map(|asker| asker.mapped);
    let expected = MappedPages {
        faults: 211,
        dirtied: 0,
    };
    assert_eq!(mapped.collect::<Vec<_>>(), [expected]);
}

/// The same reads on every way: right, or unknown with the name of the way.
#[test]
fn engines_of_fio() {
    require!(Bpf, Loop, Tool("mkfs.ext4"), Tool("fio"));
    let disk = Ext4Disk::new();
    for (engine, way) in [
        ("psync", AccessWay::Calls),
        ("pvsync2", AccessWay::Calls),
        ("io_uring", AccessWay::Uring),
        ("libaio", AccessWay::Aio),
        ("mmap", AccessWay::Mapped),
    ] {
        for is_direct in [false, true] {
            if engine == "mmap" && is_direct {
                continue;
            }
            let mut vfs = Vfs::attach(None).expect("programs that this kernel takes");
            assert_eq!(fio(&disk, engine, is_direct), 211 * 8192, "{engine}");
            let asked = vfs.read(name);
            let of_fio = |asker: &&Asker| asker.comm == "fio" && asker.ways.contains(&way);
            let job = asked
                .askers
                .iter()
                .find(of_fio)
                .unwrap_or_else(|| panic!("{engine}: {:?}", asked.askers));
            assert_eq!(job.is_whole(), way.is_counted(), "{engine}: {job:?}");
            if !way.is_counted() {
                continue;
            }
            let job = asked
                .askers
                .iter()
                .find(|job| of_fio(job) && job.file_system == Some(disk.file_system()));
            let kind = if is_direct {
                CallKind::DirectRead
            } else {
                CallKind::Read
            };
            let bytes = 211 * 8192;
            let expected = Calls {
                calls: 211,
                asked_bytes: bytes,
                moved_bytes: bytes,
            };
            assert_eq!(
                job.expect("its job").calls_of(kind),
                expected,
                "{engine}, direct {is_direct}"
            );
            let profile = asked
                .profiles
                .find(&name(disk.file_system()), Layer::Vfs)
                .expect("a profile");
            assert!(profile.places.table.iter().all(|(key, _)| {
                let unit = profile.places.table.unit_bytes();
                (key.residue() * unit).is_multiple_of(8192) && key.length() * unit == 8192
            }));
        }
    }
}
