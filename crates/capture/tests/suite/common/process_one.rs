//! Completions on the time of process 1. They come in interrupts, during any task; some kernels run no program while
//! that is one of process 1 (found: a check of `current->tgid` in `bpf_trace_run3`), and count nothing. Trace events
//! have them all.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Trace events of the completions of one disk.
pub struct ProcessOne {
    /// `None` where no tracefs is.
    instance: Option<PathBuf>,
    threads: BTreeSet<u32>,
    completions: u64,
}

fn threads() -> impl Iterator<Item = u32> {
    let tasks = fs::read_dir("/proc/1/task").into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok())
}

/// Whose time a completion took, from a line such as `ksoftirqd/1-22  [001] ..s.. 76762.685761: block_rq_complete: …`.
fn task_of(line: &str) -> Option<u32> {
    let (task, _) = line.split_once(" [")?;
    task.trim_end().rsplit_once('-')?.1.parse().ok()
}

impl ProcessOne {
    pub fn watch(disk: u32) -> ProcessOne {
        let name = format!("plumb-test-{}-{disk}", std::process::id());
        let instance = Path::new("/sys/kernel/tracing/instances").join(name);
        let event = instance.join("events/block/block_rq_complete");
        let is_there = fs::create_dir(&instance).is_ok();
        if is_there {
            fs::write(event.join("filter"), format!("dev == {disk}")).expect("a filter");
            fs::write(event.join("enable"), "1").expect("the event");
        }
        ProcessOne {
            instance: is_there.then_some(instance),
            threads: threads().collect(),
            completions: 0,
        }
    }

    /// Reads the buffer: room for about 20,000 events of a processor.
    pub fn keep_up(&mut self) {
        let Some(instance) = &self.instance else {
            return;
        };
        self.threads.extend(threads());
        let trace = fs::read_to_string(instance.join("trace")).expect("events");
        fs::write(instance.join("trace"), "").expect("an empty buffer");
        let tasks = trace
            .lines()
            .filter(|line| line.contains("block_rq_complete:"))
            .filter_map(task_of);
        self.completions += tasks.filter(|task| self.threads.contains(task)).count() as u64;
    }

    /// Counts from now on.
    pub fn restart(&mut self) {
        self.keep_up();
        self.completions = 0;
    }

    pub fn completions(&mut self) -> u64 {
        self.keep_up();
        self.completions
    }

    /// Compares the number that programs did not see with that: none, or exactly these. On a busy machine the kernel
    /// skips a program for a task that preempts another one inside it: a few more, at most one of a hundred.
    pub fn explains(&mut self, unseen: u64, of: u64) {
        let completions = self.completions();
        if unseen > 0 {
            eprintln!("{unseen} completions fell on the time of process 1");
        }
        assert!(
            unseen <= completions + of / 100,
            "{unseen} of {of} unseen, {completions} of process 1"
        );
    }
}

impl Drop for ProcessOne {
    fn drop(&mut self) {
        let Some(instance) = &self.instance else {
            return;
        };
        // Fails while somebody reads it, and leaves a directory then.
        let _ = fs::write(instance.join("events/enable"), "0");
        let _ = fs::remove_dir(instance);
    }
}
