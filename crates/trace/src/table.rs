//! The common parts of printed tables of tracing tools: a header line with the column names, rows under it, and prose,
//! prompts and totals around them.
//!
//! The columns come from the header, so the options of the tool need not be known. At most one stretch of a row is free
//! text (a command or a path, which may contain blanks): the part before it is counted from the left, the part after it
//! from the right. A line under a header that is no row is classified by its shape: one with mostly valid cells is a
//! damaged row, any other is prose.

use crate::number::{parse_decimal, parse_u64};
use crate::text::{LineError, split_words};

/// No tool prints a table of more columns.
pub const COLUMNS_MAX: usize = 24;

/// The format of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellFormat {
    /// One word, any.
    Word,
    /// This number of consecutive words, any.
    Words(usize),
    /// A whole number without sign.
    Count,
    /// A decimal number, maybe negative.
    Decimal,
    /// Capital letters.
    Letters,
    /// `MAJOR,MINOR`.
    Device,
    /// Text that may contain blanks. Adjacent columns of this kind share one stretch.
    Free,
}

impl CellFormat {
    fn word_count(self) -> usize {
        match self {
            CellFormat::Words(count) => count,
            CellFormat::Free => 0,
            _ => 1,
        }
    }

    fn is_tested(self) -> bool {
        !matches!(
            self,
            CellFormat::Word | CellFormat::Words(_) | CellFormat::Free
        )
    }

    fn fits(self, cell: &[u8]) -> bool {
        match self {
            CellFormat::Word | CellFormat::Words(_) | CellFormat::Free => !cell.is_empty(),
            CellFormat::Count => parse_u64(cell).is_some(),
            CellFormat::Decimal => parse_decimal(cell, 0).is_some(),
            CellFormat::Letters => {
                !cell.is_empty() && cell.len() <= 8 && cell.iter().all(u8::is_ascii_uppercase)
            }
            CellFormat::Device => memchr::memchr(b',', cell).is_some_and(|at| {
                parse_u64(&cell[..at]).is_some() && parse_u64(&cell[at + 1..]).is_some()
            }),
        }
    }

    fn expected(self) -> &'static str {
        match self {
            CellFormat::Word | CellFormat::Words(_) => "a word",
            CellFormat::Count => "a whole number",
            CellFormat::Decimal => "a decimal number",
            CellFormat::Letters => "capital letters for the kind of the I/O",
            CellFormat::Device => "MAJOR,MINOR of a device",
            CellFormat::Free => "a command or path",
        }
    }
}

/// A column that a tool may print.
pub type Column = (&'static str, CellFormat);

/// The columns that a header line names, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    columns: Vec<Column>,
}

impl Header {
    /// The header in a line, if it names all of `required`. Names not among `known` stand for one word.
    #[must_use]
    pub fn find(line: &[u8], known: &[Column], required: &[&str]) -> Option<Header> {
        let mut columns: Vec<Column> = Vec::new();
        for word in split_words(line).take(COLUMNS_MAX + 1) {
            let column = known.iter().find(|(name, _)| name.as_bytes() == word);
            columns.push(column.copied().unwrap_or(("", CellFormat::Word)));
        }
        let has = |name: &&str| columns.iter().any(|(column, _)| column == name);
        if columns.len() > COLUMNS_MAX || !required.iter().all(has) {
            return None;
        }
        let free: Vec<usize> = (0..columns.len())
            .filter(|&at| columns[at].1 == CellFormat::Free)
            .collect();
        let together = free.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        together.then_some(Header { columns })
    }

