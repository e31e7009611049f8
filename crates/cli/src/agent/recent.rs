//! The last hour in windows of 10 s, in the memory of the agent: on disk they would take gigabytes a day.
//!
//! A reading belongs to the window that has the middle of its time: readings end with windows, but for the time that they take. Left out: places
//! and senders, which the history has for 5 minutes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plumb_history::{Glance, Span};
use plumb_model::result::api::ApiHistograms;
use plumb_model::result::history::HistoryCourse;
use plumb_profile::{Profile, listing};
use plumb_trace::Layer;

use super::identity::is_path_of;
use super::packed::{add_packed, pack};
use crate::history::span::time_words;
use crate::history::window;

/// Length of a window, ns; a longer time between two readings makes longer ones.
const WIDTH_NS: i64 = 10_000_000_000;

/// Time for which windows are kept, ns.
const KEPT_NS: i64 = 3_600_000_000_000;

/// Most windows of all devices together, of 160 bytes each: 291 busy devices have an hour. With more, the oldest ones go.
const WINDOWS_MAX: usize = 104_857;

/// Most bytes of the histograms of all windows together. With more, the oldest ones go, and the totals stay.
const HISTOGRAMS_MAX: usize = 12 << 20;

/// Bytes of a window's histograms beside the packed ones.
const ENTRY_BYTES: usize = size_of::<(i64, Box<[u8]>)>();

/// See the module.
pub struct RecentWindows {
    state: Mutex<Recent>,
    bounds: RecentBounds,
}

#[derive(Clone, Copy)]
struct RecentBounds {
    windows_max: usize,
    histograms_max: usize,
}

/// The windows of a device, or of the devices with one name.
pub struct RecentAnswer {
    /// One for each layer and path.
    pub courses: Vec<HistoryCourse>,
    /// The time of all windows in the answer; `None` if it shares no time with them.
    pub time: Option<Span>,
    /// Begin of the windows that did not fit.
    pub next_ns: Option<i64>,
}

struct Recent {
    width_ns: i64,
    /// Begin of the time that the windows have in whole.
    since_ns: i64,
    /// End of the last reading.
    until_ns: i64,
    /// Begin of the time that the histograms have in whole.
    histograms_since_ns: i64,
    /// Windows of all devices.
    count: usize,
    /// Bytes of the histograms of all devices.
    histogram_bytes: usize,
    /// By identity and layer.
    devices: BTreeMap<(String, Layer), RecentDevice>,
}

#[derive(Default)]
struct RecentDevice {
    name: String,
    /// Windows with I/O, by their number since 1970, in order.
    windows: VecDeque<(i64, Glance)>,
    /// The packed histograms of the newest of these.
    histograms: VecDeque<(i64, Box<[u8]>)>,
    open: Option<OpenWindow>,
}

/// A window that the next reading may belong to, too.
struct OpenWindow {
    number: i64,
    /// Totals and histograms, without places.
    profile: Profile,
    off_4k: Option<u64>,
}

impl OpenWindow {
    fn glance(&self) -> Glance {
        Glance {
            off_4k: self.off_4k,
            ..Glance::of_profile(&self.profile)
        }
    }
}

impl RecentWindows {
    /// No window yet; `interval` is the time between two readings.
    pub fn new(interval: Duration) -> RecentWindows {
        let bounds = RecentBounds {
            windows_max: WINDOWS_MAX,
            histograms_max: HISTOGRAMS_MAX,
        };
        RecentWindows::with_bounds(interval, bounds)
    }

    fn with_bounds(interval: Duration, bounds: RecentBounds) -> RecentWindows {
        RecentWindows {
            state: Mutex::new(Recent::new(width_of(interval))),
            bounds,
        }
    }

    /// Takes another time between two readings. Windows of another length go.
    pub fn set_interval(&self, interval: Duration) {
        let mut state = self.lock();
        if state.width_ns != width_of(interval) {
            *state = Recent::new(width_of(interval));
        }
    }

