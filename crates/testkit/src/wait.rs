//! Waits of tests. Each has a limit and a name, so that a test that hangs fails and names the event that it waits for.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// Enough for any process that a test starts on a busy machine, but for guests.
pub const PATIENCE: Duration = Duration::from_secs(600);
/// Enough for a script that starts guests, on emulated processors.
pub const GUEST_PATIENCE: Duration = Duration::from_secs(3600);
const AGAIN: Duration = Duration::from_millis(5);

/// Waits until something holds.
///
/// ```
/// use std::time::Duration;
/// plumb_testkit::wait::until("the first second of the clock", Duration::from_secs(5), || true);
/// ```
///
/// # Panics
/// If it does not hold within the limit.
#[track_caller]
pub fn until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    // One more look after the limit: a busy machine may have slept through it.
    loop {
        let is_last = began.elapsed() >= limit;
        if holds() {
            return;
        }
        assert!(!is_last, "waited {limit:?} in vain for: {what}");
        sleep(AGAIN);
    }
}

/// Waits until something holds while a process runs.
///
/// # Panics
/// If it does not hold within the limit, or the process ends first.
#[track_caller]
pub fn until_while_runs(
    what: &str,
    limit: Duration,
    child: &mut Child,
    mut holds: impl FnMut() -> bool,
) {
    until(what, limit, || {
        // In this order: the last thing that a process does may be to let it hold.
        let ended = child.try_wait().expect("a child");
        let has_come = holds();
        if let (Some(status), false) = (ended, has_come) {
            panic!("waited for {what}: the process ended before it, with {status}");
        }
        has_come
    });
}

/// Waits for the end of a process; one that goes on is killed.
///
/// # Panics
/// If it goes on beyond the limit.
#[track_caller]
pub fn exit(what: &str, limit: Duration, child: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        let is_last = began.elapsed() >= limit;
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if is_last {
            stop(child);
            panic!("waited {limit:?} in vain for the end of {what}");
        }
        sleep(AGAIN);
    }
}

/// Kills a process that may have ended, as a test does that leaves it. An I/O that never ends keeps a process: the wait for its end is short.
pub fn stop(child: &mut Child) {
    let _ = child.kill();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) && matches!(child.try_wait(), Ok(None)) {
        sleep(AGAIN);
    }
}

/// Kills a process and waits for its end. An I/O that never ends keeps a killed process.
///
/// # Panics
/// If it remains beyond [`PATIENCE`].
#[track_caller]
pub fn killed(what: &str, child: &mut Child) -> ExitStatus {
    let done = child.kill();
    done.unwrap_or_else(|error| panic!("cannot kill {what}: {error}"));
    exit(what, PATIENCE, child)
}

/// Waits for the end of a process and returns the output of its pipes; one that continues is killed.
///
/// # Panics
/// If it continues beyond the limit; the message has its output until then.
#[track_caller]
pub fn output(what: &str, limit: Duration, mut child: Child) -> Output {
    drop(child.stdin.take());
    let (out, err) = (
        child.stdout.take().map(collect),
        child.stderr.take().map(collect),
    );
    let began = Instant::now();
    // A pipe stays open as long as a descendant has it: they count as the process.
    let is_open =
        |pipe: &Option<JoinHandle<_>>| pipe.as_ref().is_some_and(|pipe| !pipe.is_finished());
    loop {
        let is_last = began.elapsed() >= limit;
        let status = child.try_wait().expect("a child");
        if let (Some(status), false) = (status, is_open(&out) || is_open(&err)) {
            let [stdout, stderr] = [out, err].map(|pipe| {
                pipe.map_or_else(Vec::new, |pipe| pipe.join().expect("a reader of a pipe"))
            });
            return Output {
                status,
                stdout,
                stderr,
            };
        }
        if is_last {
            stop(&mut child);
            let [out, err] = [out, err].map(|pipe| match pipe {
                Some(pipe) if pipe.is_finished() => pipe.join().unwrap_or_default(),
                _ => Vec::new(),
            });
            panic!(
                "waited {limit:?} in vain for the end of {what}:\n{}{}",
                String::from_utf8_lossy(&out),
                String::from_utf8_lossy(&err)
            );
        }
        sleep(AGAIN);
    }
}

/// Runs a command to its end, as [`Command::output`] does, for at most [`PATIENCE`].
///
/// # Panics
/// If it cannot be started or does not end.
#[track_caller]
pub fn output_of(command: &mut Command) -> Output {
    output_within(PATIENCE, command)
}

/// Runs commands to their end, for at most [`PATIENCE`].
pub trait RunLimited {
    /// As [`Command::output`].
    ///
    /// # Panics
    /// If it cannot be started or does not end.
    #[track_caller]
    fn limited_output(&mut self) -> Output;

    /// As [`Command::status`].
    ///
    /// # Panics
    /// If it cannot be started or does not end.
    #[track_caller]
    fn limited_status(&mut self) -> ExitStatus;
}

impl RunLimited for Command {
    fn limited_output(&mut self) -> Output {
        output_of(self)
    }

    fn limited_status(&mut self) -> ExitStatus {
        let words = format!("{self:?}");
        let child = self.spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{words}: {error}"));
        exit(&words, PATIENCE, &mut child)
    }
}

