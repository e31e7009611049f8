//! How busy the host's processors are, from /proc/stat.

use plumb_load::figures::CpuShares;

/// Differences of the kernel's counters.
pub struct CpuMeter {
    last: Option<CpuTicks>,
}

/// Ticks since the boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuTicks {
    all: u64,
    idle: u64,
    user: u64,
}

impl CpuMeter {
    /// Begins now.
    pub fn new() -> CpuMeter {
        CpuMeter { last: now() }
    }

    /// Shares since the last call; `None` where the kernel does not tell, or no tick went by.
    pub fn since_last(&mut self) -> Option<CpuShares> {
        let before = std::mem::replace(&mut self.last, now())?;
        let after = self.last?;
        let all = after.all.checked_sub(before.all).filter(|&all| all > 0)? as f64;
        let busy = all - after.idle.saturating_sub(before.idle) as f64;
        let user = after.user.saturating_sub(before.user) as f64;
        let share = |ticks: f64| (ticks / all).clamp(0.0, 1.0);
        Some(CpuShares {
            busy_share: share(busy),
            system_share: share(busy - user),
        })
    }
}

fn now() -> Option<CpuTicks> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// The line of all processors: user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user already.
fn parse(stat: &str) -> Option<CpuTicks> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map_while(|word| word.parse().ok())
        .collect();
    let [user, nice, _, idle, iowait, ..] = ticks[..] else {
        return None;
    };
    Some(CpuTicks {
        all: ticks.iter().sum(),
        idle: idle + iowait,
        user: user + nice,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernel() {
        let stat = "cpu  100 20 30 400 50 6 7 8 90 9\ncpu0 1 2 3 4 5 6 7 8 9 0\n";
        assert_eq!(
            parse(stat),
            Some(CpuTicks {
                all: 621,
                idle: 450,
                user: 120
            })
        );
        assert_eq!(parse("intr 5"), None);
        assert_eq!(parse("cpu  1 2"), None);
    }
}