    /// Adds the I/O of a device in a reading.
    pub fn add(&self, reading: Span, identity: &str, name: &str, profile: &Profile) {
        self.lock().add(reading, identity, name, profile);
    }

    /// Ends a reading, after the I/O of its last device.
    pub fn end_reading(&self, reading: Span) {
        self.lock().end_reading(reading, self.bounds);
    }

    /// Whether the windows have all of a time; one without an end has an hour at most.
    pub fn has_all(&self, time: Span) -> bool {
        let state = self.lock();
        (state.since_ns..state.until_ns).contains(&time.from_ns)
    }

    /// The windows of a device in a time, at most `rows` of each layer and path; `None` if it has no I/O in the last hour. `most` is the largest
    /// number of rows of all together.
    pub fn courses(&self, device: &str, time: Span, most: usize) -> Option<RecentAnswer> {
        let state = self.lock();
        let found = state.find(device);
        if found.is_empty() {
            return None;
        }
        let rows = i64::try_from((most / found.len()).max(1)).unwrap_or(1);
        Some(state.answer(&found, time, rows))
    }

    /// The histograms of a device over a time, one entry for each layer and path with I/O, and the time of whole windows; `None` if it has no
    /// I/O in the last hour, or the histograms of the time are not kept.
    pub fn histograms(&self, device: &str, time: Span) -> Option<(Vec<ApiHistograms>, Span)> {
        let state = self.lock();
        let found = state.find(device);
        let is_kept = (state.histograms_since_ns..state.until_ns).contains(&time.from_ns);
        (is_kept && !found.is_empty()).then(|| state.histograms(&found, time))
    }

    /// No reader of a half-written state can exist: a panic of the agent ends it.
    fn lock(&self) -> MutexGuard<'_, Recent> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Length of the windows, ns: whole tens of seconds that are no shorter than a reading.
fn width_of(interval: Duration) -> i64 {
    let interval_ns = i64::try_from(interval.as_nanos()).unwrap_or(WIDTH_NS);
    let tens = interval_ns.saturating_add(WIDTH_NS - 1) / WIDTH_NS;
    tens.max(1) * WIDTH_NS
}

impl Recent {
    fn new(width_ns: i64) -> Recent {
        Recent {
            width_ns,
            since_ns: i64::MAX,
            until_ns: i64::MIN,
            histograms_since_ns: i64::MAX,
            count: 0,
            histogram_bytes: 0,
            devices: BTreeMap::new(),
        }
    }

    fn number_of(&self, reading: Span) -> i64 {
        let half_ns = reading.to_ns.saturating_sub(reading.from_ns) / 2;
        (reading.from_ns + half_ns).div_euclid(self.width_ns)
    }

    fn add(&mut self, reading: Span, identity: &str, name: &str, profile: &Profile) {
        self.begin(reading);
        let number = self.number_of(reading);
        let key = (identity.to_owned(), profile.layer);
        let device = self.devices.entry(key).or_default();
        name.clone_into(&mut device.name);
        if device
            .open
            .as_ref()
            .is_some_and(|open| open.number != number)
        {
            let (count, bytes) = device.close();
            self.count += count;
            self.histogram_bytes += bytes;
        }
        let off_4k = Glance::of_profile(profile).off_4k;
        let open = device.open.get_or_insert_with(|| OpenWindow {
            number,
            profile: Profile::new(name, profile.layer, profile.places.table.emptied()),
            off_4k: Some(0),
        });
        for (totals, added) in open.profile.ops.iter_mut().zip(&profile.ops) {
            totals.merge(added);
        }
        let sum = open.off_4k.zip(off_4k);
        open.off_4k = sum.map(|(one, other)| one.saturating_add(other));
    }

    /// Begins again if the clock went back: windows of a later time would be in the way.
    fn begin(&mut self, reading: Span) {
        if reading.to_ns < self.until_ns {
            *self = Recent::new(self.width_ns);
        }
        if self.since_ns == i64::MAX {
            self.since_ns = reading.from_ns;
            self.histograms_since_ns = reading.from_ns;
        }
    }

