//! `plumb plan` as a user runs it.

use crate::common::{Folder, Ran, analyze, plumb, real};
use plumb_testkit::require;
use serde_json::Value;

fn plan(args: &str) -> Ran {
    plumb(std::iter::once("plan").chain(args.split_whitespace()))
}

/// The value of a figure of the first plan.
fn figure<'a>(document: &'a Value, name: &str) -> &'a Value {
    let target = document["result"]["plans"][0]["target"]
        .as_array()
        .expect("figures");
    let found = target.iter().find(|figure| figure["name"] == name);
    &found.unwrap_or_else(|| panic!("no figure {name}"))["value"]
}

#[test]
fn a_partition_behind_an_efi_label() {
    let json = plan("partition /dev/sdb --grid 8k --json").ends(0).json();
    assert_eq!(figure(&json, "start_sectors"), 48);
    insta::assert_snapshot!(
        plan("partition /dev/sdb --grid 8k --disk-size 1g")
            .ends(0)
            .passages(&["48 s", "sgdisk -a"])
    );
}

/// A drive that states an alignment offset of 3,584 bytes: 7 sectors, as `2047` is and `2048` is not.
#[test]
fn an_alignment_offset_is_part_of_the_grid() {
    let json = plan("partition /dev/sdb --grid 4k --alignment-offset 3584 --after 2041s --json")
        .ends(0)
        .json();
    assert_eq!(figure(&json, "start_sectors"), 2_047);
}

/// On 4Kn disks labels count in blocks of 4 KiB, and `s` is 512 bytes all the same.
#[test]
fn blocks_of_4_kib_are_counted_as_labels_do() {
    let json = plan("partition /dev/sdb --sector 4k --after 2048s --disk-size 1g --json")
        .ends(0)
        .json();
    assert_eq!(
        (figure(&json, "start_sectors"), figure(&json, "start_lba")),
        (&2_048.into(), &256.into())
    );
}

/// 27 × 107 sectors are odd, so only every eighth cylinder is on 4 KiB; 19 × 248 are a multiple of 8.
#[test]
fn smi_slices_start_at_cylinders() {
    let cylinder = |geometry: &str| {
        let json = plan(&format!(
            "partition c1t0d0 --label smi --geometry {geometry} --grid 4k --json"
        ))
        .ends(0)
        .json();
        figure(&json, "start_cylinder").clone()
    };
    assert_eq!(
        (cylinder("27x107"), cylinder("19x248")),
        (8.into(), 1.into())
    );
}

/// Records below 4 KiB take a block of the pool each; the way back of one file leaves the others alone.
#[test]
fn records_are_no_smaller_than_blocks_of_a_pool() {
    let ran = plan("record tank/db --page 3k");
    ran.ends(0).says("recordsize=4096");
    assert!(!ran.out.contains("rollback tank"), "{}", ran.out);
}

/// Requests that the tools themselves refuse: a log unit that is no multiple of the block, an array by its bare name.
#[test]
fn commands_are_such_as_tools_take() {
    let messages = [
        plan("filesystem /dev/md0 --type xfs --chunk 512k --members 4 --block 64k")
            .ends(0)
            .passages(&["-l su=64k"]),
        plan("filesystem /dev/md0 --type xfs --chunk 512k --members 4")
            .ends(0)
            .passages(&["-l su=32k"]),
        plan("partition /dev/sdb --grid 4k --current 63s --size 1g --holds md=md0")
            .passages(&["--add"]),
    ];
    insta::assert_snapshot!(messages.join("\n\n"));
}

