//! Reads a trace of schema version 1, row group by row group.
//!
//! Only the columns wanted are decoded. Rows that cannot be are counted and passed over, and so is a row group
//! in which the library fails: the next one is tried. The library is known to panic on some damaged pages
//! instead of returning an error; every call that decodes is guarded against that.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use crate::batch::{BATCH_EVENTS, Batch};
use crate::error::{Damage, Error, Place};
use crate::names::Names;
use crate::op::Layer;
use crate::parquet::columns::Decoder;
use crate::parquet::pread::PartFile;
use crate::parquet::schema::{At, COLUMNS};
use crate::parquet::statistics::{Source, source_by_statistics};
use crate::progress::Progress;
use crate::reader::{Columns, Fill, Reader};
use crate::source::SourceInfo;

/// The result of opening.
pub(super) struct Opened {
    /// The file.
    pub file: PartFile,
    /// Its footer.
    pub metadata: Arc<ParquetMetaData>,
    /// The position of each column in it.
    pub leaves: [Option<usize>; COLUMNS.len()],
    /// The wanted columns.
    pub columns: Columns,
    /// The wanted layers.
    pub takes: [bool; Layer::ALL.len()],
    /// The receiver of progress.
    pub progress: Option<Arc<Progress>>,
}

/// Reads Parquet traces.
pub(super) struct ParquetReader {
    opened: Opened,
    names: Names,
    shared_names: Arc<Names>,
    shared_count: (usize, usize),
    info: SourceInfo,
    group: Option<RowGroup>,
    next_group: usize,
    row: u64,
    last_ns: i64,
    failure: Option<ParquetError>,
}

/// The row group that is being read.
struct RowGroup {
    decoder: Decoder,
    /// Whether it is known that each row is of a layer that is wanted.
    all_taken: bool,
    /// Rows that are still to come.
    left: u64,
}

/// Calls the library so that a panic in it becomes an error.
pub(super) fn guarded<T>(
    call: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        Err(ParquetError::General(
            "found data that the Parquet library cannot cope with".to_owned(),
        ))
    })
}

impl ParquetReader {
    /// A reader at the first row.
    pub fn new(opened: Opened, names: Names, info: SourceInfo) -> ParquetReader {
        ParquetReader {
            opened,
            shared_names: Arc::new(names.clone()),
            shared_count: (names.devices().len(), names.word_count()),
            names,
            info,
            group: None,
            next_group: 0,
            row: 0,
            last_ns: i64::MIN,
            failure: None,
        }
    }

    /// Goes to the next row group with wanted rows; `false` at the end.
    fn enter_group(&mut self) -> bool {
        while let Some(chunks) = self.opened.metadata.row_groups().get(self.next_group) {
            let index = self.next_group;
            self.next_group += 1;
            if let Some(progress) = &self.opened.progress {
                progress.advance(u64::try_from(chunks.compressed_size()).unwrap_or(0));
            }
            let rows = u64::try_from(chunks.num_rows()).unwrap_or(0);
            let sources = self.plan(index);
            let taken = match &sources[At::Layer as usize] {
                Source::Word(word) => {
                    Layer::from_word(word).map(|layer| self.opened.takes[layer as usize])
                }
                _ => None,
            };
            if taken == Some(false) || rows == 0 {
                self.count_rows(rows);
                continue;
            }
            match guarded(|| {
                Decoder::new(
                    &self.opened.file,
                    self.opened.metadata.row_group(index),
                    &sources,
                )
            }) {
                Ok(decoder) => {
                    self.group = Some(RowGroup {
                        decoder,
                        all_taken: taken == Some(true),
                        left: rows,
                    });
                    return true;
                }
                Err(error) => self.give_up_rows(rows, error),
            }
        }
        false
    }

    /// The source of each column of a row group.
    fn plan(&self, index: usize) -> [Source; COLUMNS.len()] {
        let chunks = self.opened.metadata.row_group(index);
        let mut sources = [const { Source::Absent }; COLUMNS.len()];
        for (at, leaf) in self.opened.leaves.iter().enumerate() {
            let Some(leaf) = leaf.filter(|_| self.is_wanted(at)) else {
                continue;
            };
            let known =
                source_by_statistics(chunks.column(leaf), chunks.num_rows(), COLUMNS[at].nullable);
            // The time is always decoded: the footer alone might claim any number of rows.
            let known = known.filter(|_| at != At::TimeNs as usize);
            sources[at] = known.unwrap_or(Source::Leaf(leaf));
        }
        sources
    }

