//! A file that somebody named, opened once: checked, read, written and removed through the same descriptor.
//!
//! A name can lead anywhere: to a pipe that blocks, to a device that a mere open changes, to a file of another user. The
//! file is opened without following a link in its last component, refused unless it is a regular file, and judged by
//! the owners of the file and of each directory above it. All of that looks at open descriptors, so that nobody can
//! exchange a component between the check and the use.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, StatVfsMountFlags, fstat, fstatfs, fstatvfs, open,
    openat, statat, unlinkat,
};
use rustix::process::geteuid;

/// The purpose of opening the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUse {
    /// Reading through the page cache.
    Read,
    /// Reading past the page cache.
    ReadDirect,
    /// Reading and writing past the page cache.
    WriteDirect,
}

impl FileUse {
    fn flags(self) -> OFlags {
        match self {
            FileUse::Read => OFlags::RDONLY,
            FileUse::ReadDirect => OFlags::RDONLY | OFlags::DIRECT,
            FileUse::WriteDirect => OFlags::RDWR | OFlags::DIRECT,
        }
    }
}

/// Why the owners of a file do not vouch for its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The file or a directory above it belongs to another user.
    Owner {
        /// The file or directory.
        path: PathBuf,
        /// User ID of its owner.
        uid: u32,
    },
    /// Others can write to the file or to a directory above it.
    Writable {
        /// The file or directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file has more names than this one.
    Links {
        /// How many.
        count: u64,
    },
    /// Its file system keeps no owners, or takes them from another host or program.
    FileSystem {
        /// Magic number of the file system, as `statfs` returns it.
        magic: u64,
    },
    /// It is mounted with `nosuid`: the system itself does not rely on the owners there.
    NoSuid,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Owner { path, uid } => {
                write!(f, "user {uid} owns {}", path.display())
            }
            Doubt::Writable { path, mode } => {
                write!(
                    f,
                    "others can write to {} (mode {mode:04o})",
                    path.display()
                )
            }
            Doubt::Links { count } => write!(f, "the file has {count} names"),
            Doubt::FileSystem { magic } => write!(
                f,
                "its file system (type {magic:#x}) does not keep owners of its own"
            ),
            Doubt::NoSuid => f.write_str("its file system is mounted with nosuid"),
        }
    }
}

/// A name that does not lead to a regular file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found}, expected a regular file")]
pub struct NotRegular {
    /// The kind of file.
    pub found: &'static str,
}

/// File systems that store owner and mode on this host's own disks or memory.
const KEEPS_OWNERS: [u64; 12] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683e, // btrfs
    0xf2f5_2010, // F2FS
    0x2fc1_2fc1, // ZFS
    0xca45_1a4e, // bcachefs
    0x3153_464a, // JFS
    0x5265_4973, // ReiserFS
    0x3434,      // NILFS2
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
];

/// Owner and group of a file may differ; these bits let others than the owner write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// An open regular file.
#[derive(Debug)]
pub struct NamedFile {
    file: File,
    directory: OwnedFd,
    name: OsString,
    doubt: Option<Doubt>,
}

impl NamedFile {
    /// Opens the file. Directories above it may be reached through links; the file itself may not be a link.
    ///
    /// # Errors
    /// [`NotRegular`] inside of an [`io::Error`], and the errors of the system.
    pub fn open(path: &Path, file_use: FileUse) -> io::Result<NamedFile> {
        let name = path.file_name().ok_or(NotRegular {
            found: "a directory",
        });
        let name = name.map_err(not_regular)?.to_owned();
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new(".")).canonicalize()?;
        let mut judged = JudgedPath::default();
        let directory = directory(&above, &mut judged)?;
        // O_PATH opens nothing: no pipe waits, no tape rewinds.
        let looked = openat(
            &directory,
            &name,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let found = fstat(&looked)?;
        must_be_regular(&found)?;
        let flags = file_use.flags() | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&directory, &name, flags, Mode::empty())?);
        let stat = fstat(&file)?;
        if !is_same(&stat, &found) {
            return Err(io::Error::other(
                "the file was replaced while it was opened",
            ));
        }
        judged.file_or_directory(&above.join(&name), &stat);
        judged.links(&file)?;
        judged.file_system(&file)?;
        Ok(NamedFile {
            file,
            directory,
            name,
            doubt: judged.doubt,
        })
    }

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The first reason not to rely on its owners; `None` if root, or the user of this process, owns the file and all
    /// directories above it and nobody else can write to them.
    #[must_use]
    pub fn doubt(&self) -> Option<&Doubt> {
        self.doubt.as_ref()
    }

    /// Removes its name, if the name still leads to this file.
    ///
    /// # Errors
    /// When the name leads to another file by now, and the errors of the system.
    pub fn remove(&self) -> io::Result<()> {
        let own = fstat(&self.file)?;
        let named = statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)?;
        if !is_same(&own, &named) {
            return Err(io::Error::other("another file has this name by now"));
        }
        Ok(unlinkat(&self.directory, &self.name, AtFlags::empty())?)
    }
}

/// The first reason not to rely on the owners of files in a directory, for a file that is still to be made.
///
/// # Errors
/// The errors of the system.
pub fn doubt_of_directory(path: &Path) -> io::Result<Option<Doubt>> {
    let mut judged = JudgedPath::default();
    let directory = directory(&path.canonicalize()?, &mut judged)?;
    judged.file_system(&directory)?;
    Ok(judged.doubt)
}

