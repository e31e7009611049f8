//! The report of `plumb replay` as one page: I/O that were sent and those that were not, their times and their delay;
//! or the gain of a plan, pair by pair.

use plumb_load::figures::{Measurement, Times};
use plumb_load::replay::{CourseFigures, ReplayCounts};
use plumb_load::result::replay::{Comparison, Replay, Replayed};

use super::bench::{spread, times_row, times_rows, times_table};
use super::markup::Markup;
use super::over_time::{self, ChartLine};
use super::page::{document, table};
use super::replayed_pairs as pairs;
use crate::bench::rates;
use crate::format::{count, ns};
use crate::replay::{gain_words, head, verdict_words};

/// The page.
#[must_use]
pub fn replayed(replay: &Replay<'_>, version: &str) -> String {
    let path = &replay.trace.path;
    document(&format!("plumb replay: {path} on {}", replay.target), |m| {
        m.leaf("h1", &[], &format!("{path} on {}", replay.target));
        if let Some(comparison) = &replay.comparison {
            compared(m, replay, comparison);
        }
        if let Some(replayed) = &replay.replayed {
            sent(m, replay, replayed);
        }
        if !replay.notes.is_empty() {
            m.leaf("h3", &[], "Notes");
            m.el("ul", &[], |m| {
                replay.notes.iter().for_each(|note| m.leaf("li", &[], note))
            });
        }
        m.leaf("p", &[("class", "dim")], &format!("plumb {version}"));
    })
}

fn sent(m: &mut Markup, replay: &Replay<'_>, replayed: &Replayed) {
    m.leaf(
        "p",
        &[("class", "verdict")],
        &rates(&replayed.measured, replayed.seconds),
    );
    m.leaf("p", &[], &head(replay));
    let recorded = replayed.trace_seconds.map_or(String::new(), |seconds| {
        format!("recorded in {}; ", ns((seconds * 1e9) as u64))
    });
    let in_flight = count(u64::from(replayed.in_flight_max));
    let Replayed { engine, ended, .. } = replayed;
    m.leaf(
        "p",
        &[("class", "dim")],
        &format!("{recorded}sent by {engine}, at most {in_flight} in flight; ended {ended}"),
    );
    became(m, &[("I/O", &replayed.counts)]);
    let mut rows: Vec<Vec<String>> = times_rows(&replay.target, &replayed.measured).collect();
    let flushes = replayed.flushes.as_ref();
    rows.extend(
        flushes.map(|times| times_row(&replay.target, "flushes", "issue to complete", times)),
    );
    rows.extend(behind(&replay.target, replayed.lateness.as_ref()));
    times_table(m, "<target", &rows);
    failures(m, &[("", &replayed.measured)]);
    over_the_course(m, &replayed.course);
    spread(m, &replayed.measured);
}

fn behind(name: &str, lateness: Option<&Times>) -> Option<Vec<String>> {
    lateness.map(|times| times_row(name, "all", "behind schedule", times))
}

/// Mean times and their lateness share an axis; the longest would dwarf both.
fn over_the_course(m: &mut Markup, course: &CourseFigures) {
    let width = course.window_seconds;
    let stretches: Vec<(f64, f64)> = (0..course.windows.len())
        .map(|at| (at as f64 * width, (at + 1) as f64 * width))
        .collect();
    let ms = |ns: f64| ns / 1e6;
    let mean: Vec<Option<f64>> = course
        .windows
        .iter()
        .map(|window| window.response_mean_ns.map(ms))
        .collect();
    let late: Vec<Option<f64>> = course
        .windows
        .iter()
        .map(|window| window.late_mean_ns.map(ms))
        .collect();
    let longest = course
        .windows
        .iter()
        .map(|window| window.response_max_ns.map(|ns| ms(ns as f64)));
    let is_timed = late.iter().any(Option::is_some);
    let (from, by) = if is_timed {
        ("due", "due")
    } else {
        ("issue", "issued")
    };
    let mut lines = Vec::new();
    if is_timed {
        lines.push(ChartLine {
            class: "h1",
            name: "of that behind schedule: due to issue",
            values: late,
        });
    }
    lines.push(ChartLine {
        class: "lr",
        name: "due to complete",
        values: mean,
    });
    let how = format!(
        "from {from} to complete, of the I/O that were {by} in each step of {}",
        ns((width * 1e9) as u64)
    );
    over_time::draw(m, ("Mean time over time", &how, "ms"), &stretches, &lines);
    let longest = ChartLine {
        class: "lr",
        name: "",
        values: longest.collect(),
    };
    over_time::draw(
        m,
        ("Longest time over time", &how, "ms"),
        &stretches,
        &[longest],
    );
}

