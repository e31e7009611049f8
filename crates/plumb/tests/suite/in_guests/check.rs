//! `plumb check` against stacks whose truth is known by construction, in a guest: see `lab/check-guest`.

use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_testkit::require;
use serde_json::Value;

use crate::common::{node, plumb, rows_of_guest};

/// One line of `rows.tsv`.
pub struct CheckedRow {
    pub name: String,
    pub node: String,
    pub granularity: u64,
    pub offset: u64,
    /// The first byte of the data, on the grid.
    pub first: u64,
    pub past: u64,
}

fn rows(directory: &Path) -> Vec<CheckedRow> {
    let row = |fields: Vec<String>| {
        let number = |at: usize| fields[at].parse().expect("a number");
        CheckedRow {
            name: fields[0].clone(),
            node: fields[1].clone(),
            granularity: number(2),
            offset: number(3),
            first: number(4),
            past: number(5),
        }
    };
    rows_of_guest(directory).into_iter().map(row).collect()
}

/// The verdict of a row: that of the node on the grid of that granularity below it. A node on the grid of a disk with
/// mere statements of others is unknown.
fn judge(row: &CheckedRow, document: &Value, is_hearsay: bool) -> Result<(), String> {
    let verdicts = node(document, &row.node)["verdicts"]
        .as_array()
        .expect("verdicts")
        .clone();
    let on_it: Vec<&Value> = verdicts
        .iter()
        .filter(|one| one["grid"]["granularity_bytes"] == row.granularity)
        .collect();
    if on_it.is_empty() {
        return Err(format!(
            "nothing is said of the grid of {}: {verdicts:?}",
            row.granularity
        ));
    }
    for one in on_it {
        let is_right = match (row.past, one["verdict"].as_str()) {
            (0, verdict) if is_hearsay => verdict == Some("unknown"),
            // On a grid that nobody states, or that is all a virtual disk states, is not yet aligned.
            (0, Some("unknown")) => one["what"] == "assumed" || row.name == "nvme-4096",
            (0, verdict) => verdict == Some("aligned"),
            (past, verdict) => verdict == Some("misaligned") && one["by_bytes"] == past,
        };
        if !is_right || one["grid"]["offset_bytes"] != row.offset {
            return Err(format!("{} past is the truth, found {one}", row.past));
        }
    }
    let findings = document["findings"].as_array().expect("findings");
    let name = &node(document, &row.node)["name"];
    let is_it =
        |one: &Value| one["rule"] == "misaligned-partition" && one["target"]["device"] == *name;
    let is_found = findings.iter().any(is_it);
    if is_found != (row.past > 0) {
        return Err(format!(
            "{} past is the truth, found {findings:?}",
            row.past
        ));
    }
    Ok(())
}

/// `nvme id-ns` prints the drive's configuration, so rows of it match their names.
fn states_what_it_was_told(row: &Path) {
    let read = |name: &str| std::fs::read_to_string(row.join(name)).expect("a file of the guest");
    let (told, printed) = (read("told"), read("id-ns.txt"));
    let says = |field: &str| -> u64 {
        let line = printed.lines().find(|line| {
            line.split(':')
                .next()
                .is_some_and(|name| name.trim() == field)
        });
        let value = line
            .and_then(|line| line.split(':').nth(1))
            .unwrap_or_else(|| panic!("no {field}: {printed}"));
        match value.trim().strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).expect("a number"),
            None => value.trim().parse().expect("a number"),
        }
    };
    assert_eq!(says("nsfeat") >> 4 & 1, 1, "OPTPERF: {printed}");
    for (field, value) in told
        .lines()
        .map(|line| line.split_once('=').expect("field=value"))
    {
        let value: u64 = value.parse().expect("a number");
        match field {
            "lba" => assert!(
                printed.contains(&format!("lbads:{} ", value.ilog2())),
                "{printed}"
            ),
            "nsze" | "npwg" | "npwa" | "npdg" | "npda" | "nows" | "noiob" | "nawupf" => {
                assert_eq!(says(field), value, "{field}: {printed}");
            }
            // Of the controller, and the flag of before.
            "awupf" | "optperf" => {}
            _ => panic!("{field} was not looked at"),
        }
    }
}

