//! Labels made by sfdisk with known starts, and read back through every tool that prints one.

use plumb_stack::Obstacle;
use plumb_stack::ProblemId;
use plumb_stack::Verdict;
use plumb_testkit::{require, temp_dir};

use super::support::{Loop, SECTOR, image, run, run_of, run_with, stack_of, verdict_on, why};

/// First sectors and lengths, off and on every grid.
const GPT: [(u64, u64); 4] = [(34, 20), (63, 100), (2048, 1000), (4099, 555)];
/// The same of an MBR: 1 and 3 are primary, 2 holds 5 and 6.
const DOS: [(u32, u64, u64); 4] = [(1, 63, 100), (3, 20001, 7), (5, 2111, 100), (6, 4096, 1024)];
const DOS_EXTENDED: (u64, u64) = (2048, 16384);

fn gpt_script() -> String {
    let rows = GPT.map(|(start, len)| format!("start={start}, size={len}\n"));
    format!("label: gpt\nfirst-lba: 34\n{}", rows.concat())
}

fn dos_script() -> String {
    let row = |at: usize| format!("start={}, size={}, type=83\n", DOS[at].1, DOS[at].2);
    let (start, len) = DOS_EXTENDED;
    format!(
        "label: dos\n{}start={start}, size={len}, type=5\n{}{}{}",
        row(0),
        row(1),
        row(2),
        row(3)
    )
}

/// Tools with the arguments before the image, and the format that has to take their output.
const TOOLS: [(&str, &str, &[&str], &[&str]); 7] = [
    ("sfdisk -d", "sfdisk", &["-d"], &[]),
    ("sfdisk -J", "sfdisk", &["-J"], &[]),
    ("fdisk -l", "fdisk", &["-l"], &[]),
    ("fdisk -l", "sfdisk", &["-l"], &[]),
    ("sgdisk -p", "sgdisk", &["-p"], &[]),
    ("parted print", "parted", &["-s"], &["unit", "s", "print"]),
    (
        "parted -m print",
        "parted",
        &["-sm"],
        &["unit", "s", "print", "free"],
    ),
];

#[test]
fn a_gpt_in_an_image() {
    require!(
        Tool("sfdisk"),
        Tool("fdisk"),
        Tool("sgdisk"),
        Tool("parted")
    );
    let dir = temp_dir("gpt");
    image(dir.path(), "disk", 16);
    run_with("sfdisk", &["-q", "disk"], dir.path(), &gpt_script());
    for (format, program, before, after) in TOOLS {
        let print = run(program, &[before, &["disk"], after].concat(), dir.path());
        let stack = stack_of(&[(format, &print)]);
        // parted prints the whole path.
        let disk = stack
            .nodes()
            .find(|(_, node)| node.name.ends_with("disk"))
            .expect("a disk")
            .1
            .name
            .clone();
        for (at, (start, len)) in GPT.into_iter().enumerate() {
            let found = run_of(&stack, &format!("{disk}{}", at + 1));
            let told = Some((start * SECTOR, Some(len * SECTOR), disk.clone()));
            assert_eq!(found, told, "{program} {before:?}");
        }
        let partitions = stack
            .nodes()
            .filter(|(_, node)| node.name.len() > disk.len())
            .count();
        assert_eq!(partitions, GPT.len(), "{program}: no more than there are");
    }
}

#[test]
fn an_mbr_with_logical_partitions() {
    require!(Tool("sfdisk"), Tool("fdisk"), Tool("parted"));
    let dir = temp_dir("mbr");
    image(dir.path(), "disk", 16);
    run_with("sfdisk", &["-q", "disk"], dir.path(), &dos_script());
    for (format, program, before, after) in TOOLS
        .into_iter()
        .filter(|(_, program, ..)| *program != "sgdisk")
    {
        let print = run(program, &[before, &["disk"], after].concat(), dir.path());
        let stack = stack_of(&[(format, &print)]);
        let disk = stack
            .nodes()
            .find(|(_, node)| node.name.ends_with("disk"))
            .expect("a disk")
            .1
            .name
            .clone();
        for (number, start, len) in DOS {
            let found = run_of(&stack, &format!("{disk}{number}"));
            assert_eq!(
                found,
                Some((start * SECTOR, Some(len * SECTOR), disk.clone())),
                "{program} {number}"
            );
        }
        assert_eq!(
            stack.find(&format!("{disk}2")),
            None,
            "the extended one holds no data"
        );
    }
}

