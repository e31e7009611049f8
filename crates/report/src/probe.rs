//! What a probe came to, as text and JSON.

use plumb_diagnose::Finding;
use plumb_geometry::Bytes;
use serde::Serialize;

use crate::format::{bytes, count, ns, percent};
use crate::json::Document;
use crate::text::{Color, Page, finding_lines, tame};

/// A probe that has ended.
#[derive(Debug, Serialize)]
pub struct Probed<'a> {
    /// The target, as it was named.
    pub target: &'a str,
    /// Its length.
    pub size_bytes: u64,
    /// What it comes to.
    pub verdict: Verdict,
    /// What was measured: a verdict on reads is none on writes.
    pub op: &'static str,
    /// Why it cannot be told, where that is so.
    pub reason: Option<String>,
    /// Commands that help then.
    pub commands: &'a [String],
    /// The grid, in the address space of the target.
    pub grid: Option<Grid>,
    /// Time of reads off the grid, by that of reads on it.
    pub penalty: Option<Ratio>,
    /// Time of the shortest reads across a boundary, by that of others.
    pub crossing: Option<Ratio>,
    /// A difference in percent below which a penalty does not matter.
    pub margin_percent: f64,
    /// Reads from each start over the granularity.
    pub sweep: &'a [Bar],
    /// Granularities that were looked for.
    pub searched: &'a [Searched],
    /// What the stack and the user state, and what the measurement says of it.
    pub hints: &'a [Hint],
    /// Logical block, of which starts and lengths are multiples.
    pub block_bytes: u64,
    /// Reads in flight.
    pub depth: u32,
    /// How they were made.
    pub means: &'a str,
    /// Reads that were made.
    pub reads: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From the beginning to the end.
    pub seconds: f64,
    /// Repeats the order of the reads.
    pub seed: u64,
    /// Sentences that a reader must know.
    pub notes: &'a [String],
}

/// What it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The grid lies at an offset.
    Misaligned,
    /// The grid lies at 0.
    Aligned,
    /// No start costs more than the margin.
    NoPenalty,
    /// It cannot be told.
    Inconclusive,
}

impl Verdict {
    /// The word used in output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Misaligned => "misaligned",
            Verdict::Aligned => "aligned",
            Verdict::NoPenalty => "no penalty",
            Verdict::Inconclusive => "inconclusive",
        }
    }
}

/// A grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Grid {
    /// Bytes from one boundary to the next.
    pub granularity_bytes: u64,
    /// Of the first boundary.
    pub offset_bytes: u64,
}

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The estimate.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often such an interval holds the true ratio.
    pub level: f64,
    /// Pairs of slices that it stands on.
    pub pairs: u64,
    /// Length of the reads.
    pub len_bytes: u64,
}

/// What a read costs at a start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// The start, modulo the granularity.
    pub offset_bytes: u64,
    /// Time of a read, with the others in flight.
    pub ns: f64,
}

/// A granularity that was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Searched {
    /// Bytes.
    pub granularity_bytes: u64,
    /// Length of the reads.
    pub len_bytes: u64,
    /// No start of them cost more than this share; `None` where that was not shown.
    pub flat_within: Option<f64>,
}

/// What is stated, and what of it was seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hint {
    /// What it is: `physical block`.
    pub what: String,
    /// The layer that states it.
    pub layer: String,
    /// Who said so.
    pub source: String,
    /// The grid in the address space of the target.
    #[serde(flatten)]
    pub grid: Grid,
    /// What the measurement says of it.
    pub outcome: HintOutcome,
    /// In words.
    pub why: String,
}

/// What a measurement says of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HintOutcome {
    /// It is what was seen.
    Confirmed,
    /// Something else was seen.
    Refuted,
    /// Reads do not tell.
    Open,
}

impl HintOutcome {
    const fn word(self) -> &'static str {
        match self {
            HintOutcome::Confirmed => "confirmed",
            HintOutcome::Refuted => "refuted",
            HintOutcome::Open => "open",
        }
    }
}

/// The document of `plumb probe`.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(version: &str, probed: &Probed<'_>, findings: &[Finding]) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&Document {
        schema: "plumb.probe/1",
        plumb: version,
        inputs: Vec::<()>::new(),
        findings,
        result: probed,
    })
}

/// The same for a person.
#[must_use]
pub fn text(probed: &Probed<'_>, findings: &[Finding], color: Color) -> String {
    let mut page = Page { text: String::new(), color };
    let head = headline(probed);
    page.wrapped("", "  ", &painted(&page, probed.verdict, &head));
    if let Some(reason) = &probed.reason {
        page.wrapped("  ", "  ", reason);
    }
    probed.commands.iter().for_each(|command| page.line(format!("    {command}")));
    for finding in findings {
        page.gap();
        finding_lines(&mut page, finding);
    }
    page.gap();
    for (name, words) in figures(probed) {
        page.wrapped(&format!("  {name:<9} "), &" ".repeat(12), &words);
    }
    bars(&mut page, probed);
    hints(&mut page, probed);
    searched(&mut page, probed);
    page.gap();
    page.wrapped("  ", "  ", WRITES);
    for note in probed.notes {
        page.wrapped("  note: ", "    ", note);
    }
    page.text
}

