//! One file of a store, opened for writing or for reading.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::checksum::RowSum;
use crate::error::HistoryError;
use crate::schema::{self, APPLICATION_ID, NEWEST, Part, SUMS_FROM};
use crate::settings::Settings;
use crate::tier::Window;

/// Bytes of a page. 8 KiB was measured to have the least overhead for records of some hundred bytes to some KiB.
pub(crate) const PAGE_BYTES: u64 = 8192;

/// The schema version from which on rows have checksums.
const VERSION_OF_SUMS: i64 = 3;

/// Damaged files of one name that are kept aside.
const ASIDE_MAX: usize = 100;

/// One file.
pub(crate) struct Database {
    pub(crate) connection: Connection,
    pub(crate) file: PathBuf,
    pub(crate) part: Part,
    /// Windows from this time on have checksums, ns; `None` for a file that has no columns for them.
    pub(crate) sums_from_ns: Option<i64>,
    /// Pages of the log from which on they are moved into the file.
    log_pages_max: i64,
    /// Whether the last move failed.
    pub(crate) is_log_stuck: bool,
}

impl Database {
    /// Opens a file for writing; makes it, or takes it to the newest version.
    pub(crate) fn open_to_write(
        folder: &Path,
        part: Part,
        settings: &Settings,
    ) -> Result<Database, HistoryError> {
        let file = folder.join(part.file_name());
        // SQLite would create the file readable for everybody. Its log and index take the mode of the file.
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&file);
        if let Err(source) = made
            && source.kind() != std::io::ErrorKind::AlreadyExists
        {
            return Err(HistoryError::File {
                file,
                doing: "create the file",
                source,
            });
        }
        let mut database =
            Database::connected(file, part, OpenFlags::SQLITE_OPEN_READ_WRITE, settings)?;
        database.prepare(settings)?;
        database.migrate()?;
        database.find_sums()?;
        Ok(database)
    }

    /// An empty file in memory; its path is the one that it will have.
    pub(crate) fn in_memory(
        folder: &Path,
        part: Part,
        settings: &Settings,
    ) -> Result<Database, HistoryError> {
        let file = folder.join(part.file_name());
        let connection = Connection::open_in_memory().map_err(|source| HistoryError::Sql {
            file: file.clone(),
            doing: "begin in memory",
            source,
        })?;
        let mut database = Database {
            connection,
            file,
            part,
            sums_from_ns: None,
            log_pages_max: i64::MAX,
            is_log_stuck: false,
        };
        database.prepare(settings)?;
        database.migrate()?;
        database.find_sums()?;
        Ok(database)
    }

    /// Opens a file for reading. `None` if there is no file, an empty one, or one that a killed writer had only begun to make.
    pub(crate) fn open_to_read(
        folder: &Path,
        part: Part,
        settings: &Settings,
    ) -> Result<Option<Database>, HistoryError> {
        let file = folder.join(part.file_name());
        let pages_before = pages_before_change(&file);
        if pages_before == Some(0) || !std::fs::metadata(&file).is_ok_and(|found| found.len() > 0) {
            return Ok(None);
        }
        let opened = Database::connected(
            file.clone(),
            part,
            OpenFlags::SQLITE_OPEN_READ_ONLY,
            settings,
        );
        let mut database = match opened {
            Err(HistoryError::Sql { .. }) if pages_before.is_some() => {
                return Err(HistoryError::CutOff { file });
            }
            opened => opened?,
        };
        let version = database.version()?;
        if version >= VERSION_OF_SUMS {
            database.find_sums()?;
        }
        Ok((version > 0).then_some(database))
    }

    /// Reads the time from which windows have checksums. Without it in a file that has the columns, all have.
    fn find_sums(&mut self) -> Result<(), HistoryError> {
        let sql = format!("SELECT coalesce(max(value), 0) FROM meta WHERE name = '{SUMS_FROM}'");
        self.sums_from_ns = Some(self.number(&sql, "read the time of the first checksums")?);
        Ok(())
    }

    /// The expression for the checksum of a row of a table.
    pub(crate) fn sum_column(&self, table: &str) -> String {
        match self.sums_from_ns {
            Some(_) => format!("{table}.sum"),
            None => "NULL".to_owned(),
        }
    }

    /// Whether a checksum is that of its row. A window from before the checksums needs none.
    pub(crate) fn accepts(&self, window: Window, found: Option<i64>, expected: RowSum) -> bool {
        match found {
            Some(found) => found == expected.value(),
            None => self
                .sums_from_ns
                .is_none_or(|from_ns| window.span().from_ns < from_ns),
        }
    }

    fn connected(
        file: PathBuf,
        part: Part,
        access: OpenFlags,
        settings: &Settings,
    ) -> Result<Database, HistoryError> {
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let database = Database {
            connection: connect(&file, flags, settings)?,
            file,
            part,
            sums_from_ns: None,
            log_pages_max: i64::MAX,
            is_log_stuck: false,
        };
        database.check_header()?;
        Ok(database)
    }

    fn check_header(&self) -> Result<(), HistoryError> {
        let found = self.number("PRAGMA application_id", "read the header")?;
        let version = self.version()?;
        if found == 0 && version == 0 {
            return Ok(());
        }
        if found != APPLICATION_ID {
            return Err(HistoryError::Foreign {
                file: self.file.clone(),
                found,
            });
        }
        if version > NEWEST {
            return Err(HistoryError::Newer {
                file: self.file.clone(),
                found: version,
                newest: NEWEST,
            });
        }
        Ok(())
    }

    pub(crate) fn version(&self) -> Result<i64, HistoryError> {
        self.number("PRAGMA user_version", "read the header")
    }

    /// Sets the bounds of the file.
    pub(crate) fn prepare(&mut self, settings: &Settings) -> Result<(), HistoryError> {
        let is_recent = self.part == Part::Recent;
        let pages_max = settings.file_bytes_max(is_recent) / PAGE_BYTES;
        let log_bytes = settings.log_bytes_max(is_recent);
        self.log_pages_max = (log_bytes / 4 / PAGE_BYTES).max(1) as i64;
        // The size of a page must be set before the first table and before the log.
        let pragmas = format!(
            "PRAGMA page_size = {PAGE_BYTES};
             PRAGMA auto_vacuum = NONE;
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = NORMAL;
             PRAGMA journal_size_limit = {};
             PRAGMA wal_autocheckpoint = 0;
             PRAGMA max_page_count = {pages_max};",
            log_bytes / 2
        );
        self.connection
            .execute_batch(&pragmas)
            .map_err(|source| self.failed("set up the file", source))
    }

    /// Moves the pages of the log into the file once the log has its length. SQLite would do so after a commit by itself, and drop every error.
    pub(crate) fn empty_log(&self) -> Result<(), HistoryError> {
        // Pages of the log, and those of them that are in the file; without a log both are -1.
        let log = |mode: &str| -> Result<(i64, i64), HistoryError> {
            let sql = format!("PRAGMA wal_checkpoint({mode})");
            self.connection
                .query_row(&sql, [], |row| Ok((row.get(1)?, row.get(2)?)))
                .map_err(|source| self.failed("move the pages of the log into the file", source))
        };
        let (pages, moved) = log("NOOP")?;
        if pages >= self.log_pages_max && moved < pages {
            log("PASSIVE")?;
        }
        Ok(())
    }

    fn migrate(&self) -> Result<(), HistoryError> {
        let mut version = self.version()?;
        while version < NEWEST {
            let migrate = || -> rusqlite::Result<()> {
                let transaction = self.connection.unchecked_transaction()?;
                schema::step(&transaction, self.part, version)?;
                transaction.execute_batch(&format!(
                    "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {};",
                    version + 1
                ))?;
                transaction.commit()
            };
            migrate().map_err(|source| self.failed("change to the next schema version", source))?;
            version += 1;
        }
        Ok(())
    }

    /// The only number that a statement returns.
    pub(crate) fn number(&self, sql: &str, doing: &'static str) -> Result<i64, HistoryError> {
        self.connection
            .query_row(sql, [], |row| row.get(0))
            .map_err(|source| self.failed(doing, source))
    }

    /// Bytes of pages in use; freed pages are used again and do not count.
    pub(crate) fn used_bytes(&self) -> Result<u64, HistoryError> {
        let pages = self.number("PRAGMA page_count", "read the size")?;
        let free = self.number("PRAGMA freelist_count", "read the size")?;
        let used = u64::try_from(pages - free).unwrap_or(0);
        Ok(used.saturating_mul(PAGE_BYTES))
    }

    /// The steps by which SQLite answers a statement whose parameters are all numbers.
    #[cfg(test)]
    pub(crate) fn query_plan(&self, sql: &str) -> Vec<String> {
        let plan = format!("EXPLAIN QUERY PLAN {sql}");
        let mut statement = self.connection.prepare(&plan).expect("a statement");
        let zeros = vec![0; statement.parameter_count()];
        let steps = statement.query_map(rusqlite::params_from_iter(zeros), |row| row.get("detail"));
        let steps = steps.expect("a plan").collect::<Result<_, _>>();
        steps.expect("text")
    }

    pub(crate) fn failed(&self, doing: &'static str, source: rusqlite::Error) -> HistoryError {
        HistoryError::Sql {
            file: self.file.clone(),
            doing,
            source,
        }
    }
}

