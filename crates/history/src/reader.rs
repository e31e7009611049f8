//! Questions to a store. A reader never writes and needs no lock: the agent may run.

use std::ops::ControlFlow;
use std::path::Path;

use plumb_profile::Profile;
use plumb_profile::timeline::Timeline;
use plumb_trace::Layer;

use crate::database::Database;
use crate::error::HistoryError;
use crate::finding::{self, FindingInterval};
use crate::glance::{self, COLUMNS_COUNT, GlanceRow};
use crate::host::{self, HostFactRow};
use crate::record::{self, Record};
use crate::room::{self, id_of, of_id};
use crate::schema::{Part, SERIES_MAX};
use crate::senders::Senders;
use crate::settings::Settings;
use crate::tier::{Span, Tier, Window};
use crate::writer::open_rows::{self, StoredOpen, read_open_of, read_open_windows, read_series};

/// A device with a history.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesFacts {
    /// Its number in this store.
    pub number: u32,
    /// WWN, serial number or UUID; a name without them.
    pub identity: String,
    /// Layer.
    pub layer: Layer,
    /// Names with the times from which they were seen, in order.
    pub names: Vec<(i64, String)>,
    /// From its first to its last window, of any tier; `None` without any.
    pub span: Option<Span>,
}

impl SeriesFacts {
    /// The last name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names
            .last()
            .map_or(self.identity.as_str(), |(_, name)| name)
    }

    /// The name at a time; before the first name that was seen, that one. `None` without any.
    #[must_use]
    pub fn name_at(&self, at_ns: i64) -> Option<&str> {
        name_at(&self.names, at_ns)
    }
}

/// See [`SeriesFacts::name_at`].
pub(crate) fn name_at(names: &[(i64, String)], at_ns: i64) -> Option<&str> {
    let later = names.partition_point(|(from_ns, _)| *from_ns <= at_ns);
    let (_, name) = names.get(later.saturating_sub(1))?;
    Some(name)
}

/// The I/O of a device in a span.
#[derive(Clone, Debug)]
pub struct SpanProfile {
    /// The sum of the windows.
    pub profile: Profile,
    /// Its largest senders.
    pub senders: Senders,
    /// The time of the windows: the span that was asked for, widened to whole windows at its ends.
    pub span: Span,
    /// Windows by tier, in the order of [`Tier::ALL`].
    pub windows: [u64; 3],
    /// Damaged records that were left out.
    pub damaged: u64,
    /// I/O of windows without a residue table: they are in totals and histograms, and not in the table.
    pub untabled_ios: u64,
}

/// See the module.
pub struct Reader {
    pub(crate) recent: Option<Database>,
    pub(crate) history: Option<Database>,
}

impl Reader {
    /// Opens the store of a folder. One of the two files may be absent.
    ///
    /// # Errors
    /// If there is no store, or a file cannot be read.
    pub fn open(folder: &Path, settings: &Settings) -> Result<Reader, HistoryError> {
        let recent = Database::open_to_read(folder, Part::Recent, settings)?;
        let history = Database::open_to_read(folder, Part::History, settings)?;
        if recent.is_none() && history.is_none() {
            return Err(HistoryError::Missing {
                folder: folder.to_owned(),
            });
        }
        Ok(Reader { recent, history })
    }

    pub(crate) fn database(&self, part: Part) -> Option<&Database> {
        match part {
            Part::Recent => self.recent.as_ref(),
            Part::History => self.history.as_ref(),
        }
    }

    pub(crate) fn databases(&self) -> impl Iterator<Item = &Database> {
        self.recent.iter().chain(&self.history)
    }

