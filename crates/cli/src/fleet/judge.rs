//! Judges the hosts of a fleet as `plumb analyze` does, several at a time, and passes the verdicts on in the order of the hosts.

use std::collections::{BTreeMap, BTreeSet};

use plumb_diagnose::analysis::GridFit;
use plumb_diagnose::{Analysis, GridSource, Questions, analyze, diagnose};
use plumb_fleet::answer::{FleetUnknown, RankedDevice};
use plumb_fleet::{ClassMeans, HostFacts, HostIo, HostParts};
use plumb_geometry::Bounds;
use plumb_model::{Finding, RuleId, Severity};
use plumb_profile::Profile;
use plumb_profile::fit::Unknown;
use plumb_profile::latency_fit::LatencyByFit;
use plumb_profile::profile::Losses;
use plumb_trace::Layer;

use super::joined;
use super::pass::{HostAge, newest_ns};
use crate::failure::Failure;
use crate::side_by_side;

/// Hosts for each processor that are judged between two waits. Their profiles are in memory together.
const BATCH: usize = 4;

/// A host to be judged.
pub enum Unjudged {
    /// Its profiles.
    Whole(Box<HostIo>, HostAge),
    /// The same, packed in fleet files.
    Packed(HostParts),
}

/// Everything that a report needs of a host.
pub struct HostVerdict {
    /// Whether it is compared with the report, and no part of it.
    pub age: HostAge,
    /// Its inputs.
    pub facts: HostFacts,
    /// Its devices.
    pub devices: Vec<DeviceVerdict>,
    /// Unix time of its newest I/O, ns; `None` without a time of day.
    pub newest_ns: Option<i64>,
}

/// Everything that a report needs of a device.
pub struct DeviceVerdict {
    /// Its name.
    pub device: String,
    /// Layer at which its I/O were seen.
    pub layer: Layer,
    /// I/O.
    pub ios: u64,
    /// The findings.
    pub findings: Vec<Finding>,
    /// Rules whose finding is counted on another device, on which the same layer is, with their severities.
    pub repeated: BTreeMap<RuleId, Severity>,
    /// Rules that could not judge.
    pub unknown: BTreeSet<RuleId>,
    /// Rules that found nothing.
    pub silent: Vec<RuleId>,
    /// Cells wasted in each second.
    pub wasted: Option<Result<RankedDevice, FleetUnknown>>,
    /// Time lost in each second, ns.
    pub lost: Option<Result<RankedDevice, FleetUnknown>>,
    /// Latencies by class.
    pub latencies: ClassMeans,
}

/// Hosts on their way.
pub struct Judge<'a> {
    questions: &'a Questions,
    batch: Vec<Unjudged>,
    size: usize,
    take: &'a mut (dyn FnMut(HostVerdict) + Send),
}

impl<'a> Judge<'a> {
    /// Passes verdicts to `take`.
    pub fn new(
        questions: &'a Questions,
        take: &'a mut (dyn FnMut(HostVerdict) + Send),
    ) -> Judge<'a> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Judge {
            questions,
            batch: Vec::new(),
            size: BATCH * processors,
            take,
        }
    }

    /// Adds a host.
    ///
    /// # Errors
    /// When packed profiles are damaged, or inputs of a host overlap.
    pub fn add(&mut self, host: Unjudged) -> Result<(), Failure> {
        self.batch.push(host);
        match self.batch.len() < self.size {
            true => Ok(()),
            false => self.finish(),
        }
    }

    /// Judges the hosts that wait.
    ///
    /// # Errors
    /// As [`Judge::add`].
    pub fn finish(&mut self) -> Result<(), Failure> {
        let batch: Vec<_> = std::mem::take(&mut self.batch)
            .into_iter()
            .map(|host| std::sync::Mutex::new(Some(host)))
            .collect();
        let verdicts = side_by_side::each(&batch, |host| {
            let host = host.lock().ok().and_then(|mut host| host.take());
            host.map(|host| verdict(host, self.questions)).transpose()
        });
        for verdict in verdicts {
            if let Some(verdict) = verdict? {
                (self.take)(verdict);
            }
        }
        Ok(())
    }
}

fn verdict(host: Unjudged, questions: &Questions) -> Result<HostVerdict, Failure> {
    let (host, age) = match host {
        Unjudged::Whole(host, age) => (*host, age),
        Unjudged::Packed(parts) => (joined(parts)?, HostAge::Now),
    };
    Ok(HostVerdict {
        age,
        ..judge_host(host, questions)
    })
}

