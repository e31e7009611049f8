//! The windows in which a run of bytes reaches another place, and why no crash loses one.
//!
//! Windows begin and end on units of their target place, so that a torn write destroys only the window itself. None is
//! longer than the shift, so none shares a unit with its own source; and in the order of the shift none shares one with
//! the source of a later window. A window that covers a unit only in part, or overlaps its own source, goes through the
//! journal.

use std::ops::Range;

use super::plan::{Copying, Plan};
use crate::Unit;
use crate::mutation::{Mutation, Mutations};

/// A part of a move that is written at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MoveWindow {
    /// The written blocks: whole units, as far as the disk has them.
    pub(crate) blocks: Range<u64>,
    /// The moved part.
    pub(crate) moved: Range<u64>,
    /// Whether it goes through the journal.
    pub(crate) is_journalled: bool,
}

/// All windows of a run, in the order in which they are written.
#[derive(Debug, Clone)]
pub(crate) struct Windows {
    /// The run at its new place.
    to: Range<u64>,
    /// The source of the run.
    from: u64,
    /// The start of the partition at the run's source place.
    partition_at: u64,
    /// From the first byte to the last, as a shift towards the beginning of the disk needs it.
    is_ascending: bool,
    unit: Unit,
    disk_bytes: u64,
    copying: Copying,
    at_once: u64,
    has_edges: bool,
}

impl Windows {
    /// The windows of a move.
    pub(crate) fn forward(plan: &Plan, mutations: Mutations) -> Self {
        let mut copying = plan.copying;
        if let Copying::Windows(_) = copying
            && mutations.has(Mutation::LongWindow)
        {
            copying =
                Copying::Windows(plan.unit.floor_len(plan.shift_bytes()) + 2 * plan.unit.bytes);
        }
        Self {
            to: plan.new_place(),
            from: plan.from.0,
            partition_at: plan.from.0,
            is_ascending: plan.to < plan.from,
            unit: plan.unit,
            disk_bytes: plan.disk_bytes,
            copying,
            // The journal would protect windows that overlap their own source.
            at_once: if mutations.has(Mutation::LongWindow) {
                1
            } else {
                plan.at_once
            },
            has_edges: !mutations.has(Mutation::NoEdges),
        }
    }

    /// The windows that restore the part of the source that the first `done` windows of a move, and perhaps a part of
    /// the next one, have overwritten.
    pub(crate) fn back(plan: &Plan, done: u64, mutations: Mutations) -> Self {
        let forward = Self::forward(plan, mutations);
        let old = plan.old_place();
        let reached = match forward.get(done) {
            // Nobody knows how much of it was written.
            Some(next) if !next.is_journalled => Some(next),
            _ => done.checked_sub(1).and_then(|last| forward.get(last)),
        };
        let to = match reached {
            None => old.start..old.start,
            Some(window) if forward.is_ascending => old.start..window.blocks.end.min(old.end),
            Some(window) => window.blocks.start.max(old.start)..old.end,
        };
        // Data beyond the source need no restore.
        let to = if to.is_empty() {
            old.start..old.start
        } else {
            to
        };
        let from = to.start + plan.to.0 - plan.from.0;
        let is_ascending = forward.is_ascending == mutations.has(Mutation::WrongEnd);
        Self {
            to,
            from,
            partition_at: plan.to.0,
            is_ascending,
            ..forward
        }
    }

    /// The bytes of the disk that the windows fill.
    pub(crate) fn place(&self) -> Range<u64> {
        self.to.clone()
    }

    /// The start that the partition would have if all of it were at the windows' source.
    pub(crate) fn place_of_source(&self) -> u64 {
        self.partition_at
    }

