//! The verdict of a top layer on each grid below it: aligned, misaligned by a number of bytes, or unknown with the
//! reason.

use plumb_geometry::{Bytes, Grid, GridKind, SECTOR};
use serde::Serialize;

use crate::fold::{Landing, Landings, Phase};
use crate::graph::{NodeId, Stack};
use crate::grid::{CellKind, GridFact, Source};
use crate::node::{Chunks, Kind, Placing, keys};
use crate::obstacle::Obstacle;

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// On the grid, as deep as can be seen.
    Aligned,
    /// Past a boundary by this.
    Misaligned {
        /// Bytes past the boundary before.
        #[serde(rename = "by_bytes")]
        by: Bytes,
    },
    /// Aligned at the first chunk, but chunks are no multiple of the grid, so not at all of them.
    Varies {
        /// Phases differ by multiples of this.
        #[serde(rename = "step_bytes")]
        step: Bytes,
    },
    /// Unknown.
    Unknown {
        /// Why not.
        why: Obstacle,
    },
}

/// A top on one grid of one layer below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The top layer.
    pub top: NodeId,
    /// Its position there.
    pub landing: Landing,
    /// On which grid.
    pub fact: GridFact,
    /// How.
    pub verdict: Verdict,
}

impl CellKind {
    /// Whether a start off such a grid costs something on every I/O: then it decides about alignment.
    #[must_use]
    pub const fn decides(self) -> bool {
        matches!(
            self,
            CellKind::PhysicalBlock
                | CellKind::WriteAlignment
                | CellKind::IndirectionUnit
                | CellKind::ArrayUnit
                | CellKind::Zone
                | CellKind::CryptSector
                | CellKind::Cluster
                | CellKind::Ashift
                | CellKind::Assumed
        )
    }
}

impl Stack {
    /// The grids of a node: those it was given, and those that follow from how it places its bytes.
    #[must_use]
    pub fn grids(&self, id: NodeId) -> Vec<GridFact> {
        let node = self.node(id);
        let mut grids = node.grids.clone();
        if let Placing::Chunks(chunks) = &node.placing {
            grids.extend(grids_of(chunks));
        }
        grids
    }

    /// The grids of a leaf that decide; 4 KiB with source *assumed* if it states none larger than a sector. If a drive
    /// states a preferred start of writes (NPWA), that replaces the preferred length. A virtual disk with known layers
    /// below has only the grids from the user.
    #[must_use]
    pub fn deciding_grids(&self, id: NodeId) -> Vec<GridFact> {
        let mut grids = self.grids(id);
        grids.retain(|fact| {
            fact.what.decides() && fact.is_believed() && fact.granularity().0 > SECTOR
        });
        if self.node(id).is_seen_through() {
            grids.retain(|fact| matches!(fact.source, Source::User | Source::Catalogue { .. }));
        }
        let preferred = grids
            .iter()
            .find(|fact| fact.is_of_drive(CellKind::WriteAlignment))
            .map(|fact| fact.grid);
        if let Some(preferred) = preferred {
            grids.retain(|fact| !is_about_lengths(fact, &preferred));
        }
        if grids.is_empty() && self.is_leaf(id) {
            grids.push(GridFact::believed(
                Grid::ASSUMED,
                CellKind::Assumed,
                Source::Assumed,
            ));
        }
        grids
    }

    /// All grids that decide below a node and in it, converted to its own address space. Grids that chunks between
    /// shift are left out.
    #[must_use]
    pub fn grids_through(&self, id: NodeId) -> Vec<GridFact> {
        let mut through: Vec<GridFact> = Vec::new();
        for landing in &self.landings(id).all {
            for mut fact in self.deciding_grids(landing.on) {
                let granularity = fact.granularity().0;
                let is_exact = landing
                    .period
                    .is_none_or(|period| period.0.is_multiple_of(granularity));
                let offset = (i128::from(fact.grid.offset().0) - landing.shift)
                    .rem_euclid(granularity.into());
                let moved = Grid::new(Bytes(granularity), Bytes(offset as u64), fact.grid.kind());
                if let (true, Ok(grid)) = (is_exact, moved) {
                    fact.grid = grid;
                    if !through
                        .iter()
                        .any(|known| known.grid == grid && known.what == fact.what)
                    {
                        through.push(fact);
                    }
                }
            }
        }
        through
    }

