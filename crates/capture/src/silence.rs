//! Times in which a device has I/O in flight and completes none, by the kernel's own counters. They also count I/O that were
//! issued before anybody watched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;

use plumb_profile::answers::Answers;
use plumb_trace::Layer;

use crate::block::Layers;
use crate::clock::now_ns;
use crate::devices::{disk_of_number, name_of, packed};

/// The kernel's counters of all disks and partitions.
const DISKSTATS: &str = "/proc/diskstats";
/// Time between two looks.
const EACH_NS: u64 = 100_000_000;
/// A look is repeated no sooner than this many times the time that it took.
const REST: u64 = 20;
/// No line of a disk is longer.
const LINE_BYTES: usize = 512;
/// Devices that went away and whose silence is kept.
const GONE_MAX: usize = 1024;

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
    pub(crate) longest_ns: u64,
    pub(crate) present_ns: u64,
    /// Time of the last look that found nothing in flight, as the one before it: the sum over the processors is wrong for moments. An I/O
    /// that was issued earlier is no longer in flight, and the kernel may have skipped the program of its completion.
    pub(crate) idle_at_ns: u64,
}

impl Silence {
    /// Adds it to the answers of the device.
    pub(crate) fn add_to(self, answers: &mut Answers) {
        answers.in_flight = self.in_flight;
        answers.longest_silence_ns = self.longest_ns;
        answers.present_silence_ns = self.present_ns;
    }
}

/// A device as it was called when it was first in use: later the number may be that of another one, or of none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    pub(crate) dev: u32,
    pub(crate) name: String,
    pub(crate) layer: Layer,
    is_disk: bool,
}

impl Named {
    pub(crate) fn new(dev: u32, layer: Layer) -> Named {
        Named {
            dev,
            name: name_of(dev).name,
            layer,
            is_disk: disk_of_number(dev) == dev,
        }
    }
}

#[derive(Default)]
struct Watched {
    seen: Counted,
    /// When a look first found these counts with I/O in flight.
    since_ns: Option<u64>,
    /// Whether the last look did not find it. The kernel shows its list in parts, and may pass over a device where another one goes.
    is_missing: bool,
    /// Absent until I/O were in flight at any look.
    named: Option<Named>,
    silence: Silence,
}

/// Looks at the counters again and again.
pub(crate) struct Silences {
    layers: Layers,
    /// None where the kernel shows no counters.
    file: Option<File>,
    text: Vec<u8>,
    devices: BTreeMap<u32, Watched>,
    /// Devices that went away since the last reading.
    gone: BTreeMap<Named, Silence>,
    look_at_ns: u64,
}

impl Silences {
    pub(crate) fn new(layers: Layers) -> Silences {
        let mut silences = Silences::with_file(File::open(DISKSTATS).ok(), layers);
        silences.look(now_ns());
        silences
    }

    fn with_file(file: Option<File>, layers: Layers) -> Silences {
        Silences {
            layers,
            file,
            text: vec![0; 64 * LINE_BYTES],
            devices: BTreeMap::new(),
            gone: BTreeMap::new(),
            look_at_ns: 0,
        }
    }

    /// Looks if it is time.
    pub(crate) fn keep_up(&mut self) {
        let now_ns = now_ns();
        if now_ns >= self.look_at_ns {
            self.look(now_ns);
        }
    }

    /// The silence of each of these devices that had I/O in flight at any look, the longest one since the last reading; without a list,
    /// of each disk. A device that went away is in one more reading, without I/O in flight.
    pub(crate) fn read(&mut self, devices: &[u32]) -> Vec<(Named, Silence)> {
        self.look(now_ns());
        let mut silences = self.take();
        silences.retain(|(named, _)| match devices.is_empty() {
            true => named.is_disk,
            false => devices.contains(&named.dev),
        });
        silences
    }

    fn take(&mut self) -> Vec<(Named, Silence)> {
        let mut silences: Vec<_> = std::mem::take(&mut self.gone).into_iter().collect();
        for watched in self.devices.values_mut() {
            if let Some(named) = watched.named.clone() {
                silences.push((named, watched.take_silence()));
            }
        }
        silences
    }

    fn look(&mut self, now_ns: u64) {
        if let Some(len) = self
            .file
            .as_ref()
            .and_then(|file| whole(file, &mut self.text))
        {
            let text = std::str::from_utf8(&self.text[..len]).unwrap_or_default();
            let counted: Vec<(u32, Counted)> = text.lines().filter_map(parse).collect();
            self.see(&counted, now_ns);
        }
        let took_ns = crate::clock::now_ns().saturating_sub(now_ns);
        self.look_at_ns = now_ns + EACH_NS.max(REST * took_ns);
    }

    fn see(&mut self, counted: &[(u32, Counted)], now_ns: u64) {
        let present: BTreeSet<u32> = counted.iter().map(|(dev, _)| *dev).collect();
        let mut gone = Vec::new();
        for (dev, watched) in &mut self.devices {
            let was_missing = std::mem::replace(&mut watched.is_missing, !present.contains(dev));
            if watched.is_missing && was_missing {
                gone.push(*dev);
            }
        }
        for dev in gone {
            let named = self.devices.remove(&dev).and_then(Watched::leave);
            let Some((named, silence)) = named else {
                continue;
            };
            if self.gone.len() < GONE_MAX || self.gone.contains_key(&named) {
                let longest_ns = &mut self.gone.entry(named).or_default().longest_ns;
                *longest_ns = silence.longest_ns.max(*longest_ns);
            }
        }
        for (dev, counted) in counted {
            let watched = self.devices.entry(*dev).or_default();
            watched.see(*counted, now_ns);
            if counted.in_flight > 0 && watched.named.is_none() {
                watched.named = Some(Named::new(*dev, self.layers.layer_of(*dev)));
            }
        }
    }
}

