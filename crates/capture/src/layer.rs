//! The programs of the block layers: loads them, attaches them, and maps their counters.

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
use crate::sizes::Sizes;

static BLOCK: Object = Object {
    reading_in_place: include_bytes!(concat!(env!("OUT_DIR"), "/block.o.zst")),
    copying: include_bytes!(concat!(env!("OUT_DIR"), "/block_copying.o.zst")),
};

/// The programs at work. They are detached when it is dropped.
pub(crate) struct WatchedLayers {
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
    request_flights: Shared<abi::Flight>,
    bio_flights: Shared<abi::Flight>,
    pub(crate) totals: Shared<abi::Totals>,
    pub(crate) lanes: usize,
}

/// A program and the tracepoint that it is for.
pub(crate) type Attachment = (&'static str, &'static str);

/// The programs of these layers, in the order in which they are attached: the completions first, so that an I/O that was seen to
/// begin is seen to end.
pub(crate) fn places(
    layers: &[Layer],
    options: &Options,
    types: &Types,
) -> Result<Vec<Attachment>, CaptureError> {
    let has_bios = layers.contains(&Layer::Bio);
    types.check_bio_tracepoints(has_bios)?;
    let mut places = Vec::new();
    if has_bios {
        places.push(("end_bio", "block_bio_complete"));
        // Of bios that a path of NVMe put together to one request, the driver tells the end of the first alone.
        if options.layers.is_every_device_at(Layer::Bio) || have_heads_of_paths(&options.devices) {
            places.push(("end_request_bios", "block_rq_complete"));
        }
    }
    let has_requests = layers.contains(&Layer::Request);
    if has_requests {
        places.push(("complete_request", "block_rq_complete"));
    }
    places.extend([
        ("split_bio", "block_split"),
        ("queue_bio", "block_bio_queue"),
    ]);
    if has_requests {
        places.push((types.issue_program()?, "block_rq_issue"));
    }
    Ok(places)
}

/// The parameters for loading the programs.
pub(crate) struct Wanted<'a> {
    pub(crate) layers: &'a [Layer],
    /// Disks of the host.
    pub(crate) disks: usize,
    pub(crate) only: Words,
    /// The program that sees pages become dirty, if the kernel has its tracepoint.
    pub(crate) dirty: Option<Attachment>,
}

impl WatchedLayers {
    pub(crate) fn attach(
        wanted: &Wanted<'_>,
        attached: Attached,
        places: &[Attachment],
        btf: &Btf,
        options: &Options,
    ) -> Result<WatchedLayers, CaptureError> {
        let cpus = aya::util::nr_cpus().unwrap_or(1);
        let sizes = Sizes::new(cpus, wanted.layers, wanted.disks);
        let mut programs = load(wanted, attached, btf, sizes, options)?;
        for device in &options.devices {
            want(&mut programs, *device, sizes, options)?;
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
        let readings = Readings::new(counters, options.tables.clone(), options.forget_after);
        Ok(WatchedLayers {
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
    let mask = |entries: usize| entries as u32 - 1;
    let is_shared = aya::util::nr_cpus().unwrap_or(usize::MAX) > sizes.lanes;
    let watches = |layer| u32::from(wanted.layers.contains(&layer));
    let every_device = options.layers.is_every_device_at(Layer::Bio);
    let own_tgid = match options.own_reads {
        OwnReads::LeftOut if numbers_are_those_of_the_host() => std::process::id(),
        OwnReads::LeftOut | OwnReads::Counted => 0,
    };
    let modulus_sectors = (options.tables.modulus_bytes / 512) as u32;
    let constants = [
        ("modulus_sectors", modulus_sectors),
        ("lane_mask", mask(sizes.lanes)),
        ("lanes_shared", u32::from(is_shared)),
        ("row_mask", mask(sizes.rows)),
        ("coarse_mask", mask(sizes.coarse_rows)),
        ("row_shift", sizes.rows.trailing_zeros()),
        ("device_mask", mask(sizes.devices)),
        ("place_mask", mask(sizes.places)),
        ("flight_mask", mask(sizes.flights)),
        ("bio_flight_mask", mask(sizes.bio_flights)),
        ("bios_mask", mask(sizes.bio_flights / abi::BIOS)),
        ("stream_mask", mask(sizes.streams)),
        ("sender_mask", mask(sizes.senders)),
        ("process_mask", mask(sizes.processes)),
        ("thread_mask", mask(sizes.threads)),
        ("dirtier_mask", mask(sizes.dirtiers)),
        ("kept_mask", mask(sizes.kept())),
        ("own_tgid", own_tgid),
        ("only_wanted", u32::from(!options.devices.is_empty())),
        ("every_device", u32::from(every_device)),
        ("watches_requests", watches(Layer::Request)),
        ("watches_bios", watches(Layer::Bio)),
    ];
    let entries = sizes.maps().map(|map| (map.name, map.entries));
    BLOCK.load(attached, btf, &constants, Some(&wanted.only), &entries)
}

/// Makes room for a disk before anything counts, where the programs look for it.
fn want(
    programs: &mut Ebpf,
    dev: u32,
    sizes: Sizes,
    options: &Options,
) -> Result<(), CaptureError> {
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
            let by_bios = u32::from(options.layers.layer_of(dev) == Layer::Bio);
            entry[..3].copy_from_slice(&[dev, by_bios, bits.saturating_sub(6).max(20)]);
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
    /// The places of all I/O in flight.
    pub(crate) fn flights(&self) -> impl Iterator<Item = &abi::Flight> {
        self.request_flights.iter().chain(self.bio_flights.iter())
    }

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
            request_flights: shared(programs, "flights")?,
            bio_flights: shared(programs, "bio_flights")?,
            totals: shared(programs, "totals")?,
            lanes,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};

    use plumb_testkit::require;

    use super::*;

    /// The kernel states the memory of each map as it is calculated, also for hosts with more processors than this one.
    #[test]
    fn maps_take_the_calculated_memory() {
        require!(Bpf);
        let options = Options::default();
        let layers = [Layer::Request, Layer::Bio];
        let wanted = Wanted {
            layers: &layers,
            disks: 1,
            only: options.filter.for_programs().expect("no filter"),
            dirty: None,
        };
        let btf = Btf::from_sys_fs().expect("types of the kernel");
        for (cpus, disks) in [(2, 1), (128, 1), (128, 64)] {
            let sizes = Sizes::new(cpus, &layers, disks);
            let way = Attached::TypedTracepoints;
            let programs = load(&wanted, way, &btf, sizes, &options).expect("maps");
            for map in sizes.maps() {
                let found = memory_of(&programs, map.name);
                assert_eq!(found, map.bytes(), "{} of {cpus} processors", map.name);
            }
            // Totals and constants have a page each, beside that of their description.
            let all: usize = programs
                .maps()
                .map(|(name, _)| memory_of(&programs, name))
                .sum();
            let counted = crate::WatchMemory::new(cpus, disks).map_bytes;
            assert!(
                (counted..counted + (64 << 10)).contains(&all),
                "{all} of {counted}"
            );
        }
    }

    /// Memory of a map by the kernel's description of its descriptor.
    fn memory_of(programs: &Ebpf, name: &str) -> usize {
        let Some(aya::maps::Map::Array(map)) = programs.map(name) else {
            panic!("no array {name}");
        };
        let number = map.fd().as_fd().as_raw_fd();
        let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"));
        let text = text.expect("a description");
        let line = text.lines().find_map(|line| line.strip_prefix("memlock:"));
        line.and_then(|bytes| bytes.trim().parse().ok())
            .unwrap_or_else(|| panic!("no memory in {text}"))
    }
}
