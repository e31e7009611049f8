//! The first screen of `plumb diagnose` and `plumb check`: the verdict, the lines that fit on a terminal, and the words behind each
//! exit status.

use plumb_diagnose::Diagnosis;
use plumb_diagnose::accept::Accepted;
use plumb_geometry::{Bounds, Bytes};
use plumb_model::facts::{
    BadSetting, FailingIo, MisalignedPartition, QueueSetting, SaturatedDevice, Stall, StalledIo,
    WantedStart,
};
use plumb_model::result::check::Unseen;
use plumb_model::result::watch::WatchSummary;
use plumb_model::seen::{FitAfterMove, SeenFit};
use plumb_model::{Confidence, Effect, Facts, Finding, Fix, GridOf, Seen, Severity, Target};
use plumb_profile::latency_fit::LatencyByFit;
use plumb_quoting::Command;
use plumb_report::Report;
use plumb_report::check::Check;
use plumb_report::diagnose::{Diagnose, text};
use plumb_report::run::Run;
use plumb_report::text::{Color, Detail};
use plumb_report::verdict::{Outcome, WhyUnknown};
use plumb_stack::{Builder, CellKind, Kind, Source, Stack, Survey};
use plumb_trace::Layer;

fn stack(disks: usize) -> Stack {
    let mut builder = Builder::default();
    let source = Source::Kernel {
        path: "sys/class/block".into(),
    };
    for number in 0..disks {
        let disk = builder.node(&format!("sd{number}"));
        builder.kind(disk, Kind::Disk, &source);
        builder.size(disk, Bytes(10 << 30), &source);
    }
    builder.finish()
}

fn finding(device: &str, facts: Facts, severity: Severity) -> Finding {
    let target = Target::seen(device, None, Layer::Request);
    Finding::new(facts, target, severity, Confidence::High)
}

fn stalled(device: &str) -> Finding {
    let stall = Stall::Silent {
        in_flight: 4,
        for_ns: 3_020_000_000,
        oldest: None,
    };
    let facts = Facts::StalledIo(StalledIo { stall });
    finding(device, facts, Severity::Critical)
}

fn saturated(device: &str) -> Finding {
    let facts = SaturatedDevice {
        busy_share: 0.998,
        depth_mean: 31.4,
        mean_ns: 161e6,
        served_ns: 5.1e6,
        ios_per_second: 196.0,
        bytes_per_second: 1.6e6,
    };
    finding(device, Facts::SaturatedDevice(facts), Severity::Warning)
}

fn cut_requests(device: &str, severity: Severity) -> Finding {
    let setting = BadSetting::Request {
        bytes: Bytes(64 << 10),
        hardware_bytes: Bytes(1280 << 10),
        better_bytes: Bytes(1280 << 10),
        source: None,
    };
    let facts = QueueSetting {
        settings: vec![setting],
    };
    let path = format!("/sys/block/{device}/queue/max_sectors_kb");
    let set = |kib: u32| Command::new("echo").arg(kib).flags(">").path(&path);
    let fix = Fix::new(set(1280), Effect::ChangesSetting, "none to data", set(64));
    finding(device, Facts::QueueSetting(facts), severity).with_fix(fix)
}

/// The output of the command for 80 columns.
fn screen(
    disks: usize,
    findings: Vec<Finding>,
    unseen: &[Unseen],
    outcome: Outcome,
    detail: Detail,
) -> String {
    let stack = stack(disks);
    let diagnosis = Diagnosis {
        findings,
        ..Diagnosis::default()
    };
    let run = Run {
        version: "0".to_owned(),
        host: None,
        time: "2026-01-31T08:00:00Z".to_owned(),
        command: vec!["plumb".to_owned()],
    };
    let check = Check {
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
        unseen,
        notes: &[],
        outcome,
    };
    let io = Report {
        title: "this host".to_owned(),
        version: "0",
        command: String::new(),
        sources: &[],
        notes: &[],
        sections: Vec::new(),
        diagnosis: &diagnosis,
        outcome: Outcome::Clean,
    };
    let watched = WatchSummary {
        seconds: 10.0,
        disks: Vec::new(),
        too_few: Vec::new(),
        senders: Vec::new(),
    };
    let page = Diagnose {
        check,
        io,
        watched: Some(watched),
    };
    text(&page, detail, Color::Never)
}

