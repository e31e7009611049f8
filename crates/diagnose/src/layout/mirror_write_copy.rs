//! `mirror-write-copy`: each write to a mirror is copied in memory first, for applications that change a buffer while
//! it is being written.

use plumb_model::facts::MirrorWriteCopy;
use plumb_model::{Confidence, Facts, Reason, RuleId, Severity};
use plumb_stack::node::keys;

use super::context::Context;
use super::{LayoutRule, solaris};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: RuleId::MirrorWriteCopy,
    thresholds: || vec![format!("{COPY_FLAG:#x}")],
    judge,
};

/// The bit of `md_mirror_wow_flg` that asks for copies.
pub const COPY_FLAG: u64 = 0x20;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let mirrors = solaris::mirrors(context).count();
    if mirrors == 0 {
        return vec![Outcome::NotAsked];
    }
    let Some((flag, source)) = solaris::setting(context, keys::MIRROR_WOW) else {
        return vec![if solaris::is_system_file_read(context) {
            Outcome::Silent
        } else {
            Outcome::Unknown(Reason::SystemFile)
        }];
    };
    if flag & COPY_FLAG == 0 {
        return vec![Outcome::Silent];
    }
    let facts = Facts::MirrorWriteCopy(MirrorWriteCopy {
        flags: flag,
        mirrors: mirrors as u64,
        source,
    });
    let finding = context.host_finding(facts, Severity::Warning, Confidence::Medium);
    vec![Outcome::found(finding)]
}
