//! The records of one file, in the order of the file, without damaged parts.
//!
//! A record is accepted if the next one (or the end) is at the position that its length gives. Otherwise the next
//! plausible record is searched from the end of the last header on, because the length of its data may be the damaged
//! part.

use std::path::Path;
use std::sync::Arc;

use memchr::memmem;

use super::record::RawRecord;
use super::shape::RecordShape;
use crate::error::{Damage, Error, Place, shown};
use crate::input::Input;
use crate::progress::Progress;
use crate::source::DAMAGES_KEPT;

/// How far is looked at once for the next record: beyond the longest record and its successor's magic.
const SEARCH_BYTES: usize = 256 * 1024;
const LONGEST_RECORD: usize = 64 + u16::MAX as usize + 4;

/// Records of one file.
pub struct Stream {
    input: Option<Input>,
    shape: RecordShape,
    /// The name of the file within its set, for messages; empty when there is only one.
    label: String,
    /// CPU that the name of the file promises; `None` for a merged file.
    pub cpu: Option<u32>,
    /// The record last taken.
    pub record: RawRecord,
    /// Bytes of it at the position of the input; 0 before the first.
    taken: usize,
    /// First damaged places.
    pub damages: Vec<Damage>,
    /// How many there were.
    pub damaged: u64,
    /// Bytes passed over.
    pub skipped_bytes: u64,
}

impl Stream {
    /// A stream of an opened input, which is recognised by its first bytes.
    ///
    /// # Errors
    /// When it does not begin with a record.
    pub fn new(mut input: Input, label: String, cpu: Option<u32>) -> Result<Stream, Error> {
        let head = input.peek(4)?;
        let Some(shape) = RecordShape::detect(head) else {
            let damage = Damage {
                place: Place::Byte(0),
                found: shown(head),
                expected: "a blktrace record of version 7 or 8".to_owned(),
            };
            return Err(Error::Malformed {
                path: input.path,
                damage,
            });
        };
        // A second handle for each of some hundred files would be a waste of them.
        input.plain_file = None;
        Ok(Stream {
            input: Some(input),
            shape,
            label,
            cpu,
            record: RawRecord::default(),
            taken: 0,
            damages: Vec::new(),
            damaged: 0,
            skipped_bytes: 0,
        })
    }

