//! Whether I/O that do not fit take longer, compared like with like.
//!
//! Aligned and misaligned I/O are compared only within one operation, length and stream bit, and weighted to the mix of
//! the misaligned ones. The result is a difference, not a cost: that needs an experiment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use plumb_geometry::{Bytes, Grid, group_digits};
use plumb_trace::Op;

use crate::fit::{Select, Unknown};
use crate::table::{Row, Table};

/// Fewer timed I/O on either side of a stratum do not count.
pub const STRATUM_TIMED_MIN: u64 = 30;
/// This percentage of the misaligned I/O must be in strata that count.
pub const COVERAGE_PERCENT_MIN: u64 = 20;
/// A difference below this share of the latency does not matter.
pub const NO_COST_SHARE: f64 = 0.03;
/// This percentage of the misaligned I/O must be compared before they are called free: reads that cost nothing say nothing
/// about writes.
pub const NO_COST_COVERAGE_PERCENT_MIN: u64 = 90;
/// Width of the interval in standard errors: 95 of 100.
const Z: f64 = 1.96;

/// The comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum LatencyByFit {
    /// There was enough to compare.
    Difference {
        /// Mean latency of unfitting I/O less that of fitting ones of the same mix, ns.
        difference_ns: f64,
        /// Lower end of the 95 % interval, ns.
        low_ns: f64,
        /// Upper end of the 95 % interval, ns.
        high_ns: f64,
        /// Mean latency of the fitting I/O in that mix, ns.
        fitting_mean_ns: f64,
        /// Mean latency of the unfitting I/O that were compared, ns.
        unfitting_mean_ns: f64,
        /// Unfitting I/O that were compared.
        compared: u64,
        /// Writes among them.
        #[serde(default)]
        compared_writes: u64,
        /// Unfitting I/O that were timed.
        unfitting: u64,
        /// Pairs of groups that were compared.
        strata: u64,
    },
    /// There was not.
    NotComparable {
        /// Why.
        why: String,
    },
}

impl LatencyByFit {
    /// Whether misaligned I/O are shown to take no longer: the whole interval is below [`NO_COST_SHARE`], and
    /// [`NO_COST_COVERAGE_PERCENT_MIN`] of them were compared.
    #[must_use]
    pub fn shows_no_cost(&self) -> bool {
        let is_cheap = self
            .share_at_most()
            .is_some_and(|share| share < NO_COST_SHARE);
        is_cheap
            && matches!(*self, LatencyByFit::Difference { compared, unfitting, .. }
                if covers(compared, unfitting, NO_COST_COVERAGE_PERCENT_MIN))
    }

    /// Whether the same was shown for writes: on many devices a misaligned read costs nothing, and a misaligned write reads first.
    #[must_use]
    pub fn shows_no_cost_of_writes(&self) -> bool {
        self.shows_no_cost()
            && matches!(*self, LatencyByFit::Difference { compared_writes, .. }
                if compared_writes >= STRATUM_TIMED_MIN)
    }

    /// The upper end of the interval, as a share of the latency of fitting I/O; `None` without a comparison.
    #[must_use]
    pub fn share_at_most(&self) -> Option<f64> {
        match self {
            LatencyByFit::Difference {
                high_ns,
                fitting_mean_ns,
                ..
            } => Some(high_ns / fitting_mean_ns),
            LatencyByFit::NotComparable { .. } => None,
        }
    }
}

fn covers(part: u64, whole: u64, percent: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}

/// The common properties: whether the length was rounded, operation, length, stream bit.
type Stratum = (bool, u8, u64, bool);

#[derive(Clone, Copy, Default)]
struct LatencySums {
    timed: u64,
    sum: u128,
    squared_sum: u128,
}

impl LatencySums {
    fn add(&mut self, row: &Row) {
        self.timed = self.timed.saturating_add(row.timed);
        self.sum = self.sum.saturating_add(row.ns_sum);
        self.squared_sum = self.squared_sum.saturating_add(row.ns_squared_sum);
    }

    fn mean(&self) -> f64 {
        self.sum as f64 / self.timed as f64
    }

    /// Variance of the mean.
    fn mean_variance(&self) -> f64 {
        let timed = self.timed as f64;
        let spread = (self.squared_sum as f64 / timed - self.mean() * self.mean()).max(0.0);
        spread / (timed - 1.0)
    }
}

impl Table {
    /// Compares the latency of I/O that start on a grid with that of those that do not.
    ///
    /// # Errors
    /// If the table does not have the fit of its I/O on the grid.
    pub fn latency_by_fit(&self, grid: &Grid) -> Result<LatencyByFit, Unknown> {
        self.latency_by_fit_beside(self, grid)
    }

