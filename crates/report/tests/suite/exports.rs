//! Names with signs that each format uses itself: no name ends a cell, an element, a label or a line.

use plumb_diagnose::Diagnosis;
use plumb_diagnose::accept::Accepted;
use plumb_geometry::Bytes;
use plumb_model::facts::{BadSetting, QueueSetting};
use plumb_model::{Confidence, Facts, Finding, Severity, Target};
use plumb_report::check::Check;
use plumb_report::exports::{csv, junit, markdown, nagios, nagios_failure, prometheus};
use plumb_report::run::Run;
use plumb_report::verdict::Outcome;
use plumb_stack::{Builder, Kind, Source, Survey};
use plumb_trace::Layer;

const HOSTILE: &str = "=a,\"|`<b>&\\\n\u{1b}[2J";

/// The text that a format makes of a host whose device has such a name.
fn export<T>(make: impl FnOnce(&Check<'_>) -> T) -> T {
    let mut builder = Builder::default();
    let disk = builder.node(HOSTILE);
    builder.kind(disk, Kind::Disk, &Source::User);
    let stack = builder.finish();
    let setting = BadSetting::Request {
        bytes: Bytes(64 << 10),
        hardware_bytes: Bytes(1280 << 10),
        better_bytes: Bytes(1280 << 10),
        source: None,
    };
    let facts = Facts::QueueSetting(QueueSetting {
        settings: vec![setting],
    });
    let target = Target::seen(HOSTILE, None, Layer::Request);
    let finding = Finding::new(facts, target, Severity::Critical, Confidence::High);
    let diagnosis = Diagnosis {
        findings: vec![finding.clone(), finding],
        ..Diagnosis::default()
    };
    let run = Run {
        version: "0".to_owned(),
        host: Some("db\"7".to_owned()),
        time: "2026-01-31T08:00:00Z".to_owned(),
        command: vec!["plumb".to_owned()],
    };
    make(&Check {
        run: &run,
        is_of_this_host: true,
        is_full: false,
        inputs: &[],
        stack: &stack,
        survey: &Survey::judge(&stack),
        wanted: None,
        diagnosis: &diagnosis,
        accepted: &Accepted::default(),
        elsewhere: &[],
        unread: &[],
        unseen: &[],
        notes: &[],
        outcome: Outcome::Findings,
    })
}

#[test]
fn csv_quotes_cells_and_disarms_formulas() {
    let text = export(csv);
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(
        lines.len(),
        4,
        "a head, two findings, nothing behind: {text}"
    );
    assert!(lines[1].contains("\"'=a,\"\"|`<b>&"), "{text}");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn xml_has_no_signs_of_names() {
    let text = export(|check| junit(check, Some(Severity::Warning)));
    assert_eq!(text.matches("<failure ").count(), 2);
    assert!(text.contains("name=\"=a,&quot;|`&lt;b&gt;&amp;"), "{text}");
    assert!(text.contains("hostname=\"db&quot;7\""), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains("<b>"));
}

#[test]
fn a_plugin_prints_one_line_with_one_bar() {
    let (text, status) = export(nagios);
    assert_eq!(
        (text.matches('\n').count(), text.matches('|').count()),
        (1, 1),
        "{text}"
    );
    assert_eq!(status.code(), 2, "a critical finding");
    assert!(text.starts_with("PLUMB CRITICAL - "), "{text}");
    assert_eq!(nagios_failure("a|b\nc"), "PLUMB UNKNOWN - a/b\\u{a}c\n");
}

#[test]
fn labels_are_escaped_and_series_are_there_once() {
    let text = export(prometheus);
    let series: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("plumb_check_finding{"))
        .collect();
    assert_eq!(series.len(), 1, "{text}");
    assert!(
        series[0].contains("device=\"=a,\\\"|`<b>&\\\\\\n"),
        "{text}"
    );
    assert!(series[0].ends_with("} 2"), "{text}");
}

#[test]
fn a_row_of_markdown_has_its_cells() {
    let text = export(markdown);
    let row = text.lines().last().expect("a row");
    assert_eq!(row.replace("\\|", "").matches('|').count(), 6, "{text}");
    assert!(!row.contains("<b>") || row.contains("`` =a"), "{row}");
}
