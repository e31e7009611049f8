//! Exit statuses of `plumb analyze`: 2, 4, 5 before 1, 3, 0, and never 0 for input that was read only in part.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::common::{Folder, analyze, copy_program, msr, pages, plumb};
use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;

fn clean() -> String {
    msr(pages(1000, 0, 8192))
}

fn misaligned() -> String {
    msr(pages(1000, 512, 8192))
}

/// 1 % off the grid: a note.
fn noted() -> String {
    msr([pages(9900, 0, 8192), pages(100, 512, 8192)].concat())
}

#[test]
fn clean_needs_a_grid() {
    let folder = Folder::new("exits");
    let file = folder.file("clean.csv", clean());
    analyze(&file, "--grid 4k")
        .ends(0)
        .says("no finding in 1,000 I/O");
    analyze(&file, "")
        .ends(3)
        .says("unknown beyond 4 KiB, since no grid is known: pass one with --grid");
}

#[test]
fn severities_and_fail_on() {
    let folder = Folder::new("exits");
    let warning = folder.file("warning.csv", misaligned());
    let note = folder.file("note.csv", noted());
    analyze(&warning, "")
        .ends(1)
        .says("WARNING misaligned-io")
        .says("1,000 of 1,000 (100 %)");
    analyze(&note, "")
        .ends(0)
        .says("NOTE misaligned-io")
        .says("100 of 10,000 (1.0 %)");
    for (fail_on, of_warning, of_note) in [
        ("note", 1, 1),
        ("warning", 1, 0),
        ("critical", 0, 0),
        ("none", 0, 0),
    ] {
        analyze(&warning, &format!("--fail-on {fail_on}")).ends(of_warning);
        analyze(&note, &format!("--fail-on {fail_on}")).ends(of_note);
    }
}

#[test]
fn usage() {
    let folder = Folder::new("exits");
    let file = folder.file("clean.csv", clean());
    for (flags, words) in [
        ("--no-such-flag", "unexpected argument '--no-such-flag'"),
        ("--grid 4MB", "4MB"),
        ("--grid 4k@8k", "not below its granularity"),
        ("--chunk 0", "expected at least 512 bytes"),
        ("--members 3", "--chunk"),
        ("--chunk 64k --members 1", "1 is not in 2..=4096"),
        ("--range 5g-1g", "5g-1g"),
        ("--range 0-1g --partition 1", "cannot be used with"),
        ("--op rewrite", "expected read, write, discard"),
        ("--layer disk", "expected vfs, bio or request"),
        ("--since yesterday", "expected a duration"),
        ("--fail-on always", "invalid value 'always'"),
        ("--format no-such", "no-such"),
    ] {
        let ran = analyze(&file, flags);
        assert_eq!(ran.code, 2, "{flags}: {}", ran.err);
        ran.complains(words);
        assert_eq!(ran.out, "", "{flags}: nothing on standard output");
    }
    assert_eq!(plumb(["analyze"]).code, 2, "no file");
    assert_eq!(plumb::<&str>([]).code, 2, "no command");
}

#[test]
fn unknown() {
    let folder = Folder::new("exits");
    let file = folder.file("clean.csv", clean());
    analyze(&file, "--grid 4k --record 128k").ends(3).says(
        "record-mismatch: records are decided above the request layer: this needs a trace of the vfs layer",
    );
    analyze(&file, "--grid 4k --partition 1")
        .ends(3)
        .complains("does not reveal a partition 1")
        .complains("--range");
    analyze(&file, "--grid 4k --device sdz")
        .ends(5)
        .complains("no device `sdz`")
        .complains("these are: host_0");
    analyze(&file, "--grid 4k --op discard")
        .ends(3)
        .says("no finding in 0 I/O");
    analyze(&folder.file("few.csv", msr(pages(50, 512, 8192))), "")
        .ends(3)
        .says("50 I/O seen, 200 needed");
}