    /// Compares the latency of the I/O of this table that do not start on a grid with that of the I/O of another table of the
    /// disk that do.
    ///
    /// # Errors
    /// If a table does not have the fit of its I/O on the grid.
    pub fn latency_by_fit_beside(
        &self,
        fitting: &Table,
        grid: &Grid,
    ) -> Result<LatencyByFit, Unknown> {
        self.can_answer(grid)?;
        fitting.can_answer(grid)?;
        let moduli = [self, fitting].map(Table::modulus_bytes);
        if let Some(modulus) = moduli.into_iter().find(|modulus| !grid.divides(*modulus)) {
            return Ok(LatencyByFit::NotComparable {
                why: format!(
                    "starts are known modulo {} only, which {} does not divide",
                    Bytes(modulus),
                    grid.granularity()
                ),
            });
        }
        if self.is_spread_unknown() || fitting.is_spread_unknown() {
            return Ok(LatencyByFit::NotComparable {
                why: "the source does not tell the spread of its latencies".to_owned(),
            });
        }
        let mut strata: BTreeMap<Stratum, [LatencySums; 2]> = BTreeMap::new();
        for (side, table) in [fitting, self].into_iter().enumerate() {
            for (key, row) in table
                .iter()
                .filter(|(key, _)| Select::DATA.takes(*key, table.unit_bytes()))
            {
                let start = Bytes(key.residue() * table.unit_bytes());
                let is_off = grid.past_boundary(start).0 != 0;
                if usize::from(is_off) != side {
                    continue;
                }
                let stratum = (
                    key.is_rounded(),
                    key.op() as u8,
                    key.length().saturating_mul(table.unit_bytes()),
                    key.continues(),
                );
                strata.entry(stratum).or_default()[side].add(&row);
            }
        }
        Ok(compare(&strata))
    }
}

fn compare(strata: &BTreeMap<Stratum, [LatencySums; 2]>) -> LatencyByFit {
    let timed = |side: usize| {
        strata
            .values()
            .fold(0u64, |sum, sides| sum.saturating_add(sides[side].timed))
    };
    let (fitting, unfitting) = (timed(0), timed(1));
    let why = |why: String| LatencyByFit::NotComparable { why };
    if unfitting == 0 && fitting == 0 {
        return why("no latency is known".to_owned());
    }
    if unfitting == 0 || fitting == 0 {
        let (side, timed) = if unfitting == 0 {
            ("start on", fitting)
        } else {
            ("start off", unfitting)
        };
        return why(format!(
            "all {} timed I/O {side} the grid",
            group_digits(timed)
        ));
    }
    // Behind one rounded length there are several, and the longer ones need not be on the same side.
    let likes = strata.iter().filter(|((rounded, ..), sides)| {
        !rounded && sides.iter().all(|side| side.timed >= STRATUM_TIMED_MIN)
    });
    let writes = likes
        .clone()
        .filter(|((_, op, ..), _)| *op == Op::Write as u8);
    let compared_writes = writes.fold(0u64, |sum, (_, [_, off])| sum.saturating_add(off.timed));
    let counted: Vec<&[LatencySums; 2]> = likes.map(|(_, sides)| sides).collect();
    let compared = counted
        .iter()
        .fold(0u64, |sum, [_, off]| sum.saturating_add(off.timed));
    if !covers(compared, unfitting, COVERAGE_PERCENT_MIN) || compared == 0 {
        return why(format!(
            "{compared} of {unfitting} unfitting timed I/O have like ones that fit; {COVERAGE_PERCENT_MIN} % are needed"
        ));
    }
    let weighted = |value: &dyn Fn(&[LatencySums; 2]) -> f64| -> f64 {
        counted
            .iter()
            .map(|sides| sides[1].timed as f64 / compared as f64 * value(sides))
            .sum()
    };
    let fitting_mean_ns = weighted(&|[on, _]| on.mean());
    let unfitting_mean_ns = weighted(&|[_, off]| off.mean());
    let variance: f64 = counted
        .iter()
        .map(|[on, off]| {
            let weight = off.timed as f64 / compared as f64;
            weight * weight * (on.mean_variance() + off.mean_variance())
        })
        .sum();
    let difference_ns = unfitting_mean_ns - fitting_mean_ns;
    let reach = Z * variance.sqrt();
    LatencyByFit::Difference {
        difference_ns,
        low_ns: difference_ns - reach,
        high_ns: difference_ns + reach,
        fitting_mean_ns,
        unfitting_mean_ns,
        compared,
        compared_writes,
        unfitting,
        strata: counted.len() as u64,
    }
}
