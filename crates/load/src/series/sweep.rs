//! A sweep of offsets: runs that differ only in the offset added to each start, and the meaning of their rates for the
//! grid below.
//!
//! A grid shows as two groups of offsets, fast and slow ones, with a gap between them that is wide compared with the
//! spread within each. The fast offsets have to be exactly those on one grid that divides the distance between starts:
//! a coarser grid treats all these starts alike. Everything else is inconclusive, never a grid.

use plumb_stats::{Interval, Level, ratio_of_means};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::{Rate, Run, RunPart, Series};

/// A difference up to this share is none that anybody would move data for.
pub const MARGIN: f64 = 0.03;
/// The gap between fast and slow offsets is wider than the spread within either by this factor, as ratios. Rates of one
/// offset, measured one after the other, spread by some percent on a busy host; two groups that overlap are none.
const GAP_OVER_SPREAD: f64 = 3.0;
const SECTOR: u64 = 512;

/// Runs of a series that make a sweep: all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The offset of each run, in the order of the series.
    pub offsets: Vec<u64>,
    /// Starts are multiples of this, the offset aside.
    pub unit: u64,
}

/// The result of one run of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct OffsetRun {
    /// Added to each start.
    pub offset: u64,
    /// I/O a second, interval by interval, without the first.
    pub rates: Vec<f64>,
}

impl OffsetRun {
    /// The mean rate, I/O a second; 0 without an interval.
    #[must_use]
    pub fn ios_per_second(&self) -> f64 {
        self.rates.iter().sum::<f64>() / self.rates.len().max(1) as f64
    }
}

/// A document has the mean rate and the number of intervals.
impl Serialize for OffsetRun {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("OffsetRun", 3)?;
        fields.serialize_field("offset_bytes", &self.offset)?;
        fields.serialize_field("ios_per_second", &self.ios_per_second())?;
        fields.serialize_field("intervals", &self.rates.len())?;
        fields.end()
    }
}

/// The verdict of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub enum SweepVerdict {
    /// Fast offsets are those on one grid.
    Grid {
        /// The finest grid that explains the rates.
        granularity: u64,
        /// The coarsest one; another than the finest where offsets that would tell them apart were not measured.
        granularity_max: u64,
        /// Of the grid: 0 ≤ offset < `granularity_max`.
        offset: u64,
        /// The cost of a misaligned I/O.
        penalty: Penalty,
    },
    /// The slowest offset is within [`MARGIN`] of the fastest.
    NoDifference {
        /// Fastest by slowest.
        ratio: Interval<[usize; 2]>,
    },
    /// Neither.
    Inconclusive {
        /// Why.
        why: String,
    },
}

/// A document has a field for each verdict beside its word, and null in those of the other verdicts.
impl Serialize for SweepVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (word, grid, penalty, difference, why) = match self {
            SweepVerdict::Grid {
                granularity,
                granularity_max,
                offset,
                penalty,
            } => {
                let grid = SweepGrid {
                    granularity_bytes: *granularity,
                    granularity_bytes_max: *granularity_max,
                    offset_bytes: *offset,
                };
                ("grid", Some(grid), Some(&penalty.ratio), None, None)
            }
            SweepVerdict::NoDifference { ratio } => {
                ("no-difference", None, None, Some(ratio), None)
            }
            SweepVerdict::Inconclusive { why } => ("inconclusive", None, None, None, Some(why)),
        };
        let mut fields = serializer.serialize_struct("SweepVerdict", 5)?;
        fields.serialize_field("verdict", word)?;
        fields.serialize_field("grid", &grid)?;
        fields.serialize_field("penalty", &penalty.map(SweepRatio::new))?;
        fields.serialize_field("difference", &difference.map(SweepRatio::new))?;
        fields.serialize_field("why", &why)?;
        fields.end()
    }
}

/// The grid of a verdict in a document.
#[derive(serde::Serialize)]
struct SweepGrid {
    granularity_bytes: u64,
    granularity_bytes_max: u64,
    offset_bytes: u64,
}

/// A ratio of rates in a document: observations of the rate above the line come first.
#[derive(serde::Serialize)]
struct SweepRatio {
    estimate: f64,
    low: f64,
    high: f64,
    level: f64,
    n: [usize; 2],
}

