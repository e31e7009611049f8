//! The folder of triggered recordings: the names of its files, and the bound of their bytes.
//!
//! The folder belongs to the agent, but a person may put other files there: only regular files with a name that the agent gives are ever
//! deleted or renamed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plumb_geometry::SmallSort;

use crate::moment::{parse_unix, unix_words};

/// Ends the name of a file until its recording has ended.
const PART: &str = ".part";
const FIRST: &str = "plumb-";
const LAST: &str = ".parquet";
/// Length of `20261129T230500Z`.
const TIME_LEN: usize = 16;

/// The measure of a device that crossed its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// 99 % of the latencies are at most this.
    P99,
    /// The share of reads and writes that start off 4 KiB.
    Misfit,
}

impl Measure {
    const ALL: [Measure; 2] = [Measure::P99, Measure::Misfit];

    /// Its word in names of files.
    pub const fn word(self) -> &'static str {
        match self {
            Measure::P99 => "p99",
            Measure::Misfit => "misfit",
        }
    }
}

/// The name of a file: `plumb-20261129T230500Z-p99-sda.parquet`. In the order of names the oldest comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingName {
    /// The moment of the trigger, ns of Unix time, in whole seconds.
    pub at_ns: i64,
    /// The measure that crossed its line.
    pub measure: Measure,
    /// The device with `!` in place of `/`, and `_` in place of other unusual characters.
    pub device: String,
}

impl RecordingName {
    /// A name for a recording that begins now; `None` for a time before 1970 or after 9999.
    pub fn new(at_ns: i64, measure: Measure, device: &str) -> Option<RecordingName> {
        let name = RecordingName {
            at_ns: at_ns - at_ns.rem_euclid(1_000_000_000),
            measure,
            device: plain(device),
        };
        RecordingName::from_file_name(&name.file_name()).filter(|again| *again == name)
    }

    /// The name of the file.
    pub fn file_name(&self) -> String {
        let time = unix_words(self.at_ns).unwrap_or_default();
        let time: String = time.chars().filter(|c| !matches!(c, '-' | ':')).collect();
        let (word, device) = (self.measure.word(), &self.device);
        format!("{FIRST}{time}-{word}-{device}{LAST}")
    }

    /// Reads the name of a file; `None` for every other one.
    pub fn from_file_name(name: &str) -> Option<RecordingName> {
        let rest = name.strip_prefix(FIRST)?.strip_suffix(LAST)?;
        let (time, rest) = rest.split_at_checked(TIME_LEN)?;
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (date, hours) = time.strip_suffix('Z')?.split_once('T')?;
        if date.len() != 8 || !is_digits(date) || !is_digits(hours) {
            return None;
        }
        let ([year, month, day], [hour, minute, second]) = (
            [&date[..4], &date[4..6], &date[6..]],
            [&hours[..2], &hours[2..4], &hours[4..]],
        );
        let at_ns = parse_unix(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))?;
        let (word, device) = rest.strip_prefix('-')?.split_once('-')?;
        let measure = Measure::ALL.into_iter().find(|one| one.word() == word)?;
        (!device.is_empty() && plain(device) == device).then(|| RecordingName {
            at_ns,
            measure,
            device: device.to_owned(),
        })
    }

    /// Whether the recording is that of a device.
    pub fn is_of(&self, device: &str) -> bool {
        self.device == plain(device)
    }
}

/// A device as names of files spell it.
fn plain(device: &str) -> String {
    let plain = |letter: char| match letter {
        '/' => '!',
        letter if letter.is_ascii_alphanumeric() || "!-_.:".contains(letter) => letter,
        _ => '_',
    };
    device.chars().take(64).map(plain).collect()
}

/// The name of a file until its recording has ended.
pub fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(PART);
    PathBuf::from(name)
}

/// The recordings of a folder with their lengths in bytes, the oldest first.
pub fn recordings(folder: &Path) -> Vec<(RecordingName, u64)> {
    let mut found: Vec<(RecordingName, u64)> = files(folder)
        .filter_map(|(name, bytes)| Some((RecordingName::from_file_name(&name)?, bytes)))
        .collect();
    found.small_sort_by_key(|(name, _)| name.file_name());
    found
}

/// The regular files of a folder with their lengths.
fn files(folder: &Path) -> impl Iterator<Item = (String, u64)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let found = entry.path().symlink_metadata().ok()?;
        let name = entry.file_name().into_string().ok()?;
        found.is_file().then_some((name, found.len()))
    })
}

/// Deletes the oldest recordings until the others have at most this many bytes.
///
/// # Errors
/// If one cannot be deleted.
pub fn make_room(folder: &Path, bytes_max: u64) -> io::Result<()> {
    let all = recordings(folder);
    let mut bytes: u64 = all.iter().map(|(_, bytes)| bytes).sum();
    for (name, of_file) in all {
        if bytes <= bytes_max {
            break;
        }
        fs::remove_file(folder.join(name.file_name()))?;
        bytes -= of_file;
    }
    Ok(())
}

