//! A tree of small files in memory, as an archive has it: nothing of it is ever on a disk, and no name in it reaches the
//! file systems of this host.
//!
//! Its memory is bounded: each name, link and file is charged before it is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustix::io::{Errno, Result};
use thiserror::Error;

/// Charged for each node beside its name and content: its place in the list of nodes, its entry in a directory, and the
/// allocator's rounding. `memory_is_charged` in the tests compares this with the allocator.
const NODE_COST: u64 = 256;
/// Charged for a directory in addition: the first node of its map.
const DIRECTORY_COST: u64 = 256;

/// Place of the root in the list.
const ROOT: u32 = 0;

/// Why something cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TreeError {
    /// Something has that name already.
    #[error("found the name twice")]
    Twice,
    /// A file or link has the name of a directory above it.
    #[error("found a file or link in the place of a directory")]
    NoDirectory,
    /// The tree has no room for it.
    #[error("found more than fits")]
    Full,
}

/// One node.
#[derive(Debug)]
enum Node {
    Directory(BTreeMap<Box<str>, u32>),
    File(Box<[u8]>),
    Link(Box<str>),
}

/// The tree. It is filled once, then shared.
#[derive(Debug)]
pub struct FileTree {
    nodes: Vec<Node>,
    left_bytes: u64,
}

impl FileTree {
    /// An empty tree that takes at most this much memory.
    #[must_use]
    pub fn new(bytes_max: u64) -> FileTree {
        FileTree {
            nodes: vec![Node::Directory(BTreeMap::new())],
            left_bytes: bytes_max,
        }
    }

    /// How much memory is left for names and content.
    #[must_use]
    pub fn left_bytes(&self) -> u64 {
        self.left_bytes
    }

    /// Adds a file, and the directories above it.
    ///
    /// # Errors
    /// [`TreeError`]; directories that were added before the error stay.
    pub fn add_file(&mut self, path: &str, content: Vec<u8>) -> std::result::Result<(), TreeError> {
        self.charge(content.len() as u64)?;
        self.add(path, Node::File(content.into_boxed_slice()))
    }

    /// Adds a symbolic link, and the directories above it.
    ///
    /// # Errors
    /// As [`FileTree::add_file`].
    pub fn add_link(&mut self, path: &str, target: &str) -> std::result::Result<(), TreeError> {
        self.charge(target.len() as u64)?;
        self.add(path, Node::Link(target.into()))
    }

    /// Adds a directory, and those above it; one that is there already stays.
    ///
    /// # Errors
    /// As [`FileTree::add_file`].
    pub fn add_directory(&mut self, path: &str) -> std::result::Result<(), TreeError> {
        self.directories(names(path)).map(drop)
    }

    fn add(&mut self, path: &str, node: Node) -> std::result::Result<(), TreeError> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let above = self.directories(names(above))?;
        match self.child(above, name) {
            Some(_) => Err(TreeError::Twice),
            None => self.push(above, name, node).map(drop),
        }
    }

    fn directories<'p>(
        &mut self,
        path: impl Iterator<Item = &'p str>,
    ) -> std::result::Result<u32, TreeError> {
        let mut at = ROOT;
        for name in path {
            at = match self.child(at, name) {
                Some(child) if matches!(self.nodes[child as usize], Node::Directory(_)) => child,
                Some(_) => return Err(TreeError::NoDirectory),
                None => {
                    self.charge(DIRECTORY_COST)?;
                    self.push(at, name, Node::Directory(BTreeMap::new()))?
                }
            };
        }
        Ok(at)
    }

    fn push(&mut self, above: u32, name: &str, node: Node) -> std::result::Result<u32, TreeError> {
        self.charge(NODE_COST + name.len() as u64)?;
        let number = u32::try_from(self.nodes.len()).map_err(|_| TreeError::Full)?;
        self.nodes.push(node);
        if let Node::Directory(children) = &mut self.nodes[above as usize] {
            children.insert(name.into(), number);
        }
        Ok(number)
    }

    fn charge(&mut self, bytes: u64) -> std::result::Result<(), TreeError> {
        let left = self.left_bytes.checked_sub(bytes);
        self.left_bytes = left.ok_or(TreeError::Full)?;
        Ok(())
    }

    fn child(&self, at: u32, name: &str) -> Option<u32> {
        match &self.nodes[at as usize] {
            Node::Directory(children) => children.get(name).copied(),
            Node::File(_) | Node::Link(_) => None,
        }
    }

    /// The content of a file, by its path from the top. No link is followed.
    ///
    /// # Errors
    /// As the kernel has them: `ENOENT`, `ENOTDIR`, and for links and directories `ELOOP` and `EISDIR`.
    pub fn file(&self, path: &str) -> Result<&[u8]> {
        self.file_at(self.walk(ROOT, path)?)
    }

    /// Names in a directory in order, by its path from the top. No link is followed.
    ///
    /// # Errors
    /// As [`FileTree::file`].
    pub fn names(&self, path: &str) -> Result<Vec<String>> {
        self.names_at(self.walk(ROOT, path)?)
    }

    fn file_at(&self, at: u32) -> Result<&[u8]> {
        match &self.nodes[at as usize] {
            Node::File(content) => Ok(content),
            Node::Link(_) => Err(Errno::LOOP),
            Node::Directory(_) => Err(Errno::ISDIR),
        }
    }

    fn names_at(&self, at: u32) -> Result<Vec<String>> {
        match &self.nodes[at as usize] {
            Node::Directory(children) => Ok(children.keys().map(|name| name.to_string()).collect()),
            Node::Link(_) => Err(Errno::LOOP),
            Node::File(_) => Err(Errno::NOTDIR),
        }
    }

    fn must_be_directory(&self, at: u32) -> Result<()> {
        match &self.nodes[at as usize] {
            Node::Directory(_) => Ok(()),
            Node::Link(_) => Err(Errno::LOOP),
            Node::File(_) => Err(Errno::NOTDIR),
        }
    }

    /// Follows names down, and no link.
    fn walk(&self, from: u32, path: &str) -> Result<u32> {
        names(path).try_fold(from, |at, name| match &self.nodes[at as usize] {
            Node::Directory(children) => children.get(name).copied().ok_or(Errno::NOENT),
            Node::Link(_) => Err(Errno::LOOP),
            Node::File(_) => Err(Errno::NOTDIR),
        })
    }
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter(|name| !name.is_empty() && *name != ".")
}

