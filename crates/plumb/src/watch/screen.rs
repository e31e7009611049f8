//! The full-screen view: what is to be seen of the last interval, and how it is drawn. Draws anything it is handed; no
//! clock and no terminal here, so that a test can look at what comes out.

use std::collections::{BTreeMap, VecDeque};

use plumb_diagnose::analysis::OpSummary;
use plumb_diagnose::{Analysis, Questions, TargetLayer, analyze};
use plumb_geometry::{Bytes, Grid, GridKind};
use plumb_profile::latency_fit::LatencyByFit;
use plumb_report::format::{bytes, count, ns, percent};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Sparkline, Table, Wrap};

use super::sender;
use plumb_capture::Reading;

/// Intervals that a sparkline looks back.
const HISTORY: usize = 240;

/// Grids that a key steps through, beside those of the command line.
const GRIDS: [u64; 8] = [512, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 1 << 20];

/// Columns from which the head has room for the name of the program and the date.
const WIDE: u16 = 100;

/// By what devices are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Share of I/O off the grid, then how many.
    Misfit,
    /// I/O.
    Ios,
    /// Bytes.
    Bytes,
    /// Median latency.
    Latency,
    /// Name.
    Name,
}

impl Sort {
    const ALL: [Sort; 5] = [Sort::Misfit, Sort::Ios, Sort::Bytes, Sort::Latency, Sort::Name];

    fn word(self) -> &'static str {
        match self {
            Sort::Misfit => "misfit",
            Sort::Ios => "I/O",
            Sort::Bytes => "bytes",
            Sort::Latency => "latency",
            Sort::Name => "name",
        }
    }

    fn next(self) -> Sort {
        let at = Sort::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Sort::ALL[(at + 1) % Sort::ALL.len()]
    }
}

/// What a key asks of the program around the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
    None,
    /// To end.
    Quit,
    /// To save the profile of the whole time.
    Save,
}

/// A key as the view knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A letter or sign.
    Letter(char),
    /// One device up.
    Up,
    /// One device down.
    Down,
    /// The end of a filter.
    Enter,
    /// A letter less.
    Backspace,
    /// No filter.
    Escape,
}

/// An interval as it came.
pub struct Seen {
    /// End of the interval, UTC.
    pub time: String,
    /// Its length in seconds.
    pub seconds: f64,
    /// What the disks received, and who sent it.
    pub reading: Reading,
    /// Sentences that a reader must know.
    pub notes: Vec<String>,
    /// What was asked of file systems, as text, where that is watched.
    pub asked: Option<String>,
}

/// The view.
pub struct Screen {
    grids: Vec<Grid>,
    grid: usize,
    assumed: bool,
    sort: Sort,
    filter: String,
    typing: bool,
    frozen: bool,
    /// Whether what was asked is shown in the place of a device.
    asks: bool,
    selected: usize,
    colored: bool,
    seen: Option<Seen>,
    /// I/O of each interval, by device.
    history: BTreeMap<String, VecDeque<u64>>,
    intervals: usize,
    /// Intervals that came since the one that is shown: of a frozen view.
    behind: usize,
    ranked: Vec<Analysis>,
    /// What the program has to say, until the next key.
    pub notice: Option<String>,
}

impl Screen {
    /// A view that judges by these grids first.
    #[must_use]
    pub fn new(given: &[Grid], colored: bool) -> Screen {
        let whole = |granularity| Grid::new(Bytes(granularity), Bytes(0), GridKind::Unit).ok();
        let mut grids = given.to_vec();
        grids.extend(GRIDS.into_iter().filter_map(whole).filter(|grid| !given.contains(grid)));
        let grid =
            if given.is_empty() { grids.iter().position(|grid| *grid == Grid::ASSUMED) } else { Some(0) };
        Screen {
            grids,
            grid: grid.unwrap_or(0),
            assumed: given.is_empty(),
            sort: Sort::Misfit,
            filter: String::new(),
            typing: false,
            frozen: false,
            asks: false,
            selected: 0,
            colored,
            seen: None,
            history: BTreeMap::new(),
            intervals: 0,
            behind: 0,
            ranked: Vec::new(),
            notice: None,
        }
    }

