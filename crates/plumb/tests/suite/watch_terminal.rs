//! `plumb watch` on a terminal, as a person sees it: tmux is the terminal, types the keys and hands over the screen.

use std::fs::File;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::Folder;
use crate::common::terminal::Terminal;
use plumb_testkit::loop_device::LoopDevice;
use plumb_testkit::require;

/// The name of the first device, and of the second one.
fn ranked(screen: &str) -> Vec<&str> {
    let rows = screen
        .lines()
        .skip(2)
        .take_while(|line| !line.is_empty() && !line.starts_with(' '));
    rows.filter_map(|row| row.split_whitespace().next())
        .collect()
}

/// Two disks that are read all the time: the first one 2 sectors off 4 KiB, the second one on it in I/O so much shorter
/// that it has fewer bytes even if a busy machine runs the second reader more often.
struct Disks {
    disks: [Option<LoopDevice>; 2],
    names: [String; 2],
    ended: Arc<AtomicBool>,
    readers: Vec<JoinHandle<()>>,
    folder: Folder,
}

impl Disks {
    fn new(name: &str) -> Disks {
        let folder = Folder::new(name);
        let disks = ["a", "b"].map(|disk| {
            let image = folder.path(disk);
            File::create(&image)
                .and_then(|file| file.set_len(64 << 20))
                .expect("room for a sparse file");
            LoopDevice::attach_hidden(&image, &[])
        });
        let ended = Arc::new(AtomicBool::new(false));
        let reader = |(disk, read): (&LoopDevice, [&str; 2])| {
            let input = format!("if={}", disk.path().display());
            let read = read.map(str::to_owned);
            let ended = ended.clone();
            std::thread::spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    // Ends early if the disk disappears, as one test wants.
                    let _ = Command::new("dd")
                        .args([
                            &input,
                            "of=/dev/null",
                            "iflag=direct,skip_bytes",
                            "count=20",
                            "status=none",
                        ])
                        .args(&read)
                        .output();
                    std::thread::sleep(Duration::from_millis(20));
                }
            })
        };
        let readers = disks
            .iter()
            .zip([["bs=64k", "skip=17408"], ["bs=4k", "skip=0"]])
            .map(reader)
            .collect();
        let names = disks.each_ref().map(LoopDevice::name);
        Disks {
            disks: disks.map(Some),
            names,
            ended,
            readers,
            folder,
        }
    }

    fn watch(&self, flags: &str) -> String {
        let program = env!("CARGO_BIN_EXE_plumb");
        format!(
            "clear; {program} watch {} --interval 500ms {flags}; echo status $?",
            self.names.join(" ")
        )
    }

    fn stop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.readers
            .drain(..)
            .for_each(|reader| reader.join().expect("a reader"));
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        self.stop();
    }
}

