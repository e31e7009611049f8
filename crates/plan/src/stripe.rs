//! How large a chunk has to be so that only a wanted share of I/O crosses from one to the next, and is a whole number
//! of segments of the hardware below.
//!
//! The share is that of the starts base + k · step over one period, exactly: never the bare ratio of I/O to chunk,
//! which is right only for starts that are multiples of the I/O, one sector off (1 of 4 for 8 KiB on 32 KiB; none when
//! on it; 15 of 64 for starts at any sector).

use plumb_geometry::{Bytes, Grid, GridKind, SECTOR, Share, align_up, crossing_share};
use plumb_model::{Action, DeviceRef};
use plumb_quoting::Command;
use plumb_quoting::names::SVM;

use crate::error::PlanError;
use crate::plan::{Harm, Plan, Remedy, Step, Table, Unit, Value};

pub use plumb_model::action::Manager;

/// Smallest interlace of Solaris Volume Manager: MININTERLACE of illumos' md_stripe.h, 16 blocks.
const SVM_CHUNK_MIN: u64 = 16 * SECTOR;
/// Its largest: 100 MB in the manual of metainit.
const SVM_CHUNK_MAX: u64 = 100 << 20;
/// Largest chunk that is tried.
const CHUNK_MAX: u64 = 64 << 20;
/// Most candidates of a segment that are looked at: 64 MiB in segments of 4 KiB.
const CANDIDATES_MAX: u64 = CHUNK_MAX / 4096;

/// The starts of I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoStarts {
    /// At multiples of their length, from the start of the data.
    Pages,
    /// At any sector.
    AnySector,
}

/// A stripe to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripeRequest {
    /// Length of the I/O.
    pub io: Bytes,
    /// The start of the data, past a boundary of the stripe.
    pub base: Bytes,
    /// The starts of I/O.
    pub starts: IoStarts,
    /// Largest share of I/O that may cross.
    pub share_max: Share,
    /// Chunk to judge, if one is given.
    pub chunk: Option<Bytes>,
    /// Segment of the hardware below.
    pub segment: Option<Bytes>,
    /// Whose stripe.
    pub manager: Manager,
    /// The members.
    pub members: Vec<String>,
    /// Of them, those that hold parity in each stripe.
    pub parity: u32,
}

/// Share of I/O that cross from one chunk to the next.
#[must_use]
pub fn share(io: Bytes, chunk: Bytes, base: Bytes, starts: IoStarts) -> Option<Share> {
    // Data that begin `base` past a boundary see the boundaries that much earlier.
    let offset = (chunk.0 - base.0.checked_rem(chunk.0)?) % chunk.0;
    let grid = Grid::new(chunk, Bytes(offset), GridKind::Boundary).ok()?;
    let step = match starts {
        IoStarts::Pages => io,
        IoStarts::AnySector => Bytes(SECTOR),
    };
    crossing_share(io, &grid, step)
}

/// Whether one share is at most another, without rounding.
fn at_most(share: Share, limit: Share) -> bool {
    u128::from(share.numerator) * u128::from(limit.denominator)
        <= u128::from(limit.numerator) * u128::from(share.denominator)
}

/// The smallest chunk with at most the wanted share of crossings, for any base: a multiple of the segment if there is
/// one, and one that the manager accepts if possible, else a power of two.
#[must_use]
pub fn chunk_for(request: &StripeRequest) -> Option<Bytes> {
    let fits = |chunk: u64| {
        let chunk = Bytes(chunk);
        let fits = |base| {
            share(request.io, chunk, base, request.starts)
                .is_some_and(|share| at_most(share, request.share_max))
        };
        // A chunk that is right only while the data begin on it is not chosen: they often do not.
        request.io <= chunk && fits(request.base) && fits(Bytes(SECTOR))
    };
    let least = request.io.0.max(SVM_CHUNK_MIN);
    match request.segment {
        Some(Bytes(segment)) if segment > 0 => {
            let first = align_up(least, segment)? / segment;
            let all =
                (first..first.saturating_add(CANDIDATES_MAX)).map_while(|n| n.checked_mul(segment));
            let all = all
                .take_while(|chunk| *chunk <= CHUNK_MAX)
                .filter(|chunk| fits(*chunk));
            // The smallest that the manager accepts; if there is none, the smallest of all, with a note.
            let is_taken = |chunk: &u64| !takes_powers_of_two(request) || chunk.is_power_of_two();
            all.clone()
                .find(is_taken)
                .or_else(|| all.clone().next())
                .map(Bytes)
        }
        _ => {
            let first = least.checked_next_power_of_two()?;
            std::iter::successors(Some(first), |chunk| chunk.checked_mul(2))
                .take_while(|chunk| *chunk <= CHUNK_MAX)
                .find(|chunk| fits(*chunk))
                .map(Bytes)
        }
    }
}

