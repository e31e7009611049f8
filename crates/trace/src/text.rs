//! What all line-oriented formats share: lines of bounded length, fields, and a reader around a line parser.

use std::sync::Arc;

use crate::batch::{BATCH_EVENTS, Batch, Event};
use crate::error::{Damage, Error, Place, shown};
use crate::input::Input;
use crate::names::Names;
use crate::reader::{Fill, Reader};
use crate::source::SourceInfo;

/// No line of any format comes near this; a longer one is not text of ours.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// After so many damaged lines without a good one the rest is given up.
const DAMAGED_IN_A_ROW_MAX: u64 = 1000;

/// Why a line was not understood: the field, what stood there, what should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// What stands there, shortened.
    pub found: String,
    /// What should stand there, with the name of the field.
    pub expected: &'static str,
}

impl LineError {
    /// An error about a piece of the line.
    #[must_use]
    pub fn new(found: &[u8], expected: &'static str) -> LineError {
        LineError { found: shown(found), expected }
    }
}

/// What a line parser writes to.
#[derive(Default)]
pub struct Sink {
    /// Where events go.
    pub batch: Batch,
    /// Dictionaries of the trace.
    pub names: Names,
    /// What is known of the source.
    pub info: SourceInfo,
    /// Ready-made things that are handed on one by one after the events.
    pub extras: std::collections::VecDeque<Fill>,
    names_seen: (usize, usize, usize),
}

impl Sink {
    /// A sink for a source of a format.
    #[must_use]
    pub fn new(info: SourceInfo) -> Sink {
        Sink { info, ..Sink::default() }
    }

    /// Hands an event on.
    pub fn push(&mut self, event: &Event) {
        self.batch.push(event);
    }

    /// Swaps the filled batch out, with the names of this moment.
    pub fn hand_over(&mut self, batch: &mut Batch) {
        let partitions = self.names.devices().iter().map(|device| device.partitions.len()).sum();
        let seen = (self.names.devices().len(), self.names.word_count(), partitions);
        if seen != self.names_seen {
            self.names_seen = seen;
            self.batch.names = Arc::new(self.names.clone());
        }
        let names = Arc::clone(&self.batch.names);
        std::mem::swap(batch, &mut self.batch);
        self.batch.clear();
        self.batch.names = names;
        self.info.counts.events += batch.len() as u64;
    }

    /// What a reader does with the outcome of reading on: an error that comes after something good ends the
    /// reading and is noted, so that what came before it is kept; an error before anything good is one.
    ///
    /// # Errors
    /// The error given, when nothing was read before it.
    pub fn stop_on(&mut self, outcome: Result<(), Error>, ended: &mut bool) -> Result<(), Error> {
        let Err(error) = outcome else { return Ok(()) };
        *ended = true;
        if self.batch.is_empty() && self.info.counts.events == 0 && self.extras.is_empty() {
            return Err(error);
        }
        self.info.counts.damaged = self.info.counts.damaged.max(1);
        let mut said = error.to_string();
        if let Some(source) = std::error::Error::source(&error) {
            said = format!("{said}: {source}");
        }
        self.info.note(format!("reading stopped early: {said}"));
        Ok(())
    }

    /// What a reader returns once it has read on: the events first, then the ready-made things, then the end.
    pub fn next_fill(&mut self, batch: &mut Batch) -> Fill {
        if self.batch.is_empty() {
            return self.extras.pop_front().unwrap_or(Fill::End);
        }
        self.hand_over(batch);
        Fill::Events
    }
}

/// A format whose unit is the line.
pub trait LineFormat: Send {
    /// Understands one line (without its end; never empty) and pushes what it means.
    ///
    /// # Errors
    /// When the line is not of this format. The line is then counted and passed over.
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError>;

    /// Called once after the last line.
    fn end(&mut self, _sink: &mut Sink) {}
}

/// Reads lines of an [`Input`] through a [`LineFormat`].
pub struct TextReader<F> {
    input: Input,
    format: F,
    sink: Sink,
    line_number: u64,
    damaged_in_a_row: u64,
    good_lines: u64,
    ended: bool,
}

impl<F: LineFormat> TextReader<F> {
    /// A reader that describes itself as `info`; the path is taken from the input.
    pub fn new(input: Input, format: F, mut info: SourceInfo) -> TextReader<F> {
        info.path.clone_from(&input.path);
        TextReader {
            input,
            format,
            sink: Sink::new(info),
            line_number: 0,
            damaged_in_a_row: 0,
            good_lines: 0,
            ended: false,
        }
    }