#[test]
fn keys_act_as_the_last_line_says() {
    require!(Bpf, Loop, Tool("tmux"), Tool("dd"));
    let disks = Disks::new("terminal-keys");
    let [first, second] = &disks.names;
    let saved = disks.folder.path("saved.profile");
    let terminal = Terminal::open("keys", 80, 24, "");
    terminal.press(&[
        &disks.watch(&format!("--save {}", saved.display())),
        "Enter",
    ]);
    let both = |screen: &str| ranked(screen).len() == 2;
    let screen = terminal.until("both disks", both);
    assert_eq!(ranked(&screen), [first, second], "by misfit\n{screen}");
    assert!(
        screen.contains("grid 4 KiB at offset 0, assumed  by misfit"),
        "{screen}"
    );
    assert!(
        screen.contains(&format!(" device {first} (request layer)")),
        "{screen}"
    );
    assert!(
        screen
            .lines()
            .last()
            .is_some_and(|line| line.starts_with("q quit")),
        "{screen}"
    );
    // Sectors 2 mod 8 are on a grid of 4 KiB that begins two sectors on.
    terminal.press(&["o", "o"]);
    let screen = terminal.shows("grid 4 KiB at offset 1 KiB");
    assert_eq!(ranked(&screen)[0], second, "{screen}");
    terminal.press(&["g"]);
    terminal.shows("grid 8 KiB at offset 0");
    terminal.press(&["G", "s", "s"]);
    let screen = terminal.shows("by bytes");
    assert_eq!(ranked(&screen), [first, second], "{screen}");
    terminal.press(&["j"]);
    terminal.shows(&format!(" device {second} (request layer)"));
    // Clicks of the left button on the rows of both disks.
    for (row, name) in [(3, first), (4, second)] {
        terminal.tmux(&["send-keys", "-l", &format!("\u{1b}[<0;5;{row}M")]);
        terminal.shows(&format!(" device {name} (request layer)"));
    }
    terminal.press(&["+"]);
    terminal.shows("intervals of 1 s from now on");
    terminal.press(&["-"]);
    terminal.shows("intervals of 0.5 s from now on");
    terminal.press(&["/"]);
    terminal.shows("filter: _");
    terminal.press(&[second, "Enter"]);
    let screen = terminal.until("the filter", |screen| ranked(screen) == [second]);
    assert!(
        screen
            .lines()
            .next()
            .is_some_and(|head| head.contains(&format!("filter {second}"))),
        "{screen}"
    );
    terminal.press(&["f"]);
    let frozen = terminal.shows("FROZEN");
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(terminal.screen(), frozen);
    terminal.press(&["f"]);
    terminal.until("it to go on", |screen| {
        screen != frozen && !screen.contains("FROZEN")
    });
    terminal.press(&["Escape"]);
    terminal.until("both disks", both);
    terminal.press(&["w"]);
    // The line may be longer than the screen is wide.
    terminal.shows("saved /");
    assert!(std::fs::metadata(&saved).is_ok_and(|file| file.len() > 0));
    terminal.press(&["q"]);
    terminal.shows("status 1");
    terminal.is_restored();
}

/// Ctrl-Z gives the terminal back to the shell, and `fg` brings the view back.
#[test]
fn ctrl_z_stops_and_fg_goes_on() {
    require!(Bpf, Loop, Tool("tmux"), Tool("dd"));
    let disks = Disks::new("terminal-stop");
    let terminal = Terminal::open("stop", 80, 24, "");
    terminal.press(&[&disks.watch(""), "Enter"]);
    terminal.shows("q quit");
    terminal.press(&["C-z"]);
    terminal.shows("Stopped");
    terminal.press(&["echo $((40+2))now", "Enter"]);
    terminal.shows("42now");
    terminal.press(&["fg", "Enter"]);
    terminal.until("the view", |screen| {
        !screen.contains("42now") && screen.contains("q quit")
    });
    terminal.press(&["q"]);
    terminal.shows("ready:");
    // The words of the command line behind it were printed when it stopped.
    terminal.press(&["clear; echo status here", "Enter"]);
    terminal.is_restored();
}

#[test]
fn a_terminal_that_changes_its_size() {
    require!(Bpf, Loop, Tool("tmux"), Tool("dd"));
    let disks = Disks::new("terminal-size");
    let terminal = Terminal::open("size", 80, 24, "");
    terminal.press(&[&disks.watch(""), "Enter"]);
    let whole = |width: usize, height: usize| {
        move |screen: &str| {
            let lines: Vec<&str> = screen.lines().collect();
            // A border runs over the whole width, and the keys are in the last line.
            let is_wide = lines
                .iter()
                .any(|line| line.ends_with('─') && line.chars().count() == width);
            is_wide && lines.len() == height && lines[height - 1].starts_with("q quit")
        }
    };
    terminal.until("80 by 24", whole(80, 24));
    for (width, height) in [(200, 50), (120, 40), (200, 60), (80, 24), (120, 30)] {
        terminal.tmux(&[
            "resize-window",
            "-x",
            &width.to_string(),
            "-y",
            &height.to_string(),
        ]);
        let screen = terminal.until(&format!("{width} by {height}"), whole(width, height));
        assert!(
            screen.contains("lengths up to") && screen.contains("dd "),
            "{screen}"
        );
    }
    // Too small for anything, and back.
    terminal.tmux(&["resize-window", "-x", "10", "-y", "2"]);
    std::thread::sleep(Duration::from_millis(700));
    terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
    terminal.until("80 by 24", whole(80, 24));
    terminal.press(&["C-c"]);
    terminal.is_restored();
}

