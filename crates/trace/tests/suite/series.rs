//! Captures of iostat: the numbers of a published paper, shapes of columns, real prints summed up by awk, and damage.

use plumb_testkit::wait::RunLimited;
use plumb_testkit::{real_trace, require};
use std::path::Path;
use std::process::Command;

use plumb_trace::series::{
    self, DeviceRow, FirstReport, Series, SeriesTool, SinceBoot, Span, Tool,
};

fn read(text: &str) -> Series {
    series::read("capture", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn row<'a>(series: &'a Series, device: &'a str, report: usize) -> &'a DeviceRow {
    series
        .rows_of(device)
        .nth(report)
        .flatten()
        .unwrap_or_else(|| panic!("{device} in report {report}"))
}

fn example(name: &str) -> Series {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/iostat")
        .join(name);
    let bytes = std::fs::read(&path).expect("an example");
    assert!(series::sniff(&bytes), "{name}");
    series::read(name, &bytes).expect("a capture")
}

/// Figures 2 and 6 of "Detecting and Resolving Oracle Solaris LUN Alignment Problems" (Oracle, 2012).
#[test]
fn the_paper() {
    let check = |name: &str, rates: [f64; 3], ms: [f64; 3]| {
        let series = example(name);
        assert_eq!(
            (series.tool, series.reports.len(), series.damaged),
            (SeriesTool::Iostat(Tool::Solaris), 3, 0),
            "{name}"
        );
        for report in 0..3 {
            let row = row(&series, "c0t6d0", report);
            assert_eq!(row.data[0].per_second.value, rates[report]);
            assert_eq!(row.data_ms(), Some(ms[report]));
            assert_eq!(row.span, Span::Device);
            let law = row.littles_law().expect("actv is there");
            assert!(law.holds(), "{law:?}");
            // Half a step of asvc_t times the rate, and of actv.
            assert!(
                (law.rounding - (row.per_second() * 0.05 + ms[report] * 0.1) / 1e3 - 0.05).abs()
                    < 1e-9
            );
        }
        assert_eq!(
            series.since_boot("c0t6d0", FirstReport::Auto),
            None,
            "the excerpt begins mid-run"
        );
        series
    };
    let before = check(
        "misaligned.txt",
        [15_639.6, 15_887.3, 15_437.0],
        [4.0, 3.9, 4.1],
    );
    assert_eq!(before.devices(), ["c2t0d0", "c0t6d0"]);
    assert_eq!(
        before.reports[1].at.as_deref(),
        Some("Tue Jan 26 10:39:44 2010")
    );
    assert_eq!(
        row(&before, "c0t6d0", 0).data[0].bytes_per_second,
        Some(124_467.0 * 1024.0)
    );
    assert_eq!(
        before.rows_of("c2t0d0").filter(Option::is_some).count(),
        1,
        "-z leaves idle devices out"
    );
    check(
        "aligned.txt",
        [20_233.6, 19_382.3, 20_226.4],
        [3.1, 3.2, 3.1],
    );
}

#[test]
fn solaris_without_n_and_with_other_units() {
    let mega = read(
        "                 extended device statistics\ndevice    r/s    w/s   Mr/s   Mw/s wait actv  svc_t  %w  %b\nsd1       9.9 1474.2    0.1  172.2  8.3  0.8    6.2  88  83\n",
    );
    let sd1 = row(&mega, "sd1", 0);
    assert_eq!(sd1.data[1].bytes_per_second, Some(172.2 * 1024.0 * 1024.0));
    assert_eq!((sd1.span, sd1.data_ms()), (Span::Response, Some(6.2)));
    let law = sd1.littles_law().expect("wait and actv");
    assert!(
        (law.printed - 9.1).abs() < 1e-9,
        "svc_t spans both queues: {law:?}"
    );
    assert!(law.holds(), "1484.1 × 6.2 ms are 9.2: {law:?}");
    let comma = read(
        "extended device statistics\ndevice,r/s,w/s,kr/s,kw/s,wait,actv,svc_t,%w,%b,\ncmdk0,0.1,0.2,5.5,1.2,0.0,0.0,12.3,0,0\n",
    );
    assert_eq!(row(&comma, "cmdk0", 0).data_ms(), Some(12.3));
    let errors = read(
        "    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b s/w h/w trn tot device\n    1.0    2.0    8.0   16.0  0.5  0.1    9.0    0.7   0   1   0   0   0   0 c0t6d0s0\n",
    );
    let slice = row(&errors, "c0t6d0s0", 0);
    assert_eq!(slice.queue_ms.map(|ms| ms.value), Some(9.0));
    assert_eq!(
        slice.in_flight.map(|n| n.value),
        Some(0.1),
        "asvc_t spans the second queue alone"
    );
    let terminals = read(
        "device    r/s    w/s   kr/s   kw/s wait actv  svc_t  %w  %b   tin  tout  us sy wt id\nsd0       1.0    2.0    8.0   16.0  0.0  0.1   30.0   0   1     0   10   1  2  0 97\nsd1       3.0    0.0   24.0    0.0  0.0  0.1   30.0   0   1\n",
    );
    assert_eq!(terminals.devices(), ["sd0", "sd1"]);
    assert_eq!(terminals.damaged, 0);
}

/// The three generations of columns of sysstat.
#[test]
fn sysstat() {
    let old = read(
        "Linux 2.6.32 (h) \t11/30/2021 \t_x86_64_\n\nDevice:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util\nsda               0.00     0.02   10.00   30.00    80.00   240.00     8.00     0.20    5.00   0.52  20.00\n",
    );
    let sda = row(&old, "sda", 0);
    assert_eq!(
        sda.data.map(|op| op.bytes_per_second),
        [Some(40_960.0), Some(122_880.0)]
    );
    assert_eq!(
        (sda.data_ms(), sda.in_flight.map(|n| n.value)),
        (Some(5.0), Some(0.2))
    );
    assert!(sda.littles_law().expect("both").holds());
    let middle = read(
        "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   await r_await w_await  svctm  %util\nsda               0.00     0.02    10.00    30.00     5.27     1.10    52.53     0.32    8.00    2.00   10.00   0.52   0.01\n",
    );
    assert_eq!(
        row(&middle, "sda", 0).data_ms(),
        Some(8.0),
        "(10 × 2 + 30 × 10) / 40"
    );
    let new = read(
        "Device            r/s     rMB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wMB/s   wrqm/s  %wrqm w_await wareq-sz     d/s     dMB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util\nvda            100.00      0.50     0.00   0.00    1.00     5.00    0.00      0.00     0.00   0.00    0.00     0.00    0.00      0.00     0.00   0.00    0.00     0.00   10.00   20.00    0.30  10.00\n",
    );
    let vda = row(&new, "vda", 0);
    assert_eq!(vda.data[0].bytes_per_second, Some(524_288.0));
    assert_eq!(vda.data_ms(), Some(1.0), "nothing was written");
    let law = vda.littles_law().expect("all columns");
    assert!(
        (law.expected - 0.3).abs() < 1e-9,
        "flushes are in flight as well: {law:?}"
    );
    let comma = read(
        "Device            r/s     rkB/s r_await w/s wkB/s w_await aqu-sz  %util\nvda            100,50      2,00 1,25 0,00 0,00 0,00 0,13  10,00\n",
    );
    assert_eq!(row(&comma, "vda", 0).data_ms(), Some(1.25));
}

#[test]
fn json() {
    let text = r#"{"sysstat": {"hosts": [{"nodename": "h", "sysname": "Linux", "date": "11/22/26", "statistics": [
        {"timestamp": "11/22/26 10:00:00", "avg-cpu": {"user": 1.0}, "disk": [{"disk_device": "vda", "r/s": 1.00, "w/s": 3.00, "rkB/s": 4.00, "wkB/s": 12.00, "r_await": 2.00, "w_await": 4.00, "aqu-sz": 0.01, "util": 0.10}]},
        {"avg-cpu": {"user": 1.0}, "disk": [{"disk_device": "vda", "r/s": 100.50, "w/s": 0.00, "rkB/s": 402.00, "wkB/s": 0.00, "r_await": 2.50, "w_await": 0.00, "aqu-sz": 0.25, "util": 10.00},
            {"disk_device": "vdb", "w/s": 1}]}]}]}}"#;
    assert!(series::sniff(text.as_bytes()));
    let series = read(text);
    assert_eq!(
        (series.reports.len(), series.damaged),
        (2, 1),
        "{:?}",
        series.damage
    );
    assert_eq!(series.reports[0].at.as_deref(), Some("11/22/26 10:00:00"));
    let vda = row(&series, "vda", 1);
    assert_eq!((vda.per_second(), vda.data_ms()), (100.5, Some(2.5)));
    assert_eq!(vda.data[0].bytes_per_second, Some(411_648.0));
    assert_eq!(
        series.since_boot("vda", FirstReport::Auto),
        Some(SinceBoot::ByTheTool)
    );
    let cut = series::read("capture", &text.as_bytes()[..300]).expect_err("cut off");
    let other = series::read("capture", br#"{"sysstat": {"hosts": []}}"#).expect_err("no host");
    insta::assert_snapshot!(format!("{cut}\n\n{other}"));
}

