//! The kernel's trace events for individually known requests, on a loop device.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{
    Direct, FIRST_SECTOR, LoopDisk, MODULUS, RowCounts, SIZE, label, partition, table,
};
use plumb_capture::{Attached, BlockWatch, CaptureError, Filter, Layers, Options};
use plumb_testkit::require;
use plumb_testkit::rng::Rng;
use plumb_testkit::wait::RunLimited;
use plumb_trace::{Layer, Op};

fn by_events() -> Options {
    Options {
        attach: Some(Attached::Tracefs),
        ..Options::default()
    }
}

/// 1,009 reads and writes anywhere on the disk, in lengths from a sector to 64 KiB.
#[test]
fn every_io_is_counted_at_its_position() {
    require!(Tracefs, Loop);
    let disk = LoopDisk::new();
    let mut block = disk.watch_with(by_events());
    assert_eq!(block.attached(), Attached::Tracefs);
    let mut file = disk.open();
    let (mut expected, mut bytes) = (RowCounts::new(), [0; 2]);
    let mut rng = Rng::new(11);
    for at in 0..1009 {
        let op = if rng.below(3) == 0 {
            Op::Write
        } else {
            Op::Read
        };
        let len = [512, 4096, 8192, 65_536][rng.below(4) as usize];
        let start = rng.below((SIZE - len) / 512) * 512;
        file.io(op, start, len);
        *expected
            .entry((op as u8, start % MODULUS, len))
            .or_default() += 1;
        bytes[op as usize] += len;
        if at % 97 == 0 {
            block.keep_up();
        }
    }
    let reading = block.read();
    let profile = disk.profile(&reading);
    assert_eq!(table(profile), expected);
    assert_eq!(
        [profile.op(Op::Read).bytes, profile.op(Op::Write).bytes],
        bytes
    );
    assert_eq!((profile.ios(), profile.timed_ios()), (1009, 1009));
    assert_eq!(profile.size_bytes, Some(SIZE));
    assert_eq!(profile.ordered.in_flight.depth_max, 1);
    let misses = reading.misses[&disk.device.name()];
    assert_eq!(
        (
            misses.requeues,
            misses.unmatched_issues,
            misses.unmatched_completions
        ),
        (0, 0, 0)
    );
    assert_eq!((reading.lost, reading.of_unknown_sender), (0, 0));
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

/// Both ways of watching at once: neither knows of the other, and both come to the same.
#[test]
fn events_and_programs_come_to_the_same() {
    require!(Tracefs, Bpf, Loop);
    let disk = LoopDisk::new();
    disk.set("max_sectors_kb", "64");
    let mut blocks = [disk.watch_with(by_events()), disk.watch()];
    let mut file = disk.open();
    let mut rng = Rng::new(13);
    for at in 0..211 {
        let (op, len) = (
            if at % 5 == 0 { Op::Write } else { Op::Read },
            [4096, 256 << 10][at % 2],
        );
        file.io(op, rng.below((SIZE - len) / 4096) * 4096, len);
    }
    file.file.sync_data().expect("a flush");
    let readings = blocks.each_mut().map(BlockWatch::read);
    let [events, programs] = readings.each_ref().map(|reading| disk.profile(reading));
    assert_eq!(events.ios(), 106 + 105 * 4);
    assert_eq!(table(events), table(programs));
    assert_eq!(events.timed_ios(), programs.timed_ios());
    assert_eq!(events.ordered.continuing, programs.ordered.continuing);
    let [by_events, by_programs] = readings.each_ref().map(|reading| disk.misses(reading));
    assert_eq!(by_events, by_programs);
    let sums = readings.each_ref().map(|reading| {
        let mine = reading
            .processes
            .iter()
            .filter(|process| process.pid == std::process::id());
        mine.map(|process| (process.ios, process.bytes, process.by_alignment))
            .collect::<Vec<_>>()
    });
    assert_eq!(sums[0], sums[1]);
}

/// A read that the queue cuts in four is four requests; a flush has no place and is no I/O.
#[test]
fn splits_and_flushes() {
    require!(Tracefs, Loop);
    let disk = LoopDisk::new();
    disk.set("max_sectors_kb", "64");
    let mut block = disk.watch_with(by_events());
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
    let mine = reading
        .processes
        .iter()
        .filter(|process| process.pid == std::process::id());
    assert_eq!(mine.map(|process| process.ios).sum::<u64>(), 5);
    assert_eq!(reading.of_unknown_sender, 0);
}

/// Starts are those of the disk, and the partition has them too; its users are reported with it.
#[test]
fn a_partition_is_distinguished_from_its_disk() {
    require!(Tracefs, Loop, Tool("partx"), Tool("mknod"), Tool("sgdisk"));
    let disk = LoopDisk::new();
    label(disk.device.path());
    assert_eq!(disk.device.add_partitions(), 1);
    let (name, _room, node) = partition(&disk);
    let mut block = disk.watch_with(by_events());
    let mut within = Direct::open(&node);
    (0..101).for_each(|at| within.io(Op::Read, at * 3 * 8192, 8192));
    let reading = block.read();
    let profile = disk.profile(&reading);
    assert_eq!(profile.ios(), 101);
    assert!(
        table(profile)
            .keys()
            .all(|(_, residue, _)| residue % 8192 == FIRST_SECTOR * 512 % 8192)
    );
    let part = &profile.partitions[&name];
    assert_eq!(part.first_byte, FIRST_SECTOR * 512);
    assert_eq!(part.table.iter().map(|(_, row)| row.ios).sum::<u64>(), 101);
    let mine: Vec<_> = reading
        .processes
        .iter()
        .filter(|process| process.pid == std::process::id())
        .collect();
    assert_eq!(
        mine.iter()
            .map(|process| (process.device.as_str(), process.ios))
            .collect::<Vec<_>>(),
        [(name.as_str(), 101)]
    );
    assert_eq!(mine[0].disk, disk.device.name());
}

/// Bios as they were given, before the queue cuts them, each ended by the request with its end.
#[test]
fn bios_are_whole() {
    require!(Tracefs, Loop);
    let disk = LoopDisk::new();
    disk.set("max_sectors_kb", "64");
    let mut block = disk.watch_with(Options {
        layers: Layers::Bio,
        ..by_events()
    });
    assert_eq!(block.layers(), [Layer::Bio]);
    let mut file = disk.open();
    (0..53).for_each(|at| file.io(Op::Read, at << 18, 256 << 10));
    let reading = block.read();
    let profile = disk.profile_at(Layer::Bio, &reading);
    let expected: RowCounts = (0..4)
        .map(|at| ((0, at << 18, 256 << 10), if at == 0 { 14 } else { 13 }))
        .collect();
    assert_eq!(table(profile), expected);
    assert_eq!(profile.timed_ios(), 53);
    assert_eq!(
        (
            disk.misses(&reading).splits,
            disk.misses(&reading).unmatched_issues
        ),
        (159, 0)
    );
}

#[test]
fn filters() {
    require!(Tracefs, Loop, Tool("dd"));
    let disk = LoopDisk::new();
    let count = |filter: Filter| {
        let mut block = disk.watch_with(Options {
            filter,
            ..by_events()
        });
        let mut file = disk.open();
        (0..101).for_each(|at| file.io(Op::Read, at * 8192, 4096));
        (0..53).for_each(|at| file.io(Op::Write, at * 8192, 4096));
        file.file.sync_data().expect("a flush");
        let from = format!("if={}", disk.device.path().display());
        let dd = [
            "of=/dev/null",
            "iflag=direct",
            "bs=4096",
            "count=7",
            "status=none",
        ];
        assert!(
            Command::new("dd")
                .arg(from)
                .args(dd)
                .limited_status()
                .success()
        );
        let reading = block.read();
        let profile = disk.profile(&reading);
        // The filter leaves nothing of the others behind.
        let misses = disk.misses(&reading);
        assert_eq!(
            (misses.unmatched_issues, misses.unmatched_completions),
            (0, 0)
        );
        (profile.op(Op::Read).ios, profile.op(Op::Write).ios)
    };
    assert_eq!(
        count(Filter {
            ops: vec![Op::Write],
            ..Filter::default()
        }),
        (0, 53)
    );
    assert_eq!(
        count(Filter {
            pid: Some(std::process::id()),
            ..Filter::default()
        }),
        (101, 53)
    );
    assert_eq!(
        count(Filter {
            comm: Some("dd".to_owned()),
            ..Filter::default()
        }),
        (7, 0)
    );
    assert_eq!(count(Filter::default()), (108, 53));
    let filter = Filter {
        cgroup: Some(PathBuf::from("/sys/fs/cgroup")),
        ..Filter::default()
    };
    let refused = BlockWatch::attach(&Options {
        filter,
        ..by_events()
    })
    .err();
    assert!(
        matches!(refused, Some(CaptureError::NoCgroupInEvents)),
        "{refused:?}"
    );
}

/// More events than the buffer holds: missing ones are reported, and the rest is counted.
#[test]
fn losses_of_the_buffer_are_reported() {
    require!(Tracefs, Loop);
    let disk = LoopDisk::new();
    let mut block = disk.watch_with(by_events());
    let mut file = disk.open();
    // 8 MiB for each processor, 64 for all; an I/O is three events, more than 180 bytes together.
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let ios = (cpus * 8).min(64).max(cpus / 2) * 7000;
    (0..ios).for_each(|at| file.io(Op::Read, at % 16_000 * 4096, 512));
    let reading = block.read();
    let profile = disk.profile(&reading);
    assert!(reading.lost > 0, "{ios} I/O, {} counted", profile.ios());
    assert!(profile.ios() < ios && profile.ios() > 0);
    assert_eq!(profile.losses.lost, reading.lost);
    // Three events of each missing one, except those with a remaining part.
    let missing = ios - profile.ios();
    assert!(
        reading.lost > missing && reading.lost < missing * 4,
        "{} lost, {missing} missing",
        reading.lost
    );
}
