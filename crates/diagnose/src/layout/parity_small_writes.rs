//! `parity-small-writes`: writes of less than a full stripe on parity RAID, which read before they write.

use plumb_geometry::{Bytes, Grid};
use plumb_model::facts::ParitySmallWrites;
use plumb_model::reason::Counting;
use plumb_model::{Confidence, Cost, CostOf, Facts, Reason, RuleId, Severity};
use plumb_profile::Profile;
use plumb_profile::fit::Select;
use plumb_stack::node::keys;
use plumb_stack::node_facts::VolumeManager;
use plumb_stack::{Chunks, NodeId};
use plumb_trace::{Layer, Op};

use super::context::Context;
use super::{LayoutRule, sizes};
use crate::rules::{IOS_MIN, Outcome, lengths_unknown, severity_of};
use crate::share::Share;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::ParitySmallWrites,
    thresholds: || {
        vec![
            format!("{} operations with one parity", write_cost(1)),
            format!("{} with two", write_cost(2)),
        ]
    },
    judge,
};

/// Disk operations for each small write: read and write of the data and of each parity. RAID 5 gives 4, RAID 6 gives 6.
#[must_use]
pub const fn write_cost(parity: u32) -> u64 {
    2 + 2 * parity as u64
}

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let arrays = context.striped().filter(|(id, chunks)| {
        // RAID-Z has no stripes of a fixed size: it writes whole ones of the size of the block.
        chunks.parity > 0
            && context.stack.node(*id).value(keys::MANAGER) != Some(&VolumeManager::Zfs)
    });
    arrays
        .map(|(id, chunks)| judge_array(context, id, chunks))
        .collect()
}

fn judge_array(context: &Context<'_>, id: NodeId, chunks: &Chunks) -> Outcome {
    let Some(stripe) = chunks.stripe_bytes() else {
        return context.unknown(id, Reason::StripeTooLong);
    };
    if let Some(profile) = context.profile(id, |layer| layer != Layer::Vfs) {
        return observed(context, id, (chunks, stripe), profile);
    }
    let io = context.io_size(id);
    if io.is_assumed() {
        let reason = Reason::WritesToStripe {
            stripe_bytes: stripe,
        };
        return context.unknown(id, reason);
    }
    if sizes::is_multiple(io.bytes, stripe) {
        return Outcome::Silent;
    }
    // Nobody knows how much is written at all.
    let confidence = io.confidence().lowered();
    let facts = ParitySmallWrites {
        io: Some(io),
        ..facts(context, id, (chunks, stripe))
    };
    found(context, facts, (id, Severity::Note, confidence))
}

fn observed(
    context: &Context<'_>,
    id: NodeId,
    (chunks, stripe): (&Chunks, Bytes),
    profile: &Profile,
) -> Outcome {
    let Ok(grid) = Grid::parity_stripe(stripe) else {
        return Outcome::NotAsked;
    };
    let tally = match profile.places.table.fit(&grid, Select::op(Op::Write)) {
        Ok(tally) => tally,
        Err(why) => return context.unknown(id, Reason::Table { why }),
    };
    if tally.ios < IOS_MIN {
        let reason = Reason::TooFew {
            what: Counting::Writes,
            seen: tally.ios,
            needed: IOS_MIN,
        };
        return context.unknown(id, reason);
    }
    if let Some(reason) = lengths_unknown(tally.ios, tally.unknown_length) {
        return context.unknown(id, reason);
    }
    let share = Share::new(tally.partial, tally.known_length());
    let Some(severity) = severity_of(share) else {
        return Outcome::Silent;
    };
    let is_own = context.name(id) == profile.device;
    let facts = ParitySmallWrites {
        counted: Some(share.counted()),
        counted_on: (!is_own).then(|| profile.device.clone()),
        ..facts(context, id, (chunks, stripe))
    };
    found(context, facts, (id, severity, Confidence::High))
}

fn facts(
    context: &Context<'_>,
    id: NodeId,
    (chunks, stripe): (&Chunks, Bytes),
) -> ParitySmallWrites {
    ParitySmallWrites {
        stripe_bytes: stripe,
        data_chunks: chunks.data_chunks(),
        parity: chunks.parity,
        operations: write_cost(chunks.parity),
        counted: None,
        counted_on: None,
        io: None,
        source: context.placed_by(id),
    }
}

fn found(
    context: &Context<'_>,
    facts: ParitySmallWrites,
    about: (NodeId, Severity, Confidence),
) -> Outcome {
    let cost = Cost::estimated(CostOf::DiskOperations, facts.operations as f64);
    let finding = context.finding(Facts::ParitySmallWrites(facts), about);
    Outcome::found(finding.with_cost(cost))
}
