//! What the columns of `iostat -x` mean, by their names: Solaris and sysstat share no order of them.

use super::{DeviceRow, OpRow, Printed, Span, Tool};
use crate::error::shown;

/// No heading is wider.
const WORDS_MAX: usize = 64;

/// What stands in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnMeaning {
    Device,
    /// I/O a second of the operation of this index; see [`SeriesCells`].
    Rate(usize),
    /// Bytes a second, in units of so many bytes.
    Bytes(usize, u32),
    /// Latency of one operation.
    OpMs(usize),
    /// Latency of all.
    Ms,
    /// Time before issue.
    QueueMs,
    /// In flight at the device.
    Active,
    /// Waiting before it.
    Waiting,
    /// In flight, waiting ones included.
    InFlight,
    Other,
}

/// The columns of one heading.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesColumns {
    pub tool: Tool,
    columns: Vec<ColumnMeaning>,
    /// Columns of processors and terminals behind those of the first device.
    further: usize,
    span: Span,
}

/// Words of a line; Solaris parts them by commas under `-r`.
pub fn split_words(line: &str) -> Vec<&str> {
    let line = line.trim();
    let is_csv = line.contains(',') && !line.contains([' ', '\t']);
    let split = |c: char| c.is_whitespace() || is_csv && c == ',';
    line.split(split)
        .filter(|word| !word.is_empty())
        .take(WORDS_MAX)
        .collect()
}

impl SeriesColumns {
    /// The columns of a heading; `None` for any other line.
    pub fn of_heading(line: &str) -> Option<SeriesColumns> {
        let words = split_words(line);
        let has = |name: &str| words.contains(&name);
        let first = *words.first()?;
        if !has("r/s") || !has("w/s") {
            return None;
        }
        if matches!(first, "Device" | "Device:") && has("%util") {
            let columns = words
                .iter()
                .map(|word| sysstat(word.trim_end_matches(':')))
                .collect();
            return Some(SeriesColumns {
                tool: Tool::Sysstat,
                columns,
                further: 0,
                span: Span::Response,
            });
        }
        if !has("device") || !has("actv") {
            return None;
        }
        let devices = words
            .iter()
            .position(|word| matches!(*word, "tin" | "us"))
            .unwrap_or(words.len());
        let columns: Vec<ColumnMeaning> =
            words[..devices].iter().map(|word| solaris(word)).collect();
        let span = if has("asvc_t") {
            Span::Device
        } else {
            Span::Response
        };
        let further = words.len() - devices;
        columns
            .contains(&ColumnMeaning::Device)
            .then_some(SeriesColumns {
                tool: Tool::Solaris,
                columns,
                further,
                span,
            })
    }

    /// The row of a line: `Ok(None)` where it is something else, as lines of processors are.
    ///
    /// # Errors
    /// What was found in the place of what was expected.
    pub fn row(
        &self,
        line: &str,
        number: u64,
    ) -> Result<Option<(String, DeviceRow)>, (String, String)> {
        let words = split_words(line);
        let width = self.columns.len();
        if words.len() != width && (self.further == 0 || words.len() != width + self.further) {
            let expected = format!("a device and {} numbers", width - 1);
            return if looks_cut(&words) {
                Err((shown(line.trim().as_bytes()), expected))
            } else {
                Ok(None)
            };
        }
        let mut cells = SeriesCells {
            span: Some(self.span),
            ..SeriesCells::default()
        };
        let mut device = "";
        for (column, word) in self.columns.iter().zip(&words) {
            match column {
                ColumnMeaning::Device => device = word,
                ColumnMeaning::Other => {}
                column => {
                    let Some(printed) = printed(word) else {
                        return match looks_cut(&words) {
                            true => {
                                Err((shown(word.as_bytes()), "a number of 0 or more".to_owned()))
                            }
                            false => Ok(None),
                        };
                    };
                    cells.put(*column, printed);
                }
            }
        }
        Ok(Some((device.to_owned(), cells.into_row(number))))
    }
}

