//! From profiles and stacks to findings: one file for each rule, with its thresholds, and the answers that reports
//! print. [`rules`] judge observed I/O, [`course`] I/O over time, [`layout`] the layout of a stack.

#![forbid(unsafe_code)]

pub mod accept;
pub mod analysis;
pub mod compare;
pub mod contents;
pub mod course;
pub mod joined;
pub mod layout;
pub mod prove;
pub mod question;
pub mod rules;
pub mod share;

pub use analysis::{Analysis, analyze};
pub use joined::{ABOUT_STARTS, Joined, join};
pub use plumb_model::{Finding, Reason, RuleId, Severity, Target, TargetLayer, Unjudged};
pub use prove::Prover;
pub use question::{GridSource, Questions};
pub use rules::throughput_inflation::{Flow, Throughput};
pub use rules::{Diagnosis, RULES, diagnose, diagnose_answers, diagnose_throughput};
pub use share::Share;
