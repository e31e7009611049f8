//! A trace that can be read at any time, also when its writer is killed.
//!
//! Parquet readers look for the footer at the end of a file. Here each row group is followed by a footer that knows all
//! row groups before it, and the next row group goes behind that: a written footer is never changed, and the bytes
//! between two row groups are unused. Row group and footer leave memory together. A file whose writer was killed during
//! a write ends with neither; [`open`](super::open) then uses it up to the footer before.
//!
//! Footers grow with the file. So that they stay a fraction of it, row groups are gathered while they are small against the
//! footer, and on a quiet disk the time between two footers grows with that since the beginning.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaDataBuilder, ParquetMetaDataWriter,
};
use parquet::file::properties::WriterVersion;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};

use plumb_sys::{FileContent, NewFile};

use crate::batch::Batch;
use crate::error::Error;
use crate::parquet::rows::RowsWriter;
use crate::parquet::schema::{trace_schema, writer_properties};
use crate::parquet::write::{Noted, columns_of, write_error};
use crate::source::SourceInfo;

/// Rows that were written are found in the file after this at the latest, while it is young.
pub const COMMIT_AFTER: Duration = Duration::from_secs(2);

/// Later on after this share of the time since the beginning: a day on a quiet disk has some 260 footers then.
const COMMIT_SHARE: u32 = 32;

/// Row groups gathered are at least this many times as long as the footer that follows them.
const GROUPS_TO_FOOTER: usize = 4;

/// Most bytes of row groups that are gathered.
const GATHERED_MAX: usize = 32 << 20;

/// Writes a trace that can be read while it grows.
pub struct GrowingWriter {
    writer: RowsWriter<EncodedRows>,
    schema: SchemaDescPtr,
    path: String,
    noted: Noted,
    committed: Committed,
}

/// The committed content of the file.
#[derive(Clone, Copy, Default)]
struct Committed {
    bytes: u64,
    groups: usize,
    events: u64,
    footer_bytes: usize,
    at: Duration,
}

/// Encoded rows on their way to the file.
struct EncodedRows {
    bytes: Vec<u8>,
    file: File,
}

impl Write for EncodedRows {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl GrowingWriter {
    /// Begins a file, which must not exist yet. Only its owner can open it; it can be read from then on.
    ///
    /// # Errors
    /// When it cannot be created or written.
    pub fn create(path: &Path, info: &SourceInfo) -> Result<GrowingWriter, Error> {
        let name = path.display().to_string();
        let failed = |source| Error::Write {
            path: path.display().to_string(),
            source,
        };
        let new = NewFile::create(path, FileContent::DiskData).map_err(failed)?;
        let file = new.file().try_clone().map_err(failed)?;
        let gathered = EncodedRows {
            bytes: Vec::new(),
            file,
        };
        let schema = trace_schema().map_err(|error| write_error(&name, error))?;
        let writer = RowsWriter::new(gathered, Arc::clone(&schema), writer_properties())
            .map_err(|error| write_error(&name, error))?;
        let schema = Arc::new(SchemaDescriptor::new(schema));
        let (noted, committed) = (Noted::default(), Committed::default());
        let mut growing = GrowingWriter {
            writer,
            schema,
            path: name,
            noted,
            committed,
        };
        growing.commit(info, Duration::ZERO)?;
        // Only now it is a trace, of nothing yet.
        new.finish().map_err(failed)?;
        Ok(growing)
    }

    /// Adds a batch; `now` is the time since the recording began. The footers have the facts about the source at their
    /// time.
    ///
    /// # Errors
    /// When the file cannot be written; it can be read up to the last footer all the same.
    pub fn write(&mut self, batch: &Batch, info: &SourceInfo, now: Duration) -> Result<(), Error> {
        if !batch.is_empty() {
            self.noted.see(batch);
            let rows = columns_of(batch).and_then(|rows| self.writer.write(batch.len(), &rows));
            rows.map_err(|error| write_error(&self.path, error))?;
        }
        if self.is_due(now) {
            self.commit(info, now)?;
        } else if self.are_groups_due() {
            self.commit_groups(info, now)?;
        }
        Ok(())
    }

