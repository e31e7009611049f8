//! The rules. Each looks at one profile and says what it found, that it found nothing, or why it cannot tell.

use serde::Serialize;

use plumb_geometry::group_digits;
use plumb_profile::Profile;
use plumb_profile::fit::{FitTally, Unknown};
use plumb_trace::Layer;

use crate::analysis::Analysis;
use crate::finding::{Confidence, Evidence, Finding, Severity, Target};
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

/// Of the lengths at most so many, in percent, may have been rounded before a rule that needs them says nothing.
pub const ROUNDED_PERCENT_MAX: u64 = 10;

/// Of the I/O at most so many, in percent, may have come without their order before streams say nothing.
const UNORDERED_PERCENT_MAX: u64 = 1;

/// What a rule looks at.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// What findings are about: the device, or a partition of it.
    pub target: &'a Target,
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
    /// It cannot tell of a part of the device, for this reason.
    UnknownOf(Target, String),
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
    /// Adds what was found on another profile. A rule that spoke on either is silent no more.
    pub fn absorb(&mut self, other: Diagnosis) {
        self.findings.extend(other.findings);
        self.unknown.extend(other.unknown);
        self.silent.extend(other.silent);
        self.settle();
    }

    fn settle(&mut self) {
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity()));
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
    let context = Context { target: &analysis.target, profile, analysis, questions };
    let mut diagnosis = Diagnosis::default();
    for rule in RULES {
        for outcome in (rule.judge)(&context) {
            let mut unknown = |target, why| diagnosis.unknown.push(Unjudged { rule: rule.id, target, why });
            match outcome {
                Outcome::Found(finding) => diagnosis.findings.push(finding),
                Outcome::Unknown(why) => unknown(analysis.target.clone(), why),
                Outcome::UnknownOf(target, why) => unknown(target, why),
                Outcome::Silent => diagnosis.silent.push(rule.id),
                Outcome::NotAsked => {}
            }
        }
    }
    diagnosis.settle();
    diagnosis
}

/// What a share of unfitting I/O comes to: `None` when it is not shown to be above the threshold.
pub(crate) fn severity_of(share: Share) -> Option<Severity> {
    if share.whole < IOS_MIN || share.low() <= SHARE_MIN {
        return None;
    }
    Some(if share.value() >= SHARE_WARNING { Severity::Warning } else { Severity::Note })
}

/// Why a tally cannot be judged by length: too few I/O, or too many whose length was rounded up.
pub(crate) fn lengths_unknown(ios: u64, unknown_length: u64) -> Option<String> {
    let share = Share::new(unknown_length, ios);
    let many = u128::from(unknown_length) * 100 > u128::from(ios) * u128::from(ROUNDED_PERCENT_MAX);
    many.then(|| format!("the length of {} I/O is not known exactly any more", of(share)))
}

/// As [`lengths_unknown`], of a tally.
pub(crate) fn tally_lengths_unknown(tally: &FitTally) -> Option<Outcome> {
    lengths_unknown(tally.ios, tally.unknown_length).map(Outcome::Unknown)
}

impl Context<'_> {
    /// Why there is too little to judge; `None` when there is enough.
    pub(crate) fn too_few(&self, ios: u64) -> Option<Outcome> {
        if ios >= IOS_MIN {
            return None;
        }
        // A source of ready-made counts saw many I/O, only not where they start.
        Some(Outcome::Unknown(if ios == 0 && !self.profile.imported.is_empty() {
            Unknown::NoStarts.to_string()
        } else {
            format!("{ios} I/O seen, {IOS_MIN} needed")
        }))
    }

    /// Why streams say nothing here; `None` when they do.
    pub(crate) fn streams_unknown(&self) -> Option<Outcome> {
        let profile = self.profile;
        // Streams of the application are those of its files; what a device sees of them is decided below.
        if profile.layer == Layer::Vfs {
            return Some(Outcome::NotAsked);
        }
        if profile.completion_order {
            return Some(Outcome::Unknown("streams cannot be told from completions alone".to_owned()));
        }
        let ordered = profile.ordered.interarrival_ns.total().saturating_add(profile.pieces);
        let unordered = profile.ios().saturating_sub(ordered);
        if u128::from(unordered) * 100 > u128::from(profile.ios()) * u128::from(UNORDERED_PERCENT_MAX) {
            return Some(Outcome::Unknown(
                "streams cannot be told from counts by place: the source does not tell the order".to_owned(),
            ));
        }
        None
    }

    /// Says that nothing was found, unless the events lost at the source might hold a defect.
    pub(crate) fn none_found(&self, share: Share) -> Outcome {
        let lost = self.analysis.losses.lost;
        if lost == 0 || with_lost(share, lost).1 <= SHARE_MIN {
            return Outcome::Silent;
        }
        Outcome::Unknown(format!(
            "{} were seen, but {} events were lost at the source",
            of(share),
            group_digits(lost)
        ))
    }

    /// Evidence counted in this profile.
    pub(crate) fn evidence(&self, name: &'static str, value: f64, unit: &'static str) -> Evidence {
        Evidence { name, value, unit, source: format!("counted at {}", self.target) }
    }

    /// A finding about a share of I/O, with the numbers that show it and what lost events may change.
    pub(crate) fn share_finding(
        &self,
        rule: &Rule,
        severity: Severity,
        confidence: Confidence,
        share: Share,
        summary: String,
    ) -> Finding {
        let lost = self.analysis.losses.lost;
        let (low, high) = with_lost(share, lost);
        let confidence = if lost > 0 && low <= SHARE_MIN { confidence.lowered() } else { confidence };
        let finding = self.counted_finding(rule, severity, confidence, (share, "ios"), summary);
        if lost == 0 {
            return finding;
        }
        finding.explained(format!(
            "with the lost events the share would lie between {} and {}",
            percent(low),
            percent(high)
        ))
    }

    /// A finding about a share of I/O or of something else, with the numbers that show it.
    pub(crate) fn counted_finding(
        &self,
        rule: &Rule,
        severity: Severity,
        confidence: Confidence,
        (share, unit): (Share, &'static str),
        summary: String,
    ) -> Finding {
        let (low, high) = share.interval();
        let (unfit, all) = if unit == "ios" { ("ios_unfit", "ios") } else { ("busiest", "all") };
        let first = self.evidence(unfit, share.part as f64, unit);
        let mut finding = Finding::new(rule.id, severity, self.target, confidence, summary, first)
            .with_evidence(self.evidence(all, share.whole as f64, unit))
            .with_evidence(self.evidence("share_low", low, "share"))
            .with_evidence(self.evidence("share_high", high, "share"));
        let lost = self.analysis.losses.lost;
        if lost > 0 {
            finding = finding.with_evidence(self.evidence("lost_events", lost as f64, "events")).explained(
                format!("{} events were lost at the source and are in no count", group_digits(lost)),
            );
        }
        finding
    }
}

/// Least and largest share that lost events leave possible. An event is at most one I/O.
fn with_lost(share: Share, lost: u64) -> (f64, f64) {
    let whole = (share.whole as f64 + lost as f64).max(1.0);
    (share.part as f64 / whole, (share.part as f64 + lost as f64) / whole)
}

/// `7,231 of 94,878 (7.6 %)`.
pub(crate) fn of(share: Share) -> String {
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
