//! The needs of a test, and the record of a test that did not run.
//!
//! A test that cannot run says `SKIPPED: why` on stderr and writes its name and the reason, separated by a tab, to the
//! file that `PLUMB_SKIPS` names. `make test` counts those files and decides whether a skip is allowed. Two further
//! files work alike: `PLUMB_LATER` for tests that `make check` leaves to `make test`, and `PLUMB_UNDECIDED` for
//! measurements that a busy machine spoiled, which `make test` repeats alone at its end.
//!
//! The checks only look: they load, attach and create nothing.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A need of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Effective user 0.
    Root,
    /// Loading BPF programs: the capabilities for it, and the kernel's type information.
    Bpf,
    /// Instances of the kernel's tracing: root, and a kernel with tracefs.
    Tracefs,
    /// Loop devices: root, `/dev/loop-control` and losetup.
    Loop,
    /// Rules on files that a process gives itself.
    Landlock,
    /// A system emulator for this architecture.
    Qemu,
    /// `/dev/kvm` open to this user.
    Kvm,
    /// The folder of real traces, see [`real_traces`].
    RealTraces,
    /// Tracing live block devices: root, the blktrace program and debugfs.
    Blktrace,
    /// A program of this name in PATH.
    Tool(&'static str),
    /// Seconds to minutes of processor time, which `make check` does not spend.
    Patience,
}

/// Why a capability is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The requested capability.
    pub capability: Capability,
    /// The state found instead.
    pub why: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is missing: {}", self.capability, self.why)
    }
}

impl Capability {
    /// Whether a test with this need is left to `make test`: it needs a device, root, a guest or much time, and
    /// `PLUMB_TIER` is `check`.
    #[must_use]
    pub fn is_left_to_make_test(self) -> bool {
        let is_of_check = matches!(self, Self::Landlock | Self::RealTraces | Self::Tool(_));
        !is_of_check && std::env::var_os("PLUMB_TIER").is_some_and(|tier| tier == "check")
    }

    /// Whether the machine has it.
    ///
    /// # Errors
    /// [`Missing`] with the first lack found.
    pub fn check(self) -> Result<(), Missing> {
        let lack = match self {
            Self::Root => lack_of_root(),
            Self::Bpf => lack_of_bpf(),
            Self::Tracefs => lack_of_root().or_else(|| lack_of_path("/sys/kernel/tracing")),
            Self::Loop => lack_of_root()
                .or_else(|| lack_of_device("/dev/loop-control"))
                .or_else(|| lack_of_tool("losetup")),
            Self::Landlock => lack_of_landlock(),
            Self::Qemu => lack_of_tool(&format!("qemu-system-{}", std::env::consts::ARCH)),
            Self::Kvm => lack_of_device("/dev/kvm"),
            Self::RealTraces => real_traces()
                .is_none()
                .then(|| "no folder of real traces; set PLUMB_REAL_TRACES to one".to_owned()),
            Self::Blktrace => lack_of_root()
                .or_else(|| lack_of_tool("blktrace"))
                .or_else(|| lack_of_path("/sys/kernel/debug/block")),
            Self::Tool(name) => lack_of_tool(name),
            Self::Patience => None,
        };
        lack.map_or(Ok(()), |why| {
            Err(Missing {
                capability: self,
                why,
            })
        })
    }
}

/// Its system call among the symbols of the kernel, whose addresses only root sees and whose names everybody does.
fn lack_of_landlock() -> Option<String> {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let has_it = symbols.contains("sys_landlock_create_ruleset");
    (!has_it).then(|| "the kernel was built without Landlock".to_owned())
}

/// The folder of real traces: `PLUMB_REAL_TRACES`, else `../shared/traces` beside the workspace.
/// `None` when that is no directory.
#[must_use]
pub fn real_traces() -> Option<PathBuf> {
    let folder = std::env::var_os("PLUMB_REAL_TRACES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces"),
        PathBuf::from,
    );
    folder.is_dir().then_some(folder)
}

/// The path of the program `name` in PATH.
#[must_use]
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|file| is_executable(file))
}

/// A file of the folder of real traces; a test asks for `RealTraces` first.
///
/// # Panics
/// If the folder or the file is missing.
#[must_use]
pub fn real_trace(path: &str) -> PathBuf {
    let folder = real_traces().expect("the test asks for RealTraces first");
    let file = folder.join(path);
    assert!(
        file.exists(),
        "{}: no such file; the folder of real traces is incomplete",
        file.display()
    );
    file
}

/// Records that a test did not run. Tests call [`skip!`](crate::skip!) or [`require!`](crate::require!) instead.
pub fn record_skip(test: &str, why: &str) {
    eprintln!("SKIPPED: {why}");
    record("PLUMB_SKIPS", test, why);
}

/// Records that `make check` leaves a test to `make test`.
pub fn record_later(test: &str, need: Capability) {
    record("PLUMB_LATER", test, &format!("{need:?}"));
}

/// Records a measurement that other load on the machine spoiled, for another run alone.
///
/// # Panics
/// If nobody will repeat the test: it is the last run, or the test does not run under `make test`. An undecided
/// result never passes.
pub fn record_undecided(test: &str, why: &str) {
    let is_repeated = std::env::var_os("PLUMB_UNDECIDED").is_some();
    assert!(is_repeated, "undecided, and nobody repeats the test: {why}");
    eprintln!("UNDECIDED: {why}");
    record("PLUMB_UNDECIDED", test, why);
}

