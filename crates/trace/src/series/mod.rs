//! Interval series: the figures that a tool prints of each device, or of each run of a benchmark, at regular intervals. They
//! are no traces: they hold no single I/O and become no profile; `compare` sets them side by side.
//!
//! Read are `iostat -x` of Solaris, with any of `-n -p -z -r -M -c -t -e -T d -T u`, and of sysstat, old columns and new ones,
//! in kilobytes, megabytes or sectors, as text and as JSON; `iostat` of both without `-x`, `sar -d` and `sadf -d`, `-p` and
//! `-j`, which do not tell reads and writes apart; the JSON of fio; and intervals, averages and flat files of Vdbench.
//! `plumb_iostat` knows headings and columns. Left out are `-I` of Solaris, which prints counts in place of rates, `-h` of
//! sysstat, which rounds to units, and the XML of sadf. All were held against
//! real prints, with one exception: no real flat file of Vdbench was at hand, so its columns are **unverified**.

mod cells;
mod fio;
mod json;
mod sadf;
mod since_boot;
mod solaris_brief;
mod text;
mod vdbench;

use crate::error::{Damage, Error, Place, shown};

pub use plumb_iostat::{Printed, Span, Tool};
pub use since_boot::{FirstReport, SinceBoot};

/// The tool that a series comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesTool {
    /// `iostat` or `sar`, or `sadf` in its place.
    Iostat(Tool),
    /// `fio --output-format=json`.
    Fio,
    /// Vdbench.
    Vdbench,
}

impl SeriesTool {
    /// In words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            SeriesTool::Iostat(tool) => tool.title(),
            SeriesTool::Fio => "fio",
            SeriesTool::Vdbench => "Vdbench",
        }
    }

    /// Whether it makes the I/O that it reports.
    #[must_use]
    pub const fn is_benchmark(self) -> bool {
        matches!(self, SeriesTool::Fio | SeriesTool::Vdbench)
    }
}

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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceRow {
    /// Its line; 0 if it has no line of its own.
    pub line: u64,
    /// Reads and writes.
    pub data: [OpRow; 2],
    /// All I/O, where the source does not tell reads and writes apart: their rates in `data` are 0 then, and their bytes are
    /// there if the source has them apart.
    pub undivided: Option<OpRow>,
    /// Length of the interval; `None` where the source does not tell, and all are equally long.
    pub seconds: Option<f64>,
    /// Whether a benchmark was asked for a rate, and not for as much as the device gives.
    pub is_limited: bool,
    /// Discards and flushes, for the check by Little's law.
    pub others: [OpRow; 2],
    /// Mean latency of reads and writes together, ms; `None` where only [`OpRow::ms`] is known.
    pub ms: Option<Printed>,
    /// The span of the latencies.
    pub span: Span,
    /// Mean time before issue, ms, if it is separate.
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

/// A series that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its tool.
    pub tool: SeriesTool,
    /// Reports in order.
    pub reports: Vec<Report>,
    /// The first line that could not be understood.
    pub damage: Option<Damage>,
    /// How many could not.
    pub damaged: u64,
    /// Whether the beginning of the tool's output is there.
    pub has_banner: bool,
    /// Whether the command can be seen, and had the flag that leaves out the first report (`-y`).
    pub left_out_first: bool,
    /// Intervals of a warm-up that were left out, since the tool's own averages leave them out.
    pub warm_up_left_out: u64,
}

impl Series {
    fn new(tool: SeriesTool) -> Series {
        Series {
            tool,
            reports: Vec::new(),
            damage: None,
            damaged: 0,
            has_banner: false,
            left_out_first: false,
            warm_up_left_out: 0,
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

    /// The row of a device in each report; `None` if it has no line, because it had no I/O. If that line may be the
    /// unreadable one, the report is left out, and so are reports of a benchmark's other runs.
    pub fn rows_of<'a>(&'a self, device: &'a str) -> impl Iterator<Item = Option<&'a DeviceRow>> {
        self.reports.iter().filter_map(move |report| {
            let row = report
                .rows
                .iter()
                .find(|(name, _)| name == device)
                .map(|(_, row)| row);
            let is_idle = !report.is_damaged && !self.tool.is_benchmark();
            (row.is_some() || is_idle).then_some(row)
        })
    }
}

impl DeviceRow {
    /// Reads and writes a second; all I/O where the source does not tell them apart.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        match self.undivided {
            Some(all) => all.per_second.value,
            None => self.data.iter().map(|op| op.per_second.value).sum(),
        }
    }

