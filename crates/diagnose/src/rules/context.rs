//! What a rule looks at, and what all rules say alike: shares, doubts, lost events.

use plumb_geometry::{group_digits, plural};
use plumb_profile::Profile;
use plumb_profile::fit::{self, FitTally, Unknown};
use plumb_trace::Layer;

use super::throughput_inflation::Throughput;
use super::{IOS_MIN, IoRule, Outcome, SHARE_MIN, SHARE_WARNING};
use crate::analysis::Analysis;
use crate::finding::{Confidence, Evidence, Finding, Severity, Target};
use crate::question::Questions;
use crate::share::Share;

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
    /// What applications asked of the file system, and what its devices moved for it; only a watch of both sees it.
    pub throughput: Option<&'a Throughput>,
}

/// What a share of unfitting I/O comes to: `None` when it is not shown to be above the threshold.
pub(crate) fn severity_of(share: Share) -> Option<Severity> {
    if share.whole < IOS_MIN || share.low() <= SHARE_MIN {
        return None;
    }
    Some(if share.value() >= SHARE_WARNING {
        Severity::Warning
    } else {
        Severity::Note
    })
}

/// Why a tally cannot be judged by length: too few I/O, or too many whose length was rounded up.
pub(crate) fn lengths_unknown(ios: u64, unknown_length: u64) -> Option<String> {
    fit::lengths_known(ios, unknown_length)
        .err()
        .map(|why| why.to_string())
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
        Some(Outcome::Unknown(
            if ios == 0 && !self.profile.imported.is_empty() {
                Unknown::NoStarts.to_string()
            } else {
                format!("{ios} I/O seen, {IOS_MIN} needed")
            },
        ))
    }

    /// Why streams say nothing here; `None` when they do.
    pub(crate) fn streams_unknown(&self) -> Option<Outcome> {
        let profile = self.profile;
        // Streams of the application are those of its files; what a device sees of them is decided below.
        if profile.layer == Layer::Vfs {
            return Some(Outcome::NotAsked);
        }
        self.analysis.streams_unknown(profile).map(Outcome::Unknown)
    }

    /// Says that nothing was found, unless the events lost at the source might hold a defect.
    pub(crate) fn none_found(&self, share: Share) -> Outcome {
        let lost = self.analysis.losses.lost;
        if lost == 0 || with_lost(share, lost).1 <= SHARE_MIN {
            return Outcome::Silent;
        }
        Outcome::Unknown(format!(
            "{} were seen, but the source lost {}",
            share_text(share),
            plural(lost, "event")
        ))
    }

    /// Evidence counted in this profile.
    pub(crate) fn evidence(&self, name: &'static str, value: f64, unit: &'static str) -> Evidence {
        Evidence {
            name,
            value,
            unit,
            source: format!("counted at {}", self.target),
        }
    }

    /// A finding about a share of I/O, with the numbers that show it and what lost events may change.
    pub(crate) fn share_finding(
        &self,
        rule: &IoRule,
        severity: Severity,
        confidence: Confidence,
        share: Share,
        summary: String,
    ) -> Finding {
        let lost = self.analysis.losses.lost;
        let (low, high) = with_lost(share, lost);
        let confidence = if lost > 0 && low <= SHARE_MIN {
            confidence.lowered()
        } else {
            confidence
        };
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
        rule: &IoRule,
        severity: Severity,
        confidence: Confidence,
        (share, unit): (Share, &'static str),
        summary: String,
    ) -> Finding {
        let (low, high) = share.interval();
        let (unfit, all) = if unit == "ios" {
            ("ios_unfit", "ios")
        } else {
            ("busiest", "all")
        };
        let first = self.evidence(unfit, share.part as f64, unit);
        let mut finding = Finding::new(rule.id, severity, self.target, confidence, summary, first)
            .with_evidence(self.evidence(all, share.whole as f64, unit))
            .with_evidence(self.evidence("share_low", low, "share"))
            .with_evidence(self.evidence("share_high", high, "share"));
        let lost = self.analysis.losses.lost;
        if lost > 0 {
            finding = finding
                .with_evidence(self.evidence("lost_events", lost as f64, "events"))
                .explained(format!(
                    "in no count: {} that the source lost",
                    plural(lost, "event")
                ));
        }
        finding
    }
}

/// Least and largest share that lost events leave possible. An event is at most one I/O.
fn with_lost(share: Share, lost: u64) -> (f64, f64) {
    let whole = (share.whole as f64 + lost as f64).max(1.0);
    (
        share.part as f64 / whole,
        (share.part as f64 + lost as f64) / whole,
    )
}

/// `7,231 of 94,878 (7.6 %)`.
pub(crate) fn share_text(share: Share) -> String {
    format!(
        "{} of {} ({})",
        group_digits(share.part),
        group_digits(share.whole),
        percent(share.value())
    )
}

/// `7.6 %`; small shares keep two digits.
pub(crate) fn percent(value: f64) -> String {
    if value > 0.0 && value < 0.01 {
        format!("{:.2} %", value * 100.0)
    } else {
        format!("{:.1} %", value * 100.0)
    }
}
