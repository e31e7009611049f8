//! Partitions and faults of labels.

use plumb_geometry::Bytes;
use plumb_stack::ProblemId;
use plumb_stack::grid::Source;
use plumb_stack::node::keys;
use plumb_stack::ondisk::Scan;
use plumb_stack::{Builder, Kind, Part, Placing};
use plumb_testkit::require;

use crate::ondisk::tools::{Images, MIB, node, problems, run, run_of, run_of_content};

const GPT: &str = "label: gpt\nfirst-lba: 34\nstart=34,size=2000\nstart=4096,size=8192\n";

#[test]
fn partitions_are_where_sfdisk_put_them() {
    require!(Tool("sfdisk"), Tool("mkfs.ext4"));
    let images = Images::new();
    let path = images.make("disk.img", 64 * MIB);
    run("sfdisk", &["-q", &path], GPT);
    let part = images.make("part.img", 8192 * 512);
    run("mkfs.ext4", &["-q", "-F", &part], "");
    images.write(
        "disk.img",
        4096 * 512,
        &std::fs::read(&part).expect("an image"),
    );
    let stack = images.stack(&["disk.img"]);
    assert_eq!(
        run_of(&stack, "disk.img#1"),
        ("disk.img".to_owned(), 34 * 512, Some(2000 * 512))
    );
    assert_eq!(
        run_of(&stack, "disk.img#2"),
        ("disk.img".to_owned(), 4096 * 512, Some(8192 * 512))
    );
    assert_eq!(
        node(&stack, "disk.img")
            .value(keys::LABEL)
            .map(|word| word.text()),
        Some("gpt")
    );
    assert_eq!(run_of_content(&stack, "ext4", "disk.img#2").0, "disk.img#2");
    assert_eq!(
        node(&stack, "disk.img#2")
            .value(keys::CONTENT)
            .map(|word| word.text()),
        Some("ext4")
    );
    assert_eq!(problems(&stack), [] as [ProblemId; 0]);
}

#[test]
fn names_are_those_of_linux() {
    require!(Tool("sfdisk"));
    let images = Images::new();
    let path = images.make("disk.img", 64 * MIB);
    let script =
        "label: dos\nstart=2048,size=2048\nstart=8192,size=40960,type=5\nstart=10240,size=2048\n";
    run("sfdisk", &["-q", &path], script);
    for (disk, names) in [
        ("sda", ["sda1", "sda2", "sda5"]),
        ("nvme0n1", ["nvme0n1p1", "nvme0n1p2", "nvme0n1p5"]),
        ("loop0", ["loop0p1", "loop0p2", "loop0p5"]),
        ("c1t0d0", ["c1t0d0p1", "c1t0d0p2", "c1t0d0p5"]),
    ] {
        let (mut builder, mut scan) = (Builder::default(), Scan::default());
        let id = builder.node(disk);
        scan.probe(&mut builder, &images.disk("disk.img"), id);
        let stack = builder.finish();
        let starts = names.map(|name| run_of(&stack, name).1 / 512);
        assert_eq!(starts, [2048, 8192, 10240], "{disk}");
    }
}

/// Facts from the kernel: the same partition agrees, another start does not, and the two sectors that it shows of an
/// extended partition are no contradiction.
#[test]
fn labels_are_compared_with_sysfs() {
    require!(Tool("sfdisk"));
    let images = Images::new();
    let path = images.make("disk.img", 64 * MIB);
    run(
        "sfdisk",
        &["-q", &path],
        "label: dos\nstart=2048,size=2048\nstart=8192,size=40960,type=5\n",
    );
    for (start, expected) in [(2048, vec![]), (63, vec![ProblemId::Contradiction])] {
        let (mut builder, mut scan) = (Builder::default(), Scan::default());
        let kernel = Source::Kernel {
            path: "sys/class/block".to_owned(),
        };
        let sda = builder.node("sda");
        builder.size(sda, Bytes(64 * MIB), &kernel);
        for (name, start, len) in [("sda1", start, 2048), ("sda2", 8192, 2)] {
            let node = builder.node(name);
            builder.kind(node, Kind::Partition, &kernel);
            let (start, len) = (Bytes(start * 512), Bytes(len * 512));
            builder.size(node, len, &kernel);
            let part = Part {
                upper: Bytes(0),
                node: sda,
                start,
                len: Some(len),
            };
            builder.place(node, Placing::Parts { parts: vec![part] }, &kernel);
        }
        scan.probe(&mut builder, &images.disk("disk.img"), sda);
        assert_eq!(problems(&builder.finish()), expected, "sda1 at {start}");
    }
}