/// Two captures of one run, as text and as JSON, compared with fio's result: 1,208 I/O in 20.021 s, of 66.28 ms.
#[test]
fn one_run_as_text_and_as_json() {
    for name in ["linux-off.txt", "linux-off.json"] {
        let series = example(name);
        assert_eq!(
            (series.tool, series.reports.len(), series.damaged),
            (SeriesTool::Iostat(Tool::Sysstat), 13, 0),
            "{name}"
        );
        assert_eq!(
            series.since_boot("loop1", FirstReport::Auto),
            Some(SinceBoot::ByTheTool),
            "{name}"
        );
        let rows: Vec<&DeviceRow> = series.rows_of("loop1").skip(1).flatten().collect();
        let mean =
            |of: &dyn Fn(&DeviceRow) -> f64| rows.iter().map(|row| of(row)).sum::<f64>() / 12.0;
        let (rate, ms) = (
            mean(&|row| row.per_second()),
            mean(&|row| row.data_ms().expect("reads")),
        );
        assert!((rate / 60.34 - 1.0).abs() < 0.02, "{name}: {rate}");
        assert!((ms / 66.28 - 1.0).abs() < 0.02, "{name}: {ms}");
        for law in rows.iter().filter_map(|row| row.littles_law()) {
            assert!(law.holds(), "{name}: {law:?}");
        }
        let bytes = mean(&|row| row.data[0].bytes_per_second.expect("rkB/s"));
        assert!(
            (bytes / rate / 8192.0 - 1.0).abs() < 1e-3,
            "{name}: reads of 8 KiB"
        );
    }
    assert_eq!(
        example("linux-off.txt").reports[1].at.as_deref(),
        Some("2026-11-22T10:45:25+0000")
    );
}

