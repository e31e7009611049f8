//! Each rule has a page with its thresholds and a line in the index, and each page has a rule.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plumb_diagnose::layout::problems;
use plumb_diagnose::{RULES, RuleId, course, layout};
use plumb_model::RULES as REGISTRY;
use plumb_stack::ProblemId;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings")
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Problems that readers notice.
const PROBLEMS: [ProblemId; 10] = [
    ProblemId::BrokenLabel,
    ProblemId::StrandedBackupLabel,
    ProblemId::OverlappingPartitions,
    ProblemId::UnfinishedMove,
    ProblemId::SectorSizeMismatch,
    ProblemId::HiddenSectors,
    ProblemId::BrokenSuperblock,
    ProblemId::AshiftBelowBlock,
    ProblemId::BeyondDevice,
    ProblemId::Contradiction,
];

/// Rules on layouts with their thresholds; a problem has its severity.
fn on_layouts() -> Vec<(&'static str, Vec<String>)> {
    let thresholds = |judge: &layout::LayoutRule| {
        let problem = PROBLEMS
            .into_iter()
            .find(|id| RuleId::from(*id) == judge.id);
        match problem {
            Some(id) => vec![format!("always a {}", problems::severity(id).word())],
            None => (judge.thresholds)(),
        }
    };
    layout::RULES
        .iter()
        .map(|judge| (judge.id.name(), thresholds(judge)))
        .collect()
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
    "Why it matters",
    "How Plumb finds it",
    "Cost",
    "When to ignore it",
    "How to fix it",
    "Sources",
];

#[test]
fn each_rule_has_a_page_with_its_thresholds() {
    for (id, thresholds) in on_layouts() {
        // A rule on I/O of the same name has a line of its own.
        let is_shared = RULES.iter().any(|rule| rule.id.name() == id);
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
    let on_ios = RULES.iter().map(|rule| (rule.id, rule.thresholds));
    let over_time = course::RULES.iter().map(|rule| (rule.id, rule.thresholds));
    for (id, thresholds) in on_ios.chain(over_time) {
        check(id.name(), "Threshold: ", &thresholds());
        let parts = ["Cost", "When to ignore it", "How to fix it", "Sources"];
        assert_has_parts(id.name(), &parts);
        assert!(
            read(&format!("{}.md", id.name())).contains("estimate"),
            "{}: a cost is an estimate",
            id
        );
    }
}

#[test]
fn findings_of_a_probe_have_a_page() {
    check(RuleId::MisalignedTarget.name(), "Threshold: ", &[]);
    assert_has_parts(RuleId::MisalignedTarget.name(), &PARTS_OF_LAYOUT);
}

/// And no page is left of a rule that is gone.
#[test]
fn each_page_has_a_rule() {
    let ids: BTreeSet<&str> = REGISTRY.iter().map(|rule| rule.name).collect();
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

/// The tests of a rule are in the module of its name. A probe makes `misaligned-target` from its verdict, and has its own tests.
#[test]
fn each_rule_has_a_module_of_tests() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/rules");
    for rule in REGISTRY
        .iter()
        .filter(|rule| rule.id != RuleId::MisalignedTarget)
    {
        let file = tests.join(format!("{}.rs", rule.name.replace('-', "_")));
        let source = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(source.contains("#[test]"), "{}: no test", file.display());
    }
}

/// Each rule of the registry is judged somewhere, and each judge is of another rule or of other input.
#[test]
fn each_rule_is_judged() {
    for rule in REGISTRY
        .iter()
        .filter(|rule| rule.id != RuleId::MisalignedTarget)
    {
        let on_io = RULES.iter().filter(|judge| judge.id == rule.id).count();
        let on_layouts = layout::RULES
            .iter()
            .filter(|judge| judge.id == rule.id)
            .count();
        let over_time = course::RULES
            .iter()
            .filter(|judge| judge.id == rule.id)
            .count();
        assert!(
            on_io <= 1 && on_layouts <= 1 && over_time <= 1,
            "{}",
            rule.name
        );
        assert!(
            on_io + on_layouts + over_time > 0,
            "{} is never judged",
            rule.name
        );
    }
    let decides = |id: RuleId| id.rule().decides;
    assert!(decides(RuleId::MisalignedPartition) && !decides(RuleId::QueueSetting));
}
