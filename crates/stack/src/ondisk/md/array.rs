//! Arrays, put together from their members' superblocks.

use plumb_geometry::Bytes;

use super::{Superblock, shown};
use crate::builder::Builder;
use crate::dm_table::missing;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::md;
use crate::node::{Member, Placing, keys};
use crate::node_facts::VolumeManager;
use crate::obstacle::Obstacle;
use crate::ondisk::nodes;

/// The members of one array that were seen.
#[derive(Debug)]
pub(crate) struct ArrayMembers {
    members: Vec<(NodeId, Superblock)>,
}

impl ArrayMembers {
    pub(crate) fn new() -> ArrayMembers {
        ArrayMembers {
            members: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, node: NodeId, superblock: Superblock) {
        self.members.push((node, superblock));
    }

    /// Makes the array's node, or adds to the one that is known already.
    pub(crate) fn tell(&self, builder: &mut Builder) {
        // The member that was written last knows best.
        let Some((_, newest)) = self
            .members
            .iter()
            .max_by_key(|(_, superblock)| superblock.events)
        else {
            return;
        };
        let source = Source::OnDisk {
            format: format!("md {}", newest.version),
        };
        let below: Vec<NodeId> = self.members.iter().map(|(node, _)| *node).collect();
        let known = nodes::above_with(builder, &below, |node| {
            node.value(keys::MANAGER) == Some(&VolumeManager::Md)
        });
        let id = known.unwrap_or_else(|| builder.node(&name(newest)));
        builder.alias(id, &format!("md-uuid-{}", shown(newest.uuid)));
        builder.fact(id, keys::MANAGER, "md", &source);
        builder.fact(id, keys::METADATA, newest.version, &source);
        let Some(level) = newest.level_word() else {
            let why = Obstacle::UnknownLevel {
                level: newest.level.to_string(),
            };
            return builder.place(
                id,
                Placing::Unknown {
                    members: below,
                    why,
                },
                &source,
            );
        };
        builder.fact(id, keys::LEVEL, level, &source);
        if let Some((kind, _)) = md::kind_of(level) {
            builder.kind(id, kind, &source);
        }
        let placing = match self.placing(builder, id, newest) {
            Ok(placing) => placing,
            Err(why) => Placing::Unknown {
                members: below,
                why,
            },
        };
        builder.place(id, placing, &source);
    }

    fn placing(
        &self,
        builder: &mut Builder,
        id: NodeId,
        newest: &Superblock,
    ) -> Result<Placing, Obstacle> {
        if newest.is_reshaping {
            return Err(Obstacle::Reshaping { sector: None });
        }
        let mut members = Vec::new();
        for role in 0..newest.disks {
            let mut seen = self
                .members
                .iter()
                .filter(|(_, one)| one.role == Some(role));
            // A member that was left behind has the same place and fewer events.
            let found = seen.by_ref().max_by_key(|(_, one)| one.events);
            members.push(match found {
                Some((node, one)) => (
                    Member {
                        node: *node,
                        start: Bytes(one.data_start),
                    },
                    Some(one.data_len),
                ),
                None => (
                    Member {
                        node: missing(builder, id, role as usize),
                        start: Bytes(0),
                    },
                    None,
                ),
            });
        }
        place(newest, members)
    }
}

/// `host:name` is made on one host and may be seen on another: the name alone.
fn name(superblock: &Superblock) -> String {
    let plain = superblock.name.rsplit(':').next().unwrap_or_default();
    match (superblock.minor, plain) {
        (Some(minor), _) => format!("md{minor}"),
        (None, "") => format!("md-uuid-{}", shown(superblock.uuid)),
        // mdadm numbers arrays without a name.
        (None, plain) if plain.bytes().all(|byte| byte.is_ascii_digit()) => format!("md{plain}"),
        (None, plain) => format!("md/{plain}"),
    }
}

fn place(array: &Superblock, members: Vec<(Member, Option<u64>)>) -> Result<Placing, Obstacle> {
    let array = md::Array {
        level: array.level_word().unwrap_or_default(),
        chunk: Some(Bytes(array.chunk)).filter(|chunk| chunk.0 > 0 && !members.is_empty()),
        layout: md::layout_of(array.layout),
        copies: md::copies_of(array.layout),
        members: members
            .into_iter()
            .map(|(member, len)| (member, len.map(Bytes)))
            .collect(),
    };
    array.place(Obstacle::MissingMemberSize)
}
