//! Why nothing can be captured.

use std::io;
use std::path::PathBuf;

/// Why nothing can be captured.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The caller lacks a capability.
    #[error("loading a program into the kernel: not permitted, expected CAP_BPF and CAP_PERFMON")]
    NotPermitted,
    /// The kernel was built without type information.
    #[error(
        "/sys/kernel/btf/vmlinux: {0}; expected the kernel's type information (CONFIG_DEBUG_INFO_BTF)"
    )]
    NoTypes(#[source] io::Error),
    /// The type information is not as expected.
    #[error("/sys/kernel/btf/vmlinux: {0}")]
    Types(String),
    /// The kernel refused a program.
    #[error("program {program} for the kernel: {reason}")]
    Refused {
        /// Name of the program.
        program: &'static str,
        /// The last lines of the kernel's message.
        reason: String,
    },
    /// A map could not be made or mapped.
    #[error("map {map} of the programs: {reason}")]
    Map {
        /// Name of the map.
        map: &'static str,
        /// The message of the kernel.
        reason: String,
    },
    /// A directory that was named as a cgroup and is none.
    #[error(
        "{path}: found {found}, expected the directory of a cgroup of version 2, as below /sys/fs/cgroup"
    )]
    NoCgroup {
        /// The directory.
        path: PathBuf,
        /// The value found.
        found: String,
    },
    /// A file of the kernel's tracing cannot be used.
    #[error("{path}: {source}; expected an instance of tracefs for this watch, which needs root")]
    Tracefs {
        /// The file.
        path: PathBuf,
        /// The error found.
        source: io::Error,
    },
    /// A file of the kernel's tracing is not as expected.
    #[error("events/{what} of tracefs: expected {expected}, and found none")]
    Event {
        /// The event, or the file.
        what: &'static str,
        /// Its value in every known kernel.
        expected: &'static str,
    },
    /// A condition that cannot be asked without programs.
    #[error(
        "--cgroup: found no way to ask for it in tracefs, expected a kernel that takes BPF programs"
    )]
    NoCgroupInEvents,
    /// Neither programs nor tracefs.
    #[error("{programs}; nor without BPF: {tracefs}")]
    NoWay {
        /// Why no programs.
        programs: Box<CaptureError>,
        /// Why no tracefs.
        tracefs: Box<CaptureError>,
    },
    /// A device that was named and is not there.
    #[error("{0}: found no such device in /sys/class/block")]
    NoDevice(String),
}
