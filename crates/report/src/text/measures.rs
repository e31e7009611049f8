//! The measures of one device: totals, sizes, order, latency, processes.

use plumb_diagnose::analysis::{Analysis, OpSummary, Quantiles};
use plumb_geometry::plural;
use plumb_profile::Profile;
use plumb_profile::imported::{ForeignHistogram, Measured};

use super::page::{FigureColumn, figure_columns};
use super::{Page, chart, length};
use crate::format::{bytes, count, ns, percent, rate, signed_ns};
use crate::words::single_io;

/// The totals, in a few lines; `span` has the time.
pub(super) fn totals(page: &mut Page, analysis: &Analysis, span: &str) {
    for op in analysis.ops.iter().filter(|op| op.ios > 0) {
        let failed = if op.failed > 0 {
            format!(", {} failed", count(op.failed))
        } else {
            String::new()
        };
        page.line(format!(
            "  {:>14} {:<12} {:>10}{failed}",
            count(op.ios),
            op_words(op.op, op.ios),
            bytes(op.bytes)
        ));
    }
    failures(page, analysis);
    if let (Some(span_ns), Some(per_second)) = (analysis.span_ns, analysis.ios_per_second) {
        page.numbered(16, &ns(span_ns), &format!("{span}: {}", rate(per_second)));
    }
    if let Some(size) = analysis.size_bytes {
        page.numbered(16, &bytes(size), "is the size of the device");
    }
    if analysis.lengths_rounded {
        page.wrapped(
            "  ",
            "  ",
            "Lengths that are no power of two were rounded up: there were too many different ones.",
        );
    }
    if analysis.modulus_lowered {
        let modulus = bytes(analysis.modulus_bytes);
        page.wrapped(
            "  ",
            "  ",
            format!("Starts are known modulo {modulus} only: there were too many different ones."),
        );
    }
}

/// I/O that failed, of operations whose I/O are not counted.
pub(super) fn failures(page: &mut Page, analysis: &Analysis) {
    let uncounted = |op: &&OpSummary| op.ios == 0 && op.failed > 0;
    for op in analysis.ops.iter().filter(uncounted) {
        page.line(format!(
            "  {:>14} {} failed",
            count(op.failed),
            op_words(op.op, op.failed)
        ));
    }
}

fn op_words(op: &str, number: u64) -> String {
    match op {
        "flush" if number != 1 => "flushes".to_owned(),
        "write-zeroes" | "other" => op.to_owned(),
        word if number == 1 => word.to_owned(),
        word => format!("{word}s"),
    }
}

/// Lengths by power of two, and the commonest exact ones.
pub(super) fn sizes(page: &mut Page, analysis: &Analysis) {
    for op in analysis
        .ops
        .iter()
        .filter(|op| matches!(op.op, "read" | "write") && op.ios > 0)
    {
        page.gap();
        page.line(format!("  Length of {}, up to", op_words(op.op, op.ios)));
        let rows: Vec<(String, u64)> = op
            .sizes
            .iter()
            .map(|size| (bytes(size.len_max_bytes), size.ios))
            .collect();
        chart::bars(page, &rows);
    }
    if !analysis.lengths.is_empty() {
        page.gap();
        let all: u64 = analysis
            .ops
            .iter()
            .filter(|op| matches!(op.op, "read" | "write"))
            .map(|op| op.ios)
            .sum();
        let listed: Vec<String> = analysis
            .lengths
            .iter()
            .take(6)
            .map(|one| {
                format!(
                    "{} {}",
                    length(one.len_bytes, one.is_rounded),
                    percent(one.ios as f64 / all.max(1) as f64)
                )
            })
            .collect();
        page.wrapped("  Commonest lengths: ", "    ", listed.join(", "));
    }
}

/// Sequential against random.
pub(super) fn order(page: &mut Page, analysis: &Analysis, profile: &Profile) {
    let Some(all) = analysis.random_by_size.first().filter(|row| row.ios > 0) else {
        return;
    };
    page.gap();
    if let Some(reason) = analysis.streams_unknown(profile) {
        let why = crate::words::reason(&reason);
        page.wrapped("  Sequential and random: unknown: ", "    ", &why);
        return;
    }
    page.line("  Sequential and random, by stream");
    let share = percent(analysis.continuing as f64 / analysis.ios.max(1) as f64);
    page.numbered(
        16,
        &count(analysis.continuing),
        &format!("I/O continue a stream ({share})"),
    );
    let runs = plural(analysis.runs, "run");
    page.numbered(
        16,
        &count(analysis.run_ios),
        &format!("I/O in {runs} of 3 or more"),
    );
    page.line("    requests of at least        I/O     random");
    for row in &analysis.random_by_size {
        let least = if row.len_bytes_min == 0 {
            "any size".to_owned()
        } else {
            bytes(row.len_bytes_min)
        };
        let share = if row.ios > 0 {
            percent(row.heads as f64 / row.ios as f64)
        } else {
            "-".to_owned()
        };
        page.line(format!(
            "    {least:>20} {:>10} {share:>10}",
            count(row.ios)
        ));
    }
    debug_assert!(all.len_bytes_min == 0, "the first threshold is none");
}

