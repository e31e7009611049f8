//! Boot loaders outside of file systems, which firmware or a boot sector finds by sector: none may be moved, or
//! overwritten. Remains of the partition itself from an earlier move are no boot loader: the same bytes are written
//! there again.

use std::ops::Range;

use plumb_geometry::{Bytes, SECTOR};
use plumb_label::{Detail, PartId, Partition, PartitionPlace};

use super::{Refusal, Survey};
use crate::fix_ups::fix_ups;
use crate::grub;
use crate::moving::plan::meet;

/// First bytes of an MBR disk, with possible boot loaders.
const BOOT_GAP: u64 = 1 << 20;
/// The code of a boot sector in front of the table of partitions.
const BOOT_CODE: usize = 440;

/// The evidence for a boot loader in front of the first partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootGapEvidence {
    /// A sector begins as GRUB's core image does.
    GrubCore,
    /// The boot sector has code, which may load more.
    BootCode,
    /// There are bytes; boards load from sectors of their own.
    Bytes,
}

/// Whose boot sector leads to a core image of GRUB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootSector {
    /// That of the disk.
    Disk,
    /// That of a partition.
    Partition(PartId),
}

impl Survey<'_> {
    /// That no boot loader is moved, or overwritten.
    pub(super) fn must_spare_boot_loaders(&self, to: Bytes) -> Result<(), Refusal> {
        self.must_spare_grub(to)?;
        match self.label.detail {
            Some(Detail::Mbr(..)) => self.must_spare_gap(to),
            _ => Ok(()),
        }
    }

    /// GRUB's core images, which boot sectors lead to.
    fn must_spare_grub(&self, to: Bytes) -> Result<(), Refusal> {
        let old = self.place();
        let new = to.0..to.0.saturating_add(old.end - old.start);
        let is_disk = |part: &&Partition| part.place != PartitionPlace::Slice;
        let parts = self.label.partitions.iter().filter(is_disk);
        let sectors = parts.map(|part| (part.extent.start().0, BootSector::Partition(part.id)));
        for (at, boot) in std::iter::once((0, BootSector::Disk)).chain(sectors) {
            let core = grub::core_image(self.disk, at, self.label.sector_bytes)
                .map_err(|source| Refusal::Unreadable { at, source })?;
            for piece in core {
                let is_in_partition = meet(&old, &piece);
                if is_in_partition || meet(&new, &piece) {
                    return Err(Refusal::GrubCore {
                        at: piece.start,
                        is_in_partition,
                        boot,
                    });
                }
            }
        }
        Ok(())
    }

    /// The data in front of the first partition may be an unknown loader.
    fn must_spare_gap(&self, to: Bytes) -> Result<(), Refusal> {
        let Range { start: from, end } = self.place();
        let len = end - from;
        let end = from.min(BOOT_GAP).min(to.0.saturating_add(len));
        if to.0 >= end {
            return Ok(());
        }
        let there = self.bytes(to.0..end)?;
        let mut written = self.bytes(from..from + (end - to.0))?;
        let fix_ups = fix_ups(self.disk, self.part.extent, to);
        for fix in fix_ups.map_err(|source| Refusal::Unreadable { at: from, source })? {
            let at = fix.at.0 as usize;
            if let Some(place) = written.get_mut(at..at + fix.new.len()) {
                place.copy_from_slice(&fix.new);
            }
        }
        let sectors = there
            .chunks(SECTOR as usize)
            .zip(written.chunks(SECTOR as usize))
            .zip(0u64..);
        let is_foreign = |(there, written): (&[u8], &[u8])| {
            there != written && there.iter().any(|byte| *byte != 0)
        };
        let mut foreign = sectors
            .filter(|(pair, _)| is_foreign(*pair))
            .map(|(_, index)| index);
        let Some(first) = foreign.next() else {
            return Ok(());
        };
        let last = foreign.last().unwrap_or(first);
        Err(Refusal::BootGap {
            first_sector: to.0 / SECTOR + first,
            last_sector: to.0 / SECTOR + last,
            evidence: self.evidence(&there)?,
        })
    }

    /// The evidence for a boot loader.
    fn evidence(&self, there: &[u8]) -> Result<BootGapEvidence, Refusal> {
        if there.chunks(SECTOR as usize).any(grub::begins_core_image) {
            return Ok(BootGapEvidence::GrubCore);
        }
        let boot = self.bytes(0..SECTOR)?;
        Ok(match boot[..BOOT_CODE].iter().any(|byte| *byte != 0) {
            true => BootGapEvidence::BootCode,
            false => BootGapEvidence::Bytes,
        })
    }

    fn bytes(&self, place: Range<u64>) -> Result<Vec<u8>, Refusal> {
        let mut bytes = vec![0; (place.end - place.start) as usize];
        let read = self.disk.read_at(place.start, &mut bytes);
        read.map_err(|source| Refusal::Unreadable {
            at: place.start,
            source,
        })?;
        Ok(bytes)
    }
}
