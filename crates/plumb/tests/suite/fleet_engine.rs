//! `plumb fleet report --engine`, with a program in place of `spark-submit`. `scripts/test-fleet` runs the same on Spark.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use plumb_testkit::wait;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::common::{Folder, Ran, command, msr, pages};

/// One task that reads all sources, by the shipped program. It stops at a word that it does not expect.
const ONE_TASK: &str = r#"#!/bin/sh
set -eu
flags=
job=
sources=
while [ $# -gt 0 ]; do
  case $1 in
    --master) [ "$2" = spark://head:7077 ]; shift ;;
    --deploy-mode) [ "$2" = client ]; shift ;;
    --conf) shift ;;
    --files) program=${2%%,*}; shift ;;
    --output) output=$2; shift ;;
    --grid) flags="$flags --grid $2"; shift ;;
    --skip-bad) flags="$flags --skip-bad" ;;
    -*) exit 64 ;;
    *.py) job=$1 ;;
    *) sources="$sources $1" ;;
  esac
  shift
done
[ "${program##*/}" = "plumb-$(uname -m)" ]
grep -q mapInArrow "$job"
"$program" fleet profile $flags -o "$output" $sources
"#;

/// A host of Spark: its folders for programs and for temporary files.
struct Submitter(Folder);

impl Submitter {
    fn new(script: &str) -> Submitter {
        let folder = Folder::new("fleet-engine");
        for name in ["bin", "tmp"] {
            fs::create_dir(folder.path(name)).expect("room");
        }
        let text = folder.file("script", script);
        // Another process makes the program: a child that another test starts meanwhile would keep it open for writing.
        let made = Command::new("install")
            .args(["-m", "755"])
            .arg(&text)
            .arg(folder.path("bin/spark-submit"))
            .status();
        assert!(made.expect("install of coreutils").success());
        Submitter(folder)
    }

    /// Three hosts, one of them with a file that is no trace.
    fn recordings(&self) -> PathBuf {
        let root = self.0.path("in");
        for (host, past) in [("db0", 0), ("db1", 512), ("db2", 1024)] {
            fs::create_dir_all(root.join(host)).expect("room");
            let text = msr(pages(300, past, 8192));
            fs::write(root.join(host).join("sda.csv"), text).expect("room");
        }
        fs::write(root.join("db1/notes"), "no trace").expect("room");
        root
    }

    fn report(&self, source: &Path, flags: &str) -> Command {
        let mut command = command();
        let path = std::env::var("PATH").expect("a path");
        let bin = self.0.path("bin");
        command
            .args(["fleet", "report"])
            .args(flags.split_whitespace())
            .arg(source)
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("TMPDIR", self.0.path("tmp"))
            .env_remove("SPARK_HOME")
            .stdin(Stdio::null());
        command
    }

    fn ran(&self, source: &Path, flags: &str) -> Ran {
        Ran::from_output(wait::output_of(&mut self.report(source, flags)))
    }

    /// Names in the folder for temporary files.
    fn left(&self) -> usize {
        fs::read_dir(self.0.path("tmp")).expect("a folder").count()
    }
}

const ENGINE: &str = "--engine spark://head:7077";

#[test]
fn an_engine_prints_the_same_report() {
    let submitter = Submitter::new(ONE_TASK);
    let root = submitter.recordings();
    for flags in [
        "--skip-bad",
        "--skip-bad --grid 8k@512 --grid 64k",
        "--skip-bad --as csv --top 1",
    ] {
        let alone = submitter.ran(&root, flags);
        let engine = submitter.ran(&root, &format!("{flags} {ENGINE}"));
        alone.ends(3).complains("db1/notes");
        engine.ends(3).complains("skipped:").complains("db1/notes");
        assert_eq!(engine.out, alone.out, "{flags}");
    }
    // The sums of the other grids are in the document.
    let flags = "--skip-bad --json --grid 12k";
    let alone = submitter.ran(&root, flags).json();
    let engine = submitter.ran(&root, &format!("{flags} {ENGINE}")).json();
    assert_eq!(engine["result"], alone["result"]);
    assert_eq!(engine["findings"], alone["findings"]);
    assert_eq!(submitter.left(), 0);
}

