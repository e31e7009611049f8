//! Virtual disks as qemu-img makes and describes them.

use std::fs;

use plumb_geometry::Bytes;
use plumb_label::{Disk, FileDisk};
use plumb_stack::ProblemId;
use plumb_stack::node::keys;
use plumb_stack::ondisk::Scan;
use plumb_stack::{Builder, CellKind, Kind, Placing, Stack, Verdict};
use plumb_stack::{ImageObstacle, Obstacle};
use plumb_testkit::require;
use serde_json::Value;

use crate::ondisk::tools::{Images, KIB, MIB, grid, node, problems, run, run_of, run_of_content};

fn stack(images: &Images, name: &str) -> Stack {
    let (mut builder, mut scan) = (Builder::default(), Scan::default());
    let id = builder.node(name);
    scan.probe_image(&mut builder, &images.disk(name), id);
    scan.finish(&mut builder);
    builder.finish()
}

/// A raw disk with two partitions, the second one with ext4, and its text of qemu-img's format.
fn guest(images: &Images) -> String {
    let path = images.make("guest.raw", 100 * MIB);
    run(
        "sfdisk",
        &["-q", &path],
        "label: gpt\nfirst-lba: 34\nstart=34,size=2000\nstart=8192,size=131072\n",
    );
    let part = images.make("part", 131_072 * 512);
    run(
        "mkfs.ext4",
        &["-q", "-F", "-E", "stride=16,stripe_width=48", &part],
        "",
    );
    images.write("guest.raw", 8192 * 512, &fs::read(&part).expect("an image"));
    path
}

fn convert(images: &Images, format: &str, options: &str, name: &str) -> String {
    let (from, to) = (
        guest(images),
        images.path(name).to_str().expect("text").to_owned(),
    );
    let mut arguments = vec!["convert", "-q", "-f", "raw", "-O", format];
    if !options.is_empty() {
        arguments.extend(["-o", options]);
    }
    arguments.extend([from.as_str(), &to]);
    run("qemu-img", &arguments, "");
    to
}

/// Runs of data as `qemu-img map` prints them: position in the disk, length, position in the file.
fn runs(format: &str, path: &str) -> Vec<(u64, u64, u64)> {
    let text = run(
        "qemu-img",
        &["map", "--output=json", "-f", format, path],
        "",
    );
    let rows: Value = serde_json::from_str(&text).expect("JSON");
    let number = |row: &Value, name: &str| row[name].as_u64();
    let rows = rows.as_array().expect("rows").iter();
    let runs = rows.filter(|row| row["data"] == true);
    runs.filter_map(|row| {
        Some((
            number(row, "start")?,
            number(row, "length")?,
            number(row, "offset")?,
        ))
    })
    .collect()
}

fn info(format: &str, path: &str) -> Value {
    serde_json::from_str(&run(
        "qemu-img",
        &["info", "--output=json", "-f", format, path],
        "",
    ))
    .expect("JSON")
}

/// The partitions and the file system in the guest are those of the raw disk, in every format; size and positions of
/// blocks agree with qemu-img.
#[test]
fn disks_of_guests_are_read_in_every_format() {
    require!(Tool("qemu-img"), Tool("sfdisk"), Tool("mkfs.ext4"));
    for (format, options, words, block) in [
        ("qcow2", "", "qcow2", 64 * KIB),
        ("qcow2", "cluster_size=4096,compat=0.10", "qcow2", 4 * KIB),
        (
            "qcow2",
            "extended_l2=on,cluster_size=128k",
            "qcow2",
            4 * KIB,
        ),
        ("vmdk", "", "VMDK", 64 * KIB),
        ("vpc", "force_size=on", "VHD", 2 * MIB),
        ("vpc", "subformat=fixed,force_size=on", "VHD", 0),
        ("vhdx", "", "VHDX", 8 * MIB),
        ("vhdx", "block_size=2M,subformat=fixed", "VHDX", 2 * MIB),
    ] {
        let images = Images::new();
        let path = convert(&images, format, options, "guest.image");
        let stack = stack(&images, "guest.image");
        let disk = node(&stack, "guest.image:disk");
        assert_eq!(
            disk.size.map(|size| size.0),
            info(format, &path)["virtual-size"].as_u64(),
            "{format} {options}"
        );
        assert_eq!(
            node(&stack, "guest.image")
                .value(keys::CONTENT)
                .map(|word| word.text()),
            Some(words)
        );
        assert_eq!(disk.kind, Kind::ImageDisk);
        if block > 0 {
            assert_eq!(
                grid(disk, CellKind::Cluster).granularity(),
                Bytes(block),
                "{format} {options}"
            );
        }
        for (name, start) in [("guest.image#1", 34), ("guest.image#2", 8192)] {
            assert_eq!(run_of(&stack, name).1, start * 512, "{format} {options}");
        }
        assert_eq!(
            run_of_content(&stack, "ext4", "guest.image#2").0,
            "guest.image#2"
        );
        assert_eq!(problems(&stack), [] as [ProblemId; 0], "{format} {options}");
        let (step, start) = match disk.placing {
            Placing::Blocks { block, member } => (block.0, member.start.0),
            Placing::Parts { .. } => (u64::MAX, run_of(&stack, "guest.image:disk").1),
            ref other => panic!("{other:?}"),
        };
        // Data in blocks keep their position modulo the block length.
        let runs = runs(format, &path);
        // Of VHDX qemu-img tells no places; reading every byte does, below.
        assert!(format == "vhdx" || !runs.is_empty(), "{format} {options}");
        for (upper, _, lower) in runs {
            let moved = i128::from(lower) - i128::from(upper) - i128::from(start);
            assert_eq!(
                moved.rem_euclid(i128::from(step)),
                0,
                "{format} {options}: {upper} at {lower}"
            );
        }
    }
}

