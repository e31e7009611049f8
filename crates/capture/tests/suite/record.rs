//! Recordings of individually known I/O, on a loop device.

use std::fs::File;
use std::time::{Duration, Instant};

use crate::common::{Direct, ProcessOne};
use plumb_capture::{
    Attached, Batches, DiskTally, Layers, Record, RecordOptions, Recorder, disk_of,
};
use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::require;
use plumb_testkit::rng::Rng;
use plumb_testkit::zram::Zram;
use plumb_trace::{Batch, Event, Layer, Op, flags};
use tempfile::TempDir;

const SIZE: u64 = 64 << 20;

struct RecordedDisk {
    device: LoopDevice,
    _room: TempDir,
}

impl RecordedDisk {
    fn new() -> RecordedDisk {
        let room = tempfile::tempdir().expect("a directory");
        let image = room.path().join("disk");
        File::create(&image)
            .and_then(|file| file.set_len(SIZE))
            .expect("room for a sparse file");
        RecordedDisk {
            device: LoopDevice::attach_hidden(&image, &[]),
            _room: room,
        }
    }

    fn options(&self) -> RecordOptions {
        let devices = vec![disk_of(&self.device.name()).expect("its number")];
        RecordOptions {
            devices,
            ..RecordOptions::default()
        }
    }

    fn process_one(&self) -> ProcessOne {
        ProcessOne::watch(disk_of(&self.device.name()).expect("its number"))
    }

    fn record(&self) -> Recorder {
        Recorder::attach(&self.options()).expect("programs that this kernel takes")
    }

    fn open(&self) -> Direct {
        Direct::open(self.device.path())
    }
}

/// Excludes other processes that probe a new disk.
fn is_mine(record: &Record) -> bool {
    record.tgid == 0 || record.tgid == std::process::id()
}

/// Ends a recording: its events, the names in them, and the tallies of the disks, without I/O of others.
fn finish_all(recorder: &mut Recorder) -> (Batch, Vec<DiskTally>) {
    let (mut ready, mut batch) = (Vec::new(), Batch::default());
    recorder.finish(&mut ready);
    let mut tallies = recorder.tallies();
    for tally in &mut tallies {
        let disk = disk_of(&tally.device).ok();
        let of_others = |record: &&Record| Some(record.disk) == disk && !is_mine(record);
        tally.sent -= ready.iter().filter(of_others).count() as u64;
    }
    ready.retain(is_mine);
    Batches::default().fill(&ready, &mut batch);
    (batch, tallies)
}

/// The same of one disk.
fn finish(recorder: &mut Recorder) -> (Batch, DiskTally) {
    let (batch, mut tallies) = finish_all(recorder);
    (batch, tallies.pop().expect("a tally"))
}

/// Completions without an issue, of others that were at it when the programs were attached one by one.
fn unmatched_completions(tallies: &[DiskTally], device: &str) -> u64 {
    let of_device = tallies.iter().filter(|tally| tally.device == device);
    of_device.map(|tally| tally.unmatched_completions).sum()
}

