//! `split-io` from the layout: the share of I/O that have to lie across a chunk boundary.
//!
//! Where I/O of a device were recorded they are counted. Else the share is worked out over one period of the starts
//! d + k·step, with d where the volume begins and step its page: those with start mod chunk + length > chunk.

use std::collections::HashMap;

use plumb_geometry::{Bytes, Grid, Share as Exact, split_share_from};
use plumb_profile::Profile;
use plumb_profile::fit::Select;
use plumb_stack::{CellKind, GridFact, Landing, NodeId};
use plumb_trace::Layer;

use super::context::{Context, Top, seen_from_above};
use super::io_size::IoSize;
use super::{LayoutRule, words};
use crate::finding::{Basis, Cost, Finding, Severity};
use crate::rules::{
    IOS_MIN, Outcome, PlanKind, lengths_unknown, severity_of, share_text, share_words,
};
use crate::share::Share;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "split-io",
    title: "I/O have to lie across a chunk boundary",
    needs: "`--page` or a profile",
    decides: true,
    thresholds: || {
        vec![
            format!("from {} of I/O on", share_words(SHARE_MIN)),
            format!("warning from {}", share_words(SHARE_WARNING)),
        ]
    },
    plan: Some(PlanKind::Chunk),
    judge,
};

/// From this share on it is worth knowing: below one in a hundred the paper on striping calls it total alignment's
/// last percent.
pub const SHARE_MIN: f64 = 0.01;

/// From this share on it is worth mending, as for I/O that were seen.
pub const SHARE_WARNING: f64 = 0.10;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = context
        .tops
        .iter()
        .flat_map(|top| judge_top(context, top))
        .collect();
    // A stripe of which I/O were recorded is judged by them also where something stands on it.
    for (id, _) in context
        .striped()
        .filter(|(id, _)| !context.profiles(*id).is_empty())
    {
        if let Some(profile) = placed(context, id) {
            let landings = context.stack.landings(id);
            outcomes.extend(landings.all.iter().take(1).flat_map(|landing| {
                boundaries(context, landing.on)
                    .map(|fact| observed(context, id, profile, landing, &fact))
            }));
        }
    }
    outcomes
}

fn judge_top(context: &Context<'_>, top: &Top) -> Vec<Outcome> {
    let mut by_layer: HashMap<(NodeId, Bytes), (GridFact, Vec<&Landing>)> = HashMap::new();
    let mut order = Vec::new();
    for landing in &top.landings.all {
        for fact in boundaries(context, landing.on) {
            let key = (landing.on, fact.granularity());
            by_layer
                .entry(key)
                .or_insert_with(|| {
                    order.push(key);
                    (fact, Vec::new())
                })
                .1
                .push(landing);
        }
    }
    let device = context.device_of(top.id);
    order
        .iter()
        .filter_map(|key| by_layer.get(key))
        .map(|(fact, landings)| match placed(context, top.id) {
            Some(profile) if landings.len() == 1 => {
                observed(context, device, profile, landings[0], fact)
            }
            _ => expected(context, device, &context.io_size(top.id), landings, fact),
        })
        .collect()
}

/// Boundaries at which I/O are cut on a layer. A chunk on a single member cuts nothing.
fn boundaries(context: &Context<'_>, on: NodeId) -> impl Iterator<Item = GridFact> {
    let is_striped = context.stack.node(on).placing.below().len() > 1;
    let grids = context.grids(on, |what| {
        what == CellKind::IoBoundary || what == CellKind::Chunk && is_striped
    });
    grids.into_iter()
}

/// What was recorded of a device with places that are those of the device.
fn placed<'a>(context: &'a Context<'_>, id: NodeId) -> Option<&'a Profile> {
    context.profile(id, |layer| layer != Layer::Vfs)
}

fn observed(
    context: &Context<'_>,
    device: NodeId,
    profile: &Profile,
    landing: &Landing,
    fact: &GridFact,
) -> Outcome {
    let unknown = |why: String| Outcome::UnknownOf(context.target(device), why);
    let Some(grid) = seen_from_above(landing, &fact.grid) else {
        return unknown(no_phase(context, landing));
    };
    let tally = match profile.places.table.fit(&grid, Select::DATA) {
        Ok(tally) => tally,
        Err(why) => return unknown(why.to_string()),
    };
    if tally.ios < IOS_MIN {
        return unknown(format!("{} I/O seen, {IOS_MIN} needed", tally.ios));
    }
    if let Some(why) = lengths_unknown(tally.ios, tally.unknown_length) {
        return unknown(why);
    }
    let share = Share::new(tally.split, tally.known_length());
    let Some(severity) = severity_of(share) else {
        return Outcome::Silent;
    };
    let summary = format!(
        "{} I/O touch more {} chunks of {} than their length needs",
        share_text(share),
        fact.granularity(),
        context.name(landing.on)
    );
    let source = format!(
        "counted on {} ({} layer)",
        profile.device,
        profile.layer.word()
    );
    let about = (device, severity, words::confidence_in(&fact.source));
    let finding = context
        .finding(
            &RULE,
            about,
            summary,
            words::number("ios_unfit", share.part, "ios", &source),
        )
        .with_evidence(words::number("ios", share.whole, "ios", &source))
        .with_evidence(words::real("share_low", share.low(), "share", &source));
    Outcome::Found(explain(context, finding, landing, fact, share.value()))
}

