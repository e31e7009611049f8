//! Tests of `implausible-hint`.

use plumb_geometry::{Bytes, Grid};
use plumb_model::facts::HintDoubt;
use plumb_stack::{CellKind, GridDoubt, GridFact, Kind, NodeId};

use crate::common::lab::{JudgedLayout, Lab, kernel};
use crate::common::number;
use crate::facts;

fn hinting(optimal: u64, physical: u64) -> JudgedLayout {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", physical, 0);
    lab.grid(disk, CellKind::OptimalIo, optimal, 0, kernel());
    lab.judge()
}

/// 33,553,920 is the statement of USB bridges (util-linux 1221), which LVM 2.03.16 and parted believed.
#[test]
fn implausible_hint() {
    let rule = "implausible-hint";
    let off_block = || HintDoubt::NoMultiple {
        of: CellKind::PhysicalBlock,
        unit_bytes: Bytes(4096),
    };
    let most_bytes = Bytes(16 << 20);
    for (optimal, physical, doubt) in [
        (33_553_920, 512, HintDoubt::Bridge),
        (64 << 20, 512, HintDoubt::TooLarge { most_bytes }),
        (6144, 4096, off_block()),
        (1536, 512, HintDoubt::OddSectors),
        (2048, 4096, off_block()),
    ] {
        let judged = hinting(optimal, physical);
        let facts = facts!(judged.finding(rule), ImplausibleHint);
        assert_eq!(facts.hints[0].doubt, doubt);
        assert_eq!(
            number(judged.finding(rule), "hints.0.stated_bytes"),
            optimal as f64
        );
    }
    assert!(hinting(64 << 10, 4096).is_silent(rule));
    let mut lab = Lab::default();
    lab.disk("sda", 4096, 0);
    assert!(lab.judge().is_not_asked(rule), "nothing is hinted at");
}

#[test]
fn doubts_of_a_source_are_reported() {
    let judge = |kind: Kind, what: CellKind| {
        let mut lab = Lab::default();
        let node = lab.node(kind, "nvme0n1");
        let grid = Grid::unit(Bytes(128 << 10)).expect("a grid");
        lab.builder.grid(
            node,
            GridFact::doubted(grid, what, kernel(), GridDoubt::NoOffset),
        );
        lab.judge()
    };
    let rule = "implausible-hint";
    let judged = judge(Kind::Disk, CellKind::PhysicalBlock);
    let why = GridDoubt::NoOffset;
    let facts = facts!(judged.finding(rule), ImplausibleHint);
    assert_eq!(facts.hints[0].doubt, HintDoubt::Told { why });
    assert!(
        judge(Kind::Loop, CellKind::PhysicalBlock).is_not_asked(rule),
        "not its own word"
    );
    assert!(
        judge(Kind::LogicalVolume, CellKind::OptimalIo).is_silent(rule),
        "worked out by the kernel, and plausible"
    );
    let nows = judge(Kind::Disk, CellKind::IndirectionUnit);
    assert!(
        nows.is_not_asked(rule),
        "NOWS is no unit of the flash, but not nonsense"
    );
    assert!(
        nows.is_not_asked("indirection-unit"),
        "a doubted hint is not used"
    );
}

/// md states the least common multiple with the hints of its members: 512 KiB for a true stripe of 128 KiB.
#[test]
fn a_hint_of_an_array_is_not_its_stripe() {
    let mut lab = Lab::default();
    let disks: Vec<(NodeId, u64)> = (0..3)
        .map(|at| {
            let disk = lab.disk(&format!("sd{at}"), 512, 0);
            lab.grid(disk, CellKind::OptimalIo, 512 << 10, 0, kernel());
            (disk, 0)
        })
        .collect();
    let array = lab.chunks("md0", 64 << 10, 1, &disks);
    lab.grid(array, CellKind::OptimalIo, 512 << 10, 0, kernel());
    let right = lab.chunks("md1", 64 << 10, 1, &disks);
    lab.grid(right, CellKind::OptimalIo, 128 << 10, 0, kernel());
    let judged = lab.judge();
    assert_eq!(judged.found_on("implausible-hint"), ["md0"]);
    let facts = facts!(judged.finding("implausible-hint"), ImplausibleHint);
    let doubt = HintDoubt::NotTheStripe {
        stripe_bytes: Bytes(128 << 10),
        is_multiple_of_members: true,
    };
    assert_eq!(facts.hints[0].doubt, doubt);
}
