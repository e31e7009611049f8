//! The intervals of a history: each is a window of a tier, or several of them joined.
//!
//! Left out: the I/O of one process or operation, which no window keeps apart.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use plumb_capture::{ALIGNMENTS, Process, Reading};
use plumb_geometry::{SmallSort, group_digits};
use plumb_history::{Reader, SeriesFacts, Span, SpanProfile, Tier, Window};
use plumb_profile::ProfileSet;

use super::recorded::RecordedInterval;
use crate::failure::Failure;
use crate::history::span::{self, DeviceSpan, time_words};
use crate::history::tier_for;

/// Windows of a tier that one span has at most: a week of 5 minutes.
const WINDOWS_MAX: i64 = 2016;

/// A gap of more intervals than these is one interval.
const GAP_INTERVALS: i64 = 60;

/// A time of a history that is read window by window.
pub(super) struct Stored {
    reader: Reader,
    series: Vec<SeriesFacts>,
    tier: Tier,
    /// The time of all windows.
    time: Span,
    /// Begins of the closed windows with I/O.
    busy: BTreeSet<i64>,
    /// End of the last closed window: those behind it are open, and unread.
    closed_ns: i64,
    /// The end of the last interval.
    until_ns: i64,
}

impl Stored {
    /// Opens a history.
    ///
    /// # Errors
    /// If it cannot be read, has no such device, or has none of its I/O in that time.
    pub(super) fn open(device: &DeviceSpan, state_dir: &Path) -> Result<Stored, Failure> {
        let reader = span::open(state_dir)?;
        let series = device.series(&reader)?;
        let spans = series.iter().filter_map(|one| {
            let known = one.span?;
            let time = device.within(known).common(known);
            (!time.is_empty()).then_some(time)
        });
        let asked = spans.reduce(joined);
        let asked = asked.ok_or_else(|| span::no_ios(&device.device))?;
        let tier = tier_for(&reader, asked, WINDOWS_MAX)?;
        let first = Window::at(tier, asked.from_ns).span();
        let last = Window::at(tier, asked.to_ns - 1).span();
        let time = joined(first, last);
        let mut stored = Stored {
            reader,
            series,
            tier,
            time,
            busy: BTreeSet::new(),
            closed_ns: time.from_ns,
            until_ns: time.from_ns,
        };
        for one in &stored.series {
            let rows = stored.reader.glance(tier, time, Some(one.number));
            for row in rows.map_err(|error| Failure::failed(&error))? {
                let window = row.window.span();
                stored.busy.insert(window.from_ns);
                stored.closed_ns = stored.closed_ns.max(window.to_ns);
            }
        }
        // An open window of a day ends in the future: the time ends with the last window of the tier that has I/O.
        let open = stored.sum(Span {
            from_ns: stored.closed_ns,
            ..time
        })?;
        let profiles = open.reading.profiles.iter();
        let with_io = profiles.filter(|profile| profile.ios() > 0);
        let last = with_io.filter_map(|profile| profile.last_ns).max();
        let end_ns = last.map_or(stored.closed_ns, |ns| Window::at(tier, ns).span().to_ns);
        stored.time.to_ns = end_ns.min(time.to_ns);
        match stored.time.is_empty() {
            true => Err(span::no_ios(&device.device)),
            false => Ok(stored),
        }
    }

    /// Length of a window.
    pub(super) fn width(&self) -> Duration {
        Duration::from_nanos(self.tier.width_ns().unsigned_abs())
    }

    /// The windows in words.
    pub(super) fn how(&self) -> String {
        let (from, to) = (time_words(self.time.from_ns), time_words(self.time.to_ns));
        format!("windows of {} from {from} to {to}", self.tier.word())
    }

