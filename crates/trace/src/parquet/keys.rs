//! Dictionary keys, and the levels that tell null from value, as Parquet packs them: runs of one key, and groups of
//! eight keys of a few bits each ("RLE / Bit-Packing Hybrid" in `Encodings.md` of the Parquet format).
//!
//! The library's decoder of these is not public, and its public readers give the values of keys. Here a key is looked
//! up at once in a table of the wanted values.

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};

/// Keys of a group.
const GROUP: usize = 8;
/// Keys that are unpacked before they are looked up; a packed run of most writers has at most 504.
const KEYS: usize = 64 * GROUP;
/// Keys of up to a byte are looked up without a check of bounds, and unpacked eight at a time.
const SMALL: usize = 256;
/// Widest key.
const WIDTH_MAX: u32 = 32;

/// The values of keys.
#[derive(Debug)]
pub struct KeyTable<T> {
    /// By key; filled up to at least [`SMALL`].
    values: Vec<T>,
    len: usize,
}

impl<T: Copy> KeyTable<T> {
    /// A table of these values, which holds `filler` where no key may point to.
    pub fn new(values: impl IntoIterator<Item = T>, filler: T) -> KeyTable<T> {
        let mut values: Vec<T> = values.into_iter().collect();
        let len = values.len();
        values.resize(len.max(SMALL), filler);
        KeyTable { values, len }
    }

    fn get(&self, key: u32) -> Result<T> {
        let place = usize::try_from(key).ok().filter(|place| *place < self.len);
        place
            .and_then(|place| self.values.get(place).copied())
            .ok_or_else(|| self.beyond(key))
    }

    /// Appends the values of keys of up to a byte.
    fn look_up(&self, keys: &[u8], out: &mut Vec<T>) -> Result<()> {
        let highest = keys.iter().fold(0, |highest, key| highest.max(*key));
        match self.values.first_chunk::<SMALL>() {
            Some(small) if usize::from(highest) < self.len => {
                out.extend(keys.iter().map(|&key| small[usize::from(key)]));
                Ok(())
            }
            _ => Err(self.beyond(highest.into())),
        }
    }

    #[cold]
    fn beyond(&self, key: u32) -> ParquetError {
        ParquetError::General(format!(
            "found key {key}, expected one below the dictionary's {}",
            self.len
        ))
    }
}

/// Keys that are still to be read.
#[derive(Clone, Debug)]
pub struct Keys {
    bytes: Bytes,
    /// Bits of a key.
    width: u32,
    /// The start of the next run.
    next_run: usize,
    run: KeyRun,
    /// Keys of this run that are still to come.
    left: usize,
}

#[derive(Clone, Copy, Debug)]
enum KeyRun {
    Same(u32),
    /// The start of the next key's group, and the number of its keys that are read.
    Packed(usize, usize),
}

impl Keys {
    /// Keys of this number of bits.
    ///
    /// # Errors
    /// If no key has this number of bits.
    pub fn new(bytes: Bytes, width: u32) -> Result<Keys> {
        if width > WIDTH_MAX {
            return Err(ParquetError::General(format!(
                "found keys of {width} bits, expected at most 32"
            )));
        }
        Ok(Keys {
            bytes,
            width,
            next_run: 0,
            run: KeyRun::Same(0),
            left: 0,
        })
    }

    /// The keys of a data page, which begins with their width. Without values it may be empty.
    ///
    /// # Errors
    /// If no key has this number of bits.
    pub fn of_page(bytes: &Bytes) -> Result<Keys> {
        let width = bytes.first().copied().unwrap_or(0);
        Keys::new(bytes.slice(bytes.len().min(1)..), width.into())
    }

