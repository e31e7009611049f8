//! Owners of clusters of NTFS, by `ntfscluster` of ntfs-3g, which only reads. Everything on NTFS is a file: other
//! clusters are free.

use std::collections::BTreeSet;

use plumb_model::result::fix::{LossOwner, OwnerObstacle};

use super::tool::{failure, run};
use super::{Query, RangeOwners, number_at};

const TOOL: &str = "ntfscluster";
/// Bytes in a sector and sectors in a cluster, in the boot sector.
const SECTOR_AT: usize = 11;
const CLUSTER_AT: usize = 13;
/// The first inode that is not of the file system itself.
const USER_INODE: u64 = 24;
/// From here on the byte is a power of two with its sign turned.
const POWERS_FROM: u8 = 0x81;

pub fn cluster_bytes(head: &[u8]) -> Option<u64> {
    let sector = u64::from(u16::from_le_bytes(number_at(head, SECTOR_AT)?));
    let [sectors]: [u8; 1] = number_at(head, CLUSTER_AT)?;
    let sectors = match sectors {
        POWERS_FROM.. => 1u64.checked_shl(u32::from(sectors.wrapping_neg()))?,
        sectors => u64::from(sectors),
    };
    let bytes = sector.checked_mul(sectors)?;
    let is_possible = bytes.is_power_of_two() && (512..=2 << 20).contains(&bytes);
    (head.get(3..11)? == b"NTFS    " && is_possible).then_some(bytes)
}

/// Fills in the owners of each range.
///
/// # Errors
/// The reason why the rest is missing.
pub fn look_up(query: &Query<'_>, found: &mut RangeOwners) -> Result<(), OwnerObstacle> {
    for (range, owners) in query.ranges.iter().zip(found) {
        let clusters = format!("{}-{}", range.start, range.end - 1);
        let arguments = ["-c".as_ref(), clusters.as_ref(), query.node.as_os_str()];
        let said = run(TOOL, &arguments, String::new(), query.deadline)?;
        let of_range: BTreeSet<LossOwner> = said.lines().filter_map(owner_in).collect();
        if !said.lines().any(|line| line.contains("inode")) {
            return Err(failure(TOOL, &said));
        }
        *owners = Some(match of_range.is_empty() {
            true => BTreeSet::from([LossOwner::Free]),
            false => of_range,
        });
    }
    Ok(())
}

/// `Inode 64 /directory/file/$DATA`: the last part is the attribute that has the cluster.
fn owner_in(line: &str) -> Option<LossOwner> {
    let (number, path) = line.strip_prefix("Inode ")?.split_once(' ')?;
    let number: u64 = number.parse().ok()?;
    let path = path.rsplit_once("/$").map_or(path, |(path, _)| path);
    // The tool's name of the root directory.
    let path = if path == "/." { "/" } else { path };
    Some(match number < USER_INODE && path.starts_with("/$") {
        true => LossOwner::Metadata(path.trim_start_matches('/').to_owned()),
        false => LossOwner::File(path.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that ntfscluster of 2022.10.3 printed of an image.
    #[test]
    fn lines_of_ntfscluster_are_owners() {
        for (line, owner) in [
            (
                "Inode 0 /$MFT/$DATA",
                Some(LossOwner::Metadata("$MFT".to_owned())),
            ),
            (
                "Inode 65 /dir a/fi le/$DATA",
                Some(LossOwner::File("/dir a/fi le".to_owned())),
            ),
            (
                "Inode 5 /./$INDEX_ALLOCATION($I30)",
                Some(LossOwner::File("/".to_owned())),
            ),
            ("* one inode found", None),
            ("Searching for cluster 4", None),
        ] {
            assert_eq!(owner_in(line), owner, "{line}");
        }
    }
}
