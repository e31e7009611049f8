//! Merges fleet files, one host at a time: the result does not depend on their order, and a file that is given twice, or that a larger
//! one contains, changes nothing.
//!
//! Profiles are sums. So two files that share some inputs of a host, each with others of its own, cannot be merged: their sums cannot be
//! taken apart. That is an error, and never a count of an input twice.

use std::collections::BTreeMap;
use std::io::Read;

use crate::file::{FleetError, FleetReader, PackedHost};
use crate::host::{HostFacts, HostIo};

/// Why files cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A file is damaged.
    #[error("{file}")]
    File {
        /// The file.
        file: String,
        /// The cause.
        source: FleetError,
    },
    /// An input is in two files, with different content.
    #[error(
        "{file}: input {input} of host {host} is another one than that of the files before: it has changed, or it was read with other options"
    )]
    Changed {
        /// The file.
        file: String,
        /// The host.
        host: String,
        /// The input.
        input: String,
    },
    /// Some inputs of a host are in several files, and others are not.
    #[error(
        "{file}: input {input} of host {host} is in another file as well, and other inputs of the host are not: the sums cannot be taken apart"
    )]
    Overlap {
        /// The file.
        file: String,
        /// The host.
        host: String,
        /// An input in both.
        input: String,
    },
}

/// Fleet files that become one.
pub struct FleetMerge<R> {
    files: Vec<(String, FleetReader<R>)>,
}

impl<R: Read> FleetMerge<R> {
    /// Files with their names for messages.
    #[must_use]
    pub fn new(files: Vec<(String, FleetReader<R>)>) -> FleetMerge<R> {
        FleetMerge { files }
    }

    /// The next host, with its inputs of all files; `None` at the end.
    ///
    /// # Errors
    /// When a file is damaged, or the inputs of the host overlap.
    pub fn next_host(&mut self) -> Result<Option<HostIo>, MergeError> {
        self.next_parts()?.map(HostParts::joined).transpose()
    }

    /// The next host as the parts that the files have; `None` at the end.
    ///
    /// # Errors
    /// When a file is damaged.
    pub fn next_parts(&mut self) -> Result<Option<HostParts>, MergeError> {
        let mut parts: Vec<(usize, HostFacts)> = Vec::new();
        for (at, (name, reader)) in self.files.iter_mut().enumerate() {
            let Some(facts) = reader.peek().map_err(|source| in_file(name, source))? else {
                continue;
            };
            match parts.first() {
                Some((_, first)) if first.host < facts.host => continue,
                Some((_, first)) if first.host > facts.host => parts.clear(),
                _ => {}
            }
            parts.push((at, facts.clone()));
        }
        if parts.is_empty() {
            return Ok(None);
        }
        // The largest first: then a part is in the sum, or apart from it. Equal ones are alike.
        let rank = |facts: &HostFacts| std::cmp::Reverse(facts.inputs.len());
        parts.sort_by(|(_, one), (_, other)| {
            (rank(one), &one.inputs).cmp(&(rank(other), &other.inputs))
        });
        let mut packed = Vec::with_capacity(parts.len());
        for (at, _) in parts {
            let (name, reader) = &mut self.files[at];
            let part = reader
                .take_packed()
                .map_err(|source| in_file(name, source))?;
            packed.extend(part.map(|part| (name.clone(), part)));
        }
        Ok(Some(HostParts(packed)))
    }
}

/// The parts of a host in several files, with the names of these, in the order in which they join.
#[derive(Debug)]
pub struct HostParts(Vec<(String, PackedHost)>);

impl HostParts {
    /// The whole host.
    ///
    /// # Errors
    /// When profiles are damaged, or the inputs of the host overlap.
    pub fn joined(self) -> Result<HostIo, MergeError> {
        let first = self.0.first();
        let mut whole = HostIo::new(first.map_or("", |(_, part)| &part.facts.host));
        for (name, part) in self.0 {
            let part = part.unpacked().map_err(|source| in_file(&name, source))?;
            join(&mut whole, part, &name)?;
        }
        Ok(whole)
    }
}

fn in_file(file: &str, source: FleetError) -> MergeError {
    MergeError::File {
        file: file.to_owned(),
        source,
    }
}

/// Adds a part of a host, unless its inputs are there already.
fn join(whole: &mut HostIo, part: HostIo, file: &str) -> Result<(), MergeError> {
    let place = |input: &str| (file.to_owned(), part.facts.host.clone(), input.to_owned());
    let shared: BTreeMap<_, _> = part
        .facts
        .inputs
        .iter()
        .filter_map(|(input, mark)| Some((input, (mark, whole.facts.inputs.get(input)?))))
        .collect();
    if let Some((input, _)) = shared.iter().find(|(_, (mine, theirs))| mine != theirs) {
        let (file, host, input) = place(input);
        return Err(MergeError::Changed { file, host, input });
    }
    if let Some((input, _)) = shared.first_key_value()
        && shared.len() < part.facts.inputs.len()
    {
        let (file, host, input) = place(input);
        return Err(MergeError::Overlap { file, host, input });
    }
    if shared.is_empty() {
        whole.absorb(part);
    } else {
        whole.facts.add_notes(&part.facts);
    }
    Ok(())
}
