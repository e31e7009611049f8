//! The fields of file systems about the position of their partition, and their values at another one: the hidden
//! sectors of FAT and NTFS in both boot sectors, the partition offset of exFAT with the checksum over its boot region,
//! twice.
//!
//! Linux reads none of them; firmware and Windows do. A number other than the old position was wrong before, or has
//! another meaning, and is not changed. Layouts: Microsoft's FAT specification (1.03) and exFAT specification; NTFS has
//! its extended BPB as boot sectors written by mkfs.ntfs and Windows show it.

use std::io;

use plumb_geometry::{Bytes, Extent};
use plumb_label::Disk;

use crate::PartOffset;
use crate::moving::ByteChange;

/// Bytes within the partition that have to change with its place.
pub type FixUp = ByteChange<PartOffset>;

/// Shortest and longest sector of a boot sector's own count.
const SECTORS: std::ops::RangeInclusive<u64> = 512..=4096;
/// Hidden sectors in a BPB: 32 bits.
const HIDDEN_AT: usize = 0x1c;
/// Position of FAT32's second boot sector.
const FAT_BACKUP_AT: usize = 0x32;
/// Total sectors of NTFS; its second boot sector is the one behind them.
const NTFS_TOTAL_AT: usize = 0x28;
/// Partition offset of exFAT: 64 bits.
const EXFAT_OFFSET_AT: usize = 0x40;
/// Sectors of exFAT's boot region under its checksum, the checksum's own, and the start of the second region.
const EXFAT_SUMMED: u64 = 11;
const EXFAT_REGION: u64 = 12;

/// The changes that the file system in `place` of a disk needs to begin at byte `to` instead.
///
/// # Errors
/// When a boot sector cannot be read.
pub fn fix_ups(disk: &dyn Disk, place: Extent, to: Bytes) -> io::Result<Vec<FixUp>> {
    let part = DiskPart { disk, place };
    let boot = part.read(0, 512)?;
    let Some(sector) = sector_bytes(&boot) else {
        return Ok(Vec::new());
    };
    let starts = place.start().0.is_multiple_of(sector) && to.0.is_multiple_of(sector);
    if !starts {
        return Ok(Vec::new());
    }
    let moved = Moved {
        part,
        sector,
        from: place.start().0 / sector,
        to: to.0 / sector,
    };
    match &boot[3..11] {
        b"EXFAT   " => moved.exfat(),
        b"NTFS    " => {
            let total = u64_at(&boot, NTFS_TOTAL_AT);
            moved.hidden(&[Some(0), total.checked_mul(sector)])
        }
        _ if is_fat(&boot) => {
            let backup = u64::from(u16_at(&boot, FAT_BACKUP_AT));
            let is_fat32 = u16_at(&boot, 0x16) == 0 && backup != 0 && backup != 0xffff;
            moved.hidden(&[Some(0), is_fat32.then_some(backup * sector)])
        }
        _ => Ok(Vec::new()),
    }
}

/// The sector size of a boot sector; `None` if it is invalid.
fn sector_bytes(boot: &[u8]) -> Option<u64> {
    if boot[510..512] != [0x55, 0xaa] || !matches!(boot[0], 0xeb | 0xe9) {
        return None;
    }
    let sector = match &boot[3..11] {
        // A shift.
        b"EXFAT   " => 1u64.checked_shl(boot[0x6c].into())?,
        _ => u16_at(boot, 11).into(),
    };
    (sector.is_power_of_two() && SECTORS.contains(&sector)).then_some(sector)
}

/// Fields that every FAT has and chance has not: sectors of a cluster, number of tables, media.
fn is_fat(boot: &[u8]) -> bool {
    let has_name = boot[0x36..0x39] == *b"FAT" || boot[0x52..0x57] == *b"FAT32";
    let has_fields = boot[13].is_power_of_two() && matches!(boot[16], 1 | 2) && boot[21] >= 0xf0;
    has_fields && (has_name || u16_at(boot, 14) > 0)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}

struct DiskPart<'a> {
    disk: &'a dyn Disk,
    place: Extent,
}

impl DiskPart<'_> {
    fn read(&self, at: u64, len: usize) -> io::Result<Vec<u8>> {
        let end = at
            .checked_add(len as u64)
            .filter(|end| *end <= self.place.len().0);
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut bytes = vec![0; len];
        self.disk.read_at(self.place.start().0 + at, &mut bytes)?;
        Ok(bytes)
    }
}

