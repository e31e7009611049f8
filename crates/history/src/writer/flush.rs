//! Waiting records and open windows go to the files.

use std::error::Error;

use plumb_trace::Layer;
use rusqlite::params;

use super::{Accumulator, Base, Notice, Series, Waiting, Writer};
use crate::database::Database;
use crate::error::HistoryError;
use crate::finding;
use crate::host;
use crate::record::{self, EncodedRecord, Record};
use crate::room::{self, DeletedWindows, write_record};
use crate::schema::Part;
use crate::tier::{Tier, Window};
use crate::writer::open_rows::open_sum;

impl Writer {
    /// Closes windows that are over, and stores everything. Call it every 60 s and at the end. After an error nothing is
    /// lost: it stays in memory for the next call. A store in memory tries to open its folder first.
    ///
    /// # Errors
    /// If a file cannot be written. The other file was written all the same. A store in memory returns the error of its folder.
    pub fn checkpoint(&mut self, now_ns: i64) -> Result<(), HistoryError> {
        // First, so that windows of the run before are closed, too.
        let moved = match self.is_in_memory() {
            true => self.move_to_folder(),
            false => Ok(()),
        };
        let numbers: Vec<u32> = self.series.keys().copied().collect();
        for number in numbers {
            self.roll_if_over(number, now_ns)?;
        }
        moved?;
        let of_recent = self.flush(Part::Recent, now_ns);
        let of_history = self.flush(Part::History, now_ns);
        self.empty_logs();
        of_recent.and(of_history)?;
        match self.is_search_due() {
            true => self.remove_empty_series(),
            false => Ok(()),
        }
    }

    /// Moves the pages of long logs into their files.
    fn empty_logs(&mut self) {
        for database in [&mut self.recent, &mut self.history] {
            let was_stuck = database.is_log_stuck;
            let failed = database.empty_log().err();
            database.is_log_stuck = failed.is_some();
            if let Some(failed) = failed.filter(|_| !was_stuck) {
                let cause = failed.source().map_or(String::new(), ToString::to_string);
                let file = database.file.clone();
                self.notices.push(Notice::LogKept { file, cause });
            }
        }
    }

    /// Closes the windows of a series that are over. A clock that went back closes none: the next I/O do.
    fn roll_if_over(&mut self, number: u32, now_ns: i64) -> Result<(), HistoryError> {
        for tier in Tier::ALL {
            let Some(series) = self.series.get_mut(&number) else {
                return Ok(());
            };
            let slot = &mut series.open[tier as usize];
            if slot
                .as_ref()
                .is_some_and(|open| open.window.span().to_ns <= now_ns)
                && let Some(done) = slot.take()
            {
                self.close(number, done)?;
            }
        }
        Ok(())
    }

    /// Puts a closed window among those that wait, and bounds these.
    pub(super) fn wait(&mut self, number: u32, window: Window, closed: Waiting) {
        let key = (window, number);
        let closed = match self.waiting.remove(&key) {
            // The clock went back to a window that is not written yet.
            Some(before) => Waiting {
                fresh: sum_of(&before.fresh, &closed.fresh),
                base: before.base,
                is_kept: false,
            },
            None => closed,
        };
        self.waiting.insert(key, closed);
        let mut bytes: usize = self
            .waiting
            .values()
            .map(|closed| closed.fresh.len_bytes())
            .sum();
        let mut windows = 0;
        // The finest tier is first in the order of windows, and its oldest window first in it.
        while bytes > self.settings.waiting_bytes_max && self.waiting.len() > 1 {
            if let Some((_, dropped)) = self.waiting.pop_first() {
                bytes -= dropped.fresh.len_bytes();
                windows += 1;
            }
        }
        if windows > 0 {
            self.notices.push(Notice::Dropped { windows });
        }
    }

    /// Writes the records and open windows of a file; a file that proves damaged is set aside, and the write repeated.
    fn flush(&mut self, part: Part, now_ns: i64) -> Result<(), HistoryError> {
        match self.try_flush(part, now_ns) {
            Err(error) if error.is_damage() => {
                self.replace(part)?;
                self.try_flush(part, now_ns)
            }
            done => done,
        }
    }

