//! The result of a replay, as text and JSON. The page is in `html/replayed.rs`.

use plumb_load::figures::{Measurement, Times};
use plumb_load::replay::ReplayCounts;
use plumb_load::result::replay::{Comparison, Replay, ReplayRatio, Replayed};

use crate::bench::{rates, times, times_line};
use crate::format::{count, ns};
use crate::json::Document;
use crate::run::Run;
use crate::text::{Page, Paper};

/// The document of `plumb replay`.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(run: &Run, replay: &Replay<'_>) -> Result<String, serde_json::Error> {
    plumb_quoting::json::pretty(&Document {
        schema: "plumb.replay/2",
        run,
        inputs: vec![replay.trace],
        verdict: None,
        findings: Vec::new(),
        result: replay,
    })
}

/// The same for a person.
#[must_use]
pub fn text(replay: &Replay<'_>, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    if let Some(comparison) = &replay.comparison {
        compared_lines(&mut page, comparison);
        page.gap();
    }
    page.wrapped("", "  ", head(replay));
    if let Some(replayed) = &replay.replayed {
        replayed_lines(&mut page, replayed);
    }
    if let Some(comparison) = &replay.comparison {
        for (name, side) in [
            ("today", &comparison.today),
            ("planned", &comparison.planned),
        ] {
            page.gap();
            page.wrapped("", "  ", format!("{name}: {}", counted(&side.counts)));
            measured_lines(&mut page, &side.measured, side.lateness.as_ref());
        }
        page.gap();
        page.wrapped(
            "  ",
            "    ",
            format!("by {}; ended {}", comparison.engine, comparison.ended),
        );
    }
    for note in &replay.notes {
        page.wrapped("  note: ", "    ", note);
    }
    if let Some(comparison) = &replay.comparison {
        page.gap();
        page.wrapped("", "  ", verdict_words(comparison));
    }
    page.text
}

/// The I/O, their target and their way.
pub(crate) fn head(replay: &Replay<'_>) -> String {
    let Replay {
        trace,
        device,
        target,
        how,
        ..
    } = replay;
    format!("{} ({device}) on {target}: {how}", trace.path)
}

fn replayed_lines(page: &mut Page, replayed: &Replayed) {
    page.wrapped("  ", "    ", counted(&replayed.counts));
    let recorded = replayed.trace_seconds.map_or(String::new(), |seconds| {
        format!("; recorded in {}", ns((seconds * 1e9) as u64))
    });
    page.wrapped(
        "  ",
        "    ",
        format!("{}{recorded}", rates(&replayed.measured, replayed.seconds)),
    );
    measured_lines(page, &replayed.measured, replayed.lateness.as_ref());
    if let Some(flushes) = &replayed.flushes {
        times_line(page, "flushes", flushes);
    }
    let Replayed {
        engine,
        ended,
        in_flight_max,
        ..
    } = replayed;
    let in_flight = count(u64::from(*in_flight_max));
    page.wrapped(
        "  ",
        "    ",
        format!("by {engine}, at most {in_flight} in flight; ended {ended}"),
    );
}

fn measured_lines(page: &mut Page, measured: &Measurement, lateness: Option<&Times>) {
    times(page, measured);
    if let Some(lateness) = lateness {
        times_line(page, "behind schedule", lateness);
    }
    for failures in &measured.failures {
        let words = format!(
            "{} {}s failed: {}",
            count(failures.ios),
            failures.op,
            failures.kind
        );
        page.wrapped("  ", "    ", &words);
    }
    if measured.never_back > 0 {
        page.wrapped(
            "  ",
            "    ",
            format!("{} I/O never came back", count(measured.never_back)),
        );
    }
}

/// The I/O that were sent and those that were not, in words.
fn counted(counts: &ReplayCounts) -> String {
    let some = |parts: &[(u64, &str, &str)]| {
        let parts = parts.iter().filter(|(ios, ..)| *ios > 0);
        let parts: Vec<String> = parts
            .map(|(ios, one, many)| {
                format!("{} {}", count(*ios), if *ios == 1 { one } else { many })
            })
            .collect();
        parts.join(", ")
    };
    let sent = some(&[
        (counts.reads, "read", "reads"),
        (counts.writes_as_reads, "write as a read", "writes as reads"),
        (counts.writes, "write", "writes"),
        (counts.flushes, "flush", "flushes"),
    ]);
    let left_out = some(&[
        (counts.flushes_left_out, "flush", "flushes"),
        (counts.discards, "discard", "discards"),
        (
            counts.zeroes,
            "request to write zeroes",
            "requests to write zeroes",
        ),
        (counts.others, "other", "others"),
    ]);
    let mut words = format!("sent {}", if sent.is_empty() { "nothing" } else { &sent });
    if !left_out.is_empty() {
        words += &format!("; not sent {left_out}");
    }
    if counts.folded > 0 {
        words += &format!("; {} folded to fit the target", count(counts.folded));
    }
    words
}

/// A share that somebody chose: `3 %`, `2.5 %`.
fn whole_percent(share: f64) -> String {
    format!("{} %", (share * 1000.0).round() / 10.0)
}

fn compared_lines(page: &mut Page, comparison: &Comparison) {
    page.wrapped("", "  ", verdict_words(comparison));
    if let Some(words) = gain_words(comparison) {
        page.wrapped("  ", "  ", &words);
    }
}

/// The verdict of a comparison, and the reason for an inconclusive one.
pub(crate) fn verdict_words(comparison: &Comparison) -> String {
    let verdict = match comparison.verdict {
        "no difference" => format!("NO DIFFERENCE above {}", whole_percent(comparison.margin)),
        verdict => verdict.to_uppercase(),
    };
    let why = comparison
        .why
        .as_ref()
        .map_or(String::new(), |why| format!(": {why}"));
    format!("{verdict}{why}")
}

/// The gain with its interval; `None` with too few pairs.
pub(crate) fn gain_words(comparison: &Comparison) -> Option<String> {
    let ReplayRatio {
        estimate,
        low,
        high,
        level,
        rounds,
    } = comparison.gain?;
    Some(format!(
        "the planned places are {estimate:.2} times as fast as today's; {} interval {low:.3} to {high:.3}, of {} rounds; \
        time an I/O {} today, {} planned",
        whole_percent(level),
        count(rounds),
        ns(comparison.today_ns as u64),
        ns(comparison.planned_ns as u64),
    ))
}
