//! From a finding about a node of a stack to the plan that mends it, by the kind of plan that its rule names.
//!
//! Findings that no layout mends (a read policy, a mount option, hints that lie) have no plan here; their page tells the
//! remedy.

use plumb_geometry::{Bytes, Share};
use plumb_model::PlanKind;
use plumb_stack::node::keys;
use plumb_stack::node_facts::{ContentKind, VolumeManager};
use plumb_stack::{CellKind, Chunks, Kind, NodeId, Placing, Stack};

use crate::error::PlanError;
use crate::plan::Plan;
use crate::{filesystem, of_stack, partition, record, resync, softpart, stripe};

/// What only the user knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Page of the application.
    pub page: Option<Bytes>,
    /// Segment of the array below.
    pub segment: Option<Bytes>,
    /// Unit that soft partitions have to be on.
    pub unit: Option<Bytes>,
}

/// Share of I/O that may cross: "less than one percent" in Sun's paper of November 2003.
const SHARE_MAX: Share = Share {
    numerator: 1,
    denominator: 100,
};
/// What metasync is to be given: the most that it takes.
const RESYNC: Bytes = Bytes(1 << 20);

/// A plan and what its commands change: not always the node that the finding is about, nor a device of the same host.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The layer that is made anew or tuned.
    pub changes: NodeId,
    /// How.
    pub plan: Plan,
}

/// The plan of a kind that mends a finding about a node.
///
/// # Errors
/// When the stack does not tell enough, or its data would be in danger.
pub fn for_finding(
    stack: &Stack,
    kind: PlanKind,
    node: NodeId,
    wishes: &Wishes,
) -> Result<Answer, PlanError> {
    if kind != PlanKind::Resync {
        // Bytes that others share, or that begin where a damaged label says, must not be written to either.
        of_stack::without_conflict(stack, node)?;
        of_stack::has_whole_labels(stack, node)?;
    }
    let of_node = |plan| Answer {
        changes: node,
        plan,
    };
    match kind {
        PlanKind::Start => start(stack, node, wishes),
        PlanKind::FileSystem => file_system(stack, node).map(of_node),
        PlanKind::Chunk => chunks(stack, node, wishes),
        PlanKind::Record => records(stack, node, wishes).map(of_node),
        PlanKind::Resync => {
            let host = |key| stack.host().and_then(|host| host.number(key));
            let mirror = stack.node(node).size;
            resync::plan(&resync::ResyncRequest {
                size: RESYNC,
                maxphys: host(keys::MAXPHYS),
                mirror,
            })
            .map(of_node)
        }
    }
}

/// The component of which a plan for a node lays out all soft partitions; `None` if the plan is another one.
#[must_use]
pub fn component_laid_out(stack: &Stack, kind: PlanKind, node: NodeId) -> Option<NodeId> {
    (kind == PlanKind::Start)
        .then(|| component(stack, node))
        .flatten()
}

/// What the nearest soft partitions are cut out of, unless a partition is nearer.
fn component(stack: &Stack, node: NodeId) -> Option<NodeId> {
    if stack
        .above(node)
        .iter()
        .any(|above| stack.node(*above).kind == Kind::SoftPartition)
    {
        return Some(node);
    }
    let is_chosen =
        |id: &NodeId| matches!(stack.node(*id).kind, Kind::SoftPartition | Kind::Partition);
    let id = stack.under(node).into_iter().find(is_chosen)?;
    let is_soft = stack.node(id).kind == Kind::SoftPartition;
    is_soft.then(|| {
        stack
            .node(id)
            .placing
            .below()
            .first()
            .copied()
            .unwrap_or(id)
    })
}

