//! Tests of `record-mismatch`.

use plumb_diagnose::{Reason, Severity};
use plumb_geometry::{Bounds, Bytes};
use plumb_model::facts::{Keeper, RecordMismatch};
use plumb_stack::Kind;
use plumb_stack::node::{FactKey, keys};
use plumb_trace::Layer;

use crate::common::lab::{JudgedLayout, Lab};
use crate::common::{RuleBench, few, number};
use crate::facts;
use crate::rules::reads;

#[test]
fn record_mismatch() {
    let (rule, bench) = ("record-mismatch", RuleBench::record(128 << 10));
    let judged = bench.judge_ios([reads(500, 256, 0, 256), reads(500, 256, 16, 16)].concat());
    let finding = judged.finding(rule);
    let RecordMismatch::Requests(facts) = facts!(finding, RecordMismatch) else {
        panic!("found {:?}", finding.facts);
    };
    assert_eq!(
        (facts.counted.count, facts.counted.of),
        (Bounds::exact(500), 1000)
    );
    assert_eq!(facts.record_bytes, Bytes(128 << 10));
    assert_eq!(finding.severity, Severity::Warning);
    // 1000 records of 256 sectors for 500 × 256 + 500 × 16 of them.
    assert_eq!(number(finding, "read_amplification"), 256_000.0 / 136_000.0);
    assert!(bench.judge_ios(reads(1000, 256, 0, 512)).is_silent(rule));
    assert_eq!(
        *bench.judge_ios(reads(199, 256, 1, 16)).unknown(rule),
        few(199)
    );
    let below = RuleBench {
        layer: plumb_trace::Layer::Request,
        ..RuleBench::record(128 << 10)
    };
    let layer = Layer::Request;
    assert_eq!(
        *below.judge_ios(reads(1000, 256, 16, 16)).unknown(rule),
        Reason::BelowRecords { layer }
    );
}

#[test]
fn record_mismatch_advises_only_records_that_exist() {
    let advice = |sectors: u64, record: u64, past: u64| {
        let judged = RuleBench::record(record).judge_ios(reads(1000, record / 512, past, sectors));
        judged
            .finding("record-mismatch")
            .fix
            .first()
            .map(|step| step.command.clone())
    };
    let command = advice(16, 128 << 10, 16).expect("a command");
    insta::assert_snapshot!(command);
    // 8.5 KiB is no record; 512 bytes would cost more metadata than they save; 128 KiB is the present record.
    for (sectors, past) in [(17, 16), (1, 16), (256, 16)] {
        assert_eq!(advice(sectors, 128 << 10, past), None, "{sectors} sectors");
    }
}

fn kept_in(key: FactKey<Bytes>, record: u64, page: Option<u64>) -> JudgedLayout {
    let mut lab = Lab::default();
    lab.known.page = page.map(Bytes);
    let disk = lab.disk("sda", 4096, 0);
    let set = lab.runs(Kind::Dataset, "tank/db", &[(disk, 8192, 1 << 20)]);
    lab.fact(set, key, Bytes(record));
    lab.judge()
}

/// The seed's database of 8 KiB in records of 128 KiB: 16 times.
#[test]
fn record_mismatch_of_a_layout() {
    let rule = "record-mismatch";
    let judged = kept_in(keys::RECORD_SIZE, 128 << 10, Some(8192));
    let finding = judged.finding(rule);
    assert_eq!(number(finding, "read_amplification"), 16.0);
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(number(finding, "write_amplification"), 32.0);
    assert!(kept_in(keys::RECORD_SIZE, 8192, Some(8192)).is_silent(rule));
    assert!(
        kept_in(keys::RECORD_SIZE, 4096, Some(8192)).is_silent(rule),
        "two records to a page"
    );
    assert_eq!(
        kept_in(keys::VOLUME_BLOCK, 16384, Some(8192))
            .finding(rule)
            .severity,
        Severity::Note
    );
    let reason = Reason::IoToRecords {
        keeper: Keeper::Records,
        record_bytes: Bytes(128 << 10),
    };
    assert_eq!(
        *kept_in(keys::RECORD_SIZE, 128 << 10, None).unknown(rule),
        reason
    );
}

/// The paper's 2 KiB pages in UFS blocks of 8 KiB: three quarters are read for nothing, unless I/O are direct.
#[test]
fn pages_in_blocks_of_a_file_system() {
    let rule = "record-mismatch";
    let judge = |options: &str, page: Option<u64>| {
        let mut lab = Lab::default();
        lab.known.page = page.map(Bytes);
        let disk = lab.disk("c0t0d0s6", 512, 0);
        let system = lab.runs(Kind::FileSystem, "/db", &[(disk, 0, 1 << 20)]);
        lab.fact(system, keys::FS_BLOCK, Bytes(8192));
        lab.fact(system, keys::MOUNT_OPTIONS, options);
        lab.judge()
    };
    assert_eq!(
        number(
            judge("rw,logging", Some(2048)).finding(rule),
            "read_amplification"
        ),
        4.0
    );
    assert!(judge("rw,forcedirectio", Some(2048)).is_silent(rule));
    assert!(judge("rw", Some(8192)).is_silent(rule));
    assert!(judge("rw", None).is_not_asked(rule));
}
