//! The report on a fleet as CSV, OpenMetrics and one page of HTML. Names come from anywhere, and each format escapes them by its own rules.

use plumb_fleet::answer::{FleetAnswer, FleetCause, FleetGroup, FleetRanking, FleetRemedy};
use plumb_quoting::visible;

use super::groups::{attribute_words, shares};
use super::{cells, inputs_read, time, verdict_of};
use crate::exports::{Exposition, Kind, MetricsFormat, cell};
use crate::format::{count, digits};
use crate::html::{Markup, document, table};
use crate::run::Run;
use crate::verdict::Outcome;

const NAMES: [&str; 10] = [
    "host",
    "device",
    "cause",
    "attribute",
    "value",
    "lift",
    "lift_low",
    "lift_high",
    "times",
    "command",
];

/// A line for each device of each group and for each outlier, behind a line of names (RFC 4180).
#[must_use]
pub fn csv(answer: &FleetAnswer) -> String {
    let mut text = NAMES.join(",") + "\r\n";
    let mut line = |cells: [&str; 10]| {
        text += &cells.map(cell).join(",");
        text += "\r\n";
    };
    for group in &answer.groups {
        let lift = [group.lift.estimate, group.lift.low, group.lift.high];
        let lift = lift.map(|value| value.to_string());
        for on in &group.on {
            let command = on.command.as_ref().map_or("", |command| command.as_str());
            for device in &on.devices {
                let attribute = &group.attribute;
                line([
                    &on.host,
                    device,
                    group.cause.name(),
                    &attribute.name,
                    &attribute.value,
                    &lift[0],
                    &lift[1],
                    &lift[2],
                    "",
                    command,
                ]);
            }
        }
    }
    for one in &answer.outliers.devices {
        let times = one.times.to_string();
        let command = FleetRemedy::Diagnose.on(&one.host, None);
        let command = command.as_ref().map_or("", |command| command.as_str());
        let cause = FleetCause::SlowDevice.name();
        line([
            &one.host,
            &one.device,
            cause,
            "",
            "",
            "",
            "",
            "",
            &times,
            command,
        ]);
    }
    text
}

/// The metrics, for instance for the textfile collector of node_exporter.
#[must_use]
pub fn openmetrics(answer: &FleetAnswer) -> String {
    let mut metrics = Exposition::new(MetricsFormat::OpenMetrics);
    let outliers = &answer.outliers;
    for (family, help, value) in [
        ("plumb_fleet_hosts", "Hosts.", answer.hosts),
        (
            "plumb_fleet_devices",
            "Devices, each layer of a device for itself.",
            answer.devices,
        ),
        (
            "plumb_fleet_unread_inputs",
            "Inputs that could not be read.",
            answer.unread,
        ),
        (
            "plumb_fleet_silent_hosts",
            "Hosts that stopped reporting.",
            answer.silence.all,
        ),
        (
            "plumb_fleet_slow_devices",
            "Devices far slower than like devices.",
            outliers.slow,
        ),
        (
            "plumb_fleet_outliers",
            "Slow devices that no group explains.",
            outliers.alone,
        ),
    ] {
        metrics.begin(family, Kind::Gauge, help);
        metrics.series(&[], value);
    }
    metrics.begin(
        "plumb_fleet_finding_devices",
        Kind::Gauge,
        "Devices with a finding of a rule.",
    );
    for rule in &answer.rules {
        metrics.series(&[("rule", rule.rule.name())], rule.devices);
    }
    let mut of_groups = |family, help, value: fn(&FleetGroup) -> Option<f64>| {
        metrics.begin(family, Kind::Gauge, help);
        for group in &answer.groups {
            let labels = [
                ("cause", group.cause.name()),
                ("attribute", group.attribute.name.as_str()),
                ("value", group.attribute.value.as_str()),
            ];
            if let Some(value) = value(group) {
                metrics.series(&labels, value);
            }
        }
    };
    of_groups(
        "plumb_fleet_group_hosts",
        "Hosts of a group that have its cause.",
        |group| Some(group.hosts_with as f64),
    );
    of_groups(
        "plumb_fleet_group_lift",
        "Share of the hosts of a group with its cause over that of the other hosts.",
        |group| Some(group.lift.estimate),
    );
    of_groups(
        "plumb_fleet_group_lift_low",
        "Lower end of the 95 % interval of the lift.",
        |group| Some(group.lift.low),
    );
    of_groups(
        "plumb_fleet_group_wasted_cells_per_second",
        "Cells that the devices of a group touch beyond those that they need.",
        |group| group.wasted_per_second,
    );
    of_groups(
        "plumb_fleet_group_lost_seconds_per_second",
        "Time that misaligned I/O of a group take longer than like ones on the grid.",
        |group| Some(group.lost_ns_per_second? / 1e9),
    );
    if let Some(changes) = &answer.changes {
        metrics.begin(
            "plumb_fleet_changes",
            Kind::Gauge,
            "Findings that changed since the earlier file.",
        );
        for (kind, list) in [
            ("new", &changes.new),
            ("gone", &changes.gone),
            ("worse", &changes.worse),
        ] {
            metrics.series(&[("kind", kind)], list.all);
        }
    }
    metrics.into_text()
}