/// Gives recordings that a kill cut short their names: they can be read up to their last seconds.
pub fn keep_unfinished(folder: &Path) {
    for (part, _) in files(folder) {
        let Some(name) = part.strip_suffix(PART) else {
            continue;
        };
        if RecordingName::from_file_name(name).is_some() && !folder.join(name).exists() {
            // Without its name it is only not found.
            let _ = fs::rename(folder.join(&part), folder.join(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        // date -u -d 2026-11-29T23:05:07Z +%s
        let at_ns = 1_795_993_507_000_000_000;
        for (device, name) in [
            ("sda", "plumb-20261129T230507Z-p99-sda.parquet"),
            ("nvme0n1", "plumb-20261129T230507Z-p99-nvme0n1.parquet"),
            (
                "cciss/c0d0",
                "plumb-20261129T230507Z-p99-cciss!c0d0.parquet",
            ),
            ("dm-3", "plumb-20261129T230507Z-p99-dm-3.parquet"),
            ("a b\n", "plumb-20261129T230507Z-p99-a_b_.parquet"),
        ] {
            let made = RecordingName::new(at_ns + 999, Measure::P99, device).expect("a name");
            assert_eq!(made.file_name(), name);
            let read = RecordingName::from_file_name(name).expect("a name");
            assert_eq!((read.at_ns, read.measure), (at_ns, Measure::P99));
            assert!(read.is_of(device) && !read.is_of("sdb"));
        }
        let made = RecordingName::new(at_ns, Measure::Misfit, "sda").expect("a name");
        let name = made.file_name();
        assert_eq!(name, "plumb-20261129T230507Z-misfit-sda.parquet");
        assert_eq!(RecordingName::new(-1, Measure::P99, "sda"), None);
        assert_eq!(RecordingName::new(at_ns, Measure::P99, ""), None);
    }

    #[test]
    fn other_names_are_refused() {
        for name in [
            "",
            "plumb-.parquet",
            "trace.parquet",
            "plumb-20261129T230507Z-p99-sda.parquet.part",
            "plumb-20261129T230507Z-p99-.parquet",
            "plumb-20261129T230507Z-p98-sda.parquet",
            "plumb-20261129T230507Z-p99-a/b.parquet",
            "plumb-20261129T230507Z-p99-../../x.parquet",
            "plumb-20261329T230507Z-p99-sda.parquet",
            "plumb-2026-1129230507Z-p99-sda.parquet",
            "plumb-20261129T2305é7Z-p99-sda.parquet",
            "../plumb-20261129T230507Z-p99-sda.parquet",
            "plumb-20261129T230507Z-p99-sda\n.parquet",
        ] {
            assert_eq!(RecordingName::from_file_name(name), None, "{name}");
        }
    }

    /// The oldest go first, and files of others stay.
    #[test]
    fn room_is_made_by_age() {
        let dir = plumb_testkit::temp_dir("recordings");
        let folder = dir.path();
        let write = |name: &str, bytes: usize| {
            fs::write(folder.join(name), vec![1; bytes]).expect("room");
        };
        let (old, middle, new) = (
            "plumb-20250101T000000Z-misfit-sdz.parquet",
            "plumb-20260101T000000Z-p99-sda.parquet",
            "plumb-20260102T000000Z-misfit-sda.parquet",
        );
        for name in [old, middle, new] {
            write(name, 1000);
        }
        let foreign = [
            "a.parquet",
            "plumb-20240101T000000Z-p99-sda.parquet.gz",
            "plumb-x.parquet",
        ];
        foreign.iter().for_each(|name| write(name, 5000));
        let directory = "plumb-20240101T000000Z-p99-sda.parquet";
        fs::create_dir(folder.join(directory)).expect("room");
        let there = |name: &str| folder.join(name).exists();
        make_room(folder, 3000).expect("no error");
        assert_eq!([old, middle, new].map(there), [true; 3]);
        make_room(folder, 2999).expect("no error");
        assert_eq!([old, middle, new].map(there), [false, true, true]);
        make_room(folder, 1).expect("no error");
        assert_eq!([old, middle, new].map(there), [false; 3]);
        assert_eq!(foreign.map(there), [true; 3]);
        assert!(there(directory));
    }

    #[test]
    fn unfinished_recordings_are_kept() {
        let dir = plumb_testkit::temp_dir("unfinished");
        let folder = dir.path();
        let name = "plumb-20260101T000000Z-p99-sda.parquet";
        let part = part_of(&folder.join(name));
        fs::write(&part, "its rows").expect("room");
        fs::write(folder.join("mine.part"), "").expect("room");
        keep_unfinished(folder);
        let read = fs::read_to_string(folder.join(name)).expect("the recording");
        assert_eq!(read, "its rows");
        assert!(!part.exists() && folder.join("mine.part").exists());
        // A name that is taken stays as it is.
        fs::write(&part, "other rows").expect("room");
        keep_unfinished(folder);
        let read = fs::read_to_string(folder.join(name)).expect("the recording");
        assert_eq!(read, "its rows");
    }
}
