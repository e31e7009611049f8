use std::collections::BTreeMap;

use plumb_geometry::Bytes;
use plumb_testkit::{Rng, temp_dir};
use proptest::prelude::*;

use super::*;
use crate::workload::Lengths;

fn with_target<T>(size_bytes: u64, test: impl FnOnce(&Target) -> T) -> T {
    let dir = temp_dir("draw");
    let path = dir.path().join("file");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len(size_bytes).expect("a sparse file");
    test(&Target::open(&path).expect("a regular file"))
}

fn drawn(workload: &Workload, size_bytes: u64, count: usize) -> Vec<DrawnIo> {
    with_target(size_bytes, |target| {
        let layout =
            WorkloadLayout::new(workload, target, &mut Random::new(9, 1)).expect("it fits");
        let mut draw = Draw::new(&layout, Random::new(9, 0));
        (0..count).map(|_| draw.next()).collect()
    })
}

fn starts(workload: &Workload, size_bytes: u64, count: usize) -> Vec<u64> {
    drawn(workload, size_bytes, count)
        .iter()
        .map(|io| io.start)
        .collect()
}

fn refused(workload: &Workload, size_bytes: u64) -> String {
    with_target(size_bytes, |target| {
        let name = target.name().to_owned();
        let refused = WorkloadLayout::new(workload, target, &mut Random::new(9, 1))
            .expect_err("it does not fit");
        refused.to_string().replace(&name, "T")
    })
}

proptest! {
    /// Places against a walk over every byte.
    #[test]
    fn places_are_all_that_there_are(
        low in 0u64..60, room in 0u64..60, len in 1u32..20, unit in 1u64..20, shift in -40i64..40,
    ) {
        let end = low + room;
        let least = low + u64::try_from(shift).unwrap_or(0);
        let walked: Vec<u64> = (least..end)
            .filter(|&at| (at as i64 - shift).rem_euclid(unit as i64) == 0 && at + u64::from(len) <= end)
            .collect();
        let places = Places::new(low, end, len, unit, shift);
        let found: Vec<u64> = places.map_or(Vec::new(), |places| (0..places.count).map(|n| places.at(n)).collect());
        prop_assert_eq!(found, walked);
    }
}

#[test]
fn a_shift_moves_every_start() {
    let workload = Workload {
        shift_bytes: 512,
        ..Workload::random_reads(4096)
    };
    let starts = starts(&workload, 1 << 20, 2000);
    assert!(
        starts
            .iter()
            .all(|start| start % 4096 == 512 && start + 4096 <= 1 << 20)
    );
    let distinct: std::collections::BTreeSet<&u64> = starts.iter().collect();
    assert_eq!(
        distinct.len(),
        255,
        "all places but the last, which the shift pushed out"
    );
}

#[test]
fn streams_go_on_and_begin_again() {
    let sequential = Workload {
        starts: Starts::Sequential {
            from_anywhere: false,
        },
        ..Workload::random_reads(4096)
    };
    assert_eq!(
        starts(&sequential, 16384, 6),
        [0, 4096, 8192, 12288, 0, 4096]
    );
    let shifted = Workload {
        shift_bytes: 512,
        ..sequential.clone()
    };
    assert_eq!(starts(&shifted, 16384, 5), [512, 4608, 8704, 512, 4608]);
    let range = Some((Bytes(4096), Bytes(12288)));
    assert_eq!(
        starts(
            &Workload {
                range,
                ..sequential.clone()
            },
            16384,
            3
        ),
        [4096, 8192, 4096]
    );
    let starts_of = |stride_bytes| Workload {
        starts: Starts::Strided { stride_bytes },
        ..sequential.clone()
    };
    assert_eq!(
        starts(&starts_of(8192), 32768, 5),
        [0, 8192, 16384, 24576, 0]
    );
    let aligned = Workload {
        align_bytes: Some(8192),
        ..sequential
    };
    assert_eq!(starts(&aligned, 32768, 5), [0, 8192, 16384, 24576, 0]);
}

