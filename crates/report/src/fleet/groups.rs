//! Groups of a fleet: a cause, the attribute that explains it, its hosts, and one remedy; and devices that are slow without a group.

use plumb_fleet::answer::{
    FleetAttribute, FleetGroup, FleetOutliers, FleetRemedy, FleetRest, RatioWithin,
};
use plumb_geometry::plural;
use plumb_quoting::visible;

use crate::format::{count, digits, ns, percent};
use crate::text::page::Page;

/// Hosts that the text names of a group.
const NAMED: usize = 3;

pub(super) fn groups(page: &mut Page, groups: &[FleetGroup], rest: &[FleetRest]) {
    // Without a group, the findings by rule say the same.
    if groups.is_empty() {
        return;
    }
    page.heading("Groups: attributes that explain a finding");
    for (at, group) in groups.iter().enumerate() {
        let title = format!(
            "{}: {}",
            group.cause.name(),
            attribute_words(&group.attribute)
        );
        page.numbered(4, &count(at as u64 + 1), &title);
        let mut say = |words: String| page.wrapped("     ", "       ", words);
        say(shares(group));
        if let Some(times) = group.times {
            say(format!(
                "Latency against the median device: {}.",
                ratio_words(times)
            ));
        }
        if !group.same.is_empty() {
            let same: Vec<String> = group.same.iter().map(attribute_words).collect();
            say(format!("The same devices have {}.", same.join(", ")));
        }
        if let Some(cells) = group.wasted_per_second {
            let lost = group.lost_ns_per_second.filter(|lost| *lost > 0.0);
            let lost = lost.map_or_else(String::new, |lost| {
                format!(" and {} of each second", ns(lost as u64))
            });
            let cells = digits(cells);
            say(format!("They waste at least {cells} cells a second{lost}."));
        }
        let named: Vec<String> = group
            .on
            .iter()
            .take(NAMED)
            .map(|on| visible(&on.host).into_owned())
            .collect();
        let more = match group.on.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {} more", count(more as u64)),
        };
        let devices = plural(group.devices, "device");
        say(format!("{devices} on {}{more}.", named.join(", ")));
        let plans = group.on.iter().filter(|on| on.plan.is_some());
        let planned = plans.clone().count() as u64;
        if planned > 0 {
            let hosts = plural(group.on.len() as u64, "host");
            say(format!("Plans for {} of {hosts}.", count(planned)));
        }
        // A plan before a command that makes one.
        let commands = plans.chain(&group.on).filter_map(|on| on.command.as_ref());
        if let Some(command) = commands.into_iter().next() {
            let kind = match group.remedy {
                _ if planned > 0 => "Dry run of a plan, for instance:",
                FleetRemedy::CarryOutPlan => "Dry run of the plan for each host, for instance:",
                FleetRemedy::Diagnose => "On each host, for instance:",
            };
            say(kind.to_owned());
            page.command("         ", command);
        }
    }
    for one in rest {
        let words = format!(
            "{} of {} without a group: {}",
            plural(one.devices, "device"),
            plural(one.hosts, "host"),
            one.cause.name()
        );
        page.wrapped("  ", "    ", words);
    }
}

/// `60 of 60 hosts (100 %), 2 of 1,940 others (0.10 %): 970 times (95 % interval 240 to 3,900) as often.`
pub(super) fn shares(group: &FleetGroup) -> String {
    let share = |with: u64, all: u64| percent(with as f64 / all as f64);
    format!(
        "{} of {} ({}), {} of {} ({}): {} as often.",
        count(group.hosts_with),
        plural(group.hosts, "host"),
        share(group.hosts_with, group.hosts),
        count(group.other_hosts_with),
        plural(group.other_hosts, "other"),
        share(group.other_hosts_with, group.other_hosts),
        ratio_words(group.lift)
    )
}

pub(super) fn outliers(page: &mut Page, outliers: &FleetOutliers) {
    let Some(limit) = outliers.limit_times.filter(|_| outliers.alone > 0) else {
        return;
    };
    page.heading("Outliers: devices slower than like devices, without a group");
    for one in &outliers.devices {
        let words = format!(
            "{} of {} ({} layer): {} times the latency of the median device",
            visible(&one.device),
            visible(&one.host),
            one.layer,
            digits(one.times)
        );
        page.wrapped("  ", "    ", words);
    }
    let more = outliers.alone - outliers.devices.len() as u64;
    let of = format!(
        "{} of {} at least {} times as slow as the median{}",
        count(outliers.alone),
        plural(outliers.compared, "compared device"),
        digits(limit),
        match more {
            0 => String::new(),
            more => format!("; {} not listed", count(more)),
        }
    );
    page.wrapped("  ", "    ", of);
}

pub(super) fn attribute_words(attribute: &FleetAttribute) -> String {
    format!("{}={}", visible(&attribute.name), visible(&attribute.value))
}

/// `970 times (95 % interval 240 to 3,900)`.
fn ratio_words(ratio: RatioWithin) -> String {
    format!(
        "{} times (95 % interval {} to {})",
        digits(ratio.estimate),
        digits(ratio.low),
        digits(ratio.high)
    )
}
