//! Runs a program of the configuration: without a shell, for a limited time, in a process group of its own.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use plumb_quoting::visible;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::killed;

/// Time between two looks at a command that runs.
const GLANCE: Duration = Duration::from_millis(10);
/// Time for the end of a command that was killed.
const KILL_MAX: Duration = Duration::from_secs(5);
/// Bytes that are kept of the end of the standard error.
const STDERR_KEPT: usize = 1024;
/// Bytes of the standard error that are read at one look: a command that never stops writing must not hold up its end.
const STDERR_AT_ONCE: usize = 64 << 10;

/// The input of a command, and the bounds of its run.
#[derive(Default)]
pub struct CommandRun<'a> {
    /// Its standard input; nothing without it.
    pub input: Option<File>,
    /// Variables beside those of the agent.
    pub variables: &'a [(&'a str, String)],
    /// Time after which it is ended with its descendants.
    pub limit: Duration,
    /// Whether the end of its standard error belongs to the reason of a failure, and not to the log of the agent.
    pub takes_stderr: bool,
    /// Whether it has to end now.
    pub is_over: Option<&'a dyn Fn() -> bool>,
}

impl CommandRun<'_> {
    /// Runs a program with its arguments; no words are no program.
    ///
    /// # Errors
    /// The reason if it cannot be started, ends with another status than 0, or has to be ended.
    pub fn run(self, words: &[String]) -> Result<(), String> {
        let [program, args @ ..] = words else {
            return Ok(());
        };
        let limit = self.limit;
        let mut end = Vec::new();
        let ended = self.start_and_wait(program, args, &mut end);
        let end = String::from_utf8_lossy(&end);
        let said = match end.trim() {
            "" => String::new(),
            end => format!("; the end of its standard error: {}", visible(end)),
        };
        match ended {
            Ok(CommandEnd::Ended(status)) if status.success() => Ok(()),
            Ok(CommandEnd::Ended(status)) => Err(format!("it ended with {status}{said}")),
            Ok(CommandEnd::Killed { is_gone }) => {
                let left = match is_gone {
                    true => String::new(),
                    false => format!(
                        ", and is still there after {} s: it waits for an I/O",
                        KILL_MAX.as_secs()
                    ),
                };
                Err(format!(
                    "it was ended after {} s{left}{said}",
                    limit.as_secs()
                ))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The end of the program.
    fn start_and_wait(
        self,
        program: &str,
        args: &[String],
        stderr: &mut Vec<u8>,
    ) -> io::Result<CommandEnd> {
        let mut command = Command::new(program);
        command
            .args(args)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(self.input.map_or_else(Stdio::null, Stdio::from))
            .stdout(Stdio::null())
            .process_group(0);
        if self.takes_stderr {
            command.stderr(Stdio::piped());
        }
        let mut child = command.spawn()?;
        let mut pipe = child.stderr.take();
        if let Some(pipe) = &pipe {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        let end = Instant::now() + self.limit;
        loop {
            // Before the pipe is read: then nothing that it wrote is missed.
            let status = child.try_wait()?;
            if let Some(pipe) = &mut pipe {
                keep_end(pipe, stderr);
            }
            if let Some(status) = status {
                return Ok(CommandEnd::Ended(status));
            }
            if Instant::now() >= end || self.is_over.is_some_and(|is_over| is_over()) {
                let is_gone = kill_all(child)?;
                return Ok(CommandEnd::Killed { is_gone });
            }
            thread::sleep(GLANCE);
        }
    }
}

/// The end of a command.
enum CommandEnd {
    Ended(ExitStatus),
    Killed {
        /// Whether it ended after the kill.
        is_gone: bool,
    },
}

/// Reads the present content of a pipe, and keeps the last bytes.
fn keep_end(pipe: &mut ChildStderr, kept: &mut Vec<u8>) {
    let mut bytes = [0; 4096];
    for _ in 0..STDERR_AT_ONCE / bytes.len() {
        let Ok(count @ 1..) = pipe.read(&mut bytes) else {
            return;
        };
        kept.extend_from_slice(&bytes[..count]);
        kept.drain(..kept.len().saturating_sub(STDERR_KEPT));
    }
}

/// Kills a command with its descendants; whether it ended. One that an I/O keeps in the kernel is left to a thread.
fn kill_all(mut child: Child) -> io::Result<bool> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let killed = group.map(|group| kill_process_group(group, Signal::KILL));
    if !matches!(killed, Some(Ok(()))) {
        child.kill()?;
    }
    let is_gone = killed::has_ended(&mut child, KILL_MAX);
    if !is_gone {
        killed::leave(child);
    }
    Ok(is_gone)
}
