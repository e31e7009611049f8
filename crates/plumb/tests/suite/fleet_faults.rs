//! Faults of a pass over many hosts: cut shards, and a shard that is killed and runs again.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use plumb_fleet::Shard;
use plumb_testkit::wait;
use plumb_testkit::workload::Mixed;
use plumb_testkit::write::{Style, blktrace, write_all};

use crate::common::{Folder, command, msr, pages, plumb};
use crate::fleet::{merge, profile, read, report};

/// A shard that was copied in part is named, and nothing is made of it.
#[test]
fn a_truncated_shard_is_named() {
    let folder = Folder::new("fleet-cut-shard");
    let files = ["a", "b", "c"].map(|host| {
        let place = folder.path("in").join(host);
        fs::create_dir_all(&place).expect("room");
        fs::write(place.join("x.csv"), msr(pages(50, 512, 8192))).expect("room");
        let file = folder.path(&format!("{host}.fleet"));
        profile(&place, &file, "").ends(0);
        file
    });
    let cut = read(&files[1]);
    for len in [0, 11, 12, cut.len() / 2, cut.len() - 1] {
        fs::write(&files[1], &cut[..len]).expect("room");
        let output = folder.path("output");
        for word in ["merge", "rows"] {
            let words = ["fleet", word, "-o"].map(Path::new);
            let words = words.into_iter().chain([output.as_path()]);
            let paths = files.iter().map(PathBuf::as_path);
            plumb(words.chain(paths)).ends(5).complains("b.fleet");
            assert!(!output.exists(), "{word}, cut at byte {len}");
        }
    }
    report(&files[1], "--json").ends(5).complains("b.fleet");
}

/// A recording of blktrace.
fn recording() -> Vec<u8> {
    let mut trace = Vec::new();
    let opened = (blktrace::WRITER.open)(Box::new(&mut trace), &Style::default());
    let mut sink = opened.expect("room");
    let workload = Mixed {
        events: 2000,
        devices: 1,
        ..Mixed::default()
    };
    write_all(sink.as_mut(), workload.iter()).expect("room");
    drop(sink);
    trace
}

/// A shard is killed in the middle of an input, and runs again: the bytes are those of a shard without a kill.
#[test]
fn a_killed_shard_that_runs_again_gives_the_same_bytes() {
    const NAME: &str = "sda.blktrace.0";
    let folder = Folder::new("fleet-killed-again");
    let root = folder.path("in");
    for host in 0..40 {
        let place = root.join(format!("host=db{host}"));
        fs::create_dir_all(&place).expect("room");
        let text = msr(pages(50 + host, 512 * (host % 2), 8192));
        fs::write(place.join("x.csv"), text).expect("room");
    }
    // The last host, so that those before are in the unfinished file.
    let last = folder.path("host=last").join(NAME);
    fs::create_dir_all(folder.path("host=last")).expect("room");
    let trace = recording();
    fs::write(&last, &trace).expect("room");
    let is_of = |shard: &u32| {
        let shard: Shard = format!("{shard}/3").parse().expect("a shard");
        shard.takes(NAME)
    };
    let shard = (0..3).find(is_of).expect("one of three");
    let parts = folder.path("parts");
    fs::create_dir_all(&parts).expect("room");
    let run = |shard: u32, output: &Path| {
        let mut words = command();
        words.args(["fleet", "profile", "--shard", &format!("{shard}/3"), "-o"]);
        words.args([output, root.as_path(), last.as_path()]);
        words.stdin(Stdio::null());
        words.stdout(Stdio::null()).stderr(Stdio::null());
        words
    };
    let done = |shard: u32, output: &Path| {
        let ended = wait::output_of(&mut run(shard, output));
        assert!(ended.status.success(), "{ended:?}");
    };
    let undisturbed = folder.path("undisturbed");
    done(shard, &undisturbed);
    // A pipe with half of the trace keeps the command there.
    fs::remove_file(&last).expect("a file");
    let made = std::process::Command::new("mkfifo").arg(&last).status();
    assert!(made.expect("mkfifo of coreutils").success());
    let output = parts.join(shard.to_string());
    let mut child = run(shard, &output).spawn().expect("the program starts");
    let mut pipe: Option<File> = None;
    wait::until("a reader of the pipe", wait::PATIENCE, || {
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let opened = OpenOptions::new()
            .write(true)
            .custom_flags(nonblocking)
            .open(&last);
        pipe = opened.ok();
        pipe.is_some()
    });
    // At most what a pipe holds.
    let half = &trace[..(trace.len() / 2).min(32 << 10)];
    pipe.as_mut()
        .expect("a pipe")
        .write_all(half)
        .expect("room");
    assert!(fs::read_dir(&parts).expect("a folder").count() > 0);
    wait::killed("the shard", &mut child);
    assert!(!output.exists());
    drop(pipe);
    fs::remove_file(&last).expect("a pipe");
    fs::write(&last, &trace).expect("room");
    done(shard, &output);
    assert!(read(&output) == read(&undisturbed));
    // The unfinished file of the killed run is in the folder, and is no shard.
    for other in (0..3).filter(|other| *other != shard) {
        done(other, &parts.join(other.to_string()));
    }
    let merged = folder.path("merged");
    merge(&[parts], &merged).ends(0);
    let whole = folder.path("whole");
    let words = ["fleet", "profile", "-o"].map(Path::new);
    plumb(
        words
            .into_iter()
            .chain([whole.as_path(), root.as_path(), last.as_path()]),
    )
    .ends(0);
    assert!(read(&merged) == read(&whole));
}
