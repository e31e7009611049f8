//! One layer of a stack, and how it places its bytes on those below.

use plumb_geometry::{Bytes, ParityLayout, gcd};
use serde::{Deserialize, Serialize};

use crate::graph::NodeId;
use crate::grid::{GridFact, Source};
pub use crate::node_facts::{Fact, FactKey, NodeFacts, keys};
use crate::obstacle::Obstacle;
use crate::problem_ids::ProblemId;

/// The kind of a layer.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Named by somebody, described by nobody.
    #[default]
    Unknown,
    /// A drive, or a LUN that looks like one.
    Disk,
    /// A disk of a hypervisor or a cloud: the layers below are not visible from here.
    VirtualDisk,
    /// One way to a disk that has several.
    Path,
    /// Several paths joined.
    Multipath,
    /// A partition or slice.
    Partition,
    /// An extent cut out by a volume manager.
    SoftPartition,
    /// Members one after the other.
    Concat,
    /// Members in turn, chunk by chunk.
    Stripe,
    /// Copies.
    Mirror,
    /// Chunks with parity.
    ParityRaid,
    /// An encrypted volume.
    Crypt,
    /// A volume with a cache in front.
    Cache,
    /// Blocks that thin volumes take as they need them.
    ThinPool,
    /// A volume whose blocks come out of a pool.
    ThinVolume,
    /// A logical volume.
    LogicalVolume,
    /// A file shown as a disk.
    Loop,
    /// The disk that a guest sees in a file of a virtual disk.
    ImageDisk,
    /// Memory shown as a disk.
    Ram,
    /// An export of a target to other hosts: a LUN or an NVMe namespace, on a device or file of this one.
    Export,
    /// A pool of ZFS or btrfs: many devices, own placement.
    Pool,
    /// A file system.
    FileSystem,
    /// A data set or volume of ZFS.
    Dataset,
    /// A file.
    File,
    /// Space for paging.
    Swap,
}

impl Kind {
    /// The words used in output.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Kind::Unknown => "unknown",
            Kind::Disk => "disk",
            Kind::VirtualDisk => "virtual disk",
            Kind::Path => "path",
            Kind::Multipath => "multipath",
            Kind::Partition => "partition",
            Kind::SoftPartition => "soft partition",
            Kind::Concat => "concatenation",
            Kind::Stripe => "stripe",
            Kind::Mirror => "mirror",
            Kind::ParityRaid => "parity RAID",
            Kind::Crypt => "encrypted volume",
            Kind::Cache => "cached volume",
            Kind::ThinPool => "thin pool",
            Kind::ThinVolume => "thin volume",
            Kind::LogicalVolume => "logical volume",
            Kind::Loop => "loop device",
            Kind::ImageDisk => "virtual disk in a file",
            Kind::Ram => "memory",
            Kind::Export => "export",
            Kind::Pool => "pool",
            Kind::FileSystem => "file system",
            Kind::Dataset => "data set",
            Kind::File => "file",
            Kind::Swap => "swap",
        }
    }

    /// Whether bytes end here, on something that has sectors of its own.
    #[must_use]
    pub const fn is_leaf(self) -> bool {
        matches!(self, Kind::Disk | Kind::VirtualDisk | Kind::Ram)
    }
}

/// A device that a layer is built of, and the start of its data there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Member {
    /// The device.
    pub node: NodeId,
    /// First byte of data on it.
    #[serde(rename = "start_bytes")]
    pub start: Bytes,
}

/// A contiguous run of bytes of a layer on a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Part {
    /// First byte of the run in the layer.
    #[serde(rename = "upper_bytes")]
    pub upper: Bytes,
    /// The device.
    pub node: NodeId,
    /// First byte of the run on it.
    #[serde(rename = "start_bytes")]
    pub start: Bytes,
    /// Length of the run, if known.
    #[serde(rename = "len_bytes")]
    pub len: Option<Bytes>,
}

