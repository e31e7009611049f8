//! Tables of words, times and numbers in Parquet, for engines that read it. They are no traces.

use std::ops::Range;

use parquet::basic::{Compression, LogicalType, TimeUnit, Type, ZstdLevel};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::TypePtr;

use crate::error::Error;
use crate::parquet::rows::{ColumnRows, RowsWriter, known};
use crate::parquet::schema::{field, schema_of, writer_properties};
use crate::parquet::write::write_error;
use crate::write::Output;

/// Most rows of a row group: blobs may be long.
const GROUP_ROWS: usize = 1 << 17;

/// A column of a table.
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// Its name.
    pub name: &'static str,
    /// Its cells, one for each row.
    pub cells: Cells,
}

/// The cells of a column.
#[derive(Clone, Debug)]
pub enum Cells {
    /// Words, few of them different.
    Words(Vec<String>),
    /// Times, ns since 1970.
    Times(Vec<i64>),
    /// Numbers.
    Numbers(Vec<i64>),
    /// Numbers, or null for one that is not known.
    Perhaps(Vec<Option<i64>>),
    /// Bytes in a form of their own.
    Blobs(Vec<Vec<u8>>),
}

impl Cells {
    fn field(&self, name: &str) -> Result<TypePtr> {
        let time = LogicalType::timestamp(true, TimeUnit::NANOS);
        let (kind, logical, is_nullable) = match self {
            Cells::Words(_) => (Type::BYTE_ARRAY, Some(LogicalType::String), false),
            Cells::Times(_) => (Type::INT64, Some(time), false),
            Cells::Numbers(_) => (Type::INT64, None, false),
            Cells::Perhaps(_) => (Type::INT64, None, true),
            Cells::Blobs(_) => (Type::BYTE_ARRAY, None, false),
        };
        field(name, kind, logical, is_nullable)
    }

    fn len(&self) -> usize {
        match self {
            Cells::Words(words) => words.len(),
            Cells::Times(numbers) | Cells::Numbers(numbers) => numbers.len(),
            Cells::Perhaps(numbers) => numbers.len(),
            Cells::Blobs(blobs) => blobs.len(),
        }
    }

    /// Some of the rows.
    fn rows(&self, range: Range<usize>) -> ColumnRows<'_> {
        match self {
            Cells::Words(words) => {
                let words = words[range].iter().map(String::as_bytes);
                ColumnRows::of_words(words, Some)
            }
            Cells::Times(numbers) | Cells::Numbers(numbers) => {
                ColumnRows::I64(numbers[range].to_vec(), None)
            }
            Cells::Perhaps(numbers) => {
                let (values, levels) = known(numbers[range].iter().copied());
                ColumnRows::I64(values, levels)
            }
            Cells::Blobs(blobs) => {
                let blobs = blobs[range].iter().map(Vec::as_slice);
                ColumnRows::of_words(blobs, Some)
            }
        }
    }
}

/// Writes a table with facts about it as metadata of the file.
///
/// # Errors
/// When the output cannot be written, or the columns differ in length.
pub fn write(
    columns: &[TableColumn],
    facts: &[(&str, &str)],
    output: Output,
) -> std::result::Result<(), Error> {
    let mut writer = TableWriter::new(columns, output)?;
    writer.add(columns)?;
    writer.finish(facts)
}

/// A table that grows.
pub struct TableWriter {
    path: String,
    writer: RowsWriter<Output>,
}

impl TableWriter {
    /// Begins a table with columns like these; their cells are not written.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn new(columns: &[TableColumn], output: Output) -> std::result::Result<TableWriter, Error> {
        let path = output.path();
        let writer = || {
            let fields = columns.iter().map(|column| column.cells.field(column.name));
            let schema = schema_of(fields.collect::<Result<_>>()?)?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
                .set_created_by(writer_properties().created_by().to_owned())
                .set_statistics_enabled(EnabledStatistics::Chunk)
                .set_offset_index_disabled(true)
                .set_max_row_group_row_count(Some(GROUP_ROWS))
                .build();
            RowsWriter::new(output, schema, properties)
        };
        let writer = writer().map_err(|error| write_error(&path, error))?;
        Ok(TableWriter { path, writer })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When the output cannot be written, or the columns differ in length or from those of the table.
    pub fn add(&mut self, columns: &[TableColumn]) -> std::result::Result<(), Error> {
        let mut add = || {
            let rows = columns.first().map_or(0, |column| column.cells.len());
            if columns.iter().any(|column| column.cells.len() != rows) {
                return Err(ParquetError::General(
                    "found columns of several lengths".to_owned(),
                ));
            }
            for from in (0..rows).step_by(GROUP_ROWS) {
                let range = from..rows.min(from + GROUP_ROWS);
                let part = columns.iter();
                let part = part.map(|column| column.cells.rows(range.clone()));
                self.writer.write(range.len(), &part.collect::<Vec<_>>())?;
            }
            Ok(())
        };
        add().map_err(|error| write_error(&self.path, error))
    }

    /// Ends the table, and gives the file its name.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn finish(mut self, facts: &[(&str, &str)]) -> std::result::Result<(), Error> {
        for (name, value) in facts {
            let pair = KeyValue::new((*name).to_owned(), (*value).to_owned());
            self.writer.file_mut().append_key_value_metadata(pair);
        }
        let output = self.writer.finish();
        output
            .map_err(|error| write_error(&self.path, error))?
            .commit()
    }
}
