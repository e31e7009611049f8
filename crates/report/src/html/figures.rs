//! The figures of a section before all pictures: amount, rate, size, depth, and missing parts.

use plumb_diagnose::Analysis;
use plumb_geometry::plural;
use plumb_profile::Profile;
use plumb_profile::profile::TimeBase;

use super::clock;
use super::markup::Markup;
use super::page::share_of;
use crate::format;

/// Draws them.
pub fn draw(m: &mut Markup, profile: &Profile, analysis: &Analysis) {
    m.raw("\n");
    m.class("dl", "figures", |m| {
        amounts(m, analysis);
        times(m, profile, analysis);
        shape(m, profile, analysis);
    });
    missing(m, profile);
}

/// A name, its figure, and a note on it.
fn figure(m: &mut Markup, name: &str, value: &str, more: &str) {
    m.el("div", &[], |m| {
        m.leaf("dt", &[], name);
        m.el("dd", &[], |m| {
            m.text(value);
            if !more.is_empty() {
                m.leaf("span", &[], more);
            }
        });
    });
}

fn amounts(m: &mut Markup, analysis: &Analysis) {
    let ops: Vec<String> = analysis
        .ops
        .iter()
        .filter(|op| op.ios > 0)
        .map(|op| format!("{} {}", format::count(op.ios), op.op))
        .collect();
    figure(m, "I/O", &format::count(analysis.ios), &ops.join(", "));
    let moved = analysis
        .ops
        .iter()
        .filter(|op| matches!(op.op, "read" | "write"));
    let moved: Vec<String> = moved
        .map(|op| format!("{} {}", format::bytes(op.bytes), op.op))
        .collect();
    figure(
        m,
        "Bytes",
        &format::bytes(analysis.bytes),
        &moved.join(", "),
    );
    if let Some(mean) = analysis.len_bytes_mean() {
        figure(m, "Mean length", &format::bytes(mean.0), "reads and writes");
    }
    let failed: u64 = analysis.ops.iter().map(|op| op.failed).sum();
    if failed > 0 {
        figure(
            m,
            "Failed",
            &format::count(failed),
            "completed with an error",
        );
    }
}

fn times(m: &mut Markup, profile: &Profile, analysis: &Analysis) {
    let pieces = plural(analysis.pieces, "recording");
    match analysis.span_ns {
        Some(span) => figure(
            m,
            "Time observed",
            &format::ns(span),
            &format!("first to last I/O, {pieces}"),
        ),
        None => figure(m, "Time observed", "not known", &pieces),
    }
    if let Some(rate) = analysis.ios_per_second {
        figure(m, "I/O rate", &format::rate(rate), "mean over that time");
    }
    if let (TimeBase::Unix, Some(first)) = (profile.time_base, profile.first_ns) {
        figure(
            m,
            "First I/O",
            &clock::to_the_second(i128::from(first)),
            "UTC",
        );
    }
    let timed = match analysis.timed {
        0 => "none".to_owned(),
        timed => share_of(timed, analysis.ios),
    };
    let base = match (analysis.timed, profile.completion_order) {
        (0, _) => "no latency is known",
        (_, true) => "of the I/O; their times are those of completion",
        (_, false) => "of the I/O have a latency",
    };
    figure(m, "Timed", &timed, base);
}

fn shape(m: &mut Markup, profile: &Profile, analysis: &Analysis) {
    if let Some(reason) = analysis.streams_unknown(profile) {
        let why = crate::words::reason(&reason);
        figure(m, "Continue a stream", "not known", &why);
    } else if analysis.ios > 0 {
        let heads = analysis.device().map_or(0, |device| device.inference.heads);
        let runs = plural(analysis.runs, "run");
        let in_runs = format!(
            "{} I/O in {runs}; {} random I/O",
            format::count(analysis.run_ios),
            format::count(heads)
        );
        figure(
            m,
            "Continue a stream",
            &share_of(analysis.continuing, analysis.ios),
            &in_runs,
        );
    }
    match &analysis.in_flight {
        Some(flight) => {
            let threads = flight.threads_mean.zip(flight.threads_max).map_or_else(
                || "threads not known".to_owned(),
                |(mean, most)| {
                    format!(
                        "threads {}, at most {}",
                        format::digits(mean),
                        format::count(most)
                    )
                },
            );
            let most = format!("at most {}; {threads}", format::count(flight.depth_max));
            figure(
                m,
                "In flight, mean",
                &format::digits(flight.depth_mean),
                &most,
            );
        }
        None => figure(m, "In flight", "not known", "takes latencies"),
    }
    match analysis.size_bytes {
        Some(size) => figure(m, "Device size", &format::bytes(size), "as the source says"),
        None => figure(m, "Device size", "not known", "the source does not say"),
    }
    let rounded = if analysis.lengths_rounded {
        "some lengths rounded up"
    } else {
        "lengths exact"
    };
    figure(
        m,
        "Residues kept modulo",
        &format::bytes(analysis.modulus_bytes),
        rounded,
    );
}

/// Parts that are missing in the figures.
fn missing(m: &mut Markup, profile: &Profile) {
    let losses = &profile.losses;
    let lost: Vec<String> = [
        (losses.lost, "lost at the source"),
        (losses.damaged, "damaged lines or records passed over"),
        (losses.unmatched_issues, "issues without a completion"),
        (losses.unmatched_completions, "completions without an issue"),
        (
            losses.late_completions,
            "completions too late to be counted",
        ),
        (losses.out_of_order, "events out of time order"),
        (
            losses.missing_files,
            "files of the recording that were not there",
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, words)| format!("{words}: {}", format::count(count)))
    .collect();
    if !lost.is_empty() {
        m.leaf(
            "p",
            &[],
            &format!(
                "Missing from these figures, counted for all devices of the input: {}.",
                lost.join("; ")
            ),
        );
    }
}
