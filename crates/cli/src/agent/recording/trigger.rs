//! The lines that a device crosses, and the limits of the rate.
//!
//! A measure is taken of at least 200 reads and writes: readings are added up until there are as many, for at most 5 minutes, so
//! that a device with few I/O is judged, too. A measure triggers when it crosses its line, and again only after it was below it.

use std::time::{Duration, Instant};

use plumb_history::Glance;
use plumb_profile::Profile;
use plumb_profile::histogram::Counts;
use plumb_report::format::{ns, percent};
use plumb_trace::Op;

use super::RecordingSettings;
use super::folder::{Measure, RecordingName};
use crate::moment::unix_words;

/// Reads and writes that a measure needs. One slow I/O moves the p99 of fewer than 100.
const IOS_MIN: u64 = 200;
/// Age at which counts that are too few are dropped.
const COUNTS_MAX: Duration = Duration::from_secs(300);
const DAY_NS: i64 = 86_400_000_000_000;

/// The I/O of a device since its last measures.
#[derive(Default)]
pub struct Course {
    /// Identity of the device: its name may be that of another one later.
    identity: String,
    since: Option<Instant>,
    ios: u64,
    off_4k: u64,
    latencies: Counts,
    /// Whether the last measures were above their lines: p99, misfit.
    is_above: [bool; 2],
    seen: Option<Instant>,
}

impl Course {
    /// Adds the I/O of a reading. Returns a measure that has crossed its line, with words for the log.
    pub fn add(
        &mut self,
        identity: &str,
        profile: &Profile,
        settings: &RecordingSettings,
        now: Instant,
    ) -> Option<(Measure, String)> {
        if self.identity != identity {
            *self = Course {
                identity: identity.to_owned(),
                ..Course::default()
            };
        }
        self.seen = Some(now);
        let since = *self.since.get_or_insert(now);
        let glance = Glance::of_profile(profile);
        self.ios += glance.reads + glance.writes;
        // Undecided I/O count as fitting.
        self.off_4k += glance.off_4k.unwrap_or(0);
        for op in [Op::Read, Op::Write] {
            self.latencies.merge(&profile.op(op).device_ns);
        }
        let timed = self.latencies.total();
        if self.ios.min(timed) < IOS_MIN {
            if now.duration_since(since) >= COUNTS_MAX {
                self.forget_counts();
            }
            return None;
        }
        let p99 = self.latencies.log_linear_quantile(99, 100);
        let p99_ns = p99.map_or(0, |(_, high)| high);
        let share = self.off_4k as f64 / self.ios as f64;
        let line_ns = settings.p99.map(|line| line.as_nanos());
        let line = settings.misfit.map(|line| f64::from(line.0) / 10_000.0);
        let is_above = [
            line_ns.is_some_and(|line| u128::from(p99_ns) > line),
            line.is_some_and(|line| share > line),
        ];
        let before = std::mem::replace(&mut self.is_above, is_above);
        let ios = plumb_geometry::group_digits(self.ios);
        self.forget_counts();
        if is_above[0] && !before[0] {
            let line = ns(line_ns.and_then(|line| line.try_into().ok()).unwrap_or(0));
            let words = format!(
                "the p99 latency of {ios} reads and writes is {}, above {line}",
                ns(p99_ns)
            );
            return Some((Measure::P99, words));
        }
        (is_above[1] && !before[1]).then(|| {
            let words = format!(
                "{} of {ios} reads and writes start off 4 KiB, above {}",
                percent(share),
                percent(line.unwrap_or(0.0))
            );
            (Measure::Misfit, words)
        })
    }

    fn forget_counts(&mut self) {
        self.since = None;
        self.ios = 0;
        self.off_4k = 0;
        self.latencies = Counts::default();
    }

    /// Whether the device had I/O in this time.
    pub fn is_recent(&self, now: Instant, within: Duration) -> bool {
        self.seen
            .is_some_and(|seen| now.duration_since(seen) < within)
    }
}

