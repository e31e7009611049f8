//! The rules. Each looks at one profile and says what it found, that it found nothing, or why it cannot tell.

use serde::Serialize;

use plumb_profile::Profile;

use crate::analysis::Analysis;
use crate::finding::{Finding, Severity, Target};
use crate::question::Questions;
use throughput_inflation::Throughput;

mod context;
pub mod looks_sequential;
pub mod member_skew;
pub mod misaligned_io;
pub mod odd_length_io;
pub mod record_mismatch;
pub mod small_random_writes;
pub mod split_io;
pub mod throughput_inflation;

pub use context::Context;
pub(crate) use context::{
    lengths_unknown, percent, severity_of, share_text, tally_lengths_unknown,
};
pub(crate) use misaligned_io::latency_words;

/// No rule judges fewer I/O: with 200 a share is known to about 7 points.
pub const IOS_MIN: u64 = 200;

/// A defect is reported once the lower end of the 95 % interval of its share is above this. At 1 % of 100,000 I/O
/// the interval is 0.94 % to 1.06 %; half a percent is also what a swap file or a label update may leave behind.
pub const SHARE_MIN: f64 = 0.005;

/// From this share on a defect is worth mending rather than knowing.
pub const SHARE_WARNING: f64 = 0.10;

/// What a rule comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A defect.
    Found(Finding),
    /// It looked and found none.
    Silent,
    /// It cannot tell, for this reason.
    Unknown(String),
    /// It cannot tell of a part of the device, for this reason.
    UnknownOf(Target, String),
    /// It was not asked: it takes something that the user did not give.
    NotAsked,
}

/// A rule on I/O.
pub type IoRule = Rule<for<'a, 'b> fn(&'a Context<'b>) -> Vec<Outcome>>;

/// A rule: everything that lists, pages and exit statuses take from it, and the function that looks.
pub struct Rule<Judge> {
    /// Name of the defect, and of its page.
    pub id: &'static str,
    /// The defect in one line, for the index of findings.
    pub title: &'static str,
    /// Input that it needs beside a trace or a layout, in Markdown, for the index of findings.
    pub needs: &'static str,
    /// Whether a check is *unknown* when the rule cannot tell. Rules on settings, paths and load need facts that a layout does
    /// not hold: the report says that they cannot tell, and the exit status stays.
    pub decides: bool,
    /// Its thresholds, in the words of the line `Threshold:` of its page.
    pub thresholds: fn() -> Vec<String>,
    /// The plan that mends its findings.
    pub plan: Option<PlanKind>,
    /// Looks.
    pub judge: Judge,
}

/// A kind of plan, by the thing that it changes. `plumb-plan` makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKind {
    /// The start of a partition, or of all soft partitions of a component.
    Start,
    /// The stripe that a file system is told.
    FileSystem,
    /// The chunk of a stripe.
    Chunk,
    /// The record or block that holds pages.
    Record,
    /// The size of the I/O that resync a mirror.
    Resync,
}

/// Formats a share for a page of a finding.
pub(crate) fn share_words(share: f64) -> String {
    format!("{} %", share * 100.0)
}

/// The thresholds that all rules on shares of I/O have.
fn thresholds_of_shares() -> Vec<String> {
    let shown = share_words(SHARE_MIN);
    vec![
        format!("at least {IOS_MIN} I/O"),
        format!("lower end of the 95 % interval above {shown}"),
    ]
}

/// The same, and the share from which a finding is a warning.
fn thresholds_with_warning() -> Vec<String> {
    let mut thresholds = thresholds_of_shares();
    thresholds.push(format!("warning from {}", share_words(SHARE_WARNING)));
    thresholds
}

/// All rules, in the order in which findings of one severity are shown.
pub static RULES: &[IoRule] = &[
    misaligned_io::RULE,
    split_io::RULE,
    record_mismatch::RULE,
    odd_length_io::RULE,
    small_random_writes::RULE,
    looks_sequential::RULE,
    member_skew::RULE,
    throughput_inflation::RULE,
];

/// A rule that could not tell, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unjudged {
    /// Name of the defect.
    pub rule: &'static str,
    /// What it could not be judged on.
    pub target: Target,
    /// Why.
    pub why: String,
}

/// What all rules came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Defects, worst first.
    pub findings: Vec<Finding>,
    /// What could not be judged.
    pub unknown: Vec<Unjudged>,
    /// Rules that looked and found nothing.
    pub silent: Vec<&'static str>,
}

impl Diagnosis {
    /// Adds what was found on another profile. A rule that spoke on either is silent no more.
    pub fn absorb(&mut self, other: Diagnosis) {
        self.findings.extend(other.findings);
        self.unknown.extend(other.unknown);
        self.silent.extend(other.silent);
        self.settle();
    }

    /// Adds what a rule came to; `target` is what it looked at, unless it says otherwise.
    pub(crate) fn take(&mut self, rule: &'static str, target: &Target, outcome: Outcome) {
        let mut unknown = |target, why| self.unknown.push(Unjudged { rule, target, why });
        match outcome {
            Outcome::Found(finding) => self.findings.push(finding),
            Outcome::Unknown(why) => unknown(target.clone(), why),
            Outcome::UnknownOf(target, why) => unknown(target, why),
            Outcome::Silent if self.silent.contains(&rule) => {}
            Outcome::Silent => self.silent.push(rule),
            Outcome::NotAsked => {}
        }
    }

    pub(crate) fn settle(&mut self) {
        self.findings
            .sort_by_key(|finding| std::cmp::Reverse(finding.severity()));
        let spoke = |rule: &'static str| {
            self.findings.iter().any(|finding| finding.id() == rule)
                || self.unknown.iter().any(|unjudged| unjudged.rule == rule)
        };
        let mut silent: Vec<&'static str> = Vec::new();
        for rule in self.silent.iter().copied() {
            if !spoke(rule) && !silent.contains(&rule) {
                silent.push(rule);
            }
        }
        self.silent = silent;
    }

    /// The worst severity found.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(Finding::severity).max()
    }
}

/// Applies all rules to a profile.
#[must_use]
pub fn diagnose(profile: &Profile, analysis: &Analysis, questions: &Questions) -> Diagnosis {
    let context = Context {
        target: &analysis.target,
        profile,
        analysis,
        questions,
        throughput: None,
    };
    apply(RULES, &context)
}

/// Judges what was asked of a file system by what its devices moved for it. The other rules judge its profile when that is
/// analyzed.
#[must_use]
pub fn diagnose_throughput(
    profile: &Profile,
    analysis: &Analysis,
    questions: &Questions,
    throughput: &Throughput,
) -> Diagnosis {
    let context = Context {
        target: &analysis.target,
        profile,
        analysis,
        questions,
        throughput: Some(throughput),
    };
    apply(&[throughput_inflation::RULE], &context)
}

fn apply(rules: &[IoRule], context: &Context<'_>) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    for rule in rules {
        for outcome in (rule.judge)(context) {
            diagnosis.take(rule.id, context.target, outcome);
        }
    }
    diagnosis.settle();
    diagnosis
}
