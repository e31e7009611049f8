//! I/O at chosen starts: reads and write-backs, by a ring and by blocking I/O alike.

use std::time::{Duration, SystemTime};

use plumb_load::session::FAILED_NS;
use plumb_load::{
    EngineChoice, IoFailure, LoadError, Session, Target, WorkloadError, permit_writes,
};
use plumb_testkit::{Rng, TempFile, temp_file};

const BOTH: [EngineChoice; 2] = [EngineChoice::Ring, EngineChoice::Blocking];

fn file_of(bytes: usize) -> TempFile {
    let mut rng = Rng::announced("content", 5);
    temp_file(
        "session",
        &(0..bytes)
            .map(|_| rng.next_u64() as u8)
            .collect::<Vec<u8>>(),
    )
}

#[test]
fn every_start_has_its_latency() {
    let file = file_of(1 << 20);
    let target = Target::open(file.path()).expect("a file");
    for choice in BOTH {
        let mut session = Session::open(&target, 8192, 8, choice).expect("it opens");
        let starts: Vec<u64> = (0..101).map(|n| n * 8192).collect();
        let mut latencies_ns = Vec::new();
        for depth in [1, 8] {
            let slice = session
                .read_each(&starts, 8192, depth, &mut latencies_ns)
                .expect("they fit");
            assert_eq!((slice.failed, latencies_ns.len()), (0, 101));
            let sum_ns: u128 = latencies_ns.iter().map(|&ns| u128::from(ns)).sum();
            assert!(
                latencies_ns
                    .iter()
                    .all(|&ns| ns > 0 && u128::from(ns) <= slice.elapsed.as_nanos())
            );
            assert!(
                sum_ns <= slice.elapsed.as_nanos() * u128::from(depth),
                "more in flight than asked for"
            );
        }
    }
}

/// Bytes beyond the end of a truncated file are not read: fewer bytes come back, and each is counted.
#[test]
fn failures_have_their_place() {
    let file = file_of(1 << 20);
    let target = Target::open(file.path()).expect("a file");
    file.cut(1 << 19);
    for choice in BOTH {
        let mut session = Session::open(&target, 4096, 4, choice).expect("it opens");
        let starts: Vec<u64> = (0..256).map(|n| n * 4096).collect();
        let mut latencies_ns = Vec::new();
        let slice = session
            .read_each(&starts, 4096, 4, &mut latencies_ns)
            .expect("they fit");
        assert_eq!((slice.failed, slice.failure), (128, Some(IoFailure::Short)));
        let failed: Vec<usize> = (0..256).filter(|&n| latencies_ns[n] == FAILED_NS).collect();
        assert_eq!(failed, (128..256).collect::<Vec<_>>());
    }
}

/// The first write comes after the reads, and with fewer slots than starts more reads follow. That writes arrive at all shows
/// in the file's time.
#[test]
fn read_bytes_are_written_back() {
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    for choice in BOTH {
        let file = file_of(1 << 20);
        let before = file.content();
        let (target, may_write) =
            permit_writes(file.path(), &file.name()).expect("nobody else has it");
        std::fs::File::options()
            .write(true)
            .open(file.path())
            .and_then(|file| file.set_modified(long_ago))
            .expect("own");
        let mut session = Session::open(&target, 4096, 8, choice).expect("it opens");
        let starts: Vec<u64> = (0..101).map(|n| n * 7 % 255 * 4096 + 512).collect();
        let mut latencies_ns = Vec::new();
        for lead in [0, 3, 200] {
            let slice = session
                .write_back_each(&may_write, &starts, lead, 4096, 8, &mut latencies_ns)
                .expect("they fit");
            assert_eq!((slice.failed, latencies_ns.len()), (0, 101));
            assert!(latencies_ns.iter().all(|&ns| ns != FAILED_NS));
            // Writes less than 4 MiB apart are made one after the other: their times add up to no more than all took.
            let timed_ns: u128 = latencies_ns
                .iter()
                .skip(lead)
                .map(|&ns| u128::from(ns))
                .sum();
            assert!(
                timed_ns <= slice.elapsed.as_nanos(),
                "{lead}: {timed_ns} of {:?}",
                slice.elapsed
            );
            assert!(slice.beside > Duration::ZERO);
        }
        assert!(
            file.content() == before,
            "something else was written than was read"
        );
        let modified = std::fs::metadata(file.path())
            .and_then(|found| found.modified())
            .expect("a time");
        assert!(modified > long_ago, "nothing was written");
    }
}

