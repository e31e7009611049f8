//! Results of Vdbench. The layouts are those of prints of Vdbench 5.04.07; the numbers are made up, so that sums can be done by
//! hand.

use plumb_trace::series::{self, DeviceRow, FirstReport, Series, SeriesTool};

const CONSOLE: &str = "\
10:00:00.002 Starting RD=rd1; I/O rate: Uncontrolled MAX; elapsed=4; For loops: threads=2

Nov 20, 2025    interval        i/o   MB/sec   bytes   read     resp     read    write     read    write     resp  queue  cpu%  cpu%
                               rate  1024**2     i/o    pct     time     resp     resp      max      max   stddev  depth sys+u   sys
10:00:01.018           1       80.0     0.63    8192  50.00    0.500    0.400    0.600     0.03     0.05    0.006    0.0  19.2   1.5
10:00:02.011           2      100.0     0.78    8192  75.00    0.250    0.200    0.400     0.05     0.02    0.005    0.0   5.0   0.5
10:00:03.011           3      300.0     2.34    8192  75.00    0.350    0.300    0.500     0.02     0.02    0.004    0.1   3.5   1.0
10:00:04.009           4      200.0     1.56    8192  75.00    0.450    0.400    0.600     0.02     0.12    0.012    0.1   4.5   1.0
10:00:04.053     avg_2-4      200.0     1.56    8192  75.00    0.367    0.317    0.517     0.05     0.12    0.007    0.1   4.6   0.9
10:00:05.002 Starting RD=rd2; I/O rate: 100; elapsed=4; For loops: threads=2
10:00:06.018           1      100.0     0.78    8192 100.00    0.500    0.500    0.000     0.03     0.05    0.006    0.0  19.2   1.5
10:00:07.018           2      100.0     0.78    8192 100.00    0.500    0.500    0.000     0.03     0.05    0.006    0.1  19.2   1.5
10:00:07.053     avg_2-2      100.0     0.78    8192 100.00    0.500    0.500    0.000     0.05     0.12    0.007    0.1   4.6   0.9
10:00:08.008 Vdbench execution completed successfully. Output directory: /root/output
";

