//! A new file under a name that somebody chose: made beside it, and given the name when it is whole.
//!
//! Root writes to a path that a user named, and other users may have prepared that place: a link to a file of the
//! system, or a file that they can read. So the path is walked one directory after the other through open descriptors,
//! and a link is followed only if no other user can have made it. The file itself is made with `O_EXCL` and
//! `O_NOFOLLOW` under an unpredictable name, and a rename in the same open directory gives it its own.

use std::collections::hash_map::RandomState;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, fchmod, fchown, fstat, fsync, linkat,
    openat, readlinkat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, geteuid};
use thiserror::Error;

use crate::signals::RemovedAtTheEnd;

/// The content of the file, which decides about its readers and its possible names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// A report: it takes the place of an older one, and keeps its owner and mode.
    Report,
    /// Data, names or accesses of disks: for its owner alone, under a name that is free, never through a link.
    DiskData,
}

/// Why a file must not be made under a name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameRefused {
    /// A file with data of a disk would be made through a link.
    #[error(
        "found a symbolic link, expected a free name: data of a disk are never written through a link"
    )]
    LinkToData,
    /// A link in a directory for all.
    #[error("{} is a symbolic link in a directory that every user can write to, expected a file of your own or a free name", path.display())]
    LinkInPublic {
        /// The link.
        path: PathBuf,
    },
    /// A link that somebody else can lead anywhere.
    #[error("{} is a symbolic link of user {uid}, expected one of yourself or root", path.display())]
    LinkOfOther {
        /// The link.
        path: PathBuf,
        /// User ID of its owner.
        uid: u32,
    },
    /// A file of somebody else in a directory for all.
    #[error("{} belongs to user {uid} in a directory that every user can write to, expected a file of your own or a free name", path.display())]
    FileOfOther {
        /// The file.
        path: PathBuf,
        /// User ID of its owner.
        uid: u32,
    },
}

impl From<NameRefused> for io::Error {
    fn from(refused: NameRefused) -> io::Error {
        io::Error::new(io::ErrorKind::PermissionDenied, refused)
    }
}

/// Everybody can write to a directory with this bit.
const WRITABLE_BY_ALL: u32 = 0o002;
/// As many links on one way as the kernel follows.
const LINKS_MAX: u32 = 40;
/// As much of a name as is repeated in the temporary one: a name has 255 bytes at most.
const NAME_REPEATED: usize = 200;

/// A file that is being written. Dropped without [`NewFile::finish`], it leaves nothing behind; nor does a program that a
/// signal ends.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    content: FileContent,
    name: OsString,
    /// `None` when it has its own name.
    unfinished: Option<RemovedAtTheEnd>,
}

impl NewFile {
    /// Makes the file beside its name.
    ///
    /// # Errors
    /// [`NameRefused`] inside an [`io::Error`], `AlreadyExists` for data of a disk, and errors of the kernel.
    pub fn create(path: &Path, content: FileContent) -> io::Result<NewFile> {
        let Target {
            directory,
            name,
            old,
        } = Target::find(path, content)?;
        let unfinished = RemovedAtTheEnd::new(directory, temporary_name(&name)?);
        // An older file's mode may be narrower: nobody opens the new one in between.
        let mode = match (content, &old) {
            (FileContent::Report, None) => Mode::from_raw_mode(0o666),
            _ => Mode::from_raw_mode(0o600),
        };
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(unfinished.directory(), unfinished.name(), flags, mode)?;
        let new = NewFile {
            file: File::from(file),
            content,
            name,
            unfinished: Some(unfinished),
        };
        if let Some(old) = old {
            new.keep_access(&old)?;
        }
        Ok(new)
    }

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name, once all of it is on its medium; data of a disk together with the name.
    ///
    /// # Errors
    /// `AlreadyExists` if the name of data of a disk was taken in the meantime, and errors of the kernel; the file is
    /// then removed.
    pub fn finish(mut self) -> io::Result<File> {
        // Without this a crash after the rename could leave an empty file under the final name.
        self.file.sync_all()?;
        let file = self.file.try_clone()?;
        let Some(unfinished) = self.unfinished.as_ref() else {
            return Ok(file);
        };
        let directory = unfinished.directory();
        match self.content {
            FileContent::Report => renameat(directory, unfinished.name(), directory, &self.name)?,
            FileContent::DiskData => rename_to_free(unfinished, &self.name)?,
        }
        let unfinished = self.unfinished.take();
        if let (FileContent::DiskData, Some(unfinished)) = (self.content, unfinished) {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            fsync(openat(unfinished.directory(), ".", flags, Mode::empty())?)?;
        }
        Ok(file)
    }