/// A file system that goes from one sector of its disk to another.
struct Moved<'a> {
    part: DiskPart<'a>,
    sector: u64,
    from: u64,
    to: u64,
}

impl Moved<'_> {
    /// The hidden sectors of boot sectors at these places; one that is none has nothing to change.
    fn hidden(&self, places: &[Option<u64>]) -> io::Result<Vec<FixUp>> {
        let mut found = Vec::new();
        // A value beyond 32 bits is written as 0, which states nothing.
        let new = u32::try_from(self.to).unwrap_or(0).to_le_bytes().to_vec();
        for place in places.iter().flatten() {
            let fits = place
                .checked_add(512)
                .is_some_and(|end| end <= self.part.place.len().0);
            if !fits {
                continue;
            }
            let boot = self.part.read(*place, 512)?;
            let old = boot[HIDDEN_AT..HIDDEN_AT + 4].to_vec();
            let is_old = u32::try_from(self.from).is_ok_and(|from| old == from.to_le_bytes());
            if boot[510..] == [0x55, 0xaa] && is_old && old != new {
                found.push(FixUp {
                    at: PartOffset(place + HIDDEN_AT as u64),
                    old,
                    new: new.clone(),
                });
            }
        }
        Ok(found)
    }

    fn exfat(&self) -> io::Result<Vec<FixUp>> {
        let mut found = Vec::new();
        for region in [0, EXFAT_REGION * self.sector] {
            let len = (EXFAT_REGION * self.sector) as usize;
            let Ok(bytes) = self.part.read(region, len) else {
                continue;
            };
            let (summed, sums) = bytes.split_at((EXFAT_SUMMED * self.sector) as usize);
            let is_whole = sums
                .chunks_exact(4)
                .all(|sum| sum == exfat_sum(summed).to_le_bytes());
            if !is_whole || u64_at(summed, EXFAT_OFFSET_AT) != self.from {
                continue;
            }
            let mut changed = summed.to_vec();
            changed[EXFAT_OFFSET_AT..EXFAT_OFFSET_AT + 8].copy_from_slice(&self.to.to_le_bytes());
            let new_sums = exfat_sum(&changed).to_le_bytes().repeat(sums.len() / 4);
            let at = |offset: usize| PartOffset(region + offset as u64);
            found.push(FixUp {
                at: at(EXFAT_OFFSET_AT),
                old: self.from.to_le_bytes().to_vec(),
                new: self.to.to_le_bytes().to_vec(),
            });
            found.push(FixUp {
                at: at(summed.len()),
                old: sums.to_vec(),
                new: new_sums,
            });
        }
        Ok(found)
    }
}