    /// Nothing to be written.
    pub(crate) fn none(self) -> Self {
        Self {
            to: self.to.start..self.to.start,
            ..self
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        if self.to.is_empty() {
            return 0;
        }
        let (head, middle, tail) = self.parts();
        u64::from(!head.is_empty()) + self.pieces(&middle) + u64::from(!tail.is_empty())
    }

    /// The run's first unit if it is covered in part, the units that can be cut into windows, and its last unit if that
    /// is covered in part.
    fn parts(&self) -> (Range<u64>, Range<u64>, Range<u64>) {
        let cover = self.unit.cover(&self.to, self.disk_bytes);
        if let Copying::Batches(_) = self.copying {
            return (
                cover.start..cover.start,
                cover.clone(),
                cover.end..cover.end,
            );
        }
        let ends = self.to.end == cover.end;
        let middle_end = if ends {
            cover.end
        } else {
            self.unit.floor(self.to.end)
        };
        let middle_start = self.unit.ceil(self.to.start);
        if middle_start > middle_end {
            return (cover.clone(), cover.end..cover.end, cover.end..cover.end);
        }
        (
            cover.start..middle_start,
            middle_start..middle_end,
            middle_end..cover.end,
        )
    }

    fn window_bytes(&self) -> u64 {
        let (Copying::Windows(bytes) | Copying::Batches(bytes)) = self.copying;
        bytes
    }

    fn pieces(&self, middle: &Range<u64>) -> u64 {
        let len = middle.end - middle.start;
        if len == 0 {
            0
        } else {
            (len + self.missing(middle)).div_ceil(self.window_bytes())
        }
    }

    /// Number `index`, and for a straight copy the later ones that are read with it: they are adjacent.
    pub(crate) fn read_with(&self, index: u64) -> Vec<MoveWindow> {
        let mut found: Vec<MoveWindow> = self.get(index).into_iter().collect();
        if found.iter().all(|first| !first.is_journalled) {
            let behind =
                (index + 1..index.saturating_add(self.at_once)).map_while(|index| self.get(index));
            found.extend(behind.take_while(|window| !window.is_journalled));
        }
        found
    }

    /// The missing part of the first block of the windows: the first and the last one of a disk can be shorter, and
    /// windows are counted as if they were not.
    fn missing(&self, middle: &Range<u64>) -> u64 {
        if self.is_ascending {
            if middle.start < self.unit.offset {
                self.unit.bytes - self.unit.offset + middle.start
            } else {
                0
            }
        } else {
            self.unit.ceil(middle.end) - middle.end
        }
    }

    /// Number `index` in the order of writing.
    pub(crate) fn get(&self, index: u64) -> Option<MoveWindow> {
        if index >= self.count() {
            return None;
        }
        let (head, middle, tail) = self.parts();
        let (first, last) = if self.is_ascending {
            (head, tail)
        } else {
            (tail, head)
        };
        let Some(piece) = index.checked_sub(u64::from(!first.is_empty())) else {
            return Some(self.edge(first));
        };
        if piece >= self.pieces(&middle) {
            return Some(self.edge(last));
        }
        let (bytes, missing) = (self.window_bytes(), self.missing(&middle));
        let near = (piece * bytes).saturating_sub(missing);
        let far = ((piece + 1) * bytes - missing).min(middle.end - middle.start);
        let blocks = if self.is_ascending {
            middle.start + near..middle.start + far
        } else {
            middle.end - far..middle.end - near
        };
        let is_journalled = matches!(self.copying, Copying::Batches(_));
        Some(MoveWindow {
            moved: self.moved_of(&blocks),
            blocks,
            is_journalled,
        })
    }

    fn edge(&self, blocks: Range<u64>) -> MoveWindow {
        let moved = self.moved_of(&blocks);
        if self.has_edges {
            return MoveWindow {
                blocks,
                moved,
                is_journalled: true,
            };
        }
        MoveWindow {
            blocks: moved.clone(),
            moved,
            is_journalled: false,
        }
    }

    fn moved_of(&self, blocks: &Range<u64>) -> Range<u64> {
        blocks.start.max(self.to.start)..blocks.end.min(self.to.end)
    }

    /// The source of a window's data.
    pub(crate) fn source_of(&self, moved: &Range<u64>) -> Range<u64> {
        let start = self.from + (moved.start - self.to.start);
        start..start + (moved.end - moved.start)
    }

    /// Bytes that are at their place after `count` windows, and all that have to come there.
    pub(crate) fn bytes_after(&self, count: u64) -> (u64, u64) {
        let total = self.to.end - self.to.start;
        let last = count
            .checked_sub(1)
            .and_then(|last| self.get(last.min(self.count().saturating_sub(1))));
        let done = match last {
            None => 0,
            Some(window) if self.is_ascending => window.moved.end - self.to.start,
            Some(window) => self.to.end - window.moved.start,
        };
        (done, total)
    }

    /// Blocks of the journal that all windows take.
    pub(crate) fn journal_blocks(&self, block_bytes: u64) -> u64 {
        let (head, middle, tail) = self.parts();
        let edges = [head, tail]
            .iter()
            .map(|edge| (edge.end - edge.start).div_ceil(block_bytes) + 1)
            .sum::<u64>();
        let pieces = self.pieces(&middle);
        let records = match self.copying {
            // The sums of those that are read at once, behind at most 96 bytes of others.
            Copying::Windows(_) => pieces
                .div_ceil(self.at_once.max(1))
                .saturating_mul((96 + 8 * self.at_once).div_ceil(block_bytes)),
            // That it begins, and that it was written.
            Copying::Batches(_) => pieces.saturating_mul(2),
        };
        edges.saturating_add(records).saturating_add(4)
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;

    fn all(windows: &Windows) -> Vec<MoveWindow> {
        (0..windows.count())
            .map(|index| windows.get(index).expect("below the count"))
            .collect()
    }

    /// The basis of crash safety, for every pair of places in a small range: compared with each unit separately.
    #[test]
    fn windows_spare_their_source_and_those_to_come() {
        let (sector, unit) = (
            512,
            Unit {
                bytes: 4096,
                offset: 0,
            },
        );
        for offset in [0, 3584] {
            let unit = Unit { offset, ..unit };
            for from in (0..40).step_by(3) {
                for to in (0..60).filter(|to| *to != from) {
                    let mut plan = plan(from * sector, to * sector, 37 * sector);
                    plan.unit = unit;
                    let shift = plan.shift_bytes();
                    plan.copying = match shift < 2 * unit.bytes {
                        true => Copying::Batches(2 * unit.bytes),
                        false => Copying::Windows(unit.floor_len(shift)),
                    };
                    plan.at_once = if shift < 2 * unit.bytes { 1 } else { 2 };
                    plan.check().expect("a good plan");
                    check_order(&Windows::forward(&plan, Mutations::default()), unit);
                }
            }
        }
    }

    fn check_order(windows: &Windows, unit: Unit) {
        let list = all(windows);
        let mut moved = 0;
        for (index, window) in list.iter().enumerate() {
            let source = windows.source_of(&window.moved);
            let torn = unit.cover(&window.moved, u64::MAX >> 2);
            moved += window.moved.end - window.moved.start;
            assert!(
                window.is_journalled || torn == window.moved,
                "{windows:?} {window:?}"
            );
            let spares = |range: &Range<u64>| torn.end <= range.start || range.end <= torn.start;
            assert!(
                window.is_journalled || spares(&source),
                "{windows:?} {window:?}"
            );
            for later in &list[index + 1..] {
                assert!(
                    spares(&windows.source_of(&later.moved)),
                    "{windows:?} {window:?} {later:?}"
                );
            }
        }
        assert_eq!(moved, windows.to.end - windows.to.start, "{windows:?}");
        check_groups(windows, &list);
    }

    /// Each joint read is one run of bytes, and all groups together are all windows.
    fn check_groups(windows: &Windows, list: &[MoveWindow]) {
        let mut index = 0;
        while index < list.len() {
            let group = windows.read_with(index as u64);
            assert_eq!(group[..], list[index..index + group.len()], "{windows:?}");
            let touch = |pair: &[MoveWindow]| {
                pair[0].moved.end == pair[1].moved.start || pair[1].moved.end == pair[0].moved.start
            };
            assert!(
                group.len() as u64 <= windows.at_once && group.windows(2).all(touch),
                "{windows:?}"
            );
            assert!(
                group.len() == 1 || group.iter().all(|window| !window.is_journalled),
                "{windows:?}"
            );
            index += group.len();
        }
        assert_eq!(windows.read_with(index as u64), []);
    }

    /// After every number of windows: the restored part equals the overwritten one, and comes from its target.
    #[test]
    fn a_rollback_restores_overwritten_bytes() {
        for (from, to) in [(34, 64), (64, 34), (34, 40), (63, 64), (8, 100), (100, 8)] {
            let mut plan = plan(from * 512, to * 512, 45 * 512);
            let shift = plan.shift_bytes();
            if shift >= 2 * 4096 {
                plan.copying = Copying::Windows(4096);
            }
            let forward = Windows::forward(&plan, Mutations::default());
            for done in 0..=forward.count() {
                let back = Windows::back(&plan, done, Mutations::default());
                check_order(&back, plan.unit);
                let written: Vec<MoveWindow> = all(&forward)
                    .into_iter()
                    .take(usize::try_from(done).unwrap())
                    .collect();
                for byte in plan.old_place().step_by(512) {
                    let is_lost = written.iter().any(|window| window.blocks.contains(&byte));
                    let comes_back = back.to.contains(&byte);
                    assert!(
                        comes_back || !is_lost,
                        "{from} {to} {done}: {byte} stays lost"
                    );
                    let copy = byte + plan.to.0 - plan.from.0;
                    let is_copied = written.iter().any(|window| window.moved.contains(&copy));
                    assert!(
                        is_copied || !comes_back,
                        "{from} {to} {done}: {byte} was never copied"
                    );
                }
            }
        }
    }
}
