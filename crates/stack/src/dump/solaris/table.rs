//! The tables of slices that [`super::format`] prints, in cylinders or in sectors.

use plumb_geometry::{Bytes, SECTOR};

use super::super::Input;
use super::label::{BACKUP, PrintedSlice, SolarisLabel, tag_number};
use crate::builder::Builder;
use crate::node::Problem;
use crate::problem_ids::ProblemId;

/// Lengths that a sector may have.
const SECTORS: [u64; 2] = [SECTOR, 4096];
/// Largest error of a printed size with two decimals: one part of this.
const SIZE_ERROR: f64 = 64.0;

/// Columns of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SliceColumns {
    Cylinders,
    Sectors,
}

pub(super) fn table(line: &str) -> Option<SliceColumns> {
    let words: Vec<&str> = line.split_whitespace().take(9).collect();
    match words[..] {
        ["Part", "Tag", "Flag", "Cylinders", "Size", "Blocks"] => Some(SliceColumns::Cylinders),
        [
            "Part",
            "Tag",
            "Flag",
            "First",
            "Sector",
            "Size",
            "Last",
            "Sector",
        ] => Some(SliceColumns::Sectors),
        _ => None,
    }
}

/// The facts about a disk's cylinders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) cylinder_sectors: Option<u64>,
    pub(super) cylinders: Option<u64>,
}

/// A table while its rows are read.
pub(super) struct Print {
    pub(super) disk: Option<String>,
    pub(super) columns: SliceColumns,
    pub(super) geometry: Geometry,
    /// Whether it is of a label that nobody has written yet.
    pub(super) is_draft: bool,
    pub(super) line: usize,
    pub(super) rows: Vec<SliceRow>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SlicePlace {
    /// First cylinder, cylinders and blocks.
    Cylinders { first: u64, count: u64, blocks: u64 },
    /// First and last sector and printed size in bytes.
    Sectors { first: u64, last: u64, size: f64 },
    /// Nothing.
    Empty,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct SliceRow {
    pub(super) number: u32,
    pub(super) tag: Option<u32>,
    pub(super) flags: &'static str,
    pub(super) place: SlicePlace,
    pub(super) line: usize,
}

/// A row of a table.
pub(super) fn row(text: &str, columns: SliceColumns, line: usize) -> Option<SliceRow> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let tag = tag_number(words.next()?);
    let flags = match words.next()? {
        "wm" => "00",
        "wu" => "01",
        "rm" => "10",
        "ru" => "11",
        _ => return None,
    };
    let rest: Vec<&str> = words.take(8).collect();
    let place = match columns {
        SliceColumns::Cylinders => cylinders(text, rest[..].first()?)?,
        SliceColumns::Sectors => sectors(&rest)?,
    };
    Some(SliceRow {
        number,
        tag,
        flags,
        place,
        line,
    })
}

/// `0 - 14086   136.71GB   (14087/0/0) 286698624`; the parentheses contain cylinders, heads and sectors.
fn cylinders(text: &str, first: &str) -> Option<SlicePlace> {
    let (_, counted) = text.split_once('(')?;
    let (chs, blocks) = counted.split_once(')')?;
    let mut chs = chs.split('/').map(str::parse::<u64>);
    let (count, heads, sectors) = (chs.next()?.ok()?, chs.next()?.ok()?, chs.next()?.ok()?);
    let (first, blocks) = (
        first.trim_end_matches('-').parse().ok()?,
        blocks.trim().parse().ok()?,
    );
    match (count, heads, sectors, blocks) {
        (0, 0, 0, 0) => Some(SlicePlace::Empty),
        // A slice of parts of cylinders would be none that a label can hold.
        (1.., 0, 0, 1..) => Some(SlicePlace::Cylinders {
            first,
            count,
            blocks,
        }),
        _ => None,
    }
}

/// `34   128.00MB   262177`.
fn sectors(rest: &[&str]) -> Option<SlicePlace> {
    let &[first, size, last] = rest else {
        return None;
    };
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    if last == 0 {
        return Some(SlicePlace::Empty);
    }
    // No label has 2^64 sectors, whose number would not fit.
    (first <= last && last < u64::MAX).then_some(SlicePlace::Sectors {
        first,
        last,
        size: printed_size(size)?,
    })
}

/// `136.71GB` in bytes, as near as it was printed.
fn printed_size(size: &str) -> Option<f64> {
    let at = size.find(|c: char| c.is_ascii_alphabetic())?;
    let power = match &size[at..] {
        "KB" => 10,
        "MB" => 20,
        "GB" => 30,
        "TB" => 40,
        _ => return None,
    };
    size[..at]
        .parse::<f64>()
        .ok()
        .map(|size| size * f64::from(power).exp2())
}

impl Print {
    /// Tells the label of a disk.
    pub(super) fn tell(&self, disk: String, input: &Input<'_>, builder: &mut Builder) {
        let source = |line| input.source(super::format::FORMAT.tool, line);
        let is_efi = self.columns == SliceColumns::Sectors;
        let (sector, cylinder_sectors) = match self.columns {
            SliceColumns::Cylinders => (SECTOR, self.cylinder_sectors()),
            SliceColumns::Sectors => (self.sector_len(&disk, builder), None),
        };
        let mut slices = Vec::new();
        for row in &self.rows {
            let place = match row.place {
                SlicePlace::Empty => continue,
                SlicePlace::Sectors { first, last, .. } => Some((first, last - first + 1)),
                SlicePlace::Cylinders {
                    first,
                    count,
                    blocks,
                } => cylinder_sectors.and_then(|sectors| {
                    let is_whole = count.checked_mul(sectors) == Some(blocks);
                    is_whole.then_some((first.checked_mul(sectors)?, blocks))
                }),
            };
            match place {
                Some((first, count)) => slices.push(PrintedSlice {
                    number: row.number,
                    tag: row.tag,
                    flags: row.flags.to_owned(),
                    first,
                    count,
                    mount: None,
                    line: row.line,
                }),
                None => builder.problem(Problem {
                    node: None,
                    id: ProblemId::BrokenLabel,
                    text: format!(
                        "cylinders and blocks of slice {} of {disk} contradict the other slices",
                        row.number
                    ),
                    source: source(row.line),
                }),
            }
        }
        let end = self
            .geometry
            .cylinders
            .and_then(|count| count.checked_mul(cylinder_sectors?));
        let label = SolarisLabel {
            disk,
            is_efi,
            sector: Bytes(sector),
            cylinder_sectors,
            sectors: None,
            end,
            slices,
        };
        label.tell(source, self.line, builder);
    }

