//! The measures of a profile, computed from all events at once as their definitions read.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use plumb_profile::histogram::{Counts, log_linear_index, power_index};
use plumb_profile::in_flight::InFlight;
use plumb_profile::profile::{Ordered, Profile};
use plumb_profile::{Places, Table};
use plumb_trace::{Event, Names, Op, flags};

/// An I/O as one of the last 256.
struct Last {
    op: Op,
    end: u64,
    /// How many I/O its chain has with it.
    chain: u64,
    /// Whether another I/O has gone on from it.
    continued: bool,
}

/// Whether each I/O continues a stream, and how many I/O its chain has with it; flushes have neither.
pub fn streams(events: &[Event]) -> Vec<(bool, u64)> {
    let mut last: VecDeque<Last> = VecDeque::new();
    let mut found = Vec::new();
    for event in events {
        if event.len_bytes == 0 {
            found.push((false, 0));
            continue;
        }
        let goes_on = |last: &Last| last.op == event.op && last.end == event.start_bytes;
        let continues = last.iter().any(goes_on);
        let before = last
            .iter_mut()
            .rev()
            .find(|last| goes_on(last) && !last.continued);
        let chain = before.map_or(1, |before| {
            before.continued = true;
            before.chain + 1
        });
        found.push((continues, chain));
        let end = event.start_bytes + event.len_bytes;
        last.push_back(Last {
            op: event.op,
            end,
            chain,
            continued: false,
        });
        if last.len() > 256 {
            last.pop_front();
        }
    }
    found
}

/// The events of one device with the stream bit of each.
pub fn with_stream_bit(events: &[Event]) -> Vec<(Event, bool)> {
    events
        .iter()
        .copied()
        .zip(streams(events).into_iter().map(|(continues, _)| continues))
        .collect()
}

fn latency(ns: i64) -> usize {
    log_linear_index(ns.max(0) as u64)
}

/// Streams, runs, seeks, times between issues.
fn ordered(events: &[Event]) -> Ordered {
    let mut ordered = Ordered {
        in_flight: in_flight(events),
        ..Ordered::default()
    };
    for (continues, chain) in streams(events) {
        ordered.continuing += u64::from(continues);
        // The third I/O makes the two before it part of a run.
        ordered.run_ios += match chain {
            0..=2 => 0,
            3 => 3,
            _ => 1,
        };
        if chain == 3 {
            ordered.runs_reaching.add(0, 1);
        }
        for power in (2..63).filter(|power| chain == 1 << power) {
            ordered.runs_reaching.add(power, 1);
        }
    }
    let placed: Vec<&Event> = events.iter().filter(|event| event.len_bytes > 0).collect();
    for pair in placed.windows(2) {
        let (end, start) = (pair[0].start_bytes + pair[0].len_bytes, pair[1].start_bytes);
        let seeks = &mut ordered.seeks;
        match start.cmp(&end) {
            std::cmp::Ordering::Equal => seeks.none += 1,
            std::cmp::Ordering::Greater => seeks.forward.add(power_index(start - end), 1),
            std::cmp::Ordering::Less => seeks.backward.add(power_index(end - start), 1),
        }
    }
    for pair in events.windows(2) {
        ordered
            .interarrival_ns
            .add(latency(pair[1].time_ns - pair[0].time_ns), 1);
    }
    ordered
}

/// Process and thread.
type Ids = (Option<i32>, Option<i32>);

/// Time at each depth, by looking between every two instants at which something begins or ends.
fn in_flight(events: &[Event]) -> InFlight {
    let flights: Vec<(i64, i64, Option<Ids>)> = events
        .iter()
        .filter_map(|event| {
            Some((
                event.time_ns,
                event.time_ns + event.device_ns?.max(0),
                Some((event.pid, event.tid)).filter(|sender| *sender != (None, None)),
            ))
        })
        .collect();
    let mut sums = InFlight::default();
    let instants: BTreeSet<i64> = flights
        .iter()
        .flat_map(|flight| [flight.0, flight.1])
        .collect();
    let instants: Vec<i64> = instants.into_iter().collect();
    let threads_known_from = flights
        .iter()
        .filter(|flight| flight.2.is_some())
        .map(|flight| flight.0)
        .min();
    for pair in instants.windows(2) {
        let now = || {
            flights
                .iter()
                .filter(|flight| flight.0 <= pair[0] && pair[0] < flight.1)
        };
        let ns = (pair[1] - pair[0]) as u64;
        sums.depth_ns
            .add(log_linear_index(now().count() as u64), ns);
        let threads: BTreeSet<Ids> = now().filter_map(|flight| flight.2).collect();
        if threads_known_from.is_some_and(|known| pair[0] >= known) {
            sums.threads_ns
                .add(log_linear_index(threads.len() as u64), ns);
        }
    }
    for (at, issued) in flights.iter().enumerate() {
        // A completion at the instant of an issue precedes it; the issue itself counts.
        let others = || flights[..at].iter().filter(|flight| issued.0 < flight.1);
        sums.depth_max = sums.depth_max.max(others().count() as u64 + 1);
        let threads: BTreeSet<Ids> = others()
            .filter_map(|flight| flight.2)
            .chain(issued.2)
            .collect();
        if issued.2.is_some() {
            sums.threads_max = sums.threads_max.max(threads.len() as u64);
        }
    }
    sums
}

