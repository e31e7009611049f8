//! `member-skew`: the members of a stripe are loaded unevenly.

use plumb_geometry::group_digits;

use super::{Context, IOS_MIN, Outcome, Rule, percent};
use crate::finding::{Basis, Confidence, Cost, Severity};
use crate::share::Share;

/// The rule.
pub const RULE: Rule = Rule { id: "member-skew", title: "members of a stripe are loaded unevenly", judge };

/// The busiest member must be shown to have so much more than its part, as a share of all I/O. One percent of
/// 100,000 I/O on one member of four is 0.75 points above its part, known to 0.27.
pub const EXCESS_MIN: f64 = 0.0025;

/// From this multiple of its part on, the busiest member limits the whole stripe.
const RATIO_WARNING: f64 = 1.25;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let Some(striped) = &context.analysis.what_if.striped else { return vec![Outcome::NotAsked] };
    let striped = match striped {
        Ok(striped) => striped,
        Err(why) => return vec![Outcome::Unknown(why.to_string())],
    };
    let loads = match (&striped.members, &striped.members_unknown) {
        (Some(loads), _) if loads.len() > 1 => loads,
        (_, Some(why)) => return vec![Outcome::Unknown(why.to_string())],
        _ => return vec![Outcome::NotAsked],
    };
    let pieces: u64 = loads.iter().map(|load| load.pieces).sum();
    if pieces < IOS_MIN {
        return vec![Outcome::Unknown(format!("{pieces} pieces seen, {IOS_MIN} needed"))];
    }
    let Some((member, load)) = loads.iter().enumerate().max_by_key(|(_, load)| load.pieces) else {
        return vec![Outcome::Silent];
    };
    let (share, part) = (Share::new(load.pieces, pieces), 1.0 / loads.len() as f64);
    if share.low() - part <= EXCESS_MIN {
        return vec![Outcome::Silent];
    }
    let ratio = share.value() / part;
    let severity = if ratio >= RATIO_WARNING { Severity::Warning } else { Severity::Note };
    let summary = format!(
        "member {member} of {} gets {} of {} pieces ({}), its even part is {}",
        loads.len(),
        group_digits(share.part),
        group_digits(share.whole),
        percent(share.value()),
        percent(part),
    );
    let finding = context
        .share_finding(&RULE, severity, Confidence::High, share, summary)
        .with_evidence(context.evidence("ratio_to_even", ratio, "ratio"))
        .with_cost(Some(Cost { value: ratio, unit: "load of the busiest member per even load", basis: Basis::Estimated }))
        .explained("the busiest member limits the stripe; look for metadata or hot blocks that repeat at the stripe's width");
    vec![Outcome::Found(finding)]
}