#[test]
fn invalid_plans_are_refused() {
    for (args, code, words) in [
        ("partition /dev/sdb --after 34", 2, "34s for sectors"),
        ("partition /dev/sdb --grid 4MB", 2, "4MB"),
        ("partition /dev/sdb --label smi", 2, "--geometry"),
        ("partition /dev/sdb --number 0", 2, "expected 1 to 128"),
        ("partition /dev/sdb --sector 520", 2, "512 or 4096"),
        (
            "partition /dev/sdb --grid 4k@7s --sector 4k",
            2,
            "their offsets never meet",
        ),
        ("partition /dev/sdb --size 10g --disk-size 1g", 3, "no room"),
        ("stripe --io 0", 2, "length of the I/O is 0"),
        ("stripe --io 8k --share 3", 2, "expected a share"),
        ("softpart d10", 2, "--unit"),
        ("softpart d10 --unit 1000", 2, "no multiple of sectors"),
        (
            "filesystem /dev/md0 --type ext4 --members 4",
            2,
            "--chunk <SIZE>",
        ),
        (
            "filesystem /dev/sdb --type ext4 --page 0",
            2,
            "the page is 0",
        ),
        (
            "filesystem /dev/md0 --type xfs --chunk 64k --members 2 --parity 2",
            2,
            "leave none for data",
        ),
        ("record tank", 2, "--page"),
        ("resync --size 2m", 2, "1 to 2048 blocks"),
        (
            "disks --writes 265 --disk-rate 0",
            2,
            "found `0`, expected a rate a second",
        ),
        (
            "disks --writes 1e-9 --disk-rate 80",
            2,
            "found `1e-9`, expected a rate a second",
        ),
        (
            "disks --reads 0 --writes 0 --disk-rate 80",
            2,
            "the load is 0, expected a number above 0",
        ),
        (
            "filesystem /dev/md0 --type xfs --chunk 64k --members 5 --parity 1 --copies 2",
            2,
            "do not come out even",
        ),
        (
            "disks --writes 265 --disk-rate 80 --response 12ms",
            3,
            "cannot be reached",
        ),
        (
            "disks --writes 2000000 --disk-rate 0.01",
            3,
            "the number of disks would be more than 1,048,576",
        ),
        (
            "stripe --io 1t",
            3,
            "the chunk that this share needs would be more than 64 MiB",
        ),
        (
            "stripe --io 1t --chunk 64k",
            3,
            "no chunk up to 64 MiB keeps the share",
        ),
        (
            "filesystem /dev/sdb --type btrfs --block 6000",
            2,
            "4 KiB to 64 KiB: the sector of btrfs",
        ),
        (
            "filesystem /dev/sdb --type btrfs --block 128k",
            2,
            "4 KiB to 64 KiB: the sector of btrfs",
        ),
        (
            "filesystem /dev/sdb --type btrfs --physical 128k",
            2,
            "the physical block is 128 KiB",
        ),
        (
            "filesystem /dev/sdb --type xfs --block 128k --chunk 128k --members 2",
            2,
            "512 B to 64 KiB",
        ),
        (
            "filesystem tank --type zfs --page 12k",
            2,
            "the page is 12 KiB, expected a power of two",
        ),
        (
            "filesystem tank --type zfs --page 32m",
            2,
            "512 B to 16 MiB",
        ),
        (
            "filesystem tank --type zfs --block 8k",
            2,
            "records of ZFS are as long as the page",
        ),
        (
            "record tank --current 12k --page 8k",
            2,
            "the record is 12 KiB, expected a power of two",
        ),
        (
            "record tank --current 32m --page 8k",
            2,
            "the record is 32 MiB",
        ),
        (
            "record tank/vol --keeper zvol --current 256 --page 8k",
            2,
            "the record is 256 B",
        ),
        ("softpart --from /no/such/file", 5, "No such file"),
    ] {
        plan(args).ends(code).complains(words);
    }
}

#[test]
fn the_disks_of_the_case_study() {
    let messages = [
        plan("disks --writes 66 --growth 4 --disk-rate 80")
            .ends(0)
            .passages(&["margin"]),
        plan("disks --writes 265 --disk-rate 80")
            .ends(0)
            .passages(&["disk's time", "average response", "320/s"]),
    ];
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// A saved profile of a layer below the file system cannot tell of records.
#[test]
fn records_need_the_vfs_layer() {
    let folder = Folder::new("plan-record");
    let trace = folder.file(
        "trace.csv",
        crate::common::msr(crate::common::pages(1000, 0, 8192)),
    );
    let saved = folder.path("saved.plumb");
    analyze(&trace, &format!("--grid 4k --save {}", saved.display())).ends(0);
    let ran = plan(&format!("record tank/db --profile {}", saved.display()));
    insta::assert_snapshot!(ran.ends(3).complaint());
}

/// 1,000 reads and writes of 8 KiB at the layer of the application, on records of 128 KiB and of 8.
#[test]
fn records_for_a_profile() {
    let folder = Folder::new("plan-record");
    let mut lines = "# plumb-residue 1 unit=512 modulus=2048 layer=vfs\n".to_owned();
    for residue in (0..2048).step_by(16) {
        lines.push_str(&format!("db R {residue} 16 10\ndb W {residue} 16 5\n"));
    }
    let trace = folder.file("vfs.txt", lines);
    let saved = folder.path("saved.plumb");
    analyze(&trace, &format!("--grid 4k --save {}", saved.display()));
    let json = plan(&format!(
        "record tank/db --current 128k --json --profile {}",
        saved.display()
    ))
    .ends(0)
    .json();
    assert_eq!(figure(&json, "record_bytes"), 8_192);
    assert_eq!(figure(&json, "current_read_amplification"), 16.0);
    assert_eq!(figure(&json, "current_write_amplification"), 32.0);
}

/// A real server with 40 soft partitions, 38 of them off 4 KiB at the absolute start, as other programs counted.
#[test]
fn soft_partitions_of_a_real_server() {
    require!(RealTraces);
    let folder = real("solaris-svm");
    let mut dumps: Vec<_> = std::fs::read_dir(&folder)
        .expect("dumps")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.metadata().is_ok_and(|meta| meta.len() > 0))
        .collect();
    dumps.sort();
    let mut args = vec![
        "plan".into(),
        "softpart".into(),
        "--json".into(),
        "--from".into(),
    ];
    args.extend(dumps.iter().map(|path| path.clone().into_os_string()));
    // Two slices are full to their last cylinder but for the header: nothing can move up there.
    let ran = plumb(&args);
    ran.ends(3).complains("c3t12d0s0").complains("c4t12d0s0");
    let json = ran.json();
    let plans = json["result"]["plans"].as_array().expect("plans");
    let (mut extents, mut off, mut refused) = (0, 0, 0);
    for plan in plans {
        let sectors = |row: &Value, at: usize| row[at].as_u64().expect("sectors");
        let last = plan["tables"][0]["rows"]
            .as_array()
            .and_then(|rows| rows.last())
            .expect("a row");
        let mut figures = plan["target"].as_array().expect("figures").iter();
        let size = figures
            .find(|one| one["name"] == "component_sectors")
            .map(|one| &one["value"]);
        let does_fit =
            sectors(last, 3) + sectors(last, 4) <= size.and_then(Value::as_u64).expect("a length");
        assert_eq!(plan["refusal"].is_null(), does_fit, "{plan}");
        refused += usize::from(!does_fit);
        for row in plan["tables"][0]["rows"].as_array().expect("rows") {
            let now = row[1].as_u64().expect("an offset");
            let planned = row[3].as_u64().expect("an offset");
            // Every slice 0 of these disks starts at sector 5,778, as prtvtoc printed it.
            extents += 1;
            off += u64::from((5_778 + now) % 8 != 0);
            assert_eq!((5_778 + planned) % 8, 0, "{row}");
        }
    }
    assert_eq!((extents, off, refused), (40, 38, 2));
    // The one file that is empty is said to be, and makes the answer a partial one.
    args.push(folder.join("c0t0d0s2.txt").into_os_string());
    plumb(&args).ends(3).complains("c0t0d0s2.txt");
}

