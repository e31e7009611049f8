//! Binary blktrace: the kernel's recording of its block layer, one file for each CPU, `NAME.blktrace.CPU`.
//!
//! A file has no header; it is records back to back ([`shape`]). The files of all CPUs together are one
//! recording ([`set`]) and are merged by time ([`merge`]); `blkparse -d` writes the same records merged into
//! one file, which is read too, from a stream or packed as well. Times count from the host's boot in ns; a
//! note of the time of day gives the way to Unix time. In a merged file they count from the first record, and
//! the time of day is lost.
//!
//! Layers: a Q is an I/O at the bio layer, a D one at the request layer, its C the end of it. Commands that an
//! application wrote itself (SG_IO and the like) are counted and are no I/O here: their sector and length are not those
//! of data. A set with a missing CPU has no latency, because the missing file would contain completions. Records lost
//! by the kernel leave no trace in the files unless a sequence number is missing.
//!
//! Version 7, little-endian, was held against real recordings record by record with blkparse. Version 8
//! (Linux of 2025) and big-endian are *unverified* by a real file.

use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::reader::{ReadOptions, Reader, Sniff};

pub mod events;
pub mod merge;
pub mod reader;
pub mod record;
pub mod sequence;
pub mod set;
pub mod shape;
pub mod stream;

pub use merge::{MergedRecord, Records};
pub use record::{LETTERS, Note, RawRecord, remap_source, split_sector};
pub use shape::RecordShape;

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "blktrace",
    title: "binary, `NAME.blktrace.CPU` or `blkparse -d`; name the directory, or `DIR/NAME`",
    verified: true,
    unsorted: true,
    about: About {
        families: &[(Family::Linux, "blktrace")],
        layer: "bio, request",
        holds: Holds::Events {
            times: "ns since boot, with the time of day; merged: since the start",
            latency: "queue, device",
        },
        verified_by: "two real recordings, record by record with blkparse. Version 8 and big-endian: **unverified**",
        cannot_tell: "latency, if the file of a CPU is missing",
        words: &[],
        real: &[
            "blktrace/sdb.blktrace.0",
            "blktrace/sdb.blktrace.1",
            "blktrace/sdb.blktrace.10",
        ],
    },
    sniff,
    open,
};

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    match RecordShape::detect(prefix) {
        Some(_) => Sniff::Yes,
        None if prefix.len() < 4 && !complete => Sniff::More,
        None => Sniff::No,
    }
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let path = input.path.clone();
    let stream = stream::Stream::new(input, String::new(), None)?;
    reader::open(
        path,
        set::Opened {
            streams: vec![stream],
            missing: Default::default(),
        },
        options,
    )
}

/// Every record of a recording whose files are named.
///
/// # Errors
/// When one cannot be opened, is no blktrace, or is of another layout than the others.
pub fn records(files: &[std::path::PathBuf]) -> Result<Records, Error> {
    let path = files
        .first()
        .map(|file| file.display().to_string())
        .unwrap_or_default();
    Ok(Records::new(set::open(&path, files, None)?.streams))
}
