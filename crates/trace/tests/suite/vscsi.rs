//! VMware vscsi traces against counts that others made, and version 2 against a converter written apart.

use std::io::Cursor;

use plumb_testkit::convert::{convert_vscsi, made_up_response_us};
use plumb_testkit::require;
use plumb_trace::input::Input;
use plumb_trace::{Event, Fill, Latency, Op, ReadOptions, SourceInfo, open};

fn read(bytes: Vec<u8>) -> (Vec<Event>, SourceInfo) {
    let input = Input::from_reader("memory", Box::new(Cursor::new(bytes))).expect("bytes");
    let mut reader = open::open_input(input, &ReadOptions::default()).expect("opens");
    let mut batch = plumb_trace::Batch::default();
    let mut events = Vec::new();
    while reader.fill(&mut batch).expect("reads") == Fill::Events {
        events.extend(batch.events());
    }
    (events, reader.info().clone())
}

fn real_trace() -> Vec<u8> {
    let folder = plumb_testkit::real_traces().expect("checked by the test");
    std::fs::read(folder.join("vscsi/cloudPhysicsIO.vscsi")).expect("the trace")
}

/// Counts of `EXPECTED.json`, which two programs other than this one made.
#[test]
fn a_real_trace_of_version_1() {
    require!(RealTraces);
    let (events, info) = read(real_trace());
    let count =
        |matches: &dyn Fn(&Event) -> bool| events.iter().filter(|event| matches(event)).count();
    assert_eq!(events.len(), 113_872);
    assert_eq!(count(&|event| event.op == Op::Read), 46_974);
    assert_eq!(count(&|event| event.start_bytes % 4096 != 0), 112_830);
    assert_eq!(count(&|event| event.start_bytes / 512 % 8 == 7), 90_572);
    assert_eq!(events[0].time_ns, 5_633_898_368_802_000);
    assert_eq!(events[events.len() - 1].time_ns, 5_641_098_458_687_000);
    assert!(matches!(info.latency, Latency::None(_)));
    assert_eq!(info.counts.damaged, 0);
}

/// No real file of version 2 is known: this one is rewritten record by record by a converter that shares no code
/// with the reader.
#[test]
fn version_2_holds_the_same_and_the_response_times() {
    require!(RealTraces);
    let original = real_trace();
    let mut converted = Vec::new();
    convert_vscsi(&original[..], &mut converted).expect("converts");
    assert_eq!(converted.len() / 40, original.len() / 32);
    let ((first, _), (second, info)) = (read(original), read(converted));
    assert_eq!(first.len(), second.len());
    for (index, (before, after)) in first.iter().zip(&second).enumerate() {
        let device_ns = i64::try_from(made_up_response_us(index as u64)).expect("small") * 1000;
        assert_eq!(
            after,
            &Event {
                device_ns: Some(device_ns),
                ..*before
            },
            "record {index}"
        );
    }
    assert_eq!(info.latency, Latency::Known);
    assert!(!info.verified, "no real file of version 2 was at hand");
}
