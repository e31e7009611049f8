//! One interval of `plumb watch`: a block for each device, as `align.d` printed it, and the senders of the I/O.

use plumb_diagnose::analysis::Analysis;
use plumb_geometry::plural;
use plumb_model::result::verdict::Verdict;
use plumb_model::result::watch::{Apart, App, IntervalSender, SeenAgain};
use plumb_quoting::visible;

use super::{FigureColumn, Page, Paper, grid_lines, measures};
use crate::brief;
use crate::format::{bytes, count, percent};
use crate::words::owner;

/// An interval.
pub struct WatchInterval<'a> {
    /// When, and how long.
    pub heading: String,
    /// End of an interval that is not live; `None` if it ends now.
    pub until: Option<&'a str>,
    /// The verdict on the time so far.
    pub verdict: Option<&'a Verdict>,
    /// Devices that received I/O.
    pub devices: &'a [Analysis],
    /// The senders, most I/O first.
    pub senders: &'a [IntervalSender<'a>],
    /// Counts apart from the I/O.
    pub apart: &'a [Apart<'a>],
    /// Disks whose I/O others received again.
    pub seen_again: &'a [SeenAgain<'a>],
    /// The filter; `None` for everything.
    pub filter: Option<&'a str>,
    /// Sentences that a reader must know.
    pub notes: &'a [String],
    /// The requests to file systems, if that was watched.
    pub app: Option<&'a App>,
}

/// Most processes that are listed.
const SENDERS: usize = 6;
/// Rates of an interval count from its beginning, or from the last I/O before it where that is later.
const SPAN: &str = "up to the last issue";

/// The interval as text.
#[must_use]
pub fn interval(interval: &WatchInterval<'_>, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    if let Some(verdict) = interval.verdict {
        brief::line_so_far(&mut page, verdict);
        page.gap();
    }
    page.heading(&interval.heading);
    if let Some(filter) = interval.filter {
        page.wrapped("  filtered: ", "    ", format!("only {filter}"));
    }
    if interval.devices.is_empty() {
        page.line("  no I/O");
    }
    for analysis in interval.devices {
        page.gap();
        page.line(crate::words::target(&analysis.target));
        if analysis.ios == 0 {
            let completed = match analysis.timed {
                0 => "",
                _ => "; earlier ones completed",
            };
            page.line(format!("  no reads or writes issued{completed}"));
            measures::failures(&mut page, analysis);
            if analysis.timed > 0 {
                measures::latency(&mut page, analysis);
            }
            continue;
        }
        measures::totals(&mut page, analysis, SPAN);
        for fit in analysis.device().into_iter().flat_map(|place| &place.grids) {
            grid_lines(&mut page, fit);
        }
        measures::sizes(&mut page, analysis);
        measures::latency(&mut page, analysis);
    }
    senders(&mut page, interval.senders);
    if let Some(app) = interval.app {
        super::app::lines(&mut page, app);
    }
    if !interval.notes.is_empty() {
        page.gap();
    }
    for note in interval.notes {
        page.wrapped("  note: ", "    ", note);
    }
    page.gap();
    page.text
}

/// The requests over the whole time.
#[must_use]
pub fn asked(app: &App, paper: impl Into<Paper>) -> String {
    let mut page = Page::new(paper);
    page.heading("Asked of file systems");
    super::app::lines(&mut page, app);
    page.gap();
    page.text
}

/// Columns of the senders, behind their names.
const SENDER_COLUMNS: [FigureColumn; 6] = [
    FigureColumn { width: 9, rank: 3 },
    FigureColumn { width: 12, rank: 0 },
    FigureColumn { width: 11, rank: 0 },
    FigureColumn { width: 10, rank: 2 },
    FigureColumn { width: 11, rank: 1 },
    FigureColumn { width: 8, rank: 4 },
];

