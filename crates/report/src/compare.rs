//! The result of a comparison, as text and JSON. The page is in `html/compared.rs`.

use std::collections::BTreeMap;

use plumb_diagnose::compare::{
    CompareOutcome, Compared, Comparison, LeftOut, Measure, MeasureUnit, Ratio, Sampling, Side,
    signed,
};
use plumb_geometry::plural;
use plumb_load::result::bench::Sweep;

use crate::format::{bytes, count, ns, percent, rate};
use crate::json::Document;
use crate::run::Run;
use crate::text::{FigureColumn, Page, Paper};

/// The document of `plumb compare`.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(run: &Run, compared: &Compared<'_>) -> Result<String, serde_json::Error> {
    plumb_quoting::json::pretty(&Document {
        schema: "plumb.compare/2",
        run,
        inputs: compared.inputs.to_vec(),
        verdict: None,
        findings: Vec::new(),
        result: compared,
    })
}

/// The document of a sweep of offsets that one file holds.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn sweep_json(run: &Run, input: &str, sweep: &Sweep) -> Result<String, serde_json::Error> {
    plumb_quoting::json::pretty(&Document {
        schema: "plumb.compare/2",
        run,
        inputs: vec![input],
        verdict: None,
        findings: Vec::new(),
        // In the place of comparisons.
        result: BTreeMap::from([("sweep", sweep)]),
    })
}

/// The same for a person.
#[must_use]
pub fn text(compared: &Compared<'_>, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    if let [first, _, ..] = compared.comparisons {
        verdict_line(&mut page, compared, first);
    }
    for comparison in compared.comparisons {
        page.gap();
        one(&mut page, compared, comparison);
    }
    if !compared.left_out.is_empty() || !compared.notes.is_empty() {
        page.gap();
    }
    for LeftOut { side, device, why } in compared.left_out {
        page.wrapped("  left out: ", "    ", format!("{device} {side}: {why}"));
    }
    for note in compared.notes {
        page.wrapped("  note: ", "    ", note);
    }
    if let [first, ..] = compared.comparisons {
        page.gap();
        verdict_line(&mut page, compared, first);
    }
    page.text
}

/// The worst outcome of all devices, and the number of devices that have it.
fn verdict_line(page: &mut Page, compared: &Compared<'_>, first: &Comparison) {
    let all = compared.comparisons;
    let worst = all.iter().fold(first, |worst, one| {
        match rank(one.verdict.outcome) > rank(worst.verdict.outcome) {
            true => one,
            false => worst,
        }
    });
    let outcome = worst.verdict.outcome;
    let equal = all.iter().filter(|one| one.verdict.outcome == outcome);
    let of = match all.len() {
        1 => String::new(),
        devices => format!("{} of {devices} devices; ", equal.count()),
    };
    let word = page.painted(color_of(outcome), outcome_word(outcome)) + "  ";
    page.wrapped(word, "  ", of + &headline(compared, worst));
}

/// The order of outcomes, the worst last: the exit status follows it.
const fn rank(outcome: CompareOutcome) -> u8 {
    match outcome {
        CompareOutcome::Better => 0,
        CompareOutcome::NoDifference => 1,
        CompareOutcome::NotComparable => 2,
        CompareOutcome::Inconclusive => 3,
        CompareOutcome::Worse => 4,
    }
}

fn one(page: &mut Page, compared: &Compared<'_>, comparison: &Comparison) {
    let word = outcome_word(comparison.verdict.outcome);
    let code = color_of(comparison.verdict.outcome);
    let first = page.painted(code, word) + "  ";
    page.wrapped(first, "  ", headline(compared, comparison));
    for why in &comparison.verdict.why {
        page.wrapped("  - ", "    ", why);
    }
    page.gap();
    table(page, comparison);
    page.wrapped("  ", "  ", of_intervals(compared, comparison));
    page.gap();
    for (side, word) in comparison.sides.iter().zip(["before", "after"]) {
        let input = compared.inputs[usize::from(word == "after")];
        page.wrapped(
            format!("  {word:<7}"),
            "         ",
            format!("{input}: {}", of_side(side)),
        );
    }
    if let Some(sentence) = law(comparison) {
        page.wrapped("  ", "  ", &sentence);
    }
    for doubt in &comparison.doubts {
        page.wrapped("  note: ", "    ", doubt);
    }
}