    fn end_reading(&mut self, reading: Span, bounds: RecentBounds) {
        self.begin(reading);
        self.until_ns = reading.to_ns;
        let now = reading.to_ns.div_euclid(self.width_ns);
        for device in self.devices.values_mut() {
            if device.open.as_ref().is_some_and(|open| open.number < now) {
                let (count, bytes) = device.close();
                self.count += count;
                self.histogram_bytes += bytes;
            }
        }
        let mut oldest = (reading.to_ns - KEPT_NS).div_euclid(self.width_ns);
        self.drop_before(oldest);
        while self.count > bounds.windows_max {
            let first = self.devices.values().filter_map(|one| one.windows.front());
            let first = first.map(|(number, _)| *number).min();
            oldest = first.unwrap_or(oldest) + 1;
            self.drop_before(oldest);
        }
        while self.histogram_bytes > bounds.histograms_max {
            let devices = self.devices.values();
            let first = devices.filter_map(|one| one.histograms.front());
            let first = first.map(|(number, _)| *number).min();
            oldest = first.unwrap_or(oldest) + 1;
            self.drop_histograms_before(oldest);
        }
    }

    fn drop_histograms_before(&mut self, number: i64) {
        for device in self.devices.values_mut() {
            let old = device.histograms.partition_point(|(own, _)| *own < number);
            let dropped = device.histograms.drain(..old);
            let bytes: usize = dropped.map(|(_, packed)| ENTRY_BYTES + packed.len()).sum();
            self.histogram_bytes -= bytes;
        }
        self.histograms_since_ns = self.histograms_since_ns.max(number * self.width_ns);
    }

    /// Drops the windows before the one with a number, and devices without any.
    fn drop_before(&mut self, number: i64) {
        self.drop_histograms_before(number);
        for device in self.devices.values_mut() {
            let old = device.windows.partition_point(|(own, _)| *own < number);
            device.windows.drain(..old);
            self.count -= old;
        }
        let is_used = |device: &RecentDevice| device.open.is_some() || !device.windows.is_empty();
        self.devices.retain(|_, device| is_used(device));
        self.since_ns = self.since_ns.max(number * self.width_ns);
    }

    /// The devices of a name or an identity: one for each layer and path.
    fn find(&self, device: &str) -> Vec<(&(String, Layer), &RecentDevice)> {
        let name = device.trim_start_matches("/dev/");
        let is_it = |identity: &str, known: &RecentDevice| {
            identity == device || known.name == name || is_path_of(identity, device)
        };
        let all = self.devices.iter();
        all.filter(|((identity, _), known)| is_it(identity, known))
            .collect()
    }

    /// The windows that share time with a span, from the first number to the one behind the last.
    fn numbers_in(&self, time: Span) -> std::ops::Range<i64> {
        let first = time.from_ns.div_euclid(self.width_ns);
        let end = (time.to_ns.max(time.from_ns) + self.width_ns - 1).div_euclid(self.width_ns);
        first..end
    }

    fn histograms(
        &self,
        found: &[(&(String, Layer), &RecentDevice)],
        time: Span,
    ) -> (Vec<ApiHistograms>, Span) {
        let to_ns = time.to_ns.min(self.until_ns);
        let numbers = self.numbers_in(Span { to_ns, ..time });
        let whole = Span {
            from_ns: numbers.start * self.width_ns,
            to_ns: numbers.end * self.width_ns,
        };
        let mut made = Vec::new();
        for ((identity, layer), device) in found {
            let mut ops = Default::default();
            let kept = device.histograms.iter();
            for (_, packed) in kept.filter(|(number, _)| numbers.contains(number)) {
                add_packed(packed, &mut ops);
            }
            let open = device.open.as_ref();
            if let Some(open) = open.filter(|open| numbers.contains(&open.number)) {
                for (sum, totals) in ops.iter_mut().zip(&open.profile.ops) {
                    sum.merge(totals);
                }
            }
            let ops = listing::histograms(&ops);
            if !ops.is_empty() {
                made.push(ApiHistograms {
                    device: device.name.clone(),
                    identity: identity.clone(),
                    layer: layer.word(),
                    from: time_words(whole.from_ns),
                    to: time_words(whole.to_ns),
                    ops,
                    damaged: 0,
                });
            }
        }
        (made, whole)
    }