#[test]
fn damaged_labels_are_problems_and_no_end() {
    require!(Tool("sfdisk"));
    let images = Images::new();
    let fresh = || {
        let path = images.make("disk.img", 64 * MIB);
        run("sfdisk", &["-q", &path], GPT);
        path
    };
    let resize = |path: &str, len| {
        std::fs::File::options()
            .write(true)
            .open(path)
            .and_then(|file| file.set_len(len))
            .expect("another size");
    };
    fresh();
    images.write("disk.img", 512, &[0; 512]);
    let stack = images.stack(&["disk.img"]);
    assert_eq!(
        (problems(&stack), run_of(&stack, "disk.img#1").1),
        (vec![ProblemId::BrokenLabel], 34 * 512)
    );
    resize(&fresh(), 80 * MIB);
    assert_eq!(
        problems(&images.stack(&["disk.img"])),
        [ProblemId::StrandedBackupLabel]
    );
    resize(&fresh(), 4 * MIB);
    let cut = images.stack(&["disk.img"]);
    assert!(
        problems(&cut).contains(&ProblemId::BeyondDevice),
        "{:?}",
        cut.problems()
    );
    // The builder reports the second partition once.
    let of_second = cut
        .problems()
        .iter()
        .filter(|problem| problem.node == cut.find("disk.img#2"));
    assert_eq!(
        of_second
            .filter(|problem| problem.id == ProblemId::BeyondDevice)
            .count(),
        1
    );
    let path = images.make("disk.img", 64 * MIB);
    run(
        "sfdisk",
        &["-q", "--force", &path],
        "label: dos\nstart=2048,size=4096\nstart=8192,size=4096\n",
    );
    images.write("disk.img", 446 + 16 + 8, &4096_u32.to_le_bytes());
    assert_eq!(
        problems(&images.stack(&["disk.img"])),
        [ProblemId::OverlappingPartitions]
    );
}

/// Slices have Solaris's numbers, and other partitions have none.
#[test]
fn slices_have_the_number_of_solaris() {
    require!(Tool("sfdisk"), Tool("sgdisk"));
    let images = Images::new();
    let sun = images.make("sun.img", 64 * MIB);
    run(
        "sfdisk",
        &["-q", "--force", &sun],
        "label: sun\nsize=10M,type=4\nsize=10M,type=8\n",
    );
    let efi = images.make("efi.img", 64 * MIB);
    run(
        "sgdisk",
        &["-a", "1", "-n", "2:34:+10M", "-t", "2:bf01", &efi],
        "",
    );
    run("sfdisk", &["-q", &images.make("gpt.img", 64 * MIB)], GPT);
    let stack = images.stack(&["sun.img", "efi.img", "gpt.img"]);
    for (name, slice) in [
        ("sun.img#1", Some(0)),
        ("sun.img#2", Some(1)),
        ("efi.img#2", Some(1)),
        ("gpt.img#1", None),
    ] {
        assert_eq!(node(&stack, name).number(keys::SLICE), slice, "{name}");
    }
}

/// The same table once more, its sectors spread to blocks of 4 KiB: the label is of the block where its header is.
#[test]
fn the_block_of_a_label_is_reported() {
    require!(Tool("sfdisk"));
    let images = Images::new();
    run("sfdisk", &["-q", &images.make("512.img", 64 * MIB)], GPT);
    images.make("4k.img", 8 * 64 * MIB);
    let last = 64 * MIB / 512 - 1;
    let small = std::fs::read(images.path("512.img")).expect("an image");
    // MBR, header and entries, and at the end entries and header.
    for (sector, sectors) in [(0, 1), (1, 1), (2, 32), (last - 32, 32), (last, 1)] {
        let from = usize::try_from(sector * 512).expect("a place");
        images.write("4k.img", sector * 4096, &small[from..from + sectors * 512]);
    }
    let stack = images.stack(&["512.img", "4k.img"]);
    for (name, block) in [("512.img", 512), ("4k.img", 4096)] {
        assert_eq!(
            node(&stack, name)
                .number(keys::LABEL_BLOCK)
                .map(|bytes| bytes.0),
            Some(block),
            "{name}"
        );
        assert_eq!(
            run_of(&stack, &format!("{name}#1")),
            (name.to_owned(), 34 * block, Some(2000 * block))
        );
    }
}