/// Everything but commands keeps within 80 columns.
#[test]
fn text_is_made_for_80_columns() {
    for args in [
        "partition /dev/nvme0n1 --grid 4k --current 63s --size 10g --holds zfs=tank",
        "partition c1t0d0 --label smi-x86 --geometry 255x63 --fdisk-start 16065s --disk-size 100g",
        "stripe --io 8k --segment 48k --manager svm c1t0d0s0 c2t0d0s0",
        "softpart d10 --unit 256k --existing d11:1s:3g --existing d12:6291458s:1000001s --new d13:5g",
        "filesystem /dev/md0 --type xfs --chunk 512k --members 6 --parity 2",
        "filesystem /dev/sdb --type btrfs --page 6k --mount /srv",
        "filesystem /dev/sdb --type ext4 --mount /srv",
        "record tank/vol --keeper zvol --page 16k",
        "resync --mirror 1t --maxphys 128k",
        "disks --reads 1000000 --writes 100000 --disk-rate 150 --raid 6 --response 8ms",
        "writes --record 512 --gather 16 --random 80 --demand 265",
    ] {
        let ran = plan(args);
        ran.ends(0);
        let lines = ran
            .out
            .lines()
            .filter(|line| !line.starts_with("    ") || line.starts_with("     "))
            .filter(|line| !line.starts_with("      way back: "));
        for line in lines {
            assert!(line.chars().count() <= 80, "{args}: {line}");
        }
    }
}