    fn try_flush(&mut self, part: Part, now_ns: i64) -> Result<(), HistoryError> {
        let keys: Vec<(Window, u32)> = self
            .waiting
            .keys()
            .filter(|(window, _)| Part::of_tier(window.tier) == part)
            .copied()
            .collect();
        self.resolve_bases(part)?;
        for (window, number) in &keys {
            if self.waiting[&(*window, *number)].base == Base::Unread {
                let base = self.stored_record(*window, *number)?.map(Box::new);
                if let Some(closed) = self.waiting.get_mut(&(*window, *number)) {
                    closed.base = Base::Read(base);
                }
            }
        }
        let mut records = Vec::with_capacity(keys.len());
        for key in &keys {
            let closed = &self.waiting[key];
            let whole = match &closed.base {
                Base::Read(Some(base)) => sum_of(base, &closed.fresh),
                _ => closed.fresh.clone(),
            };
            records.push(whole);
        }
        self.rebase(&keys, &records);
        let database = self.database(part);
        let (open_rows, waiting_rows) = match part {
            Part::Recent => (Vec::new(), Vec::new()),
            Part::History => (self.open_rows()?, self.waiting_rows()?),
        };
        let failed = |source| database.failed("write", source);
        let transaction = database
            .connection
            .unchecked_transaction()
            .map_err(failed)?;
        let bytes: usize = records.iter().map(EncodedRecord::len_bytes).sum();
        let open_rows_all = open_rows.iter().chain(&waiting_rows);
        let open_bytes: usize = open_rows_all.map(|row| row.len_bytes()).sum();
        let evicted = room::make_room(database, &self.settings, (bytes + open_bytes) as u64)?;
        let write = || -> rusqlite::Result<DeletedWindows> {
            write_series(&transaction, part, &self.series)?;
            for ((window, number), whole) in keys.iter().zip(&records) {
                write_record(&transaction, *window, *number, whole)?;
            }
            let aged = room::delete_aged(&transaction, part, &self.settings, now_ns)?;
            if part == Part::History {
                self.write_open(&transaction, &open_rows)?;
                self.write_waiting(&transaction, &waiting_rows)?;
                finding::write(&transaction, &self.findings)?;
                host::write(&transaction, &self.host)?;
            }
            for (name, value) in [
                ("upto_ns", self.upto_ns),
                ("next_series", i64::from(self.next_number)),
            ] {
                transaction
                    .prepare_cached("INSERT OR REPLACE INTO meta VALUES (?, ?)")?
                    .execute(params![name, value])?;
            }
            Ok(aged)
        };
        let aged = write().map_err(failed)?;
        transaction.commit().map_err(failed)?;
        self.note_deleted(aged);
        self.note_deleted(evicted);
        self.stored(part, &keys, evicted.iter().sum());
        Ok(())
    }

    /// Notes that a file has everything now.
    fn stored(&mut self, part: Part, keys: &[(Window, u32)], evicted: u64) {
        for series in self.series.values_mut() {
            series.written[part as usize] = Some(series.written_mark());
        }
        if evicted > 0 {
            self.notices.push(Notice::Evicted { windows: evicted });
        }
        for key in keys {
            self.waiting.remove(key);
        }
        if part == Part::History {
            self.findings.clear();
            self.host.clear();
            for closed in self.waiting.values_mut() {
                closed.is_kept = closed.base != Base::Unread;
            }
            let kept = self.waiting.iter().filter(|(_, closed)| closed.is_kept);
            self.kept = kept.map(|(key, _)| *key).collect();
            for series in self.series.values_mut() {
                for open in series.open.iter_mut().flatten() {
                    open.is_dirty = open.base == Base::Unread;
                }
            }
        }
    }

    /// Windows that were opened again while their records waited have these as their bases now.
    fn rebase(&mut self, keys: &[(Window, u32)], records: &[EncodedRecord]) {
        for ((window, number), whole) in keys.iter().zip(records) {
            if let Some(series) = self.series.get_mut(number)
                && let Some(open) = &mut series.open[window.tier as usize]
                && open.window == *window
            {
                open.base = Base::Read(Some(Box::new(whole.clone())));
                open.is_dirty = true;
            }
        }
    }

    /// Looks up the records that open windows had before, in one of the files.
    fn resolve_bases(&mut self, part: Part) -> Result<(), HistoryError> {
        let unread: Vec<(Window, u32)> = self
            .series
            .iter()
            .flat_map(|(number, series)| {
                let open = series.open.iter().flatten();
                open.filter(|open| open.base == Base::Unread)
                    .map(|open| (open.window, *number))
            })
            .filter(|(window, _)| Part::of_tier(window.tier) == part)
            .collect();
        for (window, number) in unread {
            let base = self.stored_record(window, number)?;
            if let Some(series) = self.series.get_mut(&number)
                && let Some(open) = &mut series.open[window.tier as usize]
            {
                open.base = Base::Read(base.map(Box::new));
                open.is_dirty = true;
            }
        }
        Ok(())
    }