#[test]
fn nothing_readable() {
    let folder = Folder::new("exits");
    analyze(&folder.path("absent"), "")
        .ends(5)
        .complains("cannot open")
        .complains("No such file");
    let (one, two) = (folder.file("one", "nonsense"), folder.file("two", ""));
    let ran = plumb([Path::new("analyze"), &one, &two]);
    ran.ends(5)
        .complains("one has no known trace format")
        .complains("two is empty");
}

#[test]
fn one_bad_file_among_several_is_a_warning_and_never_0() {
    let folder = Folder::new("exits");
    let (clean, bad) = (
        folder.file("clean.csv", clean()),
        folder.file("bad", "nonsense"),
    );
    let misaligned = folder.file("misaligned.csv", misaligned());
    let grid = Path::new("--grid=4k");
    let ran = plumb([Path::new("analyze"), &bad, &clean, grid]);
    ran.ends(3)
        .complains("bad has no known trace format")
        .says("no finding in 1,000 I/O")
        .says("not read:");
    plumb([Path::new("analyze"), &bad, &misaligned, grid])
        .ends(1)
        .complains("bad has no known trace format");
    // Nor for those who want no finding to count.
    plumb([
        Path::new("analyze"),
        &bad,
        &misaligned,
        Path::new("--fail-on=none"),
    ])
    .ends(3);
}

#[test]
fn a_wrong_question_goes_before_its_findings() {
    let folder = Folder::new("exits");
    let file = folder.file("misaligned.csv", misaligned());
    let saved = folder.path("saved");
    analyze(&file, &format!("--save {}", saved.display())).ends(1);
    analyze(&saved, "--op read")
        .ends(2)
        .complains("is a saved profile: --op, --partition, --range, --since");
    plumb([Path::new("analyze"), &saved, &file, Path::new("--op=read")])
        .ends(2)
        .says("misaligned-io");
}

#[test]
fn input_read_in_part_is_never_0() {
    let folder = Folder::new("exits");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(clean().as_bytes()).expect("packs");
    let packed = packed.finish().expect("packs");
    let whole = folder.file("whole.gz", &packed);
    analyze(&whole, "--grid 4k").ends(0);
    let cut = folder.file("cut.gz", &packed[..packed.len() / 2]);
    let ran = analyze(&cut, "--grid 4k");
    ran.ends(3)
        .says("1 place could not be understood")
        .says("reading stopped early");
    let mut lines: Vec<String> = clean().lines().map(str::to_owned).collect();
    lines[499] = lines[499].replace(",Read,", ",Raed,");
    let line = analyze(&folder.file("line.csv", lines.join("\n")), "--grid 4k");
    line.ends(3)
        .says("no finding in 999 I/O")
        .says("line 500")
        .says("Raed");
    // An input that is known to be incomplete stays so in the profile.
    let saved = folder.path("saved");
    analyze(&cut, &format!("--grid 4k --save {}", saved.display())).ends(3);
    analyze(&saved, "--grid 4k")
        .ends(3)
        .says("reading stopped early");
    analyze(&saved, "--grid 4k --fail-on none").ends(3);
}

/// The file may not be read by the user that the program runs as.
/// The shift that aligns all I/O is advised with the file that was read. Once it was asked, its answer comes first.
#[test]
fn the_next_command_is_complete() {
    let folder = Folder::new("exits");
    let file = folder.file("warning.csv", misaligned());
    let path = file.display();
    // 512 bytes past a block of 4 KiB: 7 sectors are missing to the next.
    analyze(&file, "--grid 4k")
        .ends(1)
        .says(&format!("plumb analyze {path} --grid 4k --shift +7s"));
    let ran = analyze(&file, "--grid 4k --shift +7s");
    ran.ends(1).says("0 of 1,000 I/O would start off it (0 %)");
    assert!(
        !ran.out.contains("--shift +7s"),
        "advised again:\n{}",
        ran.out
    );
    let answer = ran.out.find("What if:").expect("the answer");
    let finding = ran.out.find("WARNING").expect("the finding");
    assert!(answer < finding, "{}", ran.out);
    // Another shift is no answer to that.
    analyze(&file, "--grid 4k --shift +1s")
        .says(&format!("plumb analyze {path} --grid 4k --shift +7s"));
}