/// Commands carry out the plan, and no printed command would be refused, or would hit existing data.
#[test]
fn printed_commands_have_their_effect() {
    let mut messages = vec![
        plan("disks --writes 100 --disk-rate 100 --raid 1")
            .ends(0)
            .passages(&["--raid-devices"]),
    ];
    messages.push(
        plan("stripe --io 8k --parity 1 --manager lvm a b c")
            .ends(0)
            .passages(&["lvcreate"]),
    );
    messages.push(plan("stripe --io 8k --segment 48k --parity 1 a b c").passages(&["powers of"]));
    // 13 segments of 64 KiB would do; LVM and parity of md want 16.
    messages.push(
        plan("stripe --io 8k --segment 64k --manager lvm a b")
            .ends(0)
            .passages(&["lvcreate"]),
    );
    messages.push(
        plan("stripe --io 8k --segment 64k --parity 1 a b c")
            .ends(0)
            .passages(&["--raid-devices"]),
    );
    messages.push(
        plan("stripe --io 8k --segment 64k a b")
            .ends(0)
            .passages(&["--chunk"]),
    );
    messages.push(
        plan("stripe --io 8k --parity 2 --manager svm a b c d")
            .ends(2)
            .complaint(),
    );
    messages.push(plan("stripe --io 8k --parity 5 a b").ends(2).complaint());
    messages.push(
        plan("partition /dev/sdb1 --grid 8k --current 34s --size 1g")
            .ends(2)
            .complaint(),
    );
    let cut = |volumes: &str| plan(&format!("softpart d10 --unit 256k {volumes}"));
    messages.push(
        cut("--existing d11:512s:1g --new d11:1g")
            .ends(2)
            .complaint(),
    );
    messages.push(cut("--existing d11:0s:1g").ends(2).complaint());
    messages.push(
        cut("--existing d11:512s:1g --existing d12:600s:1g")
            .ends(2)
            .complaint(),
    );
    // The last sector of d11 is that of the header of d12; one sector later they are apart.
    messages.push(
        cut("--existing d11:512s:1g --existing d12:2097664s:1g")
            .ends(2)
            .complaint(),
    );
    cut("--existing d11:512s:1g --existing d12:2097665s:1g").ends(0);
    // The first extent stays; the second goes to the gap, the only place that is known to be free: behind 2,097,664 and a
    // header to 2,098,176 = 4,098 × 512.
    messages.push(
        cut("--existing d11:512s:1g --existing d11:5000000s:1g")
            .ends(0)
            .passages(&["metainit"]),
    );
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// A layout that does not fit is shown, and the command ends as one without a plan.
#[test]
fn soft_partitions_that_do_not_fit() {
    let args =
        "softpart d10 --unit 256k --component-size 1g --existing d11:1s:1000m --new d12:100m";
    // The header of d12 takes 512 + 2,048,000 = 2,048,512 = 4,001 x 512, so its data begin 512 later; and 204,800 more
    // end at 2,253,824 of 2,097,152.
    let ran = plan(args);
    ran.ends(3);
    let messages = [ran.passages(&["No way", "2,049,024"]), ran.complaint()];
    insta::assert_snapshot!(messages.join("\n\n"));
    let json = plan(&format!("{args} --json")).ends(3).json();
    assert!(
        json["result"]["plans"][0]["remedies"]
            .as_array()
            .expect("ways")
            .is_empty()
    );
    assert!(
        json["result"]["plans"][0]["refusal"]
            .as_str()
            .is_some_and(|why| ran.complaint().contains(why))
    );
    let fits = plan(
        "softpart d10 --unit 256k --component-size 2g --existing d11:1s:1000m --new d12:100m --json",
    );
    assert!(fits.ends(0).json()["result"]["plans"][0]["refusal"].is_null());
}

/// Content of the unit stays in its place, also if something does not fit: only misaligned parts have to move.
#[test]
fn soft_partitions_on_the_unit_stay() {
    let offset = |args: &str, code: i32| {
        let json = plan(&format!("softpart d10 --unit 256k {args} --json"))
            .ends(code)
            .json();
        let plan = &json["result"]["plans"][0];
        (
            plan["tables"][0]["rows"][0][3].clone(),
            plan["refusal"].as_str().unwrap_or_default().to_owned(),
        )
    };
    // 1,024 + 4,194,304 sectors on 2,097,152.
    let (at, why) = offset("--component-size 1g --existing d11:1024s:2g", 3);
    assert_eq!(at, 1_024);
    insta::assert_snapshot!(why);
    // d11 ends at 614,400 + 1,433,600 = 2,048,000 = 4,000 x 512, so d12 begins at 2,048,512 behind its header; 409,600 more
    // are 2,458,112 of 2,202,000. In front of d11 there would be room, by moving parts that need no move.
    let (at, why) = offset(
        "--component-size 1101000k --existing d11:300m:700m --new d12:200m",
        3,
    );
    assert_eq!(at, 614_400);
    insta::assert_snapshot!(why);
    // One sector off, it is made again in any case, and then from the first place on.
    let (at, why) = offset(
        "--component-size 1101000k --existing d11:614401s:700m --new d12:200m",
        0,
    );
    assert_eq!((at, why.as_str()), (512.into(), ""));
}

/// Dumps that contradict themselves are no mistake of the command line.
#[test]
fn overlapping_soft_partitions_of_a_dump() {
    let folder = Folder::new("plan-overlap");
    let dump = "d10 1 2 c1t0d0s0 c1t1d0s0 -i 512b\nd11 -p d10 -o 512 -b 2097152\nd12 -p d10 -o 600 -b 2048\n";
    let dump = folder.file("metastat-p.txt", dump);
    for more in ["", "d10 --new d13:1g"] {
        let json = plan(&format!("softpart {more} --json --from {}", dump.display()))
            .ends(3)
            .json();
        let why = json["result"]["plans"][0]["refusal"]
            .as_str()
            .expect("why")
            .to_owned();
        assert!(why.starts_with("d11 and d12 overlap"), "{why}");
    }
}

/// `metastat -p` and `prtvtoc` on slices that were given away twice: no command touches them.
#[test]
fn nothing_is_moved_that_shares_bytes() {
    let folder = Folder::new("plan-shared");
    let label = |disk: &str, slices: &[(u64, u64, u64)]| {
        let row = |(number, first, count): &(u64, u64, u64)| {
            format!(
                "       {number}      4    00  {first}  {count}  {}\n",
                first + count - 1
            )
        };
        let rows: String = slices.iter().map(row).collect();
        let text = format!(
            "* /dev/rdsk/{disk}s2 partition map\n*     512 bytes/sector\n*    2889 sectors/cylinder\n\
             * Partition  Tag  Flags    Sector     Count    Sector  Mount Directory\n{rows}"
        );
        folder
            .file(&format!("{disk}-{}.txt", slices.len()), &text)
            .display()
            .to_string()
    };
    let whole = [(0, 0, 71_127_180)];
    let (one, two) = (label("c1t0d0", &whole), label("c2t0d0", &whole));
    let over = label(
        "c1t0d0",
        &[(0, 2889, 28_890_000), (1, 2_889_000, 28_890_000)],
    );
    let mirrored = "d1 -p d10 -o 1 -b 2097152\nd10 -m d11 d12 1\nd11 1 1 c1t0d0s0\nd12 1 1 c2t0d0s0\n\
                    d3 -p c1t0d0s0 -o 1 -b 100000\n";
    let on_a_volume = "d1 -p c1t0d0s0 -o 1 -b 2097152\nd5 -m d6 1\nd6 1 1 c1t0d0s0\n";
    let on_slices = "d1 -p c1t0d0s0 -o 1 -b 2097152\nd2 -p c1t0d0s1 -o 1 -b 2097152\n";
    let no_label = "d1 -p c1t0d0s0 -o 1 -b 2097152\nd2 -p c1t0d0s0 -o 1000 -b 2097152\n";
    let itself = "d1 -p c1t0d0s0 -o 1 -b 2097152 -o 1000000 -b 5000\n";
    for (at, (volumes, labels, words)) in [
        (
            mirrored,
            format!("{one} {two}"),
            "d3 and d1 overlap|d1 and d3 overlap",
        ),
        (
            on_a_volume,
            one.clone(),
            "d1 and d6 overlap|d6 and d1 overlap",
        ),
        (on_slices, over, "c1t0d0s0 and c1t0d0s1 overlap"),
        (no_label, String::new(), "d1 and d2 overlap"),
        (itself, one.clone(), "two extents of d1 overlap"),
    ]
    .into_iter()
    .enumerate()
    {
        let dump = folder.file(&format!("metastat-p-{at}.txt"), volumes);
        let files = format!("--from {} {labels}", dump.display());
        let json = plan(&format!("softpart --unit 8k --json {files}"))
            .ends(3)
            .json();
        for plan in json["result"]["plans"].as_array().expect("plans") {
            let why = plan["refusal"]
                .as_str()
                .unwrap_or_else(|| panic!("a way was found: {plan}"));
            assert!(
                words.split('|').any(|words| why.starts_with(words)),
                "{why}"
            );
        }
        let check = plumb(format!("check --grid 8k --json {files}").split_whitespace());
        let findings = check.ends(1).json()["findings"].clone();
        let findings = findings.as_array().expect("findings");
        assert!(
            findings
                .iter()
                .any(|finding| finding["rule"] == "overlapping-partitions"),
            "{}",
            check.out
        );
        assert!(
            !check.out.contains("metaclear") && !check.out.contains("metainit d"),
            "{}",
            check.out
        );
    }
}

/// The second of three partitions begins within the first, and the third ends behind the limit of the label.
#[test]
fn no_partition_is_moved_that_shares_bytes() {
    let folder = Folder::new("plan-shared-partitions");
    let dump = "label: gpt\ndevice: /dev/sdb\nunit: sectors\nfirst-lba: 34\nlast-lba: 2097118\nsector-size: 512\n\n\
                /dev/sdb1 : start= 40, size= 100000\n/dev/sdb2 : start= 50001, size= 200000\n\
                /dev/sdb3 : start= 250101, size= 9000000\n";
    let dump = folder.file("sdb.sfdisk", dump).display().to_string();
    for (name, words) in [
        (
            "sdb1",
            "sdb1 and sdb2 overlap: sdb1 takes sectors 40 to 100,039",
        ),
        ("sdb2", "sdb1 and sdb2 overlap"),
        (
            "sdb3",
            "sdb3 ends at sector 9,250,100, and the last one that the label gives to partitions is 2,097,118",
        ),
    ] {
        let json = plan(&format!("partition /dev/{name} --json --from {dump}"))
            .ends(3)
            .json();
        let why = json["result"]["plans"][0]["refusal"]
            .as_str()
            .expect("why")
            .to_owned();
        assert!(why.starts_with(words), "{why}");
    }
    let check = plumb(format!("check -vv --from {dump}").split_whitespace());
    insta::assert_snapshot!(check.ends(1).passages(&["no commands", "CRITICAL"]));
    assert!(!check.out.contains("sgdisk -d"), "{}", check.out);
}

/// Two copies over five members come out even after two rows, of five chunks: the kernel and mkfs say the same.
#[test]
fn odd_members_of_raid_10() {
    let json = |members: u32, copies: u32| {
        let args = format!(
            "filesystem /dev/md0 --type xfs --chunk 64k --members {members} --copies {copies} --json"
        );
        figure(&plan(&args).ends(0).json(), "data_members").clone()
    };
    assert_eq!(
        [json(4, 2), json(5, 2), json(6, 3), json(4, 3)],
        [2, 5, 2, 4].map(Value::from)
    );
}

/// The block of btrfs is its sector.
#[test]
fn btrfs_takes_the_block_that_was_asked_for() {
    let made = |args: &str| plan(&format!("filesystem /dev/sdb --type btrfs {args}"));
    let mut messages = vec![made("").ends(0).passages(&["mkfs.btrfs"])];
    messages.push(made("--block 8k").ends(0).passages(&["mkfs.btrfs"]));
    messages.push(made("--block 32k").ends(0).passages(&["mkfs.btrfs"]));
    messages.push(
        made("--physical 16k --block 4k")
            .ends(0)
            .passages(&["mkfs.btrfs", "read it"]),
    );
    let zfs = plan("filesystem tank/db --type zfs --page 1m");
    messages.push(zfs.ends(0).passages(&["zfs set", "large_blocks"]));
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// A program that reads documents gets one for a refusal as well; a mistake of the command line has none.
#[test]
fn a_refusal_is_a_document() {
    let folder = Folder::new("plan-refusal");
    let slices = folder.file("lsblk.json", UNNAMED_LABEL);
    let refused = [
        (
            "partition /dev/sdb --size 10g --disk-size 1g".to_owned(),
            "no room",
        ),
        ("stripe --io 1t".to_owned(), "more than 64 MiB"),
        (
            "disks --writes 265 --disk-rate 80 --response 12ms".to_owned(),
            "cannot be reached",
        ),
        (
            format!("partition sda1 --from {}", slices.display()),
            "the label of the disk is not known",
        ),
        (
            format!("softpart --from {}", slices.display()),
            "a soft partition is not known",
        ),
    ];
    for (args, why) in &refused {
        let ran = plan(&format!("{args} --json"));
        let json = ran.ends(3).complains(why).json();
        let plan = &json["result"]["plans"][0];
        assert_eq!(plan["kind"], args.split(' ').next().expect("a kind"));
        assert!(
            plan["refusal"]
                .as_str()
                .is_some_and(|refusal| refusal.contains(why)),
            "{json:#}"
        );
        assert_eq!(plan["remedies"], Value::Array(Vec::new()));
        assert_eq!(
            json["inputs"].as_array().map(Vec::len),
            Some(usize::from(args.contains("--from")))
        );
    }
    assert!(
        plan("partition /dev/sdb --number 0 --json")
            .ends(2)
            .out
            .is_empty()
    );
}

const UNNAMED_LABEL: &str = r#"{"blockdevices": [{"name": "sda", "kname": "sda", "type": "disk", "size": 1073741824,
 "phy-sec": 512, "log-sec": 512, "children": [{"name": "sda1", "kname": "sda1", "type": "part", "size": 1048576,
 "start": 2048, "phy-sec": 512, "log-sec": 512}]}]}"#;

