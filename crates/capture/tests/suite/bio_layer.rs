//! The kernel's counts of individually known bios: on a loop device, which makes requests of them, and on zram, which
//! makes none.

use std::collections::BTreeMap;

use crate::common::{
    Direct, FIRST_SECTOR, LoopDisk, MODULUS, RowCounts, SIZE, label, partition, table,
};
use plumb_capture::{Attached, BlockWatch, Layers, Options, Reading, disk_of};
use plumb_testkit::require;
use plumb_testkit::rng::Rng;
use plumb_testkit::zram::Zram;
use plumb_trace::{Layer, Op};

fn bios() -> Options {
    Options {
        layers: Layers::Bio,
        ..Options::default()
    }
}

/// 1,009 reads and writes, every third on the disk and the others through a partition, by either way to attach.
#[test]
fn every_bio_is_counted_at_its_position() {
    require!(Bpf, Loop, Tool("partx"), Tool("mknod"), Tool("sgdisk"));
    [Attached::TypedTracepoints, Attached::RawTracepoints]
        .into_iter()
        .for_each(count_every_bio);
}

fn count_every_bio(by: Attached) {
    let disk = LoopDisk::new();
    label(disk.device.path());
    assert_eq!(disk.device.add_partitions(), 1);
    let (name, _room, node) = partition(&disk);
    let mut process_one = disk.process_one();
    let mut block = disk.watch_with(Options {
        attach: Some(by),
        ..bios()
    });
    assert_eq!((block.attached(), block.layers()), (by, vec![Layer::Bio]));
    let (mut within, mut whole) = (Direct::open(&node), disk.open());
    let (mut expected, mut of_part) = (RowCounts::new(), RowCounts::new());
    let mut rng = Rng::new(11);
    for at in 0..1009 {
        let op = if rng.below(3) == 0 {
            Op::Write
        } else {
            Op::Read
        };
        let len = [512, 4096, 8192, 65_536][rng.below(4) as usize];
        let start = rng.below((SIZE / 4 - len) / 512) * 512;
        let (file, first) = if at % 3 == 0 {
            (&mut whole, 0)
        } else {
            (&mut within, FIRST_SECTOR * 512)
        };
        file.io(op, start, len);
        let key = (op as u8, (start + first) % MODULUS, len);
        *expected.entry(key).or_default() += 1;
        if at % 3 != 0 {
            *of_part.entry(key).or_default() += 1;
        }
    }
    let reading = block.read();
    let profile = disk.profile_at(Layer::Bio, &reading);
    assert_eq!(table(profile), expected);
    assert_eq!(profile.ios(), 1009);
    let unseen = 1009 - profile.timed_ios();
    process_one.explains(unseen, 1009);
    assert_eq!(
        profile.ops[0].device_ns.total() + profile.ops[1].device_ns.total(),
        1009 - unseen
    );
    assert!((1..=1 + unseen).contains(&profile.ordered.in_flight.depth_max));
    let part = &profile.partitions[&name];
    assert_eq!(part.first_byte, FIRST_SECTOR * 512);
    let mut counted = RowCounts::new();
    for (key, row) in part.table.iter() {
        *counted
            .entry((key.op() as u8, key.residue() * 512, key.length() * 512))
            .or_default() += row.ios;
    }
    assert_eq!(counted, of_part);
    let misses = disk.misses(&reading);
    assert_eq!((misses.unmatched_completions, misses.unplaced), (0, 0));
    assert!(misses.unmatched_issues <= unseen, "{misses:?}");
    let mine: Vec<_> = reading
        .processes
        .iter()
        .filter(|process| process.pid == std::process::id())
        .collect();
    let by_device: BTreeMap<&str, u64> = mine
        .iter()
        .map(|process| (process.device.as_str(), process.ios))
        .collect();
    assert_eq!(
        by_device,
        BTreeMap::from([(name.as_str(), 672), (disk.device.name().as_str(), 337)])
    );
    assert!(block.read().profiles.is_empty());
}

/// A read that the queue cuts in four is one bio, cut three times; its pieces are no I/O here, and a flush is none either.
#[test]
fn one_bio_however_often_it_is_split() {
    require!(Bpf, Loop);
    let disk = LoopDisk::new();
    disk.set("max_sectors_kb", "64");
    let mut process_one = disk.process_one();
    let mut block = disk.watch_with(bios());
    let mut file = disk.open();
    for at in 0..101 {
        file.io(Op::Read, at * (512 << 10), 256 << 10);
    }
    file.io(Op::Write, 3 << 20, 4096);
    file.file.sync_data().expect("a flush");
    let reading = block.read();
    let profile = disk.profile_at(Layer::Bio, &reading);
    let expected = RowCounts::from([
        ((0, 0, 256 << 10), 51),
        ((0, 512 << 10, 256 << 10), 50),
        ((1, 0, 4096), 1),
    ]);
    assert_eq!(table(profile), expected);
    assert_eq!(profile.ios(), 102);
    // A bio ends with one of its four requests.
    let unseen = 102 - profile.timed_ios();
    assert!(unseen <= process_one.completions(), "{unseen} unseen");
    let misses = disk.misses(&reading);
    assert_eq!((misses.splits, misses.flushes), (303, 1));
    assert_eq!(misses.unmatched_completions, 0);
    assert!(misses.unmatched_issues <= unseen, "{misses:?}");
}

