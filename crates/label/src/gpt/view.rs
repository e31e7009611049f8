//! A GPT as the view that all labels share, with the faults of its partitions.

use plumb_geometry::Bytes;

use crate::checks;
use crate::gpt::read::FoundGpt;
use crate::gpt::{Entry, Gpt, types};
use crate::label::{
    Detail, Label, LabelCopy, LabelKind, Partition, PartitionPlace, PartitionType, extent,
};
use crate::problem::{PartId, Problem};

impl FoundGpt {
    /// The label, also when no copy is good.
    pub(crate) fn into_label(self) -> Label {
        let at = |lba: u64| Bytes(lba.saturating_mul(self.sector_bytes.into()));
        let copies = self
            .copies
            .into_iter()
            .map(|copy| LabelCopy {
                role: copy.role,
                at: at(copy.lba),
                fault: copy.fault,
                is_used: copy.is_used,
            })
            .collect();
        let mut label = Label {
            kind: LabelKind::Gpt,
            sector_bytes: self.sector_bytes,
            id: None,
            usable: None,
            partitions: Vec::new(),
            copies,
            problems: self.problems,
            detail: None,
        };
        if let Some(gpt) = self.gpt {
            gpt.show(&mut label);
            label.detail = Some(Detail::Gpt(Box::new(gpt)));
        }
        label
    }
}

impl Gpt {
    fn show(&self, label: &mut Label) {
        let is_solaris = self
            .entries
            .iter()
            .any(|entry| types::is_solaris(entry.kind));
        if is_solaris {
            label.kind = LabelKind::SolarisEfi;
        }
        label.id = Some(self.disk_guid.to_string());
        let end_usable = self.last_usable_lba.saturating_add(1);
        label.usable = extent(self.first_usable_lba, end_usable, self.sector_bytes);
        label.problems.extend(self.smaller_device());
        for (index, entry) in (0u32..)
            .zip(&self.entries)
            .filter(|(_, entry)| entry.is_used())
        {
            let id = PartId {
                slice: is_solaris.then_some(index),
                ..PartId::partition(index.saturating_add(1))
            };
            let end_lba = entry.last_lba.checked_add(1);
            let Some(extent) =
                end_lba.and_then(|end| extent(entry.first_lba, end, self.sector_bytes))
            else {
                let (first_lba, last_lba) = (entry.first_lba, entry.last_lba);
                label.problems.push(Problem::Backwards {
                    part: id,
                    first_lba,
                    last_lba,
                });
                continue;
            };
            if entry.first_lba < self.first_usable_lba || entry.last_lba > self.last_usable_lba {
                label.problems.push(Problem::OutsideUsable { part: id });
            }
            label.partitions.push(partition(id, extent, entry));
        }
        label.problems.extend(checks::beyond_end(
            &label.partitions,
            self.sector_bytes,
            self.disk_lbas,
        ));
        label.problems.extend(checks::overlaps(&label.partitions));
    }

    /// The label's own idea of the disk: up to the backup header, and the usable range.
    fn smaller_device(&self) -> Option<Problem> {
        let label_lbas = self
            .backup
            .header_lba
            .max(self.last_usable_lba)
            .saturating_add(1);
        let device_lbas = self.disk_lbas;
        (label_lbas > device_lbas).then_some(Problem::DeviceSmaller {
            label_lbas,
            device_lbas,
        })
    }
}

fn partition(id: PartId, extent: plumb_geometry::Extent, entry: &Entry) -> Partition {
    let name = entry.name_text();
    Partition {
        id,
        place: PartitionPlace::Disk,
        extent,
        kind: PartitionType::Guid(entry.kind),
        name: (!name.is_empty()).then_some(name),
        uuid: Some(entry.uuid.to_string()),
        is_whole_disk: false,
    }
}
