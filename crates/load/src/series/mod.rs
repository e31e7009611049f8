//! The runs of a parameter file or a study, in any language: one after the other, each of workloads on targets.
//!
//! - [`Series`] and its parts: pure, sizes in bytes, shares and percentages as they were written
//! - [`Targets`]: its targets, opened
//! - [`plan()`]: a run as the engine takes it
//! - [`Average`]: the result of a run, without its cold start
//! - [`offsets`], [`judge`]: the verdict of a sweep of offsets on the grid below

use std::path::PathBuf;
use std::time::Duration;

use crate::job_file::FileLine;
use crate::plan::Arrivals;

mod average;
pub mod gather;
mod plan;
mod sweep;
mod targets;

pub use average::Average;
pub use plan::plan;
pub use sweep::{MARGIN, OffsetRun, Penalty, Sweep, SweepVerdict, judge, offsets};
pub use targets::{Needed, SeriesError, Targets};

/// Runs, in the order in which they are made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// At least one where a file was understood.
    pub runs: Vec<Run>,
    /// Notes on the interpretation of the file, for readers of the results.
    pub notes: Vec<String>,
}

/// Everything that goes on at once, for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Name in the file.
    pub name: String,
    /// Differences from runs of the same name, in the file's words: `threads` and `4`.
    pub overrides: Vec<(&'static str, String)>,
    /// Workloads on targets; at least one.
    pub parts: Vec<RunPart>,
    /// I/O a second of all parts together.
    pub rate: Rate,
    /// Arrivals of I/O at a rate, independent of the target; `None`: a slow target holds them up.
    pub arrivals: Option<Arrivals>,
    /// How long it is measured at most; `None` where it ends by itself.
    pub elapsed: Option<Duration>,
    /// Whether each part ends when it has moved as many bytes as it may touch; with a time, after whichever comes first.
    pub is_one_pass: bool,
    /// How often it is reported.
    pub interval: Duration,
    /// How long it goes on before it is measured.
    pub warmup: Duration,
    /// How long nothing is done behind it.
    pub pause: Duration,
    /// The seed, if the same I/O are wanted each time.
    pub seed: Option<u64>,
}

/// I/O a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// As many as the target gives.
    Max,
    /// A number a second.
    PerSecond(f64),
    /// A percentage of the last run without a limit.
    PercentOfMax(f64),
}

impl Rate {
    /// The rate in I/O a second if there is a limit; `last_max` is the rate of the last run without one. Rates from a
    /// percentage are rounded up as Vdbench rounds them: to 100 above 1,000, else to 10.
    #[must_use]
    pub fn limit(self, last_max: Option<f64>) -> Option<f64> {
        match self {
            Rate::Max => None,
            Rate::PerSecond(rate) => Some(rate),
            Rate::PercentOfMax(percent) => {
                let rate = (last_max.unwrap_or(0.0).trunc() * percent.trunc() / 100.0).trunc();
                let step = if rate > 1_000.0 { 100.0 } else { 10.0 };
                Some(((rate / step).ceil() * step).max(step))
            }
        }
    }
}

/// A workload on a target.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPart {
    /// Name of the workload.
    pub workload: String,
    /// Name of the target in the file.
    pub storage: String,
    /// Device or file.
    pub path: PathBuf,
    /// Its position in the file.
    pub place: FileLine,
    /// Independent sources of I/O, each with a place of its own where it is sequential.
    pub streams: u32,
    /// I/O in flight of each.
    pub depth: u32,
    /// Lengths in bytes, with weights.
    pub lengths: Vec<(u64, f64)>,
    /// Reads, in percent of the I/O; the others are writes.
    pub read_percent: u8,
    /// I/O at random starts, in percent; the others begin where the one before ended.
    pub random_percent: u8,
    /// Whether a sequential stream begins at a random place instead of the start of the area.
    pub from_anywhere: bool,
    /// Weight of hot places: the exponent of Zipf's law. `None`: all are alike.
    pub zipf: Option<f64>,
    /// From one start to the next, in place of random ones.
    pub stride: Option<u64>,
    /// The area of the I/O.
    pub area: Area,
    /// Added to every start.
    pub offset: u64,
    /// Random starts are multiples of this, the offset aside. `None`: of the length.
    pub align: Option<u64>,
    /// A small area that takes a part of the I/O, so that a cache answers.
    pub hits: Option<Hits>,
    /// Its part of the run's rate, from 0 to 1.
    pub share: f64,
}