#[test]
fn seeks_are_as_frequent_as_asked() {
    let spread = Spread::Uniform;
    let workload = Workload {
        starts: Starts::Seeks {
            percent: 20,
            spread,
        },
        ..Workload::random_reads(4096)
    };
    let starts = starts(&workload, 1 << 30, 10_001);
    let seeks = starts
        .windows(2)
        .filter(|pair| pair[1] != pair[0] + 4096)
        .count();
    // 2,000 expected, with a standard deviation of 40.
    assert!((1800..2200).contains(&seeks), "{seeks}");
}

#[test]
fn operations_and_lengths_come_with_their_weights() {
    let lengths = Lengths::new(vec![(4096, 3), (8192, 1)]).expect("two lengths");
    let workload = Workload {
        read_percent: 70,
        lengths,
        ..Workload::random_reads(4096)
    };
    let mut counts: BTreeMap<(bool, u32), u32> = BTreeMap::new();
    for io in drawn(&workload, 1 << 30, 40_000) {
        assert_eq!(io.start % u64::from(io.len_bytes), 0);
        *counts.entry((io.is_read, io.len_bytes)).or_default() += 1;
    }
    for (kind, expected) in [
        ((true, 4096), 21_000),
        ((true, 8192), 7_000),
        ((false, 4096), 9_000),
        ((false, 8192), 3_000),
    ] {
        let off = counts[&kind].abs_diff(expected);
        assert!(off < 600, "{kind:?}: {} of {expected}", counts[&kind]);
    }
}

#[test]
fn hits_fall_into_their_area() {
    let hits = Some(Hits {
        area_bytes: 1 << 20,
        read_percent: 90,
        write_percent: 0,
    });
    let workload = Workload {
        hits,
        ..Workload::random_reads(4096)
    };
    let inside = starts(&workload, 1 << 30, 10_000)
        .iter()
        .filter(|&&start| start < 1 << 20)
        .count();
    // 9,000 with a standard deviation of 30.
    assert!((8_850..9_150).contains(&inside), "{inside}");
    let writes = Workload {
        read_percent: 0,
        ..workload.clone()
    };
    assert!(
        starts(&writes, 1 << 30, 1_000)
            .iter()
            .all(|&start| start >= 1 << 20),
        "no write is to hit"
    );
    let in_order = Workload {
        read_percent: 0,
        starts: Starts::Sequential {
            from_anywhere: false,
        },
        ..workload
    };
    assert_eq!(
        starts(&in_order, (1 << 20) + 8192, 3),
        [1 << 20, (1 << 20) + 4096, 1 << 20]
    );
}

/// A stream that begins at a random place goes through all of them, and begins at many.
#[test]
fn streams_from_anywhere_go_through_everything() {
    let sequential = Starts::Sequential {
        from_anywhere: true,
    };
    let workload = Workload {
        starts: sequential,
        shift_bytes: 512,
        ..Workload::random_reads(4096)
    };
    let mut firsts = std::collections::BTreeSet::new();
    with_target(16 * 4096 + 512, |target| {
        for seed in 0..200 {
            let layout =
                WorkloadLayout::new(&workload, target, &mut Random::new(seed, 0)).expect("it fits");
            let mut draw = Draw::new(&layout, Random::new(9, 0));
            let starts: Vec<u64> = (0..16).map(|_| draw.next().start).collect();
            let first = (starts[0] - 512) / 4096;
            let expected: Vec<u64> = (first..first + 16).map(|at| 512 + at % 16 * 4096).collect();
            assert_eq!(starts, expected, "seed {seed}");
            firsts.insert(first);
        }
    });
    assert_eq!(firsts.len(), 16, "each place is the first of some");
}

