//! Notices that disks and partitions come, go or change their place, and requests a survey of the layout then.
//!
//! The agent may open no disk: it compares the kernel's list of disks and partitions at each reading. The request is a file in the folder that
//! systemd made for the agent; `plumb-survey.path` starts the survey when it is written. Of loop devices only partitions count: programs make and
//! remove the devices all day.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file of a request.
const REQUEST: &str = "survey-request";

/// Time between two requests: a program that makes and removes partitions must not keep the disks busy.
const EVERY: Duration = Duration::from_secs(600);

/// Changes that a line of the log names.
const NAMED_MAX: usize = 3;

/// Start and length in sectors, by the name of a disk or partition.
type Layout = BTreeMap<String, (u64, u64)>;

/// See the module.
pub struct LayoutWatch {
    /// The folder for requests; `None` without systemd.
    folder: Option<PathBuf>,
    /// The layout at the start, or at the last request.
    known: Layout,
    /// The layout at the last reading.
    seen: Layout,
    asked: Option<Instant>,
}

impl LayoutWatch {
    /// Begins with the present layout.
    pub fn new(folder: Option<PathBuf>, disks: &Path) -> LayoutWatch {
        let known = layout_of(disks);
        LayoutWatch {
            folder,
            seen: known.clone(),
            known,
            asked: None,
        }
    }

    /// Looks at the layout. If it is another one than before, and the same as at the reading before, requests a survey and returns a line
    /// for the log.
    pub fn look(&mut self, disks: &Path, now: Instant) -> Option<String> {
        let present = layout_of(disks);
        // A program that partitions a disk is not done yet.
        let is_settled = present == self.seen;
        self.seen = present;
        let is_early = |asked: Instant| now.saturating_duration_since(asked) < EVERY;
        if !is_settled || self.seen == self.known || self.asked.is_some_and(is_early) {
            return None;
        }
        let changes = difference(&self.known, &self.seen);
        self.known.clone_from(&self.seen);
        self.asked = Some(now);
        let follows = match &self.folder {
            None => "the next survey shows it".to_owned(),
            Some(folder) => match fs::write(folder.join(REQUEST), format!("{changes}\n")) {
                Ok(()) => "a survey is requested".to_owned(),
                Err(error) => format!("a survey cannot be requested: {error}"),
            },
        };
        Some(format!("the layout has changed ({changes}): {follows}"))
    }
}

/// The folder that systemd made for the files of a running service.
pub fn request_folder() -> Option<PathBuf> {
    let folders = std::env::var_os("RUNTIME_DIRECTORY")?;
    std::env::split_paths(&folders).next()
}

/// The disks with a size, and their partitions.
fn layout_of(disks: &Path) -> Layout {
    let mut layout = Layout::new();
    for entry in fs::read_dir(disks).into_iter().flatten().flatten() {
        let disk = entry.path();
        let Some(size) = number(&disk, "size").filter(|sectors| *sectors > 0) else {
            continue;
        };
        let parts = fs::read_dir(&disk).into_iter().flatten().flatten();
        let parts = parts.filter(|part| part.path().join("partition").exists());
        let parts = parts.filter_map(|part| {
            let path = part.path();
            let place = (number(&path, "start")?, number(&path, "size")?);
            Some((name_of(&path), place))
        });
        layout.extend(parts);
        let name = name_of(&disk);
        if !name.starts_with("loop") {
            layout.insert(name, (0, size));
        }
    }
    layout
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().replace('!', "/")
}

fn number(folder: &Path, file: &str) -> Option<u64> {
    let text = fs::read_to_string(folder.join(file)).ok()?;
    text.trim().parse().ok()
}