/// Whether chunks of other lengths are refused: by LVM, and by md's RAID 4, 5 and 6.
fn takes_powers_of_two(request: &StripeRequest) -> bool {
    request.manager == Manager::Lvm || request.manager == Manager::Md && request.parity > 0
}

/// Works out the plan.
///
/// # Errors
/// When the I/O has no length, or no chunk up to 64 MiB will do.
pub fn plan(request: &StripeRequest) -> Result<Plan, PlanError> {
    check(request)?;
    let wanted = chunk_for(request);
    let chunk = match (request.chunk, wanted) {
        (Some(chunk), _) | (None, Some(chunk)) => chunk,
        (None, None) => {
            return Err(PlanError::Unreachable {
                what: "the chunk that this share needs",
                found: "more than 64 MiB".to_owned(),
                expected: "a larger share, or shorter I/O",
            });
        }
    };
    let mut plan = Plan::new("stripe", title(request, chunk, wanted));
    figures(&mut plan, request, chunk);
    plan.tables.push(table(request, chunk, wanted));
    let is_given_good = request.chunk.is_none_or(|given| is_good(request, given));
    match if is_given_good { Some(chunk) } else { wanted } {
        Some(target) => plan.add(remedies(request, target)),
        None => plan.refuse(
            "no chunk up to 64 MiB keeps the share: allow a larger one, or shorten the I/O",
        ),
    }
    notes(&mut plan, request, chunk);
    Ok(plan)
}

fn check(request: &StripeRequest) -> Result<(), PlanError> {
    let zero = |what| PlanError::OutOfRange {
        what,
        found: "0".to_owned(),
        expected: "at least one byte",
    };
    if request.io.0 == 0 {
        return Err(zero("the length of the I/O"));
    }
    if request.chunk == Some(Bytes(0)) {
        return Err(zero("the chunk"));
    }
    if request.segment == Some(Bytes(0)) {
        return Err(zero("the segment"));
    }
    let members = request.members.len() as u64;
    if request.parity > 2
        || members > 0 && u64::from(request.parity) + 2 > members && request.parity > 0
    {
        return Err(PlanError::OutOfRange {
            what: "the parity",
            found: format!("{} over {members} members", request.parity),
            expected: "1 or 2, and two members of data beside it",
        });
    }
    if request.parity > 1 && request.manager == Manager::Svm {
        return Err(PlanError::OutOfRange {
            what: "the parity",
            found: request.parity.to_string(),
            expected: "0 or 1: Solaris Volume Manager has RAID 5 at most",
        });
    }
    Ok(())
}

/// Whether a chunk has the wanted properties.
fn is_good(request: &StripeRequest, chunk: Bytes) -> bool {
    let share = share(request.io, chunk, request.base, request.starts);
    share.is_some_and(|share| at_most(share, request.share_max)) && is_whole(request, chunk)
}

fn is_whole(request: &StripeRequest, chunk: Bytes) -> bool {
    request
        .segment
        .is_none_or(|segment| chunk.0.is_multiple_of(segment.0))
}

fn title(request: &StripeRequest, chunk: Bytes, wanted: Option<Bytes>) -> String {
    match (request.chunk, wanted) {
        (Some(_), Some(wanted)) if !is_good(request, chunk) => {
            format!(
                "chunks of {chunk} for I/O of {}: {wanted} would do",
                request.io
            )
        }
        _ => format!("chunks of {chunk} for I/O of {}", request.io),
    }
}

