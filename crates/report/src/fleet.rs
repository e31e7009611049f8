//! The answer of `plumb fleet report`: the devices of many hosts by wasted I/O and by lost time, the findings by rule, and their groups.

use std::cmp::Ordering;

use plumb_diagnose::GridSource;
use plumb_geometry::{Bounds, Grid, SmallSort, plural};
use plumb_model::{Finding, RuleId, Severity};
use plumb_quoting::visible;
use serde::Serialize;

use crate::brief;
use crate::format::{count, digits, ns, signed_ns};
use crate::json::{self, Document};
use crate::run::Run;
use crate::text::Paper;
use crate::text::page::Page;
use crate::verdict::{Outcome, Verdict, WhyUnknown, Word, is_problem};

mod changes;
mod exports;
mod groups;

pub use changes::{
    FleetChange, FleetChangeList, FleetChanges, FleetHostList, FleetSilence, SilentHost,
    WasteChange,
};
pub use exports::{csv, html, openmetrics};
pub use groups::{
    FleetAttribute, FleetCause, FleetGroup, FleetHost, FleetOutlier, FleetOutliers, FleetRemedy,
    FleetRest, RatioWithin,
};

/// Why a figure of a device is not known. It is never 0 then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FleetUnknown {
    /// No read or write was seen.
    NoIo,
    /// Nothing states a grid, and all I/O are on the assumed 4 KiB.
    NoGrid,
    /// The recording has no times.
    NoTime,
    /// The profile does not have the starts of the I/O on this grid.
    NotCounted,
    /// No latency was recorded.
    NoLatency,
    /// There are not enough like I/O on and off the grid.
    NotComparable,
}

impl FleetUnknown {
    fn words(self) -> &'static str {
        match self {
            FleetUnknown::NoIo => "no read or write was seen",
            FleetUnknown::NoGrid => {
                "all I/O are on 4 KiB, and no larger grid is known: pass one with --grid"
            }
            FleetUnknown::NoTime => "the recordings have no times",
            FleetUnknown::NotCounted => "the profile does not have the starts for this grid",
            FleetUnknown::NoLatency => "no latency was recorded",
            FleetUnknown::NotComparable => "too few I/O on and off the grid are alike",
        }
    }
}

/// A device in a ranking.
#[derive(Clone, Debug, Serialize)]
pub struct RankedDevice {
    /// Its host.
    pub host: String,
    /// Its name on that host.
    pub device: String,
    /// Layer at which its I/O were seen.
    pub layer: &'static str,
    /// I/O.
    pub ios: u64,
    /// I/O each second of the observed time; absent when unknown.
    pub ios_per_second: Option<f64>,
    /// The grid.
    pub grid: Grid,
    /// Its source.
    pub grid_source: GridSource,
    /// The figure that is ranked: cells, or ns, for each second.
    pub per_second: Bounds<f64>,
}

impl RankedDevice {
    /// Whether it comes before another one: by the part of the figure that is sure, then by the rest.
    fn order(&self, other: &RankedDevice) -> Ordering {
        let (mine, theirs) = (self.per_second, other.per_second);
        theirs
            .low
            .total_cmp(&mine.low)
            .then(theirs.high.total_cmp(&mine.high))
            .then_with(|| self.name().cmp(&other.name()))
    }

    fn name(&self) -> (&str, &str, &str) {
        (&self.host, &self.device, self.layer)
    }
}

/// Devices whose figure is unknown.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct UnrankedDevices {
    /// The reason.
    pub reason: FleetUnknown,
    /// How many.
    pub devices: u64,
}

/// Devices by a figure.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FleetRanking {
    /// The first ones.
    pub devices: Vec<RankedDevice>,
    /// Devices that have a place in the ranking; more than it lists.
    pub ranked: u64,
    /// Devices without any waste or loss.
    pub without: u64,
    /// The others, by reason.
    pub unknown: Vec<UnrankedDevices>,
}

impl FleetRanking {
    /// Adds a device. At most `top` of them are kept.
    pub fn add(&mut self, device: Result<RankedDevice, FleetUnknown>, top: usize) {
        let device = match device {
            Ok(device) if device.per_second.high > 0.0 => device,
            Ok(_) => {
                self.without += 1;
                return;
            }
            Err(reason) => return self.leave_out(reason),
        };
        self.ranked += 1;
        let before = |one: &RankedDevice| one.order(&device) == Ordering::Less;
        let at = self.devices.partition_point(before);
        if at < top {
            self.devices.insert(at, device);
            self.devices.truncate(top);
        }
    }

    fn leave_out(&mut self, reason: FleetUnknown) {
        match self.unknown.iter_mut().find(|one| one.reason == reason) {
            Some(known) => known.devices += 1,
            None => self.unknown.push(UnrankedDevices { reason, devices: 1 }),
        }
    }
}

/// The findings of a rule on a fleet.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FleetRule {
    /// The rule.
    pub rule: RuleId,
    /// The worst severity; absent without a finding.
    pub worst: Option<Severity>,
    /// Findings.
    pub findings: u64,
    /// Devices with one, each layer of a device for itself.
    pub devices: u64,
    /// Hosts with one.
    pub hosts: u64,
    /// Devices on which the rule could not judge.
    pub unknown: u64,
}

