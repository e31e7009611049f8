//! Puts events into the order of their issue when a source wrote them in another one.
//!
//! Tools that print at completion and traces merged from several recorders are out of order by a little.
//! A window of events is held back and sorted by time, stably; what is older still is passed on where it
//! stands and counted.

use crate::batch::Batch;
use crate::error::Error;
use crate::reader::{Fill, Reader};
use crate::source::SourceInfo;

/// How many events are held back to be sorted.
pub const WINDOW_EVENTS: usize = 1 << 16;

/// A reader whose events come out in time order as far as the window reaches.
pub struct Ordered {
    inner: Box<dyn Reader>,
    incoming: Batch,
    held: Batch,
    info: SourceInfo,
    last_ns: i64,
    next_row: usize,
    ready_rows: usize,
    out_of_order: u64,
    after: Option<Fill>,
}

impl Ordered {
    /// Puts a reader's events into order.
    #[must_use]
    pub fn new(inner: Box<dyn Reader>) -> Ordered {
        let info = inner.info().clone();
        Ordered {
            inner,
            incoming: Batch::default(),
            held: Batch::default(),
            info,
            last_ns: i64::MIN,
            next_row: 0,
            ready_rows: 0,
            out_of_order: 0,
            after: None,
        }
    }

    /// Reads until twice the window is held or the source ends, and sorts what is held.
    fn gather(&mut self) -> Result<(), Error> {
        let mut rest = Batch { names: self.held.names.clone(), ..Batch::default() };
        self.held.copy_rows(self.next_row..self.held.len(), &mut rest);
        self.held = rest;
        self.next_row = 0;
        while self.held.len() < 2 * WINDOW_EVENTS && self.after.is_none() {
            match self.inner.fill(&mut self.incoming)? {
                Fill::Events => {
                    self.incoming.copy_rows(0..self.incoming.len(), &mut self.held);
                    self.held.names = self.incoming.names.clone();
                }
                other => self.after = Some(other),
            }
        }
        if !self.held.is_in_order() {
            self.held.sort_by_time();
        }
        self.ready_rows = if self.after.is_some() {
            self.held.len()
        } else {
            self.held.len().saturating_sub(WINDOW_EVENTS)
        };
        Ok(())
    }

    fn count_order(&mut self, batch: &Batch) {
        for &time_ns in &batch.time_ns {
            if time_ns < self.last_ns {
                self.out_of_order += 1;
            } else {
                self.last_ns = time_ns;
            }
        }
    }
}

impl Reader for Ordered {
    fn fill(&mut self, batch: &mut Batch) -> Result<Fill, Error> {
        batch.clear();
        if self.next_row == self.ready_rows && self.after.is_none() {
            let outcome = self.gather();
            self.info.clone_from(self.inner.info());
            outcome?;
        }
        if self.next_row < self.ready_rows {
            let end = self.ready_rows.min(self.next_row + crate::batch::BATCH_EVENTS);
            self.held.copy_rows(self.next_row..end, batch);
            batch.names = self.held.names.clone();
            self.next_row = end;
            self.count_order(batch);
            self.info.counts.out_of_order = self.out_of_order;
            return Ok(Fill::Events);
        }
        match self.after.take() {
            Some(Fill::End) | None => {
                self.after = Some(Fill::End);
                Ok(Fill::End)
            }
            Some(other) => {
                self.info.clone_from(self.inner.info());
                self.info.counts.out_of_order = self.out_of_order;
                Ok(other)
            }
        }
    }

    fn info(&self) -> &SourceInfo {
        &self.info
    }
}
