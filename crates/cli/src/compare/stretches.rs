//! Percentiles of latencies in stretches of time, by reading a trace once more: profiles keep histograms of the whole alone, and
//! how surely a percentile is known only stretches tell.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_diagnose::compare::{Observed, SHARES, Stretch};
use plumb_profile::Profile;
use plumb_trace::input::Input;
use plumb_trace::open::{self, Piece};
use plumb_trace::reader::Columns;
use plumb_trace::{Batch, Fill, Layer, Op, ReadOptions};

use crate::cli::Selection;
use crate::failure::Failure;
use crate::inputs;
use crate::select::Filter;
use crate::status::Meter;

/// Stretches that a trace is taken apart into: as many as windows are put together into.
const STRETCHES: usize = 20;

/// Of more devices nobody looks at percentiles, and each takes some hundred kilobytes.
const DEVICES_MAX: usize = 64;

/// Latencies in steps of a 128th to a 256th: those of a device are a few hundred.
#[derive(Clone, Debug, Default)]
struct Times(BTreeMap<u32, u64>);

impl Times {
    fn add(&mut self, ns: u64) {
        // Eight binary digits, and how many follow.
        let follow = (64 - ns.leading_zeros()).saturating_sub(8);
        *self
            .0
            .entry(follow << 8 | (ns >> follow) as u32)
            .or_default() += 1;
    }

    fn merge(&mut self, others: &Times) {
        others
            .0
            .iter()
            .for_each(|(key, ios)| *self.0.entry(*key).or_default() += ios);
    }

    fn ios(&self) -> u64 {
        self.0.values().sum()
    }

    /// The middle of the step in which a share of the I/O is reached; 0 without any.
    fn percentile(&self, share: f64) -> f64 {
        let wanted = (self.ios() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let step = self.0.iter().find(|(_, ios)| {
            seen += **ios;
            seen >= wanted
        });
        step.map_or(0.0, |(key, _)| {
            let (digits, follow) = (f64::from(key & 0xff), key >> 8);
            let middle = if follow > 0 { 0.5 } else { 0.0 };
            (digits + middle) * 2f64.powi(follow as i32)
        })
    }

    fn stretch(&self) -> Option<Stretch> {
        let ios = self.ios();
        (ios > 0).then(|| Stretch {
            ios,
            ns: SHARES.map(|share| self.percentile(share)),
        })
    }
}

/// Latencies of a device over the time that its windows are whole.
#[derive(Debug)]
struct LatencyCourse {
    start_ns: i64,
    len_ns: i64,
    /// Of reads and of writes.
    times: [Vec<Times>; 2],
    /// Those at both ends, which were recorded only in part.
    ends: [Times; 2],
}

impl LatencyCourse {
    fn new(profile: &Profile) -> Option<LatencyCourse> {
        let timeline = &profile.timeline;
        let mut starts = timeline.iter().map(|(start_ns, _)| start_ns);
        let (first, last) = (starts.next()?, starts.next_back()?);
        let start_ns = first.checked_add_unsigned(timeline.width_ns())?;
        let len_ns = last.checked_sub(start_ns).filter(|len_ns| *len_ns > 0)?;
        let times = [(); 2].map(|()| vec![Times::default(); STRETCHES]);
        Some(LatencyCourse {
            start_ns,
            len_ns,
            times,
            ends: Default::default(),
        })
    }

    fn add(&mut self, op: usize, time_ns: i64, ns: u64) {
        let since = i128::from(time_ns) - i128::from(self.start_ns);
        let at = since * STRETCHES as i128 / i128::from(self.len_ns);
        let stretch = usize::try_from(at).ok().filter(|_| since >= 0);
        let times = stretch.and_then(|at| self.times[op].get_mut(at));
        times.unwrap_or(&mut self.ends[op]).add(ns);
    }

    /// Percentiles of reads and of writes.
    fn percentiles(self) -> Told {
        let both = [0, 1].map(|op| {
            let mut whole = self.ends[op].clone();
            self.times[op].iter().for_each(|times| whole.merge(times));
            let stretches: Vec<Stretch> =
                self.times[op].iter().filter_map(Times::stretch).collect();
            (whole.stretch(), stretches)
        });
        Told(both)
    }
}

/// Percentiles of the whole and of stretches, of reads and of writes.
#[derive(Debug)]
pub struct Told([(Option<Stretch>, Vec<Stretch>); 2]);

impl Told {
    /// Puts them in the place of those of the profile, which are known to a sixteenth.
    pub fn put(&self, observed: &mut Observed) {
        for (op, (whole, stretches)) in self.0.iter().enumerate() {
            if let (Some(quantiles), Some(whole)) = (&mut observed.quantiles[op], whole) {
                let [p50_ns, p90_ns, p99_ns] = whole.ns.map(|ns| ns.round() as u64);
                (quantiles.p50_ns, quantiles.p90_ns, quantiles.p99_ns) = (p50_ns, p90_ns, p99_ns);
                observed.stretches[op] = stretches.clone();
            }
        }
    }
}

/// Reads a trace again for the devices of these profiles. Inputs without single I/O, or that cannot be read twice, give
/// nothing.
///
/// # Errors
/// When it cannot be read any more.
pub fn read_percentiles<'p>(
    path: &Path,
    selection: &Selection,
    profiles: impl Iterator<Item = &'p Profile>,
) -> Result<BTreeMap<String, Told>, Failure> {
    let named = |profile: &Profile| {
        Some((
            (profile.device.clone(), profile.layer),
            LatencyCourse::new(profile)?,
        ))
    };
    let mut courses: Courses = profiles.take(DEVICES_MAX).filter_map(named).collect();
    if courses.is_empty() || !(path.is_file() || path.is_dir()) {
        return Ok(BTreeMap::new());
    }
    let progress = Arc::default();
    let _meter = Meter::of_reading(&progress);
    let columns = Columns {
        queue_ns: false,
        comm: false,
        ..Columns::PROFILE
    };
    let options = ReadOptions {
        columns,
        progress: Some(progress),
        ..selection.read_options()
    };
    for piece in open::pieces(&[PathBuf::from(path)]) {
        if !add_piece(&piece, selection, &options, &mut courses)? {
            return Ok(BTreeMap::new());
        }
    }
    Ok(courses
        .into_iter()
        .map(|((device, _), course)| (device, course.percentiles()))
        .collect())
}

