//! The report on a fleet as text: ranges, unknown figures, names from anywhere, and widths of 60, 80 and 200 columns.

use plumb_geometry::{Bounds, Bytes, Grid, GridKind};
use plumb_model::facts::{GridSource, Stall, StalledIo};
use plumb_model::{Confidence, Facts, Finding, RuleId, Severity, Target};
use plumb_report::fleet::{FleetAnswer, FleetUnknown, RankedDevice, text};
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

fn fleet() -> FleetAnswer {
    let mut answer = FleetAnswer {
        hosts: 10_000,
        devices: 200_000,
        with_findings: 1200,
        inputs: 9_999,
        partial: 2,
        unread: 1,
        ios: 3_500_000_000,
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