/// The verdict from the output of `lsblk` and `nvme id-ns`, which is that of a drive: they do not show the network.
fn judge_prints(row: &CheckedRow, directory: &Path) -> Result<(), String> {
    let namespace = row.node.trim_start_matches("/dev/").trim_end_matches("p1");
    let id_ns = directory.join(format!("id-ns-{namespace}.txt"));
    std::fs::copy(directory.join("id-ns.txt"), &id_ns).map_err(|error| error.to_string())?;
    let done = Command::new(env!("CARGO_BIN_EXE_plumb"))
        .args(["check", "--json", "--from"])
        .args([&directory.join("lsblk.json"), &id_ns])
        .output()
        .map_err(|error| error.to_string())?;
    let document =
        serde_json::from_slice(&done.stdout).map_err(|error| format!("{error}: {done:?}"))?;
    judge(row, &document, false)
}

/// The program that serves drives. `cargo test --workspace` builds it beside `plumb`, since its package has integration tests too.
fn testkit_program() -> PathBuf {
    let testkit = Path::new(env!("CARGO_BIN_EXE_plumb")).with_file_name("plumb-testkit");
    assert!(
        testkit.exists(),
        "no {}: build it with `cargo build -p plumb-testkit`",
        testkit.display()
    );
    testkit
}

/// Geometries, md, LVM, LUKS, loop, NVMe and drives whose NPWG is not their NPWA: the verdict is the truth in each.
#[test]
fn verdicts_in_a_guest_are_true() {
    require!(Qemu, Tool("apt-get"));
    let testkit = testkit_program();
    let out = tempfile::tempdir().expect("a directory");
    let said = super::run_lab(
        "check-guest",
        [
            "--verdicts".as_ref(),
            out.path(),
            super::program().as_path(),
            testkit.as_ref(),
        ],
    );
    assert!(!said.contains("failed"), "{said}");
    let rows = rows(out.path());
    // Four starts on three geometries, two bogus hints, four arrays, the PV put right, four LUKS, two loops, two NVMe, ten
    // starts on four drives with NPWG and NPWA.
    assert_eq!(rows.len(), 37, "{said}");
    let told = |row: &CheckedRow| out.path().join(&row.name).join("told").exists();
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let directory = out.path().join(&row.name);
            let text = std::fs::read_to_string(directory.join("plumb.json")).unwrap_or_default();
            let judged = serde_json::from_str(&text)
                .map_err(|error| format!("{error}: {text}"))
                .and_then(|document| judge(row, &document, told(row)))
                .and_then(|()| {
                    if told(row) {
                        judge_prints(row, &directory)
                    } else {
                        Ok(())
                    }
                });
            judged.err().map(|why| format!("{}: {why}", row.name))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    super::prints::check_all(out.path(), &rows);
    for row in &rows {
        let read = |name: &str| {
            let path = out.path().join(&row.name).join(name);
            let text = std::fs::read_to_string(&path)
                .unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            serde_json::from_str::<Value>(&text)
                .unwrap_or_else(|why| panic!("{}: {why}", path.display()))
        };
        let live = read("plumb.json");
        let collected = out.path().join(&row.name).join("host.tar.zst");
        let elsewhere = plumb([
            "check".as_ref(),
            "--json".as_ref(),
            row.node.as_ref(),
            "--from".as_ref(),
            collected.as_os_str(),
        ]);
        let elsewhere = elsewhere.json();
        for part in ["findings", "result"] {
            assert_eq!(
                live[part], elsewhere[part],
                "{part} of {} in its collection",
                row.name
            );
        }
    }
    let drives: Vec<&CheckedRow> = rows.iter().filter(|row| told(row)).collect();
    assert_eq!(drives.len(), 10);
    drives
        .iter()
        .for_each(|row| states_what_it_was_told(&out.path().join(&row.name)));
    for (array, stripe) in [
        ("raid0-64k", 192),
        ("raid0-512k", 1536),
        ("raid5-64k", 128),
        ("raid5-512k", 1024),
    ] {
        let document: Value = serde_json::from_str(
            &std::fs::read_to_string(out.path().join(array).join("plumb.json"))
                .expect("a document"),
        )
        .expect("JSON");
        let placing = &node(&document, "/dev/md0")["placing"];
        let members = placing["members"].as_array().map_or(0, Vec::len) as u64;
        let data = members - placing["parity"].as_u64().expect("a count");
        assert_eq!(
            placing["chunk_bytes"].as_u64().map(|chunk| chunk * data),
            Some(stripe << 10),
            "{array}"
        );
    }
}
