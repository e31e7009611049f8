//! `mirror-write-copy`: each write to a mirror is copied in memory first, for applications that change a buffer while
//! it is being written.

use plumb_geometry::plural;
use plumb_stack::node::keys;

use super::context::Context;
use super::{LayoutRule, solaris, words};
use crate::finding::{Confidence, Finding, Severity};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "mirror-write-copy",
    title: "writes to mirrors are copied first",
    needs: "`/etc/system`",
    decides: false,
    thresholds: || vec![format!("{COPY_FLAG:#x}")],
    plan: None,
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
            Outcome::Unknown("/etc/system is not known: md_mirror_wow_flg may be set".to_owned())
        }];
    };
    if flag & COPY_FLAG == 0 {
        return vec![Outcome::Silent];
    }
    let finding = Finding::new(
        RULE.id,
        Severity::Warning,
        &context.host_target(),
        Confidence::Medium,
        format!("md_mirror_wow_flg is {flag:#x}: writes to {} are copied before they are written", plural(mirrors as u64, "mirror")),
        words::number("md_mirror_wow_flg", flag, "flags", source),
    )
    .with_evidence(words::number("mirrors", mirrors as u64, "devices", "layout"))
    .explained("it slows down writing much, and helps only applications that change a buffer while it is being written")
    .explained("Oracle does not; where none does, take the line out of /etc/system, which takes a boot");
    vec![Outcome::Found(finding)]
}
