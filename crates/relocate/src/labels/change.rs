//! The writes that make one label into another, each with the bytes that it takes the place of.

use std::io;

use plumb_geometry::Bytes;
use plumb_label::write as label;

use crate::disk::Disk;

/// The unit that a disk writes completely or not at all, as far as any standard promises.
const SECTOR: usize = 512;

/// One step of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeStep {
    /// Bytes that take the place of others of the same number.
    Write {
        /// First byte on the disk.
        at: Bytes,
        /// The old content.
        old: Vec<u8>,
        /// The new content.
        new: Vec<u8>,
    },
    /// Everything before is on the medium before anything after is begun.
    Flush,
}

/// Steps in their order. Places of two writes never overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    steps: Vec<ChangeStep>,
}

/// Why a label was not changed, or not wholly.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// A place cannot be read.
    #[error("byte {}: cannot be read", at.0)]
    Read {
        /// Its first byte.
        at: Bytes,
        /// The error of the system.
        source: io::Error,
    },
    /// A place was not written.
    #[error("byte {}: cannot be written", at.0)]
    Write {
        /// Its first byte.
        at: Bytes,
        /// The error of the system.
        source: io::Error,
    },
    /// The writes may not be on the disk.
    #[error("the disk did not confirm that the label is on the medium")]
    Flush {
        /// The error of the system.
        source: io::Error,
    },
    /// A place has other content than before the change, or than expected now.
    #[error("byte {}: found other bytes than {expected}", at.0)]
    Differs {
        /// The first byte that differs.
        at: Bytes,
        /// The expected content.
        expected: &'static str,
    },
    /// Two writes to one place: their order of priority is unknown.
    #[error("byte {}: two writes overlap, expected one for each place", at.0)]
    Overlap {
        /// The start of the second.
        at: Bytes,
    },
}

impl Change {
    /// Finds the bytes that the steps of a label change on a disk; places that already hold the right bytes are left out.
    ///
    /// # Errors
    /// When a place cannot be read, or two steps write to one.
    pub fn for_disk(
        steps: &[label::WriteStep],
        disk: &dyn plumb_label::Disk,
    ) -> Result<Change, ChangeError> {
        Change::from_old(steps, |at, new| {
            let mut old = vec![0; new.len()];
            disk.read_at(at, &mut old).map(|()| old)
        })
    }

    /// The same on a disk with unreadable blocks: each of them counts as one that holds the right bytes already.
    ///
    /// # Errors
    /// When two steps write to one place.
    pub(super) fn for_readable_blocks(
        steps: &[label::WriteStep],
        disk: &dyn plumb_label::Disk,
        block_bytes: usize,
    ) -> Result<Change, ChangeError> {
        Change::from_old(steps, |at, new| {
            let mut old = new.to_vec();
            if disk.read_at(at, &mut old).is_ok() {
                return Ok(old);
            }
            let places = (at..).step_by(block_bytes);
            for (at, (old, new)) in
                places.zip(old.chunks_mut(block_bytes).zip(new.chunks(block_bytes)))
            {
                if disk.read_at(at, old).is_err() {
                    old.copy_from_slice(new);
                }
            }
            Ok(old)
        })
    }

    /// `old` reads the old bytes of a place, which is given with its new ones.
    fn from_old(
        steps: &[label::WriteStep],
        old: impl Fn(u64, &[u8]) -> io::Result<Vec<u8>>,
    ) -> Result<Change, ChangeError> {
        let mut change = Change::default();
        for step in steps {
            match step {
                label::WriteStep::Flush => change.push(ChangeStep::Flush),
                label::WriteStep::Write { at, bytes } => {
                    let old =
                        old(at.0, bytes).map_err(|source| ChangeError::Read { at: *at, source })?;
                    if old != *bytes {
                        change.push(ChangeStep::Write {
                            at: *at,
                            old,
                            new: bytes.clone(),
                        });
                    }
                }
            }
        }
        change.trimmed()
    }

