//! Whether a disk is the one of a move. Names change with every boot, many disks state no identity, and copies are
//! alike: before the first write the disk has to show the move itself, by a marker of its journal or by the label in
//! the state that the journal allows.

use super::identity::DiskWords;
use crate::moving::{ByteChange, Plan};
use crate::{DiskOffset, Ending, Marker, Stage, Status};
use plumb_geometry::align_down;
use plumb_label::Disk;

/// The evidence of a move on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// Data that only this move writes.
    Written,
    /// The label of before: a copy of the disk has it as well.
    Before,
}

/// A disk that is not shown to be the one of a move.
#[derive(Debug, thiserror::Error)]
pub enum NotThisDisk {
    /// Another disk than the move was begun on.
    #[error("{device}: found {found}, expected {expected}: the move was begun on another disk")]
    OtherDisk {
        /// The disk.
        device: String,
        /// The value found.
        found: String,
        /// The expected value.
        expected: String,
    },
    /// Nothing shows it.
    #[error(
        "{device}: found {found}, expected a mark of the journal {journal} or the label that its move has come to: nothing was \
         written"
    )]
    NotShown {
        /// The disk.
        device: String,
        /// The value found.
        found: String,
        /// Name of the journal.
        journal: String,
    },
}

/// A disk as it is now.
pub struct CurrentDisk<'a> {
    /// Its node, identity and label.
    pub words: DiskWords,
    /// Whether it has a label that can be read.
    pub has_label: bool,
    /// Its bytes.
    pub disk: &'a dyn Disk,
    /// Whether its owner has named it as the disk of the move: an adapter or a box has an identity of its own.
    pub is_named: bool,
}

/// That a disk is as long as when the move began: its last sectors may be those of a label.
///
/// # Errors
/// The length that it has.
pub fn must_be_as_long(status: &Status, disk: &dyn Disk) -> Result<(), u64> {
    let (found, expected) = (disk.size_bytes(), status.plan.disk_bytes);
    let block = u64::from(status.plan.logical_block_bytes);
    match align_down(found, block) == Some(expected) {
        true => Ok(()),
        false => Err(found),
    }
}

impl CurrentDisk<'_> {
    /// Whether it shows bytes that only this move writes, at any of its stages: a journal on a disk that confirmed writes
    /// falsely may have lost all records of them.
    ///
    /// # Errors
    /// It is another disk.
    pub fn shows_move(&self, status: &Status) -> Result<bool, NotThisDisk> {
        let plan = &status.plan;
        DiskWords::parse(&plan.disk).must_be(&self.words)?;
        let mut changes = [&plan.hide, &plan.finish].into_iter();
        Ok(has_marker(plan, self.disk) || changes.any(|changes| shows(changes, status, self.disk)))
    }

    /// That it is the disk of a move. Returns the note that a reader has to see.
    ///
    /// # Errors
    /// The contradiction, or the lack of evidence.
    pub fn must_be_of(&self, status: &Status) -> Result<Option<String>, NotThisDisk> {
        let (was, is) = (DiskWords::parse(&status.plan.disk), &self.words);
        let evidence = find(status, self.disk);
        if let Err(error) = was.must_be(is) {
            let is_whole = self.disk.size_bytes() == status.plan.disk_bytes;
            let is_shown = evidence == Some(Evidence::Written) && was.has_label_of(is);
            let note = format!(
                "it is {} by now, and was {} when the move began: label and size are the move's",
                is.identity, was.identity
            );
            return if self.is_named && is_whole && is_shown {
                Ok(Some(note))
            } else {
                Err(error)
            };
        }
        let is_same = was.has_identity_of(is);
        let is_shown = match evidence {
            Some(Evidence::Written) => true,
            Some(Evidence::Before) => self.is_named || is_same || is.is_attached_as(&was),
            // Nothing is written any more.
            None if status.ending.is_some() && was.has_label_of(is) => true,
            // Whether this label is one to go on with is for the move to say.
            None if self.has_label => is_same && was.label == is.label,
            // The write that was cut off may have spoiled the only copy.
            None => is_same && !is_blank(status, self.disk),
        };
        if is_shown {
            return Ok(None);
        }
        let found = match (self.has_label, is.label.as_str()) {
            (false, _) => "no label".to_owned(),
            (true, "") => "a label without identity".to_owned(),
            (true, id) => format!("the label {id}"),
        };
        let journal = status.plan.journal.to_string();
        Err(NotThisDisk::NotShown {
            device: is.path.clone(),
            found,
            journal,
        })
    }
}

/// Looks for it.
fn find(status: &Status, disk: &dyn Disk) -> Option<Evidence> {
    let plan = &status.plan;
    if has_marker(plan, disk) {
        return Some(Evidence::Written);
    }
    let may = Possible::by(status);
    let written = [(may.is_hidden, &plan.hide), (may.is_finished, &plan.finish)];
    let mut written = written.into_iter().filter(|(may_be, _)| *may_be);
    if written.any(|(_, changes)| shows(changes, status, disk)) {
        return Some(Evidence::Written);
    }
    let is_old = may.is_old
        && plan
            .hide
            .iter()
            .any(|change| content(change, disk).is_some_and(|found| found == change.old));
    is_old.then_some(Evidence::Before)
}

