//! Finds the layers of a file whose metadata do not state them.

use parquet::data_type::ByteArrayType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

use crate::batch::BATCH_EVENTS;
use crate::op::Layer;
use crate::parquet::column::{Bad, GroupColumn};
use crate::parquet::meaning::Word;
use crate::parquet::pread::PartFile;
use crate::parquet::read::guarded;
use crate::parquet::schema::At;
use crate::parquet::statistics::{Source, source_by_statistics};

/// The layers of all rows, highest first: by the statistics where those are plain, else by that one column.
pub fn layers_of_rows(
    file: &PartFile,
    metadata: &ParquetMetaData,
    leaf: Option<usize>,
) -> Vec<Layer> {
    let Some(leaf) = leaf else { return Vec::new() };
    let mut seen = [false; Layer::ALL.len()];
    for group in metadata.row_groups() {
        if let Some(Source::Word(word)) =
            source_by_statistics(&group.columns()[leaf], group.num_rows(), false)
        {
            if let Some(layer) = Layer::from_word(&word) {
                seen[layer as usize] = true;
            }
        } else {
            // Rows whose layer cannot be decoded are not read later either, and counted then.
            let _ = guarded(|| look_through(file, group, leaf, &mut seen));
        }
        if seen == [true; Layer::ALL.len()] {
            break;
        }
    }
    Layer::ALL
        .into_iter()
        .filter(|layer| seen[*layer as usize])
        .collect()
}

fn look_through(
    file: &PartFile,
    group: &RowGroupMetaData,
    leaf: usize,
    seen: &mut [bool; Layer::ALL.len()],
) -> Result<(), ParquetError> {
    let mut left = usize::try_from(group.num_rows()).unwrap_or(0);
    let mut column = GroupColumn::<ByteArrayType, Layer>::new(file, group.column(leaf), left)?;
    let mut meaning = Word {
        of: Layer::from_word,
        unknown: Layer::Request,
        at: At::Layer,
    };
    let mut layers = Vec::new();
    while left > 0 {
        let rows = left.min(BATCH_EVENTS);
        let mut bad = Bad::default();
        layers.clear();
        column.read(rows, &mut meaning, &mut layers, &mut bad)?;
        for (_, layer) in layers
            .iter()
            .enumerate()
            .filter(|(row, _)| !bad.is_bad(*row))
        {
            seen[*layer as usize] = true;
        }
        left -= rows;
    }
    Ok(())
}
