//! `plumb check` against stacks whose truth is known by construction, in a guest: see `lab/check-guest`.

use std::path::Path;
use std::process::Command;

use plumb_testkit::require;
use serde_json::Value;

/// One line of `rows.tsv`.
struct Row {
    name: String,
    node: String,
    granularity: u64,
    offset: u64,
    past: u64,
}

fn rows(directory: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(directory.join("rows.tsv")).expect("the rows");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| fields[at].parse().expect("a number");
        Row {
            name: fields[0].to_owned(),
            node: fields[1].to_owned(),
            granularity: number(2),
            offset: number(3),
            past: number(5),
        }
    };
    text.lines().map(row).collect()
}

fn node<'a>(document: &'a Value, path: &str) -> &'a Value {
    let name = path.trim_start_matches("/dev/");
    let nodes = document["result"]["stack"]["nodes"].as_array().expect("nodes");
    let is_it = |node: &&Value| {
        let aliases = node["aliases"].as_array().expect("aliases");
        node["name"] == name || aliases.iter().any(|alias| alias == name)
    };
    nodes.iter().find(is_it).unwrap_or_else(|| panic!("no {name}"))
}

/// What is said of a row: how the node stands on the grid of that granularity below it.
fn judge(row: &Row, document: &Value) -> Result<(), String> {
    let verdicts = node(document, &row.node)["verdicts"].as_array().expect("verdicts").clone();
    let on_it: Vec<&Value> =
        verdicts.iter().filter(|one| one["grid"]["granularity_bytes"] == row.granularity).collect();
    if on_it.is_empty() {
        return Err(format!("nothing is said of the grid of {}: {verdicts:?}", row.granularity));
    }
    for one in on_it {
        let is_right = match (row.past, one["verdict"].as_str()) {
            // On a grid that nobody states, or that is all a virtual disk states, is not yet aligned.
            (0, Some("unknown")) => one["what"] == "assumed" || row.name.starts_with("nvme"),
            (0, verdict) => verdict == Some("aligned"),
            (past, verdict) => verdict == Some("misaligned") && one["by_bytes"] == past,
        };
        if !is_right || one["grid"]["offset_bytes"] != row.offset {
            return Err(format!("{} past is the truth, found {one}", row.past));
        }
    }
    Ok(())
}

/// Geometries, md, LVM, LUKS, loop and NVMe: the verdict is the truth in each.
#[test]
fn verdicts_in_a_guest_are_true() {
    require!(Qemu, Tool("apt-get"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/check-guest");
    let out = tempfile::tempdir().expect("a directory");
    let done =
        Command::new(script).arg(out.path()).arg(env!("CARGO_BIN_EXE_plumb")).output().expect("a shell");
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && !said.contains("failed"), "{said}");
    let rows = rows(out.path());
    // Four starts on three geometries, two bogus hints, four arrays, the PV put right, four LUKS, two loops, two NVMe.
    assert_eq!(rows.len(), 27, "{said}");
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let path = out.path().join(&row.name).join("plumb.json");
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let judged = serde_json::from_str(&text)
                .map_err(|error| format!("{error}: {text}"))
                .and_then(|document| judge(row, &document));
            judged.err().map(|why| format!("{}: {why}", row.name))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for row in &rows {
        let read = |name: &str| {
            let path = out.path().join(&row.name).join(name);
            let text =
                std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            serde_json::from_str::<Value>(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
        };
        let (live, elsewhere) = (read("plumb.json"), read("plumb-from.json"));
        for part in ["findings", "result"] {
            assert_eq!(live[part], elsewhere[part], "{part} of {} in its collection", row.name);
        }
    }
    for (array, stripe) in
        [("raid0-64k", 192), ("raid0-512k", 1536), ("raid5-64k", 128), ("raid5-512k", 1024)]
    {
        let text = std::fs::read_to_string(out.path().join(array).join("plumb.txt")).expect("a report");
        let document: Value = serde_json::from_str(
            &std::fs::read_to_string(out.path().join(array).join("plumb.json")).expect("a document"),
        )
        .expect("JSON");
        let placing = &node(&document, "/dev/md0")["placing"];
        let members = placing["members"].as_array().map_or(0, Vec::len) as u64;
        let data = members - placing["parity"].as_u64().expect("a count");
        assert_eq!(placing["chunk_bytes"].as_u64().map(|chunk| chunk * data), Some(stripe << 10), "{text}");
    }
}