/// 1,009 reads and writes anywhere, in lengths from a sector to 64 KiB, by either way to attach.
#[test]
fn every_io_is_recorded_as_it_was() {
    require!(Bpf, Loop);
    for by in [Attached::TypedTracepoints, Attached::RawTracepoints] {
        let disk = RecordedDisk::new();
        let mut process_one = disk.process_one();
        let mut recorder = Recorder::attach(&RecordOptions {
            attach: Some(by),
            ..disk.options()
        })
        .expect("programs");
        assert_eq!(recorder.attached(), by);
        let mut file = disk.open();
        let (mut rng, mut expected) = (Rng::new(11), Vec::new());
        let began_ns = Recorder::now_ns();
        for _ in 0..1009 {
            let op = if rng.below(3) == 0 {
                Op::Write
            } else {
                Op::Read
            };
            let len = [512, 4096, 8192, 65_536][rng.below(4) as usize];
            let start = rng.below((SIZE - len) / 512) * 512;
            file.io(op, start, len);
            expected.push((op, start, len));
        }
        let ended_ns = Recorder::now_ns();
        let (batch, tally) = finish(&mut recorder);
        let events: Vec<Event> = batch.events().collect();
        let found: Vec<(Op, u64, u64)> = events
            .iter()
            .map(|event| (event.op, event.start_bytes, event.len_bytes))
            .collect();
        assert_eq!(found, expected);
        assert_eq!((tally.sent, tally.lost), (1009, 0));
        let unseen = tally.unmatched_issues + recorder.open_at_end();
        process_one.explains(unseen, 1009);
        assert_eq!(
            events
                .iter()
                .filter(|event| event.device_ns.is_none())
                .count() as u64,
            unseen
        );
        assert!(batch.is_in_order());
        let me = i32::try_from(std::process::id()).expect("a number");
        let comm = std::fs::read_to_string("/proc/thread-self/comm").expect("its name");
        for event in events {
            assert_eq!((event.layer, event.pid), (Layer::Request, Some(me)));
            assert_eq!(batch.names.word_of(event.comm), Some(comm.trim_end()));
            assert!(event.cgroup.is_some_and(|cgroup| cgroup > 0));
            let queue_ns = event.queue_ns.expect("a time before the issue");
            let device_ns = event.device_ns.unwrap_or(0);
            // The call took longer than the device within it.
            assert!(
                event.time_ns - queue_ns >= began_ns as i64,
                "issued before it was sent"
            );
            assert!(
                event.time_ns + device_ns <= ended_ns as i64,
                "completed after it was over"
            );
            assert_eq!(event.flags & flags::FAILED, 0);
        }
        assert_eq!(batch.names.devices()[0].size_bytes, Some(SIZE));
    }
}

/// A recording keeps the threads of a process apart, at the request layer and at the bio layer.
#[test]
fn threads_of_one_process() {
    require!(Bpf, Loop);
    for layers in [Layers::Request, Layers::Bio] {
        let disk = RecordedDisk::new();
        let mut recorder = Recorder::attach(&RecordOptions {
            layers,
            ..disk.options()
        })
        .expect("programs");
        let mut expected = std::collections::BTreeMap::new();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|at| {
                    let mut file = disk.open();
                    scope.spawn(move || {
                        (0..11).for_each(|_| file.io(Op::Read, at << 20, 4096));
                        let status = std::fs::read_link("/proc/thread-self").expect("its number");
                        let number = status.file_name().and_then(|name| name.to_str());
                        number.and_then(|number| number.parse::<i32>().ok())
                    })
                })
                .collect();
            for (at, thread) in (0_u64..).zip(threads) {
                expected.insert(at << 20, thread.join().expect("a thread"));
            }
        });
        let (batch, _) = finish(&mut recorder);
        assert_eq!(batch.len(), 44, "{layers:?}");
        let me = i32::try_from(std::process::id()).expect("a number");
        for event in batch.events() {
            let thread = expected[&event.start_bytes];
            assert_eq!((event.pid, event.tid), (Some(me), thread), "{layers:?}");
        }
    }
}

/// The pieces of a read that the queue cuts have one sender; a flush has no place.
#[test]
fn pieces_and_flushes() {
    require!(Bpf, Loop);
    let disk = RecordedDisk::new();
    disk.device.set_queue("max_sectors_kb", "64");
    let mut recorder = disk.record();
    let mut file = disk.open();
    file.io(Op::Read, 1 << 20, 256 << 10);
    file.io(Op::Write, 3 << 20, 4096);
    file.file.sync_data().expect("a flush");
    let (batch, tally) = finish(&mut recorder);
    let me = Some(std::process::id() as i32);
    let events: Vec<_> = batch
        .events()
        .map(|event| (event.op, event.start_bytes, event.len_bytes, event.pid))
        .collect();
    let pieces = (0..4).map(|piece| (Op::Read, (1 << 20) + (piece << 16), 1 << 16, me));
    let mut expected: Vec<_> = pieces.collect();
    expected.push((Op::Write, 3 << 20, 4096, me));
    expected.push((Op::Flush, 0, 0, None));
    assert_eq!(events, expected);
    assert_eq!((tally.sent, tally.unknown_senders), (6, 0));
    let flags_of = |row: usize| batch.event(row).flags;
    assert_eq!(
        flags_of(4) & flags::SYNC,
        flags::SYNC,
        "a direct write is waited for"
    );
    assert_eq!(flags_of(0), flags_of(0) & flags::SYNC);
    assert!(batch.event(5).device_ns.is_some());
}

