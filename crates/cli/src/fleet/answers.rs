//! The answer of the last report with `--state`, in a file beside the state: a report with the same words on unchanged files prints it
//! again, because the judgement of a day of 200,000 devices takes some 20 s of processor time.
//!
//! The file holds a digest of everything that the answer depends on: the program, its flags, the terminal, and identity, length and time of each
//! file that is read. An answer with another digest, of another user or with a wrong check is made again, and never an error.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use plumb_fleet::Source;
use plumb_trace::write::Output;
use twox_hash::XxHash64;

use super::pass;
use crate::cli::FleetReport;
use crate::exit::Exit;
use crate::{output, this_run};

/// First bytes of the file.
const MAGIC: &[u8; 8] = b"PLUMBANS";
/// Magic, digest and exit status.
const HEAD_BYTES: usize = 25;
/// Longest answer that is kept.
const LEN_BYTES_MAX: u64 = 64 << 20;

/// The place of the answer, and the words and files that it depends on.
pub struct KeptAnswer {
    path: PathBuf,
    state: PathBuf,
    words: String,
}

impl KeptAnswer {
    /// For a report with `--state` that writes nothing else; `None` for others. `beside` are files that are read beside the sources.
    pub fn new(
        args: &FleetReport,
        sources: [&[Source]; 2],
        beside: &[PathBuf],
    ) -> Option<KeptAnswer> {
        let state = args.state.clone()?;
        if args.html.is_some() || args.plans.is_some() {
            return None;
        }
        let mut name = state.file_name()?.to_owned();
        name.push(".answer");
        let run = this_run::now();
        let paper = output::paper(args.color);
        let is_ascii = output::is_ascii_only(|name| std::env::var(name).ok());
        let mut words = format!("{} {:?} {paper:?} {is_ascii}\n", run.version, run.command);
        let of_sources = sources.into_iter().flatten().flat_map(pass::files_of);
        let of_folders = beside.iter().flat_map(|path| files_in(path));
        let program = PathBuf::from("/proc/self/exe");
        let files = of_sources.cloned().chain(of_folders).chain([program]);
        files.for_each(|path| words += &identity(&path));
        Some(KeptAnswer {
            path: state.with_file_name(name),
            state,
            words,
        })
    }

    /// The answer of the last report, if it is that of this one.
    pub fn find(&self) -> Option<(String, Exit)> {
        let file = fs::File::open(&self.path).ok()?;
        let found = file.metadata().ok()?;
        let is_own = found.uid() == rustix::process::geteuid().as_raw();
        // A group of its own is usual for a user, and its files may be open to it.
        if !is_own || found.mode() & 0o002 != 0 || found.len() > LEN_BYTES_MAX {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LEN_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let (check, text) = rest.split_at_checked(8)?;
        let exit = [Exit::Clean, Exit::Findings, Exit::Unknown]
            .into_iter()
            .find(|exit| exit.code() == head[HEAD_BYTES - 1])?;
        let is_it = head == self.head(exit) && check == XxHash64::oneshot(0, text).to_le_bytes();
        let text = String::from_utf8(text.to_vec()).ok()?;
        is_it.then_some((text, exit))
    }

    /// Keeps an answer. A folder without room is no failure of the report.
    pub fn keep(&self, text: &str, exit: Exit) {
        let check = XxHash64::oneshot(0, text.as_bytes()).to_le_bytes();
        let parts = [&self.head(exit)[..], &check, text.as_bytes()];
        if let Ok(mut output) = Output::create(&self.path)
            && parts.iter().all(|part| output.write_all(part).is_ok())
        {
            let _ = output.commit();
        }
    }

    /// The first bytes of the file. The state is looked at now: a report changes it.
    fn head(&self, exit: Exit) -> Vec<u8> {
        let words = self.words.clone() + &identity(&self.state);
        let digests = [1, 2].map(|seed| XxHash64::oneshot(seed, words.as_bytes()).to_le_bytes());
        [&MAGIC[..], &digests.concat(), &[exit.code()]].concat()
    }
}

/// Path, identity, length and time of the last change of a file.
fn identity(path: &Path) -> String {
    let found = fs::metadata(path).map(|found| {
        let numbers = [found.dev(), found.ino(), found.len()];
        let times = [
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
        ];
        (numbers, times)
    });
    format!("{path:?} {:?}\n", found.ok())
}

/// A path, and the files in it if it is a folder.
fn files_in(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.push(path.to_owned());
    files.sort_unstable();
    files
}