    fn answer(
        &self,
        found: &[(&(String, Layer), &RecentDevice)],
        time: Span,
        rows: i64,
    ) -> RecentAnswer {
        let time = time.common(Span {
            from_ns: self.since_ns,
            to_ns: self.until_ns,
        });
        let std::ops::Range { start: first, end } = self.numbers_in(time);
        let limit = end.min(first.saturating_add(rows));
        let numbers = first..limit;
        let courses = found.iter().map(|((identity, layer), device)| {
            let begin = |number: i64| number * self.width_ns;
            let closed = device.windows.iter();
            let closed = closed.filter(|(number, _)| numbers.contains(number));
            let open = device.open.as_ref();
            let open = open.filter(|open| numbers.contains(&open.number));
            HistoryCourse {
                device: device.name.clone(),
                identity: identity.clone(),
                layer: layer.word(),
                window_seconds: (self.width_ns / 1_000_000_000).unsigned_abs(),
                windows: closed
                    .map(|(number, glance)| window(begin(*number), glance))
                    .collect(),
                open: open.map(|open| window(begin(open.number), &open.glance())),
            }
        });
        RecentAnswer {
            courses: courses.collect(),
            time: (!time.is_empty()).then_some(Span {
                from_ns: first * self.width_ns,
                to_ns: limit * self.width_ns,
            }),
            next_ns: (limit < end).then_some(limit * self.width_ns),
        }
    }
}

impl RecentDevice {
    /// Closes the open window; returns the number of windows that it adds, and the bytes of their histograms.
    fn close(&mut self) -> (usize, usize) {
        let Some(open) = self.open.take() else {
            return (0, 0);
        };
        self.windows.push_back((open.number, open.glance()));
        let packed = pack(&open.profile.ops);
        let bytes = ENTRY_BYTES + packed.len();
        self.histograms.push_back((open.number, packed));
        (1, bytes)
    }
}

#[cfg(test)]
mod tests {
    use plumb_profile::histogram::log_linear_index;
    use plumb_profile::table::Row;
    use plumb_trace::Op;

    use super::*;

    const SECOND: i64 = 1_000_000_000;
    /// Any time that is a multiple of an hour.
    const BEGIN: i64 = 500_000 * KEPT_NS;

    /// Reads of 4 KiB a sector past a page that take a time.
    fn reads(ios: u64, ns: u64) -> Profile {
        let table = plumb_profile::Settings::default().table();
        let mut profile = Profile::new("sda", Layer::Request, table.expect("a modulus"));
        let row = Row {
            ios,
            timed: ios,
            ..Row::default()
        };
        profile.add_residue(Op::Read, 512, 4096, false, &row);
        profile.ops[Op::Read as usize]
            .device_ns
            .add(log_linear_index(ns), ios);
        profile
    }

    /// A reading that begins and ends at these seconds.
    fn reading(from: i64, to: i64) -> Span {
        Span {
            from_ns: BEGIN + from * SECOND,
            to_ns: BEGIN + to * SECOND,
        }
    }

    fn read(recent: &RecentWindows, (from, to): (i64, i64), profile: Option<&Profile>) {
        let span = reading(from, to);
        if let Some(profile) = profile {
            recent.add(span, "wwn", "sda", profile);
        }
        recent.end_reading(span);
    }