/// Opens each directory of a resolved path in turn, and judges it.
fn directory(resolved: &Path, judged: &mut JudgedPath) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut path = PathBuf::from("/");
    let mut directory = open("/", flags, Mode::empty())?;
    judged.file_or_directory(&path, &fstat(&directory)?);
    for component in resolved.components() {
        let Component::Normal(name) = component else {
            continue;
        };
        path.push(name);
        directory = openat(&directory, name, flags, Mode::empty())?;
        judged.file_or_directory(&path, &fstat(&directory)?);
    }
    Ok(directory)
}

/// The first doubt that came up.
#[derive(Default)]
struct JudgedPath {
    doubt: Option<Doubt>,
}

impl JudgedPath {
    fn note(&mut self, doubt: Doubt) {
        self.doubt.get_or_insert(doubt);
    }

    fn file_or_directory(&mut self, path: &Path, stat: &Stat) {
        let path = path.to_owned();
        if stat.st_uid != 0 && stat.st_uid != geteuid().as_raw() {
            self.note(Doubt::Owner {
                path,
                uid: stat.st_uid,
            });
        } else if stat.st_mode & WRITABLE_BY_OTHERS != 0 {
            self.note(Doubt::Writable {
                path,
                mode: stat.st_mode & 0o7777,
            });
        }
    }

    fn links(&mut self, file: &File) -> io::Result<()> {
        let count = file.metadata()?.nlink();
        if count != 1 {
            self.note(Doubt::Links { count });
        }
        Ok(())
    }

    fn file_system(&mut self, file: &impl AsFd) -> io::Result<()> {
        // The type is a signed word whose upper half says nothing.
        let magic = fstatfs(file)?.f_type as u64 & 0xffff_ffff;
        if !KEEPS_OWNERS.contains(&magic) {
            self.note(Doubt::FileSystem { magic });
        }
        if fstatvfs(file)?.f_flag.contains(StatVfsMountFlags::NOSUID) {
            self.note(Doubt::NoSuid);
        }
        Ok(())
    }
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn must_be_regular(stat: &Stat) -> io::Result<()> {
    let found = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::BlockDevice => "a block device",
        FileType::CharacterDevice => "a character device",
        FileType::Unknown => "a file of unknown kind",
    };
    Err(not_regular(NotRegular { found }))
}

fn not_regular(found: NotRegular) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, found)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    use super::*;

    fn refused(path: &Path) -> String {
        NamedFile::open(path, FileUse::Read)
            .expect_err("no regular file")
            .to_string()
    }

    #[test]
    fn only_a_regular_file_is_opened() {
        let dir = plumb_testkit::temp_dir("named-file");
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "it").expect("room");
        symlink("file", at("link")).expect("room");
        fs::create_dir(at("directory")).expect("room");
        let fifo = Command::new("mkfifo").arg(at("fifo")).status();
        assert!(fifo.expect("mkfifo").success());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).expect("a socket");
        for (path, found) in [
            (at("link"), "a symbolic link"),
            (at("directory"), "a directory"),
            (at("fifo"), "a FIFO"),
            (at("socket"), "a socket"),
            (PathBuf::from("/dev/null"), "a character device"),
            (PathBuf::from("/"), "a directory"),
        ] {
            let expected = format!("found {found}, expected a regular file");
            assert_eq!(refused(&path), expected, "{}", path.display());
        }
        NamedFile::open(&at("file"), FileUse::Read).expect("a regular file");
        // A directory may be reached through a link.
        symlink(dir.path(), at("directory/back")).expect("room");
        NamedFile::open(&at("directory/back/file"), FileUse::Read).expect("a regular file");
    }

    #[test]
    fn processes_that_can_write_are_listed() {
        let dir = plumb_testkit::temp_dir("named-file");
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).expect("room");
        let path = inner.join("file");
        fs::write(&path, "it").expect("room");
        let judged = |path: &Path, mode: u32| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mine");
            let file = NamedFile::open(&inner.join("file"), FileUse::Read).expect("a file");
            file.doubt().cloned()
        };
        // Directories for temporary files let others write, before these here are looked at.
        let above = doubt_of_directory(dir.path()).expect("it is there");
        assert_eq!(judged(&path, 0o600), above);
        if above.is_none() {
            for (of, mode) in [(&path, 0o620), (&path, 0o602), (&inner, 0o777)] {
                let doubt = judged(of, mode);
                assert!(matches!(doubt, Some(Doubt::Writable { .. })), "{doubt:?}");
                judged(of, 0o700);
            }
            fs::hard_link(&path, inner.join("other")).expect("room");
            assert_eq!(judged(&path, 0o600), Some(Doubt::Links { count: 2 }));
        }
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_not_removed() {
        let dir = plumb_testkit::temp_dir("named-file");
        let path = dir.path().join("file");
        fs::write(&path, "it").expect("room");
        let open = NamedFile::open(&path, FileUse::Read).expect("a file");
        fs::rename(&path, dir.path().join("away")).expect("room");
        fs::write(&path, "another").expect("room");
        open.remove().expect_err("another file");
        assert_eq!(fs::read_to_string(&path).expect("it stays"), "another");
        let open = NamedFile::open(&path, FileUse::Read).expect("a file");
        open.remove().expect("its own name");
        assert!(!path.exists());
    }
}
