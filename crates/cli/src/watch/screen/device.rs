//! The view of one device: its timeline, lengths, latency by fit, streams, and the senders of its I/O.

use std::collections::BTreeMap;

use plumb_diagnose::Analysis;
use plumb_profile::latency_fit::LatencyByFit;
use plumb_quoting::visible;
use plumb_report::format::{bytes, count, percent, signed_ns};
use plumb_report::words;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};

use super::Screen;

/// Columns from which lengths have room beside the figures.
const SIZES_WIDTH_MIN: u16 = 80;

impl Screen {
    /// The selected device in short, below the list.
    pub(super) fn draw_device(&self, frame: &mut Frame<'_>, area: Rect, analysis: &Analysis) {
        let inner = self.draw_border(frame, area, analysis);
        // A low screen keeps room for the senders.
        let high = (inner.height / 8).clamp(1, 4);
        let graphs = (4 * high).min(inner.height / 2);
        let [course, rest] =
            Layout::vertical([Constraint::Length(graphs), Constraint::Min(0)]).areas(inner);
        self.draw_graphs(frame, course, &analysis.target.device, high);
        self.draw_figures(frame, rest, analysis);
    }

    /// Lengths beside the figures and senders; a narrow screen leaves out the lengths.
    pub(super) fn draw_figures(&self, frame: &mut Frame<'_>, area: Rect, analysis: &Analysis) {
        let told = Paragraph::new(self.told_lines(analysis)).wrap(Wrap { trim: false });
        if area.width < SIZES_WIDTH_MIN {
            frame.render_widget(told, area);
            return;
        }
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(45), Constraint::Percentage(55)])
                .areas(area);
        frame.render_widget(Paragraph::new(self.size_lines(analysis, left)), left);
        frame.render_widget(told, right);
    }

    /// Draws the line with the name of a device and returns the area below it.
    pub(super) fn draw_border(
        &self,
        frame: &mut Frame<'_>,
        area: Rect,
        analysis: &Analysis,
    ) -> Rect {
        let block = Block::new()
            .borders(Borders::TOP)
            .title(format!(" {} ", words::target(&analysis.target)));
        let inner = block.inner(area);
        frame.render_widget(block, area);
        inner
    }

    /// Lengths: a bar of reads and one of writes for each power of two.
    fn size_lines(&self, analysis: &Analysis, area: Rect) -> Vec<Line<'static>> {
        let mut sizes: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
        for (at, word) in ["read", "write"].into_iter().enumerate() {
            let op = analysis.ops.iter().find(|op| op.op == word);
            for size in op.into_iter().flat_map(|op| &op.sizes) {
                sizes.entry(size.len_max_bytes).or_default()[at] += size.ios;
            }
        }
        let most = sizes.values().flatten().copied().max().unwrap_or(0).max(1);
        let width = u64::from(area.width.saturating_sub(24)) / 2;
        let bar = |ios: u64| {
            let long = (ios * width).div_ceil(most) as usize;
            format!("{:<1$}", "█".repeat(long), width as usize + 1)
        };
        let mut lines = vec![
            Line::from("lengths up to   reads, writes")
                .style(Style::new().add_modifier(Modifier::BOLD)),
        ];
        lines.extend(sizes.into_iter().map(|(top, [reads, writes])| {
            Line::from(vec![
                Span::raw(format!("{:>10} ", bytes(top))),
                Span::styled(bar(reads), self.paint(Color::Green)),
                Span::styled(bar(writes), self.paint(Color::Magenta)),
            ])
        }));
        lines
    }

    /// Latency by fit, streams, senders.
    fn told_lines(&self, analysis: &Analysis) -> Vec<Line<'static>> {
        let bold = |words: &'static str| {
            Line::from(words).style(Style::new().add_modifier(Modifier::BOLD))
        };
        let mut lines = vec![bold("off the grid against on it, same length")];
        let latency = analysis
            .device()
            .and_then(|place| place.grids.first()?.latency.as_ref());
        lines.push(Line::from(match latency {
            Some(LatencyByFit::Difference {
                difference_ns,
                low_ns,
                high_ns,
                ..
            }) => format!(
                "  {} (95 %: {} to {})",
                signed_ns(*difference_ns),
                signed_ns(*low_ns),
                signed_ns(*high_ns)
            ),
            Some(LatencyByFit::NotComparable { why }) => format!("  not comparable: {why}"),
            None => "  unknown".to_owned(),
        }));
        let of_all = |part: u64| percent(part as f64 / analysis.ios.max(1) as f64);
        lines.push(bold("streams"));
        let runs = format!(
            "  {} continue one, {} in {} runs",
            of_all(analysis.continuing),
            of_all(analysis.run_ios),
            count(analysis.runs)
        );
        lines.push(Line::from(runs));
        lines.push(bold("process           PID    I/O     off thr"));
        let of_device = self
            .processes()
            .filter(|process| process.disk == analysis.target.device);
        lines.extend(of_device.take(40).map(|process| {
            Line::from(format!(
                "{:<13} {:>7} {:>6} {:>7} {:>3}",
                visible(&process.comm),
                process.pid,
                count(process.ios),
                self.off_words(process),
                process.threads
            ))
        }));
        lines
    }
}
