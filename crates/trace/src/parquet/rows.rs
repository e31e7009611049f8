//! Rows to a Parquet file. The columns of a row group are encoded in memory, side by side, until the group is whole.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::TypePtr;

use crate::parquet::schema::ROW_GROUP_ROWS;

/// Most bytes of a word's length, and of a row in the levels of a column, beside its value.
const BESIDE_BYTES: u64 = 5;

/// Some rows of a column.
pub(super) struct ColumnRows {
    /// The known values.
    pub values: Values,
    /// For each row 1 if its value is known, else 0; `None` for a column without nulls.
    pub levels: Option<Vec<i16>>,
}

/// Values of a column.
pub(super) enum Values {
    I64(Vec<i64>),
    I32(Vec<i32>),
    Words(Vec<ByteArray>),
}

impl Values {
    /// No encoding takes more bytes.
    fn bytes_max(&self) -> u64 {
        match self {
            Values::I64(values) => 8 * values.len() as u64,
            Values::I32(values) => 4 * values.len() as u64,
            Values::Words(words) => words.iter().map(|word| word.len() as u64).sum(),
        }
    }
}

impl ColumnRows {
    /// Rows that all have a value.
    pub fn known(values: Values) -> ColumnRows {
        ColumnRows {
            values,
            levels: None,
        }
    }

    /// Rows that may lack a value.
    pub fn perhaps<T>(
        cells: impl Iterator<Item = Option<T>>,
        values: fn(Vec<T>) -> Values,
    ) -> ColumnRows {
        let mut known = Vec::with_capacity(cells.size_hint().0);
        let mut levels = Vec::with_capacity(cells.size_hint().0);
        for cell in cells {
            levels.push(i16::from(cell.is_some()));
            known.extend(cell);
        }
        ColumnRows {
            values: values(known),
            levels: Some(levels),
        }
    }
}

/// Writes rows of one schema.
pub(super) struct RowsWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    properties: WriterPropertiesPtr,
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
            properties,
            columns: Vec::new(),
            rows: 0,
            bytes_max: 0,
        })
    }

    /// Adds rows: those of each column, in the order of the schema.
    pub fn write(&mut self, rows: usize, columns: &[ColumnRows]) -> Result<()> {
        if self.rows + rows > ROW_GROUP_ROWS {
            self.end_group()?;
        }
        if self.columns.is_empty() {
            let schema = self.file.schema_descr();
            self.columns = schema
                .columns()
                .iter()
                .map(|column| {
                    let encoded = Encoded::default();
                    let pages = Box::new(Pages(TrackedWrite::new(encoded.clone())));
                    let writer =
                        get_column_writer(Arc::clone(column), Arc::clone(&self.properties), pages);
                    Column { writer, encoded }
                })
                .collect();
        }
        for (column, rows) in self.columns.iter_mut().zip(columns) {
            column.write(rows)?;
            self.bytes_max += rows.values.bytes_max();
        }
        self.bytes_max += BESIDE_BYTES * (rows * columns.len()) as u64;
        self.rows += rows;
        if self.rows >= ROW_GROUP_ROWS {
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
            let closed = column.writer.close()?;
            let encoded = Bytes::from(std::mem::take(&mut *column.encoded.lock()));
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
struct Column {
    writer: ColumnWriter<'static>,
    encoded: Encoded,
}

impl Column {
    fn write(&mut self, rows: &ColumnRows) -> Result<()> {
        let levels = rows.levels.as_deref();
        match (&mut self.writer, &rows.values) {
            (ColumnWriter::Int64ColumnWriter(writer), Values::I64(values)) => {
                writer.write_batch(values, levels, None)?;
            }
            (ColumnWriter::Int32ColumnWriter(writer), Values::I32(values)) => {
                writer.write_batch(values, levels, None)?;
            }
            (ColumnWriter::ByteArrayColumnWriter(writer), Values::Words(words)) => {
                writer.write_batch(words, levels, None)?;
            }
            _ => {
                return Err(ParquetError::General(
                    "found rows of another type than their column".to_owned(),
                ));
            }
        }
        Ok(())
    }
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
