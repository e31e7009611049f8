//! I/O through the target of a finding, in words.

use plumb_geometry::{Bounds, group_digits, plural};
use plumb_model::{Facts, Finding, GridOf, Seen};
use plumb_profile::latency_fit::LatencyByFit;

use super::phrase::{part_of, place, rate, unit};
use crate::format::{ns, percent, signed_ns};

const MIB: f64 = 1_048_576.0;

/// The observed I/O; empty if nothing was watched.
pub(super) fn sentences(finding: &Finding) -> Vec<String> {
    let Some(seen) = &finding.seen else {
        return Vec::new();
    };
    let grid = match &finding.facts {
        Facts::MisalignedPartition(facts) => Some(&facts.grid),
        _ => None,
    };
    let (through, during) = (through(seen), during(seen));
    if seen.ios() == 0 {
        return vec![format!("No I/O passed through {through}{during}.")];
    }
    let mut sentences = vec![format!(
        "I/O through {through}{during}: {} and {}, {}{}{}.",
        plural(seen.reads, "read"),
        plural(seen.writes, "write"),
        moved(seen.moved_bytes),
        off(seen, grid),
        took(seen)
    )];
    if let Some(fit) = &seen.fit {
        sentences.extend(fit.moved.as_ref().map(|moved| {
            let rest = part_of(moved.misaligned, moved.ios);
            let not_alone = if moved.misaligned.high < fit.misaligned.low {
                ""
            } else {
                ": the start is not the only cause"
            };
            format!(
                "With a start {} later, {rest} of them would still start off it{not_alone} (exact for these I/O).",
                place(moved.by_bytes)
            )
        }));
        sentences.extend(fit.latency.as_ref().map(latency));
    }
    sentences.extend(senders(seen));
    sentences
}

/// The I/O that show a misaligned start, in one sentence; nothing for other findings, and if nothing passed through.
pub(crate) fn misaligned_through(finding: &Finding) -> Option<String> {
    let seen = finding.seen.as_ref()?;
    let (Facts::MisalignedPartition(_), Some(fit)) = (&finding.facts, &seen.fit) else {
        return None;
    };
    let sent = match seen.senders.first() {
        Some(first) => format!("; {} sent most", first.comm),
        None => String::new(),
    };
    (fit.ios > 0).then(|| {
        format!(
            "{} I/O through {}{} start off it{sent}.",
            part_of(fit.misaligned, fit.ios),
            through(seen),
            during(seen)
        )
    })
}

/// That a move of the start alone would leave nine of ten misaligned I/O as they are, if that was counted.
pub(crate) fn move_does_not_help(finding: &Finding) -> Option<String> {
    let seen = finding.seen.as_ref()?;
    let (Facts::MisalignedPartition(_), Some(fit)) = (&finding.facts, &seen.fit) else {
        return None;
    };
    let moved = fit.moved.as_ref()?;
    let helps_few = fit.misaligned.low > 0
        && moved.misaligned.low.saturating_mul(10) >= fit.misaligned.high.saturating_mul(9);
    helps_few.then(|| {
        format!(
            "A later start alone does not help these I/O: {} of them would still start off the grid (exact). Look at the block \
             size of the file system and at the offsets of the application; -v shows the commands for the start.",
            part_of(moved.misaligned, moved.ios)
        )
    })
}

fn through(seen: &Seen) -> String {
    if seen.is_below {
        format!("{}, which carries it,", seen.on)
    } else {
        seen.on.clone()
    }
}

fn during(seen: &Seen) -> String {
    seen.seconds
        .map_or_else(String::new, |seconds| format!(" in {seconds:.1} s"))
}

fn off(seen: &Seen, grid: Option<&GridOf>) -> String {
    match (&seen.fit, grid) {
        (Some(fit), Some(grid)) => format!(
            "; {} start off {}",
            part_of(fit.misaligned, fit.ios),
            unit(grid)
        ),
        _ => String::new(),
    }
}

fn took(seen: &Seen) -> String {
    seen.mean_ns.map_or_else(String::new, |mean_ns| {
        let mean = ns(mean_ns.round() as u64);
        format!("; {mean} each on average, from issue to completion")
    })
}

/// `2.4 MiB`.
fn moved(bytes: Bounds<u64>) -> String {
    match bytes.known() {
        Some(bytes) => size(bytes),
        None => format!("{} to {}", size(bytes.low), size(bytes.high)),
    }
}

fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    let (size, unit) = if bytes < MIB {
        (bytes / 1024.0, "KiB")
    } else {
        (bytes / MIB, "MiB")
    };
    format!("{} {unit}", rate(size))
}

fn senders(seen: &Seen) -> Option<String> {
    if seen.senders.is_empty() {
        return None;
    }
    let named: Vec<String> = seen
        .senders
        .iter()
        .map(|sender| format!("{} {}", sender.comm, group_digits(sender.ios)))
        .collect();
    let more = match seen.more_senders {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("Sent by {}{more}.", named.join(", ")))
}

/// The latency of I/O off the grid beside that of I/O on it.
#[must_use]
pub fn latency(latency: &LatencyByFit) -> String {
    let verdict = match latency.share_at_most() {
        Some(share) if latency.shows_no_cost() && share < 0.0 => "No cost shows here.".to_owned(),
        Some(share) if latency.shows_no_cost() => {
            format!("No cost shows here: at most {} longer.", percent(share))
        }
        _ => "It is a difference, not a measured cost.".to_owned(),
    };
    let doubt = match latency.shows_no_cost() {
        false => "",
        true if latency.shows_no_cost_of_writes() => " The two may differ in place and sender too.",
        true => " Too few writes were compared: they may cost.",
    };
    match latency {
        LatencyByFit::Difference {
            difference_ns,
            low_ns,
            high_ns,
            fitting_mean_ns,
            compared,
            unfitting,
            ..
        } => format!(
            "Unaligned I/O took {} {} than aligned I/O of the same kind, which took {} on average (95 % interval {} to {}; {} of \
             {} unaligned I/O compared). {verdict}{doubt}",
            ns(difference_ns.abs().round() as u64),
            if *difference_ns < 0.0 {
                "less"
            } else {
                "longer"
            },
            ns(fitting_mean_ns.abs().round() as u64),
            signed_ns(*low_ns),
            signed_ns(*high_ns),
            group_digits(*compared),
            group_digits(*unfitting),
        ),
        LatencyByFit::NotComparable { why } => {
            format!("Latency of aligned and unaligned I/O cannot be compared: {why}.")
        }
    }
}
