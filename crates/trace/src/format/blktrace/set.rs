//! The files of one recording: `NAME.blktrace.CPU`, one for each CPU.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::shape::RecordShape;
use super::stream::Stream;
use crate::error::Error;
use crate::progress::Progress;

/// The recording to which a file of one CPU belongs, as `DIR/NAME`, and the CPU.
#[must_use]
pub fn file_of_cpu(path: &Path) -> Option<(PathBuf, u32)> {
    let name = path.file_name()?.to_str()?;
    let name = name
        .strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".zst"))
        .unwrap_or(name);
    let (prefix, cpu) = name.rsplit_once(".blktrace.")?;
    let digits = !cpu.is_empty() && cpu.bytes().all(|byte| byte.is_ascii_digit());
    (digits && !prefix.is_empty()).then_some(())?;
    Some((path.with_file_name(prefix), cpu.parse().ok()?))
}

/// All files of single CPUs in a directory, by recording and CPU.
#[must_use]
pub fn files_in(directory: &Path) -> Vec<(PathBuf, u32, PathBuf)> {
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let (recording, cpu) = file_of_cpu(&path)?;
            Some((recording, cpu, path))
        })
        .collect();
    files.sort();
    files
}

/// The files of a recording that is named `DIR/NAME`.
#[must_use]
pub fn files_of(recording: &Path) -> Vec<PathBuf> {
    let directory = recording.parent().unwrap_or(Path::new(""));
    let name = recording.file_name();
    files_in(directory)
        .into_iter()
        .filter(|(found, ..)| found.file_name() == name)
        .map(|(.., path)| path)
        .collect()
}

/// Opened files of a recording, and the missing CPUs.
pub struct Opened {
    /// One a file.
    pub streams: Vec<Stream>,
    /// CPUs that must have had a file: below the highest one named, or in the same directory.
    pub missing: BTreeSet<u32>,
}

/// Opens the files of one recording.
///
/// # Errors
/// When one cannot be opened, is no blktrace, or is of another layout than the others.
pub fn open(
    path: &str,
    files: &[PathBuf],
    progress: Option<&Arc<Progress>>,
) -> Result<Opened, Error> {
    let mut streams: Vec<Stream> = Vec::new();
    let mut named = BTreeSet::new();
    for file in files {
        let cpu = file_of_cpu(file).map(|(_, cpu)| cpu);
        named.extend(cpu);
        let label = if files.len() > 1 {
            file_label(file)
        } else {
            String::new()
        };
        // An empty file is a CPU that did no I/O, and is as good as any other.
        streams.extend(Stream::open(file, label, cpu, progress)?);
    }
    let Some(shape) = streams.first().map(Stream::shape) else {
        return Err(Error::Empty {
            path: path.to_owned(),
        });
    };
    same_shape(path, shape, &streams)?;
    Ok(Opened {
        streams,
        missing: missing(files, &named),
    })
}

fn file_label(file: &Path) -> String {
    file.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn same_shape(path: &str, shape: RecordShape, streams: &[Stream]) -> Result<(), Error> {
    if streams.iter().all(|stream| stream.shape() == shape) {
        return Ok(());
    }
    Err(Error::Refused {
        path: path.to_owned(),
        format: super::FORMAT.name,
        reason: "its files differ in byte order or version, so they are of several recordings; name those of one",
    })
}

fn missing(files: &[PathBuf], named: &BTreeSet<u32>) -> BTreeSet<u32> {
    let highest = named.last().copied().unwrap_or(0);
    // A file called `sda.blktrace.4000000000` shall not make a list of that length.
    let below = (0..highest.min(1 << 16)).filter(|cpu| !named.contains(cpu));
    let mut missing: BTreeSet<u32> = below.collect();
    if let Some((recording, _)) = files.first().and_then(|file| file_of_cpu(file)) {
        let beside = files_of(&recording);
        let cpus = beside
            .iter()
            .filter_map(|path| file_of_cpu(path))
            .map(|(_, cpu)| cpu);
        missing.extend(cpus.filter(|cpu| !named.contains(cpu)));
    }
    missing
}

/// `2–9, 11`.
#[must_use]
pub fn ranges(cpus: &BTreeSet<u32>) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => spans.push((cpu, cpu)),
        }
    }
    let words = spans.iter().map(|(first, last)| match last - first {
        0 => format!("{first}"),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        let check = |path: &str, expected: Option<(&str, u32)>| {
            let found = file_of_cpu(Path::new(path));
            assert_eq!(
                found,
                expected.map(|(prefix, cpu)| (PathBuf::from(prefix), cpu)),
                "{path}"
            );
        };
        check("d/sdb.blktrace.10", Some(("d/sdb", 10)));
        check("sdb.blktrace.0", Some(("sdb", 0)));
        check("d/sdb.blktrace.3.gz", Some(("d/sdb", 3)));
        check("a.blktrace.1.blktrace.2", Some(("a.blktrace.1", 2)));
        check("sdb.blktrace.", None);
        check("sdb.blktrace.x", None);
        check("sdb.blktrace.-1", None);
        check(".blktrace.1", None);
        check("sdb.blktrace.99999999999", None);
        check("sdb", None);
        check("-", None);
    }

    #[test]
    fn ranges_of_cpus() {
        assert_eq!(
            ranges(&BTreeSet::from([2, 3, 4, 7, 9, 10])),
            "2–4, 7, 9, 10"
        );
    }
}
