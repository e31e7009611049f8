//! The inputs that are pieces of one recording: only then devices of equal names in several inputs are one device.
//!
//! A name is all that a trace tells of a device, and hosts give the same ones. Two inputs are pieces of one recording if
//! their clocks have one zero, their times do not overlap, the pause between them is no longer than the longer of them
//! ([`PAUSE_NS_MIN`] in any case), and they know of no different size. Nothing else counts, unless the user says that they
//! belong together.

use std::collections::BTreeMap;

use plumb_profile::Profile;
use plumb_profile::profile::{ProfileSet, TimeBase};
use plumb_trace::{Layer, SourceInfo};

/// Times of day of one boot, taken twice, differ by the changes of the clock in between: not by more than this as a
/// rule.
const SAME_BOOT_NS: u64 = 2_000_000_000;

/// A pause up to this one never separates two pieces: a recording may begin again with the next file.
const PAUSE_NS_MIN: u64 = 60_000_000_000;

/// Zero of a clock, as far as two inputs may have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockZero {
    /// 1970-01-01 UTC.
    Unix,
    /// A boot, at that Unix time in ns.
    Boot(i64),
}

impl ClockZero {
    /// The zero of a trace's times; `None` where no other input can be known to have it.
    #[must_use]
    pub fn of_trace(info: &SourceInfo) -> Option<ClockZero> {
        match info.clock {
            plumb_trace::Clock::Unix => Some(ClockZero::Unix),
            plumb_trace::Clock::Boot => info.unix_ns_at_zero.map(ClockZero::Boot),
            plumb_trace::Clock::Start | plumb_trace::Clock::Unknown => None,
        }
    }

    /// The zero of a saved profile's times. It does not keep when its host was booted.
    fn of_saved(profile: &Profile) -> Option<ClockZero> {
        (profile.time_base == TimeBase::Unix).then_some(ClockZero::Unix)
    }

    fn is_same(self, other: ClockZero) -> bool {
        match (self, other) {
            (ClockZero::Unix, ClockZero::Unix) => true,
            (ClockZero::Boot(mine), ClockZero::Boot(theirs)) => {
                mine.abs_diff(theirs) <= SAME_BOOT_NS
            }
            _ => false,
        }
    }
}

/// Why an input is no further piece of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// The clock of one of them is not known, or has a zero of its own.
    Clocks,
    /// They were recorded at the same time.
    Overlap,
    /// The pause between them is longer than either of them.
    Pause,
    /// The devices have different sizes.
    Sizes,
}

impl Apart {
    const fn words(self) -> &'static str {
        match self {
            Apart::Clocks => "their clocks cannot be compared",
            Apart::Overlap => "their times overlap",
            Apart::Pause => "the pause between them is longer than either of them",
            Apart::Sizes => "the devices differ in size",
        }
    }
}

/// Inputs that were taken together as pieces of one recording of a device.
#[derive(Clone, Debug)]
struct DeviceRecording {
    /// The name of its device among those of the other recordings.
    name: String,
    inputs: Vec<String>,
    zero: Option<ClockZero>,
    spans_ns: Vec<(i64, i64)>,
    size_bytes: Option<u64>,
    /// The reason why it is no piece with the first.
    apart: Option<Apart>,
}

impl DeviceRecording {
    fn new(
        input: &str,
        name: String,
        profile: &Profile,
        zero: Option<ClockZero>,
    ) -> DeviceRecording {
        let mut recording = DeviceRecording {
            name,
            inputs: Vec::new(),
            zero,
            spans_ns: Vec::new(),
            size_bytes: None,
            apart: None,
        };
        recording.add(input, profile);
        recording
    }

    fn add(&mut self, input: &str, profile: &Profile) {
        self.inputs.push(input.to_owned());
        self.spans_ns.extend(profile.first_ns.zip(profile.last_ns));
        self.size_bytes = self.size_bytes.or(profile.size_bytes);
    }

