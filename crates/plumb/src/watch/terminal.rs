//! The terminal around the full-screen view: intervals come in, keys come in, the view is drawn.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use plumb_capture::Block;
use plumb_report::text::{self, Color};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::screen::{Key, Screen, Seen, Wish};
use super::{Whole, following, notes};
use crate::cli::Watch;
use crate::failure::Failure;
use crate::output;

/// How long a key may have to wait when a signal is to be noticed too.
const GLANCE: Duration = Duration::from_millis(100);

/// Shows the view until it is quit, a signal comes, or the intervals are over.
///
/// # Errors
/// When the terminal cannot be used.
pub(super) fn run(
    args: &Watch,
    block: &mut Block,
    whole: &mut Whole,
    ended: &AtomicBool,
) -> Result<(), Failure> {
    let colored = output::color(args.color) == Color::Always;
    let mut screen = Screen::new(&args.grids(), colored);
    let mut terminal = ratatui::try_init().map_err(|error| {
        // Some of it may have been done.
        let _ = ratatui::try_restore();
        Failure::failed(&error)
    })?;
    let done = show(args, block, whole, ended, &mut screen, &mut terminal);
    // Whatever happened, the terminal is to be usable again.
    if ratatui::try_restore().is_err() {
        // It has hung up: ratatui would write of that to standard error, which is gone too, and panic.
        std::mem::forget(terminal);
    }
    done
}

fn show(
    args: &Watch,
    block: &mut Block,
    whole: &mut Whole,
    ended: &AtomicBool,
    screen: &mut Screen,
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(&error);
    let events = events();
    let mut last = Instant::now();
    let (mut next, mut number) = (last + args.interval, 1);
    loop {
        terminal.draw(|frame| screen.draw(frame)).map_err(failed)?;
        let left = next.saturating_duration_since(Instant::now());
        match events.recv_timeout(left.min(GLANCE)) {
            Ok(event) => match key_of(&event).map_or(Wish::None, |key| screen.press(key)) {
                Wish::Quit => ended.store(true, Ordering::Relaxed),
                Wish::Save => screen.notice = Some(save(args, whole)),
                Wish::None => {}
            },
            Err(RecvTimeoutError::Timeout) => {}
            // Nobody can press a key any more.
            Err(RecvTimeoutError::Disconnected) => ended.store(true, Ordering::Relaxed),
        }
        block.keep_up();
        let is_over = ended.load(Ordering::Relaxed);
        let now = Instant::now();
        if now >= next || is_over {
            whole.before_reading(block, is_over || args.count == Some(number));
            let reading = block.read();
            whole.add(&reading);
            let seconds = (now - std::mem::replace(&mut last, now)).as_secs_f64();
            let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
            let mut notes = notes(&reading, &whole.filter);
            if let Some(filter) = whole.filter.words() {
                notes.insert(0, format!("filtered: only {filter}"));
            }
            let asked = whole.app.as_ref().map(|app| text::asked(&app.last, Color::Never));
            screen.see(Seen { time, seconds, reading, notes, asked });
            if is_over || args.count == Some(number) {
                return Ok(());
            }
            number += 1;
            next = following(next, args.interval);
        }
    }
}

/// What is pressed, read by a thread of its own: crossterm 0.29 never comes back from a terminal that has hung up, and the
/// signal that says so would not be looked at.
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

/// Saves the profile of the time so far, and says where.
fn save(args: &Watch, whole: &Whole) -> String {
    let path = args.save.clone().unwrap_or_else(|| PathBuf::from("watch.profile"));
    match whole.save(&path) {
        Ok(()) => format!("saved {}: plumb analyze reads it", path.display()),
        Err(failure) => format!("not saved: {}", failure.words("")),
    }
}

fn key_of(event: &Event) -> Option<Key> {
    let Event::Key(KeyEvent { code, modifiers, kind, .. }) = event else { return None };
    if *kind == KeyEventKind::Release {
        return None;
    }
    Some(match code {
        // A raw terminal sends no signal for it.
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Key::Letter('q'),
        KeyCode::Char(letter) => Key::Letter(*letter),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Enter => Key::Enter,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Esc => Key::Escape,
        _ => return None,
    })
}
