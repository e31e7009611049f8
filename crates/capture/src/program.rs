//! Loading programs into the kernel, attaching them, and mapping their arrays.

use std::os::fd::{AsFd, AsRawFd};

use aya::maps::{Map, MapData};
use aya::programs::{BtfTracePoint, Program, ProgramError, RawTracePoint};
use aya::{Btf, Ebpf, EbpfError, EbpfLoader, VerifierLogLevel};
use rustix::mm::ProtFlags;

use crate::error::CaptureError;
use crate::filter::Words;
use crate::shared::Shared;

/// How the programs are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    /// At tracepoints whose types the kernel knows; fields are read in place.
    TypedTracepoints,
    /// At raw tracepoints; fields are copied out.
    RawTracepoints,
    /// By trace events that the kernel writes into a buffer: no program is attached. Block layers alone.
    Tracefs,
}

impl Attached {
    /// Its text for the user.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Attached::TypedTracepoints => "typed tracepoints",
            Attached::RawTracepoints => "raw tracepoints",
            Attached::Tracefs => "tracefs, without BPF",
        }
    }
}

/// An object as it was compiled for each way of attaching, compressed by the build script.
pub(crate) struct Object {
    pub(crate) reading_in_place: &'static [u8],
    pub(crate) copying: &'static [u8],
}

impl Object {
    /// Loads it with constants, the filter if it needs one, and maps of this number of entries.
    pub(crate) fn load(
        &self,
        attached: Attached,
        btf: &Btf,
        constants: &[(&str, u32)],
        only: Option<&Words>,
        entries: &[(&str, usize)],
    ) -> Result<Ebpf, CaptureError> {
        let mut loader = EbpfLoader::new();
        loader
            .btf(Some(btf))
            // With the errors of the verifier, and without each instruction that it follows: aya asks for the log as soon as a load fails,
            // also when a signal interrupted it (EAGAIN), and a log of all instructions takes seconds.
            .verifier_log_level(VerifierLogLevel::STATS);
        if let Some(only) = only {
            loader.override_global("only", only, true);
        }
        for (name, value) in constants {
            loader.override_global(name, value, true);
        }
        for (name, entries) in entries {
            loader.map_max_entries(name, *entries as u32);
        }
        let packed = match attached {
            Attached::TypedTracepoints => self.reading_in_place,
            Attached::RawTracepoints => self.copying,
            Attached::Tracefs => return Err(takes_no_program("all")),
        };
        // The parser wants the alignment of a word, which every allocation of this length has.
        let object = zstd::decode_all(packed).map_err(|error| CaptureError::Map {
            map: "all",
            reason: error.to_string(),
        })?;
        loader.load(&object).map_err(|error| refused_map(&error))
    }
}

/// Calls to load one program, as many as libbpf makes.
const LOADS_MAX: u32 = 5;

/// The way of attaching that is asked for; else the cheapest that the kernel takes.
pub(crate) fn cheapest<T>(
    asked: Option<Attached>,
    attach: impl Fn(Attached) -> Result<T, CaptureError>,
) -> Result<T, CaptureError> {
    match asked {
        Some(attached) => attach(attached),
        None => match attach(Attached::TypedTracepoints) {
            Err(CaptureError::Refused { .. }) => attach(Attached::RawTracepoints),
            done => done,
        },
    }
}

/// For features that need programs.
fn takes_no_program(program: &'static str) -> CaptureError {
    CaptureError::Refused {
        program,
        reason: "tracefs takes no programs".to_owned(),
    }
}

