//! One file a format. [`FORMATS`] is the list of them; sniffing asks each in turn.

use crate::error::Error;
use crate::input::Input;
use crate::op::Layer;
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::source::{Clock, SourceInfo};

pub mod alibaba;
pub mod align_d;
pub mod bcc_biosnoop;
pub mod blkparse;
pub mod blktrace;
pub mod bpftrace_biosnoop;
pub mod disksim;
pub mod dtrace_iosnoop;
pub mod etw;
pub mod fio_iolog;
pub mod ftrace;
pub mod msr;
pub mod oracle_general;
pub mod parquet;
pub mod perftools_iosnoop;
pub mod quantize;
pub mod residue;
pub mod spc;
pub mod systor;
pub mod tencent;
pub mod tnfdump;
pub mod vscsi;
pub mod vscsistats;
pub mod xperf;

/// A trace format: how it is recognised and read.
pub struct Format {
    /// Short name, as in `--format`.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// Whether the reader was held against a real file.
    pub verified: bool,
    /// Whether events may come in another order than that of their times.
    pub unsorted: bool,
    /// Asks whether the first bytes are of this format; the flag says that they are the whole input.
    pub sniff: fn(&[u8], bool) -> Sniff,
    /// Opens a reader.
    #[allow(clippy::type_complexity)]
    pub open: fn(Input, &ReadOptions) -> Result<Box<dyn Reader>, Error>,
}

impl Format {
    /// Name of its fuzz target, of the target's seeds and of its dictionary: the format's name in small letters, with `_`
    /// for every other sign.
    #[must_use]
    pub fn fuzz_target(&self) -> String {
        let small = self.name.to_ascii_lowercase();
        small.replace(|sign: char| !sign.is_ascii_alphanumeric(), "_")
    }

    /// What is known beforehand of a source of this format that holds requests of a driver.
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

/// All formats, the most distinctive first: where two say yes the earlier one is taken.
pub static FORMATS: &[&Format] = &[
    &parquet::FORMAT,
    &blktrace::FORMAT,
    &vscsi::FORMAT,
    &fio_iolog::FORMAT,
    &residue::FORMAT,
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
        .filter(|format| format.name != oracle_general::FORMAT.name);
    read.map(|format| format.name)
        .collect::<Vec<_>>()
        .join(", ")
}
