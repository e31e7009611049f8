//! `member-skew`: the members of a stripe are loaded unevenly.

use plumb_geometry::Bounds;
use plumb_model::facts::MemberSkew;
use plumb_model::reason::Counting;
use plumb_model::{Confidence, Cost, CostOf, Facts, Reason, RuleId, Severity};

use super::context::table;
use super::split_io::stripe;
use super::{Context, IOS_MIN, IoRule, Outcome};
use crate::share::Share;

/// The rule.
pub const RULE: IoRule = IoRule {
    id: RuleId::MemberSkew,
    thresholds: || {
        vec![
            format!("at least {IOS_MIN} I/O"),
            format!("{PIECES_PER_MEMBER_MIN} pieces a member"),
            format!(
                "more than {} points above the even part",
                EXCESS_MIN * 100.0
            ),
        ]
    },
    judge,
};

/// The busiest member must be shown to have so much more than its part, as a share of all I/O. One percent of
/// 100,000 I/O on one member of four is 0.75 points above its part, known to 0.27.
pub const EXCESS_MIN: f64 = 0.0025;

/// Fewer pieces to each member say nothing of how evenly they are spread.
pub const PIECES_PER_MEMBER_MIN: u64 = 50;

/// Nor does it matter below this multiple of its part. One percent of all I/O gives one member of four 1.03.
pub const RATIO_MIN: f64 = 1.02;

/// From this multiple of its part on, the busiest member limits the whole stripe.
const RATIO_WARNING: f64 = 1.25;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let striped = match stripe(context) {
        Ok(striped) => striped,
        Err(instead) => return vec![*instead],
    };
    let loads = match (&striped.members, &striped.members_unknown) {
        (Some(loads), _) if loads.len() > 1 => loads,
        (_, Some(why)) => return vec![Outcome::Unknown(table(why.clone()))],
        _ => return vec![Outcome::NotAsked],
    };
    // If lengths are a range, a member has its least share when it has fewest pieces and the others have most.
    let sum = |end: fn(Bounds<u64>) -> u64| -> u64 {
        loads
            .iter()
            .map(|load| end(load.pieces))
            .fold(0, u64::saturating_add)
    };
    let (least, most) = (sum(|pieces| pieces.low), sum(|pieces| pieces.high));
    let needed = PIECES_PER_MEMBER_MIN * loads.len() as u64;
    if least < needed {
        let members = loads.len() as u64;
        return vec![Outcome::Unknown(Reason::TooFew {
            what: Counting::Pieces { members },
            seen: least,
            needed,
        })];
    }
    let at_least = loads.iter().map(|load| {
        let others = most - load.pieces.high;
        Share::new(load.pieces.low, load.pieces.low.saturating_add(others))
    });
    let mut at_most = loads.iter().map(|load| {
        let others = least - load.pieces.low;
        Share::new(load.pieces.high, load.pieces.high.saturating_add(others))
    });
    let busiest = at_least
        .enumerate()
        .max_by(|(_, one), (_, other)| one.value().total_cmp(&other.value()));
    let Some((member, share)) = busiest else {
        return vec![Outcome::Silent];
    };
    let Some(ratio) = skew(share, loads.len()) else {
        let is_open =
            striped.tally.rounded > 0 && at_most.any(|share| skew(share, loads.len()).is_some());
        return vec![if is_open {
            Outcome::Unknown(table(striped.tally.lengths_dropped()))
        } else {
            Outcome::Silent
        }];
    };
    let severity = if ratio >= RATIO_WARNING {
        Severity::Warning
    } else {
        Severity::Note
    };
    let facts = Facts::MemberSkew(MemberSkew {
        member: member as u64,
        members: loads.len() as u64,
        counted: context.counted(share),
        ratio,
    });
    let finding = context
        .finding(facts, severity, Confidence::High)
        .with_cost(Cost::estimated(CostOf::MemberLoad, ratio));
    vec![Outcome::found(finding)]
}

/// How many times its even part a member has, if that is shown and matters.
fn skew(share: Share, members: usize) -> Option<f64> {
    let part = 1.0 / members as f64;
    let excess = share.part.low as f64 - share.whole as f64 * part;
    let ratio = share.value() / part;
    let shown = share.low() - part > EXCESS_MIN && excess > chance(share.whole, members);
    (shown && ratio >= RATIO_MIN).then_some(ratio)
}

/// The excess of the fullest of `members` with random I/O, exceeded in 1 of 100 cases: the normal bound of a maximum,
/// √(2·ln(100·members)·variance). The more members, the larger it is.
fn chance(pieces: u64, members: usize) -> f64 {
    let members = members as f64;
    let variance = pieces as f64 / members * (1.0 - 1.0 / members);
    (2.0 * (100.0 * members).ln() * variance).sqrt()
}
