//! Flags of `plumb plan`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use plumb_geometry::{Bytes, Grid, Share};
use plumb_plan::partition::Content;

use super::grid;

mod typed;

use typed::{content, existing, geometry, named, share};
pub use typed::{heads_and_sectors, milliseconds, position, rate, rate_above_0, size};

/// Behind the flags of each.
const ALL: &str = "Sizes: bare numbers are bytes; k, m, g, t are powers of 1024; s is 512 bytes. Positions take a unit always: \
2048s, 1m.\n\
Plumb reads the files that you name; plan partition also reads the label of DEVICE. It writes nothing and runs no command.\n\
Exit status: 0 planned, also for a device that this host does not have, 2 usage, 3 no plan is possible or the input was read only in part, 4 not permitted, 5 failed.";

/// Flags of `plumb plan`.
#[derive(Debug, Args)]
#[command(after_long_help = ALL)]
pub struct Plan {
    /// The plan to make
    #[command(subcommand)]
    pub what: PlanCommand,
}

/// The plans.
#[derive(Debug, Subcommand)]
pub enum PlanCommand {
    /// Aligned start of a partition or slice, and the commands that put it there
    #[command(after_long_help = ALL)]
    Partition(Box<Partition>),
    /// Chunk size of a stripe
    #[command(after_long_help = ALL)]
    Stripe(Stripe),
    /// Offsets of soft partitions of Solaris Volume Manager
    #[command(after_long_help = ALL)]
    Softpart(Softpart),
    /// Stripe options of a file system
    #[command(after_long_help = ALL)]
    Filesystem(Filesystem),
    /// Record that suits a page, or the I/O of a profile
    #[command(after_long_help = ALL)]
    Record(RecordPlan),
    /// The I/O size of mirror resyncs of Solaris Volume Manager
    #[command(after_long_help = ALL)]
    Resync(Resync),
    /// Number of disks for a required rate
    #[command(after_long_help = ALL)]
    Disks(Disks),
    /// Gain from writing in sequence, or from gathering records
    #[command(after_long_help = ALL)]
    Writes(Writes),
}

/// Kind of label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LabelKind {
    /// GPT
    Gpt,
    /// DOS (MBR)
    Dos,
    /// EFI label of Solaris
    Efi,
    /// SMI label (VTOC) on SPARC
    Smi,
    /// SMI label inside an fdisk partition on x86
    SmiX86,
}

/// Flags of `plumb plan partition`.
#[derive(Debug, Args)]
pub struct Partition {
    /// The disk: /dev/sdb, c1t0d0; with --from the partition or slice
    #[arg(value_name = "DEVICE")]
    pub device: String,
    /// Grid for the start: GRANULARITY or GRANULARITY@OFFSET; may be given several times
    #[arg(long, value_name = "G[@O]", value_parser = grid)]
    pub grid: Vec<Grid>,
    /// Offset of the first aligned block, as sysfs states it; added to every grid
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub alignment_offset: Option<Bytes>,
    /// Take the disk from the output of other tools: prtvtoc, sfdisk -d, …
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["label", "new_label", "geometry", "fdisk_start", "current", "number"])]
    pub from: Vec<PathBuf>,
    /// Kind of label; without it that of the disk if it is on this host, else gpt
    #[arg(long, value_name = "KIND")]
    pub label: Option<LabelKind>,
    /// Make the label as well
    #[arg(long)]
    pub new_label: bool,
    /// Logical block of the disk: 512 or 4096
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "512")]
    pub sector: Bytes,
    /// Size of the disk
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub disk_size: Option<Bytes>,
    /// First position that may be used
    #[arg(long, value_name = "POSITION", value_parser = position)]
    pub after: Option<Bytes>,
    /// First position that may not be used
    #[arg(long, value_name = "POSITION", value_parser = position)]
    pub before: Option<Bytes>,
    /// Length [default: all free space]. An existing partition may shrink by up to 1 MiB to make room for the new start
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<Bytes>,
    /// Number of the partition or slice
    #[arg(long, value_name = "N", default_value = "1")]
    pub number: u32,
    /// Present start; without it that of the partition if it is on this host
    #[arg(long, value_name = "POSITION", value_parser = position)]
    pub current: Option<Bytes>,
    /// Heads and sectors of an SMI label, as prtvtoc prints them: 27x107
    #[arg(long, value_name = "HEADSxSECTORS", value_parser = geometry)]
    pub geometry: Option<u64>,
    /// Start of the Solaris fdisk partition that holds an SMI label on x86
    #[arg(long, value_name = "POSITION", value_parser = position)]
    pub fdisk_start: Option<Bytes>,
    /// Content: lvm=GROUP, md=ARRAY, zfs=POOL or svm=MIRROR,SUBMIRROR
    #[arg(long, value_name = "WHAT", value_parser = content)]
    pub holds: Option<Content>,
    #[command(flatten)]
    pub output: PlanOutput,
}

