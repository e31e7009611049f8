//! Flags of `plumb fix`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use plumb_geometry::Bytes;

use super::plan::{heads_and_sectors, position, size};

macro_rules! exits {
    () => {
        "Exit status: 0 done, shown, or nothing to do, 2 usage, 3 it is not known whether it would be safe, 4 not permitted, \
         5 failed or refused, 6 a move is incomplete, 7 a move or a rollback is complete and names bytes that are lost."
    };
    (looks) => {
        "If a check or a probe runs after the plan, the status can also be 1 (finding) or 3 (unknown)."
    };
}

/// Behind the flags of all of them, of those that begin something, of plans, and of those that continue or revert a move.
const ALL: &str = concat!(
    "Without --yes NAME, Plumb writes nothing and prints a dry run. resume and rollback need no --yes if only root can have \
     written the journal.\n\
     Positions take a unit always: 2048s, 1m. s is 512 bytes on every disk.\n",
    exits!(),
    "\n",
    exits!(looks)
);
const BEGINS: &str = concat!(
    "Without --yes NAME, Plumb writes nothing and prints a dry run.\n\
     Positions take a unit always: 2048s, 1m. s is 512 bytes on every disk.\n",
    exits!()
);
const CARRIES_OUT: &str = concat!(
    "Without --yes NAME, Plumb writes nothing and prints a dry run.\n",
    exits!(),
    "\n",
    exits!(looks)
);
const GOES_ON: &str = exits!();

/// Flags of `plumb fix`.
#[derive(Debug, Args)]
#[command(after_long_help = ALL)]
pub struct Fix {
    /// The action to take
    #[command(subcommand)]
    pub what: FixCommand,
}

/// The actions.
#[derive(Debug, Subcommand)]
pub enum FixCommand {
    /// Move the start of a partition on an empty disk, or label a blank disk
    #[command(after_long_help = BEGINS)]
    Relabel(Relabel),
    /// Restore the label that relabel or backup-label replaced
    #[command(after_long_help = BEGINS)]
    Undo(Undo),
    /// Rewrite the broken or stranded copy of a GPT from the good one
    #[command(after_long_help = BEGINS)]
    BackupLabel(BackupLabel),
    /// Carry out plans, or the remedies of a check, as far as Plumb can do that here, and print the others
    #[command(after_long_help = CARRIES_OUT)]
    Plan(FromPlan),
    /// Move a partition with its data to another start, so that a crash at any point loses no byte
    #[command(after_long_help = BEGINS)]
    Move(Move),
    /// Resume an interrupted move
    #[command(after_long_help = GOES_ON)]
    Resume(Resume),
    /// Revert an unfinished move: the partition returns to its old place
    #[command(after_long_help = GOES_ON)]
    Rollback(Resume),
    /// Show the progress of a move
    #[command(after_long_help = GOES_ON)]
    Status(Status),
}

/// Flags of `plumb fix plan`.
#[derive(Debug, Args)]
pub struct FromPlan {
    /// Output of plumb plan --json or plumb check --json; - reads standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write for real; NAME is the partition or device to change, as the dry run shows it
    #[arg(long, value_name = "NAME")]
    pub yes: Option<String>,
    /// Probe afterwards which grid is really there: reads only, see plumb probe
    #[arg(long)]
    pub probe: bool,
    #[command(flatten)]
    pub journal: Journal,
}

/// The place of a move's journal.
#[derive(Clone, Debug, Default, Args)]
pub struct Journal {
    /// File for the journal, on another disk; a new one in /var/lib/plumb when not given
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Let the journal be on the disk of the partition: safe against a crash, not against a broken disk
    #[arg(long)]
    pub journal_same_disk: bool,
}

/// Flags of `plumb fix move`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("where").args(["to", "aligned"]).required(true))]
pub struct Move {
    /// The partition: /dev/sdb1. It must not be in use; its neighbours may be
    #[arg(value_name = "PARTITION")]
    pub partition: PathBuf,
    /// New start: 2048s
    #[arg(long, value_name = "POSITION", value_parser = position)]
    pub to: Option<Bytes>,
    /// Let it begin at the nearest start on the grid of its disk that has room
    #[arg(long)]
    pub aligned: bool,
    #[command(flatten)]
    pub journal: Journal,
    /// Read the whole partition and the free part of its new place first
    #[arg(long)]
    pub scan: bool,
    /// As --scan, and fill the free part of the new place with zeros before the move begins: a disk replaces bad blocks
    /// when they are written
    #[arg(long)]
    pub scan_write: bool,
    #[command(flatten)]
    pub act: Act,
}

