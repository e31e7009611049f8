//! Plans carried out, compared with the kernel's counts, fio's measurements, and devices that stop and die.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_load::{
    Arrivals, Ended, EngineChoice, IoFailure, Job, JobOutcome, LoadError, LoadPlan, Means, Pace,
    RunOutcome, Starts, SysError, Target, Workload, WorkloadError, WriteRefused, permit_writes,
    run,
};
use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::slow_disk::SlowDisk;
use plumb_testkit::{require, temp_file};
use plumb_trace::{Batch, Layer, Op};

const BOTH: [EngineChoice; 2] = [EngineChoice::Ring, EngineChoice::Blocking];

fn carried_out(plan: &LoadPlan<'_>) -> RunOutcome {
    run(plan, &AtomicBool::new(false), &mut |_| (), None).expect("it fits")
}

/// The outcome of a plan with one job.
fn only(plan: &LoadPlan<'_>) -> JobOutcome {
    carried_out(plan).jobs.remove(0)
}

fn counted<'a>(job: Job<'a>, ios: u64) -> LoadPlan<'a> {
    let job = Job {
        ios_max: Some(ios),
        ..job
    };
    LoadPlan {
        duration: None,
        ..LoadPlan::new(vec![job], Duration::from_secs(1))
    }
}

/// The kernel's counts of a device: reads and merges, sectors read, writes and merges, sectors written.
fn kernel_counts(name: &str) -> [u64; 4] {
    let stat = std::fs::read_to_string(Path::new("/sys/block").join(name).join("stat"))
        .expect("its counts");
    let n: Vec<u64> = stat
        .split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect();
    [n[0] + n[1], n[2], n[4] + n[5], n[6]]
}

fn kernel_counted(device: &LoopDevice, load: impl FnOnce()) -> [u64; 4] {
    let before = kernel_counts(&device.name());
    load();
    let after = kernel_counts(&device.name());
    std::array::from_fn(|at| after[at] - before[at])
}

#[test]
fn the_kernel_counts_the_same() {
    require!(Loop);
    let file = temp_file("counts", &[0; 8 << 20]);
    let device = LoopDevice::attach(file.path(), &["--direct-io=on"]);
    for engine in BOTH {
        for (threads, depth, batch) in [(1, 1, 1), (1, 32, 16), (3, 4, 1)] {
            let target = Target::open(device.path()).expect("it is attached");
            let workload = Workload::random_reads(4096);
            let job = Job {
                threads,
                depth,
                batch,
                ..Job::new(&target, workload)
            };
            let counts = kernel_counted(&device, || {
                let job = only(&LoadPlan {
                    engine,
                    ..counted(job, 1009)
                });
                assert_eq!(
                    (job.tally.ios(), job.tally.bytes(), job.tally.failed()),
                    (1009, 1009 * 4096, 0)
                );
                assert_eq!(job.ended, Ended::Ios);
            });
            assert_eq!(
                counts,
                [1009, 1009 * 8, 0, 0],
                "{engine:?}, {threads} × {depth}"
            );
        }
    }
}

#[test]
fn the_kernel_counts_the_same_of_a_mix() {
    require!(Loop);
    let file = temp_file("mix", &[0; 8 << 20]);
    let device = LoopDevice::attach(file.path(), &["--direct-io=on"]);
    let name = device.name();
    let counts = kernel_counted(&device, || {
        let (target, may_write) = permit_writes(device.path(), &name).expect("nobody has it");
        let workload = Workload {
            read_percent: 70,
            ..Workload::random_reads(8192)
        };
        let job = Job {
            may_write: Some(&may_write),
            depth: 8,
            ..Job::new(&target, workload)
        };
        let job = only(&counted(job, 2003));
        assert_eq!(job.tally.ios(), 2003);
        // 70 % of 2,003 with a standard deviation of 20.5.
        assert!(
            (1300..1505).contains(&job.tally.reads.ios()),
            "{}",
            job.tally.reads.ios()
        );
    });
    assert_eq!(
        (counts[0] + counts[2], counts[1] + counts[3]),
        (2003, 2003 * 16)
    );
    assert!((1300..1505).contains(&counts[0]));
}

