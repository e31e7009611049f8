//! The files of a recording: one, or the last ones of several of bounded size.

use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plumb_geometry::Bytes;
use plumb_model::result::record::File;
use plumb_trace::parquet::grow::GrowingWriter;
use plumb_trace::{Batch, SourceInfo};

use crate::cli::Record;
use crate::failure::Failure;
use crate::output;

/// A batch, with the growth of a footer, takes less than this.
const MARGIN_BYTES: u64 = 320 << 10;

/// Share of the free space that a recording without --max-size may take: others write to the file system as well.
const SHARE_OF_FREE: u64 = 4;

/// The limit of a file's size.
#[derive(Clone, Copy)]
enum Limit {
    /// The user gave it.
    Given(u64),
    /// A share of the space that was free at the start.
    Free(u64),
}

impl Limit {
    fn bytes(self) -> u64 {
        match self {
            Limit::Given(bytes) | Limit::Free(bytes) => bytes,
        }
    }
}

/// Writes batches to files.
pub struct Files {
    output: PathBuf,
    limit: Limit,
    keep: Option<u32>,
    number: u32,
    /// `None` between the last write and the end.
    writer: Option<GrowingWriter>,
    /// Device and inode of the present file.
    identity: Option<(u64, u64)>,
    /// The source's facts at the start of the file: its counts are those since then.
    before: SourceInfo,
    /// Those with the last I/O, and its time; only if files follow each other.
    last: Option<(SourceInfo, Duration)>,
    began: Duration,
    done: Vec<File>,
    /// Places in `done` of files that are there.
    kept: VecDeque<usize>,
    /// I/O that came after the end.
    refused: u64,
}

