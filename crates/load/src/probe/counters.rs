//! The kernel's own counters of a device: they show whether others used it meanwhile.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::target::Target;

/// Bytes of a sector in these counters, for any block size of the device.
const SECTOR: u64 = 512;

/// I/O that ended, of all programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskCounters {
    /// Reads.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
}

/// I/O of others on a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Others {
    /// Reads.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Their share of all I/O, by count or by bytes, the larger of both.
    pub share: f64,
}

impl DiskCounters {
    /// Of a block device, of a partition's whole disk, of the device below a file; `None` without counters.
    #[must_use]
    pub fn read(target: &Target) -> Option<DiskCounters> {
        // I/O through the page cache do not equal those at the device.
        let found = fs::metadata(target.path())
            .ok()
            .filter(|_| target.is_direct())?;
        let place = place_of(if target.is_block_device() {
            found.rdev()
        } else {
            found.dev()
        })?;
        let is_partition = place.join("partition").exists();
        let place = if is_partition {
            place.join("..")
        } else {
            place
        };
        DiskCounters::parsed(&fs::read_to_string(place.join("stat")).ok()?)
    }

    /// Fields 1, 3, 5 and 7 of `stat` (Documentation/block/stat.rst).
    fn parsed(stat: &str) -> Option<DiskCounters> {
        let mut fields = stat
            .split_ascii_whitespace()
            .map(|field| field.parse::<u64>().ok());
        let mut next = |skipped| fields.nth(skipped)?;
        let (reads, read_sectors) = (next(0)?, next(1)?);
        let (writes, written_sectors) = (next(1)?, next(1)?);
        let bytes = |sectors: u64| sectors.checked_mul(SECTOR);
        Some(DiskCounters {
            reads,
            read_bytes: bytes(read_sectors)?,
            writes,
            written_bytes: bytes(written_sectors)?,
        })
    }

    /// The I/O of others since then, beside the probe's own.
    #[must_use]
    pub fn others(self, before: DiskCounters, own: DiskCounters) -> Others {
        let since =
            |after: u64, before: u64, own: u64| after.saturating_sub(before).saturating_sub(own);
        let read_bytes = since(self.read_bytes, before.read_bytes, own.read_bytes);
        let written_bytes = since(self.written_bytes, before.written_bytes, own.written_bytes);
        // The kernel splits long I/O, and adds flushes: more requests without more bytes are the probe's own.
        let reads = since(self.reads, before.reads, own.reads).min(read_bytes / SECTOR);
        let writes = since(self.writes, before.writes, own.writes).min(written_bytes / SECTOR);
        let share = |others: u64, own: u64| others as f64 / (others + own).max(1) as f64;
        let by_count = share(reads + writes, own.reads + own.writes);
        let share = by_count.max(share(
            read_bytes + written_bytes,
            own.read_bytes + own.written_bytes,
        ));
        Others {
            reads,
            read_bytes,
            writes,
            written_bytes,
            share,
        }
    }
}

/// Whether it is a loop device that reads its file through the page cache.
#[must_use]
pub fn is_buffered_loop(target: &Target) -> bool {
    let direct = sysfs(target).and_then(|place| fs::read_to_string(place.join("loop/dio")).ok());
    direct.is_some_and(|direct| direct.trim() == "0")
}

/// The kernel's directory of a device.
pub(super) fn sysfs(target: &Target) -> Option<PathBuf> {
    let number = fs::metadata(target.path())
        .ok()
        .filter(|_| target.is_block_device())?
        .rdev();
    place_of(number)
}

fn place_of(number: u64) -> Option<PathBuf> {
    // As glibc takes device numbers apart (makedev(3)).
    let major = ((number >> 8) & 0xfff) | ((number >> 32) & !0xfff);
    let minor = (number & 0xff) | ((number >> 12) & !0xff);
    let place = Path::new("/sys/dev/block").join(format!("{major}:{minor}"));
    place.exists().then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_kernel() {
        let stat = "    1200      30   96000     812      77       4     616      52        0      400      864";
        let after = DiskCounters::parsed(stat).expect("fields");
        let expected = DiskCounters {
            reads: 1200,
            read_bytes: 96_000 * 512,
            writes: 77,
            written_bytes: 616 * 512,
        };
        assert_eq!(after, expected);
        assert_eq!(DiskCounters::parsed("12 3 4 5 6"), None);
        assert_eq!(
            DiskCounters::parsed(&"99999999999999999999 ".repeat(8)),
            None
        );
    }

    #[test]
    fn foreign_io_are_counted_apart() {
        let counters = |reads, read_bytes, writes, written_bytes| DiskCounters {
            reads,
            read_bytes,
            writes,
            written_bytes,
        };
        let before = counters(200, 1 << 20, 70, 1 << 20);
        let others = |after: DiskCounters| after.others(before, counters(1_000, 4 << 20, 0, 0));
        // As many bytes as the probe has read, in requests that the kernel has split.
        let split = others(counters(2_200, 5 << 20, 70, 1 << 20));
        assert_eq!(
            split,
            Others {
                reads: 0,
                read_bytes: 0,
                writes: 0,
                written_bytes: 0,
                share: 0.0
            }
        );
        // By count a fifth, by bytes half.
        let much = others(counters(1_400, 8 << 20, 120, 2 << 20));
        let (reads, read_bytes, writes, written_bytes) = (200, 3 << 20, 50, 1 << 20);
        assert_eq!(
            much,
            Others {
                reads,
                read_bytes,
                writes,
                written_bytes,
                share: 0.5
            }
        );
        // Short ones: by count half.
        let short = others(counters(2_200, (5 << 20) + 512_000, 70, 1 << 20));
        assert_eq!((short.reads, short.share), (1_000, 0.5));
        // A probe's own writes count as its own.
        let own = counters(200, 1 << 20, 200, 1 << 20);
        let back = counters(400, 2 << 20, 270, 2 << 20).others(before, own);
        assert_eq!((back.writes, back.share), (0, 0.0));
    }
}
