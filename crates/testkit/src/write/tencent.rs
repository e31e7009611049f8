//! Tencent CBS 2018 CSV: `timestamp,offset,size,type,volume`, no header; whole seconds since 1970, and sectors.
//!
//! Type 0 reads and 1 writes; there is nothing else, and no response time.

use super::line::Lines;
use super::{EventSink, WriteError, Writer, whole_sectors};
use crate::event::{SynthEvent, SynthOp};
use std::io::Write;

/// The entry in the list of writers.
pub static WRITER: Writer = Writer {
    name: "tencent",
    format: "tencent",
    open: |sink, _| Ok(Box::new(Tencent::new(sink))),
};

/// 2018-09-30 15:59:59 UTC, where the published trace begins.
const ORIGIN_S: i64 = 1_538_323_199;
/// Number of device 0: volumes there are numbered from four digits on.
const FIRST_VOLUME: u32 = 1000;

/// A writer of Tencent lines.
pub struct Tencent<W: Write> {
    lines: Lines<W>,
}

impl<W: Write> Tencent<W> {
    /// Writes to `sink`. Buffered here.
    pub fn new(sink: W) -> Self {
        Self {
            lines: Lines::new(sink),
        }
    }
}

impl<W: Write> EventSink for Tencent<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        let write = match event.op {
            SynthOp::Read => 0,
            SynthOp::Write => 1,
            SynthOp::Discard | SynthOp::Flush => return Ok(false),
        };
        let start = whole_sectors(event, "start", event.start_bytes)?;
        let sectors = whole_sectors(event, "length", event.len_bytes)?;
        let l = &mut self.lines;
        l.int(ORIGIN_S + event.time_ns / 1_000_000_000)
            .ch(',')
            .int(start)
            .ch(',')
            .int(sectors);
        l.ch(',')
            .int(write)
            .ch(',')
            .int(FIRST_VOLUME + event.device)
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
    fn sectors_and_whole_seconds() {
        let (text, written) = text_of(Tencent::new, &[READ, WRITE, FLUSH]);
        assert_eq!(
            text,
            "1538323201,63,16,0,1001\n1538323202,2048,128,1,1000\n"
        );
        assert_eq!(written.left_out, 1);
    }
}
