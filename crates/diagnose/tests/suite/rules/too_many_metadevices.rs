//! Tests of `too-many-metadevices`.

use plumb_diagnose::{Reason, Severity};
use plumb_model::facts::TooManyMetadevices;
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId};

use crate::common::lab::{JudgedLayout, Lab};
use crate::facts;

/// A host with a total number of metadevices, as soft partitions on one slice.
fn with_metadevices(count: u64, nmd: Option<u64>) -> JudgedLayout {
    let mut lab = Lab::default();
    let disk = lab.bare("c0t0d0s0");
    for at in 0..count {
        let id = lab.runs(
            Kind::SoftPartition,
            &format!("d{at}"),
            &[(disk, at * 16 + 8, 8)],
        );
        lab.fact(id, keys::MANAGER, "svm");
    }
    if let Some(nmd) = nmd {
        lab.host(keys::NMD, nmd);
    }
    lab.judge()
}

#[test]
fn too_many_metadevices() {
    let rule = "too-many-metadevices";
    assert!(
        with_metadevices(40, None).is_silent(rule),
        "far below the default of 128"
    );
    assert_eq!(
        *with_metadevices(120, None).unknown(rule),
        Reason::Nmd {
            metadevices: 120,
            default: 128
        }
    );
    assert_eq!(
        with_metadevices(120, Some(128)).finding(rule).severity,
        Severity::Note
    );
    assert_eq!(
        with_metadevices(128, Some(128)).finding(rule).severity,
        Severity::Warning
    );
    assert!(with_metadevices(200, Some(8192)).is_silent(rule));
    assert!(with_metadevices(0, Some(128)).is_not_asked(rule));
}

/// nmd is that of each disk set, and the rows of a concatenation are no metadevices.
#[test]
fn metadevices_are_counted_by_set() {
    let mut lab = Lab::default();
    let disk = lab.bare("c0t0d0s0");
    for at in 0..60 {
        for name in [
            format!("d{at}"),
            format!("oracle/d{at}"),
            format!("d{at} row 0"),
        ] {
            let id = lab.runs(Kind::Concat, &name, &[(disk, at * 16, 8)]);
            lab.fact(id, keys::MANAGER, "svm");
        }
    }
    lab.host(keys::NMD, 128_u64);
    assert!(
        lab.judge().is_silent("too-many-metadevices"),
        "60 of 128, twice"
    );
}

/// The paper's arithmetic: 200 volumes as stripes over 16 drives take 16·200 + 200 = 3,400 metadevices, where 1 + 200
/// would do.
#[test]
fn a_soft_partition_for_each_column() {
    let mut lab = Lab::default();
    let disks: Vec<NodeId> = (0..16)
        .map(|at| lab.bare(&format!("c1t{at}d0s0")))
        .collect();
    for volume in 0..200 {
        let columns: Vec<NodeId> = disks
            .iter()
            .enumerate()
            .map(|(at, disk)| {
                let name = format!("d{}", 1000 + volume * 16 + at as u64);
                let id = lab.runs(
                    Kind::SoftPartition,
                    &name,
                    &[(*disk, volume * 2048 + 8, 2040)],
                );
                lab.fact(id, keys::MANAGER, "svm");
                id
            })
            .collect();
        let stripe = lab.stripe(&format!("d{volume}"), 1 << 20, &columns);
        lab.fact(stripe, keys::MANAGER, "svm");
    }
    lab.host(keys::NMD, 8192_u64);
    let judged = lab.judge();
    let finding = judged.finding("too-many-metadevices");
    let columns = TooManyMetadevices::Columns {
        metadevices: 3_400,
        needed: 201,
        stripes: 200,
        columns: 3_200,
    };
    assert_eq!(*facts!(finding, TooManyMetadevices), columns);
}