fn figures(plan: &mut Plan, request: &StripeRequest, chunk: Bytes) {
    plan.figure("chunk_bytes", chunk, Unit::Bytes, "chunk");
    plan.figure(
        "chunk_sectors",
        chunk.0 / SECTOR,
        Unit::Sectors,
        "the same in sectors of 512 B",
    );
    if let Some(segment) = request.segment {
        if is_whole(request, chunk) {
            let segments = chunk.0 / segment.0;
            plan.figure(
                "segments",
                segments,
                Unit::Count,
                format!("segments of {segment} in a chunk"),
            );
        } else {
            let words =
                format!("past the last whole segment of {segment}: chunks cut segments in two");
            plan.figure(
                "past_segment_bytes",
                chunk.0 % segment.0,
                Unit::Bytes,
                words,
            );
        }
    }
    let members = request.members.len() as u64;
    let data = members.saturating_sub(u64::from(request.parity));
    if let Some(width) = chunk.checked_mul(data).filter(|_| data > 0) {
        let words = format!("stripe width: {data} members with data");
        plan.figure("stripe_bytes", width, Unit::Bytes, words);
    }
    let mut shares = vec![(
        "share_aligned",
        Bytes(0),
        IoStarts::Pages,
        "cross, pages from a boundary on",
    )];
    if request.base.0.is_multiple_of(chunk.0) {
        shares.push((
            "share_sector_off",
            Bytes(SECTOR),
            IoStarts::Pages,
            "cross, pages from one sector past it",
        ));
    } else {
        shares.push((
            "share_base",
            request.base,
            IoStarts::Pages,
            "cross, pages counted from the start of the data",
        ));
    }
    shares.push((
        "share_any_sector",
        Bytes(0),
        IoStarts::AnySector,
        "cross, starts at any sector",
    ));
    for (name, base, starts, words) in shares {
        plan.figure(
            name,
            share(request.io, chunk, base, starts),
            Unit::Share,
            words,
        );
    }
    plan.figure(
        "share_max",
        request.share_max,
        Unit::Share,
        "wanted at most",
    );
}

/// Candidates around the chosen one.
fn table(request: &StripeRequest, chunk: Bytes, wanted: Option<Bytes>) -> Table {
    let mut table = Table::new(
        "Share of I/O that cross, by chunk",
        &[
            ("chunk_bytes", "chunk", Unit::Bytes),
            ("share_aligned", "on it", Unit::Share),
            ("share_sector_off", "1 sector off", Unit::Share),
            ("share_any_sector", "any sector", Unit::Share),
        ],
    );
    let mut chunks: Vec<u64> = match request.segment {
        Some(Bytes(segment)) => [1, 2, 4, 8, 16, 20, 24]
            .iter()
            .filter_map(|n| segment.checked_mul(*n))
            .collect(),
        None => (14..=21).map(|power| 1 << power).collect(),
    };
    chunks.push(chunk.0);
    chunks.extend(wanted.map(|wanted| wanted.0));
    chunks.sort_unstable();
    chunks.dedup();
    for size in chunks.into_iter().map(Bytes) {
        if Some(size) == wanted.or(Some(chunk)) {
            table.chosen = Some(table.rows.len());
        }
        let of = |base, starts| Value::from(share(request.io, size, Bytes(base), starts));
        table.row(vec![
            size.into(),
            of(0, IoStarts::Pages),
            of(SECTOR, IoStarts::Pages),
            of(0, IoStarts::AnySector),
        ]);
    }
    table
}

fn remedies(request: &StripeRequest, chunk: Bytes) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if !request.base.0.is_multiple_of(chunk.0) && request.starts == IoStarts::Pages {
        remedies.push(
            Remedy::new(
                Harm::Tune,
                "begin the data on a chunk",
                "pages that begin on a boundary never cross, with any chunk, if they divide it",
            )
            .constraint("see `plumb plan partition` and `plumb plan softpart` for the start"),
        );
    }
    let recreate = Action::RecreateStripe {
        volume: DeviceRef::named("NEW"),
        manager: request.manager,
        members: request.members.iter().map(DeviceRef::named).collect(),
        parity: request.parity,
        chunk_bytes: chunk,
    };
    let made = match request.manager {
        Manager::Svm => svm(request, chunk),
        Manager::Lvm => lvm(request, chunk),
        Manager::Md | Manager::Zfs => md(request, chunk),
    };
    remedies.push(made.action(recreate));
    remedies
}

/// The members, or placeholders for them.
fn members(request: &StripeRequest) -> Vec<String> {
    if request.members.is_empty() {
        let count = 2 + request.parity as usize;
        return (1..=count).map(|at| format!("DISK{at}")).collect();
    }
    request.members.clone()
}

/// A size as tools of all systems take it: `960k`.
fn in_kib(bytes: Bytes) -> String {
    if bytes.0.is_multiple_of(1024) {
        format!("{}k", bytes.0 / 1024)
    } else {
        format!("{}b", bytes.0 / SECTOR)
    }
}

