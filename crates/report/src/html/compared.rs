//! The report of `plumb compare` as one page: verdict, measures with their intervals drawn, sources.

use plumb_diagnose::compare::{Compared, Comparison, Measure};

use super::markup::Markup;
use super::page::{document, figure, table};
use super::svg::{label, num};
use crate::compare::{cells, headline, law, of_intervals, of_side, outcome_word};

/// The page.
#[must_use]
pub fn compared(version: &str, compared: &Compared<'_>) -> String {
    let [before, after] = compared.inputs;
    document(&format!("plumb compare: {before}, {after}"), |m| {
        m.leaf("h1", &[], &format!("{before} and {after}"));
        for comparison in compared.comparisons {
            draw(m, compared, comparison);
        }
        let left_out = compared
            .left_out
            .iter()
            .map(|one| format!("{} {}: {}", one.device, one.side, one.why));
        list(m, "Not compared", left_out);
        list(m, "On the inputs", compared.notes.iter().cloned());
        m.leaf("p", &[("class", "dim")], &format!("plumb {version}"));
    })
}

fn draw(m: &mut Markup, compared: &Compared<'_>, comparison: &Comparison) {
    let verdict = &comparison.verdict;
    m.leaf(
        "h2",
        &[],
        &format!(
            "{}: {}",
            outcome_word(verdict.outcome),
            headline(compared, comparison)
        ),
    );
    list(m, "", verdict.why.iter().cloned());
    let intervals: Vec<&Measure> = comparison
        .measures
        .iter()
        .filter(|measure| bounds(measure).is_some())
        .collect();
    if !intervals.is_empty() {
        let how = "After ÷ before with its interval; the band is the margin within which a change is none.";
        figure(m, "Changes", how, |m| {
            picture(m, &intervals, compared.margin)
        });
    }
    let level = format!("interval, {:.0} of 100", compared.level * 100.0);
    let columns = ["<measure", "before", "after", "change", &level, "n"];
    let rows: Vec<Vec<String>> = comparison
        .measures
        .iter()
        .map(|measure| cells(measure).map(|cell| cell.trim().to_owned()).to_vec())
        .collect();
    table(m, "Side by side", &columns, &rows);
    m.leaf(
        "p",
        &[("class", "dim")],
        &of_intervals(compared, comparison),
    );
    let sides = comparison
        .sides
        .iter()
        .zip(["before", "after"])
        .zip(compared.inputs);
    let sides = sides.map(|((side, word), input)| format!("{word}: {input}: {}", of_side(side)));
    list(
        m,
        "Sources",
        sides
            .chain(law(comparison))
            .chain(comparison.doubts.iter().cloned()),
    );
}

fn list(m: &mut Markup, heading: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return;
    }
    if !heading.is_empty() {
        m.leaf("h3", &[], heading);
    }
    m.el("ul", &[], |m| {
        lines.iter().for_each(|line| m.leaf("li", &[], line))
    });
}

fn bounds(measure: &Measure) -> Option<(f64, f64, f64)> {
    let ratio = measure.ratio?;
    Some((ratio.low?, ratio.value, ratio.high?))
}

const WIDTH: f64 = 720.0;
const NAMES: f64 = 170.0;
const ROW: f64 = 26.0;

/// A line for each measure, over the logarithm of its ratio: half and double are equally far from none.
fn picture(m: &mut Markup, measures: &[&Measure], margin: f64) {
    let all: Vec<(f64, f64, f64)> = measures
        .iter()
        .filter_map(|measure| bounds(measure))
        .collect();
    let logs = all
        .iter()
        .flat_map(|(low, _, high)| [low.ln().abs(), high.ln().abs()]);
    let reach = logs.fold((1.0 + margin).ln() * 2.0, f64::max).min(5.0);
    let middle = NAMES + (WIDTH - NAMES) / 2.0;
    let x = |ratio: f64| {
        middle + ratio.ln().clamp(-reach, reach) / reach * (WIDTH - NAMES) / 2.0 * 0.96
    };
    let height = ROW * (all.len() as f64 + 1.0);
    let view = format!("0 0 {WIDTH} {height}");
    m.el(
        "svg",
        &[
            ("viewBox", &view),
            ("role", "img"),
            ("aria-label", "changes with intervals"),
        ],
        |m| {
            let (left, right) = (x(1.0 / (1.0 + margin)), x(1.0 + margin));
            let band = [num(left), num(right - left), num(height - ROW)];
            m.shape(
                "rect",
                &[
                    ("class", "h0"),
                    ("x", &band[0]),
                    ("y", "0"),
                    ("width", &band[1]),
                    ("height", &band[2]),
                ],
            );
            let middle = num(x(1.0));
            let none = format!("M{middle} 0V{}", num(height - ROW));
            m.shape("path", &[("class", "axis"), ("d", &none)]);
            for (at, (measure, (low, value, high))) in measures.iter().zip(&all).enumerate() {
                let y = num(ROW * (at as f64 + 0.5));
                label(
                    m,
                    "",
                    (0.0, ROW * (at as f64 + 0.5) + 4.0),
                    cells(measure)[0].trim(),
                );
                let line = format!("M{} {y}H{}", num(x(*low)), num(x(*high)));
                m.shape("path", &[("class", "lm"), ("d", &line)]);
                m.shape(
                    "circle",
                    &[
                        ("class", "fr"),
                        ("cx", &num(x(*value))),
                        ("cy", &y),
                        ("r", "4"),
                    ],
                );
            }
            for (at, class) in [((-reach).exp(), ""), (1.0, "mid"), (reach.exp(), "end")] {
                label(m, class, (x(at), height - 8.0), &format!("× {at:.2}"));
            }
        },
    );
}
