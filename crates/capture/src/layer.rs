//! One layer: loads the programs that count its I/O, and maps their counters.

use std::sync::atomic::AtomicU64;

use aya::{Btf, Ebpf};
use plumb_profile::SingleIo;
use plumb_trace::Layer;

use crate::abi;
use crate::block::{Options, OwnReads};
use crate::devices::have_heads_of_paths;
use crate::difference::Readings;
use crate::error::CaptureError;
use crate::filter::Words;
use crate::kernel::Types;
use crate::program::{Attached, Object, attach_one, mix, shared, skipped_calls, writable};
use crate::reading::Reading;
use crate::sender_names::{SenderNames, numbers_are_those_of_the_host};
use crate::shared::Shared;

static REQUESTS: Object = Object {
    reading_in_place: include_bytes!(concat!(env!("OUT_DIR"), "/request.o.zst")),
    copying: include_bytes!(concat!(env!("OUT_DIR"), "/request_copying.o.zst")),
};

static BIOS: Object = Object {
    reading_in_place: include_bytes!(concat!(env!("OUT_DIR"), "/bio.o.zst")),
    copying: include_bytes!(concat!(env!("OUT_DIR"), "/bio_copying.o.zst")),
};

/// CPUs that have a lane of counters of their own; more share them.
const LANES_MAX: usize = 16;
/// Rows of all lanes together: 16 MiB.
const ROWS_MAX: usize = 1 << 18;
/// Rows of a lane: 2 MiB.
const ROWS_OF_LANE_MAX: usize = 1 << 15;
/// Lanes of a device have 79 KiB of histograms each: 40 MiB at most, more only with more devices.
const LANE_DEVICES_MAX: usize = 512;
/// All starts of a disk modulo 1 MiB, by operation, stream and eight powers of two of length: 4 MiB.
const COARSE_ROWS: usize = 1 << 16;
const DEVICES_MIN: usize = 16;
/// Room for disks and partitions, bound by the field of a row's key.
const PLACES: usize = 1 << abi::KEY_PLACE_BITS;
const REQUEST_FLIGHTS: usize = 1 << 16;
/// Fewer: devices without requests are few, and a bio has a choice of places.
pub(crate) const BIO_FLIGHTS: usize = 1 << 15;
/// Sets of four ends of I/O: 128 KiB; one busy disk fills an eighth.
const STREAMS: usize = 1 << 11;
const SENDERS: usize = 1 << 14;
const PROCESSES: usize = 1 << 12;
/// Notes, one for each MiB of a file that has dirty pages: 2 MiB of memory.
const DIRTIERS: usize = 1 << 15;
const THREADS: usize = 1 << 16;

/// The programs of a layer at work. They are detached when it is dropped.
pub(crate) struct WatchedLayer {
    /// Keeps programs and maps.
    programs: Ebpf,
    readings: Readings,
    /// Up to the last reading.
    skipped_calls: u64,
}

/// The counters of the programs.
pub(crate) struct BlockCounters {
    pub(crate) rows: Shared<abi::KernelRow>,
    /// Those of I/O that found no row of their own.
    pub(crate) coarse_rows: Shared<abi::KernelRow>,
    pub(crate) counts: Shared<AtomicU64>,
    pub(crate) devices: Shared<abi::KernelDevice>,
    pub(crate) places: Shared<abi::KernelPlace>,
    pub(crate) processes: Shared<abi::Process>,
    pub(crate) threads: Shared<abi::Thread>,
    /// Of each lane as many as there are processes.
    pub(crate) sent: Shared<abi::Sent>,
    /// Of each device the slowest, then the first that failed.
    pub(crate) kept: Shared<abi::Kept>,
    pub(crate) flights: Shared<abi::Flight>,
    pub(crate) totals: Shared<abi::Totals>,
    pub(crate) lanes: usize,
}

/// Sizes of the maps; each is a power of two, so that a mask keeps an index within.
#[derive(Clone, Copy)]
struct Sizes {
    lanes: usize,
    rows: usize,
    devices: usize,
    flights: usize,
}

