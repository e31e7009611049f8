//! Cgroups of version 2 for the processes of a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A cgroup with another one in it, `inner`. Both are removed at the end.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    name: String,
}

impl Cgroup {
    /// Makes it; `None` where no cgroup of version 2 can be made.
    #[must_use]
    pub fn new() -> Option<Cgroup> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mount = mounts
            .lines()
            .find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("plumb-test-{}-{number}", std::process::id());
        let path = PathBuf::from(mount.split(' ').nth(1)?).join(&name);
        fs::create_dir(&path).ok()?;
        let cgroup = Cgroup { path, name };
        fs::create_dir(cgroup.path.join("inner")).ok()?;
        Some(cgroup)
    }

    /// Its directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the inner one below the root of the hierarchy.
    #[must_use]
    pub fn inner_name(&self) -> String {
        format!("/{}/inner", self.name)
    }

    /// The words by which a shell enters it, or one in it: `/inner`.
    #[must_use]
    pub fn enter(&self, below: &str) -> String {
        format!("echo $$ >{}{below}/cgroup.procs;", self.path.display())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Their processes have ended.
        let _ = fs::remove_dir(self.path.join("inner"));
        let _ = fs::remove_dir(&self.path);
    }
}
