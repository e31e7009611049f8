//! The history of a host's I/O: profiles of windows, kept for two years in a bounded number of bytes.
//!
//! # Flow
//!
//! ```text
//! increments ─► 5 min accumulator ─► 1 h accumulator ─► 1 day accumulator     (memory; full tables)
//!                    │ closes            │ closes            │ closes
//!                    ▼                   ▼                   ▼
//!               recent.db           history.db          history.db            (records; reduced tables)
//! ```
//!
//! An increment is the profile of some seconds. It is added to the accumulator of the finest tier. When the window of an
//! accumulator ends, the accumulator is reduced once and becomes a record, and its *unreduced* form is added to the next
//! tier. So a capped hour never limits a day, and no job reads records to make coarser ones: nothing can count twice.
//!
//! [`writer::Writer::checkpoint`] stores the open accumulators together with the time up to which they count
//! (`upto_ns`), in one transaction of `history.db`. A crash loses at most the time since the last checkpoint.
//!
//! # Records
//!
//! A record has three widths, each in a table of its own, so that a question reads only what it needs: *glance* (integer
//! columns), *histograms* (a profile without its residue tables, and the largest senders), *table* (the residue tables as
//! columns). A window of fewer than 64 I/O has no table in the two finer tiers; its rows are in the day's table.
//!
//! # Failures, and the answer to each
//!
//! | failure | answer |
//! |---|---|
//! | crash between the transactions of the two files | a record is replaced by its identifier, never added to |
//! | a kill while `recent.db` cannot be written | `history.db` keeps the closed windows of 5 minutes, and the next run writes them |
//! | the clock goes back | the window is opened again: its stored record is the base, and the new I/O are added to it |
//! | no room on the file system | nothing is deleted; closed windows wait in memory, bounded, and are written later |
//! | the cap is reached | the oldest windows of the finest tier go, before the write |
//! | a damaged record | counted and left out; its checksum finds it, and that of its totals is separate: they are made from the histograms again |
//! | a damaged file | renamed, and a new one is begun; the other file is not touched |
//! | two agents | the second one fails to lock the folder |
//! | a file of a newer program | refused, never changed |
//!
//! The crate has no clock and no threads: callers pass times. The name of SQLite's VFS is a parameter, so that tests can
//! let every write fail. Formats: `docs/formats/history.md`.

#![forbid(unsafe_code)]

mod accumulator;
mod checksum;
mod database;
mod error;
mod finding;
mod glance;
mod host;
mod reader;
mod record;
mod room;
mod schema;
mod senders;
mod settings;
mod tier;
mod verify;
mod writer;

pub use error::HistoryError;
pub use finding::{FindingInterval, FindingKey, FindingStep};
pub use glance::{Glance, GlanceRow};
pub use host::HostFactRow;
pub use reader::{Reader, SeriesFacts, SpanProfile};
pub use senders::{SENDERS_MAX, Sender, Senders};
pub use settings::{Settings, TierSettings};
pub use tier::{Span, Tier, Window};
pub use verify::{Estimate, FileState, Verified};
pub use writer::{DeviceIncrement, Notice, Writer};