/// Chunks laid on members in turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Chunks {
    /// Length of a chunk.
    #[serde(rename = "chunk_bytes")]
    pub chunk: Bytes,
    /// The members in order.
    pub members: Vec<Member>,
    /// Chunks of parity in each stripe: 0, 1 or 2 (3 for RAID-Z3).
    pub parity: u32,
    /// Copies of each chunk: 1, or more for RAID 10.
    pub copies: u32,
    /// How parity moves, where it does.
    pub layout: Option<ParityLayout>,
}

impl Chunks {
    /// As [`data_chunks`]; at least 1.
    #[must_use]
    pub fn data_chunks(&self) -> u64 {
        let members = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        data_chunks(members, self.parity, self.copies).unwrap_or(1)
    }

    /// Bytes of data in a stripe: its true width, independent of hints.
    #[must_use]
    pub fn stripe_bytes(&self) -> Option<Bytes> {
        self.chunk.checked_mul(self.data_chunks())
    }
}

/// Chunks of data, neither parity nor copies, after which a stripe begins again on its first member. If copies do not
/// divide the members, as two over five, that takes several rows, and the hints of the kernel count them as well.
/// `None` if nothing is left for data.
#[must_use]
pub fn data_chunks(members: u32, parity: u32, copies: u32) -> Option<u64> {
    if copies == 0 || copies > members {
        return None;
    }
    if parity == 0 {
        return Some(u64::from(members) / gcd(u64::from(members), u64::from(copies)));
    }
    // Copies of an array with parity are whole arrays.
    let data = (members / copies)
        .checked_sub(parity)
        .filter(|data| *data > 0);
    data.filter(|_| members.is_multiple_of(copies))
        .map(u64::from)
}

/// How a layer places its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Placing {
    /// Nothing is known to be below.
    #[default]
    Leaf,
    /// In runs, one after the other: partitions, linear volumes, soft partitions, concatenations.
    Parts {
        /// By their place in the layer.
        parts: Vec<Part>,
    },
    /// In chunks over the members.
    Chunks(Chunks),
    /// All on each of the members: mirrors, and the paths to one disk.
    Copies {
        /// The members.
        members: Vec<Member>,
    },
    /// In blocks anywhere on one member, each at a multiple of its length from `start` on: thin volumes, cached
    /// volumes, sparse virtual disks.
    Blocks {
        /// Length of a block.
        #[serde(rename = "block_bytes")]
        block: Bytes,
        /// The origin of the count of blocks.
        member: Member,
    },
    /// On these members in a way that is not known, for this reason.
    Unknown {
        /// The members.
        members: Vec<NodeId>,
        /// Why it is not known.
        why: Obstacle,
    },
}

impl Placing {
    /// The devices below, in order, each once.
    #[must_use]
    pub fn below(&self) -> Vec<NodeId> {
        let mut below: Vec<NodeId> = match self {
            Placing::Leaf => Vec::new(),
            Placing::Parts { parts } => parts.iter().map(|part| part.node).collect(),
            Placing::Chunks(Chunks { members, .. }) | Placing::Copies { members } => {
                members.iter().map(|member| member.node).collect()
            }
            Placing::Blocks { member, .. } => vec![member.node],
            Placing::Unknown { members, .. } => members.clone(),
        };
        let mut seen = std::collections::HashSet::new();
        below.retain(|node| seen.insert(*node));
        below
    }

    /// Gives the devices below other numbers.
    pub(crate) fn renumber(&mut self, new: impl Fn(NodeId) -> NodeId) {
        match self {
            Placing::Leaf => {}
            Placing::Parts { parts } => {
                parts.iter_mut().for_each(|part| part.node = new(part.node))
            }
            Placing::Chunks(Chunks { members, .. }) | Placing::Copies { members } => members
                .iter_mut()
                .for_each(|member| member.node = new(member.node)),
            Placing::Blocks { member, .. } => member.node = new(member.node),
            Placing::Unknown { members, .. } => {
                members.iter_mut().for_each(|member| *member = new(*member));
            }
        }
    }
}

