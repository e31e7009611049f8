//! Tables of words, times and numbers in Parquet, for engines that read it. They are no traces.

use parquet::basic::{Compression, LogicalType, TimeUnit, ZstdLevel};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::TypePtr;

use crate::error::Error;
use crate::parquet::rows::{ColumnRows, RowsWriter, known};
use crate::parquet::schema::{ColumnType, field, schema_of, writer_properties};
use crate::parquet::write::write_error;
use crate::write::Output;

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
    fn field(&self, name: &str) -> Result<TypePtr> {
        let time = LogicalType::timestamp(true, TimeUnit::NANOS);
        match self {
            Cells::Words(_) => field(name, ColumnType::Word, false, None),
            Cells::Times(_) => field(name, ColumnType::I64, false, Some(time)),
            Cells::Numbers(_) => field(name, ColumnType::I64, false, None),
            Cells::Perhaps(_) => field(name, ColumnType::I64, true, None),
        }
    }

    fn rows(&self) -> (usize, ColumnRows<'_>) {
        match self {
            Cells::Words(words) => {
                let rows = words.iter().map(String::as_str);
                (words.len(), ColumnRows::of_words(rows, Some))
            }
            Cells::Times(numbers) | Cells::Numbers(numbers) => {
                (numbers.len(), ColumnRows::I64(numbers.clone(), None))
            }
            Cells::Perhaps(numbers) => {
                let (values, levels) = known(numbers.iter().copied());
                (numbers.len(), ColumnRows::I64(values, levels))
            }
        }
    }
}

/// Writes a table with facts about it as metadata of the file.
///
/// # Errors
/// When the output cannot be written, or the columns differ in length.
pub fn write(columns: &[TableColumn], facts: &[(&str, &str)], output: Output) -> Result<(), Error> {
    let path = output.path();
    let rows = |output: Output| {
        let fields = columns.iter().map(|column| column.cells.field(column.name));
        let schema = schema_of(fields.collect::<Result<_>>()?)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_created_by(writer_properties().created_by().to_owned())
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        let mut writer = RowsWriter::new(output, schema, properties)?;
        let (lengths, columns): (Vec<usize>, Vec<ColumnRows<'_>>) =
            columns.iter().map(|column| column.cells.rows()).unzip();
        let rows = lengths.first().copied().unwrap_or(0);
        if rows > 0 {
            writer.write(rows, &columns)?;
        }
        for (name, value) in facts {
            let pair = KeyValue::new((*name).to_owned(), (*value).to_owned());
            writer.file_mut().append_key_value_metadata(pair);
        }
        writer.finish()
    };
    let output = rows(output).map_err(|error| write_error(&path, error))?;
    output.commit()
}
