//! Records in a file: written, read and deleted; and the room for them below the cap.

use rusqlite::{Connection, OptionalExtension, params, params_from_iter};

use crate::checksum::RowSum;
use crate::database::{Database, PAGE_BYTES};
use crate::error::HistoryError;
use crate::finding;
use crate::glance::{self, COLUMNS_COUNT, Glance};
use crate::record::{EncodedRecord, Record};
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
        "INSERT OR REPLACE INTO glance_{tier} (id, {}, sum) VALUES ({}?, ?)",
        glance::COLUMNS,
        marks
    );
    let columns = record.glance.to_columns();
    let sum = glance_sum(id, &columns).value();
    let values = std::iter::once(Some(id)).chain(columns).chain([Some(sum)]);
    connection
        .prepare_cached(&sql)?
        .execute(params_from_iter(values))?;
    let sql = format!("INSERT OR REPLACE INTO histograms_{tier} VALUES (?, ?, ?, ?)");
    let sum = widths_sum(id, record).value();
    connection
        .prepare_cached(&sql)?
        .execute(params![id, record.profile, record.senders, sum])?;
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

fn glance_sum(id: i64, columns: &[Option<i64>; COLUMNS_COUNT]) -> RowSum {
    // All of it in one piece: short pieces take most of the time of a sum.
    let mut words = [[0; 8]; COLUMNS_COUNT + 2];
    let mut absent = 0u64;
    for (at, number) in columns.iter().enumerate() {
        absent |= u64::from(number.is_none()) << at;
        words[at + 1] = number.unwrap_or(0).to_le_bytes();
    }
    words[0] = id.to_le_bytes();
    words[COLUMNS_COUNT + 1] = absent.to_le_bytes();
    RowSum::of_words(&words)
}

/// The checksum of the two wider widths of a record. That of the histograms alone would not miss a table that is gone.
fn widths_sum(id: i64, record: &EncodedRecord) -> RowSum {
    RowSum::of_key(id)
        .bytes(Some(&record.profile))
        .bytes(Some(&record.senders))
        .bytes(record.table.as_deref())
}

/// A record, and whether its totals have their checksum.
pub(crate) struct CheckedRecord {
    pub(crate) record: EncodedRecord,
    pub(crate) are_totals_sound: bool,
}

/// Reads a record. One whose columns have other types than they can have, or that has not its checksum, is empty, which no
/// sound record is.
pub(crate) fn read_checked(
    database: &Database,
    window: Window,
    series: u32,
) -> rusqlite::Result<Option<CheckedRecord>> {
    let (id, tier) = (id_of(window, series), window.tier.word());
    let sql = format!(
        "SELECT {}, {}, profile, senders, residues, {} FROM glance_{tier}
         LEFT JOIN histograms_{tier} USING (id) LEFT JOIN table_{tier} USING (id) WHERE id = ?",
        glance::COLUMNS,
        database.sum_column(&format!("glance_{tier}")),
        database.sum_column(&format!("histograms_{tier}")),
    );
    let mut statement = database.connection.prepare_cached(&sql)?;
    let mut rows = statement.query([id])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let glance = checked_glance(database, row, window, id)?;
    let read = || -> rusqlite::Result<EncodedRecord> {
        let bytes = |at: usize| row.get::<_, Option<Vec<u8>>>(COLUMNS_COUNT + at);
        let record = EncodedRecord {
            glance: glance.unwrap_or_default(),
            profile: bytes(1)?.unwrap_or_default(),
            senders: bytes(2)?.unwrap_or_default(),
            table: bytes(3)?,
        };
        let sum = row.get(COLUMNS_COUNT + 4)?;
        let is_sound = database.accepts(window, sum, widths_sum(id, &record));
        Ok(if is_sound {
            record
        } else {
            EncodedRecord::default()
        })
    };
    Ok(Some(CheckedRecord {
        record: or_without(read())?.unwrap_or_default(),
        are_totals_sound: glance.is_some(),
    }))
}

/// The same; damaged totals are made from the histograms.
pub(crate) fn read_record(
    database: &Database,
    window: Window,
    series: u32,
) -> rusqlite::Result<Option<EncodedRecord>> {
    let found = read_checked(database, window, series)?;
    Ok(found.map(|found| {
        let mut record = found.record;
        if !found.are_totals_sound {
            record.glance = glance_of_record(&record).unwrap_or_default();
        }
        record
    }))
}

/// The totals of a record from its wider widths; `None` if they are damaged, too.
pub(crate) fn glance_of_record(encoded: &EncodedRecord) -> Option<Glance> {
    let record = Record::decode(encoded).ok()?;
    let mut glance = Glance::of_profile(&record.profile);
    // A table that was dropped looks like one without I/O.
    glance.off_4k = glance.off_4k.filter(|_| record.has_table);
    Some(glance)
}

