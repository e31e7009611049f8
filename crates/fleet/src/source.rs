//! The inputs of a fleet: recordings below folders, in the same order on every machine, with the host and the shard of each.
//!
//! The host of an input is, in this order: the name behind `host=` in its path, as Hive and Spark lay out folders (the last one counts);
//! the first folder below SOURCE; the name of the input itself. No format of traces names its host.
//!
//! Names that begin with a dot or an underscore are passed over, as Hive and Spark do: they are markers and unfinished files. Links to
//! folders are not followed, because they may lead in a circle. A recording of blktrace is one input, with the files of all CPUs. So are
//! exported windows below folders `tier=`, with all objects in the folder above: a window may be in several of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use plumb_trace::open::{Piece, exists, pieces};
use twox_hash::XxHash64;

/// The beginning of the name of a folder with exported windows.
const TIER: &[u8] = b"tier=";

/// No fleet is cut into more shards.
const SHARDS_MAX: u32 = 1_000_000;

/// An input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The host that it is of.
    pub host: String,
    /// Its path below SOURCE, with `/` between the parts; the name of the file if SOURCE is a file.
    pub name: String,
    /// Its files.
    pub piece: Piece,
    /// Whether its files are exported windows.
    pub has_windows: bool,
}

/// The inputs below some folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The inputs, by host and name.
    pub found: Vec<Source>,
    /// Links to folders, pipes, sockets and devices, which are not read.
    pub passed_over: Vec<PathBuf>,
}

/// Why there is no list of inputs.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A path that leads nowhere.
    #[error("{}: found nothing there, expected a file or a folder", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// A folder that cannot be listed.
    #[error("cannot list the folder {}", path.display())]
    List {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A path is below another one, or given twice.
    #[error("{}: found again below {}, and its I/O would count twice", inner.display(), outer.display())]
    Nested {
        /// The path.
        inner: PathBuf,
        /// The path that contains it.
        outer: PathBuf,
    },
    /// Two inputs have one name, so that merged files could not tell them apart.
    #[error(
        "{} and {} both have the name `{name}` below their SOURCE, expected different ones",
        first.display(), second.display()
    )]
    Twice {
        /// The name.
        name: String,
        /// One of them.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
    },
}

/// Finds the inputs below folders, and files that are named by themselves.
///
/// # Errors
/// When a path leads nowhere or is below another one, a folder cannot be listed, or two inputs have one name.
pub fn find_sources(roots: &[PathBuf]) -> Result<Sources, SourceError> {
    must_be_apart(roots)?;
    let mut sources = Sources::default();
    let mut files = Vec::new();
    for root in roots {
        if root.is_dir() {
            walk(root, root, &mut sources)?;
        } else if root != Path::new("-") && exists(root) {
            files.push(root.clone());
        } else {
            return Err(SourceError::Missing { path: root.clone() });
        }
    }
    for piece in pieces(&files) {
        let name = piece.path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        sources.add(name, piece, false);
    }
    sources.in_order()
}

fn must_be_apart(roots: &[PathBuf]) -> Result<(), SourceError> {
    let mut whole: Vec<PathBuf> = roots
        .iter()
        .filter_map(|root| fs::canonicalize(root).ok())
        .collect();
    // Paths compare by their parts, so a folder is directly before the paths below it.
    whole.sort_unstable();
    match whole.windows(2).find(|pair| pair[1].starts_with(&pair[0])) {
        Some([outer, inner]) => Err(SourceError::Nested {
            inner: inner.clone(),
            outer: outer.clone(),
        }),
        _ => Ok(()),
    }
}

/// Adds the inputs of a folder and of those below it.
fn walk(root: &Path, folder: &Path, sources: &mut Sources) -> Result<(), SourceError> {
    let mut paths = list(folder)?;
    let mut files = Vec::new();
    let mut windows = Vec::new();
    if is_of_tier(folder) {
        windows.extend(paths.into_iter().filter(|path| path.is_file()));
        paths = Vec::new();
    }
    for path in paths {
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() && !path.is_symlink() => {
                if is_of_tier(&path) {
                    windows.extend(list(&path)?.into_iter().filter(|path| path.is_file()));
                } else {
                    walk(root, &path, sources)?;
                }
            }
            Ok(found) if !found.is_file() => sources.passed_over.push(path),
            // A link without an end fails when it is read, with its name.
            Ok(_) | Err(_) => files.push(path),
        }
    }
    for piece in pieces(&files) {
        sources.add(name_below(root, &piece.path), piece, false);
    }
    if !windows.is_empty() {
        let piece = Piece {
            path: folder.to_owned(),
            files: windows,
        };
        sources.add(name_below(root, folder), piece, true);
    }
    Ok(())
}

/// The path of an input below SOURCE; of SOURCE itself its name.
fn name_below(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let is_root = below.as_os_str().is_empty();
    let name = Some(below.as_os_str()).filter(|_| !is_root);
    let name = name.or(path.file_name()).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The paths in a folder, in order, without those that are passed over.
fn list(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let failed = |source| SourceError::List {
        path: folder.to_owned(),
        source,
    };
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<PathBuf>>>()
        .map_err(failed)?;
    paths.retain(|path| !is_passed_over(path));
    paths.sort_unstable();
    Ok(paths)
}

fn is_of_tier(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(TIER)
}

fn is_passed_over(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b".") || name.starts_with(b"_")
}

impl Sources {
    fn add(&mut self, name: String, piece: Piece, has_windows: bool) {
        let object = piece.files.first().filter(|_| has_windows);
        let host = host_of(object.unwrap_or(&piece.path), &name);
        self.found.push(Source {
            host,
            name,
            piece,
            has_windows,
        });
    }

    /// The inputs by host and name.
    fn in_order(mut self) -> Result<Sources, SourceError> {
        self.found
            .sort_by(|one, other| (&one.host, &one.name).cmp(&(&other.host, &other.name)));
        let is_twice =
            |pair: &&[Source]| (&pair[0].host, &pair[0].name) == (&pair[1].host, &pair[1].name);
        match self.found.windows(2).find(is_twice) {
            Some([first, second]) => Err(SourceError::Twice {
                name: first.name.clone(),
                first: first.piece.path.clone(),
                second: second.piece.path.clone(),
            }),
            _ => Ok(self),
        }
    }
}

/// The host of an input; see the module.
fn host_of(path: &Path, name: &str) -> String {
    let mut folders = path.parent().into_iter().flat_map(Path::components).rev();
    let named = folders.find_map(|part| {
        let host = part.as_os_str().to_str()?.strip_prefix("host=")?;
        (!host.is_empty()).then_some(host)
    });
    let folder = || name.split_once('/').map(|(folder, _)| folder);
    named.or_else(folder).unwrap_or(name).to_owned()
}

/// A part of a fleet's inputs. An input belongs to one shard of a number of them, by the hash of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    of: u32,
}

impl Shard {
    /// Whether an input of this name belongs to it.
    #[must_use]
    pub fn takes(&self, name: &str) -> bool {
        XxHash64::oneshot(0, name.as_bytes()) % u64::from(self.of) == u64::from(self.index)
    }
}

/// Text that is no shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "found `{0}`, expected I/N: the number of the shard, from 0, and how many there are, for instance 0/8"
)]
pub struct NoShard(String);

impl FromStr for Shard {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Shard, NoShard> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((index, of)) if index < of && of <= SHARDS_MAX => Ok(Shard { index, of }),
            _ => Err(NoShard(text.to_owned())),
        }
    }
}
