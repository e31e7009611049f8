//! The input of the rules: the top layers of a stack with all positions of their bytes, computed once, and the profiles
//! of its devices.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use plumb_geometry::{Bytes, Grid, SmallSort};
use plumb_model::facts::ArrayEvidence;
use plumb_model::{Confidence, Facts, Finding, Reason, Severity, Target};
use plumb_profile::{Profile, ProfileSet};
use plumb_stack::node::{Fact, FactKey, keys};
use plumb_stack::node_facts::ContentKind;
use plumb_stack::{
    CellKind, Chunks, GridFact, Kind, Landing, Landings, Node, NodeId, Placing, Source, Stack,
    Standing,
};

use super::known::Known;
use super::seen;
use super::seen::Passed;
use crate::rules::{IOS_MIN, Outcome};

/// Tags of slices that are no place for data: 1 boot blocks, 5 the whole disk, 9 alternate sectors, 11 reserved
/// (V_BOOT, V_BACKUP, V_ALTSCTR and V_RESERVED of Solaris).
const NO_DATA: [u64; 4] = [1, 5, 9, 11];

/// First words of the models of LUNs of hardware arrays. Few and plain: other models are *not known*, and do not count
/// as disks.
const ARRAY_MODELS: [&str; 11] = [
    "StorEdge",
    "T300",
    "OPEN-",
    "SYMMETRIX",
    "DGC",
    "RAID",
    "ServeRAID",
    "MegaRAID",
    "PERC",
    "LUN",
    "COMSTAR",
];

/// A top layer, with all its positions.
pub struct Top {
    /// The node.
    pub id: NodeId,
    /// On every layer below.
    pub landings: Landings,
    /// Its verdicts on the grids that decide.
    pub standings: Vec<Standing>,
}

/// The kind of the lowest layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hardware {
    /// A LUN of an array, for this reason.
    Array(ArrayEvidence),
    /// A drive.
    Drive,
    /// Nobody said.
    Unknown,
}

/// The input of the rules.
pub struct Context<'a> {
    /// The layers.
    pub stack: &'a Stack,
    /// The user's facts.
    pub known: &'a Known,
    /// The top layers, by name.
    pub tops: Vec<Top>,
    top_at: HashMap<NodeId, usize>,
    profiles: HashMap<NodeId, Vec<&'a Profile>>,
    pub(super) passed: HashMap<NodeId, Passed<'a>>,
}

