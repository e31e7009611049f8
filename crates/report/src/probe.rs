//! The result of a probe, as text and JSON.

mod text;
mod words;

use plumb_load::probe::conclusion::Conclusion;
use plumb_load::result::probe::ProbeReport;
use plumb_model::Finding;
use plumb_model::result::verdict::{Verdict, Word};

use crate::json::Document;
use crate::run::Run;
use crate::verdict::Outcome;

pub use text::text;

pub(crate) use words::{
    figures, first_word, grid_words, headline, open_words, searched_words, shown, source_words,
};

/// The verdict on a probe. A grid off 0 is no misfit if no finding reaches the limit of `--fail-on`.
#[must_use]
pub fn verdict(probed: &ProbeReport<'_>, outcome: Outcome) -> Verdict {
    let (word, limit) = match (outcome, probed.verdict) {
        (Outcome::Findings, _) => (Word::Misfit, ""),
        (Outcome::Unknown(_), _) | (_, Conclusion::Inconclusive(_)) => (Word::Inconclusive, ""),
        (Outcome::Clean, Conclusion::Misaligned) => (Word::Ok, ", below the limit of --fail-on"),
        (Outcome::Clean, _) => (Word::Ok, ""),
    };
    Verdict::measured(word, format!("{}{limit}.", words::sentence(probed)))
}

/// The document of `plumb probe`.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(
    run: &Run,
    probed: &ProbeReport<'_>,
    findings: &[Finding],
    outcome: Outcome,
) -> Result<String, serde_json::Error> {
    plumb_quoting::json::pretty(&Document {
        schema: "plumb.probe/2",
        run,
        inputs: Vec::<()>::new(),
        verdict: Some(verdict(probed, outcome)),
        findings: crate::json::findings(findings),
        result: probed,
    })
}
