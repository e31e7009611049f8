//! A tool of a file system that is run for its output, with a limit of time and of bytes.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plumb_model::result::fix::OwnerObstacle;

use crate::killed;

/// All runs of one search together.
const LIMIT: Duration = Duration::from_secs(60);
/// Between two looks at a tool that runs.
const AGAIN: Duration = Duration::from_millis(10);
/// Output that is kept; more is cut off.
const OUTPUT_MAX: u64 = 16 << 20;
/// Of an error message.
const SAID_MAX: usize = 200;
/// Directories of tools that an interactive user may not have in PATH.
const SYSTEM_DIRECTORIES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// The time at which a search gives up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    pub fn start() -> Deadline {
        Deadline::after(LIMIT)
    }

    pub fn after(limit: Duration) -> Deadline {
        Deadline {
            at: Instant::now() + limit,
            limit,
        }
    }
}

/// Runs a tool on a script and returns its output; its exit status is ignored, because tools fail at a part of a script
/// and still answer the rest.
///
/// # Errors
/// The tool is missing, takes too long, or prints nothing on its output.
pub fn run(
    tool: &'static str,
    arguments: &[&std::ffi::OsStr],
    script: String,
    deadline: Deadline,
) -> Result<String, OwnerObstacle> {
    let program = path_of(tool).ok_or(OwnerObstacle::NoTool { tool })?;
    let mut child = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failure(tool, &error.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        // A tool that ends early closes its input; its output tells why.
        thread::spawn(move || input.write_all(script.as_bytes()));
    }
    let output = child.stdout.take().map(collect);
    let errors = child.stderr.take().map(collect);
    // A descendant of the tool may keep the pipes open.
    let streams = [output, errors];
    let is_over = |child: &mut Child| {
        let is_read = streams.iter().flatten().all(JoinHandle::is_finished);
        Ok::<bool, std::io::Error>(child.try_wait()?.is_some() && is_read)
    };
    if !wait(&mut child, is_over, deadline) {
        let _ = child.kill();
        // A tool that waits for a disk that never answers does not end: this search does not wait for it.
        killed::leave(child);
        let seconds = deadline.limit.as_secs();
        return Err(OwnerObstacle::TooSlow { tool, seconds });
    }
    let [output, errors] = streams.map(text);
    match output.trim().is_empty() {
        true => Err(failure(tool, &errors)),
        false => Ok(output),
    }
}

/// The failure of a tool that printed this in place of an answer.
pub fn failure(tool: &'static str, said: &str) -> OwnerObstacle {
    OwnerObstacle::Failed {
        tool,
        said: first_words(said),
    }
}

/// The first line that a tool printed, cut off at a limit.
fn first_words(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    line.unwrap_or("no output").chars().take(SAID_MAX).collect()
}

fn path_of(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = SYSTEM_DIRECTORIES.into_iter().map(PathBuf::from);
    let mut directories = std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .chain(system);
    directories.find_map(|directory| {
        let program = directory.join(tool);
        program.is_file().then_some(program)
    })
}

/// Whether it was over before the deadline.
fn wait(
    child: &mut Child,
    is_over: impl Fn(&mut Child) -> std::io::Result<bool>,
    deadline: Deadline,
) -> bool {
    loop {
        match is_over(child) {
            Ok(false) if Instant::now() < deadline.at => thread::sleep(AGAIN),
            Ok(false) | Err(_) => return false,
            Ok(true) => return true,
        }
    }
}

/// Reads a stream to its end, so that the tool is never held up; keeps its beginning.
fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut kept = Vec::new();
        // Bytes read before an error are kept.
        let _ = stream.by_ref().take(OUTPUT_MAX).read_to_end(&mut kept);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        kept
    })
}

fn text(stream: Option<JoinHandle<Vec<u8>>>) -> String {
    let bytes = stream.and_then(|thread| thread.join().ok());
    String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_fed_heard_and_stopped() {
        let soon = || Deadline::after(Duration::from_secs(20));
        let said = run("cat", &[], "a\nb\n".to_owned(), soon());
        assert_eq!(said.as_deref(), Ok("a\nb\n"));
        let silent = run("true", &[], String::new(), soon());
        let said = "no output".to_owned();
        assert_eq!(silent, Err(OwnerObstacle::Failed { tool: "true", said }));
        let tool = "plumb-has-no-such-tool";
        assert_eq!(
            run(tool, &[], String::new(), soon()),
            Err(OwnerObstacle::NoTool { tool })
        );
        let began = Instant::now();
        let short = Deadline::after(Duration::from_millis(50));
        let slow = run("sleep", &["60".as_ref()], String::new(), short);
        assert_eq!(
            slow,
            Err(OwnerObstacle::TooSlow {
                tool: "sleep",
                seconds: 0
            })
        );
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