    /// A change of steps that somebody wrote down.
    ///
    /// # Errors
    /// When two of them write to one place.
    pub fn from_steps(steps: impl IntoIterator<Item = ChangeStep>) -> Result<Change, ChangeError> {
        let mut change = Change::default();
        steps.into_iter().for_each(|step| change.push(step));
        change.trimmed()
    }

    /// The same change as far as it is not done yet: places that hold their new bytes are left out, and the others have the
    /// bytes that are there as their old ones.
    ///
    /// # Errors
    /// When a place cannot be read.
    pub fn to_new(&self, disk: &mut dyn Disk) -> Result<Change, ChangeError> {
        let mut change = Change::default();
        for step in &self.steps {
            let ChangeStep::Write { at, new, .. } = step else {
                change.push(ChangeStep::Flush);
                continue;
            };
            let mut old = vec![0; new.len()];
            disk.read_at(at.0, &mut old)
                .map_err(|source| ChangeError::Read { at: *at, source })?;
            if old != *new {
                change.push(ChangeStep::Write {
                    at: *at,
                    old,
                    new: new.clone(),
                });
            }
        }
        change.trimmed()
    }

    /// First byte behind all places; 0 without any.
    #[must_use]
    pub fn end_bytes(&self) -> u64 {
        self.writes()
            .map(|(at, _, new)| at.0.saturating_add(new.len() as u64))
            .max()
            .unwrap_or(0)
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[ChangeStep] {
        &self.steps
    }

    /// Whether the label is as it should be already.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The places that are written: first byte, old and new bytes.
    pub fn writes(&self) -> impl Iterator<Item = (Bytes, &[u8], &[u8])> {
        self.steps.iter().filter_map(|step| match step {
            ChangeStep::Write { at, old, new } => Some((*at, old.as_slice(), new.as_slice())),
            ChangeStep::Flush => None,
        })
    }

    /// The way back: the old bytes in the reverse order, so that the copy which was written first, while the other was
    /// good, is again the one without which the disk can do.
    #[must_use]
    pub fn back(&self) -> Change {
        let turned = self.steps.iter().rev().map(|step| match step {
            ChangeStep::Flush => ChangeStep::Flush,
            ChangeStep::Write { at, old, new } => ChangeStep::Write {
                at: *at,
                old: new.clone(),
                new: old.clone(),
            },
        });
        Change {
            steps: turned.collect(),
        }
    }

    /// Writes, with the flushes between and one at the end.
    ///
    /// # Errors
    /// The first failed step: later ones were not begun.
    pub fn apply(&self, disk: &mut dyn Disk) -> Result<(), ChangeError> {
        for step in &self.steps {
            match step {
                ChangeStep::Flush => disk
                    .flush()
                    .map_err(|source| ChangeError::Flush { source })?,
                ChangeStep::Write { at, new, .. } => {
                    let written = disk.write_at(at.0, new);
                    written.map_err(|source| ChangeError::Write { at: *at, source })?;
                }
            }
        }
        disk.flush().map_err(|source| ChangeError::Flush { source })
    }

    /// Whether every place holds its old bytes.
    ///
    /// # Errors
    /// [`ChangeError::Differs`] when one does not: the disk was changed since.
    pub fn must_be_old(&self, disk: &mut dyn Disk) -> Result<(), ChangeError> {
        self.compare(disk, "those that were read before", |found, old, _| {
            first_differing(found, old)
        })
    }

    /// Whether every place holds its new bytes.
    ///
    /// # Errors
    /// [`ChangeError::Differs`] when one does not: the disk lost or damaged a write.
    pub fn must_be_new(&self, disk: &mut dyn Disk) -> Result<(), ChangeError> {
        self.compare(disk, "those that were written", |found, _, new| {
            first_differing(found, new)
        })
    }

    /// Whether every sector holds its old or its new bytes, so that nobody else has written there: true of a change that
    /// was done, and of one that was cut off.
    ///
    /// # Errors
    /// [`ChangeError::Differs`] when one does not.
    pub fn must_be_either(&self, disk: &mut dyn Disk) -> Result<(), ChangeError> {
        let expected = "those of before or after this change: somebody has written there since";
        self.compare(disk, expected, |found, old, new| {
            (0..found.len()).step_by(SECTOR).find_map(|at| {
                let sector = at..(at + SECTOR).min(found.len());
                let of_old = first_differing(&found[sector.clone()], &old[sector.clone()])?;
                let of_new = first_differing(&found[sector.clone()], &new[sector])?;
                Some(at + of_old.max(of_new))
            })
        })
    }

    fn compare(
        &self,
        disk: &mut dyn Disk,
        expected: &'static str,
        differs: impl Fn(&[u8], &[u8], &[u8]) -> Option<usize>,
    ) -> Result<(), ChangeError> {
        for (at, old, new) in self.writes() {
            let mut found = vec![0; new.len()];
            disk.read_at(at.0, &mut found)
                .map_err(|source| ChangeError::Read { at, source })?;
            if let Some(byte) = differs(&found, old, new) {
                return Err(ChangeError::Differs {
                    at: Bytes(at.0 + byte as u64),
                    expected,
                });
            }
        }
        Ok(())
    }

    fn push(&mut self, step: ChangeStep) {
        if step != ChangeStep::Flush
            || self
                .steps
                .last()
                .is_some_and(|last| *last != ChangeStep::Flush)
        {
            self.steps.push(step);
        }
    }

    /// Without a flush at the end, which is always there; refused when places overlap.
    fn trimmed(mut self) -> Result<Change, ChangeError> {
        if self.steps.last() == Some(&ChangeStep::Flush) {
            self.steps.pop();
        }
        let mut places: Vec<(u64, u64)> = self
            .writes()
            .map(|(at, _, new)| (at.0, at.0.saturating_add(new.len() as u64)))
            .collect();
        places.sort_unstable();
        match places.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            Some(pair) => Err(ChangeError::Overlap {
                at: Bytes(pair[1].0),
            }),
            None => Ok(self),
        }
    }
}