/// The word of an outcome.
#[must_use]
pub fn outcome_word(outcome: CompareOutcome) -> &'static str {
    match outcome {
        CompareOutcome::Better => "BETTER",
        CompareOutcome::Worse => "WORSE",
        CompareOutcome::NoDifference => "NO DIFFERENCE",
        CompareOutcome::Inconclusive => "INCONCLUSIVE",
        CompareOutcome::NotComparable => "NOT COMPARABLE",
    }
}

fn color_of(outcome: CompareOutcome) -> &'static str {
    match outcome {
        CompareOutcome::Better | CompareOutcome::NoDifference => "32",
        CompareOutcome::Worse => "31",
        CompareOutcome::Inconclusive | CompareOutcome::NotComparable => "33",
    }
}

/// The result, in one sentence after the word.
#[must_use]
pub fn headline(compared: &Compared<'_>, comparison: &Comparison) -> String {
    let verdict = &comparison.verdict;
    let [before, after] = &comparison.sides;
    let device = match before.device == after.device {
        true => before.device.clone(),
        false => format!("{} and then {}", before.device, after.device),
    };
    let latency = verdict
        .latency
        .map(|latency| format!("latency {}", change(&latency)));
    let rate = verdict
        .rate
        .map(|rate| format!("I/O a second {}", change(&rate)));
    let both: Vec<String> = [rate, latency].into_iter().flatten().collect();
    match verdict.outcome {
        CompareOutcome::NotComparable => device,
        CompareOutcome::NoDifference => {
            format!(
                "above {} for {device}: {}",
                percent(compared.margin),
                both.join(", ")
            )
        }
        _ => format!("{device}: {}", both.join(", ")),
    }
}

fn change(ratio: &Ratio) -> String {
    match interval(ratio) {
        Some(interval) => format!("{} ({interval})", signed(ratio.value)),
        None => signed(ratio.value),
    }
}

/// `+21.2 to +34.0 %`.
#[must_use]
pub fn interval(ratio: &Ratio) -> Option<String> {
    let ends = [signed(ratio.low?), signed(ratio.high?)];
    Some(match &ends {
        [low, high] if low.ends_with('%') && high.ends_with('%') => {
            format!("{} to {high}", low.trim_end_matches(" %"))
        }
        [low, high] => format!("{low} to {high}"),
    })
}

/// Columns of the table of measures.
const COLUMNS: [&str; 6] = ["", "before", "after", "change", "interval", "n"];

/// Their places: narrow terminals have no room for intervals and numbers of observations.
const PLACES: [FigureColumn; 5] = [
    FigureColumn { width: 12, rank: 0 },
    FigureColumn { width: 12, rank: 1 },
    FigureColumn { width: 9, rank: 2 },
    FigureColumn { width: 19, rank: 3 },
    FigureColumn { width: 7, rank: 4 },
];

fn table(page: &mut Page, comparison: &Comparison) {
    let mut line = |[name, before, after, change, interval, n]: [&str; 6]| {
        let cells = [
            before,
            after,
            change,
            &format!("{interval:<17}"),
            &format!(" {n:<6}"),
        ];
        let name = format!("  {name:<19}");
        page.row(&name, &PLACES, &cells.map(str::to_owned));
    };
    line(COLUMNS);
    for measure in comparison
        .measures
        .iter()
        .filter(|measure| !is_repeated(measure, &comparison.measures))
    {
        let cells = cells(measure);
        line(std::array::from_fn(|at| cells[at].as_str()));
    }
}

/// Whether a measure of reads stands for all I/O, since there are no writes, or the other way round.
fn is_repeated(measure: &Measure, all: &[Measure]) -> bool {
    const APART: [[&str; 2]; 2] = [
        ["reads_per_second", "writes_per_second"],
        ["read_bytes_per_second", "write_bytes_per_second"],
    ];
    let has = |name: &str| all.iter().any(|other| other.name == name);
    APART
        .iter()
        .any(|both| both.contains(&measure.name) && !both.iter().all(|name| has(name)))
}

