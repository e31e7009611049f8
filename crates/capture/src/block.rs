//! The request layer: loads the programs that sum requests up, and maps what they count.

use std::sync::atomic::AtomicU64;

use aya::maps::{Map, MapData};
use aya::programs::{BtfTracePoint, ProgramError, RawTracePoint};
use aya::{Btf, Ebpf, EbpfError, EbpfLoader, VerifierLogLevel};

use crate::abi;
use crate::difference::{Reading, Readings};
use crate::error::CaptureError;
use crate::kernel::Types;
use crate::shared::Shared;

static READING_IN_PLACE: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/block.o"));
static COPYING: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/block_copying.o"));

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
const STREAMS: usize = 1 << 16;
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

/// How the programs are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    /// At tracepoints whose types the kernel knows; fields are read in place.
    TypedTracepoints,
    /// At raw tracepoints; fields are copied out.
    RawTracepoints,
}

impl Attached {
    /// As it is told to the user.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Attached::TypedTracepoints => "typed tracepoints",
            Attached::RawTracepoints => "raw tracepoints",
        }
    }
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
        let attach = |attached| Block::attach_as(attached, issue, &btf, options);
        match options.attach {
            Some(attached) => attach(attached),
            None => match attach(Attached::TypedTracepoints) {
                Err(CaptureError::Refused { .. }) => attach(Attached::RawTracepoints),
                done => done,
            },
        }
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
    let object = match attached {
        Attached::TypedTracepoints => READING_IN_PLACE,
        Attached::RawTracepoints => COPYING,
    };
    let Sizes { lanes, rows, devices } = sizes;
    let number = |value: usize| value as u32;
    let only_wanted = u32::from(!options.devices.is_empty());
    let modulus_sectors = (options.modulus_bytes / 512) as u32;
    let globals = [
        ("modulus_sectors", modulus_sectors),
        ("lane_mask", number(lanes - 1)),
        ("row_mask", number(rows - 1)),
        ("row_shift", rows.trailing_zeros()),
        ("device_mask", number(devices - 1)),
        ("place_mask", number(PLACES - 1)),
        ("flight_mask", number(FLIGHTS - 1)),
        ("stream_mask", number(STREAMS - 1)),
        ("sender_mask", number(SENDERS - 1)),
        ("process_mask", number(PROCESSES - 1)),
        ("only_wanted", only_wanted),
    ];
    let mut loader = EbpfLoader::new();
    loader.btf(Some(btf)).verifier_log_level(VerifierLogLevel::DEBUG);
    for (name, value) in &globals {
        loader.override_global(name, value, true);
    }
    loader
        .map_max_entries("rows", number(lanes * rows))
        .map_max_entries("counts", number(lanes * devices * abi::HISTOGRAMS * abi::BUCKETS))
        .map_max_entries("devices", number(devices))
        .map_max_entries("places", number(PLACES))
        .map_max_entries("flights", number(FLIGHTS))
        .map_max_entries("streams", number(STREAMS))
        .map_max_entries("senders", number(SENDERS))
        .map_max_entries("processes", number(PROCESSES));
    loader.load(object).map_err(|error| refused_map(&error))
}

/// The capability is missing as soon as the first map is made.
fn refused_map(error: &EbpfError) -> CaptureError {
    let reason = chain(error);
    if is_permission(error) { CaptureError::NotPermitted } else { CaptureError::Map { map: "all", reason } }
}

fn is_permission(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::PermissionDenied) {
            return true;
        }
        next = error.source();
    }
    false
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        words += &format!(": {error}");
        next = error.source();
    }
    words
}

fn attach_one(
    programs: &mut Ebpf,
    attached: Attached,
    name: &'static str,
    tracepoint: &str,
    btf: &Btf,
) -> Result<(), CaptureError> {
    let missing = || CaptureError::Refused { program: name, reason: "it is not in the object".to_owned() };
    let program = programs.program_mut(name).ok_or_else(missing)?;
    let done = match attached {
        Attached::TypedTracepoints => {
            let program: Result<&mut BtfTracePoint, ProgramError> = program.try_into();
            program.and_then(|program| {
                program.load(tracepoint, btf)?;
                program.attach().map(|_| ())
            })
        }
        Attached::RawTracepoints => {
            let program: Result<&mut RawTracePoint, ProgramError> = program.try_into();
            program.and_then(|program| {
                program.load()?;
                program.attach(tracepoint).map(|_| ())
            })
        }
    };
    done.map_err(|error| refused(name, &error))
}

fn refused(program: &'static str, error: &ProgramError) -> CaptureError {
    if let ProgramError::LoadError { io_error, verifier_log } = error {
        let log = verifier_log.to_string();
        let mut lines: Vec<&str> = log.lines().rev().filter(|line| !line.is_empty()).take(6).collect();
        lines.reverse();
        // A verifier that refuses a program says why; a missing capability leaves no word.
        if io_error.kind() == std::io::ErrorKind::PermissionDenied && lines.is_empty() {
            return CaptureError::NotPermitted;
        }
        return CaptureError::Refused { program, reason: format!("{io_error}\n{}", lines.join("\n")) };
    }
    if is_permission(error) {
        return CaptureError::NotPermitted;
    }
    CaptureError::Refused { program, reason: chain(error) }
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

fn shared<T: crate::shared::Words>(programs: &Ebpf, name: &'static str) -> Result<Shared<T>, CaptureError> {
    let map: Option<&MapData> = match programs.map(name) {
        Some(Map::Array(map)) => Some(map),
        _ => None,
    };
    let map =
        map.ok_or_else(|| CaptureError::Map { map: name, reason: "found no array of that name".to_owned() })?;
    Shared::map(name, map)
}
