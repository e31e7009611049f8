//! The project's own format: data survive the round trip, damaged files give their readable part and never a panic.

use plumb_testkit::{real_trace, require};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_trace::ahead::ReadAhead;
use plumb_trace::open::{open, pieces};
use plumb_trace::reader::Sniff;
use plumb_trace::write::{OutputFormat, create};
use plumb_trace::{
    Batch, Clock, Columns, Error, Event, Fill, Latency, Layer, LayerChoice, Names, Op, ReadOptions,
    Reader, SourceInfo,
};
use proptest::prelude::*;
use tempfile::TempDir;

/// An event with its names as words, so that those of different traces can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedEvent {
    event: Event,
    device: String,
    comm: Option<String>,
    file: Option<String>,
}

fn rows_of(batch: &Batch) -> Vec<NamedEvent> {
    let names = &batch.names;
    let row = |event: Event| NamedEvent {
        device: names.devices()[event.device as usize].name.clone(),
        comm: names.word_of(event.comm).map(str::to_owned),
        file: names.word_of(event.file).map(str::to_owned),
        event: Event {
            device: 0,
            comm: 0,
            file: 0,
            ..event
        },
    };
    batch.events().map(row).collect()
}

fn batch_of(rows: &[NamedEvent]) -> Batch {
    let mut names = Names::default();
    let mut batch = Batch::default();
    for row in rows {
        let mut event = row.event;
        event.device = names.device(&row.device);
        event.comm = names.word(row.comm.as_deref().unwrap_or(""));
        event.file = names.word(row.file.as_deref().unwrap_or(""));
        batch.push(&event);
    }
    batch.names = Arc::new(names);
    batch
}

fn all_layers() -> ReadOptions {
    ReadOptions {
        layer: LayerChoice::All,
        ..ReadOptions::default()
    }
}

fn drain(reader: &mut dyn Reader) -> Result<Vec<NamedEvent>, Error> {
    let mut rows = Vec::new();
    let mut batch = Batch::default();
    while reader.fill(&mut batch)? != Fill::End {
        assert!(!batch.is_empty());
        rows.extend(rows_of(&batch));
    }
    Ok(rows)
}

fn open_path(path: &Path, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    open(&pieces(&[path.to_owned()])[0], options)
}

fn read(path: &Path, options: &ReadOptions) -> Result<(Vec<NamedEvent>, SourceInfo), Error> {
    let mut reader = open_path(path, options)?;
    let rows = drain(&mut *reader)?;
    Ok((rows, reader.info().clone()))
}

fn write_rows(path: &Path, rows: &[NamedEvent], info: &SourceInfo) {
    let mut writer = create(path, None, info).unwrap();
    for some in rows.chunks(1000) {
        writer.write(&batch_of(some)).unwrap();
    }
    let written = writer.finish(info).unwrap();
    assert_eq!(
        (written.events, written.losses),
        (rows.len() as u64, vec![])
    );
}

