//! SYSTOR '17 CSV: `timestamp,response,type,lun,offset,size`; seconds since 1970 with nine decimals, the last three 0;
//! response in seconds; bytes.
//!
//! An I/O whose response was not seen has a blank type, so its kind is lost: that is how the format is.

use super::line::Lines;
use super::{EventSink, WriteError, Writer};
use crate::event::{SynthEvent, SynthOp};
use std::io::Write;

/// The entry in the list of writers.
pub static WRITER: Writer = Writer {
    name: "systor",
    format: "systor",
    open: |sink, _| Ok(Box::new(Systor::new(sink, true))),
};

/// The workload's zero: 2016-02-21 22:52:25 UTC, ns since 1970.
const ORIGIN_NS: i64 = 1_456_095_145_000_000_000;

/// A writer of SYSTOR lines.
pub struct Systor<W: Write> {
    lines: Lines<W>,
    header: bool,
}

impl<W: Write> Systor<W> {
    /// Writes to `sink`, with the line of column names first if `header`. Buffered here.
    pub fn new(sink: W, header: bool) -> Self {
        Self {
            lines: Lines::new(sink),
            header,
        }
    }
}

impl<W: Write> EventSink for Systor<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        let kind = match (event.op, event.device_ns) {
            (SynthOp::Discard | SynthOp::Flush, _) => return Ok(false),
            (_, None) => "",
            (SynthOp::Read, Some(_)) => "R",
            (SynthOp::Write, Some(_)) => "W",
        };
        if std::mem::take(&mut self.header) {
            self.lines
                .text("Timestamp,Response,IOType,LUN,Offset,Size")
                .end()?;
        }
        let l = &mut self.lines;
        l.fixed(ORIGIN_NS + event.time_ns / 1000 * 1000, 9).ch(',');
        l.fixed(event.device_ns.unwrap_or(0) / 1000 * 1000, 9)
            .ch(',')
            .text(kind);
        l.ch(',')
            .int(event.device)
            .ch(',')
            .int(event.start_bytes)
            .ch(',')
            .int(event.len_bytes)
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
    fn with_and_without_header() {
        let (text, written) = text_of(|w| Systor::new(w, true), &[READ, WRITE, FLUSH]);
        let expected = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                        1456095147.000000000,0.000087000,R,1,32256,8192\n\
                        1456095148.000000000,0.000000000,,0,1048576,65536\n";
        assert_eq!(text, expected);
        assert_eq!(written.left_out, 1);
        let (bare, _) = text_of(|w| Systor::new(w, false), &[READ]);
        assert!(bare.starts_with("1456095147."));
    }
}
