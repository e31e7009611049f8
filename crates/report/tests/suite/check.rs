//! The report of a check, on stacks built by hand: its content, and its fit to a terminal.

use std::collections::HashSet;

use plumb_diagnose::Diagnosis;
use plumb_diagnose::accept::Accepted;
use plumb_geometry::{Bytes, Grid, GridKind, SECTOR};
use plumb_model::result::check::CheckInput;
use plumb_report::check::{Check, json, text};
use plumb_report::text::{Color, Detail, WIDTH};
use plumb_report::verdict::{Outcome, WhyUnknown};
use plumb_stack::node::keys;
use plumb_stack::{
    Builder, CellKind, Chunks, GridFact, Kind, Member, NodeId, Part, Placing, Source, Stack, Survey,
};
use plumb_stack::{GridDoubt, Obstacle};

fn from() -> Source {
    Source::Kernel {
        path: "sys/class/block".into(),
    }
}

fn disk(builder: &mut Builder, name: &str, physical: Option<(u64, u64)>) -> NodeId {
    let disk = builder.node(name);
    builder.kind(disk, Kind::Disk, &from());
    builder.size(disk, Bytes(10 << 30), &from());
    if let Some((bytes, offset)) = physical {
        let grid = Grid::new(Bytes(bytes), Bytes(offset), GridKind::Unit).expect("a grid");
        builder.grid(
            disk,
            GridFact::believed(grid, CellKind::PhysicalBlock, from()),
        );
    }
    disk
}

fn part(builder: &mut Builder, name: &str, kind: Kind, on: &str, start: u64, len: u64) -> NodeId {
    let (part, node) = (builder.node(name), builder.node(on));
    builder.kind(part, kind, &from());
    builder.size(part, Bytes(len * SECTOR), &from());
    let run = Part {
        upper: Bytes(0),
        node,
        start: Bytes(start * SECTOR),
        len: Some(Bytes(len * SECTOR)),
    };
    builder.place(part, Placing::Parts { parts: vec![run] }, &from());
    part
}

fn stripe(builder: &mut Builder, name: &str, members: &[String], chunk: u64) {
    let members = members.iter().map(|one| Member {
        node: builder.node(one),
        start: Bytes(1 << 20),
    });
    let members = members.collect();
    let stripe = builder.node(name);
    builder.kind(stripe, Kind::Stripe, &from());
    let chunks = Chunks {
        chunk: Bytes(chunk),
        members,
        parity: 0,
        copies: 1,
        layout: None,
    };
    builder.place(stripe, Placing::Chunks(chunks), &from());
}

/// The report on a stack; `about` leaves out everything without relation to a device.
fn report(stack: &Stack, about: Option<&str>, color: Color) -> (String, serde_json::Value) {
    report_of(stack, about, color, false)
}

fn report_of(
    stack: &Stack,
    about: Option<&str>,
    color: Color,
    is_full: bool,
) -> (String, serde_json::Value) {
    let wanted: Option<HashSet<NodeId>> = about.map(|name| {
        stack
            .under(stack.find(name).expect("named"))
            .into_iter()
            .collect()
    });
    let inputs = [CheckInput {
        path: "lsblk.json".into(),
        tool: Some("lsblk -J".into()),
        verified: true,
        understood: 12,
        passed_over: 1,
        error: None,
    }];
    let run = plumb_report::run::Run {
        version: "0".to_owned(),
        host: None,
        time: "2026-01-31T08:00:00Z".to_owned(),
        command: vec!["plumb".to_owned()],
    };
    let check = Check {
        run: &run,
        is_of_this_host: false,
        is_full,
        inputs: &inputs,
        stack,
        survey: &Survey::judge(stack),
        wanted: wanted.as_ref(),
        diagnosis: &Diagnosis::default(),
        accepted: &Accepted::default(),
        elsewhere: &[],
        unread: &[],
        unseen: &[],
        notes: stack.notes(),
        outcome: Outcome::Unknown(WhyUnknown::Layout),
    };
    let document = serde_json::from_str(&json(&check).expect("a document")).expect("JSON");
    (text(&check, Detail::All, color), document)
}

