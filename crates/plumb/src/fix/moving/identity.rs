//! Which disk a journal is about, and which journal a disk is waiting for.

use std::path::{Path, PathBuf};

use plumb_label::Label;
use plumb_relocate::Marker;
use plumb_relocate::labels::hidden::{MOVING, MOVING_MBR};
use plumb_sys::Access;

use super::error::MoveRefused;
use super::look;
use crate::failure::Failure;
use crate::fix::act::STATE;
use crate::fix::subject::Subject;

/// What the names of journals end in.
pub const JOURNAL: &str = "plumb-journal";
/// What is read at once while a marker is looked for.
const PIECE: u64 = 1 << 20;
const SECTOR: usize = 512;

/// What tells a disk from others, as it is kept in the journal: its node, what identifies it, and its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskWords {
    /// The node, when the move began.
    pub path: String,
    /// World Wide Name, serial number or the like; empty where it has none.
    identity: String,
    /// Identity of its label; empty where it cannot be read.
    label: String,
}

impl DiskWords {
    /// Those of a disk.
    pub fn of(subject: &Subject, label: Option<&Label>) -> DiskWords {
        DiskWords {
            path: subject.device(),
            identity: subject.here.identity(),
            label: label.and_then(|label| label.id.clone()).unwrap_or_default(),
        }
    }

    /// As one text: a line each.
    pub fn text(&self) -> String {
        let plain = |text: &str| text.replace(['\n', '\r'], " ");
        format!("{}\n{}\n{}", plain(&self.path), plain(&self.identity), plain(&self.label))
    }

    /// Takes the text apart.
    pub fn parse(text: &str) -> DiskWords {
        let mut lines = text.lines().map(str::to_owned);
        let mut next = || lines.next().unwrap_or_default();
        DiskWords { path: next(), identity: next(), label: next() }
    }

    /// Whether `found` is that disk: nothing that both have may differ. A label that was torn tells nothing.
    ///
    /// # Errors
    /// What differs.
    pub fn must_be(&self, found: &DiskWords) -> Result<(), MoveRefused> {
        let pairs = [(&found.identity, &self.identity), (&found.label, &self.label)];
        match pairs.into_iter().find(|(is, was)| !is.is_empty() && !was.is_empty() && is != was) {
            Some((is, was)) => Err(MoveRefused::OtherDisk {
                device: found.path.clone(),
                found: is.clone(),
                expected: was.clone(),
            }),
            None => Ok(()),
        }
    }
}

/// The journal that is meant: the file, or the one that a disk or partition is waiting for.
///
/// # Errors
/// When nothing leads to one.
pub fn journal_of(name: &Path) -> Result<PathBuf, Failure> {
    if std::fs::metadata(name).is_ok_and(|found| found.is_file()) {
        return Ok(name.to_owned());
    }
    let subject = Subject::open(&whole_disk(name), Access::Read)?;
    let label = subject.label().ok().flatten();
    let words = DiskWords::of(&subject, label.as_ref());
    if let Some(journal) = known_journal(&words) {
        return Ok(journal);
    }
    let marker = label.as_ref().and_then(|label| marked(&subject, label));
    match marker {
        Some(marker) if !marker.path.is_empty() => Ok(PathBuf::from(marker.path)),
        Some(marker) => Err(Failure::unknown(format!(
            "{}: waits for the journal {}, whose path was too long to be noted: name the file",
            subject.device(),
            marker.journal
        ))),
        None => Err(Failure::usage(format!(
            "{}: found no journal and no mark of a move, expected one of them",
            subject.device()
        ))),
    }
}

/// The disk of a partition, or the disk itself.
pub fn whole_disk(name: &Path) -> PathBuf {
    match super::preflight::disk_and_number(name) {
        Ok((disk, _)) => disk,
        Err(_) => name.to_owned(),
    }
}

/// A journal among those that lie where nobody said otherwise, of a move on this disk that has not ended.
fn known_journal(words: &DiskWords) -> Option<PathBuf> {
    let entries = std::fs::read_dir(STATE).ok()?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut journals = paths.filter(|path| path.extension().is_some_and(|ending| ending == JOURNAL));
    journals.find(|path| {
        look(path).is_ok_and(|status| {
            let of = DiskWords::parse(&status.plan.disk);
            status.ending.is_none() && of.path == words.path && of.must_be(words).is_ok()
        })
    })
}

/// The marker within an entry of type *moving*.
fn marked(subject: &Subject, label: &Label) -> Option<Marker> {
    use plumb_label::{Disk as _, PartitionType};
    let is_moving =
        |kind: PartitionType| kind == PartitionType::Guid(MOVING) || kind == PartitionType::Mbr(MOVING_MBR);
    let part = label.partitions.iter().find(|part| is_moving(part.kind))?;
    let (mut at, end) = (part.extent.start().0, part.extent.end().0);
    let mut buffer = vec![0; PIECE as usize];
    while at < end {
        let len = (end - at).min(PIECE) as usize;
        plumb_label::Disk::read_at(&subject.raw(), at, &mut buffer[..len]).ok()?;
        if let Some(marker) = buffer[..len].chunks(SECTOR).find_map(Marker::decode) {
            return Some(marker);
        }
        at += len as u64;
    }
    debug_assert!(subject.raw().size_bytes() >= end);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_disk_is_told() {
        let was = DiskWords { path: "/dev/sdb".into(), identity: "naa.5".into(), label: "guid".into() };
        assert_eq!(DiskWords::parse(&was.text()), was);
        let with = |identity: &str, label: &str| DiskWords {
            path: "/dev/sdc".into(),
            identity: identity.into(),
            label: label.into(),
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
        let odd = DiskWords { path: "a\nb".into(), identity: String::new(), label: "guid".into() };
        assert_eq!(DiskWords::parse(&odd.text()).label, "guid");
    }
}