fn compared(m: &mut Markup, replay: &Replay<'_>, comparison: &Comparison) {
    m.leaf("p", &[("class", "verdict")], &verdict_words(comparison));
    if let Some(words) = gain_words(comparison) {
        m.leaf("p", &[], &words);
    }
    m.leaf("p", &[], &head(replay));
    let Comparison {
        engine,
        ended,
        seconds,
        slice_events,
        ..
    } = comparison;
    let slices = format!("slices of {} events", count(*slice_events));
    m.leaf(
        "p",
        &[("class", "dim")],
        &format!("{slices}, {seconds:.1} s in all, sent by {engine}; ended {ended}"),
    );
    pairs::draw(m, comparison);
    let sides = [
        ("today", &comparison.today),
        ("planned", &comparison.planned),
    ];
    became(m, &sides.map(|(name, side)| (name, &side.counts)));
    let mut rows = Vec::new();
    for (name, side) in sides {
        rows.extend(times_rows(name, &side.measured));
        rows.extend(behind(name, side.lateness.as_ref()));
    }
    times_table(m, "<places", &rows);
    failures(m, &sides.map(|(name, side)| (name, &side.measured)));
}

/// The counts of the trace's events: a column for each side.
fn became(m: &mut Markup, sides: &[(&str, &ReplayCounts)]) {
    type CountRow = (fn(&ReplayCounts) -> u64, &'static str, &'static str);
    const ROWS: [CountRow; 10] = [
        (|counts| counts.reads, "reads", "sent"),
        (|counts| counts.writes_as_reads, "writes", "sent as reads"),
        (|counts| counts.writes, "writes", "sent"),
        (|counts| counts.flushes, "flushes", "sent"),
        (
            |counts| counts.flushes_left_out,
            "flushes",
            "not sent: nothing was written",
        ),
        (|counts| counts.discards, "discards", "not sent: never are"),
        (
            |counts| counts.zeroes,
            "requests to write zeroes",
            "not sent: never are",
        ),
        (
            |counts| counts.others,
            "others, and I/O without a length",
            "not sent",
        ),
        (
            |counts| counts.folded,
            "of those sent",
            "folded to fit the target: moved by whole moduli",
        ),
        (
            |counts| counts.unforced,
            "of those sent",
            "without the flush or the way to the medium that they asked for",
        ),
    ];
    let is_shown = |(of, ..): &&CountRow| sides.iter().any(|(_, counts)| of(counts) > 0);
    let rows = ROWS.iter().filter(is_shown).map(|(of, what, words)| {
        let counts = sides.iter().map(|(_, counts)| count(of(counts)));
        std::iter::once((*what).to_owned())
            .chain(counts)
            .chain([(*words).to_owned()])
            .collect()
    });
    let names = sides.iter().map(|(name, _)| *name);
    let columns: Vec<&str> = std::iter::once("<in the trace")
        .chain(names)
        .chain(["<outcome"])
        .collect();
    table(m, "", &columns, &rows.collect::<Vec<Vec<String>>>());
}

fn failures(m: &mut Markup, sides: &[(&str, &Measurement)]) {
    let mut rows = Vec::new();
    for (name, measured) in sides {
        for failures in &measured.failures {
            let what = format!("{}s failed: {}", failures.op, failures.kind);
            rows.push(vec![
                format!("{name} {what}").trim().to_owned(),
                count(failures.ios),
            ]);
        }
        if measured.never_back > 0 {
            rows.push(vec![
                format!("{name} never came back").trim().to_owned(),
                count(measured.never_back),
            ]);
        }
    }
    table(m, "", &["<failures", "I/O"], &rows);
}
