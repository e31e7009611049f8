//! The block layers, I/O by I/O: loads the recording programs, and reads completed I/O from their ring buffer.
//!
//! A record wakes no reader: the recorder polls at intervals of some milliseconds. Records come in the order of
//! completion and are passed on in that of issue, see [`held`].

pub(crate) mod abi;
mod answers;
mod batches;
mod held;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aya::maps::{Array, MapData, RingBuf};
use aya::{Btf, Ebpf};
use plumb_geometry::SmallSort;
use plumb_model::result::record::DiskTally;
use plumb_profile::answers::Answers;
use plumb_trace::{Layer, Op};

use crate::block::Layers;
use crate::clock;
use crate::error::CaptureError;
use crate::kernel::Types;
use crate::layer::Attachment;
use crate::program::{Attached, Object, attach_one, cheapest, mix, shared, skipped_calls};
use crate::sender_names::SenderNames;
use crate::shared::Shared;
use crate::silence::{Named, Silences};
use crate::sizes::BIO_FLIGHTS;
pub use abi::Record;
use answers::KeptIos;
pub use batches::Batches;
use held::Held;

static RECORDS: Object = Object {
    reading_in_place: include_bytes!(concat!(env!("OUT_DIR"), "/record.o.zst")),
    copying: include_bytes!(concat!(env!("OUT_DIR"), "/record_copying.o.zst")),
};

/// Most processes that a recording can be limited to.
pub const PIDS_MAX: usize = abi::PIDS;

/// Requests in flight: 8 MiB, more than the tags of 64 queues.
const OPENS: usize = 1 << 16;
/// Bios between being sent and their request's issue: 4 MiB.
const ORIGINS: usize = 1 << 16;
const TALLIES_MIN: usize = 16;
const TALLIES_MAX: usize = 1 << 12;

/// Time between two looks at I/O in flight: each reads 8 MiB.
const LOOK_NS: u64 = 100_000_000;
/// A program reads the clock before it makes its I/O visible; a virtual processor may be taken away in between.
const SLACK_NS: u64 = 50_000_000;
/// I/O that have been in flight for longer hold nobody back.
const HANGING_NS: u64 = 5_000_000_000;
/// A program that was running when it was detached comes to its end within this.
const DETACHED: Duration = Duration::from_millis(2);

/// The parameters of a recording.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Numbers of the disks; all when empty.
    pub devices: Vec<u32>,
    /// Operations; all when empty.
    pub ops: Vec<Op>,
    /// At which layer a disk is recorded.
    pub layers: Layers,
    /// Processes, at most [`PIDS_MAX`]; all when empty.
    pub pids: Vec<u32>,
    /// Size of the ring buffer: a power of two, pages at least.
    pub ring_bytes: u32,
    /// How to attach; the cheapest way that the kernel takes when `None`.
    pub attach: Option<Attached>,
}

impl Default for RecordOptions {
    /// All disks, each at the layer that its driver works at, with a buffer of 16 MiB, everything.
    fn default() -> RecordOptions {
        RecordOptions {
            devices: Vec::new(),
            ops: Vec::new(),
            layers: Layers::default(),
            pids: Vec::new(),
            ring_bytes: 16 << 20,
            attach: None,
        }
    }
}

/// The programs at work.
pub struct Recorder {
    /// Keeps programs; `None` once they are detached.
    programs: Option<Ebpf>,
    attached: Attached,
    layers: Vec<Layer>,
    ring: RingBuf<MapData>,
    /// Requests in flight, then bios.
    opens: [Shared<abi::Open>; 2],
    tallies: Shared<abi::KernelTally>,
    unlisted: Shared<AtomicU64>,
    held: Held,
    looked_ns: u64,
    /// Everything issued before this has completed, and its record was in the ring buffer when that was found.
    settled_ns: Option<u64>,
    open_at_end: u64,
    /// Of programs that are detached.
    skipped_calls: u64,
    silences: Silences,
    kept: KeptIos,
    names: SenderNames,
    options: RecordOptions,
}

/// How a disk answered until the end of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskAnswers {
    /// The disk.
    pub device: String,
    /// Layer at which it was recorded.
    pub layer: Layer,
    /// Its answers.
    pub answers: Answers,
}

