//! Graphs over time: bars with a scale, and strips that show how I/O spread over classes.

use std::collections::{BTreeMap, BTreeSet};

use plumb_report::format::{bytes, count, ns, percent};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use super::Screen;
use super::course::{CoursePart, Moment};

/// Columns of the name and the scale of a graph.
pub(super) const SCALE: u16 = 17;

/// The least columns that a graph needs to show a course.
const COLUMNS_MIN: u16 = 8;

/// The measures that have a graph, in the order in which they give way on a low screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Ios,
    Misfit,
    Latency,
    Bytes,
}

impl Measure {
    pub(super) const ALL: [Measure; 4] = [
        Measure::Ios,
        Measure::Misfit,
        Measure::Latency,
        Measure::Bytes,
    ];

    fn name(self) -> &'static str {
        match self {
            Measure::Ios => "I/O/s",
            Measure::Misfit => "off grid",
            Measure::Latency => "99 %",
            Measure::Bytes => "bytes/s",
        }
    }

    fn color(self) -> Color {
        match self {
            Measure::Ios => Color::Cyan,
            Measure::Misfit => Color::Yellow,
            Measure::Latency => Color::Magenta,
            Measure::Bytes => Color::Blue,
        }
    }

    /// The value of a column; `None` where it is unknown.
    fn value(self, moment: &Moment, screen: &Screen) -> Option<f64> {
        let seconds = moment.seconds.max(1e-9);
        match self {
            Measure::Ios => Some(moment.ios as f64 / seconds),
            Measure::Misfit => moment.misfit(screen.grid()),
            Measure::Latency => moment.latency_ns(0.99).map(|ns| ns as f64),
            Measure::Bytes => Some(moment.bytes as f64 / seconds),
        }
    }

    fn words(self, most: f64) -> String {
        match self {
            Measure::Ios => count(most.round() as u64),
            Measure::Misfit => percent(most),
            Measure::Latency => ns(most as u64),
            Measure::Bytes => bytes(most as u64),
        }
    }
}

impl Screen {
    /// Draws graphs below each other, all as high as there is room for, and at most `high` rows each.
    pub(super) fn draw_graphs(&self, frame: &mut Frame<'_>, area: Rect, device: &str, high: u16) {
        if area.height == 0 || area.width < SCALE + COLUMNS_MIN {
            return;
        }
        let columns = self.columns(device, usize::from(area.width - SCALE));
        let shown = Measure::ALL.len().min(usize::from(area.height)) as u16;
        let height = (area.height / shown).clamp(1, high);
        for (at, measure) in Measure::ALL
            .into_iter()
            .take(usize::from(shown))
            .enumerate()
        {
            let row = Rect {
                y: area.y + at as u16 * height,
                height,
                ..area
            };
            self.draw_graph(frame, row, &columns, measure);
        }
    }

    fn draw_graph(&self, frame: &mut Frame<'_>, area: Rect, columns: &[Moment], measure: Measure) {
        let [scale, bars] =
            Layout::horizontal([Constraint::Length(SCALE), Constraint::Min(0)]).areas(area);
        let values: Vec<Option<f64>> = columns
            .iter()
            .map(|column| measure.value(column, self))
            .collect();
        let known = values.iter().flatten().copied().reduce(f64::max);
        let most = known.map_or("unknown".to_owned(), |most| measure.words(most));
        // Shares have one scale, so that two devices can be compared.
        let top = match measure {
            Measure::Misfit => 1.0,
            _ => known.unwrap_or(0.0),
        };
        let name = Span::styled(measure.name(), Style::new().add_modifier(Modifier::BOLD));
        let words = match area.height {
            1 => vec![Line::from(vec![name, Span::raw(format!(" {most}"))])],
            _ => vec![Line::from(name), Line::from(format!(" max {most}"))],
        };
        frame.render_widget(Paragraph::new(words), scale);
        // An eighth of a row is the least that shows.
        let steps = u64::from(area.height) * 8;
        let heights: Vec<Option<u64>> = values
            .iter()
            .map(|value| value.map(|value| height_of(value, top, steps)))
            .collect();
        frame.render_widget(
            Sparkline::default()
                .data(heights)
                .max(steps)
                .absent_value_symbol(" ")
                .style(self.paint(measure.color())),
            bars,
        );
    }