fn read(text: &str) -> Series {
    assert!(series::sniff(text.as_bytes()), "{text}");
    series::read("vdbench", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn rows<'a>(series: &'a Series, run: &'a str) -> Vec<&'a DeviceRow> {
    series.rows_of(run).flatten().collect()
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-6 * expected.abs().max(1.0)
}

/// The first interval is a warm-up, and the average line is no interval: its rate is the mean of the others.
#[test]
fn console_has_runs_of_intervals() {
    let series = read(CONSOLE);
    assert_eq!(
        (series.tool, series.damaged, series.warm_up_left_out),
        (SeriesTool::Vdbench, 0, 2)
    );
    assert_eq!(series.devices(), ["rd1", "rd2"]);
    let first = rows(&series, "rd1");
    let rates: Vec<f64> = first.iter().map(|row| row.per_second()).collect();
    assert_eq!(rates, [100.0, 300.0, 200.0]);
    // 75 of 100 I/O read in 0.2 ms, 25 write in 0.4 ms.
    assert!(close(first[0].data[0].per_second.value, 75.0));
    assert!(close(first[0].data_ms().expect("both"), 0.25));
    assert!(close(
        first[0].bytes_per_second().expect("bytes"),
        819_200.0
    ));
    assert!(!first[0].is_limited);
    assert_eq!(series.since_boot("rd1", FirstReport::Auto), None);
    let second = rows(&series, "rd2");
    assert_eq!(second.len(), 1);
    assert!(second[0].is_limited, "a rate of 100 was asked for");
}

/// As in `Totals.html`, or in notes that somebody took; a run of one name that comes again is another one.
#[test]
fn average_lines_are_separate() {
    let averages = "\
16:11:50.002 Starting RD=rd1; I/O rate: Uncontrolled MAX; elapsed=10; For loops: threads=1
 avg_2-5    19619.6   153.28    8192   0.00    0.045    0.000    0.045     0.00     1.78    0.009    0.9  16.8   9.7
16:12:06.002 Starting RD=rd2; I/O rate: Uncontrolled MAX; elapsed=10; For loops: threads=1
 avg_2-5    19791.4   154.62    8192   0.00    0.050    0.000    0.050     0.00     3.91    0.015    0.9  16.3   9.3
16:12:06.002 Starting RD=rd2; I/O rate: Uncontrolled MAX; elapsed=10; For loops: threads=2
 avg_2-5    20000.0   156.25    8192   0.00    0.100    0.000    0.100     0.00     3.91    0.015    0.9  16.3   9.3
";
    let series = read(averages);
    assert_eq!(series.devices(), ["rd1", "rd2", "rd2#2"]);
    let row = rows(&series, "rd2#2")[0];
    assert!(close(row.per_second(), 20_000.0));
    assert!(close(row.data[0].per_second.value, 0.0), "all write");
    assert!(close(
        row.data[1].bytes_per_second.expect("bytes"),
        163_840_000.0
    ));
    assert!(close(row.data_ms().expect("resp"), 0.1));
    assert_eq!(series.warm_up_left_out, 0);
}

/// A formatting run ends before its second interval: without I/O, and with `NaN` of processors.
#[test]
fn numbers_that_are_none() {
    let idle = CONSOLE.replace(
        "10:00:07.018           2      100.0     0.78    8192 100.00    0.500    0.500    0.000",
        "10:00:07.018           2        0.0     0.00       0   0.00    0.000    0.000    0.000",
    );
    let series = read(&idle.replace("19.2   1.5", " NaN   NaN"));
    assert_eq!(series.damaged, 0);
    assert!(close(rows(&series, "rd2")[0].per_second(), 0.0));
    assert_eq!(rows(&series, "rd2")[0].data_ms(), None);
}

/// `flatfile.html`: a heading of names, then a row each interval and average.
#[test]
fn flat_file() {
    let flat = "\
<pre>
* 'tod':            Timestamp in milliseconds
tod timestamp Run Interval reqrate rate MB/sec bytes/io read% resp read_resp write_resp resp_max queue_depth xfersize threads
10:00:01.018 11/20/2025-10:00:01-UTC rd1_(offset=512) 1 9999988 900.0 7.03 8192 100.00 1.000 1.000 0.000 9.0 1.0 8192 1
10:00:02.018 11/20/2025-10:00:02-UTC rd1_(offset=512) 2 9999988 500.0 3.91 8192 100.00 2.000 2.000 0.000 9.0 1.0 8192 1
10:00:03.018 11/20/2025-10:00:03-UTC rd1_(offset=512) 3 9999988 250.0 1.95 8192 100.00 4.000 4.000 0.000 9.0 1.0 8192 1
10:00:03.020 11/20/2025-10:00:03-UTC rd1_(offset=512) avg_2-3 9999988 375.0 2.93 8192 100.00 2.667 2.667 0.000 9.0 1.0 8192 1
10:00:05.018 11/20/2025-10:00:05-UTC rd2 1 100 100.0 0.78 8192 100.00 1.000 1.000 0.000 9.0 n/a n/a 1
10:00:06.018 11/20/2025-10:00:06-UTC rd2 2 100 100.0 0.78 8192 100.00 1.000 1.000 0.000 9.0 n/a n/a 1
";
    let series = read(flat);
    assert_eq!((series.damaged, series.warm_up_left_out), (0, 2));
    assert_eq!(series.devices(), ["rd1_(offset=512)", "rd2"]);
    let first = rows(&series, "rd1_(offset=512)");
    let told: Vec<(f64, f64, bool)> = first
        .iter()
        .map(|row| {
            (
                row.per_second(),
                row.data_ms().expect("resp"),
                row.is_limited,
            )
        })
        .collect();
    assert_eq!(told, [(500.0, 2.0, false), (250.0, 4.0, false)]);
    // 500 I/O a second of 2 ms are one in flight.
    assert!(first[0].littles_law().expect("all three").holds());
    assert!(rows(&series, "rd2")[0].is_limited);
    let cut = flat.replace(" 9.0 1.0 8192 1\n10:00:03.018", " 9.0\n10:00:03.018");
    let damaged = read(&cut);
    assert_eq!(damaged.damaged, 1);
    assert_eq!(
        damaged.damage.expect("said").to_string(),
        "line 5: found 13 words, expected 16 words, as in the heading"
    );
}