    /// Readers of the replaced file may read the new one, and no other users.
    fn keep_access(&self, old: &Stat) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
        // Only the administrator may give files away; for all others the new one is theirs.
        let _ = fchown(&self.file, Some(uid), Some(gid));
        // Never the bits that let a program run as its owner.
        Ok(fchmod(
            &self.file,
            Mode::from_raw_mode(old.st_mode & 0o777),
        )?)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            // Nothing can report a failure here; the name identifies the file.
            let _ = unlinkat(unfinished.directory(), unfinished.name(), AtFlags::empty());
        }
    }
}

/// A rename that replaces nothing. Not all file systems know one.
fn rename_to_free(unfinished: &RemovedAtTheEnd, name: &OsStr) -> io::Result<()> {
    let (directory, temporary) = (unfinished.directory(), unfinished.name());
    match renameat_with(
        directory,
        temporary,
        directory,
        name,
        RenameFlags::NOREPLACE,
    ) {
        Err(Errno::INVAL | Errno::NOSYS) => {}
        renamed => return Ok(renamed?),
    }
    match linkat(directory, temporary, directory, name, AtFlags::empty()) {
        Ok(()) => return Ok(unlinkat(directory, temporary, AtFlags::empty())?),
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(errno) => return Err(errno.into()),
    }
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(renameat(directory, temporary, directory, name)?),
        Ok(_) => Err(Errno::EXIST.into()),
        Err(errno) => Err(errno.into()),
    }
}

/// `.NAME.unfinished-` and a number that nobody can guess.
fn temporary_name(name: &OsStr) -> io::Result<CString> {
    let bytes = name.as_bytes();
    let mut hidden = b".".to_vec();
    hidden.extend_from_slice(&bytes[..bytes.len().min(NAME_REPEATED)]);
    let random = RandomState::new().build_hasher().finish();
    hidden.extend_from_slice(format!(".unfinished-{random:016x}").as_bytes());
    CString::new(hidden).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// The target of a name.
struct Target {
    directory: OwnedFd,
    name: OsString,
    /// The file that has it.
    old: Option<Stat>,
}

/// A directory on the way, with its properties.
struct Step {
    fd: OwnedFd,
    path: PathBuf,
    is_public: bool,
}

impl Step {
    fn open(at: impl std::os::fd::AsFd, name: &Path, path: PathBuf) -> io::Result<Step> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Step::opened(openat(at, name, flags, Mode::empty())?, path)
    }

    fn opened(fd: OwnedFd, path: PathBuf) -> io::Result<Step> {
        let is_public = fstat(&fd)?.st_mode & WRITABLE_BY_ALL != 0;
        Ok(Step {
            fd,
            path,
            is_public,
        })
    }
}

impl Target {
    /// Walks to the directory of a name, and looks at the file with that name.
    fn find(path: &Path, content: FileContent) -> io::Result<Target> {
        let mut ahead: Vec<OsString> = steps(path);
        let mut at = Step::open(CWD, Path::new("."), PathBuf::new())?;
        let mut links = 0;
        while let Some(step) = ahead.pop() {
            if step == "/" {
                at = Step::open(CWD, Path::new("/"), "/".into())?;
                continue;
            }
            let path = at.path.join(&step);
            if step == ".." {
                at = Step::open(&at.fd, Path::new(".."), path)?;
                continue;
            }
            let is_last = ahead.is_empty();
            let looked = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = match openat(&at.fd, &step, looked, Mode::empty()) {
                Err(Errno::NOENT) if is_last => return Ok(Target::new(at, step, None)),
                found => found?,
            };
            let stat = fstat(&found)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    must_be_followed(&at, &path, &stat, is_last, content)?;
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Errno::LOOP.into());
                    }
                    let target = readlinkat(&found, "", Vec::new())?.into_bytes();
                    ahead.extend(steps(Path::new(&OsString::from_vec(target))));
                }
                FileType::RegularFile if is_last => {
                    let uid = stat.st_uid;
                    if content == FileContent::DiskData {
                        return Err(Errno::EXIST.into());
                    }
                    if at.is_public && uid != geteuid().as_raw() {
                        return Err(NameRefused::FileOfOther { path, uid }.into());
                    }
                    return Ok(Target::new(at, step, Some(stat)));
                }
                FileType::Directory if !is_last => at = Step::opened(found, path)?,
                _ if is_last => return Err(Errno::EXIST.into()),
                _ => return Err(Errno::NOTDIR.into()),
            }
        }
        // The path is empty, or ends with a directory.
        Err(Errno::ISDIR.into())
    }

    fn new(at: Step, name: OsString, old: Option<Stat>) -> Target {
        Target {
            directory: at.fd,
            name,
            old,
        }
    }
}

