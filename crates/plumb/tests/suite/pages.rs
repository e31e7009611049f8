//! The pages in `docs/` say what the code does: every rule and every format has its place, thresholds are those of
//! the constants, and links lead somewhere.

use std::path::{Path, PathBuf};

use plumb_diagnose::rules::{
    IOS_MIN, RULES, SHARE_MIN, SHARE_WARNING, looks_sequential, member_skew, small_random_writes,
    throughput_inflation,
};
use plumb_trace::format::FORMATS;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// What the `Threshold:` line of a rule has to hold.
fn thresholds(rule: &str) -> Vec<String> {
    let percent = |share: f64| format!("{} %", share * 100.0);
    let share = [
        format!("at least {IOS_MIN} I/O"),
        format!(
            "lower end of the 95 % interval above {}",
            percent(SHARE_MIN)
        ),
    ];
    let with = |more: &[String]| [&share, more].concat();
    let warning = format!("warning from {}", percent(SHARE_WARNING));
    match rule {
        "looks-sequential" => with(&[
            format!(
                "requests of {} KiB or more",
                looks_sequential::LARGE_BYTES_MIN >> 10
            ),
            format!("less than {} MiB", looks_sequential::HUGE_BYTES_MIN >> 20),
        ]),
        "small-random-writes" => with(&[format!(
            "writes of at most {} KiB",
            small_random_writes::SMALL_BYTES_MAX >> 10
        )]),
        "member-skew" => vec![
            format!("at least {IOS_MIN} I/O"),
            format!("{} pieces a member", member_skew::PIECES_PER_MEMBER_MIN),
            format!(
                "more than {} points above the even part",
                member_skew::EXCESS_MIN * 100.0
            ),
        ],
        "throughput-inflation" => vec![
            format!("at least {IOS_MIN} calls"),
            format!(
                "{} bytes at the device for each byte asked",
                throughput_inflation::RATIO_MIN
            ),
            format!(
                "{} MiB too many",
                throughput_inflation::EXCESS_BYTES_MIN >> 20
            ),
            format!("warning from {}", throughput_inflation::RATIO_WARNING),
        ],
        _ => with(&[warning]),
    }
}

#[test]
fn each_rule_has_a_page_with_its_thresholds() {
    let index = read("docs/findings/README.md");
    for rule in RULES {
        let page = read(&format!("docs/findings/{}.md", rule.id));
        assert!(
            page.starts_with(&format!("# {}\n", rule.id)),
            "{}: another heading",
            rule.id
        );
        assert!(
            index.contains(&format!("({}.md)", rule.id)),
            "{} is not in the index",
            rule.id
        );
        let line = page.lines().find(|line| line.starts_with("Threshold: "));
        let line = line.unwrap_or_else(|| panic!("{}: no line `Threshold: …`", rule.id));
        for expected in thresholds(rule.id) {
            assert!(
                line.contains(&expected),
                "{}: found `{line}`, expected `{expected}`",
                rule.id
            );
        }
        for part in [
            "What it costs",
            "What it does not mean",
            "How to mend it",
            "Where the method is from",
        ] {
            assert!(
                page.contains(&format!("## {part}\n")),
                "{}: no part `{part}`",
                rule.id
            );
        }
        for word in ["estimate", "**Way back:**"] {
            assert!(page.contains(word), "{}: nothing on `{word}`", rule.id);
        }
    }
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
    for target in plumb_trace::write::Target::ALL {
        assert!(
            table.contains(&format!("`{}`", target.name())),
            "{} is written and not listed",
            target.name()
        );
    }
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
    pages.extend(["docs/findings", "docs/formats"].map(PathBuf::from));
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
