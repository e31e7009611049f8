//! The common parts of all line-oriented formats: lines of bounded length, fields, and a reader around a line parser.

use std::sync::Arc;

use crate::batch::{BATCH_EVENTS, Batch, Event};
use crate::error::{Damage, Error, Place, shown};
use crate::input::Input;
use crate::names::Names;
use crate::reader::{Fill, LayerChoice, ReadOptions, Reader};
use crate::source::SourceInfo;

/// No line of any format comes near this; a longer one is not text of ours.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Ready-made things that are kept before the first of them is handed on.
const EXTRAS_HELD: usize = 8;

/// Some programs of Windows put it before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// After this number of damaged lines without a good one the rest is given up.
const DAMAGED_IN_A_ROW_MAX: u64 = 1000;

/// The reason why a line was not understood: the field, the text found, the text expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// The text found, shortened.
    pub found: String,
    /// The expected text, with the name of the field.
    pub expected: &'static str,
}

impl LineError {
    /// An error about a piece of the line.
    #[must_use]
    pub fn new(found: &[u8], expected: &'static str) -> LineError {
        LineError {
            found: shown(found),
            expected,
        }
    }
}

/// The output of a line parser.
#[derive(Default)]
pub struct Sink {
    /// The events.
    pub batch: Batch,
    /// Dictionaries of the trace.
    pub names: Names,
    /// The facts about the source.
    pub info: SourceInfo,
    /// Number of the line that is read, from 1.
    pub line: u64,
    /// Ready-made things that are handed on one by one after the events.
    pub extras: std::collections::VecDeque<Fill>,
    names_seen: (usize, usize, usize),
}

impl Sink {
    /// A sink for a source of a format.
    #[must_use]
    pub fn new(info: SourceInfo) -> Sink {
        Sink {
            info,
            ..Sink::default()
        }
    }

    /// Hands an event on.
    #[inline]
    pub fn push(&mut self, event: &Event) {
        self.batch.push(event);
    }

    /// Swaps the filled batch out, with the names of this moment.
    pub fn hand_over(&mut self, batch: &mut Batch) {
        let partitions = self
            .names
            .devices()
            .iter()
            .map(|device| device.partitions.len())
            .sum();
        let seen = (
            self.names.devices().len(),
            self.names.word_count(),
            partitions,
        );
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

    /// Whether something should be handed on before more is read.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.batch.len() >= BATCH_EVENTS || self.extras.len() >= EXTRAS_HELD
    }

    /// A reader's treatment of the outcome of reading on: an error after good data ends the reading and is noted, so
    /// that the data before it are kept; an error before any good data is returned.
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

    /// A reader's result after it has read on: the events first, then the ready-made things, then the end.
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
    /// Parses one line (without its end; never empty) and pushes its meaning.
    ///
    /// # Errors
    /// When the line is not of this format. The line is then counted and passed over.
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError>;

    /// Parses lines in their usual form from a place in a text of whole lines on, faster than [`LineFormat::line`] does, and returns
    /// the place of the first other line and the number of lines before it. It may stop anywhere: `line` gets the next one.
    fn usual_lines(&mut self, _text: &[u8], at: usize, _sink: &mut Sink) -> (usize, u64) {
        (at, 0)
    }

    /// Called before the results are passed on, also after an early stop.
    fn pause(&mut self, _sink: &mut Sink) {}

    /// Called once after the last line.
    fn end(&mut self, _sink: &mut Sink) {}
}

/// Reads lines of an [`Input`] through a [`LineFormat`].
pub struct TextReader<F> {
    input: Input,
    format: F,
    sink: Sink,
    lines: Lines,
    ended: bool,
}

/// Opens a reader of lines for a source of one layer, the one that `info` names.
///
/// # Errors
/// When another layer was asked for.
pub fn open_lines<F: LineFormat + 'static>(
    input: Input,
    options: &ReadOptions,
    format: F,
    info: SourceInfo,
) -> Result<Box<dyn Reader>, Error> {
    if let (LayerChoice::Only(asked), Some(&present)) = (options.layer, info.layers.first())
        && asked != present
    {
        return Err(Error::NoLayer {
            path: input.path,
            asked,
            present: present.word().to_owned(),
        });
    }
    Ok(Box::new(TextReader::new(input, format, info)))
}

/// How far the lines of an input went well.
#[derive(Default)]
struct Lines {
    read: u64,
    good: u64,
    damaged_in_a_row: u64,
}

impl<F: LineFormat> TextReader<F> {
    /// A reader that describes itself as `info`; the path is taken from the input.
    pub fn new(input: Input, format: F, mut info: SourceInfo) -> TextReader<F> {
        info.path.clone_from(&input.path);
        TextReader {
            input,
            format,
            sink: Sink::new(info),
            lines: Lines::default(),
            ended: false,
        }
    }