impl RunPart {
    /// Whether it writes.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.read_percent < 100
    }

    /// The longest I/O.
    #[must_use]
    pub fn length_max(&self) -> u64 {
        self.lengths
            .iter()
            .map(|(bytes, _)| *bytes)
            .max()
            .unwrap_or(0)
    }
}

/// The area of I/O on a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Area {
    /// Size of the target that is used; `None`: all.
    pub size: Option<Edge>,
    /// Its start.
    pub from: Edge,
    /// Its end.
    pub to: Edge,
    /// Whether the first block is left alone, which may hold a label.
    pub spares_first: bool,
}

impl Default for Area {
    fn default() -> Area {
        Area {
            size: None,
            from: Edge::Bytes(0),
            to: Edge::Percent(100.0),
            spares_first: false,
        }
    }
}

impl Area {
    /// First byte, and first byte behind the end, on a target of this size: both multiples of `unit`, the longest I/O.
    /// The second is not above the first if nothing is left, and beyond the end if the file asks for that.
    #[must_use]
    pub fn on(&self, target_bytes: u64, unit: u64) -> (u64, u64) {
        let used = self
            .size
            .map_or(target_bytes, |size| size.in_bytes(target_bytes));
        let whole = |bytes: u64| bytes - bytes % unit.max(1);
        let from = whole(self.from.in_bytes(used));
        let from = if self.spares_first && from == 0 {
            unit
        } else {
            from
        };
        (from, whole(self.to.in_bytes(used)))
    }
}

/// A place on a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edge {
    /// Bytes from the beginning.
    Bytes(u64),
    /// Percent of its size.
    Percent(f64),
}

impl Edge {
    /// In bytes on a target of this size.
    #[must_use]
    pub fn in_bytes(self, bytes: u64) -> u64 {
        match self {
            Edge::Bytes(at) => at,
            Edge::Percent(percent) => (bytes as f64 * percent / 100.0) as u64,
        }
    }
}

/// A part of the I/O that goes to a small area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hits {
    /// Its bytes, at the start of the I/O's area.
    pub bytes: u64,
    /// Reads that go there, in percent.
    pub read_percent: u8,
    /// Writes that go there, in percent.
    pub write_percent: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounding as Vdbench documents it for its curves.
    #[test]
    fn percentages_of_a_rate_are_rounded_up() {
        for (percent, max, expected) in [
            (50.0, 2_345.0, 1_200.0),
            (10.0, 20_050.5, 2_100.0),
            (70.0, 1_234.9, 870.0),
            (10.0, 99.0, 10.0),
        ] {
            assert_eq!(
                Rate::PercentOfMax(percent).limit(Some(max)),
                Some(expected),
                "{percent} % of {max}"
            );
        }
        assert_eq!(Rate::Max.limit(Some(5.0)), None);
        assert_eq!(Rate::PerSecond(7.5).limit(None), Some(7.5));
    }

    #[test]
    fn areas_are_whole_multiples_of_the_longest_io() {
        let all = Area {
            spares_first: true,
            ..Area::default()
        };
        assert_eq!(all.on(1 << 20, 4096), (4096, 1 << 20));
        assert_eq!(all.on((1 << 20) + 100, 4096), (4096, 1 << 20));
        let part = Area {
            from: Edge::Percent(10.0),
            to: Edge::Percent(20.0),
            ..Area::default()
        };
        assert_eq!(part.on(1 << 20, 4096), (102_400, 208_896));
        let sized = Area {
            size: Some(Edge::Bytes(65_536)),
            from: Edge::Bytes(8_192),
            ..Area::default()
        };
        assert_eq!(sized.on(1 << 20, 4096), (8_192, 65_536));
        assert_eq!(
            sized.on(10_000, 4096),
            (8_192, 65_536),
            "the target is too small, and the engine says so"
        );
        let late = Area {
            from: Edge::Bytes(8_192),
            ..Area::default()
        };
        assert_eq!(late.on(10_000, 4096), (8_192, 8_192), "nothing is left");
    }
}