impl Recorder {
    /// Loads the programs and attaches them; from then on everything is recorded.
    ///
    /// # Errors
    /// Without the capabilities, or when the kernel does not take the programs.
    pub fn attach(options: &RecordOptions) -> Result<Recorder, CaptureError> {
        let layers = [Layer::Bio, Layer::Request];
        let layers: Vec<Layer> = layers
            .into_iter()
            .filter(|layer| options.layers.need(*layer, &options.devices))
            .collect();
        let places = places(&layers, &Types::of_kernel()?)?;
        let btf = Btf::from_sys_fs().map_err(|error| CaptureError::Types(error.to_string()))?;
        cheapest(options.attach, |attached| {
            Recorder::attach_as(attached, &layers, &places, &btf, options)
        })
    }

    fn attach_as(
        attached: Attached,
        layers: &[Layer],
        places: &[Attachment],
        btf: &Btf,
        options: &RecordOptions,
    ) -> Result<Recorder, CaptureError> {
        let mut programs = load(attached, btf, layers, options)?;
        let ring = programs
            .take_map("ring")
            .ok_or_else(|| failed("ring", "it is not in the object"))
            .and_then(|map| RingBuf::try_from(map).map_err(|error| failed("ring", error)))?;
        let recorder = Recorder {
            ring,
            opens: [shared(&programs, "opens")?, shared(&programs, "open_bios")?],
            tallies: shared(&programs, "tallies")?,
            unlisted: shared(&programs, "unlisted")?,
            attached,
            layers: layers.to_vec(),
            held: Held::default(),
            looked_ns: 0,
            settled_ns: None,
            open_at_end: 0,
            skipped_calls: 0,
            silences: Silences::new(options.layers),
            kept: KeptIos::default(),
            names: SenderNames::new(false),
            options: options.clone(),
            programs: None,
        };
        for (program, tracepoint) in places {
            attach_one(&mut programs, attached, program, tracepoint, btf)?;
        }
        Ok(Recorder {
            programs: Some(programs),
            ..recorder
        })
    }

    /// How the programs are attached.
    #[must_use]
    pub fn attached(&self) -> Attached {
        self.attached
    }

    /// The layers at which disks are recorded, highest first.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The clock of the records now, in ns.
    #[must_use]
    pub fn now_ns() -> u64 {
        clock::now_ns()
    }

    /// Reads completed I/O. If `ready` is empty, it gets all I/O that nothing older can precede, in the order of issue.
    pub fn read(&mut self, ready: &mut Vec<Record>) {
        self.silences.keep_up();
        let is_drained = self.drain();
        let now = Recorder::now_ns();
        if ready.is_empty() && (self.held.room() == 0 || (is_drained && self.settled_ns.is_some()))
        {
            let settled_ns = if is_drained {
                self.settled_ns.take()
            } else {
                self.settled_ns
            };
            self.held.release(settled_ns.unwrap_or(0), ready);
        }
        if self.settled_ns.is_none() && now.saturating_sub(self.looked_ns) >= LOOK_NS {
            self.looked_ns = now;
            self.settled_ns = Some(self.oldest_open(now));
        }
    }

    /// Detaches the programs and passes on everything left, including I/O in flight. Returns how each disk answered.
    pub fn finish(&mut self, ready: &mut Vec<Record>) -> Vec<DiskAnswers> {
        let now_ns = Recorder::now_ns();
        if let Some(programs) = self.programs.take() {
            self.skipped_calls = skipped_calls(&programs);
            drop(programs);
            std::thread::sleep(DETACHED);
        }
        while !self.drain() {
            self.held.release(0, ready);
        }
        let opens = self.opens.iter().flat_map(|opens| opens.iter());
        let open: Vec<Record> = opens.filter_map(abi::Open::record).collect();
        self.open_at_end = open.len() as u64;
        open.iter().for_each(|record| self.kept.add(record));
        let answers = self.answers(&open, now_ns);
        open.into_iter().for_each(|record| self.held.push(record));
        self.held.release(u64::MAX, ready);
        answers
    }

