//! Shows on a terminal how far a long read has come: share, rate and time left.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plumb_trace::progress::Progress;

/// Anything shorter is not worth a line.
const QUIET: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(200);

/// A line on standard error, rewritten in place until the meter is dropped.
pub struct Meter {
    progress: Arc<Progress>,
    shown: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Meter {
    /// A meter that shows itself after two seconds if standard error is a terminal, and never otherwise.
    #[must_use]
    pub fn start() -> Meter {
        let progress = Arc::new(Progress::default());
        let shown = std::io::stderr().is_terminal().then(|| {
            let (stop, stopped) = channel();
            let progress = Arc::clone(&progress);
            let started = Instant::now();
            let show = std::thread::spawn(move || {
                let mut wait = QUIET;
                while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                    wait = STEP;
                    eprint!("\r{}\x1b[K", line(progress.state(), started.elapsed()));
                    std::io::stderr().flush().ok();
                }
                if wait == STEP {
                    eprint!("\r\x1b[K");
                }
            });
            (stop, show)
        });
        Meter { progress, shown }
    }

    /// The receiver of the readers' progress.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some((stop, show)) = self.shown.take() {
            drop(stop);
            show.join().ok();
        }
    }
}

/// `12.4 of 53.0 MiB, 23 %, 6.1 MiB/s, 7 s left`; without a known end only the length read and the rate.
fn line((read, known): (u64, u64), elapsed: Duration) -> String {
    let mib = |bytes: f64| format!("{:.1}", bytes / f64::from(1 << 20));
    let rate = read as f64 / elapsed.as_secs_f64().max(0.001);
    if known == 0 {
        return format!("{} MiB read, {} MiB/s", mib(read as f64), mib(rate));
    }
    let left = known.saturating_sub(read) as f64 / rate.max(1.0);
    format!(
        "{} of {} MiB, {} %, {} MiB/s, {:.0} s left",
        mib(read as f64),
        mib(known as f64),
        read.saturating_mul(100) / known.max(1),
        mib(rate),
        left
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown() {
        let ten = Duration::from_secs(10);
        assert_eq!(
            line((50 << 20, 200 << 20), ten),
            "50.0 of 200.0 MiB, 25 %, 5.0 MiB/s, 30 s left"
        );
        assert_eq!(line((50 << 20, 0), ten), "50.0 MiB read, 5.0 MiB/s");
    }
}
