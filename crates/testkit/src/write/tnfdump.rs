//! Text of Solaris `tnfdump` for the kernel's `strategy` and `biodone` probes.
//!
//! Two lines declare the probes, a table head follows, then one line an event: elapsed and delta in
//! milliseconds with six decimals, process, LWP, thread, CPU, probe, and `name: value` pairs. A pair of lines
//! belongs together by `buf`. Device numbers are Solaris's 32-bit ones: 14 bits of major, 18 of minor.

use super::line::Lines;
use super::reorder::Reorder;
use super::{EventSink, WriteError, Writer, check_order, whole_sectors};
use crate::event::{SynthEvent, SynthOp};
use std::io::Write;

/// The entry in the list of writers.
pub static WRITER: Writer = Writer {
    name: "tnfdump",
    format: "tnfdump",
    open: |sink, _| Ok(Box::new(Tnfdump::new(sink)?)),
};

/// Major number of the disk driver `sd`.
const SD_MAJOR: u32 = 32;
/// Buffer flags of sys/buf.h: busy, page I/O, read.
const B_BUSY: u32 = 0x1;
const B_PAGEIO: u32 = 0x10;
const B_READ: u32 = 0x40;
/// Write is a bit of its own in later releases.
const B_WRITE: u32 = 0x100;
/// Address and distance of the imaginary buffers.
const FIRST_BUF: u64 = 0xf5af_dd40;
const BUFS: u64 = 1 << 16;

struct Probe {
    event: SynthEvent,
    buf: u64,
    done: bool,
}

/// A writer of tnfdump lines. Flushes and discards pass no strategy routine and are left out.
pub struct Tnfdump<W: Write> {
    lines: Lines<W>,
    waiting: Reorder<Probe>,
    previous_ns: i64,
    first_ns: Option<i64>,
    line_ns: i64,
    events: u64,
}

impl<W: Write> Tnfdump<W> {
    /// Writes the head of the table to `sink`. Buffered here.
    ///
    /// # Errors
    /// Of the sink.
    pub fn new(sink: W) -> Result<Self, WriteError> {
        let mut lines = Lines::new(sink);
        for (name, line) in [("strategy", 457), ("biodone", 1217)] {
            lines.args(format_args!(
                "probe    tnf_name: \"{name}\" tnf_string: \"keys io blockio;file ../../common/os/bio.c;line {line};\""
            ));
            lines.end()?;
        }
        let rule = "----------------  ---------------- ----- ----- ---------- --- ------------------------- ------------------------";
        let head = "    Elapsed (ms)        Delta (ms)   PID LWPID        TID CPU Probe Name                Data / Description . . .";
        for row in [rule, head, rule] {
            lines.text(row).end()?;
        }
        let waiting = Reorder::default();
        Ok(Self {
            lines,
            waiting,
            previous_ns: i64::MIN,
            first_ns: None,
            line_ns: 0,
            events: 0,
        })
    }

    fn line(&mut self, time_ns: i64, probe: &Probe) -> Result<(), WriteError> {
        let event = &probe.event;
        let elapsed_ns = time_ns - *self.first_ns.get_or_insert(time_ns);
        let delta_ns = elapsed_ns - std::mem::replace(&mut self.line_ns, elapsed_ns);
        let (pid, name) = if probe.done {
            (0, "biodone")
        } else {
            (event.pid, "strategy")
        };
        self.lines.args(format_args!(
            "{:>16}  {:>16} {pid:5} {:5} {:>10} {:3} {name:25} device: {} block: {}",
            milliseconds(elapsed_ns),
            milliseconds(delta_ns),
            1,
            "0xfbf6aec0",
            event.cpu,
            (SD_MAJOR << 18) | (event.device * 8),
            event.sector(),
        ));
        if probe.done {
            self.lines.args(format_args!(" buf: {:#x}", probe.buf));
        } else {
            let kind = if event.op == SynthOp::Read {
                B_READ
            } else {
                B_WRITE
            };
            let flags = B_BUSY | B_PAGEIO | kind;
            self.lines.args(format_args!(
                " size: {} buf: {:#x} flags: {flags}",
                event.len_bytes, probe.buf
            ));
        }
        Ok(self.lines.end()?)
    }
}

fn milliseconds(ns: i64) -> String {
    format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}

impl<W: Write> EventSink for Tnfdump<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        check_order(event, &mut self.previous_ns)?;
        if matches!(event.op, SynthOp::Discard | SynthOp::Flush) {
            return Ok(false);
        }
        whole_sectors(event, "start", event.start_bytes)?;
        // Addresses come round again, as buffers do; long before that the I/O of one is done.
        let buf = FIRST_BUF + self.events % BUFS * 0x100;
        self.events += 1;
        self.waiting.push(
            event.time_ns,
            Probe {
                event: *event,
                buf,
                done: false,
            },
        );
        if let Some(complete_ns) = event.complete_ns() {
            self.waiting.push(
                complete_ns,
                Probe {
                    event: *event,
                    buf,
                    done: true,
                },
            );
        }
        while let Some((time_ns, probe)) = self.waiting.pop_before(event.time_ns) {
            self.line(time_ns, &probe)?;
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        while let Some((time_ns, probe)) = self.waiting.pop() {
            self.line(time_ns, &probe)?;
        }
        Ok(self.lines.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::fixture::{FLUSH, READ, WRITE, text_of};

    #[test]
    fn pairs_share_a_buffer() {
        let (text, written) = text_of(|w| Tnfdump::new(w).expect("memory"), &[READ, WRITE, FLUSH]);
        assert_eq!(written.left_out, 1);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .skip(5)
            .map(|l| l.split_whitespace().collect())
            .collect();
        let expected = [
            "0.000000 0.000000 4242 1 0xfbf6aec0 3 strategy device: 8388616 block: 63 size: 8192 buf: 0xf5afdd40 flags: 81",
            "0.087200 0.087200 0 1 0xfbf6aec0 3 biodone device: 8388616 block: 63 buf: 0xf5afdd40",
            "1000.000500 999.913300 7 1 0xfbf6aec0 0 strategy device: 8388608 block: 2048 size: 65536 buf: 0xf5afde40 flags: 273",
        ];
        let expected: Vec<Vec<&str>> = expected
            .iter()
            .map(|l| l.split_whitespace().collect())
            .collect();
        assert_eq!(rows, expected);
        let declaration = "probe    tnf_name: \"strategy\" tnf_string: \"keys io blockio;";
        assert!(text.starts_with(declaration), "{text}");
    }
}