    /// Appends the values of the next `count` keys.
    ///
    /// # Errors
    /// When there are not as many, or one stands for nothing.
    pub fn read<T: Copy>(
        &mut self,
        count: usize,
        table: &KeyTable<T>,
        out: &mut Vec<T>,
    ) -> Result<()> {
        let mut wanted = count;
        while wanted > 0 {
            if self.left == 0 {
                self.enter_run()?;
                continue;
            }
            let some = wanted.min(self.left);
            let read = match self.run {
                KeyRun::Same(key) => {
                    out.resize(out.len() + some, table.get(key)?);
                    some
                }
                KeyRun::Packed(at, used) => self.unpack(at, used, some, table, out)?,
            };
            self.left -= read;
            wanted -= read;
        }
        Ok(())
    }

    fn enter_run(&mut self) -> Result<()> {
        let header = self.header()?;
        let count = usize::try_from(header >> 1).unwrap_or(usize::MAX);
        let width = self.width as usize;
        let at = self.next_run;
        if header & 1 == 0 {
            let len = width.div_ceil(8);
            let mask = (1u64 << self.width) - 1;
            self.next_run = at
                .checked_add(len)
                .filter(|end| *end <= self.bytes.len())
                .ok_or_else(ended)?;
            self.run = KeyRun::Same((word_at(&self.bytes, at) & mask) as u32);
            self.left = count;
        } else {
            self.next_run = at
                .saturating_add(count.saturating_mul(width))
                .min(self.bytes.len());
            self.run = KeyRun::Packed(at, 0);
            // The last group may be cut off behind its last key.
            let there = ((self.next_run - at) * 8)
                .checked_div(width)
                .unwrap_or(usize::MAX);
            self.left = count.saturating_mul(GROUP).min(there);
        }
        Ok(())
    }

    /// A number of up to 32 bits in groups of 7, the low ones first.
    fn header(&mut self) -> Result<u32> {
        let mut header = 0;
        for shift in (0..u32::BITS).step_by(7) {
            let byte = *self.bytes.get(self.next_run).ok_or_else(ended)?;
            self.next_run += 1;
            header |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(header);
            }
        }
        Err(ParquetError::General(
            "found a run's header of more than 5 bytes".to_owned(),
        ))
    }

    /// Reads at most this number of keys of a packed run and returns the number.
    fn unpack<T: Copy>(
        &mut self,
        at: usize,
        used: usize,
        most: usize,
        table: &KeyTable<T>,
        out: &mut Vec<T>,
    ) -> Result<usize> {
        let some = most.min(KEYS - used);
        let groups = (used + some).div_ceil(GROUP);
        let width = self.width as usize;
        if self.width <= u8::BITS {
            let mut keys = [0; KEYS];
            for (number, group) in keys.chunks_exact_mut(GROUP).take(groups).enumerate() {
                let packed = word_at(&self.bytes, at + number * width);
                group.copy_from_slice(&spread(packed, self.width).to_le_bytes());
            }
            table.look_up(&keys[used..used + some], out)?;
        } else {
            let mask = (1u64 << self.width) - 1;
            for key in used..used + some {
                let bit = key * width;
                let key = (word_at(&self.bytes, at + bit / 8) >> (bit % 8)) & mask;
                out.push(table.get(key as u32)?);
            }
        }
        self.run = KeyRun::Packed(at + (used + some) / GROUP * width, (used + some) % GROUP);
        Ok(some)
    }
}

fn ended() -> ParquetError {
    ParquetError::EOF("found the end of a page, expected more keys".to_owned())
}

/// Eight bytes from a place on; those behind the end are 0.
fn word_at(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(word) = rest.first_chunk::<8>() {
        return u64::from_le_bytes(*word);
    }
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(word)
}

