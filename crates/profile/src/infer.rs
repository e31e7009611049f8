//! The real offset of the I/O, found from the I/O alone.
//!
//! For each granularity from 1 KiB to 1 MiB the offset of most I/O, by all I/O and by stream heads alone: continuations
//! only repeat the phase of their head. The verdict is the largest granularity at which the share of heads stays within
//! 10 % of that at the next smaller one. Two phases, for example of two partitions, are two answers: even if both are
//! on one grid of a smaller granularity, which then says less.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use plumb_geometry::{Bytes, SmallSort, group_digits};

use crate::fit::Select;
use crate::profile::Places;
use crate::table::Table;

/// Smallest granularity looked at; the share at half of it is 1 by definition.
pub const GRANULARITY_MIN: u64 = 1 << 10;
/// Largest granularity looked at.
pub const GRANULARITY_MAX: u64 = 1 << 20;
/// Fewer stream heads decide nothing: with 200, a share is known to about 7 points.
pub const HEADS_MIN: u64 = 200;
/// Heads must be in this number of 64ths of the device, or a small hot area would represent all of it.
pub const REGIONS_MIN: u32 = 8;
/// No single start may have more of the heads than this, in percent.
pub const SINGLE_START_PERCENT_MAX: u64 = 10;
/// How much of the share at the next smaller granularity must remain, in percent.
pub const REMAINING_PERCENT_MIN: u64 = 90;
/// A second phase must have so much of the heads, in percent, to be an answer of its own.
pub const SECOND_PHASE_PERCENT_MIN: u64 = 10;
/// An offset beside the verdict's with so much of all I/O, in percent, is worth a word.
pub const OTHER_OFFSET_PERCENT_MIN: u64 = 10;

/// One granularity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GranularityStep {
    /// Granularity.
    pub granularity_bytes: Bytes,
    /// Offset at which most heads start.
    pub offset_bytes: Bytes,
    /// Heads at that offset.
    pub heads: u64,
    /// All I/O at that offset.
    pub ios: u64,
    /// Offset with the second most heads.
    pub second_offset_bytes: Option<Bytes>,
    /// Heads at it.
    pub second_heads: u64,
    /// The heads at the best of that many random offsets, exceeded in 1 of 100 cases.
    pub chance_heads: u64,
}

/// A grid that the I/O reveal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Granularity.
    pub granularity_bytes: Bytes,
    /// Offset in the address space of the device.
    pub offset_bytes: Bytes,
    /// Heads on it.
    pub heads: u64,
    /// All I/O on it.
    pub ios: u64,
}

/// The result of inference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum InferenceVerdict {
    /// One grid.
    One {
        /// It.
        phase: Phase,
    },
    /// Two grids of one granularity.
    Two {
        /// They, the one with more heads first.
        phases: [Phase; 2],
    },
    /// The heads are on no grid of 1 KiB or more.
    NoGrid,
    /// Too little was seen to say anything.
    NotEnoughData {
        /// The facts found and needed.
        why: String,
    },
}

/// Everything that was looked at, and the verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inference {
    /// I/O with an extent.
    pub ios: u64,
    /// Stream heads among them.
    pub heads: u64,
    /// 64ths of the device in which heads were seen.
    pub regions: u32,
    /// Largest share that a single start can have, in heads.
    pub single_start_max: u64,
    /// Largest granularity looked at; absent if that is [`GRANULARITY_MAX`]. A full table keeps starts modulo a smaller number,
    /// and tells nothing of larger blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub examined_bytes: Option<Bytes>,
    /// By granularity.
    pub steps: Vec<GranularityStep>,
    /// The outcome.
    pub verdict: InferenceVerdict,
    /// Further offsets with many I/O at the verdict's granularity, most I/O first. Those with few heads hold
    /// streams that began elsewhere, and are no layout.
    pub other_offsets: Vec<Phase>,
}

/// Start in bytes, and I/O there.
type Start = (u64, u64);

/// Finds the offset of the I/O in one place.
#[must_use]
pub fn infer(places: &Places) -> Inference {
    let table = &places.table;
    let (heads_at, all_at, regions) = starts(table);
    let heads = sum(&heads_at);
    let single_start_max = places
        .read_heads
        .single_max()
        .saturating_add(places.write_heads.single_max());
    // The bound may be that of all of the device.
    let single_start_max = single_start_max.min(heads);
    let steps = steps(table, &heads_at, &all_at, heads);
    let are_starts_known = places
        .read_heads
        .total()
        .saturating_add(places.write_heads.total())
        > 0;
    let verdict = match not_enough(heads, regions, are_starts_known, single_start_max) {
        Some(why) => InferenceVerdict::NotEnoughData { why },
        None => verdict(&steps, heads, &all_at),
    };
    let other_offsets = other_offsets(&verdict, &heads_at, &all_at);
    Inference {
        ios: sum(&all_at),
        heads,
        regions,
        single_start_max,
        examined_bytes: examined(table).filter(|largest| largest.0 < GRANULARITY_MAX),
        steps,
        verdict,
        other_offsets,
    }
}

