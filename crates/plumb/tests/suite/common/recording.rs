//! A running recording, and the content of its file.

#![allow(dead_code, reason = "each test file takes what it needs")]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use plumb_testkit::loop_device::run;
use plumb_testkit::wait;
use plumb_trace::open::{open, pieces};
use plumb_trace::{Batch, Event, Fill, Layer, Op, ReadOptions, SourceInfo};
use serde_json::Value;

/// A recording that has begun: its programs are at work.
pub struct Recording {
    child: Option<Child>,
}

impl Recording {
    /// `first` is the file that it begins with.
    pub fn begin(first: &Path, args: &[&str]) -> Recording {
        let mut child = Command::new(env!("CARGO_BIN_EXE_plumb"))
            // A recording of all disks meets those that other tests let fail.
            .args(["record", "--json", "--fail-on", "none"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("plumb runs");
        let what = format!("{} is there", first.display());
        wait::until_while_runs(&what, Duration::from_secs(60), &mut child, || {
            first.exists()
        });
        Recording { child: Some(child) }
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().map(Child::id).expect("it runs")
    }

    pub fn kill(&self, signal: &str) {
        run(Command::new("kill").args([signal, &self.pid().to_string()]));
    }

    /// Waits for the end.
    pub fn output(mut self) -> Output {
        let child = self.child.take().expect("it runs");
        wait::output("plumb record", wait::PATIENCE, child)
    }

    /// Ends it as Ctrl-C does; returns its output.
    pub fn end(self, status: i32) -> Value {
        self.kill("-INT");
        self.ends(status)
    }

    pub fn ends(self, status: i32) -> Value {
        result_of(&self.output(), |_| status)
    }

    /// Ends by itself. On a busy machine I/O may be lost: then it says so by its status.
    pub fn ends_by_itself(self) -> Value {
        result_of(&self.output(), |result| match number(&result["lost"]) {
            0 => 0,
            _ => 3,
        })
    }
}

/// The result of a recording that ended with the status that is expected of this result.
fn result_of(output: &Output, expected: impl Fn(&Value) -> i32) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("no document: {error}; {errors}"));
    let result = document["result"].clone();
    assert_eq!(output.status.code(), Some(expected(&result)), "{errors}");
    result
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            plumb_testkit::wait::stop(&mut child);
        }
    }
}

pub fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no count"))
}

/// Layer, operation, start and length.
pub type LayerIo = (Layer, Op, u64, u64);

pub struct Read {
    pub events: Vec<Event>,
    pub names: std::sync::Arc<plumb_trace::Names>,
    pub info: SourceInfo,
}

impl Read {
    /// The I/O of a command on a device, in the order of the file.
    pub fn rows_of(&self, comm: &str, device: &str) -> Vec<LayerIo> {
        self.rows(self.events_of(comm), device)
    }

    /// The I/O of any process on a device, in the order of the file.
    pub fn rows_on(&self, device: &str) -> Vec<LayerIo> {
        self.rows(self.events.iter().collect(), device)
    }

    fn rows(&self, events: Vec<&Event>, device: &str) -> Vec<LayerIo> {
        let is_of = |event: &&Event| self.names.devices()[event.device as usize].name == device;
        let row = |event: &Event| (event.layer, event.op, event.start_bytes, event.len_bytes);
        events.into_iter().filter(is_of).map(row).collect()
    }

    /// Events of a command: others may look at any disk, as scans for labels do.
    pub fn events_of(&self, comm: &str) -> Vec<&Event> {
        self.events
            .iter()
            .filter(|event| self.names.word_of(event.comm) == Some(comm))
            .collect()
    }
}

/// All that a reader takes by default.
pub fn read(path: &Path) -> Read {
    let mut reader =
        open(&pieces(&[path.to_owned()])[0], &ReadOptions::default()).expect("a readable file");
    let (mut batch, mut events, mut names) =
        (Batch::default(), Vec::new(), std::sync::Arc::default());
    while reader.fill(&mut batch).expect("readable rows") == Fill::Events {
        events.extend(batch.events());
        names = batch.names.clone();
    }
    Read {
        events,
        names,
        info: reader.info().clone(),
    }
}

/// `dd` without the cache: its process, and its I/O.
pub fn dd(node: &Path, op: Op, block: u64, count: u64, at: u64) -> u32 {
    let (node, at) = (node.display(), at.to_string());
    let mut command = Command::new("dd");
    command.args([
        format!("bs={block}"),
        format!("count={count}"),
        "status=none".to_owned(),
    ]);
    match op {
        Op::Write => command
            .args([
                format!("of={node}"),
                format!("seek={at}"),
                "if=/dev/zero".to_owned(),
            ])
            .args(["oflag=direct,seek_bytes", "conv=notrunc"]),
        _ => command
            .args([
                format!("if={node}"),
                format!("skip={at}"),
                "of=/dev/null".to_owned(),
            ])
            .arg("iflag=direct,skip_bytes"),
    };
    let mut child = command.spawn().expect("dd");
    let pid = child.id();
    assert!(wait::exit("dd", wait::PATIENCE, &mut child).success());
    pid
}

/// fio with io_uring, 4 KiB at random and 32 in flight, for a number of I/O; returns fio's own count.
pub fn fio(device: &Path, rw: &str, ios: u64) -> u64 {
    let mut command = Command::new("fio");
    command
        .args([
            "--name=load",
            "--direct=1",
            "--bs=4k",
            "--ioengine=io_uring",
            "--iodepth=32",
            "--norandommap",
        ])
        .arg("--output-format=json")
        .args([
            format!("--rw={rw}"),
            format!("--filename={}", device.display()),
        ])
        .arg(format!("--io_size={}", ios * 4096));
    let output = wait::output_of(&mut command);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let document: Value = serde_json::from_slice(&output.stdout).expect("its report");
    ["read", "write"]
        .iter()
        .map(|op| number(&document["jobs"][0][op]["total_ios"]))
        .sum()
}
