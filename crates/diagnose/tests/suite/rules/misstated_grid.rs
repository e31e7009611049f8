//! Tests of `misstated-grid`.

use plumb_diagnose::{Reason, Severity};
use plumb_geometry::{Bytes, Grid, GridKind};
use plumb_model::Confidence;
use plumb_model::facts::{Fault, PathCase};
use plumb_stack::node::keys;
use plumb_stack::{CellKind, GridDoubt, GridFact, Kind, NodeId};

use crate::common::lab::{JudgedLayout, Lab, kernel};
use crate::common::number;
use crate::facts;

const RULE: &str = "misstated-grid";

/// An export, or a disk of a guest, on a device: its statement is doubted, as readers do.
fn show(
    lab: &mut Lab,
    kind: Kind,
    on: NodeId,
    logical: u64,
    (physical, offset): (u64, u64),
) -> NodeId {
    let export = lab.runs(kind, "lun", &[(on, 0, 1 << 16)]);
    lab.grid(export, CellKind::LogicalBlock, logical, 0, kernel());
    let grid = Grid::new(Bytes(physical), Bytes(offset), GridKind::Unit).expect("a grid");
    lab.builder.grid(
        export,
        GridFact::doubted(
            grid,
            CellKind::PhysicalBlock,
            kernel(),
            GridDoubt::StatedToInitiators,
        ),
    );
    export
}

/// On a drive of 4 KiB blocks, in a partition from `start` on.
fn exported(start: u64, logical: u64, physical: (u64, u64), backstore: &str) -> JudgedLayout {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    lab.grid(disk, CellKind::LogicalBlock, 512, 0, kernel());
    let partition = lab.partition("sda1", disk, start);
    let export = show(&mut lab, Kind::Export, partition, logical, physical);
    lab.fact(export, keys::BACKSTORE, backstore);
    lab.judge()
}

/// Partition at 63: blocks of the drive begin 512 bytes into it. At 2048 they begin with it.
#[test]
fn statements_against_the_drive() {
    let judged = |start, logical, physical, backstore| {
        let judged = exported(start, logical, physical, backstore);
        let found = judged
            .findings(RULE)
            .next()
            .map(|finding| (finding.severity, facts!(finding, MisstatedGrid).clone()));
        assert_eq!(found.is_none(), judged.is_silent(RULE));
        found
    };
    assert_eq!(judged(2048, 512, (4096, 0), "iblock"), None);
    assert_eq!(
        judged(63, 512, (4096, 512), "iblock"),
        None,
        "misaligned, and said so"
    );
    let (warning, note) = (Severity::Warning, Severity::Note);
    let cases = [
        (2048, 512, (512, 0), "fileio", Fault::Hidden, warning, 0),
        (63, 512, (512, 0), "fileio", Fault::Hidden, warning, 512),
        (63, 512, (4096, 0), "nvmet", Fault::Shifted, warning, 512),
        (
            63,
            4096,
            (32768, 4096),
            "iblock",
            Fault::Shifted,
            warning,
            512,
        ),
        (63, 4096, (4096, 0), "fileio", Fault::Shifted, warning, 512),
        (2048, 4096, (32768, 0), "iblock", Fault::Larger, note, 0),
    ];
    for (start, logical, physical, backstore, fault, severity, offset) in cases {
        let (found, facts) = judged(start, logical, physical, backstore).expect("a finding");
        assert_eq!((facts.fault, found), (fault, severity));
        assert_eq!(facts.backstore.as_deref(), Some(backstore));
        assert_eq!(
            (facts.stated_bytes, facts.stated_offset_bytes),
            (Bytes(physical.0), Bytes(physical.1))
        );
        let grid = &facts.grid;
        assert_eq!(
            (
                grid.granularity_bytes,
                grid.offset_bytes,
                grid.what,
                grid.on.as_str()
            ),
            (Bytes(4096), Bytes(offset), CellKind::PhysicalBlock, "sda")
        );
    }
    assert_eq!(
        judged(2048, 4096, (4096, 0), "fileio"),
        None,
        "the block of the drive"
    );
}

#[test]
fn evidence_and_cost_are_arithmetic() {
    let judged = exported(63, 512, (512, 0), "fileio");
    let finding = judged.finding(RULE);
    for (name, value) in [
        ("stated_bytes", 512.0),
        ("stated_offset_bytes", 0.0),
        ("grid.granularity_bytes", 4096.0),
        ("grid.offset_bytes", 512.0),
    ] {
        assert_eq!(number(finding, name), value, "{name}");
    }
    assert_eq!(
        finding.cost.as_ref().map(|cost| cost.value),
        Some(16.0),
        "4 KiB read and written for 512 bytes"
    );
    assert_eq!(finding.confidence, Confidence::High);
    assert_eq!(finding.target.device, "lun");
    assert_eq!(
        exported(63, 512, (4096, 0), "nvmet").finding(RULE).cost,
        None
    );
}