    /// Takes in an interval. A frozen view goes on to show the one that it has.
    pub fn see(&mut self, seen: Seen) {
        self.intervals += 1;
        for profile in seen.reading.profiles.iter() {
            let past = self.history.entry(profile.device.clone()).or_default();
            // A device that was not there before had nothing to do.
            past.resize(past.len().max((self.intervals - 1).min(HISTORY)), 0);
        }
        for (device, past) in &mut self.history {
            let ios = seen
                .reading
                .profiles
                .iter()
                .filter(|profile| profile.device == *device)
                .map(|one| one.ios())
                .sum();
            past.push_back(ios);
            while past.len() > HISTORY {
                past.pop_front();
            }
        }
        if !self.frozen || self.seen.is_none() {
            self.seen = Some(seen);
            self.behind = 0;
            self.rank();
        } else {
            self.behind += 1;
        }
    }

    /// Does what a key asks.
    pub fn press(&mut self, key: Key) -> Wish {
        self.notice = None;
        if self.typing {
            match key {
                Key::Letter(letter) => self.filter.push(letter),
                Key::Backspace => drop(self.filter.pop()),
                Key::Escape => (self.typing, self.filter) = (false, String::new()),
                Key::Enter => self.typing = false,
                Key::Up | Key::Down => {}
            }
            self.rank();
            return Wish::None;
        }
        match key {
            Key::Letter('q') => return Wish::Quit,
            Key::Letter('w') => return Wish::Save,
            Key::Letter('s') => self.sort = self.sort.next(),
            Key::Letter('g') => self.step_grid(1),
            Key::Letter('G') => self.step_grid(self.grids.len() - 1),
            Key::Letter('o') => self.shift_grid(512),
            Key::Letter('f' | ' ') => self.frozen = !self.frozen,
            Key::Letter('a') => self.asks = !self.asks,
            Key::Letter('/') => self.typing = true,
            Key::Escape => self.filter.clear(),
            Key::Up | Key::Letter('k') => self.selected = self.selected.saturating_sub(1),
            Key::Down | Key::Letter('j') => self.selected += 1,
            _ => {}
        }
        self.rank();
        Wish::None
    }

    fn step_grid(&mut self, by: usize) {
        self.grid = (self.grid + by) % self.grids.len();
        self.assumed = false;
    }

    /// Moves the grid on by a sector; behind the last one it begins at 0 again.
    fn shift_grid(&mut self, by: u64) {
        let grid = self.grids[self.grid];
        let offset = Bytes((grid.offset().0 + by) % grid.granularity().0);
        if let Ok(moved) = Grid::new(grid.granularity(), offset, grid.kind()) {
            self.grids[self.grid] = moved;
            self.assumed = false;
        }
    }

    fn questions(&self) -> Questions {
        let grids = if self.assumed { Vec::new() } else { vec![self.grids[self.grid]] };
        Questions { grids, ..Questions::default() }
    }

    fn rank(&mut self) {
        let questions = self.questions();
        let Some(seen) = &self.seen else { return };
        let wanted = seen.reading.profiles.iter().filter(|profile| profile.device.contains(&self.filter));
        self.ranked = wanted.filter(|one| one.ios() > 0).map(|one| analyze(one, None, &questions)).collect();
        let sort = self.sort;
        self.ranked.sort_by(|a, b| {
            let by = match sort {
                Sort::Misfit => misfit(b).total_cmp(&misfit(a)).then(b.ios.cmp(&a.ios)),
                Sort::Ios => b.ios.cmp(&a.ios),
                Sort::Bytes => b.bytes.cmp(&a.bytes),
                Sort::Latency => median(b).cmp(&median(a)),
                Sort::Name => std::cmp::Ordering::Equal,
            };
            by.then_with(|| a.target.device.cmp(&b.target.device))
        });
        self.selected = self.selected.min(self.ranked.len().saturating_sub(1));
    }

