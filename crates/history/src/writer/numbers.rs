//! Numbers of series. A series whose windows are all deleted goes too, and its number is free for another device.
//!
//! A number is used again only if there is no new one: a reader may have read one file before, and the other after the change.

use std::collections::BTreeSet;

use super::Writer;
use crate::error::HistoryError;
use crate::room::{self, DeletedWindows};
use crate::schema::{Part, SERIES_MAX};
use crate::tier::Tier;

/// The events after which a search for series without windows can find one.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnusedNumbers {
    /// Windows of any tier were deleted since the last search, or may have been.
    are_windows_deleted: bool,
    /// Windows of a day were deleted: the last ones of a device, as a rule.
    are_days_deleted: bool,
    /// A device was refused for want of a number since the last search.
    is_device_refused: bool,
}

impl Default for UnusedNumbers {
    fn default() -> UnusedNumbers {
        UnusedNumbers {
            // Nothing is known of the runs before.
            are_windows_deleted: true,
            are_days_deleted: false,
            is_device_refused: false,
        }
    }
}

impl Writer {
    /// A number for a new series; `None` if all are in use.
    pub(super) fn free_number(&mut self) -> Option<u32> {
        if self.next_number < SERIES_MAX {
            return Some(self.next_number);
        }
        let unused = (self.series.len() < SERIES_MAX as usize)
            .then(|| (0..SERIES_MAX).find(|number| !self.series.contains_key(number)))
            .flatten();
        self.unused.is_device_refused |= unused.is_none();
        unused
    }

    pub(super) fn note_deleted(&mut self, deleted: DeletedWindows) {
        self.unused.are_windows_deleted |= deleted.iter().any(|windows| *windows > 0);
        self.unused.are_days_deleted |= deleted[Tier::Day as usize] > 0;
    }

    /// Whether a search may find a series without windows, and is worth its time.
    pub(super) fn is_search_due(&self) -> bool {
        let unused = self.unused;
        unused.are_days_deleted || unused.is_device_refused && unused.are_windows_deleted
    }

    /// Removes the series that have no window, neither in the files nor in memory.
    pub(super) fn remove_empty_series(&mut self) -> Result<(), HistoryError> {
        let empty = self.empty_series()?;
        // The row of `recent.db` goes first: after a crash between the two, a number never means one device here and another one there.
        for part in [Part::Recent, Part::History] {
            let database = self.database(part);
            let delete = || -> rusqlite::Result<()> {
                let transaction = database.connection.unchecked_transaction()?;
                for number in &empty {
                    for table in ["series", "name"] {
                        let sql = format!("DELETE FROM {table} WHERE series = ?");
                        transaction.prepare_cached(&sql)?.execute([number])?;
                    }
                }
                transaction.commit()
            };
            delete().map_err(|source| database.failed("delete devices without windows", source))?;
            for number in &empty {
                if let Some(series) = self.series.get_mut(number) {
                    series.written[part as usize] = None;
                }
            }
        }
        for number in empty {
            if let Some(series) = self.series.remove(&number) {
                self.numbers.remove(&(series.identity, series.layer));
            }
        }
        self.unused = UnusedNumbers {
            are_windows_deleted: false,
            ..UnusedNumbers::default()
        };
        Ok(())
    }

    fn empty_series(&self) -> Result<Vec<u32>, HistoryError> {
        let waiting: BTreeSet<u32> = self.waiting.keys().map(|(_, number)| *number).collect();
        let mut empty = Vec::new();
        for (number, series) in &self.series {
            let is_open = series.open.iter().any(Option::is_some);
            if !is_open && !waiting.contains(number) && !self.has_stored_window(*number)? {
                empty.push(*number);
            }
        }
        Ok(empty)
    }

    fn has_stored_window(&self, number: u32) -> Result<bool, HistoryError> {
        for tier in Tier::ALL {
            let database = self.database(Part::of_tier(tier));
            let found = room::end_window_of(&database.connection, tier, number, true)
                .map_err(|source| database.failed("look for windows of a device", source))?;
            if found.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