/// Whether a marker of the journal is in one of its places.
fn has_marker(plan: &Plan, disk: &dyn Disk) -> bool {
    let signatures = plan
        .signatures
        .iter()
        .flat_map(|range| [plan.from, plan.to].map(|at| at.0 + range.start));
    let mut places = signatures.chain([plan.union().start]);
    places.any(
        |at| matches!(Marker::at(disk, at), Ok(Some(marker)) if marker.journal == plan.journal),
    )
}

/// The bytes in the place of a change; `None` if they cannot be read.
fn content(change: &ByteChange<DiskOffset>, disk: &dyn Disk) -> Option<Vec<u8>> {
    let mut found = vec![0; change.old.len()];
    disk.read_at(change.at.0, &mut found).ok().map(|()| found)
}

/// Whether the disk shows one of these changes, and nothing but their old or new bytes in the places of the others. One
/// change alone proves nothing: a journal can name any bytes. A place that cannot be read shows nothing.
fn shows(changes: &[ByteChange<DiskOffset>], status: &Status, disk: &dyn Disk) -> bool {
    let is_torn = |change: &&ByteChange<DiskOffset>| {
        let torn = status.torn.as_ref();
        torn.is_some_and(|torn| torn.meets(&change.range()))
    };
    let whole = changes.iter().filter(|change| !is_torn(change));
    let readable: Vec<_> = whole
        .filter_map(|change| Some((change, content(change, disk)?)))
        .collect();
    let is_new = |(change, found): &(&ByteChange<DiskOffset>, Vec<u8>)| *found == change.new;
    readable.iter().any(is_new) && readable.iter().all(|one| is_new(one) || one.1 == one.0.old)
}

/// The possible labels of parts of the disk.
struct Possible {
    is_old: bool,
    is_hidden: bool,
    is_finished: bool,
}

impl Possible {
    /// As far as the journal says. A copy of the disk that was moved before has the finished one.
    fn by(status: &Status) -> Possible {
        let (is_old, is_hidden, is_finished) = match (
            status.ending,
            status.progress.is_back,
            status.progress.stage,
        ) {
            (Some(Ending::Moved), ..) => (false, false, true),
            (Some(Ending::RolledBack), ..) => (true, false, false),
            (None, _, Stage::Copying) => (false, true, false),
            (None, false, Stage::Hiding) | (None, true, Stage::Finishing) => (true, true, false),
            (None, true, Stage::Verifying | Stage::Done) => (true, false, false),
            (None, true, Stage::Hiding)
            | (None, false, Stage::Finishing | Stage::Verifying | Stage::Done) => {
                (false, true, true)
            }
        };
        Possible {
            is_old,
            is_hidden,
            is_finished,
        }
    }
}

/// Whether there are zeros in place of the label: a torn write cannot leave that, so it is a disk without a label.
fn is_blank(status: &Status, disk: &dyn Disk) -> bool {
    status.plan.hide.iter().all(|change| {
        let mut found = vec![0; change.new.len()];
        disk.read_at(change.at.0, &mut found).is_ok() && found.iter().all(|byte| *byte == 0)
    })
}

#[cfg(test)]
mod tests {
    use crate::moving::{Copying, JournalId, Plan};
    use crate::{Progress, Unit};

    use super::*;

    const SIZE: u64 = 1 << 20;
    const LABEL: u64 = 512;

    fn sector(byte: u8) -> Vec<u8> {
        vec![byte; 512]
    }

    /// Its label is a sector of 1 before, of 2 meanwhile and of 3 afterwards.
    fn status(stage: Stage, is_back: bool, ending: Option<Ending>, was: &DiskWords) -> Status {
        let plan = Plan {
            partition: "/dev/vdb1".to_owned(),
            disk: was.text(),
            disk_bytes: SIZE,
            logical_block_bytes: 512,
            physical_block_bytes: 512,
            journal: JournalId([7; 16]),
            journal_path: "/j".to_owned(),
            from: DiskOffset(34 * 512),
            to: DiskOffset(2048 * 512),
            len: 8192,
            unit: Unit {
                bytes: 4096,
                offset: 0,
            },
            copying: Copying::Batches(4096),
            at_once: 1,
            hide: vec![ByteChange {
                at: DiskOffset(LABEL),
                old: sector(1),
                new: sector(2),
            }],
            finish: vec![ByteChange {
                at: DiskOffset(LABEL),
                old: sector(2),
                new: sector(3),
            }],
            signatures: Vec::new(),
            strays: Vec::new(),
            fix_ups: Vec::new(),
        };
        let progress = Progress {
            is_back,
            stage,
            bytes: 0,
            bytes_total: 8192,
        };
        Status {
            plan,
            progress,
            may_be_in_use: false,
            torn: None,
            lost: Vec::new(),
            ending,
        }
    }