/// The first changes in words, and the number of the others.
fn difference(before: &Layout, now: &Layout) -> String {
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    let gone = gone.map(|name| format!("{name} is gone"));
    let others = now.iter().filter_map(|(name, place)| {
        let change = match before.get(name) {
            None => "appeared",
            Some(known) if known == place => return None,
            Some((start, _)) if *start != place.0 => "has another start",
            Some(_) => "has another size",
        };
        Some(format!("{name} {change}"))
    });
    let mut words: Vec<String> = gone.chain(others).collect();
    let further = words.len().saturating_sub(NAMED_MAX);
    words.truncate(NAMED_MAX);
    if further > 0 {
        words.push(format!("{further} more"));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder as `/sys/block`.
    struct Disks(plumb_testkit::tempdir::TempDir);

    impl Disks {
        fn path(&self) -> &Path {
            self.0.path()
        }

        fn disk(&self, name: &str, sectors: u64) {
            let folder = self.path().join(name);
            fs::create_dir_all(&folder).expect("room");
            fs::write(folder.join("size"), format!("{sectors}\n")).expect("room");
        }

        fn part(&self, disk: &str, name: &str, start: u64, sectors: u64) {
            let folder = self.path().join(disk).join(name);
            fs::create_dir_all(&folder).expect("room");
            for (file, number) in [("partition", 1), ("start", start), ("size", sectors)] {
                fs::write(folder.join(file), format!("{number}\n")).expect("room");
            }
        }

        fn remove(&self, name: &str) {
            fs::remove_dir_all(self.path().join(name)).expect("a disk");
        }
    }

    #[test]
    fn changes_of_disks_and_partitions_are_named() {
        let disks = Disks(plumb_testkit::temp_dir("layout-disks"));
        disks.disk("sda", 1000);
        disks.disk("sdb", 1000);
        disks.part("sdb", "sdb1", 63, 100);
        disks.disk("loop0", 1000);
        disks.disk("nbd0", 0);
        fs::create_dir(disks.path().join("sda/queue")).expect("room");
        let folder = plumb_testkit::temp_dir("layout-request");
        let request = folder.path().join(REQUEST);
        let mut watch = LayoutWatch::new(Some(folder.path().to_owned()), disks.path());
        let mut now = Instant::now();
        // Twice, long after the last request.
        let mut look = || {
            now += EVERY;
            assert_eq!(watch.look(disks.path(), now), None, "not settled");
            watch.look(disks.path(), now)
        };
        assert_eq!(look(), None);
        disks.part("sdb", "sdb1", 64, 100);
        let mut lines = vec![look().expect("a line")];
        lines.push(fs::read_to_string(&request).expect("a request"));
        assert_eq!(look(), None);
        disks.part("sdb", "sdb1", 64, 200);
        lines.push(look().expect("a line"));
        disks.disk("sda", 2000);
        lines.push(look().expect("a line"));
        disks.remove("sda");
        disks.disk("cciss!c0d0", 500);
        lines.push(look().expect("a line"));
        // Of a loop device the partitions count.
        disks.disk("loop1", 1000);
        disks.disk("loop0", 2000);
        assert_eq!(look(), None);
        disks.part("loop1", "loop1p1", 8, 100);
        lines.push(look().expect("a line"));
        for disk in ["sdb", "loop1", "cciss!c0d0"] {
            disks.remove(disk);
        }
        lines.push(look().expect("a line"));
        insta::assert_snapshot!(lines.join("\n\n"));
    }

    #[test]
    fn requests_have_ten_minutes_between_them() {
        let disks = Disks(plumb_testkit::temp_dir("layout-often"));
        let mut watch = LayoutWatch::new(None, disks.path());
        let begin = Instant::now();
        let minute = Duration::from_secs(60);
        disks.disk("sda", 1000);
        assert_eq!(watch.look(disks.path(), begin), None);
        let line = watch.look(disks.path(), begin);
        let words = "the layout has changed (sda appeared): the next survey shows it";
        assert_eq!(line.as_deref(), Some(words));
        // A disk that comes and goes changes nothing.
        disks.disk("sdb", 1000);
        for minutes in 1..5 {
            assert_eq!(watch.look(disks.path(), begin + minutes * minute), None);
        }
        disks.remove("sdb");
        for minutes in 5..20 {
            assert_eq!(watch.look(disks.path(), begin + minutes * minute), None);
        }
        // A change within the ten minutes is not lost.
        disks.disk("sdc", 1000);
        assert_eq!(watch.look(disks.path(), begin + 20 * minute), None);
        assert!(watch.look(disks.path(), begin + 21 * minute).is_some());
        disks.disk("sdd", 1000);
        for minutes in 22..31 {
            assert_eq!(watch.look(disks.path(), begin + minutes * minute), None);
        }
        let line = watch.look(disks.path(), begin + 31 * minute);
        assert!(line.is_some_and(|line| line.contains("sdd appeared")));
    }

    #[test]
    fn a_request_that_fails_is_reported() {
        let disks = Disks(plumb_testkit::temp_dir("layout-failed"));
        let folder = disks.path().join("absent/folder");
        let mut watch = LayoutWatch::new(Some(folder), disks.path());
        disks.disk("sda", 1000);
        assert_eq!(watch.look(disks.path(), Instant::now()), None);
        let line = watch.look(disks.path(), Instant::now()).expect("a line");
        let place = disks.path().to_str().expect("text");
        insta::assert_snapshot!(line.replace(place, "FOLDER"));
    }
}
