//! Page faults of processes that waited for a disk, during a watch: the kernel counts them for each process since its start.

use std::collections::BTreeMap;
use std::fs;

/// The counts of processes at the start of the watch, and the last ones seen.
pub struct Faults {
    at_start: BTreeMap<u32, u64>,
    last: BTreeMap<u32, u64>,
}

impl Faults {
    /// Counts from now on.
    pub fn begin() -> Faults {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        Faults {
            at_start: pids
                .filter_map(|pid| Some((pid, major_faults(pid)?)))
                .collect(),
            last: BTreeMap::new(),
        }
    }

    /// Reads the count of a process that sends I/O. Faults after the last call before its end are lost.
    pub fn look(&mut self, pid: u32) {
        if let Some(faults) = major_faults(pid) {
            self.last.insert(pid, faults);
        }
    }

    /// Faults of a process since the start of the watch, as far as they were seen. A process that started later began with none.
    pub fn faults_of(&self, pid: u32) -> u64 {
        let last = self.last.get(&pid).copied().unwrap_or(0);
        let before = self.at_start.get(&pid).copied().unwrap_or(0);
        last.saturating_sub(before)
    }
}

/// `majflt` of a process and its threads.
fn major_faults(pid: u32) -> Option<u64> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Field 12 of `/proc/PID/stat`. The command before it is in parentheses, and may hold any letter.
fn parse(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(9)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the table of `proc_pid_stat(5)`: state ppid pgrp session tty tpgid flags minflt cminflt majflt.
    #[test]
    fn the_twelfth_field_is_found_behind_any_command() {
        let stat = "4711 (a) 1 (b) S 1 4711 4711 0 -1 4194304 200 0 37 5 1 2 3";
        assert_eq!(parse(stat), Some(37));
        assert_eq!(parse("4711 (a"), None);
        assert_eq!(parse("4711 (a) S 1"), None);
    }
}
