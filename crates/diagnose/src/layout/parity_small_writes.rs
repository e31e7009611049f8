//! `parity-small-writes`: writes of less than a full stripe on parity RAID, which read before they write.

use plumb_geometry::{Bytes, Grid, plural};
use plumb_profile::Profile;
use plumb_profile::fit::Select;
use plumb_stack::node::keys;
use plumb_stack::{Chunks, NodeId};
use plumb_trace::{Layer, Op};

use super::context::Context;
use super::{LayoutRule, words};
use crate::finding::{Basis, Confidence, Cost, Finding, Severity};
use crate::rules::{IOS_MIN, Outcome, lengths_unknown, severity_of, share_text};
use crate::share::Share;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "parity-small-writes",
    title: "writes of less than a full stripe on parity RAID",
    needs: "`--page` or a profile",
    decides: false,
    thresholds: || {
        vec![
            format!("{} operations with one parity", write_cost(1)),
            format!("{} with two", write_cost(2)),
        ]
    },
    plan: None,
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
        chunks.parity > 0 && context.stack.node(*id).word(keys::MANAGER) != Some("zfs")
    });
    arrays
        .map(|(id, chunks)| judge_array(context, id, chunks))
        .collect()
}

fn judge_array(context: &Context<'_>, id: NodeId, chunks: &Chunks) -> Outcome {
    let unknown = |why: String| Outcome::UnknownOf(context.target(id), why);
    let Some(stripe) = chunks.stripe_bytes() else {
        return unknown("the stripe is longer than 64 bits can say".to_owned());
    };
    if let Some(profile) = context.profile(id, |layer| layer != Layer::Vfs) {
        return observed(context, id, (chunks, stripe), profile);
    }
    let io = context.io_size(id);
    if io.is_assumed() {
        return unknown(format!(
            "a full stripe is {stripe}; what is written is not known: give --page or a profile"
        ));
    }
    if words::is_multiple(io.bytes, stripe) {
        return Outcome::Silent;
    }
    let summary = format!(
        "writes of {} are less than the full stripe of {stripe}, or end within one",
        io.bytes
    );
    let source = context
        .stack
        .node(id)
        .placed_by
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    // Nobody knows how much is written at all.
    let finding = context
        .finding(
            &RULE,
            (id, Severity::Note, io.confidence.lowered()),
            summary,
            words::bytes("stripe_bytes", stripe, source),
        )
        .with_evidence(io.evidence());
    Outcome::Found(explain(finding, chunks))
}

fn observed(
    context: &Context<'_>,
    id: NodeId,
    (chunks, stripe): (&Chunks, Bytes),
    profile: &Profile,
) -> Outcome {
    let unknown = |why: String| Outcome::UnknownOf(context.target(id), why);
    let Ok(grid) = Grid::parity_stripe(stripe) else {
        return Outcome::NotAsked;
    };
    let tally = match profile.places.table.fit(&grid, Select::op(Op::Write)) {
        Ok(tally) => tally,
        Err(why) => return unknown(why.to_string()),
    };
    if tally.ios < IOS_MIN {
        return unknown(format!(
            "{} seen, {IOS_MIN} needed",
            plural(tally.ios, "write")
        ));
    }
    if let Some(why) = lengths_unknown(tally.ios, tally.unknown_length) {
        return unknown(why);
    }
    let share = Share::new(tally.partial, tally.known_length());
    let Some(severity) = severity_of(share) else {
        return Outcome::Silent;
    };
    let source = format!(
        "counted on {} ({} layer)",
        profile.device,
        profile.layer.word()
    );
    let summary = format!(
        "{} writes cover a full stripe of {stripe} only in part",
        share_text(share)
    );
    let finding = context
        .finding(
            &RULE,
            (id, severity, Confidence::High),
            summary,
            words::number("ios_unfit", share.part, "ios", &source),
        )
        .with_evidence(words::number("ios", share.whole, "ios", &source))
        .with_evidence(words::bytes("stripe_bytes", stripe, "layout of the array"));
    Outcome::Found(explain(finding, chunks))
}

fn explain(finding: Finding, chunks: &Chunks) -> Finding {
    let cost = write_cost(chunks.parity);
    finding
        .with_evidence(words::number("data_chunks", chunks.data_chunks(), "chunks", "layout of the array"))
        .with_cost(Some(Cost {
            value: cost as f64,
            unit: "disk operations per small write",
            basis: Basis::Estimated,
        }))
        .explained(format!(
            "a small write reads the old data and {} and writes them anew: {cost} operations, where a mirror takes 2",
            if chunks.parity == 1 { "the old parity" } else { "all old parities" }
        ))
        .explained(
            "a write-back cache that survives a power cut gathers some of them; for random writes mirrors are the \
             remedy, for sequential ones I/O of whole stripes",
        )
}
