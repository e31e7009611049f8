//! The kernel's counts of individually known requests, on a loop device.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{
    Direct, FIRST_SECTOR, LoopDisk, MODULUS, RowCounts, SIZE, label, partition, table,
};
use plumb_capture::{Attached, BlockWatch, Options, Reading, disk_of};
use plumb_geometry::{Bytes, Grid};
use plumb_profile::fit::Select;
use plumb_profile::infer::{InferenceVerdict, infer};
use plumb_profile::table::ROWS_MAX_LEAST;
use plumb_profile::{ProfileSet, Settings};
use plumb_testkit::loop_device::run;
use plumb_testkit::require;
use plumb_testkit::rng::Rng;
use plumb_trace::{Layer, Op};

/// 1,009 reads and writes anywhere in a partition, in lengths from a sector to 64 KiB, by either way to attach.
#[test]
fn every_io_is_counted_at_its_position() {
    require!(Bpf, Loop, Tool("partx"));
    [Attached::TypedTracepoints, Attached::RawTracepoints]
        .into_iter()
        .for_each(count_every_io);
}

/// A table that drops lengths stays exact on the grids that its user named beforehand, over several readings.
#[test]
fn a_full_table_is_exact_on_the_named_grids() {
    require!(Bpf, Loop);
    let disk = LoopDisk::new();
    let tables = Settings {
        rows_max: ROWS_MAX_LEAST,
        grids: vec![Grid::ASSUMED],
        ..Settings::default()
    };
    let mut block = disk.watch_with(Options {
        tables,
        ..Options::default()
    });
    let mut file = disk.open();
    let mut rng = Rng::new(5);
    let (mut sent, mut odd, mut split, mut cells) = (0, 0, 0, 0);
    let mut whole = ProfileSet::default();
    for _ in 0..3 {
        for _ in 0..1_500 {
            let len = 512 * (1 + rng.below(40));
            let start = 512 * rng.below((SIZE - len) / 512);
            file.io(Op::Read, start, len);
            let touched = (start + len).div_ceil(4096) - start / 4096;
            sent += 1;
            odd += u64::from(!len.is_multiple_of(4096));
            split += u64::from(touched > len.div_ceil(4096));
            cells += u128::from(touched);
        }
        whole.merge(&block.read().profiles);
    }
    let profile = whole.find(&disk.device.name(), Layer::Request);
    let table = &profile.expect("the disk").places.table;
    assert!(table.are_lengths_rounded());
    let fit = table.fit(&Grid::ASSUMED, Select::DATA).expect("starts");
    let counted = (fit.odd_length.known(), fit.split.known(), fit.cells.known());
    assert_eq!(
        (fit.ios, counted),
        (sent, (Some(odd), Some(split), Some(cells)))
    );
    // Nobody asked about this one: its figures are ranges.
    let other = Grid::boundary(Bytes(8192)).expect("a grid");
    let fit = table.fit(&other, Select::DATA).expect("starts");
    assert!(fit.cells.low < fit.cells.high, "{fit:?}");
}

/// More different I/O than rows: none is lost, and inexact parts are marked.
#[test]
fn a_full_table_loses_no_io() {
    require!(Bpf, Loop);
    let disk = LoopDisk::new();
    let mut process_one = disk.process_one();
    let mut block = disk.watch();
    let mut file = disk.open();
    let mut rng = Rng::new(11);
    let (mut sent, mut bytes, mut misaligned) = (0u64, 0, 0);
    let (mut odd, mut split, mut cells) = (0u64, 0u64, 0u128);
    for _ in 0..90_001 {
        let len = 512 * (1 + rng.below(127));
        let start = 512 * rng.below((SIZE - len) / 512);
        file.io(Op::Read, start, len);
        (sent, bytes, misaligned) = (
            sent + 1,
            bytes + len,
            misaligned + u64::from(!start.is_multiple_of(4096)),
        );
        let touched = (start + len).div_ceil(4096) - start / 4096;
        odd += u64::from(!len.is_multiple_of(4096));
        split += u64::from(touched > len.div_ceil(4096));
        cells += u128::from(touched);
        if sent % 5000 == 0 {
            process_one.keep_up();
        }
    }
    let reading = block.read();
    let profile = disk.profile(&reading);
    assert_eq!((profile.ios(), profile.bytes()), (sent, bytes));
    process_one.explains(sent - profile.timed_ios(), sent);
    assert_eq!(disk.misses(&reading).unplaced, 0);
    let table = &profile.places.table;
    assert!(table.are_lengths_rounded(), "{} rows", table.iter().count());
    let fit = table.fit(&Grid::ASSUMED, Select::DATA).expect("starts");
    assert_eq!((fit.ios, fit.misaligned.known()), (sent, Some(misaligned)));
    // The kernel rounded lengths, so that these are ranges with the truth in them.
    assert!(
        fit.odd_length.contains(odd) && fit.split.contains(split),
        "{fit:?}"
    );
    assert!(
        fit.cells.contains(cells) && fit.cells.low < fit.cells.high,
        "{fit:?}"
    );
}

