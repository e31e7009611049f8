//! The writing side of a store: one process holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plumb_profile::Profile;
use plumb_profile::profile::TimeBase;
use plumb_profile::timeline::Timeline;
use plumb_profile::top::Top;
use plumb_trace::Layer;

use crate::accumulator::{Accumulator, Base};
use crate::database::{Database, set_aside};
use crate::error::HistoryError;
use crate::finding::{self, FindingInterval, FindingKey, FindingNote, FindingStep};
use crate::host::{self, HostFactRow};
use crate::reader::{Reader, SeriesFacts, name_at};
use crate::record::{self, EncodedRecord};
use crate::room::{self, DeletedWindows};
use crate::schema::{Part, SERIES_MAX};
use crate::senders::{Sender, Senders};
use crate::settings::Settings;
use crate::tier::{Span, Tier, Window};

mod flush;
mod memory;
mod numbers;
pub(crate) mod open_rows;

use numbers::UnusedNumbers;

/// Values of host facts that wait at most while the file cannot be written; older ones are dropped.
const HOST_WAITING_MAX: usize = 10_000;
/// Steps of findings that wait at most while the file cannot be written; older ones are dropped.
const FINDINGS_WAITING_MAX: usize = 1000;

/// Names that a device keeps; the oldest are dropped.
const NAMES_MAX: usize = 64;

/// The I/O of one device since its last increment.
#[derive(Clone, Copy, Debug)]
pub struct DeviceIncrement<'i> {
    /// WWN, serial number or UUID of the device mapper: the history follows it. A name without them.
    pub identity: &'i str,
    /// Its present name, as `sda`.
    pub name: &'i str,
    /// The I/O.
    pub profile: &'i Profile,
    /// Its senders; `None`: those of the profile, without cgroups.
    pub senders: Option<&'i Senders>,
}

/// Something that the owner of a store should log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A damaged file was renamed, and a new one begun.
    SetAside {
        /// Its new name.
        aside: PathBuf,
    },
    /// An open window was damaged and is lost.
    DamagedWindow {
        /// Number of the series.
        series: u32,
        /// The window.
        window: Window,
    },
    /// Windows were deleted to stay below the cap.
    Evicted {
        /// How many.
        windows: u64,
    },
    /// The log of a file could not be moved into the file. Nothing is lost, and each checkpoint tries again; a success ends the failure, and the
    /// next one is a notice again.
    LogKept {
        /// The file.
        file: PathBuf,
        /// The cause.
        cause: String,
    },
    /// Closed windows that could not be written were dropped, because too many waited. Coarser tiers have their I/O.
    Dropped {
        /// How many.
        windows: u64,
    },
}

/// A device at a layer.
#[derive(Clone, Debug)]
struct Series {
    identity: String,
    layer: Layer,
    /// Names with the times from which they were seen, in order.
    names: Vec<(i64, String)>,
    /// For each file the time of the last name that it has; `None` while the file lacks the series.
    written: [Option<i64>; 2],
    open: [Option<Accumulator>; 3],
}

impl Series {
    /// Notes a name that is neither the present one nor that of its time: a saved profile can be older than the last name.
    fn note_name(&mut self, from_ns: i64, name: &str) {
        let is_present = self.names.last().is_some_and(|(_, last)| last == name);
        if is_present || name_at(&self.names, from_ns) == Some(name) {
            return;
        }
        // A time before that of the last name would change the past.
        let after_last = self.last_name_ns().map_or(i64::MIN, |from| from + 1);
        self.names.push((from_ns.max(after_last), name.to_owned()));
        let surplus = self.names.len().saturating_sub(NAMES_MAX);
        self.names.drain(..surplus);
    }

    /// The time of the last name.
    fn last_name_ns(&self) -> Option<i64> {
        self.names.last().map(|(from, _)| *from)
    }

    /// The mark of a file that has the series and all its names.
    fn written_mark(&self) -> i64 {
        self.last_name_ns().unwrap_or(i64::MIN)
    }
}

/// A closed window that waits for being written.
struct Waiting {
    fresh: EncodedRecord,
    base: Base,
    /// Whether `history.db` has it as it is.
    is_kept: bool,
}

/// See the module.
pub struct Writer {
    folder: PathBuf,
    settings: Settings,
    recent: Database,
    history: Database,
    series: BTreeMap<u32, Series>,
    numbers: BTreeMap<(String, Layer), u32>,
    waiting: BTreeMap<(Window, u32), Waiting>,
    /// Windows of `recent.db` that `history.db` keeps, because they waited at its last write.
    kept: BTreeSet<(Window, u32)>,
    /// Steps of findings that wait for being written.
    findings: Vec<FindingNote>,
    /// Values of facts about the host that wait for being written.
    host: Vec<HostFactRow>,
    upto_ns: i64,
    notices: Vec<Notice>,
    unused: UnusedNumbers,
    /// The number of the next new series; it never falls.
    next_number: u32,
    /// The lock of the folder; `None` while all is in memory.
    lock: Option<File>,
}