/// The letters that set a colour, for this terminal.
fn has_colors(screen: &str) -> bool {
    let codes = screen
        .split("\u{1b}[")
        .skip(1)
        .filter_map(|rest| rest.split_once('m'));
    codes.flat_map(|(code, _)| code.split(';')).any(|code| {
        code.parse::<u8>()
            .is_ok_and(|code| (30..=38).contains(&code) || (40..=48).contains(&code) || code >= 90)
    })
}

#[test]
fn no_color_is_heeded() {
    require!(Bpf, Loop, Tool("tmux"), Tool("dd"));
    let disks = Disks::new("terminal-color");
    for (environment, is_colored) in [("-u NO_COLOR", true), ("NO_COLOR=1", false)] {
        let terminal = Terminal::open(&format!("color-{is_colored}"), 80, 24, environment);
        terminal.press(&[&disks.watch(""), "Enter"]);
        terminal.until("both disks", |screen| ranked(screen).len() == 2);
        let screen = terminal.tmux(&["capture-pane", "-p", "-e"]);
        assert_eq!(has_colors(&screen), is_colored, "{screen:?}");
        terminal.press(&["q"]);
        terminal.is_restored();
    }
}

#[test]
fn disks_that_go_while_they_are_watched() {
    require!(Bpf, Loop, Tool("tmux"), Tool("dd"));
    let mut disks = Disks::new("terminal-gone");
    let [first, second] = disks.names.clone();
    let terminal = Terminal::open("gone", 80, 24, "");
    terminal.press(&[&disks.watch(""), "Enter"]);
    terminal.until("both disks", |screen| ranked(screen).len() == 2);
    terminal.press(&["j"]);
    terminal.shows(&format!(" device {second} (request layer)"));
    drop(disks.disks[1].take());
    terminal.until("the other disk", |screen| ranked(screen) == [&first]);
    terminal.shows(&format!(" device {first} (request layer)"));
    drop(disks.disks[0].take());
    let screen = terminal.shows("no I/O in this interval");
    assert!(!screen.contains("panicked"), "{screen}");
    terminal.press(&["q"]);
    // Earlier I/O stay in the totals.
    terminal.shows("status 1");
    terminal.is_restored();
}

/// A window that is closed: the counts are saved, and nothing stays behind.
#[test]
fn a_terminal_that_hangs_up() {
    require!(Bpf, Loop, Tool("tmux"), Tool("dd"));
    let disks = Disks::new("terminal-hangup");
    let [saved, pid] = ["saved.profile", "pid"].map(|name| disks.folder.path(name));
    let script = disks.folder.file(
        "script",
        format!(
            "echo $$ >{}; exec {} watch {} --interval 500ms --save {}\n",
            pid.display(),
            env!("CARGO_BIN_EXE_plumb"),
            disks.names[0],
            saved.display()
        ),
    );
    let terminal = Terminal::open("hangup", 80, 24, "");
    terminal.press(&[&format!("clear; sh {}", script.display()), "Enter"]);
    terminal.until("the disk", |screen| ranked(screen) == [&disks.names[0]]);
    let pid = std::fs::read_to_string(pid).expect("its number");
    let process = std::path::Path::new("/proc").join(pid.trim());
    assert!(process.exists());
    drop(terminal);
    let began = Instant::now();
    while process.exists() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "still there: {}",
            process.display()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(std::fs::metadata(&saved).is_ok_and(|file| file.len() > 0));
}
