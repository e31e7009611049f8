//! Carrying a change out: the old label saved, the new one written and read back, the kernel told, nodes waited for.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

use plumb_label::Label;
use plumb_relocate::labels::kernel::{node_of, tell, wait_for};
use plumb_relocate::labels::{Change, KernelStep, SavedLabel, kernel_steps};
use plumb_sys::{Directory, partitions};

use super::error::{FixError, of_system};
use super::subject::Subject;
use crate::cli::fix::{Act, Save};
use crate::failure::Failure;

/// Where files of fixes are kept when nobody says where.
pub const STATE: &str = "/var/lib/plumb";

/// Whether to act: `--yes` names the disk, or is not given.
///
/// # Errors
/// When it names something else.
pub fn is_wanted(act: &Act, subject: &Subject) -> Result<bool, Failure> {
    let Some(yes) = &act.yes else { return Ok(false) };
    if *yes == subject.name || Path::new(yes) == subject.path {
        return Ok(true);
    }
    let name = &subject.name;
    Err(Failure::usage(format!("--yes: found `{yes}`, expected `{name}`, which is what would be written to"))
        .with_help("nothing was written"))
}

/// The file for an old label: the one that was asked for, or a new one named for disk and time.
pub fn save_path(save: &Save, subject: &Subject) -> PathBuf {
    save.save.clone().unwrap_or_else(|| {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let now: String = now.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        Path::new(STATE).join(format!("{}-{now}.plumb-label", plumb_plan::shell::file_name(&subject.name)))
    })
}

/// What a change is, in the form in which it is kept.
pub fn saved(subject: &Subject, change: &Change, what: &str) -> SavedLabel {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    SavedLabel {
        disk_bytes: subject.disk.limits().size_bytes,
        sector_bytes: subject.disk.limits().logical_block_bytes,
        unix_s: unix,
        device: subject.device(),
        identity: subject.here.identity(),
        what: what.to_owned(),
        change: change.clone(),
    }
}

/// Saves a change where it can be gone back from.
///
/// # Errors
/// When the file cannot be made.
pub fn save(path: &Path, saved: &SavedLabel) -> Result<(), Failure> {
    if path.starts_with(STATE) {
        let error = |source| plumb_relocate::labels::SavedLabelError::Io {
            path: STATE.to_owned(),
            what: "made",
            source,
        };
        fs::create_dir_all(STATE).map_err(|source| FixError::from(error(source)))?;
    }
    saved.save(path).map_err(|error| FixError::from(error).into())
}

/// Writes a change, reads it back, and lets the kernel know. Returns what has to be said of nodes.
///
/// # Errors
/// When a write fails, the disk holds other bytes than were written, or the kernel refuses.
pub fn carry_out(subject: &Subject, change: &Change) -> Result<Vec<String>, Failure> {
    let failed = |is_begun: bool| {
        let device = subject.device();
        move |source| FixError::Change { device, is_begun, source }
    };
    let mut raw = subject.raw();
    change.apply(&mut raw).map_err(failed(true))?;
    subject.disk.drop_cache().map_err(of_system)?;
    change.must_be_new(&mut raw).map_err(failed(true))?;
    if subject.disk.is_image() {
        return Ok(Vec::new());
    }
    // A disk without a label has no partitions either.
    tell_kernel(subject, subject.label()?.as_ref(), &Owner::default())
}

/// Owner and mode of a node before its partition was taken away.
#[derive(Default)]
pub struct Owner {
    node: PathBuf,
    before: Option<fs::Metadata>,
}

impl Owner {
    /// That of a node that is there.
    pub fn of(node: &Path) -> Owner {
        Owner { node: node.to_owned(), before: fs::metadata(node).ok() }
    }

    /// Gives the node what the one before had: databases open raw devices as users of their own.
    fn restore(&self) -> io::Result<()> {
        let Some(before) = &self.before else { return Ok(()) };
        chown(&self.node, Some(before.uid()), Some(before.gid()))?;
        fs::set_permissions(&self.node, fs::Permissions::from_mode(before.mode() & 0o7777))
    }
}

/// Lets the kernel know the partitions of a label, and waits for their nodes. Those that it forgets here, and the one of
/// which an owner is given, get their owner back. Returns what has to be said of nodes.
///
/// # Errors
/// When the kernel refuses.
pub fn tell_kernel(subject: &Subject, label: Option<&Label>, owner: &Owner) -> Result<Vec<String>, Failure> {
    let failed = |errno: io::Error| FixError::Read { device: subject.device(), source: errno };
    let root = Directory::root(Path::new("/")).map_err(|errno| failed(errno.into()))?;
    let known = partitions::known(&root, &subject.name).map_err(|errno| failed(errno.into()))?;
    let steps = match label {
        Some(label) => kernel_steps(&known, label),
        None => known.iter().map(|known| KernelStep::Delete(known.number)).collect(),
    };
    let owners: Vec<Owner> = steps
        .iter()
        .filter_map(|step| match step {
            KernelStep::Delete(number) => Some(Owner::of(&node_of(&subject.path, *number))),
            KernelStep::Add(_) => None,
        })
        .collect();
    tell(&subject.disk, &steps).map_err(of_system)?;
    let mut notes = Vec::new();
    for step in &steps {
        let KernelStep::Add(partition) = step else { continue };
        let node = node_of(&subject.path, partition.number);
        if !wait_for(&node) {
            notes.push(format!("{}: no block device appeared there", node.display()));
        }
        let owner = owners.iter().chain([owner]).find(|owner| owner.node == node);
        if let Some(Err(error)) = owner.map(Owner::restore) {
            notes.push(format!("{}: owner and mode are not as before: {error}", node.display()));
        }
    }
    Ok(notes)
}
