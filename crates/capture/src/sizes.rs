//! The sizes of the maps of the block layers, and the memory that they take.
//!
//! The kernel takes all memory of a map when it is made, and charges it to the cgroup of the process. A host may have many more
//! possible processors than present ones, so the maps do not grow with their number beyond [`LANES_MAX`]. Entries that find no
//! room are counted as such, with any size.

use plumb_trace::Layer;

use crate::abi;
use crate::difference::buffer_bytes;

/// Lanes of counters: CPUs beyond that number share them.
const LANES_MAX: usize = 8;
/// Rows of all lanes together: 8 MiB.
const ROWS_MAX: usize = 1 << 17;
/// Rows of a lane: 2 MiB.
const ROWS_OF_LANE_MAX: usize = 1 << 15;
/// Lanes of a device have 79 KiB of histograms each: 10 MiB at most, more only with more devices.
const LANE_DEVICES_MAX: usize = 128;
/// All starts of a disk modulo 1 MiB, by operation, stream and eight powers of two of length: 4 MiB.
const COARSE_ROWS: usize = 1 << 16;
const DEVICES_MIN: usize = 16;
/// Room for disks and partitions, bound by the field of a row's key.
const PLACES: usize = 1 << abi::KEY_PLACE_BITS;
const REQUEST_FLIGHTS: usize = 1 << 16;
/// Fewer: devices without requests are few, and a bio has a choice of places.
pub(crate) const BIO_FLIGHTS: usize = 1 << 15;
/// Sets of four ends of I/O: 128 KiB, which the cache of a processor holds; one busy disk fills an eighth.
const STREAMS: usize = 1 << 11;
const SENDERS: usize = 1 << 14;
/// For each layer.
const PROCESSES: usize = 1 << 12;
/// Notes, one for each MiB of a file that has dirty pages: 2 MiB of memory.
const DIRTIERS: usize = 1 << 15;
const THREADS: usize = 1 << 16;

/// The kernel gives a map whole pages, behind one for its description.
const PAGE_BYTES: usize = 4096;

/// Sizes of the maps; each is a power of two, so that a mask keeps an index within.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) lanes: usize,
    /// Of a lane.
    pub(crate) rows: usize,
    pub(crate) coarse_rows: usize,
    pub(crate) devices: usize,
    pub(crate) places: usize,
    pub(crate) flights: usize,
    pub(crate) bio_flights: usize,
    pub(crate) streams: usize,
    pub(crate) senders: usize,
    pub(crate) processes: usize,
    pub(crate) dirtiers: usize,
    pub(crate) threads: usize,
}

/// A map with its number of entries.
#[derive(Clone, Copy)]
pub(crate) struct MapSize {
    pub(crate) name: &'static str,
    pub(crate) entries: usize,
    entry_bytes: usize,
}

impl MapSize {
    /// Memory of the kernel.
    pub(crate) fn bytes(self) -> usize {
        (self.entries * self.entry_bytes).next_multiple_of(PAGE_BYTES) + PAGE_BYTES
    }
}

impl Sizes {
    /// The sizes for a host with this number of possible processors, and of disks at these layers.
    pub(crate) fn new(cpus: usize, layers: &[Layer], disks: usize) -> Sizes {
        // Twice as many as exist, so that later disks and hash collisions find room.
        let devices = (2 * disks)
            .next_power_of_two()
            .clamp(DEVICES_MIN, PLACES / 2);
        let lanes = cpus
            .max(1)
            .next_power_of_two()
            .min(LANES_MAX)
            .min((LANE_DEVICES_MAX / devices).max(1));
        let has = |layer| layers.contains(&layer);
        // A map of a layer that is not watched has the fewest entries that its programs accept.
        let if_has = |layer, entries, least| if has(layer) { entries } else { least };
        Sizes {
            lanes,
            rows: (ROWS_MAX / lanes).min(ROWS_OF_LANE_MAX),
            coarse_rows: COARSE_ROWS,
            devices,
            places: PLACES,
            flights: if_has(Layer::Request, REQUEST_FLIGHTS, 1),
            bio_flights: if_has(Layer::Bio, BIO_FLIGHTS, abi::BIOS),
            streams: STREAMS,
            senders: if_has(Layer::Request, SENDERS, 1),
            processes: PROCESSES * layers.len().next_power_of_two(),
            dirtiers: DIRTIERS,
            threads: THREADS,
        }
    }