fn brief(disks: usize, findings: Vec<Finding>, outcome: Outcome) -> String {
    screen(disks, findings, &[], outcome, Detail::Brief)
}

#[test]
fn a_healthy_host_is_one_line() {
    let without_note = brief(3, Vec::new(), Outcome::Clean);
    let note = cut_requests("sd0", Severity::Note);
    let with_note = brief(3, vec![note], Outcome::Clean);
    insta::assert_snapshot!(without_note + "\n\n" + &with_note);
}

#[test]
fn a_guest_names_the_command_for_the_layers_below() {
    let collect = Command::new("plumb check --collect host.tar.zst");
    let unseen = Unseen {
        what: "the storage below vda".to_owned(),
        is_below_guest: false,
        clause: "layers below vda".to_owned(),
        commands: vec![collect.line().expect("a command")],
    };
    let outcome = Outcome::Unknown(WhyUnknown::Layout);
    let text = screen(1, Vec::new(), &[unseen], outcome, Detail::Brief);
    insta::assert_snapshot!(text);
}

/// Three kinds of findings, one of them on four disks, fit on 40 lines, and the answer is on the first and the last.
#[test]
fn three_findings() {
    let mut findings = vec![stalled("sda"), saturated("sdb")];
    for disk in ["sdc", "sdd", "sde", "sdf"] {
        findings.push(cut_requests(disk, Severity::Warning));
    }
    let text = brief(24, findings, Outcome::Findings);
    assert!(text.lines().count() <= 40, "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

/// Notes that reach the limit of `--fail-on note` are the answer.
#[test]
fn notes_can_be_the_answer() {
    let note = cut_requests("sd0", Severity::Note);
    let text = brief(1, vec![note], Outcome::Findings);
    insta::assert_snapshot!(text);
}

/// A block names the devices after the first six by their number, for any number.
#[test]
fn forty_disks_are_no_more_lines_than_one() {
    let lines = |disks: usize| {
        let findings =
            (0..disks).map(|number| cut_requests(&format!("sd{number}"), Severity::Warning));
        brief(disks, findings.collect(), Outcome::Findings)
            .lines()
            .count()
    };
    assert!(lines(40) <= lines(1) + 6, "{} lines", lines(40));
}

/// The word follows the exit status, and every text begins with it.
#[test]
fn the_word_follows_the_outcome() {
    let failing = Facts::FailingIo(FailingIo {
        ops: Vec::new(),
        first: Vec::new(),
    });
    let failing = finding("sda", failing, Severity::Critical);
    for (findings, outcome, word) in [
        (vec![], Outcome::Clean, "OK"),
        (vec![stalled("sda")], Outcome::Findings, "PROBLEM"),
        (vec![failing], Outcome::Findings, "PROBLEM"),
        // `--fail-on none`
        (vec![stalled("sda")], Outcome::Clean, "OK"),
        (vec![], Outcome::Unknown(WhyUnknown::TooFewIos), "UNKNOWN"),
        (vec![], Outcome::Unknown(WhyUnknown::NotWatched), "UNKNOWN"),
        (vec![], Outcome::Unknown(WhyUnknown::ReadInPart), "UNKNOWN"),
    ] {
        for detail in [Detail::Brief, Detail::Evidence, Detail::All] {
            let text = screen(1, findings.clone(), &[], outcome, detail);
            assert!(
                text.starts_with(&format!("{word}: ")),
                "{outcome:?}: {text}"
            );
        }
    }
}

/// A partition 1 KiB past a block, whose I/O were counted with the present start and with an aligned one.
fn misaligned(moved: u64) -> Finding {
    let facts = MisalignedPartition {
        grid: GridOf {
            granularity_bytes: Bytes(4096),
            offset_bytes: Bytes(0),
            what: CellKind::PhysicalBlock,
            source: Source::Kernel {
                path: "sys/class/block".into(),
            },
            believed: true,
            on: "sd0".to_owned(),
        },
        past_bytes: Some(Bytes(1024)),
        varies_by_bytes: None,
        byte: Bytes(0),
        start_bytes: Some(Bytes(34 * 512)),
        given_bytes: None,
        grids_off: 1,
        grids: 1,
        movers: Vec::new(),
        also_off: Vec::new(),
        not_known: Vec::new(),
        wanted: WantedStart::NoStart,
    };
    let fit = SeenFit {
        ios: 1000,
        misaligned: Bounds::exact(1000),
        cells_ratio: None,
        moved: Some(FitAfterMove {
            by_bytes: Bytes(3072),
            ios: 1000,
            misaligned: Bounds::exact(moved),
        }),
        latency: None,
    };
    let seen = Seen {
        on: "sd0p1".to_owned(),
        is_below: false,
        layer: Layer::Request,
        seconds: Some(10.0),
        reads: 1000,
        writes: 0,
        moved_bytes: Bounds::exact(8_192_000),
        mean_ns: None,
        fit: Some(fit),
        senders: Vec::new(),
        more_senders: 0,
    };
    let umount = Fix::new(
        Command::new("umount").path("/srv"),
        Effect::ChangesSetting,
        "fails while a process uses the file system",
        Command::new("mount").path("/srv"),
    );
    let preview = Fix::look(Command::new("plumb fix move").path("/dev/sd0p1"));
    let finding = finding(
        "sd0p1",
        Facts::MisalignedPartition(facts),
        Severity::Warning,
    );
    Finding {
        seen: Some(seen),
        ..finding.with_fix(umount).with_fix(preview)
    }
}

fn without_cost(high_ns: f64) -> Finding {
    let mut finding = misaligned(0);
    finding.severity = Severity::Note;
    let fit = finding.seen.as_mut().and_then(|seen| seen.fit.as_mut());
    fit.expect("a fit").latency = Some(LatencyByFit::Difference {
        difference_ns: high_ns - 1e3,
        low_ns: high_ns - 2e3,
        high_ns,
        fitting_mean_ns: 100e3,
        unfitting_mean_ns: 100e3 + high_ns,
        compared: 1000,
        compared_writes: 500,
        unfitting: 1000,
        strata: 1,
    });
    finding
}

/// A misfit whose I/O were no slower stays the verdict, and the status is 0. The report says so as well if something else is
/// unknown.
#[test]
fn a_misfit_without_cost_is_no_failure() {
    let screens = [
        (2e3, Outcome::Clean),
        (-1e3, Outcome::Clean),
        (2e3, Outcome::Unknown(WhyUnknown::Layout)),
        // 3 % may be a cost.
        (3e3, Outcome::Clean),
    ]
    .map(|(longer_ns, outcome)| brief(1, vec![without_cost(longer_ns)], outcome));
    insta::assert_snapshot!(screens.join("\n\n"));
}

/// A note without a command is shown by `-vv` alone.
#[test]
fn notes_that_nobody_can_act_on_are_left_out() {
    let acts = cut_requests("sd0", Severity::Note);
    let shown = brief(1, vec![acts.clone()], Outcome::Clean);
    let idle = Finding {
        fix: Vec::new(),
        ..acts
    };
    let left_out = brief(1, vec![idle], Outcome::Clean);
    insta::assert_snapshot!(shown + "\n\n" + &left_out);
}

/// The preview writes nothing, so it comes before the first step that disturbs anyone. A fix that helps none of the counted I/O
/// is not recommended.
#[test]
fn a_fix_begins_with_its_preview_and_has_to_help() {
    // The fix leaves these of 1,000 I/O misaligned. It helps at the first two numbers.
    let screens =
        [0, 899, 900, 1000].map(|left| brief(1, vec![misaligned(left)], Outcome::Findings));
    insta::assert_snapshot!(screens.join("\n\n"));
}
