//! The vocabulary that crates share: rules, their targets, and their findings. Values only: no I/O, no clock, and no
//! sentence for a user. `report` renders all of it; JSON is its serialisation and reads back into it.

#![forbid(unsafe_code)]

pub mod action;
pub mod advice;
pub mod apply;
pub mod counted;
pub mod facts;
pub mod finding;
pub mod grid;
pub mod io_size;
pub mod reason;
pub mod remedy;
pub mod result;
pub mod rule;
pub mod seen;
pub mod target;

pub use action::{Action, DeviceRef, Effect, LocalNode, PartitionRef, Platform};
pub use advice::{Advice, Fix};
pub use apply::{Applied, NotModelled, apply};
pub use counted::{CountedShare, LostEvents};
pub use finding::{Basis, Confidence, Cost, CostOf, Finding, Severity, Unjudged};
pub use grid::GridOf;
pub use io_size::{IoSize, IoSizeBasis};
pub use reason::Reason;
pub use remedy::{Class, Disruption, Measurement, Obstacle, Place, Precondition, Remedy, RestsOn};
pub use rule::{Category, Facts, PlanKind, RULES, Rule, RuleId};
pub use seen::Seen;
pub use target::{HostLayer, Part, Target, TargetLayer};
