//! Carrying a change out: the old label saved, the new one written and read back, the kernel updated, nodes waited for.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

use plumb_label::Label;
use plumb_relocate::labels::kernel::{node_of, tell, wait_for};
use plumb_relocate::labels::{Change, KernelStep, SavedLabel, kernel_steps};
use plumb_relocate::preflight::Ownership;
use plumb_sys::{Directory, KernelPartition, partitions};

use super::durable::make_directory;
use super::error::{FixError, of_system};
use super::subject::Subject;
use super::undo;
use crate::cli::fix::{Act, Save};
use crate::failure::Failure;

/// The default directory of files of fixes.
pub const STATE: &str = "/var/lib/plumb";

/// Whether to act: `--yes` names the disk, or is not given.
///
/// # Errors
/// When it names something else.
pub fn is_wanted(act: &Act, subject: &Subject) -> Result<bool, Failure> {
    let Some(yes) = &act.yes else {
        return Ok(false);
    };
    if subject.has_name(yes) {
        return Ok(true);
    }
    let name = &subject.name;
    Err(Failure::usage(format!(
        "--yes: found `{yes}`, expected `{name}`, the target of the writes"
    ))
    .with_help("nothing was written"))
}

/// The file for an old label: the one that was asked for, or a new one named for disk and time.
pub fn save_path(save: &Save, subject: &Subject) -> PathBuf {
    save.save.clone().unwrap_or_else(|| {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let now: String = now.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let name = format!("{}-{now}", plumb_quoting::shell::file_name(&subject.name));
        free_name(Path::new(STATE), &name)
    })
}

/// A name that no file has: two fixes may fall into one second.
fn free_name(within: &Path, name: &str) -> PathBuf {
    let later = (2_u64..).map(|count| format!("{name}-{count}"));
    let mut paths = std::iter::once(name.to_owned())
        .chain(later)
        .map(|name| within.join(format!("{name}.plumb-label")));
    let free = paths.find(|path| !path.exists());
    free.unwrap_or_else(|| within.join(name))
}