    /// The verdicts of a top layer on all grids that decide, on every layer below itself.
    #[must_use]
    pub fn standings(&self, top: NodeId) -> Vec<Standing> {
        self.standings_of(&self.landings(top))
    }

    /// As [`Stack::standings`], of landings that were worked out before.
    #[must_use]
    pub fn standings_of(&self, landings: &Landings) -> Vec<Standing> {
        let mut standings = Vec::new();
        for landing in landings.all.iter() {
            for fact in self.deciding_grids(landing.on) {
                let verdict = self.verdict(landing, &fact);
                standings.push(Standing {
                    top: landing.via[0],
                    landing: landing.clone(),
                    fact,
                    verdict,
                });
            }
        }
        standings
    }

    /// The verdict of a landing on a grid of its layer.
    #[must_use]
    pub fn verdict(&self, landing: &Landing, fact: &GridFact) -> Verdict {
        match landing.phase(&fact.grid) {
            Phase::Past(Bytes(0)) => self.on_grid(landing.on, fact),
            Phase::Past(by) => Verdict::Misaligned { by },
            Phase::Varies(step) => Verdict::Varies { step },
        }
    }

    /// On the grid is aligned only if the grid is known to be the whole truth.
    fn on_grid(&self, id: NodeId, fact: &GridFact) -> Verdict {
        let node = self.node(id);
        let why = match (fact.what, node.kind, &node.opaque) {
            (CellKind::Assumed, ..) => Obstacle::NothingBeyond {
                on: node.name.clone(),
                granularity_bytes: fact.granularity(),
            },
            (_, Kind::VirtualDisk, None)
                if fact.source != Source::User && !node.is_seen_through() =>
            {
                Obstacle::BelowVirtualDisk {
                    disk: node.name.clone(),
                    target: node.value(keys::TARGET).cloned(),
                }
            }
            (_, _, Some(why)) => why.clone(),
            _ => return Verdict::Aligned,
        };
        Verdict::Unknown { why }
    }
}

/// Whether a grid of a drive that prefers this alignment of writes is about their lengths: its NPWG, and a physical
/// block larger than that alignment, which Linux computes as the lesser of NPWG and of the atomic write size
/// (`nvme_update_disk_info` in `drivers/nvme/host/core.c`). The specification wants lengths in multiples of NPWG and
/// starts in multiples of NPWA.
fn is_about_lengths(fact: &GridFact, preferred: &Grid) -> bool {
    let is_told_by_host = matches!(fact.source, Source::Kernel { .. } | Source::Dump { .. });
    fact.grid != *preferred
        && match fact.what {
            CellKind::IndirectionUnit => fact.is_of_drive(CellKind::IndirectionUnit),
            CellKind::PhysicalBlock => {
                is_told_by_host
                    && fact.grid.offset().0 == 0
                    && fact.granularity() > preferred.granularity()
            }
            _ => false,
        }
}

/// Chunks are boundaries; with parity a full stripe is a cell as well.
fn grids_of(chunks: &Chunks) -> Vec<GridFact> {
    let fact = |bytes: Bytes, kind, what| {
        let grid = Grid::new(bytes, Bytes(0), kind).ok()?;
        Some(GridFact::believed(grid, what, Source::Layout))
    };
    let parity = if chunks.parity > 0 {
        chunks.stripe_bytes()
    } else {
        None
    };
    [
        fact(chunks.chunk, GridKind::Boundary, CellKind::Chunk),
        parity.and_then(|bytes| fact(bytes, GridKind::ParityStripe, CellKind::ParityStripe)),
    ]
    .into_iter()
    .flatten()
    .collect()
}
