//! The project's own traces: Parquet files of schema version 1, recognized by `PAR1` at their beginning.
//!
//! One row is one I/O, at the layer in its own column; times in ns, places in sectors of 512 bytes and a rest. See
//! [`crate::parquet`] for the columns. Read from the end and at any place, so a stream or a compressed file cannot be
//! one. Verified with the output of the project's writer and of other engines.

use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::parquet;
use crate::reader::{ReadOptions, Reader, Sniff};

/// The format's entry in the list. If rows are out of order, the reader sorts them itself.
pub static FORMAT: Format = Format {
    name: "parquet",
    title: "[Plumb's own](trace-parquet.md), in Parquet",
    verified: true,
    unsorted: false,
    about: About {
        families: &[(
            Family::Plumb,
            "[Parquet](docs/formats/trace-parquet.md), of `plumb record`, `plumb convert` or any program",
        )],
        layer: "as recorded",
        holds: Holds::Events {
            times: "ns, as recorded",
            latency: "as recorded",
        },
        verified_by: "its writer, and other engines that read it",
        cannot_tell: "damage inside a page (no checksums)",
        words: &[],
        real: &[],
    },
    sniff,
    open,
};

const MAGIC: &[u8] = b"PAR1";

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    if prefix.starts_with(MAGIC) {
        Sniff::Yes
    } else if MAGIC.starts_with(prefix) && !complete {
        Sniff::More
    } else {
        Sniff::No
    }
}

fn open(mut input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let path = input.path.clone();
    match input.plain_file.take() {
        Some(file) => parquet::open::open(file, path, FORMAT.name, options),
        None => Err(Error::NeedsFile {
            path,
            format: FORMAT.name,
        }),
    }
}