/// Whose stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ManagerKind {
    /// Solaris Volume Manager
    Svm,
    /// Linux md
    Md,
    /// LVM
    Lvm,
}

/// Flags of `plumb plan stripe`.
#[derive(Debug, Args)]
pub struct Stripe {
    /// Members of the stripe
    #[arg(value_name = "MEMBER")]
    pub members: Vec<String>,
    /// Length of the I/O: the page
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub io: Bytes,
    /// Largest share of I/O that may cross from one chunk to the next: 1/128, 1%
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "1%")]
    pub share: Share,
    /// Start of the data, relative to a stripe boundary
    #[arg(long, value_name = "POSITION", value_parser = position, default_value = "0s")]
    pub base: Bytes,
    /// I/O begin at any sector, and not at multiples of their length
    #[arg(long)]
    pub any_sector: bool,
    /// Judge this chunk
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub chunk: Option<Bytes>,
    /// Segment of the array below: chunks are whole ones
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub segment: Option<Bytes>,
    /// Members of each stripe that hold parity
    #[arg(long, value_name = "N", default_value = "0")]
    pub parity: u32,
    /// Volume manager of the stripe
    #[arg(long, value_name = "NAME", default_value = "md")]
    pub manager: ManagerKind,
    #[command(flatten)]
    pub output: PlanOutput,
}

/// Flags of `plumb plan softpart`.
#[derive(Debug, Args)]
pub struct Softpart {
    /// Component that contains them; with --from all components that hold some when not given
    #[arg(value_name = "COMPONENT", required_unless_present = "from")]
    pub component: Option<String>,
    /// Grid for their starts: interlace, full stripe, page
    #[arg(long, value_name = "SIZE", value_parser = size, required_unless_present = "from")]
    pub unit: Option<Bytes>,
    /// Take them from metastat -p, and the starts of slices from prtvtoc
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["existing", "base"])]
    pub from: Vec<PathBuf>,
    /// One that exists: NAME:OFFSET:LENGTH, as in d11:512s:1g; may be given several times
    #[arg(long, value_name = "N:O:L", value_parser = existing)]
    pub existing: Vec<(String, Bytes, Bytes)>,
    /// One to be added behind them: NAME:LENGTH; may be given several times
    #[arg(long, value_name = "N:L", value_parser = named)]
    pub new: Vec<(String, Bytes)>,
    /// Start of the component on its disk
    #[arg(long, value_name = "POSITION", value_parser = position, default_value = "0s")]
    pub base: Bytes,
    /// Length of the component
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub component_size: Option<Bytes>,
    #[command(flatten)]
    pub output: PlanOutput,
}

/// Kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FsKind {
    /// ext2, ext3, ext4
    Ext4,
    /// XFS
    Xfs,
    /// btrfs
    Btrfs,
    /// UFS of Solaris
    Ufs,
    /// ZFS
    Zfs,
}

/// Flags of `plumb plan filesystem`.
#[derive(Debug, Args)]
pub struct Filesystem {
    /// Device node, or the data set of ZFS
    #[arg(value_name = "DEVICE")]
    pub device: String,
    /// Kind of file system
    #[arg(long = "type", value_name = "KIND")]
    pub kind: FsKind,
    /// Chunk of the stripe below; without one the device is on one disk, or on a mirror
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "members")]
    pub chunk: Option<Bytes>,
    /// Members of that stripe
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096), requires = "chunk")]
    pub members: Option<u32>,
    /// Of them, those that hold parity in each stripe
    #[arg(long, value_name = "N", default_value = "0", requires = "members")]
    pub parity: u32,
    /// Copies of each chunk: 2 for RAID 10
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=4), requires = "members")]
    pub copies: u32,
    /// Block of the file system
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub block: Option<Bytes>,
    /// Physical block of the disks
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4k")]
    pub physical: Bytes,
    /// Page of the database on it
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub page: Option<Bytes>,
    /// Mount point
    #[arg(long, value_name = "DIRECTORY")]
    pub mount: Option<String>,
    #[command(flatten)]
    pub output: PlanOutput,
}