#[test]
fn not_permitted() {
    require!(Root, Tool("setpriv"));
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("exits");
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            .expect("sets permissions");
    };
    open(folder.path("").as_path(), 0o755);
    let program = folder.path("plumb");
    copy_program(&program);
    open(&program, 0o755);
    let (secret, bad) = (
        folder.file("secret.csv", clean()),
        folder.file("bad", "nonsense"),
    );
    let good = folder.file("good.csv", clean());
    open(&secret, 0o600);
    open(&bad, 0o644);
    open(&good, 0o644);
    let run = |files: &[&Path]| {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .args(["analyze", "--grid=4k"]);
        let done = command.args(files).limited_output();
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        )
    };
    let (code, err) = run(&[&secret]);
    assert_eq!(code, Some(4), "{err}");
    assert!(
        err.contains("secret.csv") && err.contains("CAP_DAC_READ_SEARCH"),
        "{err}"
    );
    // The graver goes first, in whichever order they come.
    assert_eq!(run(&[&secret, &bad]).0, Some(4));
    assert_eq!(run(&[&bad, &secret]).0, Some(4));
    assert_eq!(
        run(&[&secret, &good]).0,
        Some(3),
        "one of several is a warning"
    );
}

/// Failures, on a terminal and for a script.
#[test]
fn errors_fit_where_they_are_read() {
    require!(Tool("script"), Tool("stty"));
    let args = "plan softpart d10 --unit 256k --existing d11:512s:1g --existing d12:600s:1g";
    let piped = plumb(args.split_whitespace());
    assert_eq!(
        piped
            .ends(2)
            .complains("d11 and d12 overlap")
            .err
            .lines()
            .count(),
        1
    );
    let command = format!("stty cols 60; '{}' {args}", env!("CARGO_BIN_EXE_plumb"));
    let mut script = Command::new("script");
    let done = script
        .args(["-qec", &command, "/dev/null"])
        .stdin(std::process::Stdio::null())
        .output();
    let shown = String::from_utf8(done.expect("script runs").stdout).expect("text");
    let lines: Vec<&str> = shown
        .lines()
        .map(|line| line.trim_end_matches('\r'))
        .collect();
    assert!(
        lines.len() > 1 && lines.iter().all(|line| line.chars().count() <= 60),
        "{shown}"
    );
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(flat(&shown), flat(&piped.err));
}

/// Rates that ask for nothing, and flags that a collection has no use for.
#[test]
fn a_check_is_asked_something() {
    let folder = Folder::new("exits-check");
    let dump = folder.file(
        "lsblk.json",
        r#"{"blockdevices": [{"name": "sda", "kname": "sda", "type": "disk", "size": 1073741824, "phy-sec": 512,
         "log-sec": 512}]}"#,
    );
    let check = |flags: &str| {
        let from = dump.display().to_string();
        plumb(
            ["check", "sda", "--from", &from]
                .into_iter()
                .chain(flags.split_whitespace()),
        )
    };
    let nothing = "found 0 I/O a second, expected a rate above 0";
    check("--reads 0 --writes 0 --disk-rate 80")
        .ends(2)
        .complains(nothing);
    check("--writes 0").ends(2).complains(nothing);
    check("--reads 80 --disk-rate 0")
        .ends(2)
        .complains("found `0`, expected a rate a second");
    check("--reads 1e-9 --disk-rate 80")
        .ends(2)
        .complains("found `1e-9`");
    // All of the time of the only disk: the queue grows without end, with or without a demand for a response time.
    check("--reads 80 --disk-rate 80")
        .ends(1)
        .says("WARNING too-few-disks");
    let out = folder.path("out.tar.zst").display().to_string();
    for flags in ["--grid 4k", "--page 8k", "--disk-rate 80"] {
        let ran = plumb(
            ["check", "--collect", &out]
                .into_iter()
                .chain(flags.split_whitespace()),
        );
        ran.ends(2).complains("cannot be used with");
    }
    assert!(!folder.path("out.tar.zst").exists());
}