/// Whether a rule has no finding beyond notes.
fn is_note(rule: &FleetRule) -> bool {
    rule.worst <= Some(Severity::Note)
}

/// Everything that the report prints.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FleetAnswer {
    /// Hosts.
    pub hosts: u64,
    /// Devices, each layer of a device for itself.
    pub devices: u64,
    /// Devices with a finding.
    pub with_findings: u64,
    /// Inputs that were read.
    pub inputs: u64,
    /// Of these, collections of the layers of a host.
    pub collections: u64,
    /// Of these, inputs that were read only in part.
    pub partial: u64,
    /// Inputs that could not be read.
    pub unread: u64,
    /// I/O; those that were seen at two layers count twice.
    pub ios: u64,
    /// Devices by the cells that their I/O touch beyond those that they need, each second.
    pub by_waste: FleetRanking,
    /// Devices by the time that misaligned I/O take longer, ns each second.
    pub by_time_lost: FleetRanking,
    /// Rules that found something or could not judge.
    pub rules: Vec<FleetRule>,
    /// Attributes that explain a finding, by their wasted I/O.
    pub groups: Vec<FleetGroup>,
    /// Findings that no attribute explains.
    pub ungrouped: Vec<FleetRest>,
    /// Devices that are slower than like devices.
    pub outliers: FleetOutliers,
    /// Hosts that stopped reporting.
    pub silence: FleetSilence,
    /// Changes since an earlier file; absent without one.
    pub changes: Option<FleetChanges>,
    /// The worst finding of each rule.
    #[serde(skip)]
    pub examples: Vec<Finding>,
}

impl FleetAnswer {
    /// The counts of a rule.
    pub fn rule(&mut self, rule: RuleId) -> &mut FleetRule {
        let at = self.rules.iter().position(|one| one.rule == rule);
        let at = at.unwrap_or_else(|| {
            self.rules.push(FleetRule {
                rule,
                worst: None,
                findings: 0,
                devices: 0,
                hosts: 0,
                unknown: 0,
            });
            self.rules.len() - 1
        });
        &mut self.rules[at]
    }

    /// Keeps a finding if it is the worst one of its rule.
    pub fn show(&mut self, finding: Finding) {
        let counts = self.rule(finding.rule());
        if counts.worst >= Some(finding.severity) {
            return;
        }
        counts.worst = Some(finding.severity);
        self.examples.retain(|one| one.rule() != finding.rule());
        self.examples.push(finding);
    }

    /// Sorts the rules: the worst first, then those on most devices.
    pub fn settle(&mut self) {
        let key = |one: &FleetRule| std::cmp::Reverse((one.worst, one.devices, one.unknown));
        self.rules
            .small_sort_by(|one, other| key(one).cmp(&key(other)).then(one.rule.cmp(&other.rule)));
        let rules = &self.rules;
        let place = |finding: &Finding| rules.iter().position(|one| one.rule == finding.rule());
        self.examples.small_sort_by_key(place);
        for ranking in [&mut self.by_waste, &mut self.by_time_lost] {
            ranking.unknown.small_sort_by_key(|one| one.reason);
        }
    }

    fn verdict(&self, outcome: Outcome) -> Verdict {
        let devices = plural(self.devices, "device");
        let hosts = plural(self.hosts, "host");
        let findings: u64 = self.rules.iter().map(|rule| rule.findings).sum();
        let found = match findings {
            0 => format!("no finding on {devices} of {hosts}"),
            some => format!(
                "{} on {} of {devices} ({hosts})",
                plural(some, "finding"),
                count(self.with_findings)
            ),
        };
        let (word, why) = match outcome {
            // By default the findings of a fleet leave the exit status at 0, and they are findings all the same.
            Outcome::Clean if findings == 0 => (Word::Ok, None),
            Outcome::Clean if self.rules.iter().all(is_note) => {
                (Word::Ok, Some("all of them are notes".to_owned()))
            }
            Outcome::Findings | Outcome::Clean => match self.examples.iter().all(is_problem) {
                true => (Word::Problem, None),
                false => (Word::Misfit, None),
            },
            Outcome::Unknown(WhyUnknown::ReadInPart) => (Word::Unknown, Some(self.missing())),
            Outcome::Unknown(WhyUnknown::TooFewIos) => {
                (Word::Unknown, Some("no I/O was seen".to_owned()))
            }
            Outcome::Unknown(WhyUnknown::Layout | WhyUnknown::NotWatched) => (
                Word::Unknown,
                Some("not every rule could judge every device".to_owned()),
            ),
        };
        let why = why.map_or_else(String::new, |why| format!("; {why}"));
        Verdict::measured(word, format!("{found}{why}."))
    }

