//! Remedies for the findings of a host: places that were read and are empty, and the user's facts, passed to the
//! advisor.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use plumb_diagnose::Diagnosis;
use plumb_diagnose::layout::Known;
use plumb_model::{Confidence, Facts, Finding, Severity};
use plumb_plan::Wishes;
use plumb_plan::recommend::{Circumstances, recommend};
use plumb_profile::ProfileSet;
use plumb_quoting::Command;
use plumb_stack::ondisk::is_solaris_disk;
use plumb_stack::{Kind, Node, NodeId, Placing, Stack};
use rustix::fs::SeekFrom;

use crate::cli::Beneath;

/// The input of the rules for this stack.
#[derive(Clone, Copy)]
pub struct Judged<'a> {
    /// The layers.
    pub stack: &'a Stack,
    /// The user's facts.
    pub known: &'a Known,
    /// The profiles.
    pub profiles: Option<&'a ProfileSet>,
}

/// Adds to each finding its remedies and commands, or the reason for none.
pub fn with_commands(
    beneath: &Beneath,
    is_image: bool,
    judged: Judged<'_>,
    diagnosis: &mut Diagnosis,
) {
    let circumstances = Circumstances {
        known: judged.known,
        profiles: judged.profiles,
        wishes: Wishes {
            page: beneath.page,
            segment: beneath.segment_bytes(),
            unit: None,
            chunk: None,
        },
        is_known_empty: &|id| is_known_empty(judged.stack, id),
        is_image,
    };
    recommend(judged.stack, &circumstances, diagnosis);
    // `plumb plan` has the ways that destroy data. Here each finding on a component would repeat all volumes of it.
    for finding in &mut diagnosis.findings {
        finding
            .remedies
            .retain(|remedy| remedy.is_recommended() || remedy.keeps_data);
    }
    for finding in &mut diagnosis.findings {
        let is_doubtful =
            finding.confidence == Confidence::Low && finding.severity >= Severity::Warning;
        if is_doubtful {
            let command = confirmation(judged.stack, finding);
            finding.confirm = command.and_then(|command| command.line().ok());
        }
        // A warning that nobody can confirm is none.
        if is_doubtful && finding.confirm.is_none() {
            finding.severity = Severity::Note;
        }
    }
}

/// The command that measures what a finding only assumes: the unit of a disk, or the length of its I/O.
fn confirmation(stack: &Stack, finding: &Finding) -> Option<Command> {
    let unit_of = match &finding.facts {
        Facts::MisalignedPartition(facts) => Some(&facts.grid.on),
        Facts::SoftPartitionDrift(facts) => Some(&facts.grid.on),
        _ => None,
    };
    let Some(on) = unit_of else {
        let target = finding.target.node?;
        let is_solaris = is_solaris_disk(leaf_below(stack, target)?.own_name());
        let command = Command::new("plumb diagnose").path(path_of(stack.node(target)));
        return (!is_solaris).then_some(command);
    };
    let disk = leaf_below(stack, stack.find(on)?)?;
    if is_solaris_disk(disk.own_name()) {
        // The driver `sd` keeps the block that each disk states, and `mdb` prints it.
        let filter = Command::new("egrep").arg("^un|_phy_blocksize");
        let state = Command::new("echo ::sd_state").pipe(Command::new("mdb -k"));
        return Some(state.pipe(filter));
    }
    Some(Command::new("plumb probe").path(path_of(disk)))
}

/// The disk or file at the bottom of a node, or the node itself.
fn leaf_below(stack: &Stack, id: NodeId) -> Option<&Node> {
    let mut below = stack.under(id).into_iter();
    below.find(|id| stack.is_leaf(*id)).map(|id| stack.node(id))
}

/// The path of a device or a file on its host.
fn path_of(node: &Node) -> String {
    match node.kind {
        Kind::File => node.own_name().to_owned(),
        _ => format!("/dev/{}", node.own_name()),
    }
}

/// Whether a partition has no data: nothing is above it, and it is part of an image file that is a hole there, or has
/// zeros. The bytes of a block device are not all read, so a device is never known to be empty.
fn is_known_empty(stack: &Stack, id: NodeId) -> bool {
    let node = stack.node(id);
    let (Kind::Partition, Placing::Parts { parts }) = (node.kind, &node.placing) else {
        return false;
    };
    let [part] = parts.as_slice() else {
        return false;
    };
    let disk = stack.node(part.node);
    let (Kind::File, Some(len), true) = (disk.kind, part.len, stack.above(id).is_empty()) else {
        return false;
    };
    let end = part.start.checked_add(len);
    let file = File::open(disk.own_name());
    let (Some(end), Ok(file)) = (end, file) else {
        return false;
    };
    has_only_zeros(&file, part.start.0..end.0).unwrap_or(false)
}

/// The most that is read of an image to find out that a partition is empty. A hole begins and ends with a block of the
/// file system, so the first and the last block of an empty partition usually hold a part of the label.
const READ_MAX_BYTES: u64 = 16 << 20;

/// Whether a range of a file has no byte other than zero; `false` if that would take too long to find out.
fn has_only_zeros(file: &File, range: Range<u64>) -> io::Result<bool> {
    let (mut at, mut read_bytes) = (range.start, 0);
    let mut buffer = vec![0; 64 << 10];
    loop {
        at = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            // No data from there to the end of the file.
            Err(rustix::io::Errno::NXIO) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        if at >= range.end {
            return Ok(true);
        }
        let wanted = (range.end - at).min(buffer.len() as u64) as usize;
        let found = file.read_at(&mut buffer[..wanted], at)?;
        if found == 0 {
            return Ok(true);
        }
        read_bytes += found as u64;
        if read_bytes > READ_MAX_BYTES || buffer[..found].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += found as u64;
    }
}
