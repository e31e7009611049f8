//! `plumb check --from`: from output of Solaris tools to verdicts and exit statuses.

use std::path::{Path, PathBuf};

use crate::common::{Folder, Ran, node, paragraph, plumb, real, recorded_lines};
use serde_json::{Value, json};

/// A label whose slice 0 begins at sector 34, as an EFI label has it.
fn prtvtoc(disk: &str, first: u64) -> String {
    let count = 1_000_000 - first;
    format!(
        "* /dev/rdsk/{disk}s2 partition map\n*\n* Dimensions:\n*     512 bytes/sector\n*     128 sectors/track\n\
         *     128 tracks/cylinder\n*   16384 sectors/cylinder\n*     100 cylinders\n*      98 accessible cylinders\n\
         *\n* Flags:\n*   1: unmountable\n*  10: read-only\n*\n\
         *                          First     Sector    Last\n\
         * Partition  Tag  Flags    Sector     Count    Sector  Mount Directory\n\
         \x20      0      4    00  {first:>10} {count:>9} {:>9}\n",
        first + count - 1
    )
}

fn check(files: &[&PathBuf], flags: &str) -> Ran {
    let mut args: Vec<std::ffi::OsString> = vec!["check".into()];
    // A document has everything.
    if !flags.contains("--json") {
        args.push("-vv".into());
    }
    args.extend(flags.split_whitespace().map(std::ffi::OsString::from));
    args.push("--from".into());
    args.extend(files.iter().map(std::ffi::OsString::from));
    plumb(args)
}

#[test]
fn a_slice_at_sector_34() {
    let folder = Folder::new("check");
    let file = folder.file("c2t0d0.txt", prtvtoc("c2t0d0", 34));
    // 34 sectors are 17,408 bytes: 1,024 past 16,384, and 2 x 8,192 + 1,024.
    let stacks = [
        ("", 1),
        ("--grid 8k", 1),
        ("--grid 8k@1024", 0),
        ("--disk-type sun-zfs-appliance-8k", 1),
    ]
    .map(|(flags, code)| {
        let ran = check(&[&file], flags);
        paragraph(&ran.ends(code).out, "Stack").to_owned()
    });
    insta::assert_snapshot!(stacks.join("\n\n"));
    check(&[&file], "--fail-on none").ends(0);
}

#[test]
fn on_an_assumed_grid_nothing_is_aligned() {
    let folder = Folder::new("check");
    let file = folder.file("c2t0d0.txt", prtvtoc("c2t0d0", 256));
    // 256 sectors are 128 KiB: 2 x 48 KiB + 32 KiB.
    let stacks = [("", 3), ("--grid 8k", 0), ("--segment 48k", 1)].map(|(flags, code)| {
        let ran = check(&[&file], flags);
        paragraph(&ran.ends(code).out, "Stack").to_owned()
    });
    insta::assert_snapshot!(stacks.join("\n\n"));
}

#[test]
fn partly_read_input_is_never_clean() {
    let folder = Folder::new("check");
    let good = folder.file("c2t0d0.txt", prtvtoc("c2t0d0", 256));
    let empty = folder.file("empty.txt", "");
    let other = folder.file("notes.txt", "buy milk\n");
    let ran = check(&[&good, &other], "--grid 8k");
    ran.ends(3).says("not read:");
    assert_eq!(
        ran.err.lines().count(),
        2,
        "a line each, where no terminal reads them: {}",
        ran.err
    );
    let mut messages = vec![ran.complaint_without_lists()];
    let none = folder.path("none.txt");
    for (files, flags, code) in [
        (&[&good, &empty][..], "--grid 8k", 3),
        (&[&good, &none], "--grid 8k", 3),
        (&[&none], "", 5),
        (&[&folder.path("")], "", 5),
    ] {
        messages.push(check(files, flags).ends(code).complaint());
    }
    insta::assert_snapshot!(messages.join("\n\n"));
    check(&[&other, &empty], "").ends(5);
    let document = check(&[&good, &other], "--json").json();
    assert_eq!(document["inputs"][1]["tool"], Value::Null);
    assert!(
        document["inputs"][1]["error"]
            .as_str()
            .is_some_and(|why| why.contains("buy milk"))
    );
}

