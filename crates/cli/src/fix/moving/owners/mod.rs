//! The files that have lost bytes: ranges of the partition, as blocks of the file system in it, given to the tools that know
//! the owner of a block. The tools only read, and have a limit of time.
//!
//! Lost ranges count from the partition's first byte, as the file system does. So the place of the partition on the disk
//! does not enter: the tools read the partition's node, after the kernel has it where the move has ended.

mod ext;
mod ntfs;
mod tool;
mod xfs;

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use plumb_model::result::fix::{LossOwner, MovedLoss, OwnerObstacle, OwnerSearch};
use plumb_quoting::Command;

use tool::Deadline;

/// Blocks that are looked up; more of them are a disk that has to be restored.
const BLOCKS_MAX: u64 = 65_536;
/// Bytes from the start of a partition that identify its file system.
const HEAD_BYTES: usize = 4096;

/// A file system whose tools know the owner of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ext,
    Xfs,
    Ntfs,
}

/// The file system that a partition starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileSystem {
    kind: Kind,
    /// Length of a block; NTFS calls it a cluster.
    block_bytes: u64,
}

/// Owners of each range in turn; `None` of ranges that were not looked up to their end.
type RangeOwners = [Option<BTreeSet<LossOwner>>];

/// Ranges to look up, in blocks of the file system.
struct Query<'a> {
    node: &'a Path,
    block_bytes: u64,
    ranges: &'a [Range<u64>],
    deadline: Deadline,
}

/// Fills in the owners of lost ranges. `node` is the partition where the move has ended; `None` where the kernel does not have
/// it there.
pub fn find(node: Option<&Path>, lost: &mut [MovedLoss]) -> OwnerSearch {
    let Some(node) = node else {
        return without_tool(OwnerObstacle::NoPartition);
    };
    let head = match head(node) {
        Ok(head) => head,
        Err(error) => {
            return without_tool(OwnerObstacle::Failed {
                tool: "plumb",
                said: format!("{}: {error}", node.display()),
            });
        }
    };
    match FileSystem::in_head(&head) {
        Some(file_system) => file_system.search(node, lost),
        None => without_tool(OwnerObstacle::UnknownContents),
    }
}

fn without_tool(obstacle: OwnerObstacle) -> OwnerSearch {
    OwnerSearch {
        file_system: None,
        is_complete: false,
        obstacle: Some(obstacle),
        command: None,
    }
}

fn head(node: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD_BYTES];
    File::open(node)?.read_exact_at(&mut head, 0)?;
    Ok(head)
}

impl FileSystem {
    /// By the superblock. A length of blocks that the format does not allow is damage.
    fn in_head(head: &[u8]) -> Option<FileSystem> {
        let kinds = [
            (Kind::Ext, ext::block_bytes(head)),
            (Kind::Xfs, xfs::block_bytes(head)),
            (Kind::Ntfs, ntfs::cluster_bytes(head)),
        ];
        kinds.into_iter().find_map(|(kind, block_bytes)| {
            let block_bytes = block_bytes?;
            Some(FileSystem { kind, block_bytes })
        })
    }

    fn name(self) -> &'static str {
        match self.kind {
            Kind::Ext => "ext",
            Kind::Xfs => "xfs",
            Kind::Ntfs => "ntfs",
        }
    }

    /// The blocks that have bytes of a lost range.
    fn blocks(self, lost: &MovedLoss) -> Range<u64> {
        let end = lost.start_bytes.saturating_add(lost.len_bytes);
        lost.start_bytes / self.block_bytes..end.div_ceil(self.block_bytes)
    }

    fn search(self, node: &Path, lost: &mut [MovedLoss]) -> OwnerSearch {
        let ranges: Vec<Range<u64>> = lost.iter().map(|lost| self.blocks(lost)).collect();
        let looked_up = first_blocks(&ranges, BLOCKS_MAX);
        let query = Query {
            node,
            block_bytes: self.block_bytes,
            ranges: &ranges[..looked_up],
            deadline: Deadline::start(),
        };
        let mut found = vec![None; ranges.len()];
        let ended = match self.kind {
            Kind::Ext => ext::look_up(&query, &mut found),
            Kind::Xfs => xfs::look_up(&query, &mut found),
            Kind::Ntfs => ntfs::look_up(&query, &mut found),
        };
        for (lost, owners) in lost.iter_mut().zip(found) {
            lost.owners = owners.map(|owners| owners.into_iter().collect());
        }
        let obstacle = match ended {
            Err(obstacle) => Some(obstacle),
            Ok(()) if looked_up < ranges.len() => {
                Some(OwnerObstacle::TooMany { blocks: BLOCKS_MAX })
            }
            Ok(()) => None,
        };
        OwnerSearch {
            file_system: Some(self.name()),
            is_complete: obstacle.is_none(),
            command: obstacle.as_ref().and_then(|_| {
                let first = ranges.first()?.start;
                self.command(node, first).line().ok()
            }),
            obstacle,
        }
    }

    /// The command by which a person looks up one block.
    fn command(self, node: &Path, block: u64) -> Command {
        match self.kind {
            Kind::Ext => Command::new("debugfs -R")
                .arg(format_args!("icheck {block}"))
                .path(node),
            Kind::Xfs => {
                let sector = xfs::sector(block, self.block_bytes);
                Command::new("xfs_db -r -c")
                    .arg("blockget -n")
                    .flags("-c")
                    .arg(format_args!("daddr {sector}"))
                    .flags("-c")
                    .arg("blockuse -n")
                    .path(node)
            }
            Kind::Ntfs => Command::new("ntfscluster -c")
                .arg(format_args!("{block}-{block}"))
                .path(node),
        }
    }
}

