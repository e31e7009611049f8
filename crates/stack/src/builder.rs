//! Joins the statements of several sources about one host's devices into one graph.
//!
//! The first statement is believed; a different later one becomes a problem of the node, because a dump that
//! contradicts another one is from another host or another day.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use plumb_geometry::Bytes;

use crate::graph::{HOST, NodeId, Stack};
use crate::grid::{GridFact, Source};
use crate::node::{Fact, FactKey, Kind, Node, Placing, Problem};
use crate::obstacle::Obstacle;
use crate::overlaps::{self, Overlap};
use crate::problem_ids::ProblemId;

mod hosts;
mod identities;

pub use hosts::JoinError;

/// Most nodes of a stack: more than any host has, and a bound for the requests of a damaged dump.
pub const NODES_MAX: usize = 1 << 20;

/// Collects; see the module.
#[derive(Debug, Default)]
pub struct Builder {
    nodes: Vec<Node>,
    names: HashMap<String, NodeId>,
    problems: Vec<Problem>,
    notes: Vec<String>,
    /// Overlaps that labels on disks report, and the disks that have one.
    overlaps: Vec<Overlap>,
    with_label: HashSet<NodeId>,
    /// Sentences that were said: a damaged dump may repeat one as often as it has lines.
    said: HashSet<String>,
    /// Data that readers of Solaris's tools keep until the last dump was read.
    pub(crate) solaris: crate::dump::solaris::PendingSolaris,
    /// The same of Linux's tools.
    pub(crate) linux: crate::dump::linux::PendingLinux,
}

/// A device's name without the directories that only say that it is one: `/dev/sda1` is `sda1`, and Solaris's
/// `/dev/rdsk/c1t0d0s0`, `/dev/md/dsk/d1` and `/dev/md/set/rdsk/d1` are `c1t0d0s0`, `d1` and `set/d1`.
#[must_use]
pub fn device_name(name: &str) -> Cow<'_, str> {
    let name = name.strip_prefix("/dev/").unwrap_or(name);
    let plain = name
        .strip_prefix("dsk/")
        .or_else(|| name.strip_prefix("rdsk/"));
    if let Some(plain) = plain
        .or_else(|| name.strip_prefix("md/dsk/"))
        .or_else(|| name.strip_prefix("md/rdsk/"))
    {
        return Cow::Borrowed(plain);
    }
    let in_set = name.strip_prefix("md/").and_then(|rest| {
        let (set, volume) = rest.split_once('/')?;
        let volume = volume
            .strip_prefix("dsk/")
            .or_else(|| volume.strip_prefix("rdsk/"))?;
        Some(format!("{set}/{volume}"))
    });
    in_set.map_or(Cow::Borrowed(name), Cow::Owned)
}

impl Builder {
    /// The node of this name, made if nobody has named it yet.
    pub fn node(&mut self, name: &str) -> NodeId {
        let name = device_name(name);
        if let Some(id) = self.names.get(name.as_ref()) {
            return *id;
        }
        if self.nodes.len() >= NODES_MAX {
            self.note(format!(
                "more than {NODES_MAX} devices: {name} and others are left out"
            ));
            return NodeId(0);
        }
        let id = NodeId(self.nodes.len() as u32);
        self.names.insert(name.to_string(), id);
        self.nodes.push(Node {
            name: name.into_owned(),
            ..Node::default()
        });
        id
    }

    /// The node for facts about the host as a whole.
    pub fn host(&mut self) -> NodeId {
        self.node(HOST)
    }