impl Files {
    /// Begins with the first file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(args: &Record, info: &SourceInfo) -> Result<Files, Failure> {
        let limit = match args.max_size {
            Some(bytes) => Limit::Given(bytes),
            None => Limit::Free(share_of_free(&args.output)?),
        };
        let mut files = Files {
            output: args.output.clone(),
            limit,
            keep: args.files,
            number: 0,
            writer: None,
            identity: None,
            before: info.clone(),
            last: None,
            began: Duration::ZERO,
            done: Vec::new(),
            kept: VecDeque::new(),
            refused: 0,
        };
        files.next(info, Duration::ZERO)?;
        Ok(files)
    }

    /// Whether nothing more is taken.
    pub fn is_full(&self) -> bool {
        self.writer.is_none()
    }

    /// Why nothing more is taken.
    pub fn why_full(&self) -> &'static str {
        match self.limit {
            Limit::Given(_) => "as the file is full",
            Limit::Free(_) => "as the file has taken a quarter of the free space",
        }
    }

    /// I/O in the files, and in those that were deleted.
    pub fn events(&self) -> u64 {
        self.done.iter().map(|file| file.ios).sum::<u64>()
            + self.writer.as_ref().map_or(0, GrowingWriter::events)
    }

    /// Bytes of the present file.
    pub fn bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, GrowingWriter::bytes)
    }

    /// I/O that came when the last file was full.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// All files, in order.
    pub fn into_list(self) -> Vec<File> {
        self.done
    }

    /// Takes a batch in.
    ///
    /// # Errors
    /// If it cannot be written; the file can be read up to the last success.
    pub fn write(
        &mut self,
        batch: &Batch,
        info: &SourceInfo,
        now: Duration,
    ) -> Result<(), Failure> {
        // The next file begins with the next I/O, so that none is empty.
        if self.keep.is_some() && !batch.is_empty() {
            // I/O that were lost since the last one count for the next file.
            let (info, now) = self.last.take().unwrap_or_else(|| (info.clone(), now));
            if self.is_out_of_room(&info, now)? {
                self.end(&info, now)?;
                self.next(&info, now)?;
                self.delete()?;
            }
        }
        if self.keep.is_some() && !batch.is_empty() {
            self.last = Some((info.clone(), now));
        }
        let told = self.since_begun(info);
        let Some(writer) = &mut self.writer else {
            self.refused += batch.len() as u64;
            return Ok(());
        };
        let written = writer.write(batch, &told, now.saturating_sub(self.began));
        written.map_err(|error| self.failed(&error))?;
        if self.keep.is_none() && self.is_out_of_room(info, now)? {
            self.end(info, now)?;
        }
        Ok(())
    }

    /// Whether the present file has no room for another batch.
    ///
    /// # Errors
    /// As [`Files::write`].
    fn is_out_of_room(&mut self, info: &SourceInfo, now: Duration) -> Result<bool, Failure> {
        let room = self.limit.bytes();
        let may_be = |writer: &GrowingWriter| writer.bytes_max() + MARGIN_BYTES > room;
        if !self.writer.as_ref().is_some_and(may_be) {
            return Ok(false);
        }
        // Rows in memory count as if they were not packed: their true length is known when they are written.
        let told = self.since_begun(info);
        let Some(writer) = &mut self.writer else {
            return Ok(false);
        };
        if writer.events() > writer.committed_events() {
            let written = writer.commit(&told, now.saturating_sub(self.began));
            written.map_err(|error| self.failed(&error))?;
        }
        Ok(self.writer.as_ref().is_some_and(may_be))
    }

    /// Ends the present file.
    ///
    /// # Errors
    /// As [`Files::write`].
    pub fn end(&mut self, info: &SourceInfo, now: Duration) -> Result<(), Failure> {
        let told = self.since_begun(info);
        self.must_be_there()?;
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        let (ios, committed) = (writer.events(), writer.committed_events());
        let path = self.path().display().to_string();
        let bytes = writer
            .finish(&told, now.saturating_sub(self.began))
            .map_err(|error| unwritten(&error, &path, committed))?;
        self.kept.push_back(self.done.len());
        self.done.push(File {
            path,
            ios,
            bytes,
            deleted: false,
        });
        Ok(())
    }

    fn next(&mut self, info: &SourceInfo, now: Duration) -> Result<(), Failure> {
        self.number += 1;
        self.before = info.clone();
        self.began = now;
        let told = self.since_begun(info);
        let writer =
            GrowingWriter::create(&self.path(), &told).map_err(|error| Failure::failed(&error))?;
        self.writer = Some(writer);
        self.identity = identity(&self.path());
        Ok(())
    }

    /// Checks that the name of the present file still leads to it.
    ///
    /// # Errors
    /// If another program deleted, renamed or replaced the file: its data are lost.
    pub fn must_be_there(&self) -> Result<(), Failure> {
        let path = self.path();
        if self.writer.is_none() || identity(&path) == self.identity {
            return Ok(());
        }
        let found = match path.symlink_metadata() {
            Ok(_) => "another file",
            Err(_) => "no file",
        };
        Err(Failure::failed(&std::io::Error::other(format!(
            "{}: found {found}, expected the recording: it was deleted, renamed or replaced",
            path.display()
        ))))
    }

    /// Deletes the oldest files when there are too many.
    fn delete(&mut self) -> Result<(), Failure> {
        let keep = self.keep.map_or(usize::MAX, |keep| keep as usize);
        while self.kept.len() + 1 > keep {
            let Some(oldest) = self.kept.pop_front() else {
                return Ok(());
            };
            let file = &mut self.done[oldest];
            std::fs::remove_file(&file.path).map_err(|error| {
                Failure::failed(&error).with_help(format!("deleting {}", file.path))
            })?;
            file.deleted = true;
            output::say(&format!("{}: deleted, {keep} files are kept", file.path));
        }
        Ok(())
    }

    fn path(&self) -> PathBuf {
        if self.keep.is_some() {
            numbered(&self.output, self.number)
        } else {
            self.output.clone()
        }
    }

    fn since_begun(&self, info: &SourceInfo) -> SourceInfo {
        let mut told = info.clone();
        let (counts, before) = (&mut told.counts, &self.before.counts);
        counts.lost -= before.lost.min(counts.lost);
        counts.unmatched_issues -= before.unmatched_issues.min(counts.unmatched_issues);
        counts.unmatched_completions -= before
            .unmatched_completions
            .min(counts.unmatched_completions);
        told
    }

    fn failed(&self, error: &plumb_trace::Error) -> Failure {
        let committed = self
            .writer
            .as_ref()
            .map_or(0, GrowingWriter::committed_events);
        unwritten(error, &self.path().display().to_string(), committed)
    }
}