fn judge_host(host: HostIo, questions: &Questions) -> HostVerdict {
    let HostIo { facts, profiles } = host;
    // A source does not have the device of its lost events.
    let mut losses = Losses::default();
    profiles
        .iter()
        .for_each(|profile| losses.merge(&profile.losses));
    let newest_ns = newest_ns(&profiles);
    let devices = profiles
        .iter()
        .map(|profile| judge_device(&facts, profile, &losses, questions))
        .collect();
    HostVerdict {
        age: HostAge::Now,
        facts,
        devices,
        newest_ns,
    }
}

fn judge_device(
    facts: &HostFacts,
    profile: &Profile,
    losses: &Losses,
    questions: &Questions,
) -> DeviceVerdict {
    let key = (profile.device.clone(), profile.layer);
    let observed = facts.observed.get(&key).copied().unwrap_or_default();
    let mut analysis = analyze(profile, None, questions);
    analysis.losses = losses.clone();
    // From the first to the last I/O of several recordings there are pauses.
    analysis.span_ns = observed.known_ns();
    analysis.ios_per_second = analysis
        .span_ns
        .map(|ns| analysis.ios as f64 * 1e9 / ns as f64);
    let diagnosis = diagnose(profile, &analysis, questions);
    let mut findings = diagnosis.findings;
    for finding in &mut findings {
        finding.target.host = Some(facts.host.clone());
    }
    let fit = analysis.device().and_then(|place| place.grids.first());
    let ranked = |fit: &GridFit, per_second| RankedDevice {
        host: facts.host.clone(),
        device: profile.device.clone(),
        layer: profile.layer.word(),
        ios: analysis.ios,
        ios_per_second: analysis.ios_per_second,
        grid: fit.grid,
        grid_source: fit.source,
        per_second,
    };
    let wasted = fit.map(|fit| Ok(ranked(fit, wasted(fit, analysis.span_ns)?)));
    let lost = fit.map(|fit| Ok(ranked(fit, lost(fit, &analysis)?)));
    DeviceVerdict {
        device: profile.device.clone(),
        layer: profile.layer,
        ios: analysis.ios,
        findings,
        repeated: BTreeMap::new(),
        unknown: diagnosis.unknown.iter().map(|one| one.rule).collect(),
        silent: diagnosis.silent,
        wasted,
        lost,
        latencies: ClassMeans::of(profile),
    }
}

/// The cells that the I/O touch beyond those that their lengths need, each second. An I/O touches at most one more than it needs, so
/// this is the number of split I/O.
fn wasted(fit: &GridFit, span_ns: Option<u64>) -> Result<Bounds<f64>, FleetUnknown> {
    let split = tally(fit)?.split;
    if fit.source == GridSource::Assumed && split.high == 0 {
        return Err(FleetUnknown::NoGrid);
    }
    let seconds = span_ns.ok_or(FleetUnknown::NoTime)? as f64 / 1e9;
    Ok(split.map(|ios| ios as f64 / seconds))
}

/// The time that misaligned I/O take longer than like ones on the grid, ns each second.
fn lost(fit: &GridFit, analysis: &Analysis) -> Result<Bounds<f64>, FleetUnknown> {
    let misaligned = tally(fit)?.misaligned.map(|ios| ios as f64);
    if misaligned.high == 0.0 {
        return match fit.source {
            GridSource::Assumed => Err(FleetUnknown::NoGrid),
            _ => Ok(Bounds::exact(0.0)),
        };
    }
    let Some(LatencyByFit::Difference {
        low_ns, high_ns, ..
    }) = fit.latency
    else {
        return Err(match analysis.timed {
            0 => FleetUnknown::NoLatency,
            _ => FleetUnknown::NotComparable,
        });
    };
    let seconds = analysis.span_ns.ok_or(FleetUnknown::NoTime)? as f64 / 1e9;
    let times = |ns: f64, fewest: f64, most: f64| ns * if ns < 0.0 { most } else { fewest };
    Ok(Bounds {
        low: times(low_ns, misaligned.low, misaligned.high) / seconds,
        high: times(high_ns, misaligned.high, misaligned.low) / seconds,
    })
}

fn tally(fit: &GridFit) -> Result<&plumb_profile::FitTally, FleetUnknown> {
    fit.all.as_ref().map_err(|why| match why {
        Unknown::NoIo => FleetUnknown::NoIo,
        _ => FleetUnknown::NotCounted,
    })
}