/// The page: one file without scripts, and nothing is fetched.
#[must_use]
pub fn html(run: &Run, answer: &FleetAnswer, outcome: Outcome) -> String {
    let verdict = verdict_of(answer, outcome);
    document("plumb fleet report", |m| {
        m.leaf("h1", &[], "Storage of a fleet");
        let words = format!("{}: {}", verdict.word.text(), verdict.sentence);
        m.leaf("p", &[("class", "verdict")], &words);
        m.leaf("p", &[("class", "dim")], &inputs_read(answer));
        group_tables(m, answer);
        ranking_table(m, "Wasted I/O", &answer.by_waste, cells);
        ranking_table(m, "Time lost", &answer.by_time_lost, time);
        outlier_table(m, answer);
        silence_table(m, answer);
        change_table(m, answer);
        rule_table(m, answer);
        m.el("footer", &[], |m| {
            m.text(&format!("plumb {}: ", run.version));
            m.leaf("code", &[], &run.command.join(" "));
        });
    })
}

fn group_tables(m: &mut Markup, answer: &FleetAnswer) {
    m.leaf("h2", &[], "Groups");
    if answer.groups.is_empty() {
        m.leaf("p", &[], "No attribute explains a finding.");
    }
    for group in &answer.groups {
        let same = group.same.iter().map(attribute_words);
        let names: Vec<String> = std::iter::once(attribute_words(&group.attribute))
            .chain(same)
            .collect();
        let title = format!("{}: {}", group.cause.name(), names.join(", "));
        m.leaf("h3", &[], &title);
        m.leaf("p", &[], &shares(group));
        m.el("details", &[], |m| {
            m.leaf("summary", &[], "Hosts, devices and commands");
            let rows: Vec<Vec<String>> = group
                .on
                .iter()
                .map(|on| {
                    let command = on.command.as_ref().map(ToString::to_string);
                    let devices = on.devices.join(", ");
                    vec![on.host.clone(), devices, command.unwrap_or_default()]
                })
                .collect();
            table(m, "", &["<host", "<devices", "<command"], &rows);
        });
    }
}

fn ranking_table(
    m: &mut Markup,
    title: &str,
    ranking: &FleetRanking,
    figure: fn(plumb_geometry::Bounds<f64>) -> String,
) {
    m.leaf("h2", &[], title);
    let rows: Vec<Vec<String>> = ranking
        .devices
        .iter()
        .map(|one| {
            vec![
                one.host.clone(),
                one.device.clone(),
                one.layer.to_owned(),
                figure(one.per_second),
                count(one.ios),
            ]
        })
        .collect();
    let columns = ["<host", "<device", "<layer", "for each second", "I/O"];
    table(m, "", &columns, &rows);
    let unknown: u64 = ranking.unknown.iter().map(|one| one.devices).sum();
    let words = format!(
        "Devices: {} ranked, {} without, {} unknown.",
        count(ranking.ranked),
        count(ranking.without),
        count(unknown)
    );
    m.leaf("p", &[("class", "dim")], &words);
}

fn outlier_table(m: &mut Markup, answer: &FleetAnswer) {
    if answer.outliers.alone == 0 {
        return;
    }
    let rows: Vec<Vec<String>> = answer
        .outliers
        .devices
        .iter()
        .map(|one| vec![one.host.clone(), one.device.clone(), digits(one.times)])
        .collect();
    m.leaf("h2", &[], "Outliers");
    let columns = ["<host", "<device", "times the median latency"];
    table(m, "", &columns, &rows);
}

fn silence_table(m: &mut Markup, answer: &FleetAnswer) {
    let silence = &answer.silence;
    if silence.all == 0 {
        return;
    }
    let rows: Vec<Vec<String>> = silence
        .listed
        .iter()
        .map(|one| vec![one.host.clone(), one.newest.clone()])
        .collect();
    m.leaf("h2", &[], "Hosts that stopped reporting");
    table(m, "", &["<host", "<newest I/O"], &rows);
}

fn change_table(m: &mut Markup, answer: &FleetAnswer) {
    let Some(changes) = &answer.changes else {
        return;
    };
    m.leaf("h2", &[], "Changes since the earlier file");
    let kinds = [
        ("new", &changes.new),
        ("gone", &changes.gone),
        ("worse", &changes.worse),
    ];
    let rows: Vec<Vec<String>> = kinds
        .into_iter()
        .flat_map(|(kind, list)| list.listed.iter().map(move |one| (kind, one)))
        .map(|(kind, one)| {
            let cause = one.cause.name().to_owned();
            vec![kind.to_owned(), one.host.clone(), one.device.clone(), cause]
        })
        .collect();
    let columns = ["<change", "<host", "<device", "<finding"];
    table(m, "", &columns, &rows);
    let gone: Vec<_> = changes
        .hosts_gone
        .listed
        .iter()
        .map(|host| visible(host))
        .collect();
    let words = format!(
        "New: {}; gone: {}; worse: {}. Hosts that are gone: {} {}",
        count(changes.new.all),
        count(changes.gone.all),
        count(changes.worse.all),
        count(changes.hosts_gone.all),
        gone.join(", ")
    );
    m.leaf("p", &[], &words);
}

fn rule_table(m: &mut Markup, answer: &FleetAnswer) {
    let rows: Vec<Vec<String>> = answer
        .rules
        .iter()
        .map(|one| {
            vec![
                one.rule.name().to_owned(),
                one.worst.map_or("", |worst| worst.word()).to_owned(),
                count(one.devices),
                count(one.hosts),
                count(one.unknown),
            ]
        })
        .collect();
    m.leaf("h2", &[], "Findings by rule");
    let columns = ["<rule", "<worst", "devices", "hosts", "not judged"];
    table(m, "", &columns, &rows);
}
