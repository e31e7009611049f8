//! Known I/O over time, in increments, and the profile of all of them made in one pass: the oracle.

use std::path::Path;

use plumb_history::{DeviceIncrement, Reader, Settings, Span, SpanProfile, Tier, Writer};
use plumb_profile::timeline::Timeline;
use plumb_profile::{Collector, Profile};
use plumb_testkit::Rng;
use plumb_trace::{Batch, Clock, Event, Layer, Names, Op, SourceInfo};

pub const SECOND: i64 = 1_000_000_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 3600 * SECOND;
pub const DAY: i64 = 86_400 * SECOND;
/// 2026-11-01, a begin of a day.
pub const BEGIN: i64 = 1_793_491_200 * SECOND;
pub const IDENTITY: &str = "wwn-0x5000c500a1b2c3d4";

/// I/O of one device in increments of a minute.
pub struct Load {
    pub increments: Vec<(Span, Profile)>,
    events: Vec<Event>,
    names: std::sync::Arc<Names>,
}

impl Load {
    /// `ios_by_minute` I/O on average in each minute from a time on.
    pub fn new(seed: u64, from_ns: i64, minutes: i64, ios_by_minute: u64, lengths: u64) -> Load {
        let mut rng = Rng::new(seed);
        let mut names = Names::default();
        let device = names.device("sda");
        let words = ["mysqld", "kworker", "tar"].map(|word| names.word(word));
        let names = std::sync::Arc::new(names);
        let mut collector = collector();
        let (mut increments, mut all) = (Vec::new(), Vec::new());
        for minute in 0..minutes {
            let start = from_ns + minute * MINUTE;
            let count = rng.below(2 * ios_by_minute + 1);
            let mut times: Vec<i64> = (0..count)
                .map(|_| start + rng.below(MINUTE as u64) as i64)
                .collect();
            times.sort_unstable();
            let events: Vec<Event> = times
                .into_iter()
                .map(|time_ns| {
                    let op = [Op::Read, Op::Write, Op::Flush][rng.below(3) as usize];
                    let (at, len) = (rng.below(1 << 22) * 512, (1 + rng.below(lengths)) * 512);
                    let (at, len) = if op == Op::Flush { (0, 0) } else { (at, len) };
                    let mut event = Event::new(time_ns, device, Layer::Request, op, at, len);
                    event.device_ns = rng.percent(80).then(|| rng.below(1 << 30) as i64);
                    event.comm = words[rng.below(3) as usize];
                    event
                })
                .collect();
            collector.fold(&batch(&events, &names));
            let span = Span {
                from_ns: start,
                to_ns: start + MINUTE,
            };
            if let Some(profile) = collector.cut().iter().next() {
                increments.push((span, profile.clone()));
            }
            all.extend(events);
        }
        // I/O that are in flight at the end of the recording complete there.
        let rest = collector.finish(&SourceInfo::default());
        if let (Some((_, last)), Some(rest)) = (increments.last_mut(), rest.iter().next()) {
            last.merge(rest);
        }
        Load {
            increments,
            events: all,
            names,
        }
    }

    /// The profile of all I/O, folded at once.
    pub fn whole(&self) -> Profile {
        let mut collector = collector();
        collector.fold(&batch(&self.events, &self.names));
        let set = collector.finish(&SourceInfo::default());
        plain(set.iter().next().expect("one device").clone())
    }

    /// The events that were issued in a span.
    pub fn events_in(&self, span: Span) -> impl Iterator<Item = &Event> {
        let is_in = move |event: &&Event| (span.from_ns..span.to_ns).contains(&event.time_ns);
        self.events.iter().filter(is_in)
    }

    /// The sum of the increments inside a span.
    pub fn within(&self, span: Span) -> Option<Profile> {
        let mut sum: Option<Profile> = None;
        for (_, profile) in self.increments.iter().filter(|(of, _)| span.contains(*of)) {
            match &mut sum {
                Some(sum) => sum.merge(profile),
                None => sum = Some(profile.clone()),
            }
        }
        sum.map(plain)
    }
}

fn collector() -> Collector {
    let mut collector = Collector::new(&plumb_profile::Settings {
        rows_max: 1 << 14,
        ..plumb_profile::Settings::default()
    })
    .expect("a modulus");
    collector.set_clock(Clock::Unix);
    collector
}

fn batch(events: &[Event], names: &std::sync::Arc<Names>) -> Batch {
    let mut batch = Batch {
        names: names.clone(),
        ..Batch::default()
    };
    events.iter().for_each(|event| batch.push(event));
    batch
}

/// A profile as a store returns it but for the course over time, which has windows there.
pub fn plain(mut profile: Profile) -> Profile {
    profile.timeline = Timeline::default();
    profile
}

/// Bounds that drop no detail.
pub fn exact() -> Settings {
    let mut settings = Settings {
        open_rows_max: 1 << 14,
        ..Settings::default()
    };
    for tier in &mut settings.tiers {
        tier.rows_max = 1 << 14;
        tier.keep_squares = true;
        tier.table_ios_min = 0;
        tier.keep_ns = 1000 * DAY;
    }
    settings
}

/// Adds an increment of the device.
pub fn add(writer: &mut Writer, span: Span, profile: &Profile) {
    let increment = DeviceIncrement {
        identity: IDENTITY,
        name: "sda",
        profile,
        senders: None,
    };
    writer.add(span, &increment).expect("an increment");
}

/// Adds a whole load, with a checkpoint after each increment.
pub fn feed(writer: &mut Writer, load: &Load) {
    for (span, profile) in &load.increments {
        add(writer, *span, profile);
        writer.checkpoint(span.to_ns).expect("a checkpoint");
    }
}

/// The I/O of the only device in a span.
pub fn read(folder: &Path, span: Span) -> Option<SpanProfile> {
    let reader = Reader::open(folder, &Settings::default()).expect("a store");
    let series = reader.series().expect("devices");
    let only = series.first()?;
    reader.profile(only, span).expect("sound files")
}

/// All time.
pub const EVER: Span = Span {
    from_ns: 0,
    to_ns: i64::MAX,
};

/// The number of I/O of a store, of all time.
pub fn ios(folder: &Path) -> u64 {
    read(folder, EVER).map_or(0, |found| found.profile.ios())
}

/// The I/O of the stored windows of a tier.
pub fn ios_of_tier(folder: &Path, tier: Tier) -> u64 {
    let reader = Reader::open(folder, &Settings::default()).expect("a store");
    let rows = reader.glance(tier, EVER, None).expect("sound files");
    rows.iter().map(|row| row.glance.ios).sum()
}

/// Whether the store is sound.
pub fn is_sound(folder: &Path) -> bool {
    let reader = Reader::open(folder, &Settings::default()).expect("a store");
    let verified = reader.verify().expect("readable files");
    verified.files.iter().all(|file| file.is_sound())
}
