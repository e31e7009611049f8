//! Disk table of Windows's `wpaexporter`, in the numbers of a locale: UTF-8, lines ended by CR LF.
//!
//! German: `;` between columns, `.` between thousands, `,` before decimals. English: `,` between columns, and a number
//! with a thousands separator is in quotes. Offsets are hexadecimal bytes of the whole disk, the last one included; a
//! flush has size 0 and all ones for both.
//!
//! Rows are in order of their start (the insert), in units of 100 ns. `IO Time` spans insert to complete, `Disk
//! Service Time` issue to complete. The depths count the other I/O in flight on that disk. A row needs its
//! completion, so an I/O without one is left out, as are discards.

use super::line::Lines;
use super::reorder::Reorder;
use super::{EventSink, WriteError, Writer, check_order};
use crate::event::{MAX_QUEUE_NS, SynthEvent, SynthOp};
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;

/// The entry of the German form in the list of writers.
pub static GERMAN: Writer = Writer {
    name: "etw-de",
    format: "wpa-csv",
    open: |sink, _| Ok(Box::new(Etw::new(sink, EtwLocale::German)?)),
};

/// The entry of the English form.
pub static ENGLISH: Writer = Writer {
    name: "etw-en",
    format: "wpa-csv",
    open: |sink, _| Ok(Box::new(Etw::new(sink, EtwLocale::English)?)),
};

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EtwLocale {
    /// `1.795,900` in columns apart by `;`.
    German,
    /// `"1,795.900"` in columns apart by `,`.
    English,
}

/// Names of the columns.
const COLUMNS: [&str; 14] = [
    "IO Type",
    "Priority",
    "Process (Name)",
    "Init Time (s)",
    "Complete Time (s)",
    "IO Time (µs)",
    "Disk Service Time (µs)",
    "Size (B)",
    "Min Offset",
    "Max Offset",
    "QD/I - Queue Depth at Init Time",
    "QD/C - Queue Depth at Complete Time",
    "Disk",
    "Count",
];

enum EtwStep {
    Start(SynthEvent),
    /// Completion of the row with this number.
    Done(u64),
}

struct EtwRow {
    event: SynthEvent,
    depth_at_start: u32,
    depth_at_done: Option<u32>,
}

/// A writer of wpaexporter rows.
pub struct Etw<W: Write> {
    lines: Lines<W>,
    locale: EtwLocale,
    waiting: Reorder<EtwStep>,
    rows: VecDeque<EtwRow>,
    first_row: u64,
    depths: BTreeMap<u32, u32>,
    previous_ns: i64,
}

impl<W: Write> Etw<W> {
    /// Writes the names of the columns to `sink`. Buffered here.
    ///
    /// # Errors
    /// Of the sink.
    pub fn new(sink: W, locale: EtwLocale) -> Result<Self, WriteError> {
        let mut made = Self {
            lines: Lines::new(sink),
            locale,
            waiting: Reorder::default(),
            rows: VecDeque::new(),
            first_row: 0,
            depths: BTreeMap::new(),
            previous_ns: i64::MIN,
        };
        made.columns(&COLUMNS)?;
        Ok(made)
    }

    fn columns<T: AsRef<str>>(&mut self, columns: &[T]) -> Result<(), WriteError> {
        let separator = if self.locale == EtwLocale::German {
            ';'
        } else {
            ','
        };
        for (index, column) in columns.iter().enumerate() {
            if index > 0 {
                self.lines.ch(separator);
            }
            self.lines.text(column.as_ref());
        }
        Ok(self.lines.ch('\r').end()?)
    }

    fn step(&mut self, step: EtwStep) -> Result<(), WriteError> {
        match step {
            EtwStep::Start(event) => {
                let depth = self.depths.entry(event.device).or_default();
                let row = EtwRow {
                    event,
                    depth_at_start: *depth,
                    depth_at_done: None,
                };
                *depth += 1;
                let number = self.first_row + self.rows.len() as u64;
                self.rows.push_back(row);
                let done_ns = event.complete_ns().unwrap_or(event.time_ns);
                self.waiting.push(done_ns, EtwStep::Done(number));
            }
            EtwStep::Done(number) => {
                let row = &mut self.rows[(number - self.first_row) as usize];
                let depth = self.depths.entry(row.event.device).or_default();
                *depth -= 1;
                row.depth_at_done = Some(*depth);
            }
        }
        self.settled_rows()
    }

    /// Writes the rows at the front that are complete.
    fn settled_rows(&mut self) -> Result<(), WriteError> {
        while let Some((row, depth)) = self
            .rows
            .front()
            .and_then(|row| Some((row, row.depth_at_done?)))
        {
            let columns = self.row(row, depth);
            self.columns(&columns)?;
            self.rows.pop_front();
            self.first_row += 1;
        }
        Ok(())
    }