impl Sizes {
    fn for_disks(layer: Layer, disks: usize) -> Sizes {
        let cpus = aya::util::nr_cpus().unwrap_or(1).max(1);
        // Twice as many as exist, so that later disks and hash collisions find room.
        let devices = (2 * disks)
            .next_power_of_two()
            .clamp(DEVICES_MIN, PLACES / 2);
        let lanes = cpus
            .next_power_of_two()
            .min(LANES_MAX)
            .min((LANE_DEVICES_MAX / devices).max(1));
        let flights = if layer == Layer::Bio {
            BIO_FLIGHTS
        } else {
            REQUEST_FLIGHTS
        };
        Sizes {
            lanes,
            rows: (ROWS_MAX / lanes).min(ROWS_OF_LANE_MAX),
            devices,
            flights,
        }
    }
}

/// A program and the tracepoint that it is for.
pub(crate) type Attachment = (&'static str, &'static str);

/// The programs of a layer, in the order in which they are attached: the completions first, so that an I/O that was seen to
/// begin is seen to end.
pub(crate) fn places(
    layer: Layer,
    options: &Options,
    types: &Types,
) -> Result<Vec<Attachment>, CaptureError> {
    types.check_bio_tracepoints(layer == Layer::Bio)?;
    if layer == Layer::Bio {
        let mut places = vec![
            ("end_bio", "block_bio_complete"),
            ("split_bio", "block_split"),
        ];
        // Of bios that a path of NVMe put together to one request, the driver tells the end of the first alone.
        if options.layers.is_every_device_at(Layer::Bio) || have_heads_of_paths(&options.devices) {
            places.push(("end_request_bios", "block_rq_complete"));
        }
        places.push(("begin_bio", "block_bio_queue"));
        return Ok(places);
    }
    let issue = types.issue_program()?;
    Ok(vec![
        ("complete_request", "block_rq_complete"),
        ("split_bio", "block_split"),
        ("queue_bio", "block_bio_queue"),
        (issue, "block_rq_issue"),
    ])
}

/// The parameters for loading a layer's programs.
pub(crate) struct Wanted<'a> {
    pub(crate) layer: Layer,
    /// Numbers of the disks; all when empty.
    pub(crate) devices: &'a [u32],
    /// How many there may be.
    pub(crate) disks: usize,
    pub(crate) only: Words,
    /// The program that sees pages become dirty, if the kernel has its tracepoint.
    pub(crate) dirty: Option<Attachment>,
}

