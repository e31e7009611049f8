//! The kernel's own counters of a device: whether others used it meanwhile.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use plumb_geometry::group_digits;
use plumb_load::Target;

/// I/O that ended, of everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    reads: u64,
    writes: u64,
}

impl Counters {
    /// Of a block device; `None` for a file.
    pub fn of(target: &Target) -> Option<Counters> {
        Counters::parsed(&fs::read_to_string(sysfs(target)?.join("stat")).ok()?)
    }

    /// Fields 1 and 5 of `stat` (Documentation/block/stat.rst).
    fn parsed(stat: &str) -> Option<Counters> {
        let mut fields = stat.split_ascii_whitespace().map(|field| field.parse().ok());
        let reads = fields.next()??;
        Some(Counters { reads, writes: fields.nth(3)?? })
    }

    /// What others did since, where that is more than a share of the probe's own reads.
    pub fn others(self, before: Counters, own_reads: u64, share: f64) -> Option<String> {
        let reads = self.reads.saturating_sub(before.reads).saturating_sub(own_reads);
        let writes = self.writes.saturating_sub(before.writes);
        let is_much = (reads + writes) as f64 > share * own_reads as f64;
        let (reads, writes) = (group_digits(reads), group_digits(writes));
        is_much.then(|| format!("beside the probe the device made {reads} reads and {writes} writes"))
    }
}

/// Whether it is a loop device that reads its file through the page cache.
pub fn is_buffered_loop(target: &Target) -> bool {
    let direct = sysfs(target).and_then(|place| fs::read_to_string(place.join("loop/dio")).ok());
    direct.is_some_and(|direct| direct.trim() == "0")
}

fn sysfs(target: &Target) -> Option<PathBuf> {
    if !target.is_block_device() {
        return None;
    }
    let number = fs::metadata(target.path()).ok()?.rdev();
    // As glibc takes device numbers apart (makedev(3)).
    let major = ((number >> 8) & 0xfff) | ((number >> 32) & !0xfff);
    let minor = (number & 0xff) | ((number >> 12) & !0xff);
    Some(PathBuf::from(format!("/sys/dev/block/{major}:{minor}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_kernel() {
        let stat =
            "    1200      30   96000     812      77       4     616      52        0      400      864";
        let after = Counters::parsed(stat).expect("fields");
        assert_eq!(after, Counters { reads: 1200, writes: 77 });
        assert_eq!(Counters::parsed("12 3"), None);
        let before = Counters { reads: 200, writes: 70 };
        assert_eq!(after.others(before, 1000, 0.05), None, "7 writes beside 1,000 reads");
        let words = after.others(before, 900, 0.05).expect("others");
        assert_eq!(words, "beside the probe the device made 100 reads and 7 writes");
    }
}