    /// The maps of the programs.
    pub(crate) fn maps(&self) -> [MapSize; 15] {
        let map = |name, entries, entry_bytes| MapSize {
            name,
            entries,
            entry_bytes,
        };
        [
            map("rows", self.lanes * self.rows, abi::ROW_BYTES),
            map("coarse_rows", self.coarse_rows, abi::ROW_BYTES),
            map("counts", self.counts(), size_of::<u64>()),
            map("devices", self.devices, abi::DEVICE_BYTES),
            map("places", self.places, abi::PLACE_BYTES),
            map("flights", self.flights, abi::FLIGHT_BYTES),
            map("bio_flights", self.bio_flights, abi::FLIGHT_BYTES),
            map("bios", self.bio_flights / abi::BIOS, abi::BIOS_BYTES),
            map("streams", self.streams, abi::STREAMS_BYTES),
            map("senders", self.senders, abi::SENDER_BYTES),
            map("processes", self.processes, abi::PROCESS_BYTES),
            map("sent", self.sent(), abi::SENT_BYTES),
            map("threads", self.threads, abi::THREAD_BYTES),
            map("dirtiers", self.dirtiers, abi::DIRTIER_BYTES),
            map("kept", self.kept(), abi::KEPT_BYTES),
        ]
    }

    /// Buckets of all histograms.
    pub(crate) fn counts(&self) -> usize {
        self.lanes * self.devices * abi::HISTOGRAMS * abi::BUCKETS
    }

    /// Sums of processes in all lanes.
    pub(crate) fn sent(&self) -> usize {
        self.lanes * self.processes
    }

    /// I/O that are kept one by one.
    pub(crate) fn kept(&self) -> usize {
        2 * abi::KEPT * self.devices
    }
}

/// Memory of a watch of all disks, which its load does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchMemory {
    /// Memory of the kernel for the counters.
    pub map_bytes: usize,
    /// Memory of the process: the counters at the last reading.
    pub buffer_bytes: usize,
}

impl WatchMemory {
    /// The memory on a host with this number of possible processors and of disks.
    #[must_use]
    pub fn new(cpus: usize, disks: usize) -> WatchMemory {
        let sizes = Sizes::new(cpus, &[Layer::Request, Layer::Bio], disks);
        WatchMemory {
            map_bytes: sizes.maps().map(MapSize::bytes).iter().sum(),
            buffer_bytes: buffer_bytes(&sizes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The unit of the agent sets it (`MemoryMax`).
    const CGROUP_MAX: usize = 160 << 20;
    /// All memory of the process on two processors, its buffers included.
    const ANONYMOUS_MAX: usize = 80 << 20;

    /// A host may have many possible processors: a hypervisor can add them at any time.
    #[test]
    fn the_memory_is_bounded_with_any_number_of_processors() {
        for cpus in [1, 2, 3, 8, 16, 17, 64, 128, 512, 8192] {
            for disks in [0, 1, 8, 9, 16, 33, 64, 65, 128] {
                let memory = WatchMemory::new(cpus, disks);
                let all = memory.map_bytes + memory.buffer_bytes + ANONYMOUS_MAX;
                assert!(
                    all <= CGROUP_MAX,
                    "{cpus} processors, {disks} disks: {memory:?}, with the rest {all}"
                );
            }
        }
    }

    #[test]
    fn a_map_has_whole_pages() {
        let of = |entries, entry_bytes| {
            let name = "map";
            MapSize {
                name,
                entries,
                entry_bytes,
            }
            .bytes()
        };
        assert_eq!(of(1, 8), 8192);
        assert_eq!(of(512, 8), 8192);
        assert_eq!(of(513, 8), 12288);
    }
}
