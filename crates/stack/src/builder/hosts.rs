//! Several hosts in one graph: each keeps its own names, and a disk of a guest is joined with its device on the host.
//!
//! Below a virtual disk a guest sees nothing. Joined with the host's device, file or volume, its bytes can be followed
//! further. Both must have one size, because they have the same bytes, one to one.

use std::collections::HashSet;

use plumb_geometry::{Bytes, group_digits};
use thiserror::Error;

use super::{Builder, device_name};
use crate::graph::{HOST, NodeId};
use crate::grid::{Belief, Source};
use crate::node::{Kind, Node, Part, Placing, Problem};
use crate::obstacle::GridDoubt;
use crate::overlaps::Overlap;

/// Why a disk is not put on a device.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JoinError {
    /// They cannot be the same bytes.
    #[error(
        "{disk}: found {} bytes, expected {}, the length of {below}",
        group_digits(found.0),
        group_digits(expected.0)
    )]
    Size {
        /// The disk of the guest.
        disk: String,
        /// Its size.
        found: Bytes,
        /// The device of its host.
        below: String,
        /// The size of that.
        expected: Bytes,
    },
    /// The layer below is known already, or the node is not a disk.
    #[error("{disk}: found a {found}, expected a disk with nothing known below")]
    NotADisk {
        /// The disk of the guest.
        disk: String,
        /// Its kind.
        found: &'static str,
    },
    /// It is joined with another device already.
    #[error("{disk}: found it on {known} already, expected it on {below}")]
    Joined {
        /// The disk of the guest.
        disk: String,
        /// The device that it is already joined with.
        known: String,
        /// The device of the new join.
        below: String,
    },
    /// The device of the join is above the disk.
    #[error("{below}: found it above {disk}, expected a device that can be below {disk}")]
    Cycle {
        /// The disk of the guest.
        disk: String,
        /// The device of its host.
        below: String,
    },
    /// A host does not run on itself.
    #[error(
        "{disk} and {below}: found devices of one host, expected one of a guest and one of its host"
    )]
    OneHost {
        /// The disk of the guest.
        disk: String,
        /// The device of its host.
        below: String,
    },
}

impl Builder {
    /// Takes over all facts of another builder, under this host name: a device is then `HOST:sda`. Links that exist
    /// only in its dumps must be connected before. Facts of that host as a whole are left out.
    pub fn absorb(&mut self, other: Builder, host: &str) {
        let mut ids = Vec::with_capacity(other.nodes.len());
        let mut next = self.nodes.len() as u32;
        for node in &other.nodes {
            ids.push(NodeId(next));
            next += u32::from(node.name != HOST);
        }
        let name_of = |name: &str| format!("{host}:{name}");
        for node in other.nodes.into_iter().filter(|node| node.name != HOST) {
            let placing = moved(node.placing, &ids);
            let aliases = node.aliases.iter().map(|alias| name_of(alias)).collect();
            let (name, host) = (name_of(&node.name), Some(host.to_owned()));
            self.nodes.push(Node {
                name,
                aliases,
                host,
                placing,
                ..node
            });
        }
        let names = other.names.into_iter().filter(|(name, _)| name != HOST);
        self.names
            .extend(names.map(|(name, id)| (name_of(&name), ids[id.at()])));
        self.with_label
            .extend(other.with_label.iter().map(|id| ids[id.at()]));
        self.overlaps
            .extend(other.overlaps.into_iter().map(|overlap| Overlap {
                one: ids[overlap.one.at()],
                other: ids[overlap.other.at()],
                ..overlap
            }));
        self.problems
            .extend(other.problems.into_iter().map(|problem| Problem {
                node: problem.node.map(|id| ids[id.at()]),
                text: format!("{host}: {}", problem.text),
                ..problem
            }));
        for note in other.notes {
            self.note(format!("{host}: {note}"));
        }
    }

