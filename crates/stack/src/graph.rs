//! The finished graph: nodes, the neighbours above and below each, and the problems noticed while building it.

use std::collections::{HashMap, HashSet};

use plumb_geometry::{SmallSort, natural};
use serde::Serialize;

use crate::builder::device_name;
use crate::node::{Kind, Node, Problem, keys};
use crate::overlaps::Overlap;
use crate::problem_ids::ProblemId;

/// Name of the node for facts about a host as a whole.
pub const HOST: &str = "(host)";

/// Number of a node in its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) const fn at(self) -> usize {
        self.0 as usize
    }
}

/// All layers of all sources; made by a [`crate::Builder`].
#[derive(Clone, Debug, Default)]
pub struct Stack {
    nodes: Vec<Node>,
    names: HashMap<String, NodeId>,
    above: Vec<Vec<NodeId>>,
    problems: Vec<Problem>,
    notes: Vec<String>,
    conflicts: HashMap<NodeId, String>,
}

impl Stack {
    pub(crate) fn new(
        nodes: Vec<Node>,
        names: HashMap<String, NodeId>,
        problems: Vec<Problem>,
        notes: Vec<String>,
        overlaps: Vec<Overlap>,
    ) -> Stack {
        let mut above = vec![Vec::new(); nodes.len()];
        for (at, node) in nodes.iter().enumerate() {
            for below in node.placing.below() {
                above[below.at()].push(NodeId(at as u32));
            }
        }
        let conflicts = find_conflicts(&nodes, &problems, overlaps);
        Stack {
            nodes,
            names,
            above,
            problems,
            notes,
            conflicts,
        }
    }

    /// A stack with overlaps and conflicts that were computed before.
    pub(crate) fn of_parts(
        nodes: Vec<Node>,
        names: HashMap<String, NodeId>,
        problems: Vec<Problem>,
        conflicts: HashMap<NodeId, String>,
    ) -> Stack {
        let stack = Stack::new(nodes, names, problems, Vec::new(), Vec::new());
        Stack { conflicts, ..stack }
    }

    pub(crate) fn all_nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn names(&self) -> &HashMap<String, NodeId> {
        &self.names
    }

    pub(crate) fn conflicts(&self) -> &HashMap<NodeId, String> {
        &self.conflicts
    }

    /// The node of the host as a whole, if anything was said of it.
    #[must_use]
    pub fn host_id(&self) -> Option<NodeId> {
        self.names.get(HOST).copied()
    }

