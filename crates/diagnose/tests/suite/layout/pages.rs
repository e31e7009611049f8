//! Each rule has a page with its thresholds and a line in the index, and each page has a rule.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plumb_diagnose::layout::problems;
use plumb_diagnose::{MISALIGNED_TARGET, RULES, decides, layout};
use plumb_stack::problem_ids;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings")
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Problems that readers notice.
fn problems() -> impl Iterator<Item = &'static str> {
    problem_ids::ALL.iter().map(|problem| problem.id)
}

/// Rules on layouts, and the problems that have no rule of their own, with their thresholds.
fn on_layouts() -> Vec<(&'static str, Vec<String>)> {
    let rules = layout::RULES
        .iter()
        .filter(|rule| rule.id != problems::OTHERS.id && !problem_ids::is_known(rule.id))
        .map(|rule| (rule.id, (rule.thresholds)()));
    let problems = problems().map(|id| {
        let always = format!("always a {}", problems::severity(id).word());
        (id, vec![always])
    });
    rules.chain(problems).collect()
}

/// Holds the line of a page that begins so against the thresholds of its rule.
fn check(id: &str, start: &str, thresholds: &[String]) {
    let page = read(&format!("{id}.md"));
    assert!(
        page.starts_with(&format!("# {id}\n")),
        "{id}: another heading"
    );
    assert!(
        read("README.md").contains(&format!("({id}.md)")),
        "{id} is not in the index"
    );
    let line = page.lines().find(|line| line.starts_with(start));
    let line = line.unwrap_or_else(|| panic!("{id}: no line `{start}…`"));
    for expected in thresholds {
        assert!(
            line.contains(expected),
            "{id}: found `{line}`, expected `{expected}`"
        );
    }
}

fn assert_has_parts(id: &str, parts: &[&str]) {
    let page = read(&format!("{id}.md"));
    for part in parts {
        assert!(
            page.contains(&format!("## {part}\n")),
            "{id}: no part `{part}`"
        );
    }
    assert!(page.contains("**Way back:**"), "{id}: no way back");
}

const PARTS_OF_LAYOUT: [&str; 6] = [
    "What it means",
    "How it is seen",
    "What it costs",
    "What it does not mean",
    "How to mend it",
    "Where the method is from",
];

#[test]
fn each_rule_has_a_page_with_its_thresholds() {
    for (id, thresholds) in on_layouts() {
        // A rule on I/O of the same name has a line of its own.
        let is_shared = RULES.iter().any(|rule| rule.id == id);
        let start = if is_shared {
            "Threshold of the layout: "
        } else {
            "Threshold: "
        };
        check(id, start, &thresholds);
        assert_has_parts(id, &PARTS_OF_LAYOUT);
    }
}

#[test]
fn each_rule_on_io_has_a_page_with_its_thresholds() {
    for rule in RULES {
        check(rule.id, "Threshold: ", &(rule.thresholds)());
        let parts = [
            "What it costs",
            "What it does not mean",
            "How to mend it",
            "Where the method is from",
        ];
        assert_has_parts(rule.id, &parts);
        assert!(
            read(&format!("{}.md", rule.id)).contains("estimate"),
            "{}: a cost is an estimate",
            rule.id
        );
    }
}

#[test]
fn what_a_probe_finds_has_a_page() {
    check(MISALIGNED_TARGET, "Threshold: ", &[]);
    assert_has_parts(MISALIGNED_TARGET, &PARTS_OF_LAYOUT);
}

/// And no page is left of a rule that is gone.
#[test]
fn each_page_has_a_rule() {
    let of_io = RULES.iter().map(|rule| rule.id);
    let of_layouts = on_layouts().into_iter().map(|(id, _)| id);
    let ids: BTreeSet<&str> = of_io.chain(of_layouts).chain([MISALIGNED_TARGET]).collect();
    for entry in std::fs::read_dir(root()).expect("a readable folder") {
        let name = entry
            .expect("an entry")
            .file_name()
            .into_string()
            .expect("a plain name");
        let id = name.strip_suffix(".md").expect("a page");
        assert!(id == "README" || ids.contains(&id), "{name}: no such rule");
    }
}

/// An exit status follows from the name of a rule, which a rule on I/O and one on layouts may share.
#[test]
fn rules_of_one_name_decide_alike() {
    for rule in RULES {
        let of_layouts = layout::RULES.iter().filter(|other| other.id == rule.id);
        assert!(
            of_layouts
                .into_iter()
                .all(|other| other.decides == rule.decides),
            "{}",
            rule.id
        );
    }
    assert!(decides("misaligned-partition") && !decides("queue-setting"));
}