fn any_row() -> impl Strategy<Value = NamedEvent> {
    use prop::option::of as known;
    let ns = || known(0i64..=i64::MAX);
    let word = || known("[a-z(/ ]{1,3}|ü, \"'");
    let place = (0u64..(1 << 63) - 1, 0u64..1 << 62);
    let kind = (0usize..3, 0usize..6, any::<i32>(), "[a-c]{0,2}");
    let who = (
        known(-5..i32::MAX),
        word(),
        known(i64::MIN + 1..=i64::MAX),
        word(),
    );
    (-9i64..=i64::MAX, kind, place, (ns(), ns()), who).prop_map(
        |(
            time_ns,
            (layer, op, flags, device),
            (start, len),
            (queue_ns, device_ns),
            (pid, comm, cgroup, file),
        )| {
            let event = Event {
                flags,
                queue_ns,
                device_ns,
                pid,
                cgroup,
                ..Event::new(time_ns, 0, Layer::ALL[layer], Op::ALL[op], start, len)
            };
            NamedEvent {
                event,
                device,
                comm,
                file,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_events_come_back(mut rows in prop::collection::vec(any_row(), 0..200), sorted: bool, plain: bool) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("any.parquet");
        if plain {
            // Columns of one value or none take another way through the reader.
            for row in &mut rows {
                row.event = Event { queue_ns: None, device_ns: Some(7), pid: Some(1), cgroup: None, ..row.event };
                row.event.layer = Layer::Bio;
                (row.comm, row.file) = (Some("dd".to_owned()), None);
            }
        }
        if sorted {
            rows.sort_by_key(|row| row.event.time_ns);
        }
        write_rows(&path, &rows, &SourceInfo::default());
        let (back, info) = read(&path, &all_layers()).unwrap();
        // Rows that are out of order are sorted by the reader, those of one time stay as they are.
        rows.sort_by_key(|row| row.event.time_ns);
        prop_assert_eq!(&back, &rows);
        prop_assert!(info.is_whole());
        let present: Vec<Layer> =
            Layer::ALL.into_iter().filter(|layer| rows.iter().any(|row| row.event.layer == *layer)).collect();
        prop_assert_eq!(&info.layers, &present);
        if let Some(lowest) = present.last() {
            let (low, _) = read(&path, &ReadOptions::default()).unwrap();
            rows.retain(|row| row.event.layer == *lowest);
            prop_assert_eq!(low, rows);
        }
    }
}

#[test]
fn metadata_of_a_file_survive() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("said.parquet");
    let mut info = SourceInfo {
        format: "blkparse",
        verified: true,
        clock: Clock::Boot,
        ..SourceInfo::default()
    };
    info.unix_ns_at_zero = Some(1_590_506_586_760_105_532);
    info.latency = Latency::None("only completions were recorded".to_owned());
    info.completions_only = true;
    info.counts.lost = 3;
    info.counts.unmatched_issues = 4;
    info.counts.unmatched_completions = 5;
    info.counts.late_completions = 6;
    info.counts.late_ns_max = 7;
    info.note("a sentence");
    let mut names = Names::default();
    let id = names.device("8,16");
    let device = names.device_mut(id).unwrap();
    (device.size_bytes, device.logical_block_bytes) = (Some(1 << 40), Some(4096));
    device.partitions = vec![("8,17".to_owned(), 63 * 512)];
    let expected = names.devices().to_vec();
    let mut batch = Batch::default();
    batch.push(&Event::new(5, id, Layer::Request, Op::Read, 512, 512));
    batch.names = Arc::new(names);
    let mut writer = create(&path, None, &info).unwrap();
    writer.write(&batch).unwrap();
    writer.finish(&info).unwrap();

    let mut reader = open_path(&path, &ReadOptions::default()).unwrap();
    assert_eq!(reader.fill(&mut batch).unwrap(), Fill::Events);
    assert_eq!(batch.names.devices(), expected);
    let back = reader.info();
    assert_eq!(
        (back.format, back.clock, back.unix_ns_at_zero),
        ("parquet", Clock::Boot, info.unix_ns_at_zero)
    );
    assert_eq!(
        (&back.latency, back.completions_only),
        (&info.latency, true)
    );
    let counts = plumb_trace::Counts {
        records: 1,
        events: 1,
        ..info.counts
    };
    assert_eq!(back.counts, counts);
    insta::assert_snapshot!(back.notes.join("\n\n"));
}

fn some_rows(count: i64) -> Vec<NamedEvent> {
    let row = |number: i64| {
        let layer = if number % 3 == 0 {
            Layer::Vfs
        } else {
            Layer::Request
        };
        let op = Op::ALL[(number % 6) as usize];
        let mut event = Event::new(
            number * 1000,
            0,
            layer,
            op,
            (number as u64 * 7919) << 9,
            4096,
        );
        event.device_ns = (number % 5 != 0).then_some(100 + number);
        event.pid = Some(number as i32 % 9);
        event.tid = (number % 3 != 0).then_some(number as i32 % 11);
        NamedEvent {
            event,
            device: format!("8,{}", number % 2 * 16),
            comm: (number % 4 != 0).then(|| format!("comm {}", number % 7)),
            file: Some(format!("file-{number}")),
        }
    };
    (0..count).map(row).collect()
}

#[test]
fn only_wanted_columns_and_layers_are_read() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("some.parquet");
    write_rows(&path, &some_rows(10_000), &SourceInfo::default());
    let check = |layer, columns, expected: &dyn Fn(&mut NamedEvent) -> bool| {
        let options = ReadOptions {
            layer,
            columns,
            ..ReadOptions::default()
        };
        let mut rows = some_rows(10_000);
        rows.retain_mut(expected);
        assert_eq!(read(&path, &options).unwrap().0, rows, "{layer:?}");
    };
    check(LayerChoice::All, Columns::ALL, &|_| true);
    check(LayerChoice::Lowest, Columns::ALL, &|row| {
        row.event.layer == Layer::Request
    });
    check(LayerChoice::Only(Layer::Vfs), Columns::PROFILE, &|row| {
        row.file = None;
        row.event.layer == Layer::Vfs
    });
    let bare = Columns {
        comm: false,
        device_ns: false,
        pid: false,
        tid: false,
        ..Columns::PROFILE
    };
    check(LayerChoice::All, bare, &|row| {
        (row.comm, row.file, row.event.device_ns, row.event.pid) = (None, None, None, None);
        row.event.tid = None;
        true
    });
    let options = ReadOptions {
        layer: LayerChoice::Only(Layer::Bio),
        ..ReadOptions::default()
    };
    let Some(Error::NoLayer { asked, present, .. }) = open_path(&path, &options).err() else {
        panic!("it is read");
    };
    assert_eq!((asked, present.as_str()), (Layer::Bio, "vfs, request"));
}

