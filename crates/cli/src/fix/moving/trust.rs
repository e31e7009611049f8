//! Whether a journal may direct writes to a disk: by the possible writers of its file, and by the way to it.
//!
//! A journal contains bytes and their places, and root obeys it. One that only root can have written, and that the
//! caller has named or that is in Plumb's directory of journals, is obeyed. One that another user can have written, or
//! that a mark on the disk has named, is obeyed only after the caller has seen every place that it writes and has named
//! the disk. If both hold, a user who can write to a file and to a disk would have a root shell: that journal is
//! refused.

use std::path::Path;

use plumb_model::result::fix::MovedPlace;
use plumb_relocate::moving::{PlaceKind, WrittenPlace};
use plumb_relocate::{JournalFile, Status};
use plumb_sys::{Doubt, doubt_of_directory};

use super::error::MoveRefused;
use crate::failure::Failure;
use crate::fix::act::STATE;
use crate::fix::subject::Subject;

/// The way to a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The caller named the file.
    Named,
    /// The directory in which Plumb keeps journals.
    State,
    /// A mark on the disk.
    Marked,
}

/// Why a journal is not obeyed at once.
pub fn doubt_of(store: &JournalFile, path: &Path) -> Option<Doubt> {
    relevant(store.doubt().cloned(), path)
}

/// The same of a journal that is still to be made there.
pub fn doubt_at(path: &Path) -> Option<Doubt> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    // The directory of state is made by root, below directories of root.
    let directory = directory.ancestors().find(|above| above.exists())?;
    relevant(doubt_of_directory(directory).ok()?, path)
}

/// Systems mount /var with nosuid, and rely on the owners there all the same.
fn relevant(doubt: Option<Doubt>, path: &Path) -> Option<Doubt> {
    doubt.filter(|doubt| *doubt != Doubt::NoSuid || !path.starts_with(STATE))
}

/// Whether the caller has to see the places and name the disk first, and why.
///
/// # Errors
/// If the journal is refused in any case.
pub fn judge(
    reached: Reached,
    doubt: Option<&Doubt>,
    path: &Path,
) -> Result<Option<String>, MoveRefused> {
    match (reached, doubt) {
        (Reached::Named | Reached::State, None) => Ok(None),
        (Reached::Marked, None) => Ok(Some(format!(
            "a mark on the disk led to the journal {}: see that the places are those of your move",
            path.display()
        ))),
        (Reached::Named, Some(doubt)) => Ok(Some(format!(
            "others than root may have written the journal: {doubt}: see that the places are those of your move"
        ))),
        (Reached::Marked | Reached::State, Some(doubt)) => Err(MoveRefused::Untrusted {
            path: path.display().to_string(),
            doubt: doubt.clone(),
        }),
    }
}

/// Whether `--yes` names the disk.
///
/// # Errors
/// When it names another one.
pub fn is_named(yes: Option<&str>, subject: &Subject) -> Result<bool, Failure> {
    match yes {
        None => Ok(false),
        Some(yes) if subject.has_name(yes) => Ok(true),
        Some(yes) => Err(Failure::usage(format!(
            "--yes: found `{yes}`, expected `{}`, the disk that would be written to",
            subject.name
        ))
        .with_help("nothing was written")),
    }
}

/// Every place that the move of a journal writes.
pub fn places(status: &Status) -> Vec<MovedPlace> {
    let place = |WrittenPlace { kind, range }: WrittenPlace| MovedPlace {
        what: match kind {
            PlaceKind::Label => "label",
            PlaceKind::Old => "old place",
            PlaceKind::New => "new place",
            PlaceKind::Stray => "free space",
        },
        at_bytes: range.start,
        len_bytes: range.end - range.start,
    };
    status.plan.places().into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The four cases, and the directory of state that others can write to.
    #[test]
    fn a_journal_is_obeyed_by_its_owner_and_its_way() {
        let doubt = Doubt::NoSuid;
        let path = Path::new("/home/x/j");
        for (reached, doubt, expected) in [
            (Reached::Named, None, Some(false)),
            (Reached::State, None, Some(false)),
            (Reached::Marked, None, Some(true)),
            (Reached::Named, Some(&doubt), Some(true)),
            (Reached::Marked, Some(&doubt), None),
            (Reached::State, Some(&doubt), None),
        ] {
            let asks = judge(reached, doubt, path).ok().map(|why| why.is_some());
            assert_eq!(asks, expected, "{reached:?} {doubt:?}");
        }
    }

    #[test]
    fn state_may_be_mounted_with_nosuid() {
        let nosuid = || Some(Doubt::NoSuid);
        assert_eq!(relevant(nosuid(), &Path::new(STATE).join("j")), None);
        assert_eq!(relevant(nosuid(), Path::new("/media/stick/j")), nosuid());
        let owner = || {
            Some(Doubt::Writable {
                path: STATE.into(),
                mode: 0o777,
            })
        };
        assert_eq!(relevant(owner(), &Path::new(STATE).join("j")), owner());
    }
}