/// A report is an average since boot by the tool's behaviour, or by being unlike the others.
#[test]
fn the_first_report() {
    let head = "    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device\n";
    let solaris = |rates: &[f64]| {
        let reports = rates
            .iter()
            .map(|rate| format!("{head} {rate:.1} 0.0 8.0 0.0 0.0 0.1 0.0 1.0 0 1 c0t6d0\n"));
        read(&reports.collect::<String>()).since_boot("c0t6d0", FirstReport::Auto)
    };
    assert_eq!(
        solaris(&[12.0, 900.0, 950.0, 920.0]),
        Some(SinceBoot::ByItsRate)
    );
    assert_eq!(
        solaris(&[5000.0, 900.0, 950.0, 920.0]),
        Some(SinceBoot::ByItsRate)
    );
    assert_eq!(
        solaris(&[880.0, 900.0, 950.0, 920.0]),
        None,
        "as far below as the others are apart"
    );
    assert_eq!(
        solaris(&[15.0, 900.0]),
        Some(SinceBoot::ByItsRate),
        "the common `iostat 5 2`"
    );
    assert_eq!(solaris(&[850.0, 900.0]), None);
    assert_eq!(solaris(&[900.0]), None, "nothing to hold it against");
    let linux = "Device r/s w/s rkB/s wkB/s r_await w_await aqu-sz %util\nsda 1.00 1.00 8.00 8.00 1.00 1.00 0.01 0.10\n";
    let of = |text: &str| read(text).since_boot("sda", FirstReport::Auto);
    assert_eq!(of(linux), None, "an excerpt");
    let twice = format!("Linux 6.1.0 (h)\n\n{linux}{linux}");
    assert_eq!(of(&twice), Some(SinceBoot::ByTheTool));
    let without_first = format!("$ iostat -xy 1 2\n{twice}");
    assert_eq!(of(&without_first), None);
    assert_eq!(
        read(linux).since_boot("sda", FirstReport::Drop),
        Some(SinceBoot::Asked)
    );
    assert_eq!(
        read(&format!("Linux 6.1.0 (h)\n{linux}")).since_boot("sda", FirstReport::Keep),
        None
    );
}