fn solaris(word: &str) -> ColumnMeaning {
    match word {
        "device" => ColumnMeaning::Device,
        "r/s" => ColumnMeaning::Rate(0),
        "w/s" => ColumnMeaning::Rate(1),
        "kr/s" => ColumnMeaning::Bytes(0, 1 << 10),
        "kw/s" => ColumnMeaning::Bytes(1, 1 << 10),
        "Mr/s" => ColumnMeaning::Bytes(0, 1 << 20),
        "Mw/s" => ColumnMeaning::Bytes(1, 1 << 20),
        "wait" => ColumnMeaning::Waiting,
        "actv" => ColumnMeaning::Active,
        "wsvc_t" => ColumnMeaning::QueueMs,
        "asvc_t" | "svc_t" => ColumnMeaning::Ms,
        _ => ColumnMeaning::Other,
    }
}

/// Old versions write sectors (`rsec/s`), `avgqu-sz` and one `await` for both operations.
fn sysstat(word: &str) -> ColumnMeaning {
    match word {
        "Device" => ColumnMeaning::Device,
        "await" => ColumnMeaning::Ms,
        "avgqu-sz" | "aqu-sz" => ColumnMeaning::InFlight,
        _ => {
            let Some(letter) = word.chars().next() else {
                return ColumnMeaning::Other;
            };
            let Some(op) = ['r', 'w', 'd', 'f'].iter().position(|op| *op == letter) else {
                return ColumnMeaning::Other;
            };
            match &word[1..] {
                "/s" => ColumnMeaning::Rate(op),
                "kB/s" => ColumnMeaning::Bytes(op, 1 << 10),
                "MB/s" => ColumnMeaning::Bytes(op, 1 << 20),
                "sec/s" => ColumnMeaning::Bytes(op, 512),
                "_await" => ColumnMeaning::OpMs(op),
                _ => ColumnMeaning::Other,
            }
        }
    }
}

/// No rate, time or count of I/O comes near; what is larger was not printed by iostat.
const NUMBER_MAX: f64 = 1e15;

/// A number of 0 or more, with the half of its last digit; some languages write a comma.
pub fn printed(word: &str) -> Option<Printed> {
    let word = word.replace(',', ".");
    let is_plain = word
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = word
        .parse::<f64>()
        .ok()
        .filter(|value| is_plain && *value <= NUMBER_MAX)?;
    let decimals = word
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len().min(12));
    Some(Printed {
        value,
        half_step: 0.5 / 10f64.powi(decimals as i32),
    })
}

/// Whether a line that is no row was meant to be one: numbers with decimals, which lines of processors between the reports
/// do not have.
fn looks_cut(words: &[&str]) -> bool {
    words
        .iter()
        .filter(|word| word.contains(['.', ',']) && printed(word).is_some())
        .count()
        >= 2
}

/// The numbers of a row as they come: of reads, writes, discards and flushes.
#[derive(Default)]
pub struct SeriesCells {
    pub ops: [OpRow; 4],
    pub ms: Option<Printed>,
    pub queue_ms: Option<Printed>,
    pub active: Option<Printed>,
    pub waiting: Option<Printed>,
    pub in_flight: Option<Printed>,
    pub span: Option<Span>,
}

impl SeriesCells {
    fn put(&mut self, column: ColumnMeaning, printed: Printed) {
        match column {
            ColumnMeaning::Rate(op) => self.ops[op].per_second = printed,
            ColumnMeaning::Bytes(op, unit) => {
                self.ops[op].bytes_per_second = Some(printed.value * f64::from(unit))
            }
            ColumnMeaning::OpMs(op) => self.ops[op].ms = Some(printed),
            ColumnMeaning::Ms => self.ms = Some(printed),
            ColumnMeaning::QueueMs => self.queue_ms = Some(printed),
            ColumnMeaning::Active => self.active = Some(printed),
            ColumnMeaning::Waiting => self.waiting = Some(printed),
            ColumnMeaning::InFlight => self.in_flight = Some(printed),
            ColumnMeaning::Device | ColumnMeaning::Other => {}
        }
    }

    /// The number of a member of sysstat's JSON, which is called as the column is.
    pub fn put_named(&mut self, name: &str, printed: Printed) {
        self.put(sysstat(name), printed);
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
        // Where the operations are told apart, the mean of both is theirs: that of all is rounded once more.
        let is_apart = read.ms.is_some() && write.ms.is_some();
        DeviceRow {
            line,
            data: [read, write],
            others: [discard, flush],
            ms: self.ms.filter(|_| !is_apart),
            span,
            queue_ms: self.queue_ms,
            in_flight,
        }
    }
}