/// The number of ranges from the first on with at most this number of blocks together.
fn first_blocks(ranges: &[Range<u64>], blocks_max: u64) -> usize {
    let mut total = 0u64;
    let fits = |range: &&Range<u64>| {
        total = total.saturating_add(range.end - range.start);
        total <= blocks_max
    };
    ranges.iter().take_while(fits).count()
}

/// A number of `N` little-endian bytes of a superblock.
fn number_at<const N: usize>(head: &[u8], at: usize) -> Option<[u8; N]> {
    head.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(start_bytes: u64, len_bytes: u64) -> MovedLoss {
        MovedLoss {
            start_bytes,
            len_bytes,
            why: "unreadable",
            owners: None,
        }
    }

    #[test]
    fn ranges_become_the_blocks_that_they_touch() {
        let file_system = FileSystem {
            kind: Kind::Ext,
            block_bytes: 1024,
        };
        for (start, len, blocks) in [
            (0, 1, 0..1),
            (1023, 2, 0..2),
            (4096, 4096, 4..8),
            (512, 1024, 0..2),
        ] {
            assert_eq!(file_system.blocks(&lost(start, len)), blocks);
        }
    }

    #[test]
    fn whole_ranges_are_taken_up_to_the_limit() {
        for (ranges, limit, taken) in [
            (vec![0..4, 8..12], 8, 2),
            (vec![0..4, 8..13], 8, 1),
            (vec![0..9, 9..10], 8, 0),
            (vec![], 8, 0),
        ] {
            assert_eq!(first_blocks(&ranges, limit), taken, "{ranges:?}");
        }
    }

    /// The offsets are those of the headers of e2fsprogs, xfsprogs and ntfs-3g.
    #[test]
    fn superblocks_state_the_length_of_a_block() {
        let head = |parts: &[(usize, &[u8])]| {
            let mut head = vec![0; HEAD_BYTES];
            for (at, bytes) in parts {
                head[*at..*at + bytes.len()].copy_from_slice(bytes);
            }
            FileSystem::in_head(&head).map(|found| (found.kind, found.block_bytes))
        };
        let ext = |log: u8| head(&[(1080, b"\x53\xef"), (1048, &[log])]);
        assert_eq!(ext(0), Some((Kind::Ext, 1024)));
        assert_eq!(ext(6), Some((Kind::Ext, 65_536)));
        assert_eq!(ext(7), None);
        let xfs = |bytes: u32| head(&[(0, b"XFSB"), (4, &bytes.to_be_bytes())]);
        assert_eq!(xfs(4096), Some((Kind::Xfs, 4096)));
        assert_eq!(xfs(5000), None);
        let ntfs = |sectors: u8| head(&[(3, b"NTFS    "), (11, &[0, 2]), (13, &[sectors])]);
        assert_eq!(ntfs(8), Some((Kind::Ntfs, 4096)));
        assert_eq!(ntfs(0xf4), Some((Kind::Ntfs, 2 << 20)));
        assert_eq!(ntfs(0), None);
        assert_eq!(head(&[]), None);
    }

    /// As `docs/move.md` gives them.
    #[test]
    fn a_person_gets_the_command_of_one_block() {
        let node = Path::new("/dev/sdb1");
        for (kind, line) in [
            (Kind::Ext, "debugfs -R 'icheck 123' /dev/sdb1"),
            (
                Kind::Xfs,
                "xfs_db -r -c 'blockget -n' -c 'daddr 984' -c 'blockuse -n' /dev/sdb1",
            ),
            (Kind::Ntfs, "ntfscluster -c 123-123 /dev/sdb1"),
        ] {
            let file_system = FileSystem {
                kind,
                block_bytes: 4096,
            };
            let command = file_system.command(node, 123).line().expect("a command");
            assert_eq!(command, line);
        }
    }

    #[test]
    fn a_partition_without_a_known_file_system_has_no_owners() {
        let dir = plumb_testkit::temp_dir("owners");
        let node = dir.path().join("blank");
        std::fs::write(&node, vec![0; 8192]).expect("room");
        let mut ranges = [lost(0, 4096)];
        let search = find(Some(&node), &mut ranges);
        assert_eq!(search.obstacle, Some(OwnerObstacle::UnknownContents));
        assert!(!search.is_complete);
        let search = find(None, &mut ranges);
        assert_eq!(search.obstacle, Some(OwnerObstacle::NoPartition));
        assert_eq!(ranges[0].owners, None);
    }
}