/// Threads count that sent I/O since the last reading, though none has any in flight when it is made.
#[test]
fn threads_of_an_interval() {
    require!(Bpf, Loop);
    for layers in [Layers::Request, Layers::Bio] {
        let disk = LoopDisk::new();
        let mut block = disk.watch_with(Options {
            layers,
            ..Options::default()
        });
        let ios_and_threads = |reading: &Reading| {
            let mut mine = reading.processes.iter();
            mine.find(|process| process.pid == std::process::id())
                .map(|process| (process.ios, process.threads))
        };
        for (threads, ios) in [(7, 29), (1, 1), (3, 13)] {
            std::thread::scope(|scope| {
                for at in 0..threads {
                    let mut file = disk.open();
                    scope.spawn(move || (0..ios).for_each(|_| file.io(Op::Read, at << 20, 4096)));
                }
            });
            // Times of threads are exact to about a millisecond.
            std::thread::sleep(std::time::Duration::from_millis(3));
            let found = ios_and_threads(&block.read());
            assert_eq!(found, Some((threads * ios, threads)), "{layers:?}");
        }
    }
}

fn ios_of_this_process(reading: &Reading, device: &str) -> u64 {
    let mine = reading
        .processes
        .iter()
        .filter(|process| process.pid == std::process::id());
    mine.filter(|process| process.device == device)
        .map(|process| process.ios)
        .sum()
}

/// A disk without requests beside one that makes them, each at its layer.
#[test]
fn each_disk_at_its_layer() {
    require!(Bpf, Loop, Tool("mknod"));
    let Some(zram) = Zram::new(SIZE) else {
        plumb_testkit::skip!("this kernel has no zram");
    };
    let disk = LoopDisk::new();
    let devices: Vec<u32> = [zram.name(), disk.device.name()]
        .map(|name| disk_of(&name).expect("its number"))
        .into();
    for attach in [Attached::TypedTracepoints, Attached::RawTracepoints].map(Some) {
        // Named, and found among all there are.
        for devices in [devices.clone(), Vec::new()] {
            let mut block = BlockWatch::attach(&Options {
                devices,
                attach,
                ..Options::default()
            })
            .expect("programs");
            assert_eq!(block.layers(), [Layer::Bio, Layer::Request]);
            let (mut on_zram, mut on_loop) = (Direct::open(zram.path()), disk.open());
            (0..211).for_each(|at| on_zram.io(Op::Write, at * 3 * 8192 + 4096, 8192));
            (0..101).for_each(|at| on_zram.io(Op::Read, at * 3 * 8192, 4096));
            (0..307).for_each(|at| on_loop.io(Op::Read, at * 8192, 4096));
            let reading = block.read();
            let profile = reading
                .profiles
                .find(&zram.name(), Layer::Bio)
                .expect("a profile");
            assert_eq!(
                (profile.op(Op::Write).ios, profile.op(Op::Read).ios),
                (211, 101)
            );
            assert_eq!(profile.timed_ios(), 312);
            assert!(
                table(profile)
                    .iter()
                    .all(|((op, residue, _), _)| *op != 1 || residue % 8192 == 4096)
            );
            assert!(
                reading
                    .profiles
                    .find(&zram.name(), Layer::Request)
                    .is_none()
            );
            assert!(
                reading
                    .profiles
                    .find(&disk.device.name(), Layer::Bio)
                    .is_none()
            );
            // Others may look at a disk that comes; they do not know this one of zram, which has no node.
            assert_eq!(ios_of_this_process(&reading, &disk.device.name()), 307);
            assert_eq!(ios_of_this_process(&reading, &zram.name()), 312);
            let misses = reading.misses[&zram.name()];
            assert_eq!(
                (misses.unmatched_issues, misses.unmatched_completions),
                (0, 0)
            );
            assert!(reading.seen_again.is_empty());
        }
    }
    let on_bio_layer_alone = Options {
        devices: devices[..1].to_vec(),
        ..Options::default()
    };
    assert_eq!(
        BlockWatch::attach(&on_bio_layer_alone)
            .expect("programs")
            .layers(),
        [Layer::Bio]
    );
}

/// A disk without requests that comes while all disks are watched is watched as well.
#[test]
fn a_disk_that_comes_later() {
    require!(Bpf, Loop, Tool("mknod"));
    let mut block = BlockWatch::attach(&Options::default()).expect("programs");
    let Some(zram) = Zram::new(SIZE) else {
        plumb_testkit::skip!("this kernel has no zram");
    };
    let mut file = Direct::open(zram.path());
    (0..101).for_each(|at| file.io(Op::Write, at * 8192, 4096));
    let reading = block.read();
    let profile = reading
        .profiles
        .find(&zram.name(), Layer::Bio)
        .expect("a profile");
    assert_eq!(
        (profile.ios(), profile.timed_ios(), profile.size_bytes),
        (101, 101, Some(SIZE))
    );
    // None is looked for where all that were named make requests.
    let disk = LoopDisk::new();
    assert_eq!(disk.watch().layers(), [Layer::Request]);
}
