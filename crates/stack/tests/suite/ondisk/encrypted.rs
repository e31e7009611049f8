//! LUKS.

use plumb_geometry::Bytes;
use plumb_stack::ProblemId;
use plumb_stack::{CellKind, Kind, Placing};
use plumb_testkit::require;

use crate::ondisk::tools::{Images, MIB, grid, node, printed, problems, run, run_of_content};

const QUICK: [&str; 5] = [
    "luksFormat",
    "-q",
    "--pbkdf",
    "pbkdf2",
    "--pbkdf-force-iterations=1000",
];

fn format(path: &str, options: &[&str]) {
    run(
        "cryptsetup",
        &[&QUICK, options, &[path, "-"]].concat(),
        "secret",
    );
}

#[test]
fn luks_agrees_with_luks_dump() {
    require!(Tool("cryptsetup"));
    for (options, sector) in [
        (&["--type=luks2", "--sector-size=4096"] as &[&str], 4096),
        (
            &["--type=luks2", "--sector-size=512", "--offset=40960"],
            512,
        ),
        (&["--type=luks1"], 512),
        (&["--type=luks1", "--align-payload=8192"], 512),
    ] {
        let images = Images::new();
        let path = images.make("disk.img", 64 * MIB);
        format(&path, options);
        let text = run("cryptsetup", &["luksDump", &path], "");
        let start = match text.contains("Payload offset:") {
            true => printed(&text, "Payload offset:") * 512,
            false => printed(&text, "offset:"),
        };
        let stack = images.stack(&["disk.img"]);
        let node = node(&stack, "LUKS on disk.img");
        assert_eq!(
            run_of_content(&stack, "LUKS", "disk.img"),
            ("disk.img".to_owned(), start, Some(64 * MIB - start))
        );
        assert_eq!(
            (node.kind, grid(node, CellKind::CryptSector).granularity()),
            (Kind::Crypt, Bytes(sector))
        );
        assert_eq!(problems(&stack), [] as [ProblemId; 0]);
    }
}

#[test]
fn the_second_header_answers_for_the_first() {
    require!(Tool("cryptsetup"));
    let images = Images::new();
    let path = images.make("disk.img", 64 * MIB);
    format(&path, &["--type=luks2"]);
    images.write("disk.img", 0, &[0; 512]);
    let stack = images.stack(&["disk.img"]);
    assert_eq!(run_of_content(&stack, "LUKS", "disk.img").1, 16 * MIB);
    assert_eq!(problems(&stack), [ProblemId::BrokenSuperblock]);
    images.write("disk.img", 0x4000, &[0; 512]);
    assert!(
        images
            .stack(&["disk.img"])
            .find("LUKS on disk.img")
            .is_none()
    );
}

#[test]
fn a_header_elsewhere_leaves_the_place_unknown() {
    require!(Tool("cryptsetup"));
    let images = Images::new();
    let (data, header) = (
        images.make("data.img", 64 * MIB),
        images.make("header.img", 16 * MIB),
    );
    format(&data, &["--type=luks2", "--header", &header]);
    let stack = images.stack(&["header.img"]);
    let placing = &node(&stack, "LUKS on header.img").placing;
    assert!(matches!(placing, Placing::Unknown { .. }), "{placing:?}");
}

/// A device that ends before the data begin has none; a copy of the header ends just there.
#[test]
fn data_behind_the_end_are_reported() {
    require!(Tool("cryptsetup"));
    for (options, start) in [
        (&["--type=luks2"] as &[&str], 16 * MIB),
        (&["--type=luks1", "--align-payload=4096"], 2 * MIB),
    ] {
        let images = Images::new();
        let path = images.make("disk.img", 64 * MIB);
        format(&path, options);
        for (len, expected) in [
            (start - 512, &[ProblemId::BeyondDevice] as &[ProblemId]),
            (start, &[]),
        ] {
            let file = std::fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .expect("the image");
            file.set_len(start).expect("cut");
            file.set_len(len).expect("cut");
            let stack = images.stack(&["disk.img"]);
            assert_eq!(problems(&stack), expected, "{options:?} {len}");
            let placing = &node(&stack, "LUKS on disk.img").placing;
            assert!(
                matches!(placing, Placing::Unknown { .. }),
                "{options:?} {len}: {placing:?}"
            );
        }
    }
}