impl SweepRatio {
    fn new(ratio: &Interval<[usize; 2]>) -> SweepRatio {
        let [below, above] = ratio.n;
        SweepRatio {
            estimate: ratio.estimate,
            low: ratio.low,
            high: ratio.high,
            level: ratio.level.value(),
            n: [above, below],
        }
    }
}

/// Rate of I/O that fit, divided by that of those that do not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalty {
    /// With the interval around it; observations of misses and of hits.
    pub ratio: Interval<[usize; 2]>,
}

/// The sweep that a series is, if its runs differ in nothing but the offset.
#[must_use]
pub fn offsets(series: &Series) -> Option<Sweep> {
    let first = bare(series.runs.first()?)?;
    let all_alike = series
        .runs
        .iter()
        .all(|run| bare(run).as_ref() == Some(&first));
    let offsets: Vec<u64> = series.runs.iter().map(|run| run.parts[0].offset).collect();
    let differ = offsets.iter().any(|offset| *offset != offsets[0]);
    let [(length, _)] = first.lengths[..] else {
        return None;
    };
    let unit = first.stride.or(first.align).unwrap_or(length);
    (all_alike && differ).then_some(Sweep { offsets, unit })
}

/// The only part of a run without a limit, and without the varied offset.
fn bare(run: &Run) -> Option<RunPart> {
    let [part] = &run.parts[..] else { return None };
    let place = crate::job_file::FileLine {
        file: "".into(),
        line: 0,
    };
    let names = (String::new(), String::new());
    let is_free = run.rate == Rate::Max && !run.is_one_pass;
    is_free.then(|| RunPart {
        offset: 0,
        place,
        storage: names.0,
        workload: names.1,
        ..part.clone()
    })
}

/// Judges the rates; starts are multiples of `unit`.
#[must_use]
pub fn judge(runs: &[OffsetRun], unit: u64) -> SweepVerdict {
    match weigh(runs, unit) {
        Ok(verdict) => verdict,
        Err(why) => SweepVerdict::Inconclusive { why },
    }
}

/// A run with the median of its rates: a host that was busy for a moment does not move it.
type Weighed<'a> = (f64, &'a OffsetRun);

fn weigh(runs: &[OffsetRun], unit: u64) -> Result<SweepVerdict, String> {
    let mut sorted: Vec<Weighed<'_>> = Vec::new();
    for run in runs {
        let middle = median(&run.rates);
        if !(middle > 0.0 && middle.is_finite()) {
            return Err(format!(
                "no rate at offset {}: too few intervals, or no I/O in them",
                run.offset
            ));
        }
        sorted.push((middle, run));
    }
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let [fastest, .., slowest] = sorted[..] else {
        return Err("one run is no sweep".to_owned());
    };
    let widest = ratio_of_means(&slowest.1.rates, &fastest.1.rates, Level::P99);
    if let Some(ratio) = widest.ok().filter(|ratio| ratio.high < 1.0 + MARGIN) {
        return Ok(SweepVerdict::NoDifference { ratio });
    }
    let gaps = sorted
        .windows(2)
        .map(|pair| pair[0].0 / pair[1].0)
        .enumerate();
    let widest = gaps
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(0, |(at, _)| at);
    let (hits, misses) = sorted.split_at(widest + 1);
    let penalty = penalty(hits, misses)?;
    grid(hits, misses, unit, penalty)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (odd, middle) if odd % 2 == 1 => sorted[middle],
        (_, middle) => sorted[middle - 1].midpoint(sorted[middle]),
    }
}