    /// Begin in seconds and I/O of each closed window, and the I/O of the open one.
    fn windows(recent: &RecentWindows) -> (Vec<(i64, u64)>, u64) {
        let all = reading(-1_000_000, 1_000_000);
        let Some(answer) = recent.courses("sda", all, 10_000) else {
            return (Vec::new(), 0);
        };
        let [course] = &answer.courses[..] else {
            panic!("one course: {:?}", answer.courses);
        };
        let begin = |words: &str| {
            let ns = crate::moment::parse_local(words).expect("a time");
            (ns - BEGIN) / SECOND
        };
        let closed = course.windows.iter();
        let closed = closed.map(|one| (begin(&one.from), one.ios)).collect();
        (closed, course.open.as_ref().map_or(0, |open| open.ios))
    }

    #[test]
    fn readings_of_a_second_are_joined() {
        let recent = RecentWindows::new(Duration::from_secs(1));
        for second in 0..25 {
            let ns = if second < 10 { 100_000 } else { 5_000_000 };
            read(&recent, (second, second + 1), Some(&reads(3, ns)));
        }
        assert_eq!(windows(&recent), (vec![(0, 30), (10, 30)], 15));
        let answer = recent.courses("/dev/sda", reading(0, 30), 100);
        let course = &answer.expect("a device").courses[0];
        assert_eq!(course.window_seconds, 10);
        let [first, second] = &course.windows[..] else {
            panic!("two windows: {:?}", course.windows);
        };
        assert_eq!((first.misaligned_4k, first.timed), (Some(30), 30));
        assert_eq!(first.read_bytes, 30 * 4096);
        // At most 1/16 too large.
        let is_near = |found: Option<u64>, ns: u64| {
            found.is_some_and(|found| (ns..=ns + ns / 16).contains(&found))
        };
        assert!(is_near(first.p50_ns, 100_000) && is_near(second.p50_ns, 5_000_000));
    }

    /// A reading ends some ms before or after the end of a window: the window has it all the same.
    #[test]
    fn a_reading_belongs_to_the_window_of_its_middle() {
        let recent = RecentWindows::new(Duration::from_secs(10));
        let mut from_ns = BEGIN;
        for (number, late_ms) in [(1, 3), (2, -4), (3, 40), (4, 0)] {
            let to_ns = BEGIN + number * 10 * SECOND + late_ms * 1_000_000;
            let span = Span { from_ns, to_ns };
            recent.add(span, "wwn", "sda", &reads(number.unsigned_abs(), 1000));
            recent.end_reading(span);
            from_ns = to_ns;
        }
        let all = vec![(0, 1), (10, 2), (20, 3), (30, 4)];
        assert_eq!(windows(&recent), (all, 0));
    }

    #[test]
    fn windows_go_after_an_hour() {
        let recent = RecentWindows::new(Duration::from_secs(10));
        for number in 0..400 {
            let from = number * 10;
            read(&recent, (from, from + 10), Some(&reads(1, 1000)));
        }
        let (closed, _) = windows(&recent);
        assert_eq!((closed.len(), closed[0]), (360, (400, 1)));
        assert!(recent.has_all(reading(400, 500)));
        assert!(!recent.has_all(reading(399, 500)));
        assert!(!recent.has_all(reading(4001, 4002)));
        // A device without I/O goes with its last window.
        for number in 400..770 {
            read(&recent, (number * 10, number * 10 + 10), None);
        }
        assert!(recent.courses("sda", reading(0, 9000), 10).is_none());
        assert!(recent.lock().devices.is_empty());
        assert_eq!(recent.lock().count, 0);
    }

    #[test]
    fn many_devices_have_less_time() {
        let bounds = RecentBounds {
            windows_max: 12,
            histograms_max: HISTOGRAMS_MAX,
        };
        let recent = RecentWindows::with_bounds(Duration::from_secs(10), bounds);
        for number in 0..10 {
            let span = reading(number * 10, number * 10 + 10);
            for device in ["a", "b", "c"] {
                recent.add(span, device, device, &reads(1, 1000));
            }
            recent.end_reading(span);
            assert!(recent.lock().count <= 12);
        }
        let answer = recent.courses("b", reading(0, 100), 100).expect("a device");
        assert_eq!(answer.courses[0].windows.len(), 4);
        assert!(recent.has_all(reading(60, 70)) && !recent.has_all(reading(59, 70)));
        // The estimate of the bytes is that of the documentation.
        assert_eq!(size_of::<(i64, Glance)>(), 160);
    }

