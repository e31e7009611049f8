//! Virtual disks whose file lacks its end, down to the last bytes.

use plumb_stack::ProblemId;
use plumb_stack::node::keys;
use plumb_testkit::wait::RunLimited;
use std::fs;

use plumb_stack::Stack;
use plumb_stack::ondisk::Scan;
use plumb_testkit::require;

use crate::ondisk::tools::{Images, KIB, MIB, problems, run};

fn stack(images: &Images) -> Stack {
    let (mut builder, mut scan) = (plumb_stack::Builder::default(), Scan::default());
    let id = builder.node("disk.img");
    scan.probe_image(&mut builder, &images.disk("disk.img"), id);
    scan.finish(&mut builder);
    builder.finish()
}

fn text(images: &Images, name: &str) -> String {
    images.path(name).to_str().expect("text").to_owned()
}

fn cut(images: &Images, by: u64) {
    let file = fs::File::options()
        .write(true)
        .open(images.path("disk.img"))
        .expect("the image");
    let len = file.metadata().expect("its length").len();
    file.set_len(len - by).expect("a shorter image");
}

fn len(images: &Images) -> u64 {
    fs::metadata(images.path("disk.img"))
        .expect("the image")
        .len()
}

/// Creates a disk and writes to it; the last write is the end of the file.
fn write(images: &Images, (format, options, size): (&str, &str, u64), writes: &[&str]) {
    let path = text(images, "disk.img");
    let create = ["create", "-q", "-f", format];
    let options = if options.is_empty() {
        vec![]
    } else {
        vec!["-o", options]
    };
    run(
        "qemu-img",
        &[&create[..], &options, &[&path, &size.to_string()]].concat(),
        "",
    );
    for write in writes {
        run("qemu-io", &["-f", format, "-c", write, &path], "");
    }
}

/// In each format the last written block is last in the file; without its last byte the file is truncated, with it it
/// is not.
#[test]
fn the_last_byte_of_the_last_block_counts() {
    require!(Tool("qemu-img"), Tool("qemu-io"));
    for (format, options, writes) in [
        ("qcow2", "", &["write -P 7 3M 64k"] as &[&str]),
        (
            "qcow2",
            "cluster_size=2M",
            &["write -P 7 0 4k", "write -P 7 8M 2M"],
        ),
        (
            "qcow2",
            "extended_l2=on,cluster_size=128k",
            &["write -P 7 1M 128k"],
        ),
        // The disk ends within its last cluster.
        ("qcow2", "", &["write -P 7 64M 512"]),
        ("vmdk", "", &["write -P 7 3M 64k"]),
        ("vhdx", "block_size=1M", &["write -P 7 3M 64k"]),
    ] {
        let images = Images::new();
        write(&images, (format, options, 64 * MIB + 512), writes);
        assert_eq!(
            problems(&stack(&images)),
            [] as [ProblemId; 0],
            "{format} {options} {writes:?}"
        );
        // With any data behind the disk's last block.
        let whole = len(&images);
        let map = run(
            "qemu-img",
            &[
                "map",
                "--output=json",
                "-f",
                format,
                &text(&images, "disk.img"),
            ],
            "",
        );
        let map: serde_json::Value = serde_json::from_str(&map).expect("JSON");
        let ends = map
            .as_array()
            .expect("runs")
            .iter()
            .filter(|run| run["data"] == true);
        let end = ends
            .filter_map(|run| Some(run["offset"].as_u64()? + run["length"].as_u64()?))
            .max();
        // Of VHDX qemu-img tells no places: its block of 1 MiB ends the file.
        cut(&images, whole - end.unwrap_or(whole).min(whole));
        assert_eq!(
            problems(&stack(&images)),
            [] as [ProblemId; 0],
            "{format} {options} {writes:?} whole"
        );
        cut(&images, 1);
        assert_eq!(
            problems(&stack(&images)),
            [ProblemId::BeyondDevice],
            "{format} {options} {writes:?} cut"
        );
    }
}

