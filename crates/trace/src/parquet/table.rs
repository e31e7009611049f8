//! Tables of words, times and numbers in Parquet, for engines that read it. They are no traces.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int64Array, RecordBatch, TimestampNanosecondArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::error::Error;
use crate::parquet::schema::writer_properties;
use crate::parquet::write::write_error;
use crate::write::Output;

/// Time zone of all times.
const ZONE: &str = "UTC";

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
}

impl Cells {
    fn field(&self, name: &str) -> Field {
        let (kind, is_nullable) = match self {
            Cells::Words(_) => {
                let (key, word) = (Box::new(DataType::Int32), Box::new(DataType::Utf8));
                (DataType::Dictionary(key, word), false)
            }
            Cells::Times(_) => {
                let unit = TimeUnit::Nanosecond;
                (DataType::Timestamp(unit, Some(ZONE.into())), false)
            }
            Cells::Numbers(_) => (DataType::Int64, false),
            Cells::Perhaps(_) => (DataType::Int64, true),
        };
        Field::new(name, kind, is_nullable)
    }

    fn array(self) -> ArrayRef {
        match self {
            Cells::Words(words) => {
                let words = words.iter().map(String::as_str);
                Arc::new(words.collect::<DictionaryArray<Int32Type>>())
            }
            Cells::Times(times) => {
                Arc::new(TimestampNanosecondArray::from(times).with_timezone(ZONE))
            }
            Cells::Numbers(numbers) => Arc::new(Int64Array::from(numbers)),
            Cells::Perhaps(numbers) => Arc::new(Int64Array::from(numbers)),
        }
    }
}

/// Writes a table with facts about it as metadata of the file.
///
/// # Errors
/// When the output cannot be written, or the columns differ in length.
pub fn write(
    columns: Vec<TableColumn>,
    facts: &[(&str, &str)],
    output: Output,
) -> Result<(), Error> {
    let path = output.path();
    let fields = columns.iter().map(|column| column.cells.field(column.name));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|column| column.cells.array());
    let rows = RecordBatch::try_new(Arc::clone(&schema), arrays.collect());
    let rows = rows.map_err(|error| write_error(&path, ParquetError::from(error)))?;
    let level = ZstdLevel::try_new(3).map_err(|error| write_error(&path, error))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_created_by(writer_properties().created_by().to_owned())
        .build();
    let mut writer = ArrowWriter::try_new(output, schema, Some(properties))
        .map_err(|error| write_error(&path, error))?;
    writer
        .write(&rows)
        .map_err(|error| write_error(&path, error))?;
    for (name, value) in facts {
        let pair = KeyValue::new((*name).to_owned(), (*value).to_owned());
        writer.append_key_value_metadata(pair);
    }
    let output = writer
        .into_inner()
        .map_err(|error| write_error(&path, error))?;
    output.commit()
}