#[test]
fn a_rate_is_kept_within_a_hundredth() {
    plumb_testkit::require!(Patience);
    let file = temp_file("rate", &[0; 1 << 20]);
    let target = Target::open(file.path()).expect("a file");
    let per_second = 997.0;
    for engine in BOTH {
        for pace in [
            Pace::Closed { per_second },
            Pace::Open {
                per_second,
                arrivals: Arrivals::Even,
            },
        ] {
            let job = Job {
                pace,
                threads: 2,
                depth: 4,
                ..Job::new(&target, Workload::random_reads(512))
            };
            let plan = LoadPlan {
                engine,
                ..LoadPlan::new(vec![job], Duration::from_secs(2))
            };
            let rate = only(&plan).ios_per_second();
            assert!(
                (rate / per_second - 1.0).abs() < 0.01,
                "{engine:?} {pace:?}: {rate}"
            );
        }
    }
}

/// The number that arrive at random in a time is Poisson: its standard deviation is its root.
#[test]
fn random_arrivals_keep_their_rate() {
    let file = temp_file("poisson", &[0; 1 << 20]);
    let target = Target::open(file.path()).expect("a file");
    let pace = Pace::Open {
        per_second: 5000.0,
        arrivals: Arrivals::Exponential,
    };
    let job = Job {
        pace,
        depth: 16,
        ..Job::new(&target, Workload::random_reads(512))
    };
    let ios = only(&LoadPlan::new(vec![job], Duration::from_secs(2)))
        .tally
        .ios();
    assert!(ios.abs_diff(10_000) < 500, "{ios}");
}

#[test]
fn the_warm_up_counts_nowhere() {
    let file = temp_file("warmup", &[0; 1 << 20]);
    let target = Target::open(file.path()).expect("a file");
    let pace = Pace::Closed { per_second: 1000.0 };
    let job = Job {
        pace,
        ..Job::new(&target, Workload::random_reads(512))
    };
    let (warmup, interval) = (Duration::from_secs(1), Duration::from_millis(250));
    let plan = LoadPlan {
        warmup,
        interval,
        ..LoadPlan::new(vec![job], Duration::from_secs(1))
    };
    let mut told = Vec::new();
    let outcome = run(
        &plan,
        &AtomicBool::new(false),
        &mut |interval| {
            told.push((interval.is_warmup, interval.jobs[0].ios()));
        },
        None,
    );
    let ios = outcome.expect("it fits").jobs[0].tally.ios();
    assert!(ios.abs_diff(1000) <= 10, "{ios}");
    assert_eq!(
        told.iter().filter(|(is_warmup, _)| *is_warmup).count(),
        4,
        "{told:?}"
    );
    let measured: u64 = told
        .iter()
        .filter(|(is_warmup, _)| !is_warmup)
        .map(|(_, ios)| ios)
        .sum();
    assert_eq!(measured, ios);
}

/// 1 s in intervals of 300 ms leaves 100 ms, which is no interval; 900 ms leave the duration of the end.
#[test]
fn time_after_the_last_interval_is_partial() {
    let file = temp_file("partial", &[0; 1 << 20]);
    let target = Target::open(file.path()).expect("a file");
    for millis in [1000, 900] {
        let job = Job {
            pace: Pace::Closed { per_second: 1000.0 },
            ..Job::new(&target, Workload::random_reads(512))
        };
        let interval = Duration::from_millis(300);
        let plan = LoadPlan {
            interval,
            ..LoadPlan::new(vec![job], Duration::from_millis(millis))
        };
        let mut told = Vec::new();
        let tell = &mut |report: &plumb_load::IntervalReport<'_>| {
            told.push((report.is_partial, report.length, report.jobs[0].ios()));
        };
        let outcome = run(&plan, &AtomicBool::new(false), tell, None).expect("it fits");
        let full: Vec<_> = told.iter().filter(|(is_partial, ..)| !is_partial).collect();
        assert_eq!(full.len(), 3, "{told:?}");
        assert!(
            full.iter()
                .all(|(_, length, _)| *length >= interval * 9 / 10)
        );
        let rests = &told[full.len()..];
        assert!(rests.iter().all(|(is_partial, ..)| *is_partial), "{told:?}");
        assert!(
            rests.len() == 1 || millis == 900 && rests.is_empty(),
            "{told:?}"
        );
        let ios: u64 = told.iter().map(|(.., ios)| ios).sum();
        assert_eq!(ios, outcome.jobs[0].tally.ios());
    }
}

