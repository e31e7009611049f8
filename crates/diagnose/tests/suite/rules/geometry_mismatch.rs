//! Tests of `geometry-mismatch`.

use plumb_diagnose::{Reason, Severity};
use plumb_geometry::Bytes;
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId};

use crate::common::lab::{JudgedLayout, Lab};
use crate::common::number;

fn file_system(kind: &str, unit: Option<u64>, width: Option<u64>) -> JudgedLayout {
    let mut lab = Lab::default();
    let disks: Vec<(NodeId, u64)> = (0..4)
        .map(|at| (lab.disk(&format!("sd{at}"), 512, 0), 0))
        .collect();
    let array = lab.chunks("md0", 64 << 10, 1, &disks);
    let system = lab.runs(Kind::FileSystem, "/data", &[(array, 0, 1 << 20)]);
    lab.fact(system, keys::CONTENT, kind);
    if let Some(unit) = unit {
        lab.fact(system, keys::FS_STRIPE_UNIT, Bytes(unit));
    }
    if let Some(width) = width {
        lab.fact(system, keys::FS_STRIPE_WIDTH, Bytes(width));
    }
    lab.judge()
}

/// mkfs's width from optimal_io_size in a test on 3 × 64 KiB: 512 KiB instead of the true 192 KiB of four disks with
/// one of parity.
#[test]
fn geometry_mismatch() {
    let rule = "geometry-mismatch";
    assert!(file_system("xfs", Some(65536), Some(196608)).is_silent(rule));
    let wide = file_system("xfs", Some(65536), Some(524288));
    assert_eq!(wide.finding(rule).severity, Severity::Warning);
    assert_eq!(number(wide.finding(rule), "stripe.width_bytes"), 196_608.0);
    assert_eq!(number(wide.finding(rule), "stripe.data_chunks"), 3.0);
    assert_eq!(number(wide.finding(rule), "told_width_bytes"), 524_288.0);
    let other = file_system("xfs", Some(4096), Some(196608));
    assert_eq!(number(other.finding(rule), "told_unit_bytes"), 4096.0);
    assert_eq!(number(other.finding(rule), "stripe.chunk_bytes"), 65_536.0);
    assert_eq!(
        file_system("xfs", Some(0), None).finding(rule).severity,
        Severity::Note,
        "told nothing"
    );
    let on = "md0".to_owned();
    assert_eq!(
        *file_system("xfs", None, None).unknown(rule),
        Reason::StripeNotTold { on }
    );
    assert!(file_system("btrfs", None, None).is_not_asked(rule));
}

/// A superblock's fact about a device is reported for the file system that is mounted from it, once.
#[test]
fn facts_of_a_device_are_reported_for_its_file_system() {
    let mut lab = Lab::default();
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
    let array = lab.stripe("md0", 64 << 10, &disks);
    lab.fact(array, keys::FS_STRIPE_UNIT, Bytes(4096));
    lab.fact(array, keys::MOUNT_OPTIONS, "rw");
    lab.runs(Kind::FileSystem, "/data", &[(array, 0, 1 << 20)]);
    assert_eq!(lab.judge().found_on("geometry-mismatch"), ["/data"]);
}

#[test]
fn a_stripe_width_without_a_stripe() {
    let rule = "geometry-mismatch";
    let judge = |model: Option<&str>| {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 4096, 0);
        if let Some(model) = model {
            lab.fact(disk, keys::MODEL, model);
        }
        let system = lab.runs(Kind::FileSystem, "/data", &[(disk, 0, 1 << 20)]);
        lab.fact(system, keys::FS_STRIPE_UNIT, Bytes(33_553_920));
        lab.judge()
    };
    assert_eq!(judge(Some("ST18000NM000J")).found_on(rule), ["/data"]);
    let reason = Reason::StripeNotVisible {
        told_bytes: Bytes(33_553_920),
        on: "sda".to_owned(),
    };
    assert_eq!(*judge(None).unknown(rule), reason);
}
