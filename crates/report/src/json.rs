//! The JSON document of a command: one object with the same keys for every command.

use crate::verdict::Verdict;
use serde::Serialize;

use plumb_diagnose::{Analysis, Diagnosis};
use plumb_model::{Finding, RuleId, Unjudged};
use plumb_trace::{Contradiction, Latency, SourceInfo};

use crate::Report;
use crate::run::Run;
use crate::text::{Apart, App, IntervalSender, SeenAgain, WatchInterval};
use crate::words;

/// A place in an input that was not understood.
#[derive(Serialize)]
struct DamageEntry {
    place: String,
    found: String,
    expected: String,
}

/// An input and how far it can be trusted.
#[derive(Serialize)]
pub(crate) struct TraceInput<'a> {
    path: &'a str,
    format: &'a str,
    verified: bool,
    layers: Vec<&'static str>,
    completions_only: bool,
    clock: &'static str,
    unix_ns_at_zero: Option<i64>,
    latency_unknown: Option<&'a str>,
    records: u64,
    events: u64,
    lost: u64,
    damaged: u64,
    skipped_bytes: u64,
    missing_files: u64,
    unmatched_issues: u64,
    doubtful_latencies: u64,
    unmatched_completions: u64,
    late_completions: u64,
    out_of_order: u64,
    tallies: &'a std::collections::BTreeMap<&'static str, u64>,
    damages: Vec<DamageEntry>,
    contradictions: &'a [Contradiction],
    notes: &'a [String],
    cannot_tell: &'a [&'static str],
}

#[derive(Serialize)]
struct AnalyzeResult<'a> {
    profiles: Vec<&'a Analysis>,
    unknown: Vec<UnjudgedOut<'a>>,
    silent: &'a [RuleId],
    notes: &'a [String],
}

/// A finding, with its summary for readers that do not know its facts.
#[derive(Serialize)]
pub(crate) struct FindingOut<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    summary: String,
}

pub(crate) fn findings(findings: &[Finding]) -> Vec<FindingOut<'_>> {
    findings.iter().map(finding).collect()
}

pub(crate) fn finding(finding: &Finding) -> FindingOut<'_> {
    FindingOut {
        finding,
        summary: words::finding(finding).summary,
    }
}

/// A subject that a rule could not judge, with a summary.
#[derive(Serialize)]
pub(crate) struct UnjudgedOut<'a> {
    #[serde(flatten)]
    unjudged: &'a Unjudged,
    summary: String,
}

pub(crate) fn unknown(unknown: &[Unjudged]) -> Vec<UnjudgedOut<'_>> {
    unknown
        .iter()
        .map(|unjudged| UnjudgedOut {
            unjudged,
            summary: words::reason(&unjudged.reason),
        })
        .collect()
}

/// The output of every command.
#[derive(Serialize)]
pub(crate) struct Document<'a, I, R> {
    pub schema: &'static str,
    #[serde(flatten)]
    pub run: &'a Run,
    pub inputs: Vec<I>,
    /// Of a command that judges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    pub findings: Vec<FindingOut<'a>>,
    pub result: R,
}

pub(crate) fn input(info: &SourceInfo) -> TraceInput<'_> {
    let counts = &info.counts;
    TraceInput {
        path: &info.path,
        format: info.format,
        verified: info.verified,
        layers: info.layers.iter().map(|layer| layer.word()).collect(),
        completions_only: info.completions_only,
        clock: info.clock.word(),
        unix_ns_at_zero: info.unix_ns_at_zero,
        latency_unknown: match &info.latency {
            Latency::Known => None,
            Latency::None(why) => Some(why),
        },
        records: counts.records,
        events: counts.events,
        lost: counts.lost,
        damaged: counts.damaged,
        skipped_bytes: counts.skipped_bytes,
        missing_files: counts.missing_files,
        unmatched_issues: counts.unmatched_issues,
        doubtful_latencies: counts.doubtful_latencies,
        unmatched_completions: counts.unmatched_completions,
        late_completions: counts.late_completions,
        out_of_order: counts.out_of_order,
        tallies: &info.tallies,
        damages: info
            .damages
            .iter()
            .map(|damage| DamageEntry {
                place: damage.place.to_string(),
                found: damage.found.clone(),
                expected: damage.expected.clone(),
            })
            .collect(),
        contradictions: &info.contradictions,
        notes: &info.notes,
        cannot_tell: &info.cannot_tell,
    }
}

/// The document of `plumb analyze`.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn analyze(
    run: &Run,
    report: &Report<'_>,
    inputs: &[SourceInfo],
) -> Result<String, serde_json::Error> {
    let document = Document {
        schema: "plumb.analyze/2",
        run,
        inputs: inputs.iter().map(input).collect(),
        verdict: Some(report.verdict()),
        findings: findings(&report.diagnosis.findings),
        result: AnalyzeResult {
            profiles: report
                .sections
                .iter()
                .map(|section| section.analysis)
                .collect(),
            unknown: unknown(&report.diagnosis.unknown),
            silent: &report.diagnosis.silent,
            notes: report.notes,
        },
    };
    plumb_quoting::json::pretty(&document)
}

#[derive(Serialize)]
struct WatchResult<'a> {
    seconds: f64,
    until: Option<&'a str>,
    profiles: &'a [Analysis],
    processes: &'a [IntervalSender<'a>],
    apart: &'a [Apart<'a>],
    seen_again: &'a [SeenAgain<'a>],
    filter: Option<&'a str>,
    app: Option<&'a App>,
    notes: &'a [String],
    whole: Option<WholeResult<'a>>,
}

#[derive(Serialize)]
struct WholeResult<'a> {
    seconds: f64,
    unknown: Vec<UnjudgedOut<'a>>,
    silent: &'a [RuleId],
    app: Option<&'a App>,
}

/// The totals of a watch, in addition to its intervals.
pub struct WholeTime {
    /// The verdict on the whole time.
    pub verdict: Verdict,
    /// How long it took.
    pub seconds: f64,
    /// The findings, and the subjects without.
    pub diagnosis: Diagnosis,
    /// I/O of applications to file systems, if those were watched.
    pub app: Option<App>,
}

/// A line of `plumb watch --json`: an interval of this length that ends at the time of the run, or at its own; the last one with the
/// whole time.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn watch(
    run: &Run,
    (seconds, whole): (f64, Option<&WholeTime>),
    interval: &WatchInterval<'_>,
) -> Result<String, serde_json::Error> {
    let WatchInterval {
        devices: profiles,
        senders: processes,
        apart,
        seen_again,
        filter,
        notes,
        app,
        until,
        ..
    } = *interval;
    plumb_quoting::json::line(&Document {
        schema: "plumb.watch/2",
        run,
        inputs: Vec::<TraceInput<'_>>::new(),
        verdict: whole.map(|whole| whole.verdict.clone()),
        findings: whole.map_or_else(Vec::new, |whole| findings(&whole.diagnosis.findings)),
        result: WatchResult {
            seconds,
            until,
            profiles,
            processes,
            apart,
            seen_again,
            filter,
            app,
            notes,
            whole: whole.map(|whole| WholeResult {
                seconds: whole.seconds,
                unknown: unknown(&whole.diagnosis.unknown),
                silent: &whole.diagnosis.silent,
                app: whole.app.as_ref(),
            }),
        },
    })
}
