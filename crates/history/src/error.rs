//! Errors of a store.

use std::path::{Path, PathBuf};

use crate::tier::{Tier, Window};

/// Why a store cannot be used, or a question not be answered.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Another process writes to the store.
    #[error("{}: another process writes to this history; stop it, or use another folder", folder.display())]
    InUse {
        /// Folder of the store.
        folder: PathBuf,
    },
    /// A file of a newer program.
    #[error("{}: schema version {found}; this program reads versions up to {newest}: use a newer one", file.display())]
    Newer {
        /// The file.
        file: PathBuf,
        /// Its version.
        found: i64,
        /// The newest known version.
        newest: i64,
    },
    /// A file of another program.
    #[error("{}: not a history of plumb: found application id {found:#x}, expected {:#x}", file.display(), crate::schema::APPLICATION_ID)]
    Foreign {
        /// The file.
        file: PathBuf,
        /// Its application id.
        found: i64,
    },
    /// No store.
    #[error("{}: no history here; expected the file history.db or recent.db", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// A writer was killed during a change that readers cannot take back.
    #[error("{}: a writer was killed while it changed this file, and a reader cannot take the change back; start `plumb agent` for this folder, and stop it again", file.display())]
    CutOff {
        /// The file.
        file: PathBuf,
    },
    /// SQLite failed.
    #[error("{}: cannot {doing}", file.display())]
    Sql {
        /// The file.
        file: PathBuf,
        /// The action that failed, as a verb with its object.
        doing: &'static str,
        /// The cause.
        source: rusqlite::Error,
    },
    /// The file system failed.
    #[error("{}: cannot {doing}", file.display())]
    File {
        /// The file or folder.
        file: PathBuf,
        /// The action that failed.
        doing: &'static str,
        /// The cause.
        source: std::io::Error,
    },
    /// A profile that cannot be stored or read.
    #[error("profile of {device}: {what}")]
    Record {
        /// The device.
        device: String,
        /// The fault.
        what: String,
    },
    /// Totals of a window that are damaged, and its histograms as well.
    #[error("{}: the totals of device number {series} in window {} of {} are damaged; run `plumb history verify`, and name a time without that window", file.display(), window.number, window.tier.word())]
    DamagedTotals {
        /// The file.
        file: PathBuf,
        /// Number of the series.
        series: u32,
        /// The window.
        window: Window,
    },
    /// A row in a place that belongs to another one.
    #[error("{}: found a row of {} out of its order; run `plumb history verify`", file.display(), tier.word())]
    OutOfOrder {
        /// The file.
        file: PathBuf,
        /// The tier.
        tier: Tier,
    },
    /// Too many devices.
    #[error("found {found} devices with a history, expected at most {most}")]
    TooManySeries {
        /// Number found.
        found: u32,
        /// Most.
        most: u32,
    },
    /// A profile that fits into no window.
    #[error("the profile of {device} reaches over midnight UTC; expected a profile within one day")]
    TooLong {
        /// The device.
        device: String,
    },
    /// The cap has no room for one record.
    #[error("{}: the cap of {cap_bytes} bytes has no room for {needed_bytes} bytes more; raise the cap", file.display())]
    CapTooSmall {
        /// The file.
        file: PathBuf,
        /// The cap of this file.
        cap_bytes: u64,
        /// Bytes to write.
        needed_bytes: u64,
    },
}

/// Whether the file system of a folder takes no new file for want of room, or because it is read-only.
fn refuses_new_files(folder: &Path) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let file = folder.join("plumb-write-test");
    let tried = std::fs::write(&file, [1; 4096]);
    // It is there after a part of it was written.
    let _ = std::fs::remove_file(&file);
    tried.is_err_and(|error| {
        matches!(
            error.kind(),
            QuotaExceeded | ReadOnlyFilesystem | StorageFull
        )
    })
}

impl HistoryError {
    /// Whether the file system refuses writes at present, for want of room or because it is read-only: a later try may succeed.
    #[must_use]
    pub fn is_refused_write(&self) -> bool {
        use rusqlite::ErrorCode::{CannotOpen, DiskFull, ReadOnly, SystemIoFailure};
        use std::io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match self {
            HistoryError::Sql { file, source, .. } => match source.sqlite_error_code() {
                Some(DiskFull | ReadOnly | SystemIoFailure) => true,
                // A log that cannot be created is a file that cannot be opened, and so is one without the right to open it.
                Some(CannotOpen) => file.parent().is_some_and(refuses_new_files),
                _ => false,
            },
            HistoryError::File { source, .. } => matches!(
                source.kind(),
                QuotaExceeded | ReadOnlyFilesystem | StorageFull
            ),
            _ => false,
        }
    }

    /// Whether the file itself is damaged, so that it must be replaced.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        let HistoryError::Sql { source, .. } = self else {
            return false;
        };
        // The statements are fixed, so an error in one, or a value of a wrong type, is damage to the schema or to a row.
        let is_wrong_type = matches!(
            source,
            rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::SqlInputError { .. }
        );
        is_wrong_type
            || matches!(
                source.sqlite_error_code(),
                Some(
                    rusqlite::ErrorCode::DatabaseCorrupt
                        | rusqlite::ErrorCode::NotADatabase
                        | rusqlite::ErrorCode::Unknown
                )
            )
    }
}
