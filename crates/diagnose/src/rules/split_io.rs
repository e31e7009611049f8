//! `split-io`: I/O touch more chunks of a stripe than their length needs.

use plumb_geometry::Bounds;
use plumb_model::facts::{SplitInTrace, SplitIo, SplitOfLength};
use plumb_model::{Confidence, Cost, CostOf, Facts, Reason, RuleId};
use plumb_profile::what_if::Striped;
use plumb_trace::Layer;

use super::context::table;
use super::{Context, IoRule, Outcome, severity_of, thresholds_with_warning};
use crate::share::Share;

/// The rule.
pub const RULE: IoRule = IoRule {
    id: RuleId::SplitIo,
    thresholds: thresholds_with_warning,
    judge,
};

/// The question about a stripe, or the outcome without one.
pub(super) fn stripe<'a>(context: &Context<'a>) -> Result<&'a Striped, Box<Outcome>> {
    let striped = match &context.analysis.what_if.striped {
        None => return Err(Box::new(Outcome::NotAsked)),
        Some(Err(why)) => return Err(Box::new(Outcome::Unknown(table(why.clone())))),
        Some(Ok(striped)) => striped,
    };
    if context.profile.layer == Layer::Vfs {
        return Err(Box::new(Outcome::Unknown(Reason::PlacesInFiles)));
    }
    match context.too_few(striped.tally.ios) {
        Some(unknown) => Err(Box::new(unknown)),
        None => Ok(striped),
    }
}

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let striped = match stripe(context) {
        Ok(striped) => striped,
        Err(instead) => return vec![*instead],
    };
    let tally = &striped.tally;
    let share = Share::between(tally.split, tally.ios);
    let Some(severity) = severity_of(share) else {
        return vec![context.none_found_of(share, || tally.lengths_dropped())];
    };
    let cost = tally
        .cells_ratio()
        .and_then(|ratio| Cost::of_ratio(CostOf::Commands, ratio));
    let commonest = striped.expected_of_commonest;
    let trace = SplitInTrace {
        random_share: striped.expected_split_share,
        commonest: commonest.map(|commonest| SplitOfLength {
            len_bytes: commonest.len_bytes,
            split: commonest.split,
        }),
        longer: Bounds {
            low: tally.crossing.low.saturating_sub(tally.split.high),
            high: tally.crossing.high.saturating_sub(tally.split.low),
        },
    };
    let counted = context.counted(share);
    let confidence = context.confidence(&counted, Confidence::High);
    let facts = Facts::SplitIo(SplitIo {
        chunk_bytes: striped.chunk_bytes,
        on: None,
        source: None,
        counted: Some(counted),
        counted_on: None,
        expected: None,
        io: None,
        past_bytes: None,
        trace: Some(trace),
    });
    let finding = context.finding(facts, severity, confidence);
    vec![Outcome::found(finding.with_cost(cost))]
}
