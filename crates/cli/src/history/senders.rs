//! `plumb history senders`: the processes that sent the I/O of a device over a time.

use plumb_history::{Reader, SeriesFacts, SpanProfile};
use plumb_model::result::history::{HistorySender, HistorySenders};
use plumb_profile::Owner;
use plumb_profile::top::ProcessShare;

use super::failed;
use super::span::{self, DeviceSpan, time_words};
use crate::cli::HistorySpan;
use crate::failure::Failure;

pub(super) fn list(wanted: &HistorySpan) -> Result<Vec<HistorySenders>, Failure> {
    let device = DeviceSpan::parse(&wanted.span).map_err(Failure::usage)?;
    let reader = span::open(&wanted.store.folder.find()?)?;
    let mut lists = Vec::new();
    for series in device.series(&reader)? {
        lists.extend(of_series(&reader, &series, &device)?);
    }
    match lists.is_empty() {
        true => Err(span::no_ios(&device.device)),
        false => Ok(lists),
    }
}

/// The senders of a series; `None` if it has no I/O in that time.
fn of_series(
    reader: &Reader,
    series: &SeriesFacts,
    device: &DeviceSpan,
) -> Result<Option<HistorySenders>, Failure> {
    let known = series.span.unwrap_or(span::NEVER);
    let time = device.within(known).common(known);
    let found = reader.profile(series, time).map_err(failed)?;
    let found = found.filter(|found| found.profile.ios() > 0);
    Ok(found.map(|found| senders_in(series, &found)))
}

/// The senders of a series in a time.
pub fn senders_in(series: &SeriesFacts, found: &SpanProfile) -> HistorySenders {
    let senders: Vec<HistorySender> = found.senders.largest().into_iter().map(sender).collect();
    let others = found.senders.others();
    let known_ios: u64 = senders.iter().map(|sender| sender.sent.ios).sum();
    HistorySenders {
        device: series.name().to_owned(),
        identity: series.identity.clone(),
        layer: series.layer.word(),
        from: time_words(found.span.from_ns),
        to: time_words(found.span.to_ns),
        ios: found.profile.ios(),
        unknown: found
            .profile
            .ios()
            .saturating_sub(known_ios)
            .saturating_sub(others.ios),
        senders,
        others,
        damaged: found.damaged,
    }
}

fn sender((of, share): (&plumb_history::Sender, ProcessShare)) -> HistorySender {
    let cgroup = Some(of.cgroup.clone()).filter(|path| !path.is_empty());
    HistorySender {
        command: of.command.clone(),
        owner: cgroup.as_deref().and_then(Owner::of_cgroup),
        cgroup,
        sent: share,
    }
}