/// A disk after the change: the source of a preview.
#[derive(Clone, Copy)]
pub struct Changed<'a> {
    disk: &'a dyn plumb_label::Disk,
    change: &'a Change,
}

impl<'a> Changed<'a> {
    /// The disk with the change on it.
    #[must_use]
    pub fn new(disk: &'a dyn plumb_label::Disk, change: &'a Change) -> Changed<'a> {
        Changed { disk, change }
    }
}

impl plumb_label::Disk for Changed<'_> {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.disk.read_at(offset_bytes, buffer)?;
        let end = offset_bytes + buffer.len() as u64;
        for (at, _, new) in self.change.writes() {
            let (from, to) = (at.0.max(offset_bytes), (at.0 + new.len() as u64).min(end));
            if from < to {
                let (into, of) = ((from - offset_bytes) as usize, (from - at.0) as usize);
                let len = (to - from) as usize;
                buffer[into..into + len].copy_from_slice(&new[of..of + len]);
            }
        }
        Ok(())
    }
}

fn first_differing(found: &[u8], expected: &[u8]) -> Option<usize> {
    found
        .iter()
        .zip(expected)
        .position(|(one, other)| one != other)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A disk that keeps the order in which it was written, and fails from one write on.
    struct Recording {
        bytes: Vec<u8>,
        log: RefCell<Vec<String>>,
        writes_left: usize,
    }

    impl Recording {
        fn new(len: usize) -> Recording {
            Recording {
                bytes: vec![0; len],
                log: RefCell::default(),
                writes_left: usize::MAX,
            }
        }
    }

    impl Disk for Recording {
        fn len_bytes(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn logical_block_bytes(&self) -> u32 {
            512
        }

        fn physical_block_bytes(&self) -> u32 {
            512
        }

        fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
            buffer.copy_from_slice(&self.bytes[at as usize..at as usize + buffer.len()]);
            Ok(())
        }

        fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
            self.writes_left = self
                .writes_left
                .checked_sub(1)
                .ok_or(io::ErrorKind::Other)?;
            self.log.borrow_mut().push(format!("write {at}"));
            self.bytes[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
            Ok(())
        }

        fn flush(&mut self) -> io::Result<()> {
            self.log.borrow_mut().push("flush".to_owned());
            Ok(())
        }
    }

    fn write(at: u64, byte: u8) -> label::WriteStep {
        label::WriteStep::Write {
            at: Bytes(at),
            bytes: vec![byte; 512],
        }
    }

    #[test]
    fn the_order_is_kept_and_turned_round() {
        let mut disk = Recording::new(4096);
        let steps = [
            write(2048, 1),
            write(512, 2),
            label::WriteStep::Flush,
            write(0, 3),
        ];
        let change = Change::for_disk(&steps, &disk.bytes).expect("places apart");
        change.must_be_old(&mut disk).expect("nothing was written");
        change.apply(&mut disk).expect("a good disk");
        let expected = ["write 2048", "write 512", "flush", "write 0", "flush"];
        assert_eq!(*disk.log.borrow(), expected);
        change.must_be_new(&mut disk).expect("all was written");
        assert!(matches!(
            change.must_be_old(&mut disk),
            Err(ChangeError::Differs {
                at: Bytes(2048),
                ..
            })
        ));
        disk.log.borrow_mut().clear();
        change.back().apply(&mut disk).expect("a good disk");
        assert_eq!(
            *disk.log.borrow(),
            ["write 0", "flush", "write 512", "write 2048", "flush"]
        );
        assert_eq!(disk.bytes, vec![0; 4096]);
    }

    #[test]
    fn unchanged_sectors_are_not_written() {
        let disk = vec![7u8; 2048];
        let steps = [write(0, 7), label::WriteStep::Flush, write(512, 7)];
        assert!(
            Change::for_disk(&steps, &disk)
                .expect("readable")
                .is_empty()
        );
        let steps = [
            write(0, 7),
            label::WriteStep::Flush,
            write(512, 8),
            label::WriteStep::Flush,
        ];
        let change = Change::for_disk(&steps, &disk).expect("readable");
        assert_eq!(change.steps().len(), 1, "{change:?}");
    }

    #[test]
    fn a_change_that_was_cut_off_can_be_gone_back() {
        for writes in 0..3 {
            let mut disk = Recording {
                writes_left: writes,
                ..Recording::new(4096)
            };
            let steps = [
                write(2048, 1),
                label::WriteStep::Flush,
                write(512, 2),
                write(0, 3),
            ];
            let change = Change::for_disk(&steps, &disk.bytes).expect("places apart");
            assert!(matches!(
                change.apply(&mut disk),
                Err(ChangeError::Write { .. })
            ));
            change
                .must_be_either(&mut disk)
                .expect("each place is as before or after");
            disk.writes_left = usize::MAX;
            change.back().apply(&mut disk).expect("a good disk again");
            assert_eq!(disk.bytes, vec![0; 4096], "after {writes}");
        }
    }

    #[test]
    fn foreign_writes_are_detected() {
        let mut disk = Recording::new(4096);
        let change = Change::for_disk(&[write(512, 2)], &disk.bytes).expect("readable");
        change.apply(&mut disk).expect("a good disk");
        disk.bytes[700] = 9;
        let found = change.must_be_either(&mut disk);
        assert!(
            matches!(found, Err(ChangeError::Differs { at: Bytes(700), .. })),
            "{found:?}"
        );
    }

    #[test]
    fn two_writes_to_one_place_are_refused() {
        let disk = vec![0u8; 2048];
        let found = Change::for_disk(&[write(0, 1), write(256, 2)], &disk);
        assert!(
            matches!(found, Err(ChangeError::Overlap { at: Bytes(256) })),
            "{found:?}"
        );
    }
}
