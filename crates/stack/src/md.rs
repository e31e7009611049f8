//! The meaning of md's words and numbers, from any source: the kernel, a tool, or a superblock.

use plumb_geometry::{Bytes, ParityLayout};

use crate::node::{Chunks, Kind, Member, Part, Placing};
use crate::obstacle::Obstacle;

/// The kind of a level; chunks of parity if it has any.
pub(crate) fn kind_of(level: &str) -> Option<(Kind, u32)> {
    Some(match level {
        "raid0" | "raid10" => (Kind::Stripe, 0),
        "raid1" => (Kind::Mirror, 0),
        "raid4" | "raid5" => (Kind::ParityRaid, 1),
        "raid6" => (Kind::ParityRaid, 2),
        "linear" => (Kind::Concat, 0),
        _ => return None,
    })
}

/// The numbers of `drivers/md/raid5.h`.
pub(crate) fn layout_of(number: u32) -> Option<ParityLayout> {
    Some(match number {
        0 => ParityLayout::LeftAsymmetric,
        1 => ParityLayout::RightAsymmetric,
        2 => ParityLayout::LeftSymmetric,
        3 => ParityLayout::RightSymmetric,
        _ => return None,
    })
}

/// Near copies in the low byte of RAID 10's number, far ones in the next.
pub(crate) fn copies_of(number: u32) -> u32 {
    (number & 0xff).max(1) * (number >> 8 & 0xff).max(1)
}

/// An array whose members are known.
pub(crate) struct Array<'a> {
    pub(crate) level: &'a str,
    /// None of 0.
    pub(crate) chunk: Option<Bytes>,
    /// How parity moves, where the level has any that does.
    pub(crate) layout: Option<ParityLayout>,
    /// Copies, if it is RAID 10.
    pub(crate) copies: u32,
    /// Members by slot, each with its own share of the array, which linear ones need.
    pub(crate) members: Vec<(Member, Option<Bytes>)>,
}

impl Array<'_> {
    /// How it places its bytes; `no_share` where the share of a member is not known.
    pub(crate) fn place(self, no_share: Obstacle) -> Result<Placing, Obstacle> {
        let Some((kind, parity)) = kind_of(self.level) else {
            return Err(Obstacle::UnknownLevel {
                level: self.level.to_owned(),
            });
        };
        if kind == Kind::Concat {
            return concat(&self.members, no_share);
        }
        let members: Vec<Member> = self.members.into_iter().map(|(member, _)| member).collect();
        if kind == Kind::Mirror {
            return Ok(Placing::Copies { members });
        }
        let chunk = self.chunk.ok_or(Obstacle::NoChunk)?;
        let copies = if self.level == "raid10" {
            self.copies
        } else {
            1
        };
        // RAID 4 keeps its parity on one disk, with any stated layout.
        let layout = self
            .layout
            .filter(|_| matches!(self.level, "raid5" | "raid6"));
        Ok(Placing::Chunks(Chunks {
            chunk,
            members,
            parity,
            copies,
            layout,
        }))
    }
}

fn concat(members: &[(Member, Option<Bytes>)], no_share: Obstacle) -> Result<Placing, Obstacle> {
    let (mut upper, mut parts) = (Bytes(0), Vec::new());
    for (member, len) in members {
        let len = len.ok_or_else(|| no_share.clone())?;
        parts.push(Part {
            upper,
            node: member.node,
            start: member.start,
            len: Some(len),
        });
        upper = upper
            .checked_add(len)
            .ok_or(Obstacle::Beyond64Bits { source: None })?;
    }
    Ok(Placing::Parts { parts })
}
