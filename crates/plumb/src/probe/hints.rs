//! What the stack under a target and the user state of its grid, and what the measurement says of that.

use std::path::Path;

use plumb_geometry::Grid;
use plumb_load::probe::{Candidate, Probed};
use plumb_report::probe::{Hint, HintOutcome, Verdict};
use plumb_stack::fold::Phase;
use plumb_stack::{Kind, Source, Stack, What};

use crate::check::sources::{self, Gathered};
use crate::check::target;

/// A grid that somebody states, in the address space of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated {
    /// What it is.
    pub what: What,
    /// The layer that states it.
    pub layer: String,
    /// Who said so.
    pub source: String,
    /// The grid.
    pub grid: Candidate,
}

/// Of all layers below the target, and of the user; what the target is.
pub fn of(path: &Path, given: &[Grid]) -> (Vec<Stated>, Kind) {
    let mut stated: Vec<Stated> = Vec::new();
    for grid in given {
        let grid = Candidate { granularity_bytes: grid.granularity().0, offset_bytes: grid.offset().0 };
        let (layer, source) = (path.display().to_string(), Source::User.to_string());
        stated.push(Stated { what: What::ArrayUnit, layer, source, grid });
    }
    let mut gathered = Gathered::default();
    // What the stack is helps to read the result; a host that does not tell is no reason not to measure.
    if sources::live(Some(path), &mut gathered, &[]).is_err() {
        return (stated, Kind::Unknown);
    }
    let stack = std::mem::take(&mut gathered.builder).finish();
    let Ok(Some(id)) = target::find(&stack, Some(path), gathered.target) else {
        return (stated, Kind::Unknown);
    };
    for of_layer in below(&stack, id) {
        if !stated.contains(&of_layer) {
            stated.push(of_layer);
        }
    }
    (stated, stack.node(id).kind)
}

fn below(stack: &Stack, id: plumb_stack::NodeId) -> Vec<Stated> {
    let mut stated = Vec::new();
    for landing in stack.landings(id).all {
        let node = stack.node(landing.on);
        for fact in node.grids.iter().filter(|fact| fact.is_believed() && is_measured(fact.what)) {
            let Phase::Past(past) = landing.phase(&fact.grid) else { continue };
            let granularity_bytes = fact.granularity().0;
            let offset_bytes = (granularity_bytes - past.0) % granularity_bytes;
            stated.push(Stated {
                what: fact.what,
                layer: node.name.clone(),
                source: fact.source.to_string(),
                grid: Candidate { granularity_bytes, offset_bytes },
            });
        }
    }
    stated
}

/// Whether reads can cross it.
fn is_measured(what: What) -> bool {
    matches!(
        what,
        What::PhysicalBlock
            | What::MinimumIo
            | What::OptimalIo
            | What::WriteAlignment
            | What::IndirectionUnit
            | What::IoBoundary
            | What::Chunk
            | What::ParityStripe
            | What::ArrayUnit
            | What::CryptSector
            | What::Ashift
    )
}

impl Stated {
    /// Held against what was seen.
    pub fn judged(&self, probed: Option<&Probed>, verdict: Verdict) -> Hint {
        let (outcome, why) = match probed.and_then(|probed| probed.grid) {
            Some(seen) => against(self.grid, seen),
            None if verdict == Verdict::NoPenalty => self.without_penalty(probed),
            None => (HintOutcome::Open, "nothing was decided".to_owned()),
        };
        Hint {
            what: self.what.words().to_owned(),
            layer: self.layer.clone(),
            source: self.source.clone(),
            grid: plumb_report::probe::Grid {
                granularity_bytes: self.grid.granularity_bytes,
                offset_bytes: self.grid.offset_bytes,
            },
            outcome,
            why,
        }
    }

    fn without_penalty(&self, probed: Option<&Probed>) -> (HintOutcome, String) {
        let granularity = self.grid.granularity_bytes;
        let searched = probed.map_or(&[][..], |probed| &probed.searched);
        let smallest = searched.iter().map(|one| one.granularity_bytes).min().unwrap_or(0);
        if granularity < smallest / 4 {
            return (HintOutcome::Open, "smaller than any read that can cross it".to_owned());
        }
        let flat = searched.iter().take_while(|one| one.flat_within.is_some());
        if flat.map(|one| one.granularity_bytes).max().is_none_or(|most| granularity > most) {
            return (HintOutcome::Open, "not decided in the time".to_owned());
        }
        match self.what {
            What::PhysicalBlock | What::Chunk | What::IoBoundary | What::ArrayUnit => {
                (HintOutcome::Refuted, "no read pays for crossing it; writes may".to_owned())
            }
            _ => (HintOutcome::Open, "no read pays for crossing it; it may be about writes".to_owned()),
        }
    }
}

/// One grid against the one that was seen.
fn against(stated: Candidate, seen: Candidate) -> (HintOutcome, String) {
    let (large, small) = match stated.granularity_bytes >= seen.granularity_bytes {
        true => (stated, seen),
        false => (seen, stated),
    };
    let is_within = large.granularity_bytes.is_multiple_of(small.granularity_bytes)
        && large.offset_bytes % small.granularity_bytes == small.offset_bytes;
    let bytes = plumb_report::format::bytes;
    if stated == seen {
        (HintOutcome::Confirmed, "that is what reads show".to_owned())
    } else if stated.granularity_bytes == seen.granularity_bytes {
        (HintOutcome::Refuted, format!("reads show the offset {}", bytes(seen.offset_bytes)))
    } else if is_within && stated.granularity_bytes > seen.granularity_bytes {
        (HintOutcome::Open, "lies on the grid that reads show".to_owned())
    } else if is_within {
        (HintOutcome::Refuted, format!("reads show blocks of {}", bytes(seen.granularity_bytes)))
    } else {
        (HintOutcome::Refuted, "does not lie on the grid that reads show".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_held_against_what_was_seen() {
        let grid = |granularity_bytes, offset_bytes| Candidate { granularity_bytes, offset_bytes };
        for (stated, seen, outcome) in [
            (grid(4096, 3072), grid(4096, 3072), HintOutcome::Confirmed),
            (grid(4096, 0), grid(4096, 3072), HintOutcome::Refuted),
            (grid(512, 0), grid(4096, 3072), HintOutcome::Refuted),
            (grid(65_536, 3072), grid(4096, 3072), HintOutcome::Open),
            (grid(65_536, 0), grid(4096, 3072), HintOutcome::Refuted),
            (grid(8192, 0), grid(3 * 4096, 0), HintOutcome::Refuted),
        ] {
            assert_eq!(against(stated, seen).0, outcome, "{stated:?} {seen:?}");
        }
    }
}
