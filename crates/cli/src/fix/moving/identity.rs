//! The disk of a journal, and the journal that a disk waits for.

use std::collections::HashSet;
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use plumb_label::{Label, Partition};
use plumb_relocate::labels::kernel::node_of;
use plumb_relocate::moving::status;
use plumb_relocate::preflight::{Attachment, CurrentDisk, DiskWords, moving_part};
use plumb_relocate::signatures::markers;
use plumb_relocate::{JournalFile, Marker, Raw, Status};
use plumb_sys::Access;

use super::error::MoveRefused;
use super::trust::Reached;
use super::{MovePaths, look};
use crate::failure::Failure;
use crate::fix::act::STATE;
use crate::fix::subject::{Subject, by_name};

/// The suffix of journals.
pub const JOURNAL: &str = "plumb-journal";
/// Length of one read in the search for a marker.
const PIECE: u64 = 1 << 20;
const SECTOR: usize = 512;
/// At most this number of different marks of one disk are followed; a disk with more was made to keep us busy.
const MARKS_MAX: usize = 64;

/// Checks that a disk is the one of a move. A disk that its owner has named (`is_named`) may state another identity.
/// Returns notes about that.
///
/// # Errors
/// The contradiction, or the lack of evidence.
pub fn must_be_of(
    status: &Status,
    subject: &Subject,
    label: Option<&Label>,
    is_named: bool,
) -> Result<Option<String>, MoveRefused> {
    let raw = subject.raw();
    let seen = current_disk(subject, &raw, label, is_named);
    Ok(seen.must_be_of(status)?)
}

/// Checks that a disk shows nothing of a move whose journal has no record of its beginning.
///
/// # Errors
/// The disk shows it, is another one, or cannot be read.
pub fn must_be_untouched(
    status: &Status,
    way: &MovePaths,
    named: Option<&Path>,
) -> Result<(), Failure> {
    let said = DiskWords::parse(&status.plan.disk).path;
    let disk = named.or(way.disk.as_deref()).unwrap_or(Path::new(&said));
    let subject = Subject::open(disk, Access::Read).map_err(|failure| {
        failure.with_help(
            "the journal has no record that its move began: pass --disk DEVICE, so that Plumb can see that nothing was written",
        )
    })?;
    let label = subject.label().ok().flatten();
    let raw = subject.raw();
    let now = current_disk(&subject, &raw, label.as_ref(), named.is_some());
    match now.shows_move(status).map_err(MoveRefused::from)? {
        false => Ok(()),
        true => Err(MoveRefused::RecordsLost {
            path: way.journal.display().to_string(),
            device: subject.device(),
        }
        .into()),
    }
}

/// A disk as it is now; `raw` has its bytes.
pub fn current_disk<'a>(
    subject: &Subject,
    raw: &'a Raw<'a>,
    label: Option<&Label>,
    is_named: bool,
) -> CurrentDisk<'a> {
    let words = DiskWords::of_disk(
        subject.device(),
        subject.here.identity(),
        label,
        Attachment::of_disk(&subject.disk),
    );
    CurrentDisk {
        words,
        has_label: label.is_some(),
        disk: raw,
        is_named,
    }
}

/// The requested move: by its journal's file, or by the disk or partition that waits for one. That disk is the move's,
/// and not the one in the journal: names change.
///
/// # Errors
/// If nothing leads to a journal, or to another one.
pub fn way_to(name: &Path) -> Result<MovePaths, Failure> {
    // A journal that is no regular file is refused when it is opened.
    let kind = std::fs::metadata(name).map(|found| found.file_type());
    if kind.is_ok_and(|kind| !kind.is_block_device()) {
        return Ok(MovePaths::new(name.to_owned(), None, Reached::Named));
    }
    let disk = whole_disk(&by_name(name));
    if !disk.exists() {
        let what = "found no such file or device, expected the journal of a move, or its disk or partition";
        return Err(Failure::missing(format!("{}: {what}", name.display())));
    }
    let subject = Subject::open(&disk, Access::Read)?;
    let label = subject.label().ok().flatten();
    let way = |journal, reached| MovePaths::new(journal, Some(subject.path.clone()), reached);
    let mut known = known_journals(&subject, label.as_ref());
    if let [_, _, ..] = known[..] {
        let names: Vec<String> = known
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        return Err(Failure::usage(format!(
            "{}: found several moves that have not ended: name the journal of one: {}",
            subject.device(),
            names.join(", ")
        )));
    }
    if let Some(journal) = known.pop() {
        return Ok(way(journal, Reached::State));
    }
    let device = subject.device();
    if let Some(journal) = label
        .as_ref()
        .and_then(|label| by_marks(&subject, label).transpose())
    {
        return journal.map(|journal| way(journal, Reached::Marked));
    }
    match label.as_ref().and_then(moving_part) {
        // Content without a known signature has no place for a mark.
        Some(part) => Err(Failure::unknown(format!(
            "{device}: {} is being moved, and no mark in it names the journal: name the file",
            part.id
        ))),
        None => Err(Failure::usage(format!(
            "{device}: found no journal and no mark of a move, expected one of them"
        ))),
    }
}

