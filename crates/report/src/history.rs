//! The history of a host as text, JSON and CSV: its devices, the I/O of one over time, its size and its state.

use plumb_geometry::plural;
use plumb_model::result::history::{
    CountRange, FindingChange, FindingMessage, HistoryAnswer, HistoryChanges, HistoryCourse,
    HistoryDevice, HistoryFile, HistoryFinding, HistorySize, HistoryWindow,
};
use plumb_model::{Finding, Reason, Unjudged};
use plumb_quoting::visible;
use serde::Serialize;

use crate::brief;
use crate::exports::cell;
use crate::format::{bytes, count, ns, percent};
use crate::json::{self, Document};
use crate::run::Run;
use crate::text::page::{FigureColumn, Page};
use crate::text::{Paper, finding_lines};
use crate::words;

mod senders;

/// The line of a log about a change of a finding, with the page that explains it.
#[must_use]
pub fn finding_change(change: FindingChange, finding: &Finding) -> String {
    let name = finding.rule().name();
    let severity = finding.severity.word();
    let device = visible(&finding.target.device);
    match change {
        FindingChange::Gone if finding.target.is_layer() || finding.target.is_host() => {
            format!("{name} is gone: the latest survey does not show it on {device}")
        }
        FindingChange::Gone => format!("{name} is gone: the latest I/O on {device} do not show it"),
        FindingChange::Appeared | FindingChange::Worsened => format!(
            "{name} {} ({severity}): {} See: plumb explain {name}",
            change.word(),
            visible(&brief::summary(finding))
        ),
    }
}

/// The document of a notification, in one line with its end.
#[must_use]
pub fn finding_message(message: &FindingMessage<'_>) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: &'static str,
        #[serde(flatten)]
        change: &'a FindingMessage<'a>,
        message: String,
        finding: json::FindingOut<'a>,
    }
    let document = Document {
        schema: "plumb.finding-change/1",
        change: message,
        message: finding_change(message.change, message.finding),
        finding: json::finding(message.finding),
    };
    let mut line = serde_json::to_string(&document).unwrap_or_default();
    line.push('\n');
    line
}

/// A finding with its times and its summary.
#[must_use]
pub fn finding(
    finding: Finding,
    appeared: String,
    changed: String,
    went: Option<String>,
) -> HistoryFinding {
    HistoryFinding {
        appeared,
        changed,
        went,
        summary: brief::summary(&finding),
        finding,
    }
}

/// The document of `plumb history`.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(run: &Run, answer: &HistoryAnswer) -> Result<String, serde_json::Error> {
    plumb_quoting::json::pretty(&Document {
        schema: "plumb.history/1",
        run,
        inputs: Vec::<()>::new(),
        verdict: None,
        findings: match answer {
            HistoryAnswer::Changes(devices) => {
                let all = devices.iter().flat_map(|device| &device.findings);
                all.map(json::finding).collect()
            }
            _ => Vec::new(),
        },
        result: answer,
    })
}

/// The same for a person.
#[must_use]
pub fn text(answer: &HistoryAnswer, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    match answer {
        HistoryAnswer::Devices(devices) => list(&mut page, devices),
        HistoryAnswer::Courses(courses) => courses.iter().for_each(|one| course(&mut page, one)),
        HistoryAnswer::Findings(findings) => intervals(&mut page, findings),
        HistoryAnswer::Senders(lists) => lists.iter().for_each(|one| senders::text(&mut page, one)),
        HistoryAnswer::Changes(devices) => devices.iter().for_each(|one| changes(&mut page, one)),
        HistoryAnswer::Size(size) => sizes(&mut page, size),
        HistoryAnswer::Files(files) => files.iter().for_each(|one| state(&mut page, one)),
    }
    page.text
}

fn list(page: &mut Page, devices: &[HistoryDevice]) {
    if devices.is_empty() {
        page.line("no device has a history yet");
    }
    for one in devices {
        let time = match (&one.from, &one.to) {
            (Some(from), Some(to)) => format!("{from} to {to}"),
            _ => "no window yet".to_owned(),
        };
        page.wrapped(
            format!("{} ({} layer): ", visible(&one.device), one.layer),
            "  ",
            time,
        );
        if one.identity != one.device {
            page.wrapped("  identity ", "    ", visible(&one.identity).into_owned());
        }
        for name in one.names.iter().filter(|name| name.name != one.device) {
            page.wrapped(
                "  was ",
                "    ",
                format!("{} from {} on", visible(&name.name), name.since),
            );
        }
    }
}