    /// A node; ids are those of this stack.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.at()]
    }

    /// All nodes but the host's.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        let all = self
            .nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (NodeId(at as u32), node));
        all.filter(|(_, node)| node.name != HOST)
    }

    /// The facts about the host as a whole, if there are any.
    #[must_use]
    pub fn host(&self) -> Option<&Node> {
        self.host_id().map(|id| self.node(id))
    }

    /// A node by any of its names, with `/dev/` or without; of one host among several behind its name: `web1:/dev/sda`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<NodeId> {
        let plain = self.names.get(device_name(name).as_ref());
        let of_host = || {
            let (host, name) = name.split_once(':')?;
            self.names.get(&format!("{host}:{}", device_name(name)))
        };
        plain.or_else(of_host).copied()
    }

    /// The nodes directly above a node.
    #[must_use]
    pub fn above(&self, id: NodeId) -> &[NodeId] {
        &self.above[id.at()]
    }

    /// The roots of the trees, by name: disks and other nodes with nothing below.
    #[must_use]
    pub fn roots(&self) -> Vec<NodeId> {
        let mut roots: Vec<NodeId> = self
            .nodes()
            .filter(|(_, node)| node.placing.below().is_empty())
            .map(|(id, _)| id)
            .collect();
        roots.small_sort_by(|a, b| natural(&self.node(*a).name, &self.node(*b).name));
        roots
    }

    /// Nodes with nothing above them, where data begin. Their bytes have to be aligned.
    #[must_use]
    pub fn tops(&self) -> Vec<NodeId> {
        let mut tops: Vec<NodeId> = self
            .nodes()
            .filter(|(id, _)| self.above(*id).is_empty())
            .map(|(id, _)| id)
            .collect();
        tops.small_sort_by(|a, b| natural(&self.node(*a).name, &self.node(*b).name));
        tops
    }

    /// A node and everything below it, each once, itself first.
    #[must_use]
    pub fn under(&self, top: NodeId) -> Vec<NodeId> {
        self.reach([top], |id| self.node(id).placing.below())
    }

    /// Nodes, and the partitions and file systems on them: the layers that are known from the contents of the nodes.
    #[must_use]
    pub fn with_contents(&self, nodes: impl IntoIterator<Item = NodeId>) -> Vec<NodeId> {
        self.reach(nodes, |id| {
            let is_by_contents = |above: &NodeId| {
                matches!(self.node(*above).kind, Kind::Partition | Kind::FileSystem)
            };
            let mut above = self.above(id).to_vec();
            above.retain(is_by_contents);
            above
        })
    }

    /// Nodes and all that `next` leads to from them, each once, in the order of the distance.
    fn reach(
        &self,
        from: impl IntoIterator<Item = NodeId>,
        next: impl Fn(NodeId) -> Vec<NodeId>,
    ) -> Vec<NodeId> {
        let mut known = HashSet::new();
        let mut seen: Vec<NodeId> = from.into_iter().filter(|id| known.insert(*id)).collect();
        let mut at = 0;
        while let Some(id) = seen.get(at).copied() {
            at += 1;
            seen.extend(next(id).into_iter().filter(|id| known.insert(*id)));
        }
        seen
    }

    /// Whether bytes end here, on a layer with sectors: a file does if it is read as a disk, and a disk does not if it
    /// was joined with its device on the host.
    #[must_use]
    pub fn is_leaf(&self, id: NodeId) -> bool {
        let node = self.node(id);
        let is_disk = node.is_read_as_disk() || !self.above(id).is_empty();
        !node.is_seen_through()
            && (node.kind.is_leaf() || node.placing.below().is_empty() && is_disk)
    }

    /// WWN, UUID or serial of a device; that of a partition is its number on a disk that has one.
    #[must_use]
    pub fn identity(&self, id: NodeId) -> Option<String> {
        let node = self.node(id);
        let own = [keys::IDENTITY, keys::UUID, keys::SERIAL];
        if let Some(identity) = own.into_iter().find_map(|key| node.word(key)) {
            return Some(identity.to_owned());
        }
        let number = node.number(keys::PARTITION_NUMBER)?;
        // Only a disk has partitions with numbers, so that this ends.
        let disk = *node.placing.below().first()?;
        let is_disk = self.node(disk).kind != Kind::Partition;
        let identity = is_disk.then(|| self.identity(disk)).flatten()?;
        Some(format!("{identity}-part{number}"))
    }

    /// Problems noticed while the stack was built.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The reason why the bytes of a node may belong to others: it overlaps another, or ends beyond the layer below. Do
    /// not write by its layout then.
    #[must_use]
    pub fn conflict(&self, id: NodeId) -> Option<&str> {
        self.conflicts.get(&id).map(String::as_str)
    }

    /// Gaps of the sources, in sentences.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The first of each node; a disk that is shorter than its label says is none of its partitions.
pub(crate) fn find_conflicts(
    nodes: &[Node],
    problems: &[Problem],
    overlaps: Vec<Overlap>,
) -> HashMap<NodeId, String> {
    let mut conflicts = HashMap::new();
    for Overlap {
        one, other, text, ..
    } in overlaps
    {
        let name = |id: NodeId| nodes[id.at()].own_name();
        let who = if one == other {
            format!("two extents of {}", name(one))
        } else {
            format!("{} and {}", name(one), name(other))
        };
        for id in [one, other] {
            conflicts
                .entry(id)
                .or_insert_with(|| format!("{who} overlap: {text}"));
        }
    }
    for problem in problems
        .iter()
        .filter(|problem| problem.id == ProblemId::BeyondDevice)
    {
        if let Some(id) = problem
            .node
            .filter(|id| !nodes[id.at()].placing.below().is_empty())
        {
            conflicts.entry(id).or_insert_with(|| problem.text.clone());
        }
    }
    conflicts
}
