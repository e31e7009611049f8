//! Synthetic devices: events of 150 mixes, and their profiles by the collector.

use std::sync::Arc;

use plumb_history::{Sender, Senders};
use plumb_profile::{Collector, Profile};
use plumb_testkit::Rng;
use plumb_trace::{Batch, Clock, Event, Layer, NameId, Names, Op};

pub const SECOND: i64 = 1_000_000_000;
pub const HOUR: i64 = 3600 * SECOND;

/// Mixes of a class.
pub const MIXES: u64 = 50;

/// Load of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// 100 to 500 I/O/s.
    Busy,
    /// 2 to 20 I/O/s.
    Light,
    /// 0.1 to 0.3 I/O/s.
    Idle,
}

impl Class {
    pub const ALL: [Class; 3] = [Class::Busy, Class::Light, Class::Idle];

    /// Lowest and highest mean rate of its mixes, I/O in 1,000 s.
    const fn rates(self) -> [u64; 2] {
        match self {
            Class::Busy => [100_000, 500_000],
            Class::Light => [2_000, 20_000],
            Class::Idle => [100, 300],
        }
    }
}

/// Lists of lengths in sectors. A mix takes one list; a length counts as often as it is listed.
const LENGTHS: [&[u64]; 8] = [
    &[8],
    &[8, 8, 8, 16, 32],
    &[16, 16, 16, 16, 32, 256, 1],
    &[8, 8, 8, 8, 16, 16, 32, 64, 128, 256, 512, 1024],
    &[1, 2, 3, 8, 8, 8, 16, 24],
    &[128, 256, 256, 512, 1024, 2048],
    &[32, 32, 32, 40, 48, 56, 64],
    &[8, 8, 8, 8, 7, 9, 11, 13, 24, 33, 63, 127, 255],
];

/// First bytes of partitions: none, one at 63 sectors, one or three at 1 MiB and later.
const PARTITIONS: [&[u64]; 4] = [
    &[],
    &[63 * 512],
    &[1 << 20],
    &[1 << 20, 513 << 20, (1 << 35) + (1 << 20)],
];

const COMMANDS: [&str; 16] = [
    "postgres",
    "mysqld",
    "java",
    "qemu-kvm",
    "rsync",
    "jbd2/sda1-8",
    "kworker/u32:3",
    "etcd",
    "containerd",
    "ceph-osd",
    "python3",
    "nginx",
    "tar",
    "systemd-journal",
    "xfsaild/dm-2",
    "mongod",
];

/// Bytes of a device.
const DEVICE_BYTES: u64 = 1 << 40;

/// A mix of I/O.
pub struct Mix {
    seed: u64,
    /// I/O in 1,000 s, on the mean hour.
    rate: u64,
    reads_percent: u64,
    streams_percent: u64,
    /// Share of the random I/O that starts in 1/64 of the device.
    hot_percent: u64,
    /// Starts are multiples of it, counted from the first partition, in sectors.
    step: u64,
    lengths: &'static [u64],
    partitions: &'static [u64],
    /// Usual latency, ns.
    device_ns: u64,
    senders: Vec<Sender>,
}

impl Mix {
    pub fn new(class: Class, number: u64) -> Mix {
        let seed = number + 1000 * class as u64 + 1;
        let mut rng = Rng::new(seed);
        let [low, high] = class.rates();
        let sender = |at: u64| {
            let command = COMMANDS[((number + at * 5) % 16) as usize];
            let cgroup = match at % 3 {
                0 => format!("/system.slice/{command}.service"),
                1 => format!(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{:016x}{:016x}.slice",
                    rng_word(seed, at),
                    rng_word(at, seed)
                ),
                _ => format!("/machine.slice/machine-qemu\\x2d{at}\\x2dvm{number:04}.scope"),
            };
            Sender {
                command: command.to_owned(),
                cgroup,
            }
        };
        Mix {
            seed,
            rate: rng.between(low, high),
            reads_percent: rng.between(5, 95),
            streams_percent: rng.between(0, 80),
            hot_percent: rng.between(0, 90),
            step: [8, 8, 8, 16, 1][(number % 5) as usize],
            lengths: LENGTHS[(number / 5 % 8) as usize],
            partitions: PARTITIONS[(number % 4) as usize],
            device_ns: [60_000, 200_000, 900_000, 5_000_000][rng.below(4) as usize],
            senders: (0..rng.between(2, 12)).map(sender).collect(),
        }
    }
}

fn rng_word(one: u64, other: u64) -> u64 {
    Rng::new(one * 4096 + other).next_u64()
}