/// Whether there are two groups, and how far apart they are.
fn penalty(hits: &[Weighed<'_>], misses: &[Weighed<'_>]) -> Result<Penalty, String> {
    let spread = |group: &[Weighed<'_>]| group[0].0 / group[group.len() - 1].0;
    let gap = hits[hits.len() - 1].0 / misses[0].0;
    let within = spread(hits).max(spread(misses));
    if gap.ln() <= GAP_OVER_SPREAD * within.ln() {
        return Err(format!(
            "rates differ by {:.1} % within a supposed group of equal offsets, and by {:.1} % between two groups: \
             measure longer, or without other load",
            (within - 1.0) * 100.0,
            (gap - 1.0) * 100.0
        ));
    }
    let rates = |group: &[Weighed<'_>]| {
        group
            .iter()
            .flat_map(|(_, run)| run.rates.clone())
            .collect::<Vec<f64>>()
    };
    let ratio = ratio_of_means(&rates(misses), &rates(hits), Level::P99);
    let ratio = ratio.map_err(|error| format!("{error}: measure longer"))?;
    if ratio.low <= 1.0 + MARGIN {
        return Err(format!(
            "offsets differ by {:.1} %, but that could be as little as {:.1} %: measure longer",
            (ratio.estimate - 1.0) * 100.0,
            (ratio.low - 1.0).max(0.0) * 100.0
        ));
    }
    Ok(Penalty { ratio })
}

/// The grids with exactly the fast offsets on them.
fn grid(
    hits: &[Weighed<'_>],
    misses: &[Weighed<'_>],
    unit: u64,
    penalty: Penalty,
) -> Result<SweepVerdict, String> {
    let on = |granularity: u64, offset: u64| {
        let is_on = |(_, run): &Weighed<'_>| run.offset % granularity == offset % granularity;
        hits.iter().all(is_on) && !misses.iter().any(is_on)
    };
    let offset = hits[0].1.offset;
    let finer = (2..=unit / SECTOR).map(|sectors| sectors * SECTOR);
    let fitting: Vec<u64> = finer
        .filter(|size| unit.is_multiple_of(*size) && on(*size, offset))
        .collect();
    match fitting[..] {
        [granularity, ..] => {
            let granularity_max = fitting[fitting.len() - 1];
            Ok(SweepVerdict::Grid {
                granularity,
                granularity_max,
                offset: offset % granularity_max,
                penalty,
            })
        }
        [] => {
            let mut fast: Vec<u64> = hits.iter().map(|(_, run)| run.offset).collect();
            fast.sort_unstable();
            let fast: Vec<String> = fast.iter().map(u64::to_string).collect();
            Err(format!(
                "the fast offsets ({}) are not those of any grid that divides {unit} bytes",
                fast.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs with rates around a mean by up to a thousandth, always the same.
    fn runs(means: &[(u64, f64)]) -> Vec<OffsetRun> {
        let rates = |mean: f64| {
            (0..10)
                .map(|at| mean * (1.0 + f64::from(at % 3 - 1) / 1_000.0))
                .collect()
        };
        means
            .iter()
            .map(|&(offset, mean)| OffsetRun {
                offset,
                rates: rates(mean),
            })
            .collect()
    }

    #[track_caller]
    fn inconclusive(means: &[(u64, f64)], expected: &str) {
        match judge(&runs(means), 4096) {
            SweepVerdict::Inconclusive { why } => assert!(why.contains(expected), "{why}"),
            other => panic!("{other:?}"),
        }
    }

    /// Rates that Henk Vandenbergh published with his parameter file, for an SSD on an aligned volume.
    const PUBLISHED: [(u64, f64); 9] = [
        (0, 19223.0),
        (512, 3655.5),
        (1024, 3634.0),
        (1536, 3633.0),
        (2048, 3614.5),
        (2560, 3604.0),
        (3072, 3602.5),
        (3584, 3597.5),
        (4096, 20050.5),
    ];

    #[test]
    fn the_published_sweep_is_aligned() {
        let verdict = judge(&runs(&PUBLISHED), 4096);
        let SweepVerdict::Grid {
            granularity,
            granularity_max,
            offset,
            penalty,
        } = verdict
        else {
            panic!("{verdict:?}")
        };
        assert_eq!((granularity, granularity_max, offset), (4096, 4096, 0));
        let means = (19223.0 + 20050.5) / 2.0 / (25341.0 / 7.0);
        assert!((penalty.ratio.estimate - means).abs() < 1e-3, "{penalty:?}");
        assert!(
            penalty.ratio.low > 5.0 && penalty.ratio.high < 6.0,
            "{penalty:?}"
        );
    }

    #[test]
    fn the_fast_offset_is_that_of_the_grid() {
        for fast in (0..4096).step_by(512) {
            let means: Vec<(u64, f64)> = (0..8)
                .map(|at| (at * 512, if at * 512 == fast { 1_100.0 } else { 1_000.0 }))
                .collect();
            let verdict = judge(&runs(&means), 4096);
            let SweepVerdict::Grid {
                granularity: 4096,
                granularity_max: 4096,
                offset,
                penalty,
            } = verdict
            else {
                panic!("{fast}: {verdict:?}")
            };
            assert_eq!(offset, fast);
            assert!(penalty.ratio.holds(1.1), "{penalty:?}");
        }
        let finer = [
            (0, 900.0),
            (512, 500.0),
            (1024, 901.0),
            (1536, 500.0),
            (2048, 900.0),
        ];
        assert!(matches!(
            judge(&runs(&finer), 4096),
            SweepVerdict::Grid {
                granularity: 1024,
                granularity_max: 1024,
                offset: 0,
                ..
            }
        ));
    }

    #[test]
    fn offsets_that_were_not_measured_leave_the_granularity_open() {
        let two = [(0, 500.0), (512, 1_000.0)];
        let verdict = judge(&runs(&two), 4096);
        assert!(
            matches!(
                verdict,
                SweepVerdict::Grid {
                    granularity: 1024,
                    granularity_max: 4096,
                    offset: 512,
                    ..
                }
            ),
            "{verdict:?}"
        );
    }

    #[test]
    fn equal_rates_are_no_difference() {
        let verdict = judge(&runs(&[(0, 1_000.0), (512, 1_004.0), (1024, 996.0)]), 4096);
        assert!(
            matches!(verdict, SweepVerdict::NoDifference { ratio } if ratio.holds(1_004.0 / 996.0)),
            "{verdict:?}"
        );
    }

    #[test]
    fn noise_without_a_grid_is_inconclusive() {
        inconclusive(
            &[(0, 1_000.0), (512, 940.0), (1024, 880.0), (1536, 820.0)],
            "within a supposed group",
        );
        inconclusive(
            &[
                (0, 2_000.0),
                (512, 1_000.0),
                (1024, 1_000.0),
                (4096, 1_000.0),
            ],
            "are not those of any grid",
        );
        inconclusive(&[(0, 2_000.0), (512, 0.0)], "no rate at offset 512");
        inconclusive(
            &[(0, 1_030.5), (512, 1_000.0), (1024, 1_000.5)],
            "could be as little as",
        );
        inconclusive(&[(0, 1_000.0)], "one run is no sweep");
    }

    /// Rates of a device of known truth on a host with ten times as many programs as processors: a miss costs twice as much
    /// at every offset but 3,072, and two of its runs were held up in the middle.
    #[test]
    fn runs_that_were_held_up_do_not_hide_the_grid() {
        let measured: [(u64, [f64; 5]); 8] = [
            (0, [960.0, 940.0, 1010.0, 935.0, 980.0]),
            (512, [990.0, 700.0, 985.0, 1000.0, 1015.0]),
            (1024, [1040.0, 1110.0, 1080.0, 1060.0, 1200.0]),
            (1536, [1000.0, 1010.0, 960.0, 985.0, 970.0]),
            (2048, [1000.0, 0.0, 980.0, 0.0, 1010.0]),
            (2560, [1040.0, 1060.0, 1030.0, 1010.0, 1043.0]),
            (3072, [2010.0, 2040.0, 1990.0, 2000.0, 2020.0]),
            (3584, [0.0, 1118.5, 1110.5, 1000.0, 2113.9]),
        ];
        let runs = measured.map(|(offset, rates)| OffsetRun {
            offset,
            rates: rates.to_vec(),
        });
        let verdict = judge(&runs, 4096);
        let SweepVerdict::Grid {
            granularity: 4096,
            offset: 3072,
            penalty,
            ..
        } = verdict
        else {
            panic!("{verdict:?}")
        };
        assert!(penalty.ratio.holds(2.0), "{penalty:?}");
    }

    /// A burst of one run must not make a grid where the same offset comes again.
    #[test]
    fn one_fast_run_of_two_at_an_offset_is_no_grid() {
        let means = [(0, 5_000.0), (512, 1_000.0), (1024, 1_001.0), (0, 1_000.0)];
        inconclusive(&means, "are not those of any grid");
    }
}
