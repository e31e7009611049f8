//! Owners of blocks of XFS, by `xfs_db -r` of xfsprogs, which reads all of the file system's structure first.

use std::fmt::Write as _;

use plumb_geometry::SECTOR;
use plumb_model::result::fix::{LossOwner, OwnerObstacle};

use super::tool::{failure, run};
use super::{Query, RangeOwners, number_at};

const TOOL: &str = "xfs_db";
/// `sb_blocksize`, big-endian as all numbers of XFS.
const BLOCK_AT: usize = 4;
/// Begins the line in front of the answer for one block.
const MARK: &str = "plumb-asks-for-range";

pub fn block_bytes(head: &[u8]) -> Option<u64> {
    let bytes = u32::from_be_bytes(number_at(head, BLOCK_AT)?);
    let is_possible = bytes.is_power_of_two() && (512..=65_536).contains(&bytes);
    (head.starts_with(b"XFSB") && is_possible).then_some(bytes.into())
}

/// The address of a block in the tool's form, for any sectors of the disk.
pub fn sector(block: u64, block_bytes: u64) -> u64 {
    block * (block_bytes / SECTOR)
}

/// Fills in the owners of each range.
///
/// # Errors
/// The reason why all are missing: one run answers for all, because each has to read the structure first.
pub fn look_up(query: &Query<'_>, found: &mut RangeOwners) -> Result<(), OwnerObstacle> {
    if query.ranges.is_empty() {
        return Ok(());
    }
    let mut script = "blockget -n\n".to_owned();
    for (index, range) in query.ranges.iter().enumerate() {
        for block in range.clone() {
            let sector = sector(block, query.block_bytes);
            // Writing to a string does not fail.
            let _ = write!(script, "echo {MARK} {index}\ndaddr {sector}\nblockuse -n\n");
        }
    }
    let arguments = ["-r".as_ref(), query.node.as_os_str()];
    let said = run(TOOL, &arguments, script, query.deadline)?;
    if !said.contains(MARK) {
        return Err(failure(TOOL, &said));
    }
    read_answers(&said, found);
    Ok(())
}

fn read_answers(said: &str, found: &mut RangeOwners) {
    let mut range = None;
    for line in said.lines() {
        if let Some(index) = line.strip_prefix(MARK) {
            range = index.trim().parse::<usize>().ok();
            if let Some(owners) = range.and_then(|index| found.get_mut(index)) {
                owners.get_or_insert_default();
            }
        } else if let Some(owner) = owner_in(line)
            && let Some(Some(owners)) = range.and_then(|index| found.get_mut(index))
        {
            owners.insert(owner);
        }
    }
}

/// `block 25 (0/25) type data inode 132 directory/file`, without `inode` and the rest for blocks of no file.
fn owner_in(line: &str) -> Option<LossOwner> {
    let (_, rest) = line.strip_prefix("block ")?.split_once(") type ")?;
    let Some((kind, inode)) = rest.split_once(" inode ") else {
        return Some(match rest.trim() {
            "free1" | "free2" => LossOwner::Free,
            kind => LossOwner::Metadata(kind.to_owned()),
        });
    };
    let (number, name) = inode.split_once(' ').unwrap_or((inode, ""));
    match (name.is_empty(), number.parse()) {
        (false, _) => Some(LossOwner::File(format!(
            "/{}",
            name.trim_start_matches('/')
        ))),
        (true, Ok(number)) => Some(LossOwner::Inode(number)),
        (true, Err(_)) => Some(LossOwner::Metadata(kind.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that xfs_db 6.1 printed of an image; the fourth is of a file that was deleted while it was open.
    #[test]
    fn lines_of_blockuse_are_owners() {
        for (line, owner) in [
            (
                "block 25 (0/25) type data inode 132 dir a/fi le",
                Some(LossOwner::File("/dir a/fi le".to_owned())),
            ),
            (
                "block 0 (0/0) type sb",
                Some(LossOwner::Metadata("sb".to_owned())),
            ),
            ("block 99364 (3/1060) type free2", Some(LossOwner::Free)),
            (
                "block 800 (0/800) type data inode 133",
                Some(LossOwner::Inode(133)),
            ),
            ("bad daddr 100000000", None),
        ] {
            assert_eq!(owner_in(line), owner, "{line}");
        }
    }
}
