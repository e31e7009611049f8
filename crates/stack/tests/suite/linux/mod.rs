//! Hosts that do not exist, described file by file; the expectation follows from the description by hand.

mod arrays;
mod disks;
mod guests;
mod stacked;
mod targets;
mod trees;

use plumb_geometry::Bytes;
use plumb_stack::linux::{
    self, Answers, Elsewhere, Host, Identified, Kernel, NoAnswer, Recorder, Root,
};
use plumb_stack::{Builder, CellKind, Node, Stack, Verdict};
use plumb_sys::{FileExtent, FileExtents, Limits, Mapped, MappedTarget, SysError};
use plumb_testkit::fake_sysfs::FakeHost;

/// A host, which is the same when its kernel's answers are written down and given again.
fn collect(fake: &FakeHost, kernel: &dyn Kernel) -> (Stack, Host) {
    let recorder = Recorder::new(kernel);
    let (stack, host) = collect_with(fake, &recorder);
    let answers = recorder.into_answers();
    let text = serde_json::to_string(&answers).expect("answers have a written form");
    let mut again: Answers = serde_json::from_str(&text).expect("and are read");
    for (device, pages) in answers.identified() {
        again.add_identified(device, pages.clone());
    }
    assert_eq!(
        nodes_and_notes(&stack),
        nodes_and_notes(&collect_with(fake, &again).0)
    );
    (stack, host)
}

fn collect_with(fake: &FakeHost, kernel: &dyn Kernel) -> (Stack, Host) {
    let root = Root::open(fake.root(), kernel).expect("the root");
    let mut builder = Builder::default();
    let host = linux::collect(&root, &mut builder).expect("a host");
    (builder.finish(), host)
}

fn nodes_and_notes(stack: &Stack) -> (Vec<String>, Vec<String>) {
    (
        stack.nodes().map(|(_, node)| format!("{node:?}")).collect(),
        stack.notes().to_vec(),
    )
}

fn stack_of(fake: &FakeHost) -> Stack {
    collect(fake, &Elsewhere).0
}

fn node<'a>(stack: &'a Stack, name: &str) -> &'a Node {
    stack.node(stack.find(name).unwrap_or_else(|| panic!("no {name}")))
}

/// On physical blocks alone.
fn verdicts(stack: &Stack, top: &str) -> Vec<Verdict> {
    let standings = stack.standings(stack.find(top).unwrap_or_else(|| panic!("no {top}")));
    let physical = standings
        .into_iter()
        .filter(|one| one.fact.what == CellKind::PhysicalBlock);
    physical.map(|one| one.verdict).collect()
}

fn misaligned(by: u64) -> Verdict {
    Verdict::Misaligned { by: Bytes(by) }
}

fn grid(node: &Node, what: CellKind) -> Option<(u64, u64, bool)> {
    let fact = node.grids.iter().find(|fact| fact.what == what)?;
    Some((
        fact.granularity().0,
        fact.grid.offset().0,
        fact.is_believed(),
    ))
}

/// Start, length, target and parameters of a line.
type DmTableRow = (u64, u64, &'static str, &'static str);

/// The answers of a kernel.
#[derive(Default)]
struct Scripted {
    tables: Vec<(u32, u32, &'static [DmTableRow])>,
    extents: Vec<FileExtent>,
    /// NPWG of every namespace, in blocks of 512 bytes.
    granularity: Option<u8>,
}

impl Kernel for Scripted {
    fn table(&self, major: u32, minor: u32) -> Result<Mapped, NoAnswer> {
        let found = self
            .tables
            .iter()
            .find(|table| (table.0, table.1) == (major, minor));
        let Some((.., lines)) = found else {
            let path = "/dev/mapper/control".into();
            return Err(SysError::NotPermitted {
                path,
                asked: "it",
                capability: "CAP_SYS_ADMIN",
            }
            .into());
        };
        let targets = lines.iter().map(|(start, len, kind, params)| MappedTarget {
            start_sectors: *start,
            len_sectors: *len,
            kind: (*kind).to_owned(),
            params: (*params).to_owned(),
        });
        Ok(Mapped {
            targets: targets.collect(),
            ..Mapped::default()
        })
    }

    fn identify(&self, device: &str) -> Result<Identified, NoAnswer> {
        assert!(!device.contains('c'), "{device} has no node");
        let mut namespace = Box::new([0; 4096]);
        (namespace[24], namespace[64], namespace[130]) =
            (0x10, self.granularity.ok_or(NoAnswer::Elsewhere)? - 1, 9);
        Ok(Identified {
            namespace,
            controller: None,
        })
    }

    fn limits(&self, _: &str) -> Result<Limits, NoAnswer> {
        Ok(Limits {
            size_bytes: 1 << 30,
            logical_block_bytes: 512,
            physical_block_bytes: 8192,
            minimum_io_bytes: 512,
            optimal_io_bytes: 0,
            alignment_offset_bytes: 0,
        })
    }

    fn extents(&self, _: &str, _: usize) -> Result<FileExtents, NoAnswer> {
        Ok(FileExtents {
            size_bytes: 3 << 20,
            extents: self.extents.clone(),
            is_cut: false,
        })
    }
}
