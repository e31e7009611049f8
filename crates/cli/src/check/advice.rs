//! Remedies for the findings of a host: places that were read and are empty, and the user's facts, passed to the
//! advisor.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use plumb_diagnose::Diagnosis;
use plumb_diagnose::layout::{self, Known};
use plumb_model::{Advice, Confidence, Facts, Finding, Severity};
use plumb_plan::Wishes;
use plumb_plan::recommend::{Circumstances, recommend};
use plumb_profile::ProfileSet;
use plumb_quoting::Command;
use plumb_stack::node::keys;
use plumb_stack::node_facts::HostSystem;
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

/// Judges the layers of a stack without I/O, and adds to each finding its remedies and commands, or the reason for none.
pub fn diagnose(beneath: &Beneath, stack: &Stack, known: &Known) -> Diagnosis {
    let mut diagnosis = layout::diagnose(stack, known, None);
    let judged = Judged {
        stack,
        known,
        profiles: None,
    };
    with_commands(beneath, false, judged, &mut diagnosis);
    diagnosis
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
        let command = confirmation(judged.stack, is_image, finding).filter(|_| is_doubtful);
        match command.map(Command::line) {
            Some(Ok(command)) => finding.confirm = Some(command),
            Some(Err(why)) => finding.advice.push(Advice::NoCommand {
                why: why.to_string(),
            }),
            None => {}
        }
    }
}

/// The command that measures an assumption of a finding: the unit of a disk, or the length of its I/O.
fn confirmation(stack: &Stack, is_image: bool, finding: &Finding) -> Option<Command> {
    let unit_of = match &finding.facts {
        Facts::MisalignedPartition(facts) => &facts.grid.on,
        Facts::SoftPartitionDrift(facts) => &facts.grid.on,
        _ => {
            let target = stack.node(finding.target.node?);
            return Some(Command::new("plumb diagnose").path(path_of(target)));
        }
    };
    let disk = leaf_below(stack, stack.find(unit_of)?)?;
    let elsewhere = |remark| Command::new("plumb probe /dev/DEVICE").remark(remark);
    Some(if is_image {
        elsewhere("on the disk that this image is for")
    } else if is_solaris_disk(disk.own_name()) {
        // The driver `sd` keeps the block that each disk states, and `mdb` prints it.
        let filter = Command::new("egrep").arg("^un|_phy_blocksize");
        let state = Command::new("echo ::sd_state").pipe(Command::new("mdb -k"));
        state.pipe(filter)
    } else if is_of_linux(stack, disk) {
        Command::new("plumb probe").path(path_of(disk))
    } else {
        elsewhere("on a Linux host that has this disk")
    })
}

/// Whether a disk is one of Linux, as far as the input tells: by the system of its host, or by its name.
fn is_of_linux(stack: &Stack, disk: &Node) -> bool {
    let system = stack.host().and_then(|host| host.value(keys::SYSTEM));
    system == Some(&HostSystem::Linux) || is_linux_disk(disk.own_name())
}

/// Names of disks that the drivers of Linux give: `sda`, `nvme0n1`, and not `sd0` of Solaris.
fn is_linux_disk(name: &str) -> bool {
    const BEFORE_LETTER: [&str; 4] = ["sd", "vd", "xvd", "hd"];
    const BEFORE_NUMBER: [&str; 8] = ["nvme", "mmcblk", "md", "dm-", "loop", "nbd", "rbd", "dasd"];
    let follows = |prefix: &str, is_next: fn(char) -> bool| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(is_next))
    };
    let is_letter = |letter: char| letter.is_ascii_lowercase();
    let is_number = |letter: char| letter.is_ascii_digit();
    BEFORE_LETTER
        .iter()
        .any(|prefix| follows(prefix, is_letter))
        || BEFORE_NUMBER
            .iter()
            .any(|prefix| follows(prefix, is_number))
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