    /// Columns of a device's course, the newest last.
    pub(super) fn columns(&self, device: &str, width: usize) -> Vec<Moment> {
        let course = self.courses.get(device);
        course.map_or_else(Vec::new, |course| course.columns(self.part(width)))
    }

    /// The part of every course that is shown.
    fn part(&self, width: usize) -> CoursePart {
        CoursePart {
            width,
            zoom: self.zoom,
            behind: self.back,
            seen: self.intervals,
        }
    }

    /// I/O over time as one line of bars.
    pub(super) fn bars(&self, device: &str, width: usize) -> String {
        const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let course = self.courses.get(device);
        let rates = course.map_or_else(Vec::new, |course| course.rates(self.part(width)));
        let most = rates.iter().copied().fold(0.0, f64::max);
        rates
            .iter()
            .map(|rate| BARS[height_of(*rate, most, 8) as usize])
            .collect()
    }

    /// The time that a number of columns covers: `last 4 min`.
    pub(super) fn span_words(&self, columns: usize) -> String {
        let intervals = (columns * self.zoom).min(self.lengths_s.len());
        let seconds: f64 = self.lengths_s.iter().rev().take(intervals).sum();
        match seconds {
            seconds if seconds >= 7200.0 => format!("last {:.0} h", seconds / 3600.0),
            seconds if seconds >= 120.0 => format!("last {:.0} min", seconds / 60.0),
            seconds => format!("last {seconds:.0} s"),
        }
    }

    /// A strip: a row for each class that occurs, the largest at the top, and a column for each point in time. A cell is
    /// the darker the larger the share of the column's I/O in it.
    pub(super) fn strip_lines(
        &self,
        columns: &[Moment],
        rows_max: usize,
        classes: impl Fn(&Moment) -> BTreeMap<u32, u64>,
        name: impl Fn(u32) -> String,
        color: Color,
    ) -> Vec<Line<'static>> {
        let counted: Vec<BTreeMap<u32, u64>> = columns.iter().map(classes).collect();
        let present: BTreeSet<u32> = counted
            .iter()
            .flat_map(|column| column.keys().copied())
            .collect();
        let rows: Vec<u32> = present.into_iter().rev().take(rows_max).collect();
        let last = rows.last().copied();
        rows.into_iter()
            .map(|class| {
                // Without room for all classes, the last row has all smaller ones as well.
                let first = if last == Some(class) { 0 } else { class };
                let cells: String = counted
                    .iter()
                    .map(|column| {
                        let all: u64 = column.values().sum();
                        let part = column.range(first..=class).map(|(_, ios)| ios).sum();
                        shade(part, all)
                    })
                    .collect();
                let width = usize::from(SCALE) - 1;
                Line::from(vec![
                    Span::raw(format!("{:>width$} ", name(class))),
                    Span::styled(cells, self.paint(color)),
                ])
            })
            .collect()
    }
}

/// Eighths of a row for a value: at least one for anything above 0.
fn height_of(value: f64, top: f64, steps: u64) -> u64 {
    if value <= 0.0 || top <= 0.0 {
        return 0;
    }
    ((value / top * steps as f64).round() as u64).clamp(1, steps)
}

fn shade(part: u64, all: u64) -> char {
    match (part, all) {
        (0, _) => ' ',
        (part, all) if part * 10 < all => '░',
        (part, all) if part * 3 < all => '▒',
        (part, all) if part * 3 < all * 2 => '▓',
        _ => '█',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_for_nothing_alone() {
        assert_eq!(height_of(0.0, 5.0, 16), 0);
        assert_eq!(height_of(0.001, 5.0, 16), 1);
        assert_eq!(height_of(5.0, 5.0, 16), 16);
        assert_eq!(height_of(2.5, 5.0, 16), 8);
    }

    #[test]
    fn shades_grow_with_the_share() {
        let shades: String = [0, 5, 20, 50, 90]
            .into_iter()
            .map(|part| shade(part, 100))
            .collect();
        assert_eq!(shades, " ░▒▓█");
    }
}
