//! Text of `perf script`, and of ftrace, for the block request tracepoints.
//!
//! perf: `comm pid [cpu] seconds.micros: block:EVENT: …`; ftrace: `comm-pid [cpu] flags seconds.micros: EVENT: …`. A
//! completion is printed by the running task: the idle task here. Newer kernels add a priority before the bracket. A
//! completed flush has no sector, printed as the largest 64-bit number.

use super::line::Lines;
use super::reorder::Reorder;
use super::{EventSink, WriteError, Writer, check_order};
use crate::event::{MAX_QUEUE_NS, SynthEvent, SynthOp};
use std::io::Write;

/// The entry of perf in the list of writers.
pub static PERF: Writer = Writer {
    name: "perf",
    format: "ftrace",
    open: |sink, _| {
        let style = PerfStyle {
            ftrace: false,
            priority: false,
        };
        Ok(Box::new(PerfScript::new(sink, style)))
    },
};

/// The entry of ftrace.
pub static FTRACE: Writer = Writer {
    name: "ftrace",
    format: "ftrace",
    open: |sink, _| {
        let style = PerfStyle {
            ftrace: true,
            priority: true,
        };
        Ok(Box::new(PerfScript::new(sink, style)))
    },
};

/// The program that printed the lines, and its kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerfStyle {
    /// ftrace's prefix in place of perf's.
    pub ftrace: bool,
    /// `none,0,0` before the bracket, as newer kernels have.
    pub priority: bool,
}

#[derive(Debug, Clone, Copy)]
enum Point {
    Insert,
    Issue,
    Complete,
}

/// A writer of tracepoint lines: insert if it was seen, issue, and complete if it was seen.
pub struct PerfScript<W: Write> {
    lines: Lines<W>,
    style: PerfStyle,
    waiting: Reorder<(Point, SynthEvent)>,
    previous_ns: i64,
}

/// Boot clock at the workload's zero, µs.
const ORIGIN_US: i64 = 2_199_495_000_000;

impl<W: Write> PerfScript<W> {
    /// Writes to `sink`. Buffered here.
    pub fn new(sink: W, style: PerfStyle) -> Self {
        Self {
            lines: Lines::new(sink),
            style,
            waiting: Reorder::default(),
            previous_ns: i64::MIN,
        }
    }

    fn line(&mut self, time_ns: i64, point: Point, event: &SynthEvent) -> Result<(), WriteError> {
        let (comm, pid) = match (point, self.style.ftrace) {
            (Point::Complete, true) => ("<idle>", 0),
            (Point::Complete, false) => ("swapper", 0),
            _ => (event.comm, event.pid),
        };
        let time_us = ORIGIN_US + time_ns / 1000;
        let name = match point {
            Point::Insert => "block_rq_insert",
            Point::Issue => "block_rq_issue",
            Point::Complete => "block_rq_complete",
        };
        if self.style.ftrace {
            self.lines
                .args(format_args!(
                    "{comm:>16}-{pid:<7} [{:03}] d..1. ",
                    event.cpu
                ))
                .fixed(time_us, 6);
            self.lines.text(": ");
        } else {
            self.lines
                .args(format_args!("{comm:>16} {pid:5} [{:03}] ", event.cpu))
                .fixed(time_us, 6);
            self.lines.text(": block:");
        }
        self.lines.text(name).text(": ");
        self.request(point, event);
        Ok(self.lines.end()?)
    }

    fn request(&mut self, point: Point, event: &SynthEvent) {
        let complete = matches!(point, Point::Complete);
        let l = &mut self.lines;
        l.text("8,").int(event.device * 16).text(match event.op {
            SynthOp::Read => " R ",
            SynthOp::Write => " W ",
            SynthOp::Discard => " D ",
            SynthOp::Flush => " FF ",
        });
        if !complete {
            l.int(event.len_bytes).ch(' ');
        }
        let nowhere = complete && event.op == SynthOp::Flush;
        let sector = if nowhere { u64::MAX } else { event.sector() };
        l.text("() ").int(sector).text(" + ").int(event.sectors());
        if self.style.priority {
            l.text(" none,0,0");
        }
        if complete {
            l.text(" [0]");
        } else {
            l.text(" [").text(event.comm).ch(']');
        }
    }
}

impl<W: Write> EventSink for PerfScript<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        check_order(event, &mut self.previous_ns)?;
        if event.queue_ns.is_some() {
            self.waiting
                .push(event.insert_ns(), (Point::Insert, *event));
        }
        self.waiting.push(event.time_ns, (Point::Issue, *event));
        if let Some(complete_ns) = event.complete_ns() {
            self.waiting.push(complete_ns, (Point::Complete, *event));
        }
        while let Some((time_ns, (point, event))) =
            self.waiting.pop_before(event.time_ns - MAX_QUEUE_NS)
        {
            self.line(time_ns, point, &event)?;
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        while let Some((time_ns, (point, event))) = self.waiting.pop() {
            self.line(time_ns, point, &event)?;
        }
        Ok(self.lines.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::fixture::{FLUSH, READ, WRITE, text_of};

    #[test]
    fn perf_lines_are_in_order_of_time() {
        let style = PerfStyle {
            ftrace: false,
            priority: false,
        };
        let overlapped = SynthEvent {
            time_ns: READ.time_ns + 50_000,
            ..WRITE
        };
        let (text, _) = text_of(|w| PerfScript::new(w, style), &[READ, overlapped]);
        let expected = "          oracle  4242 [003] 2199496.999999: block:block_rq_insert: 8,16 R 8192 () 63 + 16 [oracle]
          oracle  4242 [003] 2199497.000000: block:block_rq_issue: 8,16 R 8192 () 63 + 16 [oracle]
            dbw0     7 [000] 2199497.000050: block:block_rq_issue: 8,0 W 65536 () 2048 + 128 [dbw0]
         swapper     0 [003] 2199497.000087: block:block_rq_complete: 8,16 R () 63 + 16 [0]
";
        assert_eq!(text, expected);
    }

    #[test]
    fn ftrace_with_priority_and_a_flush() {
        let style = PerfStyle {
            ftrace: true,
            priority: true,
        };
        let (text, _) = text_of(|w| PerfScript::new(w, style), &[FLUSH]);
        let expected = "            dbw0-7       [000] d..1. 2199499.000000: block_rq_issue: 8,0 FF 0 () 0 + 0 none,0,0 [dbw0]
          <idle>-0       [000] d..1. 2199499.002500: block_rq_complete: 8,0 FF () 18446744073709551615 + 0 none,0,0 [0]
";
        assert_eq!(text, expected);
    }
}
