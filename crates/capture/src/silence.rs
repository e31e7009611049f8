//! Times in which a device has I/O in flight and completes none, by the kernel's own counters. They also count I/O that were
//! issued before anybody watched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use plumb_profile::answers::{Answers, SingleIo};

use crate::devices::{disk_of_number, packed};

/// The kernel's counters of all disks and partitions.
const DISKSTATS: &str = "/proc/diskstats";
/// Time between two looks.
const EACH: Duration = Duration::from_millis(100);
/// No line of a disk is longer.
const LINE_BYTES: usize = 512;

/// Counters of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    /// Reads, writes, discards and flushes that completed.
    completed: u64,
    in_flight: u64,
}

/// How long a device has been silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Silence {
    pub(crate) in_flight: u64,
    pub(crate) longest: Duration,
    pub(crate) present: Duration,
}

impl Silence {
    /// Adds it to the answers of the device.
    pub(crate) fn add_to(self, answers: &mut Answers, oldest: Option<SingleIo>) {
        *answers = Answers {
            in_flight: self.in_flight,
            longest_silence_ns: self.longest.as_nanos() as u64,
            present_silence_ns: self.present.as_nanos() as u64,
            oldest,
            ..std::mem::take(answers)
        };
    }
}

#[derive(Default)]
struct Watched {
    seen: Counted,
    /// When a look first found these counts with I/O in flight.
    since: Option<Instant>,
    /// Whether I/O were in flight at any look.
    was_in_use: bool,
    silence: Silence,
}

/// Looks at the counters again and again.
pub(crate) struct Silences {
    /// None where the kernel shows no counters.
    file: Option<File>,
    text: Vec<u8>,
    devices: BTreeMap<u32, Watched>,
    /// Those of the last look.
    present: BTreeSet<u32>,
    looked: Option<Instant>,
}

impl Silences {
    pub(crate) fn new() -> Silences {
        let mut silences = Silences {
            file: File::open(DISKSTATS).ok(),
            text: vec![0; 64 * LINE_BYTES],
            devices: BTreeMap::new(),
            present: BTreeSet::new(),
            looked: None,
        };
        silences.look(Instant::now());
        silences
    }

    /// Looks if it is time.
    pub(crate) fn keep_up(&mut self) {
        let now = Instant::now();
        if self.looked.is_none_or(|looked| now - looked >= EACH) {
            self.look(now);
        }
    }

    /// The silence of each of these devices that had I/O in flight at any look, the longest one since the last reading; without a list,
    /// of each disk. A device that went away is in one more reading.
    pub(crate) fn read(&mut self, devices: &[u32]) -> Vec<(u32, Silence)> {
        self.look(Instant::now());
        let mut silences = self.take();
        silences.retain(|(dev, _)| match devices.is_empty() {
            true => disk_of_number(*dev) == *dev,
            false => devices.contains(dev),
        });
        silences
    }

    fn take(&mut self) -> Vec<(u32, Silence)> {
        let devices = self.devices.iter_mut();
        let was_in_use = devices.filter(|(_, watched)| watched.was_in_use);
        let silences = was_in_use.map(|(dev, watched)| (*dev, watched.take_silence()));
        let silences = silences.collect();
        self.devices.retain(|dev, _| self.present.contains(dev));
        silences
    }

    fn look(&mut self, now: Instant) {
        self.looked = Some(now);
        let Some(len) = self
            .file
            .as_ref()
            .and_then(|file| whole(file, &mut self.text))
        else {
            return;
        };
        let text = std::str::from_utf8(&self.text[..len]).unwrap_or_default();
        let counted: Vec<(u32, Counted)> = text.lines().filter_map(parse).collect();
        self.see(&counted, now);
    }

    fn see(&mut self, counted: &[(u32, Counted)], now: Instant) {
        self.present = counted.iter().map(|(dev, _)| *dev).collect();
        for (dev, counted) in counted {
            self.devices.entry(*dev).or_default().see(*counted, now);
        }
    }
}

impl Watched {
    fn see(&mut self, counted: Counted, now: Instant) {
        let goes_on = self.seen.completed == counted.completed
            && self.seen.in_flight > 0
            && counted.in_flight > 0;
        self.since = match self.since {
            Some(since) if goes_on => Some(since),
            _ => (counted.in_flight > 0).then_some(now),
        };
        let present = self.since.map_or(Duration::ZERO, |since| now - since);
        self.was_in_use |= counted.in_flight > 0;
        self.silence.in_flight = counted.in_flight;
        self.silence.present = present;
        self.silence.longest = self.silence.longest.max(present);
        self.seen = counted;
    }
}

