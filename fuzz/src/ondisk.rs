//! Reads bytes as a disk, and as a virtual disk in a file, and follows the result down.
//!
//! The text of a volume group has a checksum that no mutation gets past, so each disk is read twice: as it is, and with
//! that checksum made right.

#[path = "../../crates/stack/tests/suite/ondisk/sparse.rs"]
mod sparse;

use plumb_label::Disk;
use plumb_stack::Builder;
use plumb_stack::ondisk::Scan;
use sparse::Sparse;

/// Most nodes that are followed; more are more of the same, slowly.
const NODES_MAX: usize = 64;
const METADATA_MAGIC: &[u8] = b" LVM2 x[5A%r0N*>";
/// The start value of LVM's checksums.
const CRC_INITIAL: u32 = 0xf597_a6cf;

pub fn disk(data: &[u8]) -> bool {
    let mut disk = Sparse::decode(data);
    let is_found = look(&disk);
    if mend_volume_groups(&mut disk) {
        return look(&disk) | is_found;
    }
    is_found
}

/// Whether there is more than the disks themselves.
fn look(disk: &Sparse) -> bool {
    let (mut builder, mut scan) = (Builder::default(), Scan::default());
    for name in ["sda", "sdb"] {
        let id = builder.node(name);
        scan.probe(&mut builder, disk, id);
    }
    let id = builder.node("disk.img");
    scan.probe_image(&mut builder, disk, id);
    scan.finish(&mut builder);
    let stack = builder.finish();
    for (id, _) in stack.nodes().take(NODES_MAX) {
        let _ = stack.landings(id);
        let _ = stack.standings(id);
    }
    for problem in stack.problems() {
        assert!(!problem.text.is_empty(), "a problem says something");
    }
    stack.nodes().count() > 3
}

fn mend_volume_groups(disk: &mut Sparse) -> bool {
    let is_header = |bytes: &[u8; 512]| bytes[4..].starts_with(METADATA_MAGIC);
    let headers: Vec<u64> = disk
        .sectors
        .iter()
        .filter(|(_, bytes)| is_header(bytes))
        .map(|(number, _)| *number)
        .collect();
    let mut is_mended = false;
    for number in headers {
        let Some(bytes) = disk.sectors.get(&number) else {
            continue;
        };
        let field =
            |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let at = (number * 512).saturating_add(field(40));
        let mut text = vec![0; field(48).min(1 << 20) as usize];
        if disk.read_at(at, &mut text).is_err() {
            continue;
        }
        let mut hasher = crc32fast::Hasher::new_with_initial(!CRC_INITIAL);
        hasher.update(&text);
        let sum = !hasher.finalize();
        if let Some(bytes) = disk.sectors.get_mut(&number) {
            bytes[56..60].copy_from_slice(&sum.to_le_bytes());
            is_mended = true;
        }
    }
    is_mended
}
