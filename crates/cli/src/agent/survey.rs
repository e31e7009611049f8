//! The survey: a document of `plumb check --json` that a unit with the rights of root writes once a day. The agent, which may open no
//! disk, reads it and follows the findings in it.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use plumb_geometry::Bytes;
use plumb_model::facts::{HostFact, HostValue};
use plumb_model::{Finding, Target, Unjudged};
use plumb_quoting::json;
use plumb_stack::Kind;
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
    /// Facts about the host; `None` if the survey has no layers.
    pub host: Option<BTreeMap<HostFact, HostValue>>,
}

#[derive(Deserialize)]
struct SurveyDocument {
    schema: String,
    findings: Vec<Finding>,
    result: DocumentResult,
}

#[derive(Deserialize)]
struct DocumentResult {
    unknown: Vec<Unjudged>,
    accepted: DocumentAccepted,
    unread: Vec<Target>,
    stack: Option<DocumentStack>,
}

#[derive(Deserialize)]
struct DocumentAccepted {
    findings: Vec<DocumentAcceptedFinding>,
}

#[derive(Deserialize)]
struct DocumentAcceptedFinding {
    finding: Finding,
}

/// The layers of the host, as far as they are followed over time.
#[derive(Deserialize)]
struct DocumentStack {
    nodes: Vec<DocumentNode>,
}

#[derive(Deserialize)]
struct DocumentNode {
    id: u32,
    name: String,
    kind: Kind,
    placing: DocumentPlacing,
    #[serde(default)]
    facts: DocumentFacts,
}

#[derive(Deserialize)]
struct DocumentPlacing {
    #[serde(default)]
    parts: Vec<DocumentPart>,
    #[serde(default)]
    members: Vec<DocumentMember>,
    member: Option<DocumentMember>,
    chunk_bytes: Option<Bytes>,
}

impl DocumentPlacing {
    /// The layers below, in order.
    fn below(&self) -> impl Iterator<Item = u32> {
        let parts = self.parts.iter().map(|part| part.node);
        let members = self.members.iter().chain(&self.member);
        parts.chain(members.filter_map(DocumentMember::node))
    }
}

/// A layer below, alone or with its place.
#[derive(Deserialize)]
#[serde(untagged)]
enum DocumentMember {
    Node(u32),
    Placed { node: u32 },
    Other(serde::de::IgnoredAny),
}

impl DocumentMember {
    fn node(&self) -> Option<u32> {
        match self {
            DocumentMember::Node(node) | DocumentMember::Placed { node } => Some(*node),
            DocumentMember::Other(_) => None,
        }
    }
}

#[derive(Deserialize)]
struct DocumentPart {
    node: u32,
    start_bytes: Bytes,
    len_bytes: Bytes,
}

#[derive(Default, Deserialize)]
struct DocumentFacts {
    content: Option<DocumentValue<String>>,
    mount: Option<DocumentValue<String>>,
    mount_options: Option<DocumentValue<Vec<String>>>,
    scheduler: Option<DocumentValue<String>>,
}

#[derive(Deserialize)]
struct DocumentValue<T> {
    value: T,
}

