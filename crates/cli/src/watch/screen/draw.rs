//! The frame of the view: the head, the list of devices, the last line.

use plumb_diagnose::{Analysis, TargetLayer};
use plumb_geometry::Bounds;
use plumb_report::format::{bytes, count, ns, share_within};
use plumb_report::text::{FigureColumn, ascii, fitting_columns};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Cell, Paragraph, Row, Table, Wrap};

use super::{Screen, View, busiest, help, misfit};

/// Columns from which the head has room for the name of the program and the date.
const WIDE: u16 = 100;

/// The titles of the columns behind the name of the device. The last one is the course.
const TITLES: [&str; 10] = [
    "layer", "I/O/s", "bytes/s", "off", "split", "odd", "median", "99 %", "depth", "",
];

const fn column(width: usize, rank: u8) -> FigureColumn {
    FigureColumn { width, rank }
}

/// The columns themselves. The last one takes the room that is left, at least this.
const COLUMNS: [FigureColumn; 10] = [
    column(9, 8),
    column(9, 0),
    column(11, 1),
    column(9, 0),
    column(9, 6),
    column(9, 7),
    column(9, 3),
    column(9, 2),
    column(7, 5),
    column(12, 9),
];

impl Screen {
    /// Draws the view.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        self.draw_parts(frame);
        if self.ascii {
            for cell in &mut frame.buffer_mut().content {
                if !cell.symbol().is_ascii() {
                    // A sign that needs several letters keeps the first one, so that columns stay in place.
                    let plain = ascii(cell.symbol());
                    cell.set_symbol(plain.get(..1).unwrap_or("?"));
                }
            }
        }
    }

    fn draw_parts(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let listed = (self.ranked.len() as u16 + 2).clamp(3, (area.height / 3).max(3));
        let note = self.seen().and_then(|seen| seen.notes.first());
        // No sentence of a note is longer than two lines of 80 columns.
        let told = note.map_or(0, |note| {
            note.chars()
                .count()
                .div_ceil(usize::from(area.width.max(1)))
                .min(2)
        });
        let [head, list, detail, told, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(listed),
            Constraint::Min(0),
            Constraint::Length(told as u16),
            Constraint::Length(1),
        ])
        .areas(area);
        self.draw_head(frame, head);
        self.draw_foot(frame, foot);
        let note = Paragraph::new(note.cloned().unwrap_or_default()).wrap(Wrap { trim: true });
        frame.render_widget(note, told);
        let whole = list.union(detail);
        match (self.view, self.ranked.get(self.selected)) {
            (View::Help, _) => {
                // The last line stays at the bottom.
                let beyond = help::LINES.saturating_sub(usize::from(whole.height));
                let first = self.scrolled.min(beyond) as u16;
                frame.render_widget(Paragraph::new(help::lines()).scroll((first, 0)), whole);
            }
            (View::Processes, _) => self.draw_processes(frame, whole),
            (View::Device, Some(analysis)) => self.draw_page(frame, whole, analysis),
            (view, analysis) => {
                self.draw_list(frame, list);
                let asked = self.seen().and_then(|seen| seen.asked.as_deref());
                match (asked.filter(|_| view == View::Applications), analysis) {
                    (Some(asked), _) => frame.render_widget(Paragraph::new(asked), detail),
                    (None, Some(analysis)) => self.draw_device(frame, detail, analysis),
                    (None, None) => {
                        let idle = Paragraph::new(self.idle_lines()).wrap(Wrap { trim: false });
                        frame.render_widget(idle, detail);
                    }
                }
            }
        }
    }

    pub(super) fn paint(&self, color: Color) -> Style {
        if self.colored {
            Style::new().fg(color)
        } else {
            Style::new()
        }
    }

    fn draw_head(&self, frame: &mut Frame<'_>, area: Rect) {
        let (time, seconds) = self
            .seen()
            .map_or(("waiting", 0.0), |seen| (seen.time.as_str(), seen.seconds));
        let begin = if area.width >= WIDE {
            format!("plumb watch  {time}")
        } else {
            time.split_once('T')
                .map_or(time, |(_, of_day)| of_day)
                .to_owned()
        };
        let position = self.seen().and_then(|seen| seen.position.as_deref());
        let position = position.map_or(String::new(), |place| format!("  {place}"));
        let assumed = if self.assumed { ", assumed" } else { "" };
        let filter = if self.filter.is_empty() {
            String::new()
        } else {
            format!("  filter {}", self.filter)
        };
        let frozen = if self.frozen { "  FROZEN" } else { "" };
        let head = format!("{begin}{position}{frozen}{filter}");
        let length = format!("  {seconds:.1} s");
        let grid = format!("  grid {}{assumed}", self.grids[self.grid]);
        let sort = format!("  by {}", self.sort.word());
        // A narrow screen leaves out the order first, then the length of the interval.
        let width = usize::from(area.width);
        let fits = |words: &String| words.chars().count() <= width;
        let words = [
            format!("{head}{length}{grid}{sort}"),
            format!("{head}{length}{grid}"),
        ]
        .into_iter()
        .find(fits)
        .unwrap_or_else(|| format!("{head}{grid}"));
        frame.render_widget(
            Paragraph::new(words).style(Style::new().add_modifier(Modifier::REVERSED)),
            area,
        );
    }

    fn draw_list(&self, frame: &mut Frame<'_>, area: Rect) {
        let shown = usize::from(area.height.saturating_sub(1)).max(1);
        // The device that is selected stays in sight.
        let first = self.selected.saturating_sub(shown - 1);
        self.listed.set((area.y + 1, shown as u16, first));
        let names = self
            .ranked
            .iter()
            .map(|one| one.target.device.chars().count());
        let name_width = names.max().unwrap_or(0).clamp(9, 20) as u16 + 1;
        let room = area.width.saturating_sub(name_width);
        let columns = fitting_columns(&COLUMNS, usize::from(room));
        let last = COLUMNS.len() - 1;
        let used: u16 = columns
            .iter()
            .filter(|&&at| at != last)
            .map(|&at| COLUMNS[at].width as u16)
            .sum();
        let history = room.saturating_sub(used + 2);
        let rows = self
            .ranked
            .iter()
            .enumerate()
            .skip(first)
            .take(shown)
            .map(|(at, analysis)| {
                let mut cells = self.device_cells(analysis, usize::from(history));
                let name = Cell::from(analysis.target.device.clone());
                let shown = columns.iter().map(|&at| std::mem::take(&mut cells[at]));
                let row = Row::new(std::iter::once(name).chain(shown));
                if at == self.selected {
                    row.style(Style::new().add_modifier(Modifier::REVERSED))
                } else {
                    row
                }
            });
        let widths = columns.iter().map(|&at| match at {
            at if at == last => history + 2,
            at => COLUMNS[at].width as u16,
        });
        let widths = std::iter::once(name_width).chain(widths);
        let span = self.span_words(usize::from(history));
        let titles = columns.iter().map(|&at| match TITLES[at] {
            "layer" => Cell::from("layer"),
            "" => Cell::from(format!("  {span}")),
            title => figure(title),
        });
        let head = Row::new(std::iter::once(Cell::from("device")).chain(titles));
        let head = head.style(Style::new().add_modifier(Modifier::BOLD));
        let table = Table::new(rows, widths.map(Constraint::Length)).header(head);
        frame.render_widget(table.column_spacing(0), area);
    }

    /// The cells of all [`COLUMNS`] for a device.
    fn device_cells(&self, analysis: &Analysis, history: usize) -> Vec<Cell<'static>> {
        let seen = self.seen();
        let seconds = seen.map_or(1.0, |seen| seen.seconds.max(1e-9));
        let share = |of: fn(&plumb_profile::FitTally) -> (Bounds<u64>, u64)| {
            let tally = analysis
                .device()
                .and_then(|place| place.grids.first()?.all.as_ref().ok());
            tally.map_or_else(
                || "unknown".to_owned(),
                |tally| {
                    let (part, whole) = of(tally);
                    if whole == 0 {
                        "-".to_owned()
                    } else {
                        share_within(part, whole)
                    }
                },
            )
        };
        let off = share(|tally| (tally.misaligned, tally.ios));
        let layer = match analysis.target.layer {
            TargetLayer::Seen(layer) => layer.word(),
            TargetLayer::Stack(_) | TargetLayer::Host(_) => "-",
        };
        let color = if misfit(analysis) >= 0.01 {
            Color::Yellow
        } else {
            Color::Green
        };
        let latency = busiest(analysis).and_then(|op| op.device.as_ref());
        let time = |ns_of: fn(&plumb_diagnose::analysis::Quantiles) -> u64| {
            latency.map_or_else(|| "unknown".to_owned(), |quantiles| ns(ns_of(quantiles)))
        };
        let depth = analysis
            .in_flight
            .as_ref()
            .map_or_else(|| "-".to_owned(), |all| format!("{:.1}", all.depth_mean));
        vec![
            Cell::from(layer),
            figure(count((analysis.ios as f64 / seconds).round() as u64)),
            figure(bytes((analysis.bytes as f64 / seconds) as u64)),
            figure(off).style(self.paint(color)),
            figure(share(|tally| (tally.split, tally.ios))),
            figure(share(|tally| (tally.odd_length, tally.ios))),
            figure(time(|quantiles| quantiles.p50_ns)),
            figure(time(|quantiles| quantiles.p99_ns)),
            figure(depth),
            Cell::from(format!("  {}", self.bars(&analysis.target.device, history))),
        ]
    }

    fn draw_foot(&self, frame: &mut Frame<'_>, area: Rect) {
        let words = match (&self.notice, self.typing) {
            (Some(notice), _) => notice.clone(),
            (None, true) => format!("filter: {}_   Enter keeps it, Esc drops it", self.filter),
            (None, false) => {
                let asked = self.seen().is_some_and(|seen| seen.asked.is_some());
                help::foot(asked, usize::from(area.width))
            }
        };
        frame.render_widget(Paragraph::new(words), area);
    }
}

/// A number in its column.
pub(super) fn figure(words: impl Into<String>) -> Cell<'static> {
    Cell::from(Text::from(words.into()).alignment(Alignment::Right))
}
