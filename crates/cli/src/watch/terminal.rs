//! The terminal around the full-screen view: intervals come in, keys come in, the view is drawn.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use plumb_report::text::{self, Color};
use ratatui::crossterm::event::{
    self, DisableMouseCapture, EnableMouseCapture, Event, KeyCode, KeyEvent, KeyEventKind,
    KeyModifiers, MouseButton, MouseEventKind,
};
use ratatui::crossterm::execute;

use super::feed::{FedInterval, Feed};
use super::screen::{Screen, ShownInterval, ViewKey, WatchSubject, Wish};
use super::{Whole, following, notes};
use crate::cli::Watch;
use crate::failure::Failure;
use crate::output;

/// How long a key may have to wait when a signal is to be noticed too.
const GLANCE: Duration = Duration::from_millis(100);

/// Lengths of an interval that the keys + and - step through, in ms.
const INTERVALS_MS: [u64; 13] = [
    100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 3_600_000,
    86_400_000,
];

/// Shows the view until it is quit, a signal comes, or the intervals are over.
///
/// # Errors
/// When the terminal cannot be used.
pub(super) fn run(
    args: &Watch,
    feed: &mut Feed,
    whole: &mut Whole,
    ended: &AtomicBool,
) -> Result<(), Failure> {
    let colored = output::color(args.color) == Color::Always;
    let ascii = output::is_ascii_only(|name| std::env::var(name).ok());
    let interval = args.interval.max(feed.shortest());
    let mut screen = Screen::new(
        watched(args, whole, interval),
        &args.grids(),
        colored,
        ascii,
    );
    let mut terminal = take_terminal().map_err(|error| {
        // Some of it may have been done.
        let _ = give_back_terminal();
        Failure::failed(&error)
    })?;
    let mut view = Playing {
        args,
        feed,
        whole,
        ended,
        interval,
        number: 1,
        next: Instant::now(),
        is_over: false,
    };
    let done = view.show(&mut screen, &mut terminal);
    // In any case, the terminal must be usable again.
    if give_back_terminal().is_err() {
        // It has hung up: ratatui would write of that to standard error, which is gone too, and panic.
        std::mem::forget(terminal);
    }
    done
}

fn take_terminal() -> std::io::Result<ratatui::DefaultTerminal> {
    let terminal = ratatui::try_init()?;
    execute!(std::io::stdout(), EnableMouseCapture)?;
    Ok(terminal)
}

fn give_back_terminal() -> std::io::Result<()> {
    let mouse = execute!(std::io::stdout(), DisableMouseCapture);
    ratatui::try_restore().and(mouse)
}

fn watched(args: &Watch, whole: &Whole, interval: Duration) -> WatchSubject {
    let name = |device: &String| device.strip_prefix("/dev/").unwrap_or(device).to_owned();
    WatchSubject {
        disks: args.devices.iter().map(name).collect(),
        how: whole.how.clone(),
        filter: whole.filter.text(),
        interval_s: interval.as_secs_f64(),
    }
}

/// A view that is open.
struct Playing<'a> {
    args: &'a Watch,
    feed: &'a mut Feed,
    whole: &'a mut Whole,
    ended: &'a AtomicBool,
    interval: Duration,
    /// The number of the present interval, from 1.
    number: u64,
    /// When the present interval ends.
    next: Instant,
    /// Whether a recording has come to its end: the view stays open.
    is_over: bool,
}

impl Playing<'_> {
    fn show(
        &mut self,
        screen: &mut Screen,
        terminal: &mut ratatui::DefaultTerminal,
    ) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::failed(&error);
        let events = events();
        self.next = Instant::now() + self.pace();
        let mut saved_as = self.args.save.clone();
        let mut is_changed = true;
        loop {
            if std::mem::take(&mut is_changed) {
                terminal.draw(|frame| screen.draw(frame)).map_err(failed)?;
            }
            let left = self.next.saturating_duration_since(Instant::now());
            let left = if self.is_over {
                GLANCE
            } else {
                left.min(GLANCE)
            };
            let event = events.recv_timeout(left);
            is_changed |= event.is_ok();
            match event {
                Ok(event) if is_suspend(&event) => suspend(terminal).map_err(failed)?,
                Ok(event) => match key_of(&event).map_or(Wish::None, |key| screen.press(key)) {
                    Wish::Quit => self.ended.store(true, Ordering::Relaxed),
                    Wish::Save => screen.notice = Some(save(&mut saved_as, self.whole)),
                    Wish::Longer => screen.notice = Some(self.change_interval(true)),
                    Wish::Shorter => screen.notice = Some(self.change_interval(false)),
                    Wish::None => {}
                },
                Err(RecvTimeoutError::Timeout) => {}
                // Nobody can press a key any more.
                Err(RecvTimeoutError::Disconnected) => self.ended.store(true, Ordering::Relaxed),
            }
            self.feed.keep_up();
            let is_ended = self.ended.load(Ordering::Relaxed);
            if is_ended && (self.is_over || !self.feed.is_live()) {
                return Ok(());
            }
            if !self.is_over && (is_ended || Instant::now() >= self.next) {
                let is_last = is_ended || self.args.count == Some(self.number);
                let fed = self.feed.next(self.interval, self.whole, is_last)?;
                let is_last = fed.is_last;
                screen.see(self.shown(fed));
                is_changed = true;
                if is_last && self.feed.is_live() {
                    return Ok(());
                }
                self.is_over = is_last;
                self.number += 1;
                self.next = following(self.next, self.pace());
            }
        }
    }

    /// How long an interval takes here.
    fn pace(&self) -> Duration {
        match self.feed.is_live() {
            true => self.interval,
            false => self.feed.pace(self.interval).div_f64(self.args.speed),
        }
    }

    fn change_interval(&mut self, is_longer: bool) -> String {
        let shortest = self.feed.shortest();
        let steps = INTERVALS_MS.map(Duration::from_millis).into_iter();
        let mut steps = steps.filter(|step| *step >= shortest);
        let found = match is_longer {
            true => steps.find(|step| *step > self.interval),
            false => steps.rfind(|step| *step < self.interval),
        };
        let Some(interval) = found else {
            return format!("the interval stays at {} s", self.interval.as_secs_f64());
        };
        let before = self.pace();
        self.interval = interval;
        // The present interval has the new length too, unless it is already longer.
        self.next = (self.next + self.pace())
            .checked_sub(before)
            .unwrap_or(self.next);
        format!("intervals of {} s from now on", interval.as_secs_f64())
    }

    fn shown(&self, fed: FedInterval) -> ShownInterval {
        let mut notes = notes(&fed.reading, &self.whole.filter);
        notes.extend(fed.notes);
        if let Some(filter) = self.whole.filter.text() {
            notes.insert(0, format!("filtered: only {filter}"));
        }
        let app = self.whole.app.as_ref();
        ShownInterval {
            time: fed.time,
            seconds: fed.seconds,
            position: fed.position,
            reading: fed.reading,
            notes,
            asked: app.map(|app| text::asked(&app.last, Color::Never)),
        }
    }
}

