//! Open windows and series, as `history.db` keeps them between two runs.

use plumb_trace::Layer;
use rusqlite::{Connection, params};

use super::flush::OpenRow;
use super::{Accumulator, Base, NAMES_MAX, Notice, Waiting, Writer};
use crate::checksum::RowSum;
use crate::database::{Database, set_aside};
use crate::error::HistoryError;
use crate::record::{self, EncodedRecord};
use crate::room;
use crate::schema::{Part, SERIES_MAX};
use crate::tier::{Span, Tier, Window};

/// Most bytes of a packed record that an open window has as its base.
const BASE_BYTES_MAX: u64 = 256 << 20;

/// A series as a file has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredSeries {
    pub(crate) number: u32,
    pub(crate) identity: String,
    pub(crate) layer: Layer,
    /// Names with the times from which they were seen, in order.
    pub(crate) names: Vec<(i64, String)>,
}

/// The series of a file. Impossible ones are left out.
pub(crate) fn read_series(database: &Database) -> Result<Vec<StoredSeries>, HistoryError> {
    let read = || -> rusqlite::Result<Vec<StoredSeries>> {
        let connection = &database.connection;
        let mut list = Vec::new();
        let mut statement =
            connection.prepare("SELECT series, identity, layer FROM series ORDER BY series")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (number, identity): (i64, String) = (row.get(0)?, row.get(1)?);
            let layer = Layer::from_word(&row.get::<_, String>(2)?);
            let number = u32::try_from(number).ok().filter(|n| *n < SERIES_MAX);
            if let (Some(number), Some(layer)) = (number, layer) {
                list.push(StoredSeries {
                    number,
                    identity,
                    layer,
                    names: Vec::new(),
                });
            }
        }
        let mut statement =
            connection.prepare("SELECT from_ns, name FROM name WHERE series = ? ORDER BY 1")?;
        for series in &mut list {
            let names = statement.query_map([series.number], |row| Ok((row.get(0)?, row.get(1)?)));
            series.names = names?.collect::<rusqlite::Result<_>>()?;
        }
        Ok(list)
    };
    read().map_err(|source| database.failed("read the list of devices", source))
}

/// End of the I/O that the last checkpoint stored, ns since 1970; 0 before the first one.
pub(crate) fn read_upto_ns(history: &Database) -> Result<i64, HistoryError> {
    let sql = "SELECT coalesce(max(value), 0) FROM meta WHERE name = 'upto_ns'";
    history.number(sql, "read the time of the last checkpoint")
}

/// An open window as a file has it.
pub(crate) struct StoredOpen {
    pub(crate) window: Window,
    pub(crate) number: u32,
    pub(crate) base: Option<EncodedRecord>,
    pub(crate) profile: Vec<u8>,
    pub(crate) senders: Vec<u8>,
    /// It has not its checksum, and nothing of it is known.
    pub(crate) is_damaged: bool,
}

/// The columns of an open window.
const OPEN_COLUMNS: &str = "tier, series, number, base, profile, senders";

/// The checksum of an open window of a series.
pub(super) fn open_sum(
    (window, number): (Window, u32),
    base: Option<&[u8]>,
    profile: &[u8],
    senders: &[u8],
) -> RowSum {
    let key = RowSum::of_key(room::id_of(window, number));
    let key = key.bytes(Some(window.tier.word().as_bytes()));
    key.bytes(base).bytes(Some(profile)).bytes(Some(senders))
}

/// The open windows of a file.
pub(crate) fn read_open(database: &Database) -> rusqlite::Result<Vec<StoredOpen>> {
    let sql = format!(
        "SELECT {OPEN_COLUMNS}, {} FROM open",
        database.sum_column("open")
    );
    let mut statement = database.connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        list.extend(open_of_row(database, row)?);
    }
    Ok(list)
}

/// Begin of the tier of a row that keeps a closed window of `recent.db`; the number of the window follows it. Readers, and programs before
/// this one, leave out rows of tiers that they do not know.
const WAITING: &str = "waiting ";

/// The closed windows of `recent.db` that a file keeps.
fn read_waiting(database: &Database) -> rusqlite::Result<Vec<((Window, u32), Waiting)>> {
    let sum = database.sum_column("open");
    let sql = format!("SELECT {OPEN_COLUMNS}, {sum} FROM open WHERE tier GLOB '{WAITING}*'");
    let mut statement = database.connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        let (series, number): (u32, i64) = (row.get(1)?, row.get(2)?);
        let window = Window {
            tier: Tier::FiveMinutes,
            number: number.max(0),
        };
        let base: Option<Vec<u8>> = row.get(3)?;
        let (fresh, senders): (Vec<u8>, Vec<u8>) = (row.get(4)?, row.get(5)?);
        let sum = open_sum((window, series), base.as_deref(), &fresh, &senders);
        if !database.accepts(window, row.get(6)?, sum) {
            continue;
        }
        if let Some(fresh) = unpacked_record(&fresh) {
            let base = base.and_then(|packed| unpacked_record(&packed));
            let closed = Waiting {
                fresh,
                base: Base::Read(base.map(Box::new)),
                is_kept: true,
            };
            list.push(((window, series), closed));
        }
    }
    Ok(list)
}

