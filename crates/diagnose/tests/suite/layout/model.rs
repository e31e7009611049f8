//! `misaligned-partition` against laying every block by hand, with the maps of `testkit`, over random stacks.

use proptest::prelude::*;

use plumb_geometry::{Bytes, Extent, Grid, GridKind, SECTOR};
use plumb_stack::{Kind, NodeId, Part, Placing};
use plumb_testkit::maps::{Concat, ConcatPart, Direction, LayerMap, Shift, Stripe};

use crate::common::lab::{Lab, kernel};

/// Blocks of the disks: the least that a rule distinguishes from an assumption.
const BLOCK: u64 = 4096;

/// Disks with a partition each, perhaps a stripe over those, and a volume in pieces.
#[derive(Clone, Debug)]
struct ModelLayout {
    /// For each disk: the starts of its blocks and of its partition, in sectors.
    disks: Vec<(u64, u64)>,
    /// Sectors of a chunk, if striped.
    chunk: Option<u64>,
    /// Pieces of the volume: (partition, first sector there, sectors).
    pieces: Vec<(usize, u64, u64)>,
}

/// Sectors of each partition.
const PARTITION: u64 = 1 << 10;

fn layouts() -> impl Strategy<Value = ModelLayout> {
    let start = || prop_oneof![(0u64..20), (0u64..20).prop_map(|blocks| blocks * 8)];
    let disk = (prop_oneof![Just(0), 0u64..8], start());
    let chunk = prop::option::of(prop_oneof![
        Just(8u64),
        Just(12),
        Just(16),
        Just(9),
        Just(4),
        1u64..40
    ]);
    // Each piece holds some whole blocks, wherever it begins.
    let piece = (
        0usize..3,
        start(),
        prop_oneof![(2u64..12).prop_map(|blocks| blocks * 8), 16u64..100],
    );
    (
        prop::collection::vec(disk, 1..4),
        chunk,
        prop::collection::vec(piece, 1..4),
    )
        .prop_map(|(disks, chunk, pieces)| {
            let stripes = disks.len() > 1;
            ModelLayout {
                disks,
                chunk: chunk.filter(|_| stripes),
                pieces,
            }
        })
}

impl ModelLayout {
    /// The volume is on the stripe as a whole, or in pieces on the partitions.
    fn judge(&self) -> Vec<String> {
        let mut lab = Lab::default();
        let partitions: Vec<NodeId> = self
            .disks
            .iter()
            .enumerate()
            .map(|(at, (offset, start))| {
                let disk = lab.disk(&format!("sd{at}"), BLOCK, offset * SECTOR);
                lab.runs(
                    Kind::Partition,
                    &format!("part{at}"),
                    &[(disk, *start, PARTITION)],
                )
            })
            .collect();
        match self.chunk {
            Some(chunk) => {
                lab.stripe("volume", chunk * SECTOR, &partitions);
            }
            None => self.place(&mut lab, &partitions),
        }
        let judged = lab.judge();
        judged
            .found_on("misaligned-partition")
            .iter()
            .map(|name| (*name).to_owned())
            .collect()
    }

    fn place(&self, lab: &mut Lab, partitions: &[NodeId]) {
        let volume = lab.node(Kind::LogicalVolume, "volume");
        let mut upper = Bytes(0);
        let mut parts = Vec::new();
        for (on, start, len) in &self.pieces {
            let (node, len) = (partitions[on % partitions.len()], Bytes(len * SECTOR));
            parts.push(Part {
                upper,
                node,
                start: Bytes(start * SECTOR),
                len: Some(len),
            });
            upper = Bytes(upper.0 + len.0);
        }
        lab.builder
            .place(volume, Placing::Parts { parts }, &kernel());
    }

    /// Whether any block of the volume is off the blocks of a disk, found by placing each of them.
    fn is_any_block_off(&self) -> bool {
        let (map, members): (Box<dyn LayerMap>, Vec<usize>) = match self.chunk {
            Some(chunk) => {
                let starts = vec![Bytes(0); self.disks.len()];
                let len = Bytes(PARTITION * SECTOR);
                let stripe = Stripe::new(Bytes(chunk * SECTOR), &starts, len).expect("a stripe");
                (Box::new(stripe), (0..self.disks.len()).collect())
            }
            None => {
                // Pieces may overlap on a partition: each is a member of its own here.
                let parts =
                    (0u32..)
                        .zip(&self.pieces)
                        .map(|(member, (_, start, len))| ConcatPart {
                            member,
                            start: Bytes(start * SECTOR),
                            len: Bytes(len * SECTOR),
                        });
                let members = self
                    .pieces
                    .iter()
                    .map(|(on, ..)| on % self.disks.len())
                    .collect();
                (
                    Box::new(Concat::new(&parts.collect::<Vec<_>>()).expect("a concatenation")),
                    members,
                )
            }
        };
        (0..map.size().0 / BLOCK).any(|block| {
            let extent = Extent::new(Bytes(block * BLOCK), Bytes(BLOCK)).expect("small");
            let pieces = map.map(extent, Direction::Read).expect("inside");
            // A block that a chunk cuts has to be aligned with both parts; the end of a run cuts one block, once.
            let count = if self.chunk.is_some() {
                pieces.len()
            } else {
                1
            };
            pieces.iter().take(count).any(|piece| {
                let (offset, start) = self.disks[members[piece.member as usize]];
                let partition = Shift::new(Bytes(start * SECTOR), Bytes(1 << 30)).expect("small");
                let on_disk = partition
                    .map(piece.extent, Direction::Read)
                    .expect("inside")[0]
                    .extent
                    .start();
                let grid = Grid::new(Bytes(BLOCK), Bytes(offset * SECTOR), GridKind::Unit)
                    .expect("a grid");
                grid.past_boundary(on_disk) != Bytes(0)
            })
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn agrees_with_placing_each_block(layout in layouts()) {
        let found = layout.judge().iter().any(|name| name == "volume");
        prop_assert_eq!(found, layout.is_any_block_off(), "{:?}", layout);
    }
}
