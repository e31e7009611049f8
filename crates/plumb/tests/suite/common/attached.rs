//! Waits until `plumb watch` or `plumb record` has attached its programs, so that no I/O of a test comes too early.

use std::time::Duration;

use plumb_testkit::wait;

/// Returns when the process has attached programs and attaches no further ones for 700 ms.
pub fn await_programs(pid: u32) {
    let attached = || {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        files
            .filter_map(|file| std::fs::read_link(file.path()).ok())
            .filter(|to| to.ends_with("anon_inode:bpf_link"))
            .count()
    };
    let mut before = 0;
    wait::until("its programs are attached", Duration::from_secs(60), || {
        // On a busy machine the kernel takes long from one program to the next.
        std::thread::sleep(Duration::from_millis(700));
        let now = attached();
        let is_last = now > 0 && now == before;
        before = now;
        is_last
    });
}
