//! The machine of a test: its kernel, and the share of its processors that others left.

use std::fs;

/// The content of `/proc/stat` at the start.
#[derive(Debug)]
pub struct Machine {
    begun: Ticks,
}

/// Time of all processors, in ticks since the machine started.
#[derive(Clone, Copy, Debug, Default)]
struct Ticks {
    all: u64,
    idle: u64,
    stolen: u64,
}

/// Whether the kernel has a tracepoint that programs can attach to with its types.
///
/// # Panics
/// If the kernel shows no types: a test asks for `Bpf` first.
#[must_use]
pub fn has_tracepoint(name: &str) -> bool {
    let types = fs::read("/sys/kernel/btf/vmlinux").expect("types of the kernel");
    let name = format!("btf_trace_{name}\0");
    types
        .windows(name.len())
        .any(|part| part == name.as_bytes())
}

impl Machine {
    /// Begins to look.
    #[must_use]
    pub fn watched() -> Self {
        Self {
            begun: Ticks::now(),
        }
    }

    /// Why times that were measured since then are those of other programs: the processors were idle for less than two fifths
    /// of it, or the host took more than a hundredth away. `None` on a machine that had time.
    #[must_use]
    pub fn was_busy(&self) -> Option<String> {
        Ticks::now().since(self.begun).busy()
    }
}

impl Ticks {
    fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        Self::parse(&stat).unwrap_or_default()
    }

    /// The columns are user, nice, system, idle, waiting for I/O, interrupts, soft interrupts, stolen; guests' time, which
    /// follows, is in user's.
    fn parse(stat: &str) -> Option<Self> {
        let columns = stat
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace();
        let times: Vec<u64> = columns
            .map_while(|column| column.parse().ok())
            .take(8)
            .collect();
        let [.., idle, waiting, _, _, stolen] = times[..] else {
            return None;
        };
        Some(Self {
            all: times.iter().sum(),
            idle: idle + waiting,
            stolen,
        })
    }

    fn since(self, begun: Self) -> Self {
        Self {
            all: self.all - begun.all,
            idle: self.idle - begun.idle,
            stolen: self.stolen - begun.stolen,
        }
    }

    fn busy(self) -> Option<String> {
        let percent = |ticks: u64| 100 * ticks / self.all.max(1);
        (self.idle * 5 < self.all * 2 || self.stolen * 100 > self.all).then(|| {
            format!(
                "the machine was busy: its processors idle for {} % and taken away for {} % of the time",
                percent(self.idle),
                percent(self.stolen)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(begun: &str, ended: &str) -> Option<String> {
        let ticks = |text: &str| Ticks::parse(text).expect("times");
        ticks(ended).since(ticks(begun)).busy()
    }

    #[test]
    fn busy_is_little_idle_or_something_stolen() {
        let begun = "cpu  100 0 50 1000 20 0 5 7 0 0\ncpu0 1 2 3\n";
        // 1,000 ticks more each: 600 idle, 100 of them waiting for I/O; 390 idle; 11 stolen.
        assert_eq!(busy(begun, "cpu  400 0 150 1500 120 0 5 7 0 0\n"), None);
        let own = busy(begun, "cpu  610 0 150 1390 20 0 5 7 0 0\n").expect("it was");
        let stolen = busy(begun, "cpu  389 0 150 1600 20 0 5 18 0 0\n").expect("it was");
        insta::assert_snapshot!([own, stolen].join("\n\n"));
        assert!(Ticks::parse("intr 1").is_none());
    }

    #[test]
    fn this_machine_has_processors() {
        assert!(Ticks::now().all > 0);
    }
}
