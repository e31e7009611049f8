//! Records of the journal, as values and as bytes. `docs/move.md` draws the bytes.

use super::code::{CodeReader, CodeWriter};
use super::sum::sum;
use crate::moving::plan::Plan;
use crate::moving::{JournalId, LossKind, LostRange};

/// The first bytes of every record.
pub(crate) const MAGIC: &[u8; 8] = b"PLUMBJRN";
/// Bytes before the payload.
pub(crate) const HEADER_BYTES: usize = 64;
/// No record is longer: plans are bounded by this.
const RECORD_BYTES_MAX: u64 = 64 << 20;
/// A change of direction, durable before its first write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The move begins.
    Move,
    /// Somebody goes on in the same direction.
    Resume,
    /// From here on back, after this number of steps of the move.
    Rollback { from: u64 },
}

/// How a move ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The partition is at its new place.
    Moved,
    /// The partition is where it was before.
    RolledBack,
}

/// Bytes that are about to be written to the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Image {
    /// In the record itself.
    Inline(Vec<u8>),
    /// In the journal's slot: length and sum.
    Slot { len: u64, sum: u64 },
}

impl Image {
    /// How many bytes it has.
    pub(crate) fn len_bytes(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            Self::Slot { len, .. } => *len,
        }
    }
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JournalRecord {
    /// The first one.
    Begin(Box<Plan>),
    /// The content of a signature.
    Saved { signature: u64, bytes: Vec<u8> },
    /// A change of direction, or somebody who takes it up again.
    Turn(Turn),
    /// A step that is about to be written; whole units from `at` on.
    Image { step: u64, at: u64, image: Image },
    /// A written image; `moved` is the sum of its bytes that belong to the partition.
    Written { step: u64, moved: u64 },
    /// Windows that are about to be written, one a step, each with the sum of its data.
    Windows {
        step: u64,
        is_saved: bool,
        sums: Vec<u64>,
    },
    /// Bytes of the partition that a step could not copy: recorded before its data are written, or at the comparison.
    /// It replaces the earlier record of that step.
    Lost {
        step: LossStep,
        ranges: Vec<LostRange>,
    },
    /// One unit that is about to be written again, out of the order of steps. The next record stands for its having been
    /// written.
    Mend { at: u64, bytes: Vec<u8> },
    /// Nothing comes after it.
    End(Ending),
}

/// The step whose data are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LossStep {
    /// Its number.
    pub(crate) number: u64,
    /// Whether the number is one of the move; else it is one of the rollback.
    pub(crate) is_of_move: bool,
}

impl LossStep {
    /// The number of losses that belong to no step, so that none takes them back.
    pub(crate) const KEPT: u64 = u64::MAX;
}

impl JournalRecord {
    fn kind(&self) -> u32 {
        match self {
            Self::Begin(_) => 1,
            Self::Saved { .. } => 2,
            Self::Turn(_) => 3,
            Self::Image { .. } => 4,
            Self::Written { .. } => 5,
            Self::End(_) => 6,
            Self::Windows { .. } => 7,
            Self::Lost { .. } => 8,
            Self::Mend { .. } => 9,
        }
    }

    fn payload(&self) -> Vec<u8> {
        let mut out = CodeWriter::default();
        match self {
            Self::Begin(plan) => out.plan(plan),
            Self::Saved { signature, bytes } => {
                out.number(*signature);
                out.bytes(bytes);
            }
            Self::Turn(turn) => {
                let (kind, from) = match turn {
                    Turn::Move => (0, 0),
                    Turn::Resume => (1, 0),
                    Turn::Rollback { from } => (2, *from),
                };
                out.number(kind);
                out.number(from);
            }
            Self::Image { step, at, image } => {
                out.number(*step);
                out.number(*at);
                match image {
                    Image::Inline(bytes) => {
                        out.number(0);
                        out.bytes(bytes);
                    }
                    Image::Slot { len, sum } => {
                        [1, *len, *sum].into_iter().for_each(|n| out.number(n))
                    }
                }
            }
            Self::Written { step, moved } => {
                [*step, *moved].into_iter().for_each(|n| out.number(n))
            }
            Self::Windows {
                step,
                is_saved,
                sums,
            } => {
                [*step, u64::from(*is_saved)]
                    .into_iter()
                    .for_each(|n| out.number(n));
                out.numbers(sums);
            }
            Self::Lost { step, ranges } => {
                out.number(step.number);
                out.number(u64::from(step.is_of_move));
                out.number(ranges.len() as u64);
                for lost in ranges {
                    let kind = u64::from(lost.kind == LossKind::Doubtful);
                    [lost.range.start, lost.range.end, kind]
                        .into_iter()
                        .for_each(|n| out.number(n));
                }
            }
            Self::Mend { at, bytes } => {
                out.number(*at);
                out.bytes(bytes);
            }
            Self::End(ending) => out.number(u64::from(*ending == Ending::RolledBack)),
        }
        out.0
    }