    /// Bytes a second of these I/O; `None` where a column lacks.
    #[must_use]
    pub fn bytes_per_second(&self) -> Option<f64> {
        if let Some(bytes) = self.undivided.and_then(|all| all.bytes_per_second) {
            return Some(bytes);
        }
        self.data.iter().map(|op| op.bytes_per_second).sum()
    }

    /// Mean latency of reads and writes, ms: as printed, or that of both by their rates. `None` without I/O, or if a
    /// column is missing.
    #[must_use]
    pub fn data_ms(&self) -> Option<f64> {
        let ios = self.per_second();
        if ios <= 0.0 {
            return None;
        }
        if let Some(ms) = self.ms {
            return Some(ms.value);
        }
        if self.undivided.is_some() {
            return None;
        }
        let busy = self.data.iter().filter(|op| op.per_second.value > 0.0);
        let sum: Option<f64> = busy
            .map(|op| op.ms.map(|ms| ms.value * op.per_second.value))
            .sum();
        sum.map(|sum| sum / ios)
    }

    /// Little's law: the number in flight is the arrival rate times the mean time. Returns the printed number in
    /// flight, the law's result from rates and latencies, and the largest difference by rounding alone. `None` if a
    /// column is missing.
    #[must_use]
    pub fn littles_law(&self) -> Option<LittlesLaw> {
        let in_flight = self.in_flight?;
        let parts: Vec<(Printed, Printed)> = match self.ms {
            Some(ms) => match self.undivided {
                Some(all) => vec![(all.per_second, ms)],
                None => self.data.iter().map(|op| (op.per_second, ms)).collect(),
            },
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

/// This number of bytes is searched for a heading: a page of processors may precede it.
pub const SNIFF_BYTES: usize = 16 * 1024;

/// The shape of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    SysstatJson,
    SadfText,
    SysstatXml,
    SolarisBrief,
    Fio,
    Vdbench,
    Iostat,
}

fn shape(head: &[u8]) -> Option<Shape> {
    let head = &head[..head.len().min(SNIFF_BYTES)];
    let text = String::from_utf8_lossy(head);
    let is = |is_it: bool, shape| is_it.then_some(shape);
    is(json::sniff(head), Shape::SysstatJson)
        .or_else(|| is(fio::sniff(head), Shape::Fio))
        .or_else(|| is(sadf::is_xml(&text), Shape::SysstatXml))
        .or_else(|| is(sadf::sniff(&text), Shape::SadfText))
        .or_else(|| is(text::sniff(&text), Shape::Iostat))
        .or_else(|| is(solaris_brief::sniff(&text), Shape::SolarisBrief))
        .or_else(|| is(vdbench::sniff(&text), Shape::Vdbench))
}

/// Whether bytes begin like an interval series.
#[must_use]
pub fn sniff(head: &[u8]) -> bool {
    shape(head).is_some()
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
    let text = || String::from_utf8_lossy(bytes);
    let series = match shape(bytes) {
        Some(Shape::SysstatJson) => json::read(bytes).map_err(malformed)?,
        Some(Shape::Fio) => fio::read(bytes).map_err(malformed)?,
        Some(Shape::SadfText) => sadf::read(&text()),
        Some(Shape::SysstatXml) => return Err(malformed(sadf::xml_damage())),
        Some(Shape::SolarisBrief) => solaris_brief::read(&text()),
        Some(Shape::Vdbench) => vdbench::read(&text()),
        Some(Shape::Iostat) | None => text::read(&text()),
    };
    if series.reports.iter().all(|report| report.rows.is_empty()) {
        let nothing = Damage {
            place: Place::Line(1),
            found: shown(bytes),
            expected:
                "rows of devices below a heading of iostat, sar or Vdbench, or results of fio"
                    .to_owned(),
        };
        return Err(malformed(series.damage.unwrap_or(nothing)));
    }
    Ok(series)
}
