//! The project's own trace format: one I/O a row of a Parquet file, schema version 1.
//!
//! Parquet gives columns that are read separately, small numbers through delta encoding, and a format that every engine
//! reads. `docs/formats/trace-parquet.md` has the columns with unit and range, the metadata and the rule for versions.
//! [`schema`] has the columns, [`meta`] the metadata of a file, [`mod@write`] and [`open`] the two directions, [`grow`]
//! a file that can be read while it is written.
//!
//! Left out: page checksums, so that a flipped bit within a page may go unseen; encryption; nested columns.

mod column;
mod columns;
pub mod grow;
mod keys;
mod layers;
pub mod load;
mod meaning;
pub mod meta;
pub mod open;
mod pages;
mod pread;
mod read;
mod rows;
pub mod schema;
mod statistics;
pub mod table;
mod words;
pub mod write;
