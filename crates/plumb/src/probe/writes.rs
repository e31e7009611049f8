//! `--write`: the name that has to be typed, and when a write counts as done.

use std::fs;
use std::path::Path;

use plumb_load::probe::write_back::WriteDoubt;
use plumb_load::{Durability, MayWrite, Target};
use plumb_report::{format, probe as report};

use super::counters::sysfs;
use crate::bench::targets::{Fate, Opened, open_to_write};
use crate::cli::Probe;
use crate::failure::Failure;

/// What writes need, and what a reader must know of them.
pub struct Writing {
    /// The permission.
    pub may_write: MayWrite,
    /// When they count as done.
    pub done: report::Durability,
    /// Why.
    pub note: &'static str,
}

/// What the kernel knows of a device's write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteCache {
    /// The device says that it has none, or one that loses nothing.
    None,
    /// One that loses its content without power.
    Volatile { has_fua: bool },
    /// Nobody tells: of a file.
    Unknown,
}

/// Opens the target once its name was typed.
///
/// # Errors
/// When it cannot be opened, is in use, or another name was typed.
pub fn open(args: &Probe) -> Result<(Target, Writing), Failure> {
    let cache = Target::open(&args.target).map_or(WriteCache::Unknown, |target| {
        WriteCache::from_target(&target)
    });
    let durability = cache.durability();
    let Opened { target, may_write } =
        open_to_write(&args.target, &args.yes, Fate::WrittenBack, durability)?;
    let Some(may_write) = may_write else {
        return Err(Failure::usage(format!(
            "{}: may not be written to",
            target.name()
        )));
    };
    let done = match durability {
        Durability::Accepted => report::Durability::Accepted,
        Durability::Medium => report::Durability::Medium,
    };
    Ok((
        target,
        Writing {
            may_write,
            done,
            note: cache.note(),
        },
    ))
}

impl WriteCache {
    fn from_target(target: &Target) -> WriteCache {
        sysfs(target).map_or(WriteCache::Unknown, |place| WriteCache::read(&place))
    }

    /// Reads the queue attributes of a disk, or of the disk that a partition is on (Documentation/ABI/stable/sysfs-block).
    fn read(place: &Path) -> WriteCache {
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

    /// A cache would hide what a miss costs, so that a write has to reach the medium where there may be one.
    fn durability(self) -> Durability {
        match self {
            WriteCache::None => Durability::Accepted,
            WriteCache::Volatile { .. } | WriteCache::Unknown => Durability::Medium,
        }
    }

    const fn note(self) -> &'static str {
        match self {
            WriteCache::None => {
                "writes are done when the device says so: it states no volatile write cache; one that needs no power to \
                 keep what it has may still hide what a miss costs"
            }
            WriteCache::Volatile { has_fua: true } => {
                "each write reaches the medium (O_DSYNC, by force unit access): the device's write cache, which is on, \
                 would hide what a miss costs"
            }
            WriteCache::Volatile { has_fua: false } => {
                "each write reaches the medium (O_DSYNC, by a flush after it): the device's write cache, which is on, \
                 would hide what a miss costs; the flush is in the times"
            }
            WriteCache::Unknown => {
                "each write reaches the medium (O_DSYNC): nobody tells whether a write cache below would hide what a miss \
                 costs; a flush may be in the times"
            }
        }
    }
}

/// Why a measurement of writes is not believed.
pub fn doubt_words(doubt: WriteDoubt) -> String {
    match doubt {
        WriteDoubt::Memory { ns } => format!("a write takes {}, as to memory", format::ns(ns)),
        WriteDoubt::PageCache => {
            "writes go through a page cache of this host, which writes whole pages by itself"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_may_be_there_is_written_through() {
        let folder = tempfile::tempdir().expect("a folder");
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
                let found = WriteCache::read(&folder.path().join(place));
                assert_eq!(
                    (found, found.durability()),
                    (expected, durability),
                    "{place}: {cache}"
                );
            }
        }
    }
}