/// Far enough apart as many are in flight as are asked for.
#[test]
fn writes_far_apart_are_in_flight_together() {
    let file = temp_file("far", &[]);
    file.cut(1 << 30);
    let (target, may_write) = permit_writes(file.path(), &file.name()).expect("nobody else has it");
    for choice in BOTH {
        let mut session = Session::open(&target, 65_536, 66, choice).expect("it opens");
        let starts: Vec<u64> = (0..64).map(|n| n * 97 % 255 * (4 << 20)).collect();
        let mut latencies_ns = Vec::new();
        let slice = session
            .write_back_each(&may_write, &starts, 0, 65_536, 8, &mut latencies_ns)
            .expect("they fit");
        let sum_ns: u128 = latencies_ns.iter().map(|&ns| u128::from(ns)).sum();
        let (most, all) = (slice.elapsed.as_nanos() * 8, slice.elapsed.as_nanos());
        assert!(
            slice.failed == 0 && sum_ns > 2 * all && sum_ns <= most,
            "{choice:?}: {sum_ns} ns in {all} ns"
        );
    }
}

/// After a failed read nothing is written.
#[test]
fn unreadable_blocks_are_not_written() {
    for choice in BOTH {
        let file = file_of(1 << 20);
        let (target, may_write) =
            permit_writes(file.path(), &file.name()).expect("nobody else has it");
        file.cut(1 << 19);
        let mut session = Session::open(&target, 4096, 8, choice).expect("it opens");
        let mut latencies_ns = Vec::new();
        let starts = [0, 1 << 19];
        let slice = session
            .write_back_each(&may_write, &starts, 0, 4096, 4, &mut latencies_ns)
            .expect("they fit");
        assert_eq!((slice.failed, slice.failure), (1, Some(IoFailure::Short)));
        assert_eq!((latencies_ns[1], slice.is_write), (FAILED_NS, false));
        assert_eq!(
            file.content().len(),
            1 << 19,
            "a write beyond its end would have made it longer"
        );
    }
}

#[test]
fn a_permission_is_for_one_target() {
    let (file, other) = (file_of(1 << 16), file_of(1 << 16));
    let (_kept, may_write) =
        permit_writes(other.path(), &other.name()).expect("nobody else has it");
    let before = file.content();
    let target = Target::open(file.path()).expect("a file");
    let mut session = Session::open(&target, 4096, 1, EngineChoice::Ring).expect("it opens");
    let refused = session.write_back_each(&may_write, &[0], 0, 4096, 1, &mut Vec::new());
    assert!(
        matches!(
            refused,
            Err(LoadError::Workload(WorkloadError::NotPermitted { .. }))
        ),
        "{refused:?}"
    );
    assert!(file.content() == before);
}

#[test]
fn targets_that_are_too_small_are_refused() {
    let file = file_of(1 << 16);
    let target = Target::open(file.path()).expect("a file");
    assert!(
        target.is_direct(),
        "the tests' own directory takes direct I/O"
    );
    let mut session = Session::open(&target, 4096, 1, EngineChoice::Ring).expect("it opens");
    let mut said = |starts: &[u64], len_bytes| {
        let refused = session
            .read_each(starts, len_bytes, 1, &mut Vec::new())
            .expect_err("it does not fit");
        refused.to_string().replace(target.name(), "T")
    };
    let messages = [
        said(&[100], 4096),
        said(&[0, 1 << 16], 4096),
        said(&[0], 8192),
        said(&[u64::MAX - 511], 512),
    ];
    insta::assert_snapshot!(messages.join("\n\n"));
}
