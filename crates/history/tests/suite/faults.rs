//! Every write of SQLite fails once, and from each one on all writes fail: the writer goes on or reports the fault, the store opens,
//! stored windows are whole, nothing counts twice, and a kill loses at most the I/O since the last checkpoint that succeeded.
//!
//! A script takes a writer over midnight with a checkpoint after each increment of seven I/O. It runs once to count the calls, and then with
//! a fault at each of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plumb_history::{
    DeviceIncrement, FindingKey, FindingStep, HistoryError, HostFactRow, Notice, Reader, Settings,
    Span, Tier, Writer,
};
use plumb_profile::{Profile, Table};
use plumb_testkit::faulty_vfs::{Fault, FaultPlan, FaultyVfs};
use plumb_testkit::{require, temp_dir};
use plumb_trace::Layer;

use crate::support::{BEGIN, DAY, EVER, IDENTITY, MINUTE, exact, is_sound};

const IOS: u64 = 7;
/// Steps of a script after the first failed write, until the writer is killed.
const STEPS_TO_KILL: usize = 3;

/// A step of the script. Minutes count from the begin of the day.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Opens the store as the agent does.
    Start,
    /// Notes a fact about the host and a finding, and stores them.
    Note,
    /// Stores I/O of another device, three days ago.
    Old,
    /// Adds seven I/O of a minute, and stores them.
    Store(i64),
    /// Adds seven I/O and stores nothing.
    Add(i64),
    /// Deletes the other device.
    Prune,
    /// Closes all windows.
    Close,
}

use Step::{Add, Close, Note, Old, Prune, Start, Store};

/// Windows of each tier close; the writer ends within windows of each tier and begins again; the clock goes back within a window that is
/// open, and into one that is closed.
const SCRIPT: [Step; 19] = [
    Start,
    Note,
    Old,
    Store(23 * 60 + 51),
    Store(23 * 60 + 52),
    Store(23 * 60 + 56),
    Start,
    Add(23 * 60 + 58),
    Store(23 * 60 + 59),
    Store(24 * 60),
    Store(24 * 60 + 6),
    Store(24 * 60 + 3),
    Store(23 * 60 + 50),
    Store(24 * 60 + 7),
    Start,
    Store(24 * 60 + 8),
    Prune,
    Store(25 * 60 + 1),
    Close,
];

/// A store, and the I/O that it must have.
struct Day<'d> {
    folder: &'d Path,
    settings: Settings,
    writer: Option<Writer>,
    /// I/O that writers took and did not lose at their end.
    taken: u64,
    /// I/O at the last checkpoint that succeeded.
    stored: u64,
    /// The number of I/O after each increment: a store has no part of one.
    sums: BTreeSet<u64>,
    /// I/O that writers took, with those that they lost.
    given: u64,
    /// Whether the writes of `history.db` fail alone. `recent.db` then may have windows that `history.db` lost with a kill.
    fails_history_alone: bool,
    /// The most I/O of such windows.
    surplus: u64,
    /// The files whose logs were not moved into them.
    logs_kept: Vec<PathBuf>,
}

impl<'d> Day<'d> {
    fn new(folder: &'d Path, vfs: &FaultyVfs, file: &str) -> Day<'d> {
        let settings = Settings {
            // A short log, so that SQLite moves its pages to the file every few checkpoints.
            bytes_max: 4 << 20,
            vfs: Some(vfs.name()),
            ..exact()
        };
        Day {
            folder,
            settings,
            writer: None,
            taken: 0,
            stored: 0,
            sums: [0].into(),
            given: 0,
            fails_history_alone: file == "history.db",
            surplus: 0,
            logs_kept: Vec::new(),
        }
    }

    fn start(&mut self) -> Result<(), HistoryError> {
        self.end();
        let opened = Writer::open_or_begin_in_memory(self.folder, self.settings.clone());
        let (writer, refused) = opened?;
        assert_eq!(writer.is_in_memory(), refused.is_some());
        self.writer = Some(writer);
        refused.map_or(Ok(()), Err)
    }

    /// Ends the writer without a checkpoint, as a kill does, and looks at the I/O that are left.
    fn end(&mut self) {
        self.writer = None;
        let found = total(self.folder);
        let most = self.taken + self.surplus;
        assert!(
            (self.stored..=most).contains(&found),
            "found {found} I/O after a kill, expected {} to {most}",
            self.stored
        );
        if self.fails_history_alone {
            self.surplus = most - self.stored;
            self.taken = self.stored;
        } else {
            assert!(self.sums.contains(&found), "a part of an increment");
            (self.taken, self.stored) = (found, found);
        }
    }

    fn add(&mut self, at_ns: i64, identity: &str) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        let mut profile = Profile::new("sda", Layer::Request, Table::default());
        let row = plumb_profile::table::Row {
            ios: IOS,
            ..Default::default()
        };
        profile.add_residue(plumb_trace::Op::Write, 512, 4096, false, &row);
        let increment = DeviceIncrement {
            identity,
            name: "sda",
            profile: &profile,
            senders: None,
        };
        let span = Span {
            from_ns: at_ns,
            to_ns: at_ns + MINUTE,
        };
        writer
            .add(span, &increment)
            .expect("memory takes an increment");
        if identity == IDENTITY {
            self.taken += IOS;
            self.given += IOS;
            self.sums.insert(self.taken);
        }
    }

