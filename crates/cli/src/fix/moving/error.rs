//! Why a partition is not moved, or not further.

use std::io;

use plumb_quoting::Command;
use plumb_relocate::MoveError;
use plumb_relocate::labels::hidden::LabelMoveError;
use plumb_relocate::preflight::NotThisDisk;
use plumb_report::format::count;
use thiserror::Error;

use crate::failure::Failure;

/// For a journal that names another disk, or a disk that is not there.
pub const DISK_HELP: &str = "pass --disk DEVICE if the disk has another name by now, or if its adapter states another \
                             identity";

/// The fate of a journal that holds zeros.
pub const UNWRITTEN_HELP: &str =
    "remove the file if plumb fix status DISK finds no mark of a move on the disk that was meant";

/// The reason; each names its subject.
#[derive(Debug, Error)]
pub enum MoveRefused {
    /// It is used.
    #[error("{partition}: nothing was written: {}", users.join("; "))]
    InUse {
        /// The partition.
        partition: String,
        /// Its users.
        users: Vec<String>,
    },
    /// A neighbour is used that has bytes in blocks which are written as a whole.
    #[error(
        "{partition}: {neighbour} has bytes in a block that is written with it or with the label, and is in use: {}",
        users.join("; ")
    )]
    NeighbourInUse {
        /// The partition.
        partition: String,
        /// The neighbour.
        neighbour: String,
        /// Its users.
        users: Vec<String>,
    },
    /// The kernel has partitions where the move writes, and the label has none.
    #[error(
        "{partition}: the kernel has {} between the old and the new place, which the label does not have as a partition there: \
         nothing was written",
        found.join(" and ")
    )]
    OnlyInKernel {
        /// The partition.
        partition: String,
        /// The kernel's names.
        found: Vec<String>,
        /// The command that removes the first of them from the kernel.
        command: Box<Command>,
    },
    /// It is no partition.
    #[error("{name}: found {found}, expected a partition of a disk: /dev/sdb1")]
    NotAPartition {
        /// The name that was given.
        name: String,
        /// Its kind.
        found: String,
    },
    /// There is nothing of that name.
    #[error("{name}: found no such device, expected a partition of a disk: /dev/sdb1")]
    NotThere {
        /// The name that was given.
        name: String,
    },
    /// Something that a move cannot keep.
    #[error("{partition}: {why}")]
    Refused {
        /// The partition.
        partition: String,
        /// Why.
        why: String,
    },
    /// Bytes before the first partition that may be a boot loader.
    #[error(
        "{partition}: sectors {first} to {last} of its new place may hold a boot loader, which firmware finds by its sectors: found \
         neither zeros nor the partition's own data there; {evidence}"
    )]
    BootGap {
        /// The partition.
        partition: String,
        /// Its disk.
        device: String,
        /// First sector of them, of 512 bytes.
        first: u64,
        /// The last one.
        last: u64,
        /// The evidence for one.
        evidence: &'static str,
    },
    /// The label cannot go along.
    #[error("{partition}: the label cannot have it there")]
    Label {
        /// The partition.
        partition: String,
        /// Why.
        source: LabelMoveError,
    },
    /// The disk cannot be read.
    #[error("{partition}: byte {at} of its disk cannot be read: nothing was written")]
    Unreadable {
        /// The partition.
        partition: String,
        /// The position.
        at: u64,
        /// The system's error.
        source: io::Error,
    },
    /// The journal's place.
    #[error("{path}: no place for a journal: {why}")]
    Place {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// The journal's file.
    #[error("{path}: the journal cannot be opened")]
    Journal {
        /// The file.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// A disk waits for a journal that has left its place.
    #[error("{device}: waits for the journal {journal}: {path}: found {found}")]
    JournalLost {
        /// The disk.
        device: String,
        /// The place of the journal when the move began.
        path: String,
        /// Its name.
        journal: String,
        /// The content of that place.
        found: String,
    },
    /// Another disk got the node meanwhile.
    #[error(
        "{device}: nothing was written: found another disk than the one that was checked, expected the same until the move begins"
    )]
    Exchanged {
        /// The disk.
        device: String,
    },
    /// A journal that others may have written, and that nobody has named.
    #[error(
        "{path}: found a journal that others than root may have written, expected one of root: {doubt}"
    )]
    Untrusted {
        /// The file.
        path: String,
        /// The possible writers.
        doubt: plumb_sys::Doubt,
    },
    /// A journal whose changes of the label are not those of its move.
    #[error("{device}: nothing was written: the journal {path} does not fit the disk")]
    NotDerived {
        /// The disk.
        device: String,
        /// The file.
        path: String,
        /// Why.
        source: plumb_relocate::labels::NotDerived,
    },
    /// A move that was not begun.
    #[error("{partition}: nothing was written")]
    NotBegun {
        /// The partition.
        partition: String,
        /// Why.
        source: MoveError,
    },
    /// The free part of the new place refuses writes.
    #[error("{partition}: has not moved: only free bytes of its new place were written")]
    NewPlace {
        /// The partition.
        partition: String,
        /// Why.
        source: MoveError,
    },
    /// A file that nothing can be gone on with from.
    #[error("{path}: found no journal that a move could go on from")]
    NoMove {
        /// The file.
        path: String,
        /// Why.
        source: MoveError,
    },
    /// A journal that was made, and not begun with.
    #[error(
        "{path}: found zeros at its start, as of a journal that was not written yet when its move was stopped: that move never \
         began, unless a disk has a mark of it"
    )]
    Unwritten {
        /// The file.
        path: String,
    },
    /// A journal without a record of the beginning, of a move that its disk shows.
    #[error(
        "{path}: found no record that its move began, but {device} has bytes that only this move writes: the disk of the journal \
         has lost records; nothing was written now"
    )]
    RecordsLost {
        /// The file.
        path: String,
        /// The disk.
        device: String,
    },
    /// The error of the move.
    #[error("{partition}: the move cannot go on")]
    Move {
        /// The partition.
        partition: String,
        /// Why.
        source: MoveError,
    },
    /// It has come back at its new place.
    #[error(
        "{partition}: has come back at its new place, and may have been used there since: it does not go back any more; \
         resume ends the move, and back is another move"
    )]
    MayBeInUse {
        /// The partition.
        partition: String,
    },
    /// Another disk than the one of the move.
    #[error(transparent)]
    NotThisDisk(#[from] NotThisDisk),
    /// Another size than when the move began.
    #[error("{device}: size of the disk: found {} B, expected {} B, as when the move began", count(*found), count(*expected))]
    OtherSize {
        /// The disk.
        device: String,
        /// Its bytes.
        found: u64,
        /// The bytes that it had.
        expected: u64,
    },
    /// The disk states other blocks now, which do not fit into those that the move writes.
    #[error(
        "{device}: found physical blocks of {found}, expected ones that make up those of {expected} which the move writes: \
         attach it as it was when the move began, then go on"
    )]
    OtherBlocks {
        /// The disk.
        device: String,
        /// Its statement: length and first boundary.
        found: String,
        /// The unit in which the move writes.
        expected: String,
    },
}

