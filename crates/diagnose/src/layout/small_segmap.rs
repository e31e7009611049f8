//! `small-segmap`: the part of memory through which UFS files are read and written is the default small one.

use plumb_geometry::plural;
use plumb_stack::node::keys;

use super::context::Context;
use super::{LayoutRule, solaris, words};
use crate::finding::{Confidence, Finding, Severity};
use crate::rules::Outcome;

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "small-segmap",
    title: "the window of UFS on its cache is small",
    needs: "`/etc/system`, mount options",
    decides: false,
    thresholds: || vec![format!("at most {SEGMAP_PERCENT_DEFAULT} percent")],
    plan: None,
    judge,
};

/// The default of `segmap_percent`, in percent of memory: what nobody has raised.
pub const SEGMAP_PERCENT_DEFAULT: u64 = 12;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let cached = solaris::ufs(context)
        .filter(|(_, node)| solaris::option(node, "forcedirectio") == Some(false))
        .count();
    if cached == 0 {
        return vec![Outcome::NotAsked];
    }
    let Some((percent, source)) = solaris::setting(context, keys::SEGMAP_PERCENT) else {
        let why = format!("segmap_percent is not known: {SEGMAP_PERCENT_DEFAULT} by default");
        return vec![Outcome::Unknown(why)];
    };
    if percent > SEGMAP_PERCENT_DEFAULT {
        return vec![Outcome::Silent];
    }
    let finding = Finding::new(
        RULE.id,
        Severity::Note,
        &context.host_target(),
        Confidence::Low,
        format!("segmap_percent is {percent}, with {} in the file cache", plural(cached as u64, "UFS file system")),
        words::number("segmap_percent", percent, "percent", source),
    )
    .with_evidence(words::number("cached_file_systems", cached as u64, "file systems", "mount options"))
    .explained("with much memory and heavy use of UFS a larger share serves better; on a small host it takes memory away")
    .explained("set segmap_percent in /etc/system, which takes a boot; direct I/O does without it");
    vec![Outcome::Found(finding)]
}
