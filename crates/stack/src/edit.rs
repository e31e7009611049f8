//! A stack as a change would leave it, and a part of a stack on its own.
//!
//! An edit changes placings, facts and grids of nodes, and never their numbers: a node of the old stack has the same id
//! in the new one. Problems that readers noticed are kept unless the edit takes them away; overlaps and ends beyond a
//! device that the edit brings about are added, by the same arithmetic as when the stack was built.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use plumb_geometry::Bytes;

use crate::builder::beyond_ends;
use crate::graph::{NodeId, Stack};
use crate::grid::{GridFact, Source};
use crate::node::{Node, Placing, Problem};
use crate::node_facts::{Fact, FactKey};
use crate::overlaps::{self, Overlap};
use crate::problem_ids::ProblemId;

/// Changes to a stack; [`StackEdit::finish`] makes the stack that they lead to.
#[derive(Clone, Debug)]
pub struct StackEdit<'a> {
    before: &'a Stack,
    nodes: Vec<Node>,
    problems: Vec<Problem>,
}

impl Stack {
    /// Begins an edit.
    #[must_use]
    pub fn edit(&self) -> StackEdit<'_> {
        StackEdit {
            before: self,
            nodes: self.all_nodes().to_vec(),
            problems: self.problems().to_vec(),
        }
    }

    /// Everything that shares bytes with a node, directly or through others: all nodes above or below it, and all nodes
    /// above or below those.
    #[must_use]
    pub fn connected(&self, from: NodeId) -> BTreeSet<NodeId> {
        let mut found = BTreeSet::from([from]);
        let mut next = vec![from];
        while let Some(id) = next.pop() {
            let below = self.node(id).placing.below();
            let beside = self.above(id).iter().copied().chain(below);
            next.extend(beside.filter(|id| found.insert(*id)));
        }
        found
    }

    /// The stack of these nodes alone, with the facts about the host as a whole. Nodes below a wanted one must be
    /// wanted as well, like those of [`Stack::connected`].
    #[must_use]
    pub fn part(&self, wanted: &BTreeSet<NodeId>) -> StackPart {
        let mut wanted = wanted.clone();
        wanted.extend(self.host_id());
        let new: BTreeMap<NodeId, NodeId> = wanted.iter().copied().zip((0..).map(NodeId)).collect();
        let mut nodes: Vec<Node> = wanted.iter().map(|id| self.node(*id).clone()).collect();
        for node in &mut nodes {
            node.placing.renumber(|id| new[&id]);
        }
        let names = self.names().iter();
        let names = names.filter_map(|(name, id)| Some((name.clone(), *new.get(id)?)));
        let problems = self.problems().iter().filter_map(|problem| {
            let node = match problem.node {
                Some(id) => Some(*new.get(&id)?),
                None => None,
            };
            Some(Problem {
                node,
                ..problem.clone()
            })
        });
        let conflicts = self.conflicts().iter();
        let conflicts = conflicts.filter_map(|(id, text)| Some((*new.get(id)?, text.clone())));
        let stack = Stack::of_parts(
            nodes,
            names.collect(),
            problems.collect(),
            conflicts.collect(),
        );
        StackPart { stack, new }
    }
}

/// A part of a stack, and the numbers of its nodes there.
#[derive(Clone, Debug)]
pub struct StackPart {
    /// The part.
    pub stack: Stack,
    new: BTreeMap<NodeId, NodeId>,
}

impl StackPart {
    /// The number that a node of the whole has in the part; `None` for a node that is not in it.
    #[must_use]
    pub fn inside(&self, whole: NodeId) -> Option<NodeId> {
        self.new.get(&whole).copied()
    }

    /// The number in the whole of a node of the part; `None` for a node that was added to the part later.
    #[must_use]
    pub fn outside(&self, part: NodeId) -> Option<NodeId> {
        let mut all = self.new.iter();
        all.find(|(_, inside)| **inside == part)
            .map(|(whole, _)| *whole)
    }
}

impl StackEdit<'_> {
    /// A node as it is so far.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.at()]
    }

    /// Puts a node elsewhere.
    pub fn place(&mut self, id: NodeId, placing: Placing) {
        self.nodes[id.at()].placing = placing;
    }

    /// Gives a node another length.
    pub fn size(&mut self, id: NodeId, size: Option<Bytes>) {
        self.nodes[id.at()].size = size;
    }

    /// Sets a fact, and replaces one of any source.
    pub fn fact<T>(&mut self, id: NodeId, key: FactKey<T>, value: T) {
        let fact = Fact {
            value,
            source: Source::Layout,
        };
        self.nodes[id.at()].facts.set(key, Some(fact));
    }

    /// Forgets a fact.
    pub fn forget<T>(&mut self, id: NodeId, key: FactKey<T>) {
        self.nodes[id.at()].facts.set(key, None);
    }

    /// Keeps only the grids of a node that are wanted.
    pub fn retain_grids(&mut self, id: NodeId, wanted: impl Fn(&GridFact) -> bool) {
        self.nodes[id.at()].grids.retain(wanted);
    }

    /// Takes away the problems of a kind that are about a node.
    pub fn mend(&mut self, id: NodeId, problem: ProblemId) {
        self.problems
            .retain(|one| one.id != problem || one.node != Some(id));
    }

    /// Adds a node.
    pub fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// The stack as the changes leave it.
    #[must_use]
    pub fn finish(self) -> Stack {
        let StackEdit {
            before,
            nodes,
            mut problems,
        } = self;
        let nobody = HashSet::new();
        let pair = |overlap: &Overlap| {
            let (one, other) = (overlap.one, overlap.other);
            (one.min(other), one.max(other))
        };
        let known: HashSet<_> = overlaps::all(before.all_nodes(), &nobody)
            .found
            .iter()
            .map(pair)
            .collect();
        let mut found = overlaps::all(&nodes, &nobody).found;
        found.retain(|overlap| !known.contains(&pair(overlap)));
        for overlap in &found {
            problems.push(Problem {
                node: Some(overlap.other),
                id: ProblemId::OverlappingPartitions,
                text: overlap.text.clone(),
                source: Source::Layout,
            });
        }
        let was_beyond: HashSet<Option<NodeId>> = beyond_ends(before.all_nodes())
            .iter()
            .map(|problem| problem.node)
            .collect();
        let beyond = beyond_ends(&nodes).into_iter();
        problems.extend(beyond.filter(|problem| !was_beyond.contains(&problem.node)));
        let mut names: HashMap<String, NodeId> = before.names().clone();
        for (at, node) in nodes.iter().enumerate().skip(before.all_nodes().len()) {
            names.entry(node.name.clone()).or_insert(NodeId(at as u32));
        }
        let mut conflicts = before.conflicts().clone();
        conflicts.extend(crate::graph::find_conflicts(&nodes, &problems, found));
        Stack::of_parts(nodes, names, problems, conflicts)
    }
}
