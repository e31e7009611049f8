//! The state of a store: damage, sizes, and the reach of its bounds.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::database::Database;
use crate::error::HistoryError;
use crate::glance::Glance;
use crate::reader::Reader;
use crate::record::Record;
use crate::room;
use crate::schema::Part;
use crate::settings::Settings;
use crate::tier::{Tier, Window};
use crate::writer::open_rows::read_open;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// The files, `recent.db` first.
    pub files: Vec<FileState>,
}

/// The state of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// The file.
    pub file: PathBuf,
    /// Lines of SQLite's own check; none if it found no damage.
    pub faults: Vec<String>,
    /// Records that are sound.
    pub sound: u64,
    /// Records that cannot be decoded.
    pub damaged: u64,
    /// Records whose totals differ from their histograms.
    pub differing: u64,
}

impl FileState {
    /// Whether all is sound.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty() && self.damaged == 0 && self.differing == 0
    }
}

/// The size of a store now and at its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Bytes in use.
    pub used_bytes: u64,
    /// Hard cap.
    pub cap_bytes: u64,
    /// Bytes in use once every tier has reached its time, at the mean rate of the stored windows; `None` with less than a
    /// day of windows.
    pub full_bytes: Option<u64>,
    /// The time for which the store will keep each tier, ns: its setting, or less where the cap comes first.
    pub reach_ns: [i64; 3],
    /// Begin of the oldest window of each tier.
    pub oldest_ns: [Option<i64>; 3],
}

const DAY_NS: i64 = 86_400_000_000_000;

impl Reader {
    /// Reads everything, and checks it.
    ///
    /// # Errors
    /// If a file cannot be read at all.
    pub fn verify(&self) -> Result<Verified, HistoryError> {
        let files = self.databases().map(verify_file);
        Ok(Verified {
            files: files.collect::<Result<_, _>>()?,
        })
    }

    /// Sizes now, and to be expected.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn estimate(&self, settings: &Settings) -> Result<Estimate, HistoryError> {
        let mut estimate = Estimate {
            cap_bytes: settings.bytes_max,
            reach_ns: settings.tiers.map(|tier| tier.keep_ns),
            ..Estimate::default()
        };
        let mut full_bytes = 0u64;
        let mut days_max = 0;
        for database in self.databases() {
            estimate.used_bytes += database.used_bytes()?;
            let mut room = settings.file_bytes_max(database.part == Part::Recent);
            let mut rates = Vec::new();
            for tier in database.part.tiers() {
                let Some((bytes, span_ns, from_ns)) = size_of(database, tier)? else {
                    continue;
                };
                estimate.oldest_ns[tier as usize] = Some(from_ns);
                days_max = days_max.max(span_ns / DAY_NS);
                rates.push((
                    tier,
                    (u128::from(bytes) * DAY_NS as u128 / span_ns as u128) as u64,
                ));
            }
            // The coarsest tier is evicted last: it takes its room first.
            for (tier, day_bytes) in rates.into_iter().rev() {
                let keep_ns = settings.tier(tier).keep_ns;
                let wanted = (u128::from(day_bytes) * keep_ns as u128 / DAY_NS as u128) as u64;
                full_bytes = full_bytes.saturating_add(wanted);
                if wanted > room {
                    let reach = u128::from(room) * DAY_NS as u128 / u128::from(day_bytes.max(1));
                    estimate.reach_ns[tier as usize] = i64::try_from(reach).unwrap_or(i64::MAX);
                }
                room = room.saturating_sub(wanted);
            }
        }
        estimate.full_bytes = (days_max > 0).then_some(full_bytes);
        Ok(estimate)
    }

    /// Copies the store to another folder while the agent may write to it. The copies are for their owner alone.
    ///
    /// `history.db` goes first. A window of 5 minutes that closes between the two copies is then open in the copy of `history.db` and
    /// closed in that of `recent.db`; readers and the writer take the open one, so it counts once. In the other order it would be in neither
    /// copy: closed in `history.db`, and not yet in `recent.db`. Its hour would have its I/O, and its 5 minutes would be lost.
    ///
    /// # Errors
    /// If a file of the copy exists, or the system fails.
    pub fn back_up(&self, to: &Path) -> Result<Vec<PathBuf>, HistoryError> {
        let mut made = Vec::new();
        for database in self.history.iter().chain(&self.recent) {
            let file = to.join(database.part.file_name());
            std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&file)
                .map_err(|source| HistoryError::File {
                    file: file.clone(),
                    doing: "create the copy",
                    source,
                })?;
            database
                .connection
                .backup("main", &file, None::<fn(rusqlite::backup::Progress)>)
                .map_err(|source| HistoryError::Sql {
                    file: file.clone(),
                    doing: "copy the history",
                    source,
                })?;
            // A file with a log needs a folder that its reader may write, and a copy may be in any folder.
            Connection::open(&file)
                .and_then(|copy| copy.execute_batch("PRAGMA journal_mode = DELETE;"))
                .map_err(|source| HistoryError::Sql {
                    file: file.clone(),
                    doing: "complete the copy",
                    source,
                })?;
            made.push(file);
        }
        Ok(made)
    }
}

