//! libCacheSim's oracleGeneral: recognised, and refused.
//!
//! Records of 24 bytes, little-endian, without a header: time u32 (s), object u64, size u32, next access i64
//! (the number of the record that asks for the same object again, or none). It is made for cache simulators:
//! it has neither operations nor devices, and the size of a record is that of the first access to its object,
//! not of this request. A profile of it would be wrong without looking so.

use crate::error::Error;
use crate::format::{About, Format, Holds};
use crate::input::Input;
use crate::reader::{ReadOptions, Reader, Sniff};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "oracleGeneral",
    title: "libCacheSim: recognised and **refused**",
    verified: true,
    unsorted: false,
    about: About {
        families: &[],
        layer: "",
        holds: Holds::Nothing,
        verified_by: "a real file",
        cannot_tell: "it keeps the size of the first access to an object, so sizes would be wrong",
        words: &[],
        real: &[],
    },
    sniff,
    open,
};

const RECORD_BYTES: usize = 24;

/// This number of consecutive plausible records is no accident.
const RECORDS_SEEN: usize = 16;

/// Above it four letters of text would pass as a size.
const SIZE_BYTES_MAX: u32 = 1 << 28;

const NEXT_MAX: i64 = 1 << 48;

fn field<const BYTES: usize>(record: &[u8], at: usize) -> Option<[u8; BYTES]> {
    record.get(at..)?.first_chunk::<BYTES>().copied()
}

/// The time of record number `index` if it can be one.
fn time_of(record: &[u8], index: usize) -> Option<u32> {
    let time = u32::from_le_bytes(field(record, 0)?);
    let size = u32::from_le_bytes(field(record, 12)?);
    let next = i64::from_le_bytes(field(record, 16)?);
    let is_ahead = next > index as i64 && next < NEXT_MAX;
    let is_next = next == -1 || next == i64::MAX || is_ahead;
    (is_next && size > 0 && size < SIZE_BYTES_MAX).then_some(time)
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    let records = prefix.len() / RECORD_BYTES;
    if records < RECORDS_SEEN && !complete {
        return Sniff::More;
    }
    if complete && !prefix.len().is_multiple_of(RECORD_BYTES) || records < 2 {
        return Sniff::No;
    }
    let mut last = 0;
    for (index, record) in prefix
        .chunks_exact(RECORD_BYTES)
        .take(4 * RECORDS_SEEN)
        .enumerate()
    {
        match time_of(record, index) {
            Some(time) if time >= last => last = time,
            _ => return Sniff::No,
        }
    }
    Sniff::Yes
}

fn open(input: Input, _options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    Err(Error::Refused {
        path: input.path,
        format: FORMAT.name,
        reason: "it has no operations and no devices, and its sizes are those of the first access to an \
                 object, not of each request; use the trace from which it was made",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time: u32, object: u64, size: u32, next: i64) -> Vec<u8> {
        [
            &time.to_le_bytes()[..],
            &object.to_le_bytes(),
            &size.to_le_bytes(),
            &next.to_le_bytes(),
        ]
        .concat()
    }

    #[test]
    fn recognised_by_its_records() {
        let good: Vec<u8> = (0..40u32)
            .flat_map(|k| record(1000 + k / 3, 77 * u64::from(k), 4096, -1))
            .collect();
        assert_eq!(sniff(&good, false), Sniff::Yes);
        assert_eq!(sniff(&good[..48], true), Sniff::Yes);
        assert_eq!(sniff(&good[..48], false), Sniff::More);
        assert_eq!(sniff(&good[..50], true), Sniff::No);
        let check = |broken: Vec<u8>| {
            let all = [broken, good.clone()].concat();
            assert_eq!(sniff(&all, false), Sniff::No);
        };
        check(record(5000, 1, 4096, -1));
        check(record(1000, 1, 0, -1));
        check(record(1000, 1, 4096, 0));
        check(record(1000, 1, 4096, -2));
        check(vec![0; 24]);
        assert_eq!(sniff(&[b'1'; 480], true), Sniff::No);
    }
}
