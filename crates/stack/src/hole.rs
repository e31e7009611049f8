//! Bytes that map to a layer which itself is on others, but have no position there: in a hole of a sparse file, or
//! beyond the end.

use std::collections::HashSet;

use crate::fold::{Landing, Landings};
use crate::graph::{NodeId, Stack};
use crate::node::{Kind, Placing};
use crate::obstacle::Obstacle;

impl Stack {
    /// The landings that end so, top first.
    pub fn holes<'a>(&'a self, landings: &'a Landings) -> impl Iterator<Item = &'a Landing> {
        let ways = landings
            .all
            .iter()
            .filter_map(|landing| landing.via.split_last());
        let gone_on: HashSet<&[NodeId]> = ways.map(|(_, before)| before).collect();
        landings.all.iter().filter(move |landing| {
            let is_placed = matches!(self.node(landing.on).placing, Placing::Parts { .. });
            is_placed && !gone_on.contains(landing.via.as_slice())
        })
    }

    /// Why none of these landings is on a grid, where a hole is the reason.
    #[must_use]
    pub fn why_nowhere(&self, landings: &Landings) -> Option<Obstacle> {
        self.holes(landings)
            .next()
            .map(|landing| self.why_it_ends(landing))
    }

    fn why_it_ends(&self, landing: &Landing) -> Obstacle {
        let node = self.node(landing.on);
        let first = i128::from(landing.upper.0) + landing.shift;
        let is_beyond =
            landing.period.is_none() && node.size.is_some_and(|size| first >= i128::from(size.0));
        if is_beyond {
            Obstacle::BeyondLayer
        } else if node.kind == Kind::File {
            Obstacle::Hole {
                file: node.name.clone(),
            }
        } else {
            Obstacle::NoPart {
                of: node.name.clone(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plumb_geometry::Bytes;

    use crate::Obstacle;
    use crate::builder::Builder;
    use crate::graph::NodeId;
    use crate::grid::Source;
    use crate::node::{Kind, Part, Placing};
    use crate::survey::{Overall, Survey};

    const FROM: Source = Source::User;

    fn layer(
        builder: &mut Builder,
        name: &str,
        kind: Kind,
        size: u64,
        runs: &[(u64, NodeId, u64, u64)],
    ) {
        let id = builder.node(name);
        builder.kind(id, kind, &FROM);
        builder.size(id, Bytes(size), &FROM);
        let parts = runs.iter().map(|(upper, node, start, len)| Part {
            upper: Bytes(*upper),
            node: *node,
            start: Bytes(*start),
            len: Some(Bytes(*len)),
        });
        builder.place(
            id,
            Placing::Parts {
                parts: parts.collect(),
            },
            &FROM,
        );
    }

    /// A file of 64 KiB whose second 16 KiB are written, a loop device on it, and partitions of that.
    #[test]
    fn a_hole_is_no_end() {
        let mut builder = Builder::default();
        let disk = builder.node("sda");
        layer(
            &mut builder,
            "disk.raw",
            Kind::File,
            64 << 10,
            &[(16 << 10, disk, 1 << 20, 16 << 10)],
        );
        let file = builder.node("disk.raw");
        layer(
            &mut builder,
            "loop0",
            Kind::Loop,
            64 << 10,
            &[(0, file, 0, 64 << 10)],
        );
        let image = builder.node("loop0");
        let file = "disk.raw".to_owned();
        let hole = Obstacle::Hole { file };
        let beyond = Obstacle::BeyondLayer;
        let cases = [
            ("p1", 0, Some(hole.clone())),
            ("p2", 16, None),
            ("p3", 32, Some(hole)),
            ("p4", 64, Some(beyond)),
        ];
        for (name, start_kib, _) in &cases {
            layer(
                &mut builder,
                name,
                Kind::Partition,
                8 << 10,
                &[(0, image, start_kib << 10, 8 << 10)],
            );
        }
        let stack = builder.finish();
        let survey = Survey::judge(&stack);
        for (name, _, expected) in cases {
            let stand = survey.stand(stack.find(name).expect("it")).expect("judged");
            let whys: Vec<Obstacle> = stand.lost.iter().map(|lost| lost.why.clone()).collect();
            assert_eq!(whys, Vec::from_iter(expected), "{name}");
            assert_eq!(
                stand.overall,
                Overall::Unknown,
                "{name}: of the disk nothing is known"
            );
        }
    }

    /// A volume with a missing piece.
    #[test]
    fn a_gap_of_a_volume_is_no_hole_of_a_file() {
        let mut builder = Builder::default();
        let disk = builder.node("sda");
        layer(
            &mut builder,
            "d1",
            Kind::Concat,
            1024,
            &[(512, disk, 0, 512)],
        );
        let volume = builder.node("d1");
        layer(
            &mut builder,
            "d2",
            Kind::SoftPartition,
            512,
            &[(0, volume, 0, 512)],
        );
        let stack = builder.finish();
        let why = stack.why_nowhere(&stack.landings(stack.find("d2").expect("it")));
        let of = "d1".to_owned();
        assert_eq!(why, Some(Obstacle::NoPart { of }));
    }
}
