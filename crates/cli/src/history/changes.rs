//! `plumb history changes`: the courses of devices, judged.

use std::collections::BTreeMap;

use plumb_diagnose::course::{Course, CourseWindow};
use plumb_diagnose::{Severity, Target, course};
use plumb_geometry::SmallSort;
use plumb_history::{GlanceRow, HostFactRow, Reader, SeriesFacts, Span, Tier};
use plumb_model::facts::{HostChange, HostChangeKind, HostFact, HostFactSource, HostValue};
use plumb_model::result::history::HistoryChanges;
use plumb_model::{Finding, RuleId};
use plumb_quoting::json;

use super::span::{self, DeviceSpan, time_words};
use super::{failed, seconds};
use crate::cli::HistoryFilter;
use crate::exit::Exit;
use crate::failure::Failure;

/// Days with I/O from which on days are judged; before that hours are.
const DAYS_MIN: usize = 14;

/// Time after the begin of a history in which the agent judges the I/O for the first time.
const FIRST_LOOK_NS: i64 = 3_600_000_000_000;

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
    let reader = span::open(&wanted.store.folder.find()?)?;
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
    devices.small_sort_by(|one, other| plumb_geometry::natural(&one.device, &other.device));
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
    // Of a span that began before the oldest hour, hours have a part alone.
    let has_hours = match reader.oldest(Tier::Hour).map_err(failed)? {
        Some(hour_ns) => {
            let begin_ns = series.span.map_or(0, |known| time.common(known).from_ns);
            hour_ns <= begin_ns
                || days
                    .first()
                    .is_none_or(|first| hour_ns < first.window.span().to_ns)
        }
        None => false,
    };
    let (tier, rows) = match days.len() >= DAYS_MIN || !has_hours {
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
        bytes: row.glance.read_bytes.saturating_add(row.glance.write_bytes),
        misaligned: row.glance.off_4k,
        median_ns: row.glance.p50_ns,
        lengths: row.glance.mix,
    }
}

/// Changes of the host that the agent has seen, in order. Those of a newer version are left out.
fn host_changes(reader: &Reader) -> Result<Vec<HostChange>, Failure> {
    let mut found = Vec::new();
    // Findings that the first look at the host shows are older than that.
    let series = reader.series().map_err(failed)?;
    let begins = series.iter().filter_map(|series| series.span);
    let looked_ns = begins.map(|span| span.from_ns).min().unwrap_or(0) + FIRST_LOOK_NS;
    let facts = reader.host_facts().map_err(failed)?;
    let of_survey = |row: &&HostFactRow| {
        json::from_slice::<HostFact>(row.name.as_bytes())
            .is_ok_and(|fact| fact.source() == HostFactSource::Survey)
    };
    let first_survey_ns = facts.iter().find(of_survey).map(|row| row.at_ns);
    for interval in reader.findings().map_err(failed)? {
        let (Some(rule), Ok(finding)) = (
            RuleId::from_name(&interval.key.rule),
            json::from_slice::<Finding>(interval.facts.as_bytes()),
        ) else {
            continue;
        };
        let device = finding.target.device;
        let is_first =
            interval.appeared_ns < looked_ns || Some(interval.appeared_ns) == first_survey_ns;
        if !is_first {
            found.push(HostChange {
                at_ns: interval.appeared_ns,
                is: HostChangeKind::Appeared {
                    rule,
                    device: device.clone(),
                },
            });
        }
        found.extend(interval.went_ns.map(|at_ns| HostChange {
            at_ns,
            is: HostChangeKind::Gone { rule, device },
        }));
    }
    found.extend(fact_changes(&facts));
    found.small_sort_by_key(|change| change.at_ns);
    Ok(found)
}

/// The facts about the host that have another value than before. The first survey, packages and kernel change nothing.
fn fact_changes(rows: &[HostFactRow]) -> Vec<HostChange> {
    let mut last: BTreeMap<HostFact, Option<HostValue>> = BTreeMap::new();
    let (mut first_survey_ns, mut first_packages_ns) = (None, None);
    let mut found = Vec::new();
    for row in rows {
        let Ok(of) = json::from_slice::<HostFact>(row.name.as_bytes()) else {
            continue;
        };
        let after = row
            .value
            .as_deref()
            .map(|value| json::from_slice(value.as_bytes()))
            .transpose();
        let Ok(after) = after else { continue };
        let is_at_first = |first: &mut Option<i64>| *first.get_or_insert(row.at_ns) == row.at_ns;
        let is_first = match of.source() {
            HostFactSource::Kernel => !last.contains_key(&of),
            HostFactSource::Survey => is_at_first(&mut first_survey_ns),
            HostFactSource::Packages => is_at_first(&mut first_packages_ns),
        };
        let before = last.insert(of.clone(), after.clone()).flatten();
        if !is_first && before != after {
            found.push(HostChange {
                at_ns: row.at_ns,
                is: HostChangeKind::Fact { of, before, after },
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at_ns: i64, of: &HostFact, value: Option<&str>) -> HostFactRow {
        let value = value.map(|name| HostValue::Name(name.to_owned()));
        HostFactRow {
            at_ns,
            name: serde_json::to_string(of).expect("words"),
            value: value.map(|value| serde_json::to_string(&value).expect("words")),
        }
    }

    #[test]
    fn the_first_values_are_no_changes() {
        let of_disk = |name: &str| HostFact::Scheduler {
            device: name.to_owned(),
        };
        let (sda, sdb) = (of_disk("sda"), of_disk("sdb"));
        let package = |name: &str| HostFact::Package {
            name: name.to_owned(),
        };
        let unknown = HostFactRow {
            at_ns: 4,
            name: "{\"fact\":\"firmware\"}".to_owned(),
            value: Some("\"7\"".to_owned()),
        };
        let rows = [
            row(1, &HostFact::Kernel, Some("6.1")),
            row(2, &sda, Some("none")),
            row(4, &HostFact::Kernel, Some("6.12")),
            unknown,
            row(5, &sdb, Some("bfq")),
            row(6, &sda, None),
            row(7, &package("bash"), Some("5.2")),
            row(7, &package("dash"), Some("0.5")),
            row(8, &package("bash"), Some("5.3")),
        ];
        let name = |name: &str| Some(HostValue::Name(name.to_owned()));
        let change = |at_ns, of: &HostFact, before, after| HostChange {
            at_ns,
            is: HostChangeKind::Fact {
                of: of.clone(),
                before,
                after,
            },
        };
        assert_eq!(
            fact_changes(&rows),
            [
                change(4, &HostFact::Kernel, name("6.1"), name("6.12")),
                change(5, &sdb, None, name("bfq")),
                change(6, &sda, name("none"), None),
                change(8, &package("bash"), name("5.2"), name("5.3")),
            ]
        );
    }
}