    /// How each disk answered, with the times in which it was silent. They are those of all I/O, so that a recording of some I/O has none.
    fn answers(&mut self, open: &[Record], now_ns: u64) -> Vec<DiskAnswers> {
        let silences = self.silences.read(&self.options.devices);
        let idle_at_ns = |named: &Named| {
            let of_disk = silences.iter().find(|(one, _)| one == named);
            of_disk.map_or(0, |(_, silence)| silence.idle_at_ns)
        };
        let mut all = self.kept.answers(open, idle_at_ns, now_ns, &mut self.names);
        if self.options.ops.is_empty() && self.options.pids.is_empty() {
            for (named, silence) in silences {
                match all.iter_mut().find(|(one, _)| *one == named) {
                    Some((_, answers)) => silence.add_to(answers),
                    None => {
                        let mut answers = Answers::default();
                        silence.add_to(&mut answers);
                        // A disk that went may be there again under its name: its end is the later one.
                        let at = if silence.in_flight > 0 { all.len() } else { 0 };
                        all.insert(at, (named, answers));
                    }
                }
            }
        }
        let named = all.into_iter().map(|(named, answers)| DiskAnswers {
            device: named.name,
            layer: named.layer,
            answers,
        });
        named.collect()
    }

    /// Takes records out of the ring buffer; whether none was left there, for it stops where there is no room for more.
    fn drain(&mut self) -> bool {
        for _ in 0..self.held.room() {
            let Some(bytes) = self.ring.next() else {
                return true;
            };
            if let Some(record) = Record::decode(&bytes) {
                self.kept.add(&record);
                self.held.push(record);
            }
        }
        false
    }

    /// When the oldest I/O in flight was issued, short of now by the slack.
    fn oldest_open(&self, now: u64) -> u64 {
        let hanging = now.saturating_sub(HANGING_NS);
        let opens = self.opens.iter().flat_map(|opens| opens.iter());
        let open = opens
            .filter_map(abi::Open::issued_ns)
            .filter(|&issued| issued >= hanging);
        open.min()
            .unwrap_or(u64::MAX)
            .min(now.saturating_sub(SLACK_NS))
    }

    /// The counts of each disk's I/O.
    #[must_use]
    pub fn tallies(&self) -> Vec<DiskTally> {
        let now = |word: &AtomicU64| word.load(Ordering::Acquire);
        let tallies = self
            .tallies
            .iter()
            .filter(|tally| now(&tally.sent) + now(&tally.unmatched_completions) > 0);
        let layer = |tally: &abi::KernelTally| match tally.is_by_bios.load(Ordering::Acquire) {
            0 => Layer::Request,
            _ => Layer::Bio,
        };
        let mut tallies: Vec<DiskTally> = tallies
            .map(|tally| DiskTally {
                device: self
                    .kept
                    .name_of(tally.dev.load(Ordering::Acquire), layer(tally)),
                layer: layer(tally),
                // Read before the total, so that no more are lost than were sent.
                lost: now(&tally.lost),
                requeues: now(&tally.requeues),
                partial_completions: now(&tally.partial_completions),
                unmatched_issues: now(&tally.unmatched_issues),
                unmatched_completions: now(&tally.unmatched_completions),
                unknown_senders: now(&tally.unknown_senders),
                unseen_failures: std::array::from_fn(|op| now(&tally.unseen_failures[op])),
                sent: now(&tally.sent),
            })
            .collect();
        tallies.small_sort_by(|one, other| one.device.cmp(&other.device));
        tallies
    }

    /// I/O lost so far, of all disks.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.tallies
            .iter()
            .map(|tally| tally.lost.load(Ordering::Acquire))
            .sum()
    }

    /// I/O of disks for which there was no room.
    #[must_use]
    pub fn unlisted(&self) -> u64 {
        self.unlisted[0].load(Ordering::Acquire)
    }

    /// Calls of the programs that the kernel skipped: each may hide an I/O or its latency.
    #[must_use]
    pub fn skipped_calls(&self) -> u64 {
        self.programs
            .as_ref()
            .map_or(self.skipped_calls, skipped_calls)
    }

    /// Records that were handed on after one that was issued later.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.held.late()
    }

    /// I/O that were in flight when the recording ended.
    #[must_use]
    pub fn open_at_end(&self) -> u64 {
        self.open_at_end
    }
}

fn failed(map: &'static str, reason: impl ToString) -> CaptureError {
    CaptureError::Map {
        map,
        reason: reason.to_string(),
    }
}

