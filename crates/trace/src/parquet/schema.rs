//! Columns of schema version 1 and how they are encoded.
//!
//! Times, sectors and latencies are stored as signed differences (DELTA_BINARY_PACKED) without a dictionary: on block
//! traces that is a fifth smaller than the library's defaults. Columns with few different values (names, operations,
//! lengths, processes) are dictionary-encoded. Integers are signed because several engines read unsigned 64-bit ones as
//! decimals.

use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel,
};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{ColumnDescriptor, ColumnPath, SchemaDescriptor, Type, TypePtr};

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
    /// Its name in messages.
    fn word(self) -> &'static str {
        match self {
            ColumnType::I64 => "Int64",
            ColumnType::I32 => "Int32",
            ColumnType::Word => "Utf8",
        }
    }

    /// The content of a column of a file; `None` if a trace has no such column.
    fn of_column(column: &ColumnDescriptor) -> Option<ColumnType> {
        if column.max_rep_level() > 0 {
            return None;
        }
        let is_plain = |bits: i8, converted: ConvertedType| match column.logical_type_ref() {
            None => [ConvertedType::NONE, converted].contains(&column.converted_type()),
            Some(LogicalType::Integer(stored)) => stored.bit_width == bits && stored.is_signed,
            Some(_) => false,
        };
        match column.physical_type() {
            Physical::INT64 if is_plain(64, ConvertedType::INT_64) => Some(ColumnType::I64),
            Physical::INT32 if is_plain(32, ConvertedType::INT_32) => Some(ColumnType::I32),
            Physical::BYTE_ARRAY if column.converted_type() == ConvertedType::UTF8 => {
                Some(ColumnType::Word)
            }
            _ => None,
        }
    }
}

/// A column of a file that is written.
///
/// # Errors
/// When the library does not know such a column.
pub(super) fn field(
    name: &str,
    physical: Physical,
    logical: Option<LogicalType>,
    nullable: bool,
) -> Result<TypePtr> {
    let repetition = match nullable {
        true => Repetition::OPTIONAL,
        false => Repetition::REQUIRED,
    };
    let field = Type::primitive_type_builder(name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

/// The schema of these columns.
///
/// # Errors
/// When the library knows no such schema.
pub(super) fn schema_of(fields: Vec<TypePtr>) -> Result<TypePtr> {
    let schema = Type::group_type_builder("schema").with_fields(fields);
    Ok(Arc::new(schema.build()?))
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
///
/// # Errors
/// When the library knows no such schema.
pub(super) fn trace_schema() -> Result<TypePtr> {
    let fields = COLUMNS.iter().map(|column| {
        let (physical, logical) = match column.kind {
            ColumnType::I64 => (Physical::INT64, None),
            ColumnType::I32 => (Physical::INT32, None),
            ColumnType::Word => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        field(column.name, physical, logical, column.nullable)
    });
    schema_of(fields.collect::<Result<_>>()?)
}

/// The leaf in a file of each column, or the texts found and expected if the file is no trace. Columns may be in any
/// order; unknown ones are skipped.
///
/// # Errors
/// When a column is missing that every trace has, or holds something else.
pub fn leaves_of(
    file: &SchemaDescriptor,
) -> std::result::Result<[Option<usize>; COLUMNS.len()], (String, String)> {
    let mut leaves = [None; COLUMNS.len()];
    for (column, place) in COLUMNS.iter().zip(&mut leaves) {
        let is_it = |leaf: &usize| file.column(*leaf).path().parts() == [column.name];
        let Some(leaf) = (0..file.num_columns()).find(is_it) else {
            if column.nullable {
                continue;
            }
            let found = file
                .root_schema()
                .get_fields()
                .iter()
                .take(20)
                .map(|field| field.name())
                .collect::<Vec<_>>();
            return Err((
                format!("columns {}", found.join(", ")),
                format!("a column {}", column.name),
            ));
        };
        let stored = file.column(leaf);
        if ColumnType::of_column(&stored) != Some(column.kind) {
            return Err((
                format!("{} of type {}", column.name, type_word(&stored)),
                column.kind.word().to_owned(),
            ));
        }
        *place = Some(leaf);
    }
    Ok(leaves)
}

/// The type of a column of a file, in words.
fn type_word(column: &ColumnDescriptor) -> String {
    if let Some(kind) = ColumnType::of_column(column) {
        return kind.word().to_owned();
    }
    let physical = column.physical_type();
    let repeated = match column.max_rep_level() {
        0 => "",
        _ => "repeated ",
    };
    match column.logical_type_ref() {
        Some(logical) => format!("{repeated}{physical} as {logical:?}"),
        None => format!("{repeated}{physical}"),
    }
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
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
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
