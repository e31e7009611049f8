//! Exit statuses of `plumb analyze`: 2, 4, 5 before 1, 3, 0, and never 0 for input that was read only in part.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::common::{
    Folder, Ran, analyze, copy_program, msr, pages, paragraph, plumb, recorded, recorded_lines,
};
use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;

fn clean() -> String {
    msr(pages(1000, 0, 8192))
}

fn misaligned() -> String {
    msr(pages(1000, 512, 8192))
}

/// The paragraphs of a report above those of its devices.
fn verdict(ran: &Ran) -> String {
    let (verdict, _) = ran.out.split_once("\n\nDevice ").unwrap_or((&ran.out, ""));
    recorded(verdict)
}

/// 1 % off the grid: a note.
fn noted() -> String {
    msr([pages(9900, 0, 8192), pages(100, 512, 8192)].concat())
}

#[test]
fn clean_needs_a_grid() {
    let folder = Folder::new("exits");
    let file = folder.file("clean.csv", clean());
    let known = analyze(&file, "--grid 4k");
    let unknown = analyze(&file, "");
    let verdicts = [known.ends(0), unknown.ends(3)].map(verdict);
    insta::assert_snapshot!(verdicts.join("\n\n"));
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
    let refused = [
        "--no-such-flag",
        "--grid 4MB",
        "--grid 4k@8k",
        "--chunk 0",
        "--members 3",
        "--chunk 64k --members 1",
        "--range 5g-1g",
        "--range 0-1g --partition 1",
        "--op rewrite",
        "--layer disk",
        "--since yesterday",
        "--fail-on always",
        "--format no-such",
    ];
    let messages = refused.map(|flags| {
        let ran = analyze(&file, flags);
        assert_eq!(ran.code, 2, "{flags}: {}", ran.err);
        assert_eq!(ran.out, "", "{flags}: nothing on standard output");
        ran.complaint_without_lists()
    });
    insta::assert_snapshot!(messages.join("\n\n"));
    assert_eq!(plumb(["analyze"]).code, 2, "no file");
    assert_eq!(plumb::<&str>([]).code, 2, "no command");
}

#[test]
fn unknown() {
    let folder = Folder::new("exits");
    let file = folder.file("clean.csv", clean());
    let records = analyze(&file, "--grid 4k --record 128k");
    let discards = analyze(&file, "--grid 4k --op discard");
    let unjudged = paragraph(&records.ends(3).out, "Unknown");
    let partition = analyze(&file, "--grid 4k --partition 1");
    let device = analyze(&file, "--grid 4k --device sdz");
    let texts = [
        recorded_lines(&recorded(unjudged), &["record-mismatch"]),
        verdict(discards.ends(3)),
        partition.ends(3).complaint(),
        device.ends(5).complaint(),
    ];
    insta::assert_snapshot!(texts.join("\n\n"));
    analyze(&folder.file("few.csv", msr(pages(50, 512, 8192))), "")
        .ends(3)
        .says("50 I/O seen, 200 needed");
}

#[test]
fn nothing_readable() {
    let folder = Folder::new("exits");
    let absent = analyze(&folder.path("absent"), "");
    let (one, two) = (folder.file("one", "nonsense"), folder.file("two", ""));
    let ran = plumb([Path::new("analyze"), &one, &two]);
    let messages = [absent, ran].map(|ran| ran.ends(5).complaint_without_lists());
    insta::assert_snapshot!(messages.join("\n\n"));
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
    ran.ends(3).says("not read:");
    let other = plumb([Path::new("analyze"), &bad, &misaligned, grid]);
    let texts = [
        verdict(&ran),
        ran.complaint_without_lists(),
        other.ends(1).complaint_without_lists(),
    ];
    insta::assert_snapshot!(texts.join("\n\n"));
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
    let of_profile = analyze(&saved, "--op read");
    insta::assert_snapshot!(of_profile.ends(2).complaint());
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
    // The byte depends on the library that packs.
    let notes = |ran: &Ran| {
        let source = recorded(paragraph(&ran.out, "Source"));
        let (_, notes) = source.split_once("note: ").expect("notes");
        notes.split(" at byte ").next().expect("text").to_owned()
    };
    let cut_short = notes(ran.ends(3));
    let mut lines: Vec<String> = clean().lines().map(str::to_owned).collect();
    lines[499] = lines[499].replace(",Read,", ",Raed,");
    let line = analyze(&folder.file("line.csv", lines.join("\n")), "--grid 4k");
    line.ends(3).says("line 500").says("Raed");
    // An input that is known to be incomplete stays so in the profile.
    let saved = folder.path("saved");
    analyze(&cut, &format!("--grid 4k --save {}", saved.display())).ends(3);
    let again = analyze(&saved, "--grid 4k");
    let texts = [cut_short, verdict(&line), notes(again.ends(3))];
    insta::assert_snapshot!(texts.join("\n\n"));
    analyze(&saved, "--grid 4k --fail-on none").ends(3);
}

/// The file may not be read by the user that the program runs as.
/// The shift that aligns all I/O is advised with the file that was read. Once it was asked, its answer comes first.
#[test]
fn the_next_command_is_complete() {
    let folder = Folder::new("exits");
    let file = folder.file("warning.csv", misaligned());
    // 512 bytes past a block of 4 KiB: 7 sectors are missing to the next.
    let advice = |flags: &str| {
        let ran = analyze(&file, flags);
        recorded_lines(&ran.ends(1).out, &["plumb analyze "])
    };
    let first = advice("--grid 4k");
    let ran = analyze(&file, "--grid 4k --shift +7s");
    let answer = recorded_lines(&ran.ends(1).out, &[" would start "]);
    assert!(
        !ran.out.contains("--shift +7s"),
        "advised again:\n{}",
        ran.out
    );
    let answered = ran.out.find("What if:").expect("the answer");
    let finding = ran.out.find("WARNING").expect("the finding");
    assert!(answered < finding, "{}", ran.out);
    // Another shift is no answer to that.
    let other = advice("--grid 4k --shift +1s");
    insta::assert_snapshot!([first, answer, other].join("\n"));
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
    let lines = piped.ends(2).complains("d11 and d12 overlap").err.lines();
    assert_eq!(lines.count(), 1);
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
    let refused = [
        "--reads 0 --writes 0 --disk-rate 80",
        "--writes 0",
        "--reads 80 --disk-rate 0",
        "--reads 1e-9 --disk-rate 80",
    ];
    let messages = refused.map(|flags| check(flags).ends(2).complaint());
    // All of the time of the only disk: the queue grows without end, with or without a demand for a response time.
    check("--reads 80 --disk-rate 80")
        .ends(1)
        .says("WARNING too-few-disks");
    let out = folder.path("out.tar.zst").display().to_string();
    let of_collections = ["--grid 4k", "--page 8k", "--disk-rate 80"].map(|flags| {
        let ran = plumb(
            ["check", "--collect", &out]
                .into_iter()
                .chain(flags.split_whitespace()),
        );
        ran.ends(2).complaint()
    });
    let messages = [messages.as_slice(), &of_collections].concat();
    insta::assert_snapshot!(messages.join("\n\n"));
    assert!(!folder.path("out.tar.zst").exists());
}
