//! Invalid input: the message has the position, the text found and the text expected.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use plumb_testkit::wait;

use crate::common::{Folder, analyze, analyze_input, msr, pages};

#[test]
fn nothing_to_read() {
    let folder = Folder::new("inputs");
    let mut messages = vec![analyze(&folder.file("empty", ""), "").ends(5).complaint()];
    std::fs::create_dir(folder.path("folder")).expect("makes a folder");
    messages.push(analyze(&folder.path("folder"), "").ends(5).complaint());
    messages.push(analyze_input(b"", "").ends(5).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn bytes_without_meaning() {
    let folder = Folder::new("inputs");
    let mut messages = Vec::new();
    for seed in 0..20 {
        let mut random = plumb_testkit::Rng::new(seed);
        let bytes: Vec<u8> = (0..50_000).map(|_| random.next_u64() as u8).collect();
        let ran = analyze(&folder.file("random", &bytes), "");
        let said = ran.ends(5).complaint_without_lists();
        let (found, expected) = said.split_once(" … ").expect("bytes");
        let shown = bytes.iter().take(16).map(|byte| format!("{byte:02x} "));
        let shown = shown.collect::<String>();
        let named = found
            .strip_suffix(shown.trim_end())
            .expect("the first bytes");
        messages.push(format!("{named}BYTES … {expected}"));
    }
    messages.dedup();
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// One endless line: an error soon, and no memory for it.
#[test]
fn an_endless_line() {
    let begun = Instant::now();
    for head in [
        "",
        "fio version 3 iolog\n",
        "# plumb-residue 1 unit=512 modulus=2048\n",
        "1,2,",
    ] {
        let (sent, code, said) = endless(head.as_bytes(), 10_240);
        assert_eq!(code, Some(5), "`{head}`: {said}");
        assert!(said.contains("standard input"), "`{head}`: {said}");
        assert!(
            said.contains("found") || said.contains("begins with"),
            "`{head}`: {said}"
        );
        assert!(
            sent < 1024,
            "`{head}`: {sent} MiB were read of a line that never ends"
        );
    }
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "took {:?}",
        begun.elapsed()
    );
}

/// The same after good lines: the data before it count, and nothing is read after it.
#[test]
fn an_endless_line_behind_good_ones() {
    let good = msr(pages(300, 512, 8192));
    let (sent, code, said) = endless(good.as_bytes(), 10_240);
    assert_eq!(code, Some(1), "{said}");
    assert!(sent < 1024, "{sent} MiB were read");
}

/// Sends `head`, then a number of MiB of `x` in one line, to a program that may use 512 MiB. Returns the MiB sent, the
/// exit status, and the output.
fn endless(head: &[u8], mib: usize) -> (usize, Option<i32>, String) {
    let mut child = std::process::Command::new("sh")
        .args([
            "-c",
            "ulimit -v 524288; exec \"$0\" analyze -",
            env!("CARGO_BIN_EXE_plumb"),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    let head = head.to_vec();
    let writer = std::thread::spawn(move || {
        let block = vec![b'x'; 1 << 20];
        input.write_all(&head).ok();
        (0..mib)
            .take_while(|_| input.write_all(&block).is_ok())
            .count()
    });
    let done = wait::output("plumb", wait::PATIENCE, child);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let sent = writer.join().expect("the writer ends");
    (sent, done.status.code(), said)
}

/// A field that cannot be is damage at its line, and the rest is read.
#[test]
fn fields_that_cannot_be() {
    let folder = Folder::new("inputs");
    let good = msr(pages(300, 0, 8192));
    let time = 128_166_372_003_061_629_u64;
    let mut messages = Vec::new();
    for field in [
        "NaN",
        "-1",
        "1e9",
        "18446744073709551616",
        "99999999999999999999999",
        "",
        "0x10",
        "inf",
    ] {
        for (column, line) in [
            ("Offset", format!("{time},host,0,Read,{field},8192,100")),
            ("Size", format!("{time},host,0,Read,65536,{field},100")),
            ("Timestamp", format!("{field},host,0,Read,65536,8192,100")),
        ] {
            let file = folder.file("damaged.csv", format!("{good}{line}\n{good}"));
            let ran = analyze(&file, "--grid 4k");
            assert_eq!(ran.code, 3, "{column} {field}: {}", ran.out);
            messages.push(ran.passages(&["line 301"]));
            messages.push(ran.passages(&["no finding", "1 place"]));
        }
    }
    messages.sort();
    messages.dedup();
    // Each is a number, but the I/O would end behind the last byte that there can be.
    let beyond = format!("{good}{time},host,0,Read,18446744073709551615,8192,100\n");
    messages.push(
        analyze(&folder.file("beyond.csv", beyond), "--grid 4k")
            .ends(3)
            .passages(&["line 301"]),
    );
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_damaged_profile() {
    let folder = Folder::new("inputs");
    let saved = folder.path("saved");
    analyze(
        &folder.file("trace.csv", msr(pages(300, 0, 8192))),
        &format!("--save {}", saved.display()),
    )
    .ends(3);
    let whole = std::fs::read(&saved).expect("saved");
    let cut = folder.file("cut", &whole[..whole.len() / 2]);
    let mut messages = vec![analyze(&cut, "").ends(5).complaint()];
    let mut newer = whole.clone();
    newer[8] = 99;
    messages.push(
        analyze(&folder.file("newer", &newer), "")
            .ends(5)
            .complaint(),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
    // Some bits of a zstd frame mean nothing; every other one is noticed.
    let meant = analyze(&saved, "--json").json();
    for at in (12..whole.len()).step_by(7) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        let ran = analyze(&folder.file("flipped", &flipped), "--json");
        if ran.code == 3 {
            let found = ran.json();
            for part in ["findings", "result"] {
                assert_eq!(found[part], meant[part], "byte {at}");
            }
        } else {
            ran.ends(5).complains("damaged profile");
        }
    }
}

#[test]
fn counts_that_overflow_do_not_end_the_program() {
    let head = "# plumb-residue 1 unit=512 modulus=2048\n".to_owned();
    let row = |ios: u64, sum: u128| format!("sda R 7 16 {ios} {ios} {sum}\n");
    let flags = "--chunk 64k --members 4 --shift 1s";
    for bytes in [
        head.clone() + &row(u64::MAX, u128::MAX).repeat(3),
        // The most that is taken, and one more.
        head.clone() + &row(1 << 56, 1 << 119) + &row(1, 1),
        head + &"sda W 5 18014398509481983 1 1 9223372036854775807\n".repeat(3),
    ] {
        let ran = analyze_input(bytes.as_bytes(), flags);
        assert!([1, 3, 5].contains(&ran.code), "{}: {}", ran.code, ran.err);
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
    }
    let totals = "5.000000284 seconds elapsed\n  18446744073709551615 IOs issued\n  18446744073709551615 IOs misaligned,     \
                  18446744073709551615 block offset     18446744073709551615 byte offset\n    18446744073709551615 IOs \
                  non-multiple of 8KB\n";
    let ran = analyze_input(totals.repeat(3).as_bytes(), "");
    assert!([1, 3, 5].contains(&ran.code), "{}: {}", ran.code, ran.err);
}

/// A line that is no row is one damaged place, at the beginning as elsewhere.
#[test]
fn an_odd_line_at_the_beginning() {
    let folder = Folder::new("inputs");
    let rows = msr(pages(300, 512, 8192));
    let lines: Vec<&str> = rows.lines().collect();
    let mut messages = Vec::new();
    for odd in [
        "# a comment",
        "garbage",
        "128166372003061629,host,0,Raed,0,512,1000",
        "a,b",
    ] {
        for at in 0..4 {
            let mut lines = lines.clone();
            lines.insert(at, odd);
            let ran = analyze(&folder.file("odd.csv", lines.join("\n")), "");
            messages.push(ran.ends(1).passages(&["found `"]));
            messages.push(ran.passages(&["1 place", "300 of"]));
        }
    }
    messages.sort();
    messages.dedup();
    // Unknown names of columns are no damage: their meaning is not known.
    let foreign = format!("when,who,which,what,where,size,took\n{rows}");
    messages.push(
        analyze(&folder.file("foreign.csv", foreign), "")
            .ends(5)
            .complaint_without_lists(),
    );
    let ran = analyze(&folder.file("none", "nonsense"), "");
    messages.push(ran.ends(5).complaint_without_lists());
    insta::assert_snapshot!(messages.join("\n"));
}
