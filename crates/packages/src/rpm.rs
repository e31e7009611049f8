//! A header in the database of RPM: the entries of a package without the magic of a header in a file.
//!
//! ```text
//! offset  bytes
//!      0      4  number of entries, n
//!      4      4  bytes of the data
//!      8  16 × n  entries: tag, type, offset in the data, count (4 bytes each)
//!               the data
//! ```
//!
//! Numbers are big-endian; texts end with a byte 0. The method is from RPM's own pages
//! (<https://rpm-software-management.github.io/rpm/manual/format_header.html>), and the agent's tests compare with the prints of rpm 4.18.
//! Only five tags are read: no files, no signatures.

/// Bytes of the two numbers before the entries.
const HEAD_BYTES: usize = 8;
/// Bytes of an entry.
const ENTRY_BYTES: usize = 16;
/// Most bytes of a text, without its end. The names of packages have some dozen.
const TEXT_BYTES_MAX: usize = 1024;

/// Type of a number of 32 bits.
const INT32: u32 = 4;
/// Type of one text.
const STRING: u32 = 6;

const NAME: Tag = Tag(1000, "NAME");
const VERSION: Tag = Tag(1001, "VERSION");
const RELEASE: Tag = Tag(1002, "RELEASE");
const EPOCH: Tag = Tag(1003, "EPOCH");
const ARCH: Tag = Tag(1022, "ARCH");

/// The number and the name of a tag.
#[derive(Clone, Copy)]
struct Tag(u32, &'static str);

/// An installed package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpmPackage {
    /// `NAME.ARCH`.
    pub name: String,
    /// `VERSION-RELEASE`, with `EPOCH:` before it if the package states one, even 0.
    pub version: String,
}

/// A damaged header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RpmHeaderError {
    /// Other bytes than its two numbers state.
    #[error("found a header of {found} bytes, expected {expected}")]
    Length {
        /// Bytes found.
        found: usize,
        /// Bytes that the numbers state.
        expected: u64,
    },
    /// A tag that each package has.
    #[error("found no {tag}, expected one in each header")]
    Missing {
        /// Its name.
        tag: &'static str,
    },
    /// A value that is outside of the data or has another type.
    #[error("found a damaged {tag}, expected its value in the data of the header")]
    Damaged {
        /// Its name.
        tag: &'static str,
    },
}

/// Reads the package of a header; `None` for a key that checks signatures, which rpm stores in the same table.
///
/// # Errors
/// If the length is wrong, or a tag of the five is missing or damaged. EPOCH may be missing.
pub fn decode(header: &[u8]) -> Result<Option<RpmPackage>, RpmHeaderError> {
    let header = Header::split(header)?;
    let name = header.text(NAME)?;
    // A key has a version, a release and no processor.
    if name == "gpg-pubkey" {
        return Ok(None);
    }
    let epoch = header.epoch()?;
    let epoch = epoch.map_or(String::new(), |epoch| format!("{epoch}:"));
    Ok(Some(RpmPackage {
        name: format!("{name}.{}", header.text(ARCH)?),
        version: format!("{epoch}{}-{}", header.text(VERSION)?, header.text(RELEASE)?),
    }))
}

/// A header in its two parts.
struct Header<'a> {
    entries: &'a [[u8; ENTRY_BYTES]],
    data: &'a [u8],
}

impl<'a> Header<'a> {
    fn split(header: &'a [u8]) -> Result<Header<'a>, RpmHeaderError> {
        let wrong = |expected| RpmHeaderError::Length {
            found: header.len(),
            expected,
        };
        let (head, rest) = header
            .split_first_chunk::<HEAD_BYTES>()
            .ok_or_else(|| wrong(HEAD_BYTES as u64))?;
        let entries_bytes = u64::from(number(head, 0)) * ENTRY_BYTES as u64;
        let expected = HEAD_BYTES as u64 + entries_bytes + u64::from(number(head, 1));
        if header.len() as u64 != expected {
            return Err(wrong(expected));
        }
        // The entries are within the header, by its length.
        let (entries, data) = rest.split_at(entries_bytes as usize);
        let (entries, _) = entries.as_chunks();
        Ok(Header { entries, data })
    }

    /// The data from the value of a tag on; `None` if the header lacks the tag.
    fn value(&self, tag: Tag, kind: u32) -> Result<Option<&'a [u8]>, RpmHeaderError> {
        let mut entries = self.entries.iter();
        let Some(entry) = entries.find(|entry| number(entry, 0) == tag.0) else {
            return Ok(None);
        };
        let from = usize::try_from(number(entry, 2)).unwrap_or(usize::MAX);
        let is_fitting = number(entry, 1) == kind && number(entry, 3) > 0;
        let value = self.data.get(from..).filter(|_| is_fitting);
        value
            .map(Some)
            .ok_or(RpmHeaderError::Damaged { tag: tag.1 })
    }

    fn text(&self, tag: Tag) -> Result<String, RpmHeaderError> {
        let value = self.value(tag, STRING)?;
        let value = value.ok_or(RpmHeaderError::Missing { tag: tag.1 })?;
        let end = value.iter().take(TEXT_BYTES_MAX + 1).position(|&b| b == 0);
        let end = end.filter(|&end| end > 0);
        let end = end.ok_or(RpmHeaderError::Damaged { tag: tag.1 })?;
        Ok(String::from_utf8_lossy(&value[..end]).into_owned())
    }

