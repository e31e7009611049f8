//! Exported windows of the histories of hosts: the names of their objects, and the choice of windows that counts each I/O once.
//!
//! The windows of an hour and of a day hold the same I/O, and two exports may hold the same window. So a time counts by its coarsest
//! window, and a window counts by the version with the most I/O: a window that is over only grows, by an import.

use std::collections::BTreeMap;
use std::fmt::Write;

use twox_hash::XxHash64;

/// The path of an object below the folder of a fleet. `date` is the UTC day in which its windows begin, `tier` their length. The name of
/// the object is the XXH64 of its bytes, so an object that is exported twice is one object.
#[must_use]
pub fn object_key(host: &str, date: &str, tier: &str, bytes: &[u8]) -> String {
    let escaped = escaped(host);
    let hash = XxHash64::oneshot(0, bytes);
    format!("host={escaped}/date={date}/tier={tier}/{hash:016x}.parquet")
}

/// A name with all bytes but letters, digits, dots and lines as `%` and two digits: as Hive escapes the values of partitions.
fn escaped(name: &str) -> String {
    let mut escaped = String::new();
    for byte in name.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if is_plain {
            escaped.push(byte.into());
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// Longest name of a file without its ending. File systems take 255 bytes.
const FILE_NAME_BYTES_MAX: usize = 200;

/// The name of a file of a host, different for different hosts: no path, no hidden file and no option of a command.
#[must_use]
pub fn file_name(host: &str, ending: &str) -> String {
    let mut name = escaped(host);
    if name.is_empty() {
        name.push('%');
    } else if name.starts_with(['.', '-']) {
        let first = name.remove(0);
        name = format!("%{:02X}{name}", u32::from(first));
    }
    if name.len() > FILE_NAME_BYTES_MAX {
        name.truncate(FILE_NAME_BYTES_MAX);
        let hash = XxHash64::oneshot(0, host.as_bytes());
        let _ = write!(name, "%{hash:016x}");
    }
    name + ending
}

/// A window of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WindowName {
    /// WWN, serial number or UUID; the name for want of them.
    pub identity: String,
    /// The word of the layer.
    pub layer: String,
    /// Begin, ns since 1970.
    pub from_ns: i64,
    /// Length.
    pub seconds: i64,
}

/// A version of a window, with its place among the rows that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WindowVersion {
    ios: i64,
    digest: u64,
    row: usize,
}

/// The choice among the windows of some devices.
#[derive(Clone, Debug, Default)]
pub struct WindowChoice {
    /// The coarsest windows of a device first, in the order of time.
    windows: BTreeMap<(String, String, i64, i64), WindowVersion>,
}

impl WindowChoice {
    /// Adds a version of a window: `ios` in it, and its content. `row` is its place among all rows.
    pub fn add(&mut self, window: WindowName, ios: i64, content: &[u8], row: usize) {
        let digest = XxHash64::oneshot(0, content);
        let version = WindowVersion { ios, digest, row };
        let rank = |version: &WindowVersion| (version.ios, version.digest);
        let key = (
            window.identity,
            window.layer,
            -window.seconds,
            window.from_ns,
        );
        let known = self.windows.entry(key).or_insert(version);
        if rank(&version) > rank(known) {
            *known = version;
        }
    }

    /// The rows that count, in the order of device, length and time: the same in any order of the rows.
    #[must_use]
    pub fn rows(&self) -> Vec<usize> {
        let mut rows = Vec::new();
        // The taken windows of the present device, by their ends.
        let mut taken: BTreeMap<i64, i64> = BTreeMap::new();
        let mut device = None;
        for ((identity, layer, seconds, from_ns), version) in &self.windows {
            if device != Some((identity, layer)) {
                device = Some((identity, layer));
                taken.clear();
            }
            let to_ns = from_ns.saturating_sub(seconds.saturating_mul(1_000_000_000));
            let above = taken.range(from_ns.saturating_add(1)..).next();
            if above.is_some_and(|(_, begin)| *begin < to_ns) {
                continue;
            }
            taken.insert(to_ns, *from_ns);
            rows.push(version.row);
        }
        rows
    }
}