    /// All devices, in the order of their numbers.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn series(&self) -> Result<Vec<SeriesFacts>, HistoryError> {
        let mut all = self.names()?;
        self.find_spans(&mut all)?;
        Ok(all)
    }

    /// All devices without their spans, which take a search in each tier.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn names(&self) -> Result<Vec<SeriesFacts>, HistoryError> {
        let mut list = Vec::new();
        for database in self.history.iter().chain(&self.recent) {
            if list.is_empty() {
                list = read_series(database)?;
            }
        }
        let facts = list.into_iter().map(|stored| SeriesFacts {
            number: stored.number,
            identity: stored.identity,
            layer: stored.layer,
            names: stored.names,
            span: None,
        });
        Ok(facts.collect())
    }

    /// Finds the spans of these devices.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn find_spans(&self, series: &mut [SeriesFacts]) -> Result<(), HistoryError> {
        let open = self.windows_not_over()?;
        for one in series {
            let mut windows = Vec::new();
            for tier in Tier::ALL {
                windows.extend(self.ends_of(tier, one.number)?);
            }
            let mine = open.iter().filter(|(number, _)| *number == one.number);
            windows.extend(mine.map(|(_, window)| *window));
            one.span = windows
                .into_iter()
                .map(Window::span)
                .reduce(|known, next| Span {
                    from_ns: known.from_ns.min(next.from_ns),
                    to_ns: known.to_ns.max(next.to_ns),
                });
        }
        Ok(())
    }

    /// All findings, in the order in which they appeared.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn findings(&self) -> Result<Vec<FindingInterval>, HistoryError> {
        let mut all = Vec::new();
        self.each_finding(Span::EVER, |finding| {
            all.push(finding);
            ControlFlow::Continue(())
        })?;
        Ok(all)
    }

    /// Reads one finding that was present in a span after the other, in the order in which they appeared, until `take` breaks.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn each_finding(
        &self,
        span: Span,
        take: impl FnMut(FindingInterval) -> ControlFlow<()>,
    ) -> Result<(), HistoryError> {
        let Some(database) = &self.history else {
            return Ok(());
        };
        finding::read_each(&database.connection, span, take)
            .map_err(|source| database.failed("read the findings", source))
    }

    /// The values of facts about the host, in the order in which they were seen. A file of version 1 has none.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn host_facts(&self) -> Result<Vec<HostFactRow>, HistoryError> {
        let Some(database) = &self.history else {
            return Ok(Vec::new());
        };
        if database.version()? < 2 {
            return Ok(Vec::new());
        }
        host::read(&database.connection)
            .map_err(|source| database.failed("read the facts of the host", source))
    }

    /// First and last stored window of a series in a tier.
    fn ends_of(&self, tier: Tier, series: u32) -> Result<Vec<Window>, HistoryError> {
        let Some(database) = self.database(Part::of_tier(tier)) else {
            return Ok(Vec::new());
        };
        let read = || -> rusqlite::Result<Vec<Window>> {
            let end = |newest| room::sound_end_window(database, tier, Some(series), newest);
            Ok(end(false)?.into_iter().chain(end(true)?).collect())
        };
        read().map_err(|source| database.failed("read the ends of a tier", source))
    }

    /// The totals of the stored windows of a tier that share time with a span; of all devices, or of one. In order of
    /// time, then of the series. Damaged totals are made from the histograms of their window: `off_4k` may be unknown then.
    ///
    /// # Errors
    /// If the file cannot be read, or the histograms of damaged totals are damaged, too.
    pub fn glance(
        &self,
        tier: Tier,
        span: Span,
        series: Option<u32>,
    ) -> Result<Vec<GlanceRow>, HistoryError> {
        let mut list = Vec::new();
        self.each_glance(tier, span, series, &mut |row| list.push(row))?;
        Ok(list)
    }

    /// The same, one after the other: a day of many devices takes no memory.
    ///
    /// # Errors
    /// As [`Reader::glance`]; the totals before the damage are passed on.
    pub fn each_glance(
        &self,
        tier: Tier,
        span: Span,
        series: Option<u32>,
        take: &mut dyn FnMut(GlanceRow),
    ) -> Result<(), HistoryError> {
        let Some(database) = self.database(Part::of_tier(tier)) else {
            return Ok(());
        };
        let mut fault = None;
        let mut read = || -> rusqlite::Result<()> {
            let end = |newest| room::sound_end_window(database, tier, None, newest);
            let (Some(oldest), Some(newest)) = (end(false)?, end(true)?) else {
                return Ok(());
            };
            let stored = span.common(Span {
                from_ns: oldest.span().from_ns,
                to_ns: newest.span().to_ns,
            });
            let mut windows = stored.windows(tier);
            let ranges: Vec<[i64; 2]> = match series {
                // The identifier is the key: a device is read without the rows of the others.
                Some(series) => windows.map(|window| [id_of(window, series); 2]).collect(),
                None => {
                    let first = windows.next();
                    let ends = first.map(|first| (first, windows.last().unwrap_or(first)));
                    let range = |(first, last)| [id_of(first, 0), id_of(last, SERIES_MAX - 1)];
                    ends.map(range).into_iter().collect()
                }
            };
            let (word, columns) = (tier.word(), glance::COLUMNS);
            let sum = database.sum_column(&format!("glance_{word}"));
            // The key comes last: the totals and their checksum begin at column 0, as in a whole record.
            let sql = format!(
                "SELECT {columns}, {sum}, id FROM glance_{word} WHERE id BETWEEN ? AND ? ORDER BY id"
            );
            let mut statement = database.connection.prepare_cached(&sql)?;
            for [first, last] in ranges {
                let mut rows = statement.query([first, last])?;
                let mut expected = first;
                while let Some(row) = rows.next()? {
                    let id = row.get(COLUMNS_COUNT + 1)?;
                    if !(expected..=last).contains(&id) {
                        fault = Some(HistoryError::OutOfOrder {
                            file: database.file.clone(),
                            tier,
                        });
                        return Ok(());
                    }
                    expected = id.saturating_add(1);
                    let (window, series) = of_id(tier, id);
                    let glance = match room::checked_glance(database, row, window, id)? {
                        Some(glance) => Some(glance),
                        None => room::read_checked(database, window, series)?
                            .and_then(|found| room::glance_of_record(&found.record)),
                    };
                    let Some(glance) = glance else {
                        fault = Some(HistoryError::DamagedTotals {
                            file: database.file.clone(),
                            series,
                            window,
                        });
                        return Ok(());
                    };
                    take(GlanceRow {
                        series,
                        window,
                        glance,
                    });
                }
            }
            Ok(())
        };
        read().map_err(|source| database.failed("read totals", source))?;
        match fault {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }

    /// The open windows of all series, without their I/O.
    fn windows_not_over(&self) -> Result<Vec<(u32, Window)>, HistoryError> {
        let Some(database) = &self.history else {
            return Ok(Vec::new());
        };
        read_open_windows(&database.connection)
            .map_err(|source| database.failed("read the list of open windows", source))
    }

    /// The open windows of a series that share time with a span.
    fn open_of(&self, number: u32, span: Span) -> Result<Vec<StoredOpen>, HistoryError> {
        let Some(database) = &self.history else {
            return Ok(Vec::new());
        };
        read_open_of(database, number, span)
            .map_err(|source| database.failed("read the open windows", source))
    }

    /// The I/O of a device in a span: of the coarsest windows inside it, and of finer ones at its ends. A span is widened if
    /// the finer windows at its ends are gone. `None` without any window.
    ///
    /// # Errors
    /// If a file cannot be read. A damaged record is counted and left out.
    pub fn profile(
        &self,
        series: &SeriesFacts,
        span: Span,
    ) -> Result<Option<SpanProfile>, HistoryError> {
        // Windows outside are absent: a span of a thousand years takes no longer.
        let Some(known) = series.span else {
            return Ok(None);
        };
        let span = span.common(known);
        let mut sum = SpanSum {
            reader: self,
            number: series.number,
            open: self.open_of(series.number, whole_days(span))?,
            span,
            found: None,
            damaged: 0,
            oldest: Tier::ALL.map(|_| None),
        };
        for tier in Tier::ALL {
            sum.oldest[tier as usize] = self.oldest(tier)?;
        }
        let known = sum.open.len();
        sum.open.retain(|open| !open.is_damaged);
        sum.damaged += (known - sum.open.len()) as u64;
        for window in span.windows(Tier::Day) {
            sum.cover(window)?;
        }
        // Without any sound record there is nothing to say about the span.
        let Some(mut found) = sum.found else {
            return Ok(None);
        };
        found.damaged = sum.damaged;
        Ok(Some(named(found, series)))
    }

    /// The I/O of one stored window, in the form of [`Reader::profile`]. `None` if it is open, damaged or absent.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn closed_window(
        &self,
        series: &SeriesFacts,
        window: Window,
    ) -> Result<Option<SpanProfile>, HistoryError> {
        let mut sum = SpanSum {
            reader: self,
            number: series.number,
            open: Vec::new(),
            span: window.span(),
            found: None,
            damaged: 0,
            oldest: Tier::ALL.map(|_| None),
        };
        sum.take(window)?;
        Ok(sum.found.map(|found| named(found, series)))
    }

    /// Whether a window of a tier that shares time with a span is still open. An open finer window is a part of it.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn has_open(&self, tier: Tier, span: Span) -> Result<bool, HistoryError> {
        let open = self.windows_not_over()?;
        let is_part = |window: Window| {
            let whole = Window::at(tier, window.span().from_ns);
            window.tier <= tier && !whole.span().common(span).is_empty()
        };
        Ok(open.iter().any(|(_, window)| is_part(*window)))
    }

    /// End of the I/O that the last checkpoint stored, ns since 1970; 0 before the first one, and for a store that was only imported.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn upto_ns(&self) -> Result<i64, HistoryError> {
        self.history.as_ref().map_or(Ok(0), open_rows::read_upto_ns)
    }

    /// The record of a closed window of a series.
    pub(crate) fn stored(
        &self,
        number: u32,
        window: Window,
    ) -> Result<Option<record::EncodedRecord>, HistoryError> {
        let Some(database) = self.database(Part::of_tier(window.tier)) else {
            return Ok(None);
        };
        room::read_record(database, window, number)
            .map_err(|source| database.failed("read a record", source))
    }

    /// Begin of the oldest window of a tier, ns; `None` without any.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn oldest(&self, tier: Tier) -> Result<Option<i64>, HistoryError> {
        let Some(database) = self.database(Part::of_tier(tier)) else {
            return Ok(None);
        };
        let window = room::sound_end_window(database, tier, None, false);
        let window = window.map_err(|source| database.failed("read the oldest window", source))?;
        Ok(window.map(|window| window.span().from_ns))
    }
}

