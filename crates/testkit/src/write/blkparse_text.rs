//! The text of blkparse in its default form: `maj,min cpu sequence seconds.nanos pid action rwbs` and the fields of the
//! action.
//!
//! Times count from the first record that is printed. Of the notes only free text is, as blkparse does. The summary
//! that blkparse adds below is written when asked for, in the shape a reader has to skip.

use super::blkrecord::{BlkAction, BlkRecord, Pdu, category};
use super::lifecycle::{Lifecycle, Shapes};
use super::line::Lines;
use super::{EventSink, WriteError, Writer};
use crate::event::SynthEvent;
use std::io::Write;

/// The entry in the list of writers.
pub static WRITER: Writer = Writer {
    name: "blkparse",
    format: "blkparse",
    open: |sink, style| {
        Ok(Box::new(BlkparseText::new(
            sink,
            style.shapes.clone(),
            false,
        )))
    },
};

/// A writer of blkparse lines.
pub struct BlkparseText<W: Write> {
    lifecycle: Lifecycle,
    out: BlkparseOutput<W>,
}

struct BlkparseOutput<W: Write> {
    lines: Lines<W>,
    genesis_ns: Option<u64>,
    sequence: Vec<u32>,
    summary: bool,
    printed: u64,
}

impl<W: Write> BlkparseText<W> {
    /// Writes to `sink`, with the summary at the end if `summary`. Buffered here.
    pub fn new(sink: W, shapes: Shapes, summary: bool) -> Self {
        let out = BlkparseOutput {
            lines: Lines::new(sink),
            genesis_ns: None,
            sequence: vec![0; shapes.cpus as usize],
            summary,
            printed: 0,
        };
        Self {
            lifecycle: Lifecycle::new(shapes),
            out,
        }
    }
}

/// The letters of kind and flags, in blkparse's order.
fn rwbs(flags: u64, bytes: u32) -> String {
    let mut letters = String::new();
    if flags & category::FLUSH != 0 {
        letters.push('F');
    }
    letters.push(if flags & category::DISCARD != 0 {
        'D'
    } else if flags & category::WRITE != 0 {
        'W'
    } else if bytes != 0 {
        'R'
    } else {
        'N'
    });
    if flags & category::SYNC != 0 {
        letters.push('S');
    }
    letters
}

/// A device number as blkparse prints it, without the padding.
fn numbers(dev: u32) -> (u32, u32) {
    (dev >> 20, dev & 0xf_ffff)
}

impl<W: Write> BlkparseOutput<W> {
    fn record(&mut self, record: &BlkRecord) -> Result<(), WriteError> {
        if matches!(
            record.action,
            BlkAction::NoteProcess | BlkAction::NoteTimestamp
        ) {
            return Ok(());
        }
        let since_ns = record.time_ns - *self.genesis_ns.get_or_insert(record.time_ns);
        let sequence = &mut self.sequence[record.cpu as usize];
        let number = if record.action.is_note() {
            0
        } else {
            *sequence += 1;
            *sequence
        };
        let (major, minor) = numbers(record.dev);
        let (seconds, nanos) = (since_ns / 1_000_000_000, since_ns % 1_000_000_000);
        self.lines.args(format_args!(
            "{major:3},{minor:<3} {:2} {number:8} {seconds:5}.{nanos:09} {:5} {:>2} {:>3} ",
            record.cpu,
            record.pid,
            record.action.letter(),
            rwbs(record.flags, record.bytes),
        ));
        self.payload(record);
        self.printed += 1;
        Ok(self.lines.end()?)
    }

    fn payload(&mut self, record: &BlkRecord) {
        let (sector, count) = (record.sector, record.bytes / 512);
        let l = &mut self.lines;
        match (record.action, record.pdu) {
            (_, Pdu::Text(text)) => {
                l.text(text);
            }
            (
                _,
                Pdu::Remap {
                    from_dev,
                    from_sector,
                    ..
                },
            ) => {
                let (major, minor) = numbers(from_dev);
                l.args(format_args!(
                    "{sector} + {count} <- ({major},{minor}) {from_sector}"
                ));
            }
            (_, Pdu::SplitAt(second)) => {
                l.args(format_args!("{sector} / {second} [{}]", record.comm));
            }
            (BlkAction::Complete | BlkAction::Requeue, _) if count == 0 => {
                l.args(format_args!("{sector} [{}]", record.error));
            }
            (BlkAction::Complete | BlkAction::Requeue, _) => {
                l.args(format_args!("{sector} + {count} [{}]", record.error));
            }
            _ if count == 0 => {
                l.args(format_args!("[{}]", record.comm));
            }
            _ => {
                l.args(format_args!("{sector} + {count} [{}]", record.comm));
            }
        }
    }

    fn trailer(&mut self) -> Result<(), WriteError> {
        for cpu in 0..self.sequence.len() {
            self.lines.args(format_args!("CPU{cpu} (sda):")).end()?;
            self.lines
                .text(" Reads Queued:           1,        4KiB\t Writes Queued:           0,        0KiB")
                .end()?;
        }
        self.lines.end()?;
        self.lines
            .args(format_args!("Events (sda): {} entries", self.printed))
            .end()?;
        Ok(self.lines.text("Skips: 0 forward (0 -   0.0%)").end()?)
    }
}

impl<W: Write> EventSink for BlkparseText<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        let out = &mut self.out;
        self.lifecycle
            .event(event, &mut |record| out.record(&record))?;
        Ok(true)
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        let out = &mut self.out;
        self.lifecycle.finish(&mut |record| out.record(&record))?;
        if self.out.summary {
            self.out.trailer()?;
        }
        Ok(self.out.lines.flush()?)
    }
}