#[test]
fn rounded_starts_are_no_starts() {
    require!(Tool("sfdisk"), Tool("parted"));
    let dir = temp_dir("rounded");
    image(dir.path(), "disk", 16);
    run_with("sfdisk", &["-q", "disk"], dir.path(), &gpt_script());
    let disk = dir.path().join("disk").display().to_string();
    let rounded = run("parted", &["-s", "disk", "print"], dir.path());
    let stack = stack_of(&[("parted print", &rounded)]);
    assert_eq!(why(&stack, &format!("{disk}2")), Obstacle::RoundedByParted);
    let bytes = run("parted", &["-s", "disk", "unit", "B", "print"], dir.path());
    let stack = stack_of(&[("parted print", &bytes)]);
    assert_eq!(
        run_of(&stack, &format!("{disk}2")),
        Some((63 * SECTOR, Some(100 * SECTOR), disk))
    );
}

/// With sectors of 4 KiB labels count in them, and lsblk still in 512 bytes. All tools together tell one story.
#[test]
fn sectors_of_4096_bytes() {
    require!(
        Loop,
        Tool("sfdisk"),
        Tool("sgdisk"),
        Tool("parted"),
        Tool("lsblk")
    );
    let dir = temp_dir("sectors");
    image(dir.path(), "disk", 64);
    let device = Loop::attach(dir.path(), "disk", 4096);
    let starts = [(6u64, 10u64), (63, 100), (2047, 555)];
    let rows = starts.map(|(start, len)| format!("start={start}, size={len}\n"));
    let script = format!("label: gpt\nfirst-lba: 6\n{}", rows.concat());
    run_with("sfdisk", &["-q", &device.0], dir.path(), &script);
    let mut prints: Vec<(&str, String)> = Vec::new();
    for (format, program, before, after) in TOOLS {
        prints.push((
            format,
            run(program, &[before, &[&device.0], after].concat(), dir.path()),
        ));
    }
    prints.push((
        "lsblk -J",
        run("lsblk", &["-J", "-O", "-b", &device.0], dir.path()),
    ));
    let disk = device.0.trim_start_matches("/dev/");
    let check = |prints: &[(&str, &str)]| {
        let stack = stack_of(prints);
        for (at, (start, len)) in starts.into_iter().enumerate() {
            let found = run_of(&stack, &format!("{disk}p{}", at + 1));
            assert_eq!(
                found,
                Some((start * 4096, Some(len * 4096), disk.to_owned())),
                "{prints:?}"
            );
        }
        assert_eq!(stack.problems().len(), 0, "{:?}", stack.problems());
    };
    // Kernels without partitions on loop devices have none to list; the guest's rows have.
    let part = format!("{disk}p1");
    for (format, print) in prints
        .iter()
        .filter(|(format, print)| *format != "lsblk -J" || print.contains(&part))
    {
        check(&[(format, print)]);
    }
    let mut all: Vec<(&str, &str)> = prints
        .iter()
        .map(|(format, print)| (*format, print.as_str()))
        .collect();
    check(&all);
    all.reverse();
    check(&all);
}

#[test]
fn one_logical_partition_makes_an_extended_one() {
    let label = "label: dos\ndevice: /dev/sda\nsector-size: 512\n/dev/sda1 : start= 63, size= 100\n\
                 /dev/sda2 : start= 2049, size= 9999, type=5\n/dev/sda5 : start= 2112, size= 800\n";
    let stack = stack_of(&[("sfdisk -d", label)]);
    assert_eq!(stack.find("sda2"), None);
    assert_eq!(run_of(&stack, "sda5").map(|run| run.0), Some(2112 * 512));
    // A GPT has no such thing: partitions that overlap stay.
    let stack = stack_of(&[("sfdisk -d", &label.replace("dos", "gpt"))]);
    assert_eq!(run_of(&stack, "sda2").map(|run| run.0), Some(2049 * 512));
}

/// A dump that does not state the size of a sector learns it from another.
#[test]
fn the_sector_size_may_come_from_another_dump() {
    let label =
        "# partition table of /dev/sda\nunit: sectors\n/dev/sda1 : start= 63, size= 1000, Id=83\n";
    let alone = stack_of(&[("sfdisk -d", label)]);
    assert_eq!(run_of(&alone, "sda1").map(|run| run.0), Some(63 * 512));
    assert_eq!(alone.notes().len(), 1, "{:?}", alone.notes());
    let lsblk =
        r#"{"blockdevices": [{"name": "sda", "type": "disk", "log-sec": 4096, "phy-sec": 4096}]}"#;
    for dumps in [
        [("sfdisk -d", label), ("lsblk -J", lsblk)],
        [("lsblk -J", lsblk), ("sfdisk -d", label)],
    ] {
        let stack = stack_of(&dumps);
        assert_eq!(run_of(&stack, "sda1").map(|run| run.0), Some(63 * 4096));
        assert_eq!(verdict_on(&stack, "sda1", "sda"), [Verdict::Aligned]);
    }
}