/// 64 KiB are 128 sectors: the first start behind 34 is 128, and 1,920 sectors from there to 2,048 are 15 × 128, which is
/// 94 less than 2,014. The same by flags as by files.
#[test]
fn a_partition_without_room_becomes_smaller() {
    let args = "partition /dev/sdb --grid 64k --current 34s --size 2014s --before 2048s";
    let json = plan(&format!("{args} --json")).ends(0).json();
    assert_eq!(
        (figure(&json, "start_sectors"), figure(&json, "len_sectors")),
        (&128.into(), &1_920.into())
    );
    insta::assert_snapshot!(plan(args).passages(&["becomes", "smaller", "content is"]));
    let folder = Folder::new("plan-smaller");
    let dump = "label: gpt\nlabel-id: 0\ndevice: /dev/sdb\nunit: sectors\nsector-size: 512\n\n\
                /dev/sdb1 : start=34, size=2014, type=0\n/dev/sdb2 : start=2048, size=2048, type=0\n";
    let dump = folder.file("sfdisk.txt", dump);
    let from = plan(&format!(
        "partition /dev/sdb1 --grid 64k --json --from {}",
        dump.display()
    ))
    .ends(0)
    .json();
    for name in ["start_sectors", "len_sectors", "end_bytes", "current_bytes"] {
        assert_eq!(figure(&from, name), figure(&json, name), "{name}");
    }
}

