//! The pages of one column of one row group, in parts: the rows with a value, and the values, still encoded.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use crate::parquet::keys::Keys;
use crate::parquet::pread::PartFile;

/// Bytes that a value takes in a dictionary at least: a number of 32 bits, or the length of an empty word.
const DICTIONARY_VALUE_BYTES_MIN: usize = 4;

/// The pages of a column that are still to be read.
pub struct Pages {
    reader: SerializedPageReader<PartFile>,
    /// Whether each row has a level that tells whether it has a value.
    has_levels: bool,
    /// The column as one without nulls: the library gets the values alone.
    values_only: ColumnDescPtr,
}

/// A part of a column.
pub enum ColumnPart {
    /// Values that the keys of the following pages point to, and how many.
    Dictionary(Bytes, usize),
    /// Rows.
    Rows(RowsPart),
}

/// The rows of a page.
pub struct RowsPart {
    /// How many.
    pub rows: usize,
    /// 0 where a row has no value; `None` when all have one.
    pub levels: Option<Keys>,
    /// How the values are encoded.
    pub encoding: Encoding,
    /// The values that there are.
    pub values: Bytes,
}

impl Pages {
    /// The pages of a column chunk.
    ///
    /// # Errors
    /// When the column holds lists, or is compressed in an unknown way.
    pub fn new(file: &PartFile, chunk: &ColumnChunkMetaData, rows: usize) -> Result<Pages> {
        let column = chunk.column_descr();
        if column.max_def_level() > 1 || column.max_rep_level() > 0 {
            return Err(ParquetError::General(
                "found a column within another one".to_owned(),
            ));
        }
        let values_only =
            ColumnDescriptor::new(column.self_type_ptr(), 0, 0, column.path().clone());
        Ok(Pages {
            reader: SerializedPageReader::new(Arc::new(file.clone()), chunk, rows, None)?,
            has_levels: column.max_def_level() == 1,
            values_only: Arc::new(values_only),
        })
    }

    /// The next part; `None` at the end.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn next_part(&mut self) -> Result<Option<ColumnPart>> {
        let Some(page) = self.reader.get_next_page()? else {
            return Ok(None);
        };
        let part = match page {
            Page::DictionaryPage {
                buf,
                num_values,
                encoding,
                ..
            } => {
                #[allow(deprecated, reason = "files of the format's first version have it")]
                let is_plain = matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY);
                if !is_plain || num_values as usize > buf.len() / DICTIONARY_VALUE_BYTES_MIN {
                    let found = format!("found a dictionary of {num_values} values as {encoding}");
                    return Err(ParquetError::General(found));
                }
                ColumnPart::Dictionary(buf, num_values as usize)
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                ..
            } => {
                let (levels, values) = self.split_v1(&buf, def_level_encoding)?;
                ColumnPart::Rows(RowsPart {
                    rows: num_values as usize,
                    levels,
                    encoding,
                    values,
                })
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let begin = rep_levels_byte_len as usize;
                let end = begin + def_levels_byte_len as usize;
                let levels = part_of(&buf, begin, end)?;
                let values = part_of(&buf, end, buf.len())?;
                // Without nulls the levels say nothing.
                let levels = (self.has_levels && num_nulls > 0)
                    .then(|| Keys::new(levels, 1))
                    .transpose()?;
                ColumnPart::Rows(RowsPart {
                    rows: num_values as usize,
                    levels,
                    encoding,
                    values,
                })
            }
        };
        Ok(Some(part))
    }

    /// In pages of version 1 the length of the levels precedes them.
    fn split_v1(&self, page: &Bytes, encoding: Encoding) -> Result<(Option<Keys>, Bytes)> {
        if !self.has_levels {
            return Ok((None, page.clone()));
        }
        if encoding != Encoding::RLE {
            return Err(ParquetError::NYI(format!("levels as {encoding}")));
        }
        let len = page
            .first_chunk::<4>()
            .map_or(usize::MAX, |len| u32::from_le_bytes(*len) as usize);
        let end = len.saturating_add(4);
        Ok((
            Some(Keys::new(part_of(page, 4, end)?, 1)?),
            part_of(page, end, page.len())?,
        ))
    }

    /// The library's reader of encoded values that all are there.
    #[must_use]
    pub fn library_reader<P: DataType>(
        &self,
        values: Bytes,
        count: usize,
        encoding: Encoding,
    ) -> Box<ColumnReaderImpl<P>> {
        let page = Page::DataPage {
            buf: values,
            num_values: u32::try_from(count).unwrap_or(u32::MAX),
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        Box::new(ColumnReaderImpl::new(
            Arc::clone(&self.values_only),
            Box::new(OnePage(Some(page))),
        ))
    }
}

fn part_of(page: &Bytes, begin: usize, end: usize) -> Result<Bytes> {
    if begin > end || end > page.len() {
        let found = format!(
            "found levels of {} bytes in a page of {}",
            end.saturating_sub(begin),
            page.len()
        );
        return Err(ParquetError::EOF(found));
    }
    Ok(page.slice(begin..end))
}

/// Hands the library a single page.
struct OnePage(Option<Page>);

impl Iterator for OnePage {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageReader for OnePage {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        Ok(self.0.take())
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Err(ParquetError::NYI(
            "looking ahead in a single page".to_owned(),
        ))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0 = None;
        Ok(())
    }
}
