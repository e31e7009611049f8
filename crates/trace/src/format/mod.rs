//! One file a format. [`FORMATS`] is the list of them; sniffing asks each in turn. A module that is missing in the list is
//! dead code, which the compiler reports.

use crate::error::Error;
use crate::input::Input;
use crate::op::Layer;
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::source::{Clock, SourceInfo};

mod alibaba;
mod align_d;
mod bcc_biosnoop;
mod blkparse;
pub mod blktrace;
mod bpftrace_biosnoop;
mod collectors_bt;
mod disksim;
mod dtrace_iosnoop;
mod etw;
mod fio_iolog;
pub mod ftrace;
mod msr;
mod oracle_general;
pub mod parquet;
mod perftools_iosnoop;
mod quantize;
mod residue;
mod spc;
mod systor;
mod tencent;
mod tnfdump;
mod vscsi;
mod vscsistats;
mod xperf;

/// A trace format: its name, its description and its reader.
pub struct Format {
    /// Short name, as in `--format`.
    pub name: &'static str,
    /// Name for people, in Markdown; links start in `docs/formats`.
    pub title: &'static str,
    /// Whether the reader was held against a real file.
    pub verified: bool,
    /// Whether events may come in another order than that of their times.
    pub unsorted: bool,
    /// Text for the documents and the fuzzer: `make docs` writes them.
    pub about: About,
    /// Asks whether the first bytes are of this format; the flag says that they are the whole input.
    pub sniff: fn(&[u8], bool) -> Sniff,
    /// Opens a reader.
    #[allow(clippy::type_complexity)]
    pub open: fn(Input, &ReadOptions) -> Result<Box<dyn Reader>, Error>,
}

/// The row of a format in `docs/formats/README.md`, its words in `README.md`, and the fuzzer's material. All texts are Markdown.
pub struct About {
    /// Its words in `README.md`, for each row that names it; links start at the root.
    pub families: &'static [(Family, &'static str)],
    /// The layers that it records: `request`, `bio`, `vfs`.
    pub layer: &'static str,
    /// I/O or counts.
    pub holds: Holds,
    /// The evidence that the reader is right; `**unverified**` without any.
    pub verified_by: &'static str,
    /// Questions that no reader can answer from it.
    pub cannot_tell: &'static str,
    /// Words of the format for the fuzzer's dictionary; none for a format of bytes.
    pub words: &'static [&'static str],
    /// Its files in the folder of real traces. No other file there may be taken for it, and the fuzzer starts from them.
    pub real: &'static [&'static str],
}

/// I/O or counts.
pub enum Holds {
    /// I/O one by one.
    Events {
        /// Unit and origin of the times.
        times: &'static str,
        /// Latencies that can be worked out: `queue`, `device`.
        latency: &'static str,
    },
    /// Counts of I/O that were made elsewhere.
    Counts(&'static str),
    /// Nothing that can be read: the format is recognised and refused.
    Nothing,
}

/// A row of the table of formats in `README.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Plumb's own.
    Plumb,
    /// Tools of Linux.
    Linux,
    /// Tools of Solaris and its descendants, and DTrace elsewhere.
    Solaris,
    /// Tools of Windows.
    Windows,
    /// Tools of VMware.
    Vmware,
    /// The load generator.
    Fio,
    /// Traces that others published.
    Published,
    /// A line of script, where no tool can be installed.
    Anywhere,
}

impl Family {
    /// All of them, in the order of the table.
    pub const ALL: [Family; 8] = [
        Family::Plumb,
        Family::Linux,
        Family::Solaris,
        Family::Windows,
        Family::Vmware,
        Family::Fio,
        Family::Published,
        Family::Anywhere,
    ];

    /// Its name in the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Family::Plumb => "Plumb",
            Family::Linux => "Linux",
            Family::Solaris => "Solaris, illumos, FreeBSD",
            Family::Windows => "Windows",
            Family::Vmware => "VMware",
            Family::Fio => "fio",
            Family::Published => "published traces",
            Family::Anywhere => "hosts where nothing can be installed",
        }
    }
}

impl Format {
    /// Name of its fuzz target, of the target's seeds and of its dictionary: the format's name in small letters, with `_`
    /// for every other sign.
    #[must_use]
    pub fn fuzz_target(&self) -> String {
        let small = self.name.to_ascii_lowercase();
        small.replace(|sign: char| !sign.is_ascii_alphanumeric(), "_")
    }

    /// The fixed facts about a source of this format with requests of a driver.
    pub(crate) fn requests(&self, clock: Clock) -> SourceInfo {
        SourceInfo {
            format: self.name,
            verified: self.verified,
            layers: vec![Layer::Request],
            clock,
            unix_ns_at_zero: (clock == Clock::Unix).then_some(0),
            ..SourceInfo::default()
        }
    }
}

/// All formats, the most distinctive first: if two match, the earlier one is used.
pub static FORMATS: &[&Format] = &[
    &parquet::FORMAT,
    &blktrace::FORMAT,
    &vscsi::FORMAT,
    &fio_iolog::FORMAT,
    &residue::FORMAT,
    &collectors_bt::FORMAT,
    &align_d::FORMAT,
    &vscsistats::FORMAT,
    &etw::FORMAT,
    &xperf::FORMAT,
    &tnfdump::FORMAT,
    &dtrace_iosnoop::FORMAT,
    &bcc_biosnoop::FORMAT,
    &bpftrace_biosnoop::FORMAT,
    &perftools_iosnoop::FORMAT,
    &blkparse::FORMAT,
    &ftrace::FORMAT,
    &quantize::FORMAT,
    &msr::FORMAT,
    &systor::FORMAT,
    &alibaba::FORMAT,
    &spc::FORMAT,
    &tencent::FORMAT,
    &disksim::FORMAT,
    &oracle_general::FORMAT,
];

/// The names of all formats that are read, for messages.
#[must_use]
pub fn known_names() -> String {
    let read = FORMATS
        .iter()
        .filter(|format| !matches!(format.about.holds, Holds::Nothing));
    read.map(|format| format.name)
        .collect::<Vec<_>>()
        .join(", ")
}
