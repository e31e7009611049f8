//! The result of a benchmark: numbers as they were measured, in the shape in which they are shown. Text and JSON; the page
//! is in `html/bench.rs`.

mod processor;
mod study;
mod sweep;
mod text;
mod verdict;

use plumb_load::result::bench::Bench;

use crate::json::Document;
use crate::run::Run;
use crate::verdict::Outcome;

pub use sweep::sweep_text;
pub use text::{IntervalColumns, average_line, heading, interval_line, run_heading, summary};
pub use verdict::verdict;

pub(crate) use processor::sentence as processor_words;
pub(crate) use study::sentences as study_words;
pub(crate) use sweep::sentences as sweep_words;
pub(crate) use text::{rates, times, times_line};

/// The document of `plumb bench`.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(run: &Run, bench: &Bench, outcome: Outcome) -> Result<String, serde_json::Error> {
    plumb_quoting::json::pretty(&Document {
        schema: "plumb.bench/2",
        run,
        inputs: Vec::<()>::new(),
        verdict: Some(verdict(bench, outcome)),
        findings: Vec::new(),
        result: bench,
    })
}
