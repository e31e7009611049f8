//! Parquet files that others wrote, or that are damaged: bent bits, rows that make no sense, other columns.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use plumb_trace::open::{open, pieces};
use plumb_trace::write::create;
use plumb_trace::{
    Batch, Error, Event, Fill, Layer, LayerChoice, Names, Op, ReadOptions, SourceInfo,
};
use tempfile::TempDir;

fn read(path: &Path, layer: LayerChoice) -> Result<(Vec<Event>, SourceInfo), Error> {
    let options = ReadOptions {
        layer,
        ..ReadOptions::default()
    };
    let mut reader = open(&pieces(&[path.to_owned()])[0], &options)?;
    let mut events = Vec::new();
    let mut batch = Batch::default();
    while reader.fill(&mut batch)? == Fill::Events {
        events.extend(batch.events());
    }
    Ok((events, reader.info().clone()))
}

fn word_array(words: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(words.to_vec()))
}

fn numbers(numbers: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(numbers.to_vec()))
}

fn small(numbers: [i32; 3]) -> ArrayRef {
    Arc::new(Int32Array::from(numbers.to_vec()))
}

/// Three good rows as another program would write them: plain text columns, all nullable, other order.
fn foreign() -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("len_bytes", numbers(&[Some(512), Some(4096), Some(0)])),
        (
            "op",
            word_array(&[Some("read"), Some("write"), Some("flush")]),
        ),
        ("remark", word_array(&[Some("not ours"), None, None])),
        ("sector", numbers(&[Some(63), Some(8), Some(0)])),
        (
            "layer",
            word_array(&[Some("bio"), Some("request"), Some("request")]),
        ),
        ("rem_bytes", small([0, 0, 0])),
        ("flags", small([0, 1, 16])),
        (
            "device",
            word_array(&[Some("sda"), Some("sda"), Some("sdb")]),
        ),
        ("device_ns", numbers(&[Some(100), None, Some(7)])),
        ("time_ns", numbers(&[Some(-5), Some(10), Some(20)])),
    ]
}

fn write_columns(path: &Path, columns: Vec<(&'static str, ArrayRef)>, schema: Option<&str>) {
    let nullable = columns
        .into_iter()
        .map(|(name, column)| (name, column, true));
    let rows = RecordBatch::try_from_iter_with_nullable(nullable).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    if let Some(version) = schema {
        writer.append_key_value_metadata(KeyValue::new(
            "plumb.schema".to_owned(),
            version.to_owned(),
        ));
    }
    writer.close().unwrap();
}

fn changed(name: &str, column: Option<ArrayRef>) -> Vec<(&'static str, ArrayRef)> {
    let mut columns = foreign();
    let at = columns
        .iter()
        .position(|(known, _)| *known == name)
        .unwrap();
    match column {
        Some(column) => columns[at].1 = column,
        None => drop(columns.remove(at)),
    }
    columns
}

#[test]
fn files_of_other_programs_are_read() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("foreign.parquet");
    write_columns(&path, foreign(), None);
    let (events, info) = read(&path, LayerChoice::All).unwrap();
    let expected = [
        Event {
            device_ns: Some(100),
            ..Event::new(-5, 0, Layer::Bio, Op::Read, 32_256, 512)
        },
        Event {
            flags: 1,
            ..Event::new(10, 0, Layer::Request, Op::Write, 4096, 4096)
        },
        Event {
            flags: 16,
            device_ns: Some(7),
            ..Event::new(20, 1, Layer::Request, Op::Flush, 0, 0)
        },
    ];
    assert_eq!(events, expected);
    assert_eq!(info.layers, [Layer::Bio, Layer::Request]);
    insta::assert_snapshot!(info.notes.join("\n\n"));
    assert_eq!(read(&path, LayerChoice::Lowest).unwrap().0, expected[1..]);
    assert_eq!(
        read(&path, LayerChoice::Only(Layer::Bio)).unwrap().0,
        expected[..1]
    );
    write_columns(&path, changed("device_ns", None), Some("1"));
    let (events, info) = read(&path, LayerChoice::All).unwrap();
    assert!(
        events.len() == 3
            && events.iter().all(|event| event.device_ns.is_none())
            && info.notes.is_empty()
    );
}

#[test]
fn rows_without_sense_are_counted_and_passed_over() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("senseless.parquet");
    let check = |name: &str, column: ArrayRef, said: &str| {
        write_columns(&path, changed(name, Some(column)), Some("1"));
        let (events, info) = read(&path, LayerChoice::All).unwrap();
        assert_eq!(
            (events.len(), info.counts.records, info.counts.damaged),
            (2, 3, 1),
            "{name}"
        );
        assert_eq!((events[0].time_ns, events[1].time_ns), (-5, 20));
        assert_eq!(info.damages[0].to_string(), said);
    };
    let with = |wrong: Option<i64>| numbers(&[Some(1), wrong, Some(2)]);
    check(
        "sector",
        with(Some(-8)),
        "row 1: found -8, expected a sector from 0 to 2^54",
    );
    check(
        "sector",
        with(Some(1 << 54)),
        "row 1: found 18014398509481984, expected a sector from 0 to 2^54",
    );
    check(
        "sector",
        with(None),
        "row 1: found null in sector, expected a number",
    );
    check(
        "len_bytes",
        with(Some(i64::MIN)),
        "row 1: found -9223372036854775808, expected a length from 0 to 2^62 bytes",
    );
    check(
        "rem_bytes",
        small([0, 512, 511]),
        "row 1: found 512, expected a rest from 0 to 511 bytes",
    );
    check(
        "rem_bytes",
        small([0, -1, 0]),
        "row 1: found -1, expected a rest from 0 to 511 bytes",
    );
    check(
        "device_ns",
        with(Some(-1)),
        "row 1: found -1, expected a time not below 0 in device_ns",
    );
    check(
        "time_ns",
        numbers(&[Some(-5), None, Some(20)]),
        "row 1: found null in time_ns, expected a number",
    );
    let word = |wrong| word_array(&[Some("read"), wrong, Some("read")]);
    let expected = "expected an operation: read, write, discard, flush, write-zeroes or other";
    check(
        "op",
        word(Some("append")),
        &format!("row 1: found append, {expected}"),
    );
    check("op", word(None), &format!("row 1: found null, {expected}"));
    let word = |wrong| word_array(&[Some("bio"), wrong, Some("bio")]);
    check(
        "layer",
        word(Some("")),
        "row 1: found , expected a layer: vfs, bio or request",
    );
    check(
        "device",
        word(None),
        "row 1: found null, expected the name of a device",
    );
}

