//! From profiles to findings: one file a rule, each with its thresholds, and the answers that reports print.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod finding;
pub mod question;
pub mod rules;
pub mod share;

pub use analysis::{Analysis, analyze};
pub use finding::{Confidence, Cost, Evidence, Finding, Severity, Target, TargetLayer};
pub use question::{GridSource, Questions};
pub use rules::{Diagnosis, RULES, Unjudged, diagnose};
pub use share::Share;
