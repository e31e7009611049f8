//! Statements of the stack under a target and of the user about its grid, beside the measurement.

use std::path::Path;

use plumb_geometry::Grid;
use plumb_load::probe::conclusion::Conclusion;
use plumb_load::probe::stated::{Statement, StatementComparison};
use plumb_load::probe::{Candidate, Probed};
use plumb_load::result::probe::{Hint, HintOutcome};
use plumb_model::facts::Direction;
use plumb_stack::fold::Phase;
use plumb_stack::{Belief, CellKind, GridFact, Kind, Source, Stack};

use crate::check::sources::{self, GatheredHost};
use crate::check::target;

/// A grid that somebody states, in the address space of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated {
    /// CellKind it is.
    pub what: CellKind,
    /// The layer that states it.
    pub layer: String,
    /// The source.
    pub source: String,
    /// The grid.
    pub grid: Candidate,
    /// Why the stack's reader does not believe it; `None` where it does.
    pub doubt: Option<String>,
}

/// Collects the grids that the user and all layers below the target state, and finds the kind of the target.
pub fn collect(path: &Path, given: &[Grid]) -> (Vec<Stated>, Kind) {
    let mut stated: Vec<Stated> = Vec::new();
    for grid in given {
        let grid = Candidate {
            granularity_bytes: grid.granularity().0,
            offset_bytes: grid.offset().0,
        };
        let (layer, source) = (path.display().to_string(), Source::User.to_string());
        stated.push(Stated {
            what: CellKind::ArrayUnit,
            layer,
            source,
            grid,
            doubt: None,
        });
    }
    let mut gathered = GatheredHost::default();
    // CellKind the stack is helps to read the result; a host that does not tell is no reason not to measure.
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

/// All statements of the target, which applications see. For the layers below, not the limits that the kernel has
/// computed from still lower devices: those state them themselves.
fn below(stack: &Stack, id: plumb_stack::NodeId) -> Vec<Stated> {
    let mut stated = Vec::new();
    for landing in stack.landings(id).all {
        let node = stack.node(landing.on);
        let is_own = landing.on == id || stack.node(id).kind == Kind::Partition;
        let is_asked = |fact: &&GridFact| is_measured(fact.what) && (is_own || fact.is_believed());
        for fact in node.grids.iter().filter(is_asked) {
            let Phase::Past(past) = landing.phase(&fact.grid) else {
                continue;
            };
            let granularity_bytes = fact.granularity().0;
            let offset_bytes = (granularity_bytes - past.0) % granularity_bytes;
            let doubt = match &fact.belief {
                Belief::Believed => None,
                Belief::Doubted { why } => Some(plumb_report::words::doubt(why)),
            };
            stated.push(Stated {
                what: fact.what,
                layer: node.name.clone(),
                source: fact.source.to_string(),
                grid: Candidate {
                    granularity_bytes,
                    offset_bytes,
                },
                doubt,
            });
        }
    }
    stated
}

/// Whether I/O can cross it.
fn is_measured(what: CellKind) -> bool {
    matches!(
        what,
        CellKind::PhysicalBlock
            | CellKind::MinimumIo
            | CellKind::OptimalIo
            | CellKind::WriteAlignment
            | CellKind::IndirectionUnit
            | CellKind::IoBoundary
            | CellKind::Chunk
            | CellKind::ParityStripe
            | CellKind::ArrayUnit
            | CellKind::CryptSector
            | CellKind::Ashift
    )
}

impl Stated {
    /// The statement beside the measurement: `probed` is `None` where the measurement is not believed.
    pub fn judged(&self, probed: Option<&Probed>, verdict: Conclusion, op: Direction) -> Hint {
        let is_flat = verdict == Conclusion::NoPenalty;
        let is_writing = op == Direction::Write;
        let comparison = statement(self.what, self.grid).compare(probed, is_flat, is_writing);
        let (outcome, why) = words(comparison, op);
        Hint {
            what: self.what.text().to_owned(),
            layer: self.layer.clone(),
            source: self.source.clone(),
            grid: self.grid,
            outcome,
            why,
            doubt: self.doubt.clone(),
        }
    }
}

fn statement(what: CellKind, grid: Candidate) -> Statement {
    Statement {
        grid,
        is_of_blocks: what == CellKind::PhysicalBlock,
        is_of_reads: matches!(
            what,
            CellKind::PhysicalBlock | CellKind::Chunk | CellKind::IoBoundary | CellKind::ArrayUnit
        ),
    }
}

/// A comparison as a report shows it.
fn words(comparison: StatementComparison, op: Direction) -> (HintOutcome, String) {
    use HintOutcome::{Confirmed, Open, Refuted};
    let (bytes, ios) = (plumb_report::format::bytes, op.all());
    let none = || format!("no {} pays for crossing it", op.one());
    match comparison {
        StatementComparison::Same => (Confirmed, format!("{ios} show the same")),
        StatementComparison::OtherOffset { measured } => {
            let offset = bytes(measured.offset_bytes);
            (Refuted, format!("{ios} show the offset {offset}"))
        }
        StatementComparison::SmallerBlocks { measured } => {
            let blocks = bytes(measured.granularity_bytes);
            (Refuted, format!("{ios} show smaller blocks, of {blocks}"))
        }
        StatementComparison::OnMeasured => (
            Open,
            format!("is on the grid that {ios} show; its additional cost was not measured"),
        ),
        StatementComparison::LargerBlocks { measured } => {
            let blocks = bytes(measured.granularity_bytes);
            (Refuted, format!("{ios} show blocks of {blocks}"))
        }
        StatementComparison::Apart => (Refuted, format!("is not on the grid that {ios} show")),
        StatementComparison::NoPenalty if op == Direction::Read => {
            (Refuted, none() + "; writes may")
        }
        StatementComparison::NoPenalty => (Refuted, none()),
        StatementComparison::NoPenaltyOfReads => (Open, none() + "; it may be about writes"),
        StatementComparison::TooFine => (
            Open,
            format!("smaller than any {} that can cross it", op.one()),
        ),
        StatementComparison::NotDecided => (Open, "not decided in the time".to_owned()),
        StatementComparison::NoVerdict => (Open, "nothing was decided".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use plumb_load::probe::conclusion::Why;
    use plumb_load::probe::{ProbeVerdict as Found, Searched, drift::PaceCourse};

    use super::*;

    fn grid(granularity_bytes: u64, offset_bytes: u64) -> Candidate {
        Candidate {
            granularity_bytes,
            offset_bytes,
        }
    }

    #[test]
    fn statements_are_compared_with_measurements() {
        use HintOutcome::{Confirmed, Open, Refuted};
        for (what, stated, seen, outcome) in [
            (
                CellKind::MinimumIo,
                grid(4096, 3072),
                grid(4096, 3072),
                Confirmed,
            ),
            (
                CellKind::PhysicalBlock,
                grid(4096, 0),
                grid(4096, 0),
                Confirmed,
            ),
            (
                CellKind::PhysicalBlock,
                grid(4096, 0),
                grid(4096, 3072),
                Refuted,
            ),
            (
                CellKind::PhysicalBlock,
                grid(512, 0),
                grid(4096, 3072),
                Refuted,
            ),
            (CellKind::MinimumIo, grid(512, 0), grid(4096, 0), Refuted),
            (
                CellKind::PhysicalBlock,
                grid(8192, 0),
                grid(4096, 0),
                Refuted,
            ),
            (CellKind::MinimumIo, grid(8192, 0), grid(4096, 0), Open),
            (
                CellKind::OptimalIo,
                grid(65_536, 3072),
                grid(4096, 3072),
                Open,
            ),
            (
                CellKind::OptimalIo,
                grid(65_536, 0),
                grid(4096, 3072),
                Refuted,
            ),
            (CellKind::Chunk, grid(8192, 0), grid(3 * 4096, 0), Refuted),
        ] {
            assert_eq!(
                words(statement(what, stated).compare_grid(seen), Direction::Read).0,
                outcome,
                "{what:?} {stated:?} {seen:?}"
            );
        }
    }

    /// Nothing costs more up to 64 KiB: a statement of a unit there is refuted if reads would show it.
    #[test]
    fn statements_are_held_against_there_being_no_penalty() {
        use HintOutcome::{Open, Refuted};
        let searched = [4096, 16_384, 65_536, 262_144].map(|granularity_bytes| Searched {
            granularity_bytes,
            len_bytes: 1024,
            flat_within: (granularity_bytes <= 65_536).then_some(0.02),
        });
        let probed = Probed {
            verdict: Found::NoPenalty,
            grid: None,
            penalty: None,
            penalty_len_bytes: 0,
            crossing: None,
            coarser_within: None,
            searched: searched.to_vec(),
            bars: Vec::new(),
            reads: 1_000,
            bytes: 1 << 20,
            spent: std::time::Duration::from_secs(1),
            settled_ns: None,
            course: PaceCourse::default(),
            cache: None,
            space_bytes: 1 << 30,
        };
        for (what, stated, outcome) in [
            (CellKind::PhysicalBlock, grid(4096, 0), Refuted),
            (CellKind::PhysicalBlock, grid(4096, 3584), Refuted),
            (CellKind::Chunk, grid(65_536, 0), Refuted),
            (CellKind::Chunk, grid(131_072, 0), Open),
            (CellKind::MinimumIo, grid(4096, 0), Open),
            (CellKind::OptimalIo, grid(16_384, 0), Open),
            (CellKind::PhysicalBlock, grid(512, 0), Open),
        ] {
            let (layer, source) = ("loop0".to_owned(), "a test".to_owned());
            let stated = Stated {
                what,
                layer,
                source,
                grid: stated,
                doubt: None,
            };
            let hint = stated.judged(Some(&probed), Conclusion::NoPenalty, Direction::Read);
            assert_eq!(hint.outcome, outcome, "{what:?} {}", hint.why);
            let hint = stated.judged(None, Conclusion::Inconclusive(Why::Broken), Direction::Read);
            assert_eq!(hint.outcome, Open, "nothing was seen");
        }
    }
}
