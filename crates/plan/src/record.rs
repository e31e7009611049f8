//! The record size of a file system for a file, for pages of a stated size or the I/O of a profile: the bytes moved by
//! each candidate for each byte requested.
//!
//! Direct arithmetic as [`plumb_geometry::Fit`] has it: a read moves every record that it touches; a write moves them
//! as well, and first reads those that it covers in part. An upper bound: caches and neighbours save some of it. For a
//! page every start is laid out over one period, k · page modulo the record.

use plumb_geometry::{Bytes, Extent, Fit, Grid, gcd};
use plumb_profile::Profile;
use plumb_profile::fit::FitTally;
use plumb_profile::what_if::recorded;
use plumb_quoting::Command;
use plumb_quoting::names::ZFS;

use crate::error::PlanError;
use crate::filesystem::{Type, check_power};
use crate::plan::{Harm, Plan, Remedy, Step, Table, Unit, Value};

/// Candidates: a sector, then every power of two from 4 KiB to 1 MiB.
pub const CANDIDATES: [u64; 10] = [
    512,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
];

/// On a pool of 4 KiB blocks (ashift 12) a smaller record takes one all the same.
const ZFS_RECORD_MIN: u64 = 4 << 10;

/// Longest page that is laid out.
const PAGE_MAX: u64 = 16 << 20;

/// The keeper of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper {
    /// A file system of ZFS: recordsize.
    Zfs,
    /// A volume of ZFS: volblocksize.
    ZfsVolume,
    /// UFS: its block.
    Ufs,
}

/// The bytes that move on a record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moved {
    /// Bytes asked for by reads.
    pub read: u128,
    /// Bytes moved for them.
    pub read_moved: u128,
    /// Bytes asked for by writes.
    pub written: u128,
    /// Bytes written for them.
    pub write_moved: u128,
    /// Bytes read before that.
    pub read_first: u128,
}

impl Moved {
    /// Bytes moved per byte read; `None` without reads.
    #[must_use]
    pub fn read_amplification(&self) -> Option<f64> {
        ratio(self.read_moved, self.read)
    }

    /// Bytes moved for each byte written, reads before the write included; `None` without writes.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        ratio(self.write_moved + self.read_first, self.written)
    }

    fn total(&self) -> u128 {
        self.read_moved + self.write_moved + self.read_first
    }

    fn add(&mut self, fit: &Fit, grid: &Grid, len: Bytes) {
        self.read += u128::from(len.0);
        self.read_moved += fit.touched_bytes(grid);
        self.written += u128::from(len.0);
        self.write_moved += fit.touched_bytes(grid);
        self.read_first += fit.read_first_bytes(grid);
    }
}

fn ratio(part: u128, whole: u128) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The I/O.
#[derive(Clone, Copy, Debug)]
pub enum Load<'a> {
    /// Pages of this length, at multiples of it, read and written alike.
    Page(Bytes),
    /// I/O of the vfs layer.
    Profile(&'a Profile),
}

/// Records to be chosen.
#[derive(Clone, Debug)]
pub struct RecordRequest<'a> {
    /// The I/O.
    pub load: Load<'a>,
    /// The keeper of the records.
    pub keeper: Keeper,
    /// Its name: a data set, a volume, a device.
    pub name: String,
    /// The record now, if known.
    pub current: Option<Bytes>,
}

/// The bytes that the I/O move on records of a size.
///
/// # Errors
/// When there is no page, or the profile cannot tell.
pub fn moved(load: &Load<'_>, record: Bytes) -> Result<Moved, PlanError> {
    let grid = Grid::unit(record).map_err(|_| PlanError::OutOfRange {
        what: "the record",
        found: record.0.to_string(),
        expected: "at least one byte",
    })?;
    match load {
        Load::Page(page) => of_page(*page, &grid),
        Load::Profile(profile) => of_profile(profile, &grid),
    }
}

fn of_page(page: Bytes, grid: &Grid) -> Result<Moved, PlanError> {
    if page.0 == 0 || page.0 > PAGE_MAX {
        let found = page.0.to_string();
        return Err(PlanError::OutOfRange {
            what: "the page",
            found,
            expected: "1 byte to 16 MiB",
        });
    }
    let record = grid.granularity().0;
    // Pages that are odd to the record visit every multiple of the divisor; beyond some thousands nothing changes.
    let starts = (record / gcd(page.0, record)).min(1 << 16);
    let mut moved = Moved::default();
    for k in 0..starts {
        let extent = Extent::new(Bytes(k * page.0), page);
        if let Some(fit) = extent
            .ok()
            .and_then(|extent| Fit::from_extent(extent, grid))
        {
            moved.add(&fit, grid, page);
        }
    }
    Ok(moved)
}

