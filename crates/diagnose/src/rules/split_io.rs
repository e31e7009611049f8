//! `split-io`: I/O touch more chunks of a stripe than their length needs.

use super::{Context, Outcome, Rule, of, percent, severity_of, too_few};
use crate::finding::{Basis, Confidence, Cost};
use crate::share::Share;

/// The rule.
pub const RULE: Rule = Rule { id: "split-io", title: "I/O lie across a chunk boundary", judge };

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let Some(striped) = &context.analysis.what_if.striped else { return vec![Outcome::NotAsked] };
    let striped = match striped {
        Ok(striped) => striped,
        Err(why) => return vec![Outcome::Unknown(why.to_string())],
    };
    let tally = &striped.tally;
    if let Some(unknown) = too_few(tally.known_length()) {
        return vec![unknown];
    }
    let share = Share::new(tally.split, tally.known_length());
    let Some(severity) = severity_of(share) else { return vec![Outcome::Silent] };
    let summary = format!(
        "{} I/O touch more chunks of {} than their length needs; random starts would give {}",
        of(share),
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
        .with_evidence(context.evidence("split_share_expected", striped.expected_split_share, "share"))
        .with_cost(cost);
    if let Some((length, expected)) = striped.expected_of_commonest {
        finding = finding.explained(format!(
            "the commonest length, {length}, at a random sector is split in {expected} of the cases with this chunk"
        ));
    }
    if share.value() > 1.5 * striped.expected_split_share {
        finding =
            finding.explained("more than chance gives: the I/O lie off the chunks, look at their offset");
    }
    finding = finding.explained(format!(
        "{} I/O touch more than one chunk for any reason, most of them because of their length if that is longer than a chunk",
        plumb_geometry::group_digits(tally.crossing)
    ));
    vec![Outcome::Found(finding)]
}