/// A directory of a tree, with the tree.
#[derive(Clone, Debug)]
pub(crate) struct TreeDirectory {
    tree: Arc<FileTree>,
    at: u32,
}

impl TreeDirectory {
    pub(crate) fn open(tree: &Arc<FileTree>, path: &str) -> Result<TreeDirectory> {
        TreeDirectory {
            tree: tree.clone(),
            at: ROOT,
        }
        .child(path)
    }

    /// A directory below, by a path without links.
    pub(crate) fn child(&self, path: &str) -> Result<TreeDirectory> {
        let at = self.tree.walk(self.at, path)?;
        self.tree.must_be_directory(at)?;
        Ok(TreeDirectory {
            tree: self.tree.clone(),
            at,
        })
    }

    /// A file below, by a path without links.
    pub(crate) fn file(&self, path: &str) -> Result<&[u8]> {
        self.tree.file_at(self.tree.walk(self.at, path)?)
    }

    pub(crate) fn link(&self, path: &str) -> Result<String> {
        match &self.tree.nodes[self.tree.walk(self.at, path)? as usize] {
            Node::Link(target) => Ok(target.to_string()),
            Node::File(_) | Node::Directory(_) => Err(Errno::INVAL),
        }
    }

    pub(crate) fn names(&self) -> Result<Vec<String>> {
        self.tree.names_at(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> FileTree {
        let mut tree = FileTree::new(1 << 20);
        tree.add_file("a/b/file", b"it".to_vec()).expect("room");
        tree.add_link("a/link", "../a/b").expect("room");
        tree.add_directory("a/b").expect("it stays");
        tree
    }

    #[test]
    fn a_name_is_given_once_and_no_link_is_followed() {
        let mut tree = tree();
        assert_eq!(tree.file("a/b/file"), Ok(&b"it"[..]));
        assert_eq!(tree.names("a"), Ok(vec!["b".to_owned(), "link".to_owned()]));
        for (path, error) in [
            ("a/b", Errno::ISDIR),
            ("a/link", Errno::LOOP),
            ("a/link/file", Errno::LOOP),
            ("a/b/file/x", Errno::NOTDIR),
            ("a/c", Errno::NOENT),
            ("../etc/passwd", Errno::NOENT),
        ] {
            assert_eq!(tree.file(path), Err(error), "{path}");
        }
        let again = tree.add_file("a/b/file", Vec::new());
        assert_eq!(again, Err(TreeError::Twice));
        assert_eq!(tree.add_link("a/b", "x"), Err(TreeError::Twice));
        for path in ["a/link/file", "a/b/file/x"] {
            let through = tree.add_file(path, Vec::new());
            assert_eq!(through, Err(TreeError::NoDirectory), "{path}");
        }
        assert_eq!(tree.add_directory("a/link"), Err(TreeError::NoDirectory));
    }

    #[test]
    fn a_full_tree_takes_nothing_more() {
        let mut tree = FileTree::new(3 * NODE_COST + DIRECTORY_COST);
        tree.add_file("a/b", vec![0; 100]).expect("room");
        let left = tree.left_bytes();
        assert!(left < NODE_COST, "{left}");
        assert_eq!(tree.add_file("a/c", Vec::new()), Err(TreeError::Full));
        assert_eq!(tree.add_directory("d"), Err(TreeError::Full));
        assert_eq!(tree.names("a"), Ok(vec!["b".to_owned()]));
    }
}