impl Watched {
    fn see(&mut self, counted: Counted, now_ns: u64) {
        let goes_on = self.seen.completed == counted.completed
            && self.seen.in_flight > 0
            && counted.in_flight > 0;
        self.since_ns = match self.since_ns {
            Some(since_ns) if goes_on => Some(since_ns),
            _ => (counted.in_flight > 0).then_some(now_ns),
        };
        let present_ns = self.since_ns.map_or(0, |since_ns| now_ns - since_ns);
        if counted.in_flight == 0 && self.seen.in_flight == 0 {
            self.silence.idle_at_ns = now_ns;
        }
        self.silence.in_flight = counted.in_flight;
        self.silence.present_ns = present_ns;
        self.silence.longest_ns = self.silence.longest_ns.max(present_ns);
        self.seen = counted;
    }

    /// The silence until now; a present one goes on.
    fn take_silence(&mut self) -> Silence {
        let silence = self.silence;
        self.silence.longest_ns = silence.present_ns;
        silence
    }

    /// The silence of a device that goes away, if it was in use.
    fn leave(self) -> Option<(Named, Silence)> {
        let silence = Silence {
            longest_ns: self.silence.longest_ns,
            ..Silence::default()
        };
        Some((self.named?, silence))
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
        const MS: u64 = 1_000_000;
        let mut watched = Watched::default();
        // Time in ms, completed, in flight, then the silence that is expected in ms: up to now, and the longest.
        for (ms, completed, in_flight, present, longest) in [
            (0, 5, 0, 0, 0),
            (100, 5, 2, 0, 0),
            (200, 5, 3, 100, 100),
            (900, 5, 3, 800, 800),
            (1000, 6, 3, 0, 800),
            (1100, 6, 3, 100, 800),
            (1150, 6, 0, 0, 800),
            (1200, 6, 0, 0, 800),
            (1300, 6, 1, 0, 800),
        ] {
            let counted = Counted {
                completed,
                in_flight,
            };
            watched.see(counted, ms * MS);
            let found = (watched.silence.present_ns, watched.silence.longest_ns);
            assert_eq!(found, (present * MS, longest * MS), "at {ms} ms");
        }
        // A reading takes the longest silence with it. One that lasts is in the next reading, too.
        let longest = |watched: &mut Watched| watched.take_silence().longest_ns / MS;
        assert_eq!([longest(&mut watched), longest(&mut watched)], [800, 0]);
        let silent = Counted {
            completed: 6,
            in_flight: 1,
        };
        watched.see(silent, 1700 * MS);
        assert_eq!([longest(&mut watched), longest(&mut watched)], [400, 400]);
        // One look with nothing in flight may be wrong.
        assert_eq!(watched.silence.idle_at_ns, 1200 * MS);
    }

    /// Numbers that sysfs does not know are the names of the devices.
    #[test]
    fn a_device_that_is_gone_is_in_one_reading() {
        let mut silences = Silences::with_file(None, Layers::default());
        let busy = Counted {
            completed: 1,
            in_flight: 5,
        };
        let taken = |silences: &mut Silences| {
            let taken = silences.take();
            let of = |(named, silence): &(Named, Silence)| {
                (named.dev, silence.in_flight, silence.longest_ns / EACH_NS)
            };
            taken.iter().map(of).collect::<Vec<_>>()
        };
        silences.see(&[(1, busy), (2, busy)], 0);
        assert_eq!(taken(&mut silences), [(1, 5, 0), (2, 5, 0)]);
        silences.see(&[(1, busy), (2, busy)], 9 * EACH_NS);
        silences.see(&[(1, busy)], 10 * EACH_NS);
        silences.see(&[(1, busy)], 11 * EACH_NS);
        assert_eq!(taken(&mut silences), [(2, 0, 9), (1, 5, 11)]);
        silences.see(&[(1, busy)], 12 * EACH_NS);
        assert_eq!(taken(&mut silences), [(1, 5, 12)]);
        // It is there again, as another one, and goes before the reading.
        silences.see(&[(1, busy), (2, busy)], 13 * EACH_NS);
        silences.see(&[(1, busy), (2, busy)], 17 * EACH_NS);
        for at in [18, 19] {
            silences.see(&[(1, busy)], at * EACH_NS);
        }
        silences.see(&[(1, busy), (2, busy)], 20 * EACH_NS);
        assert_eq!(taken(&mut silences), [(2, 0, 4), (1, 5, 20), (2, 5, 0)]);
        // A device that one look misses is not gone.
        silences.see(&[(1, busy)], 21 * EACH_NS);
        silences.see(&[(1, busy), (2, busy)], 22 * EACH_NS);
        assert_eq!(taken(&mut silences), [(1, 5, 22), (2, 5, 2)]);
    }
}
