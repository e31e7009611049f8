//! `failing-io` in words.

use plumb_geometry::group_digits;
use plumb_model::Target;
use plumb_model::facts::{FailedIos, FailingIo, FailingOp};

use super::single_io::single_io;
use super::{Sentences, target};
use crate::format::percent;

/// Failed I/O that are shown one by one.
const SHOWN: usize = 3;

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &FailingIo) -> Sentences {
    let failed: Vec<String> = facts.ops.iter().map(failed).collect();
    let has = |op: FailingOp| facts.ops.iter().any(|ios| ios.op == op);
    let device = target::name(on);
    let first: Vec<String> = facts.first.iter().take(SHOWN).map(single_io).collect();
    Sentences::new(format!("{device} fails I/O: {}.", failed.join(", ")))
        .and((!first.is_empty()).then(|| format!("The first: {}.", first.join("; "))))
        .and(has(FailingOp::Read).then(|| {
            "The application gets an error in place of its data. Make sure that you have a backup before you do anything else."
                .to_owned()
        }))
        .and((has(FailingOp::Write) || has(FailingOp::Flush)).then(|| {
            "Data that an application believes to be written may be lost. The file system may switch to read-only."
                .to_owned()
        }))
        .say(
            "The kernel log names the sector and the reason: `dmesg | grep -iE 'error|timeout'`. Check the device with \
             `smartctl -a` or `nvme smart-log`, then the cable, the path and the array.",
        )
}

fn failed(ios: &FailedIos) -> String {
    let (one, many) = match ios.op {
        FailingOp::Read => ("read", "reads"),
        FailingOp::Write => ("write", "writes"),
        FailingOp::Flush => ("flush", "flushes"),
    };
    let failed = group_digits(ios.failed);
    match (ios.ios, ios.failed) {
        (Some(all), _) => format!(
            "{failed} of {} {many} ({})",
            group_digits(all),
            percent(ios.failed as f64 / all.max(1) as f64)
        ),
        (None, 1) => format!("{failed} {one}"),
        (None, _) => format!("{failed} {many}"),
    }
}
