//! The senders of a window's I/O: command and cgroup.

use std::collections::BTreeMap;

use plumb_geometry::SmallSort;
use plumb_profile::top::ProcessShare;
use serde::{Deserialize, Serialize};

/// Senders that a record keeps; the others are summed.
pub const SENDERS_MAX: usize = 16;

/// Senders that an open window keeps apart; the surplus is summed.
const OPEN_MAX: usize = 1024;

/// Longest command and cgroup, in bytes. The paths of pods within containers have more than 300.
const COMMAND_MAX: usize = 256;
const CGROUP_MAX: usize = 1024;

/// A sender of I/O.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sender {
    /// Name of the process, as the kernel has it.
    pub command: String,
    /// Its cgroup (systemd unit, pod, id of a virtual machine); empty if unknown.
    pub cgroup: String,
}

/// I/O by sender.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Senders {
    known: BTreeMap<Sender, ProcessShare>,
    others: ProcessShare,
}

impl Senders {
    /// Adds the I/O of a sender.
    pub fn add(&mut self, sender: Sender, share: ProcessShare) {
        let sender = Sender {
            command: cut(sender.command),
            // A part of a path would name another owner.
            cgroup: Some(sender.cgroup)
                .filter(|path| path.len() <= CGROUP_MAX)
                .unwrap_or_default(),
        };
        if self.known.len() >= OPEN_MAX && !self.known.contains_key(&sender) {
            add(&mut self.others, share);
            return;
        }
        add(self.known.entry(sender).or_default(), share);
    }

    /// Adds another list.
    pub fn merge(&mut self, other: &Senders) {
        for (sender, share) in &other.known {
            self.add(sender.clone(), *share);
        }
        add(&mut self.others, other.others);
    }

    /// The senders with the most I/O, those first.
    #[must_use]
    pub fn largest(&self) -> Vec<(&Sender, ProcessShare)> {
        let mut list: Vec<_> = self.known.iter().map(|(of, share)| (of, *share)).collect();
        list.small_sort_by_key(|(_, share)| std::cmp::Reverse(share.ios));
        list
    }

    /// I/O of senders that are not listed: counts of listed senders are lower bounds if it is not zero.
    #[must_use]
    pub fn others(&self) -> ProcessShare {
        self.others
    }

    /// Whether no I/O was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty() && self.others == ProcessShare::default()
    }

    /// The list that a record keeps.
    #[must_use]
    pub(crate) fn reduced(&self) -> Senders {
        let mut reduced = Senders {
            others: self.others,
            ..Senders::default()
        };
        for (at, (sender, share)) in self.largest().into_iter().enumerate() {
            if at < SENDERS_MAX {
                reduced.known.insert(sender.clone(), share);
            } else {
                add(&mut reduced.others, share);
            }
        }
        reduced
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.known.len() <= OPEN_MAX
            && self
                .known
                .keys()
                .all(|of| of.command.len() <= COMMAND_MAX && of.cgroup.len() <= CGROUP_MAX)
    }
}

fn add(to: &mut ProcessShare, share: ProcessShare) {
    to.ios = to.ios.saturating_add(share.ios);
    to.bytes = to.bytes.saturating_add(share.bytes);
}

fn cut(mut text: String) -> String {
    if text.len() > COMMAND_MAX {
        text.truncate(text.floor_char_boundary(COMMAND_MAX));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(ios: u64) -> ProcessShare {
        ProcessShare {
            ios,
            bytes: ios * 512,
        }
    }

    #[test]
    fn a_record_keeps_the_largest_and_the_sum() {
        let mut senders = Senders::default();
        for number in 1..=40u64 {
            let sender = Sender {
                command: format!("worker{number}"),
                cgroup: String::new(),
            };
            senders.add(sender, share(number));
        }
        let reduced = senders.reduced();
        let kept: Vec<u64> = reduced.largest().iter().map(|(_, of)| of.ios).collect();
        assert_eq!(kept, (25..=40).rev().collect::<Vec<u64>>());
        assert_eq!(reduced.others(), share((1..=24).sum()));
    }

    #[test]
    fn long_names_end_at_a_letter() {
        let mut senders = Senders::default();
        let sender = Sender {
            command: "ä".repeat(300),
            cgroup: String::new(),
        };
        senders.add(sender, share(1));
        assert_eq!(senders.largest()[0].0.command, "ä".repeat(128));
        assert!(senders.is_bounded());
    }
}
