//! The iolog writer, held against fio: it replays as many reads and writes as were written.

#![forbid(unsafe_code)]

use plumb_testkit::wait::RunLimited;
use plumb_testkit::workload::Oltp;
use plumb_testkit::write::fio_iolog::{FioIolog, IologVersion};
use plumb_testkit::{SynthOp, temp_dir, write_all};
use std::fs::File;
use std::process::Command;

/// Field `number` of fio's terse line, counted from 1 as its manual does.
fn terse_field(line: &str, number: usize) -> u64 {
    line.split(';')
        .nth(number - 1)
        .and_then(|text| text.parse().ok())
        .expect("a number in fio's terse output")
}

#[test]
fn fio_replays_every_event() {
    plumb_testkit::require!(Tool("fio"));
    let load = Oltp {
        events: 1_009,
        ..Oltp::default()
    };
    let kib = |op| {
        load.iter()
            .filter(|e| e.op == op)
            .map(|e| e.len_bytes / 1024)
            .sum::<u64>()
    };
    for version in [IologVersion::V2, IologVersion::V3] {
        let dir = temp_dir("fio");
        let log = dir.path().join("log");
        let mut writer =
            FioIolog::new(File::create(&log).expect("make the log"), version).expect("header");
        write_all(&mut writer, load.iter()).expect("write the log");
        let out = Command::new("fio")
            .args([
                "--name=replay",
                "--ioengine=null",
                "--replay_no_stall=1",
                "--size=1T",
                "--minimal",
            ])
            .arg(format!("--read_iolog={}", log.display()))
            .limited_output();
        let text = String::from_utf8_lossy(&out.stdout);
        let line = text
            .lines()
            .find(|l| l.starts_with("3;"))
            .unwrap_or_else(|| panic!("{out:?}"));
        // Version 3 of the terse form: 5 is the error, 6 KiB read, 47 KiB written.
        assert_eq!(terse_field(line, 5), 0);
        assert_eq!(terse_field(line, 6), kib(SynthOp::Read), "{version:?}");
        assert_eq!(terse_field(line, 47), kib(SynthOp::Write), "{version:?}");
    }
}
