//! Positions of two kinds that must not be mixed up: a byte of the disk, and a byte of the partition that is moved, whose
//! place on the disk changes.

use std::fmt;
use std::ops::Range;

/// A byte of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskOffset(pub u64);

/// A byte of the partition, counted from its first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartOffset(pub u64);

impl DiskOffset {
    /// The bytes from here on, as many as these.
    #[must_use]
    pub fn range(self, len: u64) -> Range<u64> {
        self.0..self.0.saturating_add(len)
    }

    /// The bytes of a range of the partition, while the partition begins here.
    #[must_use]
    pub fn of_partition(self, range: &Range<u64>) -> Range<u64> {
        let on_disk = |at: u64| PartOffset(at).on_disk(self).0;
        on_disk(range.start)..on_disk(range.end)
    }

    /// The byte of the partition that is at a byte of the disk, while the partition begins here; `None` of bytes before it.
    #[must_use]
    pub fn offset_of(self, at: u64) -> Option<PartOffset> {
        at.checked_sub(self.0).map(PartOffset)
    }
}

impl PartOffset {
    /// Its position on the disk while the partition begins at `partition`.
    #[must_use]
    pub fn on_disk(self, partition: DiskOffset) -> DiskOffset {
        DiskOffset(partition.0.saturating_add(self.0))
    }
}

impl fmt::Display for DiskOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for PartOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