    #[test]
    fn histograms_are_added_up_and_go_first() {
        let window_bytes = ENTRY_BYTES + pack(&reads(1, 1000).ops).len();
        let bounds = RecentBounds {
            windows_max: 100,
            histograms_max: 5 * window_bytes,
        };
        let recent = RecentWindows::with_bounds(Duration::from_secs(10), bounds);
        for number in 0..8 {
            let from = number * 10;
            read(&recent, (from, from + 10), Some(&reads(1, 1000)));
        }
        assert_eq!(windows(&recent).0.len(), 8, "the totals stay");
        assert!(recent.histograms("sda", reading(29, 80)).is_none());
        assert_eq!(recent.lock().histogram_bytes, bounds.histograms_max);
        // The open window is a part of the sum.
        recent.add(reading(80, 83), "wwn", "sda", &reads(2, 1000));
        recent.end_reading(reading(80, 83));
        let ios = |from: i64, to: i64| -> (u64, String) {
            let (made, _) = recent.histograms("sda", reading(from, to)).expect("kept");
            let [one] = &made[..] else {
                panic!("one device: {made:?}");
            };
            let document = serde_json::to_value(one).expect("JSON");
            let op = &document["ops"][0];
            assert_eq!(op["op"], "read");
            assert_eq!(op["device"][0]["ios"], op["ios"]);
            assert_eq!(op["sizes"][0]["ios"], op["ios"]);
            (op["ios"].as_u64().expect("a count"), one.from.clone())
        };
        let begin = |second: i64| time_words(BEGIN + second * SECOND);
        assert_eq!(ios(30, 1000), (5 + 2, begin(30)));
        assert_eq!(ios(45, 61), (3, begin(40)));
        let none = recent.histograms("sda", reading(81, 82)).expect("kept");
        assert_eq!(none.0.len(), 1);
        assert!(recent.histograms("sdb", reading(45, 61)).is_none());
    }

    #[test]
    fn a_clock_that_goes_back_begins_again() {
        let recent = RecentWindows::new(Duration::from_secs(10));
        read(&recent, (0, 10), Some(&reads(1, 1000)));
        read(&recent, (10, 20), Some(&reads(2, 1000)));
        read(&recent, (-100, -90), Some(&reads(4, 1000)));
        assert_eq!(windows(&recent), (vec![(-100, 4)], 0));
        // Another length of windows as well.
        recent.set_interval(Duration::from_secs(10));
        assert_eq!(windows(&recent), (vec![(-100, 4)], 0));
        recent.set_interval(Duration::from_secs(15));
        assert!(recent.courses("sda", reading(-200, 0), 10).is_none());
        read(&recent, (0, 15), Some(&reads(8, 1000)));
        read(&recent, (15, 30), None);
        assert_eq!(windows(&recent), (vec![(0, 8)], 0));
    }

    #[test]
    fn an_answer_has_a_limit() {
        let recent = RecentWindows::new(Duration::from_secs(10));
        for number in 0..30 {
            let from = number * 10;
            read(&recent, (from, from + 10), Some(&reads(1, 1000)));
        }
        let answer = recent.courses("sda", reading(5, 1000), 10);
        let answer = answer.expect("a device");
        assert_eq!(answer.courses[0].windows.len(), 10);
        assert_eq!(answer.time, Some(reading(0, 100)));
        assert_eq!(answer.next_ns, Some(BEGIN + 100 * SECOND));
        let answer = recent.courses("wwn", reading(250, 1000), 10);
        let answer = answer.expect("a device");
        assert_eq!(
            (answer.time, answer.next_ns),
            (Some(reading(250, 300)), None)
        );
        let empty = recent.courses("sda", reading(-900, -800), 10);
        assert_eq!(empty.expect("a device").time, None);
    }
}
