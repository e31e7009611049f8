//! Parameter files of Vdbench, as far as they are about raw devices and single files: `hd`, `sd`, `wd` and `rd` with their
//! defaults, lists, ranges and curves.
//!
//! The rules are those of Vdbench 5.04. Parts without a meaning here (trees of files, data validation, other hosts) are
//! refused by their name and line. Differences in meaning are in the notes of the series, or in the manual: devices are
//! always read without the cache, for any `openflags=`.

mod builder;
mod definition;
mod keyword;
mod reading;
mod resolve;
mod table;
mod text;
mod value;

use std::path::Path;

pub use text::Include;

use crate::job_file::{JobFileError, read_text};
use crate::series::Series;

/// Reads a file. An included file without a folder is beside it, or else in the current directory.
///
/// # Errors
/// If it cannot be read, or asks for something that cannot run: with file, line, the text found and the text expected.
pub fn read(path: &Path, substitutions: &[(String, String)]) -> Result<Series, JobFileError> {
    let text = read_text(path)?;
    let mut include = |name: &str| {
        let beside = path
            .parent()
            .map(|folder| folder.join(name))
            .filter(|file| file.exists());
        let other = beside
            .filter(|_| !name.contains('/'))
            .unwrap_or_else(|| name.into());
        read_text(&other).map(|text| (other.display().to_string(), text))
    };
    parse(
        &path.display().to_string(),
        &text,
        substitutions,
        &mut include,
    )
}

/// The same of a text. `include` gives name and text of a file that the text includes.
///
/// # Errors
/// As [`read`].
pub fn parse(
    name: &str,
    text: &str,
    substitutions: &[(String, String)],
    include: &mut Include<'_>,
) -> Result<Series, JobFileError> {
    let parameters = text::parameters(name, text, substitutions, include)?;
    let definitions = builder::read(&parameters)?;
    let series = resolve::resolve(definitions)?;
    if series.runs.is_empty() {
        return Err(JobFileError::Unfinished {
            path: name.to_owned(),
            expected: "a run: rd=NAME,wd=…,iorate=max",
        });
    }
    Ok(series)
}