fn places(
    events: &[(Event, bool)],
    empty: &Places,
    range: std::ops::Range<u64>,
    flushes: bool,
) -> Places {
    let mut places = empty.clone();
    for (event, continues) in events {
        let here = range.contains(&event.start_bytes) && event.len_bytes > 0
            || flushes && event.len_bytes == 0;
        if !here {
            continue;
        }
        places.table.add(
            event.op,
            event.start_bytes,
            event.len_bytes,
            *continues,
            event.device_ns,
        );
        match event.op {
            Op::Read if event.len_bytes > 0 && !continues => {
                places.read_heads.add(event.start_bytes)
            }
            Op::Write if event.len_bytes > 0 && !continues => {
                places.write_heads.add(event.start_bytes)
            }
            _ => {}
        }
    }
    places
}

/// Checks everything in a profile of one lane but the timeline against its events.
pub fn check(profile: &Profile, events: &[Event], names: &Names) {
    assert_eq!(profile.ordered, ordered(events));
    let placed = with_stream_bit(events);
    let empty = |first_byte, shift| {
        let mut table = Table::default().with_rows_max(1 << 14);
        table.set_region_shift(shift);
        Places::with_table(table, first_byte)
    };
    let shift = profile.places.table.region_shift();
    let expected = places(&placed, &empty(0, shift), 0..u64::MAX, true);
    assert_eq!(profile.places, expected);
    let mut firsts: Vec<u64> = profile
        .partitions
        .values()
        .map(|places| places.first_byte)
        .collect();
    firsts.sort_unstable();
    for part in profile.partitions.values() {
        let next = firsts
            .iter()
            .copied()
            .find(|first| *first > part.first_byte)
            .unwrap_or(u64::MAX);
        let empty = empty(part.first_byte, part.table.region_shift());
        assert_eq!(*part, places(&placed, &empty, part.first_byte..next, false));
    }
    for op in Op::ALL {
        check_op(profile, op, events);
    }
    assert_eq!(
        profile.first_ns,
        events.iter().map(|event| event.time_ns).min()
    );
    assert_eq!(
        profile.last_ns,
        events.iter().map(|event| event.time_ns).max()
    );
    assert_eq!(profile.pieces, 1);
    check_processes(profile, events, names);
}

fn check_op(profile: &Profile, op: Op, events: &[Event]) {
    let (mut sizes, mut device_ns, mut queue_ns) =
        (Counts::default(), Counts::default(), Counts::default());
    let mine: Vec<&Event> = events.iter().filter(|event| event.op == op).collect();
    for event in &mine {
        sizes.add(power_index(event.len_bytes), 1);
        event
            .device_ns
            .iter()
            .for_each(|&ns| device_ns.add(latency(ns), 1));
        event
            .queue_ns
            .iter()
            .for_each(|&ns| queue_ns.add(latency(ns), 1));
    }
    let totals = profile.op(op);
    assert_eq!(totals.ios, mine.len() as u64);
    assert_eq!(
        totals.bytes,
        mine.iter().map(|event| event.len_bytes).sum::<u64>()
    );
    assert_eq!(
        totals.failed,
        mine.iter()
            .filter(|event| event.flags & flags::FAILED != 0)
            .count() as u64
    );
    assert_eq!(
        totals.timed,
        mine.iter()
            .filter(|event| event.device_ns.is_some())
            .count() as u64
    );
    assert_eq!(
        (&totals.sizes, &totals.device_ns, &totals.queue_ns),
        (&sizes, &device_ns, &queue_ns)
    );
}

fn check_processes(profile: &Profile, events: &[Event], names: &Names) {
    let mut shares: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for event in events {
        let name = match (names.word_of(event.comm), event.pid) {
            (Some(name), _) => name.to_owned(),
            (None, Some(pid)) => format!("pid {pid}"),
            (None, None) => continue,
        };
        let share = shares.entry(name).or_default();
        share.0 += 1;
        share.1 += event.len_bytes;
    }
    let found: BTreeMap<String, (u64, u64)> = profile
        .top
        .most(usize::MAX)
        .into_iter()
        .map(|(name, share)| (name.to_owned(), (share.ios, share.bytes)))
        .collect();
    assert_eq!(found, shares);
}
