//! Writers of traces, one file a format, chosen by the output's extension or by name.
//!
//! A file is written under a temporary name beside its place and renamed once it is complete, so that an interrupted
//! run leaves nothing that looks like a trace. Data that a format cannot hold are counted and returned, for the command
//! to report.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::batch::Batch;
use crate::error::Error;
use crate::parquet::write::ParquetWriter;
use crate::source::SourceInfo;

pub mod holes;
mod iolog;
mod known;
pub(crate) mod msr;
mod output;

pub use output::{Gathered, Output, target_of, words_of};

/// Something that the format written cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loss {
    /// The data that are missing or changed in the file.
    pub what: &'static str,
    /// How many events it touches.
    pub events: u64,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} events)", self.what, self.events)
    }
}

/// The result of writing a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Events in the file.
    pub events: u64,
    /// The data that the format could not hold; empty if everything is there.
    pub losses: Vec<Loss>,
}

/// Takes events in issue order and writes them in one format.
pub trait TraceWriter {
    /// Writes the events of a batch.
    ///
    /// # Errors
    /// When the output cannot be written.
    fn write(&mut self, batch: &Batch) -> Result<(), Error>;

    /// Writes the end, puts the file into its place, and reports the data that it could not hold.
    ///
    /// # Errors
    /// When the output cannot be written; nothing is left of it then.
    fn finish(self: Box<Self>, info: &SourceInfo) -> Result<Written, Error>;
}

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// The project's own; holds everything.
    Parquet,
    /// Version 3 of fio's log of I/O, which fio replays.
    FioIolog,
    /// CSV as the MSR Cambridge traces have it.
    MsrCsv,
}

impl OutputFormat {
    /// All of them.
    pub const ALL: [OutputFormat; 3] = [
        OutputFormat::Parquet,
        OutputFormat::FioIolog,
        OutputFormat::MsrCsv,
    ];

    /// Name, as in `--to`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ["parquet", "fio-iolog", "msr-csv"][self as usize]
    }

    /// Extension of a file's name, without the dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        ["parquet", "iolog", "csv"][self as usize]
    }

    /// The format of a name; `None` for any other name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<OutputFormat> {
        OutputFormat::ALL
            .into_iter()
            .find(|target| target.name() == name)
    }

    /// The format that a path's extension stands for; `None` when it stands for none.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<OutputFormat> {
        let extension = path.extension()?.to_str()?;
        OutputFormat::ALL
            .into_iter()
            .find(|target| target.extension().eq_ignore_ascii_case(extension))
    }
}

/// Begins a trace; `name` overrides the path's extension, `info` has the present facts about the source (its clock
/// matters to formats that need the time of day).
///
/// # Errors
/// When neither names a format, or the output cannot be created.
pub fn create(
    path: &Path,
    name: Option<&str>,
    info: &SourceInfo,
) -> Result<Box<dyn TraceWriter>, Error> {
    let target = match name {
        Some(name) => OutputFormat::from_name(name),
        None => OutputFormat::from_path(path),
    };
    let known = || {
        let each = OutputFormat::ALL
            .iter()
            .map(|target| format!("{} (.{})", target.name(), target.extension()));
        each.collect::<Vec<_>>().join(", ")
    };
    let Some(target) = target else {
        let found = name.map_or_else(|| path.display().to_string(), str::to_owned);
        return Err(Error::NoSuchTarget {
            found,
            known: known(),
        });
    };
    let output = Output::create(path)?;
    Ok(match target {
        OutputFormat::Parquet => Box::new(ParquetWriter::new(output)?),
        OutputFormat::FioIolog => Box::new(iolog::IologWriter::new(output)),
        OutputFormat::MsrCsv => Box::new(msr::MsrWriter::new(output, info)),
    })
}

/// Counts data that a format cannot hold.
#[derive(Default)]
struct Losses(BTreeMap<&'static str, u64>);

impl Losses {
    fn count(&mut self, what: &'static str, events: usize) {
        if events > 0 {
            *self.0.entry(what).or_insert(0) += events as u64;
        }
    }

    fn into_list(self) -> Vec<Loss> {
        self.0
            .into_iter()
            .map(|(what, events)| Loss { what, events })
            .collect()
    }
}