/// A file without its end has less than its tables state, which is reported; an empty virtual disk has nothing.
#[test]
fn a_file_whose_end_is_missing() {
    require!(Tool("qemu-img"), Tool("sfdisk"), Tool("mkfs.ext4"));
    for (format, options) in [
        ("qcow2", ""),
        ("qcow2", "extended_l2=on,cluster_size=128k"),
        ("vmdk", ""),
        ("vpc", "subformat=fixed,force_size=on"),
        ("vpc", "force_size=on"),
        ("vhdx", ""),
    ] {
        let (images, is_long) = (Images::new(), options.contains("128k"));
        let path = convert(&images, format, options, "guest.image");
        // Before the last run that `qemu-img map` shows; of VHDX it shows no places, and half of the file goes.
        // A cluster may end early, so one of 128 KiB goes as a whole.
        let last = runs(format, &path)
            .iter()
            .map(|(_, _, at)| at - at % if is_long { 128 * KIB } else { 1 })
            .max();
        let cut = last.unwrap_or(fs::metadata(&path).expect("the image").len() / 2);
        // A fixed VHD is known by its footer, which goes with the end; here the middle goes.
        let bytes = fs::read(&path).expect("the image");
        let kept = match options.contains("fixed") {
            true => [&bytes[..MIB as usize], &bytes[bytes.len() - 512..]].concat(),
            false => bytes[..cut as usize].to_vec(),
        };
        fs::write(&path, kept).expect("the image");
        let found = problems(&stack(&images, "guest.image"));
        assert!(
            found.contains(&ProblemId::BeyondDevice),
            "{format} {options}: {found:?}"
        );
        run(
            "qemu-img",
            &[
                "create",
                "-q",
                "-f",
                format,
                &images.path("new").display().to_string(),
                "1G",
            ],
            "",
        );
        assert_eq!(
            problems(&stack(&images, "new")),
            [] as [ProblemId; 0],
            "{format}: nothing is missing"
        );
    }
}

/// The bitmap before each block of a VHD shifts its data: no two blocks have the same phase of 4 KiB.
#[test]
fn blocks_of_a_vhd_are_shifted_by_their_bitmaps() {
    require!(Tool("qemu-img"), Tool("sfdisk"), Tool("mkfs.ext4"));
    let images = Images::new();
    let path = convert(&images, "vpc", "force_size=on", "guest.vhd");
    let stack = stack(&images, "guest.vhd");
    let starts: std::collections::BTreeSet<u64> = runs("vpc", &path)
        .iter()
        .map(|(upper, _, lower)| (lower + 4096 - upper % 4096) % 4096)
        .collect();
    assert!(starts.len() > 1, "{starts:?}");
    let disk = stack.find("guest.vhd:disk").expect("it");
    let file = stack.find("guest.vhd").expect("it");
    let standing = stack
        .standings(disk)
        .into_iter()
        .find(|one| one.landing.on == file)
        .expect("a standing");
    assert_eq!(standing.verdict, Verdict::Varies { step: Bytes(512) });
    // A fixed one begins with its data.
    convert(&images, "vpc", "subformat=fixed,force_size=on", "fixed.vhd");
    let stack = super::images::stack(&images, "fixed.vhd");
    assert_eq!(
        run_of(&stack, "fixed.vhd:disk"),
        ("fixed.vhd".to_owned(), 0, Some(100 * MIB))
    );
}