fn expected(
    context: &Context<'_>,
    device: NodeId,
    io: &IoSize,
    landings: &[&Landing],
    fact: &GridFact,
) -> Outcome {
    let unknown = |why: String| Outcome::UnknownOf(context.target(device), why);
    let mut worst: Option<(Exact, &Landing)> = None;
    for landing in landings {
        let Some(share) = share_of(landing, &fact.grid, io.bytes) else {
            return unknown(no_phase(context, landing));
        };
        if worst.is_none_or(|(known, _)| share.value() > known.value()) {
            worst = Some((share, *landing));
        }
    }
    let Some((share, landing)) = worst else {
        return Outcome::NotAsked;
    };
    let on = context.name(landing.on);
    if share.value() < SHARE_MIN {
        return if io.is_assumed() && fact.what == CellKind::IoBoundary {
            // Boundaries of drives are wide, and nothing here speaks against them.
            Outcome::NotAsked
        } else if io.is_assumed() {
            let some = if share.numerator == 0 {
                "no".to_owned()
            } else {
                words::share(share)
            };
            unknown(format!(
                "{some} I/O of {}, which are assumed, lie across chunks of {on}; unknown for others: give --page or a profile",
                io.bytes
            ))
        } else {
            Outcome::Silent
        };
    }
    let severity = if share.value() >= SHARE_WARNING {
        Severity::Warning
    } else {
        Severity::Note
    };
    let confidence = words::lesser(io.confidence, words::confidence_in(&fact.source));
    let summary = format!(
        "{} I/O of {} have to lie across a {} chunk of {on}",
        words::share(share),
        io.bytes,
        fact.granularity()
    );
    let evidence = words::real(
        "split_share_expected",
        share.value(),
        "share",
        "over one period of the starts",
    );
    let finding = context
        .finding(&RULE, (device, severity, confidence), summary, evidence)
        .with_evidence(io.evidence());
    let finding = if io.is_assumed() {
        finding.explained(format!(
            "I/O of {} are assumed: give --page or a profile",
            io.bytes
        ))
    } else {
        finding
    };
    Outcome::Found(explain(context, finding, landing, fact, share.value()))
}

/// Share of pages of a volume that lie across a boundary of a layer below; `None` where that differs from one chunk
/// between to the next.
fn share_of(landing: &Landing, grid: &Grid, page: Bytes) -> Option<Exact> {
    let from_above = seen_from_above(landing, grid)?;
    split_share_from(Bytes(0), page, &from_above, page)
}

fn no_phase(context: &Context<'_>, landing: &Landing) -> String {
    let between: Vec<String> = landing
        .via
        .iter()
        .map(|id| context.name(*id).to_owned())
        .collect();
    format!(
        "chunks between ({}) are no multiples of those below: it differs from one to the next",
        words::list(&between)
    )
}

fn explain(
    context: &Context<'_>,
    finding: Finding,
    landing: &Landing,
    fact: &GridFact,
    share: f64,
) -> Finding {
    let on = context.name(landing.on);
    let finding = finding
        .with_evidence(words::bytes(
            "chunk_bytes",
            fact.granularity(),
            format!("{}, of {on}", fact.source),
        ))
        .with_cost(Some(Cost {
            value: 1.0 + share,
            unit: "commands per command needed",
            basis: Basis::Estimated,
        }));
    let past = landing.shift.rem_euclid(i128::from(fact.granularity().0)) as u64;
    let past = fact.grid.past_boundary(Bytes(past));
    if past == Bytes(0) {
        return finding.explained(format!(
            "it begins on a chunk of {on}: a chunk that is a multiple of the I/O size, or a larger one, lowers the share"
        ));
    }
    finding.with_evidence(words::bytes("past_chunk_bytes", past, "layout of the layers between")).explained(format!(
        "it begins {} past a chunk of {on}: begin it on one, and I/O at multiples of their size that fit a chunk are \
         never split",
        words::place(past)
    ))
}