/// The sum with the name of its device, and with the largest senders in its profile.
fn named(mut found: SpanProfile, series: &SeriesFacts) -> SpanProfile {
    series.name().clone_into(&mut found.profile.device);
    for (sender, share) in found.senders.largest() {
        found.profile.top.add(&sender.command, share);
    }
    found
}

/// A sum over a span in the making.
struct SpanSum<'r> {
    reader: &'r Reader,
    number: u32,
    open: Vec<StoredOpen>,
    span: Span,
    found: Option<SpanProfile>,
    damaged: u64,
    oldest: [Option<i64>; 3],
}

impl SpanSum<'_> {
    /// Adds the part of the span that a window has.
    fn cover(&mut self, window: Window) -> Result<(), HistoryError> {
        let part = window.span().common(self.span);
        if part.is_empty() {
            return Ok(());
        }
        let is_inside = self.span.contains(window.span());
        let Some(finer) = window.tier.finer() else {
            self.take(window)?;
            return Ok(());
        };
        if is_inside && self.take(window)? {
            return Ok(());
        }
        let reaches_back = self.oldest[finer as usize].is_some_and(|from| from <= part.from_ns);
        if !is_inside && !reaches_back && !self.is_only_open(window) && self.take(window)? {
            return Ok(());
        }
        for finer in part.windows(finer) {
            self.cover(finer)?;
        }
        Ok(())
    }

    /// Whether all that is known of a window is in open windows, which have their finer parts.
    fn is_only_open(&self, window: Window) -> bool {
        let finer: Vec<&StoredOpen> = self
            .open
            .iter()
            .filter(|open| {
                open.window.tier < window.tier && window.span().contains(open.window.span())
            })
            .collect();
        let own = self.open.iter().any(|open| open.window == window);
        !own && !finer.is_empty()
    }

    /// Adds a window, if there is one.
    fn take(&mut self, window: Window) -> Result<bool, HistoryError> {
        let mut is_known = false;
        let own = self.open.iter().find(|open| open.window == window);
        let mut parts: Vec<(Result<Record, String>, bool)> = Vec::new();
        let stored = match own {
            Some(open) => open.base.clone(),
            None => self.reader.stored(self.number, window)?,
        };
        if let Some(stored) = stored {
            parts.push((Record::decode(&stored), stored.table.is_some()));
        }
        for open in &self.open {
            if open.window.tier <= window.tier && window.span().contains(open.window.span()) {
                parts.push((whole_record(open), true));
            }
        }
        for (record, has_table) in parts {
            is_known = true;
            self.add(window, record, has_table);
        }
        if is_known && let Some(found) = &mut self.found {
            found.windows[window.tier as usize] += 1;
        }
        Ok(is_known)
    }

    fn add(&mut self, window: Window, record: Result<Record, String>, has_table: bool) {
        let of_window = window.span();
        let Ok(record) = record else {
            self.damaged += 1;
            return;
        };
        let mut profile = record.profile;
        put_into_course(&mut profile, of_window, has_table);
        let untabled_ios = if has_table { 0 } else { profile.ios() };
        match &mut self.found {
            Some(found) => {
                found.profile.merge(&profile);
                found.senders.merge(&record.senders);
                found.span.from_ns = found.span.from_ns.min(of_window.from_ns);
                found.span.to_ns = found.span.to_ns.max(of_window.to_ns);
                found.untabled_ios += untabled_ios;
            }
            empty => {
                *empty = Some(SpanProfile {
                    profile,
                    senders: record.senders,
                    span: Span {
                        from_ns: self.span.from_ns.min(of_window.from_ns),
                        to_ns: self.span.to_ns.max(of_window.to_ns),
                    },
                    windows: [0; 3],
                    damaged: 0,
                    untabled_ios,
                });
            }
        }
    }
}

