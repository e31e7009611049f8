//! `small-resync-io`: mirrors are brought up to date in small pieces, and a resync takes hours longer than it need.

use plumb_geometry::{Bytes, plural};
use plumb_stack::node::keys;

use super::context::Context;
use super::{LayoutRule, solaris, words};
use crate::finding::{Confidence, Finding, Severity};
use crate::rules::{Outcome, PlanKind};

/// The rule.
pub const RULE: LayoutRule = LayoutRule {
    id: "small-resync-io",
    title: "mirrors are resynced in small pieces",
    needs: "`/etc/system`",
    decides: false,
    thresholds: || vec![format!("less than {}", Bytes(RESYNC_BYTES_MIN))],
    plan: Some(PlanKind::Resync),
    judge,
};

/// `metasync -r 2048`, in blocks of 512 bytes: the largest that it takes, and what the paper advises.
pub const RESYNC_BYTES_MIN: u64 = 1 << 20;

fn judge(context: &Context<'_>) -> Vec<Outcome> {
    let mirrors = solaris::mirrors(context).count();
    if mirrors == 0 {
        return vec![Outcome::NotAsked];
    }
    let Some((bytes, source)) = solaris::setting(context, keys::RESYNC_BYTES) else {
        let why =
            "the I/O size of resyncs is not known: by default 32 KiB, or 512 KiB on later systems"
                .to_owned();
        return vec![Outcome::Unknown(why)];
    };
    if bytes >= RESYNC_BYTES_MIN {
        return vec![Outcome::Silent];
    }
    let wanted = Bytes(RESYNC_BYTES_MIN);
    let mut finding = Finding::new(
        RULE.id,
        Severity::Warning,
        &context.host_target(),
        Confidence::Medium,
        format!(
            "resyncs {} in pieces of {}",
            plural(mirrors as u64, "mirror"),
            Bytes(bytes)
        ),
        words::bytes("resync_bytes", Bytes(bytes), source),
    )
    .with_evidence(words::number(
        "mirrors",
        mirrors as u64,
        "devices",
        "layout",
    ))
    .explained(format!(
        "the time of a resync hangs on the size of its I/O: {wanted} is 2,048 blocks of 512 bytes"
    ));
    if let Some((maxphys, _)) =
        solaris::setting(context, keys::MAXPHYS).filter(|(maxphys, _)| *maxphys < wanted.0)
    {
        finding = finding.explained(format!(
            "maxphys is {}: it has to be {wanted} as well",
            Bytes(maxphys)
        ));
    }
    vec![Outcome::Found(finding)]
}