    fn read_lines(&mut self) -> Result<(), Error> {
        while !self.sink.is_full() && !self.ended {
            let Some(bytes) = self.find_lines()? else {
                return self.finish();
            };
            let shown = &self.input.peek(bytes)?[..bytes];
            let mut taken = 0;
            let mut outcome = Ok(());
            while outcome.is_ok() && taken < bytes && !self.sink.is_full() {
                let (at, lines) = self.format.usual_lines(shown, taken, &mut self.sink);
                self.lines.take_usual(lines, &mut self.sink);
                taken = at;
                let rest = &shown[taken..];
                if rest.is_empty() || self.sink.is_full() {
                    break;
                }
                let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
                taken += (line.len() + 1).min(rest.len());
                outcome = self.lines.read(line, &mut self.format, &mut self.sink);
            }
            self.input.consume(taken);
            self.ended |= outcome.is_err();
            outcome?;
        }
        Ok(())
    }

    /// How many of the next bytes are whole lines, at least one; `None` at the end of the input.
    fn find_lines(&mut self) -> Result<Option<usize>, Error> {
        let mut want = 1;
        let mut looked = 0;
        loop {
            let shown = self.input.peek(want)?;
            if let Some(at) = memchr::memrchr(b'\n', &shown[looked..]) {
                return Ok(Some(looked + at + 1));
            }
            let length = shown.len();
            if length > LINE_BYTES_MAX {
                return Err(self.line_too_long());
            }
            if self.input.is_last() {
                return Ok(if length == 0 { None } else { Some(length) });
            }
            looked = length;
            want = length + 1;
        }
    }

    fn line_too_long(&mut self) -> Error {
        self.ended = true;
        let damage = Damage {
            place: Place::Line(self.lines.read + 1),
            found: format!("a line of more than {LINE_BYTES_MAX} bytes"),
            expected: format!("lines of {}", self.sink.info.format),
        };
        self.sink.info.damage(damage.clone());
        Error::Malformed {
            path: self.input.path.clone(),
            damage,
        }
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.ended = true;
        self.format.end(&mut self.sink);
        let first = self.sink.info.damages.first();
        match first {
            Some(damage) if self.lines.good == 0 => Err(Error::Malformed {
                path: self.input.path.clone(),
                damage: damage.clone(),
            }),
            _ => Ok(()),
        }
    }
}

impl Lines {
    /// Has one line understood, without its `\n`, and keeps count.
    #[inline]
    fn read(
        &mut self,
        line: &[u8],
        format: &mut impl LineFormat,
        sink: &mut Sink,
    ) -> Result<(), Error> {
        let mut line = line.strip_suffix(b"\r").unwrap_or(line);
        self.read += 1;
        if self.read == 1 {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(());
        }
        sink.info.counts.records += 1;
        sink.line = self.read;
        match format.line(line, sink) {
            Ok(()) => {
                self.good += 1;
                self.damaged_in_a_row = 0;
                Ok(())
            }
            Err(error) => self.damaged(error, sink),
        }
    }

    /// Counts lines that were understood.
    #[inline]
    fn take_usual(&mut self, lines: u64, sink: &mut Sink) {
        if lines > 0 {
            self.read += lines;
            self.good += lines;
            self.damaged_in_a_row = 0;
            sink.info.counts.records += lines;
        }
    }

    #[cold]
    fn damaged(&mut self, error: LineError, sink: &mut Sink) -> Result<(), Error> {
        let damage = Damage {
            place: Place::Line(self.read),
            found: error.found,
            expected: error.expected.to_owned(),
        };
        sink.info.damage(damage.clone());
        self.damaged_in_a_row += 1;
        if self.damaged_in_a_row < DAMAGED_IN_A_ROW_MAX {
            return Ok(());
        }
        Err(Error::Malformed {
            path: sink.info.path.clone(),
            damage,
        })
    }
}

impl<F: LineFormat> Reader for TextReader<F> {
    fn fill(&mut self, batch: &mut Batch) -> Result<Fill, Error> {
        batch.clear();
        if !self.ended {
            let outcome = self.read_lines();
            self.format.pause(&mut self.sink);
            if outcome.is_err() {
                // Data that a format still holds back were read before the error and stay.
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
        Fields {
            rest: Some(line),
            separator,
        }
    }

    /// The remaining part.
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
pub fn split_words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\t'))
        .filter(|word| !word.is_empty())
}

/// The complete first lines of a sniffer's sample: all of them at the end of the input.
pub fn whole_lines(prefix: &[u8], complete: bool) -> impl Iterator<Item = &[u8]> {
    let end = if complete {
        prefix.len()
    } else {
        memchr::memrchr(b'\n', prefix).map_or(0, |at| at + 1)
    };
    let text = &prefix[..end];
    text.strip_prefix(BYTE_ORDER_MARK)
        .unwrap_or(text)
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty())
}

/// The answer of a line format whose lines all look alike: the first few decide.
#[must_use]
pub fn sniff_lines(
    prefix: &[u8],
    complete: bool,
    is_line: impl Fn(&[u8]) -> bool,
) -> crate::reader::Sniff {
    use crate::reader::Sniff;
    let mut lines = whole_lines(prefix, complete).take(3).peekable();
    if lines.peek().is_none() {
        let no_text = prefix.len() >= 4096;
        return if complete || no_text {
            Sniff::No
        } else {
            Sniff::More
        };
    }
    if lines.all(is_line) {
        Sniff::Yes
    } else {
        Sniff::No
    }
}