/// The largest granularity whose offsets the table keeps.
fn examined(table: &Table) -> Option<Bytes> {
    granularities(table).last().map(Bytes)
}

/// Granularities whose offsets the table keeps, rising.
fn granularities(table: &Table) -> impl Iterator<Item = u64> {
    let modulus = table.modulus_bytes();
    (0..)
        .map(|doubled| GRANULARITY_MIN << doubled)
        .take_while(move |&one| one <= GRANULARITY_MAX && modulus.is_multiple_of(one))
}

/// Sums saturate instead of wrapping, for any source.
fn sum(starts: &[Start]) -> u64 {
    starts
        .iter()
        .fold(0, |sum, &(_, ios)| sum.saturating_add(ios))
}

/// Whether `part` is at least this percentage of `whole`.
fn reaches(part: u64, whole: u64, percent: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}

fn other_offsets(verdict: &InferenceVerdict, heads_at: &[Start], all_at: &[Start]) -> Vec<Phase> {
    let phases: &[Phase] = match verdict {
        InferenceVerdict::One { phase } => std::slice::from_ref(phase),
        InferenceVerdict::Two { phases } => phases,
        InferenceVerdict::NoGrid | InferenceVerdict::NotEnoughData { .. } => &[],
    };
    let Some(granularity) = phases.first().map(|phase| phase.granularity_bytes) else {
        return Vec::new();
    };
    let all = sum(all_at);
    let mut others: Vec<Phase> = fold(all_at, granularity.0)
        .into_iter()
        .filter(|(offset, _)| !phases.iter().any(|phase| phase.offset_bytes.0 == *offset))
        .filter(|(_, ios)| reaches(*ios, all, OTHER_OFFSET_PERCENT_MIN))
        .map(|(offset, ios)| Phase {
            granularity_bytes: granularity,
            offset_bytes: Bytes(offset),
            heads: at(heads_at, granularity.0, offset),
            ios,
        })
        .collect();
    others.small_sort_by_key(|other| std::cmp::Reverse(other.ios));
    others
}

/// Stream heads and all I/O by start modulo M in bytes, rising, and the number of regions with heads.
fn starts(table: &Table) -> (Vec<Start>, Vec<Start>, u32) {
    let unit = table.unit_bytes();
    let mut starts: FxHashMap<u64, (Option<u64>, u64)> = FxHashMap::default();
    let mut regions = 0;
    for (key, row) in table
        .iter()
        .filter(|(key, _)| Select::DATA.takes(*key, unit))
    {
        let (heads, all) = starts.entry(key.residue() * unit).or_default();
        *all = all.saturating_add(row.ios);
        if !key.continues() {
            *heads = Some(heads.unwrap_or(0).saturating_add(row.ios));
            regions |= row.regions;
        }
    }
    let mut starts: Vec<(u64, (Option<u64>, u64))> = starts.into_iter().collect();
    starts.sort_unstable_by_key(|&(start, _)| start);
    let heads = starts
        .iter()
        .filter_map(|&(start, (heads, _))| Some((start, heads?)));
    let all = starts.iter().map(|&(start, (_, all))| (start, all));
    (heads.collect(), all.collect(), regions.count_ones())
}

fn steps(table: &Table, heads_at: &[Start], all_at: &[Start], heads: u64) -> Vec<GranularityStep> {
    let mut granularities: Vec<u64> = granularities(table).collect();
    let (mut heads_at, mut all_at) = (heads_at.to_vec(), all_at.to_vec());
    let mut steps = Vec::new();
    // From the largest down, since each has all that the next one needs, and twice as many starts.
    while let Some(granularity) = granularities.pop() {
        (heads_at, all_at) = (fold(&heads_at, granularity), fold(&all_at, granularity));
        let Some((first, second)) = fullest_two(&heads_at) else {
            break;
        };
        steps.push(GranularityStep {
            granularity_bytes: Bytes(granularity),
            offset_bytes: Bytes(first.0),
            heads: first.1,
            ios: at(&all_at, granularity, first.0),
            second_offset_bytes: second.map(|second| Bytes(second.0)),
            second_heads: second.map_or(0, |second| second.1),
            chance_heads: chance(heads, granularity / 512),
        });
    }
    steps.reverse();
    steps
}