/// Stops the disk for a second in the middle of three at 100 I/O a second, with room for 8 in flight.
fn stalled(pace: Pace) -> JobOutcome {
    let disk = SlowDisk::new(64 << 20, "1ms");
    let target = Target::open(disk.path()).expect("a file");
    let job = Job {
        pace,
        depth: 8,
        ..Job::new(&target, Workload::random_reads(4096))
    };
    let plan = LoadPlan::new(vec![job], Duration::from_secs(3));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| only(&plan));
        std::thread::sleep(Duration::from_secs(1));
        disk.stop();
        std::thread::sleep(Duration::from_secs(1));
        disk.go_on();
        running.join().expect("it ends")
    })
}

/// Of 300 I/O the 100 of a dead second wait from 0 to 1 s: a tenth of all waits for more than 0.7 s. A measurement of
/// latencies from the issue sees only the eight I/O in flight.
#[test]
fn a_stall_shows_for_all_that_were_due() {
    require!(Patience, Tool("nbdkit"), Tool("nbdfuse"), Tool("umount"));
    let per_second = 100.0;
    for pace in [
        Pace::Open {
            per_second,
            arrivals: Arrivals::Even,
        },
        Pace::Closed { per_second },
    ] {
        let job = stalled(pace);
        let reads = &job.tally.reads;
        let ms = |latencies: &plumb_load::Latencies, share| {
            latencies.quantile(share).map_or(0, |ns| ns.0 / 1_000_000)
        };
        assert!(
            job.tally.ios().abs_diff(300) <= 3,
            "{pace:?}: {}",
            job.tally.ios()
        );
        assert!(
            (600..1100).contains(&ms(&reads.response, 0.9)),
            "{pace:?}: {}",
            ms(&reads.response, 0.9)
        );
        assert!(
            (900..1300).contains(&ms(&reads.response, 1.0)),
            "{pace:?}: {}",
            ms(&reads.response, 1.0)
        );
        assert!(
            ms(&reads.latency, 0.9) < 100,
            "{pace:?}: {}",
            ms(&reads.latency, 0.9)
        );
        assert!(
            (900..1300).contains(&ms(&reads.latency, 1.0)),
            "{pace:?}: {}",
            ms(&reads.latency, 1.0)
        );
    }
}

#[test]
fn a_dying_disk_ends_the_run_with_its_results() {
    require!(Tool("nbdkit"), Tool("nbdfuse"), Tool("umount"));
    for engine in BOTH {
        let disk = SlowDisk::new(64 << 20, "1ms");
        let target = Target::open(disk.path()).expect("a file");
        let job = Job {
            depth: 4,
            ..Job::new(&target, Workload::random_reads(4096))
        };
        let plan = LoadPlan {
            engine,
            ..LoadPlan::new(vec![job], Duration::from_secs(30))
        };
        let began = Instant::now();
        let job = std::thread::scope(|scope| {
            let running = scope.spawn(|| only(&plan));
            std::thread::sleep(Duration::from_millis(700));
            disk.die();
            running.join().expect("it ends")
        });
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "it went on with a dead disk"
        );
        assert!(
            job.tally.ios() > 100 && job.tally.failed() > 0,
            "{engine:?}: {job:?}"
        );
        assert!(
            matches!(job.ended, Ended::OnlyFailures(_) | Ended::TargetGone(_)),
            "{:?}",
            job.ended
        );
    }
}

