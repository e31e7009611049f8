//! Finds which layers a file holds whose metadata does not say.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;

use crate::op::Layer;

use crate::parquet::pread::PartFile;
use crate::parquet::statistics::{Source, source_by_statistics};

/// Rows looked at together.
const ROWS: usize = 65_536;

/// The layers of all rows, highest first: by the statistics where those are plain, else by that one column.
pub fn layers_of_rows(
    file: &PartFile,
    metadata: &ArrowReaderMetadata,
    leaf: Option<usize>,
) -> Result<Vec<Layer>, ParquetError> {
    let Some(leaf) = leaf else { return Ok(Vec::new()) };
    let mut seen = [false; Layer::ALL.len()];
    for (index, group) in metadata.metadata().row_groups().iter().enumerate() {
        if let Some(Source::Word(word)) =
            source_by_statistics(&group.columns()[leaf], group.num_rows(), false)
        {
            see(&mut seen, &word);
        } else {
            look_through(file, metadata, leaf, index, &mut seen)?;
        }
        if seen == [true; Layer::ALL.len()] {
            break;
        }
    }
    Ok(Layer::ALL.into_iter().filter(|layer| seen[*layer as usize]).collect())
}

fn see(seen: &mut [bool; Layer::ALL.len()], word: &str) {
    if let Some(layer) = Layer::from_word(word) {
        seen[layer as usize] = true;
    }
}

fn look_through(
    file: &PartFile,
    metadata: &ArrowReaderMetadata,
    leaf: usize,
    group: usize,
    seen: &mut [bool; Layer::ALL.len()],
) -> Result<(), ParquetError> {
    let rows = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
        .with_row_groups(vec![group])
        .with_projection(ProjectionMask::leaves(metadata.parquet_schema(), [leaf]))
        .with_batch_size(ROWS)
        .build()?;
    for batch in rows {
        let batch = batch?;
        let Some(words) = batch.columns().first().and_then(|column| column.as_dictionary_opt::<Int32Type>())
        else {
            return Ok(());
        };
        let Some(values) = words.values().as_string_opt::<i32>() else { return Ok(()) };
        let mut used = vec![false; values.len()];
        for key in words.keys().iter().flatten() {
            if let Some(used) = usize::try_from(key).ok().and_then(|key| used.get_mut(key)) {
                *used = true;
            }
        }
        for (place, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            see(seen, values.value(place));
        }
    }
    Ok(())
}
