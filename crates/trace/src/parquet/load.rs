//! Reads columns of a table that [`super::table`] wrote, row group by row group. The file is untrusted.

use std::fs::File;
use std::path::Path;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaDataReader, RowGroupMetaData};

use crate::error::Error;
use crate::parquet::column::{Bad, GroupColumn};
use crate::parquet::meaning::{Meaning, any_number};
use crate::parquet::open::up_to_a_footer;
use crate::parquet::pread::PartFile;
use crate::parquet::read::guarded;
use crate::parquet::schema::At;

/// Most rows of a row group: a day of 5 minutes of 4,096 devices has fewer.
const ROWS_MAX: i64 = 1 << 21;

/// Columns of the rows of a row group.
#[derive(Clone, Debug, Default)]
pub struct TableRows {
    /// The columns of numbers and times, in the order asked for.
    pub numbers: Vec<Vec<i64>>,
    /// The columns of words and blobs, in the order asked for.
    pub blobs: Vec<Vec<ByteArray>>,
}

/// Passes the rows of each row group on, of columns without nulls.
///
/// # Errors
/// If the file is cut off or damaged, or lacks a column.
pub fn load(
    path: &Path,
    numbers: &[&str],
    blobs: &[&str],
    take: &mut dyn FnMut(TableRows),
) -> Result<(), Error> {
    let name = path.display().to_string();
    let opened = File::open(path).and_then(PartFile::new);
    let file = opened.map_err(|source| Error::Open {
        path: name.clone(),
        source,
    })?;
    let (file, cut_off_bytes) = up_to_a_footer(file, &name)?;
    let library = |source| Error::Parquet {
        path: name.clone(),
        source,
    };
    if cut_off_bytes > 0 {
        let found = format!("found {cut_off_bytes} bytes behind the end of the table");
        return Err(library(ParquetError::General(found)));
    }
    let metadata =
        guarded(|| ParquetMetaDataReader::new().parse_and_finish(&file)).map_err(library)?;
    for group in metadata.row_groups() {
        let rows = guarded(|| {
            let mut rows = TableRows::default();
            for column in numbers {
                let mut read = GroupColumn::<Int64Type, i64>::whole(&file, group, column)?;
                let number = &mut any_number(At::TimeNs, 0);
                rows.numbers.push(read.all(group, number)?);
            }
            for column in blobs {
                let mut read = GroupColumn::<ByteArrayType, u32>::whole(&file, group, column)?;
                let mut kept = Kept::default();
                let places = read.all(group, &mut kept)?;
                let blob = |place: u32| kept.0[place as usize].clone();
                rows.blobs.push(places.into_iter().map(blob).collect());
            }
            Ok(rows)
        });
        take(rows.map_err(library)?);
    }
    Ok(())
}

impl<P: DataType, T: Copy> GroupColumn<P, T> {
    /// The column of a name.
    fn whole(
        file: &PartFile,
        group: &RowGroupMetaData,
        name: &str,
    ) -> Result<GroupColumn<P, T>, ParquetError> {
        let mut chunks = group.columns().iter();
        let chunk = chunks.find(|chunk| chunk.column_path().parts() == [name]);
        let chunk = chunk.filter(|chunk| chunk.column_type() == P::get_physical_type());
        let chunk = chunk.ok_or_else(|| {
            let expected = P::get_physical_type();
            ParquetError::General(format!(
                "found no column {name} of type {expected}, expected a table of windows"
            ))
        })?;
        GroupColumn::new(file, chunk, rows_of(group)?)
    }

    /// All its rows.
    fn all<M: Meaning<P::T, Is = T>>(
        &mut self,
        group: &RowGroupMetaData,
        meaning: &mut M,
    ) -> Result<Vec<T>, ParquetError> {
        let mut bad = Bad::default();
        let mut all = Vec::new();
        let nulls = self.read(rows_of(group)?, meaning, &mut all, &mut bad)?;
        match nulls > 0 || !bad.is_empty() {
            true => Err(ParquetError::General(
                "found a null or a value of another kind in a column that has none".to_owned(),
            )),
            false => Ok(all),
        }
    }
}

fn rows_of(group: &RowGroupMetaData) -> Result<usize, ParquetError> {
    let rows = Some(group.num_rows()).filter(|rows| (0..=ROWS_MAX).contains(rows));
    let rows = rows.and_then(|rows| usize::try_from(rows).ok());
    rows.ok_or_else(|| {
        let found = group.num_rows();
        ParquetError::General(format!("found {found} rows, expected 0 to {ROWS_MAX}"))
    })
}

/// Keeps the values of a column, and means the place of each.
#[derive(Default)]
struct Kept(Vec<ByteArray>);

impl Meaning<ByteArray> for Kept {
    type Is = u32;

    fn decode(&mut self, value: &ByteArray) -> Option<u32> {
        let place = u32::try_from(self.0.len()).ok()?;
        self.0.push(value.clone());
        Some(place)
    }

    fn of_all(&mut self, values: &mut Vec<ByteArray>, out: &mut Vec<u32>) -> bool {
        for value in values.iter() {
            out.extend(self.decode(value));
        }
        true
    }

    fn unknown(&self) -> u32 {
        0
    }

    fn complaint(&self, value: Option<&ByteArray>) -> Option<(String, &'static str)> {
        let found = value.map_or("null", |_| "bytes");
        Some((found.to_owned(), "bytes"))
    }
}
