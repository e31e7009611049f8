//! Reports of analyses: text, JSON and HTML, one file each, of checks, and of both. They compute no statistics; the numbers
//! that they print were counted in the profile and judged by the rules.

#![forbid(unsafe_code)]

pub mod api;
pub mod bench;
mod brief;
pub mod check;
pub mod compare;
pub mod diagnose;
pub mod explain;
pub mod exports;
pub mod fix;
pub mod fleet;
pub mod format;
pub mod history;
pub mod html;
pub mod json;
pub mod plan;
pub mod probe;
pub mod record;
pub mod replay;
pub mod run;
pub mod text;
pub mod verdict;
pub mod words;

pub use html::html;

use plumb_geometry::plural;
use plumb_model::result::verdict::Verdict;
use plumb_model::{Reason, Target, TargetLayer};
use verdict::{Grounds, Outcome};

/// One analysed profile.
pub struct Section<'a> {
    /// The profile, for the pictures.
    pub profile: &'a plumb_profile::Profile,
    /// The analysis.
    pub analysis: &'a plumb_diagnose::Analysis,
}

impl Section<'_> {
    /// Whether something is about the I/O of this section, or about the layer that is its device or a partition of it.
    fn is_of(&self, target: &Target) -> bool {
        let mine = &self.analysis.target;
        let mut parts = self
            .analysis
            .places
            .iter()
            .filter_map(|place| place.name.as_deref());
        match target.layer {
            TargetLayer::Stack(_) => {
                target.device == mine.device || parts.any(|part| part == target.device)
            }
            TargetLayer::Seen(_) => {
                let is_within = mine.part.is_none() || mine.part == target.part;
                (&target.device, target.layer) == (&mine.device, mine.layer) && is_within
            }
            TargetLayer::Host(_) => false,
        }
    }
}

/// Everything that a report of `plumb analyze` shows.
pub struct Report<'a> {
    /// The subject, for the head of the page.
    pub title: String,
    /// Version of the program.
    pub version: &'a str,
    /// The command as it was given.
    pub command: String,
    /// A line for each source.
    pub sources: &'a [String],
    /// Sentences that a reader must know.
    pub notes: &'a [String],
    /// Profiles, by device and layer.
    pub sections: Vec<Section<'a>>,
    /// The results of the rules, over all sections.
    pub diagnosis: &'a plumb_diagnose::Diagnosis,
    /// The result. The exit status follows it.
    pub outcome: Outcome,
}

impl Report<'_> {
    /// The verdict on the I/O.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let ios: u64 = self.sections.iter().map(|one| one.analysis.ios).sum();
        let places = plural(self.sections.len() as u64, "device");
        let (scope, fit) = match self.sections.as_slice() {
            [only] if ios == 0 && !only.profile.imported.is_empty() => {
                (format!("counts of {places} analyzed"), None)
            }
            [only] => (
                format!("{} I/O on {places} analyzed", format::count(ios)),
                verdict::fit(std::iter::once(only.analysis)),
            ),
            [] => ("no device seen".to_owned(), None),
            // No sum: one device may be a layer of another, and an I/O would count once for each.
            _ => (format!("I/O on {places} analyzed"), None),
        };
        Grounds {
            outcome: self.outcome,
            findings: &self.diagnosis.findings,
            accepted: 0,
            scope,
            fit,
            unknown: self.first_unknown(),
            unread: None,
            has_accepted_unseen: false,
        }
        .verdict()
    }

    /// The first thing that could not be judged, with the number of the others.
    fn first_unknown(&self) -> Option<String> {
        let is_empty = |one: &Section<'_>| one.analysis.ios == 0 && one.profile.imported.is_empty();
        if self.sections.iter().all(is_empty) {
            return Some("no I/O was seen".to_owned());
        }
        let (first, others) = self.diagnosis.unknown.split_first()?;
        let why = match &first.reason {
            Reason::BeyondAssumed {
                granularity_bytes, ..
            } => format!("unknown beyond {granularity_bytes}, pass a grid with --grid"),
            reason => format!("{}: {}", first.rule, words::reason(reason)),
        };
        Some(match others.len() {
            0 => why,
            more => format!("{why}, and {} more", format::count(more as u64)),
        })
    }
}