impl From<MoveRefused> for Failure {
    fn from(error: MoveRefused) -> Failure {
        let failure = Failure::failed(&error);
        match error {
            // As with every other target that is none.
            MoveRefused::NotAPartition { .. } => Failure::usage(error.to_string()),
            MoveRefused::NotThere { .. } => Failure::missing(error.to_string()),
            MoveRefused::NeighbourInUse { .. } => failure.with_help(
                "free it until the move has ended: writes to that block meanwhile would be lost",
            ),
            MoveRefused::OnlyInKernel { command, .. } => failure.with_help_and_command(
                "a partition that was deleted and is still needed has to come back into the label first; any other, or a slice \
                 within the one that is moved, is removed from the kernel once nobody uses it",
                *command,
            ),
            MoveRefused::JournalLost { .. } => failure.with_help(
                "mount the file system that it is on, or name the file where it is now: without it nothing but a backup \
                 brings the partition back, and the disk must stay as it is",
            ),
            MoveRefused::RecordsLost { .. } => failure.with_help(
                "keep the disk and the journal as they are: the journal has the old label and the signatures, and without the \
                 lost records nothing but a backup brings all of the partition back",
            ),
            MoveRefused::NotThisDisk(_) => failure.with_help(DISK_HELP),
            MoveRefused::Untrusted { path, .. } => failure.with_help_and_command(
                "name the journal if you know that it is the one of your move",
                Command::new("plumb fix status").path(path),
            ),
            MoveRefused::Unwritten { .. } => failure.with_help(UNWRITTEN_HELP),
            MoveRefused::BootGap { device, first, last, .. } => failure.with_help_and_command(
                "if nothing there is needed, overwrite it with zeros first",
                Command::new("dd if=/dev/zero")
                    .arg(format!("of={device}"))
                    .flags("bs=512")
                    .arg(format!("seek={first}"))
                    .arg(format!("count={}", last - first + 1)),
            ),
            _ => failure,
        }
    }
}
