//! The write cache of a device, as its kernel states it, and when a write of a probe counts as done for it.

use std::fs;
use std::path::Path;

use super::counters::sysfs;
use crate::Durability;
use crate::target::Target;

/// The kernel's knowledge of a device's write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// The device states none, or one that loses nothing.
    None,
    /// One that loses its content without power.
    Volatile {
        /// Whether a single write can pass it (force unit access).
        has_fua: bool,
    },
    /// Nothing states it: the target is a file.
    Unknown,
}

impl WriteCache {
    /// That of a target.
    #[must_use]
    pub fn from_target(target: &Target) -> WriteCache {
        sysfs(target).map_or(WriteCache::Unknown, |place| WriteCache::told(&place))
    }

    /// The statement of the queue of a disk, or of a partition's disk (Documentation/ABI/stable/sysfs-block).
    fn told(place: &Path) -> WriteCache {
        let read = |name: &str| {
            let own = fs::read_to_string(place.join("queue").join(name));
            own.or_else(|_| fs::read_to_string(place.join("../queue").join(name)))
                .unwrap_or_default()
        };
        match read("write_cache").trim() {
            "write through" => WriteCache::None,
            "write back" => WriteCache::Volatile {
                has_fua: read("fua").trim() == "1",
            },
            _ => WriteCache::Unknown,
        }
    }

    /// A cache would hide the cost, so a write has to reach the medium if there may be a cache.
    #[must_use]
    pub fn durability(self) -> Durability {
        match self {
            WriteCache::None => Durability::Accepted,
            WriteCache::Volatile { .. } | WriteCache::Unknown => Durability::Medium,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_may_be_there_is_written_through() {
        let folder = plumb_testkit::temp_dir("write-cache");
        let queue = folder.path().join("sdx/queue");
        fs::create_dir_all(&queue)
            .and_then(|()| fs::create_dir(folder.path().join("sdx/sdx1")))
            .expect("folders");
        let volatile = |has_fua| WriteCache::Volatile { has_fua };
        for (cache, fua, expected, durability) in [
            ("write back", "1", volatile(true), Durability::Medium),
            ("write back", "0", volatile(false), Durability::Medium),
            ("write through", "0", WriteCache::None, Durability::Accepted),
            (
                "something else",
                "0",
                WriteCache::Unknown,
                Durability::Medium,
            ),
        ] {
            let told = |name: &str, text: &str| {
                fs::write(queue.join(name), format!("{text}\n")).expect("a file")
            };
            told("write_cache", cache);
            told("fua", fua);
            for place in ["sdx", "sdx/sdx1"] {
                let found = WriteCache::told(&folder.path().join(place));
                assert_eq!(
                    (found, found.durability()),
                    (expected, durability),
                    "{place}: {cache}"
                );
            }
        }
    }
}
