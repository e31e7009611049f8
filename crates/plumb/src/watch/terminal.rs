//! The terminal around the full-screen view: intervals come in, keys come in, the view is drawn.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use plumb_capture::BlockWatch;
use plumb_report::text::{self, Color};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::screen::{Screen, ShownInterval, ViewKey, WatchSubject, Wish};
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
    block: &mut BlockWatch,
    whole: &mut Whole,
    ended: &AtomicBool,
) -> Result<(), Failure> {
    let colored = output::color(args.color) == Color::Always;
    let mut screen = Screen::new(watched(args, whole), &args.grids(), colored);
    let mut terminal = ratatui::try_init().map_err(|error| {
        // Some of it may have been done.
        let _ = ratatui::try_restore();
        Failure::failed(&error)
    })?;
    let done = show(args, block, whole, ended, &mut screen, &mut terminal);
    // In any case, the terminal must be usable again.
    if ratatui::try_restore().is_err() {
        // It has hung up: ratatui would write of that to standard error, which is gone too, and panic.
        std::mem::forget(terminal);
    }
    done
}

fn watched(args: &Watch, whole: &Whole) -> WatchSubject {
    let name = |device: &String| device.strip_prefix("/dev/").unwrap_or(device).to_owned();
    WatchSubject {
        disks: args.devices.iter().map(name).collect(),
        how: whole.how.clone(),
        filter: whole.filter.text(),
        interval_s: args.interval.as_secs_f64(),
    }
}

fn show(
    args: &Watch,
    block: &mut BlockWatch,
    whole: &mut Whole,
    ended: &AtomicBool,
    screen: &mut Screen,
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed(&error);
    let events = events();
    let mut last = Instant::now();
    let (mut next, mut number) = (last + args.interval, 1);
    let mut saved_as = args.save.clone();
    loop {
        terminal.draw(|frame| screen.draw(frame)).map_err(failed)?;
        let left = next.saturating_duration_since(Instant::now());
        match events.recv_timeout(left.min(GLANCE)) {
            Ok(event) if is_suspend(&event) => suspend(terminal).map_err(failed)?,
            Ok(event) => match key_of(&event).map_or(Wish::None, |key| screen.press(key)) {
                Wish::Quit => ended.store(true, Ordering::Relaxed),
                Wish::Save => screen.notice = Some(save(&mut saved_as, whole)),
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
            if let Some(filter) = whole.filter.text() {
                notes.insert(0, format!("filtered: only {filter}"));
            }
            let asked = whole
                .app
                .as_ref()
                .map(|app| text::asked(&app.last, Color::Never));
            screen.see(ShownInterval {
                time,
                seconds,
                reading,
                notes,
                asked,
            });
            if is_over || args.count == Some(number) {
                return Ok(());
            }
            number += 1;
            next = following(next, args.interval);
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
    ratatui::try_restore()?;
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)?;
    *terminal = ratatui::try_init()?;
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
    fn a_name_that_nobody_gave_is_free() {
        let folder = tempfile::tempdir().expect("a directory");
        for expected in ["watch.profile", "watch-2.profile", "watch-3.profile"] {
            assert_eq!(free_name(folder.path()), Path::new(expected));
            std::fs::write(folder.path().join(expected), "").expect("a file");
        }
    }
}