/// A measure in words: name, before, after, change, interval, observations.
#[must_use]
pub fn cells(measure: &Measure) -> [String; 6] {
    let value = |value: Option<f64>| {
        value.map_or_else(|| "unknown".to_owned(), |value| shown(value, measure.unit))
    };
    let interval = measure
        .ratio
        .as_ref()
        .and_then(interval)
        .unwrap_or_default();
    let n = if interval.is_empty() {
        String::new()
    } else {
        format!("{}, {}", measure.n[0], measure.n[1])
    };
    [
        name(measure),
        value(measure.before),
        value(measure.after),
        measure
            .ratio
            .map_or_else(String::new, |ratio| signed(ratio.value)),
        interval,
        n,
    ]
}

fn name(measure: &Measure) -> String {
    let words = match measure.name {
        "ios_per_second" => "I/O",
        "reads_per_second" => "  reads",
        "writes_per_second" => "  writes",
        "bytes_per_second" => "bytes",
        "read_bytes_per_second" => "  read",
        "write_bytes_per_second" => "  written",
        "len_bytes_mean" => "mean length",
        "random_share" => "random",
        "latency_mean_ns" => "mean latency",
        "read_p50_ns" => "  p50 of reads",
        "read_p90_ns" => "  p90 of reads",
        "read_p99_ns" => "  p99 of reads",
        "write_p50_ns" => "  p50 of writes",
        "write_p90_ns" => "  p90 of writes",
        "write_p99_ns" => "  p99 of writes",
        "in_flight_mean" => "in flight",
        "misaligned_share" => "off",
        "read_amplification" => "  moved per read",
        "write_amplification" => "  moved per written",
        other => other,
    };
    match (measure.unit, &measure.grid) {
        (MeasureUnit::Share, Some(grid)) => format!("{words} {grid}"),
        _ => words.to_owned(),
    }
}

fn shown(value: f64, unit: MeasureUnit) -> String {
    match unit {
        MeasureUnit::PerSecond => rate(value),
        MeasureUnit::BytesPerSecond => format!("{}/s", bytes(value.round() as u64)),
        MeasureUnit::Ns => ns(value.round() as u64),
        MeasureUnit::Ios => crate::format::digits(value),
        MeasureUnit::Share => percent(value),
        MeasureUnit::Factor => format!("{value:.2}"),
        MeasureUnit::Bytes => bytes(value.round() as u64),
    }
}

/// The description of one side.
#[must_use]
pub fn of_side(side: &Side) -> String {
    let Sampling {
        unit,
        seconds,
        seen,
    } = side.sampling;
    let length = seconds.map_or_else(String::new, |seconds| {
        format!(" of {}", ns((seconds * 1e9) as u64))
    });
    let together = match seen > side.observations {
        true => format!(" taken as {}", count(side.observations)),
        false => String::new(),
    };
    format!(
        "{}, {}, {}{length}{together}",
        side.device,
        side.source,
        plural(seen, unit)
    )
}

/// The meaning of `n`, and the level of the intervals.
#[must_use]
pub fn of_intervals(compared: &Compared<'_>, comparison: &Comparison) -> String {
    let [before, after] = [0, 1].map(|side: usize| comparison.sides[side].sampling.unit);
    let counted = match before == after {
        true => format!("{before}s"),
        false => format!("{before}s before and {after}s after"),
    };
    format!(
        "n counts {counted}; intervals hold the true change in {:.0} of 100 cases",
        compared.level * 100.0
    )
}

/// Whether the sources obey Little's law, if that is known.
#[must_use]
pub fn law(comparison: &Comparison) -> Option<String> {
    let known = comparison.sides.iter().zip(["before", "after"]);
    let known: Vec<_> = known
        .filter_map(|(side, word)| Some((side.littles_law?, word)))
        .collect();
    let holds = known.iter().all(|(law, _)| law.broken == 0);
    let word = if holds {
        "holds"
    } else {
        "does not hold throughout"
    };
    let sides = known.iter().map(|(law, word)| {
        format!(
            "{:.1} I/O in flight {word}, {:.1} by rate times latency",
            law.in_flight, law.expected
        )
    });
    let sides = sides.collect::<Vec<_>>().join("; ");
    (!known.is_empty()).then(|| format!("Little's law {word}: {sides}"))
}
