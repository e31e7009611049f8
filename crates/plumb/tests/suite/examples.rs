//! Runs the commands in `examples/*.md` and `docs/jobs/*.md`, and compares their output with the pages.
//!
//! In a fenced block a line that begins with `$ plumb` is a command, and the lines up to the next `$` or the end of the
//! fence are its output, standard error included. `$ echo $?` shows its exit status. Other commands are not run, except
//! `truncate`, which makes the measured file. Commands go through `sh`, so pipes and redirections work; those of one
//! page share a directory in which `examples` is that of the repository.
//!
//! `PLUMB_BLESS=1` writes the output into the pages instead of comparing it.

use plumb_testkit::wait::RunLimited;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The directory in which the commands of a page run, newly made.
fn workplace(page: &Path) -> PathBuf {
    let name = page.file_stem().unwrap_or_default();
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("examples")
        .join(name);
    std::fs::remove_dir_all(&place).ok();
    std::fs::create_dir_all(&place).expect("a directory to run in");
    let examples = root()
        .join("examples")
        .canonicalize()
        .expect("the examples");
    std::os::unix::fs::symlink(examples, place.join("examples")).expect("a link to the examples");
    place
}

/// The output of a command, and its exit status.
fn run(command: &str, place: &Path) -> (String, i32) {
    let binary = Path::new(env!("CARGO_BIN_EXE_plumb"));
    let others = std::env::var_os("PATH").unwrap_or_default();
    let mine = binary
        .parent()
        .expect("the binary is in a directory")
        .to_path_buf();
    let path = std::env::join_paths(std::iter::once(mine).chain(std::env::split_paths(&others)));
    let done = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(place)
        .env("PATH", path.expect("a search path"))
        .env_remove("PLUMB_BLESS")
        .limited_output();
    let text = String::from_utf8(done.stdout).expect("output is UTF-8");
    (
        text,
        done.status.code().expect("the command was not killed"),
    )
}

/// A page with the output of all its commands as it is now.
fn replayed(text: &str, place: &Path) -> String {
    let mut now = String::new();
    let (mut fenced, mut last_status, mut dropping) = (false, 0, false);
    for line in text.lines() {
        let command = line.strip_prefix("$ ").filter(|_| fenced);
        if line.starts_with("```") {
            fenced = !fenced;
            dropping = false;
        } else if command.is_some() {
            dropping = false;
        }
        if dropping {
            continue;
        }
        now.push_str(line);
        now.push('\n');
        if let Some(command) = command {
            let shown = if command == "echo $?" {
                Some(format!("{last_status}\n"))
            } else if command.starts_with("plumb ") || command.starts_with("truncate ") {
                let (printed, status) = run(command, place);
                last_status = status;
                Some(printed)
            } else {
                None
            };
            if let Some(shown) = shown {
                now.push_str(&shown);
                if !shown.is_empty() && !shown.ends_with('\n') {
                    now.push('\n');
                }
                dropping = true;
            }
        }
    }
    assert!(!fenced, "a fence is not closed");
    now
}

/// The first line in which two texts differ, for the message.
fn first_difference(was: &str, now: &str) -> String {
    let (mut was, mut now) = (was.lines(), now.lines());
    for number in 1.. {
        match (was.next(), now.next()) {
            (None, None) => break,
            (was, now) if was == now => {}
            (was, now) => {
                let shown = |line: Option<&str>| line.unwrap_or("(end)").to_owned();
                return format!(
                    "line {number}\n  the page says: {}\n  it prints now: {}",
                    shown(was),
                    shown(now)
                );
            }
        }
    }
    "the end of the last line".to_owned()
}

#[test]
fn sessions_print_the_text_of_the_pages() {
    let folders = ["examples", "docs/jobs"].map(|folder| root().join(folder));
    let mut pages: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder of pages"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        // A disk that is watched has to be there: example_watch.rs.
        .filter(|path| !path.ends_with("watch.md"))
        .collect();
    pages.sort();
    assert!(!pages.is_empty(), "examples/ holds no page");
    for page in pages {
        let was = std::fs::read_to_string(&page).expect("a readable page");
        let now = replayed(&was, &workplace(&page));
        if std::env::var_os("PLUMB_BLESS").is_some() {
            std::fs::write(&page, now).expect("a writable page");
            continue;
        }
        assert!(
            was == now,
            "{}, {}\nif that is wanted: PLUMB_BLESS=1 cargo test --workspace --test suite examples::",
            page.file_name().unwrap_or_default().display(),
            first_difference(&was, &now)
        );
    }
}

#[test]
fn a_wrong_line_is_noticed_and_other_commands_stay() {
    let place = workplace(Path::new("self-test.md"));
    let page = "```\n$ plumb --version\nplumb 99\nmore\n$ echo $?\n7\n$ ls /nowhere\nas it was\n```\nplain $ text\n";
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "```\n$ plumb --version\nplumb {version}\n$ echo $?\n0\n$ ls /nowhere\nas it was\n```\nplain $ text\n"
    );
    assert_eq!(replayed(page, &place), expected);
    assert!(first_difference(page, &expected).starts_with("line 3\n"));
}