/// Reads ahead by the page cache are flagged.
#[test]
fn read_ahead_is_marked() {
    require!(Bpf, Loop);
    let disk = RecordedDisk::new();
    let mut recorder = disk.record();
    let mut bytes = vec![0; 1 << 20];
    let mut file = File::open(disk.device.path()).expect("the device");
    std::io::Read::read_exact(&mut file, &mut bytes).expect("a megabyte");
    let (batch, _) = finish(&mut recorder);
    assert!(
        batch.events().any(|event| event.flags & flags::AHEAD != 0),
        "{:?}",
        batch.flags
    );
    assert!(
        batch
            .events()
            .all(|event| event.op == Op::Read && event.flags & (flags::FUA | flags::META) == 0)
    );
}

/// A buffer of a page holds some 46 records, and nobody empties it: the others are lost, and each of them is counted.
#[test]
fn lost_events_are_counted() {
    require!(Bpf, Loop);
    let disk = RecordedDisk::new();
    let options = RecordOptions {
        ring_bytes: 4096,
        pids: vec![std::process::id()],
        ..disk.options()
    };
    let mut recorder = Recorder::attach(&options).expect("programs");
    let mut file = disk.open();
    (0..211).for_each(|at| file.io(Op::Read, at * 8192, 4096));
    let (mut ready, mut before) = (Vec::<Record>::new(), 0);
    recorder.read(&mut ready);
    before += recorder.lost();
    // There is room again.
    (0..7).for_each(|at| file.io(Op::Read, at * 8192, 4096));
    let (batch, tally) = finish(&mut recorder);
    assert_eq!(batch.len() as u64 + tally.lost, tally.sent);
    assert_eq!((tally.sent, tally.lost), (218, before));
    assert!(tally.lost > 100, "{tally:?}");
    assert_eq!(batch.event(batch.len() - 1).start_bytes, 6 * 8192);
}

#[test]
fn operations_and_processes_that_are_not_wanted() {
    require!(Bpf, Loop, Tool("dd"));
    let disk = RecordedDisk::new();
    let writes = RecordOptions {
        ops: vec![Op::Write],
        ..disk.options()
    };
    let mine = RecordOptions {
        pids: vec![1, std::process::id()],
        ..disk.options()
    };
    let others = RecordOptions {
        pids: vec![1],
        ..disk.options()
    };
    let mut recorders =
        [writes, mine, others].map(|options| Recorder::attach(&options).expect("programs"));
    let mut file = disk.open();
    (0..13).for_each(|at| file.io(Op::Read, at * 8192, 4096));
    (0..5).for_each(|at| file.io(Op::Write, at * 8192, 4096));
    let device = format!("if={}", disk.device.path().display());
    let dd = std::process::Command::new("dd")
        .args([
            &device,
            "of=/dev/null",
            "iflag=direct",
            "bs=4096",
            "count=3",
            "status=none",
        ])
        .status();
    assert!(dd.expect("dd").success());
    let counts = recorders.each_mut().map(|recorder| {
        let mut ready = Vec::new();
        recorder.finish(&mut ready);
        let tallies = recorder.tallies();
        assert!(tallies.iter().all(|tally| tally.unmatched_completions == 0));
        ready.len()
    });
    assert_eq!(counts, [5, 18, 0]);
}