/// Runs a command to its end, as [`output_of`] does, with another limit.
///
/// # Panics
/// If it cannot be started or does not end.
#[track_caller]
pub fn output_within(limit: Duration, command: &mut Command) -> Output {
    let words = format!("{command:?}");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{words}: {error}"));
    output(&words, limit, child)
}

/// The lines of a pipe. The wait for each has the limit [`PATIENCE`].
#[derive(Debug)]
pub struct Lines {
    what: String,
    limit: Duration,
    read: Receiver<String>,
}

impl Lines {
    /// The lines that a pipe still has. A thread reads them, so that its writer never waits.
    ///
    /// ```
    /// use plumb_testkit::wait::Lines;
    /// let lines: Vec<String> = Lines::of("two lines", "a\nb".as_bytes()).collect();
    /// assert_eq!(lines, ["a", "b"]);
    /// ```
    pub fn of(what: &str, pipe: impl Read + Send + 'static) -> Lines {
        let (sender, read) = channel();
        spawn(move || {
            for line in BufReader::new(pipe).lines() {
                // Lines that nobody wants are read all the same: the writer finds its pipe open.
                let _ = sender.send(line.expect("text"));
            }
        });
        Lines {
            what: what.to_owned(),
            limit: PATIENCE,
            read,
        }
    }
}

impl Iterator for Lines {
    type Item = String;

    /// The next line; none at the end.
    ///
    /// # Panics
    /// If none comes within the limit.
    fn next(&mut self) -> Option<String> {
        match self.read.recv_timeout(self.limit) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!(
                "waited {:?} in vain for the next line of {}",
                self.limit, self.what
            ),
        }
    }
}

/// The next client of a listener. The limit also holds for each wait for bytes of this client.
///
/// # Panics
/// If none comes within the limit.
#[track_caller]
pub fn client(what: &str, limit: Duration, listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).expect("a listener");
    let mut client = None;
    until(what, limit, || match listener.accept() {
        Ok((stream, _)) => {
            client = Some(stream);
            true
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{what}: {error}"),
    });
    let client = client.expect("a client");
    client.set_nonblocking(false).expect("a socket");
    client.set_read_timeout(Some(limit)).expect("a socket");
    client.set_write_timeout(Some(limit)).expect("a socket");
    client
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a readable pipe");
        bytes
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    fn message(act: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("it waits in vain");
        panic.downcast_ref::<String>().expect("a message").clone()
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    /// Neither a client that stays away nor one that is silent holds up a test.
    #[test]
    fn clients_have_a_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let said = message(|| drop(client("a request of curl", SHORT, &listener)));
        insta::assert_snapshot!(said);
        let silent = TcpStream::connect(address).expect("a listener");
        let mut accepted = client("a request of curl", SHORT, &listener);
        let read = accepted.read(&mut [0]).expect_err("no byte");
        assert_eq!(read.kind(), ErrorKind::WouldBlock);
        drop(silent);
    }

    #[test]
    fn condition_that_never_holds_is_named() {
        let mut looks = 0;
        until("the third look", PATIENCE, || {
            looks += 1;
            looks == 3
        });
        let said = message(|| until("a blue moon", SHORT, || false));
        insta::assert_snapshot!(said);
    }

    #[test]
    fn process_that_ends_first_is_reported() {
        let mut child = shell("exit 7").spawn().expect("a shell");
        let said = message(|| until_while_runs("a file", PATIENCE, &mut child, || false));
        assert!(said.contains("exit status: 7"), "{said}");
    }

    #[test]
    fn process_that_never_ends_is_killed() {
        let mut child = shell("exec sleep 100").spawn().expect("a shell");
        let said = message(|| {
            exit("the sleeper", SHORT, &mut child);
        });
        insta::assert_snapshot!(said);
        assert!(child.try_wait().expect("a child").is_some());
    }

    #[test]
    fn command_that_never_ends_is_named() {
        let said = message(|| {
            output_within(SHORT, &mut shell("echo begun; exec sleep 100"));
        });
        // Behind it is the output until then.
        insta::assert_snapshot!(said.lines().next().expect("a line"));
    }

    #[test]
    fn line_that_never_comes_is_named() {
        let mut child = shell("echo begun; exec sleep 100")
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut lines = Lines::of("the sleeper", child.stdout.take().expect("a pipe"));
        assert_eq!(lines.next().as_deref(), Some("begun"));
        lines.limit = SHORT;
        let said = message(|| {
            lines.next();
        });
        insta::assert_snapshot!(said);
        stop(&mut child);
        lines.limit = PATIENCE;
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn killed_process_has_ended() {
        let mut child = shell("exec sleep 100").spawn().expect("a shell");
        let status = killed("the sleeper", &mut child);
        assert_eq!(status.signal(), Some(9));
    }

    #[test]
    fn output_is_that_of_the_process() {
        let done = output_of(&mut shell("echo out; echo err >&2; exit 3"));
        assert_eq!(
            (done.status.code(), &done.stdout[..], &done.stderr[..]),
            (Some(3), &b"out\n"[..], &b"err\n"[..])
        );
    }
}