/// Every byte, of formats that map them differently.
#[test]
fn a_disk_reads_as_the_raw_one() {
    require!(Tool("qemu-img"), Tool("sfdisk"), Tool("mkfs.ext4"));
    for (format, options) in [
        ("qcow2", ""),
        ("qcow2", "extended_l2=on"),
        ("vmdk", ""),
        ("vpc", "force_size=on"),
        ("vhdx", ""),
    ] {
        let images = Images::new();
        convert(&images, format, options, "guest.image");
        let raw = fs::read(images.path("guest.raw")).expect("an image");
        let file = images.disk("guest.image");
        let disk = plumb_stack::ondisk::image::open(&file)
            .expect("known")
            .expect("whole");
        assert_eq!(disk.size_bytes(), raw.len() as u64, "{format}");
        let mut piece = vec![0; 1 << 20];
        for (number, expected) in raw.chunks(piece.len()).enumerate() {
            disk.read_at((number as u64) << 20, &mut piece)
                .expect("readable");
            assert!(piece == expected, "{format} {options}: MiB {number}");
        }
        assert!(disk.read_at(raw.len() as u64 - 1, &mut piece[..2]).is_err());
    }
}

#[test]
fn data_in_other_files_are_placed_there() {
    require!(Tool("qemu-img"));
    let images = Images::new();
    let text = |name: &str| images.path(name).to_str().expect("text").to_owned();
    let mut notes = Vec::new();
    for (raw, name) in [("off", "some.qcow2"), ("on", "raw.qcow2")] {
        let options = format!("data_file={},data_file_raw={raw}", text("guest.data"));
        run(
            "qemu-img",
            &[
                "create",
                "-q",
                "-f",
                "qcow2",
                "-o",
                &options,
                &text(name),
                "64M",
            ],
            "",
        );
        let stack = stack(&images, name);
        let below = node(&stack, &format!("{name}:disk")).placing.below();
        assert_eq!(stack.node(below[0]).name, text("guest.data"));
        notes.extend_from_slice(stack.notes());
    }
    let stack_of = |name: &str| super::images::stack(&images, name);
    run(
        "qemu-img",
        &["create", "-q", "-f", "qcow2", &text("base.qcow2"), "64M"],
        "",
    );
    let base = text("base.qcow2");
    run(
        "qemu-img",
        &[
            "create",
            "-q",
            "-f",
            "qcow2",
            "-b",
            &base,
            "-F",
            "qcow2",
            &text("over.qcow2"),
        ],
        "",
    );
    let over = stack_of("over.qcow2");
    assert!(
        over.notes().iter().any(|note| note.ends_with(&base)),
        "{:?}",
        over.notes()
    );
    // Data in the base file do not count as missing.
    notes.extend_from_slice(over.notes());
    let folder = images.path("").to_str().expect("text").to_owned();
    insta::assert_snapshot!(notes.join("\n\n").replace(&folder, "FOLDER/"));
    run(
        "qemu-img",
        &[
            "create",
            "-q",
            "-f",
            "vmdk",
            "-o",
            "subformat=monolithicFlat",
            &text("flat.vmdk"),
            "64M",
        ],
        "",
    );
    let flat = stack_of("flat.vmdk");
    assert_eq!(
        run_of(&flat, "flat.vmdk:disk"),
        ("flat-flat.vmdk".to_owned(), 0, Some(64 * MIB))
    );
    run(
        "qemu-img",
        &[
            "create",
            "-q",
            "-f",
            "vmdk",
            "-o",
            "subformat=streamOptimized",
            &text("s.vmdk"),
            "64M",
        ],
        "",
    );
    let Placing::Unknown { why, .. } = &node(&stack_of("s.vmdk"), "s.vmdk:disk").placing.clone()
    else {
        panic!("it is placed")
    };
    let fault = ImageObstacle::GrainsCompressed;
    assert_eq!(*why, Obstacle::Image { fault });
}

