//! Outputs that do not separate reads from writes: `iostat` without `-x`, `sar -d` and `sadf`. Layouts of sysstat 12
//! and of Solaris, numbers made up; and output of this host's tools for one file.

use std::collections::BTreeMap;
use std::process::Command;

use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;
use plumb_trace::series::{self, DeviceRow, Series, SeriesTool, SinceBoot, Tool};

fn read(text: &str) -> Series {
    assert!(series::sniff(text.as_bytes()), "{text}");
    series::read("print", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn rows<'a>(series: &'a Series, device: &'a str) -> Vec<Option<&'a DeviceRow>> {
    series.rows_of(device).collect()
}

fn busy<'a>(series: &'a Series, device: &'a str, at: usize) -> &'a DeviceRow {
    rows(series, device)[at].expect("a row")
}

#[test]
fn iostat_of_sysstat() {
    let text = "\
Linux 6.1.0 (host) \t11/20/25 \t_x86_64_\t(2 CPU)

Device             tps    kB_read/s    kB_wrtn/s    kB_dscd/s    kB_read    kB_wrtn    kB_dscd
sda               1.00         1.00         1.00         0.00       1000       1000          0

Device             tps    kB_read/s    kB_wrtn/s    kB_dscd/s    kB_read    kB_wrtn    kB_dscd
sda             200.00       600.00       200.00         0.00        600        200          0
";
    let series = read(text);
    assert_eq!(series.tool, SeriesTool::Iostat(Tool::Sysstat));
    assert_eq!(
        series.since_boot("sda", series::FirstReport::Auto),
        Some(SinceBoot::ByTheTool)
    );
    let row = busy(&series, "sda", 1);
    assert_eq!(row.per_second(), 200.0);
    // 800 KiB in 200 I/O.
    assert_eq!(row.bytes_per_second(), Some(800.0 * 1024.0));
    assert_eq!(row.data_ms(), None);
    let blocks = text.replace("kB_read/s", "Blk_read/s");
    let blocks = blocks.replace("kB_wrtn/s", "Blk_wrtn/s");
    let bytes = busy(&read(&blocks), "sda", 1).bytes_per_second();
    assert_eq!(bytes, Some(400.0 * 1024.0), "blocks of 512 bytes");
    // The same reports with `-o JSON`.
    let disk = |tps: f64, read: f64, written: f64| {
        format!(
            r#"{{"disk": [{{"disk_device": "sda", "tps": {tps:.2}, "kB_read/s": {read:.2}, "kB_wrtn/s": {written:.2},
            "kB_dscd/s": 0.00, "kB_read": 600, "kB_wrtn": 200, "kB_dscd": 0}}]}}"#
        )
    };
    let json = format!(
        r#"{{"sysstat": {{"hosts": [{{"nodename": "host", "sysname": "Linux", "release": "6.1.0", "machine": "x86_64",
        "number-of-cpus": 2, "date": "11/20/25", "statistics": [{}, {}]}}]}}}}"#,
        disk(1.0, 1.0, 1.0),
        disk(200.0, 600.0, 200.0)
    );
    let series = read(&json);
    assert_eq!(
        (series.tool, series.damaged),
        (SeriesTool::Iostat(Tool::Sysstat), 0)
    );
    let row = busy(&series, "sda", 1);
    assert_eq!(
        (row.per_second(), row.bytes_per_second(), row.data_ms()),
        (200.0, Some(800.0 * 1024.0), None)
    );
}

#[test]
fn iostat_of_solaris() {
    let text = "\
   tty        sd0           sd1            cpu
 tin tout kps tps serv  kps tps serv   us sy dt id
   0   42   1   1  107    0   0    0    0  4  0 96
   0  120 800 200    5   16   2    8    0  5  0 95
   0  120 808 202    5    0   0    0    0  5  0 95
";
    let series = read(text);
    assert_eq!(series.tool, SeriesTool::Iostat(Tool::Solaris));
    assert_eq!(series.devices(), ["sd0", "sd1"]);
    assert_eq!(
        series.since_boot("sd0", series::FirstReport::Auto),
        Some(SinceBoot::ByItsRate)
    );
    let row = busy(&series, "sd1", 1);
    assert_eq!(
        (row.per_second(), row.data_ms(), row.bytes_per_second()),
        (2.0, Some(8.0), Some(16.0 * 1024.0))
    );
    let cut = read(&text.replace(
        "   0  120 808 202    5    0   0    0    0  5  0 95",
        "   0  120 808",
    ));
    assert_eq!(
        cut.damage.expect("said").to_string(),
        "line 5: found `0  120 808`, expected 12 numbers, as in the heading"
    );
}

/// With averages, a restart and a table of something else; idle devices left out, as with `-z`.
#[test]
fn sar() {
    let text = "\
Linux 6.1.0 (host) \t11/20/25 \t_x86_64_\t(2 CPU)

12:00:01 AM       DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util
12:10:01 AM       sda    200.00    600.00    200.00      0.00      4.00      1.00      5.00     50.00
12:10:01 AM       sdb      1.00      4.00      0.00      0.00      4.00      0.00      1.00      0.10
12:20:01 AM       sda    100.00    600.00    200.00      0.00      8.00      0.50      5.00     25.00
12:20:01 AM       sdb      3.00     12.00      0.00      0.00      4.00      0.00      1.00      0.10
Average:          sda    150.00    600.00    200.00      0.00      6.00      0.75      5.00     37.50

12:25:00 AM  LINUX RESTART\t(2 CPU)

12:30:01 AM     IFACE   rxpck/s   txpck/s    rxkB/s    txkB/s   rxcmp/s   txcmp/s  rxmcst/s   %ifutil
12:40:01 AM      eth0      1.00      1.00      1.00      1.00      0.00      0.00      0.00      0.00
";
    let series = read(text);
    assert_eq!(
        (series.tool, series.damaged),
        (SeriesTool::Iostat(Tool::Sar), 0)
    );
    assert_eq!(series.devices(), ["sda", "sdb"]);
    assert_eq!(rows(&series, "sda").len(), 2);
    let rates = |device| [0, 1].map(|at| busy(&series, device, at).per_second());
    assert_eq!(rates("sda"), [200.0, 100.0]);
    assert_eq!(rates("sdb"), [1.0, 3.0]);
    assert_eq!(series.reports[1].at.as_deref(), Some("12:20:01 AM"));
    for at in [0, 1] {
        assert!(
            busy(&series, "sda", at)
                .littles_law()
                .expect("all three")
                .holds()
        );
    }
}

