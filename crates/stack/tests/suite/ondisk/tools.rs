//! Images that tools make, with the output of these tools.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use plumb_geometry::Bytes;
use plumb_label::{Disk, FileDisk};
use plumb_stack::ProblemId;
use plumb_stack::grid::Source;
use plumb_stack::ondisk::{Counted, Scan};
use plumb_stack::{Builder, CellKind, GridFact, Kind, Node, Placing, Stack};
use plumb_testkit::tempdir::TempDir;

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;

/// A folder of images.
pub struct Images {
    dir: TempDir,
}

impl Images {
    pub fn new() -> Images {
        Images {
            dir: plumb_testkit::temp_dir("ondisk"),
        }
    }

    /// A sparse image.
    pub fn make(&self, name: &str, size: u64) -> String {
        let path = self.path(name);
        File::create(&path)
            .and_then(|file| file.set_len(size))
            .expect("an image");
        path.to_str().expect("a path of text").to_owned()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn disk(&self, name: &str) -> FileDisk {
        FileDisk::new(File::open(self.path(name)).expect("an image")).expect("its end")
    }

    /// All that is found on these images, in this order; and that the bytes which count are all that it takes.
    pub fn stack(&self, names: &[&str]) -> Stack {
        let (mut builder, mut scan) = (Builder::default(), Scan::default());
        let (mut again, mut rescan) = (Builder::default(), Scan::default());
        for name in names {
            let disk = self.disk(name);
            let id = builder.node(name);
            builder.kind(id, Kind::File, &Source::User);
            scan.probe(&mut builder, &disk, id);
            let sparse = Sparse {
                disk: &disk,
                counted: scan.take_counted(),
            };
            let id = again.node(name);
            again.kind(id, Kind::File, &Source::User);
            rescan.probe(&mut again, &sparse, id);
        }
        scan.finish(&mut builder);
        rescan.finish(&mut again);
        let (stack, again) = (builder.finish(), again.finish());
        let said = |stack: &Stack| {
            let nodes: Vec<_> = stack.nodes().map(|(_, node)| format!("{node:?}")).collect();
            (nodes, stack.problems().to_vec(), stack.notes().to_vec())
        };
        assert_eq!(said(&stack), said(&again));
        stack
    }

    /// One byte of an image.
    pub fn byte(&self, name: &str, at: u64) -> u8 {
        let mut byte = [0];
        self.disk(name)
            .read_at(at, &mut byte)
            .expect("a byte of an image");
        byte[0]
    }

    /// Writes into an image.
    pub fn write(&self, name: &str, at: u64, bytes: &[u8]) {
        use std::os::unix::fs::FileExt;
        let file = File::options()
            .write(true)
            .open(self.path(name))
            .expect("an image");
        file.write_all_at(bytes, at).expect("bytes in an image");
    }
}

/// A disk with only some bytes: all others are zeros.
struct Sparse<'a> {
    disk: &'a FileDisk,
    counted: Counted,
}

impl Disk for Sparse<'_> {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.disk.read_at(offset_bytes, buffer)?;
        let Counted { runs, instead } = &self.counted;
        for (byte, at) in buffer.iter_mut().zip(offset_bytes..) {
            let counts = |(start, len): &(u64, u64)| (*start..start + len).contains(&at);
            if !runs.iter().any(counts) {
                *byte = 0;
            }
            for (start, bytes) in instead {
                let within = at.checked_sub(*start).map(|within| within as usize);
                if let Some(kept) = within.and_then(|within| bytes.get(within)) {
                    *byte = *kept;
                }
            }
        }
        Ok(())
    }
}

/// Runs a tool that must succeed.
pub fn run(program: &str, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .env("LVM_SUPPRESS_FD_WARNINGS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start the program");
    // A program that does not ask for input may be gone already.
    let _ = child
        .stdin
        .take()
        .expect("its input")
        .write_all(input.as_bytes());
    let out = plumb_testkit::wait::output(program, plumb_testkit::wait::PATIENCE, child);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// The number after a name in the output of a tool: `name: 12`, `name = 12`, `name   12 bytes`.
pub fn printed(text: &str, name: &str) -> u64 {
    let line = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
    let digits = line.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end]
        .parse()
        .unwrap_or_else(|_| panic!("no number in {line:?}"))
}

pub fn node<'a>(stack: &'a Stack, name: &str) -> &'a Node {
    let names = || {
        stack
            .nodes()
            .map(|(_, node)| node.name.clone())
            .collect::<Vec<_>>()
    };
    stack.node(
        stack
            .find(name)
            .unwrap_or_else(|| panic!("no {name} among {:?}", names())),
    )
}

pub fn grid(node: &Node, what: CellKind) -> &GridFact {
    node.grids
        .iter()
        .find(|fact| fact.what == what)
        .unwrap_or_else(|| panic!("no {what:?} of {}", node.name))
}

/// The start of the only run of a layer, and the layer below.
pub fn run_of(stack: &Stack, name: &str) -> (String, u64, Option<u64>) {
    match &node(stack, name).placing {
        Placing::Parts { parts } if parts.len() == 1 => {
            let part = parts[0];
            (
                stack.node(part.node).name.clone(),
                part.start.0,
                part.len.map(|Bytes(len)| len),
            )
        }
        other => panic!("{name} lies in {other:?}"),
    }
}

/// As [`run_of`] for the content of a device, like `ext4`.
pub fn run_of_content(stack: &Stack, content: &str, device: &str) -> (String, u64, Option<u64>) {
    run_of(stack, &format!("{content} on {device}"))
}

/// Names of the problems found.
pub fn problems(stack: &Stack) -> Vec<ProblemId> {
    stack.problems().iter().map(|problem| problem.id).collect()
}
