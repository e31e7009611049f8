//! One layer of a stack, and how it places its bytes on those below.

use std::collections::BTreeMap;

use plumb_geometry::{Bytes, ParityLayout, gcd};
use serde::{Deserialize, Serialize};

use crate::graph::NodeId;
use crate::grid::{GridFact, Source};
use crate::problem_ids::ProblemId;

/// What a layer is.
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
    /// A disk that a hypervisor or a cloud shows: what is below cannot be seen from here.
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
    /// What a target shows to other hosts: a LUN or an NVMe namespace, on a device or file of this one.
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

/// A device that a layer is built of, and where its data begins there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Member {
    /// The device.
    pub node: NodeId,
    /// First byte of data on it.
    #[serde(rename = "start_bytes")]
    pub start: Bytes,
}

/// A run of bytes of a layer that lies in one piece on a member.
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

    /// Bytes of data in a stripe: its true width, whatever hints say.
    #[must_use]
    pub fn stripe_bytes(&self) -> Option<Bytes> {
        self.chunk.checked_mul(self.data_chunks())
    }
}

/// Chunks of data, neither parity nor copies, after which a stripe begins anew on its first member. Where copies do not
/// come out even, as two over five members, that takes several rows, and the hints of the kernel count them as well.
/// `None` where nothing is left for data.
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
    /// In blocks that lie anywhere on one member, each at a multiple of its length from `start` on: thin volumes,
    /// cached volumes, sparse virtual disks.
    Blocks {
        /// Length of a block.
        #[serde(rename = "block_bytes")]
        block: Bytes,
        /// Where blocks are counted from.
        member: Member,
    },
    /// On these members in a way that is not known, for this reason.
    Unknown {
        /// The members.
        members: Vec<NodeId>,
        /// Why it is not known.
        why: String,
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

/// What somebody noted of a node that is no place and no grid: `level`, `read_policy`, `scheduler`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// The value as the source has it, in base units (bytes, a count, a word).
    pub value: String,
    /// Who said so.
    pub source: Source,
}

/// Something about a node that is not as it should be, seen while reading: a broken label, sources that contradict
/// each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The node, if it is about one.
    pub node: Option<NodeId>,
    /// What kind of problem it is.
    pub id: ProblemId,
    /// One sentence.
    pub text: String,
    /// Where it was seen.
    pub source: Source,
}

/// One layer; see the module.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Node {
    /// As its host calls it, without the directories of device nodes: `sda1`, `d12`, `vg0/data`; behind its host's name
    /// where several were read together.
    pub name: String,
    /// Other names of the same.
    pub aliases: Vec<String>,
    /// The host whose name stands before its own, where several were read together: `web1` of `web1:sda1`.
    pub host: Option<String>,
    /// What it is.
    pub kind: Kind,
    /// Its size, if known.
    #[serde(rename = "size_bytes")]
    pub size: Option<Bytes>,
    /// How it places its bytes, and who said so.
    pub placing: Placing,
    /// Who said how.
    pub placed_by: Option<Source>,
    /// Whether it is a disk of a guest that was put on what its host made it of.
    pub is_joined: bool,
    /// Grids in its own address space, those that are not believed as well.
    pub grids: Vec<GridFact>,
    /// What else is known, by key; keys are listed in [`crate::node::keys`].
    pub facts: BTreeMap<&'static str, Fact>,
    /// Why nothing can be told of what is below, where that is so although something must be there.
    pub opaque: Option<String>,
}

impl Node {
    /// Whether it is a virtual disk of which somebody knows what is below: then that counts, and not what it states.
    #[must_use]
    pub fn is_seen_through(&self) -> bool {
        self.is_joined || self.kind == Kind::VirtualDisk && !self.placing.below().is_empty()
    }

    /// Whether it is read as a disk, as far as it tells itself: a file is where something was found in it, also when nothing
    /// stands on that, as on a physical volume without volumes.
    #[must_use]
    pub(crate) fn is_read_as_disk(&self) -> bool {
        self.kind != Kind::File || self.opaque.is_none() && self.word(keys::CONTENT).is_some()
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

    /// A fact as a number; `None` when absent or none.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        self.facts.get(key)?.value.parse().ok()
    }

    /// A fact as it stands.
    #[must_use]
    pub fn word(&self, key: &str) -> Option<&str> {
        self.facts.get(key).map(|fact| fact.value.as_str())
    }
}

