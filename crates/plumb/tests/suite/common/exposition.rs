//! The text format of Prometheus, read by its document, and by its own tool.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use plumb_testkit::require;

/// One label of the exposition format: name, text, rest behind it.
fn label(rest: &str) -> (String, String, &str) {
    let (name, rest) = rest.split_once("=\"").expect("a label");
    assert!(
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
        "{name}"
    );
    let mut text = String::new();
    let mut letters = rest.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (name.to_owned(), text, &rest[at + 1..]),
            '\\' => match letters.next().expect("an escape").1 {
                'n' => text.push('\n'),
                sign @ ('\\' | '"') => text.push(sign),
                other => panic!("no escape: {other}"),
            },
            '\n' => panic!("a line ends within a label"),
            letter => text.push(letter),
        }
    }
    panic!("no end of {rest}")
}

/// Values by name and labels.
pub type Samples = BTreeMap<(String, BTreeMap<String, String>), f64>;

/// Metrics by the document of the exposition format: each family once, with HELP and TYPE before its series, no series twice.
pub fn series(text: &str) -> Samples {
    assert!(text.ends_with('\n'), "the last line has an end");
    let mut series = Samples::new();
    let mut families = BTreeSet::new();
    let (mut helped, mut family) = (String::new(), String::new());
    let mut is_histogram = false;
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped = help.split(' ').next().expect("a name").to_owned();
            continue;
        }
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type");
            (family, is_histogram) = (name.to_owned(), kind == "histogram");
            assert!(
                is_histogram || matches!(kind, "gauge" | "counter"),
                "{line}"
            );
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert_eq!(family, helped, "HELP goes before TYPE");
            assert!(families.insert(family.clone()), "{family} twice");
            continue;
        }
        let (head, value) = line.rsplit_once(' ').expect("a value");
        let (name, mut rest) = head.split_once('{').unwrap_or((head, "}"));
        let suffix = name
            .strip_prefix(&family)
            .expect("series follow their family");
        let suffixes: &[&str] = match is_histogram {
            true => &["_bucket", "_sum", "_count"],
            false => &[""],
        };
        assert!(suffixes.contains(&suffix), "{line}");
        let mut labels = BTreeMap::new();
        while rest != "}" {
            let (name, text, after) = label(rest);
            assert_eq!(labels.insert(name, text), None, "a label twice: {line}");
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        let value = value.parse().expect("a number");
        assert_eq!(
            series.insert((name.to_owned(), labels), value),
            None,
            "{line} twice"
        );
    }
    series
}

/// The sum of the series of a name with these labels, and perhaps others.
pub fn sum(series: &Samples, name: &str, labels: &[(&str, &str)]) -> f64 {
    let is_meant = |known: &BTreeMap<String, String>| {
        labels
            .iter()
            .all(|(label, text)| known.get(*label).is_some_and(|known| known == text))
    };
    let meant = series
        .iter()
        .filter(|((known, with), _)| known == name && is_meant(with));
    meant.map(|(_, value)| value).sum()
}

/// Prometheus' own tool finds no fault in the text, where it is installed.
pub fn check_by_promtool(text: &str) {
    use std::io::Write;

    let Some(promtool) = require::tool("promtool") else {
        return;
    };
    let mut command = Command::new(promtool);
    command.args(["check", "metrics"]).stdin(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("promtool");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("a reader");
    drop(stdin);
    let done = plumb_testkit::wait::output("promtool", plumb_testkit::wait::PATIENCE, child);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.is_empty(), "{said}");
}
