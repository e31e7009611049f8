//! Moves on disks that fail under them, in a guest: dm-delay, dm-error and dm-flakey. See `lab/fault-guest`. Each move is gone on
//! with, goes back, or names its loss; every byte of the partition is compared.

use plumb_testkit::require;

/// The guest's output for these cases, without the lines of `plumb`.
fn told(cases: &[&str]) -> Vec<String> {
    let said = super::run_lab(
        "fault-guest",
        [env!("CARGO_BIN_EXE_plumb")].iter().chain(cases),
    );
    let lines = said.lines().filter_map(|line| line.strip_prefix("GUEST: "));
    let lines: Vec<String> = lines.map(str::to_owned).collect();
    assert_eq!(lines.last().map(String::as_str), Some("done"), "{said}");
    lines
}

/// The lines of one case, without its name.
fn of_case<'a>(lines: &'a [String], case: &str) -> Vec<&'a str> {
    let lines = lines.iter();
    let own = lines.filter_map(|line| line.strip_prefix(case)?.strip_prefix(' '));
    own.collect()
}

/// The outcome of a fault, for any content of the partition.
fn assert_outcome(lines: &[String], content: &str, fault: &str) {
    let case = format!("{content}:{fault}");
    let found = of_case(lines, &case);
    let expected: &[&str] = match fault {
        "delay" => &["stopped 6", "resume 0", "whole"],
        // It cannot be read, and then it is named. Zeros replace it, which may equal the old content.
        "error" => {
            let last = found.last().copied();
            assert!(
                last == Some("named") || last == Some("whole"),
                "{case}: {lines:?}"
            );
            assert_eq!(
                found[..found.len() - 1],
                ["stopped 6", "resume 6", "accepted 7"],
                "{case}: {lines:?}"
            );
            return;
        }
        "error-both" => &["stopped 6", "resume 6", "rollback 0", "whole"],
        "error-writes" | "label" => &["stopped 6", "resume 6", "healed 0", "whole"],
        "drop-writes" => &["stopped 6", "resume 6", "back 0", "whole"],
        // How far it is in that moment is left to chance; that no byte is wrong is not.
        _ => {
            assert_eq!(found.first(), Some(&"stopped 6"), "{case}: {lines:?}");
            let last = found.last();
            assert!(
                last == Some(&"whole") || last == Some(&"named"),
                "{case}: {lines:?}"
            );
            return;
        }
    };
    assert_eq!(found, expected, "{case}: {lines:?}");
}

#[test]
fn moves_on_failing_disks() {
    require!(Qemu, Tool("apt-get"));
    let cases = [
        ("ext4", "error"),
        ("ext4", "label"),
        ("ext4", "drop-writes"),
        ("xfs", "error-writes"),
        ("lvm", "delay"),
    ];
    let names = cases.map(|(content, fault)| format!("{content}:{fault}"));
    let lines = told(&names.each_ref().map(String::as_str));
    for (content, fault) in cases {
        assert_outcome(&lines, content, fault);
    }
}

/// `make soak`.
#[test]
#[ignore = "minutes: run by make soak"]
fn every_content_on_every_failing_disk() {
    require!(Qemu, Tool("apt-get"));
    let lines = told(&[]);
    for content in ["ext4", "xfs", "lvm"] {
        for fault in [
            "delay",
            "error",
            "error-both",
            "label",
            "error-writes",
            "drop-writes",
            "drop-some",
        ] {
            assert_outcome(&lines, content, fault);
        }
    }
}
