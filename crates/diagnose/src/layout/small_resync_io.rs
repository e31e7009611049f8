//! `small-resync-io`: mirrors are brought up to date in small pieces, and a resync takes hours longer than it need.

use plumb_geometry::Bytes;
use plumb_model::facts::SmallResyncIo;
use plumb_model::{Confidence, Facts, Reason, RuleId, Severity};
use plumb_stack::node::keys;

use super::context::Context;
use super::{LayoutRule, solaris};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::SmallResyncIo,
    thresholds: || vec![format!("less than {}", Bytes(RESYNC_BYTES_MIN))],
    judge,
};

/// `metasync -r 2048`, in blocks of 512 bytes: its maximum, and the paper's advice.
pub const RESYNC_BYTES_MIN: u64 = 1 << 20;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let mirrors = solaris::mirrors(context).count();
    if mirrors == 0 {
        return vec![Outcome::NotAsked];
    }
    let Some((Bytes(bytes), source)) = solaris::setting(context, keys::RESYNC_BYTES) else {
        return vec![Outcome::Unknown(Reason::ResyncSize)];
    };
    if bytes >= RESYNC_BYTES_MIN {
        return vec![Outcome::Silent];
    }
    let wanted = Bytes(RESYNC_BYTES_MIN);
    let maxphys = solaris::setting(context, keys::MAXPHYS).map(|(maxphys, _)| maxphys);
    let facts = Facts::SmallResyncIo(SmallResyncIo {
        resync_bytes: Bytes(bytes),
        wanted_bytes: wanted,
        mirrors: mirrors as u64,
        maxphys_bytes: maxphys.filter(|maxphys| *maxphys < wanted),
        source,
    });
    let finding = context.host_finding(facts, Severity::Warning, Confidence::Medium);
    vec![Outcome::found(finding)]
}