/// Eight keys of `width` bits, at most a byte, to one a byte: halves move apart, then quarters, then eighths.
fn spread(packed: u64, width: u32) -> u64 {
    let low = |bits: u32| (1u64 << bits) - 1;
    let half = low(4 * width);
    let word = packed & half | (packed >> (4 * width) & half) << 32;
    let quarters = low(2 * width) * 0x0000_0001_0000_0001;
    let word = word & quarters | (word >> (2 * width) & quarters) << 16;
    let eighths = low(width) * 0x0001_0001_0001_0001;
    word & eighths | (word >> width & eighths) << 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8], width: u32, count: usize, len: u32) -> Result<Vec<u32>> {
        let mut out = Vec::new();
        let bytes = Bytes::copy_from_slice(bytes);
        Keys::new(bytes, width)?.read(count, &KeyTable::new(0..len, u32::MAX), &mut out)?;
        Ok(out)
    }

    /// The format's own example: the numbers 0 to 7 in three bits each.
    #[test]
    fn the_example_of_the_format_is_read() {
        let packed = [0b0000_0011, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(all(&packed, 3, 8, 8).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(all(&packed, 3, 5, 5).unwrap(), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn runs_of_one_key_are_read() {
        assert_eq!(all(&[6, 4, 4, 2], 3, 5, 5).unwrap(), [4, 4, 4, 2, 2]);
        // 200 keys take a header of two bytes, a key of nine bits takes two.
        assert_eq!(
            all(&[0x90, 0x03, 0x2c, 0x01], 9, 200, 301).unwrap(),
            [300; 200]
        );
        // No bits at all: the only key of a dictionary of one word.
        assert_eq!(all(&[3], 0, 8, 1).unwrap(), [0; 8]);
    }

    #[test]
    fn damage_is_an_error() {
        let check = |bytes: &[u8], width, count, len, expected: &str| {
            let message = all(bytes, width, count, len).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        };
        check(&[], 3, 1, 8, "expected more keys");
        check(&[0x80], 3, 1, 8, "expected more keys");
        check(&[2], 3, 1, 8, "expected more keys");
        check(&[2, 1], 3, 2, 8, "expected more keys");
        check(&[0, 1, 0, 1], 3, 1, 8, "expected more keys");
        check(&[3, 0xff], 3, 3, 8, "expected more keys");
        check(
            &[0xff, 0xff, 0xff, 0xff, 0xff, 1],
            3,
            1,
            8,
            "more than 5 bytes",
        );
        check(&[2, 5], 3, 1, 5, "key 5");
        check(&[3, 0, 0x60, 0], 3, 8, 3, "key 6");
        check(
            &[3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            9,
            8,
            256,
            "key 256",
        );
        check(&[2, 0], 33, 1, 1, "33 bits");
    }

    /// Bit by bit, the slow way.
    fn pack(keys: &[u32], width: u32) -> Vec<u8> {
        let mut bytes = vec![0; keys.len() * width as usize / 8];
        for bit in 0..keys.len() * width as usize {
            let key = keys[bit / width as usize] >> (bit % width as usize) & 1;
            bytes[bit / 8] |= (key as u8) << (bit % 8);
        }
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn packed_keys_come_back_in_any_portions(
            width in 1u32..=16,
            groups in 1usize..=140,
            seed: u32,
            portions in prop::collection::vec(1usize..700, 1..40),
        ) {
            let key = |at: u32| (at.wrapping_mul(seed | 1) >> 7) & ((1 << width) - 1);
            let keys: Vec<u32> = (0..groups as u32 * 8).map(key).collect();
            let header = (groups as u32) << 1 | 1;
            let mut bytes = if header < 0x80 { vec![header as u8] } else { vec![header as u8 | 0x80, (header >> 7) as u8] };
            bytes.extend(pack(&keys, width));
            // Behind it a run of the highest key.
            bytes.extend([10, 0xff, 0xff]);
            let mut expected = keys;
            expected.extend([(1 << width) - 1; 5]);
            let table = KeyTable::new(0..1 << width, u32::MAX);
            let mut packed = Keys::new(bytes.into(), width).unwrap();
            let mut read = Vec::new();
            for portion in portions {
                packed.read(portion.min(expected.len() - read.len()), &table, &mut read).unwrap();
            }
            prop_assert_eq!(&read, &expected[..read.len()]);
        }
    }
}
