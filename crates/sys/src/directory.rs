//! Small files below a root. A root may be a copy of another host's files, so no symbolic link leads out of it, no read
//! waits, and its length is bounded. It may also be a [`FileTree`] in memory.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Dir, Mode, OFlags, ResolveFlags, open, openat, openat2, readlinkat};
use rustix::io::{Errno, Result, read};

use crate::file_tree::{FileTree, TreeDirectory};

/// Looks at a path before its reader gives up.
const TRIES: u32 = 100;
const DIRECTORY: OFlags = OFlags::DIRECTORY
    .union(OFlags::RDONLY)
    .union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);

/// An open directory.
#[derive(Debug)]
pub struct Directory(TreePlace);

/// Its place.
#[derive(Debug)]
enum TreePlace {
    Open(OwnedFd),
    Tree(TreeDirectory),
}

impl Directory {
    /// Opens a root, by a path of the process.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn root(path: &Path) -> Result<Directory> {
        let fd = open(path, DIRECTORY, Mode::empty())?;
        Ok(Directory(TreePlace::Open(fd)))
    }

    /// A directory of a tree in memory as the root, by its path without links.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, and `ELOOP` for a link.
    pub fn in_tree(tree: &Arc<FileTree>, path: &str) -> Result<Directory> {
        TreeDirectory::open(tree, path).map(|directory| Directory(TreePlace::Tree(directory)))
    }

    /// Opens a directory below, at any depth; links, absolute ones too, are followed as if this directory were `/`.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn below(&self, path: &str) -> Result<Directory> {
        Ok(Directory(match &self.0 {
            TreePlace::Open(fd) => TreePlace::Open(self.open_below(fd, path, DIRECTORY)?),
            TreePlace::Tree(tree) => TreePlace::Tree(tree.child(&self.resolved(path)?)?),
        }))
    }

    /// Opens a directory in this one, which must not be a link.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn child(&self, name: &str) -> Result<Directory> {
        Ok(Directory(match &self.0 {
            TreePlace::Open(fd) => TreePlace::Open(openat(
                fd,
                name,
                DIRECTORY | OFlags::NOFOLLOW,
                Mode::empty(),
            )?),
            TreePlace::Tree(tree) => TreePlace::Tree(tree.child(name)?),
        }))
    }

    /// Reads a small file of this directory, which must not be a link: as much as one read returns and the buffer takes.
    /// Files of sysfs return all they have at once.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn read<'b>(&self, name: &str, buffer: &'b mut [u8]) -> Result<&'b [u8]> {
        let len = match &self.0 {
            TreePlace::Open(fd) => {
                let file = openat(fd, name, FILE | OFlags::NOFOLLOW, Mode::empty())?;
                read(&file, &mut *buffer)?
            }
            TreePlace::Tree(tree) => {
                let content = tree.file(name)?;
                let len = content.len().min(buffer.len());
                buffer[..len].copy_from_slice(&content[..len]);
                len
            }
        };
        Ok(&buffer[..len])
    }

    /// Reads a file below to its end, or to a length beyond which it is cut off.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn read_below(&self, path: &str, len_max: usize) -> Result<Vec<u8>> {
        let fd = match &self.0 {
            TreePlace::Open(fd) => self.open_below(fd, path, FILE)?,
            TreePlace::Tree(tree) => {
                let content = tree.file(&self.resolved(path)?)?;
                return Ok(content[..content.len().min(len_max)].to_vec());
            }
        };
        let (mut text, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        while text.len() < len_max {
            match read(&fd, &mut buffer[..])? {
                0 => break,
                len => text.extend_from_slice(&buffer[..len.min(len_max - text.len())]),
            }
        }
        Ok(text)
    }

    /// The target of a link below; directories above it are found as by [`Directory::below`]. Bytes that are no UTF-8
    /// are replaced.
    ///
    /// # Errors
    /// The error of the kernel; `EINVAL` if it is no link.
    pub fn link(&self, path: &str) -> Result<String> {
        match path.rsplit_once('/') {
            Some(("", name)) => self.link_on_way(name),
            Some((above, name)) => self.below(above)?.link_on_way(name),
            None => self.link_on_way(path),
        }
    }

    /// A link by a path on which there is no other one.
    fn link_on_way(&self, path: &str) -> Result<String> {
        match &self.0 {
            TreePlace::Open(fd) => Ok(readlinkat(fd, path, Vec::new())?
                .to_string_lossy()
                .into_owned()),
            TreePlace::Tree(tree) => tree.link(path),
        }
    }

    /// Names of its entries, without `.` and `..`, in no order.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn names(&self) -> Result<Vec<String>> {
        let fd = match &self.0 {
            TreePlace::Open(fd) => fd,
            TreePlace::Tree(tree) => return tree.names(),
        };
        let mut names = Vec::new();
        for entry in Dir::read_from(fd)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open_below(&self, fd: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let open = || openat2(fd, path, flags, Mode::empty(), resolve);
        // A file that is renamed or mounted anywhere meanwhile hinders a look at `..`, and the next one may succeed.
        let again = || {
            (0..TRIES)
                .map(|_| open())
                .find(|opened| !matches!(opened, Err(Errno::AGAIN)))
        };
        match again().unwrap_or(Err(Errno::AGAIN)) {
            // The kernel is older than 5.6, or a filter of system calls does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => self.open_by_steps(fd, path, flags),
            result => result,
        }
    }

    /// Without the help of the kernel.
    fn open_by_steps(&self, fd: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd> {
        let path = self.resolved(path)?;
        let path = if path == "/" { "." } else { &path[1..] };
        openat(fd, path, flags | OFlags::NOFOLLOW, Mode::empty())
    }

    /// A path below with all links resolved, as an absolute one of this directory taken for `/`: links are read step by
    /// step, and `..` does not rise above the root.
    ///
    /// # Errors
    /// The error of the kernel; `ELOOP` for circular links.
    pub fn resolved(&self, path: &str) -> Result<String> {
        let mut ahead: Vec<String> = steps(path).rev().collect();
        let mut way: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(step) = ahead.pop() {
            if step == ".." {
                way.pop();
                continue;
            }
            way.push(step);
            let target = match self.link_on_way(&way.join("/")) {
                Ok(target) => target,
                Err(Errno::INVAL) => continue,
                Err(errno) => return Err(errno),
            };
            links += 1;
            if links > LINKS_MAX {
                return Err(Errno::LOOP);
            }
            if target.starts_with('/') {
                way.clear();
            } else {
                way.pop();
            }
            ahead.extend(steps(&target).rev());
        }
        Ok(format!("/{}", way.join("/")))
    }
}

