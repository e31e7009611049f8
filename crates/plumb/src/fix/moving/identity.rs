//! Which disk a journal is about, and which journal a disk is waiting for.

use std::collections::HashSet;
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use plumb_label::{Label, Partition};
use plumb_relocate::labels::kernel::node_of;
use plumb_relocate::moving::status;
use plumb_relocate::signatures::markers;
use plumb_relocate::{JournalFile, Marker};
use plumb_sys::{Access, DirectDisk};

use super::error::MoveRefused;
use super::evidence::must_be_of;
use super::trust::Reached;
use super::{MovePaths, look};
use crate::failure::Failure;
use crate::fix::act::{Ownership, STATE};
use crate::fix::subject::{Subject, by_name};

/// What the names of journals end in.
pub const JOURNAL: &str = "plumb-journal";
/// What is read at once while a marker is looked for.
const PIECE: u64 = 1 << 20;
const SECTOR: usize = 512;
/// So many different marks of one disk are followed; a disk of more of them was made to keep us busy.
const MARKS_MAX: usize = 64;
/// Names this boot of the kernel.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// What tells a disk from others, as it is kept in the journal: its node, what identifies it, and its label; and whose the
/// node of the partition was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskWords {
    /// The node, when the move began.
    pub path: String,
    /// World Wide Name, serial number or the like; empty where it has none.
    pub identity: String,
    /// Identity of its label; empty where it cannot be read.
    pub label: String,
    /// User, group and mode of the partition's node, when the move began.
    pub ownership: Option<Ownership>,
    /// The boot and the kernel's number of the disk in it, when the move began.
    pub attachment: Option<Attachment>,
}

/// A disk as the kernel numbered it: within one boot no other disk gets the number, whatever its node is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    boot: String,
    sequence: u64,
}

impl Attachment {
    /// Asks the kernel; `None` of images, and on kernels before 5.15.
    pub fn of(disk: &DirectDisk) -> Option<Attachment> {
        let boot = std::fs::read_to_string(BOOT).ok()?;
        Some(Attachment {
            boot: boot.trim().to_owned(),
            sequence: disk.sequence()?,
        })
    }

    fn parse(text: &str) -> Option<Attachment> {
        let (boot, sequence) = text.split_once(' ')?;
        Some(Attachment {
            boot: boot.to_owned(),
            sequence: sequence.parse().ok()?,
        })
    }

    /// Whether both are of one boot, and are not the same disk.
    fn contradicts(&self, other: &Attachment) -> bool {
        self.boot == other.boot && self.sequence != other.sequence
    }
}

impl DiskWords {
    /// Takes path, identity and label from a disk.
    pub fn from_disk(subject: &Subject, label: Option<&Label>) -> DiskWords {
        DiskWords {
            path: subject.device(),
            identity: subject.here.identity(),
            label: label.and_then(|label| label.id.clone()).unwrap_or_default(),
            ownership: None,
            attachment: Attachment::of(&subject.disk),
        }
    }

    /// As one text: a line each.
    pub fn text(&self) -> String {
        let plain = |text: &str| text.replace(['\n', '\r'], " ");
        let ownership = self
            .ownership
            .as_ref()
            .map(Ownership::to_string)
            .unwrap_or_default();
        let attachment = self.attachment.as_ref();
        let attachment = attachment
            .map(|found| format!("{} {}", found.boot, found.sequence))
            .unwrap_or_default();
        format!(
            "{}\n{}\n{}\n{ownership}\n{attachment}",
            plain(&self.path),
            plain(&self.identity),
            plain(&self.label)
        )
    }

    /// Takes the text apart.
    pub fn parse(text: &str) -> DiskWords {
        let mut lines = text.lines().map(str::to_owned);
        let mut next = || lines.next().unwrap_or_default();
        let (path, identity, label) = (next(), next(), next());
        DiskWords {
            path,
            identity,
            label,
            ownership: Ownership::parse(&next()),
            attachment: Attachment::parse(&next()),
        }
    }

    /// Whether both state the same identity.
    pub fn has_identity_of(&self, other: &DiskWords) -> bool {
        !self.identity.is_empty() && self.identity == other.identity
    }

    /// Whether both are one disk of this boot, or at least have the same name where the kernel does not know better.
    pub fn is_attached_as(&self, other: &DiskWords) -> bool {
        match (&self.attachment, &other.attachment) {
            (Some(is), Some(was)) if is == was => true,
            (Some(is), Some(was)) if is.contradicts(was) => false,
            _ => self.path == other.path,
        }
    }