    pub(super) fn decode(kind: u32, payload: &[u8]) -> Option<Self> {
        let mut input = CodeReader(payload);
        let record = match kind {
            1 => Self::Begin(Box::new(input.plan()?)),
            2 => Self::Saved {
                signature: input.number()?,
                bytes: input.bytes()?,
            },
            3 => Self::Turn(match (input.number()?, input.number()?) {
                (0, 0) => Turn::Move,
                (1, 0) => Turn::Resume,
                (2, from) => Turn::Rollback { from },
                _ => return None,
            }),
            4 => {
                let (step, at) = (input.number()?, input.number()?);
                let image = match input.number()? {
                    0 => Image::Inline(input.bytes()?),
                    1 => Image::Slot {
                        len: input.number()?,
                        sum: input.number()?,
                    },
                    _ => return None,
                };
                Self::Image { step, at, image }
            }
            5 => Self::Written {
                step: input.number()?,
                moved: input.number()?,
            },
            6 => Self::End(match input.number()? {
                0 => Ending::Moved,
                1 => Ending::RolledBack,
                _ => return None,
            }),
            7 => {
                let step = input.number()?;
                let is_saved = input.flag()?;
                Self::Windows {
                    step,
                    is_saved,
                    sums: input.numbers()?,
                }
            }
            8 => {
                let step = LossStep {
                    number: input.number()?,
                    is_of_move: input.flag()?,
                };
                // A group of 64 MiB can have more of them than other lists are allowed.
                let count = usize::try_from(input.number()?).ok()?;
                let bytes = input.take(count.checked_mul(24)?)?;
                let lost = |bytes: &[u8]| {
                    let mut input = CodeReader(bytes);
                    let range = input.number()?..input.number()?;
                    let kind = match input.flag()? {
                        false => LossKind::Unreadable,
                        true => LossKind::Doubtful,
                    };
                    Some(LostRange { range, kind })
                };
                let ranges = bytes.chunks_exact(24).map(lost);
                Self::Lost {
                    step,
                    ranges: ranges.collect::<Option<_>>()?,
                }
            }
            9 => Self::Mend {
                at: input.number()?,
                bytes: input.bytes()?,
            },
            _ => return None,
        };
        input.0.is_empty().then_some(record)
    }
}

/// The header of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) journal: JournalId,
    pub(crate) number: u64,
    pub(crate) kind: u32,
    pub(crate) block_bytes: u32,
    pub(crate) payload_bytes: u64,
    /// Sum of the record before it.
    pub(crate) before: u64,
    /// Sum of this record.
    pub(crate) sum: u64,
}

impl RecordHeader {
    /// The record as bytes, filled up to whole blocks, and its sum.
    pub(crate) fn encode(
        journal: JournalId,
        number: u64,
        before: u64,
        block_bytes: u32,
        record: &JournalRecord,
    ) -> (Vec<u8>, u64) {
        let payload = record.payload();
        let mut out = CodeWriter(Vec::with_capacity(
            HEADER_BYTES + payload.len() + block_bytes as usize,
        ));
        out.0.extend_from_slice(MAGIC);
        out.0.extend_from_slice(&journal.0);
        out.number(number);
        out.0.extend_from_slice(&record.kind().to_le_bytes());
        out.0.extend_from_slice(&block_bytes.to_le_bytes());
        out.number(payload.len() as u64);
        out.number(before);
        let sum = sum(&[&out.0, &payload]);
        out.number(sum);
        out.0.extend_from_slice(&payload);
        out.0
            .resize(out.0.len().next_multiple_of(block_bytes as usize), 0);
        (out.0, sum)
    }

    /// The header in the first bytes of a block, if they are one.
    pub(crate) fn decode(block: &[u8]) -> Option<Self> {
        let mut input = CodeReader(block.get(..HEADER_BYTES)?);
        if input.take(8)? != MAGIC {
            return None;
        }
        let journal = JournalId(input.take(16)?.try_into().ok()?);
        let number = input.number()?;
        let kind_and_block = input.number()?;
        Some(Self {
            journal,
            number,
            kind: kind_and_block as u32,
            block_bytes: (kind_and_block >> 32) as u32,
            payload_bytes: input.number()?,
            before: input.number()?,
            sum: input.number()?,
        })
    }

    /// The record of this header, if its sum is right. `bytes` are header and payload.
    pub(crate) fn record(&self, bytes: &[u8]) -> Option<JournalRecord> {
        let (head, payload) = (bytes.get(..HEADER_BYTES - 8)?, bytes.get(HEADER_BYTES..)?);
        if sum(&[head, payload]) != self.sum {
            return None;
        }
        JournalRecord::decode(self.kind, payload)
    }

    /// Whether a journal can have such blocks, and a record such a length.
    pub(crate) fn is_possible(&self) -> bool {
        let is_block =
            self.block_bytes.is_multiple_of(4096) && (4096..=1 << 20).contains(&self.block_bytes);
        is_block && self.payload_bytes <= RECORD_BYTES_MAX
    }

    /// Bytes of the record, header included; `None` when no file could hold it.
    pub(crate) fn len_bytes(&self) -> Option<u64> {
        self.payload_bytes.checked_add(HEADER_BYTES as u64)
    }
}