/// The path with the true folder, if there is one: `SQLITE_OPEN_NOFOLLOW` refuses a link anywhere in a path, and systemd makes the folder of
/// a unit with `DynamicUser` a link. A link in place of the file itself stays refused.
fn resolve_folder(file: &Path) -> PathBuf {
    let folder = file
        .parent()
        .and_then(|folder| std::fs::canonicalize(folder).ok());
    match (folder, file.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => file.to_owned(),
    }
}

fn connect(file: &Path, flags: OpenFlags, settings: &Settings) -> Result<Connection, HistoryError> {
    let resolved = resolve_folder(file);
    let opened = match &settings.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(&resolved, flags, vfs.as_str()),
        None => Connection::open_with_flags(&resolved, flags),
    };
    let failed = |source| HistoryError::Sql {
        file: file.to_owned(),
        doing: "open the file",
        source,
    };
    let connection = opened.map_err(failed)?;
    // The schema of a file from elsewhere must not run functions.
    let pragmas = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;";
    connection
        .busy_timeout(Duration::from_secs(5))
        .and_then(|()| connection.execute_batch(pragmas))
        .map_err(failed)?;
    Ok(connection)
}

/// First bytes of a rollback journal of SQLite: <https://www.sqlite.org/fileformat2.html#the_rollback_journal>.
const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// The pages that a file had before a change that did not end; `None` if no rollback journal of such a change is there. A writer has one only
/// until the file has its write-ahead log, and rolls it back when it opens the file, which a reader must not do.
fn pages_before_change(file: &Path) -> Option<u32> {
    let mut journal = file.as_os_str().to_owned();
    journal.push("-journal");
    let mut head = [0; 20];
    let mut journal = std::fs::File::open(journal).ok()?;
    journal.read_exact(&mut head).ok()?;
    let pages = [head[16], head[17], head[18], head[19]];
    (head[..8] == JOURNAL_MAGIC).then_some(u32::from_be_bytes(pages))
}

/// Renames a damaged file together with its log, and returns the new name.
pub(crate) fn set_aside(folder: &Path, part: Part) -> Result<PathBuf, HistoryError> {
    let name = part.file_name();
    let file = folder.join(name);
    let free = (1..=ASIDE_MAX)
        .map(|number| folder.join(format!("{name}.damaged-{number}")))
        .find(|aside| !aside.exists());
    let rename = |from: &Path, to: &Path| {
        std::fs::rename(from, to).map_err(|source| HistoryError::File {
            file: from.to_owned(),
            doing: "rename the damaged file",
            source,
        })
    };
    let Some(aside) = free else {
        return Err(HistoryError::File {
            file,
            doing: "rename the damaged file",
            source: std::io::Error::other(format!("{ASIDE_MAX} damaged files are there already")),
        });
    };
    rename(&file, &aside)?;
    let log = folder.join(format!("{name}-wal"));
    if log.exists() {
        let mut aside_log = aside.clone().into_os_string();
        aside_log.push("-wal");
        rename(&log, Path::new(&aside_log))?;
    }
    // The index of the log is made from the log.
    let _ = std::fs::remove_file(folder.join(format!("{name}-shm")));
    Ok(aside)
}
