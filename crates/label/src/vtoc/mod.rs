//! Solaris's own labels ("SMI" labels with a volume table of contents): [`SparcVtoc`] in the first sector of a disk,
//! [`X86Vtoc`] within a partition of an MBR. They have the same fields at other positions and in another byte order.
//!
//! Offsets are those of illumos `sys/dklabel.h` and `sys/vtoc.h`.

use crate::bytes::field;
use crate::problem::Fault;
use crate::write::EncodeError;

mod sparc;
pub mod tags;
mod x86;

pub use sparc::SparcVtoc;
pub(crate) use sparc::read as read_sparc;
pub use x86::X86Vtoc;

/// Bytes of a label, for any sector size.
pub(crate) const LABEL_BYTES: usize = 512;
/// Magic number at byte 508.
pub(crate) const MAGIC: u16 = 0xdabe;
/// Marks the table of contents as valid.
pub(crate) const SANITY: u32 = 0x600d_deee;
pub(crate) const VERSION: u32 = 1;
/// Number of the slice that is the whole disk by custom.
pub(crate) const WHOLE_SLICE: u32 = 2;
/// Backup labels are in every other sector of a track, five of them.
pub(crate) const BACKUPS: u64 = 5;

/// Whether the words of a label sum to zero; both labels end with a word for that.
fn check_sum(sector: &[u8]) -> Result<(), Fault> {
    let sum = checksum(sector);
    if sum == 0 {
        return Ok(());
    }
    let found = u16::from_be_bytes(field(sector, 510));
    Err(Fault::Checksum {
        over: "label",
        found: found.into(),
        expected: (found ^ sum).into(),
    })
}

/// A slice of either label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// Its purpose: [`tags`].
    pub tag: u16,
    /// 1 not mountable, 16 read-only.
    pub flag: u16,
    /// SPARC: first cylinder. x86: first block, counted from the start of the MBR partition.
    pub start: u32,
    /// Number of blocks; 0 for a slice that is not in use.
    pub count: u32,
}

/// Heads, sectors and cylinders, which no disk has had for decades.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Geometry {
    /// Cylinders in all.
    pub cylinders_physical: u32,
    /// Cylinders for data.
    pub cylinders: u32,
    /// Alternate cylinders, after those for data.
    pub cylinders_alternate: u16,
    /// Heads: tracks of a cylinder.
    pub heads: u32,
    /// Sectors of a track.
    pub sectors: u32,
}

impl Geometry {
    /// Blocks of a cylinder.
    #[must_use]
    pub fn cylinder_lbas(&self) -> u64 {
        u64::from(self.heads) * u64::from(self.sectors)
    }

    /// Blocks for data; `None` when 64 bits do not hold them.
    #[must_use]
    pub fn data_lbas(&self) -> Option<u64> {
        self.cylinder_lbas().checked_mul(self.cylinders.into())
    }

    /// Blocks of the backup labels: sectors 1, 3, 5, 7 and 9 of the last track of the last alternate cylinder.
    /// Unverified: no disk with them was at hand. Empty when there is no such track.
    #[must_use]
    pub fn backup_lbas(&self) -> Vec<u64> {
        let track = || {
            let cylinder = u64::from(self.cylinders)
                .checked_add(self.cylinders_alternate.into())?
                .checked_sub(1)?;
            let heads = cylinder
                .checked_mul(self.heads.into())?
                .checked_add(u64::from(self.heads).checked_sub(1)?)?;
            heads.checked_mul(self.sectors.into())
        };
        let Some(track) = track().filter(|_| u64::from(self.sectors) >= 2 * BACKUPS) else {
            return Vec::new();
        };
        (0..BACKUPS)
            .filter_map(|index| track.checked_add(2 * index + 1))
            .collect()
    }
}

/// Exclusive or of all 16-bit words, which is 0 over a label with its checksum. The byte order does not matter to
/// that.
pub(crate) fn checksum(label: &[u8]) -> u16 {
    label[..LABEL_BYTES]
        .chunks_exact(2)
        .fold(0, |sum, word| sum ^ u16::from_be_bytes(field(word, 0)))
}

/// A label keeps the sector that it came from, and is written to sectors of that size.
pub(crate) fn check_rest(rest: &[u8], sector_bytes: u32) -> Result<(), EncodeError> {
    if rest.len() == sector_bytes as usize {
        return Ok(());
    }
    let expected = "the one that the label was made for";
    Err(EncodeError::Field {
        field: "sector size",
        found: sector_bytes.into(),
        expected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backups_are_on_the_last_track() {
        // SUN18G: 7506 data and 2 alternate cylinders, 19 heads, 248 sectors.
        let geometry = Geometry {
            cylinders_physical: 7_508,
            cylinders: 7_506,
            cylinders_alternate: 2,
            heads: 19,
            sectors: 248,
        };
        let track = (7_507 * 19 + 18) * 248;
        assert_eq!(
            geometry.backup_lbas(),
            [track + 1, track + 3, track + 5, track + 7, track + 9]
        );
        assert_eq!(geometry.data_lbas(), Some(7_506 * 4_712));
        assert_eq!(Geometry::default().backup_lbas(), []);
        assert_eq!(
            Geometry {
                cylinders: 10,
                heads: 4,
                sectors: 8,
                ..geometry
            }
            .backup_lbas(),
            []
        );
    }
}