/// The label of the example reserves 8,541 blocks at the end, from sector 8,380,000 on, and not the usual 16,384. Slice 0
/// fills the room before it: from sector 48 on the slice is 14 sectors shorter.
#[test]
fn a_label_tells_the_slice_that_it_reserves() {
    let dumps = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dumps");
    let dump = |name: &str| dumps.join(name).display().to_string();
    let slice = format!(
        "partition c2t0d0s0 --grid 8k --from {}",
        dump("prtvtoc-c2t0d0.txt")
    );
    let json = plan(&format!("{slice} --json")).ends(0).json();
    assert_eq!(
        (figure(&json, "start_sectors"), figure(&json, "len_sectors")),
        (&48.into(), &(8_380_000 - 48).into())
    );
    // Offsets on a stripe whose slices start at sector 34 stay off the unit of the disks.
    insta::assert_snapshot!(
        plan(&format!(
            "softpart --from {} {} {}",
            dump("metastat-p.txt"),
            dump("prtvtoc-c2t0d0.txt"),
            dump("prtvtoc-c2t1d0.txt")
        ))
        .passages(&["past a"])
    );
}

/// The first partition of a new label leaves the first MiB to boot loaders.
#[test]
fn a_new_label_leaves_the_first_mib() {
    let start = |flags: &str| {
        let json = plan(&format!("partition /dev/sdb --grid 8k --json {flags}")).json();
        figure(&json, "start_sectors").clone()
    };
    for (flags, sectors) in [
        ("--new-label", 2048),
        ("--new-label --after 34s", 48),
        ("", 48),
    ] {
        assert_eq!(start(flags), sectors, "{flags}");
    }
}

