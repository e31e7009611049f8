//! Parsing without privilege: a command that only reads files gives up unneeded rights before it reads the first byte.
//!
//! Three layers, each where the kernel has it, and each without a way back for the process:
//!
//! - Capabilities are dropped, and after sudo the process becomes the user who called it, where that user can read the
//!   inputs and write the outputs. `CAP_DAC_OVERRIDE` stays where only that capability can.
//! - Landlock leaves the inputs to be read, and the directories of the outputs to be written. Nothing else can be opened.
//! - seccomp refuses system calls that no reader needs: programs, sockets, mounts, tracing, BPF, modules, namespaces.
//!
//! Landlock and capabilities belong to threads, so this is called while there is one thread. A missing protection is no
//! failure: `plumb version --verbose` reports it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, path_beneath_rules,
};
use rustix::thread::{CapabilitySet, capabilities};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use plumb_trace::write::target_of;

use crate::failure::Failure;
use crate::privilege;

/// The newest rules that are asked for; older kernels have a part of them.
const RULES: ABI = ABI::V5;

/// The standard library's sources for the number of processors.
const HOST: [&str; 3] = ["/proc/self", "/proc/meminfo", "/sys/fs/cgroup"];

/// System calls that reading a file never needs.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_open_by_handle_at,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
];

/// Files that a command reads and writes.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Files and directories that are read; `-` is standard input, which is open.
    pub inputs: Vec<PathBuf>,
    /// Files that are written.
    pub outputs: Vec<PathBuf>,
}

/// The active protections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// Whether no capability is left.
    pub has_no_capability: bool,
    /// How much of the rules on files the kernel enforces.
    pub files: Enforced,
    /// Whether system calls are filtered.
    pub filters_calls: bool,
}

/// How much of a protection the kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforced {
    /// All that was asked for.
    Fully,
    /// The part that an older kernel has.
    Partly,
    /// Nothing: the kernel lacks it, or was started without it.
    Not,
}

/// Gives up all that reading these files and writing those does not need.
///
/// # Errors
/// When capabilities cannot be dropped. A kernel without Landlock or seccomp is no error.
pub fn enter(files: &Files) -> Result<Protection, Failure> {
    privilege::drop_to(&files.readable(), &files.outputs)?;
    let left = capabilities(None).map_or(CapabilitySet::all(), |held| held.permitted);
    Ok(Protection {
        has_no_capability: left.is_empty(),
        files: restrict_files(files).unwrap_or(Enforced::Not),
        filters_calls: filter_calls(&[]).is_ok(),
    })
}

/// The system calls that programs in the kernel need.
const OF_PROGRAMS: &[libc::c_long] = &[libc::SYS_bpf, libc::SYS_perf_event_open];

/// Closes all other files, and refuses system calls, to a process that has dropped its other privileges and goes on loading programs into the
/// kernel. A kernel without Landlock or seccomp is no error.
pub fn confine_with_programs(files: &Files) -> Enforced {
    let of_files = restrict_files(files).unwrap_or(Enforced::Not);
    let _ = filter_calls(OF_PROGRAMS);
    of_files
}

impl Files {
    /// Inputs, with the directories of those that belong together with their neighbours.
    fn readable(&self) -> Vec<PathBuf> {
        let of_set = |path: &PathBuf| {
            let name = path.file_name()?.to_string_lossy();
            let is_one_of_many = name.contains(".blktrace.");
            is_one_of_many.then(|| directory_of(path).to_owned())
        };
        let inputs = self.inputs.iter().filter(|path| path.as_os_str() != "-");
        inputs
            .clone()
            .cloned()
            .chain(inputs.filter_map(of_set))
            .collect()
    }

    /// Directories of new files, at the end of links, and files that are written in place: devices and pipes.
    fn writable(&self) -> Vec<PathBuf> {
        let place = |path: &PathBuf| match fs::metadata(path) {
            Ok(found) if !found.is_file() && !found.is_dir() => path.clone(),
            _ => directory_of(&target_of(path).unwrap_or_else(|_| path.clone())).to_owned(),
        };
        self.outputs.iter().map(place).collect()
    }
}

fn directory_of(path: &Path) -> &Path {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    above.unwrap_or(Path::new("."))
}

/// Pipes and sockets are in no file system with rules.
fn has_rules(path: &PathBuf) -> bool {
    fs::metadata(path).is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_file() || kind.is_dir() || kind.is_block_device() || kind.is_char_device()
    })
}

fn restrict_files(files: &Files) -> Result<Enforced, landlock::RulesetError> {
    let host = HOST.iter().map(PathBuf::from);
    let mut read = files.readable();
    read.extend(host);
    read.retain(has_rules);
    let mut written = files.writable();
    written.retain(has_rules);
    let all = AccessFs::from_all(RULES);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .create()?
        .add_rules(path_beneath_rules(&read, AccessFs::from_read(RULES)))?
        .add_rules(path_beneath_rules(&written, all & !AccessFs::Execute))?
        .restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Enforced::Fully,
        RulesetStatus::PartiallyEnforced => Enforced::Partly,
        RulesetStatus::NotEnforced => Enforced::Not,
    })
}

