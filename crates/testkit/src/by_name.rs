//! Workloads by their names on the command line. Writers are in [`crate::write::WRITERS`].

use crate::event::{SynthEvent, SynthOp};
use crate::workload::{MisfitKind, Mixed, Oltp, PlantedMisfits, Streams};
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::blkrecord::{Endian, Version};
    use crate::write::lifecycle::Shapes;
    use crate::write::{Style, WRITERS, write_all};

    const SIZE: Size = Size {
        seed: 1,
        events: 2_000,
        devices: 3,
        cpus: 4,
        misfits: 20,
    };

    #[test]
    fn every_format_takes_every_workload() {
        let style = Style {
            shapes: Shapes {
                cpus: 4,
                ..Shapes::default()
            },
            version: Version::V8,
            endian: Endian::Big,
        };
        for writer in WRITERS {
            let format = writer.name;
            for workload in WORKLOADS {
                let mut bytes = Vec::new();
                let mut made = (writer.open)(Box::new(&mut bytes), &style).expect("memory");
                let load = events(workload, SIZE).expect("a known name");
                let written = write_all(made.as_mut(), load).expect("memory");
                drop(made);
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
    }
}
