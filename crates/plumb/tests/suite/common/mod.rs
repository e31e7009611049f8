//! Runs the program as a user does.

#![allow(dead_code, reason = "each test file uses its part of it")]

pub mod attached;
pub mod collection;
pub mod direct;
pub mod exposition;
pub mod picture;
pub mod probed;
pub mod recording;
pub mod schema;
pub mod store;
pub mod terminal;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use plumb_testkit::wait;
use serde_json::Value;

/// Copies the program to a place that other users may reach. Another process copies: a child that another test starts
/// meanwhile would keep a file of this one open for writing, and no such program can be started.
pub fn copy_program(to: &Path) {
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_plumb"))
        .arg(to)
        .status();
    assert!(copied.expect("cp starts").success(), "{}", to.display());
}

/// How a run ended.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// From the output of a process.
    pub fn from_output(done: Output) -> Ran {
        Ran {
            code: done.status.code().unwrap_or(-1),
            out: String::from_utf8(done.stdout).expect("text"),
            err: String::from_utf8_lossy(&done.stderr).into_owned(),
        }
    }

    /// The JSON document on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|why| panic!("{why}: {}\n{}", self.out, self.err))
    }

    /// The same text with every run of white space made one space: sentences are found across line breaks.
    pub fn flat(&self) -> String {
        self.out.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    pub fn says(&self, words: &str) -> &Ran {
        assert!(
            self.flat().contains(words),
            "no `{words}` in:\n{}",
            self.out
        );
        self
    }

    #[track_caller]
    pub fn complains(&self, words: &str) -> &Ran {
        let flat = self.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "no `{words}` in:\n{}", self.err);
        self
    }

    /// The messages of the run in the form that a snapshot records; see [`recorded`].
    pub fn complaint(&self) -> String {
        recorded(&self.err)
    }

    /// The same by [`without_lists`].
    pub fn complaint_without_lists(&self) -> String {
        recorded(&without_lists(&self.err))
    }

    /// The text on standard output in the form that a snapshot records; see [`recorded`].
    pub fn said(&self) -> String {
        recorded(&self.out)
    }

    /// The same by paragraphs: sentences as in [`recorded`], and the lines of tables and trees.
    pub fn screen(&self) -> String {
        let is_drawn = |text: &str| {
            text.starts_with("Stack") || text.starts_with("Summary") || text.contains(" interval ")
        };
        let paragraphs = self.out.split("\n\n").map(|text| match is_drawn(text) {
            true => recorded_lines(text, &[""]),
            false => recorded(text),
        });
        paragraphs.collect::<Vec<_>>().join("\n\n")
    }

    #[track_caller]
    pub fn ends(&self, code: i32) -> &Ran {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }
}

