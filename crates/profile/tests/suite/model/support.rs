//! Events for the tests: from the testkit's workloads and from random numbers, in batches of any size.

use std::sync::Arc;

use proptest::prelude::ProptestConfig;

use plumb_profile::codec::{Saved, encode};
use plumb_profile::{Collector, Profile, ProfileSet, Settings, Table};
use plumb_testkit::event::device_name;
use plumb_testkit::{Rng, SynthEvent, SynthOp};
use plumb_trace::{Batch, Clock, Event, Layer, Names, Op, SourceInfo};

/// Events of one recording with the meaning of its numbers.
#[derive(Clone)]
pub struct Recording {
    pub events: Vec<Event>,
    pub names: Arc<Names>,
}

impl Recording {
    /// A workload of the testkit, as a reader of a perfect trace would return it.
    pub fn from_workload(ios: impl Iterator<Item = SynthEvent>) -> Recording {
        let mut names = Names::default();
        let events = ios.map(|io| event_of(&io, &mut names)).collect();
        Recording {
            events,
            names: Arc::new(names),
        }
    }

    /// Batches of at most `size` events.
    pub fn batches(&self, size: usize) -> impl Iterator<Item = Batch> + '_ {
        self.events
            .chunks(size.max(1))
            .map(|events| self.batch(events))
    }

    pub fn batch(&self, events: &[Event]) -> Batch {
        let mut batch = Batch {
            names: self.names.clone(),
            ..Batch::default()
        };
        events.iter().for_each(|event| batch.push(event));
        batch
    }

    /// The profiles of the whole, folded in batches of `size`.
    pub fn profiles(&self, size: usize) -> ProfileSet {
        let mut collector = collector(1 << 20);
        self.batches(size).for_each(|batch| collector.fold(&batch));
        collector.finish(&SourceInfo::default())
    }

    /// The profile of the only device.
    pub fn profile(&self) -> Profile {
        only(&self.profiles(4096))
    }
}

pub fn collector(modulus_bytes: u64) -> Collector {
    let mut collector = Collector::new(&Settings {
        modulus_bytes,
        // Soon full.
        rows_max: 1 << 14,
        ..Settings::default()
    })
    .expect("a modulus");
    collector.set_clock(Clock::Start);
    collector
}

pub fn only(set: &ProfileSet) -> Profile {
    assert_eq!(set.len(), 1);
    set.iter().next().expect("one profile").clone()
}

fn event_of(io: &SynthEvent, names: &mut Names) -> Event {
    let op = match io.op {
        SynthOp::Read => Op::Read,
        SynthOp::Write => Op::Write,
        SynthOp::Discard => Op::Discard,
        SynthOp::Flush => Op::Flush,
    };
    let name = device_name(io.device);
    let device = names
        .find_device(&name)
        .unwrap_or_else(|| names.device(&name));
    let mut event = Event::new(
        io.time_ns,
        device,
        Layer::Request,
        op,
        io.start_bytes,
        io.len_bytes,
    );
    event.device_ns = io.device_ns;
    event.queue_ns = io.queue_ns;
    event.pid = i32::try_from(io.pid).ok();
    event.comm = names
        .find_word(io.comm)
        .unwrap_or_else(|| names.word(io.comm));
    event
}

/// How random events are spread.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub events: usize,
    pub devices: u64,
    /// Starts and lengths are multiples of it.
    pub unit: u64,
    /// Starts are below this number of units.
    pub starts: u64,
    /// Lengths are below this number of units.
    pub lengths: u64,
}

impl Spread {
    pub const SMALL: Spread = Spread {
        events: 300,
        devices: 3,
        unit: 512,
        starts: 5_000,
        lengths: 40,
    };
}

/// Random events in time order with everything in them that an event can have or lack. A third of them start
/// where an earlier one ended.
pub fn random(spread: Spread, seed: u64) -> Recording {
    let mut rng = Rng::new(seed);
    let mut names = Names::default();
    for device in 0..spread.devices {
        let id = names.device(&device_name(device as u32));
        if let Some(device) = names.device_mut(id).filter(|_| rng.percent(50)) {
            device.size_bytes = Some(1 << rng.between(12, 45));
            device.partitions = vec![
                ("part1".to_owned(), rng.below(spread.starts) * spread.unit),
                ("part2".to_owned(), rng.below(spread.starts) * spread.unit),
            ];
        }
    }
    // Commands share their numbers with files, and there may be many.
    (0..rng.below(2) * 700).for_each(|n| {
        names.word(&format!("/a/file/{n}"));
    });
    let comms: Vec<u32> = (0..5).map(|n| names.word(&format!("comm{n}"))).collect();
    let mut ends = vec![0];
    let mut time_ns = rng.below(1_000) as i64;
    let mut events = Vec::new();
    for _ in 0..spread.events {
        time_ns += rng.below(30_000) as i64;
        let op = Op::ALL[[0, 0, 0, 1, 1, 1, 2, 3, 4, 5][rng.below(10) as usize]];
        let start = if rng.percent(33) {
            ends[rng.below(ends.len() as u64) as usize]
        } else {
            rng.below(spread.starts) * spread.unit
        };
        let len = if op == Op::Flush {
            0
        } else {
            rng.below(spread.lengths) * spread.unit
        };
        let layer = if rng.percent(90) {
            Layer::Request
        } else {
            Layer::Bio
        };
        let mut event = Event::new(
            time_ns,
            rng.below(spread.devices) as u32,
            layer,
            op,
            start,
            len,
        );
        event.flags = rng.below(64) as i32;
        event.device_ns = rng.percent(80).then(|| rng.below(200_000) as i64);
        event.queue_ns = rng.percent(50).then(|| rng.below(5_000) as i64);
        event.pid = rng.percent(80).then(|| rng.below(6) as i32);
        event.tid = rng.percent(50).then(|| rng.below(3) as i32);
        event.comm = if rng.percent(60) {
            comms[rng.below(5) as usize]
        } else {
            0
        };
        ends.push(start + len);
        if ends.len() > 40 {
            ends.remove(0);
        }
        events.push(event);
    }
    Recording {
        events,
        names: Arc::new(names),
    }
}

/// The encoded form, which is equal when everything is.
pub fn bytes_of(set: &ProfileSet) -> Vec<u8> {
    encode(&Saved {
        profiles: set.clone(),
        ..Saved::default()
    })
    .expect("room to encode")
}

/// The encoded form of one table.
pub fn table_bytes(table: &Table) -> Vec<u8> {
    let mut set = ProfileSet::default();
    set.add(&Profile::new("table", Layer::Request, table.clone()));
    bytes_of(&set)
}

/// A number of random cases; a failure prints its smallest case.
pub fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    }
}

/// Merges all items into one in a random order and grouping.
pub fn merge_anyhow<T>(mut items: Vec<T>, rng: &mut Rng, merge: impl Fn(&mut T, T)) -> T {
    while items.len() > 1 {
        let one = items.swap_remove(rng.below(items.len() as u64) as usize);
        let into = rng.below(items.len() as u64) as usize;
        merge(&mut items[into], one);
    }
    items.pop().expect("something to merge")
}
