//! Small files below a root. A root may be a copy of another host's files, so no symbolic link leads out of it, no file is
//! waited for, and what is read is bounded.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Dir, Mode, OFlags, ResolveFlags, open, openat, openat2, readlinkat};
use rustix::io::{Errno, Result, read};

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
pub struct Directory {
    fd: OwnedFd,
}

impl Directory {
    /// Opens a root, by a path of the process.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn root(path: &Path) -> Result<Directory> {
        Ok(Directory {
            fd: open(path, DIRECTORY, Mode::empty())?,
        })
    }

    /// Opens a directory below, at any depth; links, absolute ones too, are followed as if this directory were `/`.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn below(&self, path: &str) -> Result<Directory> {
        Ok(Directory {
            fd: self.open_below(path, DIRECTORY)?,
        })
    }

    /// Opens a directory in this one, which must not be a link.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn child(&self, name: &str) -> Result<Directory> {
        Ok(Directory {
            fd: openat(&self.fd, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?,
        })
    }

    /// Reads a small file of this directory, which must not be a link: as much as one read returns and the buffer takes.
    /// Files of sysfs return all they have at once.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn read<'b>(&self, name: &str, buffer: &'b mut [u8]) -> Result<&'b [u8]> {
        let fd = openat(&self.fd, name, FILE | OFlags::NOFOLLOW, Mode::empty())?;
        let len = read(&fd, &mut *buffer)?;
        Ok(&buffer[..len])
    }

    /// Reads a file below to its end, or to a length beyond which it is cut off.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn read_below(&self, path: &str, len_max: usize) -> Result<Vec<u8>> {
        let fd = self.open_below(path, FILE)?;
        let (mut text, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        while text.len() < len_max {
            match read(&fd, &mut buffer[..])? {
                0 => break,
                len => text.extend_from_slice(&buffer[..len.min(len_max - text.len())]),
            }
        }
        Ok(text)
    }

    /// Where a link of this directory points; bytes that are no UTF-8 are replaced.
    ///
    /// # Errors
    /// What the kernel says; `EINVAL` where it is no link.
    pub fn link(&self, name: &str) -> Result<String> {
        Ok(readlinkat(&self.fd, name, Vec::new())?
            .to_string_lossy()
            .into_owned())
    }

    /// Names of what is in it, without `.` and `..`, in no order.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open_below(&self, path: &str, flags: OFlags) -> Result<OwnedFd> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let open = || openat2(&self.fd, path, flags, Mode::empty(), resolve);
        // A file that is renamed or mounted anywhere meanwhile hinders a look at `..`, and the next one may succeed.
        let again = || {
            (0..TRIES)
                .map(|_| open())
                .find(|opened| !matches!(opened, Err(Errno::AGAIN)))
        };
        match again().unwrap_or(Err(Errno::AGAIN)) {
            // The kernel is older than 5.6, or a filter of system calls does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => self.open_by_steps(path, flags),
            result => result,
        }
    }

    /// Without the help of the kernel.
    fn open_by_steps(&self, path: &str, flags: OFlags) -> Result<OwnedFd> {
        let path = self.resolved(path)?;
        let path = if path == "/" { "." } else { &path[1..] };
        openat(&self.fd, path, flags | OFlags::NOFOLLOW, Mode::empty())
    }

    /// A path below with all links resolved, as an absolute one of this directory taken for `/`: links are read step by
    /// step, and `..` does not rise above the root.
    ///
    /// # Errors
    /// What the kernel says; `ELOOP` for links that lead in circles.
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
            let target = match self.link(&way.join("/")) {
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

    /// Whatever a link says, it ends inside the root, with the kernel's help and without.
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
        for path in [
            "a/absolute",
            "a/b/relative",
            "a/b/upward",
            "etc",
            "/etc",
            "a/b/../../etc",
        ] {
            for fd in [
                root.open_below(path, DIRECTORY),
                root.open_by_steps(path, DIRECTORY),
            ] {
                let found = Directory {
                    fd: fd.expect(path),
                };
                assert_eq!(
                    found.read("name", &mut [0; 64]),
                    Ok(&b"inside"[..]),
                    "{path}"
                );
            }
        }
        for path in ["a/circle", "a/circle/b"] {
            assert_eq!(root.open_below(path, DIRECTORY).err(), Some(Errno::LOOP));
            assert_eq!(root.open_by_steps(path, DIRECTORY).err(), Some(Errno::LOOP));
        }
        for (path, expected) in [
            ("a/b/upward/name", "/etc/name"),
            ("/a//./b/..", "/a"),
            ("..", "/"),
        ] {
            assert_eq!(root.resolved(path).as_deref(), Ok(expected), "{path}");
        }
        assert_eq!(
            root.open_by_steps("a/none", DIRECTORY).err(),
            Some(Errno::NOENT)
        );
        let a = root.below("a").expect("a directory");
        assert!(a.child("absolute").is_err(), "a child is no link");
        assert_eq!(a.link("absolute").as_deref(), Ok("/etc"));
    }

    #[test]
    fn reading_is_bounded_and_waits_for_nobody() {
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
