//! The advice of the paper on Solaris Volume Manager for a host and its mirrors and mounts.

use plumb_diagnose::{Reason, Severity};
use plumb_geometry::Bytes;
use plumb_model::Confidence;
use plumb_stack::node::keys;
use plumb_stack::{Kind, NodeId};

use crate::facts;
use crate::layout::lab::{JudgedLayout, Lab, number};

/// A host with one mirror of two sides.
fn mirrored(lab: &mut Lab) -> NodeId {
    let sides = ["c1t0d0s0", "c2t0d0s0"].map(|name| lab.bare(name));
    let mirror = lab.copies(Kind::Mirror, "d0", &sides);
    lab.fact(mirror, keys::MANAGER, "svm");
    mirror
}

fn with_settings(state: impl Fn(&mut Lab)) -> JudgedLayout {
    let mut lab = Lab::default();
    mirrored(&mut lab);
    state(&mut lab);
    lab.judge()
}

#[test]
fn small_resync_io() {
    let rule = "small-resync-io";
    let judged = with_settings(|lab| {
        lab.host(keys::RESYNC_BYTES, Bytes(32 << 10));
        lab.host(keys::MAXPHYS, Bytes(256 << 10));
    });
    let finding = judged.finding(rule);
    assert!(finding.target.is_host());
    assert_eq!(number(finding, "resync_bytes"), f64::from(32 << 10));
    assert_eq!(
        number(finding, "maxphys_bytes"),
        f64::from(256 << 10),
        "both have to change"
    );
    // 2,048 blocks of 512 bytes; the paper's "512-Kbyte blocks" are a slip.
    assert!(
        with_settings(|lab| {
            lab.host(keys::RESYNC_BYTES, Bytes(2048 * 512));
        })
        .is_silent(rule)
    );
    assert_eq!(*with_settings(|_| {}).unknown(rule), Reason::ResyncSize);
    assert!(Lab::default().judge().is_not_asked(rule), "no mirror");
}

#[test]
fn small_maxphys() {
    let rule = "small-maxphys";
    let small = with_settings(|lab| {
        lab.host(keys::MAXPHYS, Bytes(256 << 10));
    });
    assert_eq!(small.finding(rule).severity, Severity::Note);
    let wanted = with_settings(|lab| {
        lab.host(keys::MAXPHYS, Bytes(256 << 10));
        lab.host(keys::RESYNC_BYTES, Bytes(1 << 20));
    });
    assert_eq!(wanted.finding(rule).severity, Severity::Warning);
    let mut lab = Lab::default();
    mirrored(&mut lab);
    let disks = ["c3t0d0s0", "c4t0d0s0"].map(|name| lab.bare(name));
    lab.stripe("d10", 512 << 10, &disks);
    lab.host(keys::MAXPHYS, Bytes(256 << 10));
    assert_eq!(
        lab.judge().finding(rule).severity,
        Severity::Warning,
        "less than a chunk"
    );
    assert!(
        with_settings(|lab| {
            lab.host(keys::MAXPHYS, Bytes(1 << 20));
        })
        .is_silent(rule)
    );
    assert_eq!(*with_settings(|_| {}).unknown(rule), Reason::Maxphys);
    let mut linux = Lab::default();
    linux.host(keys::SYSTEM, "linux");
    assert!(linux.judge().is_not_asked(rule));
}

#[test]
fn mirror_write_copy() {
    let rule = "mirror-write-copy";
    let judged = with_settings(|lab| {
        lab.host(keys::MIRROR_WOW, 0x20_u64);
    });
    assert_eq!(number(judged.finding(rule), "flags"), 32.0);
    assert!(
        with_settings(|lab| {
            lab.host(keys::MIRROR_WOW, 0x10_u64);
        })
        .is_silent(rule),
        "another flag"
    );
    assert!(
        with_settings(|lab| {
            lab.host(keys::MAXPHYS, Bytes(1 << 20));
        })
        .is_silent(rule),
        "/etc/system was read and has no such line"
    );
    assert_eq!(*with_settings(|_| {}).unknown(rule), Reason::SystemFile);
    let mut lab = Lab::default();
    lab.host(keys::MIRROR_WOW, 0x20_u64);
    assert!(lab.judge().is_not_asked(rule), "no mirror");
}