fn count_every_io(by: Attached) {
    let disk = LoopDisk::new();
    label(disk.device.path());
    assert_eq!(disk.device.add_partitions(), 1);
    let mut process_one = disk.process_one();
    let mut block = disk.watch_with(Options {
        attach: Some(by),
        ..Options::default()
    });
    assert_eq!(block.attached(), by);
    let mut file = disk.open();
    let (mut expected, mut bytes) = (RowCounts::new(), [0; 2]);
    let mut rng = Rng::new(7);
    for _ in 0..1009 {
        let op = if rng.below(3) == 0 {
            Op::Write
        } else {
            Op::Read
        };
        let len = [512, 4096, 8192, 65_536][rng.below(4) as usize];
        let start = (FIRST_SECTOR + rng.below((SIZE / 4 - len) / 512)) * 512;
        file.io(op, start, len);
        *expected
            .entry((op as u8, start % MODULUS, len))
            .or_default() += 1;
        bytes[op as usize] += len;
    }
    let reading = block.read();
    let profile = disk.profile(&reading);
    assert_eq!(table(profile), expected);
    assert_eq!(
        [profile.op(Op::Read).bytes, profile.op(Op::Write).bytes],
        bytes
    );
    assert_eq!(profile.ios(), 1009);
    let unseen = 1009 - profile.timed_ios();
    process_one.explains(unseen, 1009);
    assert_eq!(
        profile.ops[0].device_ns.total() + profile.ops[1].device_ns.total(),
        1009 - unseen
    );
    assert_eq!(profile.size_bytes, Some(SIZE));
    // I/O without a visible end are in flight until their place is taken.
    assert!((1..=1 + unseen).contains(&profile.ordered.in_flight.depth_max));
    let misses = reading.misses[&disk.device.name()];
    assert_eq!((misses.requeues, misses.unplaced), (0, 0));
    assert!(misses.unmatched_issues <= unseen, "{misses:?}");
    let mine: Vec<_> = reading
        .processes
        .iter()
        .filter(|process| process.pid == std::process::id())
        .collect();
    assert_eq!(mine.iter().map(|process| process.ios).sum::<u64>(), 1009);
    let by_sector =
        |(&(_, residue, _), ios): (&(u8, u64, u64), &u64)| (residue % 4096 != 0).then_some(*ios);
    assert_eq!(
        mine.iter()
            .map(|process| process.misaligned(3))
            .sum::<u64>(),
        expected.iter().filter_map(by_sector).sum::<u64>()
    );
    // Each reading returns its counts once.
    assert!(block.read().profiles.is_empty());
}

/// The same through the partition: starts are those of the disk, and the partition has them too.
#[test]
fn a_partition_is_distinguished_from_its_disk() {
    require!(Bpf, Loop, Tool("partx"), Tool("mknod"));
    let disk = LoopDisk::new();
    label(disk.device.path());
    assert_eq!(disk.device.add_partitions(), 1);
    let (name, _room, node) = partition(&disk);
    // By any name of a node.
    let number = disk_of(&disk.device.name()).expect("its number");
    for other in [node.to_str(), disk.device.path().to_str()] {
        assert_eq!(disk_of(other.expect("text")).expect("its number"), number);
    }
    let mut block = disk.watch();
    let (mut within, mut whole) = (Direct::open(&node), disk.open());
    (0..101).for_each(|at| within.io(Op::Read, at * 3 * 8192, 8192));
    (0..7).for_each(|at| whole.io(Op::Read, SIZE / 2 + at * 3 * 8192, 8192));
    let reading = block.read();
    let profile = disk.profile(&reading);
    assert_eq!(profile.ios(), 108);
    let misaligned = table(profile)
        .into_iter()
        .filter(|((_, residue, _), _)| residue % 4096 == 1024)
        .map(|(_, ios)| ios);
    assert_eq!(misaligned.sum::<u64>(), 101);
    let part = &profile.partitions[&name];
    assert_eq!(part.first_byte, FIRST_SECTOR * 512);
    assert_eq!(part.table.iter().map(|(_, row)| row.ios).sum::<u64>(), 101);
    assert!(part.table.iter().all(|(key, _)| key.residue() % 8 == 2));
}

