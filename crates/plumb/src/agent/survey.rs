//! The survey: a document of `plumb check --json` that a unit with the rights of root writes once a day. The agent, which may open no
//! disk, reads it and follows the findings in it.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use plumb_model::{Finding, Target, Unjudged};
use serde::Deserialize;

/// Most bytes of a document.
const BYTES_MAX: u64 = 32 << 20;
/// Age of a survey after which the daily one is missing.
const AGE_MAX: Duration = Duration::from_secs(50 * 3600);
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
    /// Devices that could not be read, with the partitions and file systems on them.
    pub unread: Vec<Target>,
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
    unread: Vec<Target>,
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
    /// Whether the age of this version was reported.
    is_old: bool,
}

impl SurveyFile {
    /// The survey, if the file is a new one since the last call; `None` also without a file.
    ///
    /// # Errors
    /// If the file cannot be read, is no survey or is more than two days old; once for each version of it.
    pub fn read_new(&mut self, path: &Path) -> Result<Option<LayoutSurvey>, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return match self.is_new(None) {
                    true => Err(failed(&error)),
                    false => Ok(None),
                };
            }
        };
        let version = (metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
        if !self.is_new(Some(version)) {
            let age = metadata.modified().ok();
            let age = age.and_then(|at| SystemTime::now().duration_since(at).ok());
            let is_old = age.is_some_and(|age| age > AGE_MAX);
            if is_old && !std::mem::replace(&mut self.is_old, true) {
                let found = "found a survey of more than 50 hours ago, expected one a day";
                let help = "`systemctl status plumb-survey` shows the last run";
                return Err(failed(&format!("{found}; {help}")));
            }
            return Ok(None);
        }
        self.is_old = false;
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
        let accepted = document.result.accepted.findings.into_iter();
        Ok(Some(LayoutSurvey {
            findings: document.findings,
            accepted: accepted.map(|one| one.finding).collect(),
            unknown: document.result.unknown,
            unread: document.result.unread,
        }))
    }

    /// Notes a version, and tells whether it is another than that of the last call. A file without a known version has the version 0.
    fn is_new(&mut self, version: Option<(u64, i64, i64)>) -> bool {
        let version = version.unwrap_or_default();
        self.seen.replace(version) != Some(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(findings: &str, unread: &str) -> String {
        format!(
            r#"{{"schema": "plumb.check/2", "version": "1", "findings": [{findings}], "result": {{"stack": {{"nodes": []}},
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
        let target = r#"{"host": null, "device": "sdb", "part": null, "layer": "disk", "identity": "naa.1"}"#;
        write(&document("", target));
        let survey = file.read_new(&path).expect("a survey").expect("a new one");
        let [unread] = &survey.unread[..] else {
            panic!("found {:?}, expected one device", survey.unread);
        };
        assert_eq!(
            (unread.device.as_str(), unread.identity.as_deref()),
            ("sdb", Some("naa.1"))
        );
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
        // A survey that is missing for days is reported once.
        let old = SystemTime::now() - Duration::from_secs(51 * 3600);
        let opened = File::options().write(true).open(&path);
        opened
            .and_then(|file| file.set_modified(old))
            .expect("its owner may");
        assert!(file.read_new(&path).expect("a new version").is_some());
        let why = file.read_new(&path).expect_err("an old survey");
        assert!(why.contains("more than 50 hours ago"), "{why}");
        assert!(file.read_new(&path).expect("reported once").is_none());
        std::fs::remove_file(&path).expect("removed");
        std::fs::create_dir(&path).expect("a folder");
        let why = file.read_new(&path).expect_err("a folder");
        assert!(why.contains("found no plain file"), "{why}");
    }
}
