//! The report on a fleet as text: ranges, unknown figures, names from anywhere, and widths of 60, 80 and 200 columns.

use plumb_fleet::answer::{
    FleetAnswer, FleetAttribute, FleetCause, FleetChange, FleetChanges, FleetGroup, FleetHost,
    FleetOutlier, FleetOutliers, FleetRemedy, FleetRest, FleetSilence, FleetUnknown, RankedDevice,
    RatioWithin, SilentHost, WasteChange,
};
use plumb_geometry::{Bounds, Bytes, Grid, GridKind};
use plumb_model::facts::{GridSource, Stall, StalledIo};
use plumb_model::{Confidence, Facts, Finding, RuleId, Severity, Target};
use plumb_report::fleet::{csv, html, openmetrics, text};
use plumb_report::run::Run;
use plumb_report::text::{Color, Paper};
use plumb_report::verdict::{Outcome, WhyUnknown};
use plumb_trace::Layer;

fn device(host: &str, low: f64, high: f64) -> RankedDevice {
    RankedDevice {
        host: host.to_owned(),
        device: "nvme0n1".to_owned(),
        layer: "request",
        ios: 1_234_567,
        ios_per_second: (low > 0.0).then_some(1234.5),
        grid: Grid::new(Bytes(4096), Bytes(0), GridKind::Unit).expect("a grid"),
        grid_source: GridSource::Assumed,
        per_second: Bounds { low, high },
    }
}

fn stalled(host: &str, severity: Severity) -> Finding {
    let stall = Stall::Silent {
        in_flight: 4,
        for_ns: 3_020_000_000,
        oldest: None,
    };
    let mut target = Target::seen("sda", None, Layer::Request);
    target.host = Some(host.to_owned());
    let facts = Facts::StalledIo(StalledIo { stall });
    Finding::new(facts, target, severity, Confidence::High)
}

