//! The pages in `docs/` are those of the code: every format has its place, and links lead somewhere. Pages of rules are tested
//! beside the rules.

use std::path::{Path, PathBuf};
use std::process::Command;

use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;
use plumb_trace::format::FORMATS;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// The table is generated; the words in it are the format's own.
#[test]
fn each_format_has_a_line() {
    let table = read("docs/formats/README.md");
    for format in FORMATS {
        let start = format!("| `{}` |", format.name);
        assert!(
            table.lines().any(|line| line.starts_with(&start)),
            "{} has no line in docs/formats/README.md",
            format.name
        );
        assert!(
            format.verified || format.about.verified_by.contains("**unverified**"),
            "{}: not said to be unverified",
            format.name
        );
    }
    for target in plumb_trace::write::OutputFormat::ALL {
        assert!(
            table.contains(&format!("`{}`", target.name())),
            "{} is written and not listed",
            target.name()
        );
    }
}

/// `scripts/test` runs the checker itself on the documents.
#[test]
fn the_checker_of_english_finds_its_examples() {
    require!(Tool("python3"));
    let checked = Command::new(root().join("scripts/prose"))
        .arg("--self-test")
        .limited_output();
    let printed = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{printed}");
}

/// Targets of the links in a page that are files of the repository.
fn links(page: &str) -> impl Iterator<Item = &str> {
    let behind_brackets = page.split("](").skip(1);
    let targets = behind_brackets.filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://"))
}

#[test]
fn links_lead_somewhere() {
    let mut pages = vec![
        PathBuf::new(),
        PathBuf::from("docs"),
        PathBuf::from("examples"),
    ];
    pages.extend(["docs/findings", "docs/formats", "docs/jobs"].map(PathBuf::from));
    let mut followed = 0;
    for folder in pages {
        for entry in std::fs::read_dir(root().join(&folder)).expect("a readable folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let page = std::fs::read_to_string(&path).expect("a readable page");
            for link in links(&page) {
                let target = path.parent().expect("a page is in a folder").join(link);
                assert!(target.exists(), "{}: {link} leads nowhere", path.display());
                followed += 1;
            }
        }
    }
    assert!(followed > 20, "only {followed} links found");
}