    fn checkpoint(&mut self, at_ns: i64) -> Result<(), HistoryError> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        writer.checkpoint(at_ns)?;
        for notice in writer.take_notices() {
            match notice {
                Notice::LogKept { file, .. } => self.logs_kept.push(file),
                other => panic!("{other:?}"),
            }
        }
        self.stored = self.taken;
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), HistoryError> {
        let at_ns = |minute: i64| BEGIN + minute * MINUTE;
        match step {
            Start => self.start(),
            Note => {
                if let Some(writer) = &mut self.writer {
                    writer.note_host(HostFactRow {
                        at_ns: BEGIN,
                        name: "kernel".to_owned(),
                        value: Some("6.1".to_owned()),
                    });
                    let found = FindingStep::Found {
                        severity: "warning".to_owned(),
                        facts: "{}".to_owned(),
                    };
                    writer.note_finding(BEGIN, finding(), found);
                }
                self.checkpoint(BEGIN)
            }
            Old => {
                self.add(BEGIN - 3 * DAY, "other");
                self.checkpoint(BEGIN)
            }
            Store(minute) => {
                self.add(at_ns(minute), IDENTITY);
                self.checkpoint(at_ns(minute + 1))
            }
            Add(minute) => {
                self.add(at_ns(minute), IDENTITY);
                Ok(())
            }
            Prune => match &mut self.writer {
                Some(writer) if !writer.is_in_memory() => writer.prune(BEGIN - DAY).map(|_| ()),
                _ => Ok(()),
            },
            Close => self.checkpoint(BEGIN + 4 * DAY),
        }
    }

    /// The store at the end has all I/O that were not lost: each tier, and the sum over all time.
    fn is_whole(&mut self) {
        drop(self.writer.take());
        let most = self.taken + self.surplus;
        let found = total(self.folder);
        assert!(
            (self.taken..=most).contains(&found),
            "found {found} I/O of {} to {most}",
            self.taken
        );
        for tier in Tier::ALL {
            let found = ios_of(self.folder, tier);
            // A write of `recent.db` alone may have stored windows whose hours were lost.
            let most = match tier {
                Tier::FiveMinutes => self.given,
                _ => most,
            };
            assert!(
                (self.taken..=most).contains(&found),
                "{tier:?}: found {found} I/O of {} to {most}",
                self.taken
            );
        }
        assert!(is_sound(self.folder));
        let connection = rusqlite::Connection::open(self.folder.join("history.db"));
        let waiting = connection.expect("the file").query_row(
            "SELECT count(*) FROM open WHERE tier GLOB 'waiting *'",
            [],
            |row| row.get(0),
        );
        assert_eq!(waiting, Ok(0), "windows that were written are still kept");
        let reader = Reader::open(self.folder, &Settings::default()).expect("a store");
        let findings = reader.findings().expect("a sound file");
        let facts = reader.host_facts().expect("a sound file");
        assert!(findings.len() <= 1 && facts.len() <= 1, "noted once");
    }
}

fn finding() -> FindingKey {
    FindingKey {
        rule: "misaligned-io".to_owned(),
        place: "sda".to_owned(),
    }
}

/// A reader of the store through the layer of SQLite itself; `None` while there is no store.
fn reader(folder: &Path) -> Option<Reader> {
    match Reader::open(folder, &Settings::default()) {
        Err(HistoryError::Missing { .. }) => None,
        opened => Some(opened.expect("a store that opens")),
    }
}

