//! The text formats that are written: exact lines, data that they cannot hold, and files that are complete or absent.

use std::path::Path;
use std::sync::Arc;

use plumb_trace::open::{self, Piece};
use plumb_trace::write::create;
use plumb_trace::{
    Batch, Clock, Error, Event, Fill, Layer, Names, Op, ReadOptions, SourceInfo, flags,
};
use tempfile::TempDir;

fn event(time_ns: i64, op: Op, start: u64, len: u64) -> Event {
    Event::new(time_ns, 0, Layer::Request, op, start, len)
}

fn batch_of(devices: &[&str], events: &[Event]) -> Batch {
    let mut names = Names::default();
    for device in devices {
        names.device(device);
    }
    names.word("a file");
    let mut batch = Batch::default();
    for event in events {
        batch.push(event);
    }
    batch.names = Arc::new(names);
    batch
}

/// Writes events and compares the file and the losses, each as `what: events`.
fn check(
    name: &str,
    info: &SourceInfo,
    devices: &[&str],
    events: &[Event],
    text: &str,
    losses: &[&str],
) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join(name);
    let mut writer = create(&path, None, info).unwrap();
    writer.write(&batch_of(devices, events)).unwrap();
    assert!(
        !path.exists(),
        "nothing under the final name before the end"
    );
    let written = writer.finish(info).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let said: Vec<String> = written.losses.iter().map(ToString::to_string).collect();
    assert_eq!(said, losses);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        1,
        "no other file is left"
    );
}

#[test]
fn iolog_lines() {
    let info = SourceInfo::default();
    let second = Event {
        device: 1,
        ..event(1_000_002_000, Op::Write, 1 << 40, 8192)
    };
    let events = [
        event(1_000_000_000, Op::Read, 32256, 4096),
        second,
        event(1_000_002_500, Op::Discard, 0, 1 << 20),
        event(1_000_003_000, Op::Flush, 0, 0),
        event(1_000_003_000, Op::Other, 0, 0),
    ];
    let text = "fio version 3 iolog\n\
                0 sda add layer=request\n0 sda open\n0 sda read 32256 4096\n\
                2 disk_2 add layer=request\n2 disk_2 open\n2 disk_2 write 1099511627776 8192\n\
                2 sda trim 0 1048576\n3 sda sync 0 0\n\
                3 sda close\n3 disk_2 close\n";
    let losses = [
        "operations other than read, write, trim and sync are left out (1 events)",
        "times are cut to 1 µs (1 events)",
    ];
    check("a.iolog", &info, &["sda", "disk 2"], &events, text, &losses);
    check("a.iolog", &info, &[], &[], "fio version 3 iolog\n", &[]);
}

#[test]
fn iolog_losses_and_names() {
    let info = SourceInfo::default();
    let mut rich = event(5_000, Op::Write, 512, 5 << 30);
    (rich.device_ns, rich.queue_ns, rich.pid, rich.cgroup) = (Some(1), Some(2), Some(3), Some(4));
    (rich.file, rich.flags, rich.device) = (1, flags::SYNC, 1);
    let vfs = Event {
        layer: Layer::Vfs,
        file: 1,
        ..event(3_000, Op::Read, 1, 2)
    };
    let text = "fio version 3 iolog\n\
                0 a_b add layer=request\n0 a_b open\n\
                0 a_b write 512 4293918720\n0 a_b write 4293919232 1074790400\n\
                0 a_file add\n0 a_file open\n0 a_file read 1 2\n\
                0 a_b_2 add layer=request\n0 a_b_2 open\n0 a_b_2 write 0 1\n\
                0 a_b close\n0 a_file close\n0 a_b_2 close\n";
    let losses = [
        "control group (cgroup) (1 events)",
        "file (1 events)",
        "flags (1 events)",
        "latency (device_ns) (1 events)",
        "lengths of 4 GiB and more are split (1 events)",
        "process (pid) (1 events)",
        "several layers are written as one: the same I/O is there more than once (3 events)",
        "time before issue (queue_ns) (1 events)",
        "times before that of the line above take its time (1 events)",
        "write-zeroes become writes of data (1 events)",
    ];
    let zeroes = Event {
        device: 2,
        ..event(5_000, Op::WriteZeroes, 0, 1)
    };
    // The earlier time counts once: the next line is at the time of the first line again.
    check(
        "a.iolog",
        &info,
        &["x", "a b", "a\tb"],
        &[rich, vfs, zeroes],
        text,
        &losses,
    );
}

