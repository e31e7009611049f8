//! Workloads and formats by the names that the command line has for them.

use crate::event::{SynthEvent, SynthOp};
use crate::workload::{MisfitKind, Mixed, Oltp, PlantedMisfits, Streams};
use crate::write::alibaba::Alibaba;
use crate::write::blkparse_text::BlkparseText;
use crate::write::blkrecord::{Endian, Version};
use crate::write::blktrace::Blktrace;
use crate::write::disksim::{Disksim, DisksimTime};
use crate::write::etw::{Etw, EtwLocale};
use crate::write::fio_iolog::{FioIolog, IologVersion};
use crate::write::lifecycle::Shapes;
use crate::write::msr::Msr;
use crate::write::perf_script::{PerfScript, PerfStyle};
use crate::write::residue::Residue;
use crate::write::spc::Spc;
use crate::write::systor::Systor;
use crate::write::tencent::Tencent;
use crate::write::tnfdump::Tnfdump;
use crate::write::vscsi::{Vscsi, VscsiVersion};
use crate::write::{EventSink, WriteError};
use std::io::Write;

/// Every format [`writer`] knows.
pub const FORMATS: [&str; 19] = [
    "blktrace", "blkparse", "vscsi1", "vscsi2", "msr", "spc", "disksim", "mqsim", "systor",
    "alibaba", "tencent", "iolog2", "iolog3", "etw-de", "etw-en", "perf", "ftrace", "tnfdump",
    "residue",
];

/// Every workload [`events`] knows. Those after the third plant `misfits`.
pub const WORKLOADS: [&str; 10] = [
    "mixed",
    "oltp",
    "streams",
    "misaligned",
    "odd-length",
    "split-chunk",
    "looks-sequential",
    "small-random-writes",
    "member-skew",
    "record-mismatch",
];

/// Size of a workload.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Seed.
    pub seed: u64,
    /// Events.
    pub events: u64,
    /// Devices, where the workload has more than one.
    pub devices: u32,
    /// CPUs, where the workload chooses among them.
    pub cpus: u32,
    /// Planted ones, where the workload plants.
    pub misfits: u64,
}

/// The events of the workload `name`, `None` for a name that is not in [`WORKLOADS`].
#[must_use]
pub fn events(name: &str, size: Size) -> Option<Box<dyn Iterator<Item = SynthEvent>>> {
    let Size {
        seed,
        events,
        devices,
        cpus,
        misfits,
    } = size;
    let kind = match name {
        "mixed" => {
            return Some(Box::new(
                Mixed {
                    seed,
                    events,
                    devices,
                    cpus,
                    ..Mixed::default()
                }
                .iter(),
            ));
        }
        "oltp" => {
            return Some(Box::new(
                Oltp {
                    seed,
                    events,
                    ..Oltp::default()
                }
                .iter(),
            ));
        }
        "streams" => {
            return Some(Box::new(
                Streams {
                    seed,
                    events,
                    op: SynthOp::Read,
                    ..Streams::default()
                }
                .iter(),
            ));
        }
        "misaligned" => MisfitKind::Misaligned,
        "odd-length" => MisfitKind::OddLength,
        "split-chunk" => MisfitKind::SplitChunk {
            chunk_bytes: 65_536,
        },
        "looks-sequential" => MisfitKind::LooksSequential,
        "small-random-writes" => MisfitKind::SmallRandomWrites,
        "member-skew" => MisfitKind::MemberSkew {
            chunk_bytes: 65_536,
            members: 4,
        },
        "record-mismatch" => MisfitKind::RecordMismatch {
            record_bytes: 131_072,
        },
        _ => return None,
    };
    Some(Box::new(
        PlantedMisfits {
            seed,
            total: events,
            misfits,
            kind,
            penalty_ns: 0,
        }
        .iter(),
    ))
}

/// A writer of the format `name`, `None` for a name that is not in [`FORMATS`].
/// For `blktrace` this is the merged stream of all CPUs; [`Blktrace::new`] makes a file a CPU.
///
/// # Errors
/// Of the sink, where a format begins with a head.
pub fn writer<'a>(
    name: &str,
    sink: impl Write + 'a,
    shapes: Shapes,
    version: Version,
    endian: Endian,
) -> Result<Option<Box<dyn EventSink + 'a>>, WriteError> {
    Ok(Some(match name {
        "blktrace" => Box::new(Blktrace::new(vec![sink], version, endian, shapes)),
        "blkparse" => Box::new(BlkparseText::new(sink, shapes, false)),
        "vscsi1" => Box::new(Vscsi::new(sink, VscsiVersion::V1)),
        "vscsi2" => Box::new(Vscsi::new(sink, VscsiVersion::V2)),
        "msr" => Box::new(Msr::new(sink)),
        "spc" => Box::new(Spc::new(sink)),
        "disksim" => Box::new(Disksim::new(sink, DisksimTime::Milliseconds)),
        "mqsim" => Box::new(Disksim::new(sink, DisksimTime::Nanoseconds)),
        "systor" => Box::new(Systor::new(sink, true)),
        "alibaba" => Box::new(Alibaba::new(sink)),
        "tencent" => Box::new(Tencent::new(sink)),
        "iolog2" => Box::new(FioIolog::new(sink, IologVersion::V2)?),
        "iolog3" => Box::new(FioIolog::new(sink, IologVersion::V3)?),
        "etw-de" => Box::new(Etw::new(sink, EtwLocale::German)?),
        "etw-en" => Box::new(Etw::new(sink, EtwLocale::English)?),
        "perf" => Box::new(PerfScript::new(
            sink,
            PerfStyle {
                ftrace: false,
                priority: false,
            },
        )),
        "ftrace" => Box::new(PerfScript::new(
            sink,
            PerfStyle {
                ftrace: true,
                priority: true,
            },
        )),
        "tnfdump" => Box::new(Tnfdump::new(sink)?),
        "residue" => Box::new(Residue::new(sink, 512, 2048)),
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::write_all;

    const SIZE: Size = Size {
        seed: 1,
        events: 2_000,
        devices: 3,
        cpus: 4,
        misfits: 20,
    };

    #[test]
    fn every_format_takes_every_workload() {
        for format in FORMATS {
            for workload in WORKLOADS {
                let mut bytes = Vec::new();
                let shapes = Shapes {
                    cpus: 4,
                    ..Shapes::default()
                };
                let made =
                    writer(format, &mut bytes, shapes, Version::V8, Endian::Big).expect("memory");
                let load = events(workload, SIZE).expect("a known name");
                let written =
                    write_all(made.expect("a known name").as_mut(), load).expect("memory");
                assert_eq!(
                    written.events + written.left_out,
                    2_000,
                    "{workload} as {format}"
                );
                assert!(written.left_out < 120, "{workload} as {format}");
                assert!(!bytes.is_empty());
            }
        }
    }

    #[test]
    fn unknown_names_are_none() {
        assert!(events("nonsense", SIZE).is_none());
        let none = writer(
            "nonsense",
            Vec::new(),
            Shapes::default(),
            Version::V7,
            Endian::Little,
        );
        assert!(none.expect("no sink used").is_none());
    }
}
