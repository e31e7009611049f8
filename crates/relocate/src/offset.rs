//! Positions of two kinds that must not be mixed up: a byte of the disk, and a byte of the partition that is moved, whose
//! place on the disk changes.

use std::fmt;

/// A byte of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskOffset(pub u64);

/// A byte of the partition, counted from its first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartOffset(pub u64);

impl PartOffset {
    /// Where it lies on the disk while the partition begins at `partition`.
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