/// Half of a file is cut off: the other half continues, and failures are counted to the last I/O.
#[test]
fn failures_are_counted_and_end_nothing() {
    let file = temp_file("half", &[0; 1 << 20]);
    let target = Target::open(file.path()).expect("a file");
    file.cut(1 << 19);
    for engine in BOTH {
        let workload = Workload {
            starts: Starts::Sequential {
                from_anywhere: false,
            },
            ..Workload::random_reads(4096)
        };
        let job = Job {
            depth: 4,
            ..Job::new(&target, workload)
        };
        let job = only(&LoadPlan {
            engine,
            ..counted(job, 2 * 256)
        });
        assert_eq!(
            (job.tally.ios(), job.tally.failed(), job.ended),
            (256, 256, Ended::Ios)
        );
        let kinds: Vec<_> = job.tally.failures.keys().copied().collect();
        assert_eq!(kinds, [(Op::Read, IoFailure::Short)]);
    }
}

#[test]
fn a_device_without_its_file_fails_by_kind() {
    require!(Loop);
    let file = temp_file("lost", &[0; 1 << 20]);
    let device = LoopDevice::attach(file.path(), &["--direct-io=on"]);
    let target = Target::open(device.path()).expect("it is attached");
    file.cut(0);
    let job = Job {
        depth: 4,
        ..Job::new(&target, Workload::random_reads(4096))
    };
    let job = only(&LoadPlan::new(vec![job], Duration::from_secs(20)));
    assert!(
        matches!(job.ended, Ended::OnlyFailures(_)),
        "{:?}",
        job.ended
    );
    let kinds: Vec<IoFailure> = job.tally.failures.keys().map(|(_, kind)| *kind).collect();
    let expected = vec![IoFailure::Errno(plumb_sys::Errno::IO)];
    assert_eq!((job.tally.ios(), kinds), (0, expected));
}

#[test]
fn a_run_can_be_stopped() {
    let file = temp_file("stopped", &[0; 1 << 20]);
    let target = Target::open(file.path()).expect("a file");
    let job = Job {
        pace: Pace::Closed { per_second: 0.1 },
        ..Job::new(&target, Workload::random_reads(512))
    };
    let plan = LoadPlan {
        duration: None,
        ..LoadPlan::new(vec![job], Duration::from_secs(1))
    };
    let stop = AtomicBool::new(false);
    let began = Instant::now();
    let outcome = run(
        &plan,
        &stop,
        &mut |_| stop.store(true, Ordering::Relaxed),
        None,
    )
    .expect("it fits");
    assert_eq!(outcome.jobs[0].ended, Ended::Stopped);
    assert!(began.elapsed() < Duration::from_secs(4));
}

/// A trace has every I/O of the measurement once, in the order of issue, at its place and with its latency; on a disk whose
/// I/O come back while others are under way.
#[test]
fn a_trace_has_every_io() {
    require!(Tool("nbdkit"), Tool("nbdfuse"), Tool("umount"));
    let disk = SlowDisk::new(4 << 20, "1ms");
    let target = Target::open(disk.path()).expect("a file");
    let workload = Workload {
        starts: Starts::Sequential {
            from_anywhere: false,
        },
        shift_bytes: 512,
        ..Workload::random_reads(4096)
    };
    let job = Job {
        threads: 3,
        depth: 8,
        ..Job::new(&target, workload)
    };
    let plan = LoadPlan {
        warmup: Duration::from_millis(50),
        ..counted(job, 10_007)
    };
    let mut events = Vec::new();
    let mut sink = |batch: &Batch| {
        assert_eq!(batch.names.devices()[0].name, target.name());
        events.extend(batch.events());
        Ok(())
    };
    let outcome =
        run(&plan, &AtomicBool::new(false), &mut |_| (), Some(&mut sink)).expect("it fits");
    assert_eq!((events.len(), outcome.not_traced), (10_007, 0));
    assert!(events.is_sorted_by_key(|event| event.time_ns));
    let wrong = events.iter().find(|event| {
        (
            event.op,
            event.layer,
            event.len_bytes,
            event.start_bytes % 4096,
        ) != (Op::Read, Layer::Vfs, 4096, 512)
    });
    assert_eq!(wrong, None);
    let sum_ns: i128 = events
        .iter()
        .map(|event| i128::from(event.device_ns.expect("it was timed")))
        .sum();
    assert_eq!(sum_ns as u128, outcome.jobs[0].tally.reads.latency.sum_ns());
}