/// The programs that are needed, in the order in which they are attached: the completions first, so that an I/O that was seen to
/// begin is seen to end.
fn places(layers: &[Layer], types: &Types) -> Result<Vec<Attachment>, CaptureError> {
    let (of_bios, of_requests) = (
        layers.contains(&Layer::Bio),
        layers.contains(&Layer::Request),
    );
    types.check_bio_tracepoints(of_bios)?;
    let mut places = Vec::new();
    if of_requests {
        places.push(("complete_request", "block_rq_complete"));
    }
    if of_bios {
        places.extend([
            ("end_request_bios", "block_rq_complete"),
            ("end_bio", "block_bio_complete"),
        ]);
    }
    places.push(("queue_bio", "block_bio_queue"));
    if of_requests {
        places.extend([
            ("split_bio", "block_split"),
            (types.issue_program()?, "block_rq_issue"),
        ]);
    }
    Ok(places)
}

fn load(
    attached: Attached,
    btf: &Btf,
    layers: &[Layer],
    options: &RecordOptions,
) -> Result<Ebpf, CaptureError> {
    let disks = std::fs::read_dir("/sys/block").map_or(0, Iterator::count);
    // Twice as many as exist, so that later disks and hash collisions find room.
    let tallies = (2 * disks)
        .next_power_of_two()
        .clamp(TALLIES_MIN, TALLIES_MAX);
    let ops = options
        .ops
        .iter()
        .fold(0, |ops, op| ops | 1u32 << *op as u32);
    let of_bios = layers.contains(&Layer::Bio);
    let bios = if of_bios {
        BIO_FLIGHTS
    } else {
        crate::abi::BIOS
    };
    let mask = |entries: usize| entries as u32 - 1;
    let constants = [
        ("open_mask", mask(OPENS)),
        ("origin_mask", mask(ORIGINS)),
        ("tally_mask", mask(tallies)),
        ("bio_mask", mask(bios)),
        ("bios_mask", mask(bios / crate::abi::BIOS)),
        ("records_bios", u32::from(of_bios)),
        (
            "every_device",
            u32::from(options.layers.is_every_device_at(Layer::Bio)),
        ),
        ("only_wanted", u32::from(!options.devices.is_empty())),
        (
            "ops",
            if options.ops.is_empty() {
                u32::MAX
            } else {
                ops
            },
        ),
        ("pids", options.pids.len() as u32),
    ];
    let entries = [
        ("opens", OPENS),
        ("open_bios", bios),
        ("bios", bios / crate::abi::BIOS),
        ("origins", ORIGINS),
        ("tallies", tallies),
        ("wanted_pids", abi::PIDS),
        ("ring", options.ring_bytes as usize),
    ];
    let mut programs = RECORDS.load(attached, btf, &constants, None, &entries)?;
    options
        .devices
        .iter()
        .try_for_each(|device| want(&mut programs, *device, tallies))?;
    let mut pids = array::<u32>(&mut programs, "wanted_pids")?;
    for (index, pid) in (0..).zip(options.pids.iter().take(PIDS_MAX)) {
        pids.set(index, pid, 0)
            .map_err(|error| failed("wanted_pids", error))?;
    }
    Ok(programs)
}

fn array<'a, T: aya::Pod>(
    programs: &'a mut Ebpf,
    name: &'static str,
) -> Result<Array<&'a mut MapData, T>, CaptureError> {
    let map = programs
        .map_mut(name)
        .ok_or_else(|| failed(name, "it is not in the object"))?;
    map.try_into()
        .map_err(|error: aya::maps::MapError| failed(name, error))
}

/// Makes room for a disk before anything is recorded, where the programs look for it.
fn want(programs: &mut Ebpf, dev: u32, entries: usize) -> Result<(), CaptureError> {
    let mut tallies = array::<[u32; abi::TALLY_BYTES / 4]>(programs, "tallies")?;
    let from = mix(u64::from(dev)) as usize;
    for probe in 0..crate::abi::PROBES {
        let index = ((from + probe) & (entries - 1)) as u32;
        let mut entry = tallies
            .get(&index, 0)
            .map_err(|error| failed("tallies", error))?;
        if entry[0] == 0 || entry[0] == dev {
            entry[0] = dev;
            return tallies
                .set(index, entry, 0)
                .map_err(|error| failed("tallies", error));
        }
    }
    Err(failed(
        "tallies",
        format!("no room for device {dev:#x} beside {entries} others"),
    ))
}
