//! The names on the command line: existing disks, and processes that should exist.

use std::fs;
use std::path::Path;

use plumb_capture::Layers;
use plumb_quoting::Command;

use crate::failure::{self, Failure};

/// The number of a disk with I/O at the requested layer; a command without a layer is named for others.
pub(crate) fn disk_at(name: &str, layers: Layers, command: &Command) -> Result<u32, Failure> {
    let dev = plumb_capture::disk_of(name).map_err(super::refused)?;
    tell_of_disk(name, dev);
    if layers != Layers::Request || !plumb_capture::is_bio_based(dev) {
        return Ok(dev);
    }
    let below = plumb_capture::names_below(name);
    let mut what = format!("{name} hands its I/O on as it comes, and makes no requests");
    if !below.is_empty() {
        what += &format!(": those are made by {}", below.join(", "));
    }
    Err(Failure::unknown(what).with_command(command.clone().path(name)))
}

/// Notes that a partition was named: I/O are watched by disk, and separated by partition.
fn tell_of_disk(name: &str, dev: u32) {
    let base = name.strip_prefix("/dev/").unwrap_or(name);
    if Path::new("/sys/class/block")
        .join(base)
        .join("partition")
        .exists()
    {
        let disk = plumb_capture::name_of(dev).name;
        failure::tell(
            "plumb: ",
            &format!("{base} is a partition: plumb watches its whole disk, {disk}"),
        );
    }
}

/// Reports the ones that are no process now: their I/O would never be seen.
pub(crate) fn tell_of_processes(pids: &[u32]) {
    for words in pids
        .iter()
        .filter_map(|pid| why_no_process(Path::new("/proc"), *pid))
    {
        failure::tell("plumb: ", &words);
    }
}

fn why_no_process(proc: &Path, pid: u32) -> Option<String> {
    let Ok(status) = fs::read_to_string(proc.join(pid.to_string()).join("status")) else {
        return Some(format!(
            "--pid {pid}: found no such process now, so that nothing may be seen"
        ));
    };
    // The kernel shows threads by their numbers as well, and I/O are counted by process.
    let process = status
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))
        .map(str::trim)?;
    (process != pid.to_string())
        .then(|| format!("--pid {pid}: found a thread, expected its process: --pid {process}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_a_thread_and_none() {
        let folder = tempfile::tempdir().expect("a directory");
        for (pid, status) in [
            (41, "Name:\tdd\nTgid:\t41\nNgid:\t0\n"),
            (42, "Name:\tdd\nTgid:\t41\n"),
        ] {
            fs::create_dir(folder.path().join(pid.to_string())).expect("a directory");
            fs::write(folder.path().join(pid.to_string()).join("status"), status).expect("a file");
        }
        let why = |pid| why_no_process(folder.path(), pid);
        assert_eq!(why(41), None);
        let reasons = [42, 43].map(|pid| why(pid).expect("a reason"));
        insta::assert_snapshot!(reasons.join("\n\n"));
    }
}
