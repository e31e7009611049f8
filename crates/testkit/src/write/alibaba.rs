//! Alibaba 2020 CSV: `device,opcode,offset,length,timestamp`, no header; bytes, and microseconds since 1970.
//!
//! Reads and writes only, no response time.

use super::line::Lines;
use super::{EventSink, WriteError, Writer};
use crate::event::{SynthEvent, SynthOp};
use std::io::Write;

/// The entry in the list of writers.
pub static WRITER: Writer = Writer {
    name: "alibaba",
    format: "alibaba",
    open: |sink, _| Ok(Box::new(Alibaba::new(sink))),
};

/// 2019-12-31 16:00:00 UTC, where the published trace begins, µs since 1970.
const ORIGIN_US: i64 = 1_577_808_000_000_000;

/// A writer of Alibaba lines.
pub struct Alibaba<W: Write> {
    lines: Lines<W>,
}

impl<W: Write> Alibaba<W> {
    /// Writes to `sink`. Buffered here.
    pub fn new(sink: W) -> Self {
        Self {
            lines: Lines::new(sink),
        }
    }
}

impl<W: Write> EventSink for Alibaba<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        if matches!(event.op, SynthOp::Discard | SynthOp::Flush) {
            return Ok(false);
        }
        let l = &mut self.lines;
        l.int(event.device)
            .ch(',')
            .ch(event.op.letter())
            .ch(',')
            .int(event.start_bytes)
            .ch(',');
        l.int(event.len_bytes)
            .ch(',')
            .int(ORIGIN_US + event.time_ns / 1000)
            .end()?;
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
    fn bytes_and_microseconds() {
        let (text, written) = text_of(Alibaba::new, &[READ, WRITE, FLUSH]);
        assert_eq!(
            text,
            "1,R,32256,8192,1577808002000000\n0,W,1048576,65536,1577808003000000\n"
        );
        assert_eq!(written.left_out, 1);
    }
}
