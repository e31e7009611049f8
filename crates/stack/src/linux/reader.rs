//! Small files of one directory, with notes on odd contents.

use plumb_geometry::{SmallSort, natural, plural};
use plumb_sys::Directory;

/// Longest attribute of sysfs: a page.
const PAGE: usize = 4096;
/// Most notes that one reader keeps; a broken tree has one for each file.
const NOTES_MAX: usize = 20;

/// Reads attributes, and counts.
pub(super) struct SysfsReader {
    buffer: Box<[u8; PAGE]>,
    pub(super) files: u64,
    pub(super) directories: u64,
    pub(super) notes: Vec<String>,
    left_out: u64,
}

impl SysfsReader {
    pub(super) fn new() -> SysfsReader {
        SysfsReader {
            buffer: Box::new([0; PAGE]),
            files: 0,
            directories: 0,
            notes: Vec::new(),
            left_out: 0,
        }
    }

    pub(super) fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        } else {
            self.left_out += 1;
        }
    }

    /// The notes; the last one counts those that were left out.
    pub(super) fn into_notes(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.notes.push(format!(
                "{} of sysfs without sense",
                plural(self.left_out, "more file")
            ));
        }
        self.notes
    }

    /// The text of an attribute, trimmed; `None` where it is missing, closed or empty.
    pub(super) fn text(&mut self, dir: &Directory, name: &str) -> Option<&str> {
        self.files += 1;
        let text = dir.read(name, &mut self.buffer[..]).ok()?;
        let text = std::str::from_utf8(text).ok()?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// As [`SysfsReader::text`], kept.
    pub(super) fn word(&mut self, dir: &Directory, name: &str) -> Option<String> {
        self.text(dir, name).map(str::to_owned)
    }

    /// A number; any other text becomes a note about `device`.
    pub(super) fn number<N: std::str::FromStr>(
        &mut self,
        dir: &Directory,
        name: &str,
        device: &str,
    ) -> Option<N> {
        let text = self.text(dir, name)?;
        if let Ok(number) = text.parse() {
            return Some(number);
        }
        let found = crate::dump::shown(text);
        self.note(format!("{device}/{name}: found {found}, expected a number"));
        None
    }

    pub(super) fn child(&mut self, dir: &Directory, name: &str) -> Option<Directory> {
        self.directories += 1;
        dir.child(name).ok()
    }

    /// Names of the entries of a directory, in order; none if it is missing.
    pub(super) fn names(&mut self, dir: &Directory, name: &str) -> Vec<String> {
        let mut names = self
            .child(dir, name)
            .and_then(|dir| dir.names().ok())
            .unwrap_or_default();
        names.small_sort_by(|one, other| natural(one, other));
        names
    }
}
