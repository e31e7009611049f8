//! For how long how many intervals were open, of intervals that begin one after the other.
//!
//! Level 1 is the latest end of the open intervals, level 2 the second latest, and so on: level n is ahead exactly as
//! long as n intervals are open. A new end goes down the levels: at each the later one stays and the earlier one moves
//! on. This takes no unpredictable branch, and several stretches of intervals can do it side by side. If more are open
//! than there are levels, a heap of ends takes over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::columns::BLOCK_EVENTS;
use crate::histogram::{Counts, log_linear_index};

/// The end of no interval: before all times.
pub(super) const NEVER: i64 = i64::MIN;

/// The beginning of no interval: after all times.
pub(super) const LATE: i64 = i64::MAX;

/// Stretches that go side by side.
pub(super) const LANES: usize = 4;

/// Steps of a stretch.
pub(super) const STEPS: usize = BLOCK_EVENTS / LANES;

/// Levels that are worked out at a time.
const GROUP: usize = 6;

/// With more levels than this a heap takes less time.
const LEVELS: usize = 6 * GROUP;

/// One of each stretch.
pub(super) type Lane = [i64; LANES];

/// A column of a block, cut into parallel stretches.
pub(super) type LaneColumn = [Lane; STEPS];

/// Intervals that begin one after the other.
#[derive(Clone, Copy)]
pub(super) struct Intervals<'a> {
    /// Until where time was looked at before.
    pub(super) from_ns: i64,
    /// How many there are. Rows beyond repeat the last time, and have no end.
    pub(super) rows: usize,
    /// The begin of each, rising; without one, the end of the time.
    pub(super) times_ns: &'a LaneColumn,
    /// The same, or [`LATE`] where none begins that counts as one more.
    pub(super) begins_ns: &'a LaneColumn,
    /// When each ends, or [`NEVER`] where none begins.
    pub(super) ends_ns: &'a LaneColumn,
    /// The end of an open interval that the new one replaces because they count as one; [`NEVER`] without one. Absent
    /// if there is none anywhere.
    pub(super) replaced_ns: Option<&'a LaneColumn>,
}

/// How many intervals are open, and for how long how many were; see the module.
#[derive(Clone)]
pub(super) struct Overlap {
    /// Ends of the intervals that are open, the latest first; empty when they are many.
    ends_ns: Vec<i64>,
    many: Option<Many>,
    /// The time that each level was ahead.
    ahead_ns: [u64; LEVELS],
    /// For how long how many were open, where they were many: log-linear buckets.
    many_ns: Counts,
    /// Most that were open before another one began.
    most: u64,
    /// Buffers for each block, kept for reuse.
    room: Room,
}

/// Lists that a block needs while it is looked at.
#[derive(Clone, Default)]
struct Room {
    /// Ends of the intervals that are open, as [`Overlap::ends_ns`].
    open_ns: Vec<i64>,
    /// By lane, ends beyond it.
    beyond_ns: Vec<(usize, i64)>,
    /// By lane, replaced intervals that would have ended beyond it.
    replaced_ns: Vec<(usize, i64)>,
}

impl Default for Overlap {
    fn default() -> Overlap {
        Overlap {
            ends_ns: Vec::new(),
            many: None,
            ahead_ns: [0; LEVELS],
            many_ns: Counts::default(),
            most: 0,
            room: Room::default(),
        }
    }
}

impl Overlap {
    /// Goes on from the beginning of one interval to that of the next.
    #[inline(always)]
    pub(super) fn go(&mut self, given: Intervals<'_>) {
        if self.many.is_none() && self.go_by_levels(given).is_some() {
            return;
        }
        let ends = &mut self.ends_ns;
        let many = self
            .many
            .get_or_insert_with(|| Many::from_ends(std::mem::take(ends)));
        self.most = self.most.max(many.go(given, &mut self.many_ns));
        if many.open <= LEVELS / 2 {
            self.ends_ns = self.many.take().map(Many::ends_ns).unwrap_or_default();
        }
    }

    /// When the last of those that are open ends.
    pub(super) fn last_end_ns(&self) -> Option<i64> {
        let many = self
            .many
            .iter()
            .flat_map(|many| many.changes.iter().map(|Reverse(change)| change.0));
        many.chain(self.ends_ns.first().copied()).max()
    }

    /// Most that were open before another one began, since this was last asked for.
    pub(super) fn take_most(&mut self) -> u64 {
        std::mem::take(&mut self.most)
    }

    /// Adds the times that were counted to `times`, by log-linear buckets of how many were open; `all_ns` is how long
    /// that was looked at.
    pub(super) fn put_times_into(&mut self, all_ns: u64, times: &mut Counts) {
        let many_ns = std::mem::take(&mut self.many_ns);
        let mut more_ns = all_ns.saturating_sub(many_ns.total());
        for (fewer, ahead_ns) in self.ahead_ns.iter_mut().map(std::mem::take).enumerate() {
            times.add(log_linear_index(fewer as u64), more_ns - ahead_ns);
            more_ns = ahead_ns;
        }
        times.add(log_linear_index(LEVELS as u64), more_ns);
        times.merge(&many_ns);
    }

