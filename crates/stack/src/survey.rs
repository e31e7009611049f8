//! The verdict of every node of a stack, end to end, and the number of nodes of each kind with each verdict, for the
//! report of a whole host.
//!
//! A node is judged by the position of its own byte 0, and with it of every cell of its own, on each grid that decides
//! on the layers below. Whether that matters is another question: for a partition that carries a volume only the volume
//! does I/O.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use crate::graph::{NodeId, Stack};
use crate::grid::GridFact;
use crate::node::Kind;
use crate::obstacle::Obstacle;
use crate::verdict::Verdict;

/// A node on one grid below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct On {
    /// The layer whose grid it is.
    pub node: NodeId,
    /// The grid.
    #[serde(flatten)]
    pub fact: GridFact,
    /// The verdict of the node.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// A layer with unknown layers below.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// The layer.
    pub node: NodeId,
    /// Why.
    pub why: Obstacle,
}

/// The worst verdict of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Overall {
    /// Off a grid, at least at some chunks.
    Misaligned,
    /// On all grids that are known, and not all are.
    Unknown,
    /// On all grids.
    Aligned,
}

/// The verdicts of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stand {
    /// The worst of its verdicts.
    pub overall: Overall,
    /// On each grid that decides, of the layers below.
    pub on: Vec<On>,
    /// The layers at which the way down ends.
    pub lost: Vec<Lost>,
}

/// Numbers of nodes of a kind by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Nodes of that kind.
    pub nodes: u64,
    /// Of these, aligned.
    pub aligned: u64,
    /// Of these, misaligned.
    pub misaligned: u64,
    /// Of these, unknown.
    pub unknown: u64,
}

/// The verdicts of all nodes; see the module.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    stands: BTreeMap<NodeId, Stand>,
}

impl Survey {
    /// Judges all nodes with layers below.
    #[must_use]
    pub fn judge(stack: &Stack) -> Survey {
        let nodes = stack.nodes().filter(|(id, _)| !stack.is_leaf(*id));
        Survey {
            stands: nodes.map(|(id, _)| (id, stand(stack, id))).collect(),
        }
    }

    /// The verdicts of a node; `None` for a node with nothing below.
    #[must_use]
    pub fn stand(&self, id: NodeId) -> Option<&Stand> {
        self.stands.get(&id)
    }

    /// Numbers of the wanted nodes of each kind by verdict.
    #[must_use]
    pub fn tallies(&self, stack: &Stack, wanted: impl Fn(NodeId) -> bool) -> BTreeMap<Kind, Tally> {
        let mut tallies: BTreeMap<Kind, Tally> = BTreeMap::new();
        for (id, stand) in self.stands.iter().filter(|(id, _)| wanted(**id)) {
            let tally = tallies.entry(stack.node(*id).kind).or_default();
            tally.nodes += 1;
            match stand.overall {
                Overall::Aligned => tally.aligned += 1,
                Overall::Misaligned => tally.misaligned += 1,
                Overall::Unknown => tally.unknown += 1,
            }
        }
        tallies
    }
}

fn stand(stack: &Stack, id: NodeId) -> Stand {
    let landings = stack.landings(id);
    let below = stack
        .standings_of(&landings)
        .into_iter()
        .filter(|standing| standing.landing.on != id);
    let (mut on, mut known) = (Vec::new(), HashSet::new());
    for standing in below {
        let one = On {
            node: standing.landing.on,
            fact: standing.fact,
            verdict: standing.verdict,
        };
        // A volume of many runs is on one disk in many places, most of them alike.
        if known.insert(one.clone()) {
            on.push(one);
        }
    }
    let is_nowhere = on.is_empty() && landings.lost.is_empty();
    let nowhere = if is_nowhere {
        stack.why_nowhere(&landings)
    } else {
        None
    };
    let mut lost: Vec<Lost> = landings
        .lost
        .into_iter()
        .map(|(node, why)| Lost { node, why })
        .collect();
    if is_nowhere {
        let why = nowhere.unwrap_or(Obstacle::NothingKnown);
        lost.push(Lost { node: id, why });
    }
    let is_off = |one: &On| {
        matches!(
            one.verdict,
            Verdict::Misaligned { .. } | Verdict::Varies { .. }
        )
    };
    let overall = if on.iter().any(is_off) {
        Overall::Misaligned
    } else if !lost.is_empty() || on.iter().any(|one| one.verdict != Verdict::Aligned) {
        Overall::Unknown
    } else {
        Overall::Aligned
    };
    Stand { overall, on, lost }
}

#[cfg(test)]
mod tests {
    use plumb_geometry::{Bytes, Grid, SECTOR};

    use super::*;
    use crate::builder::Builder;
    use crate::grid::{CellKind, Source};
    use crate::node::{Member, Part, Placing};

    const FROM: Source = Source::User;

    /// A disk of 4 KiB blocks or of unknown ones, and partitions on it.
    fn disk(builder: &mut Builder, name: &str, is_known: bool, starts: &[u64]) {
        let disk = builder.node(name);
        builder.kind(disk, Kind::Disk, &FROM);
        if is_known {
            builder.grid(
                disk,
                GridFact::believed(Grid::ASSUMED, CellKind::PhysicalBlock, FROM),
            );
        }
        for (at, start) in starts.iter().enumerate() {
            let part = builder.node(&format!("{name}{}", at + 1));
            builder.kind(part, Kind::Partition, &FROM);
            let run = Part {
                upper: Bytes(0),
                node: disk,
                start: Bytes(start * SECTOR),
                len: None,
            };
            builder.place(part, Placing::Parts { parts: vec![run] }, &FROM);
        }
    }