    /// Opens a file of a set; `None` when it is empty.
    ///
    /// # Errors
    /// When it cannot be opened or is no blktrace.
    pub fn open(
        path: &Path,
        label: String,
        cpu: Option<u32>,
        progress: Option<&Arc<Progress>>,
    ) -> Result<Option<Stream>, Error> {
        match Input::open_watched(path, progress) {
            Ok(input) => Stream::new(input, label, cpu).map(Some),
            Err(Error::Empty { .. }) if cpu.is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Layout of the records.
    #[must_use]
    pub fn shape(&self) -> RecordShape {
        self.shape
    }

    /// Data of the record last taken.
    #[inline]
    #[must_use]
    pub fn data(&self) -> &[u8] {
        let shown = self.input.as_ref().map_or(&[][..], Input::shown);
        shown
            .get(self.shape.header_bytes()..self.taken)
            .unwrap_or_default()
    }

    /// Goes to the next record; false at the end.
    ///
    /// # Errors
    /// When records of another layout follow.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, Error> {
        let Some(input) = self.input.as_mut() else {
            return Ok(false);
        };
        let header = self.shape.header_bytes();
        let wanted = self.taken + header;
        let mut bytes = input.shown();
        if bytes.len() < wanted {
            match input.peek(wanted) {
                Ok(more) => bytes = more,
                Err(error) => return Ok(self.stop(&error)),
            }
        }
        if let Some(record) = bytes
            .get(self.taken..)
            .and_then(|rest| self.shape.decode(rest))
        {
            let whole = header + usize::from(record.data_bytes);
            let wanted = self.taken + whole;
            if bytes.len() >= wanted || input.peek(wanted).is_ok_and(|bytes| bytes.len() >= wanted)
            {
                input.consume(self.taken);
                self.taken = whole;
                self.record = record;
                return Ok(true);
            }
        }
        self.resync()
    }

    /// An unreadable file keeps its results so far, and counts as damaged.
    #[cold]
    fn stop(&mut self, error: &Error) -> bool {
        let source = std::error::Error::source(error).map(ToString::to_string);
        let found = source.unwrap_or_else(|| error.to_string());
        let offset = self.input.as_ref().map_or(0, Input::offset) + self.taken as u64;
        self.damage(offset, &found, "more records".to_owned());
        self.input = None;
        false
    }

    fn damage(&mut self, offset: u64, found: &str, expected: String) {
        self.damaged += 1;
        if self.damages.len() < DAMAGES_KEPT {
            let found = if self.label.is_empty() {
                found.to_owned()
            } else {
                format!("{found} in {}", self.label)
            };
            self.damages.push(Damage {
                place: Place::Byte(offset),
                found,
                expected,
            });
        }
    }

    /// The expected record is missing: finds the next one.
    #[cold]
    fn resync(&mut self) -> Result<bool, Error> {
        let Some(input) = self.input.as_mut() else {
            return Ok(false);
        };
        let at = input.offset() + self.taken as u64;
        let rest = input.shown().get(self.taken..).unwrap_or_default();
        if rest.is_empty() {
            self.input = None;
            return Ok(false);
        }
        let found_shape = RecordShape::detect(rest);
        let found = if found_shape == Some(self.shape) && input.is_last() {
            format!(
                "a record cut off or damaged, {} bytes before the end",
                rest.len()
            )
        } else {
            shown(rest)
        };
        if let Some(other) = found_shape.filter(|other| *other != self.shape) {
            let path = input.path.clone();
            let damage = Damage {
                place: Place::Byte(at),
                found: other.text(),
                expected: self.shape.text(),
            };
            self.damage(at, &damage.found, damage.expected.clone());
            self.input = None;
            return Err(Error::Malformed { path, damage });
        }
        self.damage(at, &found, self.shape.text());
        let own = found_shape.is_some();
        let start = if own {
            self.taken + 1
        } else {
            self.taken.min(self.shape.header_bytes())
        };
        let Some(input) = self.input.as_mut() else {
            return Ok(false);
        };
        input.consume(start.min(input.shown().len()));
        self.taken = 0;
        let outcome = self.search();
        let next = self.input.as_ref().map_or(at, Input::offset);
        self.skipped_bytes += next.saturating_sub(at);
        match outcome {
            Ok(true) => self.advance(),
            Ok(false) => {
                self.input = None;
                Ok(false)
            }
            Err(error) => Ok(self.stop(&error)),
        }
    }

    /// Puts the input before the next plausible record; false, and at the end, if there is no further one.
    fn search(&mut self) -> Result<bool, Error> {
        let Some(input) = self.input.as_mut() else {
            return Ok(false);
        };
        let finder = memmem::Finder::new(&self.shape.magic()).into_owned();
        loop {
            let window = input.peek(SEARCH_BYTES)?;
            let length = window.len();
            let last = length < SEARCH_BYTES;
            let mut places = finder.find_iter(window);
            let place = places.find(|&place| {
                // One near the end of the window is looked at again in the next.
                (!last && length - place < LONGEST_RECORD)
                    || is_plausible(self.shape, &window[place..])
            });
            let consumed = place.unwrap_or(if last { length } else { length - 3 });
            input.consume(consumed);
            match place {
                Some(place) if last || length - place >= LONGEST_RECORD => return Ok(true),
                None if last => return Ok(false),
                _ => {}
            }
        }
    }
}

/// Whether a record begins here and the next one, or the end, is at the position that its length gives.
fn is_plausible(shape: RecordShape, bytes: &[u8]) -> bool {
    let Some(record) = shape.decode(bytes) else {
        return false;
    };
    match bytes.get(shape.header_bytes() + usize::from(record.data_bytes)..) {
        Some(next) if next.len() >= 4 => next.starts_with(&shape.magic()),
        Some(end) => shape.magic().starts_with(end),
        None => false,
    }
}
