//! The page of one device: graphs, the spread of latencies and lengths over time, and the phases of its load.

use plumb_diagnose::Analysis;
use plumb_report::format::{bytes, ns};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::Screen;
use super::course::Moment;
use super::graph::SCALE;

/// Rows of a strip on a screen of 24 lines.
const STRIP_ROWS: u16 = 4;

impl Screen {
    pub(super) fn draw_page(&self, frame: &mut Frame<'_>, area: Rect, analysis: &Analysis) {
        let inner = self.draw_border(frame, area, analysis);
        // The screen's rows beyond 24 go to graphs, strips and senders alike.
        let more = inner.height.saturating_sub(21) / 3;
        let high = 1 + more / 4;
        let strip = STRIP_ROWS + more / 2;
        let [graphs, phases, latencies, sizes, rest] = Layout::vertical([
            Constraint::Length(4 * high),
            Constraint::Length(2),
            Constraint::Length(strip + 1),
            Constraint::Length(strip + 1),
            Constraint::Min(0),
        ])
        .areas(inner);
        let device = &analysis.target.device;
        self.draw_graphs(frame, graphs, device, high);
        let columns = self.columns(device, usize::from(inner.width.saturating_sub(SCALE)));
        frame.render_widget(Paragraph::new(self.phase_lines(&columns)), phases);
        self.draw_strip(frame, latencies, "latency up to", |rows| {
            let name = |power| ns(1u64.checked_shl(power).unwrap_or(u64::MAX));
            self.strip_lines(
                &columns,
                rows,
                Moment::latency_octaves,
                name,
                Color::Magenta,
            )
        });
        self.draw_strip(frame, sizes, "length up to", |rows| {
            let name = |power| bytes(1u64.checked_shl(power).unwrap_or(u64::MAX));
            let sizes = |moment: &Moment| moment.sizes.clone();
            self.strip_lines(&columns, rows, sizes, name, Color::Blue)
        });
        self.draw_figures(frame, rest, analysis);
    }

    fn draw_strip(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        title: &str,
        lines: impl Fn(usize) -> Vec<Line<'static>>,
    ) {
        let heading = Style::new().add_modifier(Modifier::BOLD);
        let mut all = vec![Line::from(title.to_owned()).style(heading)];
        let rows = lines(usize::from(area.height.saturating_sub(1)));
        if rows.is_empty() {
            all.push(Line::from(" unknown"));
        }
        all.extend(rows);
        frame.render_widget(Paragraph::new(all), area);
    }

    /// A letter for the kind of load in each column.
    fn phase_lines(&self, columns: &[Moment]) -> Vec<Line<'static>> {
        let letters: String = columns.iter().map(phase).collect();
        let width = usize::from(SCALE);
        vec![
            Line::from(vec![
                Span::styled(
                    format!("{:<width$}", "phases"),
                    Style::new().add_modifier(Modifier::BOLD),
                ),
                Span::raw(letters),
            ]),
            Line::from(" r reads, w writes, m both; R, W, M sequential; . idle"),
        ]
    }
}

/// `r`, `w` or `m` (mixed), as a capital if most I/O continue a stream; `.` without I/O.
fn phase(moment: &Moment) -> char {
    if moment.ios == 0 {
        return '.';
    }
    let letter = match moment.reads * 10 {
        reads if reads >= moment.ios * 8 => 'r',
        reads if reads <= moment.ios * 2 => 'w',
        _ => 'm',
    };
    if moment.continuing * 2 > moment.ios {
        letter.to_ascii_uppercase()
    } else {
        letter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_of_a_load() {
        for (ios, reads, continuing, expected) in [
            (0, 0, 0, '.'),
            (100, 100, 0, 'r'),
            (100, 80, 51, 'R'),
            (100, 20, 50, 'w'),
            (100, 0, 99, 'W'),
            (100, 50, 0, 'm'),
            (100, 21, 51, 'M'),
        ] {
            let moment = Moment {
                ios,
                reads,
                continuing,
                ..Moment::default()
            };
            assert_eq!(phase(&moment), expected, "{moment:?}");
        }
    }
}