    /// The node of this name, if anybody has named it.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.names.get(device_name(name).as_ref()).copied()
    }

    /// The facts about a node so far.
    #[must_use]
    pub fn get(&self, id: NodeId) -> &Node {
        &self.nodes[id.at()]
    }

    /// All nodes so far.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Gives a node another name; `false` when the name is another node's already.
    pub fn alias(&mut self, id: NodeId, name: &str) -> bool {
        let name = device_name(name);
        match self.names.get(name.as_ref()) {
            Some(other) => *other == id,
            None => {
                self.nodes[id.at()].aliases.push(name.to_string());
                self.names.insert(name.into_owned(), id);
                true
            }
        }
    }

    /// Sets the kind of a node. A disk may turn out to be virtual, a volume may turn out to be a stripe; other changes
    /// are contradictions.
    pub fn kind(&mut self, id: NodeId, kind: Kind, source: &Source) {
        let known = self.nodes[id.at()].kind;
        let refines = matches!(
            (known, kind),
            (Kind::Unknown, _)
                | (Kind::Disk, Kind::VirtualDisk | Kind::Path | Kind::Multipath)
                | (
                    Kind::LogicalVolume,
                    Kind::Stripe
                        | Kind::Mirror
                        | Kind::ParityRaid
                        | Kind::ThinVolume
                        | Kind::ThinPool
                        | Kind::Cache
                )
        );
        if refines {
            self.nodes[id.at()].kind = kind;
        } else if known != kind && kind != Kind::Unknown && !refines_back(known, kind) {
            self.contradiction(
                id,
                format!("is a {} and a {}", known.text(), kind.text()),
                source,
            );
        }
    }

    /// Says how long a node is.
    pub fn size(&mut self, id: NodeId, size: Bytes, source: &Source) {
        match self.nodes[id.at()].size {
            None => self.nodes[id.at()].size = Some(size),
            Some(known) if known == size => {}
            Some(known) => self.contradiction(id, format!("is {known} and {size} long"), source),
        }
    }

    /// Says how a node places its bytes.
    pub fn place(&mut self, id: NodeId, placing: Placing, source: &Source) {
        let node = &mut self.nodes[id.at()];
        let vague = |placing: &Placing| matches!(placing, Placing::Leaf | Placing::Unknown { .. });
        if vague(&node.placing) && (!vague(&placing) || node.placing == Placing::Leaf) {
            node.placing = placing;
            node.placed_by = Some(source.clone());
        } else if !vague(&placing) && node.placing != placing {
            let before = node
                .placed_by
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            self.contradiction(
                id,
                format!("has another position according to {before}"),
                source,
            );
        }
    }

    /// Sets again how a node places its bytes: for a source that learns of members one by one.
    pub fn replace(&mut self, id: NodeId, placing: Placing, source: &Source) {
        let node = &mut self.nodes[id.at()];
        node.placing = placing;
        node.placed_by = Some(source.clone());
    }

    /// Adds a grid, unless it is known. Of no use is one without cells.
    pub fn grid(&mut self, id: NodeId, fact: GridFact) {
        let grids = &mut self.nodes[id.at()].grids;
        if !grids
            .iter()
            .any(|known| known.what == fact.what && known.grid == fact.grid)
        {
            grids.push(fact);
        }
    }

    /// Sets a fact that is neither place nor grid. The first source wins.
    pub fn fact<T>(&mut self, id: NodeId, key: FactKey<T>, value: impl Into<T>, source: &Source) {
        let fact = Fact {
            value: value.into(),
            source: source.clone(),
        };
        self.nodes[id.at()].facts.note(key, fact);
    }

    /// As [`Builder::fact`], if there is a value.
    pub fn fact_if<T>(
        &mut self,
        id: NodeId,
        key: FactKey<T>,
        value: Option<impl Into<T>>,
        source: &Source,
    ) {
        if let Some(value) = value {
            self.fact(id, key, value, source);
        }
    }

    /// Sets the reason why the layers below a node cannot be known.
    pub fn opaque(&mut self, id: NodeId, why: Obstacle) {
        self.nodes[id.at()].opaque.get_or_insert(why);
    }

    /// Notes something that is not as it should be.
    pub fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Notes that the label of a disk was held against overlaps where it was read, and the two of each.
    pub(crate) fn label_judged(
        &mut self,
        disk: NodeId,
        overlaps: impl Iterator<Item = (NodeId, NodeId, String)>,
    ) {
        self.with_label.insert(disk);
        let told = overlaps.map(|(one, other, text)| Overlap {
            one,
            other,
            text,
            is_told: true,
        });
        self.overlaps.extend(told);
    }

    /// Notes something that a source could not tell.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if self.said.insert(note.clone()) {
            self.notes.push(note);
        }
    }

    fn contradiction(&mut self, id: NodeId, what: String, source: &Source) {
        let text = format!("{} {what}", self.nodes[id.at()].name);
        if self.said.insert(text.clone()) {
            self.problem(Problem {
                node: Some(id),
                id: ProblemId::Contradiction,
                text,
                source: source.clone(),
            });
        }
    }

    /// The graph. A cycle of layers is cut.
    #[must_use]
    pub fn finish(mut self) -> Stack {
        self.cut_circles();
        self.problems.extend(beyond_ends(&self.nodes));
        let overlaps = overlaps::all(&self.nodes, &self.with_label);
        for overlap in overlaps.found.iter().filter(|overlap| !overlap.is_told) {
            let (text, node) = (overlap.text.clone(), Some(overlap.other));
            let source = self.nodes[overlap.other.at()]
                .placed_by
                .clone()
                .unwrap_or(Source::Layout);
            self.problems.push(Problem {
                node,
                id: ProblemId::OverlappingPartitions,
                text,
                source,
            });
        }
        self.overlaps.extend(overlaps.found);
        if !overlaps.is_whole {
            self.note(
                "too many soft partitions: not all were held against each other through the layers below",
            );
        }
        Stack::new(
            self.nodes,
            self.names,
            self.problems,
            self.notes,
            self.overlaps,
        )
    }

    /// Walks down from every node with a stack of its own, since a damaged dump may be as deep as it is long.
    fn cut_circles(&mut self) {
        #[derive(Clone, Copy, PartialEq)]
        enum VisitState {
            Not,
            OnTheWay,
            Done,
        }
        let mut seen = vec![VisitState::Not; self.nodes.len()];
        for start in 0..self.nodes.len() {
            let mut way: Vec<(usize, Vec<NodeId>)> = Vec::new();
            if seen[start] == VisitState::Not {
                seen[start] = VisitState::OnTheWay;
                way.push((start, self.nodes[start].placing.below()));
            }
            while let Some((at, below)) = way.last_mut() {
                let at = *at;
                match below.pop() {
                    None => {
                        seen[at] = VisitState::Done;
                        way.pop();
                    }
                    Some(next) if seen[next.at()] == VisitState::OnTheWay => {
                        let text = format!(
                            "{} and {} are each on the other",
                            self.nodes[at].name,
                            self.nodes[next.at()].name
                        );
                        let source = self.nodes[at].placed_by.clone().unwrap_or(Source::Layout);
                        self.problem(Problem {
                            node: Some(NodeId(at as u32)),
                            id: ProblemId::Contradiction,
                            text,
                            source,
                        });
                        self.nodes[at].placing = Placing::Unknown {
                            members: Vec::new(),
                            why: Obstacle::StandsOnItself {
                                upper: self.nodes[at].name.clone(),
                                lower: self.nodes[next.at()].name.clone(),
                            },
                        };
                        if let Some((_, below)) = way.last_mut() {
                            below.clear();
                        }
                    }
                    Some(next) if seen[next.at()] == VisitState::Not => {
                        seen[next.at()] = VisitState::OnTheWay;
                        way.push((next.at(), self.nodes[next.at()].placing.below()));
                    }
                    Some(_) => {}
                }
            }
        }
    }
}

