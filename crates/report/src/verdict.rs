//! The verdict of a command that judges: a word that follows the exit status, and one sentence that a person can repeat.

use plumb_diagnose::Analysis;
use plumb_geometry::{Bounds, plural};
use plumb_model::result::verdict::{Verdict, Word};
use plumb_model::{Facts, Finding, Severity, rule::Category};
use plumb_profile::fit::FitTally;
use plumb_profile::latency_fit::LatencyByFit;

use crate::brief;
use crate::check::listed;
use crate::format::{count, count_within};
use crate::words;

/// The result of a judgement. The exit status follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was judged, and no finding reaches the limit of `--fail-on`.
    Clean,
    /// Findings reach the limit.
    Findings,
    /// Something could not be judged.
    Unknown(WhyUnknown),
}

/// The reason for an unknown outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyUnknown {
    /// An input was read only in part.
    ReadInPart,
    /// The I/O could not be watched, or only in part.
    NotWatched,
    /// No disk received enough I/O to judge.
    TooFewIos,
    /// The place of a layer is not known, or a rule could not tell.
    Layout,
}

/// Everything that a verdict is made of.
pub(crate) struct Grounds<'a> {
    pub outcome: Outcome,
    pub findings: &'a [Finding],
    /// The number of accepted findings.
    pub accepted: usize,
    /// The extent of the judgement: `3 devices and 11 layers checked in 10 s`.
    pub scope: String,
    /// The I/O that fit: `730 of 730 I/O fit 4 KiB (assumed)`.
    pub fit: Option<String>,
    /// The reason why something is unknown, as a clause.
    pub unknown: Option<String>,
    /// The parts of the host that could not be read, as a clause: `not visible: labels of sda`.
    pub unread: Option<String>,
    /// Whether layers that a guest cannot see are accepted.
    pub has_accepted_unseen: bool,
}

impl Grounds<'_> {
    pub(crate) fn verdict(&self) -> Verdict {
        match self.outcome {
            Outcome::Findings => found(
                &reported(self.outcome, self.findings),
                &self.accepted_words(),
            ),
            Outcome::Clean => self.clean(),
            Outcome::Unknown(why) => self.unknown(why),
        }
    }

    fn clean(&self) -> Verdict {
        if let Some(finding) = self.findings.iter().find(|one| is_without_cost(one)) {
            return Verdict {
                word: Word::Misfit,
                sentence: without_cost(finding) + ".",
                short: None,
            };
        }
        let fit = self
            .fit
            .as_ref()
            .map_or_else(String::new, |fit| format!("{fit}; "));
        let is_note = |one: &&Finding| one.severity == Severity::Note && one.has_action();
        let notes = self.findings.iter().filter(is_note).count();
        let some = |number: usize, words: &str| match number {
            0 => String::new(),
            number => format!("; {}", plural(number as u64, words)),
        };
        let unread = self.unread.as_ref();
        let unread = unread.map_or_else(String::new, |clause| format!("; {clause}"));
        let unseen = match self.has_accepted_unseen {
            true => "; layers below are not visible (accepted)",
            false => "",
        };
        Verdict {
            word: Word::Ok,
            sentence: format!(
                "{fit}{}{}{}{}{unread}{unseen}.",
                self.scope,
                self.below_limit(),
                some(notes, "note"),
                self.accepted_words()
            ),
            short: None,
        }
    }

    /// `; 2 findings below the limit of --fail-on`
    fn below_limit(&self) -> String {
        match serious(self.findings).len() {
            0 => String::new(),
            below => format!(
                "; {} below the limit of --fail-on",
                plural(below as u64, "finding")
            ),
        }
    }

    /// `; 2 accepted`
    fn accepted_words(&self) -> String {
        match self.accepted {
            0 => String::new(),
            number => format!("; {} accepted", count(number as u64)),
        }
    }

    fn unknown(&self, why: WhyUnknown) -> Verdict {
        let free = self.findings.iter().find(|one| is_without_cost(one));
        let first = match (free, &self.fit) {
            (Some(finding), _) => without_cost(finding),
            (None, Some(fit)) => fit.clone(),
            (None, None) if serious(self.findings).is_empty() => {
                format!("no finding; {}", self.scope)
            }
            (None, None) => self.scope.clone() + &self.below_limit(),
        };
        let why = match (&self.unknown, why) {
            (_, WhyUnknown::ReadInPart) => "an input was read only in part".to_owned(),
            (Some(clause), _) => clause.clone(),
            (None, WhyUnknown::NotWatched) => "not all I/O could be watched".to_owned(),
            (None, WhyUnknown::TooFewIos) => "no disk received enough I/O to judge".to_owned(),
            (None, WhyUnknown::Layout) => "not every layer could be judged".to_owned(),
        };
        Verdict {
            word: Word::Unknown,
            sentence: format!(
                "{first}{}; {}.",
                self.accepted_words(),
                why.trim_end_matches('.')
            ),
            short: None,
        }
    }
}

