//! Tests of `too-few-disks`.

use plumb_diagnose::{Reason, Severity};
use plumb_model::facts::RateBasis;
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId, Obstacle, Placing};
use plumb_trace::{Layer, Op};

use crate::common::lab::{Lab, kernel};
use crate::common::number;
use crate::facts;

/// A stripe over disks of 80 I/O a second with a demand of 265 writes, as in the case study.
fn case(disks: usize) -> Lab {
    let mut lab = Lab::default();
    let disks: Vec<NodeId> = (0..disks)
        .map(|at| lab.disk(&format!("c1t{at}d0"), 512, 0))
        .collect();
    lab.stripe("d0", 128 << 10, &disks);
    lab.known.ios_per_second = Some(265.0);
    lab.known.disk_ios_per_second = Some(80.0);
    lab
}

#[test]
fn too_few_disks() {
    let rule = "too-few-disks";
    let judged = case(3).judge();
    let finding = judged.finding(rule);
    assert_eq!(number(finding, "given_ios_per_second"), 240.0);
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(number(finding, "wanted_disks"), 4.0);
    // 320 of 265.
    assert!((number(finding, "wanted_margin") - (320.0 / 265.0 - 1.0)).abs() < 1e-12);
    assert!(case(4).judge().is_silent(rule), "the case study took four");
    let mut lab = case(4);
    lab.known.disk_ios_per_second = None;
    assert_eq!(*lab.judge().unknown(rule), Reason::DiskRate);
    let mut lab = case(4);
    lab.known.ios_per_second = None;
    assert_eq!(*lab.judge().unknown(rule), Reason::Demand);
    assert!(Lab::default().judge().is_not_asked(rule));
}

/// At 265 of 320 a disk is busy 82.8 % of the time: 12.5 ms / (1 − 0.828125) = 72.7 ms.
#[test]
fn four_disks_are_slow() {
    let mut lab = case(4);
    lab.known.response_ns = Some(50e6);
    let judged = lab.judge();
    let finding = judged.finding("too-few-disks");
    assert!((number(finding, "utilisation") - 0.828_125).abs() < 1e-9);
    assert!((number(finding, "response_ns") - 12.5e6 / (1.0 - 0.828_125)).abs() < 1.0);
    assert_eq!(number(finding, "idle_ns"), 12.5e6);
    // 50 ms allow a utilisation of 75 %: 265 / 60 = 4.4.
    assert_eq!(number(finding, "wanted_disks"), 5.0);
    let mut lab = case(4);
    lab.known.response_ns = Some(80e6);
    assert!(lab.judge().is_silent("too-few-disks"));
    let mut lab = case(4);
    lab.known.response_ns = Some(10e6);
    let judged = lab.judge();
    let facts = facts!(judged.finding("too-few-disks"), TooFewDisks);
    assert_eq!(facts.wanted_disks, None, "an idle disk takes 12.5 ms");
}

/// Mirrors write twice, RAID 5 takes four operations.
#[test]
fn writes_cost_the_amplification_of_the_layers() {
    let needed = |build: fn(&mut Lab, &[NodeId]), writes: f64| {
        let mut lab = Lab::default();
        let disks: Vec<NodeId> = (0..4)
            .map(|at| lab.disk(&format!("sd{at}"), 512, 0))
            .collect();
        build(&mut lab, &disks);
        lab.known.ios_per_second = Some(100.0);
        lab.known.write_share = Some(writes);
        lab.known.disk_ios_per_second = Some(10.0);
        number(
            lab.judge().finding("too-few-disks"),
            "needed_ios_per_second",
        )
    };
    let mirror = |lab: &mut Lab, disks: &[NodeId]| {
        let sides = [
            lab.stripe("d1", 65536, &disks[..2]),
            lab.stripe("d2", 65536, &disks[2..]),
        ];
        lab.copies(Kind::Mirror, "d0", &sides);
    };
    let raid5 = |lab: &mut Lab, disks: &[NodeId]| {
        let disks: Vec<(NodeId, u64)> = disks.iter().map(|disk| (*disk, 0)).collect();
        lab.chunks("d0", 65536, 1, &disks);
    };
    let paths = |lab: &mut Lab, disks: &[NodeId]| {
        lab.copies(Kind::Multipath, "mpatha", disks);
    };
    assert_eq!(needed(paths, 1.0), 100.0, "a write takes one of the paths");
    assert_eq!(needed(mirror, 1.0), 200.0);
    assert_eq!(needed(mirror, 0.5), 150.0);
    assert_eq!(needed(raid5, 1.0), 400.0);
    assert_eq!(needed(raid5, 0.25), 175.0);
}