/// The totals of a row whose columns begin with them and their checksum; `None` if they are damaged.
pub(crate) fn checked_glance(
    database: &Database,
    row: &rusqlite::Row<'_>,
    window: Window,
    id: i64,
) -> rusqlite::Result<Option<Glance>> {
    let read = || -> rusqlite::Result<Option<Glance>> {
        let mut columns = [None; COLUMNS_COUNT];
        for (at, column) in columns.iter_mut().enumerate() {
            *column = row.get(at)?;
        }
        let is_sound = database.accepts(window, row.get(COLUMNS_COUNT)?, glance_sum(id, &columns));
        Ok(is_sound.then(|| Glance::from_columns(columns)))
    };
    Ok(or_without(read())?.flatten())
}

/// A value of a type that its column cannot have is damage to the row, and no failure of the file.
fn or_without<T>(read: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    match read {
        Err(rusqlite::Error::InvalidColumnType(..)) => Ok(None),
        read => read.map(Some),
    }
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

/// The oldest or newest window of a series in a tier. It jumps by the key from window to window, so that a device with I/O in the window at
/// the end costs one or two rows, and one without any costs two rows for each window.
pub(crate) fn end_window_of(
    connection: &Connection,
    tier: Tier,
    series: u32,
    newest: bool,
) -> rusqlite::Result<Option<Window>> {
    let id = end_id_of(connection, tier, series, newest, outmost(newest))?;
    Ok(id.map(|id| of_id(tier, id).0))
}

/// The outmost identifier in a direction.
const fn outmost(newest: bool) -> i64 {
    if newest { i64::MAX } else { 0 }
}

/// The same from an identifier on.
fn end_id_of(
    connection: &Connection,
    tier: Tier,
    series: u32,
    newest: bool,
    from_id: i64,
) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached(&seek_sql(tier, newest))?;
    let width = i64::from(SERIES_MAX);
    let series = i64::from(series);
    let mut wanted = from_id;
    loop {
        let id: Option<i64> = statement.query_row([wanted], |row| row.get(0)).optional()?;
        let Some(id) = id else {
            return Ok(None);
        };
        let found = id.rem_euclid(width);
        if found == series {
            return Ok(Some(id));
        }
        // The series in the same window if it can come yet, else in the next one.
        let begin = id - found;
        let next = match newest {
            true if series < found => Some(begin + series),
            true => begin.checked_sub(width - series),
            false if series > found => Some(begin + series),
            false => begin.checked_add(width + series),
        };
        let Some(next) = next.filter(|next| *next >= 0) else {
            return Ok(None);
        };
        wanted = next;
    }
}

/// The oldest or newest window of a tier, of one series or of all, that has its checksum. A flipped bit in a key moves a window by up to
/// millions of years, and a question about all time would pass through all of them.
pub(crate) fn sound_end_window(
    database: &Database,
    tier: Tier,
    series: Option<u32>,
    newest: bool,
) -> rusqlite::Result<Option<Window>> {
    let connection = &database.connection;
    let mut wanted = outmost(newest);
    loop {
        let id = match series {
            Some(series) => end_id_of(connection, tier, series, newest, wanted)?,
            None => connection
                .prepare_cached(&seek_sql(tier, newest))?
                .query_row([wanted], |row| row.get(0))
                .optional()?,
        };
        let Some(id) = id.filter(|id| *id >= 0) else {
            return Ok(None);
        };
        let (window, number) = of_id(tier, id);
        if is_in_its_place(database, window, number)? {
            return Ok(Some(window));
        }
        wanted = if newest { id - 1 } else { id.saturating_add(1) };
        if !(0..i64::MAX).contains(&wanted) {
            return Ok(None);
        }
    }
}

/// Whether the totals or the histograms of a window have their checksum, which is over the key, too.
fn is_in_its_place(database: &Database, window: Window, series: u32) -> rusqlite::Result<bool> {
    let (id, tier) = (id_of(window, series), window.tier.word());
    let sum = database.sum_column(&format!("glance_{tier}"));
    let columns = glance::COLUMNS;
    let sql = format!("SELECT {columns}, {sum} FROM glance_{tier} WHERE id = ?");
    let mut statement = database.connection.prepare_cached(&sql)?;
    let mut rows = statement.query([id])?;
    let Some(row) = rows.next()? else {
        return Ok(false);
    };
    if checked_glance(database, row, window, id)?.is_some() {
        return Ok(true);
    }
    let found = read_checked(database, window, series)?;
    Ok(found.is_some_and(|found| !found.record.profile.is_empty()))
}