/// Ctrl-Z: a raw terminal sends no signal for it.
fn is_suspend(event: &Event) -> bool {
    matches!(
        event,
        Event::Key(KeyEvent {
            code: KeyCode::Char('z'),
            modifiers: KeyModifiers::CONTROL,
            kind: KeyEventKind::Press,
            ..
        })
    )
}

/// Gives the terminal back and stops, as any program does at Ctrl-Z; continues at the shell's `fg`.
fn suspend(terminal: &mut ratatui::DefaultTerminal) -> std::io::Result<()> {
    give_back_terminal()?;
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)?;
    *terminal = take_terminal()?;
    Ok(())
}

/// The keys pressed, read by a separate thread: crossterm 0.29 never comes back from a terminal that has hung up, and
/// the signal for that would not be seen.
fn events() -> Receiver<Event> {
    let (sender, events) = mpsc::channel();
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    events
}

/// Saves the profile of the time so far, and reports the path. Without a given name, it uses a free one, and keeps it.
fn save(saved_as: &mut Option<PathBuf>, whole: &Whole) -> String {
    let path = saved_as
        .get_or_insert_with(|| free_name(Path::new(".")))
        .clone();
    match whole.save(&path) {
        Ok(()) => format!("saved {}: plumb analyze reads it", path.display()),
        Err(failure) => format!("not saved: {}", failure.text("")),
    }
}

/// A name in a directory that no file has: nobody agreed to the loss of one.
fn free_name(directory: &Path) -> PathBuf {
    let further = (2..).map(|number| format!("watch-{number}.profile"));
    let names = std::iter::once("watch.profile".to_owned()).chain(further);
    let mut free = names
        .map(PathBuf::from)
        .filter(|name| directory.join(name).symlink_metadata().is_err());
    free.next()
        .unwrap_or_else(|| PathBuf::from("watch.profile"))
}

fn key_of(event: &Event) -> Option<ViewKey> {
    if let Event::Mouse(mouse) = event {
        return match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => Some(ViewKey::Click(mouse.row)),
            MouseEventKind::ScrollUp => Some(ViewKey::Up),
            MouseEventKind::ScrollDown => Some(ViewKey::Down),
            _ => None,
        };
    }
    let Event::Key(KeyEvent {
        code,
        modifiers,
        kind,
        ..
    }) = event
    else {
        return None;
    };
    if *kind == KeyEventKind::Release {
        return None;
    }
    Some(match code {
        // A raw terminal sends no signal for it.
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => ViewKey::Letter('q'),
        KeyCode::Char(letter) => ViewKey::Letter(*letter),
        KeyCode::Up => ViewKey::Up,
        KeyCode::Down => ViewKey::Down,
        KeyCode::PageUp => ViewKey::PageUp,
        KeyCode::PageDown => ViewKey::PageDown,
        KeyCode::Left => ViewKey::Left,
        KeyCode::Right => ViewKey::Right,
        KeyCode::End => ViewKey::End,
        KeyCode::Enter => ViewKey::Enter,
        KeyCode::Backspace => ViewKey::Backspace,
        KeyCode::Esc => ViewKey::Escape,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_names_are_free() {
        let folder = tempfile::tempdir().expect("a directory");
        for expected in ["watch.profile", "watch-2.profile", "watch-3.profile"] {
            assert_eq!(free_name(folder.path()), Path::new(expected));
            std::fs::write(folder.path().join(expected), "").expect("a file");
        }
    }
}