fn example() -> Stack {
    let mut builder = Builder::default();
    let sda = disk(&mut builder, "sda", Some((4096, 0)));
    builder.fact(sda, keys::MODEL, "ST1000DM003", &from());
    let hint = Grid::unit(Bytes(33_553_920)).expect("a grid");
    builder.grid(
        sda,
        GridFact::doubted(
            hint,
            CellKind::OptimalIo,
            from(),
            GridDoubt::OffPhysical {
                physical_bytes: Bytes(4096),
            },
        ),
    );
    part(&mut builder, "sda1", Kind::Partition, "sda", 63, 100_000);
    part(
        &mut builder,
        "vg/lv",
        Kind::LogicalVolume,
        "sda1",
        2049,
        8192,
    );
    part(&mut builder, "sda2", Kind::Partition, "sda", 204_800, 8192);
    disk(&mut builder, "sdb", None);
    part(&mut builder, "sdb1", Kind::Partition, "sdb", 34, 8192);
    part(&mut builder, "sdb2", Kind::Partition, "sdb", 16_384, 8192);
    let stripes: Vec<String> = ('c'..='l').map(|letter| format!("sd{letter}")).collect();
    for name in &stripes {
        disk(&mut builder, name, Some((4096, 3584)));
    }
    stripe(&mut builder, "md0", &stripes, 64 << 10);
    builder.note("table of dm-3 not readable without root");
    builder.finish()
}

#[test]
fn the_tree() {
    let (text, _) = report(&example(), None, Color::Never);
    insta::assert_snapshot!(text);
}

#[test]
fn findings_of_other_devices_do_not_count() {
    let (text, document) = report(&example(), Some("vg/lv"), Color::Never);
    for name in ["sda", "sda1", "vg/lv"] {
        assert!(text.contains(name), "{name}:\n{text}");
    }
    for name in ["sda2", "sdb", "md0"] {
        assert!(!text.contains(name), "{name}:\n{text}");
    }
    assert_eq!(
        document["result"]["stack"]["nodes"]
            .as_array()
            .map(Vec::len),
        Some(3)
    );
}

#[test]
fn the_document_has_every_device() {
    let (_, document) = report(&example(), None, Color::Never);
    let nodes = document["result"]["stack"]["nodes"]
        .as_array()
        .expect("a list");
    assert_eq!(nodes.len(), 18);
    let node = |name: &str| {
        nodes
            .iter()
            .find(|node| node["name"] == name)
            .expect("named")
    };
    let on = &node("sda1")["verdicts"][0];
    assert_eq!(
        (&on["verdict"], &on["by_bytes"]),
        (&"misaligned".into(), &3584.into())
    );
    assert_eq!(node("vg/lv")["overall"], "aligned");
    assert_eq!(
        node("sdb2")["overall"],
        "unknown",
        "on an assumed grid nothing is aligned"
    );
    assert_eq!(
        node("sda")["overall"],
        serde_json::Value::Null,
        "a disk stands on nothing"
    );
    assert_eq!(node("sda1")["placing"]["parts"][0]["start_bytes"], 32_256);
    assert_eq!(node("md0")["verdicts"].as_array().map(Vec::len), Some(10));
    assert_eq!(document["result"]["summary"]["partition"]["misaligned"], 2);
}

/// An unknown layer does not compensate for a misaligned one.
#[test]
fn unknown_layers_do_not_compensate_for_misaligned_ones() {
    let mut texts = Vec::new();
    // The first one compensates.
    for start in [Some(2049), Some(2048), None] {
        let mut builder = Builder::default();
        disk(&mut builder, "sda", Some((4096, 0)));
        let below = part(&mut builder, "sda1", Kind::Partition, "sda", 63, 100_000);
        match start {
            Some(start) => {
                _ = part(
                    &mut builder,
                    "vg/lv",
                    Kind::LogicalVolume,
                    "sda1",
                    start,
                    8192,
                )
            }
            None => {
                let array = builder.node("md0");
                let member = "sda".to_owned();
                let why = Obstacle::DataStart { member };
                builder.place(
                    array,
                    Placing::Unknown {
                        members: vec![below],
                        why,
                    },
                    &from(),
                );
            }
        }
        let (text, _) = report(&builder.finish(), None, Color::Never);
        texts.push(text);
    }
    insta::assert_snapshot!(texts.join("\n\n"));
}

#[test]
fn exports_and_their_mounts() {
    let mut builder = Builder::default();
    disk(&mut builder, "sda", Some((4096, 0)));
    let export = part(&mut builder, "iblock_0/x", Kind::Export, "sda", 63, 8192);
    for (key, value) in [(keys::TARGET, "iqn.x:\x1b[2J"), (keys::TRANSPORT, "iscsi")] {
        builder.fact(export, key, value, &from());
    }
    builder.fact(export, keys::UNIT_NUMBER, 3_u64, &from());
    let nvme = disk(&mut builder, "nvme0n1", None);
    builder.fact(nvme, keys::TRANSPORT, "tcp", &from());
    let (text, document) = report(&builder.finish(), None, Color::Never);
    insta::assert_snapshot!(text);
    assert!(
        !text.contains('\x1b'),
        "a name of another host moves the cursor"
    );
    assert_eq!(document["result"]["stack"]["nodes"][1]["kind"], "export");
}

