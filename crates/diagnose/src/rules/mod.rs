//! The rules. Each looks at one profile and says what it found, that it found nothing, or why it cannot tell.

use serde::Serialize;

use plumb_profile::Profile;

use crate::analysis::Analysis;
use crate::finding::{Evidence, Finding, Severity, Target};
use crate::question::Questions;
use crate::share::Share;

pub mod looks_sequential;
pub mod member_skew;
pub mod misaligned_io;
pub mod odd_length_io;
pub mod record_mismatch;
pub mod small_random_writes;
pub mod split_io;

/// No rule judges fewer I/O: with 200 a share is known to about 7 points.
pub const IOS_MIN: u64 = 200;

/// A defect is reported once the lower end of the 95 % interval of its share is above this. At 1 % of 100,000 I/O
/// the interval is 0.94 % to 1.06 %; half a percent is also what a swap file or a label update may leave behind.
pub const SHARE_MIN: f64 = 0.005;

/// From this share on a defect is worth mending rather than knowing.
pub const SHARE_WARNING: f64 = 0.10;

/// What a rule looks at.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The I/O.
    pub profile: &'a Profile,
    /// What was computed of them.
    pub analysis: &'a Analysis,
    /// What was asked.
    pub questions: &'a Questions,
}

/// What a rule comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A defect.
    Found(Finding),
    /// It looked and found none.
    Silent,
    /// It cannot tell, for this reason.
    Unknown(String),
    /// It was not asked: it takes something that the user did not give.
    NotAsked,
}

/// A rule.
pub struct Rule {
    /// Name of the defect.
    pub id: &'static str,
    /// What it looks for, in one line.
    pub title: &'static str,
    /// Looks.
    pub judge: fn(&Context<'_>) -> Vec<Outcome>,
}

/// All rules, in the order in which findings of one severity are shown.
pub static RULES: &[Rule] = &[
    misaligned_io::RULE,
    split_io::RULE,
    record_mismatch::RULE,
    odd_length_io::RULE,
    small_random_writes::RULE,
    looks_sequential::RULE,
    member_skew::RULE,
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
    /// Adds what was found on another profile.
    pub fn absorb(&mut self, other: Diagnosis) {
        self.findings.extend(other.findings);
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity()));
        self.unknown.extend(other.unknown);
        for rule in other.silent {
            if !self.silent.contains(&rule) {
                self.silent.push(rule);
            }
        }
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
    let context = Context { profile, analysis, questions };
    let mut diagnosis = Diagnosis::default();
    for rule in RULES {
        for outcome in (rule.judge)(&context) {
            match outcome {
                Outcome::Found(finding) => diagnosis.findings.push(finding),
                Outcome::Unknown(why) => {
                    let target = analysis.target.clone();
                    diagnosis.unknown.push(Unjudged { rule: rule.id, target, why });
                }
                Outcome::Silent => diagnosis.silent.push(rule.id),
                Outcome::NotAsked => {}
            }
        }
    }
    diagnosis.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity()));
    diagnosis
}

/// What a share of unfitting I/O comes to: `None` when it is not shown to be above the threshold.
pub(crate) fn severity_of(share: Share) -> Option<Severity> {
    if share.whole < IOS_MIN || share.low() <= SHARE_MIN {
        return None;
    }
    Some(if share.value() >= SHARE_WARNING { Severity::Warning } else { Severity::Note })
}

/// Why too few I/O cannot be judged; `None` when there are enough.
pub(crate) fn too_few(ios: u64) -> Option<Outcome> {
    (ios < IOS_MIN).then(|| Outcome::Unknown(format!("{ios} I/O seen, {IOS_MIN} needed")))
}

impl Context<'_> {
    /// Evidence counted in this profile.
    pub(crate) fn evidence(&self, name: &'static str, value: f64, unit: &'static str) -> Evidence {
        Evidence { name, value, unit, source: format!("counted at {}", self.analysis.target) }
    }

    /// A finding about a share of I/O, with the three numbers that show it.
    pub(crate) fn share_finding(
        &self,
        rule: &Rule,
        severity: Severity,
        confidence: crate::finding::Confidence,
        share: Share,
        summary: String,
    ) -> Finding {
        let (low, high) = share.interval();
        let first = self.evidence("ios_unfit", share.part as f64, "ios");
        Finding::new(rule.id, severity, &self.analysis.target, confidence, summary, first)
            .with_evidence(self.evidence("ios", share.whole as f64, "ios"))
            .with_evidence(self.evidence("share_low", low, "share"))
            .with_evidence(self.evidence("share_high", high, "share"))
    }
}

/// `7,231 of 94,878 (7.6 %)`.
pub(crate) fn of(share: Share) -> String {
    use plumb_geometry::group_digits;
    format!("{} of {} ({})", group_digits(share.part), group_digits(share.whole), percent(share.value()))
}

/// `7.6 %`; small shares keep two digits.
pub(crate) fn percent(value: f64) -> String {
    if value > 0.0 && value < 0.01 {
        format!("{:.2} %", value * 100.0)
    } else {
        format!("{:.1} %", value * 100.0)
    }
}