impl Watched {
    /// The silence until now; a present one goes on.
    fn take_silence(&mut self) -> Silence {
        let silence = self.silence;
        self.silence.longest = silence.present;
        silence
    }
}

/// Reads the file from its beginning; how long it is.
fn whole(file: &File, text: &mut Vec<u8>) -> Option<usize> {
    let mut len = 0;
    loop {
        match file.read_at(&mut text[len..], len as u64).ok()? {
            0 => return Some(len),
            more => len += more,
        }
        if len == text.len() {
            text.resize(2 * len, 0);
        }
    }
}

/// `MAJOR MINOR NAME` and the counters of `Documentation/admin-guide/iostats.rst`: reads are the 1st, writes the 5th, in flight
/// the 9th, discards the 12th, flushes the 16th. Older kernels end with the 11th.
fn parse(line: &str) -> Option<(u32, Counted)> {
    let mut words = line.split_ascii_whitespace();
    let major: u32 = words.next()?.parse().ok()?;
    let minor: u32 = words.next()?.parse().ok()?;
    let counters: Vec<u64> = words
        .skip(1)
        .map(|word| word.parse().unwrap_or(0))
        .collect();
    let counter = |number: usize| counters.get(number - 1).copied();
    let completed = [1, 5, 12, 16].into_iter().filter_map(counter);
    Some((
        packed(major, minor),
        Counted {
            completed: completed.fold(0, u64::wrapping_add),
            in_flight: counter(9)?,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_old_and_new_kernels() {
        let counted = |completed, in_flight| Counted {
            completed,
            in_flight,
        };
        let new = "   8       1 sda1 10 0 80 5 20 0 160 7 3 12 12 4 0 32 1 6 2";
        assert_eq!(parse(new), Some((8 << 20 | 1, counted(40, 3))));
        let old = " 253 0 dm-0 10 0 80 5 20 0 160 7 0 12 12";
        assert_eq!(parse(old), Some((253 << 20, counted(30, 0))));
        assert_eq!(parse("8 1 sda1 10 0"), None);
    }

    #[test]
    fn silence_lasts_while_nothing_completes() {
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let mut watched = Watched::default();
        // Time in ms, completed, in flight, then the silence that is expected in ms: up to now, and the longest.
        for (ms, completed, in_flight, present, longest) in [
            (0, 5, 0, 0, 0),
            (100, 5, 2, 0, 0),
            (200, 5, 3, 100, 100),
            (900, 5, 3, 800, 800),
            (1000, 6, 3, 0, 800),
            (1100, 6, 3, 100, 800),
            (1200, 6, 0, 0, 800),
            (1300, 6, 1, 0, 800),
        ] {
            let counted = Counted {
                completed,
                in_flight,
            };
            watched.see(counted, at(ms));
            let found = (watched.silence.present, watched.silence.longest);
            let expected = (
                Duration::from_millis(present),
                Duration::from_millis(longest),
            );
            assert_eq!(found, expected, "at {ms} ms");
        }
        // A reading takes the longest silence with it. One that lasts is in the next reading, too.
        let longest = |watched: &mut Watched| watched.take_silence().longest.as_millis();
        assert_eq!([longest(&mut watched), longest(&mut watched)], [800, 0]);
        let silent = Counted {
            completed: 6,
            in_flight: 1,
        };
        watched.see(silent, at(1700));
        assert_eq!([longest(&mut watched), longest(&mut watched)], [400, 400]);
    }

    #[test]
    fn a_device_that_is_gone_is_forgotten_after_one_reading() {
        let mut silences = Silences {
            file: None,
            text: Vec::new(),
            devices: BTreeMap::new(),
            present: BTreeSet::new(),
            looked: None,
        };
        let busy = Counted {
            completed: 1,
            in_flight: 5,
        };
        let began = Instant::now();
        silences.see(&[(1, busy), (2, busy)], began);
        let devices = |silences: &mut Silences| {
            let taken = silences.take();
            taken.iter().map(|(dev, _)| *dev).collect::<Vec<_>>()
        };
        assert_eq!(devices(&mut silences), [1, 2]);
        silences.see(&[(1, busy)], began + EACH);
        assert_eq!(devices(&mut silences), [1, 2]);
        silences.see(&[(1, busy)], began + 2 * EACH);
        assert_eq!(devices(&mut silences), [1]);
        // It is there again, as another one.
        silences.see(&[(1, busy), (2, busy)], began + 3 * EACH);
        assert_eq!(devices(&mut silences), [1, 2]);
    }
}