fn attribute(name: &str, value: &str) -> FleetAttribute {
    FleetAttribute {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

fn ratio(estimate: f64, low: f64, high: f64) -> RatioWithin {
    RatioWithin {
        estimate,
        low,
        high,
    }
}

fn group(cause: FleetCause, attribute: FleetAttribute, hosts: &[&str]) -> FleetGroup {
    let remedy = cause.remedy();
    let on = |host: &&str| FleetHost {
        host: (*host).to_owned(),
        devices: vec!["sda".to_owned(), "nvme0n1".to_owned()],
        plan: None,
        command: remedy.on(host, None),
    };
    FleetGroup {
        cause,
        attribute,
        same: Vec::new(),
        hosts: 300,
        hosts_with: 297,
        other_hosts: 9_700,
        other_hosts_with: 12,
        lift: ratio(768.4, 436.2, 1353.0),
        chance: 1e-12,
        times: None,
        devices: 600,
        wasted_per_second: None,
        lost_ns_per_second: None,
        remedy,
        on: hosts.iter().map(on).collect(),
    }
}

fn groups() -> Vec<FleetGroup> {
    let names = ["db1", "db2", "db3", "=1+1", "db5"];
    let image = attribute("image", "web-3<b>");
    let mut misaligned = group(FleetCause::Rule(RuleId::MisalignedIo), image, &names);
    misaligned.same.push(attribute("template", "a \"b\", c"));
    misaligned.wasted_per_second = Some(12_345.6);
    misaligned.lost_ns_per_second = Some(1.5e9);
    let mut slow = group(
        FleetCause::SlowDevice,
        attribute("rack", "r17"),
        &["-x", "a\x1b[2Jb"],
    );
    slow.times = Some(ratio(3.02, 2.91, 3.11));
    vec![misaligned, slow]
}

fn changes() -> FleetChanges {
    let change = |host: &str, before, after| FleetChange {
        host: host.to_owned(),
        device: "nvme0n1".to_owned(),
        layer: "request",
        cause: FleetCause::Rule(RuleId::MisalignedIo),
        before,
        after,
        wasted_per_second: None,
    };
    let warning = Some(Severity::Warning);
    let mut changes = FleetChanges::default();
    changes.new.add(change("db1.example.org", None, warning), 2);
    changes.new.add(change("db2.example.org", None, warning), 2);
    changes.new.add(change("db3.example.org", None, warning), 2);
    let mut worse = change("db4.example.org", warning, warning);
    worse.wasted_per_second = Some(WasteChange {
        before: 12.5,
        after: 250.0,
    });
    changes.worse.add(worse, 2);
    for host in ["old1", "old2", "old3"] {
        changes.hosts_gone.add(host, 2);
    }
    changes
}

fn fleet() -> FleetAnswer {
    let mut answer = FleetAnswer {
        hosts: 10_000,
        devices: 200_000,
        with_findings: 1200,
        inputs: 9_999,
        partial: 2,
        unread: 1,
        ios: 3_500_000_000,
        groups: groups(),
        ungrouped: vec![FleetRest {
            cause: FleetCause::Rule(RuleId::MisalignedIo),
            hosts: 12,
            devices: 13,
        }],
        outliers: FleetOutliers {
            compared: 180_000,
            limit_times: Some(1.62),
            slow: 70,
            alone: 20,
            devices: vec![FleetOutlier {
                host: "db9.example.org".to_owned(),
                device: "nvme3n1".to_owned(),
                layer: "request",
                times: 12.34,
            }],
        },
        silence: FleetSilence {
            newest: Some("2026-11-23T02:59:59Z".to_owned()),
            limit_seconds: 129_600,
            all: 3,
            listed: vec![SilentHost {
                host: "db7.example.org".to_owned(),
                newest: "2026-11-19T00:00:00Z".to_owned(),
            }],
            undated: 1,
        },
        changes: Some(changes()),
        ..FleetAnswer::default()
    };
    for (host, low, high) in [
        ("db2.example.org", 0.0, 12.5),
        ("db1.example.org", 812.0, 812.0),
        ("a\x1b[2Jb", 12.0, 13.5),
        ("idle", 0.0, 0.0),
    ] {
        answer.by_waste.add(Ok(device(host, low, high)), 2);
    }
    let lost = device("db1.example.org", 1.2e6, 3.4e7);
    answer.by_time_lost.add(Ok(lost), 20);
    let perhaps = device("db2.example.org", -4e5, 2e6);
    answer.by_time_lost.add(Ok(perhaps), 20);
    for (reason, devices) in [
        (FleetUnknown::NoLatency, 2),
        (FleetUnknown::NotComparable, 1),
        (FleetUnknown::NoGrid, 1),
        (FleetUnknown::NoIo, 1),
    ] {
        for _ in 0..devices {
            answer.by_waste.add(Err(reason), 2);
            answer.by_time_lost.add(Err(reason), 2);
        }
    }
    for (host, severity) in [
        ("first", Severity::Warning),
        ("db3", Severity::Critical),
        ("db4", Severity::Critical),
    ] {
        let finding = stalled(host, severity);
        let counts = answer.rule(finding.rule());
        counts.findings += 400;
        counts.devices += 400;
        counts.hosts += 12;
        answer.show(finding);
    }
    answer.rule(RuleId::MisalignedIo).unknown = 17;
    answer.settle();
    answer
}

#[test]
fn a_fleet_on_80_columns() {
    let outcome = Outcome::Unknown(WhyUnknown::ReadInPart);
    insta::assert_snapshot!(text(&fleet(), outcome, Color::Never));
}

#[test]
fn every_line_fits() {
    for width in [60, 80, 200] {
        let paper = Paper::default().of_width(width);
        let shown = text(&fleet(), Outcome::Findings, paper);
        let long: Vec<&str> = shown
            .lines()
            .filter(|line| line.chars().count() > width)
            .collect();
        assert!(long.is_empty(), "{width}: {long:#?}");
        assert!(shown.starts_with("PROBLEM: 1,200 findings"), "{shown}");
        assert!(!shown.contains('\x1b'));
    }
}

#[test]
fn the_verdict_follows_the_outcome() {
    let empty = FleetAnswer::default();
    for (answer, outcome, expected) in [
        (
            &empty,
            Outcome::Clean,
            "OK: no finding on 0 devices of 0 hosts.\n",
        ),
        // The exit status is 0 by default, and the findings are there all the same.
        (&fleet(), Outcome::Clean, "PROBLEM: 1,200 findings"),
        (
            &empty,
            Outcome::Unknown(WhyUnknown::TooFewIos),
            "UNKNOWN: no finding on 0 devices of 0 hosts; no I/O was seen.\n",
        ),
        (
            &empty,
            Outcome::Unknown(WhyUnknown::Layout),
            "UNKNOWN: no finding on 0 devices of 0 hosts; not every rule could judge every\n",
        ),
    ] {
        let shown = text(answer, outcome, Color::Never);
        assert!(shown.starts_with(expected), "{shown}");
    }
}

/// Names come from anywhere: a spreadsheet takes no cell for a formula, and a line is a line.
#[test]
fn csv_has_a_line_for_each_device() {
    let text = csv(&fleet());
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(
        lines[..2],
        [
            "host,device,cause,attribute,value,lift,lift_low,lift_high,times,command",
            "db1,sda,misaligned-io,image,web-3<b>,768.4,436.2,1353,,ssh db1 'plumb check --json | plumb fix plan -'",
        ]
    );
    // Two devices on five and on two hosts, and an outlier.
    assert_eq!(lines.len(), 1 + 10 + 4 + 1);
    assert!(
        lines[7].starts_with("'=1+1,sda,misaligned-io"),
        "{}",
        lines[7]
    );
    assert!(lines[11].starts_with("'-x,sda,slow-device,rack,r17,"));
    assert!(lines[11].ends_with(",,"), "no command holds this name");
    assert!(lines[13].starts_with("a\\u{1b}[2Jb,"), "{}", lines[13]);
    insta::assert_snapshot!(lines[15]);
}

#[test]
fn metrics_have_a_series_for_each_group() {
    let text = openmetrics(&fleet());
    for line in [
        "plumb_fleet_hosts 10000",
        "plumb_fleet_silent_hosts 3",
        "plumb_fleet_outliers 20",
        "plumb_fleet_finding_devices{rule=\"stalled-io\"} 1200",
        "plumb_fleet_group_hosts{cause=\"misaligned-io\",attribute=\"image\",value=\"web-3<b>\"} 297",
        "plumb_fleet_group_lost_seconds_per_second{cause=\"misaligned-io\",attribute=\"image\",value=\"web-3<b>\"} 1.5",
        "plumb_fleet_changes{kind=\"new\"} 3",
    ] {
        assert!(
            text.lines().any(|one| one == line),
            "no `{line}` in:\n{text}"
        );
    }
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn the_page_escapes_names() {
    let run = Run {
        version: "1.2.3".to_owned(),
        ..Run::default()
    };
    let page = html(&run, &fleet(), Outcome::Findings);
    for part in [
        "<h3>misaligned-io: image=web-3&lt;b&gt;, template=a &quot;b&quot;, c</h3>",
        "<td class=\"text\">ssh db1 &#39;plumb check --json | plumb fix plan -&#39;</td>",
        "<td class=\"text\">a\\u{1b}[2Jb</td>",
        "<h2>Outliers</h2>",
        "<h2>Hosts that stopped reporting</h2>",
        "plumb 1.2.3: ",
    ] {
        assert!(page.contains(part), "no `{part}` in:\n{page}");
    }
    assert!(!page.contains("<b>") && !page.contains('\x1b') && !page.contains("<script"));
}

#[test]
fn a_remedy_follows_from_the_cause() {
    for (cause, remedy) in [
        (
            FleetCause::Rule(RuleId::MisalignedIo),
            FleetRemedy::CarryOutPlan,
        ),
        (
            FleetCause::Rule(RuleId::MisalignedPartition),
            FleetRemedy::CarryOutPlan,
        ),
        (FleetCause::Rule(RuleId::OddLengthIo), FleetRemedy::Diagnose),
        (FleetCause::SlowDevice, FleetRemedy::Diagnose),
    ] {
        assert_eq!(cause.remedy(), remedy, "{cause:?}");
    }
}