/// Flags of `plumb fix resume` and `plumb fix rollback`.
#[derive(Debug, Args)]
pub struct Resume {
    /// The journal; or the disk or partition, which leads to it
    #[arg(value_name = "JOURNAL")]
    pub journal: PathBuf,
    /// The disk, where it has another name than when the move began
    #[arg(long, value_name = "DEVICE")]
    pub disk: Option<PathBuf>,
    /// Continue although other users can write the journal; NAME must match the disk that the refusal shows
    #[arg(long, value_name = "NAME")]
    pub yes: Option<String>,
    /// Go on over bytes that cannot be read or do not match their sum: unreadable blocks become zeros, and all these bytes
    /// are named in JOURNAL.lost
    #[arg(long)]
    pub accept_loss: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// Flags of `plumb fix status`.
#[derive(Debug, Args)]
pub struct Status {
    /// The journal; or the disk or partition, which leads to it
    #[arg(value_name = "JOURNAL")]
    pub journal: PathBuf,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// Kind of label to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NewLabelKind {
    /// GPT
    Gpt,
    /// DOS (MBR)
    Dos,
    /// EFI label of Solaris
    Efi,
    /// SMI label (VTOC) on SPARC
    Smi,
    /// SMI label inside an fdisk partition on x86: one that is there is changed, a new one is not made
    SmiX86,
}

/// Flags of `plumb fix relabel`.
#[derive(Debug, Args)]
pub struct Relabel {
    /// The disk, or an image of one: /dev/sdb
    #[arg(value_name = "DEVICE")]
    pub device: PathBuf,
    /// New start of the partition; without this and --plan, at about 1 MiB, on the grid of the disk
    #[arg(long, value_name = "POSITION", value_parser = position, conflicts_with = "plan")]
    pub start: Option<Bytes>,
    /// Take start and length from a plan: the output of plumb plan partition --json
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    pub plan: Option<PathBuf>,
    /// Length; when not given the end stays where it is, or is that of the disk
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<Bytes>,
    /// Number of the partition, of Solaris that of the slice; not needed where there is only one
    #[arg(long, value_name = "N")]
    pub number: Option<u32>,
    /// Label to create [default: gpt]
    #[arg(long, value_name = "KIND")]
    pub label: Option<NewLabelKind>,
    /// Make a new label in the place of the one that is there
    #[arg(long)]
    pub new_label: bool,
    /// Heads and sectors of a new SMI label: 27x107
    #[arg(long, value_name = "HEADSxSECTORS", value_parser = heads_and_sectors)]
    pub geometry: Option<(u32, u32)>,
    /// Logical block of an image without a label: 512 or 4096; disks tell theirs
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub sector: Option<Bytes>,
    #[command(flatten)]
    pub act: Act,
    #[command(flatten)]
    pub save: Save,
}

/// Flags of `plumb fix undo`.
#[derive(Debug, Args)]
pub struct Undo {
    /// The saved label
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The disk, where it has another name than when its label was saved
    #[arg(value_name = "DEVICE")]
    pub device: Option<PathBuf>,
    /// Revert also if somebody has written to the places of the label since, or the partitions that go away hold something
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub act: Act,
    #[command(flatten)]
    pub save: Save,
}

/// Flags of `plumb fix backup-label`.
#[derive(Debug, Args)]
pub struct BackupLabel {
    /// The disk, or an image of one: /dev/sdb; its partitions may be in use
    #[arg(value_name = "DEVICE")]
    pub device: PathBuf,
    #[command(flatten)]
    pub act: Act,
    #[command(flatten)]
    pub save: Save,
}

/// The common flags of commands that write.
#[derive(Clone, Debug, Args)]
pub struct Act {
    /// Write for real; NAME must match the target that the dry run shows
    #[arg(long, value_name = "NAME")]
    pub yes: Option<String>,
    /// Ignore marks of a move in the partitions of the disk of this name: no move of it is unfinished
    #[arg(long, value_name = "NAME")]
    pub ignore_marker: Option<String>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// The file for an old label.
#[derive(Clone, Debug, Args)]
pub struct Save {
    /// File for the old label; a new one in /var/lib/plumb when not given
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
}
