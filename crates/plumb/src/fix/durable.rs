//! Directories that are still there after a power cut.

use std::fs::File;
use std::io;
use std::path::Path;

/// Makes a directory, with those above it, so that its name is on the medium: a file in it is of no use after a power cut
/// that took the directory.
///
/// # Errors
/// What the system says.
pub fn make_directory(path: &Path) -> io::Result<()> {
    make_directory_with(path, |above| File::open(above)?.sync_all())
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
        match std::fs::create_dir(directory) {
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
        assert_eq!(make(&two).expect("it is there"), [] as [&Path; 0]);
        std::fs::write(two.join("file"), "").expect("room");
        make(&two.join("file/three")).expect_err("a file is in the way");
        make_directory(&one.join("other")).expect("the real one");
        assert!(one.join("other").is_dir());
    }
}