/// Links followed on one way, as many as the kernel follows itself (path_resolution(7)).
const LINKS_MAX: u32 = 40;

fn steps(path: &str) -> impl DoubleEndedIterator<Item = String> {
    path.split('/')
        .filter(|step| !step.is_empty() && *step != ".")
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Every link ends inside the root, with the kernel's help and without.
    #[test]
    fn links_stay_inside() {
        let dir = plumb_testkit::temp_dir("root");
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("etc")).expect("a directory");
        std::fs::create_dir_all(root.join("a/b")).expect("a directory");
        std::fs::write(root.join("etc/name"), "inside").expect("a file");
        std::fs::create_dir(dir.path().join("etc")).expect("a directory");
        std::fs::write(dir.path().join("etc/name"), "outside").expect("a file");
        symlink("/etc", root.join("a/absolute")).expect("a link");
        symlink("../../etc", root.join("a/b/relative")).expect("a link");
        symlink("../../../../../../etc", root.join("a/b/upward")).expect("a link");
        symlink("circle", root.join("a/circle")).expect("a link");
        let root = Directory::root(&root).expect("the root");
        let TreePlace::Open(fd) = &root.0 else {
            panic!("it was opened");
        };
        for path in [
            "a/absolute",
            "a/b/relative",
            "a/b/upward",
            "etc",
            "/etc",
            "a/b/../../etc",
        ] {
            for fd in [
                root.open_below(fd, path, DIRECTORY),
                root.open_by_steps(fd, path, DIRECTORY),
            ] {
                let found = Directory(TreePlace::Open(fd.expect(path)));
                assert_eq!(
                    found.read("name", &mut [0; 64]),
                    Ok(&b"inside"[..]),
                    "{path}"
                );
            }
        }
        for path in ["a/circle", "a/circle/b"] {
            let below = root.open_below(fd, path, DIRECTORY);
            assert_eq!(below.err(), Some(Errno::LOOP));
            let by_steps = root.open_by_steps(fd, path, DIRECTORY);
            assert_eq!(by_steps.err(), Some(Errno::LOOP));
        }
        for (path, expected) in [
            ("a/b/upward/name", "/etc/name"),
            ("/a//./b/..", "/a"),
            ("..", "/"),
        ] {
            assert_eq!(root.resolved(path).as_deref(), Ok(expected), "{path}");
        }
        assert_eq!(
            root.open_by_steps(fd, "a/none", DIRECTORY).err(),
            Some(Errno::NOENT)
        );
        let a = root.below("a").expect("a directory");
        assert!(a.child("absolute").is_err(), "a child is no link");
        assert_eq!(a.link("absolute").as_deref(), Ok("/etc"));
        // Neither leads a directory on the way to a link out of the root.
        symlink("here", dir.path().join("root/etc/link")).expect("a link");
        symlink("there", dir.path().join("etc/link")).expect("a link");
        assert_eq!(root.link("a/b/upward/link").as_deref(), Ok("here"));
    }

    /// A tree in memory gives the answers that the same files on a disk give.
    #[test]
    fn a_tree_answers_as_files_do() {
        let dir = plumb_testkit::temp_dir("tree");
        let mut tree = FileTree::new(1 << 20);
        for (path, content) in [("top/etc/name", "inside"), ("top/a/b/long", "0123456789")] {
            let place = dir.path().join(path);
            std::fs::create_dir_all(place.parent().expect("one")).expect("a directory");
            std::fs::write(place, content).expect("a file");
            tree.add_file(path, content.into()).expect("room");
        }
        for (path, target) in [
            ("top/a/absolute", "/etc"),
            ("top/a/b/upward", "../../../../../../etc"),
            ("top/a/circle", "circle"),
            ("top/out", ".."),
        ] {
            symlink(target, dir.path().join(path)).expect("a link");
            tree.add_link(path, target).expect("room");
        }
        let on_disk = Directory::root(&dir.path().join("top")).expect("the root");
        let in_memory = Directory::in_tree(&Arc::new(tree), "top").expect("the root");
        let both = |work: &dyn Fn(&Directory) -> String| {
            let (expected, found) = (work(&on_disk), work(&in_memory));
            assert_eq!(found, expected);
            found
        };
        for path in [
            "etc",
            "a/absolute",
            "a/b/upward",
            "a/circle",
            "a/none",
            "etc/name",
            "out",
            "out/etc",
            "a/b/../..",
            "/a//./b",
            "etc/name/x",
            ".",
        ] {
            both(&|root| {
                let names = root.below(path).map(|below| {
                    let mut names = below.names().expect("its names");
                    names.sort();
                    names
                });
                format!("{path}: {names:?}")
            });
            both(&|root| format!("{path}: {:?}", root.resolved(path)));
            both(&|root| format!("{path}: {:?}", root.read_below(&format!("{path}/name"), 4)));
        }
        let read = both(&|root| format!("{:?}", root.read_below("a/b/upward/name", 4)));
        assert_eq!(read, format!("Ok({:?})", b"insi"));
        both(&|root| {
            let b = root
                .below("a")
                .and_then(|a| a.child("b"))
                .expect("a directory");
            format!("{:?}", b.read("long", &mut [0; 4]))
        });
        for name in ["absolute", "b", "none"] {
            both(&|root| {
                let a = root.below("a").expect("a directory");
                format!("{:?} {:?}", a.link(name), a.child(name).is_ok())
            });
        }
    }

    #[test]
    fn reading_is_bounded_and_does_not_block() {
        let dir = plumb_testkit::temp_dir("bounded");
        std::fs::write(dir.path().join("long"), vec![b'x'; 200_000]).expect("a file");
        let made = std::process::Command::new("mkfifo")
            .arg(dir.path().join("pipe"))
            .status();
        assert!(made.expect("mkfifo of coreutils").success());
        let root = Directory::root(dir.path()).expect("the root");
        assert_eq!(
            root.read_below("long", 150_000).map(|text| text.len()),
            Ok(150_000)
        );
        assert_eq!(
            root.read_below("long", 1 << 20).map(|text| text.len()),
            Ok(200_000)
        );
        assert_eq!(root.read("long", &mut [0; 16]).map(<[u8]>::len), Ok(16));
        assert_eq!(root.read("pipe", &mut [0; 16]), Ok(&b""[..]));
    }
}