/// Columns of a line as a terminal shows it.
fn columns(line: &str) -> usize {
    let mut plain = line.to_owned();
    while let Some(start) = plain.find('\x1b') {
        let end = plain[start..].find('m').expect("an end of the sequence");
        plain.replace_range(start..=start + end, "");
    }
    plain.chars().count()
}

#[test]
fn eighty_columns_for_all_names() {
    let mut builder = Builder::default();
    let long = "x".repeat(300);
    disk(&mut builder, "sda\x1b[2J\n", None);
    part(
        &mut builder,
        &long,
        Kind::Partition,
        "sda\x1b[2J\n",
        1,
        1000,
    );
    let mut below = long;
    for depth in 0..40 {
        let name = format!("volume-with-a-long-name-{depth}");
        part(&mut builder, &name, Kind::SoftPartition, &below, 1, 1000);
        below = name;
    }
    let mut left_out = Vec::new();
    for color in [Color::Never, Color::Always] {
        let (text, document) = report(&copied(&builder), None, color);
        for line in text.lines() {
            assert!(columns(line) <= WIDTH, "{} columns: {line}", columns(line));
        }
        assert!(!text.contains("[2J\n"), "a name moves the cursor");
        left_out.extend(
            text.lines()
                .filter(|line| line.contains("--json"))
                .map(str::to_owned),
        );
        assert_eq!(
            document["result"]["stack"]["nodes"]
                .as_array()
                .map(Vec::len),
            Some(42)
        );
    }
    insta::assert_snapshot!(left_out.join("\n"));
}

/// A second copy of the same stack.
fn copied(builder: &Builder) -> Stack {
    let mut copy = Builder::default();
    let ids: Vec<NodeId> = builder.ids().collect();
    for id in &ids {
        let node = builder.get(*id);
        let same = copy.node(&node.name);
        copy.kind(same, node.kind, &from());
    }
    for id in &ids {
        copy.place(*id, builder.get(*id).placing.clone(), &from());
    }
    copy.finish()
}

#[test]
fn colour_changes_no_word() {
    let plain = report(&example(), None, Color::Never).0;
    let colored = report(&example(), None, Color::Always).0;
    assert!(
        colored.contains("\x1b[1;31mmisaligned\x1b[0m")
            && colored.contains("\x1b[1;32maligned\x1b[0m")
    );
    let bare = ["31", "32", "36"].iter().fold(colored, |text, code| {
        text.replace(&format!("\x1b[1;{code}m"), "")
    });
    assert_eq!(bare.replace("\x1b[0m", ""), plain);
}

/// A file of 40 extents, and a volume of as many runs, which is not one.
#[test]
fn extents_of_a_file_are_left_out_unless_all_are_asked_for() {
    let mut builder = Builder::default();
    let sda = disk(&mut builder, "sda", Some((4096, 0)));
    for (name, kind) in [("/disk.raw", Kind::File), ("volume", Kind::LogicalVolume)] {
        let id = builder.node(name);
        builder.kind(id, kind, &from());
        let parts = (0..40).map(|at| Part {
            upper: Bytes(at << 12),
            node: sda,
            start: Bytes(at << 20),
            len: Some(Bytes(4096)),
        });
        let parts = parts.collect();
        builder.place(id, Placing::Parts { parts }, &from());
    }
    let stack = builder.finish();
    for (is_full, listed, left_out) in [(false, 16, 24), (true, 40, 0)] {
        let (_, document) = report_of(&stack, None, Color::Never, is_full);
        let nodes = document["result"]["stack"]["nodes"].as_array();
        let node = |name: &str| {
            let mut nodes = nodes.expect("nodes").iter();
            nodes.find(|node| node["name"] == name).expect("it").clone()
        };
        let runs = |node: &serde_json::Value| node["placing"]["parts"].as_array().map(Vec::len);
        let (file, volume) = (node("/disk.raw"), node("volume"));
        assert_eq!(runs(&file), Some(listed));
        assert_eq!(file["runs_left_out"], left_out);
        assert_eq!(runs(&volume), Some(40), "a layout is whole");
        assert_eq!(volume["runs_left_out"], 0);
    }
}
