//! From a finding about a node of a stack to the plans that may remedy it, by the kind of plan that its rule names. Whether
//! one of them does is proven afterwards ([`crate::recommend`]).
//!
//! Findings without a plan as remedy (a read policy, a mount option, wrong hints) have none here; their page has the
//! remedy.

use plumb_geometry::{Bytes, Grid, Share};
use plumb_model::action::QueueChange;
use plumb_model::{Facts, Finding, PlanKind};
use plumb_quoting::names::KERNEL_DEVICE;
use plumb_stack::node::keys;
use plumb_stack::node_facts::{ContentKind, VolumeManager};
use plumb_stack::{CellKind, Chunks, Kind, NodeId, Placing, Stack};

use crate::error::PlanError;
use crate::plan::Plan;
use crate::{filesystem, label, of_stack, partition, queue, record, resync, softpart, stripe};

mod locate;

/// The facts that only the user knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Page of the application.
    pub page: Option<Bytes>,
    /// Segment of the array below.
    pub segment: Option<Bytes>,
    /// Unit that soft partitions have to be on.
    pub unit: Option<Bytes>,
    /// The chunk that a stripe should have; without it the smallest that keeps most I/O whole.
    pub chunk: Option<Bytes>,
}

/// Share of I/O that may cross: "less than one percent" in Sun's paper of November 2003.
const SHARE_MAX: Share = Share {
    numerator: 1,
    denominator: 100,
};
/// The largest size that metasync accepts.
const RESYNC: Bytes = Bytes(1 << 20);

/// A plan and the layer that its commands change: not always the node of the finding, nor a device of the same host.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The layer that is recreated or tuned.
    pub changes: NodeId,
    /// How.
    pub plan: Plan,
}

/// The plans that may remedy a finding, the one that keeps the data first.
#[must_use]
pub fn answers(
    stack: &Stack,
    finding: &Finding,
    wishes: &Wishes,
) -> Vec<Result<Answer, PlanError>> {
    let Some(kind) = finding.rule().rule().plan else {
        return Vec::new();
    };
    let node = match (finding.target.node, stack.host_id()) {
        (Some(node), _) => node,
        (None, Some(host)) if finding.target.is_host() && kind == PlanKind::Resync => host,
        _ => return Vec::new(),
    };
    let io = finding.facts.io_size().map(|io| io.bytes);
    let with = |chunk| Wishes {
        page: wishes.page.or(io),
        chunk,
        ..*wishes
    };
    let mut answers = match &finding.facts {
        Facts::NarrowStripe(facts) => {
            vec![for_finding(
                stack,
                kind,
                node,
                &with(Some(facts.wanted_chunk_bytes)),
            )]
        }
        Facts::StripeSegmentMismatch(facts) => {
            vec![for_finding(stack, kind, node, &with(facts.proposed_bytes))]
        }
        Facts::SplitIo(facts) => {
            let on = facts.on.as_deref().and_then(|name| stack.find(name));
            let moved = on.map(|on| start_on_chunk(stack, node, on));
            let chunk = for_finding(stack, kind, node, &with(None));
            moved.into_iter().chain([chunk]).collect()
        }
        Facts::QueueSetting(facts) => {
            let changes: Vec<QueueChange> = facts.settings.iter().map(queue::change).collect();
            vec![Ok(queue_answer(stack, node, &changes))]
        }
        Facts::ReadAheadOff(facts) => {
            vec![Ok(read_ahead(stack, node, facts.better_bytes, Bytes(0)))]
        }
        Facts::ReadAheadTooLarge(facts) => {
            vec![Ok(read_ahead(stack, node, facts.better_bytes, facts.bytes))]
        }
        _ => vec![for_finding(stack, kind, node, wishes)],
    };
    for answer in answers.iter_mut().flatten() {
        locate::actions(stack, answer);
    }
    answers
}

fn queue_answer(stack: &Stack, node: NodeId, changes: &[QueueChange]) -> Answer {
    Answer {
        changes: node,
        plan: queue::plan(stack.node(node).own_name(), changes),
    }
}

fn read_ahead(stack: &Stack, node: NodeId, bytes: Bytes, was_bytes: Bytes) -> Answer {
    queue_answer(stack, node, &[QueueChange::ReadAhead { bytes, was_bytes }])
}

/// A start of the nearest partition on a striped device that is on the chunk.
fn start_on_chunk(stack: &Stack, node: NodeId, striped: NodeId) -> Result<Answer, PlanError> {
    let on_stripe = |id: &NodeId| {
        let is_partition = stack.node(*id).kind == Kind::Partition;
        is_partition && stack.node(*id).placing.below().contains(&striped)
    };
    let partition = stack.under(node).into_iter().find(on_stripe);
    let (Some(id), Placing::Chunks(chunks)) = (partition, &stack.node(striped).placing) else {
        return Err(PlanError::Missing {
            what: "a partition on the stripe",
            give: "the data begin where the volume manager put them",
        });
    };
    let mut request = of_stack::partition(stack, id)?;
    let chunk = Grid::boundary(chunks.chunk);
    request.grids.extend(chunk);
    let plan = partition::plan(&request)?;
    Ok(Answer { changes: id, plan })
}

/// The plan of a kind for a node that a finding is about.
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
        PlanKind::BackupLabel => backup_label(stack, node).map(of_node),
        PlanKind::Queue => Err(PlanError::Missing {
            what: "the setting",
            give: "a finding names it",
        }),
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

/// The backup label of a disk, unless another problem of its label comes first. Plumb writes no label inside an image that it did not open by
/// a device, and none of a disk that another host has under a name that is no device.
fn backup_label(stack: &Stack, disk: NodeId) -> Result<Plan, PlanError> {
    of_stack::has_whole_label(stack, disk)?;
    let node = stack.node(disk);
    match KERNEL_DEVICE.has(node.own_name()) && node.kind != Kind::File {
        true => Ok(label::plan(node.own_name())),
        false => Err(PlanError::Missing {
            what: "the device of the disk",
            give: "attach the image as a loop device",
        }),
    }
}

/// The component whose soft partitions a plan for a node lays out; `None` if the plan is another one.
#[must_use]
pub fn component_laid_out(stack: &Stack, kind: PlanKind, node: NodeId) -> Option<NodeId> {
    (kind == PlanKind::Start)
        .then(|| component(stack, node))
        .flatten()
}

/// The component of the nearest soft partitions, unless a partition is nearer.
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
    let give = "a layer on a whole disk has no start to choose";
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
        chunk: wishes.chunk,
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