fn filter_calls(allowed: &[libc::c_long]) -> Result<(), Box<dyn std::error::Error>> {
    let refused = REFUSED.iter().filter(|call| !allowed.contains(call));
    let rules: BTreeMap<i64, Vec<_>> = refused.map(|call| (*call, Vec::new())).collect();
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let arch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, arch)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(seccompiler::apply_filter_all_threads(&program)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The possibilities of a thread after it has entered: it cannot leave, so each has its own.
    fn inside<T: Send>(files: &Files, work: impl FnOnce() -> T + Send) -> (Protection, T) {
        std::thread::scope(|scope| {
            let entered = scope.spawn(|| {
                privilege::drop_to(&files.readable(), &files.outputs).expect("fewer rights");
                let files_enforced = restrict_files(files).expect("rules");
                let left = capabilities(None).expect("its own").permitted;
                let protection = Protection {
                    has_no_capability: left.is_empty(),
                    files: files_enforced,
                    filters_calls: false,
                };
                (protection, work())
            });
            entered.join().expect("it ends")
        })
    }

    #[test]
    fn only_inputs_are_read_and_only_outputs_written() {
        let dir = plumb_testkit::temp_dir("sandbox");
        let (input, secret) = (dir.path().join("input"), dir.path().join("secret"));
        let out = dir.path().join("out");
        fs::create_dir(&out).expect("room");
        for path in [&input, &secret] {
            fs::write(path, "it").expect("room");
        }
        let files = Files {
            inputs: vec![input.clone(), "-".into(), dir.path().join("absent")],
            outputs: vec![out.join("report")],
        };
        let (protection, found) = inside(&files, || {
            let read = |path: &Path| fs::read(path).is_ok();
            let write = |path: &Path| fs::write(path, "new").is_ok();
            [
                read(&input),
                write(&out.join("report")),
                fs::rename(out.join("report"), out.join("renamed")).is_ok(),
                read(&secret),
                read(Path::new("/etc/passwd")),
                write(&input),
                write(&dir.path().join("other")),
            ]
        });
        assert!(protection.has_no_capability);
        match protection.files {
            Enforced::Not => eprintln!("this kernel has no Landlock"),
            _ => assert_eq!(found, [true, true, true, false, false, false, false]),
        }
    }

    /// A recorder of the agent in its confinement: it records, and does nothing else.
    #[test]
    fn a_recorder_is_confined() {
        use plumb_capture::{RecordOptions, Recorder};
        plumb_testkit::require!(Bpf, Root);
        let name = "sandbox::tests::a_recorder_is_confined";
        let Some(dir) = std::env::var_os("PLUMB_TEST_RECORDER").map(PathBuf::from) else {
            let dir = plumb_testkit::temp_dir("recorder");
            fs::create_dir(dir.path().join("folder")).expect("room");
            let own = std::env::current_exe().expect("this program");
            let tried = Command::new(own)
                .args(["--exact", name])
                .env("PLUMB_TEST_RECORDER", dir.path())
                .output()
                .expect("it runs");
            assert!(tried.status.success(), "{tried:?}");
            return;
        };
        let folder = dir.join("folder");
        let kept = CapabilitySet::BPF | CapabilitySet::PERFMON;
        privilege::drop_all_but(kept, &folder).expect("fewer rights");
        assert_eq!(capabilities(None).expect("its own").permitted, kept);
        let of_files = confine_with_programs(&Files {
            inputs: vec!["/sys".into()],
            outputs: vec![folder.join("file")],
        });
        assert!(Recorder::attach(&RecordOptions::default()).is_ok());
        fs::write(folder.join("file"), "rows").expect("its own folder");
        assert!(Command::new("true").status().is_err(), "a program ran");
        assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_err());
        let root = Path::new("/");
        assert!(rustix::process::chroot(root).is_err());
        match of_files {
            Enforced::Not => eprintln!("this kernel has no Landlock"),
            _ => {
                assert!(fs::write(dir.join("other"), "rows").is_err());
                assert!(fs::read("/etc/passwd").is_err());
                assert!(fs::File::open("/dev/null").is_err());
            }
        }
    }

    #[test]
    fn programs_and_sockets_are_refused() {
        // A filter is for the whole process: it is tried out in another one.
        if std::env::var_os("PLUMB_TEST_FILTER").is_some() {
            filter_calls(&[]).expect("seccomp");
            assert!(Command::new("true").status().is_err(), "a program ran");
            assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_err());
            return;
        }
        let name = "sandbox::tests::programs_and_sockets_are_refused";
        let own = std::env::current_exe().expect("this program");
        let tried = Command::new(own)
            .args(["--exact", name])
            .env("PLUMB_TEST_FILTER", "1")
            .output()
            .expect("it runs");
        assert!(tried.status.success(), "{tried:?}");
    }
}
