//! The source of a column's values: a column with one constant value by the statistics of its row group is not decoded
//! at all, one that is all null stays empty.

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;

/// The source of the values of a column of a row group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Not in the file, not wanted, or all null.
    Absent,
    /// One number throughout.
    Number(i64),
    /// One word throughout.
    Word(String),
    /// A column of the file.
    Leaf(usize),
}

/// The statistics of a row group about a column: all null, one value, or nothing of use.
#[must_use]
pub fn source_by_statistics(
    chunk: &ColumnChunkMetaData,
    rows: i64,
    nullable: bool,
) -> Option<Source> {
    let statistics = chunk.statistics()?;
    let never_null = chunk.column_descr().max_def_level() == 0;
    let nulls = if never_null {
        Some(0)
    } else {
        statistics.null_count_opt()
    };
    if nullable && nulls == u64::try_from(rows).ok() {
        return Some(Source::Absent);
    }
    if nulls != Some(0) {
        return None;
    }
    match statistics {
        Statistics::Int32(range) => range
            .min_opt()
            .filter(|min| Some(*min) == range.max_opt())
            .map(|&one| Source::Number(one.into())),
        Statistics::Int64(range) => range
            .min_opt()
            .filter(|min| Some(*min) == range.max_opt())
            .map(|&one| Source::Number(one)),
        // Long words are cut in the statistics, which the flags tell.
        Statistics::ByteArray(range) if range.min_is_exact() && range.max_is_exact() => {
            let one = range
                .min_bytes_opt()
                .filter(|min| Some(*min) == range.max_bytes_opt())?;
            std::str::from_utf8(one)
                .ok()
                .map(|word| Source::Word(word.to_owned()))
        }
        _ => None,
    }
}
