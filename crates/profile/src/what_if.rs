//! The effect of another layout on the recorded I/O. Exact arithmetic on these requests, and no forecast: each answer
//! states its class.

use serde::Serialize;

use plumb_geometry::{Bounds, Bytes, Grid, Lengths, Share, split_share};
use plumb_trace::{Layer, Op};

use crate::fit::{FitTally, Select, Unknown};
use crate::table::Table;

/// How far an answer reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Exact for these requests.
    ExactForTheseRequests,
    /// A range for these requests: a full table dropped detail.
    RangeForTheseRequests,
    /// Needs requests recorded above the layer in question.
    NeedsTheLayerAbove,
    /// The layout would change the requests themselves: an estimate that an experiment has to prove.
    ChangesTheRequests,
}

impl Class {
    /// The class of an answer about the same requests elsewhere.
    #[must_use]
    pub const fn of_moved(tally: &FitTally) -> Class {
        let are_ranges = tally.misaligned.low < tally.misaligned.high
            || tally.split.low < tally.split.high
            || tally.cells.low < tally.cells.high
            || tally.bytes.low < tally.bytes.high;
        match are_ranges {
            true => Class::RangeForTheseRequests,
            false => Class::ExactForTheseRequests,
        }
    }

    /// The words used in output.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Class::ExactForTheseRequests => "exact for these requests",
            Class::RangeForTheseRequests => "a range for these requests",
            Class::NeedsTheLayerAbove => "needs the layer above",
            Class::ChangesTheRequests => "changes the requests",
        }
    }
}

/// Why a what-if is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// The layer recorded is below the one in question.
    #[error("a record is decided above the {} layer: this takes a trace of the vfs layer", layer.word())]
    LayerAbove {
        /// Layer recorded.
        layer: Layer,
    },
    /// The table cannot tell.
    #[error(transparent)]
    Unknown(#[from] Unknown),
}

/// All starts moved by `by_bytes`, as a partition that begins elsewhere would: the same as the grid moved back.
///
/// # Errors
/// When the table cannot tell.
pub fn shifted(
    table: &Table,
    grid: &Grid,
    by_bytes: i64,
    select: Select,
) -> Result<FitTally, Unknown> {
    if !grid.divides(table.base_modulus_bytes()) {
        return Err(table.too_coarse(grid));
    }
    table.fit(&moved_back(grid, by_bytes), select)
}

/// The grid with the same fit as `grid` after all starts moved by `by_bytes`.
#[must_use]
pub fn moved_back(grid: &Grid, by_bytes: i64) -> Grid {
    let granularity = grid.granularity().0;
    let back = by_bytes.unsigned_abs() % granularity;
    let back = if by_bytes < 0 {
        (granularity - back) % granularity
    } else {
        back
    };
    let ahead = granularity - back;
    let offset = grid.offset().0;
    let offset = if offset < back {
        offset + ahead
    } else {
        offset - back
    };
    Grid::new(grid.granularity(), Bytes(offset), grid.kind()).unwrap_or(*grid)
}

/// The load of one member of a stripe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemberLoad {
    /// Pieces of I/O.
    pub pieces: Bounds<u64>,
    /// I/O whose first byte is on this member.
    pub ios: u64,
    /// Bytes.
    pub bytes: Bounds<u128>,
}

/// The share of I/O of the most frequent length that random sectors would split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SplitOfCommonest {
    /// The length.
    pub len_bytes: Bytes,
    /// The share.
    pub split: Share,
}

/// The effect of a stripe on the requests of the striped device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Striped {
    /// Size of a chunk.
    pub chunk_bytes: Bytes,
    /// Class of the answer.
    pub class: Class,
    /// The fit of the requests on the chunks.
    pub tally: FitTally,
    /// Share of splits that random starts on every sector would give, weighted by the lengths seen.
    pub expected_split_share: Bounds<f64>,
    /// The same for the most frequent length, exactly.
    pub expected_of_commonest: Option<SplitOfCommonest>,
    /// PieceLoad by member; `None` when members were not given, or the table cannot tell.
    pub members: Option<Vec<MemberLoad>>,
    /// Why there is no load by member although it was asked for.
    pub members_unknown: Option<Unknown>,
}

/// Lays the requests on a stripe of `members` chunks, the first at offset 0.
///
/// # Errors
/// When the table cannot tell.
pub fn striped(table: &Table, chunk: &Grid, members: Option<u32>) -> Result<Striped, Unknown> {
    let tally = table.fit(chunk, Select::DATA)?;
    let unit = Bytes(table.unit_bytes().max(512));
    let share = |length: u64| split_share(Bytes(length), chunk, unit);
    let commonest = table.commonest_length(Select::DATA);
    let loads = members.map(|members| member_loads(table, chunk, members));
    let (members, members_unknown) = match loads {
        Some(Ok(loads)) => (Some(loads), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, None),
    };
    Ok(Striped {
        chunk_bytes: chunk.granularity(),
        class: Class::of_moved(&tally),
        tally,
        expected_split_share: expected_split_share(table, chunk, unit),
        expected_of_commonest: commonest.and_then(|(length, _)| {
            Some(SplitOfCommonest {
                len_bytes: Bytes(length),
                split: share(length)?,
            })
        }),
        members,
        members_unknown,
    })
}

