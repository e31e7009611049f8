//! A grid that somebody states, held against the grid that was measured.

use super::{Candidate, Probed};

/// A statement about a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The grid, in the address space of the target.
    pub grid: Candidate,
    /// Whether it is that of physical blocks: nothing within a block can be missed, so no coarser grid is one too.
    pub is_of_blocks: bool,
    /// Whether it holds for reads as well as for writes.
    pub is_of_reads: bool,
}

/// The comparison of a statement with a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementComparison {
    /// The grid is the one that was measured.
    Same,
    /// The measured grid has the same granularity, and begins elsewhere.
    OtherOffset {
        /// The measured grid.
        measured: Candidate,
    },
    /// The measured blocks are smaller than the stated ones.
    SmallerBlocks {
        /// The measured grid.
        measured: Candidate,
    },
    /// The stated grid is coarser, and its boundaries are on the measured one: whether they cost more was not measured.
    OnMeasured,
    /// The measured blocks are larger than the stated ones.
    LargerBlocks {
        /// The measured grid.
        measured: Candidate,
    },
    /// Neither grid is on the other.
    Apart,
    /// Nothing pays for crossing a boundary.
    NoPenalty,
    /// No read pays for crossing a boundary; the statement may be about writes.
    NoPenaltyOfReads,
    /// The granularity is smaller than any I/O that can cross it.
    TooFine,
    /// The granularity was not decided in the time.
    NotDecided,
    /// There is no verdict to compare with.
    NoVerdict,
}

impl Statement {
    /// Holds it against a measurement: `probed` is `None` where the measurement is not believed, `is_flat` where its verdict
    /// is that nothing costs more, and `is_writing` where it was made of writes.
    #[must_use]
    pub fn compare(
        &self,
        probed: Option<&Probed>,
        is_flat: bool,
        is_writing: bool,
    ) -> StatementComparison {
        match probed.and_then(|probed| probed.grid) {
            Some(measured) => self.compare_grid(measured),
            None if is_flat => self.compare_flat(probed, is_writing),
            None => StatementComparison::NoVerdict,
        }
    }

    fn compare_flat(&self, probed: Option<&Probed>, is_writing: bool) -> StatementComparison {
        let granularity = self.grid.granularity_bytes;
        let searched = probed.map_or(&[][..], |probed| &probed.searched);
        let smallest = searched
            .iter()
            .map(|one| one.granularity_bytes)
            .min()
            .unwrap_or(0);
        if granularity < smallest / 4 {
            return StatementComparison::TooFine;
        }
        let flat = searched.iter().take_while(|one| one.flat_within.is_some());
        if flat
            .map(|one| one.granularity_bytes)
            .max()
            .is_none_or(|most| granularity > most)
        {
            return StatementComparison::NotDecided;
        }
        if is_writing || self.is_of_reads {
            StatementComparison::NoPenalty
        } else {
            StatementComparison::NoPenaltyOfReads
        }
    }

    /// Holds it against the measured grid.
    #[must_use]
    pub fn compare_grid(&self, measured: Candidate) -> StatementComparison {
        let stated = self.grid;
        let (large, small) = match stated.granularity_bytes >= measured.granularity_bytes {
            true => (stated, measured),
            false => (measured, stated),
        };
        let is_within = large
            .granularity_bytes
            .is_multiple_of(small.granularity_bytes)
            && large.offset_bytes % small.granularity_bytes == small.offset_bytes;
        if stated == measured {
            StatementComparison::Same
        } else if stated.granularity_bytes == measured.granularity_bytes {
            StatementComparison::OtherOffset { measured }
        } else if !is_within {
            StatementComparison::Apart
        } else if stated.granularity_bytes < measured.granularity_bytes {
            StatementComparison::LargerBlocks { measured }
        } else if self.is_of_blocks {
            StatementComparison::SmallerBlocks { measured }
        } else {
            StatementComparison::OnMeasured
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(granularity_bytes: u64, offset_bytes: u64) -> Candidate {
        Candidate {
            granularity_bytes,
            offset_bytes,
        }
    }

    #[test]
    fn grids_differ_by_granularity_and_offset() {
        for (stated, is_of_blocks, measured, expected) in [
            (grid(4096, 3072), true, grid(4096, 3072), |_| {
                StatementComparison::Same
            }),
            (grid(4096, 0), true, grid(4096, 3072), |measured| {
                StatementComparison::OtherOffset { measured }
            }),
            (grid(512, 0), true, grid(4096, 3072), |measured| {
                StatementComparison::LargerBlocks { measured }
            }),
            (grid(8192, 0), true, grid(4096, 0), |measured| {
                StatementComparison::SmallerBlocks { measured }
            }),
            (grid(8192, 0), false, grid(4096, 0), |_| {
                StatementComparison::OnMeasured
            }),
            (grid(65_536, 0), false, grid(4096, 3072), |_| {
                StatementComparison::Apart
            }),
            (grid(8192, 0), false, grid(3 * 4096, 0), |_| {
                StatementComparison::Apart
            }),
        ]
            as [(_, _, _, fn(Candidate) -> StatementComparison); 7]
        {
            let statement = Statement {
                grid: stated,
                is_of_blocks,
                is_of_reads: true,
            };
            assert_eq!(
                statement.compare_grid(measured),
                expected(measured),
                "{stated:?}"
            );
        }
    }

    #[test]
    fn nothing_measured_compares_with_nothing() {
        let statement = Statement {
            grid: grid(4096, 0),
            is_of_blocks: true,
            is_of_reads: true,
        };
        assert_eq!(
            statement.compare(None, false, false),
            StatementComparison::NoVerdict
        );
        assert_eq!(
            statement.compare(None, true, false),
            StatementComparison::NotDecided
        );
    }
}
