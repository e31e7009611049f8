//! The wait for a process that was killed. An I/O that never ends keeps it in the kernel, so each wait has a limit.

use std::process::Child;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between two looks.
const GLANCE: Duration = Duration::from_millis(10);
/// The same for a thread that waits for long.
const LATER_GLANCE: Duration = Duration::from_secs(1);
/// Time after which a device that does not answer is given up: one thread for each killed process would be without bound.
const LATER_MAX: Duration = Duration::from_secs(3600);

/// Waits for the end of a killed process, for at most this time; whether it came.
pub fn has_ended(child: &mut Child, limit: Duration) -> bool {
    looks_for_end(child, limit, GLANCE)
}

/// Leaves the wait for the end of a killed process to a thread. A process that remains beyond an hour stays in the list of processes until
/// this one ends.
pub fn leave(child: Child) {
    // Without a thread it stays in the list as well.
    let _ = leave_for(child, LATER_MAX);
}

fn leave_for(mut child: Child, limit: Duration) -> Option<JoinHandle<bool>> {
    let glance = LATER_GLANCE.min(limit);
    let wait = thread::Builder::new().name("killed".to_owned());
    wait.spawn(move || looks_for_end(&mut child, limit, glance))
        .ok()
}

fn looks_for_end(child: &mut Child, limit: Duration, glance: Duration) -> bool {
    let end = Instant::now() + limit;
    loop {
        // In this order: the last look comes after the limit.
        let is_last = Instant::now() >= end;
        match child.try_wait() {
            Ok(None) if !is_last => thread::sleep(glance),
            Ok(None) => return false,
            // Nothing is left to wait for.
            Ok(Some(_)) | Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use plumb_testkit::wait;

    use super::*;

    const SHORT: Duration = Duration::from_millis(30);

    /// A process that goes on stands for one that an I/O keeps: no wait for it is longer than its limit.
    #[test]
    fn waits_for_killed_processes_have_a_limit() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep");
        assert!(!has_ended(&mut child, SHORT));
        let process = format!("/proc/{}", child.id());
        let thread = leave_for(child, SHORT).expect("a thread");
        wait::until("the end of the thread", wait::PATIENCE, || {
            thread.is_finished()
        });
        assert!(!thread.join().expect("a look"));
        assert!(std::path::Path::new(&process).exists());
        let mut ended = Command::new("kill")
            .args(["-9", process.trim_start_matches("/proc/")])
            .spawn()
            .expect("kill");
        assert!(has_ended(&mut ended, wait::PATIENCE));
    }

    #[test]
    fn killed_processes_are_taken_out_of_the_list() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("sleep");
        child.kill().expect("it runs");
        let process = format!("/proc/{}", child.id());
        let thread = leave_for(child, wait::PATIENCE).expect("a thread");
        wait::until("the end of the thread", wait::PATIENCE, || {
            thread.is_finished()
        });
        assert!(thread.join().expect("a look"));
        assert!(!std::path::Path::new(&process).exists());
    }
}
