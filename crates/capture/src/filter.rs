//! The filter of the I/O that count: the programs leave out everything else at once.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use plumb_trace::Op;

use crate::abi;
use crate::error::CaptureError;

/// As the programs have it, see `plumb_filter` in `bpf/abi.h`.
pub(crate) type Words = [u64; abi::FILTER_WORDS];

/// Letters of a command that the kernel keeps.
const COMM_MAX: usize = 15;

/// Conditions that an I/O has to meet, all of them, to count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Operations; all when empty.
    pub ops: Vec<Op>,
    /// Number of the process that sends it.
    pub pid: Option<u32>,
    /// Command of the thread that sends it, as the kernel keeps it: 15 letters at most.
    pub comm: Option<String>,
    /// Directory of a cgroup of version 2; those below it count as well.
    pub cgroup: Option<PathBuf>,
}

impl Filter {
    /// The conditions as a person reads them; `None` without any.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let ops: Vec<&str> = self.ops.iter().map(|op| op.word()).collect();
        let told = [
            (!ops.is_empty()).then(|| format!("operation {}", ops.join(" or "))),
            self.pid.map(|pid| format!("process {pid}")),
            self.comm.as_ref().map(|comm| format!("command {comm}")),
            self.cgroup
                .as_ref()
                .map(|cgroup| format!("cgroup {}", cgroup.display())),
        ];
        let told: Vec<String> = told.into_iter().flatten().collect();
        (!told.is_empty()).then(|| told.join(", "))
    }

    /// Whether the sender of an I/O matters.
    #[must_use]
    pub fn is_by_sender(&self) -> bool {
        self.pid.is_some() || self.comm.is_some() || self.cgroup.is_some()
    }

    pub(crate) fn for_programs(&self) -> Result<Words, CaptureError> {
        let unwanted = Op::ALL
            .iter()
            .filter(|op| !self.ops.is_empty() && !self.ops.contains(op));
        let mut comm = [0; COMM_MAX + 1];
        let letters = self.comm.as_deref().unwrap_or("").bytes().take(COMM_MAX);
        comm.iter_mut()
            .zip(letters)
            .for_each(|(to, letter)| *to = letter);
        let (low, high) = comm.split_at(8);
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
        Ok([
            unwanted.fold(0, |all, op| all | 1 << *op as u32),
            u64::from(self.pid.unwrap_or(0)),
            self.cgroup.as_deref().map_or(Ok(0), number_of_cgroup)?,
            word(low),
            word(high),
        ])
    }
}

/// The kernel's number of a cgroup: the inode of its directory.
fn number_of_cgroup(path: &Path) -> Result<u64, CaptureError> {
    let refused = |found: String| CaptureError::NoCgroup {
        path: path.to_owned(),
        found,
    };
    let directory = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => refused("no such directory".to_owned()),
        _ => refused(error.to_string()),
    })?;
    let has = |name: &str| path.join(name).exists();
    // Every cgroup of version 2 has it, and no other directory; those of version 1 have a list of threads.
    match (has("cgroup.controllers"), has("tasks")) {
        (true, _) => Ok(directory.ino()),
        (false, true) => Err(refused("one of version 1".to_owned())),
        (false, false) if directory.is_dir() => {
            Err(refused("a directory that is no cgroup".to_owned()))
        }
        (false, false) => Err(refused("no directory".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_become_words() {
        let filter = Filter {
            ops: vec![Op::Read, Op::Discard],
            pid: Some(4711),
            comm: Some("a-command-longer-than-that".to_owned()),
            cgroup: None,
        };
        let words = filter.for_programs().expect("no cgroup to look for");
        // Writes, flushes, zeroes and others.
        assert_eq!(words[..3], [0b11_1010, 4711, 0]);
        let comm: Vec<u8> = words[3..]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        assert_eq!(comm, b"a-command-longe\0");
        let said = "operation read or discard, process 4711, command a-command-longer-than-that";
        assert_eq!(filter.text().as_deref(), Some(said));
        assert_eq!(Filter::default().for_programs().expect("nothing"), [0; 5]);
        assert_eq!(Filter::default().text(), None);
    }

    /// The message names the fault, and not a missing file of another version.
    #[test]
    fn a_directory_that_is_no_cgroup() {
        let folder = tempfile::tempdir().expect("a directory");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("v1")).expect("a directory");
        for file in ["v1/tasks", "v1/cgroup.procs", "file"] {
            std::fs::write(at(file), "").expect("a file");
        }
        for (path, found) in [
            (at("v1"), "found one of version 1"),
            (
                folder.path().to_owned(),
                "found a directory that is no cgroup",
            ),
            (at("file"), "found no directory"),
            (at("none"), "found no such directory"),
        ] {
            let filter = Filter {
                cgroup: Some(path.clone()),
                ..Filter::default()
            };
            let error = filter.for_programs().expect_err("no cgroup").to_string();
            assert!(
                error.starts_with(&format!("{}: {found}", path.display())),
                "{error}"
            );
        }
    }
}