    /// Draws the view.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let listed = (self.ranked.len() as u16 + 2).clamp(3, (area.height / 3).max(3));
        let note = self.seen.as_ref().and_then(|seen| seen.notes.first());
        // No sentence of a note is longer than two lines of 80 columns.
        let told =
            note.map_or(0, |note| note.chars().count().div_ceil(usize::from(area.width.max(1))).min(2));
        let [head, list, detail, told, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(listed),
            Constraint::Min(0),
            Constraint::Length(told as u16),
            Constraint::Length(1),
        ])
        .areas(area);
        self.draw_head(frame, head);
        self.draw_list(frame, list);
        let asked = self.seen.as_ref().and_then(|seen| seen.asked.as_deref()).filter(|_| self.asks);
        match (asked, self.ranked.get(self.selected)) {
            (Some(asked), _) => frame.render_widget(Paragraph::new(asked), detail),
            (None, Some(analysis)) => self.draw_device(frame, detail, analysis),
            (None, None) => frame.render_widget(Paragraph::new("  no I/O in this interval"), detail),
        }
        frame
            .render_widget(Paragraph::new(note.cloned().unwrap_or_default()).wrap(Wrap { trim: true }), told);
        self.draw_foot(frame, foot);
    }

    fn paint(&self, color: Color) -> Style {
        if self.colored { Style::new().fg(color) } else { Style::new() }
    }

    fn draw_head(&self, frame: &mut Frame<'_>, area: Rect) {
        let (time, seconds) = self.seen.as_ref().map_or(("waiting", 0.0), |seen| (&seen.time, seen.seconds));
        let begin = if area.width >= WIDE {
            format!("plumb watch  {time}")
        } else {
            time.split_once('T').map_or(time, |(_, of_day)| of_day).to_owned()
        };
        let assumed = if self.assumed { ", assumed" } else { "" };
        let filter = if self.filter.is_empty() { String::new() } else { format!("  filter {}", self.filter) };
        let frozen = if self.frozen { "  FROZEN" } else { "" };
        let words = format!(
            "{begin}{frozen}{filter}  {seconds:.1} s  grid {}{assumed}  by {}",
            self.grids[self.grid],
            self.sort.word()
        );
        frame.render_widget(Paragraph::new(words).style(Style::new().add_modifier(Modifier::REVERSED)), area);
    }

    fn draw_list(&self, frame: &mut Frame<'_>, area: Rect) {
        let seconds = self.seen.as_ref().map_or(1.0, |seen| seen.seconds.max(1e-9));
        let shown = usize::from(area.height.saturating_sub(1)).max(1);
        // The device that is selected stays in sight.
        let first = self.selected.saturating_sub(shown - 1);
        let rows = self.ranked.iter().enumerate().skip(first).take(shown).map(|(at, analysis)| {
            let row = self.device_row(analysis, seconds);
            if at == self.selected { row.style(Style::new().add_modifier(Modifier::REVERSED)) } else { row }
        });
        let widths = [10, 8, 7, 9, 8, 8, 8, 8, 8, 6].map(Constraint::Length);
        let titles = ["I/O/s", "bytes/s", "off", "split", "odd", "median", "99 %", "depth"];
        let names = ["device", "layer"].map(Cell::from);
        let head = Row::new(names.into_iter().chain(titles.map(figure)));
        let head = head.style(Style::new().add_modifier(Modifier::BOLD));
        frame.render_widget(Table::new(rows, widths).header(head).column_spacing(0), area);
    }

    fn device_row(&self, analysis: &Analysis, seconds: f64) -> Row<'static> {
        let share = |of: fn(&plumb_profile::FitTally) -> (u64, u64)| {
            let tally = analysis.device().and_then(|place| place.grids.first()?.all.as_ref().ok());
            tally.map_or_else(
                || "unknown".to_owned(),
                |tally| {
                    let (part, whole) = of(tally);
                    if whole == 0 { "-".to_owned() } else { percent(part as f64 / whole as f64) }
                },
            )
        };
        let off = share(|tally| (tally.misaligned, tally.ios));
        let layer = match analysis.target.layer {
            TargetLayer::Seen(layer) => layer.word(),
            TargetLayer::Stack(_) | TargetLayer::Host(_) => "-",
        };
        let color = if misfit(analysis) >= 0.01 { Color::Yellow } else { Color::Green };
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
            figure(share(|tally| (tally.split, tally.known_length()))),
            figure(share(|tally| (tally.odd_length, tally.known_length()))),
            figure(time(|quantiles| quantiles.p50_ns)),
            figure(time(|quantiles| quantiles.p99_ns)),
            figure(depth),
        ])
    }

    fn draw_device(&self, frame: &mut Frame<'_>, area: Rect, analysis: &Analysis) {
        let block = Block::new().borders(Borders::TOP).title(format!(" {} ", analysis.target));
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let [course, rest] = Layout::vertical([Constraint::Length(2), Constraint::Min(0)]).areas(inner);
        self.draw_course(frame, course, &analysis.target.device);
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(rest);
        frame.render_widget(Paragraph::new(self.size_lines(analysis, left)), left);
        frame.render_widget(Paragraph::new(self.told_lines(analysis)).wrap(Wrap { trim: false }), right);
    }

    fn draw_course(&self, frame: &mut Frame<'_>, area: Rect, device: &str) {
        let Some(past) = self.history.get(device) else { return };
        let [name, bars] = Layout::horizontal([Constraint::Length(10), Constraint::Min(0)]).areas(area);
        frame.render_widget(Paragraph::new("I/O"), name);
        let shown = past.len().saturating_sub(self.behind);
        let skipped = shown.saturating_sub(usize::from(bars.width));
        let data: Vec<u64> = past.range(skipped..shown).copied().collect();
        frame.render_widget(Sparkline::default().data(data).style(self.paint(Color::Cyan)), bars);
    }

    /// Lengths: a bar of reads and one of writes for each power of two.
    fn size_lines(&self, analysis: &Analysis, area: Rect) -> Vec<Line<'static>> {
        let mut sizes: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
        for (at, word) in ["read", "write"].into_iter().enumerate() {
            let op = analysis.ops.iter().find(|op| op.op == word);
            for (top, ios) in op.into_iter().flat_map(|op| &op.sizes) {
                sizes.entry(*top).or_default()[at] += ios;
            }
        }
        let most = sizes.values().flatten().copied().max().unwrap_or(0).max(1);
        let width = u64::from(area.width.saturating_sub(24)) / 2;
        let bar = |ios: u64| {
            let long = (ios * width).div_ceil(most) as usize;
            format!("{:<1$}", "█".repeat(long), width as usize + 1)
        };
        let mut lines = vec![
            Line::from("lengths up to   reads, writes").style(Style::new().add_modifier(Modifier::BOLD)),
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

    /// Latency by fit, streams, who sent it.
    fn told_lines(&self, analysis: &Analysis) -> Vec<Line<'static>> {
        let bold = |words: &'static str| Line::from(words).style(Style::new().add_modifier(Modifier::BOLD));
        let mut lines = vec![bold("off the grid against on it, same length")];
        let latency = analysis.device().and_then(|place| place.grids.first()?.latency.as_ref());
        lines.push(Line::from(match latency {
            Some(LatencyByFit::Difference { difference_ns, low_ns, high_ns, .. }) => format!(
                "  {:+.1} µs (95 %: {:+.1} to {:+.1})",
                difference_ns / 1e3,
                low_ns / 1e3,
                high_ns / 1e3
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
        let grid = self.grids[self.grid];
        let all =
            self.seen.iter().flat_map(|seen| seen.reading.processes.iter().map(|one| (&seen.reading, one)));
        let of_device = all.filter(|(_, process)| process.disk == analysis.target.device);
        lines.extend(of_device.take(40).map(|(reading, process)| {
            let sent = sender(process, &reading.seen_again, &grid);
            let off = sent
                .misaligned
                .map_or_else(|| "unknown".to_owned(), |off| percent(off as f64 / process.ios.max(1) as f64));
            Line::from(format!(
                "{:<13} {:>7} {:>6} {off:>7} {:>3}",
                sent.comm,
                sent.pid,
                count(sent.ios),
                sent.threads
            ))
        }));
        lines
    }

    fn draw_foot(&self, frame: &mut Frame<'_>, area: Rect) {
        let words = match (&self.notice, self.typing) {
            (Some(notice), _) => notice.clone(),
            (None, true) => format!("filter: {}_   Enter keeps it, Esc drops it", self.filter),
            (None, false) => {
                let keys = "q quit  s sort  g/G grid  o offset  / filter  f freeze  w save  ↑↓ device";
                let can_ask = self.seen.as_ref().is_some_and(|seen| seen.asked.is_some());
                if can_ask {
                    format!("a asked  {}", keys.replace("  ↑↓ device", ""))
                } else {
                    keys.to_owned()
                }
            }
        };
        frame.render_widget(Paragraph::new(words), area);
    }
}

/// A number in its column.
fn figure(words: impl Into<String>) -> Cell<'static> {
    Cell::from(Text::from(words.into()).alignment(Alignment::Right))
}

/// Share of the I/O that start off the grid; 0 where that is unknown, which is shown as such.
fn misfit(analysis: &Analysis) -> f64 {
    let tally = analysis.device().and_then(|place| place.grids.first()?.all.as_ref().ok());
    tally.map_or(0.0, |tally| tally.misaligned as f64 / tally.ios.max(1) as f64)
}

/// The operation with the most I/O.
fn busiest(analysis: &Analysis) -> Option<&OpSummary> {
    analysis.ops.iter().max_by_key(|op| op.ios)
}

fn median(analysis: &Analysis) -> u64 {
    busiest(analysis).and_then(|op| op.device.as_ref()).map_or(0, |quantiles| quantiles.p50_ns)
}

#[cfg(test)]
mod tests {
    use plumb_profile::table::{Row as Sums, Table as Residues};
    use plumb_trace::{Layer, Op};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    /// Reads of 4 KiB at these sectors modulo 1 MiB, so many of each.
    fn seen(devices: &[(&str, &[(u64, u64)])]) -> Seen {
        let mut profiles = plumb_profile::ProfileSet::default();
        for (name, starts) in devices {
            let profile = profiles.entry(name, Layer::Request, Residues::default);
            for (sector, ios) in *starts {
                profile.add_residue(
                    Op::Read,
                    sector * 512,
                    4096,
                    false,
                    &Sums { ios: *ios, ..Sums::default() },
                );
            }
        }
        let process = |disk: &&str| plumb_capture::Process {
            device: format!("{disk}1"),
            disk: (*disk).to_owned(),
            pid: 4711,
            comm: "postgres".to_owned(),
            ios: 9,
            bytes: 9 * 4096,
            threads: 3,
            by_alignment: [3, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0],
        };
        let processes = devices.iter().map(|(name, _)| process(name)).collect();
        let reading = Reading { profiles, processes, ..Reading::default() };
        Seen { time: "noon".to_owned(), seconds: 2.0, reading, notes: Vec::new(), asked: None }
    }

    #[test]
    fn what_was_asked_takes_the_place_of_a_device() {
        let mut screen = Screen::new(&[], false);
        let asked = Some("  Asked of  /srv".to_owned());
        screen.see(Seen { asked, ..seen(&[SDA]) });
        let has_asked = |screen: &Screen| drawn(screen, 80, 24).iter().any(|line| line.contains("/srv"));
        assert!(!has_asked(&screen) && line(&drawn(&screen, 80, 24), "a asked").contains("q quit"));
        press(&mut screen, "a");
        assert!(has_asked(&screen));
        press(&mut screen, "a");
        assert!(!has_asked(&screen));
        // Nothing is there to be shown where nobody watches it.
        screen.see(seen(&[SDA]));
        press(&mut screen, "a");
        assert!(line(&drawn(&screen, 80, 24), "q quit").contains("device"));
    }

    fn terminal(width: u16, height: u16) -> Terminal<TestBackend> {
        Terminal::new(TestBackend::new(width, height)).expect("a terminal in memory")
    }

    fn drawn(screen: &Screen, width: u16, height: u16) -> Vec<String> {
        let mut terminal = terminal(width, height);
        terminal.draw(|frame| screen.draw(frame)).expect("room");
        let buffer = terminal.backend().buffer().clone();
        let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
        cells.chunks(usize::from(width)).map(|line| line.concat()).collect()
    }

    fn press(screen: &mut Screen, letters: &str) {
        for letter in letters.chars() {
            screen.press(Key::Letter(letter));
        }
    }

    fn line<'a>(lines: &'a [String], begin: &str) -> &'a str {
        lines
            .iter()
            .find(|line| line.starts_with(begin))
            .unwrap_or_else(|| panic!("no {begin} in {lines:#?}"))
    }

    const SDA: (&str, &[(u64, u64)]) = ("sda", &[(0, 100), (8, 100)]);
    const SDB: (&str, &[(u64, u64)]) = ("sdb", &[(0, 30), (7, 10)]);

    #[test]
    fn devices_are_ranked_by_misfit_and_the_grid_changes_at_once() {
        let mut screen = Screen::new(&[], false);
        screen.see(seen(&[SDA, SDB]));
        let lines = drawn(&screen, 80, 24);
        assert!(lines[2].starts_with("sdb"), "{lines:#?}");
        assert!(line(&lines, "sdb").contains("25.0 %"), "{lines:#?}");
        assert!(line(&lines, "sdb").starts_with("sdb       request "), "{lines:#?}");
        assert!(line(&lines, "sda").contains(" 0 %"), "{lines:#?}");
        assert!(lines[0].contains("4 KiB at offset 0, assumed"), "{lines:#?}");
        // Of 200 I/O of sda 100 start in the middle of 8 KiB.
        assert_eq!(screen.press(Key::Letter('g')), Wish::None);
        let lines = drawn(&screen, 80, 24);
        assert!(line(&lines, "sda").contains("50.0 %"), "{lines:#?}");
        assert!(!lines[0].contains("assumed"), "{lines:#?}");
        // By name again, and back to 4 KiB, then seven sectors on.
        press(&mut screen, "ssss");
        press(&mut screen, "Gooooooo");
        let lines = drawn(&screen, 80, 24);
        assert!(lines[2].starts_with("sda") && lines[0].contains("3,584 B"), "{lines:#?}");
        assert!(line(&lines, "sdb").contains("75.0 %"), "{lines:#?}");
    }

    #[test]
    fn the_detail_is_that_of_the_selected_device() {
        let mut screen = Screen::new(&[], false);
        screen.see(seen(&[SDA, SDB]));
        screen.press(Key::Down);
        for (width, height) in [(80, 24), (200, 60)] {
            let lines = drawn(&screen, width, height);
            let text = lines.join("\n");
            assert!(text.contains("device sda (request layer)"), "{text}");
            assert!(
                text.contains("postgres") && text.contains("4711") && text.contains("33.3 %   3"),
                "{text}"
            );
            assert!(text.contains("lengths up to"), "{text}");
        }
    }

    #[test]
    fn any_size_and_devices_that_go() {
        let mut screen = Screen::new(&[Grid::ASSUMED], true);
        for devices in [&[SDA, SDB][..], &[SDB], &[], &[SDA]] {
            screen.press(Key::Down);
            screen.see(seen(devices));
            for (width, height) in [(80, 24), (200, 60), (40, 8), (20, 3), (1, 1)] {
                drawn(&screen, width, height);
            }
        }
        assert!(drawn(&screen, 80, 24)[2].starts_with("sda"));
    }

    #[test]
    fn frozen_and_filtered() {
        let mut screen = Screen::new(&[], false);
        screen.see(seen(&[SDA, SDB]));
        screen.press(Key::Letter('f'));
        let frozen = drawn(&screen, 80, 24);
        screen.see(seen(&[SDA]));
        assert_eq!(drawn(&screen, 80, 24), frozen);
        assert!(frozen[0].contains("FROZEN") && frozen.iter().any(|line| line.starts_with("sdb")));
        screen.press(Key::Letter('f'));
        screen.see(seen(&[SDA]));
        assert!(!drawn(&screen, 80, 24).iter().any(|line| line.starts_with("sdb")));
        press(&mut screen, "/sdb");
        assert_eq!(screen.press(Key::Letter('q')), Wish::None, "a letter of the filter");
        assert!(drawn(&screen, 80, 24).join("").contains("filter: sdbq_"));
        screen.press(Key::Escape);
        assert_eq!(screen.press(Key::Letter('q')), Wish::Quit);
        assert_eq!(screen.press(Key::Letter('w')), Wish::Save);
    }

    #[test]
    fn a_note_leaves_the_keys_in_sight() {
        let mut screen = Screen::new(&[], false);
        let notes = vec!["I/O issued more than once, counted once: sda".to_owned()];
        screen.see(Seen { notes, ..seen(&[SDA]) });
        let lines = drawn(&screen, 80, 24);
        assert!(
            lines[22].starts_with("I/O issued more than once") && lines[23].starts_with("q quit"),
            "{lines:#?}"
        );
    }

    /// The longest grid, a filter and a frozen view: what tells that not all is shown stands first.
    #[test]
    fn the_head_of_a_narrow_screen() {
        let mut screen = Screen::new(&[], false);
        screen.see(Seen { time: "2026-11-22T06:38:03Z".to_owned(), ..seen(&[SDA, SDB]) });
        press(&mut screen, "ooo/sdb");
        screen.press(Key::Enter);
        press(&mut screen, "f");
        let head = drawn(&screen, 80, 24).remove(0);
        assert!(
            head.starts_with("06:38:03Z  FROZEN  filter sdb  2.0 s  grid 4 KiB at offset 1,536 B"),
            "{head}"
        );
        assert!(drawn(&screen, 200, 60)[0].starts_with("plumb watch  2026-11-22T06:38:03Z  FROZEN"));
    }

    #[test]
    fn no_colour_where_none_is_wanted() {
        for colored in [false, true] {
            let mut screen = Screen::new(&[], colored);
            screen.see(seen(&[SDA, SDB]));
            let mut terminal = terminal(80, 24);
            terminal.draw(|frame| screen.draw(frame)).expect("room");
            let has_colors = terminal.backend().buffer().content().iter().any(|cell| cell.fg != Color::Reset);
            assert_eq!(has_colors, colored);
        }
    }
}