    fn epoch(&self) -> Result<Option<u32>, RpmHeaderError> {
        let Some(value) = self.value(EPOCH, INT32)? else {
            return Ok(None);
        };
        let value = value.first_chunk::<4>();
        let value = value.ok_or(RpmHeaderError::Damaged { tag: EPOCH.1 })?;
        Ok(Some(u32::from_be_bytes(*value)))
    }
}

/// The number at an index of a row of numbers.
fn number<const BYTES: usize>(row: &[u8; BYTES], index: usize) -> u32 {
    let at = 4 * index;
    u32::from_be_bytes([row[at], row[at + 1], row[at + 2], row[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of entries: tag, type, offset, count.
    fn header(entries: &[[u32; 4]], data: &[u8]) -> Vec<u8> {
        let head = [entries.len() as u32, data.len() as u32];
        let numbers = head.iter().chain(entries.as_flattened());
        let mut header: Vec<u8> = numbers.flat_map(|number| number.to_be_bytes()).collect();
        header.extend(data);
        header
    }

    const DATA: &[u8] = b"bash\x005.1\x004.el9\0\0\0\x01\x02x86_64\0";
    const ENTRIES: [[u32; 4]; 6] = [
        // The mark of the part that signatures cover.
        [63, 7, 0, 16],
        [1000, 6, 0, 1],
        [1001, 6, 5, 1],
        [1002, 6, 9, 1],
        [1003, 4, 15, 1],
        [1022, 6, 19, 1],
    ];

    fn package(version: &str) -> Option<RpmPackage> {
        Some(RpmPackage {
            name: "bash.x86_64".to_owned(),
            version: version.to_owned(),
        })
    }

    #[test]
    fn a_header_has_a_package() {
        assert_eq!(
            decode(&header(&ENTRIES, DATA)),
            Ok(package("258:5.1-4.el9"))
        );
        let mut entries = ENTRIES;
        entries[4][0] = 1004;
        assert_eq!(decode(&header(&entries, DATA)), Ok(package("5.1-4.el9")));
        // A key has no processor.
        let key = b"gpg-pubkey\x001\x002\0";
        let of_key = [[1000, 6, 0, 1], [1001, 6, 11, 1], [1002, 6, 13, 1]];
        assert_eq!(decode(&header(&of_key, key)), Ok(None));
    }

    #[test]
    fn damage_is_an_error() {
        let change = |entry: usize, field: usize, value: u32| {
            let mut entries = ENTRIES;
            entries[entry][field] = value;
            decode(&header(&entries, DATA))
        };
        let missing = |tag| Err(RpmHeaderError::Missing { tag });
        let damaged = |tag| Err(RpmHeaderError::Damaged { tag });
        for (entry, tag) in [(1, "NAME"), (2, "VERSION"), (3, "RELEASE"), (5, "ARCH")] {
            assert_eq!(change(entry, 0, 1), missing(tag));
            // A type of several texts, an offset past the end, at the end, and below 0, and no text.
            assert_eq!(change(entry, 1, 8), damaged(tag));
            assert_eq!(change(entry, 2, 27), damaged(tag));
            assert_eq!(change(entry, 2, 26), damaged(tag));
            assert_eq!(change(entry, 2, u32::MAX), damaged(tag));
            assert_eq!(change(entry, 3, 0), damaged(tag));
            // An empty text.
            assert_eq!(change(entry, 2, 4), damaged(tag));
        }
        // A number of 32 bits at the last 3 bytes, and one of 16 bits.
        assert_eq!(change(4, 2, 23), damaged("EPOCH"));
        assert_eq!(change(4, 1, 3), damaged("EPOCH"));
        // A text without an end, and one that is too long.
        let open = decode(&header(&ENTRIES, &DATA[..DATA.len() - 1]));
        assert_eq!(open, damaged("ARCH"));
        for (len, is_read) in [(1024, true), (1025, false)] {
            let mut data = DATA.to_vec();
            data.splice(19..25, vec![b'x'; len]);
            assert_eq!(decode(&header(&ENTRIES, &data)).is_ok(), is_read, "{len}");
        }
    }

    #[test]
    fn a_length_is_that_of_its_numbers() {
        let whole = header(&ENTRIES, DATA);
        let expected = whole.len() as u64;
        assert_eq!(expected, 8 + 6 * 16 + 26);
        for found in 8..whole.len() {
            let error = RpmHeaderError::Length { found, expected };
            assert_eq!(decode(&whole[..found]), Err(error));
        }
        for found in 0..8 {
            let expected = 8;
            let error = RpmHeaderError::Length { found, expected };
            assert_eq!(decode(&whole[..found]), Err(error));
        }
        let found = whole.len() + 1;
        let error = RpmHeaderError::Length { found, expected };
        assert_eq!(decode(&[&whole[..], &[0]].concat()), Err(error));
        // Numbers whose sum is past 32 bits.
        let expected = 8 + 16 * 0xffff_ffff + 0xffff_ffff;
        let error = RpmHeaderError::Length { found: 8, expected };
        assert_eq!(decode(&[0xff; 8]), Err(error));
    }

    /// Each changed byte gives a package, a key or an error.
    #[test]
    fn no_byte_is_a_panic() {
        let whole = header(&ENTRIES, DATA);
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[at] ^= 1 << bit;
                if let Err(error) = decode(&changed) {
                    assert!(!error.to_string().is_empty());
                }
            }
        }
    }
}
