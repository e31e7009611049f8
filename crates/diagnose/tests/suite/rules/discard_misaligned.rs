//! Tests of `discard-misaligned`.

use plumb_diagnose::Reason;
use plumb_geometry::Bytes;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Source};

use crate::common::lab::{Lab, kernel};

#[test]
fn discard_misaligned() {
    let rule = "discard-misaligned";
    for (start, alignment, found) in [(2048, 0_i64, 0), (34, 0, 1), (2048, 512, 1), (2049, 512, 0)]
    {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 512, 0);
        lab.grid(disk, CellKind::DiscardUnit, 1 << 20, 0, kernel());
        lab.fact(disk, keys::DISCARD_ALIGNMENT, alignment);
        lab.partition("sda1", disk, start);
        let judged = lab.judge();
        assert_eq!(judged.found_on(rule).len(), found, "{start} {alignment}");
        assert_eq!(judged.is_silent(rule), found == 0);
    }
    let mut lab = Lab::default();
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
    for disk in disks {
        lab.grid(disk, CellKind::DiscardUnit, 1 << 20, 0, kernel());
    }
    lab.stripe("md0", 64 << 10, &disks);
    let reason = Reason::DiscardVaries {
        unit_bytes: Bytes(1 << 20),
        step_bytes: Bytes(64 << 10),
        on: "sda".to_owned(),
    };
    let judged = lab.judge();
    assert!(judged.whys(rule).contains(&&reason), "not one phase");
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 512, 0);
    lab.partition("sda1", disk, 34);
    assert!(lab.judge().is_not_asked(rule), "no unit is stated");
}

/// NPDA states preferred starts of discards, NPDG their preferred length.
#[test]
fn a_discard_follows_npda() {
    let drive = |field: &str| Source::Drive {
        field: field.to_owned(),
    };
    for (has_start, found) in [(true, 0), (false, 1)] {
        let mut lab = Lab::default();
        let disk = lab.disk("nvme0n1", 4096, 0);
        lab.grid(disk, CellKind::DiscardUnit, 64 << 10, 0, drive("NPDG"));
        if has_start {
            lab.grid(disk, CellKind::DiscardUnit, 8 << 10, 0, drive("NPDA"));
        }
        lab.partition("nvme0n1p1", disk, 2064);
        assert_eq!(lab.judge().found_on("discard-misaligned").len(), found);
    }
}
