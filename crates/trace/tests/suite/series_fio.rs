//! JSON of fio: made up documents, and output of this host's fio for a run of known size.

use std::process::Command;

use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;
use plumb_trace::series::{self, DeviceRow, Series, SeriesTool};

fn read(bytes: &[u8]) -> Series {
    assert!(series::sniff(bytes));
    series::read("fio", bytes).unwrap_or_else(|error| panic!("{error}"))
}

fn rows<'a>(series: &'a Series, job: &'a str) -> Vec<&'a DeviceRow> {
    series.rows_of(job).flatten().collect()
}

/// Reads of 4 KiB since the beginning of a run.
fn document(at_ms: u64, runtime_ms: u64, reads: u64, mean_ns: f64, option: &str) -> String {
    let bytes = reads * 4096;
    format!(
        r#"{{
  "fio version" : "fio-3.33",
  "timestamp_ms" : {at_ms},
  "time" : "Thu Nov 20 10:00:00 2025",
  "jobs" : [
    {{
      "jobname" : "job",
      "error" : 0,
      "job options" : {{ {option} }},
      "read" : {{
        "io_bytes" : {bytes}, "io_kbytes" : {}, "runtime" : {runtime_ms}, "total_ios" : {reads},
        "lat_ns" : {{ "min" : 0, "max" : 0, "mean" : {mean_ns}, "stddev" : 0, "N" : {reads} }}
      }},
      "write" : {{
        "io_bytes" : 0, "io_kbytes" : 0, "runtime" : 0, "total_ios" : 0,
        "lat_ns" : {{ "min" : 0, "max" : 0, "mean" : 0, "stddev" : 0, "N" : 0 }}
      }}
    }}
  ]
}}
"#,
        bytes / 1024
    )
}

/// 100 reads of 1 ms, then 300 of 3 ms (mean of all 2.5 ms), then a stall of 1 s before 50 more of 1 ms.
#[test]
fn intervals_are_differences() {
    let text = [
        document(11_000, 1000, 100, 1e6, ""),
        document(12_000, 2000, 400, 2.5e6, ""),
        document(13_000, 3000, 400, 2.5e6, ""),
        document(14_000, 4000, 450, (400.0 * 2.5e6 + 50.0 * 1e6) / 450.0, ""),
        document(14_010, 4000, 450, (400.0 * 2.5e6 + 50.0 * 1e6) / 450.0, ""),
    ]
    .concat();
    let series = read(text.as_bytes());
    assert_eq!((series.tool, series.damaged), (SeriesTool::Fio, 0));
    let found: Vec<(f64, f64, f64)> = rows(&series, "job")
        .iter()
        .map(|row| {
            let ms = (row.data_ms().expect("reads") * 1e6).round() / 1e6;
            (row.seconds.expect("a length"), row.per_second(), ms)
        })
        .collect();
    assert_eq!(
        found,
        [(1.0, 100.0, 1.0), (1.0, 300.0, 3.0), (2.0, 25.0, 1.0)]
    );
    assert_eq!(
        rows(&series, "job")[1].bytes_per_second(),
        Some(300.0 * 4096.0)
    );
}

/// Consecutive runs, with words of the shell between them, are no intervals of one run.
#[test]
fn runs_are_separate() {
    let text = format!(
        "note: both runs\n{}second\n{}",
        document(11_000, 1000, 100, 1e6, ""),
        document(60_000, 1000, 150, 1e6, r#""rate_iops" : "150""#)
    );
    let series = read(text.as_bytes());
    let rows = rows(&series, "job");
    let found: Vec<(f64, bool)> = rows
        .iter()
        .map(|row| (row.per_second(), row.is_limited))
        .collect();
    assert_eq!(found, [(100.0, false), (150.0, true)]);
}

/// A busy machine prints a document 600 ms late. Its run began before the document before it was printed, so that both are of one run. A run of the
/// same length that begins at once is another.
#[test]
fn a_late_document_continues_its_run() {
    let rates = |text: String| -> Vec<f64> {
        let series = read(text.as_bytes());
        let rows = rows(&series, "job");
        rows.iter().map(|row| row.per_second()).collect()
    };
    let first = document(11_000, 1000, 100, 1e6, "");
    let late = document(12_600, 2000, 400, 2.5e6, "");
    assert_eq!(rates(format!("{first}{late}")), [100.0, 300.0]);
    let other = document(13_010, 2000, 400, 2.5e6, "");
    assert_eq!(rates(format!("{first}{other}")), [100.0, 200.0]);
    // Seconds do not tell: 13 s may be 13.999 s.
    let text = format!("{first}{}", document(13_000, 2500, 400, 2.5e6, ""));
    let seconds = text
        .replace("timestamp_ms\" : 11000", "timestamp\" : 11")
        .replace("timestamp_ms\" : 13000", "timestamp\" : 13");
    assert_eq!(rates(seconds), [100.0, 160.0]);
}

#[test]
fn damage_has_its_place() {
    let whole = document(11_000, 1000, 100, 1e6, "");
    let cut = series::read("fio", &whole.as_bytes()[..200]).expect_err("cut");
    let failed = read(whole.replace("\"error\" : 0", "\"error\" : 5").as_bytes());
    assert_eq!(failed.damaged, 1);
    let none = whole.replace("\"total_ios\" : 100", "\"total_ios\" : -1");
    let none = series::read("fio", none.as_bytes()).expect_err("no count");
    insta::assert_snapshot!(format!("{cut}\n\n{none}"));
}

/// 1,009 reads of 4 KiB, half of the time held back by a rate: with and without intervals the reads are all there.
#[test]
fn the_fio_of_this_host() {
    require!(Tool("fio"));
    let directory = tempfile::tempdir().expect("a directory");
    let run = |more: &[&str]| {
        let done = Command::new("timeout")
            .args(["60", "fio", "--name=prime", "--filename=file", "--size=8m"])
            .args(["--rw=randread", "--bs=4k", "--ioengine=psync"])
            .args(["--number_ios=1009", "--rate_iops=400", "--norandommap"])
            .args(["--output-format=json"])
            .args(more)
            .current_dir(directory.path())
            .limited_output();
        assert!(done.status.success(), "{done:?}");
        read(&done.stdout)
    };
    for more in [&[][..], &["--status-interval=500ms"][..]] {
        let series = run(more);
        assert_eq!(series.damaged, 0, "{:?}", series.damage);
        let rows = rows(&series, "prime");
        assert!(rows.len() > more.len(), "{} intervals", rows.len());
        let ios: f64 = rows
            .iter()
            .map(|row| row.per_second() * row.seconds.expect("a length"))
            .sum();
        // The sum of rates times lengths is rounded in its last digits.
        let least = 1009.0 - 25.0 * more.len() as f64 - 1e-6;
        assert!((least..=1009.1).contains(&ios), "{ios}");
        // fio may count the bytes of an I/O in one document and the I/O itself in the next.
        let bytes: f64 = rows
            .iter()
            .map(|row| row.bytes_per_second().expect("bytes") * row.seconds.expect("a length"))
            .sum();
        assert!(((bytes / 4096.0) - ios).abs() < 1.1, "{bytes}");
        assert!(rows.iter().all(|row| row.is_limited));
    }
}
