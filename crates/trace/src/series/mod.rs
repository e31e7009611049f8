//! Interval series: the figures that `iostat` prints of each device at regular intervals. They are no traces: they hold no
//! single I/O and become no profile; `compare` sets them side by side.
//!
//! Read are `iostat -x` of Solaris, with any of `-n -p -z -r -M -c -t -e -T d -T u`, and of sysstat, old columns and new ones,
//! in kilobytes, megabytes or sectors, as text and as JSON; `plumb_iostat` knows headings and columns. Left out is `-I` of
//! Solaris, which prints counts in place of rates. Both tools were held against real prints.

mod cells;
mod json;
mod since_boot;
mod text;

use crate::error::{Damage, Error, Place, shown};

pub use plumb_iostat::{Printed, Span, Tool};
pub use since_boot::{FirstReport, SinceBoot};

/// One operation of a device in one report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OpRow {
    /// I/O a second.
    pub per_second: Printed,
    /// Bytes a second; `None` where no column tells.
    pub bytes_per_second: Option<f64>,
    /// Mean latency of the operation alone, ms; `None` where no column tells it apart.
    pub ms: Option<Printed>,
}

/// One device in one report.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceRow {
    /// Line on which it stands; 0 where it stands on none of its own.
    pub line: u64,
    /// Reads and writes.
    pub data: [OpRow; 2],
    /// Discards and flushes, for the check by Little's law.
    pub others: [OpRow; 2],
    /// Mean latency of reads and writes together, ms; `None` where only [`OpRow::ms`] is known.
    pub ms: Option<Printed>,
    /// What the latencies span.
    pub span: Span,
    /// Mean time before issue, ms, where it is told apart.
    pub queue_ms: Option<Printed>,
    /// I/O in flight on average, over the same span as the latencies.
    pub in_flight: Option<Printed>,
}

/// All devices at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Line of its heading.
    pub line: u64,
    /// Time as it was printed, if it was.
    pub at: Option<String>,
    /// Rows by device.
    pub rows: Vec<(String, DeviceRow)>,
    /// Whether a line of it could not be understood.
    pub is_damaged: bool,
}

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Who printed it.
    pub tool: Tool,
    /// Reports in order.
    pub reports: Vec<Report>,
    /// The first line that could not be understood.
    pub damage: Option<Damage>,
    /// How many could not.
    pub damaged: u64,
    /// Whether the beginning of what the tool printed is there.
    pub has_banner: bool,
    /// Whether the command can be seen, and had the flag that leaves out the first report (`-y`).
    pub left_out_first: bool,
}

impl Series {
    fn new(tool: Tool) -> Series {
        Series {
            tool,
            reports: Vec::new(),
            damage: None,
            damaged: 0,
            has_banner: false,
            left_out_first: false,
        }
    }

    fn damage(&mut self, damage: Damage) {
        self.damaged += 1;
        self.damage.get_or_insert(damage);
    }

    /// The devices, in the order in which they came.
    #[must_use]
    pub fn devices(&self) -> Vec<&str> {
        let mut seen = std::collections::HashSet::new();
        let names = self
            .reports
            .iter()
            .flat_map(|report| &report.rows)
            .map(|(name, _)| name.as_str());
        names.filter(|name| seen.insert(*name)).collect()
    }

    /// What each report has of a device; `None` where it has no line, since it had no I/O. Where that line may be the one
    /// that could not be understood the report is left out.
    pub fn rows_of<'a>(&'a self, device: &'a str) -> impl Iterator<Item = Option<&'a DeviceRow>> {
        self.reports.iter().filter_map(move |report| {
            let row = report
                .rows
                .iter()
                .find(|(name, _)| name == device)
                .map(|(_, row)| row);
            (row.is_some() || !report.is_damaged).then_some(row)
        })
    }
}