impl DocumentStack {
    /// Mounts, partitions, volumes and schedulers; not those of loop devices, which programs make and remove all day.
    fn host_facts(self) -> BTreeMap<HostFact, HostValue> {
        let nodes: BTreeMap<u32, &DocumentNode> =
            self.nodes.iter().map(|node| (node.id, node)).collect();
        let mut found = BTreeMap::new();
        for node in &self.nodes {
            let part = node.placing.parts.first();
            let below = part.and_then(|part| Some((part, *nodes.get(&part.node)?)));
            let device = node.name.clone();
            let (fact, value) = match (node.kind, below) {
                (Kind::Loop, _) => continue,
                (_, Some((_, below))) if is_of_loop(below, &nodes) => continue,
                (Kind::FileSystem, _) => {
                    let Some(mount) = &node.facts.mount else {
                        continue;
                    };
                    let of = HostFact::Mount {
                        path: mount.value.clone(),
                    };
                    let content = node.facts.content.as_ref();
                    let options = node.facts.mount_options.as_ref();
                    let value = HostValue::FileSystem {
                        file_system: content.map_or_else(String::new, |one| one.value.clone()),
                        device: below_name(node, &nodes),
                        options: options.map_or_else(Vec::new, |one| one.value.clone()),
                    };
                    (of, value)
                }
                (Kind::Partition, Some((part, below))) => {
                    let value = HostValue::Place {
                        disk: below.name.clone(),
                        start_bytes: part.start_bytes,
                        len_bytes: part.len_bytes,
                    };
                    (HostFact::Partition { device }, value)
                }
                (kind, _) => {
                    if is_volume(kind) {
                        let value = node.volume(&nodes);
                        let device = device.clone();
                        found.insert(HostFact::Volume { device }, value);
                    }
                    let Some(scheduler) = &node.facts.scheduler else {
                        continue;
                    };
                    let value = HostValue::Name(scheduler.value.clone());
                    (HostFact::Scheduler { device }, value)
                }
            };
            found.insert(fact, value);
        }
        found
    }
}

impl DocumentNode {
    /// The layers below a volume, each once.
    fn volume(&self, nodes: &BTreeMap<u32, &DocumentNode>) -> HostValue {
        let mut members: Vec<String> = Vec::new();
        for below in self.placing.below().filter_map(|id| nodes.get(&id)) {
            if !members.contains(&below.name) {
                members.push(below.name.clone());
            }
        }
        HostValue::Volume {
            volume: self.kind.text().to_owned(),
            chunk_bytes: self.placing.chunk_bytes,
            members,
        }
    }
}

/// Whether a layer is a volume on other devices of the host.
fn is_volume(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Multipath
            | Kind::Concat
            | Kind::Stripe
            | Kind::Mirror
            | Kind::ParityRaid
            | Kind::Crypt
            | Kind::Cache
            | Kind::ThinPool
            | Kind::ThinVolume
            | Kind::LogicalVolume
    )
}

/// The device of a file system: of one on several devices the first.
fn below_name(node: &DocumentNode, nodes: &BTreeMap<u32, &DocumentNode>) -> String {
    let below = node.placing.below().next().and_then(|id| nodes.get(&id));
    below.map_or_else(String::new, |below| below.name.clone())
}

/// Whether a layer is a loop device, or a partition of one.
fn is_of_loop(node: &DocumentNode, nodes: &BTreeMap<u32, &DocumentNode>) -> bool {
    let below = node.placing.parts.first();
    let below = below.and_then(|part| nodes.get(&part.node));
    node.kind == Kind::Loop
        || node.kind == Kind::Partition && below.is_some_and(|disk| disk.kind == Kind::Loop)
}

/// The version of a file that was seen last: its number and time. A file without a known version has the version 0.
#[derive(Debug, Default)]
pub struct SeenVersion(Option<(u64, i64, i64)>);

impl SeenVersion {
    /// Whether no version was noted yet.
    pub const fn is_unseen(&self) -> bool {
        self.0.is_none()
    }

    /// Notes the version of a file, and tells whether it is another than that of the last call.
    pub fn is_new(&mut self, file: Option<&Metadata>) -> bool {
        let version = file.map(|file| (file.ino(), file.mtime(), file.mtime_nsec()));
        let version = version.unwrap_or_default();
        self.0.replace(version) != Some(version)
    }
}

