//! The position of GRUB's core image: boot sectors find it by absolute sectors, so it must neither move nor be
//! overwritten.
//!
//! Read from the disk: `boot.img` of GRUB 2 has the first sector of the image, whose own first sector (`diskboot.img`)
//! lists the rest; `stage1` of GRUB Legacy has the first sector of its second stage. Left out: the files that other
//! boot loaders (LILO, extlinux) find by sector.

use std::io;
use std::ops::Range;

use plumb_label::Disk;

const SECTOR: usize = 512;
/// The messages of both GRUBs for a failed read.
const MESSAGES: &[u8] = b"Geom\0Hard Disk\0Read\0 Error";
/// `boot.S` of GRUB 2: the load address of the image, and its first sector.
const KERNEL_ADDRESS_AT: usize = 0x5a;
const KERNEL_ADDRESS: u16 = 0x8000;
const KERNEL_SECTOR_AT: usize = 0x5c;
/// `stage1.S` of GRUB Legacy: first sector of the second stage.
const STAGE2_SECTOR_AT: usize = 0x44;
/// `diskboot.S`: its message, and its list of start, count and segment, which begins at the end and grows down.
const LOADING: &[u8] = b"loading\0";
const LIST_ENTRY: usize = 12;
/// Its message for a failed read.
const LOADING_ERRORS: &[u8] = b"Geom\0Read\0 Error\0";

/// Bytes of a disk that the boot sector at byte `at` loads GRUB from; none where it is no boot sector of GRUB.
/// `block_bytes` is the logical block, in which firmware counts.
///
/// # Errors
/// When a sector cannot be read.
pub fn core_image(disk: &dyn Disk, at: u64, block_bytes: u32) -> io::Result<Vec<Range<u64>>> {
    let boot = sector(disk, at)?;
    let Some(first) = boot.and_then(|boot| first_lba(&boot)) else {
        return Ok(Vec::new());
    };
    let block = u64::from(block_bytes);
    let run = |lba: u64, count: u64| {
        let start = lba.checked_mul(block)?;
        Some(start..start.checked_add(count.checked_mul(block)?)?)
    };
    let Some(begin) = run(first, 1) else {
        return Ok(Vec::new());
    };
    let mut found = vec![begin.clone()];
    if let Some(image) = sector(disk, begin.start)?.filter(|image| contains(image, LOADING)) {
        found.extend(blocks(&image).filter_map(|(lba, count)| run(lba, count)));
    }
    Ok(found)
}

/// Whether a core image begins with this sector, independent of references to it.
#[must_use]
pub fn begins_core_image(sector: &[u8]) -> bool {
    contains(sector, LOADING) && contains(sector, LOADING_ERRORS)
}

/// `None` where the disk ends before.
fn sector(disk: &dyn Disk, at: u64) -> io::Result<Option<[u8; SECTOR]>> {
    if at
        .checked_add(SECTOR as u64)
        .is_none_or(|end| end > disk.size_bytes())
    {
        return Ok(None);
    }
    let mut bytes = [0; SECTOR];
    disk.read_at(at, &mut bytes)?;
    Ok(Some(bytes))
}

/// Logical block in which the image begins.
fn first_lba(boot: &[u8; SECTOR]) -> Option<u64> {
    if boot[SECTOR - 2..] != [0x55, 0xaa] || !contains(boot, MESSAGES) {
        return None;
    }
    let lba = match number(boot, KERNEL_ADDRESS_AT, 2) == u64::from(KERNEL_ADDRESS) {
        true => number(boot, KERNEL_SECTOR_AT, 8),
        false => number(boot, STAGE2_SECTOR_AT, 4),
    };
    (lba > 0).then_some(lba)
}

/// Runs of logical blocks, until one is empty.
fn blocks(image: &[u8; SECTOR]) -> impl Iterator<Item = (u64, u64)> {
    let starts = (0..SECTOR / LIST_ENTRY).map(|index| SECTOR - (index + 1) * LIST_ENTRY);
    starts
        .map(|at| (number(image, at, 8), number(image, at + 8, 2)))
        .take_while(|(_, count)| *count > 0)
}

fn number(bytes: &[u8; SECTOR], at: usize, len: usize) -> u64 {
    bytes[at..at + len]
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot_sector(at: usize, lba: &[u8]) -> Vec<u8> {
        let mut sector = vec![0; SECTOR];
        sector[0x180..0x180 + MESSAGES.len()].copy_from_slice(MESSAGES);
        sector[KERNEL_ADDRESS_AT..KERNEL_ADDRESS_AT + 2].copy_from_slice(&[0, 0x80]);
        sector[at..at + lba.len()].copy_from_slice(lba);
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        sector
    }

    /// A sector.
    fn one(lba: u64) -> Vec<Range<u64>> {
        std::iter::once(lba * 512..(lba + 1) * 512).collect()
    }

    #[test]
    fn lists_are_followed() {
        let mut disk = boot_sector(KERNEL_SECTOR_AT, &[3, 0, 0, 0, 0, 0, 0, 0]);
        disk.resize(8 * SECTOR, 0);
        assert_eq!(core_image(&disk, 0, 512).expect("readable"), one(3));
        let image = &mut disk[3 * SECTOR..4 * SECTOR];
        image[..LOADING.len()].copy_from_slice(LOADING);
        image[500..512].copy_from_slice(&[5, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0x20, 8]);
        image[488..500].copy_from_slice(&[9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0x60, 8]);
        let found = core_image(&disk, 0, 512).expect("readable");
        assert_eq!(
            found,
            [3 * 512..4 * 512, 5 * 512..7 * 512, 9 * 512..10 * 512]
        );
    }

    #[test]
    fn other_boot_sectors_give_no_grub() {
        let own = boot_sector(KERNEL_SECTOR_AT, &[3]);
        for spoiled in [0x181, 511] {
            let mut other = own.clone();
            other[spoiled] ^= 0xff;
            assert_eq!(
                core_image(&other, 0, 512).expect("readable"),
                Vec::<Range<u64>>::new()
            );
        }
        let beyond_end = core_image(&own, 512, 512).expect("readable");
        assert_eq!(beyond_end, Vec::<Range<u64>>::new());
        let far = boot_sector(KERNEL_SECTOR_AT, &[0xff; 8]);
        assert_eq!(
            core_image(&far, 0, 512).expect("readable"),
            Vec::<Range<u64>>::new()
        );
    }

    /// `diskboot.img` has more than one thing to say; a file system may well hold one of them.
    #[test]
    fn first_bytes_of_a_core_image() {
        let mut sector = [0; SECTOR];
        sector[0x113..0x113 + LOADING.len()].copy_from_slice(LOADING);
        assert!(!begins_core_image(&sector));
        sector[0x128..0x128 + LOADING_ERRORS.len()].copy_from_slice(LOADING_ERRORS);
        assert!(begins_core_image(&sector));
        sector[0x113] = 0;
        assert!(!begins_core_image(&sector));
    }

    #[test]
    fn the_second_stage_of_grub_legacy() {
        let mut boot = boot_sector(STAGE2_SECTOR_AT, &[7, 0, 0, 0]);
        boot[KERNEL_ADDRESS_AT..KERNEL_ADDRESS_AT + 2].fill(0);
        assert_eq!(core_image(&boot, 0, 512).expect("readable"), one(7));
    }
}