    fn read_lines(&mut self) -> Result<(), Error> {
        while self.sink.batch.len() < BATCH_EVENTS {
            let line_bytes = match self.find_line()? {
                Some(bytes) => bytes,
                None => return self.finish(),
            };
            let (shown_bytes, taken) = line_bytes;
            let line = &self.input.peek(taken)?[..shown_bytes];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            self.line_number += 1;
            if !line.is_empty() {
                self.sink.info.counts.records += 1;
                match self.format.line(line, &mut self.sink) {
                    Ok(()) => {
                        self.good_lines += 1;
                        self.damaged_in_a_row = 0;
                    }
                    Err(error) => self.damaged(error)?,
                }
            }
            self.input.consume(taken);
        }
        Ok(())
    }

    /// Length of the next line without and with its end; `None` at the end of the input.
    fn find_line(&mut self) -> Result<Option<(usize, usize)>, Error> {
        let mut want = 1;
        let mut looked = 0;
        loop {
            let shown = self.input.peek(want)?;
            if let Some(at) = memchr::memchr(b'\n', &shown[looked..]) {
                return Ok(Some((looked + at, looked + at + 1)));
            }
            let length = shown.len();
            if length > LINE_BYTES_MAX {
                return Err(self.line_too_long());
            }
            if self.input.is_last() {
                return Ok(if length == 0 { None } else { Some((length, length)) });
            }
            looked = length;
            want = length + 1;
        }
    }

    fn line_too_long(&mut self) -> Error {
        self.ended = true;
        let damage = Damage {
            place: Place::Line(self.line_number + 1),
            found: format!("a line of more than {LINE_BYTES_MAX} bytes"),
            expected: format!("lines of {}", self.sink.info.format),
        };
        self.sink.info.damage(damage.clone());
        Error::Malformed { path: self.input.path.clone(), damage }
    }

    fn damaged(&mut self, error: LineError) -> Result<(), Error> {
        let damage = Damage {
            place: Place::Line(self.line_number),
            found: error.found,
            expected: error.expected.to_owned(),
        };
        self.sink.info.damage(damage.clone());
        self.damaged_in_a_row += 1;
        if self.damaged_in_a_row < DAMAGED_IN_A_ROW_MAX {
            return Ok(());
        }
        self.ended = true;
        Err(Error::Malformed { path: self.input.path.clone(), damage })
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.ended = true;
        self.format.end(&mut self.sink);
        let first = self.sink.info.damages.first();
        match first {
            Some(damage) if self.good_lines == 0 => {
                Err(Error::Malformed { path: self.input.path.clone(), damage: damage.clone() })
            }
            _ => Ok(()),
        }
    }
}

impl<F: LineFormat> Reader for TextReader<F> {
    fn fill(&mut self, batch: &mut Batch) -> Result<Fill, Error> {
        batch.clear();
        if !self.ended {
            let outcome = self.read_lines();
            if outcome.is_err() {
                // What a format still holds back was read before the error and stays.
                self.format.end(&mut self.sink);
            }
            self.sink.stop_on(outcome, &mut self.ended)?;
        }
        Ok(self.sink.next_fill(batch))
    }

    fn info(&self) -> &SourceInfo {
        &self.sink.info
    }
}

/// Takes a line apart at a separator, without copying.
pub struct Fields<'line> {
    rest: Option<&'line [u8]>,
    separator: u8,
}

impl<'line> Fields<'line> {
    /// Fields between separators, which may be empty.
    #[must_use]
    pub fn new(line: &'line [u8], separator: u8) -> Fields<'line> {
        Fields { rest: Some(line), separator }
    }

    /// What has not been taken yet.
    #[must_use]
    pub fn rest(&self) -> &'line [u8] {
        self.rest.unwrap_or_default()
    }
}

impl<'line> Iterator for Fields<'line> {
    type Item = &'line [u8];

    fn next(&mut self) -> Option<&'line [u8]> {
        let rest = self.rest?;
        match memchr::memchr(self.separator, rest) {
            Some(at) => {
                self.rest = Some(&rest[at + 1..]);
                Some(&rest[..at])
            }
            None => {
                self.rest = None;
                Some(rest)
            }
        }
    }
}

/// Words between runs of blanks and tabs.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty())
}

/// The first lines of what a sniffer sees that are whole: all of them at the end of the input.
pub fn whole_lines(prefix: &[u8], complete: bool) -> impl Iterator<Item = &[u8]> {
    let end = if complete { prefix.len() } else { memchr::memrchr(b'\n', prefix).map_or(0, |at| at + 1) };
    prefix[..end]
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty())
}

/// The answer of a line format whose lines all look alike: the first few decide.
#[must_use]
pub fn sniff_lines(prefix: &[u8], complete: bool, is_line: impl Fn(&[u8]) -> bool) -> crate::reader::Sniff {
    use crate::reader::Sniff;
    let mut lines = whole_lines(prefix, complete).take(3).peekable();
    if lines.peek().is_none() {
        let no_text = prefix.len() >= 4096;
        return if complete || no_text { Sniff::No } else { Sniff::More };
    }
    if lines.all(is_line) { Sniff::Yes } else { Sniff::No }
}