#[test]
fn msr_lines() {
    // 2007-02-22 17:00:00.3061629 UTC: the first time stamp of the published traces is 128166372003061629.
    let unix_ns = 1_172_163_600_306_162_900;
    let info = SourceInfo {
        clock: Clock::Unix,
        ..SourceInfo::default()
    };
    let mut first = event(unix_ns, Op::Read, 383_496_192, 32_768);
    first.device_ns = Some(4_179_700);
    let mut second = Event {
        device: 1,
        ..event(unix_ns + 150, Op::Write, 0, 512)
    };
    second.device_ns = Some(99);
    let events = [
        first,
        second,
        event(unix_ns + 200, Op::Flush, 0, 0),
        event(unix_ns + 200, Op::Read, 1, 1),
    ];
    let text = "128166372003061629,hm,1,Read,383496192,32768,41797\n\
                128166372003061630,sda_x,0,Write,0,512,0\n\
                128166372003061631,hm,1,Read,1,1,\n";
    let losses = [
        "devices get a disk number 0 (NAME_0) (1 events)",
        "operations other than read and write are left out (1 events)",
        "times are cut to 100 ns (1 events)",
    ];
    check("a.csv", &info, &["hm_1", "sda,x"], &events, text, &losses);
}

#[test]
fn msr_times_of_day() {
    let read = Event {
        device_ns: Some(0),
        ..event(-100, Op::Read, 0, 512)
    };
    let since_start = SourceInfo {
        clock: Clock::Start,
        ..SourceInfo::default()
    };
    let lost = "time of day: time 0 of the trace is written as 1970-01-01 (1 events)";
    check(
        "a.csv",
        &since_start,
        &["h_0"],
        &[read],
        "116444735999999999,h,0,Read,0,512,0\n",
        &[lost],
    );
    let known = SourceInfo {
        unix_ns_at_zero: Some(1_000_000_100),
        ..since_start
    };
    check(
        "a.csv",
        &known,
        &["h_0"],
        &[read],
        "116444736010000000,h,0,Read,0,512,0\n",
        &[],
    );
}

/// The written file reads back: times before 1970, latencies that are unknown, the layer.
#[test]
fn there_and_back() {
    let dir = TempDir::new().unwrap();
    let boot = SourceInfo {
        clock: Clock::Boot,
        ..SourceInfo::default()
    };
    let timed = Event {
        device_ns: Some(4_200),
        ..event(-5_000_000_000, Op::Read, 4096, 512)
    };
    let events = [timed, event(100, Op::Write, 8192, 512)];
    for (name, layer, latencies) in [
        ("a.csv", Layer::Request, [Some(4_200), None]),
        ("a.iolog", Layer::Request, [None, None]),
        ("b.iolog", Layer::Bio, [None, None]),
        ("c.iolog", Layer::Vfs, [None, None]),
    ] {
        let path = dir.path().join(name);
        let mut writer = create(&path, None, &boot).unwrap();
        let events = events.map(|event| Event { layer, ..event });
        writer.write(&batch_of(&["h_0"], &events)).unwrap();
        writer.finish(&boot).unwrap();
        let piece = Piece {
            path: path.clone(),
            files: Vec::new(),
        };
        let mut reader = open::open(&piece, &ReadOptions::default()).unwrap();
        let mut batch = Batch::default();
        assert_eq!(reader.fill(&mut batch).unwrap(), Fill::Events);
        let read: Vec<Event> = batch.events().collect();
        assert_eq!(reader.info().counts.damaged, 0, "{name}");
        assert_eq!(reader.info().layers, [layer], "{name}");
        assert_eq!(
            [0, 1].map(|at: usize| read[at].device_ns),
            latencies,
            "{name}"
        );
        assert_eq!(
            read[1].time_ns - read[0].time_ns,
            if name == "a.csv" {
                5_000_000_100
            } else {
                5_000_000_000
            }
        );
        assert!(read.iter().all(|event| event.layer == layer), "{name}");
    }
}

/// Data read from a log of fio have their place when it is written again.
#[test]
fn iolog_to_iolog_loses_nothing() {
    let dir = TempDir::new().unwrap();
    let (from, to) = (dir.path().join("a.iolog"), dir.path().join("b.iolog"));
    let rows = "0 f.dat add\n0 f.dat open\n0 f.dat read 0 512\n";
    let text = format!("fio version 3 iolog\n{rows}7 f.dat close\n");
    std::fs::write(&from, text).unwrap();
    let mut reader = open::open(
        &Piece {
            path: from,
            files: Vec::new(),
        },
        &ReadOptions::default(),
    )
    .unwrap();
    let mut batch = Batch::default();
    assert_eq!(reader.fill(&mut batch).unwrap(), Fill::Events);
    let mut writer = create(&to, None, reader.info()).unwrap();
    writer.write(&batch).unwrap();
    assert_eq!(writer.finish(reader.info()).unwrap().losses, []);
    assert!(std::fs::read_to_string(&to).unwrap().contains(rows));
}

