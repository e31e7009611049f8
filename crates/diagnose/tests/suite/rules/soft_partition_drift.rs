//! Tests of `soft-partition-drift`.

use plumb_diagnose::{Reason, Severity};
use plumb_model::Confidence;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Kind};
use plumb_testkit::soft_partitions::LISTING;

use crate::common::lab::{JudgedLayout, Lab, kernel};
use crate::common::number;
use crate::facts;

const RULE: &str = "soft-partition-drift";

/// Metadevices of the paper's example: the first is where the user put it, the second where metainit did.
fn on_stripe(offsets: &[(&str, u64, u64)]) -> JudgedLayout {
    let mut lab = Lab::default();
    let disks = ["c3t1d0s7", "c5t1d0s7"].map(|name| lab.bare(name));
    let d10 = lab.stripe("d10", 256 << 10, &disks);
    for (name, offset, len) in offsets {
        lab.runs(Kind::SoftPartition, name, &[(d10, *offset, *len)]);
    }
    lab.judge()
}

/// Each follows the one before by a sector. By hand: lengths are all multiples of 8, so the k-th begins at k mod 8, and
/// the eighth and sixteenth are on 4 KiB again.
#[test]
fn the_listing_of_the_paper() {
    let mut lab = Lab::default();
    let disk = lab.bare("c5t1d0");
    let slice = lab.partition("c5t1d0s0", disk, 0);
    let d2 = lab.runs(Kind::Concat, "d2", &[(slice, 0, 1 << 26)]);
    for (name, offset, len) in LISTING {
        let id = lab.runs(Kind::SoftPartition, name, &[(d2, offset, len)]);
        lab.fact(id, keys::MANAGER, "svm");
    }
    let judged = lab.judge();
    let mut expected: Vec<&str> = LISTING.iter().map(|(name, ..)| *name).collect();
    expected.retain(|name| !["d28", "d207"].contains(name));
    let mut found = judged.found_on(RULE);
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
    for finding in judged.findings(RULE) {
        assert_eq!(finding.confidence, Confidence::Low, "4 KiB are assumed");
        let facts = facts!(finding, SoftPartitionDrift);
        assert_eq!(facts.component, "d2");
        assert_eq!(facts.grid.what, CellKind::Assumed);
    }
}

#[test]
fn the_example_of_the_paper() {
    // 1024m each: 2,097,152 sectors; the header of d12 pushes it to 512 + 2,097,152 + 1.
    let judged = on_stripe(&[("d11", 512, 2_097_152), ("d12", 2_097_665, 2_097_152)]);
    let finding = judged.finding(RULE);
    assert_eq!(finding.target.device, "d12");
    let facts = facts!(finding, SoftPartitionDrift);
    assert_eq!(facts.behind.as_deref(), Some("d11"));
    assert_eq!(
        (finding.severity, finding.confidence),
        (Severity::Warning, Confidence::High)
    );
    assert_eq!(number(finding, "past_bytes"), 512.0);
    assert_eq!(
        number(finding, "wanted_bytes"),
        2_098_176.0 * 512.0,
        "the paper's next offset"
    );
    // And one after d12 as it is: 2,097,665 + 2,097,152 + 1 up to a multiple of 512 is 4,195,328 = 8,194 × 512.
    assert_eq!(number(finding, "next_free_bytes"), 4_195_328.0 * 512.0);
    assert_eq!(
        facts.rule_of_thumb_bytes, None,
        "the formula of the paper is right here"
    );
    let right = on_stripe(&[("d11", 512, 2_097_152), ("d12", 2_098_176, 2_097_152)]);
    assert!(right.is_silent(RULE));
}

/// If the last size is no multiple of the unit, the paper's formula leads off it: 512 + 1,000 + 512 = 2,024.
#[test]
fn the_formula_of_the_paper_has_a_condition() {
    let judged = on_stripe(&[("d11", 512, 1_000), ("d12", 1_513, 1_000)]);
    let finding = judged.finding(RULE);
    assert_eq!(number(finding, "wanted_bytes"), 1_536.0 * 512.0);
    assert_eq!(number(finding, "rule_of_thumb_bytes"), 2_024.0 * 512.0);
}

/// An offset that the user chose, off the unit or not, is no drift.
#[test]
fn only_soft_partitions_behind_a_header_drift() {
    assert!(on_stripe(&[("d11", 700, 512)]).is_silent(RULE));
}

/// The grid of the layer below, in the component's address space: a slice that begins at sector 34 makes 6 the right
/// phase.
#[test]
fn the_base_of_the_component_counts() {
    for (offset, found) in [(1, 1), (6, 0)] {
        let mut lab = Lab::default();
        let disk = lab.disk("c0t0d0", 4096, 0);
        let slice = lab.partition("c0t0d0s0", disk, 34);
        lab.runs(Kind::SoftPartition, "d1", &[(slice, offset, 800)]);
        let judged = lab.judge();
        assert_eq!(judged.found_on(RULE).len(), found, "{offset}");
        if found == 1 {
            assert_eq!(number(judged.finding(RULE), "wanted_bytes"), 6.0 * 512.0);
        }
    }
}

#[test]
fn unknown_where_the_unit_is_not_one() {
    let mut lab = Lab::default();
    let disks = ["sda", "sdb"].map(|name| lab.bare(name));
    let outer = lab.stripe("d1", 64 << 10, &disks);
    let inner = lab.runs(Kind::Concat, "d2", &[(outer, 0, 1 << 20)]);
    lab.runs(Kind::SoftPartition, "d3", &[(inner, 1, 64)]);
    assert_eq!(
        lab.judge().found_on(RULE),
        ["d3"],
        "the chunk is found below a concatenation"
    );
    let mut lab = Lab::default();
    let disk = lab.bare("c0t0d0");
    lab.runs(Kind::SoftPartition, "d3", &[(disk, 8, 64)]);
    assert!(matches!(
        lab.judge().unknown(RULE),
        Reason::OnAssumedUnit { grid, given_bytes: None } if grid.on == "c0t0d0"
    ));
    let mut lab = Lab::default();
    let disks = ["sda", "sdb"].map(|name| lab.bare(name));
    for disk in disks {
        lab.grid(disk, CellKind::ArrayUnit, 64 << 10, 0, kernel());
    }
    // One member in chunks of 6 KiB: no chunks to speak of, and the segment is nowhere in particular.
    let odd = lab.stripe("d1", 6 << 10, &disks[..1]);
    lab.runs(Kind::SoftPartition, "d3", &[(odd, 1, 64)]);
    let on = "d1".to_owned();
    assert_eq!(*lab.judge().unknown(RULE), Reason::ChunksBelow { on });
}
