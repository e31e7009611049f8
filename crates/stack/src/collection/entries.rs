//! Reads the entries of a collection into memory.
//!
//! A collection may come from anywhere. Nothing of it is unpacked into a file system: it becomes a [`FileTree`] of bounded
//! size, in which no entry can be written through a link. Entries are taken raw, since a name for the next entry (of GNU tar
//! or pax) has a length of its own that the archive's reader would allocate unchecked.

use std::io::{self, Read};

use plumb_geometry::group_digits;
use plumb_sys::{FileTree, TreeError};
use tar::{Archive, Entry, EntryType, PaxExtensions};

use super::{ArchiveError, DUMPS, FILE_BYTES_MAX, Form, MARK, MARK_TEXT};

/// What the first form said, which had files and outputs of tools alone.
const MARK_OF_FILES: &str = "plumb-collection 1\n";
/// Power of two of the largest window that a frame may ask for.
const WINDOW_LOG_MAX: u32 = 23;

/// Most entries: ten thousand devices have about a million files.
const ENTRIES_MAX: u64 = 4_000_000;
/// All outputs of tools: what is made of a line takes up to twenty times as much memory as the line.
const DUMPS_BYTES_MAX: u64 = 32 << 20;
/// All of the archive, unpacked.
const ALL_BYTES_MAX: u64 = 1 << 30;
/// Memory for names and files: a million files of sysfs take some 300 MB.
const MEMORY_BYTES_MAX: u64 = 512 << 20;
/// Longest path, of an entry or in a link: no longer one can be given to the kernel (PATH_MAX).
const PATH_BYTES_MAX: u64 = 4096;
/// Deepest path. A disk behind ten bridges of PCI has some 25 directories above its files.
const DEPTH_MAX: usize = 64;
/// Longest list of extensions for the next entry: two paths, and the times and owners that pax adds.
const PAX_BYTES_MAX: u64 = 64 << 10;

enum Problem {
    Io(io::Error),
    Found(String, &'static str),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem::Io(error)
    }
}

/// Reads a collection into memory.
///
/// # Errors
/// When it is none, is damaged, or holds what it must not.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<(Form, FileTree), ArchiveError> {
    let mut at = 0;
    read_entries(bytes, &mut at).map_err(|problem| match problem {
        Problem::Io(source) => ArchiveError::Unpack {
            file: file.to_owned(),
            entry: at,
            source,
        },
        Problem::Found(found, expected) => ArchiveError::Entry {
            file: file.to_owned(),
            entry: at,
            found,
            expected,
        },
    })
}

fn read_entries(bytes: &[u8], at: &mut u64) -> Result<(Form, FileTree), Problem> {
    let mut frame = zstd::stream::read::Decoder::new(bytes)?;
    frame.window_log_max(WINDOW_LOG_MAX)?;
    let mut archive = Archive::new(Bounded {
        inner: frame,
        left: ALL_BYTES_MAX,
    });
    let mut files = Files::new();
    let mut form = None;
    let mut next = NextEntry::default();
    for entry in archive.entries()?.raw(true) {
        *at += 1;
        if *at > ENTRIES_MAX {
            let found = format!("more than {} entries", group_digits(ENTRIES_MAX));
            return Err(Problem::Found(found, "the files of one host"));
        }
        let mut entry = entry?;
        if next.is_told(&mut entry)? {
            continue;
        }
        let named = std::mem::take(&mut next).of(&entry)?;
        match form {
            None => form = Some(mark(&named.path, &mut entry)?),
            Some(_) => files.add(named, &mut entry)?,
        }
    }
    let expected = "a collection of `plumb check --collect`";
    let form = form.ok_or(Problem::Found("nothing".to_owned(), expected))?;
    // The checksum of the frame is behind its last byte.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok((form, files.tree))
}

/// What is unpacked, up to a length.
struct Bounded<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(buffer)?;
        let left = self.left.checked_sub(len as u64);
        self.left = left.ok_or_else(|| {
            io::Error::other("found more than 1 GiB in it, expected the files of one host")
        })?;
        Ok(len)
    }
}

/// What earlier entries told of the next one.
#[derive(Default)]
struct NextEntry {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
}

/// An entry with its own path, and where it leads as a link.
struct Named {
    path: String,
    target: Vec<u8>,
}