/// The recordings that began so far, for the limits of their rate.
#[derive(Default)]
pub struct Begun(Vec<RecordingName>);

impl Begun {
    /// Knows the recordings of an earlier run.
    pub fn of_earlier(names: impl Iterator<Item = RecordingName>) -> Begun {
        Begun(names.collect())
    }

    /// Adds a recording.
    pub fn add(&mut self, name: RecordingName) {
        self.0.push(name);
    }

    /// The reason against a recording of a device now; `None` if nothing is against it.
    pub fn refusal(
        &mut self,
        device: &str,
        now_ns: i64,
        settings: &RecordingSettings,
    ) -> Option<String> {
        let pause_ns = i64::try_from(settings.pause.as_nanos()).unwrap_or(i64::MAX);
        // A clock that was set back must not keep recordings away for as long.
        let age_ns = |name: &RecordingName| now_ns.checked_sub(name.at_ns).filter(|ns| *ns >= 0);
        let longest = pause_ns.max(DAY_NS);
        self.0
            .retain(|name| now_ns.saturating_sub(name.at_ns) < longest);
        let is_within = |name: &&RecordingName, ns: i64| age_ns(name).is_some_and(|age| age < ns);
        let of_device = self.0.iter().rev().filter(|name| name.is_of(device));
        if let Some(last) = of_device.clone().find(|name| is_within(name, pause_ns)) {
            let time = unix_words(last.at_ns).unwrap_or_default();
            return Some(format!("the last one began at {time} (record_pause)"));
        }
        let of_day = self.0.iter().filter(|name| is_within(name, DAY_NS)).count();
        (of_day >= settings.per_day as usize).then(|| {
            let words = plumb_geometry::plural(of_day as u64, "recording");
            format!("{words} began within 24 h (record_per_day)")
        })
    }
}

#[cfg(test)]
mod tests {
    use plumb_profile::{Collector, Settings};
    use plumb_trace::{Batch, Clock, Event, Layer, Names, SourceInfo};

    use super::super::Percent;
    use super::*;

    const MS_NS: i64 = 1_000_000;

    fn settings() -> RecordingSettings {
        RecordingSettings {
            p99: Some(Duration::from_millis(50)),
            misfit: Some(Percent(2000)),
            ..RecordingSettings::default()
        }
    }

    /// Reads of 4 KiB: the first `off` of them start off 4 KiB, and the first `slow` take 80 ms.
    fn profile(reads: u64, off: u64, slow: u64) -> Profile {
        let mut names = Names::default();
        let device = names.device("sda");
        let mut batch = Batch::default();
        for at in 0..reads {
            let start = at * 8192 + if at < off { 512 } else { 0 };
            let mut event = Event::new(
                at as i64 * MS_NS,
                device,
                Layer::Request,
                Op::Read,
                start,
                4096,
            );
            event.device_ns = Some(if at < slow { 80 * MS_NS } else { MS_NS });
            batch.push(&event);
        }
        batch.names = std::sync::Arc::new(names);
        let mut collector = Collector::new(&Settings::default()).expect("a modulus");
        collector.set_clock(Clock::Boot);
        collector.fold(&batch);
        let profiles = collector.finish(&SourceInfo::default());
        let profile = profiles.iter().next().expect("a device");
        profile.clone()
    }

    /// The measures that cross their lines, reading by reading.
    fn crossed(readings: &[(u64, u64, u64)]) -> Vec<Option<Measure>> {
        let (mut course, now) = (Course::default(), Instant::now());
        let measures = readings.iter().map(|&(reads, off, slow)| {
            let crossed = course.add("wwn", &profile(reads, off, slow), &settings(), now);
            crossed.map(|(measure, _)| measure)
        });
        measures.collect()
    }