/// A link stays one, and its target keeps its permissions; only files are overwritten.
#[test]
fn links_permissions_and_devices() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = TempDir::new().unwrap();
    let info = SourceInfo::default();
    let write = |path: &Path| {
        let mut writer = create(path, Some("msr-csv"), &info)?;
        writer.write(&batch_of(&["d_0"], &[event(1, Op::Read, 0, 512)]))?;
        writer.finish(&info)
    };
    let (file, link, loose) = (
        dir.path().join("file"),
        dir.path().join("link"),
        dir.path().join("loose"),
    );
    std::fs::write(&file, "old").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink("file", &link).unwrap();
    symlink("new", &loose).unwrap();
    write(&link).unwrap();
    write(&loose).unwrap();
    assert!(link.is_symlink() && loose.is_symlink());
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains("Read,0,512")
    );
    assert!(dir.path().join("new").is_file());
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777,
        0o600
    );
    let tty = Path::new("/dev/ptmx");
    if tty.exists() {
        let error = write(tty).unwrap_err();
        assert!(
            matches!(
                error,
                Error::NoFile {
                    found: "a character device",
                    ..
                }
            ),
            "{error}"
        );
    }
    let error = write(dir.path()).unwrap_err();
    assert!(
        matches!(
            error,
            Error::NoFile {
                found: "a directory",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn an_unfinished_file_leaves_nothing_and_an_old_one_stays() {
    let dir = TempDir::new().unwrap();
    let old = "what was there";
    for name in ["a.parquet", "a.iolog", "a.csv"] {
        let path = dir.path().join(name);
        std::fs::write(&path, old).unwrap();
        let info = SourceInfo::default();
        let mut writer = create(&path, None, &info).unwrap();
        writer
            .write(&batch_of(&["d_0"], &[event(1, Op::Read, 0, 512)]))
            .unwrap();
        drop(writer);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), old);
        let mut writer = create(&path, None, &info).unwrap();
        writer
            .write(&batch_of(&["d_0"], &[event(1, Op::Read, 0, 512)]))
            .unwrap();
        writer.finish(&info).unwrap();
        assert_ne!(std::fs::read(&path).unwrap(), old.as_bytes());
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[test]
fn outputs_that_cannot_be_written_say_so() {
    let info = SourceInfo::default();
    let absent = "/nonexistent/a.parquet";
    let error = create(Path::new(absent), None, &info).err();
    assert!(matches!(error, Some(Error::Write { path, .. }) if path == absent));
    // A device that is always full: the error comes at the latest with the end.
    let full = Path::new("/dev/full");
    if full.exists() {
        for name in ["parquet", "fio-iolog", "msr-csv"] {
            let mut writer = create(full, Some(name), &info).unwrap();
            let outcome = writer
                .write(&batch_of(&["d_0"], &[event(1, Op::Read, 0, 512)]))
                .and_then(|()| writer.finish(&info).map(|_| ()));
            assert!(
                matches!(outcome, Err(Error::Write { path, .. }) if path == "/dev/full"),
                "{name}"
            );
        }
    }
}

/// The source's losses stay with its events: a copy that seems complete would be judged by its streams.
#[test]
fn holes_go_along() {
    let mut info = SourceInfo {
        clock: Clock::Unix,
        completions_only: true,
        ..SourceInfo::default()
    };
    (info.counts.lost, info.counts.missing_files) = (12, 3);
    let one = event(0, Op::Read, 0, 512);
    let words = "lost=12 missing_files=3 completions_only=1";
    let iolog = format!(
        "fio version 3 iolog\n0 h_0 add layer=request\n0 h_0 open\n0 h_0 read 0 512\n0 h_0 close {words}\n"
    );
    let csv = format!("116444736000000000,h,0,Read,0,512,\n# plumb: {words}\n");
    for (name, text) in [("a.iolog", iolog), ("a.csv", csv)] {
        check(name, &info, &["h_0"], &[one], &text, &[]);
        let back = crate::common::lines::read(text.as_bytes())
            .expect("a trace")
            .info;
        assert_eq!(
            (back.counts.lost, back.counts.missing_files),
            (12, 3),
            "{name}"
        );
        assert!(back.completions_only && back.counts.damaged == 0, "{name}");
        // Words that are not known are damage, and no holes.
        let other = text.replace("lost=12", "lost=many");
        let back = crate::common::lines::read(other.as_bytes())
            .expect("a trace")
            .info;
        assert_eq!((back.counts.damaged, back.counts.lost), (1, 0), "{name}");
    }
}