    fn overall(stack: &Stack, survey: &Survey, name: &str) -> Option<Overall> {
        survey
            .stand(stack.find(name).expect("named"))
            .map(|stand| stand.overall)
    }

    #[test]
    fn contents_are_partitions_and_file_systems() {
        let mut builder = Builder::default();
        disk(&mut builder, "sda", true, &[2048, 4096]);
        disk(&mut builder, "sdb", true, &[2048]);
        let whole = |node| Placing::Parts {
            parts: vec![Part {
                upper: Bytes(0),
                node,
                start: Bytes(0),
                len: None,
            }],
        };
        for (name, kind, below) in [
            ("/srv", Kind::FileSystem, "sda2"),
            ("/srv/disk", Kind::File, "/srv"),
            ("/", Kind::FileSystem, "sdb1"),
        ] {
            let (id, below) = (builder.node(name), builder.node(below));
            builder.kind(id, kind, &FROM);
            builder.place(id, whole(below), &FROM);
        }
        let stack = builder.finish();
        let sda = stack.find("sda").expect("named");
        let found = stack.with_contents([sda, sda]);
        let mut names: Vec<&str> = found.iter().map(|id| &*stack.node(*id).name).collect();
        names.sort_unstable();
        // The bytes of a file are known from the file.
        assert_eq!(names, ["/srv", "sda", "sda1", "sda2"]);
    }

    #[test]
    fn unknown_is_never_counted_as_aligned() {
        let mut builder = Builder::default();
        disk(&mut builder, "sda", true, &[63, 2048]);
        disk(&mut builder, "sdb", false, &[63, 2048]);
        let mirror = builder.node("md0");
        builder.kind(mirror, Kind::Mirror, &FROM);
        let members = ["sda2", "sdb2"].map(|name| Member {
            node: builder.node(name),
            start: Bytes(0),
        });
        builder.place(
            mirror,
            Placing::Copies {
                members: members.to_vec(),
            },
            &FROM,
        );
        let stack = builder.finish();
        let survey = Survey::judge(&stack);
        for (name, expected) in [
            ("sda", None),
            ("sda1", Some(Overall::Misaligned)),
            ("sda2", Some(Overall::Aligned)),
            ("sdb1", Some(Overall::Misaligned)),
            ("sdb2", Some(Overall::Unknown)),
            ("md0", Some(Overall::Unknown)),
        ] {
            assert_eq!(overall(&stack, &survey, name), expected, "{name}");
        }
        let tallies = survey.tallies(&stack, |_| true);
        assert_eq!(
            tallies[&Kind::Partition],
            Tally {
                nodes: 4,
                aligned: 1,
                misaligned: 2,
                unknown: 1
            }
        );
        assert_eq!(
            tallies[&Kind::Mirror],
            Tally {
                nodes: 1,
                unknown: 1,
                ..Tally::default()
            }
        );
        let only = survey.tallies(&stack, |id| id == mirror);
        assert_eq!(only.len(), 1);
    }

    /// An unused file has nothing below it; a run that begins beyond the end of a volume is cut off.
    #[test]
    fn layers_without_a_base_are_reported() {
        let mut builder = Builder::default();
        let file = builder.node("pv.img");
        builder.kind(file, Kind::File, &FROM);
        let sda = builder.node("sda");
        let (volume, slice) = (builder.node("volume"), builder.node("slice"));
        builder.size(volume, Bytes(512), &FROM);
        for (id, node, start) in [(volume, sda, 0), (slice, volume, 512)] {
            let run = Part {
                upper: Bytes(0),
                node,
                start: Bytes(start),
                len: Some(Bytes(512)),
            };
            builder.place(id, Placing::Parts { parts: vec![run] }, &FROM);
        }
        let stack = builder.finish();
        let survey = Survey::judge(&stack);
        for (id, expected) in [
            (file, Obstacle::NothingKnown),
            (slice, Obstacle::BeyondLayer),
        ] {
            let stand = survey.stand(id).expect("judged");
            let why: Vec<Obstacle> = stand.lost.iter().map(|lost| lost.why.clone()).collect();
            assert_eq!((stand.overall, why), (Overall::Unknown, vec![expected]));
        }
    }

    #[test]
    fn a_way_that_is_lost_is_unknown() {
        let mut builder = Builder::default();
        disk(&mut builder, "sda", true, &[]);
        let slice = builder.node("sda1");
        builder.kind(slice, Kind::Partition, &FROM);
        let members = vec![builder.node("sda")];
        builder.place(
            slice,
            Placing::Unknown {
                members,
                why: Obstacle::NoLabel {
                    disk: "sda".to_owned(),
                },
            },
            &FROM,
        );
        disk(&mut builder, "sdb", true, &[2048]);
        let mirror = builder.node("md0");
        let members = ["sda1", "sdb1"].map(|name| Member {
            node: builder.node(name),
            start: Bytes(0),
        });
        builder.place(
            mirror,
            Placing::Copies {
                members: members.to_vec(),
            },
            &FROM,
        );
        let stack = builder.finish();
        let survey = Survey::judge(&stack);
        let stand = survey.stand(slice).expect("it stands on a disk");
        assert_eq!((stand.overall, stand.lost.len()), (Overall::Unknown, 1));
        let half = survey.stand(mirror).expect("it stands on both");
        assert_eq!(
            (half.overall, half.on.len(), half.lost.len()),
            (Overall::Unknown, 1, 1)
        );
        assert_eq!(
            half.on[0].verdict,
            Verdict::Aligned,
            "on the side that is known"
        );
    }
}
