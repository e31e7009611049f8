//! Verdicts, turns and slices, without a target.

use plumb_trace::{Event, Layer, Op};

use super::*;

fn interval(low: f64, high: f64) -> Interval {
    Interval {
        estimate: (low * high).sqrt(),
        low,
        high,
        level: Level::P95,
        n: 30,
    }
}

#[test]
fn verdicts() {
    let of = |low, high| verdict(Some(&interval(low, high)), false, Margin::USUAL);
    assert_eq!(of(1.9, 2.1), ReplayVerdict::Better);
    assert_eq!(of(1.001, 1.08), ReplayVerdict::Better);
    assert_eq!(of(0.4, 0.99), ReplayVerdict::Worse);
    assert_eq!(of(0.98, 1.02), ReplayVerdict::NoDifference);
    assert_eq!(
        of(1.01, 1.02),
        ReplayVerdict::NoDifference,
        "a difference, and none that counts"
    );
    assert_eq!(of(0.9, 1.1), ReplayVerdict::Inconclusive(Doubt::Wide));
    assert_eq!(of(0.96, 1.0), ReplayVerdict::Inconclusive(Doubt::Wide));
    assert_eq!(
        verdict(None, false, Margin::USUAL),
        ReplayVerdict::Inconclusive(Doubt::TooFew)
    );
    let good = interval(1.9, 2.1);
    assert_eq!(
        verdict(Some(&good), true, Margin::USUAL),
        ReplayVerdict::Inconclusive(Doubt::Failures)
    );
}

#[test]
fn a_spoiled_slice_moves_nothing() {
    let pair = |number: i32| {
        let spoiled = if number == 5 { 100.0 } else { 1.0 };
        let today_ns = 2000.0 * spoiled + f64::from(number);
        SlicePair {
            ios: 10,
            is_today_first: number % 2 == 0,
            today_ns,
            planned_ns: 1000.0,
        }
    };
    let pairs: Vec<SlicePair> = (0..30).map(pair).collect();
    let gain = gain_of(&pairs, Level::P95).expect("15 rounds");
    assert!(
        gain.n == 15 && gain.low >= 2.0 && gain.high <= 2.03,
        "{gain:?}"
    );
}

#[test]
fn each_order_comes_as_often() {
    for seed in 0..20 {
        let mut turns = Turns::new(seed);
        let drawn: Vec<bool> = (0..30).map(|_| turns.next()).collect();
        assert!(drawn.chunks(2).all(|pair| pair[0] != pair[1]), "{drawn:?}");
    }
    let first = |seed| Turns::new(seed).next();
    assert!((0..20).any(first) && !(0..20).all(first), "it is drawn");
}

#[test]
fn the_second_of_a_pair_differs_from_the_plan() {
    let pair = |is_today_first| {
        let (first, second) = (2000.0, 1000.0);
        let (today_ns, planned_ns) = if is_today_first {
            (first, second)
        } else {
            (second, first)
        };
        SlicePair {
            ios: 10,
            is_today_first,
            today_ns,
            planned_ns,
        }
    };
    let pairs: Vec<SlicePair> = (0..12).map(|number| pair(number % 2 == 0)).collect();
    let second = second_of(&pairs, Level::P95).expect("six rounds");
    let gain = gain_of(&pairs, Level::P95).expect("six rounds");
    assert!(
        (second.estimate - 2.0).abs() < 1e-9 && (gain.estimate - 1.0).abs() < 1e-9,
        "{second:?} {gain:?}"
    );
    assert!(gain_of(&pairs[..11], Level::P95).is_none(), "too few");
}

/// Gives its events in batches of 7.
struct Sevens(Vec<Event>);

impl EventSource for Sevens {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool, plumb_trace::Error> {
        batch.clear();
        let rest = self.0.split_off(self.0.len().min(7));
        std::mem::replace(&mut self.0, rest)
            .iter()
            .for_each(|event| batch.push(event));
        Ok(!batch.is_empty())
    }
}

fn starts(events: u64, pairs: u32) -> Vec<Vec<u64>> {
    let event = |at: u64| Event::new(at as i64, 0, Layer::Request, Op::Read, at, 512);
    let mut source = Sevens((0..events).map(event).collect());
    let mut slices = Slices::new(&mut source, Speed::Max, events, pairs);
    let mut all = Vec::new();
    while let Some(slice) = slices.next().expect("no error") {
        all.push([slice.lead.start_bytes, slice.timed.start_bytes].concat());
    }
    all
}

#[test]
fn slices_are_spread_over_the_trace() {
    assert_eq!(
        starts(100, 3),
        [
            (0..33).collect::<Vec<u64>>(),
            (33..66).collect(),
            (66..99).collect()
        ]
    );
    assert_eq!(
        starts(40, 30),
        [(0..16).collect::<Vec<u64>>(), (16..32).collect()],
        "no shorter than 16"
    );
    assert_eq!(
        starts(5, 30),
        [(0..5).collect::<Vec<u64>>()],
        "all there is"
    );
    let long = starts(20_000, 2);
    assert_eq!(
        long.iter()
            .map(|slice| (slice[0], slice.len()))
            .collect::<Vec<_>>(),
        [(0, 4096), (8192, 4096)]
    );
}

#[test]
fn first_events_of_a_slice_lead() {
    for (events, leading) in [(1, 0), (2, 1), (5, 1), (16, 2), (4096, 512)] {
        let event = |at: u64| Event::new(at as i64, 0, Layer::Request, Op::Read, at, 512);
        let mut batch = Batch::default();
        (0..events).for_each(|at| batch.push(&event(at)));
        let slice = Slice::new(&batch, Speed::Max);
        assert_eq!(slice.lead.start_bytes, (0..leading).collect::<Vec<_>>());
        assert_eq!(
            slice.timed.start_bytes,
            (leading..events).collect::<Vec<_>>()
        );
    }
}

/// Events that send nothing lead nothing, and I/O at their times keep the gap to the first of them.
#[test]
fn an_io_that_is_sent_leads_at_full_speed() {
    let batch = |ops: &[(Op, u64)]| {
        let mut batch = Batch::default();
        for (at, (op, len_bytes)) in ops.iter().enumerate() {
            batch.push(&Event::new(
                at as i64,
                0,
                Layer::Request,
                *op,
                at as u64,
                *len_bytes,
            ));
        }
        batch
    };
    let (max, at_their_times) = (Speed::Max, Speed::Times(1.0));
    let (discard, flush) = ((Op::Discard, 4096), (Op::Flush, 0));
    let (read, write) = ((Op::Read, 4096), (Op::Write, 4096));
    for (ops, speed, leading) in [
        (vec![discard, flush, read, read], max, 3),
        (vec![write, write, read, read], max, 1),
        (vec![read, read, read, read], max, 1),
        (vec![read, read, read, read], at_their_times, 0),
        // The I/O that count are reads and writes too.
        (vec![discard, discard], max, 0),
        (vec![discard, read], max, 0),
        (vec![read, discard, discard], max, 0),
        (vec![read, discard, write, flush], max, 1),
    ] {
        let slice = Slice::new(&batch(&ops), speed);
        assert_eq!(slice.lead.len(), leading, "{ops:?}");
        assert_eq!(slice.timed.len(), ops.len() - leading, "{ops:?}");
    }
}