    /// Whether rows wait for longer than they should.
    fn is_due(&self, now: Duration) -> bool {
        let wait = COMMIT_AFTER.max(now / COMMIT_SHARE);
        self.noted.events > self.committed.events && now.saturating_sub(self.committed.at) >= wait
    }

    fn are_groups_due(&self) -> bool {
        let gathered = self.writer.file().inner().bytes.len();
        let enough = (GROUPS_TO_FOOTER * self.committed.footer_bytes).min(GATHERED_MAX);
        self.writer.file().flushed_row_groups().len() > self.committed.groups && gathered >= enough
    }

    /// Brings all rows into the file.
    ///
    /// # Errors
    /// When the file cannot be written; it can be read up to the last footer all the same.
    pub fn commit(&mut self, info: &SourceInfo, now: Duration) -> Result<(), Error> {
        self.writer
            .end_group()
            .map_err(|error| write_error(&self.path, error))?;
        self.commit_groups(info, now)
    }

    /// Brings the row groups that are whole into the file, with a footer behind them.
    fn commit_groups(&mut self, info: &SourceInfo, now: Duration) -> Result<(), Error> {
        let groups = self.writer.file().flushed_row_groups();
        let events = groups
            .iter()
            .map(|group| group.num_rows().unsigned_abs())
            .sum();
        let committed = Committed {
            groups: groups.len(),
            events,
            at: now,
            ..self.committed
        };
        let footer = self
            .footer(info)
            .map_err(|error| write_error(&self.path, error))?;
        let rows = self.writer.file_mut();
        let put = rows.write_all(&footer).and_then(|()| rows.flush());
        let put = put.and_then(|()| self.put(committed, footer.len()));
        put.map_err(|source| Error::Write {
            path: self.path.clone(),
            source,
        })
    }

    /// Writes the gathered rows. On failure the file is cut behind the last footer.
    fn put(&mut self, committed: Committed, footer_bytes: usize) -> io::Result<()> {
        let before = self.committed.bytes;
        let gathered = self.writer.file_mut().inner_mut();
        let mut file = &gathered.file;
        if let Err(error) = file.write_all(&gathered.bytes) {
            // It may be that this cannot be done either: a reader then finds the footer by itself.
            let _ = file.set_len(before);
            return Err(error);
        }
        let bytes = before + gathered.bytes.len() as u64;
        gathered.bytes.clear();
        self.committed = Committed {
            bytes,
            footer_bytes,
            ..committed
        };
        Ok(())
    }

    fn footer(&mut self, info: &SourceInfo) -> Result<Vec<u8>, ParquetError> {
        let pairs: Vec<KeyValue> = self.noted.metadata(info);
        let groups = self.writer.file().flushed_row_groups().to_vec();
        let rows = groups.iter().map(|group| group.num_rows()).sum();
        let created_by = Some(writer_properties().created_by().to_owned());
        let version = WriterVersion::PARQUET_2_0.as_num();
        let schema = Arc::clone(&self.schema);
        let file = FileMetaData::new(version, rows, created_by, Some(pairs), schema, None);
        let metadata = ParquetMetaDataBuilder::new(file)
            .set_row_groups(groups)
            .build();
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &metadata).finish()?;
        Ok(footer)
    }

    /// Rows that were taken in.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.noted.events
    }

    /// Rows that are in the file for good.
    #[must_use]
    pub fn committed_events(&self) -> u64 {
        self.committed.events
    }

    /// Length of the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.committed.bytes
    }

    /// Largest length of the file after the present rows are committed, except for the growth of its footer. Rows that are not
    /// committed count as if they were not packed.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        let gathered = self.writer.file().inner().bytes.len() + self.committed.footer_bytes;
        self.committed.bytes + gathered as u64 + self.writer.bytes_max()
    }

    /// Commits all rows, and has the system write the file to the disk.
    ///
    /// # Errors
    /// When the file cannot be written; it can be read up to the last footer all the same.
    pub fn finish(mut self, info: &SourceInfo, now: Duration) -> Result<u64, Error> {
        self.commit(info, now)?;
        let synced = self.writer.file().inner().file.sync_all();
        synced.map_err(|source| Error::Write {
            path: self.path.clone(),
            source,
        })?;
        Ok(self.committed.bytes)
    }
}
