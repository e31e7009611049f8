//! Traces of I/O: events in columns, and a reader for each format in which somebody may have one.
//!
//! [`open::open`] detects the format of an input and gives a [`Reader`], which fills a [`Batch`] again and again.
//! Losses, gaps and damage of the source are in its [`SourceInfo`]. Nothing here counts or judges I/O; that is the task
//! of the profile and of the rules.

#![forbid(unsafe_code)]

pub mod ahead;
pub mod batch;
pub mod blk;
mod busy_places;
pub mod error;
pub mod format;
pub mod input;
pub mod interval_clock;
pub mod locale;
pub mod names;
pub mod number;
pub mod op;
pub mod open;
pub mod order;
pub mod parquet;
pub mod pending;
pub mod progress;
pub mod reader;
pub mod rrd;
pub mod scan;
pub mod series;
pub mod source;
pub mod table;
pub mod text;
pub mod tool;
mod window;
pub mod write;

pub use batch::{Batch, Event, UNKNOWN_NS, UNKNOWN_PID};
pub use error::{Damage, Error, Place};
pub use names::{Device, DeviceId, NameId, Names};
pub use op::{Layer, Op, flags};
pub use reader::{
    ALL_DEVICES, AlignTotals, Bucket, Columns, CountedTime, DEVICE_NS_SUM_MAX, Distribution, Fill,
    IOS_MAX, LayerChoice, Measured, ReadOptions, Reader, ResidueRow, ResidueTable,
};
pub use source::{Clock, Contradiction, Counts, Latency, SourceInfo};