fn senders(page: &mut Page, senders: &[IntervalSender<'_>]) {
    if senders.is_empty() {
        return;
    }
    page.gap();
    let head = [
        "PID",
        "  device    ",
        "I/O",
        "bytes",
        "misaligned",
        "threads",
    ];
    page.row(
        &format!("  {:<16}", "Process"),
        &SENDER_COLUMNS,
        &head.map(str::to_owned),
    );
    for sender in senders.iter().take(SENDERS) {
        let IntervalSender {
            device,
            comm,
            pid,
            ios,
            bytes: moved,
            misaligned,
            threads,
            ..
        } = sender;
        let misaligned = misaligned.map_or_else(
            || "unknown".to_owned(),
            |off| percent(off as f64 / (*ios).max(1) as f64),
        );
        // A history has no numbers of processes.
        let known = |words: String| match (*pid, *threads) {
            (0, 0) => "-".to_owned(),
            _ => words,
        };
        let cells = [
            known(pid.to_string()),
            format!("  {device:<10}"),
            count(*ios),
            bytes(*moved),
            misaligned,
            known(count(*threads)),
        ];
        page.row(&format!("  {comm:<16}"), &SENDER_COLUMNS, &cells);
        if let Some(more) = more_of(sender) {
            page.line(cut(&format!("    {more}"), page.paper.table_width));
        }
    }
    if senders.len() > SENDERS {
        let others = &senders[SENDERS..];
        // I/O that a disk passed on are in the figures of those below.
        let counted = others.iter().filter(|sender| !sender.is_seen_again);
        let ios: u64 = counted.map(|sender| sender.ios).sum();
        page.line(format!(
            "  {} {:>30} I/O",
            plural(others.len() as u64, "other"),
            count(ios)
        ));
    }
}

/// The I/O of a process that the kernel wrote back, its owner, and its command line, as far as they are known. The last one is the
/// one that may be cut.
fn more_of(sender: &IntervalSender<'_>) -> Option<String> {
    let back = (sender.written_back > 0)
        .then(|| format!("{} written back by the kernel", count(sender.written_back)));
    let line = sender.command_line.map(|line| visible(line).to_string());
    let parts: Vec<String> = [back, sender.owner.as_ref().map(owner), line]
        .into_iter()
        .flatten()
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// A line that ends at the width.
fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let kept: String = line.chars().take(width.saturating_sub(3)).collect();
    kept + "..."
}

#[cfg(test)]
mod tests {
    use plumb_profile::Owner;

    use super::*;

    fn sender(device: &str, is_seen_again: bool) -> IntervalSender<'_> {
        let (comm, pid, ios, bytes) = ("dd", 4711, 1000, 4_096_000);
        IntervalSender {
            device,
            comm,
            pid,
            cgroup: Some("/system.slice/backup.service"),
            owner: Owner::of_cgroup("/system.slice/backup.service"),
            command_line: Some("dd if=/dev/zero of=/srv/a-long-name-of-a-file bs=1M oflag=direct"),
            ios,
            written_back: 12,
            bytes,
            threads: 1,
            misaligned: Some(0),
            is_seen_again,
        }
    }

    /// Of processes that are not listed only the I/O of disks at the bottom are added up.
    #[test]
    fn remapped_io_are_in_no_sum() {
        let mut senders: Vec<IntervalSender<'_>> = (0..7).map(|_| sender("md0", true)).collect();
        senders.extend((0..3).map(|_| sender("sda", false)));
        let on = ["sda".to_owned()];
        let interval = WatchInterval {
            verdict: None,
            heading: "noon, 1.0 s".to_owned(),
            until: None,
            devices: &[],
            senders: &senders,
            apart: &[],
            seen_again: &[SeenAgain {
                device: "md0",
                on: &on,
            }],
            filter: Some("process 4711"),
            notes: &[],
            app: None,
        };
        let text = super::interval(&interval, crate::text::Color::Never);
        let others = text
            .lines()
            .find(|line| line.contains("others"))
            .expect("those that are not listed");
        assert_eq!(
            others.split_whitespace().collect::<Vec<_>>(),
            ["4", "others", "3,000", "I/O"]
        );
        insta::assert_snapshot!(text);
        let more =
            "\n    12 written back by the kernel; backup.service; dd if=/dev/zero of=/srv/a-...\n";
        assert!(text.contains(more), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }
}