/// Blocks of 512 bytes on a device that takes 4 KiB: a file system in between would make whole ones of them.
#[test]
fn smaller_than_the_device_takes() {
    let judge = |backstore: &str| {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 4096, 0);
        lab.grid(disk, CellKind::LogicalBlock, 4096, 0, kernel());
        let partition = lab.partition("sda1", disk, 2048);
        let export = show(&mut lab, Kind::Export, partition, 512, (512, 0));
        lab.fact(export, keys::BACKSTORE, backstore);
        lab.judge()
    };
    for backstore in ["iblock", "pscsi"] {
        let judged = judge(backstore);
        assert_eq!(judged.finding(RULE).severity, Severity::Critical);
        let facts = facts!(judged.finding(RULE), MisstatedGrid);
        assert_eq!(facts.fault, Fault::Refused);
        assert_eq!(facts.grid.what, CellKind::LogicalBlock);
    }
    assert_eq!(judge("fileio").finding(RULE).severity, Severity::Warning);
}

#[test]
fn unknown_targets_stay_unknown() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 512, 0);
    show(&mut lab, Kind::Export, disk, 512, (512, 0));
    let reason = Reason::NothingBeyond {
        on: "sda".to_owned(),
        granularity_bytes: Bytes(4096),
    };
    assert_eq!(*lab.judge().unknown(RULE), reason);

    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    lab.runs(Kind::Export, "nqn/ns1", &[(disk, 0, 1 << 16)]);
    assert_eq!(*lab.judge().unknown(RULE), Reason::StatedBlocks);

    // Memory has no units, and nothing is exported.
    let mut lab = Lab::default();
    let memory = lab.node(Kind::Ram, "memory");
    show(&mut lab, Kind::Export, memory, 512, (512, 0));
    lab.disk("sda", 4096, 0);
    assert!(lab.judge().is_not_asked(RULE));

    // 12 KiB chunks give blocks of 8 KiB two alternating phases.
    let mut lab = Lab::default();
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 8192, 0));
    let stripe = lab.stripe("md0", 12 << 10, &disks);
    show(&mut lab, Kind::Export, stripe, 512, (8192, 0));
    assert_eq!(*lab.judge().unknown(RULE), Reason::DiffersByChunk);
}

/// A guest's disk on a known volume of its host is judged too; one on an export repeats its statement.
#[test]
fn disks_that_are_seen_through() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    show(&mut lab, Kind::VirtualDisk, disk, 512, (512, 0));
    let judged = lab.judge();
    let facts = facts!(judged.finding(RULE), MisstatedGrid);
    assert_eq!((facts.fault, &facts.backstore), (Fault::Hidden, &None));
    assert_eq!(judged.finding(RULE).severity, Severity::Warning);

    // The layers above a disk of a guest are judged end to end, and may compensate for the shift.
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    let partition = lab.partition("sda1", disk, 63);
    show(&mut lab, Kind::VirtualDisk, partition, 512, (4096, 0));
    assert_eq!(lab.judge().finding(RULE).severity, Severity::Note);

    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    let export = show(&mut lab, Kind::Export, disk, 512, (4096, 0));
    let seen = lab.runs(Kind::VirtualDisk, "sdb", &[(export, 0, 1 << 16)]);
    lab.grid(seen, CellKind::LogicalBlock, 512, 0, kernel());
    let grid = Grid::unit(Bytes(64 << 10)).expect("a grid");
    lab.builder.grid(
        seen,
        GridFact::doubted(grid, CellKind::PhysicalBlock, kernel(), GridDoubt::Bridge),
    );
    lab.partition("sdb1", seen, 2048);
    let judged = lab.judge();
    assert!(judged.is_silent(RULE));
    assert!(
        judged.is_silent("misaligned-partition"),
        "{:?}",
        judged.whys("misaligned-partition")
    );
    assert!(
        judged.is_not_asked("implausible-hint"),
        "it only hands on what its target says"
    );

    let mut lab = Lab::default();
    lab.disk("sda", 4096, 0);
    lab.node(Kind::VirtualDisk, "vda");
    assert!(lab.judge().is_not_asked(RULE), "below is not seen");
}

/// The unit of the flash is no physical block: the drive does not state it either.
#[test]
fn units_that_no_disk_states() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    lab.grid(disk, CellKind::IndirectionUnit, 64 << 10, 0, kernel());
    show(&mut lab, Kind::Export, disk, 512, (4096, 0));
    assert!(lab.judge().is_silent(RULE));
}

/// Two sessions to one LUN of a target, and nothing joins them.
#[test]
fn paths_by_iscsi() {
    let mut lab = Lab::default();
    for name in ["sda", "sdb"] {
        let disk = lab.node(Kind::VirtualDisk, name);
        lab.fact(disk, keys::IDENTITY, "naa.6001405");
    }
    let judged = lab.judge();
    let devices = ["sda", "sdb"].map(str::to_owned).to_vec();
    assert_eq!(
        facts!(judged.finding("single-path"), SinglePath).case,
        PathCase::Unjoined { devices }
    );
}
