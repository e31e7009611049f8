//! Boot loaders that lie outside of file systems, where firmware or a boot sector finds them by sector: none may be moved, or
//! overwritten. What a move that was made before has left of the partition itself is none: there the same bytes are written
//! again.

use std::ops::Range;

use plumb_geometry::{Bytes, SECTOR};
use plumb_label::{Detail, Disk, Partition, PartitionPlace};
use plumb_relocate::grub;

use super::error::MoveRefused;
use super::preflight::Look;
use crate::failure::Failure;

/// First bytes of an MBR disk, where boot loaders lie.
const BOOT_GAP: u64 = 1 << 20;
/// What a boot sector has in front of the table of partitions.
const BOOT_CODE: usize = 440;

impl Look<'_> {
    /// That no boot loader is moved, or overwritten.
    pub(super) fn must_spare_boot_loaders(
        &self,
        part: &Partition,
        to: Bytes,
    ) -> Result<(), Failure> {
        self.must_spare_grub(part, to)?;
        if matches!(self.label.detail, Some(Detail::Mbr(..))) {
            self.must_spare_gap(part, to)?;
        }
        Ok(())
    }

    /// GRUB's core images, which boot sectors lead to.
    fn must_spare_grub(&self, part: &Partition, to: Bytes) -> Result<(), MoveRefused> {
        let raw = self.subject.raw();
        let (from, len) = (part.extent.start().0, part.extent.len().0);
        let places = [
            (from..from + len, "in it"),
            (to.0..to.0 + len, "where it would lie"),
        ];
        let sectors = self
            .label
            .partitions
            .iter()
            .filter(|part| part.place != PartitionPlace::Slice);
        let sectors = sectors.map(|part| (part.extent.start().0, format!("of {}", part.id)));
        for (at, whose) in std::iter::once((0, "of the disk".to_owned())).chain(sectors) {
            let core = grub::core_image(&raw, at, self.label.sector_bytes)
                .map_err(|source| self.unreadable(at, source))?;
            for piece in core {
                let meets = |place: &Range<u64>| place.start < piece.end && piece.start < place.end;
                let Some((_, which)) = places.iter().find(|(place, _)| meets(place)) else {
                    continue;
                };
                return Err(self.refused(format!(
                    "GRUB's core image lies {which}, at byte {}, and the boot sector {whose} finds it there by its sector: let \
                     grub-install put it elsewhere first",
                    piece.start
                )));
            }
        }
        Ok(())
    }

    /// What lies in front of the first partition may be a loader that nobody here knows.
    fn must_spare_gap(&self, part: &Partition, to: Bytes) -> Result<(), Failure> {
        let (from, len) = (part.extent.start(), part.extent.len().0);
        let end = from.0.min(BOOT_GAP).min(to.0 + len);
        if to.0 >= end {
            return Ok(());
        }
        let there = self.bytes(to.0..end)?;
        let mut written = self.bytes(from.0..from.0 + (end - to.0))?;
        for fix in self.fix_ups(&self.subject.raw(), part.extent, to)? {
            if let Some(place) = written.get_mut(fix.at as usize..fix.at as usize + fix.new.len()) {
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
        let (first, last) = (to.0 / SECTOR + first, to.0 / SECTOR + last);
        let (partition, device) = (self.partition.clone(), self.subject.device());
        let evidence = self.evidence(&there)?;
        Err(MoveRefused::BootGap {
            partition,
            device,
            first,
            last,
            evidence,
        }
        .into())
    }

    /// What speaks for a boot loader.
    fn evidence(&self, there: &[u8]) -> Result<&'static str, MoveRefused> {
        if there.chunks(SECTOR as usize).any(grub::begins_core_image) {
            return Ok("a sector of it begins as GRUB's core image does");
        }
        let boot = self.bytes(0..SECTOR)?;
        Ok(match boot[..BOOT_CODE].iter().any(|byte| *byte != 0) {
            true => "the boot sector has code, which may load more from there",
            false => "the boot sector has no code, but boards load from sectors of their own",
        })
    }

    fn bytes(&self, place: Range<u64>) -> Result<Vec<u8>, MoveRefused> {
        let mut bytes = vec![0; (place.end - place.start) as usize];
        let read = self.subject.raw().read_at(place.start, &mut bytes);
        read.map_err(|source| self.unreadable(place.start, source))?;
        Ok(bytes)
    }
}