/// A quarter of the space that this user has left on the file system of a file.
///
/// # Errors
/// If that is too little for a recording, or the directory is not there.
pub fn share_of_free(file: &Path) -> Result<u64, Failure> {
    let directory = directory_of(file);
    let free = rustix::fs::statvfs(directory)
        .map_err(|error| Failure::failed(&std::io::Error::from(error)))?;
    let free_bytes = free.f_bavail.saturating_mul(free.f_frsize);
    let share = free_bytes / SHARE_OF_FREE;
    if share > 2 * MARGIN_BYTES {
        return Ok(share);
    }
    let (found, expected) = (Bytes(free_bytes), Bytes(2 * MARGIN_BYTES * SHARE_OF_FREE));
    Err(Failure::failed(&std::io::Error::other(format!(
        "{}: found {found} of free space, expected more than {expected}, since a recording takes at most a quarter",
        directory.display()
    )))
    .with_help("write to another file system, or give a limit: --max-size"))
}

/// The directory of a file that may not exist yet.
fn directory_of(file: &Path) -> &Path {
    file.parent()
        .filter(|directory| !directory.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let file = path.symlink_metadata().ok()?;
    Some((file.dev(), file.ino()))
}

fn unwritten(error: &plumb_trace::Error, path: &str, committed: u64) -> Failure {
    let ios = plumb_geometry::group_digits(committed);
    Failure::failed(error).with_help(format!("{path} holds the first {ios} I/O and can be read"))
}

/// Whether all names are free that the recording may come to use.
///
/// # Errors
/// When one is taken, or there is no directory for it.
pub fn may_begin(args: &Record) -> Result<(), Failure> {
    let Some(name) = args.output.file_name().filter(|name| *name != "-") else {
        return Err(Failure::usage(format!(
            "{}: expected the name of a file",
            args.output.display()
        ))
        .with_help("a recording grows in its file: give --output FILE.parquet"));
    };
    let directory = directory_of(&args.output);
    if !directory.is_dir() {
        let found = format!(
            "{}: found no such directory to record to",
            directory.display()
        );
        return Err(Failure::missing(found));
    }
    if args.files.is_none() {
        return output::must_be_new(&args.output);
    }
    let stem = Path::new(name)
        .file_stem()
        .unwrap_or(name)
        .to_string_lossy()
        .into_owned();
    let is_ours = |name: &str| {
        let number = name
            .strip_prefix(&*stem)
            .and_then(|rest| rest.strip_prefix('-'));
        number.is_some_and(|rest| {
            rest.len() >= 4 && rest.as_bytes()[..4].iter().all(u8::is_ascii_digit)
        })
    };
    let entries = std::fs::read_dir(directory).map_err(|error| Failure::failed(&error))?;
    let taken = entries
        .flatten()
        .find(|entry| is_ours(&entry.file_name().to_string_lossy()));
    taken.map_or(Ok(()), |entry| output::must_be_new(&entry.path()))
}

/// `trace.parquet` to `trace-0001.parquet`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path
        .extension()
        .map(|extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!(
        "{stem}-{number:04}{}",
        extension.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_before_the_file_extension() {
        assert_eq!(
            numbered(Path::new("a/trace.parquet"), 1),
            Path::new("a/trace-0001.parquet")
        );
        assert_eq!(
            numbered(Path::new("trace"), 12_345),
            Path::new("trace-12345")
        );
    }
}
