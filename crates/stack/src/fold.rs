//! Positions of the bytes of a layer on every layer below.
//!
//! Runs move bytes by a constant. Chunks and blocks move them by a value that is constant modulo their length, which is
//! enough for alignment: byte x of the top layer is at x + shift on the layer below, exactly, or modulo a period.

use plumb_geometry::{Bytes, Grid, gcd};

use crate::graph::{NodeId, Stack};
use crate::node::Placing;
use crate::obstacle::Obstacle;

/// Most landings that are followed: a volume of thousands of pieces over thousands of members.
pub const LANDINGS_MAX: usize = 1 << 14;

/// Most layers that are followed below each other: each landing names all of its own.
pub const LAYERS_MAX: usize = 256;

/// A run of bytes of a top layer, at its position on one layer below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landing {
    /// The layer of that position.
    pub on: NodeId,
    /// Byte x of the top layer is at x + shift.
    pub shift: i128,
    /// Modulo this, if not exactly.
    pub period: Option<Bytes>,
    /// First byte of the top that the run begins with.
    pub upper: Bytes,
    /// Its length, if known.
    pub len: Option<Bytes>,
    /// The layers in between, top first and both ends included.
    pub via: Vec<NodeId>,
}

/// All positions of a top layer.
#[derive(Clone, Debug, Default)]
pub struct Landings {
    /// By layer on the way, top first.
    pub all: Vec<Landing>,
    /// Layers under which the way is lost, and why.
    pub lost: Vec<(NodeId, Obstacle)>,
}

/// The phase of a position on a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Every cell of that length in the top begins this many bytes past a boundary; 0 is on it.
    Past(Bytes),
    /// On boundaries as far as the period tells, but the period is no multiple of the grid's: from one chunk to the
    /// next the phase differs by multiples of this.
    Varies(Bytes),
}

impl Landing {
    /// The phase of a cell that begins at byte 0 of the top layer, or at any multiple of the granularity, on a grid of
    /// the layer.
    #[must_use]
    pub fn phase(&self, grid: &Grid) -> Phase {
        let granularity = grid.granularity().0;
        let common = self
            .period
            .map_or(granularity, |period| gcd(period.0, granularity));
        let past = (self.shift - i128::from(grid.offset().0)).rem_euclid(i128::from(common)) as u64;
        if past != 0 || common == granularity {
            Phase::Past(Bytes(past))
        } else {
            Phase::Varies(Bytes(common))
        }
    }

    /// The part of this run that a run of the layer below takes over: none, if they do not meet.
    fn cut(&self, part_upper: Bytes, part_len: Option<Bytes>) -> Option<(Bytes, Option<Bytes>)> {
        if self.period.is_some() {
            return Some((self.upper, self.len));
        }
        let first = i128::from(self.upper.0).max(i128::from(part_upper.0) - self.shift);
        let end = |start: i128, len: Option<Bytes>| len.map(|len| start + i128::from(len.0));
        let ends = [
            end(i128::from(self.upper.0), self.len),
            end(i128::from(part_upper.0) - self.shift, part_len),
        ];
        let end = ends.into_iter().flatten().min();
        let len = end.map(|end| end - first);
        let first = u64::try_from(first).ok()?;
        match len {
            Some(len) if len <= 0 => None,
            len => Some((
                Bytes(first),
                len.map(|len| Bytes(u64::try_from(len).unwrap_or(u64::MAX))),
            )),
        }
    }
}

