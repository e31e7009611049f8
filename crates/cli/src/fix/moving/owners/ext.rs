//! Owners of blocks of ext2, ext3 and ext4, by `debugfs` of e2fsprogs, which opens a file system read-only by default.

use std::collections::{BTreeMap, BTreeSet};

use plumb_model::result::fix::{LossOwner, OwnerObstacle};

use super::tool::{failure, run};
use super::{Query, RangeOwners, number_at};

const TOOL: &str = "debugfs";
/// `s_log_block_size` and `s_magic` of the superblock, which starts at byte 1024.
const BLOCK_LOG_AT: usize = 1024 + 24;
const MAGIC_AT: usize = 1024 + 56;
/// The longest block is 64 KiB.
const BLOCK_LOG_MAX: u32 = 6;
/// Blocks of one command. A line of a script is cut off at 8 KiB, and a number has at most 20 digits.
const BLOCKS_AT_ONCE: usize = 256;
/// Inodes of the file system itself (`ext2_fs.h`).
const RESERVED_BLOCKS_INODE: u64 = 7;
const JOURNAL_INODE: u64 = 8;

pub fn block_bytes(head: &[u8]) -> Option<u64> {
    let magic: [u8; 2] = number_at(head, MAGIC_AT)?;
    let log = u32::from_le_bytes(number_at(head, BLOCK_LOG_AT)?);
    (magic == *b"\x53\xef" && log <= BLOCK_LOG_MAX).then(|| 1024 << log)
}

/// Fills in the owners of each range.
///
/// # Errors
/// The reason why the rest is missing.
pub fn look_up(query: &Query<'_>, found: &mut RangeOwners) -> Result<(), OwnerObstacle> {
    let mut names = BTreeMap::new();
    for (range, owners) in query.ranges.iter().zip(found) {
        let blocks: Vec<u64> = range.clone().collect();
        let mut of_range = BTreeSet::new();
        for blocks in blocks.chunks(BLOCKS_AT_ONCE) {
            let inodes = inodes_of(query, blocks)?;
            let known: BTreeSet<u64> = inodes.values().copied().collect();
            name_inodes(query, &known, &mut names)?;
            for inode in &known {
                of_range.extend(names[inode].iter().cloned());
            }
            let others = blocks.iter().copied();
            let others: Vec<u64> = others.filter(|at| !inodes.contains_key(at)).collect();
            of_range.extend(unowned(query, &others)?);
        }
        *owners = Some(of_range);
    }
    Ok(())
}

/// The inode of each block that has one.
fn inodes_of(query: &Query<'_>, blocks: &[u64]) -> Result<BTreeMap<u64, u64>, OwnerObstacle> {
    let said = ask(query, &format!("icheck {}\n", words(blocks)))?;
    if !said.contains("Inode number") {
        return Err(failure(TOOL, &said));
    }
    let asked: BTreeSet<u64> = blocks.iter().copied().collect();
    let pairs = said.lines().filter_map(|line| {
        let (block, inode) = line.split_once('\t')?;
        Some((block.parse().ok()?, inode.parse().ok()?))
    });
    Ok(pairs.filter(|(block, _)| asked.contains(block)).collect())
}

/// Adds the names of inodes that are not known yet.
fn name_inodes(
    query: &Query<'_>,
    inodes: &BTreeSet<u64>,
    names: &mut BTreeMap<u64, BTreeSet<LossOwner>>,
) -> Result<(), OwnerObstacle> {
    let unknown: Vec<u64> = inodes
        .iter()
        .copied()
        .filter(|inode| !names.contains_key(inode))
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let said = ask(query, &format!("ncheck {}\n", words(&unknown)))?;
    for inode in unknown {
        names.insert(inode, owners_in(&said, inode));
    }
    Ok(())
}

/// The names of an inode in the answer of `ncheck`; a file has one for each hard link.
fn owners_in(said: &str, inode: u64) -> BTreeSet<LossOwner> {
    let files: BTreeSet<LossOwner> = said
        .lines()
        .filter_map(|line| {
            let (number, path) = line.split_once('\t')?;
            // An entry of the root directory begins with two of them.
            let path = format!("/{}", path.trim_start_matches('/'));
            (number.parse() == Ok(inode)).then_some(LossOwner::File(path))
        })
        .collect();
    if !files.is_empty() {
        return files;
    }
    let other = match inode {
        RESERVED_BLOCKS_INODE => LossOwner::Metadata("room for group descriptors".to_owned()),
        JOURNAL_INODE => LossOwner::Metadata("journal".to_owned()),
        other => LossOwner::Inode(other),
    };
    BTreeSet::from([other])
}

/// The kind of blocks without an inode: free, or of the file system itself.
fn unowned(query: &Query<'_>, blocks: &[u64]) -> Result<BTreeSet<LossOwner>, OwnerObstacle> {
    if blocks.is_empty() {
        return Ok(BTreeSet::new());
    }
    let script: String = blocks.iter().map(|at| format!("testb {at}\n")).collect();
    let said = ask(query, &script)?;
    Ok(said.lines().filter_map(unowned_in).collect())
}

/// `Block 3 marked in use` or `Block 30000 not in use`.
fn unowned_in(line: &str) -> Option<LossOwner> {
    let (_, state) = line.strip_prefix("Block ")?.split_once(' ')?;
    match state.split_once(' ')?.0 {
        "not" => Some(LossOwner::Free),
        "marked" => {
            let name = "superblock, group descriptors, bitmaps or inode table";
            Some(LossOwner::Metadata(name.to_owned()))
        }
        _ => None,
    }
}

fn ask(query: &Query<'_>, script: &str) -> Result<String, OwnerObstacle> {
    let arguments = ["-f".as_ref(), "-".as_ref(), query.node.as_os_str()];
    run(TOOL, &arguments, script.to_owned(), query.deadline)
}

fn words(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    numbers.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that debugfs 1.47.0 printed of an image.
    #[test]
    fn lines_of_debugfs_are_owners() {
        let kind = |line| unowned_in(line).map(|owner| matches!(owner, LossOwner::Free));
        for (line, is_free) in [
            ("Block 30000 not in use", Some(true)),
            ("Block 3 marked in use", Some(false)),
            ("debugfs: testb 3", None),
        ] {
            assert_eq!(kind(line), is_free, "{line}");
        }
        let said = "Inode\tPathname\n12\t//other\n12\t/link\n";
        let files = ["/link", "/other"].map(|name| LossOwner::File(name.to_owned()));
        assert_eq!(owners_in(said, 12), BTreeSet::from(files));
        assert_eq!(
            owners_in(said, 13),
            BTreeSet::from([LossOwner::Inode(13)]),
            "an inode without a name"
        );
    }
}
