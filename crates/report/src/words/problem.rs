//! Problems that a reader noticed, in words: its own text, and advice.

use plumb_model::facts::NoticedProblem;
use plumb_model::{RuleId, Target};
use plumb_stack::Source;

use super::Sentences;
use super::target::name;

/// The sentences of a finding.
pub(super) fn words(rule: RuleId, on: &Target, facts: &NoticedProblem) -> Sentences {
    let name = name(on);
    let summary = if facts.text.starts_with(&name) {
        format!("{}.", facts.text)
    } else {
        format!("{name}: {}.", facts.text)
    };
    if facts.is_move_unfinished && rule != RuleId::UnfinishedMove {
        return Sentences::new(summary).say(
            "A move on this disk has not ended, so do not change its label: run `plumb fix status` for the disk, then end the \
             move with `plumb fix resume` or `plumb fix rollback`.",
        );
    }
    Sentences::new(summary).and(remedy(rule, facts).map(str::to_owned))
}

fn remedy(rule: RuleId, facts: &NoticedProblem) -> Option<&'static str> {
    Some(match rule {
        RuleId::BrokenLabel if has_one_copy(facts) => {
            "Such a label has no second copy: save its sectors, find out where the partitions truly are, and let no tool write \
             the label before that."
        }
        RuleId::BrokenLabel => {
            "Plumb read the good copy, if there is one. Save both copies, then let a label tool write the bad one again, and \
             do not change the label before that."
        }
        RuleId::StrandedBackupLabel => {
            "The disk has grown, or was copied to a larger one. No partition moves when the backup of the label goes to the end."
        }
        RuleId::BeyondDevice => {
            "Do not mount or grow anything on it: find out whether the device shrank, another one took its place, or the \
             dumps are of different days."
        }
        RuleId::Contradiction => {
            "Either a dump is of another host or another day, or a device changed in between: collect all of them again, at \
             once."
        }
        RuleId::OverlappingPartitions => {
            "Mount neither: a write to one destroys data of the other. Copy both, keep the one that is whole, and create the \
             other again elsewhere."
        }
        RuleId::UnfinishedMove => {
            "Its data are in part at the old place and in part at the new one, so neither create a file system there nor \
             change the label: `plumb fix status` for the disk tells how far it came, and `plumb fix resume` or `plumb fix \
             rollback` ends it."
        }
        RuleId::SectorSizeMismatch => {
            "Attach the disk with the sectors that its label is for, or write the label again with numbers for these sectors."
        }
        RuleId::BrokenSuperblock => {
            "Copy the device before a tool repairs it, and try on the copy."
        }
        RuleId::HiddenSectors => {
            "Only booting depends on it: leave it if nothing boots from there."
        }
        RuleId::AshiftBelowBlock => "A vdev keeps its ashift: a new pool takes a new one.",
        _ => return None,
    })
}

/// An MBR and the chain of its logical partitions are on a disk once.
fn has_one_copy(facts: &NoticedProblem) -> bool {
    matches!(&facts.source, Source::OnDisk { format } if format == "MBR")
}