/// Bytes of the records of a tier, the time from its first to its last window, and its begin. `None` without any.
fn size_of(database: &Database, tier: Tier) -> Result<Option<(u64, i64, i64)>, HistoryError> {
    let failed = |source| database.failed("measure a tier", source);
    let end = |newest| room::sound_end_window(database, tier, None, newest).map_err(failed);
    let (first, last) = (end(false)?, end(true)?);
    let (Some(first), Some(last)) = (first, last) else {
        return Ok(None);
    };
    let word = tier.word();
    // 100 bytes for the columns of the glance; a fifth more for the pages, as measured.
    let sql = format!(
        "SELECT (SELECT coalesce(sum(length(profile) + length(senders) + 100), 0) FROM histograms_{word})
              + (SELECT coalesce(sum(length(residues)), 0) FROM table_{word})"
    );
    let bytes = database.number(&sql, "measure a tier")?;
    let bytes = u64::try_from(bytes).unwrap_or(0);
    let span_ns = last.span().to_ns - first.span().from_ns;
    Ok(Some((bytes + bytes / 5, span_ns, first.span().from_ns)))
}

fn verify_file(database: &Database) -> Result<FileState, HistoryError> {
    let failed = |source| database.failed("check the file", source);
    let mut state = FileState {
        file: database.file.clone(),
        faults: Vec::new(),
        sound: 0,
        damaged: 0,
        differing: 0,
    };
    let mut statement = database
        .connection
        .prepare("PRAGMA integrity_check(20)")
        .map_err(failed)?;
    let lines = statement
        .query_map([], |row| row.get::<_, String>(0))
        .map_err(failed)?;
    for line in lines {
        match line {
            Ok(line) if line == "ok" => {}
            Ok(line) => state.faults.push(line),
            Err(error) => state.faults.push(error.to_string()),
        }
    }
    for tier in database.part.tiers() {
        if let Err(error) = verify_tier(database, tier, &mut state) {
            state.faults.push(error.to_string());
        }
    }
    if database.part == Part::History
        && let Err(error) = verify_open(database, &mut state)
    {
        state.faults.push(error.to_string());
    }
    Ok(state)
}

fn verify_tier(database: &Database, tier: Tier, state: &mut FileState) -> rusqlite::Result<()> {
    let connection = &database.connection;
    let word = tier.word();
    let mut statement = connection.prepare(&format!("SELECT id FROM glance_{word} ORDER BY id"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (window, series): (Window, u32) = room::of_id(tier, row.get(0)?);
        let Some(found) = room::read_checked(database, window, series)? else {
            continue;
        };
        match Record::decode(&found.record) {
            Err(_) => state.damaged += 1,
            Ok(record) => {
                // Places are counted before a table is reduced; the other totals follow from the histograms.
                let expected = Glance {
                    off_4k: record.glance.off_4k,
                    ..Glance::of_profile(&record.profile)
                };
                if found.are_totals_sound && expected == record.glance {
                    state.sound += 1;
                } else {
                    state.differing += 1;
                }
            }
        }
    }
    // The totals are the list of the records: one without them would never be read.
    let sql = format!(
        "SELECT count(*) FROM histograms_{word} WHERE id NOT IN (SELECT id FROM glance_{word})"
    );
    let alone: i64 = connection.query_row(&sql, [], |row| row.get(0))?;
    state.damaged += u64::try_from(alone).unwrap_or(0);
    Ok(())
}

/// Open windows without their checksums count as damaged records.
fn verify_open(database: &Database, state: &mut FileState) -> rusqlite::Result<()> {
    let open = read_open(database)?;
    state.damaged += open.iter().filter(|open| open.is_damaged).count() as u64;
    Ok(())
}
