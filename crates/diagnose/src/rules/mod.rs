//! The rules. Each reads one profile and returns its finding, silence, or the reason why it is unknown.

use plumb_geometry::SmallSort;
use plumb_model::{Confidence, Finding, Reason, RuleId, Severity, Target, Unjudged};
use plumb_profile::Profile;

use crate::analysis::Analysis;
use crate::question::Questions;
use throughput_inflation::Throughput;

pub(crate) mod context;
pub mod failing_io;
pub mod looks_sequential;
pub mod member_skew;
pub mod misaligned_io;
pub mod odd_length_io;
pub mod record_mismatch;
pub mod saturated_device;
pub mod small_random_writes;
pub mod split_io;
pub mod stalled_io;
pub mod throughput_inflation;

pub use context::Context;
pub(crate) use context::{severity_of, undecided};

/// No rule judges fewer I/O: with 200 a share is known to about 7 points.
pub const IOS_MIN: u64 = 200;

/// A defect is reported once the lower end of the 95 % interval of its share is above this. At 1 % of 100,000 I/O the
/// interval is 0.94 % to 1.06 %; a swap file or a label update may also leave half a percent behind.
pub const SHARE_MIN: f64 = 0.005;

/// From this share on a defect is a warning instead of a note.
pub const SHARE_WARNING: f64 = 0.10;

/// The outcome of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A defect.
    Found(Box<Finding>),
    /// It looked and found none.
    Silent,
    /// It cannot tell, for this reason.
    Unknown(Reason),
    /// It cannot tell of a part of the device, for this reason.
    UnknownOf(Target, Reason),
    /// It was not asked: it needs something that the user did not give.
    NotAsked,
}

impl Outcome {
    /// The outcome of a rule that found a defect.
    #[must_use]
    pub fn found(finding: Finding) -> Outcome {
        Outcome::Found(Box::new(finding))
    }
}

/// A rule on I/O.
pub type IoRule = Judge<for<'a, 'b> fn(&'a Context<'b>) -> Vec<Outcome>>;

/// The way in which a rule judges. Everything else about the rule is in [`plumb_model::RULES`].
pub struct Judge<Look> {
    /// The rule.
    pub id: RuleId,
    /// Its thresholds, in the words of the line `Threshold:` of its page.
    pub thresholds: fn() -> Vec<String>,
    /// Looks.
    pub judge: Look,
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
    failing_io::RULE,
    stalled_io::RULE,
    saturated_device::RULE,
    misaligned_io::RULE,
    split_io::RULE,
    record_mismatch::RULE,
    odd_length_io::RULE,
    small_random_writes::RULE,
    looks_sequential::RULE,
    member_skew::RULE,
    throughput_inflation::RULE,
];

/// The outcomes of all rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Diagnosis {
    /// Defects, worst first.
    pub findings: Vec<Finding>,
    /// The rules that could not judge.
    pub unknown: Vec<Unjudged>,
    /// Rules that looked and found nothing.
    pub silent: Vec<RuleId>,
}

impl Diagnosis {
    /// Adds the results for another profile. A rule that spoke on either is silent no more.
    pub fn absorb(&mut self, other: Diagnosis) {
        self.findings.extend(other.findings);
        self.unknown.extend(other.unknown);
        self.silent.extend(other.silent);
        self.settle();
    }

    /// Adds the outcome of a rule; `target` is its target, unless the outcome has another.
    pub(crate) fn take(&mut self, rule: RuleId, target: &Target, outcome: Outcome) {
        let mut unknown = |target, reason| {
            self.unknown.push(Unjudged {
                rule,
                target,
                reason,
            })
        };
        match outcome {
            Outcome::Found(finding) => self.findings.push(*finding),
            Outcome::Unknown(why) => unknown(target.clone(), why),
            Outcome::UnknownOf(target, why) => unknown(target, why),
            Outcome::Silent if self.silent.contains(&rule) => {}
            Outcome::Silent => self.silent.push(rule),
            Outcome::NotAsked => {}
        }
    }

    pub(crate) fn settle(&mut self) {
        self.findings
            .small_sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let spoke = |rule: RuleId| {
            self.findings.iter().any(|finding| finding.rule() == rule)
                || self.unknown.iter().any(|unjudged| unjudged.rule == rule)
        };
        let mut silent: Vec<RuleId> = Vec::new();
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
        self.findings.iter().map(|finding| finding.severity).max()
    }
}

/// Applies all rules to a profile.
#[must_use]
pub fn diagnose(profile: &Profile, analysis: &Analysis, questions: &Questions) -> Diagnosis {
    apply(RULES, &Context::new(profile, analysis, questions))
}

/// Judges how a device answers: whether it fails I/O, or leaves them waiting. A device that does so answers few.
#[must_use]
pub fn diagnose_answers(
    profile: &Profile,
    analysis: &Analysis,
    questions: &Questions,
) -> Diagnosis {
    apply(
        &[failing_io::RULE, stalled_io::RULE, saturated_device::RULE],
        &Context::new(profile, analysis, questions),
    )
}

/// Compares the requests to a file system with the I/O of its devices. The other rules judge its profile when that is
/// analyzed.
#[must_use]
pub fn diagnose_throughput(
    profile: &Profile,
    analysis: &Analysis,
    questions: &Questions,
    throughput: &Throughput,
) -> Diagnosis {
    let context = Context {
        throughput: Some(throughput),
        ..Context::new(profile, analysis, questions)
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
    doubt_lossy(&mut diagnosis);
    diagnosis.settle();
    diagnosis
}

/// A share that the lost events may have made is a note, and its rule is unknown: no command confirms it.
fn doubt_lossy(diagnosis: &mut Diagnosis) {
    for finding in &mut diagnosis.findings {
        let is_doubtful =
            finding.confidence == Confidence::Low && finding.severity >= Severity::Warning;
        let counted = finding.facts.counted().filter(|_| is_doubtful);
        let Some((counted, lost)) = counted.and_then(|share| Some((share, share.lost?))) else {
            continue;
        };
        let reason = Reason::Lost {
            count: counted.count.low,
            of: counted.of,
            lost: lost.events,
        };
        finding.severity = Severity::Note;
        diagnosis.unknown.push(Unjudged {
            rule: finding.rule(),
            target: finding.target.clone(),
            reason,
        });
    }
}
