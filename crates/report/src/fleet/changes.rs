//! Changes of a fleet since an earlier file, and hosts that stopped reporting.

use plumb_fleet::answer::{FleetChanges, FleetHostList, FleetSilence};
use plumb_geometry::plural;
use plumb_quoting::visible;

use crate::format::{count, digits};
use crate::text::page::Page;

pub(super) fn silence(page: &mut Page, silence: &FleetSilence) {
    let Some(newest) = silence.newest.as_ref().filter(|_| silence.all > 0) else {
        return;
    };
    page.heading("Hosts that stopped reporting");
    for one in &silence.listed {
        let words = format!("{}: newest I/O {}", visible(&one.host), one.newest);
        page.wrapped("  ", "    ", words);
    }
    let words = format!(
        "{}: newest I/O more than {} before {newest}",
        plural(silence.all, "host"),
        span(silence.limit_seconds)
    );
    page.wrapped("  ", "    ", words);
}

/// `36 h`, `90 min`.
fn span(seconds: u64) -> String {
    match seconds {
        _ if seconds.is_multiple_of(3600) => format!("{} h", count(seconds / 3600)),
        _ if seconds.is_multiple_of(60) => format!("{} min", count(seconds / 60)),
        _ => format!("{} s", count(seconds)),
    }
}

pub(super) fn changes(page: &mut Page, changes: &FleetChanges) {
    let since = changes.since.as_deref().unwrap_or("the earlier file");
    page.heading(&format!("Changes since {since}"));
    let lists = [
        ("New findings", &changes.new),
        ("Findings that are gone", &changes.gone),
        ("Findings that are worse", &changes.worse),
    ];
    for (title, list) in lists {
        page.wrapped("  ", "    ", format!("{title}: {}", count(list.all)));
        for one in &list.listed {
            let wasted = one.wasted_per_second.map_or_else(String::new, |wasted| {
                format!(
                    ", {} to {} wasted cells a second",
                    digits(wasted.before),
                    digits(wasted.after)
                )
            });
            let words = format!(
                "{} on {} of {} ({} layer){wasted}",
                one.cause.name(),
                visible(&one.device),
                visible(&one.host),
                one.layer
            );
            page.wrapped("    ", "      ", words);
        }
    }
    let hosts = [
        ("New hosts", &changes.hosts_new),
        ("Hosts that stopped reporting", &changes.hosts_gone),
    ];
    for (title, list) in hosts {
        let names = match list.all {
            0 => String::new(),
            _ => format!(": {}", host_names(list)),
        };
        page.wrapped("  ", "    ", format!("{title}: {}{names}", count(list.all)));
    }
}

/// The names of the listed hosts, and the number of the others.
fn host_names(list: &FleetHostList) -> String {
    let names: Vec<_> = list.listed.iter().map(|host| visible(host)).collect();
    let more = match list.all - list.listed.len() as u64 {
        0 => String::new(),
        more => format!(" and {} more", count(more)),
    };
    names.join(", ") + &more
}