fn of_profile(profile: &Profile, grid: &Grid) -> Result<Moved, PlanError> {
    let recorded = recorded(&profile.places.table, profile.layer, grid)?;
    // Amplifications are upper bounds, so ranges count with the end that makes them largest.
    let bytes = |tally: &Option<FitTally>| {
        tally.as_ref().map_or((0, 0, 0), |tally| {
            (
                tally.bytes.low,
                tally.touched_bytes.high,
                tally.read_first_bytes.high,
            )
        })
    };
    let (read, read_moved, _) = bytes(&recorded.reads);
    let (written, write_moved, read_first) = bytes(&recorded.writes);
    Ok(Moved {
        read,
        read_moved,
        written,
        write_moved,
        read_first,
    })
}

/// The candidate that moves the least; the largest of several, since every record has its own overhead.
///
/// # Errors
/// As [`moved`].
pub fn best(load: &Load<'_>, keeper: Keeper) -> Result<Bytes, PlanError> {
    let mut best: Option<(u128, Bytes)> = None;
    for record in candidates(keeper) {
        let total = moved(load, record)?.total();
        if best.is_none_or(|(least, _)| total <= least) {
            best = Some((total, record));
        }
    }
    best.map(|(_, record)| record).ok_or(PlanError::Missing {
        what: "a candidate",
        give: "give a page",
    })
}

fn candidates(keeper: Keeper) -> impl Iterator<Item = Bytes> {
    let fits = move |record: &u64| match keeper {
        Keeper::Zfs => *record >= ZFS_RECORD_MIN,
        // volblocksize ends at 128 KiB where large blocks are not enabled; UFS of Solaris has 4 KiB and 8 KiB.
        Keeper::ZfsVolume => (ZFS_RECORD_MIN..=128 << 10).contains(record),
        Keeper::Ufs => matches!(*record, 4096 | 8192),
    };
    CANDIDATES.into_iter().filter(fits).map(Bytes)
}

/// An impossible record size is a mistake of the user.
fn check_current(keeper: Keeper, current: Bytes) -> Result<(), PlanError> {
    match keeper {
        Keeper::Zfs | Keeper::ZfsVolume => check_power("the record", current, Type::Zfs.blocks()),
        Keeper::Ufs => check_power("the block", current, Type::Ufs.blocks()),
    }
}

/// Works out the plan.
///
/// # Errors
/// As [`moved`], or for a record that the keeper does not have.
pub fn plan(request: &RecordRequest<'_>) -> Result<Plan, PlanError> {
    if let Some(current) = request.current {
        check_current(request.keeper, current)?;
    }
    let best = best(&request.load, request.keeper)?;
    let of = match request.load {
        Load::Page(page) => format!("pages of {page}"),
        Load::Profile(profile) => format!(
            "the I/O of {} ({} layer)",
            profile.device,
            profile.layer.word()
        ),
    };
    let mut plan = Plan::new("record", format!("records of {best} for {of}"));
    plan.figure(
        "record_bytes",
        best,
        Unit::Bytes,
        "record that moves the least",
    );
    let least = moved(&request.load, best)?;
    plan.figure(
        "read_amplification",
        least.read_amplification(),
        Unit::Ratio,
        "bytes moved per byte read, at most",
    );
    let words = "bytes moved per byte written, at most, including the reads before partial writes";
    plan.figure(
        "write_amplification",
        least.write_amplification(),
        Unit::Ratio,
        words,
    );
    if let Some(current) = request.current {
        let now = moved(&request.load, current)?;
        plan.figure("current_bytes", current, Unit::Bytes, "record now");
        plan.figure(
            "current_read_amplification",
            now.read_amplification(),
            Unit::Ratio,
            "of reads now",
        );
        plan.figure(
            "current_write_amplification",
            now.write_amplification(),
            Unit::Ratio,
            "of writes now",
        );
    }
    plan.tables.push(table(request, best)?);
    if request.current != Some(best) {
        plan.add(remedies(request, best));
    }
    plan.note(
        "an upper bound: cached data are not read again, and neighbours that are written together share \
         records. Only a measurement shows the gain",
    );
    if let Load::Profile(_) = request.load {
        plan.note("a changed record changes the requests below it: the figures are for these I/O of the application");
    }
    Ok(plan)
}

fn table(request: &RecordRequest<'_>, best: Bytes) -> Result<Table, PlanError> {
    let mut table = Table::new(
        "Bytes moved per byte asked for, at most",
        &[
            ("record_bytes", "record", Unit::Bytes),
            ("read_amplification", "reads", Unit::Ratio),
            ("write_amplification", "writes", Unit::Ratio),
            ("read_first", "read first", Unit::Ratio),
        ],
    );
    for record in candidates(request.keeper) {
        if record == best {
            table.chosen = Some(table.rows.len());
        }
        let moved = moved(&request.load, record)?;
        let first: Value = ratio(moved.read_first, moved.written).into();
        table.row(vec![
            record.into(),
            moved.read_amplification().into(),
            moved.write_amplification().into(),
            first,
        ]);
    }
    Ok(table)
}

