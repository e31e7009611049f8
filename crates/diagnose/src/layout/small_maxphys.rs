//! `small-maxphys`: the kernel cuts I/O into pieces of less than 1 MiB.

use plumb_geometry::Bytes;
use plumb_model::facts::SmallMaxphys;
use plumb_model::{Confidence, Facts, Reason, RuleId, Severity};
use plumb_stack::node::keys;

use super::context::Context;
use super::small_resync_io::RESYNC_BYTES_MIN;
use super::{LayoutRule, solaris};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::SmallMaxphys,
    thresholds: || vec![format!("less than {}", Bytes(MAXPHYS_BYTES_MIN))],
    judge,
};

/// The paper asks for at least this; by default it is a quarter, and on x86 less still.
pub const MAXPHYS_BYTES_MIN: u64 = 1 << 20;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    if !solaris::is_solaris(context) {
        return vec![Outcome::NotAsked];
    }
    let Some((Bytes(maxphys), source)) = solaris::setting(context, keys::MAXPHYS) else {
        return vec![Outcome::Unknown(Reason::Maxphys)];
    };
    if maxphys >= MAXPHYS_BYTES_MIN {
        return vec![Outcome::Silent];
    }
    let resync = solaris::setting(context, keys::RESYNC_BYTES).map(|(bytes, _)| bytes.0);
    // A chunk that is larger, or a resync in pieces that it cuts, show that large I/O are wanted.
    let chunk = context
        .striped()
        .map(|(_, chunks)| chunks.chunk.0)
        .max()
        .filter(|chunk| *chunk > maxphys);
    let is_wanted = chunk.is_some() || resync.is_some_and(|bytes| bytes >= RESYNC_BYTES_MIN);
    let severity = if is_wanted {
        Severity::Warning
    } else {
        Severity::Note
    };
    let facts = Facts::SmallMaxphys(SmallMaxphys {
        maxphys_bytes: Bytes(maxphys),
        wanted_bytes: Bytes(MAXPHYS_BYTES_MIN),
        chunk_bytes: chunk.map(Bytes),
        resync_bytes: resync.filter(|resync| *resync > maxphys).map(Bytes),
        source,
    });
    let finding = context.host_finding(facts, severity, Confidence::Medium);
    vec![Outcome::found(finding)]
}