/// The program that keeps records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeeperKind {
    /// A file system of ZFS: recordsize
    Zfs,
    /// A volume of ZFS: volblocksize
    Zvol,
    /// UFS: block and fragment
    Ufs,
}

/// Flags of `plumb plan record`.
#[derive(Debug, Args)]
pub struct RecordPlan {
    /// The data set, volume or device
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Page of the application, read and written at multiples of it
    #[arg(long, value_name = "SIZE", value_parser = size, required_unless_present = "profile", conflicts_with = "profile")]
    pub page: Option<Bytes>,
    /// Saved profile of the vfs layer, made by plumb analyze --save
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Program that keeps the records
    #[arg(long, value_name = "KIND", default_value = "zfs")]
    pub keeper: KeeperKind,
    /// The record now
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub current: Option<Bytes>,
    #[command(flatten)]
    pub output: PlanOutput,
}

/// Flags of `plumb plan resync`.
#[derive(Debug, Args)]
pub struct Resync {
    /// I/O size wanted
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1m")]
    pub size: Bytes,
    /// maxphys of the host now
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub maxphys: Option<Bytes>,
    /// Bytes to be copied
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub mirror: Option<Bytes>,
    #[command(flatten)]
    pub output: PlanOutput,
}

/// Redundancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RaidKind {
    /// Stripe
    #[value(name = "0")]
    Raid0,
    /// Mirror of two
    #[value(name = "1")]
    Raid1,
    /// Stripe of mirrors
    #[value(name = "10")]
    Raid10,
    /// One parity
    #[value(name = "5")]
    Raid5,
    /// Two parities
    #[value(name = "6")]
    Raid6,
}

/// Flags of `plumb plan disks`.
#[derive(Debug, Args)]
pub struct Disks {
    /// Reads a second
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "0", required_unless_present = "writes")]
    pub reads: f64,
    /// Writes a second
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "0")]
    pub writes: f64,
    /// How many times that
    #[arg(long, value_name = "TIMES", default_value = "1")]
    pub growth: f64,
    /// Measured rate of one disk for such I/O, a second
    #[arg(long, value_name = "RATE", value_parser = rate_above_0)]
    pub disk_rate: f64,
    /// Redundancy
    #[arg(long, value_name = "LEVEL", default_value = "0")]
    pub raid: RaidKind,
    /// Share of the load to be left over
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "20%")]
    pub margin: Share,
    /// Largest mean response of a disk: 50ms
    #[arg(long, value_name = "DURATION", value_parser = milliseconds)]
    pub response: Option<f64>,
    /// Chunk for the commands
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1m")]
    pub chunk: Bytes,
    #[command(flatten)]
    pub output: PlanOutput,
}

/// Flags of `plumb plan writes`.
#[derive(Debug, Args)]
pub struct Writes {
    /// Length of a record
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub record: Bytes,
    /// Records that one write can hold
    #[arg(long, value_name = "N")]
    pub gather: u64,
    /// Records a second that are demanded
    #[arg(long, value_name = "RATE", value_parser = rate_above_0)]
    pub demand: Option<f64>,
    /// Measured: random writes of a record a second
    #[arg(long, value_name = "RATE", value_parser = rate_above_0)]
    pub random: f64,
    /// Measured: the same in sequence
    #[arg(long, value_name = "RATE", value_parser = rate_above_0)]
    pub sequential: Option<f64>,
    /// Measured: random gathered writes a second
    #[arg(long, value_name = "RATE", value_parser = rate_above_0)]
    pub gathered: Option<f64>,
    /// Measured: gathered writes in sequence
    #[arg(long, value_name = "RATE", value_parser = rate_above_0)]
    pub both: Option<f64>,
    #[command(flatten)]
    pub output: PlanOutput,
}

/// The output formats of a plan.
#[derive(Clone, Copy, Debug, Args)]
pub struct PlanOutput {
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}