/// Share of splits that random starts would give, weighted by the lengths seen.
fn expected_split_share(table: &Table, chunk: &Grid, unit: Bytes) -> Bounds<f64> {
    let (mut ios, mut split) = (0.0, Bounds::exact(0.0));
    for (key, row) in table.iter() {
        if !Select::DATA.takes(key, table.unit_bytes()) {
            continue;
        }
        let len = table.len_bytes(key);
        let step = Bytes(table.unit_bytes());
        let Some(lengths) = Lengths::new(Bytes(len.low), Bytes(len.high), step) else {
            continue;
        };
        let rests = lengths.rests(chunk.granularity());
        let share = |rest: u64| {
            split_share(Bytes(rest), chunk, unit).map_or(0.0, |share| {
                share.numerator as f64 / share.denominator as f64
            })
        };
        ios += row.ios as f64;
        split.low += row.ios as f64 * share(rests.low);
        split.high += row.ios as f64 * share(rests.high);
    }
    split.map(|split| split / f64::max(ios, 1.0))
}

fn member_loads(table: &Table, chunk: &Grid, members: u32) -> Result<Vec<MemberLoad>, Unknown> {
    let members = u64::from(members.max(1));
    let size = chunk.granularity().0;
    let stripe = size.saturating_mul(members);
    if !table.modulus_bytes().is_multiple_of(stripe) {
        return Err(Unknown::Modulus {
            granularity: Bytes(stripe),
            modulus: Bytes(table.modulus_bytes()),
        });
    }
    let mut loads = vec![MemberLoad::default(); usize::try_from(members).unwrap_or(1)];
    let unit = table.unit_bytes();
    for (key, row) in table
        .iter()
        .filter(|(key, _)| Select::DATA.takes(*key, unit))
    {
        let start = (key.residue() * unit + stripe - chunk.offset().0 % stripe) % stripe;
        let load = &mut loads[(start / size % members) as usize];
        load.ios = load.ios.saturating_add(row.ios);
        let len = table.len_bytes(key);
        spread(&mut loads, start, len.low, size, row.ios, |load, more| {
            load.pieces.low = load.pieces.low.saturating_add(more.pieces);
            load.bytes.low = load.bytes.low.saturating_add(more.bytes);
        });
        spread(&mut loads, start, len.high, size, row.ios, |load, more| {
            load.pieces.high = load.pieces.high.saturating_add(more.pieces);
            load.bytes.high = load.bytes.high.saturating_add(more.bytes);
        });
    }
    Ok(loads)
}

/// The load of some extents on one member.
#[derive(Default)]
struct PieceLoad {
    pieces: u64,
    bytes: u128,
}

/// Adds `ios` extents to the members that they touch: every chunk touched is a piece. `start` is below a stripe.
fn spread(
    loads: &mut [MemberLoad],
    start: u64,
    len: u64,
    chunk: u64,
    ios: u64,
    add: impl Fn(&mut MemberLoad, PieceLoad),
) {
    let members = loads.len() as u64;
    let stripe = chunk * members;
    let first = start / chunk;
    let chunks = (start % chunk).saturating_add(len).div_ceil(chunk);
    let (turns, rest) = (chunks / members, chunks % members);
    for turn in 0..members {
        let pieces = ios.saturating_mul(turns + u64::from(turn < rest));
        let bytes = u128::from(len / stripe * chunk) * u128::from(ios);
        add(
            &mut loads[((first + turn) % members) as usize],
            PieceLoad { pieces, bytes },
        );
    }
    let (mut at, mut left) = (start, len % stripe);
    while left > 0 {
        let piece = left.min(chunk - at % chunk);
        let bytes = u128::from(piece) * u128::from(ios);
        add(
            &mut loads[(at / chunk % members) as usize],
            PieceLoad { pieces: 0, bytes },
        );
        at += piece;
        left -= piece;
    }
}

/// The effect of records on the requests of an application.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recorded {
    /// Size of a record.
    pub record_bytes: Bytes,
    /// The grid of the records.
    #[serde(skip)]
    pub record: Grid,
    /// Class of the answer.
    pub class: Class,
    /// Reads on the records; `None` without reads.
    pub reads: Option<FitTally>,
    /// Writes on the records; `None` without writes.
    pub writes: Option<FitTally>,
}

/// Lays the requests of the vfs layer on records.
///
/// # Errors
/// When the requests are those of a lower layer, or the table cannot tell.
pub fn recorded(table: &Table, layer: Layer, record: &Grid) -> Result<Recorded, Refusal> {
    if layer != Layer::Vfs {
        return Err(Refusal::LayerAbove { layer });
    }
    table.can_answer(record)?;
    Ok(Recorded {
        record_bytes: record.granularity(),
        record: *record,
        class: Class::ChangesTheRequests,
        reads: table.fit(record, Select::op(Op::Read)).ok(),
        writes: table.fit(record, Select::op(Op::Write)).ok(),
    })
}