#[test]
fn read_policy() {
    let rule = "read-policy";
    let judge = |policy: Option<&str>, models: [&str; 2]| {
        let mut lab = Lab::default();
        let mirror = mirrored(&mut lab);
        for (name, model) in ["c1t0d0s0", "c2t0d0s0"].into_iter().zip(models) {
            let id = lab.builder.node(name);
            lab.fact(id, keys::MODEL, model);
        }
        if let Some(policy) = policy {
            lab.fact(mirror, keys::READ_POLICY, policy);
        }
        lab.judge()
    };
    let same = ["SUN36G", "SUN36G"];
    assert_eq!(
        judge(Some("first"), same).finding(rule).severity,
        Severity::Warning
    );
    assert_eq!(
        judge(Some("geometric"), same).finding(rule).severity,
        Severity::Note
    );
    assert!(judge(Some("round-robin"), same).is_silent(rule));
    assert!(
        judge(Some("first"), ["SUN36G", "remote"]).is_silent(rule),
        "what that policy is for"
    );
    assert_eq!(*judge(None, same).unknown(rule), Reason::ReadPolicy);
}

fn mounted(options: Option<&str>, segmap_percent: Option<u64>, page: Option<u64>) -> JudgedLayout {
    let mut lab = Lab::default();
    lab.known.page = page.map(Bytes);
    let slice = lab.bare("c0t0d0s6");
    let system = lab.runs(Kind::FileSystem, "/db", &[(slice, 0, 1 << 20)]);
    lab.fact(system, keys::CONTENT, "ufs");
    lab.fact(system, keys::MOUNT, "/db");
    lab.fact(system, keys::FS_BLOCK, Bytes(8192));
    if let Some(options) = options {
        lab.fact(system, keys::MOUNT_OPTIONS, options);
    }
    if let Some(percent) = segmap_percent {
        lab.host(keys::SEGMAP_PERCENT, percent);
    }
    lab.judge()
}

#[test]
fn no_direct_io() {
    let rule = "no-direct-io";
    let judged = mounted(Some("rw,logging"), None, Some(2048));
    let finding = judged.finding(rule);
    assert_eq!(
        (finding.severity, finding.confidence),
        (Severity::Note, Confidence::Low),
        "try it first"
    );
    assert_eq!(number(finding, "block_bytes"), 8192.0, "read first");
    let whole = mounted(Some("rw"), None, Some(8192));
    assert_eq!(facts!(whole.finding(rule), NoDirectIo).block_bytes, None);
    assert!(mounted(Some("rw,forcedirectio"), None, Some(2048)).is_silent(rule));
    assert_eq!(
        *mounted(None, None, Some(2048)).unknown(rule),
        Reason::MountOptions
    );
    assert!(
        mounted(Some("rw"), None, None).is_not_asked(rule),
        "nobody spoke of a database"
    );
}

#[test]
fn no_logging() {
    let rule = "no-logging";
    assert!(mounted(Some("rw,logging"), None, None).is_silent(rule));
    assert_eq!(
        mounted(Some("rw,nologging"), None, None)
            .finding(rule)
            .severity,
        Severity::Warning
    );
    let unsaid = mounted(Some("rw"), None, None);
    assert_eq!(unsaid.finding(rule).severity, Severity::Note);
    assert_eq!(
        unsaid.finding(rule).confidence,
        Confidence::Low,
        "it is the default of later systems"
    );
    assert_eq!(
        *mounted(None, None, None).unknown(rule),
        Reason::MountOptions
    );
    assert!(Lab::default().judge().is_not_asked(rule));
}

#[test]
fn small_segmap() {
    let rule = "small-segmap";
    let twelve = Some(12);
    assert_eq!(
        number(
            mounted(Some("rw"), twelve, None).finding(rule),
            "segmap_percent"
        ),
        12.0
    );
    assert!(mounted(Some("rw"), Some(30), None).is_silent(rule));
    assert!(
        mounted(Some("rw,forcedirectio"), twelve, None).is_not_asked(rule),
        "does without"
    );
    let default_percent = 12;
    assert_eq!(
        *mounted(Some("rw"), None, None).unknown(rule),
        Reason::Segmap { default_percent }
    );
}
