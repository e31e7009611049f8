//! Tests of `single-path`.

use plumb_diagnose::{Reason, Severity};
use plumb_model::facts::{ArrayEvidence, PathCase};
use plumb_stack::Kind;
use plumb_stack::node::keys;

use crate::common::lab::{JudgedLayout, Lab};
use crate::common::number;
use crate::facts;

const RULE: &str = "single-path";

fn joined(paths: &[&str]) -> JudgedLayout {
    let mut lab = Lab::default();
    let paths: Vec<_> = paths
        .iter()
        .map(|name| {
            let id = lab.node(Kind::Path, name);
            lab.fact(id, keys::IDENTITY, "wwn-1");
            id
        })
        .collect();
    lab.copies(Kind::Multipath, "mpatha", &paths);
    lab.judge()
}

fn disks(disks: &[(&str, Option<&str>, &str)]) -> JudgedLayout {
    let mut lab = Lab::default();
    for (name, identity, model) in disks {
        let disk = lab.bare(name);
        lab.fact(disk, keys::MODEL, *model);
        if let Some(identity) = identity {
            lab.fact(disk, keys::IDENTITY, *identity);
        }
    }
    lab.judge()
}

#[test]
fn a_multipath_device_has_two_paths() {
    let judged = joined(&["sda"]);
    assert_eq!(judged.finding(RULE).target.device, "mpatha");
    assert_eq!(
        facts!(judged.finding(RULE), SinglePath).case,
        PathCase::Multipath
    );
    assert_eq!(number(judged.finding(RULE), "paths"), 1.0);
    assert!(joined(&["sda", "sdb"]).is_silent(RULE));
    assert_eq!(*joined(&[]).unknown(RULE), Reason::Paths);
}

#[test]
fn unjoined_paths_are_reported() {
    let judged = disks(&[
        ("sda", Some("wwn-1"), "DISK"),
        ("sdb", Some("wwn-1"), "DISK"),
    ]);
    let devices = ["sda", "sdb"].map(str::to_owned).to_vec();
    assert_eq!(
        facts!(judged.finding(RULE), SinglePath).case,
        PathCase::Unjoined { devices }
    );
    assert_eq!(judged.finding(RULE).severity, Severity::Warning);
    let judged = disks(&[
        ("sda", Some("wwn-1"), "DISK"),
        ("sdb", Some("wwn-2"), "DISK"),
    ]);
    assert!(judged.is_not_asked(RULE), "drives have one path");
}

#[test]
fn a_lun_of_an_array() {
    let model = "SUN StorEdge 3510";
    assert_eq!(
        disks(&[("sda", Some("wwn-1"), model)])
            .finding(RULE)
            .severity,
        Severity::Note
    );
    let because = ArrayEvidence::Model {
        model: model.to_owned(),
    };
    assert_eq!(
        *disks(&[("sda", None, model)]).unknown(RULE),
        Reason::NoIdentity { because }
    );
    assert!(disks(&[("sda", None, "ST18000NM000J")]).is_not_asked(RULE));
}