/// A change in its saved form.
fn saved(subject: &Subject, change: &Change, what: &str) -> SavedLabel {
    let unix = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
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
fn save(path: &Path, saved: &SavedLabel) -> Result<(), Failure> {
    if path.starts_with(STATE) {
        let error = |source| plumb_relocate::labels::SavedLabelError::Io {
            path: STATE.to_owned(),
            what: "made",
            source,
        };
        make_directory(Path::new(STATE)).map_err(|source| FixError::from(error(source)))?;
    }
    saved
        .save(path)
        .map_err(|error| FixError::from(error).into())
}

/// Saves the old label, then writes the change, reads it back, and updates the kernel. Returns notes about nodes.
///
/// # Errors
/// When the file cannot be made, the disk is not as it was read, a write fails, the disk holds other bytes than were written,
/// or the kernel refuses; once something was written, with the command that goes back.
pub fn save_and_carry_out(
    subject: &Subject,
    change: &Change,
    path: &Path,
    what: &str,
) -> Result<Vec<String>, Failure> {
    save(path, &saved(subject, change, what))?;
    // Without a write there is nothing to go back from.
    must_be_as_read(subject, change).inspect_err(|_| drop(fs::remove_file(path)))?;
    write(subject, change, path)
}

/// The last look before a write.
fn must_be_as_read(subject: &Subject, change: &Change) -> Result<(), Failure> {
    // Updating the kernel's partitions needs the same capability: a user without it learns that before anything is
    // written.
    subject.disk.drop_cache().map_err(of_system)?;
    let device = subject.device();
    let is_old = change.must_be_old(&mut subject.raw());
    Ok(is_old.map_err(|source| FixError::Change {
        device,
        is_begun: false,
        source,
    })?)
}

fn write(subject: &Subject, change: &Change, saved: &Path) -> Result<Vec<String>, Failure> {
    let begun = |source| FixError::Change {
        device: subject.device(),
        is_begun: true,
        source,
    };
    let written = || {
        let mut raw = subject.raw();
        change.apply(&mut raw).map_err(begun)?;
        subject.disk.drop_cache().map_err(of_system)?;
        change.must_be_new(&mut raw).map_err(begun)?;
        if subject.disk.is_image() {
            return Ok(Vec::new());
        }
        // A disk without a label has no partitions either.
        tell_kernel(subject, subject.label()?.as_ref(), &Owner::default())
    };
    written().map_err(|failure: Failure| failure.with_command(undo::command(saved, subject)))
}

/// Whose a node was before its partition was taken away.
#[derive(Default)]
pub struct Owner {
    /// The node.
    pub node: PathBuf,
    /// Its owner before; `None` if unknown.
    pub before: Option<Ownership>,
}

impl Owner {
    /// Reads the ownership of a node.
    pub fn read(node: &Path) -> Owner {
        Owner {
            node: node.to_owned(),
            before: Ownership::read(node),
        }
    }

    /// Gives the node the owner and mode of the one before: databases open raw devices as their own users.
    ///
    /// # Errors
    /// The error of the system.
    pub fn restore(&self) -> io::Result<()> {
        let Some(before) = &self.before else {
            return Ok(());
        };
        chown(&self.node, Some(before.user), Some(before.group))?;
        fs::set_permissions(&self.node, fs::Permissions::from_mode(before.mode))
    }
}

/// Updates the kernel with the partitions of a label, and waits for their nodes. Partitions that it removes here, and
/// the one with a given owner, get their owner back. Returns notes about nodes.
///
/// # Errors
/// When the kernel refuses.
pub fn tell_kernel(
    subject: &Subject,
    label: Option<&Label>,
    owner: &Owner,
) -> Result<Vec<String>, Failure> {
    let failed = |errno: io::Error| FixError::Read {
        device: subject.device(),
        source: errno,
    };
    let root = Directory::root(Path::new("/")).map_err(|errno| failed(errno.into()))?;
    let known = partitions::known(&root, &subject.name).map_err(|errno| failed(errno.into()))?;
    let steps = match label {
        Some(label) => kernel_steps(&known, label),
        None => known
            .iter()
            .map(|known| KernelStep::Delete(known.number))
            .collect(),
    };
    let owners: Vec<Owner> = steps
        .iter()
        .filter_map(|step| match step {
            KernelStep::Delete(number) => Some(Owner::read(&node_of(&subject.path, *number))),
            KernelStep::Add(_) => None,
        })
        .collect();
    let (mut notes, mut kept) = (Vec::new(), Vec::new());
    for step in &steps {
        let (KernelStep::Delete(number) | KernelStep::Add(KernelPartition { number, .. })) = *step;
        if kept.contains(&number) {
            continue;
        }
        let node = node_of(&subject.path, number);
        match tell(&subject.disk, &[*step]) {
            Ok(()) => {}
            // Another partition that label and kernel have differently, and that somebody uses: it stays as it is.
            Err(error) if !owner.node.as_os_str().is_empty() && owner.node != node => {
                notes.push(format!(
                    "{}: the kernel keeps it as it was: {error}",
                    node.display()
                ));
                kept.push(number);
                continue;
            }
            Err(source) => {
                return Err(FixError::NotTold {
                    device: subject.device(),
                    source,
                }
                .into());
            }
        }
        if let KernelStep::Delete(_) = step {
            continue;
        }
        if !wait_for(&node) {
            notes.push(format!(
                "{}: no block device appeared there",
                node.display()
            ));
        }
        let owner = owners
            .iter()
            .chain([owner])
            .find(|owner| owner.node == node);
        if let Some(Err(error)) = owner.map(Owner::restore) {
            notes.push(format!(
                "{}: owner and mode are not as before: {error}",
                node.display()
            ));
        }
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use plumb_geometry::Bytes;
    use plumb_relocate::labels::ChangeStep;
    use plumb_sys::Access;

    use super::*;

    /// Between reading and writing another program has changed one of the places, and not the first.
    #[test]
    fn a_label_that_others_changed_meanwhile_is_left_alone() {
        let dir = plumb_testkit::temp_dir("meanwhile");
        let (image, save) = (
            dir.path().join("disk.img"),
            dir.path().join("old.plumb-label"),
        );
        fs::write(&image, vec![0; 1 << 20]).expect("room");
        let subject = Subject::open(&image, Access::Exclusive).expect("an image");
        let write = |at| ChangeStep::Write {
            at: Bytes(at),
            old: vec![0; 512],
            new: vec![1; 512],
        };
        let change =
            Change::from_steps([write(8192), ChangeStep::Flush, write(512)]).expect("places apart");
        let mut changed = vec![0; 1 << 20];
        changed[700] = 9;
        fs::write(&image, &changed).expect("room");
        let refused = save_and_carry_out(&subject, &change, &save, "a test");
        let words = refused.expect_err("it is another label").text("");
        let expected =
            "nothing was written: byte 700: found other bytes than those that were read before";
        assert_eq!(words, format!("{}: {expected}", subject.device()));
        assert!(
            fs::read(&image).expect("the image") == changed,
            "something was written"
        );
        assert!(!save.exists(), "a label was kept that nobody needs");
        fs::write(&image, vec![0; 1 << 20]).expect("room");
        save_and_carry_out(&subject, &change, &save, "a test").expect("it is as it was read");
        assert_eq!(fs::read(&image).expect("the image")[8192..8704], [1; 512]);
        assert!(save.exists());
    }
}
