//! The result of a replay, as text and JSON. The page is in `html/replayed.rs`.

use plumb_load::figures::{Measurement, Times};
use plumb_load::replay::{CourseFigures, ReplayCounts, SlicePair};
use plumb_trace::SourceInfo;
use serde::Serialize;

use crate::bench::{rates, times, times_line};
use crate::format::{count, ns};
use crate::json::Document;
use crate::run::Run;
use crate::text::{Page, Paper};

/// A trace that was sent to a target.
#[derive(Debug, Serialize)]
pub struct Replay<'a> {
    /// The facts about the trace.
    #[serde(skip)]
    pub trace: &'a SourceInfo,
    /// Its device that was sent.
    pub device: String,
    /// The target.
    pub target: String,
    /// How fast and in which order, in words.
    pub how: String,
    /// The result; `None` if it was compared.
    pub replayed: Option<Replayed>,
    /// The result of a comparison.
    pub comparison: Option<Comparison>,
    /// Sentences that a reader must know.
    pub notes: Vec<String>,
}

/// The result of a replay.
#[derive(Debug, Serialize)]
pub struct Replayed {
    /// The counts of the events.
    pub counts: ReplayCounts,
    /// From the first issue of the trace to the last; `None` without times.
    pub trace_seconds: Option<f64>,
    /// From the first due time to the last completion.
    pub seconds: f64,
    /// The measurements.
    pub measured: Measurement,
    /// Flushes, issue to complete.
    pub flushes: Option<Times>,
    /// Due to issue; `None` where nothing was due at a time.
    pub lateness: Option<Times>,
    /// Reads and writes over time.
    pub course: CourseFigures,
    /// Most I/O in flight at once.
    pub in_flight_max: u32,
    /// How I/O were made, in words.
    pub engine: String,
    /// Why it ended, in words.
    pub ended: String,
}

/// The result of a comparison.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// `better`, `worse`, `no difference` or `inconclusive`.
    pub verdict: &'static str,
    /// Why it is inconclusive.
    pub why: Option<String>,
    /// Changes of up to this share are none.
    pub margin: f64,
    /// How many times as fast the planned places are.
    pub gain: Option<ReplayRatio>,
    /// Time an I/O at today's places: the mean over the pairs, 0 without any.
    pub today_ns: f64,
    /// At the planned ones.
    pub planned_ns: f64,
    /// How many times as fast the second of a pair is.
    pub second: Option<ReplayRatio>,
    /// Events of a slice.
    pub slice_events: u64,
    /// Today's places.
    pub today: ReplaySide,
    /// The planned ones.
    pub planned: ReplaySide,
    /// In the order in which they were made.
    pub pairs: Vec<SlicePair>,
    /// Time of it all.
    pub seconds: f64,
    /// How I/O were made, in words.
    pub engine: String,
    /// Why it ended, in words.
    pub ended: String,
}

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReplayRatio {
    /// The estimate.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often such an interval holds the true ratio.
    pub level: f64,
    /// Rounds of two pairs behind it.
    pub rounds: u64,
}

/// One side of a comparison, all slices together. Rates are those while I/O were in flight, one at a time.
#[derive(Debug, Serialize)]
pub struct ReplaySide {
    /// The counts of the events.
    pub counts: ReplayCounts,
    /// The measurements of the I/O that count.
    pub measured: Measurement,
    /// Due to issue; `None` where nothing was due at a time.
    pub lateness: Option<Times>,
}

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
    let some = |parts: &[(u64, &str)]| {
        let parts = parts.iter().filter(|(ios, _)| *ios > 0);
        let parts: Vec<String> = parts
            .map(|(ios, words)| format!("{} {words}", count(*ios)))
            .collect();
        parts.join(", ")
    };
    let sent = some(&[
        (counts.reads, "reads"),
        (counts.writes_as_reads, "writes as reads"),
        (counts.writes, "writes"),
        (counts.flushes, "flushes"),
    ]);
    let left_out = some(&[
        (counts.flushes_left_out, "flushes"),
        (counts.discards, "discards"),
        (counts.zeroes, "requests to write zeroes"),
        (counts.others, "others"),
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