impl WatchedLayer {
    pub(crate) fn attach(
        wanted: &Wanted<'_>,
        attached: Attached,
        places: &[Attachment],
        btf: &Btf,
        options: &Options,
    ) -> Result<WatchedLayer, CaptureError> {
        let sizes = Sizes::for_disks(wanted.layer, wanted.disks);
        let mut programs = load(wanted, attached, btf, sizes, options)?;
        for device in wanted.devices {
            want(&mut programs, *device, sizes)?;
        }
        let counters = BlockCounters::map(&programs, sizes.lanes)?;
        for (program, tracepoint) in places {
            attach_one(&mut programs, attached, program, tracepoint, btf)?;
        }
        // Without it, the I/O of pages that a worker writes back count for the worker.
        if let Some((program, tracepoint)) = wanted.dirty {
            match attach_one(&mut programs, attached, program, tracepoint, btf) {
                Ok(()) | Err(CaptureError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let readings = Readings::new(
            wanted.layer,
            counters,
            options.tables.clone(),
            options.forget_after,
        );
        Ok(WatchedLayer {
            programs,
            readings,
            skipped_calls: 0,
        })
    }

    /// The activity since the last call.
    pub(crate) fn read(&mut self, names: &mut SenderNames) -> Reading {
        let before = self.skipped_calls;
        // A count that cannot be read once does not count twice later.
        self.skipped_calls = before.max(skipped_calls(&self.programs));
        Reading {
            skipped_calls: self.skipped_calls - before,
            ..self.readings.next(names)
        }
    }

    /// The oldest I/O of a disk that is in flight, by those that were seen to begin at this time or later.
    pub(crate) fn oldest(
        &self,
        dev: u32,
        since_ns: u64,
        names: &mut SenderNames,
    ) -> Option<SingleIo> {
        self.readings.oldest(dev, since_ns, names)
    }
}

fn load(
    wanted: &Wanted<'_>,
    attached: Attached,
    btf: &Btf,
    sizes: Sizes,
    options: &Options,
) -> Result<Ebpf, CaptureError> {
    let Sizes {
        lanes,
        rows,
        devices,
        flights,
    } = sizes;
    let mask = |entries: usize| entries as u32 - 1;
    let mut constants = vec![
        (
            "modulus_sectors",
            (options.tables.modulus_bytes / 512) as u32,
        ),
        ("lane_mask", mask(lanes)),
        (
            "lanes_shared",
            u32::from(aya::util::nr_cpus().unwrap_or(usize::MAX) > lanes),
        ),
        ("row_mask", mask(rows)),
        ("coarse_mask", mask(COARSE_ROWS)),
        ("row_shift", rows.trailing_zeros()),
        ("device_mask", mask(devices)),
        ("place_mask", mask(PLACES)),
        ("flight_mask", mask(flights)),
        ("stream_mask", mask(STREAMS)),
        ("process_mask", mask(PROCESSES)),
        ("thread_mask", mask(THREADS)),
        ("dirtier_mask", mask(DIRTIERS)),
        (
            "own_tgid",
            match options.own_reads {
                OwnReads::LeftOut if numbers_are_those_of_the_host() => std::process::id(),
                OwnReads::LeftOut | OwnReads::Counted => 0,
            },
        ),
        ("kept_mask", mask(2 * abi::KEPT * devices)),
        ("only_wanted", u32::from(!wanted.devices.is_empty())),
    ];
    let mut entries = vec![
        ("rows", lanes * rows),
        ("coarse_rows", COARSE_ROWS),
        ("counts", lanes * devices * abi::HISTOGRAMS * abi::BUCKETS),
        ("devices", devices),
        ("places", PLACES),
        ("flights", flights),
        ("streams", STREAMS),
        ("processes", PROCESSES),
        ("threads", THREADS),
        ("dirtiers", DIRTIERS),
        ("sent", lanes * PROCESSES),
        ("kept", 2 * abi::KEPT * devices),
    ];
    if wanted.layer == Layer::Bio {
        constants.push(("bios_mask", mask(flights / abi::BIOS)));
        constants.push((
            "every_device",
            u32::from(options.layers.is_every_device_at(Layer::Bio)),
        ));
        entries.push(("bios", flights / abi::BIOS));
        return BIOS.load(attached, btf, &constants, Some(&wanted.only), &entries);
    }
    constants.push(("sender_mask", mask(SENDERS)));
    entries.push(("senders", SENDERS));
    REQUESTS.load(attached, btf, &constants, Some(&wanted.only), &entries)
}

/// Makes room for a disk before anything counts, where the programs look for it.
fn want(programs: &mut Ebpf, dev: u32, sizes: Sizes) -> Result<(), CaptureError> {
    let failed = |reason: String| CaptureError::Map {
        map: "devices",
        reason,
    };
    let map = programs
        .map_mut("devices")
        .ok_or_else(|| failed("it is not in the object".to_owned()))?;
    let mut devices: aya::maps::Array<_, [u32; abi::DEVICE_BYTES / 4]> = map
        .try_into()
        .map_err(|error: aya::maps::MapError| failed(error.to_string()))?;
    let from = mix(u64::from(dev)) as usize;
    for probe in 0..abi::PROBES {
        let index = ((from + probe) & (sizes.devices - 1)) as u32;
        let mut entry = devices
            .get(&index, 0)
            .map_err(|error| failed(error.to_string()))?;
        if entry[0] == 0 || entry[0] == dev {
            let bits = 64
                - crate::name_of(dev)
                    .size_bytes
                    .saturating_sub(1)
                    .leading_zeros();
            (entry[0], entry[2]) = (dev, bits.saturating_sub(6).max(20));
            return devices
                .set(index, entry, 0)
                .map_err(|error| failed(error.to_string()));
        }
    }
    Err(failed(format!(
        "no room for device {dev:#x} beside {} others",
        sizes.devices
    )))
}

impl BlockCounters {
    fn map(programs: &Ebpf, lanes: usize) -> Result<BlockCounters, CaptureError> {
        Ok(BlockCounters {
            rows: shared(programs, "rows")?,
            coarse_rows: shared(programs, "coarse_rows")?,
            counts: shared(programs, "counts")?,
            devices: shared(programs, "devices")?,
            places: shared(programs, "places")?,
            processes: writable(programs, "processes")?,
            threads: shared(programs, "threads")?,
            sent: shared(programs, "sent")?,
            kept: shared(programs, "kept")?,
            flights: shared(programs, "flights")?,
            totals: shared(programs, "totals")?,
            lanes,
        })
    }
}
