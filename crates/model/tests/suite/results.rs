//! Types of results have the keys of their schemas in `docs/schema`, those that only a live watch or recording prints among them.

use std::path::Path;

use plumb_model::finding::SeverityCounts;
use plumb_model::result::record::DiskTally;
use plumb_model::result::verdict::{Verdict, Word};
use plumb_model::result::watch::{Apart, MappedPages, Misses, WatchSummary};
use plumb_trace::Layer;
use serde_json::{Value, json};

/// The value as JSON, whose keys are those that a part of a schema requires.
fn checked(value: impl serde::Serialize, command: &str, part: &str) -> Value {
    let path = format!("../../docs/schema/{command}.json");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let schema = std::fs::read_to_string(path).expect("the schema is there");
    let schema: Value = serde_json::from_str(&schema).expect("the schema is JSON");
    let part = schema
        .pointer(part)
        .unwrap_or_else(|| panic!("no {part} of {command}"));
    let mut required: Vec<&str> = part["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    required.sort_unstable();
    let value = serde_json::to_value(value).expect("the value is JSON");
    let mut keys: Vec<&str> = value
        .as_object()
        .into_iter()
        .flat_map(|object| object.keys())
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, required, "{command}");
    value
}

#[test]
fn keys_are_those_of_the_schemas() {
    let pages = MappedPages {
        faults: 1009,
        dirtied: 37,
    };
    let pages = checked(pages, "watch", "/$defs/mapped_files");
    assert_eq!(pages, json!({"page_faults": 1009, "dirtied_pages": 37}));

    let misses = Misses {
        requeues: 7,
        splits: 11,
        ..Misses::default()
    };
    let apart = Apart {
        device: "sda",
        misses: &misses,
    };
    let apart = checked(apart, "watch", "/$defs/apart");
    let figures = [&apart["device"], &apart["requeues"], &apart["splits"]];
    assert_eq!(figures, [&json!("sda"), &json!(7), &json!(11)]);

    let watched = WatchSummary {
        seconds: 2.5,
        disks: vec!["sda", "sdb"],
        too_few: vec!["sdb"],
        senders: Vec::new(),
    };
    checked(watched, "diagnose", "/$defs/watched");

    let tally = DiskTally {
        device: "loop0".to_owned(),
        layer: Layer::Request,
        sent: 1009,
        lost: 0,
        requeues: 0,
        partial_completions: 0,
        unmatched_issues: 0,
        unmatched_completions: 0,
        unknown_senders: 0,
        unseen_failures: [5; 6],
    };
    let tally = checked(tally, "record", "/$defs/device");
    assert_eq!(tally["layer"], "request");

    let counts = SeverityCounts {
        critical: 1,
        warnings: 2,
        notes: 3,
    };
    checked(counts, "check", "/properties/result/properties/elsewhere");
}

/// The short sentence is for text alone.
#[test]
fn a_verdict_is_its_word_and_its_sentence() {
    let verdict = Verdict {
        short: Some("2 findings: sda, sdb.".to_owned()),
        ..Verdict::measured(Word::Misfit, "2 findings on 2 devices.")
    };
    let expected = json!({"word": "MISFIT", "sentence": "2 findings on 2 devices."});
    assert_eq!(serde_json::to_value(verdict).expect("JSON"), expected);
}
