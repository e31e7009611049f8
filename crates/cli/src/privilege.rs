//! Gives up the privileges of a command, once it has used them.
//!
//! Identities and capabilities belong to a thread in Linux: this is called while there is one thread, and later ones
//! inherit the rest. The rights of an identity are tried out in a separate thread, which ends.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::geteuid;
use rustix::thread::{self, CapabilitySet, CapabilitySets, Gid, Uid};

use plumb_trace::write::target_of;

use crate::failure::Failure;

/// The later identity of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    /// The caller of sudo.
    Invoker(Uid, Gid),
    /// The same user as before.
    Same,
    /// The same user, with the right to write if only that right permits it.
    Writer,
}

/// Drops all capabilities for good, and becomes the caller of sudo if there is one. Files that are written at the end
/// (`outputs`) stay writable: the user stays the same if only that one may write there.
///
/// # Errors
/// When the kernel refuses, which leaves the process as it is or less able.
pub fn drop_all(outputs: &[PathBuf]) -> Result<(), Failure> {
    drop_to(&[], outputs)
}

/// As [`drop_all`]; these files can still be read.
///
/// # Errors
/// As there.
pub fn drop_to(inputs: &[PathBuf], outputs: &[PathBuf]) -> Result<(), Failure> {
    let can_all = |identity: Identity| {
        inputs.iter().all(|path| can_read(identity, path))
            && outputs.iter().all(|path| can_write(identity, path))
    };
    let mut identities = invoker().into_iter().chain([Identity::Same]);
    let fitting = match (inputs, outputs) {
        // Nothing to try out.
        ([], []) => identities.next(),
        _ => identities.find(|&identity| can_all(identity)),
    };
    become_for_good(fitting.unwrap_or(Identity::Writer), CapabilitySet::empty())
        .map_err(|error| not_dropped(&error))
}

/// As [`drop_all`] for one output, and these capabilities stay, as far as the process has them. No right to write
/// replaces that of the user.
///
/// # Errors
/// As there.
pub fn drop_all_but(kept: CapabilitySet, output: &Path) -> Result<(), Failure> {
    let fitting = invoker().filter(|&identity| can_write(identity, output));
    become_for_good(fitting.unwrap_or(Identity::Same), kept).map_err(|error| not_dropped(&error))
}

fn not_dropped(error: &io::Error) -> Failure {
    Failure::failed(error).with_help("privileges could not be dropped")
}

/// Whether a file can be opened for reading; a missing one is reported at its opening.
fn can_read(identity: Identity, path: &Path) -> bool {
    let tried = std::thread::scope(|scope| {
        let trying = scope.spawn(|| {
            become_for_good(identity, CapabilitySet::empty())?;
            accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS)?;
            Ok::<(), io::Error>(())
        });
        trying.join()
    });
    match tried {
        Ok(Ok(())) => true,
        Ok(Err(error)) => error.kind() == io::ErrorKind::NotFound,
        Err(_) => false,
    }
}

/// The caller of sudo, by its own statement; it is used only if it gave root.
fn invoker() -> Option<Identity> {
    let number = |name: &str| env::var(name).ok()?.parse::<u32>().ok();
    let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
    (geteuid().is_root() && uid != 0)
        .then(|| Identity::Invoker(Uid::from_raw(uid), Gid::from_raw(gid)))
}

/// Whether a file of this name can be made or replaced.
fn can_write(identity: Identity, path: &Path) -> bool {
    let target = target_of(path);
    let path = target.as_deref().unwrap_or(path);
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let tried = std::thread::scope(|scope| {
        let trying = scope.spawn(|| {
            become_for_good(identity, CapabilitySet::empty())?;
            accessat(
                CWD,
                directory,
                Access::WRITE_OK | Access::EXEC_OK,
                AtFlags::EACCESS,
            )?;
            Ok::<bool, io::Error>(may_replace(directory, path))
        });
        trying.join()
    });
    matches!(tried, Ok(Ok(true)))
}

/// In a directory for all, such as /tmp, only the owner of a file may take its place.
fn may_replace(directory: &Path, path: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    let (Ok(directory), Ok(file)) = (fs::metadata(directory), fs::symlink_metadata(path)) else {
        return true;
    };
    let me = geteuid().as_raw();
    directory.mode() & STICKY == 0 || file.uid() == me || directory.uid() == me
}

/// Changes the calling thread, which cannot change back.
fn become_for_good(identity: Identity, kept: CapabilitySet) -> io::Result<()> {
    let kept = match identity {
        Identity::Writer => kept | CapabilitySet::DAC_OVERRIDE,
        Identity::Invoker(..) | Identity::Same => kept,
    };
    let held = thread::capabilities(None)?;
    // Without this capability nothing can be taken from the set; no_new_privs keeps the rest of it from coming back.
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().difference(kept) {
            // A capability that this kernel does not know is not in the set.
            let _ = thread::remove_capability_from_bounding_set(capability);
        }
    }
    if let Identity::Invoker(uid, gid) = identity {
        // The kernel takes them from a process that stops to be root.
        thread::set_keep_capabilities(!kept.is_empty())?;
        thread::set_thread_groups(&[gid])?;
        thread::set_thread_res_gid(gid, gid, gid)?;
        thread::set_thread_res_uid(uid, uid, uid)?;
    }
    thread::clear_ambient_capability_set()?;
    let kept = kept & held.permitted;
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    thread::set_capabilities(None, sets)?;
    thread::set_no_new_privs(true)?;
    Ok(())
}
