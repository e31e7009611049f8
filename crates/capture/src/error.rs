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
    #[error("/sys/kernel/btf/vmlinux: {0}; expected the kernel's type information (CONFIG_DEBUG_INFO_BTF)")]
    NoTypes(#[source] io::Error),
    /// The type information is not as expected.
    #[error("/sys/kernel/btf/vmlinux: {0}")]
    Types(String),
    /// The kernel refused a program.
    #[error("program {program} for the kernel: {reason}")]
    Refused {
        /// Name of the program.
        program: &'static str,
        /// What the kernel said, last lines.
        reason: String,
    },
    /// A map could not be made or mapped.
    #[error("map {map} of the programs: {reason}")]
    Map {
        /// Name of the map.
        map: &'static str,
        /// What the kernel said.
        reason: String,
    },
    /// A directory that was named as a cgroup and is none.
    #[error("{path}: {source}; expected the directory of a cgroup of version 2")]
    NoCgroup {
        /// The directory.
        path: PathBuf,
        /// What was found.
        source: io::Error,
    },
    /// A device that was named and is not there.
    #[error("{0}: found no such device in /sys/class/block")]
    NoDevice(String),
}