    fn stored_record(
        &self,
        window: Window,
        number: u32,
    ) -> Result<Option<EncodedRecord>, HistoryError> {
        let database = self.database(Part::of_tier(window.tier));
        room::read_record(database, window, number)
            .map_err(|source| database.failed("read a record", source))
    }

    pub(super) fn database(&self, part: Part) -> &Database {
        match part {
            Part::Recent => &self.recent,
            Part::History => &self.history,
        }
    }
}

/// The sum of two records. One that is damaged is left out: the sound one must not be lost with it.
fn sum_of(base: &EncodedRecord, fresh: &EncodedRecord) -> EncodedRecord {
    let Ok(mut sum) = Record::decode(base) else {
        return fresh.clone();
    };
    let Ok(other) = Record::decode(fresh) else {
        return base.clone();
    };
    sum.merge(&other);
    sum.encode().unwrap_or_else(|_| fresh.clone())
}

/// Writes the series and names that a file lacks.
fn write_series(
    connection: &rusqlite::Connection,
    part: Part,
    all: &std::collections::BTreeMap<u32, Series>,
) -> rusqlite::Result<()> {
    for (number, series) in all {
        let written = series.written[part as usize];
        if written == Some(series.written_mark()) {
            continue;
        }
        if written.is_none() {
            connection
                .prepare_cached("INSERT OR REPLACE INTO series VALUES (?, ?, ?)")?
                .execute(params![number, series.identity, Layer::word(series.layer)])?;
            connection
                .prepare_cached("DELETE FROM name WHERE series = ?")?
                .execute([number])?;
        }
        for (from_ns, name) in &series.names {
            if written.is_none_or(|upto| *from_ns > upto) {
                connection
                    .prepare_cached("INSERT OR REPLACE INTO name VALUES (?, ?, ?)")?
                    .execute(params![number, from_ns, name])?;
            }
        }
        let oldest = series.names.first().map(|(from_ns, _)| *from_ns);
        connection
            .prepare_cached("DELETE FROM name WHERE series = ? AND from_ns < ?")?
            .execute(params![number, oldest])?;
    }
    Ok(())
}

/// The bytes of an open window.
pub(super) struct OpenRow {
    pub(super) window: Window,
    pub(super) number: u32,
    pub(super) base: Option<Vec<u8>>,
    pub(super) profile: Vec<u8>,
    pub(super) senders: Vec<u8>,
}

impl OpenRow {
    fn len_bytes(&self) -> usize {
        let base = self.base.as_ref().map_or(0, Vec::len);
        base + self.profile.len() + self.senders.len() + 64
    }

    /// The value of its column `sum`.
    pub(super) fn sum(&self) -> i64 {
        open_sum(
            (self.window, self.number),
            self.base.as_deref(),
            &self.profile,
            &self.senders,
        )
        .value()
    }

    pub(super) fn of_window(
        number: u32,
        identity: &str,
        open: &Accumulator,
    ) -> Result<OpenRow, HistoryError> {
        let fault = crate::accumulator::fault(identity);
        Ok(OpenRow {
            window: open.window,
            number,
            base: packed_base(identity, &open.base)?,
            profile: open.packed(identity)?,
            senders: record::encode_senders(&open.senders).map_err(&fault)?,
        })
    }

    /// The same of a closed window; its record has the place of the profile.
    pub(super) fn of_waiting(
        (window, number): (Window, u32),
        identity: &str,
        closed: &Waiting,
    ) -> Result<OpenRow, HistoryError> {
        Ok(OpenRow {
            window,
            number,
            base: packed_base(identity, &closed.base)?,
            profile: packed_record(identity, &closed.fresh)?,
            senders: Vec::new(),
        })
    }
}

fn packed_base(identity: &str, base: &Base) -> Result<Option<Vec<u8>>, HistoryError> {
    match base {
        Base::Read(Some(base)) => packed_record(identity, base).map(Some),
        _ => Ok(None),
    }
}

fn packed_record(identity: &str, record: &EncodedRecord) -> Result<Vec<u8>, HistoryError> {
    let fault = crate::accumulator::fault(identity);
    let bytes = postcard::to_allocvec(record).map_err(|e| fault(e.to_string()))?;
    record::pack(&bytes).map_err(fault)
}