impl<'a> Context<'a> {
    /// Computes the input of all rules.
    #[must_use]
    pub fn new(
        stack: &'a Stack,
        known: &'a Known,
        profiles: Option<&'a ProfileSet>,
    ) -> Context<'a> {
        let tops = tops(stack).into_iter().map(|id| {
            let landings = stack.landings(id);
            let standings = stack.standings_of(&landings);
            Top {
                id,
                landings,
                standings,
            }
        });
        let mut by_node: HashMap<NodeId, Vec<&Profile>> = HashMap::new();
        // A short look at an idle device does not contradict its layout.
        let has_enough =
            |profile: &&Profile| known.watch.is_none() || profile.placed_ios() >= IOS_MIN;
        for profile in profiles
            .into_iter()
            .flat_map(ProfileSet::iter)
            .filter(has_enough)
        {
            if let Some(id) = stack.find(&profile.device) {
                by_node.entry(id).or_default().push(profile);
            }
        }
        let tops: Vec<Top> = tops.collect();
        let top_at = tops
            .iter()
            .enumerate()
            .map(|(at, top)| (top.id, at))
            .collect();
        let passed = seen::passed(stack, profiles);
        Context {
            stack,
            known,
            tops,
            top_at,
            profiles: by_node,
            passed,
        }
    }

    /// The positions of a node's bytes: cached for a top layer.
    #[must_use]
    pub fn landings(&self, id: NodeId) -> Cow<'_, Landings> {
        match self.top_at.get(&id) {
            Some(at) => Cow::Borrowed(&self.tops[*at].landings),
            None => Cow::Owned(self.stack.landings(id)),
        }
    }

    /// All profiles of a device.
    #[must_use]
    pub fn profiles(&self, id: NodeId) -> &[&'a Profile] {
        self.profiles.get(&id).map_or(&[], Vec::as_slice)
    }

    /// A finding about a node.
    #[must_use]
    pub fn finding(
        &self,
        facts: Facts,
        (id, severity, confidence): (NodeId, Severity, Confidence),
    ) -> Finding {
        Finding::new(facts, Target::layer(self.stack, id), severity, confidence)
    }

    /// A finding about the host.
    #[must_use]
    pub fn host_finding(
        &self,
        facts: Facts,
        severity: Severity,
        confidence: Confidence,
    ) -> Finding {
        Finding::new(facts, Target::host(), severity, confidence)
    }

    /// The outcomes of a rule that judges each node by itself. `None` is no outcome: the rule does not apply to the node.
    pub fn judge_nodes(
        &self,
        judge: impl Fn(&Self, NodeId, &'a Node) -> Option<Outcome>,
    ) -> Vec<Outcome> {
        let nodes = self.stack.nodes();
        nodes
            .filter_map(|(id, node)| judge(self, id, node))
            .collect()
    }

    /// The answer that a rule cannot tell of a node.
    #[must_use]
    pub fn unknown(&self, id: NodeId, reason: Reason) -> Outcome {
        Outcome::UnknownOf(Target::layer(self.stack, id), reason)
    }

    /// The source of a node's placing.
    #[must_use]
    pub fn placed_by(&self, id: NodeId) -> Option<Source> {
        self.stack.node(id).placed_by.clone()
    }

    /// The device of a file system or swap without a gap; any other node is its own.
    #[must_use]
    pub fn device_of(&self, id: NodeId) -> NodeId {
        device_of(self.stack, id)
    }

    /// A fact about a file system: from itself, or from its device.
    #[must_use]
    pub fn fact<T>(&self, id: NodeId, key: FactKey<T>) -> Option<&'a Fact<T>> {
        let of = |id: NodeId| self.stack.node(id).fact(key);
        of(id).or_else(|| of(self.device_of(id)))
    }

    /// As [`Context::fact`], of a number or a length.
    #[must_use]
    pub fn number<T: Copy>(&self, id: NodeId, key: FactKey<T>) -> Option<T> {
        self.fact(id, key).map(|fact| fact.value)
    }

    /// File systems: separate nodes, and devices that a source reports as mounted.
    pub fn file_systems(&self) -> impl Iterator<Item = (NodeId, &'a Node)> {
        let stack = self.stack;
        stack.nodes().filter(move |(id, node)| {
            let is_mounted = node.facts.mount.is_some() || node.facts.mount_options.is_some();
            let has_own = || {
                stack
                    .above(*id)
                    .iter()
                    .any(|above| stack.node(*above).kind == Kind::FileSystem)
            };
            node.kind == Kind::FileSystem
                || is_mounted && node.value(keys::CONTENT) != Some(&ContentKind::Swap) && !has_own()
        })
    }

    /// Name of a node.
    #[must_use]
    pub fn name(&self, id: NodeId) -> &'a str {
        &self.stack.node(id).name
    }

    /// All nodes laid in chunks over two members or more.
    pub fn striped(&self) -> impl Iterator<Item = (NodeId, &'a Chunks)> {
        self.stack
            .nodes()
            .filter_map(|(id, node)| match &node.placing {
                Placing::Chunks(chunks) if chunks.members.len() > 1 => Some((id, chunks)),
                _ => None,
            })
    }

    /// Everything at the bottom below a node.
    #[must_use]
    pub fn leaves(&self, id: NodeId) -> Vec<NodeId> {
        let mut under = self.stack.under(id);
        under.retain(|below| *below != id && self.stack.is_leaf(*below));
        under
    }

    /// Whether a leaf is a LUN of an array.
    #[must_use]
    pub fn hardware(&self, leaf: NodeId) -> Hardware {
        let node = self.stack.node(leaf);
        let unit = node
            .grids
            .iter()
            .find(|fact| fact.what == CellKind::ArrayUnit && fact.is_believed());
        if let Some(unit) = unit {
            return Hardware::Array(ArrayEvidence::Unit {
                granularity_bytes: unit.granularity(),
                source: unit.source.clone(),
            });
        }
        if let Some(above) = self
            .stack
            .above(leaf)
            .iter()
            .find(|above| self.stack.node(**above).kind == Kind::Multipath)
        {
            return Hardware::Array(ArrayEvidence::PathOf {
                device: self.name(*above).to_owned(),
            });
        }
        match node.word(keys::MODEL) {
            Some(model) if model.split_whitespace().any(is_array) => {
                Hardware::Array(ArrayEvidence::Model {
                    model: model.to_owned(),
                })
            }
            Some(_) if node.kind == Kind::Disk => Hardware::Drive,
            _ => Hardware::Unknown,
        }
    }

    /// The segment of the array of a LUN: from the stack, else from the user.
    #[must_use]
    pub fn segment(&self, leaf: NodeId) -> Option<(Bytes, Source)> {
        let node = self.stack.node(leaf);
        let unit = node
            .grids
            .iter()
            .find(|fact| fact.what == CellKind::ArrayUnit && fact.is_believed());
        let given = || self.known.segment.filter(|segment| segment.0 > 0);
        unit.map(|unit| (unit.granularity(), unit.source.clone()))
            .or_else(|| Some((given()?, Source::User)))
    }

    /// The believed grids of a kind on a node, those that follow from its layout as well.
    pub fn grids(&self, id: NodeId, wanted: impl Fn(CellKind) -> bool) -> Vec<GridFact> {
        let mut grids = self.stack.grids(id);
        grids.retain(|fact| wanted(fact.what) && fact.is_believed());
        grids
    }
}