    /// Why a profile is no piece of it; `None` if it is one.
    fn why_apart(&self, profile: &Profile, zero: Option<ClockZero>) -> Option<Apart> {
        let is_same_clock = self
            .zero
            .zip(zero)
            .is_some_and(|(mine, theirs)| mine.is_same(theirs));
        let Some((first_ns, last_ns)) = profile
            .first_ns
            .zip(profile.last_ns)
            .filter(|_| is_same_clock)
        else {
            return Some(Apart::Clocks);
        };
        let differs = |(mine, theirs): (u64, u64)| mine != theirs;
        if self.size_bytes.zip(profile.size_bytes).is_some_and(differs) {
            return Some(Apart::Sizes);
        }
        let overlaps = |&(from_ns, to_ns): &(i64, i64)| first_ns < to_ns && from_ns < last_ns;
        if self.spans_ns.iter().any(overlaps) {
            return Some(Apart::Overlap);
        }
        let is_near = |&(from_ns, to_ns): &(i64, i64)| {
            let pause_ns = match first_ns >= to_ns {
                true => first_ns.abs_diff(to_ns),
                false => from_ns.abs_diff(last_ns),
            };
            let longer_ns = to_ns.abs_diff(from_ns).max(last_ns.abs_diff(first_ns));
            pause_ns <= longer_ns.max(PAUSE_NS_MIN)
        };
        (!self.spans_ns.iter().any(is_near)).then_some(Apart::Pause)
    }
}

/// The recordings of each device and layer.
#[derive(Default)]
pub struct Recordings {
    by_device: BTreeMap<(String, Layer), Vec<DeviceRecording>>,
    /// Whether all inputs belong together, since the user says so.
    pub are_all_one: bool,
    /// The name of the device before, by the one that it was given.
    names: BTreeMap<String, String>,
}

impl Recordings {
    /// Gives the devices of an input the names under which they count: those of other recordings have names of their own.
    pub fn name(
        &mut self,
        input: &str,
        profiles: ProfileSet,
        zero: Option<ClockZero>,
    ) -> ProfileSet {
        let mut name_of = |profile: &Profile| {
            let zero = zero.or_else(|| ClockZero::of_saved(profile));
            self.name_of(input, profile, zero)
        };
        let names: Vec<Option<String>> = profiles.iter().map(&mut name_of).collect();
        // A profile may be large, and most inputs keep their names.
        if names.iter().all(Option::is_none) {
            return profiles;
        }
        let mut named = ProfileSet::default();
        for (profile, name) in profiles.iter().zip(names) {
            match name {
                Some(device) => named.add(&Profile {
                    device,
                    ..profile.clone()
                }),
                None => named.add(profile),
            }
        }
        named
    }

    /// The name under which a profile counts, where it is not its own.
    fn name_of(
        &mut self,
        input: &str,
        profile: &Profile,
        zero: Option<ClockZero>,
    ) -> Option<String> {
        if profile.ios() == 0 && profile.imported.is_empty() {
            return None;
        }
        let key = (profile.device.clone(), profile.layer);
        let recordings = self.by_device.entry(key).or_default();
        let mut why = None;
        for recording in recordings.iter_mut() {
            let apart = recording
                .why_apart(profile, zero)
                .filter(|_| !self.are_all_one);
            if apart.is_none() {
                recording.add(input, profile);
                return Some(recording.name.clone()).filter(|name| *name != profile.device);
            }
            why = why.or(apart);
        }
        let is_first = recordings.is_empty();
        let name = if is_first {
            profile.device.clone()
        } else {
            let name = name_in(&profile.device, input);
            self.names.insert(name.clone(), profile.device.clone());
            name
        };
        let mut recording = DeviceRecording::new(input, name.clone(), profile, zero);
        recording.apart = why;
        recordings.push(recording);
        (!is_first).then_some(name)
    }

    /// The name by which the inputs know a device.
    #[must_use]
    pub fn original<'n>(&'n self, name: &'n str) -> &'n str {
        self.names.get(name).map_or(name, String::as_str)
    }

    /// Lists the inputs that were combined, and those that were kept apart.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for ((device, layer), recordings) in &self.by_device {
            let layer = layer.word();
            for recording in recordings
                .iter()
                .filter(|recording| recording.inputs.len() > 1)
            {
                let reason = if self.are_all_one {
                    "as --together says"
                } else {
                    "pieces of one recording: one clock, times that follow each other"
                };
                notes.push(format!(
                    "{} ({layer} layer) is taken together from {} ({reason})",
                    recording.name,
                    listed(&recording.inputs)
                ));
            }
            for recording in recordings.iter().skip(1) {
                let why = recording.apart.unwrap_or(Apart::Clocks).words();
                notes.push(format!(
                    "{device} ({layer} layer) of {} is kept apart from that of {}: {why}. Pass --together if it is one \
                     device",
                    listed(&recording.inputs),
                    listed(&recordings[0].inputs)
                ));
            }
        }
        notes
    }
}

