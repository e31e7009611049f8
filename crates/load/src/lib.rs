//! Loads a device or file with I/O and measures it: the engine, workloads, the probe of a device's grid, benchmarks and
//! the replay of traces. It writes only with a permission to write.
//!
//! - [`workload`], [`plan`]: the load for each target, its rate and its duration
//! - [`run()`]: carries a plan out and gives a [`RunOutcome`]
//! - [`figures`]: rates and times of a measurement, as documents have them
//! - [`session`]: I/O at starts that the caller chose
//! - [`probe`]: the grid of a target, and the cost of misaligned I/O
//! - [`replay`]: the I/O of a trace sent again, elsewhere, faster, or beside a plan for them
//! - [`result`]: results of commands, as documents have them
//! - [`permission`]: the permission to write, and the only place that grants it
//! - [`vdbench`], [`fio`]: parameter files of other tools, understood as a [`series`] of runs

#![forbid(unsafe_code)]

mod draw;
mod engine;
pub mod figures;
pub mod fio;
mod gate;
pub mod job_file;
pub mod outcome;
pub mod permission;
pub mod plan;
mod pool;
pub mod probe;
mod processor;
mod random;
pub mod replay;
pub mod result;
pub mod run;
mod schedule;
pub mod series;
pub mod session;
pub mod tally;
pub mod target;
mod trace;
mod validate;
pub mod vdbench;
mod worker;
pub mod workload;
mod zipf;

pub use engine::EngineChoice;

pub use outcome::{Ended, IntervalReport, JobOutcome, Means, RunOutcome};
pub use permission::{MayWrite, WriteRefused, permit_writes, permit_writes_until};
pub use plan::{Arrivals, DEPTH_MAX, Job, LoadPlan, Pace, THREADS_MAX};
pub use plumb_sys::{Durability, FileId, SysError};
pub use processor::ProcessorUse;
pub use run::{LoadError, check, run};
pub use session::{Session, SessionSlice};
pub use tally::{DirectionTally, IoFailure, Latencies, Tally};
pub use target::Target;
pub use trace::TraceSink;
pub use workload::{Hits, LEN_BYTES_MAX, Lengths, Spread, Starts, Workload, WorkloadError};