/// The capability is missing as soon as the first map is made.
fn refused_map(error: &EbpfError) -> CaptureError {
    let reason = chain(error);
    if is_permission(error) {
        CaptureError::NotPermitted
    } else {
        CaptureError::Map { map: "all", reason }
    }
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

pub(crate) fn attach_one(
    programs: &mut Ebpf,
    attached: Attached,
    name: &'static str,
    tracepoint: &str,
    btf: &Btf,
) -> Result<(), CaptureError> {
    let missing = || CaptureError::Refused {
        program: name,
        reason: "it is not in the object".to_owned(),
    };
    let program = programs.program_mut(name).ok_or_else(missing)?;
    let done = match attached {
        Attached::TypedTracepoints => {
            let program: Result<&mut BtfTracePoint, ProgramError> = program.try_into();
            program.and_then(|program| {
                load_again(|| program.load(tracepoint, btf))?;
                program.attach().map(|_| ())
            })
        }
        Attached::RawTracepoints => {
            let program: Result<&mut RawTracePoint, ProgramError> = program.try_into();
            program.and_then(|program| {
                load_again(|| program.load())?;
                program.attach(tracepoint).map(|_| ())
            })
        }
        Attached::Tracefs => return Err(takes_no_program(name)),
    };
    done.map_err(|error| refused(name, &error))
}

/// Loads a program. A signal that waits ends the check of the kernel: it asks for another call then.
fn load_again(mut load: impl FnMut() -> Result<(), ProgramError>) -> Result<(), ProgramError> {
    for _ in 1..LOADS_MAX {
        match load() {
            Err(ProgramError::LoadError { io_error, .. })
                if io_error.kind() == std::io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
    load()
}

fn refused(program: &'static str, error: &ProgramError) -> CaptureError {
    if let ProgramError::LoadError {
        io_error,
        verifier_log,
    } = error
    {
        let log = verifier_log.to_string();
        // Figures of the verifier's work follow its words.
        let is_word = |line: &&str| {
            let figures = ["verification time ", "stack depth ", "processed "];
            !line.is_empty() && !figures.iter().any(|figure| line.starts_with(figure))
        };
        let mut lines: Vec<&str> = log.lines().rev().filter(is_word).take(6).collect();
        lines.reverse();
        // A verifier that refuses a program says why; a missing capability leaves no word.
        if io_error.kind() == std::io::ErrorKind::PermissionDenied && lines.is_empty() {
            return CaptureError::NotPermitted;
        }
        return CaptureError::Refused {
            program,
            reason: [&[io_error.to_string().as_str()], &lines[..]]
                .concat()
                .join("; "),
        };
    }
    if is_permission(error) {
        return CaptureError::NotPermitted;
    }
    CaptureError::Refused {
        program,
        reason: chain(error),
    }
}

/// Calls that the kernel skipped, because a program would have interrupted itself on its processor. Kernels that run such a
/// call count none.
pub(crate) fn skipped_calls(programs: &Ebpf) -> u64 {
    let of_program = |program: &Program| {
        let number = program.fd().ok()?.as_fd().as_raw_fd();
        let told = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
        skipped_calls_in(&told)
    };
    let programs = programs.programs();
    programs
        .filter_map(|(_, program)| of_program(program))
        .sum()
}

/// The count in the kernel's description of a program's descriptor.
fn skipped_calls_in(told: &str) -> Option<u64> {
    let mut lines = told.lines();
    let count = lines.find_map(|line| line.strip_prefix("recursion_misses:"))?;
    count.trim().parse().ok()
}

/// An array of the programs as memory to read.
pub(crate) fn shared<T: crate::shared::Words>(
    programs: &Ebpf,
    name: &'static str,
) -> Result<Shared<T>, CaptureError> {
    mapped(programs, name, ProtFlags::READ)
}

/// An array of the programs as memory to read and write.
pub(crate) fn writable<T: crate::shared::Words>(
    programs: &Ebpf,
    name: &'static str,
) -> Result<Shared<T>, CaptureError> {
    mapped(programs, name, ProtFlags::READ | ProtFlags::WRITE)
}

fn mapped<T: crate::shared::Words>(
    programs: &Ebpf,
    name: &'static str,
    access: ProtFlags,
) -> Result<Shared<T>, CaptureError> {
    let map: Option<&MapData> = match programs.map(name) {
        Some(Map::Array(map)) => Some(map),
        _ => None,
    };
    let map = map.ok_or_else(|| CaptureError::Map {
        map: name,
        reason: "found no array of that name".to_owned(),
    })?;
    Shared::map(name, map, access)
}

/// The same mix as the programs' lookups.
pub(crate) fn mix(value: u64) -> u32 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let once = value.wrapping_mul(GOLDEN);
    ((once ^ once >> 32).wrapping_mul(GOLDEN) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_calls_are_read_from_the_description_of_a_program() {
        let told = "pos:\t0\nflags:\t02000002\nprog_type:\t26\nrun_cnt:\t9\nrecursion_misses:\t31\nverified_insns:\t7\n";
        assert_eq!(skipped_calls_in(told), Some(31));
        assert_eq!(skipped_calls_in("prog_type:\t26\nrun_cnt:\t9\n"), None);
    }
}