/// That a pipe or device to write to is not one that another user has chosen: by a link in a directory for all, or by a pipe
/// there that they read from.
///
/// # Errors
/// [`NameRefused`] inside of an [`io::Error`].
pub fn must_be_own_in_public(path: &Path, found: &Metadata) -> io::Result<()> {
    let uid = found.uid();
    let is_in_public = |path: &Path| {
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new(".")).metadata();
        above.is_ok_and(|above| above.mode() & WRITABLE_BY_ALL != 0)
    };
    if path.is_symlink() && is_in_public(path) {
        let path = path.to_owned();
        return Err(NameRefused::LinkInPublic { path }.into());
    }
    let is_own = uid == 0 || uid == geteuid().as_raw();
    // A pipe of the shell has no path.
    if !is_own && path.canonicalize().is_ok_and(|whole| is_in_public(&whole)) {
        let path = path.to_owned();
        return Err(NameRefused::FileOfOther { path, uid }.into());
    }
    Ok(())
}

/// Whether nobody else can have put a link there, or changed where it leads.
fn must_be_followed(
    at: &Step,
    path: &Path,
    link: &Stat,
    is_last: bool,
    content: FileContent,
) -> Result<(), NameRefused> {
    let (path, uid) = (path.to_owned(), link.st_uid);
    if is_last && content == FileContent::DiskData {
        return Err(NameRefused::LinkToData);
    }
    if is_last && at.is_public {
        return Err(NameRefused::LinkInPublic { path });
    }
    if uid != 0 && uid != geteuid().as_raw() {
        return Err(NameRefused::LinkOfOther { path, uid });
    }
    Ok(())
}

