//! Arrays, put together from their members' superblocks.

use plumb_geometry::{Bytes, ParityLayout};

use super::{Superblock, shown};
use crate::builder::Builder;
use crate::dm_table::missing;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::{Chunks, Kind, Member, Part, Placing, keys};
use crate::ondisk::nodes;

/// The members of one array that were seen.
#[derive(Debug)]
pub(crate) struct Array {
    members: Vec<(NodeId, Superblock)>,
}

impl Array {
    pub(crate) fn new() -> Array {
        Array { members: Vec::new() }
    }

    pub(crate) fn add(&mut self, node: NodeId, superblock: Superblock) {
        self.members.push((node, superblock));
    }

    /// Makes the array's node, or adds to the one that is known already.
    pub(crate) fn tell(&self, builder: &mut Builder) {
        // The member that was written last knows best.
        let Some((_, newest)) = self.members.iter().max_by_key(|(_, superblock)| superblock.events) else {
            return;
        };
        let source = Source::OnDisk { format: format!("md {}", newest.version) };
        let below: Vec<NodeId> = self.members.iter().map(|(node, _)| *node).collect();
        let known = nodes::above_with(builder, &below, |node| node.word(keys::MANAGER) == Some("md"));
        let id = known.unwrap_or_else(|| builder.node(&name(newest)));
        builder.alias(id, &format!("md-uuid-{}", shown(newest.uuid)));
        builder.fact(id, keys::MANAGER, "md", &source);
        builder.fact(id, keys::METADATA, newest.version, &source);
        let Some(level) = newest.level_word() else {
            let why = format!("the level {} is not known", newest.level);
            return builder.place(id, Placing::Unknown { members: below, why }, &source);
        };
        builder.fact(id, keys::LEVEL, level, &source);
        builder.kind(id, kind(newest.level), &source);
        let placing = match self.placing(builder, id, newest) {
            Ok(placing) => placing,
            Err(why) => Placing::Unknown { members: below, why },
        };
        builder.place(id, placing, &source);
    }

    fn placing(&self, builder: &mut Builder, id: NodeId, newest: &Superblock) -> Result<Placing, String> {
        if newest.is_reshaping {
            return Err("the array is being reshaped".to_owned());
        }
        let mut members = Vec::new();
        for role in 0..newest.disks {
            let mut seen = self.members.iter().filter(|(_, one)| one.role == Some(role));
            // A member that was left behind has the same place and fewer events.
            let found = seen.by_ref().max_by_key(|(_, one)| one.events);
            members.push(match found {
                Some((node, one)) => {
                    (Member { node: *node, start: Bytes(one.data_start) }, Some(one.data_len))
                }
                None => (Member { node: missing(builder, id, role as usize), start: Bytes(0) }, None),
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
        // mdadm names by number what it was given no name for.
        (None, plain) if plain.bytes().all(|byte| byte.is_ascii_digit()) => format!("md{plain}"),
        (None, plain) => format!("md/{plain}"),
    }
}

fn kind(level: i32) -> Kind {
    match level {
        -1 => Kind::Concat,
        1 => Kind::Mirror,
        4..=6 => Kind::ParityRaid,
        _ => Kind::Stripe,
    }
}

fn place(array: &Superblock, members: Vec<(Member, Option<u64>)>) -> Result<Placing, String> {
    if array.level == -1 {
        return concat(&members);
    }
    let members: Vec<Member> = members.into_iter().map(|(member, _)| member).collect();
    if array.level == 1 {
        return Ok(Placing::Copies { members });
    }
    if array.chunk == 0 || members.is_empty() {
        return Err("the array states no chunk".to_owned());
    }
    let (parity, copies) = match array.level {
        4 | 5 => (1, 1),
        6 => (2, 1),
        10 => (0, (array.layout & 0xff).max(1) * (array.layout >> 8 & 0xff).max(1)),
        _ => (0, 1),
    };
    let layout = if matches!(array.level, 5 | 6) { layout(array.layout) } else { None };
    Ok(Placing::Chunks(Chunks { chunk: Bytes(array.chunk), members, parity, copies, layout }))
}

fn concat(members: &[(Member, Option<u64>)]) -> Result<Placing, String> {
    let mut upper = Bytes(0);
    let mut parts = Vec::new();
    for (member, len) in members {
        let len = Bytes(len.ok_or("a member is missing, so its length is not known")?);
        parts.push(Part { upper, node: member.node, start: member.start, len: Some(len) });
        upper = upper.checked_add(len).ok_or("members longer than 2^64 bytes")?;
    }
    Ok(Placing::Parts { parts })
}

/// The numbers of the kernel's `drivers/md/raid5.h`.
fn layout(number: u32) -> Option<ParityLayout> {
    Some(match number {
        0 => ParityLayout::LeftAsymmetric,
        1 => ParityLayout::RightAsymmetric,
        2 => ParityLayout::LeftSymmetric,
        3 => ParityLayout::RightSymmetric,
        _ => return None,
    })
}
