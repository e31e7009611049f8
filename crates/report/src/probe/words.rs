//! The result of a probe, in words that text and page share.

use plumb_geometry::{Bytes, plural};
use plumb_load::probe::cache::Reach;
use plumb_load::probe::conclusion::Conclusion;
use plumb_load::probe::counters::Others;
use plumb_load::probe::drift::PaceChange;
use plumb_load::probe::{Candidate, Searched};
use plumb_load::result::probe::{Cache, Hint, PenaltyRatio, ProbeReport};
use plumb_model::facts::Direction;

use crate::format::{bytes, count, ns, percent};

const fn verdict_word(verdict: Conclusion) -> &'static str {
    match verdict {
        Conclusion::Misaligned => "misaligned",
        Conclusion::Aligned => "aligned",
        Conclusion::NoPenalty => "no penalty",
        Conclusion::Inconclusive(_) => "inconclusive",
    }
}

/// Several I/O of a direction, as a sentence begins.
pub(crate) const fn first_word(op: Direction) -> &'static str {
    match op {
        Direction::Read => "Reads",
        Direction::Write => "Writes",
    }
}

/// The direction that a verdict leaves open.
pub(crate) const fn open_words(op: Direction) -> &'static str {
    match op {
        Direction::Read => "writes: unknown, a probe of reads says nothing of them",
        Direction::Write => "reads: unknown, a probe of writes says nothing of them",
    }
}

/// The verdict in a sentence.
pub(crate) fn headline(probed: &ProbeReport<'_>) -> String {
    let target = probed.target;
    let (word, ios) = (verdict_word(probed.verdict), probed.op.all());
    match (probed.verdict, probed.grid) {
        (Conclusion::Misaligned | Conclusion::Aligned, Some(grid)) => {
            format!(
                "{word} for {ios}: the grid of {target} is {}",
                grid_words(grid)
            )
        }
        (Conclusion::NoPenalty, _) => {
            let margin = percent(probed.margin_percent / 100.0);
            let most = probed
                .searched
                .iter()
                .take_while(|one| one.flat_within.is_some());
            let most = most
                .map(|one| one.granularity_bytes)
                .max()
                .map_or(String::new(), |granularity| {
                    format!(" on grids of up to {}", bytes(granularity))
                });
            format!("{word} for {ios}: no start of {target} costs {margin} more{most}")
        }
        _ => format!("{word} for {ios} of {target}"),
    }
}

/// The answer without its word: `reads: the grid of sda is 4 KiB at offset 3 KiB`.
pub(crate) fn sentence(probed: &ProbeReport<'_>) -> String {
    let (target, ios) = (probed.target, probed.op.all());
    let head = headline(probed);
    match (head.split_once(": "), &probed.reason) {
        (Some((_, answer)), _) if !matches!(probed.verdict, Conclusion::Inconclusive(_)) => {
            format!("{ios}: {answer}")
        }
        (_, Some(reason)) => format!("{ios} of {target}: {}", reason.trim_end_matches('.')),
        (_, None) => format!("{ios} of {target} do not tell the grid"),
    }
}

/// `4 KiB at offset 3 KiB (6 sectors)`.
pub(crate) fn grid_words(grid: Candidate) -> String {
    let offset = match Bytes(grid.offset_bytes).to_sectors_exact() {
        _ if grid.offset_bytes == 0 => "0".to_owned(),
        Some(sectors) => format!("{} ({sectors})", bytes(grid.offset_bytes)),
        None => bytes(grid.offset_bytes),
    };
    format!("{} at offset {offset}", bytes(grid.granularity_bytes))
}

/// I/O of others below this share are not worth a line.
const OTHERS: f64 = 0.05;