    fn row(&self, row: &EtwRow, depth_at_done: u32) -> [String; 14] {
        let event = &row.event;
        let done_ns = event.complete_ns().unwrap_or(event.time_ns);
        let (kind, first, last) = match event.op {
            SynthOp::Flush => ("Flush", u64::MAX, u64::MAX),
            SynthOp::Write => ("Write", event.start_bytes, event.end_bytes() - 1),
            _ => ("Read", event.start_bytes, event.end_bytes() - 1),
        };
        let started_ns = event.insert_ns() / 100 * 100;
        let done_ns = done_ns / 100 * 100;
        [
            kind.to_owned(),
            "Normal".to_owned(),
            event.comm.to_owned(),
            self.number(started_ns, 9),
            self.number(done_ns, 9),
            self.number(done_ns - started_ns, 3),
            self.number(done_ns - event.time_ns / 100 * 100, 3),
            self.number(event.len_bytes as i64, 0),
            format!("{first:#018X}").replace('X', "x"),
            format!("{last:#018X}").replace('X', "x"),
            row.depth_at_start.to_string(),
            depth_at_done.to_string(),
            event.device.to_string(),
            "1".to_owned(),
        ]
    }

    /// `value` in units of 10^-`places`, not negative, with the separators of the locale.
    fn number(&self, value: i64, places: u32) -> String {
        let (thousands, decimal) = if self.locale == EtwLocale::German {
            ('.', ',')
        } else {
            (',', '.')
        };
        let scale = 10i64.pow(places);
        let digits = (value / scale).to_string();
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(thousands);
            }
            text.push(digit);
        }
        if places > 0 {
            text.push(decimal);
            text.push_str(&format!(
                "{:0width$}",
                value % scale,
                width = places as usize
            ));
        }
        if self.locale == EtwLocale::English && text.contains(',') {
            format!("\"{text}\"")
        } else {
            text
        }
    }
}

impl<W: Write> EventSink for Etw<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        check_order(event, &mut self.previous_ns)?;
        if event.op == SynthOp::Discard || event.device_ns.is_none() {
            return Ok(false);
        }
        self.waiting.push(event.insert_ns(), EtwStep::Start(*event));
        while let Some((_, step)) = self.waiting.pop_before(event.time_ns - MAX_QUEUE_NS) {
            self.step(step)?;
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        while let Some((_, step)) = self.waiting.pop() {
            self.step(step)?;
        }
        Ok(self.lines.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::fixture::{FLUSH, READ, WRITE, text_of};

    fn rows(locale: EtwLocale, events: &[SynthEvent]) -> Vec<String> {
        let (text, _) = text_of(|w| Etw::new(w, locale).expect("memory"), events);
        assert!(text.ends_with("\r\n"));
        text.split_terminator("\r\n").map(str::to_owned).collect()
    }

    #[test]
    fn german_numbers() {
        let rows = rows(EtwLocale::German, &[READ, WRITE, FLUSH]);
        let columns: Vec<&str> = rows[0].split(';').collect();
        let first = ["IO Type", "Priority", "Process (Name)", "Init Time (s)"];
        assert_eq!((&columns[..4], columns.len()), (&first[..], 14));
        let read = "Read;Normal;oracle;1,999999000;2,000087200;88,200;87,200;8.192;\
                    0x0000000000007E00;0x0000000000009DFF;0;0;1;1";
        let flush = "Flush;Normal;dbw0;4,000000000;4,002500000;2.500,000;2.500,000;0;\
                     0xFFFFFFFFFFFFFFFF;0xFFFFFFFFFFFFFFFF;0;0;0;1";
        assert_eq!(rows[1..], [read, flush], "the write was never seen to end");
    }

    #[test]
    fn english_numbers_in_quotes() {
        let rows = rows(EtwLocale::English, &[READ, FLUSH]);
        assert!(
            rows[1].starts_with(
                "Read,Normal,oracle,1.999999000,2.000087200,88.200,87.200,\"8,192\",0x0"
            )
        );
        assert!(rows[2].starts_with(
            "Flush,Normal,dbw0,4.000000000,4.002500000,\"2,500.000\",\"2,500.000\",0,"
        ));
    }

    #[test]
    fn depths_count_the_others_on_the_disk() {
        // The second begins during the first and ends after it; the third is on another disk.
        let second = SynthEvent {
            time_ns: READ.time_ns + 10_000,
            ..READ
        };
        let third = SynthEvent {
            time_ns: READ.time_ns + 20_000,
            device: 0,
            ..READ
        };
        let rows = rows(EtwLocale::German, &[READ, second, third]);
        let depths: Vec<Vec<&str>> = rows[1..]
            .iter()
            .map(|r| r.split(';').skip(10).take(2).collect())
            .collect();
        assert_eq!(depths, [["0", "1"], ["1", "0"], ["0", "0"]]);
    }
}