/// Appends a line to the file that a variable names; does nothing without the variable.
fn record(variable: &str, test: &str, why: &str) {
    let Some(file) = std::env::var_os(variable) else {
        return;
    };
    let line = format!("{test}\t{}\n", why.replace(['\t', '\n'], " "));
    // One write to a file that is open for appending: lines of parallel tests do not mix.
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file)
        .and_then(|mut f| f.write_all(line.as_bytes()));
    if let Err(e) = written {
        panic!(
            "cannot write to {}, which {variable} names: {e}",
            Path::new(&file).display()
        );
    }
}

/// Leaves the test, visibly, unless the machine has everything that is named.
///
/// Names are variants of [`Capability`](crate::require::Capability); the test must return `()`.
///
/// ```
/// fn reads_a_real_trace() {
///     plumb_testkit::require!(RealTraces, Tool("blkparse"));
///     // …
/// }
/// # reads_a_real_trace();
/// ```
#[macro_export]
macro_rules! require {
    ($($capability:ident $(($argument:expr))?),+ $(,)?) => {
        $(
            let capability = $crate::require::Capability::$capability$(($argument))?;
            if capability.is_left_to_make_test() {
                $crate::require::record_later(&$crate::test_name!(), capability);
                return;
            }
            if let Err(missing) = capability.check() {
                $crate::require::record_skip(&$crate::test_name!(), &missing.to_string());
                return;
            }
        )+
    };
}

/// Leaves the test, visibly, for a reason that no [`Capability`](crate::require::Capability) names.
#[macro_export]
macro_rules! skip {
    ($why:expr $(,)?) => {{
        $crate::require::record_skip(&$crate::test_name!(), &$why);
        return;
    }};
}

/// Leaves a test whose measurement other load on the machine spoiled. `make test` repeats it alone at its end; there,
/// and under plain `cargo test`, the test fails.
#[macro_export]
macro_rules! undecided {
    ($why:expr $(,)?) => {{
        $crate::require::record_undecided(&$crate::test_name!(), &$why);
        return;
    }};
}

/// The package and the path of the enclosing function, on any thread: `plumb-stack::solaris::slices`.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        let path = ::std::any::type_name_of_val(&here);
        // The first segment is the name of a test program or of a library, which is the package's in other letters.
        let (_, path) = path.split_once("::").unwrap_or(("", path));
        let path = path.strip_suffix("::here").unwrap_or(path);
        format!("{}::{path}", env!("CARGO_PKG_NAME"))
    }};
}

/// `name: value` of /proc/self/status, the value trimmed.
fn own_status(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

fn lack_of_root() -> Option<String> {
    let effective =
        own_status("Uid").and_then(|ids| ids.split_whitespace().nth(1).map(str::to_owned));
    match effective.as_deref() {
        Some("0") => None,
        Some(uid) => Some(format!("effective user is {uid}; run the test as root")),
        None => Some("/proc/self/status names no effective user".to_owned()),
    }
}

/// Bit numbers from linux/capability.h: CAP_SYS_ADMIN alone, or CAP_PERFMON with CAP_BPF.
fn lack_of_bpf() -> Option<String> {
    const SYS_ADMIN: u64 = 1 << 21;
    const PERFMON_AND_BPF: u64 = 1 << 38 | 1 << 39;
    let effective = own_status("CapEff")
        .and_then(|hex| u64::from_str_radix(&hex, 16).ok())
        .unwrap_or(0);
    if effective & SYS_ADMIN == 0 && effective & PERFMON_AND_BPF != PERFMON_AND_BPF {
        return Some("neither CAP_SYS_ADMIN nor CAP_BPF with CAP_PERFMON is held".to_owned());
    }
    lack_of_path("/sys/kernel/btf/vmlinux")
}

fn lack_of_tool(name: &str) -> Option<String> {
    tool(name)
        .is_none()
        .then(|| format!("no program {name} in PATH"))
}

fn lack_of_path(path: &str) -> Option<String> {
    fs::metadata(path).err().map(|e| format!("{path}: {e}"))
}

fn lack_of_device(path: &str) -> Option<String> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .err()
        .map(|e| format!("{path}: {e}"))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn detects_tools_in_path() {
        assert_eq!(Capability::Tool("sh").check(), Ok(()));
        let missing = Capability::Tool("no-such-program")
            .check()
            .expect_err("not installed anywhere");
        insta::assert_snapshot!(missing);
    }

    #[test]
    fn name_is_that_of_the_function() {
        assert_eq!(
            crate::test_name!(),
            "plumb-testkit::require::tests::name_is_that_of_the_function"
        );
    }

    /// The skip happens in a second process of the same test, whose environment nothing else shares.
    #[test]
    fn skip_is_written_down() {
        const CHILD: &str = "PLUMB_TESTKIT_SKIPS_ITSELF";
        if std::env::var_os(CHILD).is_some() {
            crate::require!(Tool("sh"), Tool("no-such-program"));
            panic!("went on without the program");
        }
        let dir = crate::temp_dir("skips");
        let skips = dir.path().join("skips");
        let out = Command::new(std::env::current_exe().expect("path of the test program"))
            .args([
                "--exact",
                "require::tests::skip_is_written_down",
                "--nocapture",
            ])
            .env("PLUMB_SKIPS", &skips)
            .env(CHILD, "1")
            .output()
            .expect("run the test program again");
        assert!(out.status.success());
        assert!(
            String::from_utf8_lossy(&out.stderr).contains("SKIPPED: Tool(\"no-such-program\")")
        );
        let lines = fs::read_to_string(&skips).expect("a file of skips");
        let (test, why) = lines.trim_end().split_once('\t').expect("two columns");
        assert!(
            test.ends_with("require::tests::skip_is_written_down"),
            "{test}"
        );
        let missing = Capability::Tool("no-such-program").check().expect_err("it");
        assert!(why.contains(&missing.why), "{why}");
    }
}