    /// Whether both have labels of the same identity.
    pub fn has_label_of(&self, other: &DiskWords) -> bool {
        !self.label.is_empty() && self.label == other.label
    }

    /// Whether `found` can be that disk: nothing that both have may differ. A label that was torn tells nothing, and what
    /// neither has proves nothing.
    ///
    /// # Errors
    /// What differs.
    pub fn must_be(&self, found: &DiskWords) -> Result<(), MoveRefused> {
        let pairs = [
            (&found.identity, &self.identity),
            (&found.label, &self.label),
        ];
        match pairs
            .into_iter()
            .find(|(is, was)| !is.is_empty() && !was.is_empty() && is != was)
        {
            Some((is, was)) => Err(MoveRefused::OtherDisk {
                device: found.path.clone(),
                found: is.clone(),
                expected: was.clone(),
            }),
            None => Ok(()),
        }
    }
}

/// The move that is meant: by its journal's file, or by the disk or partition that waits for one. That disk is the move's, and
/// not what the journal calls it: names change.
///
/// # Errors
/// When nothing leads to a journal, or what leads there is another one.
pub fn way_to(name: &Path) -> Result<MovePaths, Failure> {
    // A journal that is no regular file is refused when it is opened.
    let kind = std::fs::metadata(name).map(|found| found.file_type());
    if kind.is_ok_and(|kind| !kind.is_block_device()) {
        return Ok(MovePaths::new(name.to_owned(), None, Reached::Named));
    }
    let disk = whole_disk(&by_name(name));
    if !disk.exists() {
        let what = "found no such file or device, expected the journal of a move, or its disk or partition";
        return Err(Failure::usage(format!("{}: {what}", name.display())));
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
        // What Plumb knows no signature of has no place for a mark.
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
/// What speaks against the first mark, where none of them leads to a journal.
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

/// Journals that lie where nobody said otherwise, of moves on this disk that have not ended.
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

/// The entry of type *moving*.
pub fn moving_part(label: &Label) -> Option<&Partition> {
    label.partitions.iter().find(|part| part.kind.is_moving())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_disk_is_told() {
        let was = DiskWords {
            path: "/dev/sdb".into(),
            identity: "naa.5".into(),
            label: "guid".into(),
            ownership: Ownership::parse("1 2 640"),
            attachment: Attachment::parse("boot 7"),
        };
        assert_eq!(DiskWords::parse(&was.text()), was);
        let with = |identity: &str, label: &str| DiskWords {
            path: "/dev/sdc".into(),
            identity: identity.into(),
            label: label.into(),
            ownership: None,
            attachment: None,
        };
        for (found, is_it) in [
            (with("naa.5", "guid"), true),
            (with("naa.5", ""), true),
            (with("", "guid"), true),
            (with("naa.6", "guid"), false),
            (with("naa.5", "other"), false),
        ] {
            assert_eq!(was.must_be(&found).is_ok(), is_it, "{found:?}");
        }
        let odd = DiskWords {
            path: "a\nb".into(),
            identity: String::new(),
            ..was
        };
        assert_eq!(DiskWords::parse(&odd.text()).label, "guid");
        assert_eq!(
            DiskWords::parse("/dev/sdb\nnaa.5\nguid").ownership,
            None,
            "journals of before have none"
        );
    }

    /// The kernel's number tells two disks of one name apart, and finds one under another name; that of another boot says
    /// nothing.
    #[test]
    fn a_number_of_the_kernel_goes_before_a_name() {
        let disk =
            |path: &str, attachment: &str| DiskWords::parse(&format!("{path}\n\n\n\n{attachment}"));
        let was = disk("/dev/sdb", "one 7");
        for (found, is_it) in [
            (disk("/dev/sdb", "one 7"), true),
            (disk("/dev/sdc", "one 7"), true),
            (disk("/dev/sdb", "one 8"), false),
            (disk("/dev/sdb", "two 8"), true),
            (disk("/dev/sdc", "two 7"), false),
            (disk("/dev/sdb", ""), true),
            (disk("/dev/sdc", ""), false),
        ] {
            assert_eq!(found.is_attached_as(&was), is_it, "{found:?}");
        }
    }
}
