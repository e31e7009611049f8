//! The JSON document of a command: one object with the same keys for every command.

use plumb_diagnose::{Analysis, Diagnosis};
use plumb_model::result::verdict::Verdict;
use plumb_model::result::watch::{Apart, App, IntervalSender, SeenAgain};
use plumb_model::{Finding, RuleId, Unjudged};
use plumb_trace::SourceInfo;
use serde::Serialize;

use crate::Report;
use crate::run::Run;
use crate::text::WatchInterval;
use crate::words;

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
        inputs: inputs.iter().collect(),
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
        inputs: Vec::<()>::new(),
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