/// Latency by operation and by fit, and the number in flight.
pub(super) fn latency(page: &mut Page, analysis: &Analysis) {
    page.gap();
    if analysis.timed == 0 {
        page.line("  Latency: unknown, the source has none");
        return;
    }
    if analysis.pairing_unsound {
        let words = format!(
            "not known: {}, but completions are missing, and those found may belong to other I/O",
            timed_words(analysis)
        );
        page.wrapped("  Latency: ", "    ", &words);
        return;
    }
    if analysis.ops.iter().all(|op| op.device.is_none()) {
        let words = format!(
            "known as sums only ({}); the distribution is unknown",
            timed_words(analysis)
        );
        page.wrapped("  Latency: ", "    ", &words);
        by_fit(page, analysis);
        return;
    }
    let words = format!(
        "Latency, issue to complete, at most ({})",
        timed_words(analysis)
    );
    page.wrapped("  ", "    ", &words);
    let titles = ["median", "90 %", "99 %", "99.9 %", "largest"];
    page.figures("", &QUANTILES, &titles.map(str::to_owned));
    for op in &analysis.ops {
        for (word, quantiles) in [("", &op.device), (" queue", &op.queue)] {
            if let Some(quantiles) = quantiles {
                let name = format!("    {}{word}", op.op);
                page.figures(&name, &QUANTILES, &quantile_cells(quantiles));
            }
        }
    }
    if let Some(flight) = &analysis.in_flight {
        let words = format!(
            "in flight: {:.2} I/O on average, {} at most",
            flight.depth_mean,
            count(flight.depth_max)
        );
        page.wrapped("    ", "      ", &words);
        if let (Some(mean), Some(max)) = (flight.threads_mean, flight.threads_max) {
            let words = format!(
                "threads with I/O in flight: {mean:.2} on average while any, {} at most",
                count(max)
            );
            page.wrapped("    ", "      ", &words);
        }
    }
    by_fit(page, analysis);
}

/// `500 of 1,000 I/O (50.0 %) timed`, or `1,000 of 1,000 I/O timed`. More I/O complete in an interval than are issued in it
/// if some were in flight at its begin.
fn timed_words(analysis: &Analysis) -> String {
    let (timed, ios) = (analysis.timed, analysis.ios);
    if let Some(earlier) = timed.checked_sub(ios).filter(|&earlier| earlier > 0) {
        let at_least = if ios > 0 { "at least " } else { "" };
        return format!(
            "{} I/O timed, {at_least}{} of them issued earlier",
            count(timed),
            count(earlier)
        );
    }
    let share = if timed == ios {
        String::new()
    } else {
        format!(" ({})", percent(timed as f64 / ios as f64))
    };
    format!("{} of {} I/O{share} timed", count(timed), count(ios))
}

/// The columns of latencies: median, 90, 99 and 99.9 %, and the largest.
const QUANTILES: [FigureColumn; 5] = figure_columns(11, [0, 3, 1, 4, 2]);

fn quantile_cells(quantiles: &Quantiles) -> [String; 5] {
    [
        quantiles.p50_ns,
        quantiles.p90_ns,
        quantiles.p99_ns,
        quantiles.p999_ns,
        quantiles.max_ns,
    ]
    .map(ns)
}

fn by_fit(page: &mut Page, analysis: &Analysis) {
    use plumb_profile::latency_fit::LatencyByFit;
    for fit in analysis.device().into_iter().flat_map(|place| &place.grids) {
        let words = match &fit.latency {
            Some(LatencyByFit::Difference {
                difference_ns,
                low_ns,
                high_ns,
                fitting_mean_ns,
                compared,
                unfitting,
                strata,
                ..
            }) => {
                format!(
                    "off the grid {} against {} on it (95 % interval {} to {}; {} of {} unfitting I/O \
                     compared in {strata} groups)",
                    signed_ns(*difference_ns),
                    ns(fitting_mean_ns.abs().round() as u64),
                    signed_ns(*low_ns),
                    signed_ns(*high_ns),
                    count(*compared),
                    count(*unfitting),
                )
            }
            Some(LatencyByFit::NotComparable { why }) => format!("not comparable: {why}"),
            None => continue,
        };
        page.wrapped(
            format!("    by fit on {}: ", fit.grid.granularity()),
            "      ",
            &words,
        );
    }
}

