//! Tests of `beyond-device`.

use plumb_diagnose::Severity;
use plumb_geometry::{Bytes, SECTOR};
use plumb_stack::{Kind, Part, Placing};

use crate::common::lab::{Lab, kernel};

#[test]
fn beyond_device() {
    let rule = "beyond-device";
    for (sectors, found) in [(1000, false), (1001, true)] {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 4096, 0);
        lab.builder.size(disk, Bytes(1008 * SECTOR), &kernel());
        let partition = lab.node(Kind::Partition, "sda1");
        let len = Some(Bytes(sectors * SECTOR));
        let part = Part {
            upper: Bytes(0),
            node: disk,
            start: Bytes(8 * SECTOR),
            len,
        };
        lab.builder
            .place(partition, Placing::Parts { parts: vec![part] }, &kernel());
        let judged = lab.judge();
        assert_eq!(judged.is_silent(rule), !found);
        if found {
            assert_eq!(judged.finding(rule).severity, Severity::Critical);
            assert_eq!(judged.finding(rule).target.device, "sda1");
        }
    }
}