/// All I/O of the device.
fn total(folder: &Path) -> u64 {
    let Some(reader) = reader(folder) else {
        return 0;
    };
    let series = reader.series().expect("devices");
    let of_device = series.iter().find(|one| one.identity == IDENTITY);
    let found = of_device.and_then(|one| reader.profile(one, EVER).expect("sound files"));
    found.map_or(0, |found| {
        assert_eq!(found.damaged, 0);
        found.profile.ios()
    })
}

/// The I/O of the device in the closed windows of a tier.
fn ios_of(folder: &Path, tier: Tier) -> u64 {
    let Some(reader) = reader(folder) else {
        return 0;
    };
    let series = reader.series().expect("devices");
    let Some(of_device) = series.iter().find(|one| one.identity == IDENTITY) else {
        return 0;
    };
    let rows = reader.glance(tier, EVER, Some(of_device.number));
    let rows = rows.expect("sound files");
    rows.iter().map(|row| row.glance.ios).sum()
}

/// The number of calls that change a file in the script.
fn calls(vfs: &FaultyVfs, file: &'static str) -> u64 {
    let room = temp_dir("faults-count");
    let folder = room.path().join("store");
    vfs.set(Some(FaultPlan {
        at: u64::MAX,
        lasts: false,
        fault: Fault::Error,
        file,
    }));
    let mut day = Day::new(&folder, vfs, file);
    for step in SCRIPT {
        day.step(step).expect("no fault");
    }
    let calls = vfs.calls().len() as u64;
    assert_eq!(day.logs_kept, <[PathBuf; 0]>::default(), "no fault");
    day.is_whole();
    calls
}

/// One write fails: the writer goes on, and in the end nothing is lost but the I/O that were not stored at an end of the writer. A fault
/// that is not reported has cost nothing.
fn fail_once(vfs: &FaultyVfs, plan: FaultPlan) -> Vec<PathBuf> {
    let room = temp_dir("faults-once");
    let folder = room.path().join("store");
    vfs.set(Some(plan));
    let mut day = Day::new(&folder, vfs, plan.file);
    for step in SCRIPT {
        let before = vfs.failed();
        let done = day.step(step);
        match done {
            Ok(()) if vfs.failed() > before && matches!(step, Store(_) | Close) => {
                assert_eq!(total(&folder), day.taken, "a silent fault lost I/O");
            }
            Ok(()) => {}
            Err(error) => {
                assert!(
                    vfs.failed() > before,
                    "{step:?} fails without a fault: {error}"
                );
                // A supervisor starts a writer that did not come up.
                if step == Start && day.writer.is_none() {
                    day.step(Start).expect("one fault alone");
                }
            }
        }
    }
    assert_eq!(vfs.failed(), 1);
    day.step(Close).expect("one fault alone");
    day.is_whole();
    day.logs_kept
}

/// All writes fail from one on: each checkpoint reports it. The writer is killed some steps later, the next one has no fault.
fn fail_from(vfs: &FaultyVfs, plan: FaultPlan) {
    let room = temp_dir("faults-from");
    let folder = room.path().join("store");
    vfs.set(Some(plan));
    let mut day = Day::new(&folder, vfs, plan.file);
    let mut steps = SCRIPT.into_iter();
    let mut left = STEPS_TO_KILL;
    for step in &mut steps {
        let is_failing = vfs.failed() > 0;
        let done = day.step(step);
        if is_failing && day.writer.is_some() && matches!(step, Store(_) | Close) {
            assert!(done.is_err(), "{step:?} reports no fault");
        }
        if vfs.failed() > 0 {
            left -= 1;
        }
        if left == 0 {
            break;
        }
    }
    assert!(vfs.failed() > 0);
    day.end();
    vfs.set(None);
    day.step(Start).expect("no fault");
    for step in steps {
        day.step(step).expect("no fault");
    }
    day.step(Close).expect("no fault");
    day.is_whole();
}