#[test]
fn failures_of_an_engine_have_their_reason() {
    let frame = "\tat org.apache.spark.Frame.frame(Frame.scala:1)";
    let of_job = "plumb-spark: a task failed on h7: plumb fleet profile ended with status 5\n\
                  plumb-spark: error: /srv/in/db1/notes: found no known format";
    for (script, words) in [
        (
            "exit 3".to_owned(),
            &["all.fleet", "No such file or directory"][..],
        ),
        (
            format!("echo 'ERROR Client: no answer of the master\n{frame}' >&2\nexit 1"),
            &[
                "spark-submit ended with status 1",
                "spark-submit: ERROR Client: no answer of the master",
            ],
        ),
        (
            "kill -9 $$".to_owned(),
            &["spark-submit was killed by signal 9"],
        ),
        (
            format!("echo '{of_job}'\necho 'INFO SparkContext: stopped' >&2\nexit 5"),
            &[
                "the job on Spark failed: a task failed on h7",
                "spark-submit: error: /srv/in/db1/notes: found no known format",
            ],
        ),
    ] {
        let submitter = Submitter::new(&format!("#!/bin/sh\n{script}\n"));
        let failed = submitter.ran(&submitter.recordings(), ENGINE);
        failed.ends(5);
        for words in words {
            failed.complains(words);
        }
        assert!(!failed.err.contains("Frame.scala"), "{}", failed.err);
        assert_eq!(failed.out, "");
        assert_eq!(submitter.left(), 0, "{script}");
    }
}

#[test]
fn a_missing_spark_submit_is_named() {
    let submitter = Submitter::new("");
    let root = submitter.recordings();
    let bare = submitter.0.path("tmp");
    let mut command = submitter.report(&root, ENGINE);
    let failed = Ran::from_output(wait::output_of(command.env("PATH", &bare)));
    let mut messages = vec![failed.ends(5).complaint()];
    // A wrong SPARK_HOME is not passed over for one in PATH.
    let mut command = submitter.report(&root, ENGINE);
    let failed = Ran::from_output(wait::output_of(command.env("SPARK_HOME", &bare)));
    messages.push(failed.ends(5).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn engines_that_cannot_be() {
    let submitter = Submitter::new(ONE_TASK);
    let root = submitter.recordings();
    let mut messages = Vec::new();
    for engine in ["http://head:7077", "spark://", "head:7077", "yarn://head"] {
        let refused = submitter.ran(&root, &format!("--engine {engine}"));
        messages.push(refused.ends(2).complaint());
    }
    let refused = submitter.ran(&root, &format!("{ENGINE} --state state"));
    messages.push(refused.ends(2).complaint());
    let whole = submitter.0.path("whole");
    let mut profile = command();
    profile.args(["fleet", "profile", "--skip-bad", "-o"]);
    let done = wait::output_of(profile.arg(&whole).arg(&root));
    assert_eq!(done.status.code(), Some(3));
    let refused = submitter.ran(&whole, ENGINE);
    messages.push(refused.ends(2).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
}

fn signal(child: &Child) {
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::TERM).expect("it runs");
}

/// The driver gets the chance to remove its application from the cluster.
#[test]
fn a_signal_ends_the_driver() {
    let script = "#!/bin/sh\ntrap 'touch ended; exit 143' TERM\nsleep 3000 &\necho $! > pid\nmv pid started\nwait\n";
    let submitter = Submitter::new(script);
    let root = submitter.recordings();
    let place = submitter.0.path("");
    let mut report = submitter.report(&root, ENGINE);
    report.current_dir(&place).stderr(Stdio::piped());
    let mut child = report.spawn().expect("the program starts");
    let started = place.join("started");
    wait::until_while_runs("the driver", wait::PATIENCE, &mut child, || {
        started.exists()
    });
    signal(&child);
    let ended = wait::output("the report", wait::PATIENCE, child);
    insta::assert_snapshot!(Ran::from_output(ended).ends(5).complaint());
    assert!(place.join("ended").exists());
    assert_eq!(submitter.left(), 0);
    let descendant = fs::read_to_string(started).expect("a number");
    let descendant = Pid::from_raw(descendant.trim().parse().expect("a number"));
    let descendant = descendant.expect("a process");
    wait::until("the end of the descendant", wait::PATIENCE, || {
        test_kill_process(descendant).is_err()
    });
}

/// After the job, signals end the report as they end one without an engine.
#[test]
fn a_signal_ends_the_report() {
    let submitter = Submitter::new(&format!("{ONE_TASK}: > done\n"));
    let root = submitter.recordings();
    fs::remove_file(root.join("db1/notes")).expect("a file");
    let place = submitter.0.path("");
    let inventory = place.join("inventory");
    fs::create_dir(&inventory).expect("room");
    // A pipe without a writer keeps the report from coming to its end. Its folder may be read.
    let pipe = inventory.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo of coreutils").success());
    let flags = format!("{ENGINE} --inventory inventory --inventory inventory/pipe");
    let mut report = submitter.report(&root, &flags);
    report.current_dir(&place).stderr(Stdio::null());
    let mut child = report.spawn().expect("the program starts");
    wait::until_while_runs("the end of the job", wait::PATIENCE, &mut child, || {
        place.join("done").exists() && submitter.left() == 0
    });
    signal(&child);
    let status = wait::exit("the report", wait::PATIENCE, &mut child);
    assert_eq!(status.signal(), Some(15));
}
