//! Windows of a history as objects for a fleet: Parquet files below `host=/date=/tier=`, named by their content.
//!
//! An object has the windows of an hour or a day of this host, all devices, and is made when that time is over: so each export makes the
//! same objects. Beside the totals it has the profile of each window, under the identity of its device. `docs/formats/history-parquet.md`
//! describes the columns.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use plumb_fleet::object_key;
use plumb_history::{Reader, Tier, Window};
use plumb_profile::codec::{self, Saved};

use super::export::Rows;
use super::failed;
use crate::failure::Failure;
use crate::output;

/// Bytes of profiles after which a time is cut into a further object: an agent holds one object at a time.
const PROFILES_BYTES_MAX: usize = 8 << 20;

/// Time after the end of a window for which an export waits: the agent stores the last I/O of the window meanwhile.
pub const GRACE_NS: i64 = 120_000_000_000;

/// An object.
pub struct FleetObject {
    /// Its path below the folder of the fleet.
    pub key: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The time of the objects of a tier: files of a few KB would be too many.
pub const fn time_of_object(tier: Tier) -> Tier {
    match tier {
        Tier::FiveMinutes => Tier::Hour,
        Tier::Hour | Tier::Day => Tier::Day,
    }
}

/// The times of objects from a time on that are over at another one, and of whose windows none is open any more.
///
/// # Errors
/// If the history cannot be read.
pub fn times_over(
    reader: &Reader,
    tier: Tier,
    from_ns: i64,
    upto_ns: i64,
) -> Result<Vec<Window>, Failure> {
    let Some(oldest_ns) = reader.oldest(tier).map_err(failed)? else {
        return Ok(Vec::new());
    };
    let mut over = Vec::new();
    let mut next = Window::at(time_of_object(tier), oldest_ns.max(from_ns));
    while next.span().to_ns <= upto_ns && !reader.has_open(tier, next.span()).map_err(failed)? {
        over.push(next);
        next.number += 1;
    }
    Ok(over)
}

/// Passes on the objects with the windows of a tier in a time. Returns the number of damaged windows, which are left out.
///
/// # Errors
/// If the history cannot be read, and when `put` fails.
pub fn each_object(
    reader: &Reader,
    tier: Tier,
    time: Window,
    put: &mut dyn FnMut(&FleetObject) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let series = reader.names().map_err(failed)?;
    let host = super::export::host();
    let date = date_of(time.span().from_ns);
    let mut damaged = 0;
    let mut rows = Rows::default();
    let mut finish = |rows: Rows| {
        let bytes = rows.into_parquet(&host)?;
        let key = object_key(&host, &date, tier.word(), &bytes);
        put(&FleetObject { key, bytes })
    };
    for row in reader.glance(tier, time.span(), None).map_err(failed)? {
        let Some(series) = series.iter().find(|one| one.number == row.series) else {
            continue;
        };
        let closed = reader.closed_window(series, row.window).map_err(failed)?;
        let Some(mut closed) = closed else {
            damaged += 1;
            continue;
        };
        // A name may be that of another disk after the next start.
        closed.profile.device.clone_from(&series.identity);
        let mut saved = Saved::default();
        saved.profiles.add(&closed.profile);
        let profile = codec::encode(&saved).map_err(|error| Failure::failed(&error))?;
        rows.add(series, tier, row, Some(profile));
        if rows.profiles_bytes() >= PROFILES_BYTES_MAX {
            finish(std::mem::take(&mut rows))?;
        }
    }
    if rows.len() > 0 {
        finish(rows)?;
    }
    Ok(damaged)
}

/// The UTC day of a time, as `2026-11-01`.
fn date_of(ns: i64) -> String {
    let since = Duration::from_nanos(ns.max(0).cast_unsigned());
    let words = humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + since).to_string();
    words.chars().take(10).collect()
}

/// Writes an object below a folder, on the disk before it gets its name. Returns `false` if it is there already.
///
/// # Errors
/// If a folder cannot be made, or the file cannot be written.
pub fn put_into_folder(root: &Path, object: &FleetObject) -> Result<bool, Failure> {
    let path = root.join(&object.key);
    // The name is that of the content, and a file has its name only when it is whole.
    if path.is_file() {
        return Ok(false);
    }
    let folder = path.parent().unwrap_or(root);
    make_folders(folder).map_err(|error| {
        Failure::failed(&error).at(&format!("cannot make {}", folder.display()))
    })?;
    output::write_file(&path, &object.bytes)?;
    Ok(true)
}

/// Makes a folder and those above it, each on the disk before the next one.
fn make_folders(folder: &Path) -> io::Result<()> {
    let missing: Vec<PathBuf> = folder
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && !path.is_dir())
        .map(Path::to_path_buf)
        .collect();
    for path in missing.iter().rev() {
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
            File::open(above)?.sync_all()?;
        }
    }
    Ok(())
}