fn remedies(request: &RecordRequest<'_>, best: Bytes) -> Vec<Remedy> {
    let name = request.name.as_str();
    let effect = format!("records of {best}");
    match request.keeper {
        Keeper::Zfs => vec![new_files(name, best, &effect), old_files(name, effect)],
        Keeper::ZfsVolume => vec![new_volume(name, best, effect)],
        Keeper::Ufs => vec![past_cache(name), blocks(name, best)],
    }
}

fn new_files(name: &str, best: Bytes, effect: &str) -> Remedy {
    Remedy::new(Harm::Tune, "for new files", effect)
        .step(Step::look(
            Command::new("zfs get -Hp -o value recordsize").name(ZFS, name),
        ))
        .step(Step::new(
            Command::new("zfs set")
                .arg(format!("recordsize={}", best.0))
                .name(ZFS, name),
            "files that exist keep their records",
            "zfs set recordsize with the value from before",
        ))
        .constraint("new files only: a file keeps the record that it was made with")
}

fn old_files(name: &str, effect: String) -> Remedy {
    let snapshot =
        |command: &'static str| Command::new(command).named(ZFS, "", name, "@before-record");
    Remedy::new(Harm::Recreate, "for the files that exist", effect)
        .step(Step::new(
            snapshot("zfs snapshot"),
            "rewritten data take their space twice while the snapshot exists",
            snapshot("zfs destroy"),
        ))
        .step(Step::new(
            Command::new("cp -p FILE FILE.new && cmp FILE FILE.new && mv FILE.new FILE"),
            "a program that has the file open continues with the old one: stop it first",
            Command::new("cp -p MOUNTPOINT/.zfs/snapshot/before-record/FILE FILE"),
        ))
        .constraint("no zfs rollback to the snapshot: it takes back all that was written since, to all files")
        .constraint("after recordsize was set, one file at a time, with room for the largest")
        .constraint("zfs rewrite and zfs send keep the records as they are: neither of them will do")
        .constraint("hard links and sparse files do not come out as they were: look for them first")
}

fn new_volume(name: &str, best: Bytes, effect: String) -> Remedy {
    let get = |values: &'static str| Command::new("zfs get -Hp -o").flags(values).name(ZFS, name);
    let rename = |from: &'static str, to: &'static str| {
        Command::new("zfs rename")
            .named(ZFS, "", name, from)
            .named(ZFS, "", name, to)
    };
    Remedy::new(Harm::Recreate, "a new volume", effect)
        .step(Step::look(get("property,value volblocksize,volsize")))
        .step(Step::new(
            Command::new("zfs create -V")
                .output_of(get("value volsize"))
                .flags("-o")
                .arg(format!("volblocksize={}", best.0))
                .named(ZFS, "", name, ".new"),
            "takes the space of the volume once more",
            Command::new("zfs destroy").named(ZFS, "", name, ".new"),
        ))
        .step(Step::new(
            Command::new("dd")
                .named(ZFS, "if=/dev/zvol/", name, "")
                .named(ZFS, "of=/dev/zvol/", name, ".new")
                .flags("bs=1M conv=fsync"),
            "the volume must not be in use: a copy of a changing one is worth nothing",
            "none needed: the old one is only read",
        ))
        .step(Step::new(
            rename("", ".old").and(rename(".new", "")),
            "a configuration that names the volume by its device number must be changed",
            rename("", ".new").and(rename(".old", "")),
        ))
        .constraint("volblocksize can be set only when the volume is made")
        .constraint(
            "on Solaris the nodes are /dev/zvol/dsk/... and dd has no conv=fsync: sync afterwards",
        )
}

fn past_cache(name: &str) -> Remedy {
    let effect = "a page is written as it is, with any block size";
    Remedy::new(Harm::Tune, "past the cache", effect)
        .step(Step::new(
            Command::new("mount -o remount,forcedirectio").path(name),
            "objects that live from the cache are read from disk again: look at the load first",
            Command::new("mount -o remount,noforcedirectio").path(name),
        ))
        .constraint("for databases that cache by themselves")
}

fn blocks(name: &str, best: Bytes) -> Remedy {
    let effect = "blocks of the database are blocks of the disk";
    let title = format!("blocks and fragments of {best}");
    Remedy::new(Harm::Recreate, title, effect)
        .step(Step::new(
            Command::new("newfs -b")
                .arg(best.0)
                .flags("-f")
                .arg(best.0)
                .path(name),
            "everything on the device is lost",
            "only from a copy",
        ))
        .constraint("of a page that is shorter than the block the rest of the block is read first")
}
