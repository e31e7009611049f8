//! I/O at chosen starts: what is read and written where, by a ring and by calls that wait alike.

use std::os::unix::fs::FileExt;

use plumb_load::session::FAILED_NS;
use plumb_load::{
    Content, EngineChoice, IoFailure, LoadError, Means, Session, Target, WorkloadError, permit_writes,
};
use plumb_testkit::{Rng, TempFile, temp_file};

const BOTH: [EngineChoice; 2] = [EngineChoice::Ring, EngineChoice::Blocking];

fn file_of(bytes: usize) -> TempFile {
    let mut rng = Rng::announced("content", 5);
    temp_file("session", &(0..bytes).map(|_| rng.next_u64() as u8).collect::<Vec<u8>>())
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
            let slice = session.read_each(&starts, 8192, depth, &mut latencies_ns).expect("they fit");
            assert_eq!((slice.failed, latencies_ns.len()), (0, 101));
            let sum_ns: u128 = latencies_ns.iter().map(|&ns| u128::from(ns)).sum();
            assert!(latencies_ns.iter().all(|&ns| ns > 0 && u128::from(ns) <= slice.elapsed.as_nanos()));
            assert!(sum_ns <= slice.elapsed.as_nanos() * u128::from(depth), "more in flight than asked for");
        }
    }
}

/// What lies beyond the end of a file that was cut is not read: fewer bytes come back, and each is counted.
#[test]
fn failures_have_their_place() {
    let file = file_of(1 << 20);
    let target = Target::open(file.path()).expect("a file");
    file.cut(1 << 19);
    for choice in BOTH {
        let mut session = Session::open(&target, 4096, 4, choice).expect("it opens");
        let starts: Vec<u64> = (0..256).map(|n| n * 4096).collect();
        let mut latencies_ns = Vec::new();
        let slice = session.read_each(&starts, 4096, 4, &mut latencies_ns).expect("they fit");
        assert_eq!((slice.failed, slice.failure), (128, Some(IoFailure::Short)));
        let failed: Vec<usize> = (0..256).filter(|&n| latencies_ns[n] == FAILED_NS).collect();
        assert_eq!(failed, (128..256).collect::<Vec<_>>());
    }
}

#[test]
fn what_was_read_is_written_back() {
    for choice in BOTH {
        let file = file_of(1 << 20);
        let before = file.content();
        let (target, may_write) = permit_writes(file.path(), &file.name()).expect("nobody else has it");
        let mut session = Session::open(&target, 4096, 8, choice).expect("it opens");
        let starts: Vec<u64> = (0..101).map(|n| n * 7 % 255 * 4096 + 512).collect();
        let mut latencies_ns = Vec::new();
        let slice = session
            .write_each(&may_write, Content::AsRead, &starts, 4096, 8, &mut latencies_ns)
            .expect("they fit");
        assert_eq!(slice.failed, 0);
        assert!(latencies_ns.iter().all(|&ns| ns != FAILED_NS));
        assert!(file.content() == before, "something else was written than was read");
        // That writes arrive at all is seen with noise: exactly those 4 KiB differ.
        session.write_each(&may_write, Content::Noise, &[8192], 4096, 1, &mut latencies_ns).expect("it fits");
        let after = file.content();
        assert!(after[8192..12288] != before[8192..12288]);
        assert!(after[..8192] == before[..8192] && after[12288..] == before[12288..]);
    }
}

#[test]
fn a_permission_is_for_one_target() {
    let (file, other) = (file_of(1 << 16), file_of(1 << 16));
    let (_kept, may_write) = permit_writes(other.path(), &other.name()).expect("nobody else has it");
    let before = file.content();
    let target = Target::open(file.path()).expect("a file");
    let mut session = Session::open(&target, 4096, 1, EngineChoice::Ring).expect("it opens");
    let refused = session.write_each(&may_write, Content::Noise, &[0], 4096, 1, &mut Vec::new());
    assert!(matches!(refused, Err(LoadError::Workload(WorkloadError::NotPermitted { .. }))), "{refused:?}");
    assert!(file.content() == before);
}

#[test]
fn what_does_not_fit_is_refused() {
    let file = file_of(1 << 16);
    let target = Target::open(file.path()).expect("a file");
    assert!(target.is_direct(), "the tests' own directory takes direct I/O");
    let mut session = Session::open(&target, 4096, 1, EngineChoice::Ring).expect("it opens");
    let mut said = |starts: &[u64], len_bytes| {
        let refused = session.read_each(starts, len_bytes, 1, &mut Vec::new()).expect_err("it does not fit");
        refused.to_string().replace(target.name(), "T")
    };
    assert_eq!(
        said(&[100], 4096),
        "T: found a start of 100 bytes, expected a multiple of its logical block of 512 bytes"
    );
    assert_eq!(
        said(&[0, 1 << 16], 4096),
        "T: found a range up to byte 69,632, expected an end within its 65,536 bytes"
    );
    assert!(said(&[0], 8192).contains("with which the session was opened"));
    assert!(said(&[u64::MAX - 511], 512).contains("expected an end within"));
}

/// Pages of noise come one behind the other, so that the second write of the same place changes it again.
#[test]
fn noise_differs_from_write_to_write() {
    let file = file_of(1 << 16);
    let (target, may_write) = permit_writes(file.path(), &file.name()).expect("nobody else has it");
    let mut session = Session::open(&target, 4096, 1, EngineChoice::Ring).expect("it opens");
    assert!(matches!(session.means(), Means::Ring { .. }), "{:?}", session.means());
    let read = std::fs::File::open(file.path()).expect("a file");
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..10 {
        session.write_each(&may_write, Content::Noise, &[0], 4096, 1, &mut Vec::new()).expect("it fits");
        let mut block = vec![0; 4096];
        read.read_exact_at(&mut block, 0).expect("its first block");
        seen.insert(block);
    }
    assert_eq!(seen.len(), 10);
}