/// The checksum of a boot region: flags and percentage in use, which change all the time, are left out.
fn exfat_sum(region: &[u8]) -> u32 {
    let counted = region
        .iter()
        .enumerate()
        .filter(|(at, _)| !matches!(at, 106 | 107 | 112));
    counted.fold(0u32, |sum, (_, byte)| {
        sum.rotate_right(1).wrapping_add((*byte).into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_testkit::loop_device::run;
    use plumb_testkit::require;
    use std::process::Command;

    const MIB: u64 = 1 << 20;

    /// A file system of 48 MiB made by a tool, with the start sector as a parameter if the tool accepts one.
    fn made(tool: &str, args: &[&str]) -> Vec<u8> {
        let dir = plumb_testkit::temp_dir("fix-ups");
        let path = dir.path().join("part.img");
        std::fs::File::create(&path)
            .and_then(|file| file.set_len(48 * MIB))
            .expect("room");
        run(Command::new(tool).args(args).arg(&path));
        std::fs::read(&path).expect("the image")
    }

    fn on_disk(part: &[u8], sector: u64) -> (Vec<u8>, Extent) {
        let mut disk = vec![0; (sector * 512) as usize];
        disk.extend_from_slice(part);
        let len = Bytes(part.len() as u64);
        (disk, Extent::new(Bytes(sector * 512), len).expect("small"))
    }

    fn applied(part: &mut [u8], fix_ups: &[FixUp]) {
        for fix_up in fix_ups {
            let at = fix_up.at.0 as usize;
            let place = &mut part[at..at + fix_up.new.len()];
            assert_eq!(place, fix_up.old, "byte {at}");
            place.copy_from_slice(&fix_up.new);
        }
    }

    /// mkfs.fat -h writes the hidden sectors of both boot sectors itself: the repaired value must equal its value.
    #[test]
    fn fat_is_as_its_tool_would_make_it_there() {
        require!(Tool("mkfs.fat"));
        for size in ["16", "32"] {
            let args = |hidden: &str| {
                made(
                    "mkfs.fat",
                    &["-F", size, "-i", "12345678", "--invariant", "-h", hidden],
                )
            };
            let (mut part, wanted) = (args("63"), args("2048"));
            let (disk, place) = on_disk(&part, 63);
            let found = fix_ups(&disk, place, Bytes(2_048 * 512)).expect("readable");
            assert_eq!(found.len(), if size == "32" { 2 } else { 1 }, "FAT{size}");
            applied(&mut part, &found);
            assert!(part == wanted, "FAT{size}");
            // Another number has an unknown meaning.
            let (disk, place) = on_disk(&part, 63);
            assert_eq!(
                fix_ups(&disk, place, Bytes(4_096 * 512)).expect("readable"),
                []
            );
        }
    }

    /// mkfs.ntfs -p writes the start of the partition.
    #[test]
    fn ntfs_has_two_boot_sectors() {
        require!(Tool("mkfs.ntfs"));
        let args = |start: &str| {
            made(
                "mkfs.ntfs",
                &[
                    "-q", "-F", "-f", "-T", "-p", start, "-H", "16", "-S", "63", "-s", "512",
                ],
            )
        };
        let part = args("63");
        let (disk, place) = on_disk(&part, 63);
        let found = fix_ups(&disk, place, Bytes(2_048 * 512)).expect("readable");
        let places: Vec<u64> = found.iter().map(|fix_up| fix_up.at.0).collect();
        assert_eq!(
            places,
            [0x1c, 48 * MIB - 512 + 0x1c],
            "the first and the last sector"
        );
        let wanted = args("2048");
        for fix_up in &found {
            let at = fix_up.at.0 as usize;
            assert_eq!(
                wanted[at..at + 4],
                fix_up.new,
                "as the tool writes it there"
            );
        }
    }

    #[test]
    fn exfat_has_its_checksum_again() {
        require!(Tool("mkfs.exfat"), Tool("fsck.exfat"));
        let mut part = made("mkfs.exfat", &[]);
        // The tool writes 0 into an image: the region is given a place, and its checksum, by hand.
        for region in [0usize, 12 * 512] {
            part[region + 0x40..region + 0x48].copy_from_slice(&63u64.to_le_bytes());
            let sum = exfat_sum(&part[region..region + 11 * 512])
                .to_le_bytes()
                .repeat(128);
            part[region + 11 * 512..region + 12 * 512].copy_from_slice(&sum);
        }
        let checked = |part: &[u8]| {
            let dir = plumb_testkit::temp_dir("exfat");
            let path = dir.path().join("part.img");
            std::fs::write(&path, part).expect("room");
            run(Command::new("fsck.exfat").arg("-n").arg(&path))
        };
        checked(&part);
        let (disk, place) = on_disk(&part, 63);
        let found = fix_ups(&disk, place, Bytes(2_048 * 512)).expect("readable");
        assert_eq!(found.len(), 4, "offset and checksum of both regions");
        applied(&mut part, &found);
        assert_eq!(part[0x40..0x48], 2_048u64.to_le_bytes());
        assert!(
            checked(&part).contains("clean"),
            "its own tool finds the checksum right"
        );
    }

    #[test]
    fn other_file_systems_note_nothing() {
        require!(Tool("mkfs.ext4"));
        let part = made("mkfs.ext4", &["-q", "-F"]);
        let (disk, place) = on_disk(&part, 63);
        assert_eq!(fix_ups(&disk, place, Bytes(MIB)).expect("readable"), []);
        let noise: Vec<u8> = (0..MIB as u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let (disk, place) = on_disk(&noise, 63);
        assert_eq!(fix_ups(&disk, place, Bytes(MIB)).expect("readable"), []);
    }
}