/// Of a cluster only the subclusters that are there have to be: QEMU ends the file behind them.
#[test]
fn a_cluster_may_end_early() {
    require!(Tool("qemu-img"), Tool("qemu-io"));
    let images = Images::new();
    let made = ("qcow2", "extended_l2=on,cluster_size=128k", 64 * MIB);
    write(&images, made, &["write -P 7 8k 4k"]);
    let is_early = len(&images) % (128 * KIB) == 12 * KIB;
    assert!(is_early, "{}", len(&images));
    assert_eq!(problems(&stack(&images)), [] as [ProblemId; 0]);
    cut(&images, 1);
    assert_eq!(problems(&stack(&images)), [ProblemId::BeyondDevice]);
}

/// A compressed cluster states the number of sectors that it reaches into. QEMU is the judge: its unpacked data differ
/// from the packed ones.
#[test]
fn compressed_clusters_are_followed_to_their_last_sector() {
    require!(Tool("qemu-img"));
    let images = Images::new();
    let raw = images.make("raw.img", 2 * MIB);
    // Numbers that do not repeat, and are packed to about half: letters of a congruential generator.
    let mut state = 1_u64;
    let letters: Vec<u8> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        b'a' + (state >> 60) as u8
    })
    .take(2 * MIB as usize)
    .collect();
    images.write("raw.img", 0, &letters);
    let path = text(&images, "disk.img");
    for cluster in ["65536", "4096", "2097152"] {
        let option = format!("cluster_size={cluster}");
        run(
            "qemu-img",
            &[
                "convert", "-q", "-c", "-f", "raw", "-O", "qcow2", "-o", &option, &raw, &path,
            ],
            "",
        );
        assert_eq!(problems(&stack(&images)), [] as [ProblemId; 0], "{cluster}");
        for (at, by) in [(0, 0), (1024, 1024), (4096, 3072), (70_000, 65_904)] {
            cut(&images, by);
            let again = text(&images, "again.img");
            let unpack = ["convert", "-f", "qcow2", "-O", "raw", &path, &again];
            let out = std::process::Command::new("qemu-img")
                .args(unpack)
                .limited_output();
            let is_whole = out.status.success() && fs::read(&again).expect("an image") == letters;
            assert_eq!(is_whole, at == 0, "{cluster} without {at} bytes");
            let expected = if is_whole {
                vec![]
            } else {
                vec![ProblemId::BeyondDevice]
            };
            assert_eq!(
                problems(&stack(&images)),
                expected,
                "{cluster} without {at} bytes"
            );
        }
    }
}

/// A file that ends within its own tables is still recognized.
#[test]
fn a_file_without_its_tables_is_known() {
    require!(Tool("qemu-img"));
    let mut texts = Vec::new();
    for (format, word, lens) in [
        (
            "vhdx",
            "VHDX",
            &[200_000, 300_000, 2 * MIB, 3 * MIB] as &[u64],
        ),
        ("vmdk", "VMDK", &[1000, 20_000]),
        ("qcow2", "qcow2", &[1000, 200_000]),
    ] {
        let images = Images::new();
        write(&images, (format, "", 64 * MIB), &["write -P 7 0 1M"]);
        let whole = len(&images);
        for kept in lens {
            write(&images, (format, "", 64 * MIB), &["write -P 7 0 1M"]);
            cut(&images, whole - kept);
            let stack = stack(&images);
            assert_eq!(
                problems(&stack),
                [ProblemId::BeyondDevice],
                "{format} of {kept} bytes"
            );
            // The place is one of this version of the tool.
            let text = stack.problems()[0].text.as_str();
            let (before, place) = text.split_once(" at byte ").unwrap_or((text, ""));
            let after = place.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',');
            texts.push(format!("{before}{after}"));
            let file = stack.node(stack.find("disk.img").expect("it"));
            assert_eq!(
                file.value(keys::CONTENT).map(|word| word.text()),
                Some(word),
                "{format} of {kept} bytes"
            );
        }
    }
    texts.dedup();
    insta::assert_snapshot!(texts.join("\n\n"));
}

/// A disk of no bytes has no tables to be read.
#[test]
fn a_disk_of_no_bytes_is_whole() {
    require!(Tool("qemu-img"));
    for format in ["vmdk", "qcow2", "vhdx", "vpc"] {
        let images = Images::new();
        write(&images, (format, "", 0), &[]);
        assert_eq!(problems(&stack(&images)), [] as [ProblemId; 0], "{format}");
    }
}