/// Runs a test for each call of the script, and names the one that fails it.
fn at_each_call(name: &str, faults: &[Fault], file: &'static str, lasts: bool) {
    let vfs = FaultyVfs::register(name);
    let calls = calls(&vfs, file);
    assert!(calls > 100, "{calls} calls");
    for fault in faults {
        for at in 0..calls {
            let plan = FaultPlan {
                at,
                lasts,
                fault: *fault,
                file,
            };
            let test = std::panic::AssertUnwindSafe(|| match lasts {
                true => fail_from(&vfs, plan),
                false => drop(fail_once(&vfs, plan)),
            });
            if let Err(panic) = std::panic::catch_unwind(test) {
                let calls = vfs.calls();
                eprintln!("{plan:?}, {:?}", calls.get(at as usize));
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// A log that cannot be moved into its file is noted once, and costs no I/O. SQLite alone would say nothing.
#[test]
fn a_log_that_stays_is_noted() {
    require!(Patience);
    let vfs = FaultyVfs::register("logs");
    let mut noted = 0;
    // Only the moves of the log write to the file itself after its making.
    for at in (calls(&vfs, "history.db") / 2)..calls(&vfs, "history.db") {
        let plan = FaultPlan {
            at,
            lasts: false,
            fault: Fault::Full,
            file: "history.db",
        };
        let files = fail_once(&vfs, plan);
        assert!(files.len() <= 1, "one fault, one notice");
        assert!(files.iter().all(|file| file.ends_with("history.db")));
        noted += files.len();
    }
    assert!(noted > 5, "{noted} notices");
}

/// A writer is killed at each call of the making of a store. Readers then find no history, and the next writer makes it.
#[test]
fn a_store_that_is_half_made_is_no_history() {
    let vfs = FaultyVfs::register("making");
    let mut journals = 0;
    for at in 0.. {
        let room = temp_dir("half-made");
        let settings = Settings {
            vfs: Some(vfs.name()),
            ..exact()
        };
        vfs.set(Some(FaultPlan {
            at,
            lasts: true,
            fault: Fault::Error,
            file: "",
        }));
        let made = Writer::open(room.path(), settings).is_ok();
        let is_over = vfs.failed() == 0;
        vfs.set(None);
        let journal =
            |name| std::fs::metadata(room.path().join(name)).is_ok_and(|it| it.len() > 20);
        journals += usize::from(journal("recent.db-journal") || journal("history.db-journal"));
        assert_eq!(total(room.path()), 0);
        if is_over {
            assert!(made);
            break;
        }
        Writer::open(room.path(), exact()).expect("the next writer");
        assert!(reader(room.path()).is_some());
    }
    assert!(journals > 2, "{journals} journals");
}

/// The same on a copy, which has content and no write-ahead log: readers name the way out, and the next writer finds all of it.
#[test]
fn a_copy_that_is_half_converted_is_named() {
    let room = temp_dir("half-converted");
    let (store, settings) = (room.path().join("store"), exact());
    std::fs::create_dir(&store).expect("room");
    let vfs = FaultyVfs::register("converting");
    vfs.set(None);
    let mut day = Day::new(&store, &vfs, "");
    for minute in [0, 1, 6] {
        if day.writer.is_none() {
            day.step(Start).expect("a store");
        }
        day.step(Store(minute)).expect("no fault");
    }
    let mut named = 0;
    for at in 0.. {
        let copy = room.path().join(format!("copy-{at}"));
        std::fs::create_dir(&copy).expect("room");
        let original = Reader::open(&store, &settings).expect("a store");
        original.back_up(&copy).expect("a copy");
        vfs.set(Some(FaultPlan {
            at,
            lasts: true,
            fault: Fault::Error,
            file: "",
        }));
        let faulty = Settings {
            vfs: Some(vfs.name()),
            ..exact()
        };
        let _ = Writer::open(&copy, faulty);
        let is_over = vfs.failed() == 0;
        vfs.set(None);
        match Reader::open(&copy, &settings) {
            Err(HistoryError::CutOff { .. }) => named += 1,
            opened => drop(opened.expect("a copy that opens")),
        }
        Writer::open(&copy, exact()).expect("the next writer");
        assert_eq!(total(&copy), 3 * IOS);
        if is_over {
            break;
        }
    }
    assert!(named > 0, "no copy was cut off");
}

#[test]
fn each_write_fails_once() {
    require!(Patience);
    at_each_call("once", &[Fault::Full], "", false);
}

#[test]
fn all_writes_fail_from_each_on() {
    require!(Patience);
    at_each_call("from", &[Fault::Torn], "", true);
}

#[test]
fn writes_of_one_file_fail() {
    require!(Patience);
    at_each_call("recent", &[Fault::Error], "recent.db", true);
    at_each_call("history", &[Fault::Error], "history.db", true);
}

#[test]
#[ignore = "minutes: make soak"]
fn each_write_fails_in_each_way() {
    const ALL: [Fault; 3] = [Fault::Error, Fault::Full, Fault::Torn];
    for file in ["", "recent.db", "history.db"] {
        for lasts in [false, true] {
            at_each_call(&format!("all-{file}-{lasts}"), &ALL, file, lasts);
        }
    }
}
