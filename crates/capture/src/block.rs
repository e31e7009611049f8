//! The request layer: loads the programs that sum requests up, and maps what they count.

use std::sync::atomic::AtomicU64;

use aya::{Btf, Ebpf};

use crate::abi;
use crate::difference::{Reading, Readings};
use crate::error::CaptureError;
use crate::kernel::Types;
use crate::program::{Attached, Object, attach_one, cheapest, shared};
use crate::shared::Shared;

static REQUESTS: Object = Object {
    reading_in_place: aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/request.o")),
    copying: aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/request_copying.o")),
};

/// CPUs that have a lane of counters of their own; more share them.
const LANES_MAX: usize = 16;
/// Rows of all lanes together: 16 MiB.
const ROWS_MAX: usize = 1 << 18;
/// Rows of a lane: 2 MiB.
const ROWS_OF_LANE_MAX: usize = 1 << 15;
/// Lanes of a device have 74 KiB of histograms each: 37 MiB at most, more only where there are more devices.
const LANE_DEVICES_MAX: usize = 512;
const DEVICES_MIN: usize = 16;
/// Room for disks and partitions, bound by the field of a row's key.
const PLACES: usize = 1 << abi::KEY_PLACE_BITS;
const FLIGHTS: usize = 1 << 16;
/// Sets of four ends of I/O: 128 KiB, of which one busy disk fills an eighth.
const STREAMS: usize = 1 << 11;
const SENDERS: usize = 1 << 14;
const PROCESSES: usize = 1 << 12;

/// What is to be watched, and how it is counted.
#[derive(Clone, Debug)]
pub struct Options {
    /// Numbers of the disks; all when empty.
    pub devices: Vec<u32>,
    /// M of the residue tables, in bytes.
    pub modulus_bytes: u64,
    /// How to attach; the cheapest way that the kernel takes when `None`.
    pub attach: Option<Attached>,
}

/// The programs at work. They are detached when it is dropped.
pub struct Block {
    /// Keeps programs and maps.
    _programs: Ebpf,
    attached: Attached,
    readings: Readings,
}

/// What the programs count into.
pub(crate) struct Counters {
    pub(crate) rows: Shared<abi::Row>,
    pub(crate) counts: Shared<AtomicU64>,
    pub(crate) devices: Shared<abi::Device>,
    pub(crate) places: Shared<abi::Place>,
    pub(crate) processes: Shared<abi::Process>,
    pub(crate) totals: Shared<abi::Totals>,
    pub(crate) lanes: usize,
}

/// Sizes of the maps; each is a power of two, so that a mask keeps an index within.
#[derive(Clone, Copy)]
struct Sizes {
    lanes: usize,
    rows: usize,
    devices: usize,
}

impl Sizes {
    fn of_host(disks: usize) -> Sizes {
        let cpus = aya::util::nr_cpus().unwrap_or(1).max(1);
        // Twice as many as there are, so that what is plugged in later and what hashes alike find room.
        let devices = (2 * disks).next_power_of_two().clamp(DEVICES_MIN, PLACES / 2);
        let lanes = cpus.next_power_of_two().min(LANES_MAX).min((LANE_DEVICES_MAX / devices).max(1));
        Sizes { lanes, rows: (ROWS_MAX / lanes).min(ROWS_OF_LANE_MAX), devices }
    }
}

impl Block {
    /// Loads the programs and attaches them; from then on everything counts.
    ///
    /// # Errors
    /// Without the capabilities, or when the kernel does not take the programs.
    pub fn attach(options: &Options) -> Result<Block, CaptureError> {
        let types = Types::of_kernel()?;
        let issue = match types.tracepoint_arguments("block_rq_issue") {
            Some(1) => "issue_request",
            Some(2) => "issue_queue_request",
            found => {
                let what = format!("tracepoint block_rq_issue with {found:?} arguments, expected 1 or 2");
                return Err(CaptureError::Types(what));
            }
        };
        drop(types);
        let btf = Btf::from_sys_fs().map_err(|error| CaptureError::Types(error.to_string()))?;
        cheapest(options.attach, |attached| Block::attach_as(attached, issue, &btf, options))
    }

