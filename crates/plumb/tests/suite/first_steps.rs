//! The first steps of a new user: install, ask for a diagnosis, and read about a finding.

use std::path::Path;
use std::process::Command;

use plumb_model::rule::RULES;

use crate::common::{Folder, plumb};

fn install(args: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install");
    let mut command = Command::new(script);
    command.args(args).env_remove("DESTDIR");
    // The host of the tests may have a journal.
    command.env("PLUMB_FORCE_REMOVE", "1");
    let done = plumb_testkit::wait::output_of(&mut command);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    String::from_utf8(done.stdout).expect("text")
}

#[test]
fn an_installation_runs_and_uninstalls() {
    let folder = Folder::new("install");
    let root = folder.path("usr").display().to_string();
    install(&[env!("CARGO_BIN_EXE_plumb"), &root]);
    let binary = folder.path("usr/bin/plumb");
    let version = Command::new(&binary).arg("--version").output();
    let version = String::from_utf8(version.expect("it runs").stdout).expect("text");
    assert_eq!(version, format!("plumb {}\n", env!("CARGO_PKG_VERSION")));
    let installed = [
        "share/man/man1/plumb.1",
        "share/man/man1/plumb-explain.1",
        "share/bash-completion/completions/plumb",
        "share/zsh/site-functions/_plumb",
        "share/fish/vendor_completions.d/plumb.fish",
    ];
    let in_root = |name: &&str| Path::new(&root).join(name);
    assert!(installed.iter().all(|name| in_root(name).is_file()));
    install(&["--remove", &root]);
    assert!(!binary.exists());
    assert!(!installed.iter().any(|name| in_root(name).exists()));
}

/// Every finding names this command.
#[test]
fn each_finding_is_explained() {
    for rule in RULES {
        let ran = plumb(["explain", rule.name]);
        ran.ends(0).says(rule.title);
        assert!(
            !ran.out.contains("](") && !ran.out.contains("```"),
            "{}",
            ran.out
        );
    }
    let index = plumb(["explain"]);
    index.ends(0);
    assert!(RULES.iter().all(|rule| index.out.contains(rule.name)));
    plumb(["explain", "no-such-finding"])
        .ends(2)
        .complains("misaligned-partition");
}

/// The verdict is the first line, its word follows the exit status, and the document has the same sentence.
#[test]
fn the_verdict_of_a_dump() {
    let folder = Folder::new("verdict");
    let label = |start: u64| {
        format!(
            "* /dev/dsk/c2t0d0 partition map\n*\n* Dimensions:\n*     512 bytes/sector\n* 4294967296 sectors\n\
             * 4294967229 accessible sectors\n*\n*                          First     Sector    Last\n\
             * Partition  Tag  Flags    Sector     Count    Sector  Mount Directory\n       0      2    00  {start:>9}   4294942720 {:>9}\n",
            start + 4_294_942_720 - 1
        )
    };
    for (start, grid, status, word) in [
        (34, "4k", 1, "MISFIT: "),
        (256, "8k", 0, "OK: "),
        (34, "1k", 0, "OK: "),
    ] {
        let file = folder.file("label.txt", label(start));
        let file = file.to_str().expect("a path");
        let ran = plumb(["check", "--grid", grid, "--from", file]);
        ran.ends(status);
        assert!(ran.out.starts_with(word), "{}", ran.out);
        let document = plumb(["check", "--grid", grid, "--json", "--from", file]).json();
        let verdict = &document["verdict"];
        assert_eq!(verdict["word"], word.trim_end_matches(": "));
        let sentence = verdict["sentence"].as_str().expect("a sentence");
        ran.says(sentence);
    }
    let file = folder.file("label.txt", label(256));
    let ran = plumb(["check", "--from", file.to_str().expect("a path")]);
    ran.ends(3);
    assert!(ran.out.starts_with("UNKNOWN: "), "{}", ran.out);
}
