//! The page of all processes: a list that scrolls, with the misfit of each.

use plumb_capture::Process;
use plumb_profile::Owner;
use plumb_quoting::visible;
use plumb_report::format::{bytes, count, percent};
use plumb_report::words;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::widgets::{Cell, Row, Table};

use super::Screen;
use super::draw::figure;
use crate::watch::misaligned;

/// Widths of the columns.
const WIDTHS: [u16; 7] = [20, 8, 11, 8, 11, 9, 8];
/// The least width of the column with the owner and the command line.
const OWNER_MIN: u16 = 20;

impl Screen {
    /// The processes of the interval on devices that pass the filter, most I/O first.
    pub(super) fn processes(&self) -> impl Iterator<Item = &Process> {
        let all = self
            .seen()
            .into_iter()
            .flat_map(|seen| &seen.reading.processes);
        all.filter(|process| process.disk.contains(&self.filter))
    }

    pub(super) fn process_count(&self) -> usize {
        self.processes().count()
    }

    /// The share of a process's I/O off the grid. Flushes alone have no place on it.
    pub(super) fn off_words(&self, process: &Process) -> String {
        if process.bytes == 0 {
            return "-".to_owned();
        }
        misaligned(process, self.grid()).map_or_else(
            || "unknown".to_owned(),
            |off| percent(off as f64 / process.ios.max(1) as f64),
        )
    }

    pub(super) fn draw_processes(&self, frame: &mut Frame<'_>, area: Rect) {
        let seconds = self.seen().map_or(1.0, |seen| seen.seconds.max(1e-9));
        // A narrow screen leaves out bytes and threads.
        let whole: u16 = WIDTHS.iter().sum();
        let shown: &[usize] = if area.width >= whole + OWNER_MIN {
            &[0, 1, 2, 3, 4, 5, 6, 7]
        } else if area.width >= whole {
            &[0, 1, 2, 3, 4, 5, 6]
        } else {
            &[0, 1, 2, 3, 5]
        };
        let rows = self.processes().skip(self.scrolled).map(|process| {
            let off = misaligned(process, self.grid()).unwrap_or(0);
            let color = if off * 100 >= process.ios {
                Color::Yellow
            } else {
                Color::Green
            };
            let mut cells = [
                Cell::from(visible(&process.comm).to_string()),
                figure(process.pid.to_string()),
                Cell::from(format!(" {}", process.device)),
                figure(count((process.ios as f64 / seconds).round() as u64)),
                figure(bytes((process.bytes as f64 / seconds) as u64)),
                figure(self.off_words(process)).style(self.paint(color)),
                figure(process.threads.to_string()),
                Cell::from(format!("  {}", owner_and_command_line(process))),
            ];
            let cells: Vec<Cell<'_>> = shown
                .iter()
                .map(|&at| std::mem::take(&mut cells[at]))
                .collect();
            Row::new(cells)
        });
        let all = self.process_count();
        // The place in the list, if the list is longer than the screen.
        let place = if all >= usize::from(area.height) {
            format!("process ({} of {all})", self.scrolled + 1)
        } else {
            "process".to_owned()
        };
        let mut titles = [
            Cell::from(place),
            figure("PID"),
            Cell::from(" device"),
            figure("I/O/s"),
            figure("bytes/s"),
            figure("off"),
            figure("threads"),
            Cell::from("  owner, command line"),
        ];
        let head: Vec<Cell<'_>> = shown
            .iter()
            .map(|&at| std::mem::take(&mut titles[at]))
            .collect();
        let head = Row::new(head).style(Style::new().add_modifier(Modifier::BOLD));
        let widths = shown.iter().map(|&at| {
            WIDTHS
                .get(at)
                .map_or(Constraint::Fill(1), |width| Constraint::Length(*width))
        });
        let table = Table::new(rows, widths).header(head);
        frame.render_widget(table.column_spacing(0), area);
    }
}

/// `nginx.service: nginx: worker process`, as far as they are known.
fn owner_and_command_line(process: &Process) -> String {
    let owner = process.cgroup.as_deref().and_then(Owner::of_cgroup);
    let line = process
        .command_line
        .as_deref()
        .map(|line| visible(line).to_string());
    let parts: Vec<String> = [owner.as_ref().map(words::owner), line]
        .into_iter()
        .flatten()
        .collect();
    parts.join(": ")
}
