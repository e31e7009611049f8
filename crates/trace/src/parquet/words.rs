//! A column of words in a row group. The rows of a batch mostly share a few words, whose places in the dictionary are found once for the
//! batch; the writer of the library would look up the word of each row.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, Encoding, EncodingMask};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::statistics::ValueStatistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use rustc_hash::FxHashMap;

/// Place of a row without a word.
pub(super) const NO_WORD: u32 = u32::MAX;

/// Rows of a page.
const PAGE_ROWS: usize = 1 << 16;

/// Longest word that the statistics of a group name.
const RANGE_BYTES_MAX: usize = 64;

/// A shorter page is not compressed.
const SHORT_PAGE_BYTES: usize = 64;

/// A column of a group that is not whole.
pub(super) struct WordColumn {
    column: ColumnDescPtr,
    properties: WriterPropertiesPtr,
    places: FxHashMap<Box<[u8]>, u32>,
    words: Vec<Box<[u8]>>,
    /// The place of the word of each row.
    rows: Vec<u32>,
}

impl WordColumn {
    /// A column without rows.
    pub fn new(column: ColumnDescPtr, properties: WriterPropertiesPtr) -> WordColumn {
        WordColumn {
            column,
            properties,
            places: FxHashMap::default(),
            words: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Adds rows: the words of a batch, and for each row its place among them or [`NO_WORD`].
    pub fn add(&mut self, words: &[&[u8]], rows: &[u32]) {
        let places: Vec<u32> = words.iter().map(|word| self.place_of(word)).collect();
        let place = |row: &u32| places.get(*row as usize).copied().unwrap_or(NO_WORD);
        self.rows.extend(rows.iter().map(place));
    }

    fn place_of(&mut self, word: &[u8]) -> u32 {
        if let Some(place) = self.places.get(word) {
            return *place;
        }
        let place = self.words.len() as u32;
        self.words.push(word.into());
        self.places.insert(word.into(), place);
        place
    }

    /// Writes the dictionary and the pages of all rows.
    pub fn close(self) -> Result<(Bytes, ColumnCloseResult)> {
        let codec = self.properties.compression(self.column.path());
        let mut sink = TrackedWrite::new(Vec::new());
        let mut pages = SerializedPageWriter::new(&mut sink);
        let (mut packed, mut unpacked) = (0, 0);
        let mut write = |page: Page, bytes: usize| -> Result<u64> {
            let spec = pages.write_page(CompressedPage::new(page, bytes))?;
            packed += spec.compressed_size;
            unpacked += spec.uncompressed_size;
            Ok(spec.offset)
        };
        let mut dictionary = Vec::new();
        for word in &self.words {
            dictionary.extend_from_slice(&(word.len() as u32).to_le_bytes());
            dictionary.extend_from_slice(word);
        }
        let of_dictionary = Page::DictionaryPage {
            buf: compressed(codec, &dictionary)?.into(),
            num_values: self.words.len() as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let dictionary_offset = write(of_dictionary, dictionary.len())?;
        let width = bits_of(self.words.len().saturating_sub(1) as u32);
        let is_nullable = self.column.max_def_level() > 0;
        let mut first_offset = None;
        let mut nulls = 0;
        for rows in self.rows.chunks(PAGE_ROWS) {
            let mut buf = Vec::new();
            if is_nullable {
                let known: Vec<u32> = rows.iter().map(|row| u32::from(*row != NO_WORD)).collect();
                hybrid(&known, 1, &mut buf);
            }
            let levels_len = buf.len();
            let known: Vec<u32> = rows.iter().copied().filter(|row| *row != NO_WORD).collect();
            let mut values = vec![width];
            hybrid(&known, width, &mut values);
            let bytes = levels_len + values.len();
            let shorter = match values.len() {
                0..SHORT_PAGE_BYTES => None,
                _ => Some(compressed(codec, &values)?),
            };
            let threshold = self.properties.data_page_v2_compression_ratio_threshold();
            let shorter = shorter.filter(|shorter| is_worth_it(shorter, &values, threshold));
            let is_compressed = shorter.is_some();
            buf.extend_from_slice(&shorter.unwrap_or(values));
            let page_nulls = rows.len() - known.len();
            nulls += page_nulls;
            let page = Page::DataPageV2 {
                buf: buf.into(),
                num_values: rows.len() as u32,
                encoding: Encoding::RLE_DICTIONARY,
                num_nulls: page_nulls as u32,
                num_rows: rows.len() as u32,
                def_levels_byte_len: levels_len as u32,
                rep_levels_byte_len: 0,
                is_compressed,
                statistics: None,
            };
            let offset = write(page, bytes)?;
            first_offset.get_or_insert(offset);
        }
        sink.flush()?;
        // The order of other bytes is not defined.
        let is_text = self.column.converted_type() == ConvertedType::UTF8;
        let words = || self.words.iter().map(AsRef::as_ref);
        let is_short = |word: &&[u8]| is_text && word.len() <= RANGE_BYTES_MAX;
        let (first, last) = (words().min(), words().max());
        let range = first.filter(is_short).zip(last.filter(is_short));
        let word = |word: &[u8]| ByteArray::from(word.to_vec());
        let statistics = ValueStatistics::<ByteArray>::new(
            range.map(|(first, _)| word(first)),
            range.map(|(_, last)| word(last)),
            None,
            Some(nulls as u64),
            false,
        );
        let encodings = [Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY];
        let metadata = ColumnChunkMetaData::builder(Arc::clone(&self.column))
            .set_compression(codec)
            .set_encodings_mask(EncodingMask::new_from_encodings(encodings.iter()))
            .set_total_compressed_size(packed as i64)
            .set_total_uncompressed_size(unpacked as i64)
            .set_num_values(self.rows.len() as i64)
            .set_data_page_offset(first_offset.unwrap_or(0) as i64)
            .set_dictionary_page_offset(Some(dictionary_offset as i64))
            .set_statistics(statistics.into())
            .build()?;
        let encoded = sink.into_inner()?;
        let closed = ColumnCloseResult {
            bytes_written: encoded.len() as u64,
            rows_written: self.rows.len() as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((encoded.into(), closed))
    }
}

/// Whether a page is stored compressed.
fn is_worth_it(compressed: &[u8], plain: &[u8], threshold: f64) -> bool {
    (compressed.len() as f64) < threshold * plain.len() as f64
}

fn compressed(codec: Compression, bytes: &[u8]) -> Result<Vec<u8>> {
    match codec {
        Compression::ZSTD(level) => Ok(zstd::bulk::compress(bytes, level.compression_level())?),
        _ => Ok(bytes.to_vec()),
    }
}

/// Bits that hold the values up to this one; at least 1.
fn bits_of(largest: u32) -> u8 {
    (32 - largest.leading_zeros()).max(1) as u8
}

/// Appends values of a width in Parquet's mixture of runs and of groups of eight packed values.
fn hybrid(values: &[u32], width: u8, to: &mut Vec<u8>) {
    let mut waiting = 0;
    let mut at = 0;
    while at < values.len() {
        let same = values[at..]
            .iter()
            .take_while(|value| **value == values[at])
            .count();
        // A run may begin only where the packed values before it fill their groups.
        let fill = (at - waiting).wrapping_neg() % 8;
        if same >= fill + 8 {
            pack(&values[waiting..at + fill], width, to);
            varint(((same - fill) as u64) << 1, to);
            let bytes = values[at].to_le_bytes();
            to.extend_from_slice(&bytes[..usize::from(width).div_ceil(8)]);
            waiting = at + same;
        }
        at += same;
    }
    pack(&values[waiting..], width, to);
}

/// Appends values as groups of eight; the last group is filled up with zeros.
fn pack(values: &[u32], width: u8, to: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(8);
    varint((groups as u64) << 1 | 1, to);
    let (mut bits, mut count) = (0u64, 0);
    let filler = std::iter::repeat_n(0, groups * 8 - values.len());
    for value in values.iter().copied().chain(filler) {
        bits |= u64::from(value) << count;
        count += u32::from(width);
        while count >= 8 {
            to.push(bits as u8);
            bits >>= 8;
            count -= 8;
        }
    }
}

/// Appends a number in groups of seven bits.
fn varint(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of an encoding, by the text of Parquet's specification.
    fn decoded(mut bytes: &[u8], width: u8) -> Vec<u32> {
        let mut values = Vec::new();
        while !bytes.is_empty() {
            let (mut header, mut shift) = (0u64, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                header |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            let count = (header >> 1) as usize;
            if header & 1 == 0 {
                let len = usize::from(width).div_ceil(8);
                let mut value = [0; 4];
                value[..len].copy_from_slice(&bytes[..len]);
                values.extend(std::iter::repeat_n(u32::from_le_bytes(value), count));
                bytes = &bytes[len..];
                continue;
            }
            let packed = &bytes[..count * usize::from(width)];
            let bit = |at: usize| u32::from(packed[at / 8] >> (at % 8) & 1);
            values.extend((0..count * 8).map(|value| {
                let first = value * usize::from(width);
                (0..usize::from(width)).fold(0, |sum, at| sum | bit(first + at) << at)
            }));
            bytes = &bytes[packed.len()..];
        }
        values
    }

    #[test]
    fn each_mixture_is_read_back() {
        let mut rng = plumb_testkit::Rng::new(7);
        for round in 0..2_000 {
            let width = 1 + (round % 20) as u8;
            let mut values = Vec::new();
            for _ in 0..rng.below(12) {
                let value = rng.below(1 << width) as u32;
                let count_max = [3, 40][rng.below(2) as usize];
                let count = 1 + rng.below(count_max) as usize;
                values.extend(std::iter::repeat_n(value, count));
            }
            let mut bytes = Vec::new();
            hybrid(&values, width, &mut bytes);
            let read = decoded(&bytes, width);
            assert_eq!(read[..values.len()], values, "width {width}");
            // Only the last group is filled up.
            assert!(read.len() < values.len() + 8, "width {width}");
        }
    }

    #[test]
    fn equal_values_take_one_run() {
        let mut bytes = Vec::new();
        hybrid(&[5; 1000], 3, &mut bytes);
        assert_eq!(bytes, [0xd0, 0x0f, 5]);
    }

    #[test]
    fn widths_hold_the_largest_place() {
        let widths = [0, 1, 2, 3, 4, 255, 256].map(bits_of);
        assert_eq!(widths, [1, 1, 2, 2, 3, 8, 9]);
    }
}
