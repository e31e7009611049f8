//! The parts of a SCSI disk with a medium behind them, by its own statement: GET LBA STATUS (SBC-4, 5.7). Asked only if
//! READ CAPACITY reports thin provisioning, because the kernel has seen that answer already, and bridges are known to
//! fail on unknown commands.

use std::path::Path;

use plumb_sys::scsi::{self, BlockRun};
use plumb_sys::{Directory, FileId};

use crate::target::Target;

/// Most questions to a disk. Each is a round trip; a disk in more pieces is not asked further.
const QUESTIONS_MAX: u32 = 1024;

/// The mapped parts of a target within `start..end`, in order; `None` where the disk does not tell, or contradicts itself.
pub(super) fn mapped(target: &Target, (start, end): (u64, u64)) -> Option<Vec<(u64, u64)>> {
    let FileId::Device(number) = target.id() else {
        return None;
    };
    let on_disk = scsi::thin_start(&Directory::root(Path::new("/")).ok()?, number)?;
    let block = u64::from(target.block_bytes());
    let (first, last) = (start.checked_add(on_disk)?, end.checked_add(on_disk)?);
    let blocks = (first / block, last.div_ceil(block));
    let found = walked(blocks, |from| scsi::lba_status(target.io(), from).ok())?;
    let bytes = |block_number: u64| block_number.saturating_mul(block).saturating_sub(on_disk);
    Some(
        found
            .into_iter()
            .map(|(from, to)| (bytes(from), bytes(to)))
            .collect(),
    )
}

/// From the first block to the end, asking for the remaining part. Everything behind the last question counts as
/// mapped.
fn walked(
    (first, end): (u64, u64),
    mut ask: impl FnMut(u64) -> Option<Vec<BlockRun>>,
) -> Option<Vec<(u64, u64)>> {
    let (mut at, mut parts) = (first, Vec::new());
    for _ in 0..QUESTIONS_MAX {
        if at >= end {
            return Some(parts);
        }
        let asked = at;
        for run in ask(at)? {
            // A gap is nobody's word.
            let next = run
                .first
                .checked_add(u64::from(run.blocks))
                .filter(|_| run.first <= at)?;
            if run.is_mapped && next > at && at < end {
                parts.push((at, next.min(end)));
            }
            at = at.max(next);
        }
        if at == asked {
            return None;
        }
    }
    if at < end {
        parts.push((at, end));
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: u64, blocks: u32, is_mapped: bool) -> BlockRun {
        BlockRun {
            first,
            blocks,
            is_mapped,
        }
    }

    /// A disk that reports a number of runs at once.
    fn disk(runs: &[BlockRun], at_once: usize) -> impl FnMut(u64) -> Option<Vec<BlockRun>> {
        move |from| {
            let is_ahead = |run: &&BlockRun| run.first + u64::from(run.blocks) > from;
            Some(
                runs.iter()
                    .filter(is_ahead)
                    .take(at_once)
                    .copied()
                    .collect(),
            )
        }
    }

    #[test]
    fn all_runs_are_asked_for() {
        let runs = [
            run(0, 100, false),
            run(100, 50, true),
            run(150, 50, true),
            run(200, 800, false),
        ];
        for at_once in 1..5 {
            let found = |range| walked(range, disk(&runs, at_once));
            assert_eq!(
                found((0, 1000)),
                Some(vec![(100, 150), (150, 200)]),
                "{at_once} at once"
            );
            assert_eq!(found((0, 100)), Some(vec![]));
            assert_eq!(found((120, 180)), Some(vec![(120, 150), (150, 180)]));
        }
        assert_eq!(walked((5, 5), |_| None), Some(vec![]), "nothing to ask");
    }

    #[test]
    fn contradictory_timings_are_inconclusive() {
        for answer in [
            vec![],
            vec![run(0, 0, true)],
            vec![run(0, 10, true)],
            vec![run(u64::MAX, 1, true)],
            vec![run(10, 5, true), run(20, 5, true)],
        ] {
            let said = format!("{answer:?}");
            assert_eq!(walked((10, 100), |_| Some(answer.clone())), None, "{said}");
        }
        assert_eq!(walked((0, 10), |_| None), None);
    }

    #[test]
    fn a_disk_in_very_many_pieces_is_not_asked_to_its_end() {
        let mut questions = 0;
        let end = 1 << 40;
        let found = walked((0, end), |from| {
            questions += 1;
            Some(vec![run(from, 1, from % 2 == 0)])
        });
        let found = found.expect("a list");
        assert_eq!(
            (questions, found.len()),
            (QUESTIONS_MAX, QUESTIONS_MAX as usize / 2 + 1)
        );
        assert_eq!(found.last(), Some(&(u64::from(QUESTIONS_MAX), end)));
    }
}
