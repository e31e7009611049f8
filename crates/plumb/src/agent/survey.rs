//! The survey: a document of `plumb check --json` that a unit with the rights of root writes once a day. The agent, which may open no
//! disk, reads it and follows the findings in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use plumb_model::{Finding, Unjudged};
use serde::Deserialize;
use serde_json::Value;

/// Most bytes of a document; one of 10,000 layers has 20 MB.
const BYTES_MAX: u64 = 64 << 20;
/// The schema of the document.
const SCHEMA: &str = "plumb.check/2";

/// The findings about the layout of this host.
#[derive(Debug, Default)]
pub struct LayoutSurvey {
    /// The findings.
    pub findings: Vec<Finding>,
    /// Findings that the administrator accepts.
    pub accepted: Vec<Finding>,
    /// Subjects that a rule could not judge.
    pub unknown: Vec<Unjudged>,
    /// Devices that could not be read, with their partitions and file systems.
    pub unread: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Document {
    schema: String,
    findings: Vec<Finding>,
    result: DocumentResult,
}

#[derive(Deserialize)]
struct DocumentResult {
    unknown: Vec<Unjudged>,
    accepted: DocumentAccepted,
    unread: BTreeSet<String>,
    stack: DocumentStack,
}

#[derive(Deserialize)]
struct DocumentStack {
    nodes: Vec<DocumentNode>,
}

#[derive(Deserialize)]
struct DocumentNode {
    id: u64,
    name: String,
    kind: String,
    placing: Value,
}

impl DocumentResult {
    /// The devices that could not be read, with the layers that are known from their contents.
    fn unread(&self) -> BTreeSet<String> {
        let by_id: BTreeMap<u64, &DocumentNode> = self
            .stack
            .nodes
            .iter()
            .map(|node| (node.id, node))
            .collect();
        let below = |node: &DocumentNode| {
            let is_by_contents = matches!(node.kind.as_str(), "partition" | "file-system");
            let part = node
                .placing
                .pointer("/parts/0/node")
                .and_then(Value::as_u64);
            part.filter(|_| is_by_contents)
                .and_then(|id| by_id.get(&id))
                .copied()
        };
        let is_unread = |node: &&DocumentNode| {
            let disk = std::iter::successors(Some(*node), |node| below(node));
            disk.take(by_id.len())
                .any(|node| self.unread.contains(&node.name))
        };
        let layers = self.stack.nodes.iter().filter(is_unread);
        let layers = layers.map(|node| node.name.clone());
        layers.chain(self.unread.iter().cloned()).collect()
    }
}

#[derive(Deserialize)]
struct DocumentAccepted {
    findings: Vec<DocumentAcceptedFinding>,
}

#[derive(Deserialize)]
struct DocumentAcceptedFinding {
    finding: Finding,
}

/// The file of the survey. Each version of it is read once.
#[derive(Debug, Default)]
pub struct SurveyFile {
    /// File number and time of the version that was read last.
    seen: Option<(u64, i64, i64)>,
}

impl SurveyFile {
    /// The survey, if the file is a new one since the last call; `None` also without a file.
    ///
    /// # Errors
    /// If the file cannot be read or is no survey; once for each version of it.
    pub fn read_new(&mut self, path: &Path) -> Result<Option<LayoutSurvey>, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return self.first(None).map_or(Ok(None), |()| Err(failed(&error))),
        };
        let version = (metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
        if self.first(Some(version)).is_none() {
            return Ok(None);
        }
        if !metadata.is_file() || metadata.len() > BYTES_MAX {
            let found = match metadata.is_file() {
                true => format!("found {} bytes", metadata.len()),
                false => "found no plain file".to_owned(),
            };
            let expected = format!("expected a file of at most {BYTES_MAX} bytes");
            return Err(failed(&format!("{found}, {expected}")));
        }
        let file = File::open(path).map_err(|error| failed(&error))?;
        let document: Document = serde_json::from_reader(BufReader::new(file.take(BYTES_MAX)))
            .map_err(|error| failed(&error))?;
        if document.schema != SCHEMA {
            let found = format!("found schema `{}`, expected `{SCHEMA}`", document.schema);
            return Err(failed(&found));
        }
        let unread = document.result.unread();
        let accepted = document.result.accepted.findings.into_iter();
        Ok(Some(LayoutSurvey {
            findings: document.findings,
            accepted: accepted.map(|one| one.finding).collect(),
            unknown: document.result.unknown,
            unread,
        }))
    }

    /// Notes a version; `None` if it is that of the last call. A file that cannot be asked for one has the version 0.
    fn first(&mut self, version: Option<(u64, i64, i64)>) -> Option<()> {
        let version = version.unwrap_or_default();
        (self.seen.replace(version) != Some(version)).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(findings: &str, unread: &str) -> String {
        format!(
            r#"{{"schema": "plumb.check/2", "version": "1", "findings": [{findings}], "result": {{"stack": {{"nodes": [
            {{"id": 1, "name": "sdb", "kind": "disk", "placing": {{"kind": "leaf"}}}},
            {{"id": 3, "name": "/srv", "kind": "file-system", "placing": {{"kind": "parts", "parts": [{{"node": 2}}]}}}},
            {{"id": 2, "name": "sdb1", "kind": "partition", "placing": {{"kind": "parts", "parts": [{{"node": 1}}]}}}},
            {{"id": 4, "name": "/srv/disk", "kind": "file", "placing": {{"kind": "parts", "parts": [{{"node": 3}}]}}}}]}},
            "unknown": [], "accepted": {{"findings": [], "expired": []}}, "unread": [{unread}]}}}}"#
        )
    }

    #[test]
    fn each_version_is_read_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("check.json");
        let mut file = SurveyFile::default();
        assert!(file.read_new(&path).expect("no file").is_none());
        let write = |text: &str| {
            let new = folder.path().join("new");
            std::fs::write(&new, text).expect("written");
            std::fs::rename(&new, &path).expect("renamed");
        };
        write(&document("", ""));
        let survey = file.read_new(&path).expect("a survey").expect("a new one");
        assert!(survey.unread.is_empty());
        assert!(file.read_new(&path).expect("a survey").is_none());
        write(&document("", "\"sdb\""));
        let survey = file.read_new(&path).expect("a survey").expect("a new one");
        // The layers of a file are known from the file.
        let unread: Vec<&str> = survey.unread.iter().map(String::as_str).collect();
        assert_eq!(unread, ["/srv", "sdb", "sdb1"]);
        for (text, message) in [
            ("{", "EOF while parsing"),
            (
                "{\"schema\": \"plumb.check/2\"}",
                "missing field `findings`",
            ),
            (
                &document("", "").replace("check/2", "check/3"),
                "found schema `plumb.check/3`, expected `plumb.check/2`",
            ),
        ] {
            write(text);
            let why = file.read_new(&path).expect_err(text);
            assert!(
                why.contains("check.json: ") && why.contains(message),
                "{why}"
            );
            assert!(file.read_new(&path).expect("reported once").is_none());
        }
        write(&document("", ""));
        assert!(file.read_new(&path).expect("a survey").is_some());
        std::fs::remove_file(&path).expect("removed");
        std::fs::create_dir(&path).expect("a folder");
        let why = file.read_new(&path).expect_err("a folder");
        assert!(why.contains("found no plain file"), "{why}");
    }
}
