//! Exact sums on the grids that a question names beforehand: an asked grid, or one that the stack states.
//!
//! While a table keeps every length, its rows answer for every grid. From the moment at which it drops lengths, it
//! counts each I/O on these grids as well, before the length is dropped. The sums of the time before follow from the
//! rows, which are exact until then.

use serde::{Deserialize, Serialize};

use plumb_geometry::{Bytes, Fit, Grid, GridKind};
use plumb_trace::Op;

use super::Key;
use super::cells::Cells;
use crate::fit::{FitSums, Select};

/// Most grids of a table: each costs a division for each I/O once lengths are dropped.
pub const GRIDS_MAX: usize = 16;

/// Sums by operation (reads, writes) and by "continues a stream".
type SumsOfGrid = [[FitSums; 2]; 2];

/// Grids, and the exact sums on each once the rows of the table no longer give them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    /// In their order, each once.
    grids: Vec<Grid>,
    /// One for each grid, or none while the rows of the table are exact.
    sums: Vec<SumsOfGrid>,
}

impl Counters {
    /// Counters of the grids that residues modulo `modulus_bytes` can tell.
    pub(super) fn new(grids: &[Grid], modulus_bytes: u64) -> Counters {
        let mut grids: Vec<Grid> = grids
            .iter()
            .copied()
            .filter(|grid| grid.divides(modulus_bytes))
            .collect();
        grids.sort_unstable_by_key(order);
        grids.dedup();
        grids.truncate(GRIDS_MAX);
        Counters {
            grids,
            sums: Vec::new(),
        }
    }

    /// The same grids with nothing counted.
    pub(super) fn emptied(&self) -> Counters {
        Counters {
            grids: self.grids.clone(),
            sums: Vec::new(),
        }
    }

    /// Whether I/O have to be counted here.
    #[inline(always)]
    pub(super) fn are_counting(&self) -> bool {
        !self.sums.is_empty()
    }

    /// Counts no more: some I/O came without an exact length.
    pub(super) fn give_up(&mut self) {
        *self = Counters::default();
    }

    /// Begins to count, from the present sums of a table's rows. All of them have to be exact.
    pub(super) fn begin(&mut self, cells: &Cells, unit: u64) {
        if self.are_counting() {
            return;
        }
        self.sums = vec![SumsOfGrid::default(); self.grids.len()];
        for (key, row) in cells.iter() {
            self.count_key(key, row.ios, unit);
        }
    }

    fn count_key(&mut self, key: Key, ios: u64, unit: u64) {
        let (start, len) = (key.residue() * unit, key.length().saturating_mul(unit));
        self.count(key.op(), key.continues(), start, len, ios);
    }

    /// Counts I/O of one start and length.
    pub(super) fn count(
        &mut self,
        op: Op,
        continues: bool,
        start_bytes: u64,
        len_bytes: u64,
        ios: u64,
    ) {
        let of_op = match op {
            Op::Read => 0,
            Op::Write => 1,
            _ => return,
        };
        for (grid, sums) in self.grids.iter().zip(&mut self.sums) {
            if let Some(fit) = Fit::from_residue(start_bytes, Bytes(len_bytes), grid) {
                sums[of_op][usize::from(continues)].add(op, Bytes(len_bytes), &fit, ios, grid);
            }
        }
    }

    /// Keeps the grids that both sides have.
    pub(super) fn intersect(&mut self, other: &Counters) {
        let keep: Vec<bool> = self
            .grids
            .iter()
            .map(|grid| other.grids.contains(grid))
            .collect();
        let mut kept = keep.iter();
        self.sums.retain(|_| *kept.next().unwrap_or(&false));
        let mut kept = keep.iter();
        self.grids.retain(|_| *kept.next().unwrap_or(&false));
    }

    /// Adds the sums of a table whose counters have the grids of these among theirs.
    pub(super) fn absorb(&mut self, other: &Counters, cells: &Cells, unit: u64) {
        if !self.are_counting() {
            return;
        }
        let mut begun = other.clone();
        begun.begin(cells, unit);
        for (grid, sums) in self.grids.iter().zip(&mut self.sums) {
            let Some(at) = begun.grids.iter().position(|theirs| theirs == grid) else {
                continue;
            };
            let ours = sums.iter_mut().flatten();
            for (ours, theirs) in ours.zip(begun.sums[at].iter().flatten()) {
                ours.merge(theirs);
            }
        }
    }

    /// The exact sums of the I/O asked for on a grid, if they were counted.
    pub(super) fn answer(&self, grid: &Grid, select: Select) -> Option<FitSums> {
        if select.len_bytes_min > 1 || !self.are_counting() {
            return None;
        }
        let at = self.grids.iter().position(|counted| counted == grid)?;
        let mut answer = FitSums::default();
        for (op, of_op) in [Op::Read, Op::Write].into_iter().zip(&self.sums[at]) {
            for (continues, sums) in [false, true].into_iter().zip(of_op) {
                let takes_op = select.op.is_none_or(|only| only == op);
                if takes_op && select.continues.is_none_or(|only| only == continues) {
                    answer.merge(sums);
                }
            }
        }
        let is_of_data = matches!(select.op, None | Some(Op::Read | Op::Write));
        is_of_data.then_some(answer)
    }

    /// Whether counters from elsewhere can be those of a table.
    pub(super) fn are_valid(&self, base_modulus_bytes: u64, lengths_rounded: bool) -> bool {
        let sums = if lengths_rounded { self.grids.len() } else { 0 };
        self.sums.len() == sums
            && self.grids.len() <= GRIDS_MAX
            && self
                .grids
                .iter()
                .all(|grid| grid.divides(base_modulus_bytes))
            && self
                .grids
                .is_sorted_by(|one, next| order(one) < order(next))
            && self
                .sums
                .iter()
                .flatten()
                .flatten()
                .all(FitSums::is_plausible)
    }
}

fn order(grid: &Grid) -> (u64, u64, GridKind) {
    (grid.granularity().0, grid.offset().0, grid.kind())
}