/// The devices of findings, each once.
pub(crate) fn devices<'a>(findings: &[&'a Finding]) -> Vec<&'a str> {
    let mut devices: Vec<&str> = Vec::new();
    for finding in findings {
        let device = match finding.target.is_host() {
            true => "the host",
            false => finding.target.device.as_str(),
        };
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    devices
}

/// Findings that a report shows: warnings and worse. If only notes reach the limit of `--fail-on`, it shows the notes.
pub(crate) fn reported(outcome: Outcome, findings: &[Finding]) -> Vec<&Finding> {
    match (outcome, serious(findings)) {
        (Outcome::Findings, few) if few.is_empty() => findings.iter().collect(),
        (_, few) => few,
    }
}

/// Warnings and worse.
fn serious(findings: &[Finding]) -> Vec<&Finding> {
    findings
        .iter()
        .filter(|finding| finding.severity >= Severity::Warning)
        .collect()
}

fn found(findings: &[&Finding], accepted: &str) -> Verdict {
    let devices = devices(findings);
    let word = match findings.iter().all(|finding| is_problem(finding)) {
        true => Word::Problem,
        false => Word::Misfit,
    };
    let all = format!(
        "{} on {}",
        plural(findings.len() as u64, "finding"),
        plural(devices.len() as u64, "device")
    );
    let (sentence, short) = match findings {
        [] => (format!("{all}{accepted}."), None),
        [only] => (brief::summary(only), Some(words::finding(only).summary)),
        [worst, ..] => (
            format!("{all}{accepted}. The worst: {}", brief::summary(worst)),
            Some(format!("{all}: {}.", listed(devices))),
        ),
    };
    Verdict {
        word,
        sentence,
        short,
    }
}

/// Whether a label, a setting or the device itself is at fault, and not the place of data or I/O.
pub(crate) fn is_problem(finding: &Finding) -> bool {
    finding.rule().rule().category == Category::Setting
        || matches!(
            finding.facts,
            Facts::BrokenLabel(_)
                | Facts::StrandedBackupLabel(_)
                | Facts::OverlappingPartitions(_)
                | Facts::UnfinishedMove(_)
                | Facts::SectorSizeMismatch(_)
                | Facts::BrokenSuperblock(_)
                | Facts::BeyondDevice(_)
                | Facts::Contradiction(_)
                | Facts::FailingIo(_)
                | Facts::StalledIo(_)
                | Facts::SaturatedDevice(_)
        )
}

/// Whether I/O are misaligned and were measured to be no slower for it.
pub(crate) fn is_without_cost(finding: &Finding) -> bool {
    let latency = finding.latency_by_fit();
    finding.severity == Severity::Note && latency.is_some_and(LatencyByFit::shows_no_cost)
}

/// The misfit, as a clause.
fn without_cost(finding: &Finding) -> String {
    let summary = brief::summary(finding);
    format!("{}; no cost measured", summary.trim_end_matches('.'))
}

/// The I/O of these devices that start on the first grid of each: `730 of 730 I/O fit 4 KiB (assumed)`. `None` when none was
/// counted on a grid. Stacked devices carry the same I/O, so the caller passes one of them.
pub(crate) fn fit<'a>(analyses: impl Iterator<Item = &'a Analysis>) -> Option<String> {
    let (mut ios, mut misaligned) = (0, Bounds::exact(0));
    let mut grids: Vec<String> = Vec::new();
    for analysis in analyses {
        let Some(fit) = analysis.device().and_then(|place| place.grids.first()) else {
            continue;
        };
        let Ok(tally): Result<&FitTally, _> = fit.all.as_ref() else {
            continue;
        };
        ios += tally.ios;
        misaligned = Bounds {
            low: misaligned.low + tally.misaligned.low,
            high: misaligned.high + tally.misaligned.high,
        };
        let grid = format!("{} ({})", fit.grid.granularity(), fit.source.word());
        if !grids.contains(&grid) {
            grids.push(grid);
        }
    }
    let fitting = Bounds {
        low: ios.saturating_sub(misaligned.high),
        high: ios.saturating_sub(misaligned.low),
    };
    let grid = match grids.as_slice() {
        [only] => only.as_str(),
        _ => "their disks",
    };
    (ios > 0).then(|| format!("{} of {} I/O fit {grid}", count_within(fitting), count(ios)))
}
