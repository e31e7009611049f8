//! The pictures of the README are screens of real sessions. These tests repeat the sessions and compare the screens;
//! `scripts/pictures` rewrites the pictures.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::picture::Picture;
use crate::common::terminal::Terminal;
use plumb_testkit::{require, wait};

/// The trace of PostgreSQL on a partition at sector 34.
const TRACE: &str = "examples/traces/postgres-sector34.txt.gz";

/// A terminal in the folder of the project, with all signs and colours.
fn terminal(name: &str, columns: u16, rows: u16) -> Terminal {
    let terminal = Terminal::open(name, columns, rows, "LC_ALL=C.UTF-8 TERM=screen-256color");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bin = Path::new(env!("CARGO_BIN_EXE_plumb")).with_file_name("");
    let begin = format!(
        "cd {}; PATH={}:$PATH; PS1='$ '; clear",
        root.display(),
        bin.display()
    );
    terminal.press(&[&begin, "Enter"]);
    terminal.until("an empty screen", |screen| screen.trim() == "$");
    terminal
}

/// Compares a picture with its file, or writes the file.
#[track_caller]
fn assert_fresh(name: &str, picture: &Picture) {
    assert_eq!(difference(name, picture), None);
}

/// The difference of a picture from that in the documents.
fn difference(name: &str, picture: &Picture) -> Option<String> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/img/{name}.svg"));
    let svg = picture.svg();
    if std::env::var_os("PLUMB_BLESS").is_some() {
        std::fs::write(&file, svg).expect("room for a picture");
        return None;
    }
    let drawn = std::fs::read_to_string(&file).unwrap_or_default();
    let mut lines = drawn.lines().zip(svg.lines());
    let differs = lines.find(|(old, new)| old != new);
    (drawn != svg).then(|| {
        format!(
            "{} differs, first {differs:?}; scripts/pictures rewrites it",
            file.display()
        )
    })
}

/// The beginning of an answer.
#[test]
fn a_verdict() {
    require!(Tool("tmux"));
    let terminal = terminal("picture-verdict", 80, 24);
    let command = format!("plumb analyze {TRACE}");
    terminal.press(&[&command, "Enter"]);
    terminal.until("the end", |screen| screen.trim_end().ends_with("\n$"));
    let all = terminal.tmux(&["capture-pane", "-p", "-e", "-S", "-1000"]);
    let rows = 24;
    let from_prompt = all.lines().skip_while(|line| !line.contains(&command));
    assert_fresh(
        "verdict",
        &Picture {
            title: format!("plumb analyze {TRACE}: the verdict, and the finding with its evidence"),
            columns: 80,
            rows,
            seconds_each: 1.0,
            screens: vec![from_prompt.take(rows).collect::<Vec<_>>().join("\n")],
        },
    );
}

/// The view of a watch, which plays the trace: first all disks, then the page of the busiest one.
#[test]
fn a_watch() {
    require!(Tool("tmux"));
    let (columns, rows) = (100, 28);
    let terminal = terminal("picture-watch", columns, rows);
    let command = format!("plumb watch --from {TRACE} --interval 1s --speed 2");
    terminal.press(&[&command, "Enter"]);
    let mut screens: Vec<String> = Vec::new();
    for second in 1..=24 {
        let moment = format!("+00:{second:02}.0");
        let mut shown = String::new();
        let limit = Duration::from_secs(30);
        wait::until(&format!("the interval of {moment}"), limit, || {
            shown = terminal.tmux(&["capture-pane", "-p", "-e"]);
            // A screen that is drawn only in part is not the same twice.
            shown.contains(&moment) && shown == terminal.tmux(&["capture-pane", "-p", "-e"])
        });
        screens.push(shown);
        if second == 12 {
            terminal.press(&["Enter"]);
        }
    }
    let picture = Picture {
        title: "plumb watch: I/O of PostgreSQL on a misaligned partition, all disks and then one of them".to_owned(),
        columns: usize::from(columns),
        rows: usize::from(rows),
        seconds_each: 0.5,
        screens,
    };
    if let Some(why) = difference("watch", &picture) {
        // On a busy machine tmux shows a part of a screen, twice in a row.
        plumb_testkit::undecided!(why);
    }
}