#[test]
fn damage_is_counted_with_its_place() {
    let head = "    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device\n";
    let good = "   10.0    0.0   80.0    0.0  0.0  0.1    0.0    1.0   0   1 c0t6d0\n";
    for (bad, found) in [
        (
            "   1O.0    0.0   80.0    0.0  0.0  0.1    0.0    1.0   0   1 c0t6d0\n",
            "`1O.0`, expected a number of 0 or more",
        ),
        (
            "   10.0    0.0   80.0    -0.5  0.0  0.1    0.0    1.0   0   1 c0t6d0\n",
            "`-0.5`, expected a number of 0 or more",
        ),
        (
            "   10.0    0.0   80.0\n",
            "`10.0    0.0   80.0`, expected a device and 10 numbers",
        ),
    ] {
        let series = read(&format!("{head}{good}{bad}{good}"));
        assert_eq!(series.damaged, 1, "{bad}");
        assert_eq!(
            series.damage.expect("said").to_string(),
            format!("line 3: found {found}")
        );
        assert_eq!(series.reports[0].rows.len(), 2, "the others are read");
        let both = read(&format!("{head}{good}{head}{bad}"));
        assert_eq!(
            both.rows_of("c0t6d0").count(),
            1,
            "nobody knows that it was idle then"
        );
    }
    for other in [
        " us sy wt id\n  1  5  0 94\n",
        "   tty         cpu\n",
        "\n",
        "1264502383\n",
        "root@zfs:~# \n",
    ] {
        assert_eq!(read(&format!("{head}{good}{other}")).damaged, 0, "{other}");
    }
    let none = series::read("capture", head.as_bytes()).expect_err("no row");
    insta::assert_snapshot!(none);
    assert!(series::read("capture", b"").is_err());
    assert!(!series::sniff(b"8,0 1 1 0.0 123 Q R 0 + 8 [a]\n"));
}

/// Every beginning of a capture, and every byte of it turned over, is read or refused.
#[test]
fn hostile_captures_end() {
    for name in ["misaligned.txt", "aligned.txt"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../examples/iostat")
            .join(name);
        let bytes = std::fs::read(path).expect("an example");
        for end in 0..bytes.len() {
            let _ = series::read(name, &bytes[..end]);
        }
        for at in 0..bytes.len() {
            let mut turned = bytes.clone();
            turned[at] ^= 0x9b;
            let _ = series::read(name, &turned);
        }
    }
}

/// Real prints of five systems against sums that awk made of them.
#[test]
fn real_prints_as_awk_sums_them() {
    require!(RealTraces);
    for (name, is_device, rates) in [
        (
            "smartos_xzn_1.txt",
            "NF == 11 && $1 ~ /^[0-9.]+$/",
            "$1 + $2",
        ),
        (
            "smartos_xzn_2.txt",
            "NF == 11 && $1 ~ /^[0-9.]+$/",
            "$1 + $2",
        ),
        (
            "jc_centos-7.7_iostat-x.out",
            "NF == 14 && $2 ~ /^[0-9.]+$/",
            "$4 + $5",
        ),
        (
            "jc_ubuntu-20.10_iostat-x.out",
            "NF == 23 && $2 ~ /^[0-9.]+$/",
            "$2 + $8",
        ),
    ] {
        let path = real_trace(&format!("iostat/{name}"));
        let program = format!(
            "{is_device} {{ rows++; sum += {rates} }} END {{ printf \"%d %.2f\", rows, sum }}"
        );
        let done = Command::new("awk").arg(program).arg(&path).limited_output();
        let series =
            series::read(name, &std::fs::read(&path).expect("a print")).expect("a capture");
        let rows: Vec<&DeviceRow> = series
            .reports
            .iter()
            .flat_map(|report| &report.rows)
            .map(|(_, row)| row)
            .collect();
        let sum: f64 = rows.iter().map(|row| row.per_second()).sum();
        assert_eq!(
            format!("{} {sum:.2}", rows.len()),
            String::from_utf8_lossy(&done.stdout),
            "{name}"
        );
        assert_eq!(series.damaged, 0, "{name}: {:?}", series.damage);
        assert!(rows.len() > 1, "{name}");
        for law in rows.iter().filter_map(|row| row.littles_law()) {
            assert!(law.holds(), "{name}: {law:?}");
        }
    }
}

/// Output of iostat here, as text and as JSON: the averages since boot are the same.
#[test]
fn the_iostat_of_this_host() {
    plumb_testkit::require!(Tool("iostat"));
    let print = |flags: &[&str]| {
        let done = Command::new("iostat")
            .args(flags)
            .env("LC_ALL", "C")
            .limited_output();
        assert!(
            series::sniff(&done.stdout),
            "{}",
            String::from_utf8_lossy(&done.stdout)
        );
        series::read("iostat", &done.stdout).expect("a capture")
    };
    let (text, json) = (print(&["-x"]), print(&["-x", "-o", "JSON"]));
    assert_eq!(
        (text.damaged, json.damaged),
        (0, 0),
        "{:?} {:?}",
        text.damage,
        json.damage
    );
    assert_eq!(text.devices(), json.devices());
    for device in text.devices() {
        let (one, other) = (
            row(&text, device, 0).per_second(),
            row(&json, device, 0).per_second(),
        );
        assert!(
            (one - other).abs() <= 0.02 + 0.02 * one,
            "{device}: {one}, {other}"
        );
    }
}
