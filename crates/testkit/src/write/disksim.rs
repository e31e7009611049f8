//! DiskSim ASCII, also read by MQSim: `time device sector sectors type`, type 1 reads and 0 writes.
//!
//! The file does not say its unit of time: milliseconds with decimals in DiskSim, whole nanoseconds in MQSim.

use super::line::Lines;
use super::{EventSink, WriteError, Writer, whole_sectors};
use crate::event::{SynthEvent, SynthOp};
use std::io::Write;

/// The entry of DiskSim in the list of writers.
pub static WRITER: Writer = Writer {
    name: "disksim",
    format: "disksim",
    open: |sink, _| Ok(Box::new(Disksim::new(sink, DisksimTime::Milliseconds))),
};

/// The entry of MQSim.
pub static MQSIM: Writer = Writer {
    name: "mqsim",
    format: "disksim",
    open: |sink, _| Ok(Box::new(Disksim::new(sink, DisksimTime::Nanoseconds))),
};

/// Unit of the first column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisksimTime {
    /// Milliseconds with six decimals.
    Milliseconds,
    /// Whole nanoseconds.
    Nanoseconds,
}

/// A writer of DiskSim lines.
pub struct Disksim<W: Write> {
    lines: Lines<W>,
    unit: DisksimTime,
}

impl<W: Write> Disksim<W> {
    /// Writes to `sink`. Buffered here.
    pub fn new(sink: W, unit: DisksimTime) -> Self {
        Self {
            lines: Lines::new(sink),
            unit,
        }
    }
}

impl<W: Write> EventSink for Disksim<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        let read = match event.op {
            SynthOp::Read => 1,
            SynthOp::Write => 0,
            SynthOp::Discard | SynthOp::Flush => return Ok(false),
        };
        let start = whole_sectors(event, "start", event.start_bytes)?;
        let sectors = whole_sectors(event, "length", event.len_bytes)?;
        let l = &mut self.lines;
        match self.unit {
            DisksimTime::Milliseconds => l.fixed(event.time_ns, 6),
            DisksimTime::Nanoseconds => l.int(event.time_ns),
        };
        l.ch(' ')
            .int(event.device)
            .ch(' ')
            .int(start)
            .ch(' ')
            .int(sectors)
            .ch(' ')
            .int(read)
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
    fn both_units_of_time() {
        let (ms, written) = text_of(
            |w| Disksim::new(w, DisksimTime::Milliseconds),
            &[READ, WRITE, FLUSH],
        );
        assert_eq!(ms, "2000.000000 1 63 16 1\n3000.000500 0 2048 128 0\n");
        assert_eq!(written.left_out, 1);
        let (ns, _) = text_of(|w| Disksim::new(w, DisksimTime::Nanoseconds), &[READ]);
        assert_eq!(ns, "2000000000 1 63 16 1\n");
    }
}