/// Each place has its rank: the share of the most popular one, and that all are reached, at a size without small factors.
#[test]
fn zipf_reaches_every_place() {
    let starts_of = Starts::Random(Spread::Zipf { theta: 0.5 });
    let workload = Workload {
        starts: starts_of,
        ..Workload::random_reads(4096)
    };
    let places = 97u64;
    let mut counts = BTreeMap::new();
    for start in starts(&workload, places * 4096, 100_000) {
        *counts.entry(start).or_insert(0u32) += 1;
    }
    assert_eq!(counts.len() as u64, places);
    let total: f64 = (1..=places).map(|rank| (rank as f64).powf(-0.5)).sum();
    let most = f64::from(*counts.values().max().expect("some"));
    assert!((most - 100_000.0 / total).abs() < 400.0, "{most}");
    assert!(
        counts[&4096] != *counts.values().max().expect("some"),
        "neighbours in rank are apart"
    );
}

#[test]
fn impossible_values_are_refused() {
    let reads = Workload::random_reads(4096);
    let said = |workload: Workload, size| refused(&workload, size);
    assert_eq!(
        said(reads.clone(), 4095),
        "T: found 4,095 bytes to load, which is too small: expected room for one I/O of 4,096 bytes"
    );
    assert!(
        said(
            Workload {
                shift_bytes: 512,
                ..reads.clone()
            },
            4096
        )
        .contains("shifted by 512 bytes")
    );
    assert_eq!(
        said(
            Workload {
                shift_bytes: 100,
                ..reads.clone()
            },
            1 << 20
        ),
        "T: found a shift of 100 bytes, expected a multiple of its logical block of 512 bytes"
    );
    assert_eq!(
        said(
            Workload {
                range: Some((Bytes(0), Bytes(1 << 21))),
                ..reads.clone()
            },
            1 << 20
        ),
        "T: found a range up to byte 2,097,152, expected an end within its 1,048,576 bytes"
    );
    let hits = Some(Hits {
        area_bytes: 1 << 20,
        read_percent: 1,
        write_percent: 0,
    });
    assert_eq!(
        said(
            Workload {
                hits,
                ..reads.clone()
            },
            1 << 20
        ),
        "T: found 0 bytes to load, which is too small: expected room for one I/O of 4,096 bytes, in the hit area of \
         1,048,576 bytes and behind it"
    );
    assert!(
        said(
            Workload {
                read_percent: 101,
                ..reads.clone()
            },
            1 << 20
        )
        .contains("0 to 100 %")
    );
    assert!(
        said(
            Workload {
                starts: Starts::Strided { stride_bytes: 0 },
                ..reads.clone()
            },
            1 << 20
        )
        .contains("stride")
    );
    let theta = Starts::Random(Spread::Zipf { theta: f64::NAN });
    assert!(
        said(
            Workload {
                starts: theta,
                ..reads.clone()
            },
            1 << 20
        )
        .contains("theta")
    );
    assert!(Lengths::new(vec![(0, 1)]).is_err() && Lengths::new(vec![(512, 0)]).is_err());
    assert!(Lengths::new(Vec::new()).is_err());
}

/// No start of any workload leaves its range.
#[test]
fn nothing_leaves_the_range() {
    let mut rng = Rng::announced("ranges", 11);
    for _ in 0..200 {
        let len = 512 << rng.below(6) as u32;
        let low = 512 * rng.below(1000);
        let end = low + 2 * u64::from(len) + 512 * rng.below(1000);
        let starts_of = match rng.below(4) {
            0 => Starts::Random(Spread::Uniform),
            1 => Starts::Random(Spread::Zipf { theta: 1.1 }),
            2 => Starts::Sequential {
                from_anywhere: rng.below(2) == 0,
            },
            _ => Starts::Seeks {
                percent: 30,
                spread: Spread::Uniform,
            },
        };
        let range = Some((Bytes(low), Bytes(end)));
        let workload = Workload {
            starts: starts_of,
            range,
            ..Workload::random_reads(len)
        };
        for start in starts(&workload, 1 << 20, 200) {
            assert!(
                start >= low && start + u64::from(len) <= end,
                "{workload:?}: {start}"
            );
        }
    }
}