/// `None` for a damaged record.
fn unpacked_record(packed: &[u8]) -> Option<EncodedRecord> {
    let bytes = record::unpack(packed, BASE_BYTES_MAX).ok()?;
    postcard::from_bytes(&bytes).ok()
}

/// Numbers and windows of the open windows of a file. Their I/O, which can take megabytes, are not read.
pub(crate) fn read_open_windows(connection: &Connection) -> rusqlite::Result<Vec<(u32, Window)>> {
    let mut statement = connection.prepare("SELECT tier, series, number FROM open")?;
    let mut rows = statement.query([])?;
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        list.extend(key_of_row(row)?);
    }
    Ok(list)
}

/// The open windows of a series that share time with a span, and those that are damaged: their time is unknown.
pub(crate) fn read_open_of(
    database: &Database,
    series: u32,
    span: Span,
) -> rusqlite::Result<Vec<StoredOpen>> {
    let mut list = Vec::new();
    if span.is_empty() {
        return Ok(list);
    }
    for tier in Tier::ALL {
        let mut statement = database.connection.prepare_cached(&open_of_sql(database))?;
        let mut rows = statement.query(params![tier.word(), series])?;
        while let Some(row) = rows.next()? {
            list.extend(open_of_row(database, row)?);
        }
    }
    list.retain(|open| open.is_damaged || !open.window.span().common(span).is_empty());
    Ok(list)
}

fn open_of_sql(database: &Database) -> String {
    let sum = database.sum_column("open");
    format!("SELECT {OPEN_COLUMNS}, {sum} FROM open WHERE tier = ? AND series = ?")
}

/// Number and window of an open window; `None` for an unknown tier.
fn key_of_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<(u32, Window)>> {
    let word: String = row.get(0)?;
    let (series, number): (i64, i64) = (row.get(1)?, row.get(2)?);
    let tier = Tier::ALL.into_iter().find(|tier| tier.word() == word);
    Ok(tier.map(|tier| {
        let number = number.max(0);
        let series = u32::try_from(series).unwrap_or(SERIES_MAX);
        (series, Window { tier, number })
    }))
}

fn open_of_row(
    database: &Database,
    row: &rusqlite::Row<'_>,
) -> rusqlite::Result<Option<StoredOpen>> {
    let Some((number, window)) = key_of_row(row)? else {
        return Ok(None);
    };
    let packed: Option<Vec<u8>> = row.get(3)?;
    let (profile, senders): (Vec<u8>, Vec<u8>) = (row.get(4)?, row.get(5)?);
    let sum = open_sum((window, number), packed.as_deref(), &profile, &senders);
    if !database.accepts(window, row.get(6)?, sum) {
        return Ok(Some(StoredOpen {
            window,
            number,
            base: None,
            profile: Vec::new(),
            senders: Vec::new(),
            is_damaged: true,
        }));
    }
    let base = packed.and_then(|packed| unpacked_record(&packed));
    Ok(Some(StoredOpen {
        window,
        number,
        base,
        profile,
        senders,
        is_damaged: false,
    }))
}

impl Writer {
    /// Takes over the contents of the files.
    pub(super) fn load(&mut self) -> Result<(), HistoryError> {
        let of_history = match self.load_history() {
            Err(error) if error.is_damage() => {
                self.replace(Part::History)?;
                Vec::new()
            }
            loaded => loaded?,
        };
        let of_recent = match read_series(&self.recent) {
            Err(error) if error.is_damage() => {
                self.replace(Part::Recent)?;
                Vec::new()
            }
            loaded => loaded?,
        };
        if agree(&of_history, &of_recent) {
            self.take_series(&of_recent, Part::Recent);
        } else {
            // Its numbers mean other devices: it belongs to another history.
            let aside = set_aside(&self.folder, Part::Recent)?;
            self.notices.push(Notice::SetAside { aside });
            self.recent = Database::open_to_write(&self.folder, Part::Recent, &self.settings)?;
        }
        Ok(())
    }

    fn load_history(&mut self) -> Result<Vec<StoredSeries>, HistoryError> {
        let series = read_series(&self.history)?;
        self.upto_ns = read_upto_ns(&self.history)?;
        let sql = "SELECT coalesce(max(value), 0) FROM meta WHERE name = 'next_series'";
        let next = self
            .history
            .number(sql, "read the number of the next device")?;
        self.next_number = u32::try_from(next).unwrap_or(0).min(SERIES_MAX);
        let rows = read_open(&self.history)
            .map_err(|source| self.history.failed("read the open windows", source))?;
        self.take_series(&series, Part::History);
        let waiting = read_waiting(&self.history)
            .map_err(|source| self.history.failed("read the closed windows", source))?;
        for (key, closed) in waiting {
            self.kept.insert(key);
            if self.series.contains_key(&key.1) {
                self.waiting.insert(key, closed);
            }
        }
        for row in rows {
            let restored = record::decode_senders(&row.senders).and_then(|senders| {
                Accumulator::restored(row.window, row.base, row.profile, senders)
            });
            match (restored, self.series.get_mut(&row.number)) {
                (Ok(open), Some(known)) => known.open[row.window.tier as usize] = Some(open),
                _ => self.notices.push(Notice::DamagedWindow {
                    series: row.number,
                    window: row.window,
                }),
            }
        }
        Ok(series)
    }

