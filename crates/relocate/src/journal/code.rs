//! Numbers, byte strings and plans as the journal has them: numbers of 64 bits, little-endian; before every list and
//! every string its length.

use std::ops::Range;

use crate::Unit;
use crate::moving::JournalId;
use crate::moving::plan::{ByteChange, Copying, LIST_MAX, Plan};
use crate::{DiskOffset, PartOffset};

/// Bytes that grow.
#[derive(Default)]
pub(super) struct CodeWriter(pub(super) Vec<u8>);

impl CodeWriter {
    pub(super) fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn numbers(&mut self, values: &[u64]) {
        self.number(values.len() as u64);
        values.iter().for_each(|value| self.number(*value));
    }

    fn changes<At: Copy>(&mut self, changes: &[ByteChange<At>], number: fn(At) -> u64) {
        self.number(changes.len() as u64);
        for change in changes {
            self.number(number(change.at));
            self.bytes(&change.old);
            self.bytes(&change.new);
        }
    }

    fn ranges(&mut self, ranges: &[Range<u64>]) {
        self.number(ranges.len() as u64);
        for range in ranges {
            self.number(range.start);
            self.number(range.end);
        }
    }

    pub(super) fn plan(&mut self, plan: &Plan) {
        self.bytes(plan.partition.as_bytes());
        self.bytes(plan.disk.as_bytes());
        self.bytes(plan.journal_path.as_bytes());
        let (copying, window) = match plan.copying {
            Copying::Windows(bytes) => (0, bytes),
            Copying::Batches(bytes) => (1, bytes),
        };
        let numbers = [
            plan.disk_bytes,
            plan.logical_block_bytes.into(),
            plan.physical_block_bytes.into(),
            plan.from.0,
            plan.to.0,
            plan.len,
            plan.unit.bytes,
            plan.unit.offset,
            copying,
            window,
            plan.at_once,
        ];
        numbers.into_iter().for_each(|number| self.number(number));
        self.changes(&plan.hide, |at| at.0);
        self.changes(&plan.finish, |at| at.0);
        self.ranges(&plan.signatures);
        self.ranges(&plan.strays);
        self.changes(&plan.fix_ups, |at| at.0);
        self.0.extend_from_slice(&plan.journal.0);
    }
}

/// Bytes that are consumed. `None` for data that end too early or are invalid.
pub(super) struct CodeReader<'a>(pub(super) &'a [u8]);

impl<'a> CodeReader<'a> {
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// 0 or 1.
    pub(super) fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Never longer than the available bytes.
    pub(super) fn bytes(&mut self) -> Option<Vec<u8>> {
        let len = usize::try_from(self.number()?).ok()?;
        Some(self.take(len)?.to_vec())
    }

    pub(super) fn numbers(&mut self) -> Option<Vec<u64>> {
        let len = usize::try_from(self.number()?).ok()?.checked_mul(8)?;
        let bytes = self.take(len)?.chunks_exact(8);
        bytes
            .map(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)))
            .collect()
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let len = usize::try_from(self.number()?)
            .ok()
            .filter(|len| *len <= LIST_MAX)?;
        (0..len).map(|_| one(self)).collect()
    }

    fn changes<At>(&mut self, at: fn(u64) -> At) -> Option<Vec<ByteChange<At>>> {
        self.list(|input| {
            Some(ByteChange {
                at: at(input.number()?),
                old: input.bytes()?,
                new: input.bytes()?,
            })
        })
    }

    fn ranges(&mut self) -> Option<Vec<Range<u64>>> {
        self.list(|input| Some(input.number()?..input.number()?))
    }

    pub(super) fn plan(&mut self) -> Option<Plan> {
        let (partition, disk, journal_path) = (self.text()?, self.text()?, self.text()?);
        let disk_bytes = self.number()?;
        let logical_block_bytes = u32::try_from(self.number()?).ok()?;
        let physical_block_bytes = u32::try_from(self.number()?).ok()?;
        let (from, to, len) = (self.number()?, self.number()?, self.number()?);
        let unit = Unit {
            bytes: self.number()?,
            offset: self.number()?,
        };
        let copying = match (self.number()?, self.number()?) {
            (0, bytes) => Copying::Windows(bytes),
            (1, bytes) => Copying::Batches(bytes),
            _ => return None,
        };
        let at_once = self.number()?;
        let hide = self.changes(DiskOffset)?;
        let finish = self.changes(DiskOffset)?;
        let (signatures, strays) = (self.ranges()?, self.ranges()?);
        let fix_ups = self.changes(PartOffset)?;
        let journal = JournalId(self.take(16)?.try_into().ok()?);
        Some(Plan {
            partition,
            disk,
            disk_bytes,
            logical_block_bytes,
            physical_block_bytes,
            journal,
            journal_path,
            from: DiskOffset(from),
            to: DiskOffset(to),
            len,
            unit,
            copying,
            at_once,
            hide,
            finish,
            signatures,
            strays,
            fix_ups,
        })
    }
}
