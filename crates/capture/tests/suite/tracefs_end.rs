//! A watch by trace events leaves nothing behind, however it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plumb_capture::{Attached, BlockWatch, Options};
use plumb_testkit::{require, wait};

fn by_events() -> Options {
    Options {
        attach: Some(Attached::Tracefs),
        ..Options::default()
    }
}

const LIMIT: Duration = Duration::from_secs(60);
const CHILD: &str = "PLUMB_TRACEFS_CHILD";

/// The action of a child process of these tests.
fn act(how: &str) {
    let block = BlockWatch::attach(&by_events()).expect("an instance");
    println!("attached");
    match how {
        "end" => drop(block),
        "panic" => panic!("as asked"),
        _ => std::thread::sleep(Duration::from_secs(60)),
    }
}

/// This test program again, once it watches.
fn child(how: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("path of the test program"))
        .args([
            "--exact",
            "tracefs_end::nothing_is_left_behind",
            "--nocapture",
        ])
        .env(CHILD, how)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the test program again");
    let mut said = wait::Lines::of("the child", child.stdout.take().expect("a pipe"));
    let attached = said.any(|line| line.ends_with("attached"));
    assert!(attached, "{how}: the child could not watch");
    child
}

fn instance_of(process: u32) -> PathBuf {
    Path::new("/sys/kernel/tracing/instances").join(format!("plumb-{process}"))
}

/// However a watch ends.
#[test]
fn nothing_is_left_behind() {
    if let Ok(how) = std::env::var(CHILD) {
        return act(&how);
    }
    require!(Tracefs);
    for how in ["end", "panic"] {
        let mut child = child(how);
        let status = wait::exit("a watch", LIMIT, &mut child);
        assert_eq!(status.success(), how == "end", "{how}");
        assert!(!instance_of(child.id()).exists(), "{how}");
    }
    let mut killed = child("kill");
    let instance = instance_of(killed.id());
    assert!(instance.exists());
    wait::killed("a watch", &mut killed);
    let what = format!("{} is removed", instance.display());
    wait::until(&what, LIMIT, || !instance.exists());
    // And should nobody have been left to remove it.
    fs::create_dir(&instance).expect("an instance");
    let block = BlockWatch::attach(&by_events()).expect("an instance");
    assert!(!instance.exists());
    drop(block);
}