/// The journal to which a mark on the disk leads; `None` where there is no mark.
///
/// # Errors
/// The fault of the first mark, if no mark leads to a journal.
fn by_marks(subject: &Subject, label: &Label) -> Result<Option<PathBuf>, Failure> {
    let (mut lost, mut refusal) = (HashSet::new(), None);
    for (at, marker) in marks(subject, label) {
        if lost.contains(&marker) {
            continue;
        }
        match named_by(&marker, at, subject) {
            Ok(path) => return Ok(Some(path)),
            Err(failure) => {
                refusal.get_or_insert(failure);
            }
        }
        lost.insert(marker);
        if lost.len() == MARKS_MAX {
            break;
        }
    }
    refusal.map_or(Ok(None), Err)
}

/// Marks where a move writes them: anywhere in the entry of type *moving*, whose first block has one but for a moment; or,
/// since the last change of the label comes before the signatures, at the places of signatures in other partitions.
fn marks<'a>(subject: &'a Subject, label: &'a Label) -> impl Iterator<Item = (u64, Marker)> + 'a {
    let range = |part: &Partition| part.extent.start().0..part.extent.end().0;
    let moving = moving_part(label).map(range);
    let inside = moving
        .into_iter()
        .flat_map(|place| all_marks(subject, place));
    let others = label
        .partitions
        .iter()
        .filter(|part| !part.kind.is_moving());
    let others =
        others.flat_map(move |part| markers(&subject.raw(), &range(part), label.sector_bytes));
    inside.chain(others)
}

/// The journal that a mark names, if it is the journal of a move that writes a mark there.
fn named_by(marker: &Marker, at: u64, subject: &Subject) -> Result<PathBuf, Failure> {
    let device = subject.device();
    if marker.path.is_empty() {
        return Err(Failure::unknown(format!(
            "{device}: waits for the journal {}, whose path was too long to be noted: name the file",
            marker.journal
        )));
    }
    let path = PathBuf::from(&marker.path);
    let lost = |found: String| {
        Failure::from(MoveRefused::JournalLost {
            device: device.clone(),
            path: marker.path.clone(),
            journal: marker.journal.to_string(),
            found,
        })
    };
    if !path.is_absolute() || marker.path.contains(char::is_control) {
        return Err(lost("a path that no journal has".to_owned()));
    }
    let mut store = JournalFile::open_to_look(&path).map_err(|error| lost(error.to_string()))?;
    if store.is_unwritten() {
        return Err(lost("zeros at its start".to_owned()));
    }
    match status(&mut store) {
        Ok(status) if status.plan.journal != marker.journal => {
            Err(lost(format!("the journal {}", status.plan.journal)))
        }
        Ok(status) if !status.plan.marks(at) => Err(lost(format!(
            "a journal whose move writes no mark at byte {at}"
        ))),
        Ok(_) => Ok(path),
        Err(source) => Err(MoveRefused::NoMove {
            path: marker.path.clone(),
            source,
        }
        .into()),
    }
}

/// The disk of a partition, or the disk itself.
pub fn whole_disk(name: &Path) -> PathBuf {
    match super::preflight::disk_and_number(name) {
        Ok((disk, _)) => disk,
        Err(_) => disk_of_gone(name).unwrap_or_else(|| name.to_owned()),
    }
}

/// The disk of a partition that was taken from the kernel, by the name of its node.
fn disk_of_gone(name: &Path) -> Option<PathBuf> {
    let text = name.to_str().filter(|_| !name.exists())?;
    let bare = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = text[bare.len()..].parse().ok()?;
    let disks = [bare.strip_suffix('p'), Some(bare)]
        .into_iter()
        .flatten()
        .map(PathBuf::from);
    { disks }.find(|disk| disk.exists() && node_of(disk, number) == name)
}

/// Journals in the default directory, of unfinished moves on this disk.
fn known_journals(subject: &Subject, label: Option<&Label>) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(STATE).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let journals = paths.filter(|path| path.extension().is_some_and(|ending| ending == JOURNAL));
    let is_open = |path: &PathBuf| {
        look(path).is_ok_and(|status| {
            status.ending.is_none() && must_be_of(&status, subject, label, false).is_ok()
        })
    };
    journals.filter(is_open).collect()
}

/// Every sector of a place that holds a mark, in order.
fn all_marks(subject: &Subject, place: Range<u64>) -> impl Iterator<Item = (u64, Marker)> {
    let end = place.end;
    place.step_by(PIECE as usize).flat_map(move |at| {
        let mut piece = vec![0; (end - at).min(PIECE) as usize];
        // A block that cannot be read has no mark, and others may.
        let is_read = plumb_label::Disk::read_at(&subject.raw(), at, &mut piece).is_ok();
        let sectors = (at..).step_by(SECTOR).zip(piece.chunks(SECTOR));
        let found: Vec<(u64, Marker)> = sectors
            .filter(|_| is_read)
            .filter_map(|(at, sector)| Some((at, Marker::decode(sector)?)))
            .collect();
        found
    })
}