    /// Leaves everything as it is when there are too few levels.
    #[inline(always)]
    fn go_by_levels(&mut self, given: Intervals<'_>) -> Option<()> {
        let mut levels = [[NEVER; LANES]; LEVELS];
        let deepest = given.open_by_lane(&self.ends_ns, &mut levels, &mut self.room)?;
        let (mut ahead_ns, mut most, mut group) = ([0; LEVELS], 0, 0);
        let mut ends_ns = *given.ends_ns;
        loop {
            let at = group * GROUP;
            let levels = levels.get_mut(at..)?.first_chunk_mut()?;
            let passed = match given.replaced_ns {
                Some(replaced_ns) => {
                    pass(given, levels, &mut ends_ns, |step| Some(replaced_ns[step]))
                }
                None => pass(given, levels, &mut ends_ns, |_| None),
            };
            ahead_ns[at..at + GROUP].copy_from_slice(&passed.ahead_ns);
            most += passed.most;
            group += 1;
            if !passed.has_rest && deepest <= group * GROUP {
                break;
            }
        }
        for (sum, ns) in self.ahead_ns.iter_mut().zip(ahead_ns) {
            *sum = sum.wrapping_add(ns);
        }
        self.most = self.most.max(most);
        std::mem::swap(&mut self.ends_ns, &mut self.room.open_ns);
        Some(())
    }
}

impl Intervals<'_> {
    /// The time of each lane's last row.
    #[inline(always)]
    fn last_ns(&self) -> Lane {
        self.times_ns[STEPS - 1]
    }

    /// Writes the ends that are open where each lane begins into its levels, and those that are at the end, the latest
    /// first, into the room. Tells how many were open at most; nothing when these are more than there are levels.
    #[inline(always)]
    fn open_by_lane(
        &self,
        ends_ns: &[i64],
        levels: &mut [Lane; LEVELS],
        room: &mut Room,
    ) -> Option<usize> {
        let Room {
            open_ns,
            beyond_ns,
            replaced_ns,
        } = room;
        open_ns.clear();
        open_ns.extend_from_slice(ends_ns);
        list_later(self.last_ns(), self.ends_ns, beyond_ns);
        replaced_ns.clear();
        self.replaced_ns
            .into_iter()
            .for_each(|column| list_later(self.last_ns(), column, replaced_ns));
        let mut deepest = 0;
        for (lane, now_ns) in self.last_ns().into_iter().enumerate() {
            deepest = deepest.max(open_ns.len());
            open_ns
                .iter()
                .zip(&mut *levels)
                .for_each(|(&end_ns, level)| level[lane] = end_ns);
            open_ns.retain(|&end_ns| end_ns > now_ns);
            open_ns.extend(of_lane(beyond_ns, lane));
            for end_ns in of_lane(replaced_ns, lane) {
                open_ns
                    .iter()
                    .position(|&open_ns| open_ns == end_ns)
                    .map(|at| open_ns.swap_remove(at));
            }
            open_ns.sort_unstable_by_key(|&end_ns| Reverse(end_ns));
            if open_ns.len() > LEVELS {
                return None;
            }
        }
        Some(deepest)
    }
}

/// Lists the few times of each lane that are later than the last one given.
#[inline(always)]
fn list_later(last_ns: Lane, column: &LaneColumn, later: &mut Vec<(usize, i64)>) {
    later.clear();
    for times_ns in column {
        if (0..LANES).fold(false, |any, lane| any | (times_ns[lane] > last_ns[lane])) {
            let lanes = times_ns.iter().zip(&last_ns).enumerate();
            later.extend(
                lanes
                    .filter(|(_, (time, last))| time > last)
                    .map(|(lane, (&time, _))| (lane, time)),
            );
        }
    }
}

fn of_lane(times_ns: &[(usize, i64)], lane: usize) -> impl Iterator<Item = i64> {
    times_ns
        .iter()
        .filter(move |time| time.0 == lane)
        .map(|time| time.1)
}

/// The result of a group of levels.
struct Passed {
    /// The time that each was ahead.
    ahead_ns: [u64; GROUP],
    /// The largest number ahead when an interval began.
    most: u64,
    /// Whether an end came out below that was still to come.
    has_rest: bool,
}

