//! Running tools, loop devices, and questions to a stack.

use std::path::Path;
use std::process::Command;

use plumb_geometry::Bytes;
use plumb_stack::Obstacle;
use plumb_stack::dump;
use plumb_stack::{Builder, Node, NodeId, Placing, Stack, Verdict};

/// A sector, the unit of positions for tools.
pub const SECTOR: u64 = 512;

/// The output of a tool; it must succeed.
pub fn run(program: &str, args: &[&str], dir: &Path) -> String {
    run_with(program, args, dir, "")
}

/// As [`run`], of a tool that reads a script.
pub fn run_with(program: &str, args: &[&str], dir: &Path, script: &str) -> String {
    use std::io::Write;
    use std::process::Stdio;
    let mut child = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("LC_ALL", "C")
        .env("LVM_SUPPRESS_FD_WARNINGS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|why| panic!("{program}: {why}"));
    // Gone before the tool ends where it reads nothing.
    let _ = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(script.as_bytes());
    let output = plumb_testkit::wait::output(program, plumb_testkit::wait::PATIENCE, child);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

/// An empty file of that many MiB.
pub fn image(dir: &Path, name: &str, mebibytes: u64) {
    let file = std::fs::File::create(dir.join(name)).expect("a file");
    file.set_len(mebibytes << 20).expect("room");
}

/// A loop device, detached at the end.
pub struct Loop(pub String);

impl Loop {
    pub fn attach(dir: &Path, image: &str, sector: u64) -> Loop {
        let args = [
            "-f",
            "--show",
            "-P",
            "--sector-size",
            &sector.to_string(),
            image,
        ];
        Loop(run("losetup", &args, dir).trim().to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

/// A stack of dumps; the tool named first must read each to its last line.
pub fn stack_of(dumps: &[(&str, &str)]) -> Stack {
    let mut builder = Builder::default();
    for (tool, text) in dumps {
        let read = dump::read_bytes("dump", text.as_bytes(), &mut builder);
        let read = read.unwrap_or_else(|why| panic!("{tool}: {why}"));
        assert_eq!((read.tool, read.taken.passed_over), (*tool, 0), "{text}");
    }
    dump::join(&mut builder);
    builder.finish()
}

pub fn named<'a>(stack: &'a Stack, name: &str) -> (NodeId, &'a Node) {
    let id = stack.find(name).unwrap_or_else(|| panic!("no {name}"));
    (id, stack.node(id))
}

/// First byte and length of a contiguous layer, and the layer below.
pub fn run_of(stack: &Stack, name: &str) -> Option<(u64, Option<u64>, String)> {
    let (_, node) = named(stack, name);
    let Placing::Parts { parts } = &node.placing else {
        return None;
    };
    let [part] = &parts[..] else { return None };
    Some((
        part.start.0,
        part.len.map(|len| len.0),
        stack.node(part.node).name.clone(),
    ))
}

/// Why a layer is not placed.
pub fn why(stack: &Stack, name: &str) -> Obstacle {
    match &named(stack, name).1.placing {
        Placing::Unknown { why, .. } => why.clone(),
        placing => panic!("{name} is placed: {placing:?}"),
    }
}

/// The verdict of byte 0 of a layer on the grids of another.
pub fn verdict_on(stack: &Stack, top: &str, on: &str) -> Vec<Verdict> {
    let (top, on) = (named(stack, top).0, named(stack, on).0);
    stack
        .standings(top)
        .into_iter()
        .filter(|one| one.landing.on == on)
        .map(|one| one.verdict)
        .collect()
}

/// The verdict of a grid on a start.
pub fn verdict(past: u64) -> Verdict {
    if past == 0 {
        Verdict::Aligned
    } else {
        Verdict::Misaligned { by: Bytes(past) }
    }
}