/// Records leave in the order of issue while the recording goes on, a little after they came.
#[test]
fn records_come_while_it_records() {
    require!(Bpf, Loop);
    let disk = RecordedDisk::new();
    let mut recorder = disk.record();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut ready = Vec::new();
    let sent: u64 = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..3)
            .map(|sender: u64| {
                let (mut file, stop) = (disk.open(), &stop);
                scope.spawn(move || {
                    let mut sent = 0;
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        file.io(
                            Op::Read,
                            (sender << 20) + sent % 200 * 4096,
                            512 << (sent % 8),
                        );
                        sent += 1;
                    }
                    sent
                })
            })
            .collect();
        let until = Instant::now() + Duration::from_millis(700);
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
            recorder.read(&mut ready);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        senders
            .into_iter()
            .map(|sender| sender.join().expect("a sender"))
            .sum()
    });
    ready.retain(is_mine);
    let before_the_end = ready.len();
    recorder.finish(&mut ready);
    ready.retain(is_mine);
    assert!(before_the_end > 0 && before_the_end <= ready.len());
    assert_eq!(ready.len() as u64, sent);
    assert!(ready.is_sorted_by_key(|record| record.issued_ns));
    assert_eq!((recorder.late(), recorder.lost()), (0, 0));
}

type SentIo = (Op, u64, u64, Option<i32>);

/// The I/O of this process on a disk, row by row.
fn rows_of(batch: &Batch, device: &str) -> Vec<(Layer, SentIo)> {
    let is_of = |event: &Event| batch.names.devices()[event.device as usize].name == device;
    let row = |event: Event| {
        (
            event.layer,
            (event.op, event.start_bytes, event.len_bytes, event.pid),
        )
    };
    batch.events().filter(is_of).map(row).collect()
}

/// 307 reads and writes anywhere, and their expected records.
fn send(file: &mut Direct, seed: u64) -> Vec<SentIo> {
    let (mut rng, me) = (
        Rng::new(seed),
        i32::try_from(std::process::id()).expect("a number"),
    );
    let sent = (0..307).map(|_| {
        let op = if rng.below(3) == 0 {
            Op::Write
        } else {
            Op::Read
        };
        let len = [4096, 8192, 65_536][rng.below(3) as usize];
        let start = rng.below((SIZE - len) / 4096) * 4096;
        file.io(op, start, len);
        (op, start, len, Some(me))
    });
    sent.collect()
}

/// A disk without requests beside one that makes them, named and among all there are: rows of each at its layer alone.
#[test]
fn each_disk_is_recorded_at_its_layer() {
    require!(Bpf, Loop, Tool("mknod"));
    let Some(zram) = Zram::new(SIZE) else {
        let why = "this kernel has no zram";
        plumb_testkit::skip!(why);
    };
    let disk = RecordedDisk::new();
    let mut process_one = disk.process_one();
    let named: Vec<u32> = [zram.name(), disk.device.name()]
        .map(|name| disk_of(&name).expect("its number"))
        .into();
    for attach in [Attached::TypedTracepoints, Attached::RawTracepoints].map(Some) {
        for devices in [named.clone(), Vec::new()] {
            let options = RecordOptions {
                devices,
                attach,
                ..RecordOptions::default()
            };
            let mut recorder = Recorder::attach(&options).expect("programs");
            assert_eq!(recorder.layers(), [Layer::Bio, Layer::Request]);
            let before = recorder.tallies();
            process_one.restart();
            let on_zram = send(&mut Direct::open(zram.path()), 3);
            let on_loop = send(&mut disk.open(), 5);
            let (batch, tallies) = finish_all(&mut recorder);
            let at = |layer: Layer, rows: Vec<SentIo>| -> Vec<_> {
                rows.into_iter().map(|row| (layer, row)).collect()
            };
            assert_eq!(rows_of(&batch, &zram.name()), at(Layer::Bio, on_zram));
            assert_eq!(
                rows_of(&batch, &disk.device.name()),
                at(Layer::Request, on_loop)
            );
            // Without named disks, those of other tests are in it too.
            let mine = |event: &Event| {
                let name = &batch.names.devices()[event.device as usize].name;
                *name == zram.name() || *name == disk.device.name()
            };
            let mut unseen = 0;
            for event in batch.events().filter(mine) {
                assert!(
                    event.device_ns.is_some() || event.layer == Layer::Request,
                    "{event:?}"
                );
                unseen += u64::from(event.device_ns.is_none());
                assert_eq!(
                    event.queue_ns.is_some(),
                    event.layer == Layer::Request,
                    "{event:?}"
                );
            }
            process_one.explains(unseen, 614);
            for (name, layer) in [
                (zram.name(), Layer::Bio),
                (disk.device.name(), Layer::Request),
            ] {
                let tally = tallies
                    .iter()
                    .find(|tally| tally.device == name)
                    .expect("a tally");
                assert_eq!((tally.layer, tally.sent, tally.lost), (layer, 307, 0));
                let unseen_at_most = if layer == Layer::Request { unseen } else { 0 };
                assert!(tally.unmatched_issues <= unseen_at_most, "{tally:?}");
                assert_eq!(
                    tally.unmatched_completions,
                    unmatched_completions(&before, &name)
                );
            }
        }
    }
    let alone = RecordOptions {
        devices: named[..1].to_vec(),
        ..RecordOptions::default()
    };
    assert_eq!(
        Recorder::attach(&alone).expect("programs").layers(),
        [Layer::Bio]
    );
    assert_eq!(disk.record().layers(), [Layer::Request]);
}