/// The lowest layer of each device is all there is where no device has two.
#[test]
fn devices_of_one_layer_each_are_all_read() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("layers.parquet");
    let mut rows = some_rows(1000);
    let one_layer_a_device = SourceInfo {
        one_layer_a_device: true,
        ..SourceInfo::default()
    };
    rows.iter_mut().for_each(|row| {
        row.event.layer = if row.device == "8,0" {
            Layer::Bio
        } else {
            Layer::Request
        };
    });
    write_rows(&path, &rows, &one_layer_a_device);
    let (all, info) = read(&path, &ReadOptions::default()).unwrap();
    assert!(all == rows && info.one_layer_a_device && info.layers == [Layer::Bio, Layer::Request]);
    let bios = ReadOptions {
        layer: LayerChoice::Only(Layer::Bio),
        ..ReadOptions::default()
    };
    assert_eq!(read(&path, &bios).unwrap().0.len(), 500);
    // A file that does not say so may have an I/O at both.
    let path = dir.path().join("unsaid.parquet");
    write_rows(&path, &rows, &SourceInfo::default());
    assert_eq!(read(&path, &ReadOptions::default()).unwrap().0.len(), 500);
}

#[test]
fn row_groups_and_reading_ahead_keep_the_order() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("long.parquet");
    let rows = some_rows(530_001);
    write_rows(&path, &rows, &SourceInfo::default());
    let mut reader = ReadAhead::wrap(open_path(&path, &all_layers()).unwrap());
    assert!(drain(&mut *reader).unwrap() == rows);
    assert_eq!(reader.info().counts.events, 530_001);
    // Left in the middle, the thread ends: this would hang otherwise.
    let mut reader = ReadAhead::wrap(open_path(&path, &all_layers()).unwrap());
    let mut batch = Batch::default();
    assert_eq!(reader.fill(&mut batch).unwrap(), Fill::Events);
    drop(reader);
}

#[test]
fn a_truncated_file_is_reported() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("whole.parquet");
    write_rows(&path, &some_rows(3000), &SourceInfo::default());
    let whole = std::fs::read(&path).unwrap();
    let cut = dir.path().join("cut.parquet");
    let check = |bytes: &[u8], expected: &str| {
        std::fs::write(&cut, bytes).unwrap();
        let error = read(&cut, &all_layers()).expect_err(expected);
        let mut message = error.to_string();
        if let Some(source) = std::error::Error::source(&error) {
            message = format!("{message}: {source}");
        }
        assert!(message.contains(expected), "{message}");
    };
    for len in [4, 8, 11, 12, 100, whole.len() / 2, whole.len() - 1] {
        check(&whole[..len], "cut off");
    }
    check(&[], "is empty");
    check(b"PAR1\0\0\0\0PAR1", "cannot be read as Parquet");
    check(b"PAR1\xff\xff\xff\x7fPAR1", "cannot be read as Parquet");
    let packed = dir.path().join("packed.gz");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &whole).unwrap();
    std::fs::write(&packed, encoder.finish().unwrap()).unwrap();
    assert!(matches!(
        open_path(&packed, &all_layers()),
        Err(Error::NeedsFile { .. })
    ));
}

/// Reads a trace and writes it as Parquet; returns the data read.
fn convert(from: &Path, to: &Path, options: &ReadOptions) -> (Vec<NamedEvent>, SourceInfo) {
    let mut reader = open_path(from, options).unwrap();
    let mut writer = create(to, None, reader.info()).unwrap();
    let mut rows = Vec::new();
    let mut batch = Batch::default();
    while reader.fill(&mut batch).unwrap() == Fill::Events {
        writer.write(&batch).unwrap();
        rows.extend(rows_of(&batch));
    }
    assert_eq!(
        writer.finish(reader.info()).unwrap().events,
        rows.len() as u64
    );
    (rows, reader.info().clone())
}