    fn is_wanted(&self, at: usize) -> bool {
        let optional = [
            (At::QueueNs, self.opened.columns.queue_ns),
            (At::DeviceNs, self.opened.columns.device_ns),
            (At::Pid, self.opened.columns.pid),
            (At::Tid, self.opened.columns.tid),
            (At::Comm, self.opened.columns.comm),
            (At::Cgroup, self.opened.columns.cgroup),
            (At::File, self.opened.columns.file),
        ];
        optional
            .iter()
            .all(|(column, wanted)| *column as usize != at || *wanted)
    }

    /// Puts the next rows of the row group into the batch, if there are any.
    fn read_rows(&mut self, batch: &mut Batch) {
        let Some(group) = &mut self.group else { return };
        let left = group.left;
        if left == 0 {
            self.group = None;
            return;
        }
        let rows = left.min(BATCH_EVENTS as u64);
        let bad = match guarded(|| group.decoder.fill(rows as usize, &mut self.names, batch)) {
            Ok(bad) => bad,
            Err(error) => {
                batch.clear();
                return self.give_up_rows(left, error);
            }
        };
        group.left -= rows;
        let all_taken = group.all_taken;
        for (row, found, expected) in &bad.found {
            let place = Place::Row(self.row.saturating_add(*row as u64));
            self.info.damage(Damage {
                place,
                found: found.clone(),
                expected: (*expected).to_owned(),
            });
        }
        self.count_rows(rows);
        if !bad.is_empty() {
            batch.retain(|_, row| !bad.is_bad(row));
        }
        if !all_taken
            && !batch
                .layer
                .iter()
                .fold(true, |all, &layer| all & self.opened.takes[layer as usize])
        {
            let takes = self.opened.takes;
            batch.retain(|batch, row| takes[batch.layer[row] as usize]);
        }
    }

    /// Passes over the rest of a row group.
    fn give_up_rows(&mut self, rows: u64, error: ParquetError) {
        self.group = None;
        let damage = Damage {
            place: Place::Row(self.row),
            found: error.to_string(),
            expected: format!("{rows} more rows of the row group"),
        };
        self.info.damage(damage);
        let damaged = &mut self.info.counts.damaged;
        *damaged = damaged.saturating_add(rows.saturating_sub(1));
        self.count_rows(rows);
        self.failure.get_or_insert(error);
    }

    /// Counts rows: those that were not decoded are as many as the file says, which may be any number.
    fn count_rows(&mut self, rows: u64) {
        self.row = self.row.saturating_add(rows);
        self.info.counts.records = self.info.counts.records.saturating_add(rows);
    }

    fn hand_over(&mut self, batch: &mut Batch) {
        let count = (self.names.devices().len(), self.names.word_count());
        if count != self.shared_count {
            self.shared_count = count;
            self.shared_names = Arc::new(self.names.clone());
        }
        batch.names = Arc::clone(&self.shared_names);
        self.info.counts.events += batch.len() as u64;
        let first_ns = batch.time_ns.first().copied().unwrap_or(self.last_ns);
        if first_ns >= self.last_ns && batch.is_in_order() {
            self.last_ns = batch.time_ns.last().copied().unwrap_or(self.last_ns);
            return;
        }
        for &time_ns in &batch.time_ns {
            self.info.counts.out_of_order += u64::from(time_ns < self.last_ns);
            self.last_ns = self.last_ns.max(time_ns);
        }
    }
}

impl Reader for ParquetReader {
    fn fill(&mut self, batch: &mut Batch) -> Result<Fill, Error> {
        batch.clear();
        while batch.is_empty() {
            if self.group.is_none() && !self.enter_group() {
                return match self.failure.take() {
                    Some(source) if self.info.counts.events == 0 => Err(Error::Parquet {
                        path: self.info.path.clone(),
                        source,
                    }),
                    _ => Ok(Fill::End),
                };
            }
            self.read_rows(batch);
        }
        self.hand_over(batch);
        Ok(Fill::Events)
    }

    fn info(&self) -> &SourceInfo {
        &self.info
    }
}