/// By bios even on a disk with requests: a read that the queue cuts in four is one row, and so is a flush.
#[test]
fn bios_of_a_disk_that_makes_requests() {
    require!(Bpf, Loop);
    for attach in [Attached::TypedTracepoints, Attached::RawTracepoints].map(Some) {
        let disk = RecordedDisk::new();
        let mut process_one = disk.process_one();
        disk.device.set_queue("max_sectors_kb", "64");
        let options = RecordOptions {
            layers: Layers::Bio,
            attach,
            ..disk.options()
        };
        let mut recorder = Recorder::attach(&options).expect("programs");
        let before = unmatched_completions(&recorder.tallies(), &disk.device.name());
        let mut file = disk.open();
        (0..101).for_each(|at| file.io(Op::Read, at * (512 << 10), 256 << 10));
        file.io(Op::Write, 3 << 20, 4096);
        file.file.sync_data().expect("a flush");
        let (batch, tally) = finish(&mut recorder);
        let me = Some(std::process::id() as i32);
        let reads = (0..101).map(|at| (Layer::Bio, (Op::Read, at * (512 << 10), 256 << 10, me)));
        let mut expected: Vec<_> = reads.collect();
        expected.push((Layer::Bio, (Op::Write, 3 << 20, 4096, me)));
        expected.push((Layer::Bio, (Op::Flush, 0, 0, me)));
        assert_eq!(rows_of(&batch, &disk.device.name()), expected);
        // A bio ends with one of its four requests.
        let unseen = batch
            .events()
            .filter(|event| event.device_ns.is_none())
            .count() as u64;
        assert!(unseen <= process_one.completions(), "{unseen} unseen");
        assert_eq!(tally.unmatched_issues + recorder.open_at_end(), unseen);
        assert_eq!((tally.layer, tally.sent), (Layer::Bio, 103));
        assert_eq!((tally.unmatched_completions, tally.lost), (before, 0));
    }
}

/// Bios of operations and processes that are not wanted leave no row and no count.
#[test]
fn bios_that_are_not_wanted() {
    require!(Bpf, Loop);
    let disk = RecordedDisk::new();
    let bios = RecordOptions {
        layers: Layers::Bio,
        ..disk.options()
    };
    let writes = RecordOptions {
        ops: vec![Op::Write],
        ..bios.clone()
    };
    let mine = RecordOptions {
        pids: vec![1, std::process::id()],
        ..bios.clone()
    };
    let others = RecordOptions {
        pids: vec![1],
        ..bios
    };
    let mut recorders =
        [writes, mine, others].map(|options| Recorder::attach(&options).expect("programs"));
    let mut file = disk.open();
    (0..13).for_each(|at| file.io(Op::Read, at * 8192, 4096));
    (0..5).for_each(|at| file.io(Op::Write, at * 8192, 4096));
    let counts = recorders.each_mut().map(|recorder| {
        let mut ready = Vec::new();
        recorder.finish(&mut ready);
        assert!(
            recorder
                .tallies()
                .iter()
                .all(|tally| tally.unmatched_completions == 0)
        );
        ready.len()
    });
    assert_eq!(counts, [5, 18, 0]);
}