/// Subclusters over a backing file: those that are zeros are known to be, those that are not there are in the backing.
#[test]
fn subclusters_are_read_each_by_itself() {
    require!(Tool("qemu-img"), Tool("qemu-io"));
    let images = Images::new();
    let [base, over] = ["base.qcow2", "over.qcow2"]
        .map(|name| images.path(name).to_str().expect("text").to_owned());
    run(
        "qemu-img",
        &["create", "-q", "-f", "qcow2", &base, "64M"],
        "",
    );
    let options = ["-o", "extended_l2=on,cluster_size=128k"];
    let backing = ["-b", &base, "-F", "qcow2", &over];
    run(
        "qemu-img",
        &[&["create", "-q", "-f", "qcow2"][..], &options, &backing].concat(),
        "",
    );
    let commands = ["-c", "write -P 170 0 32k", "-c", "write -z 4k 4k"];
    run(
        "qemu-io",
        &[&["-f", "qcow2"][..], &commands, &[&over]].concat(),
        "",
    );
    let file = images.disk("over.qcow2");
    let disk = plumb_stack::ondisk::image::open(&file)
        .expect("known")
        .expect("whole");
    let mut found = vec![1; 32 << 10];
    disk.read_at(0, &mut found).expect("readable");
    let is_zero = |at: usize| (4 << 10..8 << 10).contains(&at);
    assert!(
        found
            .iter()
            .enumerate()
            .all(|(at, byte)| *byte == if is_zero(at) { 0 } else { 170 })
    );
    assert!(
        disk.read_at(32 << 10, &mut found[..1]).is_err(),
        "it is in the backing file"
    );
}

#[test]
fn vhdx_states_its_sectors() {
    require!(Tool("qemu-img"), Tool("sfdisk"), Tool("mkfs.ext4"));
    let images = Images::new();
    convert(&images, "vhdx", "", "guest.vhdx");
    let stack = stack(&images, "guest.vhdx");
    let disk = node(&stack, "guest.vhdx:disk");
    // QEMU writes both as 512.
    assert_eq!(grid(disk, CellKind::LogicalBlock).granularity(), Bytes(512));
    assert_eq!(
        grid(disk, CellKind::PhysicalBlock).granularity(),
        Bytes(512)
    );
}

/// A file of no known format is a disk itself.
#[test]
fn a_raw_image_is_a_disk() {
    require!(Tool("sfdisk"), Tool("mkfs.ext4"));
    let images = Images::new();
    guest(&images);
    let stack = stack(&images, "guest.raw");
    assert_eq!(run_of(&stack, "guest.raw#2").0, "guest.raw");
    assert!(
        plumb_stack::ondisk::image::open(
            &FileDisk::new(fs::File::open(images.path("guest.raw")).expect("a file"))
                .expect("its end")
        )
        .is_none()
    );
}

/// Beyond the first entry for a bitmap of VHDX (4 GiB in), and beyond the first table of the others.
#[test]
fn superblocks_far_into_a_disk_are_found() {
    require!(Tool("qemu-img"), Tool("sfdisk"), Tool("mkfs.ext4"));
    const START: u64 = 6 << 30;
    for (format, options) in [
        ("qcow2", ""),
        ("vmdk", ""),
        ("vpc", "force_size=on"),
        ("vhdx", "block_size=8M"),
        ("vhdx", "block_size=1M"),
    ] {
        let images = Images::new();
        let raw = images.make("guest.raw", 8 << 30);
        run(
            "sfdisk",
            &["-q", &raw],
            &format!("label: dos\nstart={},size=65536\n", START / 512),
        );
        run(
            "mkfs.ext4",
            &["-q", "-F", "-E", &format!("offset={START}"), &raw, "32M"],
            "",
        );
        let to = images
            .path("guest.image")
            .to_str()
            .expect("text")
            .to_owned();
        let mut arguments = vec!["convert", "-q", "-f", "raw", "-O", format, &raw, &to];
        if !options.is_empty() {
            arguments.splice(1..1, ["-o", options]);
        }
        run("qemu-img", &arguments, "");
        let stack = stack(&images, "guest.image");
        assert_eq!(
            run_of(&stack, "guest.image#1").1,
            START,
            "{format} {options}"
        );
        assert_eq!(
            run_of_content(&stack, "ext4", "guest.image#1").0,
            "guest.image#1",
            "{format} {options}"
        );
        assert_eq!(problems(&stack), [] as [ProblemId; 0], "{format} {options}");
    }
}