/// Text as snapshots record it: a sentence a line, since line breaks follow the length of a path, with `FOLDER` for a
/// directory of the test, `REPOSITORY` and `TRACES` for those of the sources and of real traces, `loopN` for a loop device and
/// `plumb` for the path of the program.
pub fn recorded(text: &str) -> String {
    let places = [
        format!("{}/", std::env::temp_dir().display()),
        concat!(env!("CARGO_TARGET_TMPDIR"), "/").to_owned(),
        // Of directories that root alone can write to.
        "/var/lib/plumb-".to_owned(),
    ];
    let text = text.replace(env!("CARGO_BIN_EXE_plumb"), "plumb");
    let mut text = text.replace(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."), "REPOSITORY");
    if let Some(traces) = plumb_testkit::real_traces() {
        text = text.replace(&traces.display().to_string(), "TRACES");
    }
    let words = text.split_whitespace().map(|word| {
        let mut word = without_number(word, "loop", "N");
        for folders in &places {
            let mut from = 0;
            while let Some(at) = word[from..].find(folders).map(|at| from + at) {
                let rest = &word[at + folders.len()..];
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
                let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
                // A folder of that name in a directory of the test is no such place, nor is that of the agent.
                let is_inside = word[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
                from = at + "FOLDER".len();
                if !is_inside && name != "agent" {
                    word = format!("{}FOLDER{rest}", &word[..at]);
                }
            }
        }
        word
    });
    let mut lines = String::new();
    for word in words {
        lines.push_str(&word);
        lines.push(if word.ends_with('.') { '\n' } else { ' ' });
    }
    lines.trim_end().to_owned()
}

/// The text with the first name alone of each list of formats, tools, arrays, keys or paths: such a list grows.
pub fn without_lists(text: &str) -> String {
    let firsts = [
        "parquet, ",
        "metastat, ",
        "sun-zfs-appliance-8k, ",
        "filename, ",
        "state_dir, ",
        "/api/v1/devices, ",
    ];
    let lines = text.lines().map(|line| {
        let end_of = |first: &str| Some(line.find(first)? + first.len());
        let Some(end) = firsts.into_iter().find_map(end_of) else {
            return line.to_owned();
        };
        let behind = line[end..].find("; ").map_or("", |at| &line[end + at..]);
        format!("{}…{behind}", &line[..end])
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The lines of a text that have one of these words, each as in [`recorded`]: for logs and configurations, whose lines are
/// not wrapped, and for those sentences of a recorded text that are the same in each run.
pub fn recorded_lines(text: &str, words: &[&str]) -> String {
    let lines = text
        .lines()
        .filter(|line| words.iter().any(|word| line.contains(word)));
    lines.map(recorded).collect::<Vec<_>>().join("\n")
}

/// The paragraph of a text that begins with this word, up to its empty line.
#[track_caller]
pub fn paragraph<'a>(text: &'a str, begin: &str) -> &'a str {
    let mut paragraphs = text.split("\n\n").map(str::trim_end);
    let found = paragraphs.find(|paragraph| paragraph.starts_with(begin));
    found.unwrap_or_else(|| panic!("no `{begin}` in:\n{text}"))
}

#[test]
fn recorded_text_has_no_place_of_this_run() {
    let folder = Folder::new("recorded");
    let text = format!(
        "loop12p1 on\n  `{}`: found\nloops. {}/../../examples",
        folder.path("a.csv").display(),
        env!("CARGO_MANIFEST_DIR")
    );
    assert_eq!(
        recorded(&text),
        "loopNp1 on `FOLDER/a.csv`: found loops.\nREPOSITORY/examples"
    );
    assert_eq!(
        recorded_lines("loop1 a\nb\n loop2 c", &["loop"]),
        "loopN a\nloopN c"
    );
    assert_eq!(without_lists("of parquet, b; c\nd"), "of parquet, …; c\nd");
    assert_eq!(paragraph("a\n\nb\nc\n\nd", "b"), "b\nc");
}

/// The word with another text for the number right behind `name`.
fn without_number(word: &str, name: &str, instead: &str) -> String {
    let mut parts = word.split(name);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = if rest.len() < part.len() { instead } else { "" };
        format!("{before}{name}{number}{rest}")
    })
}

pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.env_remove("NO_COLOR");
    command.env("LC_ALL", "C.UTF-8").env("TERM", "xterm");
    command
}

fn ran(command: &mut Command) -> Ran {
    Ran::from_output(wait::output_of(command))
}

/// Runs it with arguments.
pub fn plumb<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    ran(command().args(args).stdin(Stdio::null()))
}

/// `plumb analyze FILE` and flags, parted by spaces.
pub fn analyze(file: &Path, flags: &str) -> Ran {
    ran(command()
        .arg("analyze")
        .arg(file)
        .args(flags.split_whitespace())
        .stdin(Stdio::null()))
}

/// The same with bytes on standard input.
pub fn analyze_input(bytes: &[u8], flags: &str) -> Ran {
    let mut child = command()
        .args(["analyze", "-"])
        .args(flags.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    let bytes = bytes.to_vec();
    // The program may end before it has read everything.
    let writer = std::thread::spawn(move || input.write_all(&bytes).ok());
    let done = wait::output("plumb analyze", wait::PATIENCE, child);
    writer.join().expect("the writer ends");
    Ran::from_output(done)
}

/// A real trace.
pub fn real(name: &str) -> PathBuf {
    plumb_testkit::real_traces()
        .expect("asked for before")
        .join(name)
}

/// A layer of a checked stack, by any of its names.
#[track_caller]
pub fn node<'a>(document: &'a Value, name: &str) -> &'a Value {
    let name = name.trim_start_matches("/dev/");
    let nodes = document["result"]["stack"]["nodes"]
        .as_array()
        .expect("nodes");
    let is_it = |node: &&Value| {
        let aliases = node["aliases"].as_array().expect("aliases");
        node["name"] == name || aliases.iter().any(|alias| alias == name)
    };
    nodes
        .iter()
        .find(is_it)
        .unwrap_or_else(|| panic!("no {name} in {document:#}"))
}

