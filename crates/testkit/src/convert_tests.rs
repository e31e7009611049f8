//! The converter against the writer: to write a variant, or to convert to it, gives the same bytes.

use super::*;
use crate::workload::Mixed;
use crate::write::blktrace::Blktrace;
use crate::write::fixture::SharedBytes;
use crate::write::lifecycle::Shapes;
use crate::write::vscsi::{Vscsi, VscsiVersion};
use crate::write::write_all;

fn written(version: Version, endian: Endian) -> Vec<u8> {
    let shapes = Shapes {
        cpus: 4,
        message_every: 50,
        split_every: 6,
        partition_start_sectors: Some(63),
        ..Shapes::default()
    };
    let sink = SharedBytes::default();
    let events = Mixed {
        events: 2_000,
        ..Mixed::default()
    };
    write_all(
        &mut Blktrace::new(vec![sink.clone()], version, endian, shapes),
        events.iter(),
    )
    .expect("memory");
    sink.take()
}

#[test]
fn every_variant_equals_the_writers_output() {
    let original = written(Version::V7, Endian::Little);
    for version in [Version::V7, Version::V8] {
        for endian in [Endian::Little, Endian::Big] {
            let mut converted = Vec::new();
            let records = convert_blktrace(&original[..], &mut converted, version, endian)
                .expect("whole file");
            assert!(records > 10_000);
            assert!(
                converted == written(version, endian),
                "{version:?} {endian:?}"
            );
        }
    }
}

#[test]
fn damage_is_named_by_its_offset() {
    let original = written(Version::V7, Endian::Little);
    let cut = &original[..56 + 20];
    let refused = convert_blktrace(cut, io::sink(), Version::V8, Endian::Big)
        .expect_err("cut in the second header");
    assert!(
        matches!(
            refused,
            ConvertError::CutShort {
                offset: 56,
                found: 20,
                expected: 48
            }
        ),
        "{refused}"
    );
    let cut = &original[..50];
    let refused = convert_blktrace(cut, io::sink(), Version::V8, Endian::Big)
        .expect_err("cut in the payload");
    assert!(
        matches!(
            refused,
            ConvertError::CutShort {
                offset: 0,
                found: 50,
                expected: 56
            }
        ),
        "{refused}"
    );
    let big = written(Version::V7, Endian::Big);
    let refused = convert_blktrace(&big[..], io::sink(), Version::V8, Endian::Big)
        .expect_err("is converted already");
    assert!(
        matches!(
            refused,
            ConvertError::NotTheFormat {
                offset: 0,
                found: 0x0774_6165,
                ..
            }
        ),
        "{refused}"
    );
}

#[test]
fn payload_with_a_control_group_turns_its_id() {
    let mut out = Vec::new();
    let payload = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    put_payload(&payload, CGROUP | 13, Endian::Big, &mut out);
    assert_eq!(out, [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9]);
}

#[test]
fn vscsi_keeps_all_but_the_response() {
    let make = |version| {
        let sink = SharedBytes::default();
        let events = Mixed {
            events: 1_000,
            ..Mixed::default()
        };
        write_all(&mut Vscsi::new(sink.clone(), version), events.iter()).expect("memory");
        sink.take()
    };
    let mut converted = Vec::new();
    let records = convert_vscsi(&make(VscsiVersion::V1)[..], &mut converted).expect("whole file");
    assert_eq!(records, 1_000);
    let direct = make(VscsiVersion::V2);
    for (index, (ours, theirs)) in converted.chunks(40).zip(direct.chunks(40)).enumerate() {
        assert_eq!(ours[..32], theirs[..32]);
        assert_eq!(ours[32..], made_up_response_us(index as u64).to_le_bytes());
    }
    let refused = convert_vscsi(&direct[..], io::sink()).expect_err("is version 2 already");
    assert!(
        matches!(
            refused,
            ConvertError::NotTheFormat {
                offset: 0,
                expected: 1,
                ..
            }
        ),
        "{refused}"
    );
}

#[test]
fn real_traces_convert_whole() {
    crate::require!(RealTraces);
    let folder = crate::real_traces().expect("just required");
    for cpu in [0, 1, 10] {
        let bytes = std::fs::read(folder.join(format!("blktrace/sdb.blktrace.{cpu}")))
            .expect("read a real trace");
        let mut same = Vec::new();
        let records = convert_blktrace(&bytes[..], &mut same, Version::V7, Endian::Little)
            .expect("whole file");
        assert!(same == bytes, "to its own variant nothing changes");
        let mut wide = Vec::new();
        convert_blktrace(&bytes[..], &mut wide, Version::V8, Endian::Big).expect("whole file");
        assert_eq!(wide.len() as u64, bytes.len() as u64 + 16 * records);
    }
    let bytes =
        std::fs::read(folder.join("vscsi/cloudPhysicsIO.vscsi")).expect("read a real trace");
    assert_eq!(
        convert_vscsi(&bytes[..], io::sink()).expect("whole file"),
        113_872
    );
}
