//! `plumb history changes`: the courses of devices, judged.

use plumb_diagnose::course::{Course, CourseWindow};
use plumb_diagnose::{Severity, Target, course};
use plumb_history::{GlanceRow, Reader, SeriesFacts, Span, Tier};
use plumb_model::facts::{HostChange, HostChangeKind};
use plumb_model::{Finding, RuleId};
use plumb_report::history::HistoryChanges;

use super::span::{self, DeviceSpan, time_words};
use super::{failed, seconds};
use crate::cli::HistoryFilter;
use crate::exit::Exit;
use crate::failure::Failure;

/// Days with I/O from which on days are judged; before that hours are.
const DAYS_MIN: usize = 14;

/// The changes of all devices.
pub struct FoundChanges {
    /// Each device.
    pub devices: Vec<HistoryChanges>,
}

impl FoundChanges {
    /// The status: a warning, no rule that could judge any device, or neither.
    pub fn exit(&self) -> Exit {
        let mut findings = self.devices.iter().flat_map(|device| &device.findings);
        let is_judged =
            |device: &HistoryChanges| !device.silent.is_empty() || !device.findings.is_empty();
        if findings.any(|finding| finding.severity >= Severity::Warning) {
            Exit::Findings
        } else if self.devices.iter().any(is_judged) {
            Exit::Clean
        } else {
            Exit::Unknown
        }
    }
}

/// Searches the history of a device, or of all.
///
/// # Errors
/// When the history cannot be read, or has no such device.
pub fn search(wanted: &HistoryFilter) -> Result<FoundChanges, Failure> {
    let span = wanted.span.as_deref().map(DeviceSpan::parse).transpose();
    let span = span.map_err(Failure::usage)?;
    let reader = span::open(&wanted.store.folder.state_dir)?;
    let series = match &span {
        Some(span) => span.series(&reader)?,
        None => reader.series().map_err(failed)?,
    };
    let host = host_changes(&reader)?;
    let mut devices = Vec::new();
    for one in &series {
        let time = match (&span, one.span) {
            (Some(span), Some(known)) => span.within(known),
            _ => span::EVER,
        };
        devices.push(changes(&reader, one, time, &host)?);
    }
    devices.sort_by(|one, other| plumb_geometry::natural(&one.device, &other.device));
    Ok(FoundChanges { devices })
}

fn changes(
    reader: &Reader,
    series: &SeriesFacts,
    time: Span,
    host: &[HostChange],
) -> Result<HistoryChanges, Failure> {
    let rows = |tier| {
        let rows = reader.glance(tier, time, Some(series.number));
        rows.map_err(failed)
    };
    let days = rows(Tier::Day)?;
    let (tier, rows) = match days.len() >= DAYS_MIN {
        true => (Tier::Day, days),
        false => (Tier::Hour, rows(Tier::Hour)?),
    };
    let mut target = Target::seen(series.name(), None, series.layer);
    target.identity = (series.identity != series.name()).then(|| series.identity.clone());
    let course = Course {
        target,
        window_seconds: seconds(tier),
        windows: rows.iter().map(window).collect(),
        host: host.to_vec(),
    };
    let found = course::diagnose(&course);
    Ok(HistoryChanges {
        device: series.name().to_owned(),
        identity: series.identity.clone(),
        layer: series.layer.word(),
        window_seconds: course.window_seconds,
        windows: course.windows.len() as u64,
        from: course
            .windows
            .first()
            .map(|window| time_words(window.from_ns)),
        findings: found.findings,
        unknown: found.unknown,
        silent: found.silent,
    })
}

fn window(row: &GlanceRow) -> CourseWindow {
    CourseWindow {
        from_ns: row.window.span().from_ns,
        reads: row.glance.reads,
        writes: row.glance.writes,
        misaligned: row.glance.off_4k,
        median_ns: row.glance.p50_ns,
        lengths: row.glance.mix,
    }
}

/// Changes of the host that the agent has seen, in order. A finding of a newer version is left out.
fn host_changes(reader: &Reader) -> Result<Vec<HostChange>, Failure> {
    let mut found = Vec::new();
    for interval in reader.findings().map_err(failed)? {
        let (Some(rule), Ok(finding)) = (
            RuleId::from_name(&interval.key.rule),
            serde_json::from_str::<Finding>(&interval.facts),
        ) else {
            continue;
        };
        let device = finding.target.device;
        found.push(HostChange {
            at_ns: interval.appeared_ns,
            is: HostChangeKind::Appeared {
                rule,
                device: device.clone(),
            },
        });
        found.extend(interval.went_ns.map(|at_ns| HostChange {
            at_ns,
            is: HostChangeKind::Gone { rule, device },
        }));
    }
    found.sort_by_key(|change| change.at_ns);
    Ok(found)
}
