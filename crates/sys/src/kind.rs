//! The kind of a path's target, checked before it is opened: opening a tape or a pipe would already do something.

use std::path::Path;

use rustix::fs::{FileType, Stat, stat};

use crate::error::SysError;

/// Checks that it is a block device or a regular file, and returns the kind. A regular file among the device nodes is
/// neither: some tool made it when the device was absent, and its content is not the device's.
pub(crate) fn device_or_file(path: &Path, found: &Stat) -> Result<FileType, SysError> {
    let kind = FileType::from_raw_mode(found.st_mode);
    let words = match kind {
        FileType::RegularFile if is_among_devices(path, found) => {
            return Err(SysError::FileAmongDevices {
                path: path.to_owned(),
            });
        }
        FileType::BlockDevice | FileType::RegularFile => return Ok(kind),
        FileType::Directory => "a directory",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "something else",
    };
    Err(SysError::NotATarget {
        path: path.to_owned(),
        found: words,
    })
}

/// Whether a regular file is below /dev on the file system of /dev itself, through any links. A separate file system
/// below /dev, such as /dev/shm, is made for files.
fn is_among_devices(path: &Path, found: &Stat) -> bool {
    let is_below = std::fs::canonicalize(path).is_ok_and(|path| path.starts_with("/dev"));
    is_below && stat("/dev").is_ok_and(|dev| dev.st_dev == found.st_dev)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use plumb_testkit::{require, temp_dir};

    use super::*;

    fn kind(path: &Path) -> Result<FileType, SysError> {
        device_or_file(path, &stat(path).expect("it is there"))
    }

    /// A file that is gone with the test, well or not.
    struct Stray(PathBuf);

    impl Stray {
        fn new(folder: &str) -> Stray {
            let path = Path::new(folder).join(format!("plumb-stray-{}", std::process::id()));
            std::fs::write(&path, [0; 512]).expect("room for a file");
            Stray(path)
        }
    }

    impl Drop for Stray {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn kinds_follow_from_the_file_type() {
        let room = temp_dir("kind");
        let file = room.path().join("file");
        std::fs::write(&file, "x").expect("a file");
        assert_eq!(kind(&file), Ok(FileType::RegularFile));
        for (path, words) in [
            (room.path(), "a directory"),
            (Path::new("/dev/null"), "a character device"),
        ] {
            let expected = SysError::NotATarget {
                path: path.to_owned(),
                found: words,
            };
            assert_eq!(kind(path), Err(expected));
        }
    }

    #[test]
    fn a_file_system_of_its_own_below_dev_holds_files() {
        require!(Root);
        let number = |path: &str| stat(path).map(|found| found.st_dev);
        if number("/dev/shm") == number("/dev") {
            let why = "/dev/shm is no file system of its own";
            plumb_testkit::skip!(why);
        }
        assert_eq!(kind(&Stray::new("/dev/shm").0), Ok(FileType::RegularFile));
    }

    #[test]
    fn a_file_among_devices_is_one_by_any_name() {
        require!(Root);
        let stray = Stray::new("/dev");
        let room = temp_dir("kind-link");
        let (link, folder) = (room.path().join("link"), room.path().join("folder"));
        symlink(&stray.0, &link).expect("a link");
        symlink("/dev", &folder).expect("a link");
        let name = stray.0.file_name().expect("its name");
        for path in [
            stray.0.clone(),
            link,
            folder.join(name),
            Path::new("/proc/../dev").join(name),
        ] {
            assert_eq!(kind(&path), Err(SysError::FileAmongDevices { path }));
        }
    }
}