/// A partition that a tool names, on a disk whose label nobody printed.
#[test]
fn without_a_label_nothing_is_known() {
    let stack = stack_of(&[("/proc/mounts", "/dev/nvme0n1p2 / ext4 rw 0 0\n")]);
    let lost = stack.landings(stack.find("/").expect("it")).lost;
    let disk = "nvme0n1".to_owned();
    assert_eq!(lost[0].1, Obstacle::LabelNotDumped { disk });
    assert!(
        stack
            .standings(stack.find("/").expect("it"))
            .iter()
            .all(|one| one.verdict != Verdict::Aligned)
    );
}

/// No tool makes such a label, but they print one: the start of the second entry of an MBR was changed.
#[test]
fn partitions_over_each_other() {
    require!(Tool("sfdisk"), Tool("fdisk"));
    let dir = temp_dir("overlap");
    image(dir.path(), "disk", 16);
    let script = "label: dos\nstart=2048, size=4000\nstart=8192, size=4000\n";
    run_with("sfdisk", &["-q", "disk"], dir.path(), script);
    for (start, expected) in [(6048_u32, 0), (6047, 1)] {
        let mut bytes = std::fs::read(dir.path().join("disk")).expect("an image");
        bytes[446 + 16 + 8..][..4].copy_from_slice(&start.to_le_bytes());
        std::fs::write(dir.path().join("disk"), bytes).expect("written");
        for (format, program, before, after) in &TOOLS[..4] {
            let print = run(program, &[*before, &["disk"], after].concat(), dir.path());
            let stack = stack_of(&[(format, &print)]);
            let found: Vec<ProblemId> = stack.problems().iter().map(|problem| problem.id).collect();
            assert_eq!(
                found,
                vec![ProblemId::OverlappingPartitions; expected],
                "{format}, {start}: {print}"
            );
        }
    }
}

/// sgdisk prints numbers, lsblk a disk with an unknown label.
#[test]
fn partitions_over_each_other_by_number() {
    let sgdisk = "Disk /dev/sda: 131072 sectors, 64.0 MiB\nSector size (logical): 512 bytes\n\n\
                  Number  Start (sector)    End (sector)  Size       Code  Name\n   \
                  1            2048           40000   18.5 MiB    8300  \n   \
                  2           30000           80000   24.4 MiB    8300  \n";
    let lsblk = r#"{"blockdevices": [{"name": "sda", "type": "disk", "size": 67108864, "children": [
        {"name": "sda1", "type": "part", "start": 2048, "size": 19431936},
        {"name": "sda2", "type": "part", "start": 30000, "size": 25600512}]}]}"#;
    for dumps in [
        &[("sgdisk -p", sgdisk)][..],
        &[("lsblk -J", lsblk)],
        &[("sgdisk -p", sgdisk), ("lsblk -J", lsblk)],
    ] {
        let stack = stack_of(dumps);
        let found: Vec<&str> = stack
            .problems()
            .iter()
            .map(|problem| problem.text.as_str())
            .collect();
        let text = "sda1 takes sectors 2,048 to 40,000 of sda, and sda2 begins at sector 30,000";
        assert_eq!(found, [text]);
    }
}

/// Without the size of the disk its label states the last possible end of partitions.
#[test]
fn a_partition_behind_the_last_sector_of_its_label() {
    for (len, expected) in [(2_095_071, None), (2_095_072, Some("sdb1"))] {
        let label = format!(
            "label: gpt\ndevice: /dev/sdb\nunit: sectors\nfirst-lba: 34\nlast-lba: 2097118\nsector-size: 512\n\n\
             /dev/sdb1 : start= 2048, size= {len}\n"
        );
        let stack = stack_of(&[("sfdisk -d", &label)]);
        let found = stack
            .problems()
            .iter()
            .map(|one| (one.id, one.node.map(|id| stack.node(id).name.as_str())));
        let expected: Vec<_> = expected
            .map(|name| (ProblemId::BeyondDevice, Some(name)))
            .into_iter()
            .collect();
        assert_eq!(found.collect::<Vec<_>>(), expected, "{len}");
    }
}