/// Columns of a course: I/O/s, bytes/s, misaligned, median, 99 %, largest.
const COLUMNS: [FigureColumn; 6] = [
    FigureColumn { width: 11, rank: 0 },
    FigureColumn { width: 12, rank: 2 },
    FigureColumn { width: 11, rank: 1 },
    FigureColumn { width: 10, rank: 4 },
    FigureColumn { width: 10, rank: 3 },
    FigureColumn { width: 10, rank: 5 },
];

fn course(page: &mut Page, course: &HistoryCourse) {
    let has_counts = course.windows.iter().any(|one| one.averages.is_none());
    if has_counts || course.windows.is_empty() {
        page.heading(&format!(
            "{} ({} layer), windows of {}",
            visible(&course.device),
            course.layer,
            span(course.window_seconds)
        ));
        let words = ["I/O/s", "bytes/s", "off 4 KiB", "median", "99 %", "largest"];
        page.figures("UTC", &COLUMNS, &words.map(str::to_owned));
    }
    let seconds = course.window_seconds.max(1) as f64;
    for window in course.windows.iter().filter(|one| one.averages.is_none()) {
        let placed = window.reads + window.writes;
        let off = window.misaligned_4k.filter(|_| placed > 0);
        let time = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), ns);
        let cells = [
            rate(window.ios as f64 / seconds),
            bytes(((window.read_bytes + window.write_bytes) as f64 / seconds) as u64),
            off.map_or_else(|| "-".to_owned(), |off| percent(off as f64 / placed as f64)),
            time(window.p50_ns),
            time(window.p99_ns),
            time(window.max_ns),
        ];
        page.figures(&begin(window), &COLUMNS, &cells);
    }
    averages(page, course);
    if let Some(open) = &course.open {
        let moved = bytes(open.read_bytes + open.write_bytes);
        let words = match (&open.averages, open.ios) {
            (Some(averages), 0) => format!("{} I/O by means", range(averages.ios, count)),
            _ => format!("{} I/O, {moved}", count(open.ios)),
        };
        let words = words + "; its window is not over";
        page.wrapped(format!("since {}: ", open.from), "  ", words);
    } else if course.windows.is_empty() {
        page.line("no I/O in that time");
    }
}

/// The begin of a window: a day, or a minute of it: `11-26 08:05`.
fn begin(window: &HistoryWindow) -> String {
    let from = window.from.get(5..16).unwrap_or(&window.from);
    from.replace('T', " ")
}

/// Columns of means: the least and the largest I/O/s, the least and the largest bytes/s.
const MEAN_COLUMNS: [FigureColumn; 4] = [
    FigureColumn { width: 11, rank: 0 },
    FigureColumn { width: 11, rank: 1 },
    FigureColumn { width: 14, rank: 2 },
    FigureColumn { width: 14, rank: 3 },
];

/// The windows that are known by means alone.
fn averages(page: &mut Page, course: &HistoryCourse) {
    let windows = course.windows.iter();
    let mut windows = windows
        .filter_map(|one| Some((one, one.averages?)))
        .peekable();
    if windows.peek().is_none() {
        return;
    }
    page.heading(&format!(
        "{} ({} layer), means over {}",
        visible(&course.device),
        course.layer,
        span(course.window_seconds)
    ));
    let words = ["I/O/s from", "to", "bytes/s from", "to"];
    page.figures("UTC", &MEAN_COLUMNS, &words.map(str::to_owned));
    let seconds = course.window_seconds.max(1) as f64;
    let per_second = |count: u64| rate(count as f64 / seconds);
    let bytes_per_second = |count: u64| bytes((count as f64 / seconds) as u64);
    for (window, averages) in windows {
        let most = |high: Option<u64>, words: &dyn Fn(u64) -> String| {
            high.map_or_else(|| "unknown".to_owned(), words)
        };
        let cells = [
            per_second(averages.ios.low),
            most(averages.ios.high, &per_second),
            bytes_per_second(averages.bytes.low),
            most(averages.bytes.high, &bytes_per_second),
        ];
        page.figures(&begin(window), &MEAN_COLUMNS, &cells);
    }
}

fn range(range: CountRange, words: impl Fn(u64) -> String) -> String {
    match range.high {
        Some(high) => format!("{} to {}", words(range.low), words(high)),
        None => format!("at least {}", words(range.low)),
    }
}

fn intervals(page: &mut Page, findings: &[HistoryFinding]) {
    if findings.is_empty() {
        page.line("no finding is stored");
    }
    for one in findings {
        let time = match &one.went {
            Some(went) => format!("{} to {went}", one.appeared),
            None => format!("since {}", one.appeared),
        };
        let severity = one.finding.severity.word();
        let name = one.finding.rule().name();
        page.wrapped(
            "",
            "  ",
            format!(
                "{time}: {severity} {name} on {}",
                visible(&one.finding.target.device)
            ),
        );
        page.wrapped("  ", "  ", visible(&one.summary).into_owned());
    }
}