#[test]
fn real_traces_come_back() {
    require!(RealTraces);
    let dir = TempDir::new().unwrap();
    let check = |path: &str, events: usize| {
        let path = real_trace(path);
        let target = dir.path().join("real.parquet");
        let (rows, there) = convert(&path, &target, &all_layers());
        assert_eq!(rows.len(), events, "{}", path.display());
        let (back, here) = read(&target, &all_layers()).unwrap();
        assert!(back == rows, "{}", path.display());
        assert_eq!(
            (there.clock, there.latency, there.layers),
            (here.clock, here.latency, here.layers)
        );
        assert_eq!(there.counts.unmatched_issues, here.counts.unmatched_issues);
    };
    check("vscsi/cloudPhysicsIO.vscsi", 113_872);
    // The tool's output holds completions only: one I/O each.
    check("blkparse/leveldb_blk_data.txt", 840);
    // Two Q and one D; one Q and one D.
    check("blkparse/excerpt_discard_scylla.txt", 3);
    check("blkparse/excerpt_remap_centos7_lvm.txt", 2);
}

/// The Parquet copy of a trace gives the figures that others counted on the original.
#[test]
fn a_converted_trace_has_the_counted_figures() {
    require!(RealTraces);
    let expected = real_trace("EXPECTED.json");
    let expected: serde_json::Value =
        serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap();
    let dir = TempDir::new().unwrap();
    for name in [
        "vscsi/cloudPhysicsIO.vscsi",
        "blkparse/leveldb_blk_data.txt",
    ] {
        let path = real_trace(name);
        let target = dir.path().join("counted.parquet");
        convert(&path, &target, &ReadOptions::default());
        let (rows, _) = read(&target, &ReadOptions::default()).unwrap();
        let expected = &expected[name];
        let count = |keep: &dyn Fn(&Event) -> bool| {
            rows.iter().filter(|row| keep(&row.event)).count() as u64
        };
        assert_eq!(expected["n"], count(&|_| true), "{name}");
        for (op, letter) in [(Op::Read, "R"), (Op::Write, "W")] {
            let bytes: u64 = rows
                .iter()
                .filter(|row| row.event.op == op)
                .map(|row| row.event.len_bytes)
                .sum();
            assert_eq!(
                expected["bytes_by_op"][letter].as_u64().unwrap_or(0),
                bytes,
                "{name} {letter}"
            );
        }
        for unit in [4096, 8192, 65536, 1 << 20] {
            let off = count(&|event| event.start_bytes % unit != 0);
            assert_eq!(
                expected["all"][format!("start_not_mod_{unit}")]["count"],
                off,
                "{name} {unit}"
            );
        }
        for sector in 0..8 {
            let there = count(&|event| event.start_bytes / 512 % 8 == sector);
            let counted = &expected["all"]["start_mod_4096_in_sectors"][sector.to_string()];
            assert_eq!(counted.as_u64().unwrap_or(0), there, "{name} {sector}");
        }
    }
}

#[test]
fn formats_are_chosen_by_extension_or_name() {
    let check =
        |path: &str, target| assert_eq!(OutputFormat::from_path(Path::new(path)), target, "{path}");
    check("a.parquet", Some(OutputFormat::Parquet));
    check("a.b.IOLOG", Some(OutputFormat::FioIolog));
    check("a.csv", Some(OutputFormat::MsrCsv));
    check("a", None);
    assert_eq!(
        OutputFormat::from_name("msr-csv"),
        Some(OutputFormat::MsrCsv)
    );
    let refused = create(Path::new("x.txt"), None, &SourceInfo::default()).err();
    let Some(Error::NoSuchTarget { found, known }) = refused else {
        panic!("it is made");
    };
    assert_eq!(found, "x.txt");
    assert!(known.starts_with("parquet (.parquet)"), "{known}");
    assert!(!Path::new("x.txt").exists());
}

#[test]
fn no_other_trace_is_taken_for_parquet() {
    require!(RealTraces);
    let root = real_trace("");
    let folders = std::fs::read_dir(root)
        .unwrap()
        .filter_map(|entry| entry.unwrap().path().read_dir().ok());
    let files: Vec<PathBuf> = folders
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(files.len() > 50);
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let prefix = &bytes[..bytes.len().min(4096)];
        assert_eq!(
            (plumb_trace::format::parquet::FORMAT.sniff)(prefix, true),
            Sniff::No,
            "{}",
            file.display()
        );
    }
    let sniff = plumb_trace::format::parquet::FORMAT.sniff;
    assert_eq!(
        (
            sniff(b"PAR1", false),
            sniff(b"PA", false),
            sniff(b"PA", true)
        ),
        (Sniff::Yes, Sniff::More, Sniff::No)
    );
}