/// Names and words of the figures.
pub(crate) fn figures(probed: &ProbeReport<'_>) -> Vec<(&'static str, String)> {
    let ratio_words = |ratio: PenaltyRatio| {
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
    let one = probed.op.one();
    let mut figures = Vec::new();
    if let Some(penalty) = probed.penalty {
        let (words, len) = (ratio_words(penalty), bytes(penalty.len_bytes));
        figures.push((
            "penalty",
            format!("a {one} of {len} off the grid takes {words}"),
        ));
    }
    if let Some(crossing) = probed.crossing {
        let (words, len) = (ratio_words(crossing), bytes(crossing.len_bytes));
        figures.push((
            "crossing",
            format!("a {one} of {len} across a boundary {words}"),
        ));
    }
    let ProbeReport {
        seconds,
        bytes: moved,
        means,
        ..
    } = *probed;
    let made = plural(probed.measured(), one);
    figures.push((
        "time",
        format!("{seconds:.1} s, {made}, {}, {means}", bytes(moved)),
    ));
    figures.extend(probed.cache.map(|cache| ("cache", cache_words(cache))));
    figures.extend(probed.drift.map(|drift| ("drift", drift_words(drift))));
    let much = probed.others.filter(|others| others.share >= OTHERS);
    figures.extend(much.map(|others| ("others", others_words(others))));
    figures
}

fn cache_words(cache: Cache) -> String {
    let Some(found) = cache.found else {
        return match cache.stated_bytes {
            None | Some(0) => "none, as stated".to_owned(),
            Some(stated) => format!("{}, as stated", bytes(stated)),
        };
    };
    let ago = |reach: Reach| format!("{} reads ago ({})", count(reach.reads), bytes(reach.bytes));
    let [first, again] = [found.first_ns, found.again_ns].map(ns);
    let lost = found.lost.map(ago);
    match (found.held.map(ago), lost) {
        (Some(held), lost) => {
            let but = lost.map_or(String::new(), |lost| format!(", but not {lost}"));
            format!(
                "data that was read {held} is read again in {again}{but}; a first read takes {first}"
            )
        }
        (None, Some(_))
            if found.first_ns.abs_diff(found.again_ns) > found.first_ns.min(found.again_ns) =>
        {
            format!(
                "not decided: the pace went up and down; medians are {again} again and {first} first"
            )
        }
        (None, Some(lost)) => {
            format!(
                "none seen: data that was read {lost} is read again in {again}, and a first read takes {first}"
            )
        }
        (None, None) => "unknown: too little was read".to_owned(),
    }
}

fn drift_words(drift: PaceChange) -> String {
    let factor = drift.factor();
    let times = if factor < 1.0 { 1.0 / factor } else { factor };
    let word = if factor < 1.0 { "faster" } else { "slower" };
    format!(
        "from {:.1} s on short I/O were {times:.2} times {word}: {} instead of {}; only I/O close together in time are \
         compared",
        drift.at.as_secs_f64(),
        ns(drift.after_ns as u64),
        ns(drift.before_ns as u64)
    )
}

fn others_words(others: Others) -> String {
    format!(
        "made {} of the I/O of the device: {} reads of {}, {} writes of {}",
        percent(others.share),
        count(others.reads),
        bytes(others.read_bytes),
        count(others.writes),
        bytes(others.written_bytes)
    )
}

/// The source of a statement, and the reason of a doubt.
pub(crate) fn source_words(hint: &Hint) -> String {
    let doubt = hint
        .doubt
        .as_ref()
        .map_or(String::new(), |why| format!("; doubted: {why}"));
    format!("{}{doubt}", hint.source)
}

/// The measured granularities; if a grid was found, only those that were shown to be flat.
pub(crate) fn shown<'a>(probed: &'a ProbeReport<'_>) -> impl Iterator<Item = &'a Searched> {
    probed
        .searched
        .iter()
        .filter(|one| probed.grid.is_none() || one.flat_within.is_some())
}

/// `reads of 1 KiB: no start costs 1.2 % more than another`.
pub(crate) fn searched_words(one: &Searched, op: Direction) -> String {
    let found = match one.flat_within {
        Some(share) => format!("no start costs {} more than another", percent(share)),
        None => "undecided".to_owned(),
    };
    format!("{} of {}: {found}", op.all(), bytes(one.len_bytes))
}
