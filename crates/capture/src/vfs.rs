//! The vfs layer: loads the programs that count the requests of processes to files, and maps their counters.

use std::fs::File;
use std::io;
use std::path::Path;

use aya::{Btf, Ebpf};

use crate::abi;
use crate::asked::{FileCalls, FileSystem, Tallies};
use crate::error::CaptureError;
use crate::kernel::Types;
use crate::program::{Attached, Object, attach_one, cheapest, shared};
use crate::shared::Shared;

static CALLS: Object = Object {
    reading_in_place: include_bytes!(concat!(env!("OUT_DIR"), "/vfs.o.zst")),
    copying: include_bytes!(concat!(env!("OUT_DIR"), "/vfs_copying.o.zst")),
};

/// CPUs that have a lane of rows of their own; more share them.
const LANES_MAX: usize = 8;
/// Rows of a lane: 2 MiB.
const ROWS_OF_LANE: usize = 1 << 15;
const PLACES: usize = 1 << abi::VFS_PLACE_BITS;
const STREAMS: usize = 1 << 16;
const ASKERS: usize = 1 << 13;

/// The programs at work. They are detached when it is dropped.
pub struct Vfs {
    /// Keeps programs and maps.
    _programs: Ebpf,
    attached: Attached,
    sees_uring: bool,
    sees_mapped: bool,
    tallies: Tallies,
}

/// The counters of the programs.
pub(crate) struct VfsCounters {
    pub(crate) rows: Shared<abi::KernelRow>,
    pub(crate) places: Shared<abi::KernelPlace>,
    pub(crate) askers: Shared<abi::Asker>,
    pub(crate) totals: Shared<abi::Totals>,
}

/// A program and the tracepoint that it is for in this kernel.
type AtTracepoint = (&'static str, &'static str);

impl Vfs {
    /// Loads the programs and attaches them; from then on everything counts.
    ///
    /// # Errors
    /// Without the capabilities, or when the kernel does not take the programs.
    pub fn attach(asked: Option<Attached>) -> Result<Vfs, CaptureError> {
        let types = Types::of_kernel()?;
        let (uring, mapped) = (of_uring(&types), of_mapped_files(&types));
        drop(types);
        let btf = Btf::from_sys_fs().map_err(|error| CaptureError::Types(error.to_string()))?;
        cheapest(asked, |attached| {
            Vfs::attach_as(attached, &uring, mapped, &btf)
        })
    }

    fn attach_as(
        attached: Attached,
        uring: &[AtTracepoint],
        mapped: &[AtTracepoint],
        btf: &Btf,
    ) -> Result<Vfs, CaptureError> {
        let mut programs = load(attached, btf, !uring.is_empty())?;
        let counters = VfsCounters {
            rows: shared(&programs, "rows")?,
            places: shared(&programs, "places")?,
            askers: shared(&programs, "askers")?,
            totals: shared(&programs, "totals")?,
        };
        let calls = [("return_from_call", "sys_exit")];
        for &(program, tracepoint) in uring.iter().chain(&calls) {
            attach_one(&mut programs, attached, program, tracepoint, btf)?;
        }
        // The calls count also on a kernel that refuses these. The faults come last, since they are the more frequent.
        let mut attach_mapped = |&(program, tracepoint): &AtTracepoint| {
            attach_one(&mut programs, attached, program, tracepoint, btf).is_ok()
        };
        let sees_mapped = !mapped.is_empty() && mapped.iter().all(&mut attach_mapped);
        let tallies = Tallies::new(counters);
        Ok(Vfs {
            _programs: programs,
            attached,
            sees_uring: !uring.is_empty(),
            sees_mapped,
            tallies,
        })
    }

    /// How the programs are attached.
    #[must_use]
    pub fn attached(&self) -> Attached {
        self.attached
    }

    /// Whether reads and writes of io_uring are counted here; else a process that uses it is unknown.
    #[must_use]
    pub fn sees_uring(&self) -> bool {
        self.sees_uring
    }

    /// Whether page faults and stores in mapped files are counted here.
    #[must_use]
    pub fn sees_mapped(&self) -> bool {
        self.sees_mapped
    }

    /// The requests since the last call; `name` names the file systems in the profiles.
    pub fn read(&mut self, name: impl Fn(FileSystem) -> String) -> FileCalls {
        self.tallies.next(self.sees_mapped, name)
    }
}

/// Writes out the cache of the file system mounted at a directory (syncfs(2)).
///
/// # Errors
/// When the directory cannot be opened, or something could not be written.
pub fn write_out(at: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(at)?)?)
}

/// The programs for io_uring in the form that this kernel's tracepoints have; none where that is not known.
fn of_uring(types: &Types) -> Vec<AtTracepoint> {
    let is = |name: &str, arguments: &[usize]| {
        types
            .tracepoint_arguments(name)
            .is_some_and(|found| arguments.contains(&found))
    };
    let complete = match types.tracepoint_arguments("io_uring_complete") {
        Some(3) => "complete_entry",
        Some(7) => "complete_result",
        _ => return Vec::new(),
    };
    let submit = ["io_uring_submit_req", "io_uring_submit_sqe"]
        .into_iter()
        .find(|name| is(name, &[1, 2]));
    let Some(submit) = submit else {
        return Vec::new();
    };
    let mut all = vec![(complete, "io_uring_complete"), ("submit_request", submit)];
    if types
        .tracepoint_arguments("io_uring_cqe_overflow")
        .is_some()
    {
        all.push(("overflow", "io_uring_cqe_overflow"));
    }
    all
}

/// The programs for mapped files, if this kernel has the tracepoint of their page faults (6.11 and later).
fn of_mapped_files(types: &Types) -> &'static [AtTracepoint] {
    const PROGRAMS: &[AtTracepoint] = &[
        ("store", "writeback_dirty_folio"),
        ("fault", "mm_filemap_fault"),
    ];
    let is_there =
        |(_, tracepoint): &AtTracepoint| types.tracepoint_arguments(tracepoint) == Some(2);
    if PROGRAMS.iter().all(is_there) {
        PROGRAMS
    } else {
        &[]
    }
}

fn load(attached: Attached, btf: &Btf, sees_uring: bool) -> Result<Ebpf, CaptureError> {
    let cpus = aya::util::nr_cpus().unwrap_or(1).max(1);
    let lanes = cpus.next_power_of_two().min(LANES_MAX);
    let mask = |entries: usize| entries as u32 - 1;
    let constants = [
        ("lane_mask", mask(lanes)),
        ("row_mask", mask(ROWS_OF_LANE)),
        ("row_shift", ROWS_OF_LANE.trailing_zeros()),
        ("place_mask", mask(PLACES)),
        ("stream_mask", mask(STREAMS)),
        ("asker_mask", mask(ASKERS)),
        ("sees_uring", u32::from(sees_uring)),
    ];
    let entries = [
        ("rows", lanes * ROWS_OF_LANE),
        ("counts", PLACES),
        ("places", PLACES),
        ("streams", STREAMS),
        ("askers", ASKERS),
        ("last_faults", abi::FAULTS),
    ];
    CALLS.load(attached, btf, &constants, None, &entries)
}
