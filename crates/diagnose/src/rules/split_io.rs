//! `split-io`: I/O touch more chunks of a stripe than their length needs.

use plumb_geometry::group_digits;
use plumb_profile::what_if::Striped;
use plumb_trace::Layer;

use super::{
    Context, IoRule, Outcome, percent, severity_of, share_text, tally_lengths_unknown,
    thresholds_with_warning,
};
use crate::finding::{Basis, Confidence, Cost};
use crate::share::Share;

/// The rule.
pub const RULE: IoRule = IoRule {
    id: "split-io",
    title: "I/O lie across a chunk boundary",
    needs: "`--chunk`",
    decides: true,
    thresholds: thresholds_with_warning,
    plan: None,
    judge,
};

/// What was asked about a stripe, or what to say instead.
pub(super) fn stripe<'a>(context: &Context<'a>) -> Result<&'a Striped, Box<Outcome>> {
    let striped = match &context.analysis.what_if.striped {
        None => return Err(Box::new(Outcome::NotAsked)),
        Some(Err(why)) => return Err(Box::new(Outcome::Unknown(why.to_string()))),
        Some(Ok(striped)) => striped,
    };
    if context.profile.layer == Layer::Vfs {
        return Err(Box::new(Outcome::Unknown(
            "places at the vfs layer are those in files: chunks take a trace of the striped device"
                .to_owned(),
        )));
    }
    match context
        .too_few(striped.tally.ios)
        .or_else(|| tally_lengths_unknown(&striped.tally))
    {
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
    let share = Share::new(tally.split, tally.known_length());
    let Some(severity) = severity_of(share) else {
        return vec![context.none_found(share)];
    };
    let summary = format!(
        "{} I/O touch more chunks of {} than their length needs; random starts would give {}",
        share_text(share),
        striped.chunk_bytes,
        percent(striped.expected_split_share),
    );
    let cost = (tally.cells_min > 0).then(|| Cost {
        value: tally.cells as f64 / tally.cells_min as f64,
        unit: "commands per command needed",
        basis: Basis::Estimated,
    });
    let mut finding = context
        .share_finding(&RULE, severity, Confidence::High, share, summary)
        .with_evidence(context.evidence("crossing_ios", tally.crossing as f64, "ios"))
        .with_evidence(context.evidence(
            "split_share_expected",
            striped.expected_split_share,
            "share",
        ))
        .with_cost(cost);
    if let Some((length, expected)) = striped.expected_of_commonest {
        finding = finding.explained(format!(
            "the commonest length, {length}, at a random sector is split in {expected} of the cases with this chunk"
        ));
    }
    if share.value() > 1.5 * striped.expected_split_share {
        finding = finding
            .explained("more than chance gives: the I/O lie off the chunks, look at their offset");
    }
    let longer = tally.crossing.saturating_sub(tally.split);
    if longer > 0 {
        finding = finding.explained(format!(
            "{} more touch several chunks because they are longer than one: that is the chunk's size, not their place",
            group_digits(longer)
        ));
    }
    vec![Outcome::Found(finding)]
}
