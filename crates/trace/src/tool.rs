//! Reading the printed output of a tracing tool: tables of I/O with prose around them, several in one file.

use crate::error::{Damage, Error, Place};
use crate::input::SNIFF_BYTES;
use crate::op::Layer;
use crate::reader::{LayerChoice, ReadOptions, Sniff};
use crate::source::SourceInfo;
use crate::table::{Column, Header, Row};
use crate::text::{LineError, whole_lines};

/// The tables of one file. A header line begins a new one, which is another run of the tool.
pub struct Tables {
    known: &'static [Column],
    required: &'static [&'static str],
    header: Option<Header>,
    /// How many headers were seen.
    pub runs: u64,
}

impl Tables {
    /// Tables with columns among `known` that have all of `required`.
    #[must_use]
    pub fn new(known: &'static [Column], required: &'static [&'static str]) -> Tables {
        Tables {
            known,
            required,
            header: None,
            runs: 0,
        }
    }

    /// The header in a line, if it is one. The rows after it are read by it.
    pub fn header(&mut self, line: &[u8], info: &mut SourceInfo) -> Option<Header> {
        let header = Header::find(line, self.known, self.required)?;
        self.runs += 1;
        if self.runs == 2 {
            info.note("this file holds several outputs of the tool; all of them were read");
        }
        self.header = Some(header.clone());
        Some(header)
    }

    /// A line that is no header as a row, or `None` for lines around the rows; both are counted.
    ///
    /// # Errors
    /// If it is a row with a broken part.
    pub fn row<'line>(
        &self,
        line: &'line [u8],
        info: &mut SourceInfo,
    ) -> Result<Option<Row<'line>>, LineError> {
        let row = match &self.header {
            Some(header) => header.row(line)?,
            None => None,
        };
        info.tally(if row.is_some() { "row" } else { "other line" });
        Ok(row)
    }
}

/// The answer of a format whose distinctive line may be below prose.
#[must_use]
pub fn sniff_below_prose(prefix: &[u8], complete: bool, is_it: impl Fn(&[u8]) -> bool) -> Sniff {
    if whole_lines(prefix, complete).any(is_it) {
        return Sniff::Yes;
    }
    let is_text = memchr::memchr(0, prefix).is_none();
    if is_text && !complete && prefix.len() < SNIFF_BYTES {
        Sniff::More
    } else {
        Sniff::No
    }
}

/// Counts damage that is only known after the last line.
pub fn damaged_at_end(error: LineError, info: &mut SourceInfo) {
    let place = Place::Line(info.counts.records);
    info.damage(Damage {
        place,
        found: error.found,
        expected: error.expected.to_owned(),
    });
}

/// Says that a run of the tool printed no times of issue.
pub fn has_no_times(info: &mut SourceInfo) {
    info.note("a run without times of issue is in the order of completion");
    info.note_unknown("order of issue");
}

/// Refuses a layer that a format with a single one cannot give.
///
/// # Errors
/// When another layer than `present` is asked for.
pub fn check_layer(path: &str, options: &ReadOptions, present: Option<Layer>) -> Result<(), Error> {
    match options.layer {
        LayerChoice::Only(asked) if present.is_some_and(|present| present != asked) => {
            Err(Error::NoLayer {
                path: path.to_owned(),
                asked,
                present: present.map_or("an unknown one", Layer::word).to_owned(),
            })
        }
        _ => Ok(()),
    }
}
