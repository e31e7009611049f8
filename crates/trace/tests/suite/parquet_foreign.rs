//! The same rows as other programs may encode them: pages of both versions and any size, dictionaries that are
//! narrow, wide, given up half-way or absent, nulls at every turn.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use parquet::schema::types::ColumnPath;
use plumb_trace::open::{open, pieces};
use plumb_trace::{Batch, Event, Fill, Layer, LayerChoice, Op, ReadOptions};
use tempfile::TempDir;

/// More than a batch and than a page, and no multiple of either.
const ROWS: i64 = 21_001;

/// A word with a suffix of this many different numbers.
fn word(row: i64, different: i64) -> String {
    format!("word {}", row * row % different)
}

fn is_known(row: i64) -> bool {
    row % 7 != 3 && !(5_000..9_200).contains(&row)
}

fn op(row: i64) -> Op {
    [Op::Read, Op::Write, Op::Discard][(row * row % 11 % 3) as usize]
}

fn layer(row: i64) -> Layer {
    if row / 900 % 2 == 0 {
        Layer::Bio
    } else {
        Layer::Request
    }
}

/// The expected event, from which the columns are made; names are separate.
fn event(row: i64) -> Event {
    let start = (row as u64 * 7919 % 100_003) * 512 + row as u64 % 3;
    Event {
        flags: i32::from(row % 5 == 0),
        device_ns: is_known(row).then_some(row * 31 % 4000),
        pid: is_known(row + 1).then_some((row % 300) as i32),
        ..Event::new(
            row * 10,
            0,
            layer(row),
            op(row),
            start,
            [512, 4096, 0, 65_536][row as usize % 4],
        )
    }
}

fn columns(nullable_all: bool) -> RecordBatch {
    let events: Vec<Event> = (0..ROWS).map(event).collect();
    let rows = || (0..ROWS).zip(&events);
    let wide = |of: fn(&Event) -> i64| -> ArrayRef {
        Arc::new(
            events
                .iter()
                .map(|event| Some(of(event)))
                .collect::<Int64Array>(),
        )
    };
    let narrow = |of: fn(&Event) -> i32| -> ArrayRef {
        Arc::new(
            events
                .iter()
                .map(|event| Some(of(event)))
                .collect::<Int32Array>(),
        )
    };
    let words = |of: &dyn Fn(i64, &Event) -> Option<String>| -> ArrayRef {
        Arc::new(
            rows()
                .map(|(row, event)| of(row, event))
                .collect::<StringArray>(),
        )
    };
    let known = |row: i64, word: String| is_known(row).then_some(word);
    let columns = vec![
        ("time_ns", wide(|event| event.time_ns), false),
        ("device", words(&|_, _| Some("sda".to_owned())), false),
        (
            "layer",
            words(&|_, event| Some(event.layer.word().to_owned())),
            false,
        ),
        (
            "op",
            words(&|_, event| Some(event.op.word().to_owned())),
            false,
        ),
        ("flags", narrow(|event| event.flags), false),
        (
            "sector",
            wide(|event| (event.start_bytes / 512) as i64),
            false,
        ),
        (
            "rem_bytes",
            narrow(|event| (event.start_bytes % 512) as i32),
            false,
        ),
        ("len_bytes", wide(|event| event.len_bytes as i64), false),
        (
            "device_ns",
            Arc::new(
                events
                    .iter()
                    .map(|event| event.device_ns)
                    .collect::<Int64Array>(),
            ),
            true,
        ),
        (
            "pid",
            Arc::new(events.iter().map(|event| event.pid).collect::<Int32Array>()),
            true,
        ),
        ("comm", words(&|row, _| known(row, word(row, 40))), true),
        (
            "file",
            words(&|row, _| known(row + 2, word(row, 5000))),
            true,
        ),
    ];
    let columns = columns
        .into_iter()
        .map(|(name, column, null)| (name, column, null || nullable_all));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn check(path: &Path, name: &str, nullable_all: bool, properties: WriterPropertiesBuilder) {
    let rows = columns(nullable_all);
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties.build())).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let options = ReadOptions {
        layer: LayerChoice::All,
        ..ReadOptions::default()
    };
    let mut reader = open(&pieces(&[path.to_owned()])[0], &options).unwrap();
    assert_eq!(reader.info().layers, [Layer::Bio, Layer::Request], "{name}");
    let mut batch = Batch::default();
    let mut row = 0;
    while reader.fill(&mut batch).unwrap() == Fill::Events {
        for found in batch.events() {
            let text = |id| batch.names.word_of(id).map(str::to_owned);
            let comm = is_known(row).then(|| word(row, 40));
            let file = is_known(row + 2).then(|| word(row, 5000));
            assert_eq!(
                (text(found.comm), text(found.file)),
                (comm, file),
                "{name}, row {row}"
            );
            let found = Event {
                comm: 0,
                file: 0,
                ..found
            };
            assert_eq!(found, event(row), "{name}, row {row}");
            row += 1;
        }
    }
    assert_eq!((row, reader.info().is_whole()), (ROWS, true), "{name}");
}

#[test]
fn any_encoding_gives_the_same_rows() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("foreign.parquet");
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for nullable_all in [false, true] {
            let new = || WriterProperties::builder().set_writer_version(version);
            let check = |name: &str, with| {
                check(&path, &format!("{version:?}, {name}"), nullable_all, with)
            };
            check("dictionaries", new());
            check(
                "plain",
                new()
                    .set_dictionary_enabled(false)
                    .set_compression(Compression::SNAPPY),
            );
            let zstd = Compression::ZSTD(ZstdLevel::try_new(3).unwrap());
            check(
                "small pages",
                new()
                    .set_data_page_row_count_limit(700)
                    .set_write_batch_size(350),
            );
            check(
                "given up",
                new()
                    .set_dictionary_page_size_limit(2000)
                    .set_compression(zstd),
            );
            let bare = new().set_statistics_enabled(EnabledStatistics::None);
            check(
                "no statistics, row groups",
                bare.set_max_row_group_row_count(Some(5000)),
            );
            let mut packed = new().set_dictionary_enabled(false);
            for (column, encoding) in [
                ("time_ns", Encoding::DELTA_BINARY_PACKED),
                ("pid", Encoding::DELTA_BINARY_PACKED),
                ("device_ns", Encoding::BYTE_STREAM_SPLIT),
                ("comm", Encoding::DELTA_BYTE_ARRAY),
                ("file", Encoding::DELTA_LENGTH_BYTE_ARRAY),
            ] {
                packed = packed.set_column_encoding(ColumnPath::from(column), encoding);
            }
            check("packed", packed);
        }
    }
}
