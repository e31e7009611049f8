//! The report of `plumb diagnose`: the problems, worst first, each with the I/O that show it; the I/O of every disk;
//! the stack as a tree; and the parts that were not visible.

use std::collections::{BTreeMap, BTreeSet};

use plumb_diagnose::Analysis;
use plumb_diagnose::analysis::{GridFit, OpSummary};
use plumb_geometry::{SmallSort, plural};
use plumb_model::result::verdict::Verdict;
use plumb_model::result::watch::{IntervalSender, WatchSummary};
use plumb_model::{RuleId, Severity};
use plumb_profile::fit::FitTally;
use plumb_quoting::visible;
use plumb_stack::{Kind, NodeId};

use crate::Report;
use crate::brief;
use crate::check::{self, Check, listed};
use crate::format::{bytes, bytes_within, count, count_within, ns, rate, share_within};
use crate::text::page::Page;
use crate::text::{Detail, FigureColumn, Paper};
use crate::verdict::{self, Grounds};
use crate::words;

mod json;

pub use json::json;

/// Everything that the report shows.
pub struct Diagnose<'a> {
    /// The layers, and the results of the rules.
    pub check: Check<'a>,
    /// The I/O of each device that had some.
    pub io: Report<'a>,
    /// The watch; `None` where there was none.
    pub watched: Option<WatchSummary<'a>>,
}

/// Findings of one rule and severity, for the summary.
pub(crate) struct Alike<'a> {
    pub rule: RuleId,
    pub severity: Severity,
    pub devices: Vec<&'a str>,
    pub nodes: Vec<NodeId>,
    /// Devices and layers of the kinds that they are.
    pub of: usize,
}

impl Diagnose<'_> {
    /// How much was found, in how much, and for how long I/O were watched.
    pub(crate) fn headline(&self) -> String {
        let watched = match &self.watched {
            Some(watched) => format!(
                "; I/O of {} watched for {:.1} s",
                plural(watched.disks.len() as u64, "disk"),
                watched.seconds
            ),
            None => "; I/O not watched".to_owned(),
        };
        check::headline(&self.check) + &watched
    }

    /// The verdict on the layout and the I/O.
    pub(crate) fn verdict(&self) -> Verdict {
        let scope = match &self.watched {
            Some(watched) => format!("{} in {:.0} s", self.check.scope(), watched.seconds),
            None => format!("{}; I/O not watched", self.check.scope()),
        };
        let clauses: Vec<&str> = self
            .check
            .unseen
            .iter()
            .map(|one| one.clause.as_str())
            .collect();
        let unseen = (!clauses.is_empty()).then(|| format!("not visible: {}", clauses.join(", ")));
        let of_layout = self.check.grounds();
        Grounds {
            scope,
            fit: verdict::fit(self.lowest_seen()),
            unknown: unseen.or(of_layout.unknown),
            ..of_layout
        }
        .verdict()
    }

    /// The devices that were seen, without those above another of them: they carry the same I/O.
    fn lowest_seen(&self) -> impl Iterator<Item = &Analysis> {
        let analyses = || self.io.sections.iter().map(|section| section.analysis);
        let seen: BTreeSet<NodeId> = analyses().filter_map(|one| one.target.node).collect();
        analyses().filter(move |one| {
            one.target.node.is_none_or(|id| {
                let below = self.check.stack.under(id);
                below.iter().skip(1).all(|other| !seen.contains(other))
            })
        })
    }

    /// Findings by rule and severity, worst first: on how many of how many devices and layers of such kinds.
    pub(crate) fn alike(&self) -> Vec<Alike<'_>> {
        let mut all: Vec<Alike<'_>> = Vec::new();
        for finding in &self.check.diagnosis.findings {
            let device = finding.target.device.as_str();
            match all
                .iter_mut()
                .find(|one| (one.rule, one.severity) == (finding.rule(), finding.severity))
            {
                Some(one) if one.devices.contains(&device) => {}
                Some(one) => {
                    one.devices.push(device);
                    one.nodes.extend(finding.target.node);
                }
                None => all.push(Alike {
                    rule: finding.rule(),
                    severity: finding.severity,
                    devices: vec![device],
                    nodes: finding.target.node.into_iter().collect(),
                    of: 0,
                }),
            }
        }
        for one in &mut all {
            let kinds: BTreeSet<Kind> = one
                .nodes
                .iter()
                .map(|id| self.check.stack.node(*id).kind)
                .collect();
            let nodes = self
                .check
                .stack
                .nodes()
                .filter(|(id, _)| self.check.wants(*id));
            one.of = nodes
                .filter(|(_, node)| kinds.contains(&node.kind))
                .count()
                .max(one.devices.len());
        }
        all
    }

    /// Whether anything was seen on two devices, one above the other.
    fn is_layered(&self) -> bool {
        let find = |analysis: &Analysis| analysis.target.node;
        let seen: Vec<NodeId> = self
            .io
            .sections
            .iter()
            .filter_map(|section| find(section.analysis))
            .collect();
        seen.iter().any(|id| {
            self.check
                .stack
                .under(*id)
                .iter()
                .any(|below| below != id && seen.contains(below))
        })
    }
}