/// Disks whose time is all taken carry nothing: the queue grows without end.
#[test]
fn a_load_that_takes_all_of_the_time_is_not_carried() {
    let messages = [
        plan("disks --writes 320 --disk-rate 80 --margin 0%")
            .ends(0)
            .passages(&["Plan:", "carry the", "disk's time"]),
        plan("disks --writes 320 --disk-rate 80 --margin 0% --raid 10")
            .ends(0)
            .passages(&["Plan:"]),
        plan("disks --writes 100000 --disk-rate 80")
            .ends(0)
            .passages(&["Plan:", "over 1,500"]),
    ];
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// A file system on one disk has blocks and sectors to choose, and no stripe options.
#[test]
fn file_systems_without_a_stripe() {
    let made = |args: &str| plan(&format!("filesystem /dev/sdb {args}"));
    let messages = [
        made("--type ext4")
            .ends(0)
            .passages(&["mkfs.ext4", "no stripe"]),
        made("--type xfs").ends(0).passages(&["mkfs.xfs"]),
        made("--type xfs --physical 512")
            .ends(0)
            .passages(&["mkfs.xfs"]),
        made("--type xfs --physical 16k")
            .ends(0)
            .passages(&["mkfs.xfs", "shorter than"]),
        made("--type xfs --physical 16k --block 16k")
            .ends(0)
            .passages(&["mkfs.xfs"]),
        made("--type ufs").ends(0).passages(&["newfs"]),
    ];
    insta::assert_snapshot!(messages.join("\n\n"));
    let json = made("--type xfs --json").ends(0).json();
    assert_eq!(
        (figure(&json, "block_bytes"), figure(&json, "sector_bytes")),
        (&4_096.into(), &4_096.into())
    );
}

/// Every typed value is used, or the output says that it is not.
#[test]
fn page_and_mount_point_of_a_file_system() {
    let made = |args: &str| plan(&format!("filesystem /dev/sdb {args}"));
    let btrfs = made("--type btrfs --page 8k --mount /srv");
    let messages = [
        btrfs.ends(0).passages(&["page of", "chattr +C"]),
        btrfs.passages(&["sector of", "node of"]),
        made("--type btrfs --mount /srv")
            .ends(0)
            .passages(&["mount point"]),
        made("--type ext4 --page 6k").ends(0).passages(&["a page"]),
    ];
    insta::assert_snapshot!(messages.join("\n\n"));
    let xfs = made("--type xfs --chunk 64k --members 2 --mount /srv");
    insta::assert_snapshot!(xfs.passages(&["umount", "mount point"]));
}

/// 34 sectors of 512 bytes are 17,408 bytes: four blocks of 4,096 and a quarter.
#[test]
fn a_start_between_blocks_is_rejected() {
    let moved = |start: &str, sector: u32| {
        plan(&format!(
            "partition /dev/nvme0n1 --grid 4k --sector {sector} --current {start} --size 1g"
        ))
    };
    insta::assert_snapshot!(moved("34s", 4096).ends(2).complaint());
    moved("34s", 512).ends(0);
    moved("48s", 4096).ends(0);
}

/// zpool-create(8): a name begins with a letter, and `c` with a digit behind is reserved for disks.
#[test]
fn a_disk_is_no_pool() {
    let zfs = |name: &str| plan(&format!("filesystem {name} --type zfs --page 8k"));
    let mut messages = Vec::new();
    for disk in ["/dev/sdb", "c1t0d0", "0tank"] {
        messages.push(zfs(disk).ends(2).complaint());
    }
    messages.push(zfs("cache/db").ends(0).passages(&["zpool create"]));
    insta::assert_snapshot!(messages.join("\n\n"));
}

/// The device on this host: absent, empty, full, mounted.
#[test]
fn the_state_of_the_device_comes_first() {
    use plumb_testkit::loop_device::{LoopDevice, run};
    use std::process::Command;
    let absent = ["/dev/no-such-disk", "no-such-disk"].map(|name| {
        plan(&format!("partition {name} --grid 4k"))
            .ends(0)
            .passages(&["WARNING"])
    });
    insta::assert_snapshot!(absent.join("\n\n"));
    // Names of disks on Solaris are of other hosts.
    for name in ["c1t0d0", "c0d1"] {
        let foreign = plan(&format!("partition {name} --grid 4k"));
        assert!(!foreign.ends(0).out.contains("WARNING"), "{}", foreign.out);
    }
    require!(Loop, Tool("sfdisk"), Tool("mkfs.ext4"));
    let folder = Folder::new("plan-state");
    let image = folder.path("disk");
    std::fs::File::create(&image)
        .and_then(|file| file.set_len(64 << 20))
        .expect("an image");
    let disk = LoopDevice::attach(&image, &["-P"]);
    let path = disk.path().to_str().expect("a plain path").to_owned();
    let line = format!("partition {path} --grid 4k");
    let empty = plan(&line);
    assert!(!empty.ends(0).out.contains("WARNING"), "{}", empty.out);
    run(Command::new("sh").arg("-c").arg(format!(
        "echo 'label: gpt\nstart=2048, size=65536' | sfdisk -q {path} && udevadm settle 2>/dev/null; \
         for n in 1 2 3 4 5 6 7 8 9 10; do test -b {path}p1 && break; partx -a {path} 2>/dev/null; sleep 0.2; done; \
         mkfs.ext4 -q {path}p1"
    )));
    let warning = |ran: &Ran, named: &str| {
        let first = format!("WARNING {named}: ");
        ran.ends(0).says(&first).passages(&["WARNING"])
    };
    let name = disk.name();
    let by_name = plan(&format!("partition {name} --grid 4k"));
    let mut messages = vec![warning(&plan(&line), &path), warning(&by_name, &name)];
    let at = folder.path("at");
    std::fs::create_dir(&at).expect("a directory");
    run(Command::new("mount").arg(format!("{path}p1")).arg(&at));
    let ran = plan(&line);
    let document = plan(&format!("{line} --json")).json();
    run(Command::new("umount").arg(&at));
    messages.push(warning(&ran, &path));
    // The plan is that of the partition as it is: it keeps the data first.
    messages.push(ran.says(&path).passages(&["Plan:"]));
    insta::assert_snapshot!(messages.join("\n\n"));
    let warnings = &document["result"]["plans"][0]["warnings"];
    assert_eq!(warnings[0]["kind"], "mounted");
    assert_eq!(warnings[0]["at"][0], at.to_str().expect("plain"));
    let faults = crate::common::schema::Schema::read("plan").faults(&document);
    assert_eq!(faults, [""; 0]);
}

/// A partition of this host is planned from its label: its start, its kind of label, and a way that keeps its data.
#[test]
fn a_partition_of_this_host_is_read_from_its_label() {
    use plumb_testkit::loop_device::{LoopDevice, run};
    use std::process::Command;
    require!(Loop, Tool("sfdisk"), Tool("partx"));
    let folder = Folder::new("plan-label");
    let image = folder.path("disk");
    std::fs::File::create(&image)
        .and_then(|file| file.set_len(64 << 20))
        .expect("an image");
    let disk = LoopDevice::attach(&image, &[]);
    let path = disk.path().to_str().expect("a plain path").to_owned();
    let script = folder.file("script", "label: dos\n63,32768,L\n");
    run(Command::new("sh")
        .arg("-c")
        .arg(format!("sfdisk -q {path} < {}", script.display())));
    disk.add_partitions();
    let mut messages = Vec::new();
    for target in [path.clone(), format!("{path}p1")] {
        let ran = plan(&format!("partition {target} --grid 4k"));
        messages.push(ran.ends(0).passages(&["should start", "Way "]));
        // sgdisk makes a GPT of such a label.
        assert!(!ran.out.contains("sgdisk"), "{}", ran.out);
    }
    insta::assert_snapshot!(messages.join("\n\n"));
    // A new partition has the label that the disk has.
    let second = plan(&format!("partition {path} --grid 4k --number 2"));
    assert!(!second.ends(0).out.contains("sgdisk"), "{}", second.out);
}

/// The study that a plan of writes names measures the two rates of the plan.
#[test]
fn writes_are_measured_by_a_study() {
    let text = plan("writes --record 512 --gather 16 --random 80")
        .ends(0)
        .flat();
    let begin = text.find("plumb bench SCRATCH").expect("the study");
    let command: String = text[begin..]
        .chars()
        .take_while(|sign| *sign != '(')
        .collect();
    assert!(command.contains("--study gather"), "{command}");
    let folder = Folder::new("plan-writes");
    let file = folder.file("scratch", vec![1; 1 << 20]);
    let name = file.to_str().expect("a plain path");
    let line = command.replace("SCRATCH", name) + " --at-threads 1 --for 100ms --json";
    let ran = plumb(line.split_whitespace().skip(1));
    let document = ran.ends(0).json();
    let rows = document["result"]["study"]["rows"]
        .as_array()
        .expect("rows");
    let gathered: Vec<u64> = rows
        .iter()
        .filter_map(|row| row["records"].as_u64())
        .collect();
    assert!(gathered.contains(&1) && gathered.contains(&16), "{rows:?}");
    // A record that the study does not take is measured by fio.
    plan("writes --record 64k --gather 16 --random 80")
        .ends(0)
        .says("fio --name=random");
}
