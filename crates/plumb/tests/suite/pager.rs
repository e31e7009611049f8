//! The pager of `plumb explain` and `plumb help` on a terminal.

use std::path::Path;

use crate::common::Folder;
use crate::common::terminal::Terminal;
use plumb_testkit::require;

/// The first line of the page.
const HEAD: &str = "misaligned-partition: data start off a grid";

/// Runs a command on a terminal with this environment, and returns everything that it printed.
fn shown(name: &str, environment: &str, command: &str) -> String {
    let environment = format!("{environment} LC_ALL=C.UTF-8 TERM=screen");
    let terminal = Terminal::open(name, 100, 50, &environment);
    let program = env!("CARGO_BIN_EXE_plumb");
    terminal.press(&[
        &format!("clear; {program} {command}; echo 'sta''tus' $?"),
        "Enter",
    ]);
    terminal.shows("status 0");
    terminal.tmux(&["capture-pane", "-p", "-J", "-S", "-1000"])
}

fn heads(screen: &str) -> usize {
    screen.lines().filter(|line| line.starts_with(HEAD)).count()
}

#[test]
fn the_pager_of_the_user_has_the_page() {
    require!(Tool("tmux"));
    let folder = Folder::new("pager");
    let kept = folder.path("kept");
    let pager = format!("PAGER='cat >{}; echo paged'", kept.display());
    let screen = shown("pager-own", &pager, "explain misaligned-partition");
    assert!(screen.lines().any(|line| line == "paged"), "{screen}");
    assert_eq!(heads(&screen), 0, "{screen}");
    let page = std::fs::read_to_string(&kept).expect("the page");
    assert_eq!(heads(&page), 1, "{page}");
    // `plumb help` has the same pager.
    let screen = shown("pager-help", &pager, "help probe");
    assert!(screen.lines().any(|line| line == "paged"), "{screen}");
    let help = std::fs::read_to_string(&kept).expect("the help");
    assert!(help.contains("Usage: plumb probe"), "{help}");
}

/// A terminal without `less` gets the page once, without a complaint of the shell.
#[test]
fn without_a_pager_the_page_is_printed_once() {
    require!(Tool("tmux"));
    let folder = Folder::new("no-pager");
    let tools = folder.path("bin");
    std::fs::create_dir(&tools).expect("a folder for tools");
    for tool in ["sh", "clear", "env"] {
        let found = ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(tool));
        let found = found.iter().find(|path| path.exists()).expect("a tool");
        std::os::unix::fs::symlink(found, tools.join(tool)).expect("a link");
    }
    let environment = format!("-u PAGER PATH={}", tools.display());
    let screen = shown("pager-none", &environment, "explain misaligned-partition");
    assert_eq!(heads(&screen), 1, "{screen}");
    assert!(!screen.contains("not found"), "{screen}");
    let screen = shown(
        "pager-bad",
        "PAGER=no-such-pager",
        "explain misaligned-partition",
    );
    assert_eq!(heads(&screen), 1, "{screen}");
}