impl Writer {
    /// Opens the store of a folder, and makes an absent one. A damaged file is set aside.
    ///
    /// # Errors
    /// If another process writes to it, a file is of another program or a newer version, or the system fails.
    pub fn open(folder: &Path, settings: Settings) -> Result<Writer, HistoryError> {
        let lock = lock(folder)?;
        let mut notices = Vec::new();
        let recent = open_part(folder, Part::Recent, &settings, &mut notices)?;
        let history = open_part(folder, Part::History, &settings, &mut notices)?;
        let mut writer = Writer::with_files(folder, settings, recent, history);
        writer.notices = notices;
        writer.lock = Some(lock);
        writer.load()?;
        Ok(writer)
    }

    fn with_files(
        folder: &Path,
        settings: Settings,
        recent: Database,
        history: Database,
    ) -> Writer {
        Writer {
            folder: folder.to_owned(),
            settings,
            recent,
            history,
            series: BTreeMap::new(),
            numbers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            kept: BTreeSet::new(),
            findings: Vec::new(),
            host: Vec::new(),
            upto_ns: 0,
            notices: Vec::new(),
            unused: UnusedNumbers::default(),
            next_number: 0,
            lock: None,
        }
    }

    /// The time up to which I/O are stored or in memory, ns; 0 for a new store.
    #[must_use]
    pub fn upto_ns(&self) -> i64 {
        self.upto_ns
    }

    /// Takes other bounds, which hold from the next checkpoint on.
    ///
    /// # Errors
    /// If the system fails; some of the old bounds may hold then.
    pub fn set_settings(&mut self, settings: Settings) -> Result<(), HistoryError> {
        self.recent.prepare(&settings)?;
        self.history.prepare(&settings)?;
        self.settings = settings;
        Ok(())
    }

