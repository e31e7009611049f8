//! fio's I/O logs: a real one of version 3, the waits of version 2, and damage.

use plumb_testkit::{real_trace, require};
use plumb_trace::{Clock, Event, Layer, Op};
use serde_json::Value;

use crate::common::lines::{count, read, read_real};

mod version_3 {
    use crate::common::lines::tests_of_lines;

    tests_of_lines!(
        "fio-iolog",
        "fio version 3 iolog\n18 f.dat read 4096 512\n424 f.dat sync 0 0\n"
    );
}

mod version_2 {
    use crate::common::lines::tests_of_lines;

    tests_of_lines!(
        "fio-iolog",
        "fio version 2 iolog\nf.dat write 4096 512\nf.dat wait 500 0\nf.dat trim 0 4096\n"
    );
}

#[test]
fn fio_to_the_last_io() {
    require!(RealTraces);
    let path = "fio-iolog/local_v3.iolog";
    let whole = read_real(path);
    let text = std::fs::read_to_string(real_trace("EXPECTED.json")).unwrap();
    let expected = &serde_json::from_str::<Value>(&text).unwrap()[path];
    let number = |value: &Value| value.as_u64().unwrap();
    for (name, key) in [
        ("read", "read"),
        ("write", "write"),
        ("sync", "sync"),
        ("add", "FILE:add"),
        ("open", "FILE:open"),
        ("close", "FILE:close"),
    ] {
        assert_eq!(
            whole.info.tallies.get(name),
            Some(&number(&expected["ops"][key])),
            "{name}"
        );
    }
    let moving: Vec<Event> = whole
        .events
        .iter()
        .filter(|event| matches!(event.op, Op::Read | Op::Write))
        .copied()
        .collect();
    assert_eq!(
        count(&moving, |event| event.op == Op::Read),
        number(&expected["ops"]["read"])
    );
    assert_eq!(moving.len() as u64, number(&expected["rw"]));
    assert_eq!(
        moving.iter().map(|event| event.len_bytes).sum::<u64>(),
        number(&expected["bytes"])
    );
    assert_eq!(
        count(&moving, |event| event.start_bytes % 4096 != 0),
        number(&expected["start_not_mod_4096"])
    );
    assert_eq!(
        count(&moving, |event| event.len_bytes % 4096 != 0),
        number(&expected["len_not_mult_4096"])
    );
    // Counted with Python: the offsets' sum, the first and last I/O; two syncs, whose offsets mean nothing.
    assert_eq!(
        moving.iter().map(|event| event.start_bytes).sum::<u64>(),
        426_351_616
    );
    assert_eq!(
        whole.events.first().map(|event| event.time_ns),
        Some(159_000)
    );
    assert_eq!(
        whole.events.last().map(|event| event.time_ns),
        Some(13_494_000)
    );
    let syncs: Vec<&Event> = whole
        .events
        .iter()
        .filter(|event| event.op == Op::Flush)
        .collect();
    assert_eq!(
        syncs.iter().map(|it| it.time_ns).collect::<Vec<_>>(),
        [4_823_000, 10_932_000]
    );
    assert!(
        syncs
            .iter()
            .all(|it| it.start_bytes == 0 && it.len_bytes == 0)
    );
    assert!(whole.events.iter().all(|event| event.layer == Layer::Vfs));
    assert_eq!(whole.names.devices()[0].name, "f.dat");
    assert_eq!(whole.names.word_of(whole.events[0].file), Some("f.dat"));
    assert!(whole.info.is_whole() && whole.info.verified);
}

#[test]
fn fio_version_2_has_the_times_of_its_waits() {
    let text =
        b"fio version 2 iolog\nf add\nf open\nf read 0 512\nf wait 500 0\nf read 512 512\nf wait 250 0\n\
                 f write 0 512\nf close\n";
    let whole = read(text).unwrap();
    let times: Vec<i64> = whole.events.iter().map(|event| event.time_ns).collect();
    assert_eq!(
        (times, whole.info.clock),
        (vec![0, 500_000, 750_000], Clock::Start)
    );
    assert!(!whole.info.verified);
    let whole = read(b"fio version 2 iolog\nf read 0 512\n").unwrap();
    assert_eq!(whole.info.clock, Clock::Unknown);
    assert!(whole.info.cannot_tell.contains(&"times"));
}
