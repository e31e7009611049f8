//! Records in a file: written, read and deleted; and the room for them below the cap.

use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::database::{Database, PAGE_BYTES};
use crate::error::HistoryError;
use crate::finding;
use crate::glance::{self, COLUMNS_COUNT, Glance};
use crate::record::EncodedRecord;
use crate::schema::{Part, SERIES_MAX};
use crate::settings::Settings;
use crate::tier::{Tier, Window};

/// Windows of one tier that one flush deletes for their age. So a clock that is wrong for some minutes does not empty the
/// store.
const AGED_MAX: usize = 4;

/// The tables of a tier.
const WIDTHS: [&str; 3] = ["glance", "histograms", "table"];

/// The identifier of a record.
pub(crate) fn id_of(window: Window, series: u32) -> i64 {
    window.number * i64::from(SERIES_MAX) + i64::from(series)
}

/// The window and series of an identifier.
pub(crate) fn of_id(tier: Tier, id: i64) -> (Window, u32) {
    let most = i64::from(SERIES_MAX);
    let window = Window {
        tier,
        number: id.div_euclid(most),
    };
    (window, id.rem_euclid(most) as u32)
}

/// Writes a record in place of the one that was there.
pub(crate) fn write_record(
    connection: &Connection,
    window: Window,
    series: u32,
    record: &EncodedRecord,
) -> rusqlite::Result<()> {
    let (id, tier) = (id_of(window, series), window.tier.word());
    let marks = "?, ".repeat(COLUMNS_COUNT);
    let sql = format!(
        "INSERT OR REPLACE INTO glance_{tier} (id, {}) VALUES ({}?)",
        glance::COLUMNS,
        marks
    );
    let values = std::iter::once(Some(id)).chain(record.glance.to_columns());
    connection
        .prepare_cached(&sql)?
        .execute(params_from_iter(values))?;
    let sql = format!("INSERT OR REPLACE INTO histograms_{tier} VALUES (?, ?, ?)");
    connection
        .prepare_cached(&sql)?
        .execute(params![id, record.profile, record.senders])?;
    match &record.table {
        Some(table) => {
            let sql = format!("INSERT OR REPLACE INTO table_{tier} VALUES (?, ?)");
            connection
                .prepare_cached(&sql)?
                .execute(params![id, table])?;
        }
        None => {
            let sql = format!("DELETE FROM table_{tier} WHERE id = ?");
            connection.prepare_cached(&sql)?.execute([id])?;
        }
    }
    Ok(())
}

