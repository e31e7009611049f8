//! Targets in words.

use plumb_model::{HostLayer, Part, Target, TargetLayer};
use plumb_stack::Kind;

/// `partition sda1 of device 8,0 (request layer)`, `soft partition d94`, `the host`.
#[must_use]
pub fn target(target: &Target) -> String {
    let device = match target.layer {
        TargetLayer::Seen(layer) => {
            format!("device {} ({} layer)", target.device, layer.word())
        }
        TargetLayer::Stack(Kind::Unknown) => format!("device {}", target.device),
        TargetLayer::Stack(kind) => format!("{} {}", kind.text(), target.device),
        TargetLayer::Host(HostLayer::Host) => "the host".to_owned(),
    };
    match &target.part {
        Some(part) => format!("{} of {device}", self::part(part)),
        None => device,
    }
}

/// The target as the subject of a sentence: `sdb1`, `partition sda1 of 8,0`.
pub(super) fn name(target: &Target) -> String {
    match (&target.part, target.layer) {
        (_, TargetLayer::Host(HostLayer::Host)) => "the host".to_owned(),
        (Some(part), _) => format!("{} of {}", self::part(part), target.device),
        (None, _) => target.device.clone(),
    }
}

/// `partition 2`, `bytes 1 MiB to 2 MiB`.
#[must_use]
pub fn part(part: &Part) -> String {
    match part {
        Part::Partition(name) => format!("partition {name}"),
        Part::Range {
            start_bytes,
            end_bytes,
        } => format!("bytes {start_bytes} to {end_bytes}"),
    }
}
