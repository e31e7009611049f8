//! The frame of the view: the head, the list of devices, the last line.

use plumb_diagnose::{Analysis, TargetLayer};
use plumb_geometry::Bounds;
use plumb_report::format::{bytes, count, ns, share_within};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Text;
use ratatui::widgets::{Cell, Paragraph, Row, Table, Wrap};

use super::{Screen, busiest, help, misfit};

/// Columns from which the head has room for the name of the program and the date.
const WIDE: u16 = 100;

impl Screen {
    /// Draws the view.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let listed = (self.ranked.len() as u16 + 2).clamp(3, (area.height / 3).max(3));
        let note = self.seen.as_ref().and_then(|seen| seen.notes.first());
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
        if self.helps {
            return frame.render_widget(
                Paragraph::new(help::lines()),
                list.union(detail).union(told),
            );
        }
        self.draw_list(frame, list);
        let asked = self
            .seen
            .as_ref()
            .and_then(|seen| seen.asked.as_deref())
            .filter(|_| self.asks);
        match (asked, self.ranked.get(self.selected)) {
            (Some(asked), _) => frame.render_widget(Paragraph::new(asked), detail),
            (None, Some(analysis)) => self.draw_device(frame, detail, analysis),
            (None, None) => {
                let idle = Paragraph::new(self.idle_lines()).wrap(Wrap { trim: false });
                frame.render_widget(idle, detail);
            }
        }
        frame.render_widget(
            Paragraph::new(note.cloned().unwrap_or_default()).wrap(Wrap { trim: true }),
            told,
        );
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
            .seen
            .as_ref()
            .map_or(("waiting", 0.0), |seen| (&seen.time, seen.seconds));
        let begin = if area.width >= WIDE {
            format!("plumb watch  {time}")
        } else {
            time.split_once('T')
                .map_or(time, |(_, of_day)| of_day)
                .to_owned()
        };
        let assumed = if self.assumed { ", assumed" } else { "" };
        let filter = if self.filter.is_empty() {
            String::new()
        } else {
            format!("  filter {}", self.filter)
        };
        let frozen = if self.frozen { "  FROZEN" } else { "" };
        let words = format!(
            "{begin}{frozen}{filter}  {seconds:.1} s  grid {}{assumed}  by {}",
            self.grids[self.grid],
            self.sort.word()
        );
        frame.render_widget(
            Paragraph::new(words).style(Style::new().add_modifier(Modifier::REVERSED)),
            area,
        );
    }

    fn draw_list(&self, frame: &mut Frame<'_>, area: Rect) {
        let seconds = self
            .seen
            .as_ref()
            .map_or(1.0, |seen| seen.seconds.max(1e-9));
        let shown = usize::from(area.height.saturating_sub(1)).max(1);
        // The device that is selected stays in sight.
        let first = self.selected.saturating_sub(shown - 1);
        let rows = self
            .ranked
            .iter()
            .enumerate()
            .skip(first)
            .take(shown)
            .map(|(at, analysis)| {
                let row = self.device_row(analysis, seconds);
                if at == self.selected {
                    row.style(Style::new().add_modifier(Modifier::REVERSED))
                } else {
                    row
                }
            });
        let widths = [10, 8, 7, 9, 8, 8, 8, 8, 8, 6].map(Constraint::Length);
        let titles = [
            "I/O/s", "bytes/s", "off", "split", "odd", "median", "99 %", "depth",
        ];
        let names = ["device", "layer"].map(Cell::from);
        let head = Row::new(names.into_iter().chain(titles.map(figure)));
        let head = head.style(Style::new().add_modifier(Modifier::BOLD));
        frame.render_widget(
            Table::new(rows, widths).header(head).column_spacing(0),
            area,
        );
    }

    fn device_row(&self, analysis: &Analysis, seconds: f64) -> Row<'static> {
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
        Row::new([
            Cell::from(analysis.target.device.clone()),
            Cell::from(layer),
            figure(count((analysis.ios as f64 / seconds).round() as u64)),
            figure(bytes((analysis.bytes as f64 / seconds) as u64)),
            figure(off).style(self.paint(color)),
            figure(share(|tally| (tally.split, tally.ios))),
            figure(share(|tally| (tally.odd_length, tally.ios))),
            figure(time(|quantiles| quantiles.p50_ns)),
            figure(time(|quantiles| quantiles.p99_ns)),
            figure(depth),
        ])
    }

    fn draw_foot(&self, frame: &mut Frame<'_>, area: Rect) {
        let words = match (&self.notice, self.typing) {
            (Some(notice), _) => notice.clone(),
            (None, true) => format!("filter: {}_   Enter keeps it, Esc drops it", self.filter),
            (None, false) => {
                help::foot(self.seen.as_ref().is_some_and(|seen| seen.asked.is_some()))
            }
        };
        frame.render_widget(Paragraph::new(words), area);
    }
}

/// A number in its column.
fn figure(words: impl Into<String>) -> Cell<'static> {
    Cell::from(Text::from(words.into()).alignment(Alignment::Right))
}