    /// Sectors of a cylinder, from the summary, or from the slice of the whole disk, or from any.
    fn cylinder_sectors(&self) -> Option<u64> {
        let of_row = |row: &SliceRow| match row.place {
            SlicePlace::Cylinders { count, blocks, .. } if blocks.is_multiple_of(count) => {
                Some(blocks / count)
            }
            _ => None,
        };
        let whole = self
            .rows
            .iter()
            .find(|row| row.tag == Some(BACKUP))
            .and_then(of_row);
        self.geometry
            .cylinder_sectors
            .or(whole)
            .or_else(|| self.rows.iter().find_map(of_row))
    }

    /// Length of a sector: the one with which the longest slice has its printed size.
    fn sector_len(&self, disk: &str, builder: &mut Builder) -> u64 {
        let of_row = |row: &SliceRow| match row.place {
            SlicePlace::Sectors { first, last, size } => Some((last - first + 1, size)),
            _ => None,
        };
        let longest = self
            .rows
            .iter()
            .filter_map(of_row)
            .max_by_key(|(sectors, _)| *sectors);
        let fits = |sector: &u64| {
            longest.is_some_and(|(sectors, size)| {
                (sectors as f64 * *sector as f64 / size - 1.0).abs() < 1.0 / SIZE_ERROR
            })
        };
        SECTORS.into_iter().find(fits).unwrap_or_else(|| {
            builder.note(format!("sectors of {disk} are taken for {SECTOR} bytes"));
            SECTOR
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_rows_are_skipped() {
        for text in [
            "0 usr wm 0 1.00GB 18446744073709551615",
            "0 usr wm 34 1.00GB 33",
            "0 usr wm 34 1.00 40",
            "0 usr xx 34 1.00GB 40",
            "0 usr wm 34",
        ] {
            assert_eq!(row(text, SliceColumns::Sectors, 1), None, "{text}");
        }
        for text in [
            "0 root wm 0 - 9 1.00MB (10/1/0) 9",
            "0 root wm 0 - 9 1.00MB (10/0/0) 0",
            "0 root wm 0 - 9 1.00MB",
        ] {
            assert_eq!(row(text, SliceColumns::Cylinders, 1), None, "{text}");
        }
    }
}
