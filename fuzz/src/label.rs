//! Disk labels: read, written again, and read once more.
//!
//! Every label has checksums that no mutation gets past, so each image is read twice: as it is, and after the
//! checksums that it has were made right.

use std::ops::Range;

use plumb_label::{Detail, EncodeError, Label, Role, WriteStep, apply, read};

/// Reads the bytes as a disk with a GPT.
pub fn gpt(data: &[u8]) -> bool {
    let is_label = disk(data);
    let mut mended = data.to_vec();
    for sector_bytes in [512, 4096] {
        let last = (data.len() / sector_bytes).saturating_sub(1);
        for lba in [1, last, last.saturating_sub(1)] {
            mend_gpt(&mut mended, sector_bytes, lba);
        }
    }
    disk(&mended) | is_label
}

/// Reads the bytes as a disk with an MBR, which has no checksum.
pub fn mbr(data: &[u8]) -> bool {
    disk(data)
}

/// Reads the bytes as a disk with one of Solaris's labels: in its first sector, or in the second one of each primary
/// partition.
pub fn vtoc(data: &[u8]) -> bool {
    let mut is_label = disk(data);
    let mut mended = data.to_vec();
    seal(&mut mended, 0, &[0xda, 0xbe]);
    is_label |= disk(&mended);
    let mut mended = data.to_vec();
    for entry in 0..4 {
        let Some(lba) = le32(data, 446 + 16 * entry + 8) else {
            return is_label;
        };
        seal(&mut mended, (lba as usize + 1) * 512, &[0xbe, 0xda]);
    }
    disk(&mended) | is_label
}

fn disk(data: &[u8]) -> bool {
    let mut is_label = false;
    for sector_bytes in [None, Some(512), Some(4096)] {
        let Some(label) = read(&data, sector_bytes).expect("memory can be read") else {
            continue;
        };
        for problem in &label.problems {
            assert!(!problem.to_string().is_empty(), "a problem says something");
        }
        for partition in &label.partitions {
            assert!(!partition.extent.is_empty(), "a partition has blocks");
            let _ = (partition.kind.name(), partition.id.to_string());
        }
        assert!(
            label.detail.is_some() || label.partitions.is_empty(),
            "partitions of no label"
        );
        write_again(data, sector_bytes, &label);
        is_label = true;
    }
    is_label
}

/// A label that can be written is the same when it is read.
fn write_again(data: &[u8], sector_bytes: Option<u32>, label: &Label) {
    let Ok(steps) = encode(label) else { return };
    let mut image = data.to_vec();
    apply(&steps, &mut image).expect("a label within its disk");
    let again = read(&image, sector_bytes)
        .expect("memory can be read")
        .expect("a label that was written");
    assert!(
        again.detail == label.detail,
        "the label changed on its way to the disk and back"
    );
    assert!(
        again.partitions == label.partitions,
        "the partitions changed on their way to the disk and back"
    );
}

fn encode(label: &Label) -> Result<Vec<WriteStep>, EncodeError> {
    let in_use = label.in_use().unwrap_or(Role::Primary);
    match &label.detail {
        Some(Detail::Gpt(gpt)) => gpt.encode(in_use),
        Some(Detail::SparcVtoc(vtoc)) => vtoc.encode(in_use),
        // A Solaris label may be on a link of a chain in a made-up image, so each is written by itself.
        Some(Detail::Mbr(mbr, vtocs)) if vtocs.is_empty() => mbr.encode(),
        Some(Detail::Mbr(_, vtocs)) if vtocs.len() == 1 => vtocs[0].encode(in_use),
        _ => Ok(Vec::new()),
    }
}

fn mend_gpt(disk: &mut [u8], sector_bytes: usize, lba: usize) {
    let header = lba * sector_bytes;
    let field = |at: usize| le32(disk, header + at).map(|value| value as usize);
    let place = || {
        let start = field(72)?.checked_mul(sector_bytes)?;
        let end = start.checked_add(field(80)?.checked_mul(field(84)?)?)?;
        disk.get(start..end)
    };
    let array_crc = place().map(crc32fast::hash);
    let summed: Option<Range<usize>> = field(12)
        .filter(|len| (92..=sector_bytes).contains(len))
        .map(|len| header..header + len);
    let Some(range) = summed.filter(|range| range.end <= disk.len()) else {
        return;
    };
    if let Some(crc) = array_crc {
        disk[header + 88..header + 92].copy_from_slice(&crc.to_le_bytes());
    }
    disk[header + 16..header + 20].fill(0);
    let crc = crc32fast::hash(&disk[range]);
    disk[header + 16..header + 20].copy_from_slice(&crc.to_le_bytes());
}

fn seal(disk: &mut [u8], at: usize, magic: &[u8; 2]) {
    let Some(sector) = disk.get_mut(at..at.saturating_add(512)) else {
        return;
    };
    sector[508..510].copy_from_slice(magic);
    let sum = sector[..510]
        .chunks(2)
        .fold([0, 0], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]]);
    sector[510..512].copy_from_slice(&sum);
}

fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(field.try_into().ok()?))
}
