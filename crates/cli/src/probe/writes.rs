//! `--write`: the name that has to be typed, and when a write counts as done.

use plumb_load::probe::WriteCache;
use plumb_load::probe::write_back::WriteDoubt;
use plumb_load::{Durability, MayWrite, Target};
use plumb_report::format;

use crate::bench::targets::{Fate, Opened, open_to_write};
use crate::cli::Probe;
use crate::failure::Failure;

/// The requirements of writes, with notes for a reader.
pub struct Writing {
    /// The permission.
    pub may_write: MayWrite,
    /// When they count as done.
    pub done: Durability,
    /// Why.
    pub note: &'static str,
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
    Ok((
        target,
        Writing {
            may_write,
            done: durability,
            note: note(cache),
        },
    ))
}

/// A note for the reader of the result.
const fn note(cache: WriteCache) -> &'static str {
    match cache {
        WriteCache::None => {
            "writes are done when the device says so: it states no volatile write cache; a cache with a battery may still \
             hide the cost of a miss"
        }
        WriteCache::Volatile { has_fua: true } => {
            "each write reaches the medium (O_DSYNC, by force unit access): the device's write cache, which is on, \
             would hide the cost of a miss"
        }
        WriteCache::Volatile { has_fua: false } => {
            "each write reaches the medium (O_DSYNC, by a flush after it): the device's write cache, which is on, \
             would hide the cost of a miss; the times include the flush"
        }
        WriteCache::Unknown => {
            "each write reaches the medium (O_DSYNC): a write cache below may exist and would hide the cost of a miss; \
             the times may include a flush"
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