    /// The notices since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// The findings that are present in the store.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn present_findings(&self) -> Result<Vec<FindingInterval>, HistoryError> {
        let mut present = Vec::new();
        let take = |finding: FindingInterval| {
            if finding.went_ns.is_none() {
                present.push(finding);
            }
            ControlFlow::Continue(())
        };
        finding::read_each(&self.history.connection, Span::EVER, take)
            .map_err(|source| self.history.failed("read the findings", source))?;
        Ok(present)
    }

    /// Notes a step of a finding. The next checkpoint stores it.
    pub fn note_finding(&mut self, at_ns: i64, key: FindingKey, step: FindingStep) {
        if self.findings.len() >= FINDINGS_WAITING_MAX {
            self.findings.remove(0);
        }
        self.findings.push(FindingNote { at_ns, key, step });
    }

    /// Notes the value of a fact about the host. The next checkpoint stores it, if it is another one than before.
    pub fn note_host(&mut self, row: HostFactRow) {
        if self.host.len() >= HOST_WAITING_MAX {
            self.host.remove(0);
        }
        self.host.push(row);
    }

    /// The names of facts about the host that have a value in the store.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn present_host_facts(&self) -> Result<Vec<String>, HistoryError> {
        host::present(&self.history.connection)
            .map_err(|source| self.history.failed("read the facts of the host", source))
    }

    /// Deletes closed windows and findings that ended before a time, and devices without any window then. Returns the number of windows. Pages
    /// that it frees are used again; the files keep their length.
    ///
    /// # Errors
    /// If a file cannot be written. The other file may be pruned by then.
    pub fn prune(&mut self, before_ns: i64) -> Result<u64, HistoryError> {
        let mut deleted = DeletedWindows::default();
        for database in [&self.recent, &self.history] {
            let delete = || -> rusqlite::Result<DeletedWindows> {
                let transaction = database.connection.unchecked_transaction()?;
                let mut deleted = DeletedWindows::default();
                for tier in database.part.tiers() {
                    deleted[tier as usize] = room::delete_before(&transaction, tier, before_ns)?;
                }
                if database.part == Part::History {
                    finding::delete_aged(&transaction, before_ns)?;
                    host::delete_aged(&transaction, before_ns)?;
                }
                transaction.commit()?;
                Ok(deleted)
            };
            let of_file = delete().map_err(|source| database.failed("delete windows", source))?;
            for tier in database.part.tiers() {
                deleted[tier as usize] = of_file[tier as usize];
            }
        }
        self.note_deleted(deleted);
        if self.is_search_due() {
            self.remove_empty_series()?;
        }
        Ok(deleted.iter().sum())
    }

    /// Adds the I/O of a device between two times. The time of an increment is short: the window of its begin has it.
    ///
    /// # Errors
    /// If there are too many devices, or a profile cannot be packed. The increment is not counted then.
    pub fn add(&mut self, span: Span, increment: &DeviceIncrement<'_>) -> Result<(), HistoryError> {
        self.add_at(Tier::FiveMinutes, span, increment)
    }

    /// Notes that all I/O before a time are added: the disks may have had none.
    pub fn end_reading(&mut self, to_ns: i64) {
        self.upto_ns = to_ns;
    }

    /// Adds a saved profile: to the finest tier with a window that contains its whole time, and to all coarser ones.
    ///
    /// # Errors
    /// As [`Writer::add`], and if the time reaches over midnight UTC.
    pub fn import(
        &mut self,
        span: Span,
        increment: &DeviceIncrement<'_>,
    ) -> Result<(), HistoryError> {
        let contains = |tier: &Tier| Window::at(*tier, span.from_ns).span().contains(span);
        let Some(tier) = Tier::ALL.into_iter().find(contains) else {
            return Err(HistoryError::TooLong {
                device: increment.name.to_owned(),
            });
        };
        self.add_at(tier, span, increment)
    }

    /// Puts a stored window of another store in place of a window of a device; device and times in it become those of its new place. A
    /// store of known content is made so: to make each window of a year from I/O takes hours. The next checkpoint writes it.
    ///
    /// # Errors
    /// If there are too many devices, or the window cannot be read. Returns whether there is one.
    pub fn copy_window(
        &mut self,
        from: &Reader,
        original: (u32, Window),
        device: &SeriesFacts,
        window: Window,
    ) -> Result<bool, HistoryError> {
        let Some(mut fresh) = from.stored(original.0, original.1)? else {
            return Ok(false);
        };
        let fault = crate::accumulator::fault(&device.identity);
        let mut profile = record::decode_profile(&fresh.profile).map_err(&fault)?;
        device.identity.clone_into(&mut profile.device);
        let later_ns = window.span().from_ns - original.1.span().from_ns;
        for time in [&mut profile.first_ns, &mut profile.last_ns] {
            *time = time.map(|ns| ns.saturating_add(later_ns));
        }
        fresh.profile = record::encode_profile(&profile).map_err(&fault)?;
        let number = self.number_of(&device.identity, device.layer)?;
        if let Some(series) = self.series.get_mut(&number) {
            series.note_name(window.span().from_ns, device.name());
        }
        let base = Base::Read(None);
        self.wait(
            number,
            window,
            Waiting {
                fresh,
                base,
                is_kept: false,
            },
        );
        self.upto_ns = window.span().to_ns;
        Ok(true)
    }

    fn add_at(
        &mut self,
        tier: Tier,
        span: Span,
        increment: &DeviceIncrement<'_>,
    ) -> Result<(), HistoryError> {
        let number = self.series_of(increment, span.from_ns)?;
        let window = Window::at(tier, span.from_ns);
        self.roll(number, window)?;
        let (profile, senders) = self.prepared(increment, span)?;
        let Some(series) = self.series.get_mut(&number) else {
            return Ok(());
        };
        match &mut series.open[tier as usize] {
            Some(open) => open.add(&profile, &senders)?,
            empty => *empty = Some(Accumulator::open(window, &profile, &senders)?),
        }
        self.upto_ns = span.to_ns;
        Ok(())
    }

    /// The profile in the form in which accumulators add it up.
    fn prepared(
        &self,
        increment: &DeviceIncrement<'_>,
        span: Span,
    ) -> Result<(Profile, Senders), HistoryError> {
        let mut senders = Senders::default();
        match increment.senders {
            Some(given) => senders.merge(given),
            None => {
                for (command, share) in increment.profile.top.most(usize::MAX) {
                    let sender = Sender {
                        command: command.to_owned(),
                        cgroup: String::new(),
                    };
                    senders.add(sender, share);
                }
            }
        }
        let mut profile = increment.profile.clone();
        increment.identity.clone_into(&mut profile.device);
        profile.top = Top::default();
        profile.timeline = Timeline::default();
        profile.answers = None;
        if profile.time_base != TimeBase::Unix {
            // Times since a boot mean nothing a year later: those of the increment replace them.
            profile.time_base = TimeBase::Unix;
            profile.first_ns = Some(span.from_ns);
            profile.last_ns = Some(span.to_ns.saturating_sub(1).max(span.from_ns));
        }
        profile.limit_rows(self.settings.open_rows_max);
        Ok((profile, senders))
    }

    /// The series of a device under its present name; a new one if it has none.
    fn series_of(
        &mut self,
        increment: &DeviceIncrement<'_>,
        from_ns: i64,
    ) -> Result<u32, HistoryError> {
        let number = self.number_of(increment.identity, increment.profile.layer)?;
        if let Some(series) = self.series.get_mut(&number) {
            series.note_name(from_ns, increment.name);
        }
        Ok(number)
    }

    /// The number of a series; a new one if it has none.
    fn number_of(&mut self, identity: &str, layer: Layer) -> Result<u32, HistoryError> {
        let key = (identity.to_owned(), layer);
        if let Some(number) = self.numbers.get(&key) {
            return Ok(*number);
        }
        let Some(number) = self.free_number() else {
            return Err(HistoryError::TooManySeries {
                found: SERIES_MAX + 1,
                most: SERIES_MAX,
            });
        };
        self.insert_series(number, identity, layer);
        Ok(number)
    }

    fn insert_series(&mut self, number: u32, identity: &str, layer: Layer) {
        let series = Series {
            identity: identity.to_owned(),
            layer,
            names: Vec::new(),
            written: [None; 2],
            open: [None, None, None],
        };
        self.series.insert(number, series);
        self.next_number = self.next_number.max(number + 1);
        self.numbers.insert((identity.to_owned(), layer), number);
    }

    /// Closes the open windows of a series that a window is not part of. They are closed from fine to coarse, because
    /// each adds itself to the next.
    fn roll(&mut self, number: u32, window: Window) -> Result<(), HistoryError> {
        for tier in Tier::ALL {
            let now = Window::at(tier, window.span().from_ns);
            let is_over = |open: &Accumulator| {
                // An import into a coarse tier ends the finer windows: they would reach the tier too late.
                open.window != now || tier < window.tier
            };
            let Some(series) = self.series.get_mut(&number) else {
                return Ok(());
            };
            if series.open[tier as usize].as_ref().is_some_and(is_over)
                && let Some(done) = series.open[tier as usize].take()
            {
                self.close(number, done)?;
            }
        }
        Ok(())
    }

    /// Closes a window: its record waits for being written, and the next tier takes its I/O.
    fn close(&mut self, number: u32, done: Accumulator) -> Result<(), HistoryError> {
        let Some(series) = self.series.get_mut(&number) else {
            return Ok(());
        };
        let identity = series.identity.clone();
        let settings = self.settings.tier(done.window.tier);
        let fresh = done.record(&identity, settings)?;
        if let Some(coarser) = done.window.coarser() {
            let profile = done.profile(&identity)?;
            match &mut series.open[coarser.tier as usize] {
                Some(open) if open.window == coarser => open.add(&profile, &done.senders)?,
                slot => {
                    // Possible after the loss of a file: the tier has another window open.
                    let before = slot.replace(Accumulator::open(coarser, &profile, &done.senders)?);
                    if let Some(before) = before {
                        self.close(number, before)?;
                    }
                }
            }
        }
        self.wait(
            number,
            done.window,
            Waiting {
                fresh,
                base: done.base,
                is_kept: false,
            },
        );
        Ok(())
    }

    /// Opens a file again after damage: the damaged one is set aside.
    fn replace(&mut self, part: Part) -> Result<(), HistoryError> {
        let aside = set_aside(&self.folder, part)?;
        self.notices.push(Notice::SetAside { aside });
        let database = Database::open_to_write(&self.folder, part, &self.settings)?;
        match part {
            Part::Recent => self.recent = database,
            Part::History => {
                self.history = database;
                self.kept.clear();
                for closed in self.waiting.values_mut() {
                    closed.is_kept = false;
                }
            }
        }
        for series in self.series.values_mut() {
            series.written[part as usize] = None;
            for open in series.open.iter_mut().flatten() {
                open.is_dirty = true;
            }
        }
        Ok(())
    }
}

/// Opens a file; a damaged one is set aside.
fn open_part(
    folder: &Path,
    part: Part,
    settings: &Settings,
    notices: &mut Vec<Notice>,
) -> Result<Database, HistoryError> {
    let opened = Database::open_to_write(folder, part, settings);
    match opened {
        Err(error) if error.is_damage() => {
            let aside = set_aside(folder, part)?;
            notices.push(Notice::SetAside { aside });
            Database::open_to_write(folder, part, settings)
        }
        opened => opened,
    }
}

/// Time for which an opened store waits for the end of another writer.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// Locks the folder for this process; the kernel ends the lock with the process.
fn lock(folder: &Path) -> Result<File, HistoryError> {
    let file = folder.join("lock");
    let failed = |source| HistoryError::File {
        file: file.clone(),
        doing: "lock the folder",
        source,
    };
    let lock = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&file)
        .map_err(failed)?;
    let begun = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            // An agent that ends at present, or a child that it has just forked, has the lock for a moment longer.
            Err(std::fs::TryLockError::WouldBlock) if begun.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(LOCK_PATIENCE / 50);
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(HistoryError::InUse {
                    folder: folder.to_owned(),
                });
            }
            Err(std::fs::TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}
