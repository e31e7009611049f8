//! `plumb fleet report --engine`: a Spark cluster profiles the recordings, by the job in `contrib/fleet/spark`.
//!
//! `spark-submit` runs as a child before this process gives up its rights. It ships this program to the executors, and fetches the merged
//! fleet file, which equals the file of one pass. Retries and speculation are those of Spark.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{FleetFiles, open_all};
use crate::cli::FleetReport;
use crate::failure::Failure;
use crate::output::say;
use crate::signals;
use crate::status::Meter;

/// The job: executors get its functions from the driver, so no host has to install it.
const JOB: &str = include_str!("../../../../contrib/fleet/spark/plumb_spark.py");
/// Processors that packages are built for, by the name that `uname -m` prints.
const PROCESSORS: [&str; 2] = ["x86_64", "aarch64"];
/// Time between two looks at the child.
const GLANCE: Duration = Duration::from_millis(20);
/// Time in which a driver removes its application from the cluster. After it the driver is killed.
const END_MAX: Duration = Duration::from_secs(10);
/// Bytes at the end of the log that are searched for messages.
const LOG_READ: u64 = 1 << 20;
/// Lines of the log that are printed after a failure.
const LOG_SHOWN: usize = 12;
/// Statuses of the job: written, and written with inputs that were read only in part.
const WRITTEN: [i32; 2] = [0, 3];

/// The master of a cluster, in the words of `spark-submit --master`.
///
/// # Errors
/// Any other word.
pub fn master(text: &str) -> Result<String, String> {
    let is_address = ["spark://", "k8s://"].iter().any(|scheme| {
        text.strip_prefix(scheme)
            .is_some_and(|host| !host.is_empty())
    });
    let is_local = text.starts_with("local[") || text.starts_with("local-cluster[");
    match is_address || is_local || text == "yarn" {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "found `{text}`, expected spark://HOST:PORT, yarn, k8s://https://HOST:PORT or local[N]"
        )),
    }
}

/// Profiles the sources of a report on a cluster, and opens the result. Its file has no name afterwards.
///
/// # Errors
/// When there is no `spark-submit`, when it fails, is killed or is stopped by a signal, and when an input cannot be read.
pub(super) fn profile(args: &FleetReport, master: &str) -> Result<FleetFiles, Failure> {
    let submit = spark_submit()?;
    let folder = JobFolder::new()?;
    let job = folder.path("plumb_spark.py");
    fs::write(&job, JOB).map_err(|error| failed(&job, &error))?;
    let output = folder.path("all.fleet");
    let log = folder.path("log");
    let mut command = Command::new(&submit);
    command
        .args(["--master", master, "--deploy-mode", "client"])
        .args(["--conf", "spark.ui.showConsoleProgress=false", "--files"])
        .arg(folder.programs()?)
        .arg(&job)
        .arg("--output")
        .arg(&output);
    for grid in &args.input.grids() {
        let (granularity, offset) = (grid.granularity().0, grid.offset().0);
        command.args(["--grid", &format!("{granularity}@{offset}")]);
    }
    if args.input.skip_bad {
        command.arg("--skip-bad");
    }
    for source in &args.sources {
        // Links stay: a name of a host may be in the path.
        let source = std::path::absolute(source).map_err(|error| failed(source, &error))?;
        command.arg(source);
    }
    let status = run(command, &submit, &log)?;
    let log = end_of(&log);
    let is_written = status.code().is_some_and(|code| WRITTEN.contains(&code));
    if !is_written {
        return Err(refused(status, &log));
    }
    messages(&log, "plumb: ").for_each(|note| say(&format!("plumb: {note}")));
    open_all(&[output])
}

