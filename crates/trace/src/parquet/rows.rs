//! Rows to a Parquet file. The columns of a row group are encoded in memory, side by side, until the group is whole.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::basic::Type;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, TypePtr};
use rustc_hash::FxHashMap;

use crate::parquet::words::{NO_WORD, WordColumn};

/// Most bytes of a row in the levels of a column and in the heads of its pages.
const BESIDE_BYTES: u64 = 1;

/// Some rows of a column.
pub(super) enum ColumnRows<'words> {
    I64(Vec<i64>, Levels),
    I32(Vec<i32>, Levels),
    /// Some words, and for each row its place among them or [`NO_WORD`].
    Words(Vec<&'words [u8]>, Vec<u32>),
}

/// For each row 1 if its value is known, else 0; `None` for a column without nulls.
pub(super) type Levels = Option<Vec<i16>>;

/// The known values of rows that may lack one.
pub(super) fn known<T>(cells: impl Iterator<Item = Option<T>>) -> (Vec<T>, Levels) {
    let mut known = Vec::with_capacity(cells.size_hint().0);
    let mut levels = Vec::with_capacity(cells.size_hint().0);
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        known.extend(cell);
    }
    (known, Some(levels))
}

impl<'words> ColumnRows<'words> {
    /// The words of rows, by a number that says which.
    pub fn of_words<K: Copy + Eq + std::hash::Hash>(
        rows: impl Iterator<Item = K>,
        word: impl Fn(K) -> Option<&'words [u8]>,
    ) -> ColumnRows<'words> {
        let mut words = Vec::new();
        let mut places: FxHashMap<K, u32> = FxHashMap::default();
        let mut last: Option<(K, u32)> = None;
        let place = |key: K| {
            // Neighbours mostly share device, layer and command.
            if let Some((known, place)) = last
                && known == key
            {
                return place;
            }
            let place = *places.entry(key).or_insert_with(|| {
                let Some(word) = word(key) else {
                    return NO_WORD;
                };
                words.push(word);
                words.len() as u32 - 1
            });
            last = Some((key, place));
            place
        };
        let rows = rows.map(place).collect();
        ColumnRows::Words(words, rows)
    }

    /// No encoding takes more bytes.
    fn bytes_max(&self) -> u64 {
        match self {
            ColumnRows::I64(values, _) => 8 * values.len() as u64,
            ColumnRows::I32(values, _) => 4 * values.len() as u64,
            ColumnRows::Words(words, rows) => {
                words.iter().map(|word| word.len() as u64 + 4).sum::<u64>() + 4 * rows.len() as u64
            }
        }
    }
}

/// Writes rows of one schema.
pub(super) struct RowsWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    properties: WriterPropertiesPtr,
    /// Most rows of a group, but for those that come in one call.
    rows_max: usize,
    /// The columns of the group that is not whole; none before its first rows.
    columns: Vec<Column>,
    rows: usize,
    bytes_max: u64,
}

impl<W: Write + Send> RowsWriter<W> {
    /// Begins a file.
    pub fn new(output: W, schema: TypePtr, properties: WriterProperties) -> Result<RowsWriter<W>> {
        let properties = Arc::new(properties);
        Ok(RowsWriter {
            file: SerializedFileWriter::new(output, schema, Arc::clone(&properties))?,
            rows_max: properties.max_row_group_row_count().unwrap_or(usize::MAX),
            properties,
            columns: Vec::new(),
            rows: 0,
            bytes_max: 0,
        })
    }

    /// Adds rows: those of each column, in the order of the schema.
    pub fn write(&mut self, rows: usize, columns: &[ColumnRows<'_>]) -> Result<()> {
        if self.rows + rows > self.rows_max {
            self.end_group()?;
        }
        if self.columns.is_empty() {
            let schema = self.file.schema_descr();
            self.columns = schema
                .columns()
                .iter()
                .map(|column| Column::new(column, &self.properties))
                .collect();
        }
        for (column, rows) in self.columns.iter_mut().zip(columns) {
            column.write(rows)?;
            self.bytes_max += rows.bytes_max();
        }
        self.bytes_max += BESIDE_BYTES * (rows * columns.len()) as u64;
        self.rows += rows;
        if self.rows >= self.rows_max {
            self.end_group()?;
        }
        Ok(())
    }

    /// Ends the present row group, if it has a row.
    pub fn end_group(&mut self) -> Result<()> {
        (self.rows, self.bytes_max) = (0, 0);
        let columns = std::mem::take(&mut self.columns);
        if columns.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in columns {
            let (encoded, closed) = column.close()?;
            group.append_column(&encoded, closed)?;
        }
        group.close()?;
        Ok(())
    }

    /// Most bytes that the present row group can have in the file.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// The file with the groups that have ended.
    pub fn file(&self) -> &SerializedFileWriter<W> {
        &self.file
    }

    /// The same, to be changed.
    pub fn file_mut(&mut self) -> &mut SerializedFileWriter<W> {
        &mut self.file
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<W> {
        self.end_group()?;
        self.file.into_inner()
    }
}

/// A column of the present row group.
enum Column {
    Numbers(Box<ColumnWriter<'static>>, Encoded),
    Words(WordColumn),
}

impl Column {
    fn new(column: &ColumnDescPtr, properties: &WriterPropertiesPtr) -> Column {
        let (column, properties) = (Arc::clone(column), Arc::clone(properties));
        if column.physical_type() == Type::BYTE_ARRAY {
            return Column::Words(WordColumn::new(column, properties));
        }
        let encoded = Encoded::default();
        let pages = Box::new(Pages(TrackedWrite::new(encoded.clone())));
        let writer = get_column_writer(column, properties, pages);
        Column::Numbers(Box::new(writer), encoded)
    }

    fn write(&mut self, rows: &ColumnRows<'_>) -> Result<()> {
        match (self, rows) {
            (Column::Words(column), ColumnRows::Words(words, rows)) => column.add(words, rows),
            (Column::Numbers(writer, _), rows) => match (writer.as_mut(), rows) {
                (ColumnWriter::Int64ColumnWriter(writer), ColumnRows::I64(values, levels)) => {
                    writer.write_batch(values, levels.as_deref(), None)?;
                }
                (ColumnWriter::Int32ColumnWriter(writer), ColumnRows::I32(values, levels)) => {
                    writer.write_batch(values, levels.as_deref(), None)?;
                }
                _ => return Err(other_type()),
            },
            _ => return Err(other_type()),
        }
        Ok(())
    }

    fn close(self) -> Result<(Bytes, ColumnCloseResult)> {
        match self {
            Column::Words(column) => column.close(),
            Column::Numbers(writer, encoded) => {
                let closed = writer.close()?;
                let encoded = Bytes::from(std::mem::take(&mut *encoded.lock()));
                Ok((encoded, closed))
            }
        }
    }
}

fn other_type() -> ParquetError {
    ParquetError::General("found rows of another type than their column".to_owned())
}

/// The encoded pages of a column.
#[derive(Clone, Default)]
struct Encoded(Arc<Mutex<Vec<u8>>>);

impl Encoded {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Encoded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes the pages of a column.
struct Pages(TrackedWrite<Encoded>);

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        SerializedPageWriter::new(&mut self.0).write_page(page)
    }

    fn close(&mut self) -> Result<()> {
        self.0.flush()?;
        Ok(())
    }
}
