//! Remedies for the findings of a host: places that were read and are empty, and the user's facts, passed to the
//! advisor.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use plumb_diagnose::Diagnosis;
use plumb_diagnose::layout::Known;
use plumb_model::{Confidence, Finding, Fix, RuleId, Severity};
use plumb_plan::Wishes;
use plumb_plan::recommend::{Circumstances, recommend};
use plumb_profile::ProfileSet;
use plumb_quoting::Command;
use plumb_stack::node::keys;
use plumb_stack::node_facts::HostSystem;
use plumb_stack::{Kind, NodeId, Placing, Stack};
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
        if let Some(command) = confirmation(judged.stack, finding).filter(|_| !is_image) {
            *finding = finding.clone().with_fix(Fix::look(command));
        }
    }
}

/// The command that measures the unit which a warning only assumes, where it has no other command and its disk is one of Linux.
fn confirmation(stack: &Stack, finding: &Finding) -> Option<Command> {
    let is_assumed = finding.confidence == Confidence::Low
        && finding.severity >= Severity::Warning
        && finding.fix.is_empty()
        && finding.rule() == RuleId::MisalignedPartition;
    let is_linux = stack
        .host()
        .is_some_and(|host| host.value(keys::SYSTEM) == Some(&HostSystem::Linux));
    let below = finding.target.node.filter(|_| is_assumed && is_linux)?;
    let mut leaves = stack
        .under(below)
        .into_iter()
        .filter(|id| stack.is_leaf(*id));
    let disk = stack.node(leaves.next()?);
    disk.host
        .is_none()
        .then(|| Command::new("plumb probe").path(format!("/dev/{}", disk.own_name())))
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