    /// Takes over the series of a file. A crash between the two files leaves one that `history.db` lacks.
    fn take_series(&mut self, list: &[StoredSeries], part: Part) {
        for stored in list {
            let key = (stored.identity.clone(), stored.layer);
            if !self.series.contains_key(&stored.number) && !self.numbers.contains_key(&key) {
                self.insert_series(stored.number, &stored.identity, stored.layer);
                if let Some(series) = self.series.get_mut(&stored.number) {
                    let surplus = stored.names.len().saturating_sub(NAMES_MAX);
                    series.names = stored.names[surplus..].to_vec();
                }
            }
            // Other names, or too many of them, are written again.
            if let Some(series) = self.series.get_mut(&stored.number)
                && series.names == stored.names
            {
                series.written[part as usize] = Some(series.written_mark());
            }
        }
    }

    /// The open windows that changed since they were stored.
    pub(super) fn open_rows(&self) -> Result<Vec<OpenRow>, HistoryError> {
        let mut rows = Vec::new();
        for (number, series) in &self.series {
            for open in series.open.iter().flatten().filter(|open| open.is_dirty) {
                rows.push(OpenRow::of_window(*number, &series.identity, open)?);
            }
        }
        Ok(rows)
    }

    /// The closed windows of `recent.db` that wait, because it could not be written, and that `history.db` lacks. Without them a kill would
    /// lose their 5 minutes, which `history.db` no longer has as open windows.
    pub(super) fn waiting_rows(&self) -> Result<Vec<OpenRow>, HistoryError> {
        let mut rows = Vec::new();
        for (key, closed) in &self.waiting {
            let is_recent = Part::of_tier(key.0.tier) == Part::Recent;
            if is_recent
                && !closed.is_kept
                && closed.base != Base::Unread
                && let Some(series) = self.series.get(&key.1)
            {
                rows.push(OpenRow::of_waiting(*key, &series.identity, closed)?);
            }
        }
        Ok(rows)
    }

    /// Writes closed windows that wait, and removes those that no longer do.
    pub(super) fn write_waiting(
        &self,
        connection: &Connection,
        rows: &[OpenRow],
    ) -> rusqlite::Result<()> {
        let tier = |window: Window| format!("{WAITING}{}", window.number);
        let gone = self
            .kept
            .iter()
            .filter(|key| !self.waiting.contains_key(key));
        for (window, number) in gone {
            connection
                .prepare_cached("DELETE FROM open WHERE tier = ? AND series = ?")?
                .execute(params![tier(*window), number])?;
        }
        rows.iter()
            .try_for_each(|row| write_row(connection, &tier(row.window), row))
    }

    /// Writes changed open windows, and removes those that closed.
    pub(super) fn write_open(
        &self,
        connection: &Connection,
        rows: &[OpenRow],
    ) -> rusqlite::Result<()> {
        for (number, series) in &self.series {
            for tier in Tier::ALL {
                if series.open[tier as usize].is_none() {
                    connection
                        .prepare_cached("DELETE FROM open WHERE tier = ? AND series = ?")?
                        .execute(params![tier.word(), number])?;
                }
            }
        }
        rows.iter()
            .try_for_each(|row| write_row(connection, row.window.tier.word(), row))
    }
}

fn write_row(connection: &Connection, tier: &str, row: &OpenRow) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO open VALUES (?, ?, ?, ?, ?, ?, ?)")?
        .execute(params![
            tier,
            row.number,
            row.window.number,
            row.base,
            row.profile,
            row.senders,
            row.sum()
        ])
        .map(|_| ())
}

/// Whether two files mean the same devices by the same numbers.
fn agree(one: &[StoredSeries], other: &[StoredSeries]) -> bool {
    other.iter().all(|theirs| {
        let mine = one.iter().find(|mine| mine.number == theirs.number);
        mine.is_none_or(|mine| mine.identity == theirs.identity && mine.layer == theirs.layer)
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::settings::Settings;

    /// The open windows of one series are found by the index of the primary key.
    #[test]
    fn open_windows_are_searched_by_their_key() {
        let memory = Database::in_memory(Path::new(""), Part::History, &Settings::default());
        let memory = memory.expect("memory");
        assert_eq!(
            memory.query_plan(&open_of_sql(&memory)),
            ["SEARCH open USING INDEX sqlite_autoindex_open_1 (tier=? AND series=?)"]
        );
    }
}