impl NextEntry {
    /// Takes in an entry that only tells of the next one; whether it was one.
    fn is_told(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<bool, Problem> {
        let kind = entry.header().entry_type();
        match kind {
            EntryType::GNULongName => set(&mut self.path, long_name(entry)?)?,
            EntryType::GNULongLink => set(&mut self.target, long_name(entry)?)?,
            EntryType::XHeader => {
                self.pax(&content(entry, PAX_BYTES_MAX, "64 KiB of extensions")?)?
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn pax(&mut self, bytes: &[u8]) -> Result<(), Problem> {
        for extension in PaxExtensions::new(bytes) {
            let extension = extension?;
            let value = || bounded_path(extension.value_bytes());
            match extension.key_bytes() {
                b"path" => set(&mut self.path, value()?)?,
                b"linkpath" => set(&mut self.target, value()?)?,
                // Another length than the header's: two readers would find different entries.
                key if key == b"size" || key.starts_with(b"GNU.sparse.") => {
                    let key = shown(&String::from_utf8_lossy(key));
                    let found = format!("the extension {key}");
                    return Err(Problem::Found(found, "a length in the header alone"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The names of the entry that all this was about.
    fn of(self, entry: &Entry<'_, impl Read>) -> Result<Named, Problem> {
        let header = entry.header();
        let path = self
            .path
            .unwrap_or_else(|| header.path_bytes().into_owned());
        let of_header = || header.link_name_bytes().unwrap_or_default().into_owned();
        Ok(Named {
            path: checked_path(&String::from_utf8_lossy(&path))?,
            target: self.target.unwrap_or_else(of_header),
        })
    }
}

fn set(name: &mut Option<Vec<u8>>, found: Vec<u8>) -> Result<(), Problem> {
    match name.replace(found) {
        None => Ok(()),
        Some(_) => {
            let found = "two names for one entry".to_owned();
            Err(Problem::Found(found, "one"))
        }
    }
}

/// The content of an entry that has a name; it ends with a NUL.
fn long_name(entry: &mut Entry<'_, impl Read>) -> Result<Vec<u8>, Problem> {
    let mut name = content(entry, PATH_BYTES_MAX + 1, PATH_EXPECTED)?;
    if name.last() == Some(&0) {
        name.pop();
    }
    bounded_path(&name)
}

const PATH_EXPECTED: &str = "a path of 4,096 bytes at most";

fn bounded_path(path: &[u8]) -> Result<Vec<u8>, Problem> {
    if path.len() as u64 > PATH_BYTES_MAX {
        let found = format!("a path of {} bytes", group_digits(path.len() as u64));
        return Err(Problem::Found(found, PATH_EXPECTED));
    }
    Ok(path.to_vec())
}

/// All bytes of an entry, which are counted before they are read.
fn content(
    entry: &mut Entry<'_, impl Read>,
    len_max: u64,
    expected: &'static str,
) -> Result<Vec<u8>, Problem> {
    let len = entry.size();
    if len > len_max {
        let found = format!("{} bytes", group_digits(len));
        return Err(Problem::Found(found, expected));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes)?;
    if bytes.len() as u64 != len {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(bytes)
}

/// The files of the collection so far.
struct Files {
    tree: FileTree,
    left_for_dumps: u64,
}

impl Files {
    fn new() -> Files {
        Files {
            tree: FileTree::new(MEMORY_BYTES_MAX),
            left_for_dumps: DUMPS_BYTES_MAX,
        }
    }

    fn add(&mut self, named: Named, entry: &mut Entry<'_, impl Read>) -> Result<(), Problem> {
        let Named { path, target } = named;
        let added = match entry.header().entry_type() {
            EntryType::Regular => {
                self.must_fit(&path, entry.size())?;
                let content = content(entry, FILE_BYTES_MAX, FITS)?;
                self.tree.add_file(&path, content)
            }
            EntryType::Directory => self.tree.add_directory(&path),
            EntryType::Symlink => {
                let target = bounded_path(&target)?;
                let target = String::from_utf8_lossy(&target);
                self.tree.add_link(&path, &target)
            }
            other => {
                let found = format!("{} of type {other:?}", shown(&path));
                return Err(Problem::Found(found, "a file, a directory or a link"));
            }
        };
        added.map_err(|error| match error {
            TreeError::Twice => Problem::Found(format!("{} twice", shown(&path)), "each name once"),
            TreeError::NoDirectory => {
                let found = format!("{} below a file or link", shown(&path));
                Problem::Found(found, "directories above it")
            }
            TreeError::Full => Problem::Found(shown(&path), FITS),
        })
    }

    fn must_fit(&mut self, path: &str, len: u64) -> Result<(), Problem> {
        let found = || format!("{} of {} bytes", shown(path), group_digits(len));
        if len > FILE_BYTES_MAX.min(self.tree.left_bytes()) {
            return Err(Problem::Found(found(), FITS));
        }
        if path.split('/').next() == Some(DUMPS) {
            let left = self.left_for_dumps.checked_sub(len);
            self.left_for_dumps =
                left.ok_or_else(|| Problem::Found(found(), "32 MiB in all outputs of tools"))?;
        }
        Ok(())
    }
}

const FITS: &str = "less than 64 MiB a file, and 512 MiB with all names";

/// The first entry says what it is, and of which version.
fn mark(path: &str, entry: &mut impl Read) -> Result<Form, Problem> {
    let mut text = Vec::new();
    entry.take(64).read_to_end(&mut text)?;
    for (known, form) in [(MARK_TEXT, Form::Whole), (MARK_OF_FILES, Form::Files)] {
        if path == MARK && text == known.as_bytes() {
            return Ok(form);
        }
    }
    let found = format!("{} with {:?}", shown(path), String::from_utf8_lossy(&text));
    Err(Problem::Found(
        found,
        "`plumb-collection 1` or 2, as `plumb check --collect` writes it",
    ))
}

/// A path of names alone: nothing that leads upward or to a root.
fn checked_path(path: &str) -> Result<String, Problem> {
    let is_name = |name: &&str| !name.is_empty() && *name != "." && *name != "..";
    // A directory's path ends with a slash.
    let inner = path.strip_suffix('/').unwrap_or(path);
    let depth = inner.split('/').count();
    if path.contains('\0') || !inner.split('/').all(|name| is_name(&name)) {
        return Err(Problem::Found(shown(path), "a path of plain names"));
    }
    if depth > DEPTH_MAX {
        let found = format!("{} in {depth} directories", shown(path));
        return Err(Problem::Found(found, "64 at most"));
    }
    Ok(inner.to_owned())
}

/// The beginning of a name, harmless to print.
pub(super) fn shown(path: &str) -> String {
    path.chars().take(80).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tar::Header;

    use super::super::{LEVEL, Packer};
    use super::*;

    type Add<'a> = &'a dyn Fn(&mut Packer<Vec<u8>>) -> io::Result<()>;

    /// What becomes of an archive: the files, or the message.
    fn unpacked(add: Add<'_>) -> Result<FileTree, String> {
        let mut packer = Packer::new(Vec::new()).expect("an archive in memory");
        add(&mut packer).expect("an entry");
        let tar = packer.tar.into_inner().expect("the archive");
        let bytes = zstd::encode_all(&tar[..], LEVEL).expect("a frame");
        let read = read("c.tar.zst", &bytes).map(|(_, tree)| tree);
        read.map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(add: Add<'_>, words: &str) {
        match unpacked(add) {
            Err(error) => assert!(error.contains(words), "{error}"),
            Ok(_) => panic!("it was taken, expected {words}"),
        }
    }

    fn header(kind: EntryType, len: u64) -> Header {
        Packer::<Vec<u8>>::header(kind, len)
    }

    /// An entry with a path that the library would refuse to write.
    fn raw(
        packer: &mut Packer<Vec<u8>>,
        kind: EntryType,
        path: &str,
        link: &str,
    ) -> io::Result<()> {
        let mut header = header(kind, 0);
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        packer.tar.append(&header, io::empty())
    }

    /// An entry that tells of the next one.
    fn telling(
        packer: &mut Packer<Vec<u8>>,
        kind: EntryType,
        len: u64,
        byte: u8,
    ) -> io::Result<()> {
        let mut header = header(kind, len);
        header.as_old_mut().name[..4].copy_from_slice(b"next");
        header.set_cksum();
        packer.tar.append(&header, io::repeat(byte).take(len))
    }

    #[test]
    fn what_was_packed_comes_back() {
        let long = format!("root/{}", ["name"; 60].join("/"));
        let tree = unpacked(&|packer| {
            packer.file(Path::new("root/sys/devices/sda/size"), b"2048\n")?;
            packer.file(Path::new("root/sys/devices/sda/size"), b"again\n")?;
            packer.file(Path::new(&long), b"long\n")?;
            packer.link(
                Path::new("root/sys/class/block/sda"),
                Path::new("../../devices/sda"),
            )
        });
        let tree = std::sync::Arc::new(tree.expect("a collection"));
        let root = plumb_sys::Directory::in_tree(&tree, "root").expect("a root");
        let size = root.read_below("sys/class/block/sda/size", 64);
        assert_eq!(size, Ok(b"2048\n".to_vec()), "through the link");
        assert_eq!(tree.file(&long), Ok(&b"long\n"[..]));
        assert!(tree.file(MARK).is_err());
    }

    /// Names by pax, as other programs write them.
    #[test]
    fn names_by_pax_are_taken() {
        let tree = unpacked(&|packer| {
            let (path, target) = (b"root/by/pax".as_slice(), b"../there".as_slice());
            let records = [
                ("mtime", b"12.5".as_slice()),
                ("path", path),
                ("linkpath", target),
            ];
            packer.tar.append_pax_extensions(records)?;
            raw(packer, EntryType::Symlink, "short", "")
        });
        let tree = std::sync::Arc::new(tree.expect("a collection"));
        let by = plumb_sys::Directory::in_tree(&tree, "root/by").expect("a directory");
        assert_eq!(by.link("pax").as_deref(), Ok("../there"));
    }

    #[test]
    fn nothing_leads_out() {
        for path in [
            "../evil",
            "/etc/evil",
            "root/../../evil",
            "",
            ".",
            "root//evil",
            "/",
        ] {
            for kind in [EntryType::Regular, EntryType::Directory, EntryType::Symlink] {
                refused(
                    &|packer| raw(packer, kind, path, "x"),
                    "expected a path of plain names",
                );
            }
        }
        for kind in [EntryType::Regular, EntryType::Directory, EntryType::Symlink] {
            let through = |packer: &mut Packer<Vec<u8>>| {
                raw(packer, EntryType::Symlink, "root", "..")?;
                raw(packer, kind, "root/evil/x", "x")
            };
            refused(&through, "expected directories above it");
        }
        for kind in [EntryType::Link, EntryType::Char, EntryType::Fifo] {
            refused(
                &|packer| raw(packer, kind, "root/node", "root/x"),
                "expected a file, a directory or a link",
            );
        }
        let twice = |packer: &mut Packer<Vec<u8>>| {
            raw(packer, EntryType::Regular, "root/a", "")?;
            raw(packer, EntryType::Symlink, "root/a", "/etc/shadow")
        };
        refused(&twice, "found root/a twice");
    }

    #[test]
    fn bombs_are_refused() {
        refused(
            &|packer| {
                let path = Path::new("root/zeros");
                let len = FILE_BYTES_MAX + 1;
                packer.tar.append_data(
                    &mut header(EntryType::Regular, len),
                    path,
                    io::repeat(0).take(len),
                )
            },
            "expected less than 64 MiB a file",
        );
        let long = PATH_BYTES_MAX + 2;
        for kind in [EntryType::GNULongName, EntryType::GNULongLink] {
            let words = "expected a path of 4,096 bytes at most";
            refused(&|packer| telling(packer, kind, long, b'a'), words);
            let twice = |packer: &mut Packer<Vec<u8>>| {
                telling(packer, kind, 8, b'a')?;
                telling(packer, kind, 8, b'b')
            };
            refused(&twice, "found two names for one entry");
        }
        refused(
            &|packer| telling(packer, EntryType::XHeader, PAX_BYTES_MAX + 1, b'a'),
            "expected 64 KiB of extensions",
        );
        refused(
            &|packer| telling(packer, EntryType::XGlobalHeader, 8, b'a'),
            "expected a file, a directory or a link",
        );
        for key in ["size", "GNU.sparse.realsize"] {
            let words = "expected a length in the header alone";
            refused(
                &|packer| packer.tar.append_pax_extensions([(key, b"1".as_slice())]),
                words,
            );
        }
        let dumps = |packer: &mut Packer<Vec<u8>>| {
            let half = vec![b' '; DUMPS_BYTES_MAX as usize / 2];
            ["one", "two", "three"]
                .iter()
                .try_for_each(|name| packer.file(&Path::new(DUMPS).join(name), &half))
        };
        refused(&dumps, "entry 4: found dumps/three");
        let deep = ["d"; DEPTH_MAX + 1].join("/");
        refused(
            &|packer| packer.file(Path::new(&deep), b""),
            "expected 64 at most",
        );
    }

    /// Directories and names alone: an archive of zeros in between, packed very small.
    #[test]
    fn directories_have_no_more_memory_than_files() {
        // Each entry makes 63 directories of its own.
        let per_entry = (DEPTH_MAX - 1) as u64 * 512;
        let enough = MEMORY_BYTES_MAX / per_entry + 1;
        let deep = ["d"; DEPTH_MAX - 1].join("/");
        refused(
            &|packer| {
                (0..enough).try_for_each(|number| {
                    packer.tar.append_data(
                        &mut header(EntryType::Directory, 0),
                        format!("{number}/{deep}"),
                        io::empty(),
                    )
                })
            },
            "expected less than 64 MiB a file, and 512 MiB with all names",
        );
    }

    #[test]
    fn other_archives_and_damage() {
        let message = |bytes: &[u8]| {
            let read = read("c.tar.zst", bytes).map(drop);
            read.expect_err("no collection").to_string()
        };
        let mut other = tar::Builder::new(Vec::new());
        other
            .append_data(&mut header(EntryType::Regular, 2), "README", &b"hi"[..])
            .expect("an entry");
        let other = zstd::encode_all(&other.into_inner().expect("it")[..], LEVEL).expect("a frame");
        assert!(
            message(&other).contains("entry 1: found README with \"hi\""),
            "{}",
            message(&other)
        );
        assert!(message(&other[..other.len() / 2]).contains("cannot be unpacked"));
        let empty = zstd::encode_all(&[][..], LEVEL).expect("a frame");
        assert!(message(&empty).contains("found nothing"));
    }

    /// Whatever the archive says, reading ends with an answer.
    #[test]
    fn damaged_archives_have_an_answer() {
        let mut packer = Packer::new(Vec::new()).expect("an archive in memory");
        let long = ["directory"; 30].join("/");
        let files = [
            ("root/sys/devices/sda/size", "2048\n"),
            ("root/sys/devices/sda/dev", "8:0\n"),
            (
                "root/proc/self/mountinfo",
                "1 1 8:0 / / rw - ext4 /dev/sda rw\n",
            ),
            ("answers.json", "{}"),
            ("devices.json", r#"{"devices": [], "images": []}"#),
            ("dumps/zpool-status", "  pool: tank\n"),
            (&long, "long"),
        ];
        let added = files
            .iter()
            .try_for_each(|(path, text)| packer.file(Path::new(path), text.as_bytes()));
        added.expect("room");
        let link = packer.link(
            Path::new("root/sys/class/block/sda"),
            Path::new("../../devices/sda"),
        );
        link.expect("room");
        let whole = packer.tar.into_inner().expect("the archive");
        let mut taken = 0;
        for seed in 0..3000 {
            let mut random = plumb_testkit::Rng::new(seed);
            let mut tar = whole.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(tar.len() as u64) as usize;
                tar[at] = [0, b'/', b'.', b'7', b'L', b'x', 0xff][random.below(7) as usize];
            }
            right_sums(&mut tar);
            let bytes = zstd::encode_all(&tar[..], 1).expect("a frame");
            let Ok(contents) = super::super::Contents::read("c.tar.zst", &bytes) else {
                continue;
            };
            taken += 1;
            let _ = contents.own_name();
            let Ok(collected) = contents.collected() else {
                continue;
            };
            if let Ok(root) = contents.root(&collected.answers) {
                let mut builder = crate::Builder::default();
                let _ = crate::linux::collect(&root, &mut builder);
            }
        }
        // Most damage is in content, of which any is taken.
        assert!(taken > 300, "{taken}");
    }

    /// Writes the checksum of each header that the lengths lead to.
    fn right_sums(tar: &mut [u8]) {
        let mut at = 0;
        while let Some(block) = tar.get_mut(at..at + 512) {
            let mut header = Header::new_old();
            header.as_mut_bytes().copy_from_slice(block);
            if block.iter().all(|byte| *byte == 0) {
                return;
            }
            header.set_cksum();
            block.copy_from_slice(header.as_bytes());
            let Ok(len) = header.entry_size() else {
                return;
            };
            let blocks = len.div_ceil(512).saturating_add(1);
            at = usize::try_from(blocks.saturating_mul(512))
                .ok()
                .and_then(|len| at.checked_add(len))
                .unwrap_or(usize::MAX - 512);
        }
    }

    /// The last bytes of a frame are its checksum, behind everything that is in it.
    #[test]
    fn a_wrong_checksum_is_damage() {
        let mut frame = zstd::stream::write::Encoder::new(Vec::new(), LEVEL).expect("a frame");
        frame.include_checksum(true).expect("it can");
        let packer = Packer::new(frame).expect("an archive");
        let frame = packer.tar.into_inner().expect("the archive");
        let mut bytes = frame.finish().expect("a frame");
        read("c.tar.zst", &bytes).expect("a collection of nothing");
        *bytes.last_mut().expect("some") ^= 1;
        let error = read("c.tar.zst", &bytes).map(drop).expect_err("damage");
        assert!(error.to_string().contains("cannot be unpacked"), "{error}");
    }
}