/// A span widened to whole windows of a day: a sum takes no window beyond them.
fn whole_days(span: Span) -> Span {
    if span.is_empty() {
        return span;
    }
    Span {
        from_ns: Window::at(Tier::Day, span.from_ns).span().from_ns,
        to_ns: Window::at(Tier::Day, span.to_ns.saturating_sub(1))
            .span()
            .to_ns,
    }
}

/// The I/O of an open window, not reduced.
fn whole_record(open: &StoredOpen) -> Result<Record, String> {
    Ok(Record {
        profile: record::decode_profile(&open.profile)?,
        has_table: true,
        glance: glance::Glance::default(),
        senders: record::decode_senders(&open.senders)?,
    })
}

/// Puts a window into the course over time of its profile: one part, since its I/O have no finer times.
fn put_into_course(profile: &mut Profile, span: Span, has_table: bool) {
    let timed = profile.ops.each_ref().map(|op| op.timed);
    if !has_table {
        // The sum of the latencies is in the table.
        profile.ops.iter_mut().for_each(|op| op.timed = 0);
    }
    profile.timeline = Timeline::default();
    profile.put_into_course(span.from_ns, span.to_ns.saturating_sub(1));
    for (op, timed) in profile.ops.iter_mut().zip(timed) {
        op.timed = timed;
    }
}