    fn disk_words(path: &str, identity: &str, label: &str) -> DiskWords {
        let text = format!("{path}\n{identity}\n{label}");
        DiskWords::parse(&text)
    }

    /// The disk of a label, and the verdict.
    fn judged(
        status: &Status,
        byte: u8,
        words: DiskWords,
        is_named: bool,
    ) -> Result<Option<String>, String> {
        let mut disk = vec![0; SIZE as usize];
        disk[LABEL as usize..][..512].fill(byte);
        let has_label = !words.label.is_empty();
        let seen = CurrentDisk {
            words,
            has_label,
            disk: &disk,
            is_named,
        };
        seen.must_be_of(status).map_err(|error| error.to_string())
    }

    /// Every label that it can have at each stage shows it, and no other one does.
    #[test]
    fn labels_agree_with_the_journal() {
        let disk = disk_words("/dev/vdb", "", "guid");
        for (stage, is_back, ending, labels) in [
            (Stage::Hiding, false, None, &[1, 2][..]),
            (Stage::Copying, false, None, &[2]),
            (Stage::Finishing, false, None, &[2, 3]),
            (Stage::Verifying, false, None, &[2, 3]),
            (Stage::Hiding, true, None, &[2, 3]),
            (Stage::Copying, true, None, &[2]),
            (Stage::Finishing, true, None, &[1, 2]),
            (Stage::Verifying, true, None, &[1]),
        ] {
            let status = status(stage, is_back, ending, &disk);
            for byte in [0, 1, 2, 3, 9] {
                let is_it = judged(&status, byte, disk.clone(), false).is_ok();
                assert_eq!(is_it, labels.contains(&byte), "{stage:?} {is_back} {byte}");
            }
        }
        // A move that has ended writes nothing more: others may have changed the label since.
        for ending in [Ending::Moved, Ending::RolledBack] {
            let status = status(Stage::Done, false, Some(ending), &disk);
            assert_eq!(judged(&status, 9, disk.clone(), false), Ok(None));
            judged(&status, 9, disk_words("/dev/vdb", "", ""), false).expect_err("no label");
        }
    }

    #[test]
    fn nothing_that_contradicts_is_no_evidence() {
        let was = disk_words("/dev/vdb", "", "guid");
        let copying = status(Stage::Copying, false, None, &was);
        let refused =
            judged(&copying, 0, disk_words("/dev/vdb", "", ""), true).expect_err("an empty disk");
        for word in [
            "/dev/vdb",
            "found no label",
            "journal 0707",
            "nothing was written",
        ] {
            assert!(refused.contains(word), "{refused}");
        }
        // A copy from before: an explicit name is believed, the recorded name is not.
        let hiding = status(Stage::Hiding, false, None, &was);
        let copy = disk_words("/dev/vdc", "", "guid");
        judged(&hiding, 1, copy.clone(), false).expect_err("it may be a copy");
        assert_eq!(judged(&hiding, 1, copy.clone(), true), Ok(None));
        assert_eq!(judged(&hiding, 2, copy.clone(), false), Ok(None));
        judged(&copying, 1, copy, true).expect_err("it is a copy");
    }

    #[test]
    fn an_identity_replaces_a_torn_label() {
        let was = disk_words("/dev/sdb", "naa.5", "guid");
        for stage in [Stage::Hiding, Stage::Finishing] {
            let status = status(stage, false, None, &was);
            assert_eq!(
                judged(&status, 9, disk_words("/dev/sdc", "naa.5", ""), false),
                Ok(None)
            );
            judged(&status, 0, disk_words("/dev/sdc", "naa.5", ""), false)
                .expect_err("wiped, not torn");
            judged(&status, 9, disk_words("/dev/sdc", "", ""), true).expect_err("nothing shows it");
        }
    }

    /// A box for USB that states its own identity.
    #[test]
    fn another_identity_needs_a_name_and_written_bytes() {
        let was = disk_words("/dev/sdb", "naa.5", "guid");
        let copying = status(Stage::Copying, false, None, &was);
        let boxed = disk_words("/dev/sdc", "usb.1", "guid");
        let note = judged(&copying, 2, boxed.clone(), true)
            .expect("it is that disk")
            .expect("a note");
        assert!(note.contains("usb.1") && note.contains("naa.5"), "{note}");
        let refused = judged(&copying, 2, boxed.clone(), false).expect_err("nobody has named it");
        assert!(refused.contains("found usb.1, expected naa.5"), "{refused}");
        judged(&copying, 1, boxed.clone(), true).expect_err("not hidden");
        judged(
            &status(Stage::Hiding, false, None, &was),
            1,
            boxed.clone(),
            true,
        )
        .expect_err("a copy");
        judged(&copying, 2, disk_words("/dev/sdc", "usb.1", "other"), true)
            .expect_err("another label");
        judged(&copying, 2, disk_words("/dev/sdc", "usb.1", ""), true).expect_err("no label");
        let mut longer = copying;
        longer.plan.disk_bytes += 512;
        judged(&longer, 2, boxed, true).expect_err("another size");
    }
}
