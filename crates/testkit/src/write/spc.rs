//! SPC-1 trace as UMass distributes it: `unit,block,size,opcode,seconds`; blocks of 512 bytes, sizes in bytes.
//!
//! Reads and writes only, in order of time, with nine decimals. No response time.

use super::line::Lines;
use super::{EventSink, WriteError, Writer, whole_sectors};
use crate::event::{SynthEvent, SynthOp};
use std::io::Write;

/// The entry in the list of writers.
pub static WRITER: Writer = Writer {
    name: "spc",
    format: "spc",
    open: |sink, _| Ok(Box::new(Spc::new(sink))),
};

/// A writer of SPC lines.
pub struct Spc<W: Write> {
    lines: Lines<W>,
}

impl<W: Write> Spc<W> {
    /// Writes to `sink`. Buffered here.
    pub fn new(sink: W) -> Self {
        Self {
            lines: Lines::new(sink),
        }
    }
}

impl<W: Write> EventSink for Spc<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        let opcode = match event.op {
            SynthOp::Read => 'R',
            SynthOp::Write => 'W',
            SynthOp::Discard | SynthOp::Flush => return Ok(false),
        };
        let block = whole_sectors(event, "start", event.start_bytes)?;
        let l = &mut self.lines;
        l.int(event.device)
            .ch(',')
            .int(block)
            .ch(',')
            .int(event.len_bytes)
            .ch(',')
            .ch(opcode);
        l.ch(',').fixed(event.time_ns, 9).end()?;
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
    fn block_is_in_sectors_and_size_in_bytes() {
        let (text, written) = text_of(Spc::new, &[READ, WRITE, FLUSH]);
        assert_eq!(
            text,
            "1,63,8192,R,2.000000000\n0,2048,65536,W,3.000000500\n"
        );
        assert_eq!(written.left_out, 1);
    }
}