/// Something about a node that is not as it should be, seen while reading: a broken label, sources that contradict
/// each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The node, if it is about one.
    pub node: Option<NodeId>,
    /// The kind of problem.
    pub id: ProblemId,
    /// One sentence.
    pub text: String,
    /// Its source.
    pub source: Source,
}

/// One layer; see the module.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Node {
    /// Its name on its host, without the directories of device nodes: `sda1`, `d12`, `vg0/data`; after its host's name
    /// if several hosts were read together.
    pub name: String,
    /// Other names of the same.
    pub aliases: Vec<String>,
    /// The host that precedes its name, if several were read together: `web1` of `web1:sda1`.
    pub host: Option<String>,
    /// Its kind.
    pub kind: Kind,
    /// Its size, if known.
    #[serde(rename = "size_bytes")]
    pub size: Option<Bytes>,
    /// The placement of its bytes, with the source.
    pub placing: Placing,
    /// The source of the placement.
    pub placed_by: Option<Source>,
    /// Whether it is a disk of a guest that was joined with its device on the host.
    pub is_joined: bool,
    /// Grids in its own address space, those that are not believed as well.
    pub grids: Vec<GridFact>,
    /// Other facts.
    pub facts: NodeFacts,
    /// The reason why the layers below are unknown, if there must be some.
    pub opaque: Option<Obstacle>,
}

impl Node {
    /// Whether it is a virtual disk with known layers below: then those count, and not its own statements.
    #[must_use]
    pub fn is_seen_through(&self) -> bool {
        self.is_joined || self.kind == Kind::VirtualDisk && !self.placing.below().is_empty()
    }

    /// Whether it is read as a disk, by its own facts: a file is if something was found in it, even if nothing is above
    /// that, as on a physical volume without volumes.
    #[must_use]
    pub(crate) fn is_read_as_disk(&self) -> bool {
        self.kind != Kind::File || self.opaque.is_none() && self.fact(keys::CONTENT).is_some()
    }

    /// Its name on its own host.
    #[must_use]
    pub fn own_name(&self) -> &str {
        let own = self
            .host
            .as_ref()
            .and_then(|host| self.name.strip_prefix(host.as_str())?.strip_prefix(':'));
        own.unwrap_or(&self.name)
    }

    /// A fact with its source.
    #[must_use]
    pub fn fact<T>(&self, key: FactKey<T>) -> Option<&Fact<T>> {
        self.facts.get(key)
    }

    /// The value of a fact.
    #[must_use]
    pub fn value<T>(&self, key: FactKey<T>) -> Option<&T> {
        self.fact(key).map(|fact| &fact.value)
    }

    /// The value of a fact that is a number, a length or a flag.
    #[must_use]
    pub fn number<T: Copy>(&self, key: FactKey<T>) -> Option<T> {
        self.value(key).copied()
    }

    /// The value of a fact that is text.
    #[must_use]
    pub fn word(&self, key: FactKey<String>) -> Option<&str> {
        self.value(key).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::data_chunks;

    /// Chunk k of the data has its copies on members k·copies and on, counted around: it begins again on the first one
    /// with the first k that is a multiple of them all.
    #[test]
    fn copies_that_do_not_come_out_even_take_several_rows() {
        for (members, copies) in
            (1..12).flat_map(|members| (1..=members).map(move |copies| (members, copies)))
        {
            let searched = (1..=members)
                .find(|chunk| chunk * copies % members == 0)
                .map(u64::from);
            assert_eq!(
                data_chunks(members, 0, copies),
                searched,
                "{members} {copies}"
            );
        }
    }

    #[test]
    fn parity_is_no_data() {
        for (members, parity, copies, data) in [
            (3, 1, 1, Some(2)),
            (6, 2, 1, Some(4)),
            (6, 1, 2, Some(2)),
            (2, 2, 1, None),
            (5, 1, 2, None),
            (1, 0, 2, None),
        ] {
            assert_eq!(
                data_chunks(members, parity, copies),
                data,
                "{members} {parity} {copies}"
            );
        }
    }
}