/// The offset with most heads and the next one; of equals the smaller, so that the result does not hang on anything
/// else.
fn fullest_two(heads_at: &[Start]) -> Option<(Start, Option<Start>)> {
    let mut offsets = heads_at.iter().copied();
    let (mut first, mut second) = (offsets.next()?, None);
    for offset in offsets {
        if offset.1 > first.1 {
            (first, second) = (offset, Some(first));
        } else if second.is_none_or(|second: Start| offset.1 > second.1) {
            second = Some(offset);
        }
    }
    Some((first, second))
}

/// Starts, rising, modulo a granularity.
fn fold(starts: &[Start], granularity: u64) -> Vec<Start> {
    let mut folded: Vec<Start> = starts
        .iter()
        .map(|&(start, ios)| (start % granularity, ios))
        .collect();
    // A few rising runs, which a stable sort merges.
    folded.sort_by_key(|&(start, _)| start);
    folded.dedup_by(|(start, ios), (kept, sum)| {
        if start == kept {
            *sum = sum.saturating_add(*ios);
        }
        start == kept
    });
    folded
}

fn at(starts: &[Start], granularity: u64, offset: u64) -> u64 {
    let there = starts
        .iter()
        .filter(|(start, _)| *start % granularity == offset);
    there.fold(0, |sum, (_, ios)| sum.saturating_add(*ios))
}

/// The count of the fullest of `offsets` equal cells with random starts, exceeded in 1 of 100 cases, by the normal
/// bound of a maximum: mean + √(2·ln(100·offsets)·variance).
fn chance(heads: u64, offsets: u64) -> u64 {
    let share = 1.0 / offsets.max(1) as f64;
    let mean = heads as f64 * share;
    let spread = (2.0 * (100.0 * offsets as f64).ln() * mean * (1.0 - share)).sqrt();
    (mean + spread).ceil().min(heads as f64) as u64
}

fn not_enough(
    heads: u64,
    regions: u32,
    are_starts_known: bool,
    single_start_max: u64,
) -> Option<String> {
    if heads < HEADS_MIN {
        return Some(format!(
            "{} random I/O seen, {HEADS_MIN} needed",
            group_digits(heads)
        ));
    }
    if regions == 0 {
        return Some(
            "the source does not show the parts of the device that were touched".to_owned(),
        );
    }
    if !are_starts_known {
        return Some("the source does not tell how often a single place was touched".to_owned());
    }
    if regions < REGIONS_MIN {
        return Some(format!(
            "random I/O are in {regions} of 64 parts of the device, {REGIONS_MIN} needed"
        ));
    }
    if u128::from(single_start_max) * 100 > u128::from(heads) * u128::from(SINGLE_START_PERCENT_MAX)
    {
        return Some(format!(
            "a single start may have {single_start_max} of {heads} random I/O, at most {SINGLE_START_PERCENT_MAX} % allowed"
        ));
    }
    None
}

fn verdict(steps: &[GranularityStep], heads: u64, all_at: &[Start]) -> InferenceVerdict {
    let last = |share: &dyn Fn(&GranularityStep) -> u64| {
        let mut before = heads;
        let holds = |step: &&GranularityStep| {
            let now = share(step);
            reaches(
                now,
                std::mem::replace(&mut before, now),
                REMAINING_PERCENT_MIN,
            )
        };
        steps.iter().take_while(holds).last()
    };
    let one = last(&|step| step.heads);
    let both = last(&|step| step.heads.saturating_add(step.second_heads));
    // I/O of one phase always have two at twice its granularity, and all I/O have one at 512 bytes: two
    // phases say something only above.
    let least = 2 * one.map_or(GRANULARITY_MIN / 2, |step| step.granularity_bytes.0);
    let phase = |step: &GranularityStep, offset_bytes: Bytes, heads| Phase {
        granularity_bytes: step.granularity_bytes,
        offset_bytes,
        heads,
        ios: at(all_at, step.granularity_bytes.0, offset_bytes.0),
    };
    match (one, both) {
        (_, Some(step))
            if step.granularity_bytes.0 > least
                && reaches(step.second_heads, heads, SECOND_PHASE_PERCENT_MIN) =>
        {
            let second = step.second_offset_bytes.unwrap_or(step.offset_bytes);
            let phases = [
                phase(step, step.offset_bytes, step.heads),
                phase(step, second, step.second_heads),
            ];
            InferenceVerdict::Two { phases }
        }
        (Some(step), _) => InferenceVerdict::One {
            phase: phase(step, step.offset_bytes, step.heads),
        },
        _ => InferenceVerdict::NoGrid,
    }
}
