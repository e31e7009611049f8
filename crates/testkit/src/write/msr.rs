//! MSR Cambridge CSV: `timestamp,host,disk,type,offset,size,response`, no header.
//!
//! Times are Windows file times, 100 ns since 1601; the response is in the same unit; offset and size are bytes.
//! There are reads and writes only. A response that was not seen is written as 0.

use super::line::Lines;
use super::{EventSink, WriteError, Writer};
use crate::event::{SynthEvent, SynthOp};
use std::io::Write;

/// The entry in the list of writers.
pub static WRITER: Writer = Writer {
    name: "msr",
    format: "msr",
    open: |sink, _| Ok(Box::new(Msr::new(sink))),
};

/// 2007-02-22 17:00:00 UTC, where the published traces begin.
const ORIGIN_FILETIME: i64 = 128_166_372_000_000_000;
/// Host in every line.
const HOST: &str = "synth";

/// A writer of MSR Cambridge lines.
pub struct Msr<W: Write> {
    lines: Lines<W>,
}

impl<W: Write> Msr<W> {
    /// Writes to `sink`. Buffered here.
    pub fn new(sink: W) -> Self {
        Self {
            lines: Lines::new(sink),
        }
    }
}

impl<W: Write> EventSink for Msr<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        let kind = match event.op {
            SynthOp::Read => "Read",
            SynthOp::Write => "Write",
            SynthOp::Discard | SynthOp::Flush => return Ok(false),
        };
        let l = &mut self.lines;
        l.int(ORIGIN_FILETIME + event.time_ns / 100)
            .ch(',')
            .text(HOST)
            .ch(',')
            .int(event.device);
        l.ch(',')
            .text(kind)
            .ch(',')
            .int(event.start_bytes)
            .ch(',')
            .int(event.len_bytes);
        l.ch(',').int(event.device_ns.unwrap_or(0) / 100).end()?;
        Ok(true)
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        Ok(self.lines.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::fixture::{FLUSH, READ, WRITE, text_of};

    #[test]
    fn lines_are_as_in_the_real_sample() {
        let (text, written) = text_of(Msr::new, &[READ, WRITE, FLUSH]);
        let expected = "128166372020000000,synth,1,Read,32256,8192,872\n\
                        128166372030000005,synth,0,Write,1048576,65536,0\n";
        assert_eq!(text, expected);
        assert_eq!((written.events, written.left_out), (2, 1));
    }
}