type Courses = BTreeMap<(String, Layer), LatencyCourse>;

/// Whether the piece holds single I/O.
fn add_piece(
    piece: &Piece,
    selection: &Selection,
    options: &ReadOptions,
    courses: &mut Courses,
) -> Result<bool, Failure> {
    let failed = |error: plumb_trace::Error| Failure::failed(&error);
    if piece.files.is_empty() && inputs::is_profile(&mut Input::open(&piece.path).map_err(failed)?)?
    {
        return Ok(false);
    }
    let mut reader = open::open(piece, options).map_err(failed)?;
    let mut filter = Filter::new(selection);
    let mut batch = Batch::default();
    loop {
        match reader.fill(&mut batch).map_err(failed)? {
            Fill::Events => {
                filter
                    .apply(&mut batch, reader.info())
                    .map_err(|error| Failure::failed(&error))?;
                add_events(&batch, courses);
            }
            Fill::End => return Ok(true),
            _ => return Ok(false),
        }
    }
}

fn add_events(batch: &Batch, courses: &mut Courses) {
    let names = batch.names.devices();
    let mut last = None;
    for row in 0..batch.len() {
        let op = match batch.op[row] {
            Op::Read => 0,
            Op::Write => 1,
            _ => continue,
        };
        // The column is absent if no latency is known.
        let known = batch.device_ns.get(row).copied();
        let Some(ns) = known.and_then(|ns| u64::try_from(ns).ok()) else {
            continue;
        };
        let of = (batch.device[row], batch.layer[row]);
        // Neighbours are mostly of one device.
        if last.as_ref().is_none_or(|(known, _)| *known != of) {
            let name = names
                .get(of.0 as usize)
                .map(|device| device.name.clone())
                .unwrap_or_default();
            last = Some((of, (name, of.1)));
        }
        let course = last.as_ref().and_then(|(_, key)| courses.get_mut(key));
        if let Some(course) = course {
            course.add(op, batch.time_ns[row], ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_a_hundredth() {
        let mut times = Times::default();
        (1..=100_000u64).rev().for_each(|ns| times.add(ns * 10));
        assert_eq!(times.ios(), 100_000);
        for (share, expected) in [
            (0.5, 500_000.0),
            (0.9, 900_000.0),
            (0.99, 990_000.0),
            (0.000_01, 10.0),
        ] {
            let found = times.percentile(share);
            assert!(
                (found / expected - 1.0).abs() < 1.0 / 128.0,
                "{share}: {found}, expected {expected}"
            );
        }
        let mut small = Times::default();
        [0, 7, 255].into_iter().for_each(|ns| small.add(ns));
        assert_eq!(
            [0.3, 0.6, 1.0].map(|share| small.percentile(share)),
            [0.0, 7.0, 255.0]
        );
        times.merge(&small);
        times.add(u64::MAX);
        assert_eq!(times.ios(), 100_004);
        assert!((times.percentile(1.0) / u64::MAX as f64 - 1.0).abs() < 0.01);
    }

    #[test]
    fn ends_are_in_the_whole_alone() {
        let mut course = LatencyCourse {
            start_ns: 1000,
            len_ns: 2000,
            times: [(); 2].map(|()| vec![Times::default(); STRETCHES]),
            ends: Default::default(),
        };
        for time_ns in [i64::MIN, 999, 1000, 1099, 1100, 2999, 3000, i64::MAX] {
            course.add(0, time_ns, 50);
        }
        let Told([(whole, stretches), (no_writes, none)]) = course.percentiles();
        assert_eq!(
            whole.map(|whole| (whole.ios, whole.ns)),
            Some((8, [50.0; 3]))
        );
        assert_eq!(
            stretches
                .iter()
                .map(|stretch| stretch.ios)
                .collect::<Vec<_>>(),
            [2, 1, 1]
        );
        assert_eq!((no_writes, none.len()), (None, 0));
    }
}
