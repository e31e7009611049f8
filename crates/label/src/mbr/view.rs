//! An MBR as the view that all labels share, with the faults of its partitions.

use crate::checks;
use crate::disk::Blocks;
use crate::label::{
    Detail, Label, LabelCopy, LabelKind, Partition, PartitionPlace, PartitionType, extent,
};
use crate::mbr::{Mbr, MbrEntry, MbrSector, types};
use crate::problem::{PartId, Role};
use crate::vtoc::X86Vtoc;
use plumb_geometry::Bytes;

/// Number of the first logical partition, for any number of primary ones.
const FIRST_LOGICAL: u32 = 5;

/// Reads the parts that belong to a first sector: logical partitions, and slices of Solaris partitions.
pub(crate) fn read(blocks: Blocks<'_>, first: MbrSector) -> Label {
    let (mbr, problems) = Mbr::read(blocks, first);
    let copy = LabelCopy {
        role: Role::Primary,
        at: Bytes(0),
        fault: None,
        is_used: true,
    };
    let mut label = Label {
        kind: LabelKind::Mbr,
        sector_bytes: mbr.sector_bytes,
        id: Some(format!("{:08x}", mbr.first.disk_signature)),
        usable: None,
        partitions: Vec::new(),
        copies: vec![copy],
        problems,
        detail: None,
    };
    mbr.show_primary(&mut label);
    mbr.show_logical(&mut label);
    let vtocs = X86Vtoc::read_all(blocks, &mut label);
    label.problems.extend(checks::beyond_end(
        &label.partitions,
        mbr.sector_bytes,
        mbr.disk_lbas,
    ));
    label.problems.extend(checks::overlaps(&label.partitions));
    if !vtocs.is_empty() {
        label.kind = LabelKind::X86Vtoc;
    }
    label.detail = Some(Detail::Mbr(Box::new(mbr), vtocs));
    label
}

impl Mbr {
    fn show_primary(&self, label: &mut Label) {
        for (number, entry) in (1u32..)
            .zip(&self.first.entries)
            .filter(|(_, entry)| entry.is_used())
        {
            let place = if types::is_extended(entry.kind) {
                PartitionPlace::Extended
            } else {
                PartitionPlace::Disk
            };
            self.show(label, PartId::partition(number), place, entry, 0);
        }
    }

    fn show_logical(&self, label: &mut Label) {
        let logical = self
            .ebrs
            .iter()
            .flat_map(|ebr| ebr.logical().map(move |entry| (ebr, entry)));
        let mut parents = Vec::new();
        for (number, (ebr, entry)) in (FIRST_LOGICAL..).zip(logical) {
            self.show(
                label,
                PartId::partition(number),
                PartitionPlace::Logical,
                entry,
                ebr.lba,
            );
            // An index of four entries.
            parents.push(PartId::partition(ebr.extended as u32 + 1));
        }
        let parent = |part: &Partition| {
            let index = part.id.number.checked_sub(FIRST_LOGICAL)?;
            parents.get(usize::try_from(index).ok()?).copied()
        };
        let outside = checks::outside(&label.partitions, parent);
        label.problems.extend(outside);
    }

    /// Lists one partition. It cannot be out of 64 bits: 32 bits of blocks, twice added, times 4096.
    fn show(
        &self,
        label: &mut Label,
        id: PartId,
        place: PartitionPlace,
        entry: &MbrEntry,
        base: u64,
    ) {
        let first_lba = base + u64::from(entry.first);
        let end_lba = first_lba + u64::from(entry.count);
        let Some(extent) = extent(first_lba, end_lba, self.sector_bytes) else {
            return;
        };
        label.partitions.push(Partition {
            id,
            place,
            extent,
            kind: PartitionType::Mbr(entry.kind),
            name: None,
            uuid: Some(format!(
                "{:08x}-{:02x}",
                self.first.disk_signature, id.number
            )),
            is_whole_disk: false,
        });
    }
}