/// The I/O of one device over time.
pub struct Device<'m> {
    mix: &'m Mix,
    rng: Rng,
    collector: Collector,
    names: Arc<Names>,
    batch: Batch,
    device: u32,
    commands: Vec<NameId>,
    /// Time of the next I/O.
    next_ns: i64,
    /// Ends of streams, in sectors.
    streams: [u64; 4],
}

impl<'m> Device<'m> {
    pub fn new(mix: &'m Mix, seed: u64, from_ns: i64) -> Device<'m> {
        let mut names = Names::default();
        let device = names.device("sda");
        if let Some(known) = names.device_mut(device) {
            known.size_bytes = Some(DEVICE_BYTES);
            known.logical_block_bytes = Some(512);
            let parts = mix.partitions.iter().enumerate();
            known.partitions = parts
                .map(|(at, first)| (format!("sda{}", at + 1), *first))
                .collect();
        }
        let commands = mix
            .senders
            .iter()
            .map(|sender| names.word(&sender.command))
            .collect();
        let mut collector =
            Collector::new(&plumb_profile::Settings::default()).expect("the usual modulus");
        collector.set_clock(Clock::Unix);
        Device {
            mix,
            rng: Rng::new(mix.seed.wrapping_mul(1_000_003).wrapping_add(seed)),
            collector,
            names: Arc::new(names),
            batch: Batch::default(),
            device,
            commands,
            next_ns: from_ns,
            streams: [1 << 12, 1 << 28, 1 << 29, 1 << 30],
        }
    }

    /// The I/O up to a time, with their senders; `None` without any.
    pub fn until(&mut self, to_ns: i64) -> Option<(Profile, Senders)> {
        while self.next_ns < to_ns {
            let event = self.event();
            self.batch.push(&event);
            if self.batch.len() == 4096 {
                self.fold();
            }
        }
        self.fold();
        let mut profile = self.collector.cut().iter().next().cloned()?;
        // The writer would do it, and a profile without a bound can take megabytes.
        profile.limit_rows(plumb_history::Settings::default().open_rows_max);
        let mut senders = Senders::default();
        for (command, share) in profile.top.most(usize::MAX) {
            let known = self
                .mix
                .senders
                .iter()
                .find(|sender| sender.command == command);
            senders.add(known.cloned().unwrap_or_default(), share);
        }
        Some((profile, senders))
    }

    fn fold(&mut self) {
        self.batch.names = self.names.clone();
        self.collector.fold(&self.batch);
        self.batch.clear();
    }

    fn event(&mut self) -> Event {
        let (mix, rng) = (self.mix, &mut self.rng);
        let time_ns = self.next_ns;
        // Nights have a fifth of the load of the busiest hour.
        let hour = (time_ns / HOUR % 24) as u64;
        let rate = mix.rate * (40 + 10 * hour.min(24 - hour)) / 100;
        self.next_ns += 1 + rng.below((2_000_000_000_000 / rate).max(1)) as i64;
        let op = match rng.below(200) {
            0 => Op::Flush,
            1 => Op::Discard,
            draw if draw / 2 < mix.reads_percent => Op::Read,
            _ => Op::Write,
        };
        let len = mix.lengths[rng.below(mix.lengths.len() as u64) as usize];
        let first = mix.partitions.first().map_or(0, |first| first / 512);
        let space = (DEVICE_BYTES / 512 - first) / mix.step - 4096;
        let start = if rng.percent(mix.streams_percent) {
            let stream = rng.below(4) as usize;
            let start = self.streams[stream];
            // A stream of 64 MiB begins again elsewhere.
            self.streams[stream] = match rng.below(131_072 / len.max(8)) {
                0 => first + rng.below(space) * mix.step,
                _ => start + len,
            };
            start
        } else {
            let space = if rng.percent(mix.hot_percent) {
                space / 64
            } else {
                space
            };
            first + rng.below(space) * mix.step
        };
        let mut event = match op {
            Op::Flush => Event::new(time_ns, self.device, Layer::Request, op, 0, 0),
            _ => Event::new(
                time_ns,
                self.device,
                Layer::Request,
                op,
                start * 512,
                len * 512,
            ),
        };
        // Half of the latencies are up to 2.5 times the usual one, and one of 50 is far longer.
        let usual = mix.device_ns / 2 + rng.below(mix.device_ns) + mix.device_ns * rng.below(3) / 2;
        let long = if rng.below(50) == 0 {
            rng.between(4, 64)
        } else {
            1
        };
        event.device_ns = Some((usual * long) as i64);
        event.queue_ns = Some(rng.below(20_000) as i64);
        let sender = rng.below(self.commands.len() as u64).min(rng.below(12));
        event.comm = self.commands[sender as usize];
        event
    }
}
