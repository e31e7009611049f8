//! `small-segmap`: the part of memory through which UFS files are read and written is the default small one.

use plumb_model::facts::SmallSegmap;
use plumb_model::{Confidence, Facts, Reason, RuleId, Severity};
use plumb_stack::node::keys;

use super::context::Context;
use super::{LayoutRule, solaris};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::SmallSegmap,
    thresholds: || vec![format!("at most {SEGMAP_PERCENT_DEFAULT} percent")],
    judge,
};

/// The default of `segmap_percent`, in percent of memory.
pub const SEGMAP_PERCENT_DEFAULT: u64 = 12;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let cached = solaris::ufs(context)
        .filter(|(_, node)| solaris::option(node, "forcedirectio") == Some(false))
        .count();
    if cached == 0 {
        return vec![Outcome::NotAsked];
    }
    let Some((percent, source)) = solaris::setting(context, keys::SEGMAP_PERCENT) else {
        let default_percent = SEGMAP_PERCENT_DEFAULT;
        return vec![Outcome::Unknown(Reason::Segmap { default_percent })];
    };
    if percent > SEGMAP_PERCENT_DEFAULT {
        return vec![Outcome::Silent];
    }
    let facts = Facts::SmallSegmap(SmallSegmap {
        segmap_percent: percent,
        file_systems: cached as u64,
        source,
    });
    let finding = context.host_finding(facts, Severity::Note, Confidence::Low);
    vec![Outcome::found(finding)]
}
