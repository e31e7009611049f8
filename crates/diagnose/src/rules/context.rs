//! The input of a rule, and the common parts of all rules: shares, doubts, lost events.

use plumb_geometry::Grid;
use plumb_model::facts::FileSystemBlock;
use plumb_model::reason::Counting;
use plumb_model::{Confidence, CountedShare, Facts, Finding, LostEvents, Reason, Severity, Target};
use plumb_profile::Profile;
use plumb_profile::fit::Unknown;
use plumb_trace::Layer;

use super::throughput_inflation::Throughput;
use super::{IOS_MIN, Outcome, SHARE_MIN, SHARE_WARNING};
use crate::analysis::{Analysis, PlaceAnalysis};
use crate::question::Questions;
use crate::share::Share;

/// The input of a rule.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The target of findings: the device, or a partition of it.
    pub target: &'a Target,
    /// The I/O.
    pub profile: &'a Profile,
    /// Their analysis.
    pub analysis: &'a Analysis,
    /// The questions.
    pub questions: &'a Questions,
    /// The requests of applications to the file system, and the I/O of its devices; only a watch of both has them.
    pub throughput: Option<&'a Throughput>,
}

/// The severity of a share of unfitting I/O: `None` if it is not shown to be above the threshold.
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

/// Why a share cannot be judged that is a range: its upper end would be a finding and its lower end is none.
pub(crate) fn undecided(share: Share, why: impl FnOnce() -> Unknown) -> Option<Reason> {
    let is_open = severity_of(share).is_none() && severity_of(share.at_most()).is_some();
    (share.part.known().is_none() && is_open).then(|| table(why()))
}

/// The reason of a residue table.
pub(crate) fn table(why: Unknown) -> Reason {
    Reason::Table { why }
}

/// The reason why a share of I/O cannot be judged.
pub(crate) fn too_few_ios(seen: u64) -> Reason {
    Reason::TooFew {
        what: Counting::Ios,
        seen,
        needed: IOS_MIN,
    }
}

impl<'a> Context<'a> {
    /// A whole device, by its own I/O alone.
    pub(crate) fn new(
        profile: &'a Profile,
        analysis: &'a Analysis,
        questions: &'a Questions,
    ) -> Context<'a> {
        Context {
            target: &analysis.target,
            profile,
            analysis,
            questions,
            throughput: None,
        }
    }
}

impl Context<'_> {
    /// The file systems in a place, if the stack knows all of its content and all of it begins on the grid. On a device
    /// with partitions, the partitions that received I/O count.
    pub(crate) fn file_systems_in(
        &self,
        place: &PlaceAnalysis,
        grid: &Grid,
    ) -> Option<Vec<FileSystemBlock>> {
        let parts = self.analysis.places.get(1..).unwrap_or_default();
        let places = match place.name {
            None if !parts.is_empty() => parts,
            _ => std::slice::from_ref(place),
        };
        let mut found = Vec::new();
        for place in places {
            let name = place.name.as_ref().unwrap_or(&self.profile.device);
            for one in self.questions.file_systems.get(name)? {
                one.is_on(grid, place.first_byte).then_some(())?;
                found.push(one.block.clone());
            }
        }
        Some(found)
    }

    /// Why there is too little to judge; `None` if there is enough.
    pub(crate) fn too_few(&self, ios: u64) -> Option<Outcome> {
        if ios >= IOS_MIN {
            return None;
        }
        // A source of ready-made counts saw many I/O, but not their starts.
        Some(Outcome::Unknown(
            if ios == 0 && !self.profile.imported.is_empty() {
                table(Unknown::NoStarts)
            } else {
                too_few_ios(ios)
            },
        ))
    }

    /// Why streams say nothing here; `None` if they do.
    pub(crate) fn streams_unknown(&self) -> Option<Outcome> {
        let profile = self.profile;
        // Streams of the application are those of its files; the layers below decide about those of a device.
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
        Outcome::Unknown(Reason::Lost {
            count: share.part.high,
            of: share.whole,
            lost,
        })
    }

    /// As [`Context::none_found`], of a share that may be a range because of `why`.
    pub(crate) fn none_found_of(&self, share: Share, why: impl FnOnce() -> Unknown) -> Outcome {
        match undecided(share, why) {
            Some(reason) => Outcome::Unknown(reason),
            None => self.none_found(share),
        }
    }

    /// A share with the events that the source lost.
    pub(crate) fn counted(&self, share: Share) -> CountedShare {
        let events = self.analysis.losses.lost;
        let (share_low, share_high) = with_lost(share, events);
        let lost = LostEvents {
            events,
            share_low,
            share_high,
        };
        CountedShare {
            lost: (events > 0).then_some(lost),
            ..share.counted()
        }
    }

    /// How sure a conclusion from a share of I/O is, if it would be so sure without lost events.
    pub(crate) fn confidence(&self, counted: &CountedShare, confidence: Confidence) -> Confidence {
        match counted.lost {
            Some(lost) if lost.share_low <= SHARE_MIN => confidence.lowered(),
            _ => confidence,
        }
    }

    /// A finding about the target.
    pub(crate) fn finding(
        &self,
        facts: Facts,
        severity: Severity,
        confidence: Confidence,
    ) -> Finding {
        Finding::new(facts, self.target.clone(), severity, confidence)
    }
}

/// Least and largest share that lost events leave possible. An event is at most one I/O.
fn with_lost(share: Share, lost: u64) -> (f64, f64) {
    let whole = (share.whole as f64 + lost as f64).max(1.0);
    (
        share.part.low as f64 / whole,
        (share.part.high as f64 + lost as f64) / whole,
    )
}
