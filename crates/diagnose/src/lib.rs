//! From profiles and stacks to findings: one file a rule, each with its thresholds, and the answers that reports
//! print. [`rules`] judge what I/O were seen to do, [`layout`] how a stack is laid.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod compare;
pub mod finding;
pub mod joined;
pub mod layout;
pub mod question;
pub mod rules;
pub mod share;

pub use analysis::{Analysis, analyze};
pub use finding::{Confidence, Cost, Evidence, Finding, Fix, Severity, Target, TargetLayer};
pub use joined::{Joined, join};
pub use question::{GridSource, Questions};
pub use rules::throughput_inflation::{Flow, Throughput};
pub use rules::{Diagnosis, PlanKind, RULES, Unjudged, diagnose, diagnose_throughput};
pub use share::Share;

/// The finding of a probe, which measures: no rule has it, and a page tells of it as of those.
pub const MISALIGNED_TARGET: &str = "misaligned-target";

/// Whether a check is *unknown* when a rule of this name cannot tell; see [`rules::Rule::decides`].
#[must_use]
pub fn decides(id: &str) -> bool {
    let mut of_io = RULES.iter().filter(|rule| rule.id == id);
    let mut of_layouts = layout::RULES.iter().filter(|rule| rule.id == id);
    of_io.all(|rule| rule.decides) && of_layouts.all(|rule| rule.decides)
}