/// Runs that end beyond the device that they are on.
pub(crate) fn beyond_ends(nodes: &[Node]) -> Vec<Problem> {
    let mut found = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let Placing::Parts { parts } = &node.placing else {
            continue;
        };
        for part in parts {
            let member = &nodes[part.node.at()];
            let end = part.len.and_then(|len| part.start.checked_add(len));
            if let (Some(size), Some(len)) = (member.size, part.len)
                && end.is_none_or(|end| end > size)
            {
                found.push(Problem {
                    node: Some(NodeId(at as u32)),
                    id: ProblemId::BeyondDevice,
                    text: format!(
                        "{} takes {len} from {} on of {}, which is {size} long",
                        node.name, part.start, member.name
                    ),
                    source: node.placed_by.clone().unwrap_or(Source::Layout),
                });
            }
        }
    }
    found
}

/// The first word was the more exact one.
fn refines_back(known: Kind, kind: Kind) -> bool {
    matches!(
        (known, kind),
        (Kind::VirtualDisk | Kind::Path | Kind::Multipath, Kind::Disk)
    ) || kind == Kind::LogicalVolume
        && matches!(
            known,
            Kind::Stripe
                | Kind::Mirror
                | Kind::ParityRaid
                | Kind::ThinVolume
                | Kind::ThinPool
                | Kind::Cache
                | Kind::Concat
        )
}