    #[test]
    fn a_line_is_crossed_once() {
        use Measure::{Misfit, P99};
        // A share of 20 % is not above 20 %, and 10 of 1,000 slow reads leave the p99 alone.
        let below = (1000, 200, 10);
        let (misfit, slow) = ((1000, 201, 0), (1000, 0, 11));
        assert_eq!(
            crossed(&[below, misfit, misfit]),
            [None, Some(Misfit), None]
        );
        assert_eq!(crossed(&[below, slow, slow]), [None, Some(P99), None]);
        assert_eq!(
            crossed(&[misfit, below, misfit]),
            [Some(Misfit), None, Some(Misfit)]
        );
        assert_eq!(crossed(&[slow, misfit]), [Some(P99), Some(Misfit)]);
        // Both at once are one recording.
        assert_eq!(crossed(&[(1000, 500, 500), misfit]), [Some(P99), None]);
    }

    #[test]
    fn few_ios_are_added_up() {
        // 199 reads say nothing, and with one more they do.
        assert_eq!(
            crossed(&[(100, 100, 0), (99, 99, 0), (1, 1, 0)]),
            [None, None, Some(Measure::Misfit)]
        );
        // Too few for too long are dropped.
        let (mut course, now) = (Course::default(), Instant::now());
        let mut add = |seconds: u64, reads: u64| {
            let at = now + Duration::from_secs(seconds);
            let crossed = course.add("wwn", &profile(reads, reads, 0), &settings(), at);
            crossed.is_some()
        };
        assert_eq!([add(0, 150), add(300, 10), add(301, 60)], [false; 3]);
        assert!(add(302, 140));
    }

    #[test]
    fn another_device_with_the_name_begins_again() {
        let (mut course, now) = (Course::default(), Instant::now());
        let mut add = |identity: &str| {
            let crossed = course.add(identity, &profile(1000, 500, 0), &settings(), now);
            crossed.is_some()
        };
        assert_eq!([add("one"), add("one"), add("other")], [true, false, true]);
    }

    #[test]
    fn a_line_that_is_absent_is_not_crossed() {
        let (now, bad) = (Instant::now(), profile(1000, 500, 500));
        let settings = RecordingSettings {
            p99: None,
            ..settings()
        };
        let crossed = Course::default().add("wwn", &bad, &settings, now);
        let (measure, words) = crossed.expect("a measure");
        assert_eq!(measure, Measure::Misfit);
        insta::assert_snapshot!(words);
        let off = RecordingSettings::default();
        assert!(Course::default().add("wwn", &bad, &off, now).is_none());
    }

    #[test]
    fn the_rate_is_limited() {
        const MINUTE_NS: i64 = 60_000_000_000;
        let settings = RecordingSettings {
            per_day: 3,
            ..settings()
        };
        let begin_ns = 1_795_993_507_000_000_000;
        let mut begun = Begun::default();
        let may = |begun: &mut Begun, device: &str, minute: i64| {
            let at_ns = begin_ns + minute * MINUTE_NS;
            let refusal = begun.refusal(device, at_ns, &settings);
            if refusal.is_none() {
                let name = RecordingName::new(at_ns, Measure::P99, device);
                begun.add(name.expect("a name"));
            }
            refusal.is_none()
        };
        assert!(may(&mut begun, "sda", 0));
        assert!(!may(&mut begun, "sda", 59), "within the pause");
        assert!(may(&mut begun, "sdb", 59), "another device");
        assert!(may(&mut begun, "sda", 60));
        assert!(!may(&mut begun, "sdc", 61), "the fourth of the day");
        // After a day the first one counts no more; a restart knows the others by the names of their files.
        let mut begun = Begun::of_earlier(begun.0.into_iter());
        assert!(!may(&mut begun, "sdc", 24 * 60 - 1));
        assert!(may(&mut begun, "sdc", 24 * 60));
        assert!(!may(&mut begun, "sdd", 24 * 60 + 1));
        // A clock that was set back does not keep recordings away.
        assert!(may(&mut begun, "sdc", -24 * 60));
    }
}
