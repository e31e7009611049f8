//! From a finding or a wish to a plan: the layout to reach, the ways to reach it with their commands, their risk, and
//! the way back.
//!
//! Pure arithmetic: nothing is read, run or written here. Each request is a plain struct; its `plan` gives a [`Plan`]
//! that reports print without counting anything. Ways are listed in the order of harm: tune the present layout,
//! relocate online, move crash-safely, recreate, move in place.
//!
//! - [`plan`]: the parts of a plan; [`nodes`]: owner, mode and names of device nodes, before and after
//! - [`partition`], [`softpart`], [`stripe`], [`filesystem`]: layouts
//! - [`record`], [`resync`], [`queue`], [`disks`], [`writes`]: sizes and numbers; [`mod@label`]: a label without a new layout
//! - [`meet`]: a position that is on several grids at once
//! - [`of_stack`]: the same requests, filled in from a node of a stack; [`mod@for_finding`]: the plans that may answer a finding
//! - [`mod@recommend`]: the remedies of a diagnosis, each proven before it is recommended

#![forbid(unsafe_code)]

pub mod disks;
pub mod error;
pub mod filesystem;
pub mod for_finding;
pub mod label;
pub mod meet;
pub mod nodes;
pub mod of_stack;
pub mod partition;
pub mod plan;
pub mod queue;
pub mod recommend;
pub mod record;
pub mod resync;
pub mod softpart;
pub mod stripe;
pub mod writes;

pub use error::PlanError;
pub use for_finding::{Answer, Wishes, component_laid_out, for_finding};
pub use nodes::{Nodes, System};
pub use plan::{Figure, Harm, Plan, Remedy, Step, Subject, Table, Value};