#[test]
fn other_files_are_refused_as_traces() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("other.parquet");
    let check = |columns, schema, expected: &str| {
        write_columns(&path, columns, schema);
        let message = read(&path, LayerChoice::All).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    check(
        foreign(),
        Some("2"),
        "has schema version 2, expected 1 or older; a newer plumb reads it",
    );
    check(
        foreign(),
        Some("one"),
        "has schema version one, expected 1 or older",
    );
    check(foreign(), Some("0"), "has schema version 0");
    check(changed("sector", None), None, "expected a column sector");
    check(changed("flags", None), Some("1"), "expected a column flags");
    check(
        changed("sector", Some(small([1, 2, 3]))),
        None,
        "found sector of type Int32, expected Int64",
    );
    check(
        changed("op", Some(small([1, 2, 3]))),
        None,
        "found op of type Int32, expected Utf8",
    );
    check(
        changed("time_ns", Some(word_array(&[None, None, None]))),
        None,
        "found time_ns of type Utf8",
    );
}

/// Reads any content: rows, or `None` if opening is refused.
fn survive(path: &Path, rows_max: usize) -> Option<usize> {
    let options = ReadOptions {
        layer: LayerChoice::All,
        ..ReadOptions::default()
    };
    let mut reader = open(&pieces(&[path.to_owned()])[0], &options).ok()?;
    let mut batch = Batch::default();
    let mut rows = 0;
    while let Ok(Fill::Events) = reader.fill(&mut batch) {
        for event in batch.events() {
            assert!(event.start_bytes.checked_add(event.len_bytes).is_some());
            assert!(event.device_ns.is_none_or(|ns| ns >= 0));
        }
        rows += batch.len();
        assert!(rows <= rows_max);
    }
    Some(rows)
}

fn write_some(path: &Path, count: u64) {
    let mut names = Names::default();
    let mut batch = Batch::default();
    for number in 0..count {
        let layer = if number % 3 == 0 {
            Layer::Vfs
        } else {
            Layer::Request
        };
        let device = names.device(["8,0", "8,16"][(number % 2) as usize]);
        let op = Op::ALL[(number % 6) as usize];
        let mut event = Event::new(
            number as i64 * 1000,
            device,
            layer,
            op,
            ((number * 7919) << 9) | (number % 2),
            4096,
        );
        event.device_ns = (number % 5 != 0).then_some(100 + number as i64);
        event.pid = Some(number as i32 % 9);
        event.comm = names.word(["", "dd", "sh"][(number % 3) as usize]);
        event.file = names.word(&format!("file-{number}"));
        batch.push(&event);
    }
    batch.names = Arc::new(names);
    let mut writer = create(path, None, &SourceInfo::default()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish(&SourceInfo::default()).unwrap();
}

/// Every 19th bit: 19 is prime to 8, so that every place of a byte has its turn.
#[test]
fn flipped_bits_are_survived() {
    const ROWS: usize = 600;
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("whole.parquet");
    write_some(&path, ROWS as u64);
    let whole = std::fs::read(&path).unwrap();
    let bent = dir.path().join("bent.parquet");
    let (mut flips, mut refused, mut whole_reads) = (0, 0, 0);
    let panics = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = Arc::clone(&panics);
    let usual = std::panic::take_hook();
    // The library's panics are caught where it is called; their messages would fill the log.
    std::panic::set_hook(Box::new(move |info| {
        let ours = info
            .location()
            .is_some_and(|location| location.file().contains("crates/trace"));
        if ours {
            usual(info);
        } else {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }));
    for bit in (0..whole.len() * 8).step_by(19) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&bent, &bytes).unwrap();
        flips += 1;
        match std::panic::catch_unwind(|| survive(&bent, ROWS * 1000)) {
            Ok(None) => refused += 1,
            Ok(Some(ROWS)) => whole_reads += 1,
            Ok(Some(_)) => {}
            Err(_) => panic!("bit {bit} of {} made the reader panic", path.display()),
        }
    }
    drop(std::panic::take_hook());
    let library_panics = panics.load(std::sync::atomic::Ordering::Relaxed);
    println!(
        "{flips} flips: {refused} refused, {whole_reads} read in full, {library_panics} panics in the library"
    );
    assert!(refused > 0 && whole_reads > 0);
}