fn changes(page: &mut Page, device: &HistoryChanges) {
    let windows = match &device.from {
        Some(from) => format!(
            "{} of {} with I/O since {from}",
            plural(device.windows, "window"),
            span(device.window_seconds)
        ),
        None => "no I/O in that time".to_owned(),
    };
    page.heading(&format!(
        "{} ({} layer): {windows}",
        visible(&device.device),
        device.layer
    ));
    for finding in &device.findings {
        finding_lines(page, finding);
    }
    if !device.findings.is_empty() {
        page.gap();
    }
    if !device.silent.is_empty() {
        let names: Vec<&str> = device.silent.iter().map(|rule| rule.name()).collect();
        page.wrapped("no change: ", "  ", names.join(", "));
    }
    for (reason, rules) in unknown_by_reason(&device.unknown) {
        page.wrapped(
            "unknown: ",
            "  ",
            format!("{}: {}", rules.join(", "), words::reason(reason)),
        );
    }
}

/// The rules that could not judge, by their reason.
fn unknown_by_reason(unknown: &[Unjudged]) -> Vec<(&Reason, Vec<&'static str>)> {
    let mut found: Vec<(&Reason, Vec<&'static str>)> = Vec::new();
    for unjudged in unknown {
        let name = unjudged.rule.name();
        match found
            .iter_mut()
            .find(|(known, _)| **known == unjudged.reason)
        {
            Some((_, rules)) => rules.push(name),
            None => found.push((&unjudged.reason, vec![name])),
        }
    }
    found
}

fn rate(per_second: f64) -> String {
    if per_second < 10.0 {
        format!("{per_second:.2}")
    } else {
        count(per_second.round() as u64)
    }
}

fn span(seconds: u64) -> &'static str {
    match seconds {
        300 => "5 minutes",
        3600 => "an hour",
        _ => "a day",
    }
}

fn sizes(page: &mut Page, size: &HistorySize) {
    page.wrapped(
        "",
        "  ",
        format!(
            "{} of at most {} in use",
            bytes(size.used_bytes),
            bytes(size.cap_bytes)
        ),
    );
    match size.full_bytes {
        Some(full) => page.wrapped(
            "",
            "  ",
            format!("At today's rate a full history needs {}.", bytes(full)),
        ),
        None => page.wrapped(
            "",
            "  ",
            "A day of history is needed to tell the size of a full one.",
        ),
    }
    for tier in &size.tiers {
        let since = match &tier.oldest {
            Some(oldest) => format!("now from {oldest} on"),
            None => "none stored yet".to_owned(),
        };
        page.wrapped(
            format!("  windows of {}: ", span(tier.window_seconds)),
            "    ",
            format!("reach back {} days, {since}", count(tier.reach_days)),
        );
    }
}

fn state(page: &mut Page, file: &HistoryFile) {
    let is_sound = file.faults.is_empty() && file.damaged == 0 && file.differing == 0;
    let word = if is_sound { "sound" } else { "DAMAGED" };
    page.wrapped(
        format!("{}: ", visible(&file.file)),
        "  ",
        format!(
            "{word}; {} sound records, {} damaged, {} with wrong totals",
            count(file.sound),
            count(file.damaged),
            count(file.differing)
        ),
    );
    for fault in &file.faults {
        page.wrapped("  ", "    ", visible(fault).into_owned());
    }
}

/// The windows of courses as comma-separated values (RFC 4180), a line each behind a line of names. Windows of means are left out: no column is a range.
#[must_use]
pub fn csv(courses: &[HistoryCourse]) -> String {
    let mut text = "device,layer,from,seconds,ios,reads,writes,read_bytes,write_bytes,misaligned_4k,timed,p50_ns,p99_ns,max_ns,\
                    to_4k,to_16k,to_64k,to_256k,longer\r\n"
        .to_owned();
    let known = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    for course in courses {
        for window in course.windows.iter().filter(|one| one.averages.is_none()) {
            let mut cells = vec![
                cell(&course.device),
                course.layer.to_owned(),
                window.from.clone(),
                course.window_seconds.to_string(),
            ];
            cells.extend(
                [
                    window.ios,
                    window.reads,
                    window.writes,
                    window.read_bytes,
                    window.write_bytes,
                ]
                .map(|value| value.to_string()),
            );
            cells.extend([
                known(window.misaligned_4k),
                window.timed.to_string(),
                known(window.p50_ns),
                known(window.p99_ns),
                known(window.max_ns),
            ]);
            cells.extend(window.lengths.map(|value| value.to_string()));
            text += &(cells.join(",") + "\r\n");
        }
    }
    text
}
