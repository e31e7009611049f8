//! Columns of schema version 1 and how they are encoded.
//!
//! Times, sectors and latencies are stored as signed differences (DELTA_BINARY_PACKED) without a dictionary: on block
//! traces that is a fifth smaller than the library's defaults. Columns with few different values (names, operations,
//! lengths, processes) are dictionary-encoded. Integers are signed because several engines read unsigned 64-bit ones as
//! decimals.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

/// The version that is written, and the newest that is read.
pub const SCHEMA_VERSION: u32 = 1;

/// Rows of a row group: the unit that is decoded on its own.
pub const ROW_GROUP_ROWS: usize = 524_288;

/// Most bytes of a page, encoded: some 16,384 rows of a delta-packed column and 256 Ki of operations. A page of each
/// column has to fit the cache together while rows are put together; smaller ones cost a header, a read and often
/// tables of zstd each.
const PAGE_BYTES: usize = 64 << 10;

/// A page is stored compressed only when that leaves less than this share of it. Delta-packed numbers hardly
/// shrink any further, and decompressing them would then cost more than all else.
const COMPRESSED_SHARE_MAX: f64 = 0.8;

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Signed 64-bit number.
    I64,
    /// Signed 32-bit number.
    I32,
    /// Text from a dictionary.
    Word,
}

impl ColumnType {
    /// The type by which it is written.
    #[must_use]
    pub fn data_type(self) -> DataType {
        match self {
            ColumnType::I64 => DataType::Int64,
            ColumnType::I32 => DataType::Int32,
            ColumnType::Word => {
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
            }
        }
    }
}

/// A column: name, content, whether null (unknown) is allowed, whether it is delta-packed.
#[derive(Clone, Copy, Debug)]
pub struct SchemaColumn {
    /// Name in the file.
    pub name: &'static str,
    /// Its content.
    pub kind: ColumnType,
    /// Whether it may hold nulls, or be absent from the file.
    pub nullable: bool,
    delta: bool,
}

const fn needed(name: &'static str, kind: ColumnType, delta: bool) -> SchemaColumn {
    SchemaColumn {
        name,
        kind,
        nullable: false,
        delta,
    }
}

const fn optional(name: &'static str, kind: ColumnType, delta: bool) -> SchemaColumn {
    SchemaColumn {
        name,
        kind,
        nullable: true,
        delta,
    }
}

/// Place of a column in [`COLUMNS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the columns are")]
pub enum At {
    TimeNs,
    Device,
    Layer,
    Op,
    Flags,
    Sector,
    RemBytes,
    LenBytes,
    QueueNs,
    DeviceNs,
    Pid,
    Comm,
    Cgroup,
    File,
    Tid,
}

/// All columns, in the order of writing.
pub const COLUMNS: [SchemaColumn; 15] = [
    needed("time_ns", ColumnType::I64, true),
    needed("device", ColumnType::Word, false),
    needed("layer", ColumnType::Word, false),
    needed("op", ColumnType::Word, false),
    needed("flags", ColumnType::I32, false),
    needed("sector", ColumnType::I64, true),
    needed("rem_bytes", ColumnType::I32, false),
    needed("len_bytes", ColumnType::I64, false),
    optional("queue_ns", ColumnType::I64, true),
    optional("device_ns", ColumnType::I64, true),
    optional("pid", ColumnType::I32, false),
    optional("comm", ColumnType::Word, false),
    optional("cgroup", ColumnType::I64, false),
    optional("file", ColumnType::Word, false),
    optional("tid", ColumnType::I32, false),
];

/// The schema by which files are written.
#[must_use]
pub fn arrow_schema() -> SchemaRef {
    let field =
        |column: &SchemaColumn| Field::new(column.name, column.kind.data_type(), column.nullable);
    Arc::new(Schema::new(COLUMNS.iter().map(field).collect::<Vec<_>>()))
}

/// The leaf in a file of each column, or the texts found and expected if the file is no trace. Columns may be in any
/// order; unknown ones are skipped.
///
/// # Errors
/// When a column is missing that every trace has, or holds something else.
pub fn leaves_of(
    file: &SchemaDescriptor,
    types: &Schema,
) -> Result<[Option<usize>; COLUMNS.len()], (String, String)> {
    let mut leaves = [None; COLUMNS.len()];
    for (column, place) in COLUMNS.iter().zip(&mut leaves) {
        let is_it = |leaf: &usize| file.column(*leaf).path().parts() == [column.name];
        let Some(leaf) = (0..file.num_columns()).find(is_it) else {
            if column.nullable {
                continue;
            }
            let found = types
                .fields()
                .iter()
                .take(20)
                .map(|field| field.name().as_str())
                .collect::<Vec<_>>();
            return Err((
                format!("columns {}", found.join(", ")),
                format!("a column {}", column.name),
            ));
        };
        let found = types.field_with_name(column.name).map(Field::data_type);
        let stored = if column.kind == ColumnType::Word {
            DataType::Utf8
        } else {
            column.kind.data_type()
        };
        match found {
            Ok(found) if *found == stored => *place = Some(leaf),
            Ok(found) => {
                return Err((
                    format!("{} of type {found}", column.name),
                    format!("{stored}"),
                ));
            }
            Err(_) => {
                return Err((
                    format!("{} within another column", column.name),
                    "a plain column".to_owned(),
                ));
            }
        }
    }
    Ok(leaves)
}

/// Encodings, compression and sizes by which files are written.
#[must_use]
pub fn writer_properties() -> WriterProperties {
    let level = ZstdLevel::try_new(1).unwrap_or_default();
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("plumb ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(Compression::ZSTD(level))
        .set_data_page_v2_compression_ratio_threshold(COMPRESSED_SHARE_MAX)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_data_page_row_count_limit(ROW_GROUP_ROWS)
        .set_data_page_size_limit(PAGE_BYTES)
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for column in COLUMNS.iter().filter(|column| column.delta) {
        let path = ColumnPath::from(column.name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_names_agree() {
        let check = |at: At, name| assert_eq!(COLUMNS[at as usize].name, name);
        check(At::TimeNs, "time_ns");
        check(At::Sector, "sector");
        check(At::QueueNs, "queue_ns");
        check(At::File, "file");
        check(At::Tid, "tid");
        assert_eq!(COLUMNS.len(), At::Tid as usize + 1);
    }
}
