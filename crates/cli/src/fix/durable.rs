//! Directories that are still there after a power cut.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Of a directory whose files hold data of disks: for its owner alone.
const PRIVATE: u32 = 0o700;

/// Makes a directory for its owner alone, with those above it, so that its name is on the medium: a file in it is of no use
/// after a power cut that took the directory. One that is there already is closed to others, if it is the user's own.
///
/// # Errors
/// The error of the system.
pub fn make_directory(path: &Path) -> io::Result<()> {
    make_directory_with(path, |above| File::open(above)?.sync_all())?;
    let found = path.metadata()?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    if is_own && found.mode() & 0o077 != 0 {
        std::fs::set_permissions(path, Permissions::from_mode(PRIVATE))?;
    }
    Ok(())
}

fn make_directory_with(
    path: &Path,
    mut sync: impl FnMut(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|directory| !directory.is_dir())
        .collect();
    for directory in missing.into_iter().rev() {
        let mode = if directory == path { PRIVATE } else { 0o755 };
        match DirBuilder::new().mode(mode).create(directory) {
            // Somebody else made it just now, and may not have synced yet.
            Err(_) if directory.is_dir() => {}
            made => made?,
        }
        sync(
            directory
                .parent()
                .filter(|above| !above.as_os_str().is_empty())
                .unwrap_or(Path::new(".")),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_directories_are_made_durable() {
        let dir = plumb_testkit::temp_dir("directories");
        let (one, two) = (dir.path().join("one"), dir.path().join("one/two"));
        let mut synced = Vec::new();
        let mut make = |path: &Path| {
            synced.clear();
            let sync = |above: &Path| {
                synced.push(above.to_owned());
                Ok(())
            };
            make_directory_with(path, sync).map(|()| synced.clone())
        };
        assert_eq!(
            make(&two).expect("room"),
            [dir.path().to_owned(), one.clone()]
        );
        assert!(two.is_dir());
        let again = make(&two).expect("it is there");
        assert_eq!(again, [] as [&Path; 0]);
        std::fs::write(two.join("file"), "").expect("room");
        make(&two.join("file/three")).expect_err("a file is in the way");
        make_directory(&one.join("other")).expect("the real one");
        assert!(one.join("other").is_dir());
    }

    /// Also one that an older version made for everybody to read.
    #[test]
    fn a_directory_is_for_its_owner_alone() {
        let dir = plumb_testkit::temp_dir("directories");
        let path = dir.path().join("state");
        let mode = || path.metadata().expect("it is there").mode() & 0o7777;
        make_directory(&path).expect("room");
        assert_eq!(mode(), PRIVATE);
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("mine");
        make_directory(&path).expect("it is there");
        assert_eq!(mode(), PRIVATE);
    }
}