#[test]
fn paths_are_no_disks() {
    let mut lab = Lab::default();
    let volumes: Vec<NodeId> = ["mpatha", "mpathb"]
        .iter()
        .map(|name| {
            let paths = [0, 1].map(|at| lab.node(Kind::Path, &format!("{name}-path{at}")));
            lab.copies(Kind::Multipath, name, &paths)
        })
        .collect();
    lab.stripe("d0", 65536, &volumes);
    lab.known.ios_per_second = Some(1000.0);
    lab.known.disk_ios_per_second = Some(80.0);
    assert_eq!(number(lab.judge().finding("too-few-disks"), "disks"), 2.0);
}

/// Unknown starts of slices make no more I/O; a volume of an unknown layout may.
#[test]
fn unknown_starts_cost_no_writes() {
    let judge = |kind| {
        let mut lab = Lab::default();
        let slices: Vec<NodeId> = (0..3)
            .map(|at| {
                let disk = lab.disk(&format!("c1t{at}d0"), 512, 0);
                let slice = lab.node(kind, &format!("c1t{at}d0s0"));
                let placing = Placing::Unknown {
                    members: vec![disk],
                    why: Obstacle::NoLabel {
                        disk: format!("c1t{at}d0"),
                    },
                };
                lab.builder.place(slice, placing, &kernel());
                slice
            })
            .collect();
        lab.stripe("d0", 128 << 10, &slices);
        lab.known.ios_per_second = Some(265.0);
        lab.known.disk_ios_per_second = Some(80.0);
        lab.judge()
    };
    assert_eq!(
        number(
            judge(Kind::Partition).finding("too-few-disks"),
            "given_ios_per_second"
        ),
        240.0
    );
    assert_eq!(
        *judge(Kind::Concat).unknown("too-few-disks"),
        Reason::PlaceOnDisks
    );
}

/// 1,000 writes in 999 ms, on one disk of 80 a second.
#[test]
fn the_demand_may_come_from_a_profile() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 512, 0);
    lab.partition("sda1", disk, 2048);
    lab.known.disk_ios_per_second = Some(80.0);
    lab.seen("sda1", (0..1000).map(|at| (Op::Write, at * 64, 8)));
    let judged = lab.judge();
    assert_eq!(
        number(judged.finding("too-few-disks"), "asked_ios_per_second").round(),
        1001.0
    );
}

/// As iostat prints it: of 300 a second 100 are writes, and a mirror makes 200 of those.
#[test]
fn the_demand_may_come_from_iostat() {
    let mut lab = Lab::default();
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
    let mirror = lab.copies(Kind::Mirror, "md0", &disks);
    lab.fact(mirror, keys::IOS_PER_SECOND, 300.0);
    lab.fact(mirror, keys::WRITES_PER_SECOND, 100.0);
    lab.known.disk_ios_per_second = Some(80.0);
    let judged = lab.judge();
    let finding = judged.finding("too-few-disks");
    assert_eq!(number(finding, "asked_ios_per_second"), 300.0);
    assert_eq!(number(finding, "needed_ios_per_second"), 400.0);
    assert_eq!(number(finding, "given_ios_per_second"), 160.0);
}

/// Two layers that were recorded at one time are one load, as with iostat; on different days they are two.
#[test]
fn recorded_layers_are_counted_once() {
    let judge = |days: [u64; 2], ios: [u64; 2]| {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 512, 0);
        let volume = lab.runs(Kind::Concat, "md0", &[(disk, 0, 1 << 20)]);
        lab.partition("md0p1", volume, 2048);
        for (name, (day, ios)) in ["sda", "md0"].into_iter().zip(days.into_iter().zip(ios)) {
            lab.seen_from(
                name,
                day * 86_400_000_000_000,
                (0..ios).map(|at| (Op::Read, at * 64, 8)),
            );
        }
        lab.judge()
    };
    // An I/O each ms: the window of 1,001 is a second.
    let judged = judge([3, 3], [1001, 1001]);
    let finding = judged.finding("double-counted");
    assert_eq!(number(finding, "asked_ios_per_second"), 1001.0);
    assert_eq!(number(finding, "sum_ios_per_second"), 2002.0);
    let basis = RateBasis::Profile {
        on: "md0".to_owned(),
        layer: Layer::Bio,
    };
    assert_eq!(facts!(finding, DoubleCounted).asked_by, basis);
    assert!(
        judge([3, 4], [1001, 1001]).is_silent("double-counted"),
        "two loads of two days"
    );
    assert!(
        judge([3, 3], [1001, 0]).is_silent("double-counted"),
        "one layer is no layers"
    );
}