#[test]
fn usage() {
    let folder = Folder::new("check");
    let file = folder.file("c2t0d0.txt", prtvtoc("c2t0d0", 256));
    let refused = [
        "--disk-type vax",
        "--grid 8MB",
        "--grid 8k@9k",
        "--page 0",
        "--grid 8",
        "--segment x",
        "--image",
    ];
    let messages = refused.map(|flags| {
        let ran = check(&[&file], flags);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (2, ""),
            "{flags}: {}",
            ran.err
        );
        ran.complaint_without_lists()
    });
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn a_table_of_the_user() {
    let folder = Folder::new("check");
    let file = folder.file("c2t0d0.txt", prtvtoc("c2t0d0", 34));
    let table = "[[array]]\nname = 'ours'\ndevice = ['c2*']\nunit = '64k'\noffset = '17408'\nkind = 'unit'\n\
                 document = 'our book'\n";
    let known = folder.file("known.toml", table);
    let ran = check(&[&file], &format!("--known {}", known.display()));
    let known = paragraph(&ran.ends(0).out, "Stack").to_owned();
    let bad = folder.file("bad.toml", "[[array]]\nname = 'ours'\nsize = 3\n");
    let ran = check(&[&file], &format!("--known {}", bad.display()));
    insta::assert_snapshot!([known, ran.ends(5).complaint()].join("\n\n"));
}

#[test]
fn findings_of_other_devices_do_not_count() {
    let folder = Folder::new("check");
    let files = [("c2t0d0", 34), ("c2t1d0", 256)]
        .map(|(disk, first)| folder.file(&format!("{disk}.txt"), prtvtoc(disk, first)));
    check(&files.each_ref(), "--grid 8k").ends(1);
    let ran = check(&files.each_ref(), "/dev/dsk/c2t1d0s0 --grid 8k");
    ran.ends(0);
    // The other disk is one line, and does not count.
    let other = recorded_lines(&ran.said(), &["Not asked"]);
    assert_eq!(ran.out.matches("c2t0d0s0").count(), 1, "{}", ran.out);
    check(&files.each_ref(), "c2t0d0 --grid 8k").ends(1);
    let ran = check(&files.each_ref(), "c9t9d9 --grid 8k");
    insta::assert_snapshot!([other, ran.ends(5).complaint()].join("\n\n"));
}

/// A stripe over disks of 80 a second with a demand of 265 writes: 240 are too few, and 320 leave 21 %.
#[test]
fn a_demanded_rate() {
    let folder = Folder::new("check");
    let stripe = |disks: usize| {
        let members: String = (0..disks).map(|at| format!(" c1t{at}d0s0")).collect();
        folder.file("metastat.txt", format!("d0 1 {disks}{members} -i 128k\n"))
    };
    let found = |ran: &Ran| {
        let findings = ran.json()["findings"]
            .as_array()
            .cloned()
            .expect("findings");
        findings
            .iter()
            .any(|finding| finding["rule"] == "too-few-disks")
    };
    for (disks, flags, expected) in [
        (3, "--writes 265 --disk-rate 80", true),
        (4, "--writes 265 --disk-rate 80", false),
        (4, "--writes 265 --disk-rate 80 --response 50ms", true),
        (4, "d0 --reads 200 --writes 65 --disk-rate 80", false),
        (3, "d0 --reads 265 --disk-rate 80", true),
        (3, "", false),
    ] {
        let ran = check(&[&stripe(disks)], &format!("{flags} --json"));
        assert_eq!(found(&ran), expected, "{disks} {flags}");
    }
    let unjudged = ["--writes 265", "--disk-rate 80"].map(|flags| {
        let ran = check(&[&stripe(3)], flags);
        recorded_lines(paragraph(&ran.out, "Unknown"), &["too-few-disks"])
    });
    let unfit = check(&[&stripe(3)], "--writes many");
    let [no_rate, no_demand] = unjudged;
    insta::assert_snapshot!([no_rate, no_demand, unfit.ends(2).complaint()].join("\n\n"));
    // The rates of iostat, with reads that cost one and writes that cost one on a stripe.
    let iostat =
        "device r/s w/s kr/s kw/s wait actv svc_t %w %b\nd0 100.0 165.0 0.0 0.0 0.0 1.0 2.5 0 99\n";
    let iostat = folder.file("iostat.txt", iostat);
    let ran = check(&[&stripe(3), &iostat], "--disk-rate 80 --json");
    assert!(found(&ran), "{}", ran.out);
}

