//! The numbers of one row of an interval series, taken from its cells.

use plumb_iostat::{ColumnMeaning, IostatColumns, Printed, column_of_sysstat, words};

use super::{DeviceRow, OpRow, Span};
use crate::error::shown;

/// The row of a line: `Ok(None)` for any other line, such as those of processors.
///
/// # Errors
/// The text found in the place of a number or a row, and the one expected there.
pub fn row(
    columns: &IostatColumns,
    line: &str,
    number: u64,
) -> Result<Option<(String, DeviceRow)>, (String, String)> {
    let words = words(line);
    let Some(found) = columns.cells(line) else {
        let expected = format!("a device and {} numbers", columns.width() - 1);
        return if looks_cut(&words) {
            Err((shown(line.trim().as_bytes()), expected))
        } else {
            Ok(None)
        };
    };
    let mut cells = SeriesCells {
        span: Some(columns.span()),
        ..SeriesCells::default()
    };
    let mut device = "";
    for (column, word) in found {
        match column {
            ColumnMeaning::Device => device = word,
            ColumnMeaning::Other => {}
            column => {
                let Some(printed) = Printed::parse(word) else {
                    return match looks_cut(&words) {
                        true => Err((shown(word.as_bytes()), "a number of 0 or more".to_owned())),
                        false => Ok(None),
                    };
                };
                cells.put(column, printed);
            }
        }
    }
    Ok(Some((device.to_owned(), cells.into_row(number))))
}

/// Whether a line that is no row was meant to be one: numbers with decimals, which lines of processors between the reports
/// do not have.
fn looks_cut(words: &[&str]) -> bool {
    words
        .iter()
        .filter(|word| word.contains(['.', ',']) && Printed::parse(word).is_some())
        .count()
        >= 2
}

/// The numbers of a row as they come: of reads, writes, discards and flushes.
#[derive(Default)]
pub struct SeriesCells {
    ops: [OpRow; 4],
    all: Option<Printed>,
    ms: Option<Printed>,
    queue_ms: Option<Printed>,
    active: Option<Printed>,
    waiting: Option<Printed>,
    in_flight: Option<Printed>,
    span: Option<Span>,
}

impl SeriesCells {
    fn put(&mut self, column: ColumnMeaning, printed: Printed) {
        match column {
            ColumnMeaning::Rate(op) => self.ops[op as usize].per_second = printed,
            ColumnMeaning::AllRate => self.all = Some(printed),
            ColumnMeaning::Bytes(op, unit) => {
                self.ops[op as usize].bytes_per_second = Some(printed.value * f64::from(unit))
            }
            ColumnMeaning::OpMs(op) => self.ops[op as usize].ms = Some(printed),
            ColumnMeaning::Ms => self.ms = Some(printed),
            ColumnMeaning::QueueMs => self.queue_ms = Some(printed),
            ColumnMeaning::Active => self.active = Some(printed),
            ColumnMeaning::Waiting => self.waiting = Some(printed),
            ColumnMeaning::InFlight => self.in_flight = Some(printed),
            ColumnMeaning::Device | ColumnMeaning::Other => {}
        }
    }

    /// The number of a member of sysstat's JSON; members have the names of columns.
    pub fn put_named(&mut self, name: &str, printed: Printed) {
        self.put(column_of_sysstat(name), printed);
    }

    /// Whether the rate of all I/O together is there.
    pub const fn has_all_rate(&self) -> bool {
        self.all.is_some()
    }

    pub fn into_row(self, line: u64) -> DeviceRow {
        let [read, write, discard, flush] = self.ops;
        let span = self.span.unwrap_or(Span::Response);
        let in_flight = match (self.in_flight, self.active, self.waiting) {
            (Some(in_flight), ..) => Some(in_flight),
            // `svc_t` spans both queues, `asvc_t` the second one.
            (None, Some(active), Some(waiting)) if span == Span::Response => Some(Printed {
                value: active.value + waiting.value,
                half_step: active.half_step + waiting.half_step,
            }),
            (None, active, _) => active,
        };
        // If the operations are separate, the mean of both is computed from them: that of all is rounded once more.
        let is_apart = read.ms.is_some() && write.ms.is_some();
        DeviceRow {
            line,
            data: [read, write],
            undivided: self.all.map(|per_second| OpRow {
                per_second,
                bytes_per_second: None,
                ms: self.ms,
            }),
            seconds: None,
            is_limited: false,
            others: [discard, flush],
            ms: self.ms.filter(|_| !is_apart),
            span,
            queue_ms: self.queue_ms,
            in_flight,
        }
    }
}