    /// The node of a name on one of the hosts: `None` stands for the one whose names are as they are.
    #[must_use]
    pub fn find_on(&self, host: Option<&str>, name: &str) -> Option<NodeId> {
        match host {
            None => self.find(name),
            Some(host) => self
                .names
                .get(&format!("{host}:{}", device_name(name)))
                .copied(),
        }
    }

    /// Joins a disk of a guest with its device on the host. The disk's own statements come from its hypervisor, and are
    /// no longer believed.
    ///
    /// # Errors
    /// When the two cannot be the same bytes, or more is known of the disk; nothing is changed then.
    pub fn join(&mut self, disk: NodeId, below: NodeId, source: &Source) -> Result<(), JoinError> {
        let (upper, lower) = (self.get(disk), self.get(below));
        let (name, lower_name) = (upper.name.clone(), lower.name.clone());
        if upper.host == lower.host {
            return Err(JoinError::OneHost {
                disk: name,
                below: lower_name,
            });
        }
        if upper.is_joined {
            let known = upper.placing.below().first().copied();
            if known == Some(below) {
                return Ok(());
            }
            let known = known
                .map(|known| self.get(known).name.clone())
                .unwrap_or_default();
            return Err(JoinError::Joined {
                disk: name,
                known,
                below: lower_name,
            });
        }
        if self.stands_on(below, disk) {
            return Err(JoinError::Cycle {
                disk: name,
                below: lower_name,
            });
        }
        let is_disk = matches!(
            upper.kind,
            Kind::Disk | Kind::VirtualDisk | Kind::Path | Kind::Unknown
        );
        if !is_disk || upper.placing != Placing::Leaf {
            return Err(JoinError::NotADisk {
                disk: name,
                found: upper.kind.text(),
            });
        }
        let size = match (upper.size, lower.size) {
            (Some(found), Some(expected)) if found != expected => {
                return Err(JoinError::Size {
                    disk: name,
                    found,
                    below: lower_name,
                    expected,
                });
            }
            (found, expected) => found.or(expected),
        };
        let part = Part {
            upper: Bytes(0),
            node: below,
            start: Bytes(0),
            len: size,
        };
        let node = &mut self.nodes[disk.at()];
        node.placing = Placing::Parts { parts: vec![part] };
        node.placed_by = Some(source.clone());
        node.is_joined = true;
        node.opaque = None;
        if matches!(node.kind, Kind::Disk | Kind::Unknown) {
            node.kind = Kind::VirtualDisk;
        }
        let stated = node.grids.iter_mut().filter(|fact| {
            let is_given = matches!(fact.source, Source::User | Source::Catalogue { .. });
            fact.what.decides() && fact.is_believed() && !is_given
        });
        for fact in stated {
            let why = GridDoubt::StatedByVirtualDisk {
                made_of: lower_name.clone(),
            };
            fact.belief = Belief::Doubted { why };
        }
        Ok(())
    }
}

impl Builder {
    /// Whether a node is among the layers below another, or that one itself.
    fn stands_on(&self, upper: NodeId, lower: NodeId) -> bool {
        let (mut seen, mut next) = (HashSet::from([upper]), vec![upper]);
        while let Some(id) = next.pop() {
            if id == lower {
                return true;
            }
            next.extend(
                self.get(id)
                    .placing
                    .below()
                    .into_iter()
                    .filter(|below| seen.insert(*below)),
            );
        }
        false
    }
}

/// A placing on nodes that have other numbers now.
fn moved(mut placing: Placing, ids: &[NodeId]) -> Placing {
    let new = |id: &mut NodeId| *id = ids[id.at()];
    match &mut placing {
        Placing::Leaf => {}
        Placing::Parts { parts } => parts.iter_mut().for_each(|part| new(&mut part.node)),
        Placing::Chunks(chunks) => chunks
            .members
            .iter_mut()
            .for_each(|member| new(&mut member.node)),
        Placing::Copies { members } => members.iter_mut().for_each(|member| new(&mut member.node)),
        Placing::Blocks { member, .. } => new(&mut member.node),
        Placing::Unknown { members, .. } => members.iter_mut().for_each(new),
    }
    placing
}
