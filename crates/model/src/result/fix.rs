//! The result of `plumb fix`: a label that was written, or the move of a partition.

use plumb_quoting::CommandLine;
use serde::Serialize;

/// One fix.
#[derive(Debug, Serialize)]
pub struct Fixed<'a> {
    /// Name of the command: `relabel`.
    pub action: &'static str,
    /// The disk.
    pub device: &'a str,
    /// The required name of `--yes`.
    pub name: &'a str,
    /// Whether it was done, or is only shown.
    pub is_done: bool,
    /// Length of the disk.
    pub size_bytes: u64,
    /// Its logical block.
    pub logical_block_bytes: u32,
    /// Its physical block.
    pub physical_block_bytes: u32,
    /// Its first aligned byte, as the kernel states it.
    pub alignment_offset_bytes: i32,
    /// The label before; absent where there was none.
    pub before: Option<LabelView>,
    /// The label after; absent if there will be none.
    pub after: Option<LabelView>,
    /// Its subject, in words.
    pub about: &'a [String],
    /// Places that are written, in this order.
    pub writes: &'a [DiskPlace],
    /// File that has the old bytes of these places.
    pub saved: Option<&'a str>,
    /// The command that goes back.
    pub undo: Option<&'a CommandLine>,
    /// The command that would do it, where it was not done.
    pub command: Option<&'a CommandLine>,
    /// Sentences that a reader must know.
    pub notes: &'a [String],
}

/// A label in short.
#[derive(Clone, Debug, Serialize)]
pub struct LabelView {
    /// Its kind.
    pub kind: String,
    /// Its faults.
    pub problems: Vec<String>,
    /// Its partitions.
    pub partitions: Vec<PartView>,
}

/// A partition in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartView {
    /// As the label's system calls it: `partition 1`, `slice 0`.
    pub name: String,
    /// First byte on the disk.
    pub start_bytes: u64,
    /// Length.
    pub len_bytes: u64,
    /// Its purpose; absent if the type is unknown.
    pub kind: Option<String>,
    /// So far past the grid of the disk; absent where no data begin.
    pub past_grid_bytes: Option<u64>,
}

/// A place of the disk.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DiskPlace {
    /// First byte.
    pub at_bytes: u64,
    /// Length.
    pub len_bytes: u64,
}

/// A move of a partition.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// Name of the command: `move`, `resume`, `rollback`, `status`.
    pub action: &'static str,
    /// `shown`, `in place`, `incomplete`, `complete`, `rolled back` or `never begun`.
    pub state: &'static str,
    /// Node of the partition.
    pub partition: String,
    /// The required name of `--yes`.
    pub name: String,
    /// Node of its disk.
    pub disk: String,
    /// Its start before.
    pub from_bytes: u64,
    /// Its start after.
    pub to_bytes: u64,
    /// Its length, which stays.
    pub len_bytes: u64,
    /// How data are copied.
    pub copying: &'static str,
    /// The longest piece that is written between two flushes.
    pub window_bytes: u64,
    /// Formats that were found in it, whose signatures are hidden meanwhile; absent where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<Vec<String>>,
    /// File of the journal; empty where none is needed.
    pub journal: String,
    /// Its length; absent where it is not there.
    pub journal_bytes: Option<u64>,
    /// The present stage; absent if nothing was begun.
    pub stage: Option<&'static str>,
    /// Bytes at their place.
    pub bytes_done: u64,
    /// Bytes that have to come there.
    pub bytes_total: u64,
    /// How long it took; absent where nothing was done.
    pub seconds: Option<f64>,
    /// The part of it for reading again; absent before that.
    pub verifying_seconds: Option<f64>,
    /// Why nobody goes on with the journal before `--yes` names the disk; absent where the journal is trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// Every place of the disk that is written; absent where nothing is begun.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<MovedPlace>,
    /// Conditions that keep the move from beginning now; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub obstacles: Vec<String>,
    /// Bytes of the partition that could not be brought along; absent where all were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<MovedLoss>,
    /// Whether a tool named the files with lost bytes; absent without lost bytes, or before the end of the move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_search: Option<OwnerSearch>,
    /// File that names them; absent without any, or if it could not be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_file: Option<String>,
    /// The command that carries this out, or continues; absent if there is nothing to do.
    pub command: Option<CommandLine>,
    /// The command that goes back; absent where nothing was begun, or it is on its way back.
    pub undo: Option<CommandLine>,
    /// Sentences that a reader must know.
    pub notes: Vec<String>,
}

/// A place of the disk that a move writes.
#[derive(Clone, Debug, Serialize)]
pub struct MovedPlace {
    /// `label`, `old place`, `new place` or `free space`.
    pub what: &'static str,
    /// First byte.
    pub at_bytes: u64,
    /// Length.
    pub len_bytes: u64,
}

/// Bytes of the partition that a move could not bring along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MovedLoss {
    /// First byte, counted from the start of the partition.
    pub start_bytes: u64,
    /// Length.
    pub len_bytes: u64,
    /// `unreadable`: they are zeros now; `unproven`: they do not match their sum, and were kept as they were found.
    pub why: &'static str,
    /// Owners of bytes of the range, each once; absent if no tool could tell, empty if the tool knows no owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owners: Option<Vec<LossOwner>>,
}

/// The part of a file system that owns lost bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum LossOwner {
    /// A file or directory, by its path from the root of the file system.
    File(String),
    /// An inode without a name that the tool knows: a journal, or a file that was deleted while it was open.
    Inode(u64),
    /// A structure of the file system itself, by the name that its tool has for it.
    Metadata(String),
    /// Free space: the loss harms no file.
    Free,
}

/// The search for the owners of lost bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnerSearch {
    /// `ext`, `xfs` or `ntfs`; absent if the partition begins with none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<&'static str>,
    /// Whether the owners of all lost bytes are named.
    pub is_complete: bool,
    /// The reason if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<OwnerObstacle>,
    /// A command that looks up the first lost range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
}

/// The reason why owners of lost bytes are missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OwnerObstacle {
    /// The partition holds no file system whose tools tell.
    UnknownContents,
    /// The kernel does not have the partition at its place yet, so that nothing can read it there.
    NoPartition,
    /// The tool is not installed.
    NoTool {
        /// Its name.
        tool: &'static str,
    },
    /// It took longer than the limit.
    TooSlow {
        /// Its name.
        tool: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// More blocks are lost than are looked up.
    TooMany {
        /// The limit.
        blocks: u64,
    },
    /// It failed: it may need the lost bytes.
    Failed {
        /// Its name.
        tool: &'static str,
        /// Its message.
        said: String,
    },
}