/// Reads a record. One whose columns have other types than they can have is empty, which no sound record is.
pub(crate) fn read_record(
    connection: &Connection,
    window: Window,
    series: u32,
) -> rusqlite::Result<Option<EncodedRecord>> {
    let (id, tier) = (id_of(window, series), window.tier.word());
    let sql = format!(
        "SELECT {}, profile, senders, residues FROM glance_{tier}
         LEFT JOIN histograms_{tier} USING (id) LEFT JOIN table_{tier} USING (id) WHERE id = ?",
        glance::COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement
        .query_row([id], |row| {
            let bytes = |at: usize| row.get::<_, Option<Vec<u8>>>(at);
            Ok(EncodedRecord {
                glance: glance_of(row, 0)?,
                profile: bytes(COLUMNS_COUNT)?.unwrap_or_default(),
                senders: bytes(COLUMNS_COUNT + 1)?.unwrap_or_default(),
                table: bytes(COLUMNS_COUNT + 2)?,
            })
        })
        .optional();
    match found {
        Err(rusqlite::Error::InvalidColumnType(..)) => Ok(Some(EncodedRecord::default())),
        found => found,
    }
}

/// The glance of a row from a column on.
pub(crate) fn glance_of(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Glance> {
    let mut columns = [None; COLUMNS_COUNT];
    for (at, column) in columns.iter_mut().enumerate() {
        *column = row.get(first + at)?;
    }
    Ok(Glance::from_columns(columns))
}

/// The oldest or newest window of a tier.
pub(crate) fn end_window(
    connection: &Connection,
    tier: Tier,
    newest: bool,
) -> rusqlite::Result<Option<Window>> {
    let end = if newest { "max" } else { "min" };
    let sql = format!("SELECT {end}(id) FROM glance_{}", tier.word());
    let id: Option<i64> = connection.query_row(&sql, [], |row| row.get(0))?;
    Ok(id.map(|id| of_id(tier, id).0))
}

/// Deletes all windows of a tier up to and with one.
fn delete_up_to(connection: &Connection, window: Window) -> rusqlite::Result<()> {
    let end = (window.number + 1).saturating_mul(i64::from(SERIES_MAX));
    for width in WIDTHS {
        let sql = format!("DELETE FROM {width}_{} WHERE id < ?", window.tier.word());
        connection.prepare_cached(&sql)?.execute([end])?;
    }
    Ok(())
}

/// Deletes all windows of a tier that end at a time or before, and returns their number.
pub(crate) fn delete_before(
    connection: &Connection,
    tier: Tier,
    before_ns: i64,
) -> rusqlite::Result<u64> {
    let mut last = Window::at(tier, before_ns);
    // The window that holds the time stays.
    last.number -= 1;
    let end = id_of(last, SERIES_MAX - 1);
    let sql = format!(
        "SELECT count(DISTINCT id / {SERIES_MAX}) FROM glance_{} WHERE id <= ?",
        tier.word()
    );
    let windows: i64 = connection.query_row(&sql, [end], |row| row.get(0))?;
    delete_up_to(connection, last)?;
    Ok(u64::try_from(windows).unwrap_or(0))
}

/// Deletes the oldest windows that are past their time.
pub(crate) fn delete_aged(
    connection: &Connection,
    part: Part,
    settings: &Settings,
    now_ns: i64,
) -> rusqlite::Result<()> {
    for tier in part.tiers() {
        let keep_from_ns = now_ns.saturating_sub(settings.tier(tier).keep_ns);
        for _ in 0..AGED_MAX {
            match end_window(connection, tier, false)? {
                Some(window) if window.span().to_ns <= keep_from_ns => {
                    delete_up_to(connection, window)?;
                }
                _ => break,
            }
        }
    }
    if part == Part::History {
        let keep_ns = settings.tier(Tier::Day).keep_ns;
        finding::delete_aged(connection, now_ns.saturating_sub(keep_ns))?;
    }
    Ok(())
}

/// Makes room below the cap for bytes to be written: deletes the oldest windows of the finest tier that has any. Returns
/// the number of deleted windows.
///
/// Only this accounting deletes. A file system without room never does: it would take the history for nothing.
pub(crate) fn make_room(
    database: &Database,
    settings: &Settings,
    needed_bytes: u64,
) -> Result<u64, HistoryError> {
    let cap_bytes = settings.file_bytes_max(database.part == Part::Recent);
    // Pages are not filled to the last byte, and the tree above them grows.
    let needed_bytes = needed_bytes + needed_bytes / 4 + 16 * PAGE_BYTES;
    let mut deleted = 0;
    loop {
        if database.used_bytes()?.saturating_add(needed_bytes) <= cap_bytes {
            return Ok(deleted);
        }
        let oldest = || -> rusqlite::Result<Option<Window>> {
            for tier in database.part.tiers() {
                if let Some(window) = end_window(&database.connection, tier, false)? {
                    return Ok(Some(window));
                }
            }
            Ok(None)
        };
        let failed = |source| database.failed("delete old windows", source);
        let Some(window) = oldest().map_err(failed)? else {
            return Err(HistoryError::CapTooSmall {
                file: database.file.clone(),
                cap_bytes,
                needed_bytes,
            });
        };
        delete_up_to(&database.connection, window).map_err(failed)?;
        deleted += 1;
    }
}