#[test]
fn writes_need_their_permission() {
    let (file, other) = (temp_file("one", &[0; 8192]), temp_file("other", &[0; 8192]));
    let (target, _may_write) =
        permit_writes(file.path(), &file.name()).expect("nobody else has it");
    let (_other, of_other) =
        permit_writes(other.path(), &other.name()).expect("nobody else has it");
    for may_write in [None, Some(&of_other)] {
        let workload = Workload {
            read_percent: 0,
            ..Workload::random_reads(4096)
        };
        let plan = counted(
            Job {
                may_write,
                ..Job::new(&target, workload)
            },
            1,
        );
        let refused = run(&plan, &AtomicBool::new(false), &mut |_| (), None);
        assert!(matches!(
            refused,
            Err(LoadError::Workload(WorkloadError::NotPermitted { .. }))
        ));
    }
    assert_eq!(file.content(), [0; 8192]);
}

#[test]
fn a_mounted_or_held_device_is_not_written() {
    require!(Loop, Tool("mkfs.ext4"));
    let file = temp_file("mounted", &[0; 8 << 20]);
    let device = LoopDevice::attach(file.path(), &[]);
    let refused = permit_writes(file.path(), &file.name()).expect_err("a loop device stands on it");
    assert!(
        matches!(&refused, WriteRefused::BehindLoop { device: by, .. } if *by == device.name()),
        "{refused}"
    );
    plumb_testkit::loop_device::run(Command::new("mkfs.ext4").arg("-q").arg(device.path()));
    let at = plumb_testkit::temp_dir("mounted-at");
    let mounted = plumb_testkit::loop_device::Mounted::mount(device.path(), at.path());
    let refused = permit_writes(device.path(), &device.name()).expect_err("it is mounted");
    assert!(
        matches!(refused, WriteRefused::Open(SysError::InUse { .. })),
        "{refused}"
    );
    drop(mounted);
    permit_writes(device.path(), &device.name()).expect("it is free again");
}

#[test]
fn a_read_only_device_is_not_written() {
    require!(Loop);
    let file = temp_file("read-only", &[0; 1 << 20]);
    let device = LoopDevice::attach(file.path(), &["--read-only"]);
    let refused = permit_writes(device.path(), &device.name()).expect_err("it is read-only");
    assert!(refused.to_string().contains("is read-only"), "{refused}");
    Target::open(device.path()).expect("it can be read");
}

#[test]
fn logical_blocks_of_4096_are_respected() {
    require!(Loop);
    let file = temp_file("blocks", &[0; 1 << 20]);
    let device = LoopDevice::attach(file.path(), &["--sector-size", "4096"]);
    let target = Target::open(device.path()).expect("it is attached");
    let workload = Workload {
        shift_bytes: 512,
        ..Workload::random_reads(4096)
    };
    let refused = run(
        &counted(Job::new(&target, workload), 1),
        &AtomicBool::new(false),
        &mut |_| (),
        None,
    );
    let refused = refused.expect_err("the kernel would refuse it");
    assert!(
        matches!(
            refused,
            LoadError::Workload(WorkloadError::OffLogicalBlock {
                what: "a shift",
                found_bytes: 512,
                logical_block_bytes: 4096,
                ..
            })
        ),
        "{refused}"
    );
}

#[test]
fn the_ring_is_the_usual_way() {
    let file = temp_file("means", &[0; 8192]);
    let target = Target::open(file.path()).expect("a file");
    let means = |engine| {
        only(&LoadPlan {
            engine,
            ..counted(Job::new(&target, Workload::random_reads(4096)), 7)
        })
        .means
    };
    assert_eq!(
        means(EngineChoice::Ring),
        Means::Ring {
            has_fixed_buffers: true
        }
    );
    assert_eq!(
        means(EngineChoice::Blocking),
        Means::Blocking { refused: None }
    );
}
