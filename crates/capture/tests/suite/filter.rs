//! I/O that a filter leaves out do not count at either layer; others count as ever.

use std::path::PathBuf;
use std::process::Command;

use crate::common::LoopDisk;
use plumb_capture::{Attached, BlockWatch, CaptureError, Filter, Layers, Options};
use plumb_testkit::cgroup::Cgroup;
use plumb_testkit::loop_device::run;
use plumb_testkit::require;
use plumb_trace::{Layer, Op};

/// Each layer, by each way to attach.
fn everywhere(disk: &LoopDisk, filter: &Filter, mut check: impl FnMut(&mut BlockWatch, Layer)) {
    for (layers, layer) in [(Layers::Request, Layer::Request), (Layers::Bio, Layer::Bio)] {
        for attach in [Attached::TypedTracepoints, Attached::RawTracepoints].map(Some) {
            let options = Options {
                attach,
                layers,
                filter: filter.clone(),
                ..Options::default()
            };
            check(&mut disk.watch_with(options), layer);
        }
    }
}

/// `dd` with O_DIRECT, within a shell that does something first: a number of reads of 4 KiB.
fn dd(disk: &LoopDisk, first: &str, count: u64) {
    let path = disk.device.path().display();
    let command = format!(
        "{first} exec dd if={path} of=/dev/null iflag=direct bs=4096 count={count} status=none"
    );
    run(Command::new("sh").args(["-c", &command]));
}

#[test]
fn operations() {
    require!(Bpf, Loop);
    let disk = LoopDisk::new();
    let filter = Filter {
        ops: vec![Op::Write],
        ..Filter::default()
    };
    everywhere(&disk, &filter, |block, layer| {
        let mut file = disk.open();
        (0..101).for_each(|at| file.io(Op::Read, at * 8192, 4096));
        (0..211).for_each(|at| file.io(Op::Write, at * 8192, 4096));
        file.file.sync_data().expect("a flush");
        let reading = block.read();
        let profile = disk.profile_at(layer, &reading);
        assert_eq!(
            (profile.op(Op::Read).ios, profile.op(Op::Write).ios),
            (0, 211)
        );
        let misses = disk.misses(&reading);
        assert_eq!((misses.flushes, misses.unmatched_completions), (0, 0));
    });
}

/// By number of the process, with I/O that are cut in pieces: those are of the same sender.
#[test]
fn processes() {
    require!(Bpf, Loop, Tool("dd"));
    let disk = LoopDisk::new();
    disk.set("max_sectors_kb", "64");
    let filter = Filter {
        pid: Some(std::process::id()),
        ..Filter::default()
    };
    let mut process_one = disk.process_one();
    everywhere(&disk, &filter, |block, layer| {
        process_one.restart();
        let mut file = disk.open();
        (0..53).for_each(|at| file.io(Op::Read, at << 18, 256 << 10));
        dd(&disk, "", 211);
        let reading = block.read();
        let pieces = if layer == Layer::Request { 4 } else { 1 };
        let profile = disk.profile_at(layer, &reading);
        assert_eq!(profile.ios(), 53 * pieces);
        let unseen = 53 * pieces - profile.timed_ios();
        assert!(unseen <= process_one.completions(), "{unseen} unseen");
        let misses = disk.misses(&reading);
        assert_eq!((misses.splits, misses.unmatched_completions), (159, 0));
        assert!(
            reading
                .processes
                .iter()
                .all(|process| process.pid == std::process::id())
        );
    });
}

#[test]
fn commands() {
    require!(Bpf, Loop, Tool("dd"));
    let disk = LoopDisk::new();
    let filter = Filter {
        comm: Some("dd".to_owned()),
        ..Filter::default()
    };
    everywhere(&disk, &filter, |block, layer| {
        let mut file = disk.open();
        (0..101).for_each(|at| file.io(Op::Read, at * 8192, 4096));
        dd(&disk, "", 211);
        let reading = block.read();
        assert_eq!(disk.profile_at(layer, &reading).ios(), 211);
        assert!(reading.processes.iter().all(|process| process.comm == "dd"));
    });
}

#[test]
fn cgroups() {
    require!(Bpf, Loop, Tool("dd"));
    let Some(cgroup) = Cgroup::new() else {
        plumb_testkit::skip!("no cgroup of version 2 can be made");
    };
    let disk = LoopDisk::new();
    let filter = Filter {
        cgroup: Some(cgroup.path().to_owned()),
        ..Filter::default()
    };
    everywhere(&disk, &filter, |block, layer| {
        dd(&disk, "", 101);
        dd(&disk, &cgroup.enter("/inner"), 211);
        dd(&disk, &cgroup.enter(""), 307);
        let reading = block.read();
        assert_eq!(disk.profile_at(layer, &reading).ios(), 518);
    });
    let filter = Filter {
        cgroup: Some(cgroup.path().join("inner")),
        ..Filter::default()
    };
    everywhere(&disk, &filter, |block, layer| {
        dd(&disk, &cgroup.enter("/inner"), 211);
        dd(&disk, &cgroup.enter(""), 307);
        let reading = block.read();
        assert_eq!(disk.profile_at(layer, &reading).ios(), 211);
    });
    let missing = Options {
        filter: Filter {
            cgroup: Some(PathBuf::from("/no/such/cgroup")),
            ..Filter::default()
        },
        ..Options::default()
    };
    assert!(matches!(
        BlockWatch::attach(&missing),
        Err(CaptureError::NoCgroup { .. })
    ));
}