/// The file of the survey. Each version of it is read once.
#[derive(Debug, Default)]
pub struct SurveyFile {
    /// The version that was read last.
    seen: SeenVersion,
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
                return match self.seen.is_new(None) {
                    true => Err(failed(&error)),
                    false => Ok(None),
                };
            }
        };
        if !self.seen.is_new(Some(&metadata)) {
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
        let (_, document) = read(path).map_err(|why| failed(&why))?;
        let accepted = document.result.accepted.findings.into_iter();
        Ok(Some(LayoutSurvey {
            findings: document.findings,
            accepted: accepted.map(|one| one.finding).collect(),
            unknown: document.result.unknown,
            unread: document.result.unread,
            host: document.result.stack.map(DocumentStack::host_facts),
        }))
    }
}

/// The last document of the survey with the layers of the host, as it is in its file.
///
/// # Errors
/// If the file is absent, or cannot be read.
pub fn stack(path: &Path) -> Result<Vec<u8>, String> {
    let why = match read(path) {
        Ok((bytes, document)) if document.result.stack.is_some() => return Ok(bytes),
        Ok(_) => "found a survey without layers".to_owned(),
        Err(why) => why,
    };
    Err(format!("{}: {why}", path.display()))
}

/// The bytes of a survey, and the document in them.
fn read(path: &Path) -> Result<(Vec<u8>, SurveyDocument), String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() || metadata.len() > BYTES_MAX {
        let found = match metadata.is_file() {
            true => format!("found {} bytes", metadata.len()),
            false => "found no plain file".to_owned(),
        };
        let expected = format!("expected a file of at most {BYTES_MAX} bytes");
        return Err(format!("{found}, {expected}"));
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let mut file = file.take(BYTES_MAX);
    file.read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    let document: SurveyDocument = json::from_slice(&bytes).map_err(|error| error.to_string())?;
    if document.schema != SCHEMA {
        let found = &document.schema;
        return Err(format!("found schema `{found}`, expected `{SCHEMA}`"));
    }
    Ok((bytes, document))
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
    fn a_stack_is_the_document_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("check.json");
        let mut messages = vec![stack(&path).expect_err("no file")];
        let text = document("", "");
        std::fs::write(&path, &text).expect("written");
        assert_eq!(stack(&path).expect("a survey"), text.as_bytes());
        for text in [
            "{".to_owned(),
            text.replace("check/2", "check/3"),
            text.replace("{\"nodes\": []}", "null"),
        ] {
            std::fs::write(&path, &text).expect("written");
            messages.push(stack(&path).expect_err("no stack"));
        }
        let place = folder.path().to_str().expect("text");
        insta::assert_snapshot!(messages.join("\n\n").replace(place, "FOLDER"));
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
        let old = file.read_new(&path).expect_err("an old survey");
        assert!(file.read_new(&path).expect("reported once").is_none());
        std::fs::remove_file(&path).expect("removed");
        std::fs::create_dir(&path).expect("a folder");
        let no_file = file.read_new(&path).expect_err("a folder");
        let place = folder.path().to_str().expect("text");
        insta::assert_snapshot!([old, no_file].join("\n\n").replace(place, "FOLDER"));
    }

    /// As `plumb check --json` writes them: a disk with a partition that is mounted, and the same on a loop device.
    #[test]
    fn mounts_partitions_and_schedulers_are_followed() {
        let layers = |disk: u32, name: &str, kind: &str, mount: &str| {
            let (part, tree) = (disk + 1, disk + 2);
            format!(
                r#"{{"id": {disk}, "name": "{name}", "kind": "{kind}", "placing": {{"kind": "leaf"}},
                "facts": {{"scheduler": {{"value": "none", "source": {{}}}}}}}},
                {{"id": {part}, "name": "{name}1", "kind": "partition", "placing": {{"kind": "parts", "parts":
                [{{"upper_bytes": 0, "node": {disk}, "start_bytes": 17408, "len_bytes": 4096}}]}}, "facts": {{}}}},
                {{"id": {tree}, "name": "{mount}", "kind": "file-system", "placing": {{"kind": "parts", "parts":
                [{{"upper_bytes": 0, "node": {part}, "start_bytes": 0, "len_bytes": 4096}}]}}, "facts": {{
                "content": {{"value": "ext4", "source": {{}}}}, "mount": {{"value": "{mount}", "source": {{}}}},
                "mount_options": {{"value": ["rw", "noatime"], "source": {{}}}}}}}}"#
            )
        };
        let btrfs = r#"{"id": 11, "name": "/srv", "kind": "file-system", "placing": {"kind": "unknown", "members": [1], "why": {}},
            "facts": {"content": {"value": "btrfs"}, "mount": {"value": "/srv"}, "mount_options": {"value": ["rw"]}}}"#;
        let array = r#"{"id": 12, "name": "md0", "kind": "parity-raid", "placing": {"kind": "chunks", "chunk_bytes": 65536, "members":
            [{"node": 1, "start_bytes": 4096}, {"node": 13, "start_bytes": 4096}]}, "facts": {"scheduler": {"value": "none"}}},
            {"id": 13, "name": "sdc", "kind": "disk", "placing": {"kind": "leaf"}, "facts": {}},
            {"id": 14, "name": "dm-1", "kind": "thin-volume", "placing": {"kind": "blocks", "block_bytes": 65536, "member":
            {"node": 12, "start_bytes": 0}}, "facts": {}}"#;
        let nodes = [
            layers(1, "sdb", "disk", "/data"),
            layers(7, "loop0", "loop", "/snap"),
            btrfs.to_owned(),
            array.to_owned(),
        ];
        let text = document("", "").replace(
            "\"nodes\": []",
            &format!("\"nodes\": [{}]", nodes.join(", ")),
        );
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("check.json");
        std::fs::write(&path, text).expect("written");
        let survey = SurveyFile::default().read_new(&path).expect("a survey");
        let host = survey.and_then(|survey| survey.host).expect("layers");
        let device = |name: &str| name.to_owned();
        let expected = [
            (
                HostFact::Mount {
                    path: device("/data"),
                },
                HostValue::FileSystem {
                    file_system: device("ext4"),
                    device: device("sdb1"),
                    options: vec![device("rw"), device("noatime")],
                },
            ),
            (
                HostFact::Mount {
                    path: device("/srv"),
                },
                HostValue::FileSystem {
                    file_system: device("btrfs"),
                    device: device("sdb"),
                    options: vec![device("rw")],
                },
            ),
            (
                HostFact::Partition {
                    device: device("sdb1"),
                },
                HostValue::Place {
                    disk: device("sdb"),
                    start_bytes: Bytes(17408),
                    len_bytes: Bytes(4096),
                },
            ),
            (
                HostFact::Scheduler {
                    device: device("sdb"),
                },
                HostValue::Name(device("none")),
            ),
            (
                HostFact::Scheduler {
                    device: device("md0"),
                },
                HostValue::Name(device("none")),
            ),
            (
                HostFact::Volume {
                    device: device("md0"),
                },
                HostValue::Volume {
                    volume: device("parity RAID"),
                    chunk_bytes: Some(Bytes(65536)),
                    members: vec![device("sdb"), device("sdc")],
                },
            ),
            (
                HostFact::Volume {
                    device: device("dm-1"),
                },
                HostValue::Volume {
                    volume: device("thin volume"),
                    chunk_bytes: None,
                    members: vec![device("md0")],
                },
            ),
        ];
        assert_eq!(host, BTreeMap::from(expected));
        // They are read again as they were stored.
        for (fact, value) in &host {
            let words = [serde_json::to_string(fact), serde_json::to_string(value)];
            let [of, is] = words.map(|words| words.expect("words"));
            assert_eq!(
                serde_json::from_str::<HostFact>(&of).ok().as_ref(),
                Some(fact)
            );
            assert_eq!(
                serde_json::from_str::<HostValue>(&is).ok().as_ref(),
                Some(value)
            );
        }
    }
}