/// The fields of each line of `rows.tsv`, which a script that builds stacks in a guest leaves behind.
pub fn rows_of_guest(directory: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(directory.join("rows.tsv")).expect("the rows");
    text.lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}

/// A directory for a test, with files in it.
pub struct Folder(plumb_testkit::tempdir::TempDir);

impl Folder {
    pub fn new(name: &str) -> Folder {
        Folder(plumb_testkit::temp_dir(name))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("writes");
        path
    }
}

/// Lines of the MSR format, an I/O a millisecond: (letter of the operation, start and length in bytes).
pub fn msr(ios: impl IntoIterator<Item = (char, u64, u64)>) -> String {
    let mut lines = String::new();
    for (at, (op, start, len)) in ios.into_iter().enumerate() {
        let op = if op == 'W' { "Write" } else { "Read" };
        let time = 128_166_372_003_061_629 + at * 10_000;
        lines.push_str(&format!(
            "{time},host,0,{op},{start},{len},{}\n",
            1000 + at % 7
        ));
    }
    lines
}

/// Random multiples of 64 KiB, plus a number of bytes.
pub fn pages(count: u64, past: u64, len: u64) -> Vec<(char, u64, u64)> {
    let mut random = plumb_testkit::Rng::new(count + past);
    (0..count)
        .map(|_| ('R', random.below(1 << 24) * 65_536 + past, len))
        .collect()
}

impl Ran {
    /// The passages of standard output that have one of these words, in the form that a snapshot records; see
    /// [`passages`].
    #[track_caller]
    pub fn passages(&self, words: &[&str]) -> String {
        passages(&self.out, words)
    }
}

/// The passages of a text that have one of these words, each once and in the form of [`recorded`]. A passage is a line and
/// the lines behind it whose first word had no room in the 80 columns of the line before.
#[track_caller]
pub fn passages(text: &str, words: &[&str]) -> String {
    let mut all: Vec<String> = Vec::new();
    let mut width_before = 0;
    for line in text.lines() {
        let first = line.split_whitespace().next().unwrap_or_default();
        // A label and an item begin a passage in any case.
        let begins = first.ends_with(':') || first == "-" || first.starts_with('─');
        let is_wrapped = width_before <= 80 && width_before + 1 + first.chars().count() > 80;
        width_before = line.chars().count();
        match all.last_mut() {
            Some(passage) if is_wrapped && !begins && !passage.starts_with('─') => {
                passage.push('\n');
                passage.push_str(line);
            }
            _ => all.push(line.to_owned()),
        }
    }
    let mut found = Vec::new();
    for passage in all.iter().map(|passage| recorded(passage)) {
        if words.iter().any(|word| passage.contains(word)) && !found.contains(&passage) {
            found.push(passage);
        }
    }
    assert!(!found.is_empty(), "no passage with {words:?} in:\n{text}");
    found.join("\n")
}

#[test]
fn passages_are_whole_where_lines_were_broken() {
    let full = "x".repeat(76);
    let text = format!("Head\n  - {full}\n    broken\n  - other\nEnd\nEnd");
    assert_eq!(
        passages(&text, &["broken", "End"]),
        format!("- {full} broken\nEnd")
    );
    assert_eq!(passages(&text, &["other"]), "- other");
}

/// The text with `TIME` for each time in the form of RFC 3339, where it follows the clock of the machine.
pub fn without_times(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let time = word.trim_end_matches([',', ';']);
        let is_time = humantime::parse_rfc3339(time).is_ok();
        if is_time { "TIME" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The end of the line that `plumb fix move` prints when all data are at their new place.
pub const MOVE_VERIFIED: &str = ", and verified in ";

/// Asserts that sgdisk found no problem of a label, by its output.
#[track_caller]
pub fn assert_sgdisk_agrees(verified: &str) {
    assert!(verified.contains("No problems found"), "{verified}");
}

/// Asserts that sfdisk found no error of a label, by its output.
#[track_caller]
pub fn assert_sfdisk_agrees(verified: &str) {
    assert!(verified.contains("No errors detected"), "{verified}");
}