fn is_array(word: &str) -> bool {
    ARRAY_MODELS.iter().any(|array| word.starts_with(array))
}

/// A grid of a layer below, converted to the address space of the top layer; `None` if it differs from one chunk to the
/// next.
#[must_use]
pub fn seen_from_above(landing: &Landing, grid: &Grid) -> Option<Grid> {
    let granularity = grid.granularity();
    if landing
        .period
        .is_some_and(|period| !period.0.is_multiple_of(granularity.0))
    {
        return None;
    }
    let offset =
        (i128::from(grid.offset().0) - landing.shift).rem_euclid(i128::from(granularity.0));
    Grid::new(granularity, Bytes(offset as u64), grid.kind()).ok()
}

/// The layers where data begin: nodes with nothing above, unless they are isolated or not for data; and the members of
/// pools and file systems that place their blocks themselves: those begin blocks at multiples of a large power of two
/// of each member, so the start of the member decides.
fn tops(stack: &Stack) -> Vec<NodeId> {
    let no_data = without_data(stack);
    let mut tops = Vec::new();
    let mut known = HashSet::new();
    let lies_on_something = |id: NodeId| !matches!(stack.node(id).placing, Placing::Leaf);
    for id in stack.tops() {
        let owners = stack.under(id);
        let owner = owners
            .iter()
            .find_map(|below| match &stack.node(*below).placing {
                Placing::Unknown { members, .. }
                    if places_itself(stack.node(*below).kind) && !members.is_empty() =>
                {
                    Some(members)
                }
                _ => None,
            });
        match owner {
            Some(members) => tops.extend(members.iter().copied().filter(|id| known.insert(*id))),
            // A device may be mounted in several places.
            None if known.insert(device_of(stack, id)) => tops.push(id),
            None => {}
        }
    }
    // Data of a physical volume begin behind its first byte, also on all of a disk.
    let begins_later =
        |id: NodeId| stack.is_leaf(id) && stack.node(id).number(keys::PE_START).is_some();
    tops.retain(|id| (lies_on_something(*id) || begins_later(*id)) && !no_data.contains(id));
    tops
}

fn device_of(stack: &Stack, id: NodeId) -> NodeId {
    let mut device = id;
    while matches!(stack.node(device).kind, Kind::FileSystem | Kind::Swap) {
        match &stack.node(device).placing {
            Placing::Parts { parts } => match parts.as_slice() {
                [only] if only.start == Bytes(0) && only.upper == Bytes(0) => device = only.node,
                _ => break,
            },
            _ => break,
        }
    }
    device
}

fn places_itself(kind: Kind) -> bool {
    matches!(kind, Kind::Pool | Kind::FileSystem)
}

/// Partitions that hold no data of their own: those that the label says so of, and those that hold another partition
/// of the same disk, as slice 2 of Solaris and extended partitions do.
fn without_data(stack: &Stack) -> HashSet<NodeId> {
    let mut without = HashSet::new();
    let mut by_disk: HashMap<NodeId, Vec<(Bytes, Bytes, NodeId)>> = HashMap::new();
    for (id, node) in stack
        .nodes()
        .filter(|(_, node)| node.kind == Kind::Partition)
    {
        if node
            .number(keys::PARTITION_TAG)
            .is_some_and(|tag| NO_DATA.contains(&tag))
        {
            without.insert(id);
        }
        if let Placing::Parts { parts } = &node.placing
            && let [only] = parts.as_slice()
            && let Some(len) = only.len.filter(|len| len.0 > 0)
            && let Some(end) = only.start.checked_add(len)
        {
            by_disk
                .entry(only.node)
                .or_default()
                .push((only.start, end, id));
        }
    }
    for partitions in by_disk.values_mut() {
        // By start, the longest first: the content of a partition follows it.
        partitions.small_sort_by_key(|&(start, end, id)| (start, std::cmp::Reverse(end), id));
        let mut least_end = Bytes(u64::MAX);
        let mut equal: Option<(Bytes, Bytes)> = None;
        for &(start, end, id) in partitions.iter().rev() {
            if equal != Some((start, end)) {
                least_end = equal.map_or(least_end, |(_, end)| least_end.min(end));
                equal = Some((start, end));
            }
            if least_end <= end {
                without.insert(id);
            }
        }
    }
    without
}
