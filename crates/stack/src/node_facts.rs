//! Facts of a node that are neither place nor grid: typed, and each with its source.
//!
//! [`keys`] names them. A key knows the type of its value, so that a source and a rule cannot read one fact in two ways,
//! and the text of a source ends in the reader of that source.

use plumb_geometry::Bytes;
use serde::{Deserialize, Serialize};

use crate::grid::Source;

/// A fact, and the source that states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact<T> {
    /// The value.
    pub value: T,
    /// The source.
    pub source: Source,
}

/// Names a fact whose value is a `T`.
pub struct FactKey<T> {
    /// The name of the fact in JSON, with its unit.
    pub name: &'static str,
    field: fn(&NodeFacts) -> &Option<Fact<T>>,
    field_mut: fn(&mut NodeFacts) -> &mut Option<Fact<T>>,
}

impl<T> Clone for FactKey<T> {
    fn clone(&self) -> FactKey<T> {
        *self
    }
}

impl<T> Copy for FactKey<T> {}

impl<T> PartialEq for FactKey<T> {
    fn eq(&self, other: &FactKey<T>) -> bool {
        self.name == other.name
    }
}

impl<T> std::fmt::Debug for FactKey<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! node_facts {
    ($($(#[$doc:meta])+ $key:ident $field:ident $name:literal: $value:ty;)*) => {
        /// All facts of a node; `None` where no source states one.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct NodeFacts {
            $(
                $(#[$doc])+
                #[serde(rename = $name, default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<Fact<$value>>,
            )*
        }

        /// The keys of [`NodeFacts`].
        pub mod keys {
            use super::*;

            $(
                $(#[$doc])+
                pub const $key: FactKey<$value> = FactKey {
                    name: $name,
                    field: |facts| &facts.$field,
                    field_mut: |facts| &mut facts.$field,
                };
            )*
        }
    };
}

node_facts! {
    /// Format of the contents of a device.
    CONTENT content "content": ContentKind;
    /// Directory where it is mounted.
    MOUNT mount "mount": String;
    /// Mount options.
    MOUNT_OPTIONS mount_options "mount_options": MountOptions;
    /// Bytes of an I/O that a cloud counts as one operation at most: an account, no grid.
    COUNTED_IO counted_io "counted_io_bytes": Bytes;
    /// Model of a drive.
    MODEL model "model": String;
    /// Whether the drive turns.
    ROTATIONAL is_rotational "rotational": bool;
    /// Place in the sequence of a label: 1, 2, … or the slice number.
    PARTITION_NUMBER partition_number "partition_number": u64;
    /// Solaris's number of a slice, from 0. Linux counts the same slice from 1.
    SLICE slice "slice": u64;
    /// Kind of label on a disk.
    LABEL label "label": LabelWord;
    /// Logical block that the addresses of a disk's label count in.
    LABEL_BLOCK label_block "label_block_bytes": Bytes;
    /// Start of the extended partition of a disk: behind it may be links between the logical ones.
    EXTENDED_START extended_start "extended_start_bytes": Bytes;
    /// Tag of a slice: 2 root, 3 swap, 5 the whole disk, which no other slice overlaps with.
    PARTITION_TAG partition_tag "partition_tag": u64;
    /// Flags of a slice: `00`, `01` not mountable, `10` read-only, `11` both.
    PARTITION_FLAGS partition_flags "partition_flags": String;
    /// Sectors of a cylinder, where slices must start at one.
    CYLINDER_SECTORS cylinder_sectors "cylinder_sectors": u64;
    /// Level of an array, as its manager writes it: `raid0`, `raid5`.
    LEVEL level "level": String;
    /// Metadata version of an array.
    METADATA metadata "metadata": String;
    /// Volume manager of the layer.
    MANAGER manager "manager": VolumeManager;
    /// Read policy of a mirror.
    READ_POLICY read_policy "read_policy": MirrorReads;
    /// Order in which a mirror is resynced after a boot.
    RESYNC_PASS resync_pass "resync_pass": u64;
    /// Writes of a mirror: `parallel`, `serial`.
    WRITE_POLICY write_policy "write_policy": String;
    /// End of the last replica of a volume manager's database on a slice.
    REPLICAS_END replicas_end "replicas_end_bytes": Bytes;
    /// Area before the data of each column of RAID 5, where it was computed.
    PREWRITE prewrite "prewrite_bytes": Bytes;
    /// Alignment offset as the kernel states it.
    ALIGNMENT_OFFSET alignment_offset "alignment_offset_bytes": KernelOffset;
    /// I/O scheduler in use, as the kernel calls it.
    SCHEDULER scheduler "scheduler": String;
    /// Read-ahead.
    READ_AHEAD read_ahead "read_ahead_bytes": Bytes;
    /// Largest request.
    MAX_REQUEST max_request "max_request_bytes": Bytes;
    /// Largest request that the hardware takes.
    MAX_REQUEST_HARDWARE max_request_hardware "max_request_hardware_bytes": Bytes;
    /// Requests the queue holds.
    QUEUE_DEPTH queue_depth "queue_depth": u64;
    /// `write back` or `write through`.
    WRITE_CACHE write_cache "write_cache": String;
    /// Zones of a drive; absent where it has none.
    ZONED zoned "zoned": ZoneModel;
    /// Distance of the first discard unit from a boundary of the unit, as the kernel states it.
    DISCARD_ALIGNMENT discard_alignment "discard_alignment_bytes": KernelOffset;
    /// Stripe unit in the superblock of a file system; 0 for none.
    FS_STRIPE_UNIT fs_stripe_unit "fs_stripe_unit_bytes": Bytes;
    /// Stripe width in the superblock of a file system; 0 for none.
    FS_STRIPE_WIDTH fs_stripe_width "fs_stripe_width_bytes": Bytes;
    /// Block of a file system.
    FS_BLOCK fs_block "fs_block_bytes": Bytes;
    /// Sector that a file system was made for.
    FS_SECTOR fs_sector "fs_sector_bytes": Bytes;
    /// Stripe unit of a file system's log; 0 for none.
    FS_LOG_STRIPE_UNIT fs_log_stripe_unit "fs_log_stripe_unit_bytes": Bytes;
    /// Node of a file system's trees.
    FS_NODE fs_node "fs_node_bytes": Bytes;
    /// First cluster of a file system that counts them from there.
    FS_DATA_START fs_data_start "fs_data_start_bytes": Bytes;
    /// First byte for data of a member, behind the metadata of its manager.
    DATA_START data_start "data_start_bytes": Bytes;
    /// Block of a cache.
    CACHE_BLOCK cache_block "cache_block_bytes": Bytes;
    /// Start of the volume as the file system on it has noted it.
    HIDDEN_BYTES hidden "hidden_bytes": Bytes;
    /// First extent of a physical volume.
    PE_START pe_start "pe_start_bytes": Bytes;
    /// Extent of a volume group.
    PE_SIZE pe_size "pe_size_bytes": Bytes;
    /// Record size of a data set of ZFS.
    RECORD_SIZE record_size "record_size_bytes": Bytes;
    /// Block of a volume of ZFS.
    VOLUME_BLOCK volume_block "volblocksize_bytes": Bytes;
    /// Ashift of a vdev of ZFS.
    ASHIFT ashift "ashift": u64;
    /// I/O a second, as `iostat` printed them.
    IOS_PER_SECOND ios_per_second "ios_per_second": f64;
    /// Of these, writes a second.
    WRITES_PER_SECOND writes_per_second "writes_per_second": f64;
    /// Vendor's or kernel's identity of a device, to join paths by; of an export the one that its initiators see:
    /// `naa.…`, `uuid.…`, `eui.…`.
    IDENTITY identity "identity": String;
    /// maxphys of a host.
    MAXPHYS maxphys "maxphys_bytes": Bytes;
    /// nmd of md.conf.
    NMD nmd "nmd": u64;
    /// md_nsets of md.conf.
    MD_NSETS md_nsets "md_nsets": u64;
    /// md_mirror_wow_flg.
    MIRROR_WOW mirror_wow "md_mirror_wow_flg": u64;
    /// segmap_percent.
    SEGMAP_PERCENT segmap_percent "segmap_percent": u64;
    /// I/O size of metasync.
    RESYNC_BYTES resync "resync_bytes": Bytes;
    /// Operating system of the host.
    SYSTEM system "system": HostSystem;
    /// The software that shows this device to others, or that an export belongs to.
    EXPORTED_BY exported_by "exported_by": Exporter;
    /// Identities under which a hypervisor shows this device, as the guest's kernel has them in `wwid`; of a disk of virtio
    /// `smbios.MACHINE.SERIAL`. An export has its one as [`keys::IDENTITY`].
    EXPORTED_AS exported_as "exported_as": Vec<String>;
    /// Kind of backing of an export: `iblock`, `fileio`, `pscsi`, `rd_mcp`, `user`, `nvmet`.
    BACKSTORE backstore "backstore": String;
    /// Transport by which a disk comes to its host: `iscsi`, `loopback`, `fc`; of NVMe `tcp`, `rdma`, `fc`, `loop`.
    TRANSPORT transport "transport": String;
    /// Name of the target that a disk comes from or an export belongs to: an IQN, NQN or WWN.
    TARGET target "target": String;
    /// Number of the LUN or NVMe namespace at its target.
    UNIT_NUMBER unit_number "unit_number": u64;
    /// Address by which the target is reached, as the transport writes it.
    PORTAL portal "portal": String;
    /// Serial number of a unit (SCSI VPD page 80h, `vpd_unit_serial` of LIO), or that a hypervisor shows.
    SERIAL serial "serial": String;
    /// UUID of an NVMe namespace.
    UUID uuid "uuid": String;
    /// NGUID of an NVMe namespace.
    NGUID nguid "nguid": String;
    /// Whether it cannot be written to.
    READ_ONLY is_read_only "read_only": bool;
    /// Whether a loop device reads and writes its file directly, and not through the page cache.
    DIRECT_IO is_direct_io "direct_io": bool;
    /// Formats that an NVMe namespace offers.
    LBA_FORMATS lba_formats "lba_formats": Vec<LbaFormat>;
}

impl NodeFacts {
    /// A fact with its source.
    #[must_use]
    pub fn get<T>(&self, key: FactKey<T>) -> Option<&Fact<T>> {
        (key.field)(self).as_ref()
    }

    /// Sets a fact unless it is known: the first source wins.
    pub(crate) fn note<T>(&mut self, key: FactKey<T>, fact: Fact<T>) {
        (key.field_mut)(self).get_or_insert(fact);
    }
}

impl NodeFacts {
    /// Sets a fact, and replaces a known one; `None` removes it.
    pub(crate) fn set<T>(&mut self, key: FactKey<T>, fact: Option<Fact<T>>) {
        *(key.field_mut)(self) = fact;
    }
}

/// An enum of words that most sources write themselves; `Other` keeps the rest.
macro_rules! words {
    ($(#[$doc:meta])+ $name:ident { $($(#[$variant_doc:meta])+ $variant:ident = $word:literal,)* }) => {
        $(#[$doc])+
        #[derive(
            Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$variant_doc])+ $variant,)*
            /// Another one, by its word in the source.
            Other(String),
        }

        impl $name {
            /// The word of the source.
            #[must_use]
            pub fn text(&self) -> &str {
                match self {
                    $($name::$variant => $word,)*
                    $name::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> $name {
                match word {
                    $($word => $name::$variant,)*
                    _ => $name::Other(word.to_owned()),
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> $name {
                $name::from(word.as_str())
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.text().to_owned()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.text())
            }
        }
    };
}

words! {
    /// Format of the contents of a device. Rules know those that are named here.
    ContentKind {
        /// ext2.
        Ext2 = "ext2",
        /// ext3.
        Ext3 = "ext3",
        /// ext4.
        Ext4 = "ext4",
        /// XFS.
        Xfs = "xfs",
        /// btrfs.
        Btrfs = "btrfs",
        /// bcachefs.
        Bcachefs = "bcachefs",
        /// The file system of Solaris.
        Ufs = "ufs",
        /// Paging.
        Swap = "swap",
        /// Physical volume of LVM.
        LvmMember = "LVM2 PV",
        /// Member of an md array.
        MdMember = "md member",
        /// Member of a pool of ZFS.
        ZfsMember = "zfs member",
        /// Disk of a disk group of VxVM.
        VxvmDisk = "VxVM disk",
        /// Encrypted volume.
        Luks = "crypto_LUKS",
        /// Device behind a cache of bcache.
        Bcache = "bcache",
    }
}

words! {
    /// Kind of label on a disk.
    LabelWord {
        /// GUID partition table.
        Gpt = "gpt",
        /// Master boot record.
        Dos = "dos",
        /// EFI label of Solaris.
        Efi = "efi",
        /// VTOC of Solaris, as `prtvtoc` tells.
        Vtoc = "vtoc",
        /// The same as Linux calls it.
        Sun = "sun",
        /// The same as `format` calls it.
        Smi = "smi",
    }
}

impl LabelWord {
    /// Whether it is a VTOC, whose slices start at cylinders.
    #[must_use]
    pub fn is_vtoc(&self) -> bool {
        matches!(self, LabelWord::Vtoc | LabelWord::Sun | LabelWord::Smi)
    }
}

words! {
    /// Volume manager of a layer.
    VolumeManager {
        /// Linux software RAID.
        Md = "md",
        /// LVM.
        Lvm = "lvm",
        /// Solaris Volume Manager.
        Svm = "svm",
        /// Veritas Volume Manager.
        Vxvm = "vxvm",
        /// ZFS.
        Zfs = "zfs",
        /// Device mapper without a manager that is known.
        Dm = "dm",
        /// bcache.
        Bcache = "bcache",
    }
}

words! {
    /// Read policy of a mirror.
    MirrorReads {
        /// Sides in turn.
        RoundRobin = "round-robin",
        /// Each side has its part of the addresses.
        Geometric = "geometric",
        /// The first side alone.
        First = "first",
    }
}

words! {
    /// Zones of a drive.
    ZoneModel {
        /// Zones are a hint.
        HostAware = "host-aware",
        /// The host must write zones in order.
        HostManaged = "host-managed",
    }
}

words! {
    /// Operating system of a host.
    HostSystem {
        /// Linux.
        Linux = "linux",
        /// Solaris or illumos.
        Solaris = "solaris",
    }
}

words! {
    /// Software that shows devices to others.
    Exporter {
        /// The kernel's target for several transports.
        Lio = "lio",
        /// The kernel's target for iSCSI alone.
        Iscsi = "iscsi",
        /// The kernel's target for NVMe.
        Nvmet = "nvmet",
        /// QEMU.
        Qemu = "qemu",
    }
}

/// An offset as the kernel states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelOffset {
    /// Bytes past a boundary.
    Bytes(Bytes),
    /// The devices below have no common boundary; the kernel writes -1.
    GaveUp,
}

impl From<i64> for KernelOffset {
    fn from(stated: i64) -> KernelOffset {
        u64::try_from(stated).map_or(KernelOffset::GaveUp, |bytes| {
            KernelOffset::Bytes(Bytes(bytes))
        })
    }
}

/// Mount options, as words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MountOptions(pub Vec<String>);

impl MountOptions {
    /// Whether an option is set.
    #[must_use]
    pub fn has(&self, option: &str) -> bool {
        self.0.iter().any(|set| set == option)
    }
}

impl From<&str> for MountOptions {
    /// Takes options between commas.
    fn from(options: &str) -> MountOptions {
        let options = options.split(',').map(str::trim);
        MountOptions(
            options
                .filter(|option| !option.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }
}

impl From<String> for MountOptions {
    fn from(options: String) -> MountOptions {
        MountOptions::from(options.as_str())
    }
}

/// A format that an NVMe namespace offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LbaFormat {
    /// A block.
    #[serde(rename = "block_bytes")]
    pub block: Bytes,
    /// Metadata beside each block.
    #[serde(rename = "metadata_bytes")]
    pub metadata: Bytes,
    /// Relative performance, 0 best.
    pub performance: u8,
    /// Whether the namespace has it.
    pub is_in_use: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(file: &str) -> Source {
        Source::Kernel {
            path: file.to_owned(),
        }
    }

    #[test]
    fn the_first_source_wins_and_json_reads_back() {
        let mut facts = NodeFacts::default();
        for (block, file) in [(4096, "one"), (512, "two")] {
            let value = Bytes(block);
            facts.note(
                keys::FS_BLOCK,
                Fact {
                    value,
                    source: from(file),
                },
            );
        }
        let value = ContentKind::from("befs");
        facts.note(
            keys::CONTENT,
            Fact {
                value,
                source: from("one"),
            },
        );
        let json = serde_json::to_value(&facts).expect("JSON");
        assert_eq!(json["fs_block_bytes"]["value"], 4096);
        assert_eq!(json["fs_block_bytes"]["source"]["path"], "one");
        assert_eq!(json["content"]["value"], "befs");
        assert_eq!(json.as_object().map(serde_json::Map::len), Some(2));
        assert_eq!(
            serde_json::from_value::<NodeFacts>(json).expect("facts"),
            facts
        );
    }

    /// `/sys/block/*/alignment_offset` is -1 where the devices below a mapped one do not agree.
    #[test]
    fn the_kernel_gives_up_with_minus_one() {
        assert_eq!(KernelOffset::from(-1), KernelOffset::GaveUp);
        assert_eq!(KernelOffset::from(3584), KernelOffset::Bytes(Bytes(3584)));
    }
}