/// Rows of semicolons beside another table, lines of numbers beside those of processors: both tell the same.
#[test]
fn sadf() {
    let rows_of_semicolons = "\
# hostname;interval;timestamp;CPU;%user;%nice;%system;%iowait;%steal;%idle
host;600;2025-11-20 00:10:01 UTC;-1;1.00;0.00;1.00;0.00;0.00;98.00
# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util
host;600;2025-11-20 00:10:01 UTC;sda;200.00;600.00;200.00;0.00;4.00;1.00;5.00;50.00
host;-1;2025-11-20 00:15:00 UTC;LINUX-RESTART\t(2 CPU)
host;300;2025-11-20 00:20:01 UTC;sda;100.00;600.00;200.00;0.00;8.00;0.50;5.00;25.00
# hostname;interval;timestamp;IFACE;rxpck/s;txpck/s
host;600;2025-11-20 00:10:01 UTC;eth0;1.00;1.00
";
    let numbers = "\
host\t600\t2025-11-20 00:10:01 UTC\tall\t%user\t1.00
host\t600\t2025-11-20 00:10:01 UTC\t-\ttps\t999.00
host\t600\t2025-11-20 00:10:01 UTC\tsda\ttps\t200.00
host\t600\t2025-11-20 00:10:01 UTC\tsda\trkB/s\t600.00
host\t600\t2025-11-20 00:10:01 UTC\tsda\twkB/s\t200.00
host\t600\t2025-11-20 00:10:01 UTC\tsda\tawait\t5.00
host\t300\t2025-11-20 00:20:01 UTC\tsda\ttps\t100.00
host\t300\t2025-11-20 00:20:01 UTC\tsda\trkB/s\t600.00
host\t300\t2025-11-20 00:20:01 UTC\tsda\twkB/s\t200.00
host\t300\t2025-11-20 00:20:01 UTC\tsda\tawait\t5.00
";
    for text in [rows_of_semicolons, numbers] {
        let series = read(text);
        assert_eq!(
            (series.tool, series.damaged),
            (SeriesTool::Iostat(Tool::Sar), 0),
            "{:?}",
            series.damage
        );
        assert_eq!(series.devices(), ["sda"]);
        let found: Vec<_> = rows(&series, "sda")
            .into_iter()
            .flatten()
            .map(|row| {
                (
                    row.seconds,
                    row.per_second(),
                    row.bytes_per_second(),
                    row.data_ms(),
                )
            })
            .collect();
        let bytes = Some(819_200.0);
        assert_eq!(
            found,
            [
                (Some(600.0), 200.0, bytes, Some(5.0)),
                (Some(300.0), 100.0, bytes, Some(5.0))
            ]
        );
    }
    let cut = read(&rows_of_semicolons.replace(";5.00;25.00", ""));
    assert_eq!(cut.damaged, 1);
    let xml = b"<?xml version=\"1.0\"?>\n<sysstat>\n</sysstat>\n";
    let refused = series::read("xml", xml).expect_err("XML");
    assert!(
        refused.to_string().contains("sadf -j FILE -- -d"),
        "{refused}"
    );
}

/// One recording of this host in four forms: all equal the sum of the rows of `sadf -d`, split by hand.
#[test]
fn the_sar_of_this_host() {
    require!(Tool("sar"), Tool("sadf"));
    let directory = tempfile::tempdir().expect("a directory");
    let print = |tool: &str, arguments: &[&str]| {
        let done = Command::new("timeout")
            .args(["60", tool])
            .args(arguments)
            .current_dir(directory.path())
            .env("LC_ALL", "C")
            .limited_output();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).expect("text")
    };
    let live = print("sar", &["-d", "-o", "file", "1", "3"]);
    let by_rows = print("sadf", &["-d", "file", "--", "-d"]);
    let mut expected: BTreeMap<String, f64> = BTreeMap::new();
    for line in by_rows.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(';').collect();
        *expected.entry(words[3].to_owned()).or_default() += words[4].parse::<f64>().expect("tps");
    }
    assert!(!expected.is_empty());
    let by_numbers = print("sadf", &["-p", "file", "--", "-d"]);
    let json = print("sadf", &["-j", "file", "--", "-d"]);
    for text in [&live, &by_rows, &by_numbers, &json] {
        let series = read(text);
        assert_eq!(series.damaged, 0, "{:?}", series.damage);
        let mut found: BTreeMap<String, f64> = BTreeMap::new();
        for (device, row) in series.reports.iter().flat_map(|report| &report.rows) {
            *found.entry(device.clone()).or_default() += row.per_second();
        }
        assert_eq!(
            found.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>()
        );
        for (device, sum) in &expected {
            assert!((found[device] - sum).abs() < 1e-6, "{device}: {sum}");
        }
    }
}