impl Stack {
    /// All positions of the bytes of a node, itself included.
    #[must_use]
    pub fn landings(&self, top: NodeId) -> Landings {
        let mut found = Landings::default();
        let mut next = 0;
        found.all.push(Landing {
            on: top,
            shift: 0,
            period: None,
            upper: Bytes(0),
            len: self.node(top).size,
            via: vec![top],
        });
        let mut known = std::collections::HashSet::new();
        while next < found.all.len() {
            let from = found.all[next].clone();
            next += 1;
            let node = self.node(from.on);
            if from.via.len() >= LAYERS_MAX {
                found.lost.push((
                    from.on,
                    Obstacle::TooManyLayers {
                        layers: LAYERS_MAX as u64,
                    },
                ));
                continue;
            }
            let mut go =
                |on: NodeId, move_by: i128, period: Option<Bytes>, run: (Bytes, Option<Bytes>)| {
                    let shift = period.map_or(from.shift + move_by, |period| {
                        (from.shift + move_by).rem_euclid(i128::from(period.0.max(1)))
                    });
                    if found.all.len() >= LANDINGS_MAX
                        || !known.insert((on, shift, period, from.via[0]))
                    {
                        return;
                    }
                    let mut via = from.via.clone();
                    via.push(on);
                    found.all.push(Landing {
                        on,
                        shift,
                        period,
                        upper: run.0,
                        len: run.1,
                        via,
                    });
                };
            let whole = (from.upper, from.len);
            let within = |chunk: Bytes| {
                Some(Bytes(
                    from.period
                        .map_or(chunk.0, |period| gcd(period.0, chunk.0))
                        .max(1),
                ))
            };
            match &node.placing {
                Placing::Leaf => {}
                Placing::Parts { parts } => {
                    for part in parts {
                        if let Some(run) = from.cut(part.upper, part.len) {
                            let move_by = i128::from(part.start.0) - i128::from(part.upper.0);
                            go(part.node, move_by, from.period, run);
                        }
                    }
                }
                Placing::Chunks(chunks) => {
                    for member in &chunks.members {
                        go(
                            member.node,
                            i128::from(member.start.0),
                            within(chunks.chunk),
                            whole,
                        );
                    }
                }
                Placing::Copies { members } => {
                    for member in members {
                        go(member.node, i128::from(member.start.0), from.period, whole);
                    }
                }
                Placing::Blocks { block, member } => {
                    go(
                        member.node,
                        i128::from(member.start.0),
                        within(*block),
                        whole,
                    );
                }
                Placing::Unknown { why, .. } => found.lost.push((from.on, why.clone())),
            }
            // Blocks lead further; they are opaque only because some are missing.
            if let (Placing::Leaf | Placing::Blocks { .. }, Some(why)) =
                (&node.placing, &node.opaque)
            {
                found.lost.push((from.on, why.clone()));
            }
        }
        if found.all.len() >= LANDINGS_MAX {
            found.lost.push((
                top,
                Obstacle::TooManyPieces {
                    pieces: LANDINGS_MAX as u64,
                },
            ));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use plumb_geometry::{GridKind, SECTOR};

    use super::*;
    use crate::builder::Builder;
    use crate::grid::{CellKind, GridFact, Source};
    use crate::node::{Chunks, Kind, Member, Part};
    use crate::verdict::Verdict;

    const FROM: Source = Source::User;

    fn run(node: NodeId, start: u64, len: u64) -> Placing {
        let part = Part {
            upper: Bytes(0),
            node,
            start: Bytes(start * SECTOR),
            len: Some(Bytes(len * SECTOR)),
        };
        Placing::Parts { parts: vec![part] }
    }

    fn disk(builder: &mut Builder, name: &str, grid: Grid) -> NodeId {
        let disk = builder.node(name);
        builder.kind(disk, Kind::Disk, &FROM);
        builder.grid(
            disk,
            GridFact::believed(grid, CellKind::PhysicalBlock, FROM),
        );
        disk
    }

    fn physical(offset: u64) -> Grid {
        Grid::new(Bytes(4096), Bytes(offset), GridKind::Unit).expect("a grid")
    }

    /// A partition at 63 with data from 2049 on is aligned, although neither value is.
    #[test]
    fn two_wrongs_can_make_a_right() {
        let mut builder = Builder::default();
        let sda = disk(&mut builder, "sda", physical(0));
        let (part, volume) = (builder.node("sda1"), builder.node("vg/lv"));
        builder.place(part, run(sda, 63, 100_000), &FROM);
        builder.place(volume, run(part, 2049, 8192), &FROM);
        let stack = builder.finish();
        let verdicts: Vec<Verdict> = stack
            .standings(volume)
            .into_iter()
            .map(|one| one.verdict)
            .collect();
        assert_eq!(verdicts, [Verdict::Aligned]);
        let alone = &stack.standings(part)[0];
        assert_eq!(
            alone.verdict,
            Verdict::Misaligned {
                by: Bytes(63 * 512 % 4096)
            }
        );
    }

    /// An alignment offset is part of the grid.
    #[test]
    fn grids_may_be_moved() {
        let mut builder = Builder::default();
        let sda = disk(&mut builder, "sda", physical(3584));
        for (name, start) in [("sda1", 2047), ("sda2", 2048)] {
            let part = builder.node(name);
            builder.place(part, run(sda, start, 8), &FROM);
        }
        let stack = builder.finish();
        let of = |name| {
            stack
                .standings(stack.find(name).expect("it"))
                .remove(0)
                .verdict
        };
        assert_eq!(of("sda1"), Verdict::Aligned);
        assert_eq!(of("sda2"), Verdict::Misaligned { by: Bytes(512) });
    }

    /// A grid far below as it is seen from a layer above: both say the same of every start.
    #[test]
    fn grids_are_seen_through_layers() {
        for (start, offset) in [(34, 0), (63, 0), (2048, 0), (2048, 3584), (7, 3584)] {
            let mut builder = Builder::default();
            let sda = disk(&mut builder, "sda", physical(offset));
            let middle = builder.node("middle");
            builder.place(middle, run(sda, start, 100_000), &FROM);
            let tops: Vec<NodeId> = (0..16)
                .map(|at| builder.node(&format!("top{at}")))
                .collect();
            for (at, top) in tops.iter().enumerate() {
                builder.place(*top, run(middle, at as u64, 8), &FROM);
            }
            let stack = builder.finish();
            let through = stack.grids_through(middle);
            assert_eq!(through.len(), 1);
            for (at, top) in tops.iter().enumerate() {
                let past = through[0].grid.past_boundary(Bytes(at as u64 * SECTOR));
                let folded = match stack.standings(*top).remove(0).verdict {
                    Verdict::Misaligned { by } => by,
                    _ => Bytes(0),
                };
                assert_eq!(past, folded, "{start} {offset} {at}");
            }
        }
    }

    /// Under a stripe only chunks that are multiples of a block keep the phase.
    #[test]
    fn chunks_carry_the_phase_as_far_as_they_are_multiples() {
        for (chunk, start, expected) in [
            (64 << 10, 0, Verdict::Aligned),
            (
                64 << 10,
                63 * SECTOR,
                Verdict::Misaligned { by: Bytes(3584) },
            ),
            (6 << 10, 0, Verdict::Varies { step: Bytes(2048) }),
            (6 << 10, 512, Verdict::Misaligned { by: Bytes(512) }),
        ] {
            let mut builder = Builder::default();
            let members = ["sda", "sdb"].map(|name| Member {
                node: disk(&mut builder, name, physical(0)),
                start: Bytes(start),
            });
            let stripe = builder.node("md0");
            let chunks = Chunks {
                chunk: Bytes(chunk),
                members: members.to_vec(),
                parity: 0,
                copies: 1,
                layout: None,
            };
            builder.place(stripe, Placing::Chunks(chunks), &FROM);
            let stack = builder.finish();
            let standings = stack.standings(stripe);
            assert_eq!(standings.len(), 2);
            assert!(
                standings.iter().all(|one| one.verdict == expected),
                "{chunk} {start}: {standings:?}"
            );
        }
    }

    /// Against laying every byte by hand.
    #[test]
    fn folding_keeps_the_position_of_every_byte() {
        let mut builder = Builder::default();
        let (a, b) = (
            disk(&mut builder, "a", physical(0)),
            disk(&mut builder, "b", physical(0)),
        );
        let (whole, cut) = (builder.node("whole"), builder.node("cut"));
        let part = |upper, node, start, len| Part {
            upper: Bytes(upper),
            node,
            start: Bytes(start),
            len: Some(Bytes(len)),
        };
        let parts = vec![part(0, a, 5000, 100), part(100, b, 700, 100)];
        builder.place(whole, Placing::Parts { parts }, &FROM);
        builder.place(
            cut,
            Placing::Parts {
                parts: vec![part(0, whole, 90, 20)],
            },
            &FROM,
        );
        let stack = builder.finish();
        let found: Vec<_> = stack
            .landings(cut)
            .all
            .iter()
            .filter(|one| one.on == a || one.on == b)
            .map(|one| (one.on, one.shift, one.upper, one.len))
            .collect();
        assert_eq!(
            found,
            [
                (a, 5090, Bytes(0), Some(Bytes(10))),
                (b, 690, Bytes(10), Some(Bytes(10)))
            ]
        );
    }

    /// A damaged dump may be as deep as it is long.
    #[test]
    fn depth_has_an_end() {
        let mut builder = Builder::default();
        let nodes: Vec<NodeId> = (0..2 * LAYERS_MAX)
            .map(|at| builder.node(&format!("d{at}")))
            .collect();
        for pair in nodes.windows(2) {
            builder.place(pair[0], run(pair[1], 0, 8), &FROM);
        }
        let landings = builder.finish().landings(nodes[0]);
        assert_eq!((landings.all.len(), landings.lost.len()), (LAYERS_MAX, 1));
        assert_eq!(landings.lost[0].0, nodes[LAYERS_MAX - 1]);
    }

    /// Nothing below a circle is known, and nothing hangs.
    #[test]
    fn circles_are_cut() {
        let mut builder = Builder::default();
        let names = ["d1", "d2", "d3"].map(|name| builder.node(name));
        for (at, name) in names.iter().enumerate() {
            builder.place(*name, run(names[(at + 1) % 3], 0, 8), &FROM);
        }
        let stack = builder.finish();
        assert_eq!(stack.problems().len(), 1);
        assert!(names.iter().any(|id| !stack.landings(*id).lost.is_empty()));
    }
}