const ALL_LOST: &str = "all data of the members are lost: they come back from a copy";

fn svm(request: &StripeRequest, chunk: Bytes) -> Remedy {
    let members = members(request);
    let remedy = Remedy::new(Harm::Recreate, "with metainit", format!("chunks (interlace) of {chunk}"))
        .constraint("the interlace is fixed once the volume is made; 16 blocks (8 KiB) to 100 MB")
        .constraint(
            "in use: make the new stripe on other disks, metattach it to the mirror, wait for the resync, metadetach \
             the old one",
        );
    let remedy = if chunk.0 > SVM_CHUNK_MAX || chunk.0 < SVM_CHUNK_MIN {
        remedy.constraint("this chunk is outside that range")
    } else {
        remedy
    };
    let layout = if request.parity > 0 {
        Command::new("metainit dNEW -r")
    } else {
        Command::new("metainit dNEW 1").arg(members.len())
    };
    let layout = members
        .iter()
        .fold(layout, |layout, member| layout.name(SVM, member))
        .flags("-i")
        .arg(in_kib(chunk));
    remedy.step(Step::new(layout, ALL_LOST, Command::new("metaclear dNEW")))
}

fn md(request: &StripeRequest, chunk: Bytes) -> Remedy {
    let members = members(request);
    let level = match request.parity {
        0 => 0,
        1 => 5,
        _ => 6,
    };
    let remedy = Remedy::new(Harm::Recreate, "with mdadm", format!("chunks of {chunk}"));
    if takes_powers_of_two(request) && !chunk.0.is_power_of_two() {
        return remedy
            .constraint("RAID 4, 5 and 6 of md take powers of two only: no command is given");
    }
    let remedy = remedy
        .step(Step::new(
            Command::new("mdadm --create /dev/md/NEW")
                .arg(format!("--level={level}"))
                .arg(format!("--raid-devices={}", members.len()))
                .arg(format!("--chunk={}K", chunk.0 / 1024))
                .paths(&members),
            ALL_LOST,
            Command::new("mdadm --stop /dev/md/NEW && mdadm --zero-superblock").paths(&members),
        ))
        .step(Step::look(Command::new("mdadm --detail /dev/md/NEW")))
        .constraint(
            "an array with parity may change its chunk in use (mdadm --grow --chunk with --backup-file on another \
             disk); everything is copied twice",
        );
    if chunk.0.is_multiple_of(4096) {
        remedy
    } else {
        remedy.constraint("md takes whole 4 KiB only")
    }
}

fn lvm(request: &StripeRequest, chunk: Bytes) -> Remedy {
    let members = members(request);
    let remedy = Remedy::new(
        Harm::Recreate,
        "with LVM",
        format!("chunks (stripe size) of {chunk}"),
    );
    if takes_powers_of_two(request) && !chunk.0.is_power_of_two() {
        return remedy
            .constraint("LVM takes powers of two only: no command is given; use md below it");
    }
    let create = match request.parity {
        0 => Command::new("lvcreate"),
        1 => Command::new("lvcreate --type raid5"),
        _ => Command::new("lvcreate --type raid6"),
    };
    // LVM counts the members that hold data.
    let data = members.len() - request.parity as usize;
    remedy
        .step(Step::new(
            create
                .flags("-i")
                .arg(data)
                .flags("-I")
                .arg(format!("{}k", chunk.0 / 1024))
                .flags("-L SIZE -n NEW GROUP")
                .paths(&members),
            "takes free extents of the group only",
            Command::new("lvremove GROUP/NEW"),
        ))
        .constraint("the stripe size is fixed once the volume is made")
        .constraint(
            "the extent size of the group must be a multiple of the stripe width: vgs -o vg_extent_size",
        )
}

fn notes(plan: &mut Plan, request: &StripeRequest, chunk: Bytes) {
    if request.io > chunk {
        plan.note("the I/O is longer than a chunk: every one crosses");
    }
    if request.starts == IoStarts::Pages && !chunk.0.is_multiple_of(request.io.0) {
        plan.note(
            "the chunk is no multiple of the I/O: some cross even if the data begin on a boundary",
        );
    }
    if request.segment.is_none() {
        plan.note(
            "no segment of the hardware was given: on an array that stripes by itself the chunk should be a multiple \
             of its segment",
        );
    }
    plan.note(
        "one large sequential read then waits for one member at a time: read ahead by the stripe width",
    );
}