    /// The next interval of at least this length: whole windows.
    ///
    /// # Errors
    /// If the history cannot be read on.
    pub(super) fn next(&mut self, interval: Duration) -> Result<StoredInterval, Failure> {
        let window_ns = self.tier.width_ns();
        let wanted_ns = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
        let windows = wanted_ns.saturating_add(window_ns - 1) / window_ns;
        let length_ns = windows.max(1).saturating_mul(window_ns);
        let from_ns = self.until_ns;
        // A gap is not read.
        let next_ns = self.next_busy();
        let gap = next_ns.saturating_sub(from_ns) / length_ns;
        let intervals = if gap > GAP_INTERVALS { gap } else { 1 };
        let end_ns = (from_ns / length_ns).saturating_add(intervals);
        let end_ns = end_ns.saturating_mul(length_ns).min(self.time.to_ns);
        let mut found = StoredSum::default();
        if next_ns < end_ns {
            found = self.sum(Span {
                from_ns,
                to_ns: end_ns,
            })?;
        }
        // A span is widened if the finer windows at its end are gone: they are not read twice.
        self.until_ns = found.to_ns.max(end_ns);
        let is_last = self.until_ns >= self.time.to_ns;
        let number = |ns: i64| group_digits(((ns - self.time.from_ns) / window_ns).unsigned_abs());
        let position = match is_last {
            true => "end".to_owned(),
            false => format!(
                "window {} of {}",
                number(self.until_ns),
                number(self.time.to_ns)
            ),
        };
        Ok(StoredInterval {
            is_partial: found.is_partial,
            notes: found.notes,
            interval: RecordedInterval {
                reading: found.reading,
                seconds: (self.until_ns - from_ns) as f64 / 1e9,
                time: time_words(self.until_ns),
                position,
                is_last,
            },
        })
    }

    /// The I/O of all intervals together: a coarser window of them keeps more rows than the finer ones.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub(super) fn so_far(&self) -> Result<ProfileSet, Failure> {
        let time = Span {
            to_ns: self.until_ns,
            ..self.time
        };
        Ok(self.sum(time)?.reading.profiles)
    }

    /// Begin of the next window that may have I/O; the end of the time without any.
    fn next_busy(&self) -> i64 {
        let open_ns = self.until_ns.max(self.closed_ns).min(self.time.to_ns);
        let closed = self.busy.range(self.until_ns..).next();
        closed.map_or(open_ns, |closed| *closed.min(&open_ns))
    }

    /// The I/O of a time.
    fn sum(&self, time: Span) -> Result<StoredSum, Failure> {
        let mut sum = StoredSum::default();
        for series in &self.series {
            let found = self.reader.profile(series, time);
            let found = found.map_err(|error| Failure::failed(&error))?;
            if let Some(found) = found {
                sum.add(series, &found);
            }
        }
        let processes = &mut sum.reading.processes;
        processes.small_sort_by_key(|process| std::cmp::Reverse(process.ios));
        Ok(sum)
    }
}

/// An interval of a history.
pub(super) struct StoredInterval {
    pub(super) interval: RecordedInterval,
    /// Sentences that a reader must know.
    pub(super) notes: Vec<String>,
    /// Whether damaged records are missing.
    pub(super) is_partial: bool,
}

/// The I/O of several series.
#[derive(Default)]
struct StoredSum {
    reading: Reading,
    notes: Vec<String>,
    is_partial: bool,
    /// End of the last window.
    to_ns: i64,
}

impl StoredSum {
    fn add(&mut self, series: &SeriesFacts, found: &SpanProfile) {
        let name = series.name();
        self.to_ns = self.to_ns.max(found.span.to_ns);
        self.is_partial |= found.damaged > 0;
        self.notes.extend(span::notes_of(series, found));
        self.reading.profiles.add(&found.profile);
        for (sender, share) in found.senders.largest() {
            self.reading.processes.push(Process {
                device: name.to_owned(),
                disk: name.to_owned(),
                pid: 0,
                comm: sender.command.clone(),
                cgroup: Some(sender.cgroup.clone()).filter(|path| !path.is_empty()),
                command_line: None,
                ios: share.ios,
                written_back: 0,
                bytes: share.bytes,
                threads: 0,
                by_alignment: [0; ALIGNMENTS],
            });
        }
        self.reading.of_unlisted_process += found.senders.others().ios;
    }
}

fn joined(one: Span, other: Span) -> Span {
    Span {
        from_ns: one.from_ns.min(other.from_ns),
        to_ns: one.to_ns.max(other.to_ns),
    }
}