/// Components in reverse order: the next one is the last.
fn steps(path: &Path) -> Vec<OsString> {
    let steps = path.components().rev();
    steps
        .filter(|step| !matches!(step, Component::CurDir | Component::Prefix(_)))
        .map(|step| step.as_os_str().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    use plumb_testkit::require;

    use super::*;

    /// A user that is neither root nor this one.
    const OTHER: u32 = 65_534;

    /// A directory for its owner, and in it one for all.
    struct PlantedPaths {
        dir: plumb_testkit::tempdir::TempDir,
    }

    impl PlantedPaths {
        fn new() -> PlantedPaths {
            let dir = plumb_testkit::temp_dir("new-file");
            fs::create_dir(dir.path().join("public")).expect("room");
            let all = fs::Permissions::from_mode(0o1777);
            fs::set_permissions(dir.path().join("public"), all).expect("mine");
            PlantedPaths { dir }
        }

        fn at(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn names(&self, directory: &str) -> Vec<String> {
            let entries = fs::read_dir(self.at(directory)).expect("a directory");
            let name = |entry: io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
            let mut names: Vec<String> = entries
                .map(|entry| name(entry).to_string_lossy().into_owned())
                .collect();
            names.sort();
            names
        }
    }

    fn write(path: &Path, content: FileContent) -> io::Result<()> {
        let mut new = NewFile::create(path, content)?;
        new.write_all(b"new")?;
        new.finish().map(drop)
    }

    fn refusal(path: &Path, content: FileContent) -> NameRefused {
        let error = write(path, content).expect_err("it is refused");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        let inner = error.into_inner().expect("a reason");
        *inner.downcast().expect("of this kind")
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o7777
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole() {
        let places = PlantedPaths::new();
        let path = places.at("public/report");
        let mut new = NewFile::create(&path, FileContent::DiskData).expect("room");
        new.write_all(b"half").expect("room");
        let names = places.names("public");
        assert!(matches!(&names[..], [name] if name.starts_with(".report.unfinished-")));
        drop(new);
        assert_eq!(places.names("public"), [""; 0], "nothing is left behind");
        write(&path, FileContent::DiskData).expect("room");
        assert_eq!(places.names("public"), ["report"]);
        assert_eq!(mode(&path), 0o600);
        let again = write(&path, FileContent::DiskData).expect_err("it is taken");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        // Another file that came meanwhile is not replaced.
        let new = NewFile::create(&places.at("other"), FileContent::DiskData).expect("room");
        fs::write(places.at("other"), "old").expect("room");
        let taken = new.finish().expect_err("it is taken");
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(places.at("other")).expect("it stays"), b"old");
        assert_eq!(places.names("."), ["other", "public"]);
    }

    #[test]
    fn a_report_replaces_and_keeps_its_mode() {
        let places = PlantedPaths::new();
        let path = places.at("report");
        fs::write(&path, "old").expect("room");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4640)).expect("mine");
        // A link of this user in a directory of this user is followed, and stays.
        symlink("report", places.at("link")).expect("room");
        symlink("link", places.at("second")).expect("room");
        write(&places.at("second"), FileContent::Report).expect("it is followed");
        assert_eq!(fs::read(&path).expect("a file"), b"new");
        assert_eq!(
            mode(&path),
            0o640,
            "without the bit that runs it as its owner"
        );
        assert!(places.at("link").is_symlink() && places.at("second").is_symlink());
        // One without an end makes the file there.
        symlink("public/made", places.at("dangling")).expect("room");
        write(&places.at("dangling"), FileContent::Report).expect("it is followed");
        assert_eq!(fs::read(places.at("public/made")).expect("a file"), b"new");
        symlink("circle", places.at("circle")).expect("room");
        let circle = write(&places.at("circle"), FileContent::Report).expect_err("no end");
        assert_eq!(circle.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        let long = "n".repeat(255);
        write(&places.at(&long), FileContent::Report).expect("the longest name");
        for (path, error) in [
            ("public", Errno::EXIST),
            ("report/x", Errno::NOTDIR),
            ("none/x", Errno::NOENT),
            ("public/..", Errno::ISDIR),
        ] {
            let refused = write(&places.at(path), FileContent::Report).expect_err(path);
            assert_eq!(refused.raw_os_error(), Some(error.raw_os_error()), "{path}");
        }
    }

    #[test]
    fn a_link_in_a_directory_for_all_is_refused() {
        let places = PlantedPaths::new();
        fs::write(places.at("victim"), "old").expect("room");
        let link = places.at("public/link");
        symlink("../victim", &link).expect("room");
        let path = link.clone();
        let refused = refusal(&link, FileContent::Report);
        assert_eq!(refused, NameRefused::LinkInPublic { path });
        // Also at the end of a way that begins elsewhere.
        symlink("public/link", places.at("way")).expect("room");
        refusal(&places.at("way"), FileContent::Report);
        // Data of a disk go through no link at all.
        symlink("free", places.at("private")).expect("room");
        for name in ["public/link", "way", "private"] {
            let refused = refusal(&places.at(name), FileContent::DiskData);
            assert_eq!(refused, NameRefused::LinkToData, "{name}");
        }
        assert_eq!(fs::read(places.at("victim")).expect("it stays"), b"old");
        assert_eq!(places.names("public"), ["link"]);
        // A link to a directory, of this user, is no danger.
        symlink("public", places.at("directory")).expect("room");
        write(&places.at("directory/data"), FileContent::DiskData).expect("a directory");
    }

    #[test]
    fn files_and_links_of_other_users_are_refused() {
        require!(Root);
        let places = PlantedPaths::new();
        let (file, link) = (places.at("public/file"), places.at("public/directory"));
        fs::write(&file, "old").expect("room");
        chown(&file, Some(OTHER), None).expect("root may");
        let refused = refusal(&file, FileContent::Report);
        let (path, uid) = (file.clone(), OTHER);
        assert_eq!(refused, NameRefused::FileOfOther { path, uid });
        assert_eq!(fs::read(&file).expect("it stays"), b"old");
        // In a directory of this user it cannot have been put there by them.
        let own = places.at("own");
        fs::rename(&file, &own).expect("root may");
        write(&own, FileContent::Report).expect("it is replaced");
        assert_eq!(
            fs::metadata(&own).expect("a file").uid(),
            OTHER,
            "its owner stays"
        );
        // A link that leads outside, from any directory.
        symlink("..", &link).expect("room");
        symlink("public", places.at("moved")).expect("room");
        for link in [&link, &places.at("moved")] {
            lchown(link, Some(OTHER), None).expect("root may");
            for content in [FileContent::Report, FileContent::DiskData] {
                let refused = refusal(&link.join("x"), content);
                let (path, uid) = (link.clone(), OTHER);
                assert_eq!(refused, NameRefused::LinkOfOther { path, uid });
            }
        }
    }

    #[test]
    fn a_pipe_of_another_user_is_refused() {
        require!(Root);
        let places = PlantedPaths::new();
        let pipe = places.at("public/pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo of coreutils").success());
        let judged = |path: &Path| {
            let found = fs::metadata(path).expect("a pipe");
            must_be_own_in_public(path, &found).is_ok()
        };
        assert!(judged(&pipe));
        chown(&pipe, Some(OTHER), None).expect("root may");
        assert!(!judged(&pipe));
        symlink("public/pipe", places.at("way")).expect("room");
        assert!(!judged(&places.at("way")));
        fs::rename(&pipe, places.at("pipe")).expect("root may");
        assert!(
            judged(&places.at("pipe")),
            "who may write here has put it here"
        );
        // A pipe of root that somebody leads root to.
        chown(places.at("pipe"), Some(0), None).expect("root may");
        symlink("../pipe", places.at("public/way")).expect("room");
        assert!(!judged(&places.at("public/way")));
    }
}
