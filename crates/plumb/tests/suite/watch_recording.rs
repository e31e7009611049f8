//! `plumb watch --from`: a recording played as if it were live. The trace of PostgreSQL has its counts beside it, made with
//! another program (see `examples/traces/README.md`).

use std::path::{Path, PathBuf};

use crate::common::terminal::Terminal;
use crate::common::{Folder, plumb};
use plumb_testkit::require;

fn trace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/postgres-sector34.txt.gz")
}

/// A number of `postgres-sector34.counts`.
fn counted(name: &str) -> u64 {
    let counts = trace().with_file_name("postgres-sector34.counts");
    let counts = std::fs::read_to_string(counts).expect("the counts");
    let line = counts.lines().find_map(|line| {
        let (counted, number) = line.split_once(' ')?;
        (counted == name).then(|| number.parse().expect("a number"))
    });
    line.unwrap_or_else(|| panic!("{name} is counted"))
}

/// The numbers before a word at the beginning of lines: `4,855 reads`.
fn numbers(text: &str, word: &str) -> Vec<u64> {
    let number = |line: &str| {
        let mut words = line.split_whitespace();
        let number = words.next()?.replace(',', "").parse().ok()?;
        (words.next()? == word).then_some(number)
    };
    text.lines().filter_map(number).collect()
}

#[test]
fn intervals_add_up_to_the_recording() {
    let folder = Folder::new("watch-recording");
    let saved = folder.path("saved.profile");
    let path = trace();
    let path = path.to_str().expect("text");
    let saved = saved.to_str().expect("text");
    let ran = plumb([
        "watch",
        "--from",
        path,
        "--interval",
        "2s",
        "--plain",
        "--save",
        saved,
    ]);
    ran.ends(1);
    let reads = numbers(&ran.out, "reads");
    // 24.2 s are 12 whole intervals and a part, and the totals have all of them once more.
    assert_eq!(reads.len(), 14, "{}", ran.out);
    assert_eq!(reads.iter().sum::<u64>(), 2 * counted("block_rq_issue.R"));
    let whole = plumb(["analyze", "--json", path]).json();
    let played = plumb(["analyze", "--json", saved]).json();
    for pointer in ["/result/profiles/0/ios", "/result/profiles/0/bytes"] {
        assert!(whole.pointer(pointer).is_some(), "{pointer}");
        assert_eq!(played.pointer(pointer), whole.pointer(pointer), "{pointer}");
    }
    assert_eq!(
        played["result"]["profiles"][0]["ios"],
        counted("block_rq_issue")
    );
}

#[test]
fn only_the_selected_io_are_played() {
    let path = trace();
    let path = path.to_str().expect("text");
    let play = |flags: &[&str]| {
        let common = ["watch", "--from", path, "--plain"];
        plumb(common.iter().chain(flags))
    };
    let reads = play(&["--op", "read", "--interval", "1m"]);
    assert_eq!(
        numbers(&reads.out, "reads"),
        [counted("block_rq_issue.R"); 2]
    );
    assert!(numbers(&reads.out, "writes").is_empty());
    let first = play(&["--count", "1", "--interval", "1s"]);
    assert_eq!(numbers(&first.out, "reads").len(), 2, "{}", first.out);
    assert!(numbers(&first.out, "reads")[0] < counted("block_rq_issue.R"));
    play(&["sdz"]).ends(3).says("no I/O");
}

#[test]
fn a_file_without_single_io_is_refused() {
    let folder = Folder::new("watch-no-events");
    let saved = folder.path("saved.profile");
    let path = trace();
    plumb([
        "analyze".as_ref(),
        path.as_os_str(),
        "--save".as_ref(),
        saved.as_os_str(),
    ])
    .ends(1);
    let refused = plumb(["watch".as_ref(), "--from".as_ref(), saved.as_os_str()]);
    let mut messages = vec![refused.ends(2).complaint()];
    plumb(["watch", "--from", "/no/such/trace", "--plain"]).ends(5);
    plumb(["watch", "--speed", "2"]).ends(2);
    messages.push(
        plumb(["watch", "--from", "x", "--speed", "0"])
            .ends(2)
            .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// A person looks at a recording: pages, time, and the verdict after the end.
#[test]
fn a_recording_on_a_terminal() {
    require!(Tool("tmux"));
    let terminal = Terminal::open("recording", 100, 30, "LC_ALL=C.UTF-8");
    let program = env!("CARGO_BIN_EXE_plumb");
    let command = format!(
        "clear; {program} watch --from {} --interval 500ms --speed 20; echo status $?",
        trace().display()
    );
    terminal.press(&[&command, "Enter"]);
    // The last I/O is 24.164 s behind the first, by the times of the file.
    let screen = terminal.shows("+00:24.1  end");
    assert!(screen.contains(" device 7,0 (request layer)"), "{screen}");
    terminal.press(&["Left", "Left"]);
    terminal.shows("+00:23.5  of 00:24.1");
    terminal.press(&["Enter"]);
    // The lowest words of this page alone: a terminal may show a page before its lower lines are drawn.
    let page = terminal.shows("length up to");
    for words in ["I/O/s", "off grid", "phases", "latency up to", "postgres"] {
        assert!(page.contains(words), "no {words:?} in\n{page}");
    }
    terminal.press(&["p"]);
    terminal.shows("threads");
    terminal.press(&["q"]);
    let end = terminal.shows("status 1");
    assert!(end.contains("MISFIT: 6,806 of 6,806"), "{end}");
    terminal.is_restored();
}