    /// Whether a column is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|(column, _)| *column == name)
    }

    /// A line as a row; `Ok(None)` when it is prose.
    ///
    /// # Errors
    /// If it is a row with a broken part.
    pub fn row<'line>(&self, line: &'line [u8]) -> Result<Option<Row<'line>>, LineError> {
        let mut row = Row {
            names: [""; COLUMNS_MAX],
            cells: [b""; COLUMNS_MAX],
            free: b"",
        };
        let free = self
            .columns
            .iter()
            .position(|(_, kind)| *kind == CellFormat::Free);
        let (left, right) = match free {
            Some(at) => (
                at,
                self.columns
                    .iter()
                    .rposition(|(_, kind)| *kind == CellFormat::Free)
                    .unwrap_or(at),
            ),
            None => (self.columns.len(), self.columns.len()),
        };
        let mut rest = line;
        for (at, (name, kind)) in self.columns.iter().enumerate().take(left) {
            row.names[at] = name;
            row.cells[at] = take_left(&mut rest, kind.word_count());
        }
        let right_columns = self.columns.iter().enumerate().skip(right + 1);
        for (at, (name, kind)) in right_columns.rev() {
            row.names[at] = name;
            row.cells[at] = take_right(&mut rest, kind.word_count());
        }
        row.free = rest.trim_ascii();
        self.judge(line, row, free.is_some())
    }

    fn judge<'line>(
        &self,
        line: &[u8],
        row: Row<'line>,
        has_free: bool,
    ) -> Result<Option<Row<'line>>, LineError> {
        let (mut tested, mut fitting, mut first_bad) = (0, 0, None);
        for (at, (_, kind)) in self.columns.iter().enumerate() {
            if *kind == CellFormat::Free {
                continue;
            }
            let fits = kind.fits(row.cells[at]);
            tested += usize::from(kind.is_tested());
            fitting += usize::from(kind.is_tested() && fits);
            if !fits && first_bad.is_none() {
                first_bad = Some((row.cells[at], kind.expected()));
            }
        }
        let complete = if has_free {
            !row.free.is_empty()
        } else {
            row.free.is_empty()
        };
        match first_bad {
            None if complete => Ok(Some(row)),
            None => Err(LineError::new(
                line,
                "as many words as the header has columns",
            )),
            Some((cell, expected)) if 2 * fitting > tested => Err(LineError::new(cell, expected)),
            Some(_) if self.is_cut_row(line) => Err(LineError::new(line, "the whole of a row")),
            Some(_) => Ok(None),
        }
    }

    /// Whether a line is the beginning of a row: every word but the last, which may be cut, as its column
    /// wants it, and a number among them.
    fn is_cut_row(&self, line: &[u8]) -> bool {
        let found = split_words(line).take(COLUMNS_MAX).count();
        let whole = || {
            split_words(line)
                .zip(&self.columns)
                .take(found.saturating_sub(1))
        };
        found < self.columns.len()
            && whole().all(|(word, (_, kind))| kind.fits(word))
            && whole().any(|(_, (_, kind))| kind.is_tested())
    }
}

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'line> {
    names: [&'static str; COLUMNS_MAX],
    cells: [&'line [u8]; COLUMNS_MAX],
    /// The free stretch, without the blanks around it; empty when the table has none.
    pub free: &'line [u8],
}

impl<'line> Row<'line> {
    /// The cell of a column; `None` when the table has no such column.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'line [u8]> {
        let at = self.names.iter().position(|column| *column == name)?;
        Some(self.cells[at])
    }

    /// The whole number in a column; `None` when there is no such column or number.
    #[must_use]
    pub fn count(&self, name: &str) -> Option<u64> {
        parse_u64(self.get(name)?)
    }

    /// The process id in column `PID`; `None` if the column is absent or invalid.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        i32::try_from(self.count("PID")?).ok()
    }

    /// The number in a column times `10^scale`; `Ok(None)` when there is no such column.
    ///
    /// # Errors
    /// When the product does not fit.
    pub fn decimal(&self, name: &str, scale: u32) -> Result<Option<i64>, LineError> {
        let Some(cell) = self.get(name) else {
            return Ok(None);
        };
        match parse_decimal(cell, scale) {
            Some(value) => Ok(Some(value)),
            None => Err(LineError::new(
                cell,
                "a number that fits into 63 bits of nanoseconds",
            )),
        }
    }

    /// First byte and length of an extent that `block` gives in sectors and `len` in bytes.
    ///
    /// # Errors
    /// If its end is above 2^64.
    pub fn extent(&self, block: &str, len: &str) -> Result<(u64, u64), LineError> {
        let cell = self.get(block).unwrap_or_default();
        let start = parse_u64(cell).and_then(|sector| sector.checked_mul(512));
        let len_bytes = self.count(len);
        match (start, len_bytes) {
            (Some(start), Some(len)) if start.checked_add(len).is_some() => Ok((start, len)),
            _ => Err(LineError::new(cell, "a sector below 2^55")),
        }
    }
}

fn take_left<'line>(rest: &mut &'line [u8], count: usize) -> &'line [u8] {
    let from = rest.trim_ascii_start();
    let mut end = 0;
    for _ in 0..count {
        let gap = from[end..]
            .iter()
            .position(|byte| !byte.is_ascii_whitespace())
            .unwrap_or(0);
        let word = &from[end + gap..];
        end += gap
            + word
                .iter()
                .position(u8::is_ascii_whitespace)
                .unwrap_or(word.len());
    }
    *rest = &from[end..];
    &from[..end]
}

fn take_right<'line>(rest: &mut &'line [u8], count: usize) -> &'line [u8] {
    let from = rest.trim_ascii_end();
    let mut start = from.len();
    for _ in 0..count {
        let before = from[..start].trim_ascii_end();
        start = before
            .iter()
            .rposition(u8::is_ascii_whitespace)
            .map_or(0, |at| at + 1);
    }
    *rest = &from[..start];
    &from[start..]
}