    /// `2 inputs of 2 hosts, 12,581 I/O`.
    fn read(&self) -> String {
        let collections = match self.collections {
            0 => String::new(),
            some => format!(" ({})", plural(some, "collection")),
        };
        let mut read = format!(
            "{}{collections} of {}, {} I/O",
            plural(self.inputs, "input"),
            plural(self.hosts, "host"),
            count(self.ios)
        );
        let missing = self.missing();
        if !missing.is_empty() {
            read += &format!("; {missing}");
        }
        read
    }

    /// `1 input was not read`.
    fn missing(&self) -> String {
        let part = |number: u64, words: &str| {
            (number > 0).then(|| format!("{} {words}", plural(number, "input")))
        };
        let parts = [
            part(self.unread, "not read"),
            part(self.partial, "read only in part"),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// The document.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(
    run: &Run,
    answer: &FleetAnswer,
    outcome: Outcome,
) -> Result<String, serde_json::Error> {
    plumb_quoting::json::pretty(&Document {
        schema: "plumb.fleet/1",
        run,
        inputs: Vec::<()>::new(),
        verdict: Some(answer.verdict(outcome)),
        findings: json::findings(&answer.examples),
        result: answer,
    })
}

/// The same for a person.
#[must_use]
pub fn text(answer: &FleetAnswer, outcome: Outcome, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    let verdict = answer.verdict(outcome);
    brief::first_line(&mut page, &verdict);
    page.wrapped("", "  ", answer.read());
    groups::groups(&mut page, &answer.groups, &answer.ungrouped);
    if let Some(changes) = &answer.changes {
        changes::changes(&mut page, changes);
    }
    changes::silence(&mut page, &answer.silence);
    ranking(
        &mut page,
        "Wasted I/O: cells touched beyond those that the lengths need",
        &answer.by_waste,
        cells,
    );
    ranking(
        &mut page,
        "Time lost: misaligned I/O against like ones on the grid",
        &answer.by_time_lost,
        time,
    );
    groups::outliers(&mut page, &answer.outliers);
    rules(&mut page, answer);
    brief::last_line(&mut page, &verdict);
    page.text
}

fn ranking(
    page: &mut Page,
    title: &str,
    ranking: &FleetRanking,
    figure: fn(Bounds<f64>) -> String,
) {
    page.heading(title);
    for (at, one) in ranking.devices.iter().enumerate() {
        let rate = one.ios_per_second;
        let rate = rate.map_or_else(String::new, |rate| format!(" at {} I/O/s", digits(rate)));
        let words = format!(
            "{} of {} ({} layer): {}; {} I/O{rate}, grid {} ({})",
            visible(&one.device),
            visible(&one.host),
            one.layer,
            figure(one.per_second),
            count(one.ios),
            one.grid,
            one.grid_source.word()
        );
        page.numbered(4, &count(at as u64 + 1), &words);
    }
    let more = ranking.ranked - ranking.devices.len() as u64;
    if more > 0 {
        page.wrapped("  ", "  ", format!("{} with less", plural(more, "device")));
    }
    if ranking.without > 0 {
        page.wrapped(
            "  ",
            "  ",
            format!("{}: none", plural(ranking.without, "device")),
        );
    }
    for one in &ranking.unknown {
        let devices = plural(one.devices, "device");
        page.wrapped(
            "  ",
            "    ",
            format!("{devices}: unknown, {}", one.reason.words()),
        );
    }
}

/// `12.3 cells a second`.
fn cells(per_second: Bounds<f64>) -> String {
    within(per_second.map(digits)) + " cells a second"
}

/// `1.2 ms to 1.4 ms of each second`.
fn time(per_second: Bounds<f64>) -> String {
    let words = match per_second.low < 0.0 {
        true => per_second.map(signed_ns),
        false => per_second.map(|value| ns(value.round() as u64)),
    };
    within(words) + " of each second"
}

fn within(ends: Bounds<String>) -> String {
    if ends.low == ends.high {
        ends.low
    } else {
        format!("{} to {}", ends.low, ends.high)
    }
}

fn rules(page: &mut Page, answer: &FleetAnswer) {
    page.heading("Findings by rule");
    if answer.examples.is_empty() {
        page.line("  none");
    }
    for one in answer.rules.iter().filter(|one| one.findings > 0) {
        let Some(worst) = one.worst else { continue };
        let severity = page.severity(worst);
        let words = format!(
            "{}: {} of {}",
            one.rule.name(),
            plural(one.devices, "device"),
            plural(one.hosts, "host")
        );
        page.wrapped(severity + "  ", "  ", words);
        let is_it = |finding: &&Finding| finding.rule() == one.rule;
        if let Some(finding) = answer.examples.iter().find(is_it) {
            let host = finding.target.host.as_deref().unwrap_or_default();
            let summary = brief::summary(finding);
            page.wrapped(
                "  ",
                "  ",
                format!("Example on {}: {summary}", visible(host)),
            );
        }
        page.line(format!("  Background: plumb explain {}", one.rule.name()));
    }
    for one in answer.rules.iter().filter(|one| one.unknown > 0) {
        let devices = plural(one.unknown, "device");
        let words = format!("{} could not judge {devices}", one.rule.name());
        page.wrapped("  ", "    ", words);
    }
}
