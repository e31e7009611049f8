//! A missing file or device ends every command with 5, and a wrong flag with 2.

use crate::common::{Folder, msr, pages, plumb};
use plumb_testkit::require;

/// Command lines that name something that is not there, each with a part of the error.
const FILES: [(&str, &str); 22] = [
    ("analyze /no/such/file", "/no/such/file"),
    ("check --from /no/such/file", "/no/such/file"),
    ("check --profile /no/such/file", "/no/such/file"),
    ("check --known /no/such/file", "/no/such/file"),
    ("check --config /no/such/file", "/no/such/file"),
    ("check --root /no/such/directory", "/no/such/directory"),
    ("check --image /no/such/file", "/no/such/file"),
    ("compare /no/such/file /no/such/other", "/no/such/file"),
    ("convert /no/such/file out.csv", "/no/such/file"),
    ("diagnose --for 0 --known /no/such/file", "/no/such/file"),
    ("plan partition sda1 --from /no/such/file", "/no/such/file"),
    ("plan softpart d0 --from /no/such/file", "/no/such/file"),
    (
        "plan record tank/db --profile /no/such/file",
        "/no/such/file",
    ),
    ("bench --vdbench /no/such/file", "/no/such/file"),
    ("bench --fio /no/such/file", "/no/such/file"),
    ("fix plan /no/such/file", "/no/such/file"),
    ("fix undo /no/such/file", "/no/such/file"),
    ("fix resume /no/such/file", "/no/such/file"),
    ("fix rollback /no/such/file", "/no/such/file"),
    ("replay /no/such/file /no/such/target", "/no/such/target"),
    (
        "agent --check-config --config /no/such/file",
        "/no/such/file",
    ),
    (
        "history list --state-dir /no/such/directory",
        "/no/such/directory",
    ),
];

const DEVICES: [(&str, &str); 11] = [
    ("check no-such-device", "no-such-device"),
    ("check /dev/no-such-device", "/dev/no-such-device"),
    ("diagnose --for 0 no-such-device", "no-such-device"),
    ("probe /dev/no-such-device", "/dev/no-such-device"),
    ("bench /dev/no-such-device", "/dev/no-such-device"),
    (
        "fix backup-label /dev/no-such-device",
        "/dev/no-such-device",
    ),
    (
        "fix move /dev/no-such-device --to 2048s",
        "/dev/no-such-device",
    ),
    ("fix status /dev/no-such-device", "/dev/no-such-device"),
    (
        "fix relabel /dev/no-such-device --start 2048s",
        "/dev/no-such-device",
    ),
    ("watch no-such-device", "no-such-device"),
    ("record no-such-device -o x.parquet", "no-such-device"),
];

fn all(lines: &[(&str, &str)]) {
    for (line, named) in lines {
        let ran = plumb(line.split_whitespace());
        assert_eq!(ran.code, 5, "{line}: {}{}", ran.out, ran.err);
        ran.complains(named);
        assert!(ran.err.starts_with("plumb: "), "{line}: {}", ran.err);
    }
}

#[test]
fn files() {
    all(&FILES);
}

#[test]
fn devices() {
    require!(Root, Bpf);
    all(&DEVICES);
}

/// A device that no trace has, and one that dumps do not show.
#[test]
fn devices_of_files() {
    let folder = Folder::new("missing");
    let trace = folder.file("t.csv", msr(pages(1000, 0, 8192)));
    let path = trace.to_str().expect("a plain path");
    insta::assert_snapshot!(
        plumb(["analyze", path, "--device", "sdz"])
            .ends(5)
            .complaint()
    );
}