/// Keys of [`Node::facts`]. One place, so that a source and a rule cannot call one thing by two names.
pub mod keys {
    /// What is in a device: `ext4`, `xfs`, `LVM2 PV`, `swap`, `md member`, `zfs member`.
    pub const CONTENT: &str = "content";
    /// Where it is mounted.
    pub const MOUNT: &str = "mount";
    /// Mount options, separated by commas.
    pub const MOUNT_OPTIONS: &str = "mount_options";
    /// Bytes of an I/O that a cloud counts as one operation at most: an account, no grid.
    pub const COUNTED_IO: &str = "counted_io_bytes";
    /// Model of a drive.
    pub const MODEL: &str = "model";
    /// `1` where the drive turns.
    pub const ROTATIONAL: &str = "rotational";
    /// Where in the sequence of a label: 1, 2, … or the slice number.
    pub const PARTITION_NUMBER: &str = "partition_number";
    /// Solaris's number of a slice, from 0. Linux counts the same slice from 1.
    pub const SLICE: &str = "slice";
    /// Kind of label on a disk: `gpt`, `dos`, `sun`, `vtoc`, `efi`.
    pub const LABEL: &str = "label";
    /// Logical block that the addresses of a disk's label count in.
    pub const LABEL_BLOCK: &str = "label_block_bytes";
    /// Where the extended partition of a disk begins: what lies in it may be links between the logical ones.
    pub const EXTENDED_START: &str = "extended_start_bytes";
    /// Tag of a slice, as a number: 2 root, 3 swap, 5 the whole disk, which no other slice overlaps with.
    pub const PARTITION_TAG: &str = "partition_tag";
    /// Flags of a slice: `00`, `01` not mountable, `10` read-only, `11` both.
    pub const PARTITION_FLAGS: &str = "partition_flags";
    /// Sectors of a cylinder, where slices must start at one.
    pub const CYLINDER_SECTORS: &str = "cylinder_sectors";
    /// Level of an array: `raid0`, `raid5`.
    pub const LEVEL: &str = "level";
    /// Metadata version of an array.
    pub const METADATA: &str = "metadata";
    /// Whose layer it is: `md`, `lvm`, `svm`, `vxvm`, `zfs`, `dm`.
    pub const MANAGER: &str = "manager";
    /// Read policy of a mirror: `round-robin`, `geometric`, `first`.
    pub const READ_POLICY: &str = "read_policy";
    /// Order in which a mirror is resynced after a boot.
    pub const RESYNC_PASS: &str = "resync_pass";
    /// Writes of a mirror: `parallel`, `serial`.
    pub const WRITE_POLICY: &str = "write_policy";
    /// Behind the last replica of a volume manager's database on a slice, bytes.
    pub const REPLICAS_END: &str = "replicas_end_bytes";
    /// Area before the data of each column of RAID 5, bytes, where it was computed.
    pub const PREWRITE: &str = "prewrite_bytes";
    /// Alignment offset in bytes as the kernel states it; -1 where it gave up.
    pub const ALIGNMENT_OFFSET: &str = "alignment_offset_bytes";
    /// I/O scheduler in use.
    pub const SCHEDULER: &str = "scheduler";
    /// Read-ahead, bytes.
    pub const READ_AHEAD: &str = "read_ahead_bytes";
    /// Largest request, bytes.
    pub const MAX_REQUEST: &str = "max_request_bytes";
    /// Largest request that the hardware takes, bytes.
    pub const MAX_REQUEST_HARDWARE: &str = "max_request_hardware_bytes";
    /// Requests the queue holds.
    pub const QUEUE_DEPTH: &str = "queue_depth";
    /// `write back` or `write through`.
    pub const WRITE_CACHE: &str = "write_cache";
    /// `none`, `host-aware`, `host-managed`.
    pub const ZONED: &str = "zoned";
    /// Where discards begin, bytes past a boundary of the discard unit; -1 where the kernel gave up.
    pub const DISCARD_ALIGNMENT: &str = "discard_alignment_bytes";
    /// Stripe unit that a file system was told, bytes.
    pub const FS_STRIPE_UNIT: &str = "fs_stripe_unit_bytes";
    /// Stripe width that a file system was told, bytes.
    pub const FS_STRIPE_WIDTH: &str = "fs_stripe_width_bytes";
    /// Block of a file system, bytes.
    pub const FS_BLOCK: &str = "fs_block_bytes";
    /// Sector that a file system was made for, bytes.
    pub const FS_SECTOR: &str = "fs_sector_bytes";
    /// Stripe unit of a file system's log, bytes; 0 for none.
    pub const FS_LOG_STRIPE_UNIT: &str = "fs_log_stripe_unit_bytes";
    /// Node of a file system's trees, bytes.
    pub const FS_NODE: &str = "fs_node_bytes";
    /// First cluster of a file system that counts them from there, bytes.
    pub const FS_DATA_START: &str = "fs_data_start_bytes";
    /// First byte for data of a member, behind what its manager keeps there.
    pub const DATA_START: &str = "data_start_bytes";
    /// Block of a cache, bytes.
    pub const CACHE_BLOCK: &str = "cache_block_bytes";
    /// Start of the volume as the file system on it has noted it, bytes.
    pub const HIDDEN_BYTES: &str = "hidden_bytes";
    /// First extent of a physical volume, bytes.
    pub const PE_START: &str = "pe_start_bytes";
    /// Extent of a volume group, bytes.
    pub const PE_SIZE: &str = "pe_size_bytes";
    /// ZFS: record size of a data set, bytes.
    pub const RECORD_SIZE: &str = "record_size_bytes";
    /// ZFS: block of a volume, bytes.
    pub const VOLUME_BLOCK: &str = "volblocksize_bytes";
    /// ZFS: ashift of a vdev.
    pub const ASHIFT: &str = "ashift";
    /// I/O a second, as somebody counted them.
    pub const IOS_PER_SECOND: &str = "ios_per_second";
    /// Of these, writes a second.
    pub const WRITES_PER_SECOND: &str = "writes_per_second";
    /// Vendor's or kernel's identity of a device, to join paths by; of an export the one that its initiators see:
    /// `naa.…`, `uuid.…`, `eui.…`.
    pub const IDENTITY: &str = "identity";
    /// Host-wide settings, on the node named [`crate::graph::HOST`]: maxphys, bytes.
    pub const MAXPHYS: &str = "maxphys_bytes";
    /// nmd of md.conf.
    pub const NMD: &str = "nmd";
    /// md_nsets of md.conf.
    pub const MD_NSETS: &str = "md_nsets";
    /// md_mirror_wow_flg, as a number.
    pub const MIRROR_WOW: &str = "md_mirror_wow_flg";
    /// segmap_percent.
    pub const SEGMAP_PERCENT: &str = "segmap_percent";
    /// I/O size of metasync, bytes.
    pub const RESYNC_BYTES: &str = "resync_bytes";
    /// Operating system of the host: `linux`, `solaris`.
    pub const SYSTEM: &str = "system";
    /// What shows this device to others, or an export belongs to: `lio`, `iscsi`, `nvmet`, `qemu`.
    pub const EXPORTED_BY: &str = "exported_by";
    /// Identities under which a hypervisor shows this device, as the guest's kernel has them in `wwid`; of a disk of virtio
    /// `smbios.MACHINE.SERIAL`. Apart by blanks. An export has its one as [`IDENTITY`].
    pub const EXPORTED_AS: &str = "exported_as";
    /// What kind of backing an export has: `iblock`, `fileio`, `pscsi`, `rd_mcp`, `user`, `nvmet`.
    pub const BACKSTORE: &str = "backstore";
    /// By what a disk comes to its host: `iscsi`, `loopback`, `fc`; of NVMe `tcp`, `rdma`, `fc`, `loop`.
    pub const TRANSPORT: &str = "transport";
    /// Name of the target that a disk comes from or an export belongs to: an IQN, NQN or WWN.
    pub const TARGET: &str = "target";
    /// Number of the LUN or NVMe namespace at its target.
    pub const UNIT_NUMBER: &str = "unit_number";
    /// Address by which the target is reached, as the transport writes it.
    pub const PORTAL: &str = "portal";
    /// Serial number of a unit (SCSI VPD page 80h, `vpd_unit_serial` of LIO), or what a hypervisor was told to show.
    pub const SERIAL: &str = "serial";
    /// UUID of an NVMe namespace.
    pub const UUID: &str = "uuid";
    /// NGUID of an NVMe namespace.
    pub const NGUID: &str = "nguid";
    /// `1` where it cannot be written to.
    pub const READ_ONLY: &str = "read_only";
    /// `1` where a loop device reads and writes its file directly, `0` where through the page cache.
    pub const DIRECT_IO: &str = "direct_io";
    /// Formats of an NVMe namespace: blocks, bytes of metadata beside each, relative performance (0 best).
    pub const LBA_FORMATS: &str = "lba_formats";
}

#[cfg(test)]
mod tests {
    use super::data_chunks;

    /// Chunk k of the data has its copies on members k·copies and on, counted around: it begins anew on the first one
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
