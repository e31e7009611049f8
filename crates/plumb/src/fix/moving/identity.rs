//! Which disk a journal is about, and which journal a disk is waiting for.

use std::ops::Range;
use std::path::{Path, PathBuf};

use plumb_geometry::Extent;
use plumb_label::{Label, Partition};
use plumb_relocate::Marker;
use plumb_relocate::labels::kernel::node_of;
use plumb_sys::Access;

use super::error::MoveRefused;
use super::evidence::must_be_of;
use super::journal_place::is_unwritten;
use super::{MovePaths, look};
use crate::failure::Failure;
use crate::fix::act::{Ownership, STATE};
use crate::fix::subject::{Subject, by_name};

/// What the names of journals end in.
pub const JOURNAL: &str = "plumb-journal";
/// What is read at once while a marker is looked for.
const PIECE: u64 = 1 << 20;
const SECTOR: usize = 512;

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
}

impl DiskWords {
    /// Takes path, identity and label from a disk.
    pub fn from_disk(subject: &Subject, label: Option<&Label>) -> DiskWords {
        DiskWords {
            path: subject.device(),
            identity: subject.here.identity(),
            label: label.and_then(|label| label.id.clone()).unwrap_or_default(),
            ownership: None,
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
        format!(
            "{}\n{}\n{}\n{ownership}",
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
        }
    }

    /// Whether both state the same identity.
    pub fn has_identity_of(&self, other: &DiskWords) -> bool {
        !self.identity.is_empty() && self.identity == other.identity
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
    if std::fs::metadata(name).is_ok_and(|found| found.is_file()) {
        return Ok(MovePaths {
            journal: name.to_owned(),
            disk: None,
        });
    }
    let disk = whole_disk(&by_name(name));
    if !disk.exists() {
        let what = "found no such file or device, expected the journal of a move, or its disk or partition";
        return Err(Failure::usage(format!("{}: {what}", name.display())));
    }
    let subject = Subject::open(&disk, Access::Read)?;
    let label = subject.label().ok().flatten();
    let way = |journal| MovePaths {
        journal,
        disk: Some(subject.path.clone()),
    };
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
        return Ok(way(journal));
    }
    let device = subject.device();
    if let Some(marker) = label.as_ref().and_then(|label| marker_on(&subject, label)) {
        return named_by(&marker, &subject).map(way);
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

/// The journal that a marker on a disk names; nobody can go on without it.
fn named_by(marker: &Marker, subject: &Subject) -> Result<PathBuf, Failure> {
    let device = subject.device();
    if marker.path.is_empty() {
        return Err(Failure::unknown(format!(
            "{device}: waits for the journal {}, whose path was too long to be noted: name the file",
            marker.journal
        )));
    }
    let path = PathBuf::from(&marker.path);
    let lost = |found: String| {
        let journal = marker.journal.to_string();
        MoveRefused::JournalLost {
            device: device.clone(),
            path: marker.path.clone(),
            journal,
            found,
        }
    };
    if let Err(error) = std::fs::metadata(&path) {
        return Err(lost(error.to_string()).into());
    }
    if is_unwritten(&path) {
        return Err(lost("zeros at its start".to_owned()).into());
    }
    // What is damaged is told by whoever reads it.
    match look(&path) {
        Ok(status) if status.plan.journal != marker.journal => {
            Err(lost(format!("the journal {}", status.plan.journal)).into())
        }
        _ => Ok(path),
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

/// The first marker anywhere in the entry of type *moving*; or, since the last change of the label comes before the
/// signatures, at the ends of any partition, where most of them are.
fn marker_on(subject: &Subject, label: &Label) -> Option<Marker> {
    let moving = moving_part(label).map(|part| part.extent.start().0..part.extent.end().0);
    let inside = moving.and_then(|place| marker_in(subject, place));
    let places = label.partitions.iter().map(|part| part.extent);
    inside
        .or_else(|| marker_at_ends(subject, places))
        .map(|(_, marker)| marker)
}

/// The first marker at the ends of any of these places, and where it is.
pub fn marker_at_ends(
    subject: &Subject,
    places: impl IntoIterator<Item = Extent>,
) -> Option<(u64, Marker)> {
    let mut ends = places.into_iter().flat_map(|place| {
        let (start, end) = (place.start().0, place.end().0);
        [
            start..end.min(start + PIECE),
            start.max(end.saturating_sub(PIECE))..end,
        ]
    });
    ends.find_map(|place| marker_in(subject, place))
}

fn marker_in(subject: &Subject, place: Range<u64>) -> Option<(u64, Marker)> {
    let mut buffer = vec![0; PIECE as usize];
    let mut at = place.start;
    while at < place.end {
        let piece = &mut buffer[..(place.end - at).min(PIECE) as usize];
        // A block that cannot be read has no marker, and others may.
        let is_read = plumb_label::Disk::read_at(&subject.raw(), at, piece).is_ok();
        let mut sectors = (at..)
            .step_by(SECTOR)
            .zip(piece.chunks(SECTOR))
            .filter(|_| is_read);
        if let Some(found) = sectors.find_map(|(at, sector)| Some((at, Marker::decode(sector)?))) {
            return Some(found);
        }
        at += piece.len() as u64;
    }
    None
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
        };
        assert_eq!(DiskWords::parse(&was.text()), was);
        let with = |identity: &str, label: &str| DiskWords {
            path: "/dev/sdc".into(),
            identity: identity.into(),
            label: label.into(),
            ownership: None,
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
}
