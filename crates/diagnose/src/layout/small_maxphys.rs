//! `small-maxphys`: the kernel cuts I/O into pieces of less than 1 MiB.

use plumb_geometry::Bytes;
use plumb_stack::node::keys;

use super::context::Context;
use super::small_resync_io::RESYNC_BYTES_MIN;
use super::{LayoutRule, solaris, words};
use crate::finding::{Confidence, Finding, Severity};
use crate::rules::{Outcome, PlanKind};

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "small-maxphys",
    title: "the kernel cuts large I/O",
    needs: "`/etc/system`",
    decides: false,
    thresholds: || vec![format!("less than {}", Bytes(MAXPHYS_BYTES_MIN))],
    plan: Some(PlanKind::Resync),
    judge,
};

/// The paper asks for at least this; by default it is a quarter, and on x86 less still.
pub const MAXPHYS_BYTES_MIN: u64 = 1 << 20;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    if !solaris::is_solaris(context) {
        return vec![Outcome::NotAsked];
    }
    let Some((maxphys, source)) = solaris::setting(context, keys::MAXPHYS) else {
        return vec![Outcome::Unknown(
            "maxphys is not known: 256 KiB by default, or less".to_owned(),
        )];
    };
    if maxphys >= MAXPHYS_BYTES_MIN {
        return vec![Outcome::Silent];
    }
    let resync = solaris::setting(context, keys::RESYNC_BYTES).map(|(bytes, _)| bytes);
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
    let mut finding = Finding::new(
        RULE.id,
        severity,
        &context.host_target(),
        Confidence::Medium,
        format!("maxphys is {}: larger I/O are cut", Bytes(maxphys)),
        words::bytes("maxphys_bytes", Bytes(maxphys), source),
    );
    if let Some(chunk) = chunk {
        finding = finding
            .with_evidence(words::bytes("largest_chunk_bytes", Bytes(chunk), "layout"))
            .explained(format!(
                "a chunk of {} cannot be moved in one I/O",
                Bytes(chunk)
            ));
    }
    if let Some(resync) = resync.filter(|resync| *resync > maxphys) {
        finding = finding.explained(format!(
            "resyncs in pieces of {} are cut as well",
            Bytes(resync)
        ));
    }
    vec![Outcome::Found(finding.explained(format!(
        "set maxphys to {} or more in /etc/system, which takes a boot; drivers of disks may have a limit of their own",
        Bytes(MAXPHYS_BYTES_MIN)
    )))]
}