/// The report as text, for 80 columns.
#[must_use]
pub fn text(diagnose: &Diagnose<'_>, detail: Detail, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    let verdict = diagnose.verdict();
    let check = &diagnose.check;
    if detail == Detail::Brief {
        let findings = &check.diagnosis.findings;
        brief::lines(&mut page, &verdict, check.outcome, findings, |page| {
            check::aside(page, check, "plumb diagnose");
            brief::unseen_lines(page, verdict.word, &check.unseen_that_count());
            if check.is_unseen_alone() {
                brief::accept_unseen_line(page);
            }
        });
        return page.text;
    }
    brief::first_line(&mut page, &verdict);
    page.wrapped("", "  ", diagnose.headline());
    summary(&mut page, diagnose);
    check::findings(&mut page, check, detail);
    check::aside(&mut page, check, "plumb diagnose");
    seen(&mut page, diagnose);
    check::summary(&mut page, check);
    check::tree_lines(&mut page, check);
    if detail == Detail::All {
        check::unknown(&mut page, check);
        check::doubts(&mut page, check);
    }
    check::unseen(&mut page, check.unseen);
    if detail == Detail::All {
        check::sources(&mut page, check);
    }
    brief::last_line(&mut page, &verdict);
    page.text
}

/// A line for each kind of finding: a single finding needs none, because it says the same itself.
fn summary(page: &mut Page, diagnose: &Diagnose<'_>) {
    let alike = diagnose.alike();
    if diagnose.check.diagnosis.findings.len() < 2 {
        return;
    }
    page.gap();
    for one in &alike {
        let severity = page.severity(one.severity);
        let blanks = " ".repeat(Severity::Critical.word().len() - one.severity.word().len());
        let of = format!(
            "{} of {}",
            count(one.devices.len() as u64),
            count(one.of as u64)
        );
        page.wrapped(
            "  " + severity + blanks.as_str() + " ",
            "           ",
            format!("{}: {of}, {}", one.rule, listed(one.devices.clone())),
        );
    }
}

/// The I/O of each disk and partition, a line each.
fn seen(page: &mut Page, diagnose: &Diagnose<'_>) {
    let Some(watched) = &diagnose.watched else {
        return;
    };
    page.heading(&format!("I/O seen in {:.1} s", watched.seconds));
    if diagnose.io.sections.is_empty() {
        page.line("  none");
        return;
    }
    line(
        page,
        "  ",
        "device",
        &[
            "I/O",
            "reads",
            "writes",
            "I/O/s",
            "bytes",
            "off the grid",
            "median",
            "90 %",
            "99 %",
            "99.9 %",
            "largest",
        ]
        .map(str::to_owned),
    );
    for section in &diagnose.io.sections {
        device_lines(page, section.analysis);
    }
    if diagnose.is_layered() {
        page.wrapped(
            "  ",
            "  ",
            "Stacked devices carry the same I/O: do not add up their figures.",
        );
    }
    if !watched.too_few.is_empty() {
        page.wrapped(
            "  ",
            "  ",
            format!("Too few I/O to judge: {}.", listed(watched.too_few.clone())),
        );
    }
    senders(page, &watched.senders);
}

