//! `plumb check` against targets and initiators whose truth is known by construction, in a guest: see `lab/targets-guest`.

use std::path::Path;

use plumb_testkit::require;
use serde_json::Value;

use crate::common::{node, rows_of_guest};

/// One line of `rows.tsv`, with its notes.
struct ExportRow {
    name: String,
    export: String,
    partition: String,
    /// Physical block of the drive.
    block: u64,
    /// First byte of the export on the drive.
    export_start: u64,
    /// First byte of the partition on the initiator's disk.
    partition_start: u64,
    /// The initiator's sysfs: logical block, physical block, alignment offset, identity, optimal I/O size.
    initiator: Vec<String>,
    write: String,
    document: Value,
}

fn rows(directory: &Path) -> Vec<ExportRow> {
    let row = |fields: Vec<String>| {
        let number = |at: usize| fields[at].parse().expect("a number");
        let read = |file: &str| {
            let path = directory.join(&fields[0]).join(file);
            std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        ExportRow {
            name: fields[0].clone(),
            export: fields[1].clone(),
            partition: fields[2].clone(),
            block: number(3),
            export_start: number(4),
            partition_start: number(5),
            initiator: read("initiator.txt")
                .lines()
                .map(|line| line.trim().to_owned())
                .collect(),
            write: read("write.txt").trim().to_owned(),
            document: serde_json::from_str(&read("plumb.json")).expect("a document"),
        }
    };
    rows_of_guest(directory).into_iter().map(row).collect()
}

impl ExportRow {
    fn node(&self, name: &str) -> &Value {
        node(&self.document, name)
    }

    /// The verdict of a node on the blocks of the drive.
    fn is_right(&self, name: &str, start: u64) -> Result<(), String> {
        let verdicts = self.node(name)["verdicts"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let physical = |one: &&Value| {
            one["what"] == "physical-block" && one["grid"]["granularity_bytes"] == self.block
        };
        let on_drive: Vec<&Value> = verdicts.iter().filter(physical).collect();
        let past = start % self.block;
        let is_right = |one: &&Value| match past {
            0 => one["verdict"] == "aligned",
            past => one["verdict"] == "misaligned" && one["by_bytes"] == past,
        };
        if on_drive.len() == 1 && on_drive.iter().all(is_right) {
            return Ok(());
        }
        Err(format!(
            "{}: {name} is {past} past, found {verdicts:?}",
            self.name
        ))
    }

    /// Finding of the export, as severity and fault.
    fn misstated(&self) -> Option<(&str, &str)> {
        let findings = self.document["findings"].as_array().expect("findings");
        let export = &self.node(&self.export)["name"];
        let of_export = findings
            .iter()
            .filter(|one| one["rule"] == "misstated-grid" && one["target"]["device"] == *export);
        let mut of_export =
            of_export.map(|one| (one["severity"].as_str(), one["facts"]["fault"].as_str()));
        let first = of_export.next()?;
        assert_eq!(of_export.next(), None, "{}: found twice", self.name);
        Some((first.0.expect("a word"), first.1.expect("a fault")))
    }

    /// The believed statement, compared with the initiator's.
    fn is_as_initiator_sees(&self) -> Result<(), String> {
        let grids = self.node(&self.export)["grids"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let stated = |what: &str| {
            let grid = &grids.iter().find(|one| one["what"] == what)?["grid"];
            Some((
                grid["granularity_bytes"].as_i64()?,
                grid["offset_bytes"].as_i64()?,
            ))
        };
        let seen: Vec<i64> = self
            .initiator
            .iter()
            .take(3)
            .map(|line| line.parse().expect("a number"))
            .collect();
        let (logical, physical) = (stated("logical-block"), stated("physical-block"));
        // Above the paths of a namespace the kernel gives up (-1): NVMe states no offset.
        let offset = if self.name.starts_with("nvmet") {
            seen[2].max(0)
        } else {
            seen[2]
        };
        let blocks_are_right = logical == Some((seen[0], 0)) && physical == Some((seen[1], offset));
        // The initiator's kernel drops sizes above its largest request: 64 MiB of a fileio of 4096-byte blocks.
        let optimal = stated("optimal-io").map_or(0, |it| it.0);
        let told = self.initiator[4].parse().unwrap_or(-1);
        if blocks_are_right && (optimal == told || told == 0 && optimal == 64 << 20) {
            return Ok(());
        }
        let found = format!("{logical:?}, {physical:?}, {optimal}");
        Err(format!(
            "{}: an initiator sees {seen:?} and {told}, found {found}",
            self.name
        ))
    }
}

/// The positions of exports, their statements, the layers below their initiators, and the verdicts.
#[test]
fn targets_in_a_guest_are_judged_right() {
    require!(Qemu, Tool("apt-get"));
    let out = tempfile::tempdir().expect("a directory");
    let said = super::run_lab("targets-guest", [out.path(), super::program().as_path()]);
    assert!(!said.contains("failed"), "{said}");
    let rows = rows(out.path());
    let is_left_out = said.contains("rows of iSCSI are left out");
    // Five for each of two starts, a drive passed through, iSCSI, two of a file, two on blocks of 4 KiB.
    assert_eq!(rows.len(), if is_left_out { 15 } else { 16 }, "{said}");
    let mut wrong = Vec::new();
    for row in &rows {
        wrong.extend(row.is_right(&row.export, row.export_start).err());
        let refused = row.name == "iblock-512-on-4kn";
        assert_eq!(
            row.write,
            if refused { "error" } else { "done" },
            "{}",
            row.name
        );
        if !refused {
            wrong.extend(
                row.is_right(&row.partition, row.export_start + row.partition_start)
                    .err(),
            );
        }
        // Configfs does not have the blocks of a file behind nvmet.
        if row.name != "nvmet-file" {
            wrong.extend(row.is_as_initiator_sees().err());
        }
        let identity = row.node(&row.export)["facts"]["identity"]["value"].as_str();
        if row.name != "pscsi" && identity != row.initiator.get(3).map(String::as_str) {
            wrong.push(format!(
                "{}: {identity:?} is called {:?}",
                row.name,
                row.initiator.get(3)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (name, expected) in [
        ("iblock-512-63", None),
        ("iblock-512-2048", None),
        ("iblock-4096-63", Some(("warning", "shifted"))),
        ("iblock-4096-2048", Some(("note", "larger"))),
        ("fileio-512-63", Some(("warning", "hidden"))),
        ("fileio-512-2048", Some(("warning", "hidden"))),
        ("fileio-4096-63", Some(("warning", "shifted"))),
        ("fileio-4096-2048", None),
        ("nvmet-63", Some(("warning", "shifted"))),
        ("nvmet-2048", None),
        ("pscsi", None),
        ("file", Some(("warning", "hidden"))),
        ("iblock-512-on-4kn", Some(("critical", "refused"))),
        ("fileio-512-on-4kn", Some(("warning", "hidden"))),
    ] {
        let row = rows
            .iter()
            .find(|row| row.name == name)
            .unwrap_or_else(|| panic!("no {name}"));
        match (row.misstated(), expected) {
            (None, None) => {}
            (Some(found), Some(expected)) => assert_eq!(found, expected, "{name}"),
            (found, _) => panic!("{name}: found {found:?}, expected {expected:?}"),
        }
    }
}