/// Takes ends down a group of levels, and leaves those that come out below.
#[inline(always)]
#[expect(
    clippy::needless_range_loop,
    reason = "an iterator over steps costs a third more, since lanes leave their registers"
)]
fn pass(
    given: Intervals<'_>,
    levels: &mut [Lane; GROUP],
    ends_ns: &mut LaneColumn,
    replaced_ns: impl Fn(usize) -> Option<Lane>,
) -> Passed {
    let last_ns = given.last_ns();
    let mut now_ns = each(|lane| {
        if lane == 0 {
            given.from_ns
        } else {
            last_ns[lane - 1]
        }
    });
    let (mut ahead_ns, mut most, mut rest) = ([[0i64; LANES]; GROUP], [0; LANES], [0; LANES]);
    for step in 0..given.rows.min(STEPS) {
        let (time_ns, mut end_ns, replaced_ns) =
            (given.times_ns[step], ends_ns[step], replaced_ns(step));
        let (begins_ns, mut ahead) = (given.begins_ns[step], [0; LANES]);
        for level in 0..GROUP {
            let level_ns = levels[level];
            let reached_ns = earlier(later(level_ns, now_ns), time_ns);
            ahead_ns[level] = each(|lane| {
                ahead_ns[level][lane].wrapping_add(reached_ns[lane].wrapping_sub(now_ns[lane]))
            });
            ahead = each(|lane| ahead[lane] + i64::from(level_ns[lane] > begins_ns[lane]));
            levels[level] = later(level_ns, end_ns);
            end_ns = earlier(level_ns, end_ns);
            if let Some(replaced_ns) = replaced_ns {
                end_ns = each(|lane| {
                    if end_ns[lane] == replaced_ns[lane] {
                        NEVER
                    } else {
                        end_ns[lane]
                    }
                });
            }
        }
        most = later(most, ahead);
        rest = each(|lane| rest[lane] | -i64::from(end_ns[lane] > time_ns[lane]));
        ends_ns[step] = end_ns;
        now_ns = time_ns;
    }
    Passed {
        ahead_ns: ahead_ns.map(|lanes| {
            lanes
                .iter()
                .fold(0, |sum: u64, &ns| sum.wrapping_add(ns as u64))
        }),
        most: most
            .iter()
            .fold(0, |most, &lane| most.max(lane.unsigned_abs())),
        has_rest: rest != [0; LANES],
    }
}

#[inline(always)]
fn each(value: impl Fn(usize) -> i64) -> Lane {
    std::array::from_fn(value)
}

#[inline(always)]
fn later(one: Lane, other: Lane) -> Lane {
    each(|lane| one[lane].max(other[lane]))
}

#[inline(always)]
fn earlier(one: Lane, other: Lane) -> Lane {
    each(|lane| one[lane].min(other[lane]))
}

/// Intervals that are open, when they are many.
#[derive(Clone)]
struct Many {
    open: usize,
    /// (when, whether one more is open from then on, or else one less).
    changes: BinaryHeap<Reverse<(i64, bool)>>,
}

impl Many {
    fn from_ends(ends_ns: Vec<i64>) -> Many {
        let open = ends_ns.len();
        Many {
            open,
            changes: ends_ns
                .into_iter()
                .map(|end_ns| Reverse((end_ns, false)))
                .collect(),
        }
    }

    /// Goes on from the beginning of one interval to that of the next; tells how many were open at most before one
    /// began.
    #[inline(never)]
    fn go(&mut self, given: Intervals<'_>, spent_ns: &mut Counts) -> u64 {
        let (mut now_ns, mut most) = (given.from_ns, 0);
        for row in 0..given.rows {
            let (lane, step) = (row / STEPS, row % STEPS);
            let time_ns = given.times_ns[step][lane];
            while let Some(&Reverse((change_ns, begins))) =
                self.changes.peek().filter(|next| next.0.0 <= time_ns)
            {
                self.changes.pop();
                self.spend(&mut now_ns, change_ns, spent_ns);
                self.open = if begins { self.open + 1 } else { self.open - 1 };
            }
            self.spend(&mut now_ns, time_ns, spent_ns);
            let end_ns = given.ends_ns[step][lane];
            let replaced_ns = given
                .replaced_ns
                .map_or(NEVER, |replaced_ns| replaced_ns[step][lane]);
            if end_ns == replaced_ns {
                continue;
            }
            self.changes.push(Reverse((end_ns, false)));
            if replaced_ns == NEVER {
                most = most.max(self.open);
                self.open += 1;
            } else {
                self.changes.push(Reverse((replaced_ns, true)));
            }
        }
        most as u64
    }

    fn spend(&self, now_ns: &mut i64, to_ns: i64, spent_ns: &mut Counts) {
        if self.open > 0 {
            spent_ns.add(log_linear_index(self.open as u64), to_ns.abs_diff(*now_ns));
        }
        *now_ns = to_ns;
    }

    /// The ends of the open ones, the latest first.
    fn ends_ns(self) -> Vec<i64> {
        let (mut ends_ns, mut followed) = (Vec::with_capacity(self.open), 0);
        // If one more is open, one less is as well; the later ones of a time come first.
        for Reverse((change_ns, begins)) in self.changes.into_sorted_vec() {
            if begins {
                followed += 1;
            } else if followed > 0 {
                followed -= 1;
            } else {
                ends_ns.push(change_ns);
            }
        }
        ends_ns
    }
}