/// The program that submits: that of SPARK_HOME, else the first in PATH.
fn spark_submit() -> Result<PathBuf, Failure> {
    let name = "spark-submit";
    let help = "install Apache Spark 3.5 or later on this host, or set SPARK_HOME to its folder";
    if let Some(home) = std::env::var_os("SPARK_HOME").filter(|home| !home.is_empty()) {
        let program = Path::new(&home).join("bin").join(name);
        return match program.is_file() {
            true => Ok(program),
            false => {
                let found = format!("found no {} (SPARK_HOME)", program.display());
                Err(Failure::missing(found).with_help(help))
            }
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .ok_or_else(|| Failure::missing(format!("found no {name} in PATH")).with_help(help))
}

/// Runs the driver until it ends. A signal to this process ends the driver first.
fn run(mut command: Command, submit: &Path, log: &Path) -> Result<ExitStatus, Failure> {
    let at_log = |error: std::io::Error| failed(log, &error);
    let to = File::create(log).map_err(at_log)?;
    // Spark prints the messages of the job to the standard output.
    let output = to.try_clone().map_err(at_log)?;
    let stop = signals::stop_flag()?;
    let mut driver = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(to)
        .process_group(0)
        .spawn()
        .map_err(|error| failed(submit, &error))?;
    let shown = log.display().to_string();
    let meter = Meter::start(move |elapsed| {
        let seconds = elapsed.as_secs();
        format!("Spark has run for {seconds} s; its log: {shown}")
    });
    let status = loop {
        let ended = driver.try_wait().map_err(|error| failed(submit, &error))?;
        if let Some(status) = ended {
            break status;
        }
        if stop.load(Ordering::Relaxed) {
            end(&mut driver);
            let words = "stopped by a signal, before Spark had profiled all inputs";
            return Err(Failure::missing(words));
        }
        thread::sleep(GLANCE);
    };
    drop(meter);
    plumb_sys::signals::end_at_signals();
    Ok(status)
}

/// Ends the driver with its descendants.
fn end(driver: &mut Child) {
    let group = i32::try_from(driver.id()).ok().and_then(Pid::from_raw);
    let signal = |signal| group.map(|group| kill_process_group(group, signal));
    signal(Signal::TERM);
    let limit = Instant::now() + END_MAX;
    while matches!(driver.try_wait(), Ok(None)) && Instant::now() < limit {
        thread::sleep(GLANCE);
    }
    signal(Signal::KILL);
    let _ = driver.wait();
}

/// The failure of a driver, by the reason of the job if it gave one, else by the end of the log.
fn refused(status: ExitStatus, log: &str) -> Failure {
    let mut reason = messages(log, "plumb-spark: ");
    if let Some(first) = reason.next() {
        reason.for_each(|line| say(&format!("spark-submit: {line}")));
        return Failure::missing(format!("the job on Spark failed: {first}"));
    }
    // Frames of a stack and steps of a start hide the reason.
    let is_telling = |line: &&str| {
        !line.trim().is_empty() && !line.starts_with(['\t', ' ']) && !line.contains(" INFO ")
    };
    let lines: Vec<&str> = log.lines().filter(is_telling).collect();
    let shown = &lines[lines.len().saturating_sub(LOG_SHOWN)..];
    shown
        .iter()
        .for_each(|line| say(&format!("spark-submit: {line}")));
    Failure::missing(match (status.code(), status.signal()) {
        (Some(code), _) => format!("spark-submit ended with status {code}"),
        (None, Some(signal)) => format!("spark-submit was killed by signal {signal}"),
        (None, None) => "spark-submit ended without a status".to_owned(),
    })
    .with_help("look for the reason in the log of Spark above, and run the command again")
}

/// The lines of the log with a mark in front, without it.
fn messages<'a>(log: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    log.lines().filter_map(move |line| line.strip_prefix(mark))
}

/// The last lines of the log; nothing if it cannot be read.
fn end_of(log: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(LOG_READ)))?;
        file.take(LOG_READ).read_to_end(&mut bytes)
    });
    read.map_or_else(
        |_| String::new(),
        |_| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

fn failed(path: &Path, error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::failed(error).at(&path.display().to_string())
}

/// The folder of a job, for this user alone. It is removed with the value.
struct JobFolder(PathBuf);

impl JobFolder {
    fn new() -> Result<JobFolder, Failure> {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let name = format!("plumb-engine-{}-{}", std::process::id(), since.as_nanos());
        let path = std::env::temp_dir().join(name);
        // A folder that is there already is an error, so no other user has prepared it.
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| failed(&path, &error))?;
        Ok(JobFolder(path))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The programs for executors: this one, and a `plumb-PROCESSOR` beside it for the other processor. Spark gives a file the name at the end of
    /// a symbolic link, so each is a hard link, or a copy on another file system.
    fn programs(&self) -> Result<OsString, Failure> {
        let own = std::env::current_exe();
        let own = own.map_err(|error| failed(Path::new("/proc/self/exe"), &error))?;
        let mut list = OsString::new();
        for processor in PROCESSORS {
            let name = format!("plumb-{processor}");
            let program = match processor == std::env::consts::ARCH {
                true => own.clone(),
                false => own.with_file_name(&name),
            };
            if !program.is_file() {
                continue;
            }
            let shipped = self.path(&name);
            let made = fs::hard_link(&program, &shipped);
            made.or_else(|_| fs::copy(&program, &shipped).map(drop))
                .map_err(|error| failed(&shipped, &error))?;
            if !list.is_empty() {
                list.push(",");
            }
            list.push(shipped);
        }
        Ok(list)
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