/// A partition shows its offset as a disk does: how often one place is touched is counted by disk, which bounds it.
#[test]
fn a_partition_shows_its_offset() {
    require!(Bpf, Loop, Tool("partx"), Tool("mknod"));
    let disk = LoopDisk::new();
    label(disk.device.path());
    assert_eq!(disk.device.add_partitions(), 1);
    let (name, _room, node) = partition(&disk);
    let mut block = disk.watch();
    let mut within = Direct::open(&node);
    let verdict = |reading: &Reading| infer(&disk.profile(reading).partitions[&name]).verdict;
    let spread =
        |within: &mut Direct| (0..401).for_each(|at| within.io(Op::Read, at * 5 * 8192, 8192));
    spread(&mut within);
    let InferenceVerdict::One { phase } = verdict(&block.read()) else {
        panic!("no offset")
    };
    assert_eq!(
        (phase.granularity_bytes, phase.offset_bytes),
        (Bytes(8192), Bytes(FIRST_SECTOR * 512 % 8192))
    );
    assert_eq!((phase.heads, phase.ios), (401, 401));
    // Half of them at one place are no layout.
    spread(&mut within);
    (0..401).for_each(|_| within.io(Op::Read, 1 << 20, 8192));
    let InferenceVerdict::NotEnoughData { why } = verdict(&block.read()) else {
        panic!("one place decides")
    };
    assert!(
        why.contains("a single start may have") && why.contains(" of 802 random I/O"),
        "{why}"
    );
}

/// A read that the queue cuts in four is four requests; a flush has no place and is no I/O.
#[test]
fn splits_and_flushes() {
    require!(Bpf, Loop);
    let disk = LoopDisk::new();
    disk.set("max_sectors_kb", "64");
    let mut block = disk.watch();
    let mut file = disk.open();
    file.io(Op::Read, 1 << 20, 256 << 10);
    file.io(Op::Write, 3 << 20, 4096);
    file.file.sync_data().expect("a flush");
    let reading = block.read();
    let profile = disk.profile(&reading);
    let expected: RowCounts = [
        ((0, 0, 65_536), 1),
        ((0, 65_536, 65_536), 1),
        ((0, 131_072, 65_536), 1),
    ]
    .into_iter()
    .chain([((0, 196_608, 65_536), 1), ((1, 0, 4096), 1)])
    .collect();
    assert_eq!(table(profile), expected);
    assert_eq!(profile.op(Op::Flush).ios, 0);
    assert!(disk.misses(&reading).flushes >= 1);
    assert_eq!(disk.misses(&reading).splits, 3);
    // All parts are known to be of this process.
    let mine = reading
        .processes
        .iter()
        .filter(|process| process.pid == std::process::id());
    assert_eq!(mine.map(|process| process.ios).sum::<u64>(), 5);
    assert_eq!(reading.of_unknown_sender, 0);
}

/// A disk that was idle for longer than an interval: spans in it are no longer than the interval.
#[test]
fn no_span_is_longer_than_its_interval() {
    require!(Bpf, Loop);
    let disk = LoopDisk::new();
    let mut block = disk.watch();
    let mut file = disk.open();
    file.io(Op::Read, 0, 4096);
    block.read();
    std::thread::sleep(Duration::from_millis(300));
    // The interval begins within this reading.
    let began = Instant::now();
    block.read();
    file.io(Op::Read, 1 << 20, 4096);
    let reading = block.read();
    let most_ns = began.elapsed().as_nanos() as i64;
    let (first, last) = (
        disk.profile(&reading).first_ns,
        disk.profile(&reading).last_ns,
    );
    let span_ns = last.expect("a time") - first.expect("a time");
    assert!((0..=most_ns).contains(&span_ns), "{span_ns} of {most_ns}");
}