impl DeviceRow {
    /// Reads and writes a second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.data.iter().map(|op| op.per_second.value).sum()
    }

    /// Mean latency of reads and writes, ms: as printed, or that of both by their rates. `None` without I/O, or where a
    /// column lacks.
    #[must_use]
    pub fn data_ms(&self) -> Option<f64> {
        let ios = self.per_second();
        if ios <= 0.0 {
            return None;
        }
        if let Some(ms) = self.ms {
            return Some(ms.value);
        }
        let busy = self.data.iter().filter(|op| op.per_second.value > 0.0);
        let sum: Option<f64> = busy
            .map(|op| op.ms.map(|ms| ms.value * op.per_second.value))
            .sum();
        sum.map(|sum| sum / ios)
    }

    /// Little's law: what is in flight is what comes in a second times how long it stays. Returns what was printed to be
    /// in flight, what the law makes of rates and latencies, and how far apart rounding alone may bring them. `None` where
    /// a column lacks.
    #[must_use]
    pub fn littles_law(&self) -> Option<LittlesLaw> {
        let in_flight = self.in_flight?;
        let parts: Vec<(Printed, Printed)> = match self.ms {
            Some(ms) => self.data.iter().map(|op| (op.per_second, ms)).collect(),
            None => {
                let all = self.data.iter().chain(&self.others);
                all.filter_map(|op| op.ms.map(|ms| (op.per_second, ms)))
                    .collect()
            }
        };
        if parts.is_empty() {
            return None;
        }
        let expected = parts
            .iter()
            .map(|(rate, ms)| rate.value * ms.value / 1e3)
            .sum();
        let of_rounding: f64 = parts
            .iter()
            .map(|(rate, ms)| rate.value * ms.half_step / 1e3 + ms.value * rate.half_step / 1e3)
            .sum();
        Some(LittlesLaw {
            printed: in_flight.value,
            expected,
            rounding: of_rounding + in_flight.half_step,
        })
    }
}

/// Both sides of Little's law in one report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LittlesLaw {
    /// In flight, as printed.
    pub printed: f64,
    /// Rate times latency.
    pub expected: f64,
    /// How far apart rounding of the printed numbers alone may bring them.
    pub rounding: f64,
}

impl LittlesLaw {
    /// Beyond rounding, so much of the larger side is let pass: the kernel takes rates and times at different moments.
    pub const SLACK: f64 = 0.05;

    /// Whether both sides agree.
    #[must_use]
    pub fn holds(&self) -> bool {
        let apart = (self.printed - self.expected).abs();
        apart <= self.rounding + Self::SLACK * self.printed.max(self.expected)
    }
}

/// So many bytes are looked through for a heading: a page of processors may stand before it.
pub const SNIFF_BYTES: usize = 16 * 1024;

/// Whether bytes begin like an interval series.
#[must_use]
pub fn sniff(head: &[u8]) -> bool {
    let head = &head[..head.len().min(SNIFF_BYTES)];
    json::sniff(head) || text::sniff(&String::from_utf8_lossy(head))
}

/// Reads a series; lines that cannot be understood are counted and passed over.
///
/// # Errors
/// When there is no report in it.
pub fn read(name: &str, bytes: &[u8]) -> Result<Series, Error> {
    let malformed = |damage| Error::Malformed {
        path: name.to_owned(),
        damage,
    };
    if bytes.is_empty() {
        return Err(Error::Empty {
            path: name.to_owned(),
        });
    }
    let head = &bytes[..bytes.len().min(SNIFF_BYTES)];
    let series = if json::sniff(head) {
        json::read(bytes).map_err(malformed)?
    } else {
        text::read(&String::from_utf8_lossy(bytes))
    };
    if series.reports.iter().all(|report| report.rows.is_empty()) {
        let nothing = Damage {
            place: Place::Line(1),
            found: shown(bytes),
            expected: "rows of devices below `r/s w/s … device` or `Device r/s … %util`".to_owned(),
        };
        return Err(malformed(series.damage.unwrap_or(nothing)));
    }
    Ok(series)
}
