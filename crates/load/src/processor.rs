//! How much of its time a thread ran on a processor or waited for one: a thread that did little else shows the speed of
//! the machine and not that of its target.
//!
//! The kernel counts both in `/proc/thread-self/schedstat`, in ns. The clock of a thread (`CLOCK_THREAD_CPUTIME_ID`)
//! lacks the waits, so that threads on an overloaded machine would seem idle.

use std::time::Duration;

/// The use of processors by some threads over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorUse {
    /// They ran on a processor.
    pub ran: Duration,
    /// They were ready to run, and other threads had the processors.
    pub waited: Duration,
    /// The time itself, for each thread.
    pub elapsed: Duration,
}

impl ProcessorUse {
    /// The share of the time in which a thread ran or waited for a processor, 0 to 1; `None` without any time.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        let busy = (self.ran + self.waited).as_secs_f64();
        (!self.elapsed.is_zero()).then(|| (busy / self.elapsed.as_secs_f64()).min(1.0))
    }

    /// Adds that of another thread.
    pub(crate) fn add(&mut self, other: ProcessorUse) {
        self.ran += other.ran;
        self.waited += other.waited;
        self.elapsed += other.elapsed;
    }
}

/// Over less time there is no figure: the kernel updates the counters of a thread at each tick, 10 ms at most.
const SHORTEST: Duration = Duration::from_millis(500);

/// Measures this thread from a moment on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessorMeter {
    since_ns: u64,
    before: ThreadTimes,
}

impl ProcessorMeter {
    /// Begins at this moment of the run; `None` if the kernel does not count.
    pub fn begin(now_ns: u64) -> Option<ProcessorMeter> {
        Some(ProcessorMeter {
            since_ns: now_ns,
            before: ThreadTimes::now()?,
        })
    }

    /// The use up to this moment of the run; `None` after a short time too.
    pub fn end(self, now_ns: u64) -> Option<ProcessorUse> {
        // A kernel that does not count prints zeros.
        let after = ThreadTimes::now().filter(|after| after.ran_ns > 0)?;
        if now_ns.saturating_sub(self.since_ns) < SHORTEST.as_nanos() as u64 {
            return None;
        }
        let between = |before: u64, after: u64| Duration::from_nanos(after.saturating_sub(before));
        Some(ProcessorUse {
            ran: between(self.before.ran_ns, after.ran_ns),
            waited: between(self.before.waited_ns, after.waited_ns),
            elapsed: between(self.since_ns, now_ns),
        })
    }
}

/// The kernel's counters of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ThreadTimes {
    ran_ns: u64,
    waited_ns: u64,
}

impl ThreadTimes {
    fn now() -> Option<ThreadTimes> {
        ThreadTimes::of_line(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
    }

    /// The line of a thread: time on a processor, time in its queue, and the number of turns.
    fn of_line(line: &str) -> Option<ThreadTimes> {
        let mut numbers = line.split_whitespace().map(str::parse);
        let (ran_ns, waited_ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(ThreadTimes { ran_ns, waited_ns })
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::Instant;

    use super::*;

    #[test]
    fn line_of_the_kernel() {
        let times = |ran_ns, waited_ns| Some(ThreadTimes { ran_ns, waited_ns });
        assert_eq!(
            ThreadTimes::of_line("23000 4500 17\n"),
            times(23_000, 4_500)
        );
        assert_eq!(ThreadTimes::of_line("0 0 0\n"), times(0, 0));
        for line in ["", "5", "5 x 1"] {
            assert_eq!(ThreadTimes::of_line(line), None, "{line:?}");
        }
    }

    #[test]
    fn share_counts_waits_and_never_exceeds_the_time() {
        let used = |ran, waited, elapsed| ProcessorUse {
            ran: Duration::from_millis(ran),
            waited: Duration::from_millis(waited),
            elapsed: Duration::from_millis(elapsed),
        };
        assert_eq!(used(300, 150, 900).share(), Some(0.5));
        assert_eq!(
            used(901, 0, 900).share(),
            Some(1.0),
            "clocks differ by a tick"
        );
        assert_eq!(used(0, 0, 0).share(), None);
        let mut sum = used(300, 0, 300);
        sum.add(used(0, 0, 300));
        assert_eq!(sum.share(), Some(0.5), "one of two threads");
    }

    /// The share while a function works for longer than the shortest time; `None` if the kernel does not count.
    fn share_during(work: fn(Duration)) -> Option<f64> {
        let began = Instant::now();
        let meter = ProcessorMeter::begin(0)?;
        work(SHORTEST + Duration::from_millis(100));
        meter.end(began.elapsed().as_nanos() as u64)?.share()
    }

    fn spin(time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            black_box(began);
        }
    }

    /// A thread that computes is busy, on a machine with or without other load; one that sleeps is not. A hypervisor may take less than
    /// half of the time.
    #[test]
    fn work_differs_from_sleep() {
        let (Some(spun), Some(slept)) = (share_during(spin), share_during(std::thread::sleep))
        else {
            plumb_testkit::skip!("the kernel counts no time of threads");
        };
        assert!(spun > 0.5, "{spun}");
        assert!(slept < 0.5, "{slept}");
    }

    #[test]
    fn a_short_time_has_no_share() {
        let meter = ProcessorMeter::begin(0);
        let end_ns = SHORTEST.as_nanos() as u64 - 1;
        assert_eq!(meter.and_then(|meter| meter.end(end_ns)), None);
    }
}