/// An I/O that completes while a reading is taken is in one of its sums and not yet in another. The next reading has the
/// rest, also when no further I/O came.
#[test]
fn a_completion_during_a_reading_is_counted_in_every_sum() {
    require!(Bpf, Loop);
    let disk = LoopDisk::new();
    let mut process_one = disk.process_one();
    let mut block = disk.watch();
    let mut file = disk.open();
    let sender = std::thread::spawn(move || {
        for at in 0..307 {
            file.io(Op::Read, at * 3 * 4096, 4096);
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let (mut ios, mut timed, mut in_histogram) = (0, 0, 0);
    let mut is_last = false;
    while !is_last {
        is_last = sender.is_finished();
        let reading = block.read();
        let name = disk.device.name();
        let Some(profile) = reading.profiles.find(&name, Layer::Request) else {
            continue;
        };
        ios += profile.ios();
        timed += profile.timed_ios();
        in_histogram += profile.op(Op::Read).device_ns.total();
    }
    sender.join().expect("the reads");
    assert_eq!(ios, 307);
    assert_eq!(timed, in_histogram);
    process_one.explains(ios - timed, ios);
}

/// Two streams of 101 reads each, one I/O of one after one of the other, and heads between them.
#[test]
fn streams_are_distinguished_from_random_io() {
    require!(Bpf, Loop);
    let disk = LoopDisk::new();
    let mut block = disk.watch();
    let mut file = disk.open();
    for at in 0..101 {
        file.io(Op::Read, at * 4096, 4096);
        file.io(Op::Read, SIZE / 2 + at * 4096, 4096);
    }
    let reading = block.read();
    let ordered = &disk.profile(&reading).ordered;
    assert_eq!(
        (ordered.continuing, ordered.runs(), ordered.run_ios),
        (200, 2, 202)
    );
    assert_eq!(ordered.seeks.none, 0);
    assert_eq!(
        ordered.seeks.forward.total() + ordered.seeks.backward.total(),
        201
    );
    assert_eq!(disk.profile(&reading).places.read_heads.total(), 2);
    // Reached 3, 4, 8, 16, 32 and 64 twice.
    let reached: Vec<(usize, u64)> = ordered.runs_reaching.iter().collect();
    assert_eq!(reached, [(0, 2), (2, 2), (3, 2), (4, 2), (5, 2), (6, 2)]);
}

/// Two disks of one driver, read in turn at the same places and by the same tags: neither takes anything of the other.
#[test]
fn disks_do_not_mix() {
    require!(Bpf, Loop);
    let disks = [LoopDisk::new(), LoopDisk::new()];
    let mut process_one = disks.each_ref().map(LoopDisk::process_one);
    let devices = disks
        .iter()
        .map(|disk| disk_of(&disk.device.name()).expect("its number"))
        .collect();
    let mut block = BlockWatch::attach(&Options {
        devices,
        ..Options::default()
    })
    .expect("programs");
    let mut files = disks.each_ref().map(LoopDisk::open);
    for at in 0..1009 {
        files
            .iter_mut()
            .for_each(|file| file.io(Op::Read, at * 8192, 8192));
    }
    std::thread::scope(|scope| {
        for file in &mut files {
            scope.spawn(move || {
                (0..2003).for_each(|at| file.io(Op::Write, at * 7 % 4096 * 4096, 4096))
            });
        }
    });
    let reading = block.read();
    for (disk, process_one) in disks.iter().zip(&mut process_one) {
        let profile = disk.profile(&reading);
        assert_eq!(
            (profile.op(Op::Read).ios, profile.op(Op::Write).ios),
            (1009, 2003)
        );
        let unseen = 3012 - profile.timed_ios();
        process_one.explains(unseen, 3012);
        // An end that hashes like a later one is forgotten, which ends a run: rare, and never more than that.
        let ordered = &profile.ordered;
        assert!(
            (1003..=1008).contains(&ordered.continuing),
            "{}",
            ordered.continuing
        );
        assert_eq!(ordered.runs(), 1009 - ordered.continuing);
        assert!(reading.misses[&disk.device.name()].unmatched_issues <= unseen);
    }
}

/// The number of a removed partition is given to the next one, of any disk.
#[test]
fn a_number_that_is_used_again() {
    require!(Bpf, Loop, Tool("partx"), Tool("mknod"));
    let disks = [LoopDisk::new(), LoopDisk::new()];
    let devices = disks
        .iter()
        .map(|disk| disk_of(&disk.device.name()).expect("its number"))
        .collect();
    let mut block = BlockWatch::attach(&Options {
        devices,
        ..Options::default()
    })
    .expect("programs");
    for (disk, ios) in disks.iter().zip([101, 211]) {
        label(disk.device.path());
        assert_eq!(disk.device.add_partitions(), 1);
        // The I/O of reading the label are not counted.
        block.read();
        let (name, _room, node) = partition(disk);
        let mut file = Direct::open(&node);
        (0..ios).for_each(|at| file.io(Op::Read, at * 8192, 8192));
        drop(file);
        let reading = block.read();
        assert_eq!(
            reading
                .profiles
                .iter()
                .filter(|profile| profile.ios() > 0)
                .count(),
            1
        );
        assert_eq!(disk.profile(&reading).ios(), ios);
        let rows = disk.profile(&reading).partitions[&name].table.iter();
        assert_eq!(rows.map(|(_, row)| row.ios).sum::<u64>(), ios);
        run(Command::new("partx")
            .arg("--delete")
            .arg(disk.device.path()));
    }
}
