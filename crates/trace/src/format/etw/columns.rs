//! The columns of a disk table, found by the names in the header.

use crate::locale::{Locale, quoted_fields};
use crate::text::LineError;

/// How the header names a column.
const COLUMNS: [&str; 9] = [
    "IO Type",
    "Init Time",
    "IO Time",
    "Disk Service Time",
    "Size (B)",
    "Min Offset",
    "Max Offset",
    "Disk",
    "Process",
];
/// The operation.
pub const OP: usize = 0;
/// When the request was handed down.
pub const INIT: usize = 1;
/// From that to its completion.
pub const IO_TIME: usize = 2;
/// The disk's part of it.
pub const SERVICE: usize = 3;
/// Length.
pub const SIZE: usize = 4;
/// First byte.
pub const MIN_OFFSET: usize = 5;
/// Last byte.
pub const MAX_OFFSET: usize = 6;
/// Number of the disk.
pub const DISK: usize = 7;
/// Name and number of the process.
pub const PROCESS: usize = 8;
const NEEDED: [usize; 5] = [OP, INIT, SIZE, MIN_OFFSET, DISK];

/// The column of the file for each of [`COLUMNS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtwHeader {
    /// Between fields.
    pub separator: u8,
    /// By column of the file: place in [`COLUMNS`].
    pub meaning: Vec<Option<usize>>,
    /// By place in [`COLUMNS`]: digits down to ns, for those that are times.
    pub scales: [u32; COLUMNS.len()],
}

/// Places after the point of the unit in a column's name, down to ns.
fn scale_of(name: &str) -> Option<u32> {
    match name.strip_suffix(')')?.rsplit_once('(')?.1 {
        "s" => Some(9),
        "ms" => Some(6),
        // The micro sign, the Greek letter, and their replacements.
        "\u{b5}s" | "\u{3bc}s" | "us" => Some(3),
        "ns" => Some(0),
        _ => None,
    }
}

fn meaning_of(name: &str) -> Option<usize> {
    // Several names begin with `Disk`, and one is just that.
    if name == "Disk" {
        return Some(DISK);
    }
    COLUMNS
        .iter()
        .enumerate()
        .position(|(at, column)| at != DISK && name.starts_with(column))
}

impl EtwHeader {
    /// Parses a header line; `None` if it is no header or lacks a needed column.
    pub fn parse(line: &[u8]) -> Option<EtwHeader> {
        let text = std::str::from_utf8(line).ok()?;
        let separator = if text.contains(';') { b';' } else { b',' };
        let mut header = EtwHeader {
            separator,
            meaning: Vec::new(),
            scales: [0; COLUMNS.len()],
        };
        for name in quoted_fields(line, separator) {
            let name = std::str::from_utf8(name).ok()?.trim();
            let meaning = meaning_of(name).filter(|at| !header.meaning.contains(&Some(*at)));
            if let Some(at @ (INIT | IO_TIME | SERVICE)) = meaning {
                *header.scales.get_mut(at)? = scale_of(name)?;
            }
            header.meaning.push(meaning);
        }
        NEEDED
            .iter()
            .all(|at| header.meaning.contains(&Some(*at)))
            .then_some(header)
    }
}

/// The fields of a row by place in [`COLUMNS`].
pub struct EtwCells<'line>([Option<&'line [u8]>; COLUMNS.len()]);

impl<'line> EtwCells<'line> {
    /// Takes a row apart.
    pub fn split(line: &'line [u8], header: &EtwHeader) -> EtwCells<'line> {
        let mut cells = [None; COLUMNS.len()];
        for (field, meaning) in quoted_fields(line, header.separator).zip(&header.meaning) {
            if let Some(cell) = meaning.and_then(|at| cells.get_mut(at)) {
                *cell = Some(field.trim_ascii());
            }
        }
        EtwCells(cells)
    }

    /// A field, where the row has it.
    pub fn get(&self, at: usize) -> Option<&'line [u8]> {
        self.0.get(at).copied().flatten()
    }

    /// A field that must be there and be understood.
    pub fn needed<T>(
        &self,
        at: usize,
        expected: &'static str,
        parse: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T, LineError> {
        let cell = self.get(at).unwrap_or_default();
        parse(cell).ok_or_else(|| LineError::new(cell, expected))
    }

    /// A time, where the file has such a column.
    pub fn time(
        &self,
        at: usize,
        header: &EtwHeader,
        locale: Locale,
    ) -> Result<Option<i64>, LineError> {
        if self.get(at).is_none() {
            return Ok(None);
        }
        let scale = header.scales.get(at).copied().unwrap_or_default();
        self.needed(at, "a time, 0 or more", |cell| locale.decimal(cell, scale))
            .map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let header = EtwHeader::parse(
            "Disk;Size (B);IO Type;Min Offset;Init Time (ms);Count;Disk Service Time (\u{b5}s)"
                .as_bytes(),
        );
        let header = header.unwrap();
        assert_eq!(header.separator, b';');
        let meaning = [
            Some(DISK),
            Some(SIZE),
            Some(OP),
            Some(MIN_OFFSET),
            Some(INIT),
            None,
            Some(SERVICE),
        ];
        assert_eq!(header.meaning, meaning);
        assert_eq!((header.scales[INIT], header.scales[SERVICE]), (6, 3));
        let commas = b"IO Type,Init Time (s),Size (B),Min Offset,Disk";
        let header = EtwHeader::parse(commas).expect("a header");
        assert_eq!(header.separator, b',');
        for bad in [
            "",
            "IO Type,Init Time (s),Size (B),Min Offset",
            "IO Type,Init Time (h),Size (B),Min Offset,Disk",
        ] {
            assert_eq!(EtwHeader::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