/// Slow I/O that are shown one by one.
const SLOWEST: usize = 3;

/// The slowest I/O, and those that failed first.
pub(super) fn single_ios(page: &mut Page, analysis: &Analysis) {
    let Some(answers) = &analysis.answers else {
        return;
    };
    for (heading, ios) in [
        ("  Slowest I/O", &answers.slowest),
        ("  First I/O that failed", &answers.failed),
    ] {
        if ios.is_empty() {
            continue;
        }
        page.gap();
        page.line(heading);
        for io in ios.iter().take(SLOWEST) {
            page.wrapped("    ", "      ", single_io(io));
        }
    }
}

/// Processes with the most I/O.
pub(super) fn processes(page: &mut Page, analysis: &Analysis) {
    if analysis.processes.is_empty() {
        return;
    }
    page.gap();
    let bound = if analysis.processes_shortened {
        " (names shortened: at most)"
    } else {
        ""
    };
    page.line(format!("  Processes with the most I/O{bound}"));
    for process in analysis.processes.iter().take(6) {
        page.line(format!(
            "    {:<20} {:>12} I/O {:>10}",
            process.comm,
            count(process.ios),
            bytes(process.bytes)
        ));
    }
}

/// Whether the source hands over a histogram of latencies ready-made.
pub(super) fn is_latency_imported(profile: &Profile) -> bool {
    profile
        .imported
        .histograms
        .iter()
        .any(|histogram| histogram.measured == Measured::DeviceNs)
}

/// Histograms that came ready-made.
pub(super) fn imported(page: &mut Page, profile: &Profile) {
    for totals in &profile.imported.totals {
        page.gap();
        page.numbered(14, &count(totals.ios), "I/O issued");
        let words = format!(
            "I/O misaligned, mean offset {}",
            super::mean_offset(totals.mean_offset_bytes)
        );
        page.numbered(14, &count(totals.misaligned_ios), &words);
        let words = format!("I/O no multiple of {} long", bytes(totals.len_unit_bytes));
        page.numbered(14, &count(totals.odd_length_ios), &words);
    }
    for histogram in &profile.imported.histograms {
        page.gap();
        let op = histogram.op.map_or("all operations", plumb_trace::Op::word);
        page.line(format!(
            "  {} ({op}), as the source counted",
            measured_words(histogram.measured)
        ));
        let rows: Vec<(String, u64)> = histogram
            .buckets
            .iter()
            .filter(|(_, _, ios)| *ios > 0)
            .map(|(low, high, ios)| (bucket(histogram, *low, *high), *ios))
            .collect();
        chart::bars(page, &rows);
    }
}

fn measured_words(measured: Measured) -> &'static str {
    match measured {
        Measured::LenBytes => "Length",
        Measured::SeekBytes => "Distance to the next I/O, bytes",
        Measured::DeviceNs => "Latency, issue to complete",
        Measured::InterarrivalNs => "Time between issues",
        Measured::Depth => "In flight at an issue",
        Measured::ResidueBytes => "Bytes past the grid",
    }
}

/// A single length in bytes, where a larger unit would round it.
fn exact(measured: Measured, value: i64) -> Option<String> {
    let is_bytes = matches!(measured, Measured::LenBytes | Measured::ResidueBytes);
    let is_rounded = value >= 1024 && value % 1024 != 0;
    (is_bytes && is_rounded).then(|| format!("{} B", count(value.unsigned_abs())))
}

fn bucket(histogram: &ForeignHistogram, low: Option<i64>, high: Option<i64>) -> String {
    let show = |value: i64| match histogram.measured {
        Measured::LenBytes | Measured::ResidueBytes => bytes(value.unsigned_abs()),
        Measured::DeviceNs | Measured::InterarrivalNs => ns(value.unsigned_abs()),
        Measured::SeekBytes | Measured::Depth => {
            format!(
                "{}{}",
                if value < 0 { "-" } else { "" },
                count(value.unsigned_abs())
            )
        }
    };
    match (low, high) {
        (Some(low), Some(high)) if low == high => {
            exact(histogram.measured, low).unwrap_or_else(|| show(low))
        }
        (_, Some(high)) => format!("to {}", show(high)),
        (Some(low), None) => format!("from {}", show(low)),
        (None, None) => "any".to_owned(),
    }
}