/// The row of a tier with the next identifier from one on, or before it.
pub(crate) fn seek_sql(tier: Tier, backwards: bool) -> String {
    let tier = tier.word();
    match backwards {
        true => format!("SELECT id FROM glance_{tier} WHERE id <= ? ORDER BY id DESC LIMIT 1"),
        false => format!("SELECT id FROM glance_{tier} WHERE id >= ? ORDER BY id LIMIT 1"),
    }
}

/// Windows that were deleted, by tier.
pub(crate) type DeletedWindows = [u64; 3];

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

/// Deletes the oldest windows that are past their time, and returns their number.
pub(crate) fn delete_aged(
    connection: &Connection,
    part: Part,
    settings: &Settings,
    now_ns: i64,
) -> rusqlite::Result<DeletedWindows> {
    let mut deleted = DeletedWindows::default();
    for tier in part.tiers() {
        let keep_from_ns = now_ns.saturating_sub(settings.tier(tier).keep_ns);
        for _ in 0..AGED_MAX {
            match end_window(connection, tier, false)? {
                Some(window) if window.span().to_ns <= keep_from_ns => {
                    delete_up_to(connection, window)?;
                    deleted[tier as usize] += 1;
                }
                _ => break,
            }
        }
    }
    if part == Part::History {
        let keep_ns = settings.tier(Tier::Day).keep_ns;
        finding::delete_aged(connection, now_ns.saturating_sub(keep_ns))?;
    }
    Ok(deleted)
}

/// Makes room below the cap for bytes to be written: deletes the oldest windows of the finest tier that has any. Returns
/// the number of deleted windows.
///
/// Only this accounting deletes. A file system without room never does: it would take the history for nothing.
pub(crate) fn make_room(
    database: &Database,
    settings: &Settings,
    needed_bytes: u64,
) -> Result<DeletedWindows, HistoryError> {
    let cap_bytes = settings.file_bytes_max(database.part == Part::Recent);
    // Pages are not filled to the last byte, and the tree above them grows.
    let needed_bytes = needed_bytes + needed_bytes / 4 + 16 * PAGE_BYTES;
    let mut deleted = DeletedWindows::default();
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
        deleted[window.tier as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plumb_testkit::Rng;

    use super::*;

    fn memory() -> Database {
        let memory = Database::in_memory(Path::new(""), Part::History, &Settings::default());
        memory.expect("memory")
    }

    #[test]
    fn windows_at_the_ends_are_searched_by_their_key() {
        let memory = memory();
        for (backwards, bound) in [(false, "rowid>?"), (true, "rowid<?")] {
            let plan = memory.query_plan(&seek_sql(Tier::Hour, backwards));
            let expected = format!("SEARCH glance_1h USING INTEGER PRIMARY KEY ({bound})");
            assert_eq!(plan, [expected]);
        }
    }

    /// Against a scan of all rows, with gaps, single rows and numbers that no sound file has.
    #[test]
    fn the_windows_at_the_ends_of_a_series_are_found() {
        let mut rng = Rng::new(7);
        for round in 0..60 {
            let memory = memory();
            let connection = &memory.connection;
            let mut ids: Vec<i64> = (0..rng.below(40))
                .map(|_| {
                    let window = rng.below(8) as i64 * (1 + rng.below(2) as i64 * 100_000);
                    let number = [0, 1, 2, SERIES_MAX - 1][rng.below(4) as usize];
                    id_of(
                        Window {
                            tier: Tier::Hour,
                            number: window,
                        },
                        number,
                    )
                })
                .collect();
            if round % 5 == 0 {
                ids.extend([i64::MIN, -1, i64::MAX]);
            }
            for id in &ids {
                let sql = "INSERT OR REPLACE INTO glance_1h (id) VALUES (?)";
                connection.execute(sql, [id]).expect("a row");
            }
            for number in [0, 1, 2, 3, SERIES_MAX - 1] {
                let of_series = |id: &&i64| of_id(Tier::Hour, **id).1 == number && **id >= 0;
                let window = |id: &i64| of_id(Tier::Hour, *id).0;
                let found = |newest| end_window_of(connection, Tier::Hour, number, newest);
                let oldest = ids.iter().filter(of_series).min().map(window);
                assert_eq!(found(false).expect("rows"), oldest, "{number} of {ids:?}");
                let newest = ids.iter().filter(of_series).max().map(window);
                assert_eq!(found(true).expect("rows"), newest, "{number} of {ids:?}");
            }
        }
    }
}