/// A slice of 999,966 sectors that begins 2 past 4 KiB, full but for the header: the first offset that makes up for it is
/// 6, and 999,965 from there on end 5 sectors beyond.
#[test]
fn misfits_are_reported() {
    let folder = Folder::new("check");
    let label = folder.file("c2t0d0.txt", prtvtoc("c2t0d0", 34));
    let volumes = folder.file("metastat.txt", "d1 -p c2t0d0s0 -o 1 -b 999965\n");
    let ran = check(&[&label, &volumes], "");
    insta::assert_snapshot!(recorded_lines(&ran.ends(1).screen(), &["no commands"]));
}

/// The files of the recorded host: labels of fourteen disks, one of them empty, and `metastat -p`.
fn recorded() -> Vec<PathBuf> {
    let folder = std::fs::read_dir(real("solaris-svm")).expect("a readable folder");
    let mut files: Vec<PathBuf> = folder
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

/// Counts of `EXPECTED.json`: 38 of 40 soft partitions off 4 KiB from the start of their disks, 22 of 38 slices.
#[test]
fn forty_soft_partitions_of_a_recorded_host() {
    plumb_testkit::require!(RealTraces);
    let ran = check(&recorded().iter().collect::<Vec<_>>(), "--json");
    ran.ends(1).complains("c0t0d0s2.txt");
    let document = ran.json();
    let summary = &document["result"]["summary"];
    assert_eq!(summary["soft-partition"]["nodes"], 40);
    assert_eq!(summary["soft-partition"]["misaligned"], 38);
    assert_eq!(
        (
            &summary["partition"]["nodes"],
            &summary["partition"]["misaligned"]
        ),
        (&38.into(), &22.into())
    );
    // Nothing is known of these disks, so a layer on 4 KiB is unknown.
    assert_eq!(
        (
            &summary["soft-partition"]["unknown"],
            &summary["partition"]["unknown"]
        ),
        (&2.into(), &16.into())
    );
    // d57 begins a sector into slice 0 of c3t8d0, which begins at 5,778: 5,779 mod 8 is 3.
    assert_eq!(node(&document, "d57")["verdicts"][0]["by_bytes"], 3 * 512);
}

#[test]
fn a_recorded_host_fits_a_terminal() {
    plumb_testkit::require!(RealTraces);
    let ran = check(&recorded().iter().collect::<Vec<_>>(), "");
    insta::assert_snapshot!(paragraph(&ran.out, "Summary"));
    let long: Vec<&str> = ran
        .out
        .lines()
        .filter(|line| line.chars().count() > 80)
        .collect();
    // Paths in the list of sources may be longer than a line, and a command is never wrapped.
    let may_be_long = |line: &&str| {
        line.contains("solaris-svm/") || line.trim_start().starts_with("way back: metainit ")
    };
    assert!(long.iter().all(may_be_long), "{long:#?}");
}

/// Solaris has no `plumb probe`: the command asks the driver of the disks for their blocks.
#[test]
fn low_confidence_on_solaris_asks_the_driver() {
    let folder = Folder::new("check-low-solaris");
    let dump = folder.file("c2t0d0.txt", prtvtoc("c2t0d0", 34));
    let ran = plumb(["check".as_ref(), "--from".as_ref(), dump.as_os_str()]);
    insta::assert_snapshot!(ran.ends(1).screen());
    assert!(!ran.out.contains("plumb probe"), "{}", ran.out);
}

#[test]
fn a_profile_is_joined() {
    let folder = Folder::new("check");
    let file = folder.file("c2t0d0.txt", prtvtoc("c2t0d0", 256));
    let trace = folder.file(
        "trace.csv",
        crate::common::msr(crate::common::pages(1000, 0, 8192)),
    );
    let saved = folder.path("saved.profile");
    crate::common::analyze(&trace, &format!("--grid 8k --save {}", saved.display())).ends(0);
    check(
        &[&file],
        &format!("--grid 8k --profile {}", saved.display()),
    )
    .ends(0);
    let ran = check(
        &[&file],
        &format!("--grid 8k --profile {}", trace.display()),
    );
    insta::assert_snapshot!(ran.ends(5).complaint());
}

/// The result of `--collect` here is checked like this host, if the host can be read at all.
#[test]
fn a_collection_of_this_host() {
    let folder = Folder::new("check");
    let file = folder.path("host.tar.zst");
    let ran = plumb(["check".as_ref(), "--collect".as_ref(), file.as_os_str()]);
    ran.ends(0).says("block device");
    let ran = check(&[&file], "--json");
    assert!([0, 1, 3].contains(&ran.code), "{}", ran.err);
    assert_eq!(ran.json()["inputs"][0]["tool"], "plumb check --collect");
    let mut cut = std::fs::read(&file).expect("it was written");
    cut.truncate(cut.len() / 2);
    let cut = folder.file("cut.tar.zst", cut);
    // The collection of another host breaks at another entry.
    check(&[&cut], "")
        .ends(5)
        .complains("cut.tar.zst: cannot be unpacked at entry");
    let usage = plumb(["check", "--collect", "x.tar.zst", "--from", "y"]);
    insta::assert_snapshot!(usage.ends(2).complaint());
}

/// A collection takes the place of nothing: not of a disk, nor of an image that it was to be of.
#[test]
fn a_collection_overwrites_nothing() {
    let folder = Folder::new("check");
    let image = folder.file("disk.raw", [7; 512]);
    let to = |name: &std::path::Path| {
        plumb([
            "check".as_ref(),
            "--collect".as_ref(),
            name.as_os_str(),
            "--images".as_ref(),
            image.as_os_str(),
        ])
    };
    let link = folder.path("nowhere");
    std::os::unix::fs::symlink("/none/such", &link).expect("a link");
    let messages = [&image, Path::new("/dev/null"), &link].map(|name| to(name).ends(2).complaint());
    insta::assert_snapshot!(messages.join("\n\n"));
    assert_eq!(std::fs::read(&image).expect("a file"), [7; 512]);
    assert!(
        !std::fs::metadata("/dev/null")
            .expect("it is there")
            .is_file()
    );
    let names = std::fs::read_dir(folder.path("."))
        .expect("a directory")
        .count();
    assert_eq!(names, 2, "nothing is left in part");
}

/// The commands that lay out all soft partitions of a volume are printed once, not once for each.
#[test]
fn output_grows_with_the_number_of_soft_partitions() {
    let folder = Folder::new("check-many");
    let label = folder.file("c1t0d0.txt", prtvtoc("c1t0d0", 64));
    let ran = |number: u64, flags: &str| {
        let parts =
            (0..number).map(|at| format!("d{} -p d1 -o {} -b 2000\n", 100 + at, 512 + 2001 * at));
        let listing: String = std::iter::once("d1 1 1 c1t0d0s0\n".to_owned())
            .chain(parts)
            .collect();
        let file = folder.file(&format!("many{number}.txt"), listing);
        check(&[&file, &label], &format!("--grid 4k {flags}"))
            .ends(1)
            .out
            .clone()
    };
    for flags in ["", "--json"] {
        let (few, many) = (ran(50, flags), ran(200, flags));
        assert!(
            many.len() * 2 <= few.len() * 9,
            "{flags}: {} for 50, {} for 200",
            few.len(),
            many.len()
        );
    }
    // No finding has commands that another could refer to: each says itself why.
    let document: Value = serde_json::from_str(&ran(50, "--json")).expect("JSON");
    let findings = document["findings"].as_array().expect("findings");
    let advised = |kind: &str| {
        let advice = findings.iter().map(|finding| &finding["advice"][0]);
        advice.filter(|advice| advice["kind"] == kind).count()
    };
    assert_eq!(advised("none-keeps-data"), findings.len());
    // Recreating soft partitions loses their data: no command for it is printed.
    assert!(findings.iter().all(|finding| finding["fix"] == json!([])));
}