fn device_lines(page: &mut Page, analysis: &Analysis) {
    let busiest = analysis
        .ops
        .iter()
        .filter(|op| matches!(op.op, "read" | "write"))
        .max_by_key(|op| op.ios);
    let times = busiest.and_then(|op: &OpSummary| op.device.as_ref());
    let time = |value: Option<u64>| value.map_or_else(|| "unknown".to_owned(), ns);
    let ios_of = |name: &str| {
        let of_op = analysis.ops.iter().filter(|op| op.op == name);
        of_op.map(|op| op.ios).sum()
    };
    let row = [
        count(analysis.ios),
        count(ios_of("read")),
        count(ios_of("write")),
        analysis.ios_per_second.map_or_else(String::new, rate),
        bytes(analysis.bytes),
        analysis
            .device()
            .and_then(|place| place.grids.first())
            .map_or_else(String::new, off),
        time(times.map(|times| times.p50_ns)),
        time(times.map(|times| times.p90_ns)),
        time(times.map(|times| times.p99_ns)),
        time(times.map(|times| times.p999_ns)),
        time(times.map(|times| times.max_ns)),
    ];
    line(page, "  ", &analysis.target.device, &row);
    for place in analysis.places.iter().skip(1) {
        let Some(Ok(tally)) = place.grids.first().map(|fit| &fit.all) else {
            continue;
        };
        let ios_of = |of: fn(&GridFit) -> &Option<FitTally>| {
            let tally = place.grids.first().and_then(|fit| of(fit).as_ref());
            count(tally.map_or(0, |tally| tally.ios))
        };
        let row = [
            count(tally.ios),
            ios_of(|fit| &fit.reads),
            ios_of(|fit| &fit.writes),
            String::new(),
            bytes_within(tally.bytes),
            place.grids.first().map_or_else(String::new, off),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
        ];
        line(
            page,
            "    ",
            place.name.as_deref().unwrap_or_default(),
            &row,
        );
    }
}

fn line(page: &mut Page, indent: &str, name: &str, row: &[String; 11]) {
    let name = format!("{:<14}", format!("{indent}{}", visible(name)));
    page.row(&name, &SEEN_COLUMNS, row);
}

/// Columns of the I/O of a device: those with the higher ranks on wide terminals alone.
const SEEN_COLUMNS: [FigureColumn; 11] = [
    FigureColumn { width: 11, rank: 0 },
    FigureColumn { width: 11, rank: 4 },
    FigureColumn { width: 11, rank: 5 },
    FigureColumn { width: 10, rank: 6 },
    FigureColumn { width: 10, rank: 2 },
    FigureColumn {
        width: OFF + 1,
        rank: 0,
    },
    FigureColumn { width: 9, rank: 1 },
    FigureColumn { width: 9, rank: 7 },
    FigureColumn { width: 9, rank: 3 },
    FigureColumn { width: 10, rank: 8 },
    FigureColumn { width: 10, rank: 9 },
];

/// Columns for how many of how many are off.
const OFF: usize = 25;

/// `312 of 312 (100 %)`; millions leave no room for the share.
fn off(fit: &GridFit) -> String {
    match &fit.all {
        Ok(tally) => {
            let share = share_within(tally.misaligned, tally.ios);
            let of = format!("{} of {}", count_within(tally.misaligned), count(tally.ios));
            let with_share = format!("{of} ({share})");
            if with_share.chars().count() > OFF {
                of
            } else {
                with_share
            }
        }
        Err(_) => "unknown".to_owned(),
    }
}

/// Most processes that are listed.
const SENDERS: usize = 5;

fn senders(page: &mut Page, senders: &[IntervalSender<'_>]) {
    let mut by_name: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for sender in senders {
        let name = words::command_of(sender.comm, sender.owner.as_ref());
        *by_name.entry((sender.device, name)).or_default() += sender.ios;
    }
    let mut names: Vec<((&str, String), u64)> = by_name.into_iter().collect();
    names.small_sort_by(|(name, ios), (other, more)| more.cmp(ios).then_with(|| name.cmp(other)));
    let shown = names
        .iter()
        .take(SENDERS)
        .map(|((device, name), ios)| format!("{name} ({} I/O to {device})", count(*ios)));
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() {
        return;
    }
    let more = match names.len().saturating_sub(SENDERS) {
        0 => String::new(),
        more => format!(", and {} more", count(more as u64)),
    };
    page.wrapped("  ", "    ", format!("Sent by {}{more}.", shown.join(", ")));
}