/// The nearest layer below, the node itself included, whose start can be chosen.
fn start(stack: &Stack, node: NodeId, wishes: &Wishes) -> Result<Answer, PlanError> {
    if let Some(component) = component(stack, node) {
        let plan = softpart::plan(&of_stack::softpart(stack, component, wishes.unit)?)?;
        return Ok(Answer {
            changes: component,
            plan,
        });
    }
    if let Some(id) = stack
        .under(node)
        .into_iter()
        .find(|id| stack.node(*id).kind == Kind::Partition)
    {
        let plan = partition::plan(&of_stack::partition(stack, id)?)?;
        return Ok(Answer { changes: id, plan });
    }
    let give = "what stands on a whole disk has no start to choose";
    Err(PlanError::Missing {
        what: "a partition or soft partition below it",
        give,
    })
}

fn file_system(stack: &Stack, node: NodeId) -> Result<Plan, PlanError> {
    let kind = match stack.node(node).value(keys::CONTENT) {
        Some(ContentKind::Ext2 | ContentKind::Ext3 | ContentKind::Ext4) => filesystem::Type::Ext4,
        Some(ContentKind::Xfs) => filesystem::Type::Xfs,
        Some(ContentKind::Btrfs) => filesystem::Type::Btrfs,
        Some(ContentKind::Ufs) => filesystem::Type::Ufs,
        _ => {
            return Err(PlanError::Missing {
                what: "the kind of file system",
                give: "give it with --type",
            });
        }
    };
    filesystem::plan(&of_stack::filesystem(stack, node, kind)?)
}

fn chunks(stack: &Stack, node: NodeId, wishes: &Wishes) -> Result<Answer, PlanError> {
    let found = stack
        .under(node)
        .into_iter()
        .find_map(|id| match &stack.node(id).placing {
            Placing::Chunks(chunks) => Some((id, chunks)),
            _ => None,
        });
    let (id, chunks) = found.ok_or(PlanError::Missing {
        what: "a stripe below it",
        give: "give its chunk and members",
    })?;
    of_stack::without_conflict(stack, id)?;
    let io = wishes.page.ok_or(PlanError::Missing {
        what: "the length of the I/O",
        give: "give a page",
    })?;
    let manager = match stack.node(id).value(keys::MANAGER) {
        Some(VolumeManager::Svm) => stripe::Manager::Svm,
        Some(VolumeManager::Lvm) => stripe::Manager::Lvm,
        _ => stripe::Manager::Md,
    };
    let plan = stripe::plan(&stripe::StripeRequest {
        io,
        base: Bytes(0),
        starts: stripe::IoStarts::Pages,
        share_max: SHARE_MAX,
        chunk: Some(chunks.chunk),
        segment: wishes.segment.or_else(|| segment(stack, chunks)),
        manager,
        members: chunks
            .members
            .iter()
            .map(|member| stack.node(member.node).own_name().to_owned())
            .collect(),
        parity: chunks.parity,
    })?;
    Ok(Answer { changes: id, plan })
}

/// The segment that the arrays below a stripe are known to have.
fn segment(stack: &Stack, chunks: &Chunks) -> Option<Bytes> {
    let below = chunks
        .members
        .iter()
        .flat_map(|member| stack.under(member.node));
    let grids = below.flat_map(|id| stack.grids(id));
    let units = grids.filter(|fact| fact.what == CellKind::ArrayUnit && fact.is_believed());
    units.map(|fact| fact.granularity()).max()
}

fn records(stack: &Stack, node: NodeId, wishes: &Wishes) -> Result<Plan, PlanError> {
    let of = stack.node(node);
    let page = wishes.page.ok_or(PlanError::Missing {
        what: "the page",
        give: "give a page",
    })?;
    let known = |key| of.number(key);
    let (keeper, current) = match (known(keys::VOLUME_BLOCK), known(keys::RECORD_SIZE)) {
        (Some(block), _) => (record::Keeper::ZfsVolume, Some(block)),
        (None, Some(record)) => (record::Keeper::Zfs, Some(record)),
        (None, None) => (record::Keeper::Ufs, known(keys::FS_BLOCK)),
    };
    record::plan(&record::RecordRequest {
        load: record::Load::Page(page),
        keeper,
        name: of.own_name().to_owned(),
        current,
    })
}