/// What a verdict on reads leaves open.
pub(crate) const WRITES: &str = "writes: unknown, a probe of reads says nothing of them";

fn painted(page: &Page, verdict: Verdict, head: &str) -> String {
    let word = verdict.word();
    let code = match verdict {
        Verdict::Misaligned => "33",
        Verdict::Aligned | Verdict::NoPenalty => "32",
        Verdict::Inconclusive => "36",
    };
    head.strip_prefix(word).map_or_else(|| head.to_owned(), |rest| page.painted(code, word) + rest)
}

/// The verdict in a sentence.
pub(crate) fn headline(probed: &Probed<'_>) -> String {
    let target = tame(probed.target);
    let word = probed.verdict.word();
    match (probed.verdict, probed.grid) {
        (Verdict::Misaligned | Verdict::Aligned, Some(grid)) => {
            format!("{word} for reads: the grid of {target} is {}", grid_words(grid))
        }
        (Verdict::NoPenalty, _) => {
            let margin = percent(probed.margin_percent / 100.0);
            let most = probed.searched.iter().take_while(|one| one.flat_within.is_some());
            let most = most
                .map(|one| one.granularity_bytes)
                .max()
                .map_or(String::new(), |granularity| format!(" on grids of up to {}", bytes(granularity)));
            format!("{word} for reads: no start of {target} costs {margin} more{most}")
        }
        _ => format!("{word} for reads of {target}"),
    }
}

/// `4 KiB at offset 3 KiB (6 sectors)`.
pub(crate) fn grid_words(grid: Grid) -> String {
    let offset = match Bytes(grid.offset_bytes).to_sectors_exact() {
        _ if grid.offset_bytes == 0 => "0".to_owned(),
        Some(sectors) => format!("{} ({sectors})", bytes(grid.offset_bytes)),
        None => bytes(grid.offset_bytes),
    };
    format!("{} at offset {offset}", bytes(grid.granularity_bytes))
}

/// Names and words of what was measured.
pub(crate) fn figures(probed: &Probed<'_>) -> Vec<(&'static str, String)> {
    let ratio_words = |ratio: Ratio| {
        format!(
            "{:.2} times the time ({:.0} % interval {:.3} to {:.3}, {} pairs of slices, {} in flight)",
            ratio.ratio,
            (ratio.level * 100.0).floor(),
            ratio.low,
            ratio.high,
            count(ratio.pairs),
            probed.depth
        )
    };
    let mut figures = Vec::new();
    if let Some(penalty) = probed.penalty {
        let words = ratio_words(penalty);
        figures
            .push(("penalty", format!("a read of {} off the grid takes {words}", bytes(penalty.len_bytes))));
    }
    if let Some(crossing) = probed.crossing {
        let words = ratio_words(crossing);
        figures
            .push(("crossing", format!("a read of {} across a boundary {words}", bytes(crossing.len_bytes))));
    }
    let Probed { seconds, reads, bytes: moved, .. } = *probed;
    let means = probed.means;
    figures.push(("time", format!("{seconds:.1} s, {} reads, {}, {means}", count(reads), bytes(moved))));
    figures
}

/// Columns of the longest bar.
const BAR: usize = 40;

fn bars(page: &mut Page, probed: &Probed<'_>) {
    let most = probed.sweep.iter().map(|bar| bar.ns).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let len = probed.penalty.map_or(0, |penalty| penalty.len_bytes);
    page.heading(&format!("Reads of {} by where they start, time of each", bytes(len)));
    for bar in probed.sweep {
        let full = "█".repeat(((bar.ns / most) * BAR as f64).round().max(1.0) as usize);
        let here = probed.grid.filter(|grid| grid.offset_bytes == bar.offset_bytes);
        let mark = here.map_or("", |_| "  on the grid");
        page.line(format!("  {:>9}  {full} {}{mark}", bytes(bar.offset_bytes), ns(bar.ns as u64)));
    }
}

fn hints(page: &mut Page, probed: &Probed<'_>) {
    if probed.hints.is_empty() {
        return;
    }
    page.heading("What is stated");
    for hint in probed.hints {
        let Hint { what, layer, source, why, .. } = hint;
        let words = format!("{what} of {layer}, {} ({source}): {why}", grid_words(hint.grid));
        page.wrapped(&format!("  {:<10} ", hint.outcome.word()), &" ".repeat(13), &words);
    }
}

fn searched(page: &mut Page, probed: &Probed<'_>) {
    let mut shown =
        probed.searched.iter().filter(|one| probed.grid.is_none() || one.flat_within.is_some()).peekable();
    if shown.peek().is_none() || probed.reads == 0 {
        return;
    }
    page.heading("What was looked for");
    for one in shown {
        page.told(12, &bytes(one.granularity_bytes), &searched_words(one));
    }
}

/// `reads of 1 KiB: no start costs 1.2 % more than another`.
pub(crate) fn searched_words(one: &Searched) -> String {
    let found = match one.flat_within {
        Some(share) => format!("no start costs {} more than another", percent(share)),
        None => "not shown to be without a boundary".to_owned(),
    };
    format!("reads of {}: {found}", bytes(one.len_bytes))
}