fn name_in(device: &str, input: &str) -> String {
    format!("{device} in {input}")
}

/// Inputs that are named; the others are counted.
const NAMED: usize = 4;

fn listed(inputs: &[String]) -> String {
    let named = inputs
        .iter()
        .take(NAMED)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match inputs.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_profile::Table;

    /// A device of an input whose I/O were between two times.
    fn device(base: TimeBase, span_ns: (i64, i64), size_bytes: Option<u64>) -> ProfileSet {
        let mut set = ProfileSet::default();
        let profile = set.entry("sda", Layer::Request, Table::default);
        profile.add_residue(
            plumb_trace::Op::Read,
            0,
            4096,
            false,
            &plumb_profile::table::Row {
                ios: 1,
                ..Default::default()
            },
        );
        profile.time_base = base;
        profile.size_bytes = size_bytes;
        (profile.first_ns, profile.last_ns) = (Some(span_ns.0), Some(span_ns.1));
        set
    }

    #[test]
    fn pieces_and_others() {
        let boot = |ns| Some(ClockZero::Boot(ns));
        let unix = Some(ClockZero::Unix);
        for (first, second, expected) in [
            ((unix, (0, 10), None), (unix, (10, 20), None), None),
            (
                (unix, (0, 10), None),
                (unix, (9, 20), None),
                Some(Apart::Overlap),
            ),
            ((unix, (10, 20), Some(1)), (unix, (0, 10), Some(1)), None),
            (
                (unix, (0, 10), Some(1)),
                (unix, (10, 20), Some(2)),
                Some(Apart::Sizes),
            ),
            (
                (unix, (0, 10), None),
                (unix, (60_000_000_010, 60_000_000_020), None),
                None,
            ),
            (
                (unix, (0, 10), None),
                (unix, (60_000_000_011, 60_000_000_020), None),
                Some(Apart::Pause),
            ),
            (
                (unix, (200_000_000_000, 300_000_000_000), None),
                (unix, (0, 100_000_000_000), None),
                None,
            ),
            (
                (unix, (200_000_000_001, 300_000_000_000), None),
                (unix, (0, 100_000_000_000), None),
                Some(Apart::Pause),
            ),
            (
                (None, (0, 10), None),
                (None, (10, 20), None),
                Some(Apart::Clocks),
            ),
            (
                (boot(0), (0, 10), None),
                (boot(5_000_000), (10, 20), None),
                None,
            ),
            (
                (boot(0), (0, 10), None),
                (boot(1 << 40), (10, 20), None),
                Some(Apart::Clocks),
            ),
            (
                (boot(0), (0, 10), None),
                (unix, (10, 20), None),
                Some(Apart::Clocks),
            ),
        ] {
            let (mut recordings, mut all) = (Recordings::default(), ProfileSet::default());
            for (name, (zero, span_ns, size)) in [("a", first), ("b", second)] {
                let set = device(TimeBase::Start, span_ns, size);
                all.merge(&recordings.name(name, set, zero));
            }
            let names: Vec<&str> = all.iter().map(|profile| profile.device.as_str()).collect();
            let of_device = &recordings.by_device[&("sda".to_owned(), Layer::Request)];
            match expected {
                None => assert_eq!(names, ["sda"], "{first:?} {second:?}"),
                Some(why) => {
                    assert_eq!(names, ["sda", "sda in b"]);
                    assert_eq!(of_device[1].apart, Some(why), "{first:?} {second:?}");
                    assert_eq!(recordings.original("sda in b"), "sda");
                }
            }
            let (mut recordings, mut all) = (Recordings::default(), ProfileSet::default());
            recordings.are_all_one = true;
            for (name, (zero, span_ns, size)) in [("a", first), ("b", second)] {
                let set = device(TimeBase::Start, span_ns, size);
                all.merge(&recordings.name(name, set, zero));
            }
            assert_eq!(all.len(), 1, "the user says so");
            assert_eq!(all.find("sda", Layer::Request).map(Profile::ios), Some(2));
        }
    }
}