    fn attach_as(
        attached: Attached,
        issue: &'static str,
        btf: &Btf,
        options: &Options,
    ) -> Result<Block, CaptureError> {
        let sizes = Sizes::of_host(std::fs::read_dir("/sys/block").map_or(0, Iterator::count));
        let mut programs = load(attached, btf, sizes, options)?;
        let modulus_bytes = options.modulus_bytes;
        for device in &options.devices {
            want(&mut programs, *device, sizes)?;
        }
        let counters = Counters::of(&programs, sizes.lanes)?;
        // The completions first: an I/O that was seen to begin is to be seen to end.
        let all = [
            ("complete_request", "block_rq_complete"),
            ("queue_bio", "block_bio_queue"),
            (issue, "block_rq_issue"),
        ];
        for (program, tracepoint) in all {
            attach_one(&mut programs, attached, program, tracepoint, btf)?;
        }
        Ok(Block { _programs: programs, attached, readings: Readings::new(counters, modulus_bytes) })
    }

    /// How the programs are attached.
    #[must_use]
    pub fn attached(&self) -> Attached {
        self.attached
    }

    /// What happened since this was last asked.
    pub fn read(&mut self) -> Reading {
        self.readings.next()
    }
}

fn load(attached: Attached, btf: &Btf, sizes: Sizes, options: &Options) -> Result<Ebpf, CaptureError> {
    let Sizes { lanes, rows, devices } = sizes;
    let mask = |entries: usize| entries as u32 - 1;
    let constants = [
        ("modulus_sectors", (options.modulus_bytes / 512) as u32),
        ("lane_mask", mask(lanes)),
        ("lanes_shared", u32::from(aya::util::nr_cpus().unwrap_or(usize::MAX) > lanes)),
        ("row_mask", mask(rows)),
        ("row_shift", rows.trailing_zeros()),
        ("device_mask", mask(devices)),
        ("place_mask", mask(PLACES)),
        ("flight_mask", mask(FLIGHTS)),
        ("stream_mask", mask(STREAMS)),
        ("sender_mask", mask(SENDERS)),
        ("process_mask", mask(PROCESSES)),
        ("only_wanted", u32::from(!options.devices.is_empty())),
    ];
    let entries = [
        ("rows", lanes * rows),
        ("counts", lanes * devices * abi::HISTOGRAMS * abi::BUCKETS),
        ("devices", devices),
        ("places", PLACES),
        ("flights", FLIGHTS),
        ("streams", STREAMS),
        ("senders", SENDERS),
        ("processes", PROCESSES),
    ];
    REQUESTS.load(attached, btf, &constants, &entries)
}

/// As the programs mix what they look up.
fn mix(value: u64) -> u32 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let once = value.wrapping_mul(GOLDEN);
    ((once ^ once >> 32).wrapping_mul(GOLDEN) >> 32) as u32
}

/// Makes room for a disk before anything counts, where the programs look for it.
fn want(programs: &mut Ebpf, dev: u32, sizes: Sizes) -> Result<(), CaptureError> {
    let failed = |reason: String| CaptureError::Map { map: "devices", reason };
    let map = programs.map_mut("devices").ok_or_else(|| failed("it is not in the object".to_owned()))?;
    let mut devices: aya::maps::Array<_, [u32; abi::DEVICE_BYTES / 4]> =
        map.try_into().map_err(|error: aya::maps::MapError| failed(error.to_string()))?;
    let from = mix(u64::from(dev)) as usize;
    for probe in 0..abi::PROBES {
        let index = ((from + probe) & (sizes.devices - 1)) as u32;
        let mut entry = devices.get(&index, 0).map_err(|error| failed(error.to_string()))?;
        if entry[0] == 0 || entry[0] == dev {
            let bits = 64 - crate::name_of(dev).size_bytes.saturating_sub(1).leading_zeros();
            (entry[0], entry[2]) = (dev, bits.saturating_sub(6).max(20));
            return devices.set(index, entry, 0).map_err(|error| failed(error.to_string()));
        }
    }
    Err(failed(format!("no room for device {dev:#x} beside {} others", sizes.devices)))
}

impl Counters {
    fn of(programs: &Ebpf, lanes: usize) -> Result<Counters, CaptureError> {
        Ok(Counters {
            rows: shared(programs, "rows")?,
            counts: shared(programs, "counts")?,
            devices: shared(programs, "devices")?,
            places: shared(programs, "places")?,
            processes: shared(programs, "processes")?,
            totals: shared(programs, "totals")?,
            lanes,
        })
    }
}
