//! Offset inference: planted phases are found, chance and hot spots are not taken for one.

use std::sync::Arc;

use plumb_geometry::{Bounds, Bytes, Grid};
use plumb_profile::infer::{InferenceVerdict, infer};
use plumb_profile::{Places, Profile, Select, what_if};
use plumb_testkit::workload::Oltp;
use plumb_testkit::{Rng, SynthEvent};
use plumb_trace::{Clock, Event, Fill, Layer, Names, Op, ReadOptions};

use crate::model::support::{Recording, collector, only};

fn pages(page_bytes: u64, sector: u64, seed: u64) -> Oltp {
    Oltp {
        seed,
        events: 3_000,
        partition_start_sectors: sector,
        page_bytes,
        ..Oltp::default()
    }
}

#[test]
fn a_planted_phase_is_found_at_every_sector_and_granularity() {
    for page_bytes in (12..=20).map(|power| 1 << power) {
        for sector in (0..16).chain([34, 63, page_bytes / 512 - 1]) {
            let load = pages(page_bytes, sector, sector);
            let found = infer(&Recording::from_workload(load.iter()).profile().places);
            let InferenceVerdict::One { phase } = &found.verdict else {
                panic!("{page_bytes} at sector {sector}: {:?}", found.verdict);
            };
            assert_eq!(
                phase.granularity_bytes,
                Bytes(page_bytes),
                "sector {sector}"
            );
            assert_eq!(
                phase.offset_bytes,
                Bytes(sector * 512 % page_bytes),
                "{page_bytes}"
            );
            assert_eq!((phase.heads, phase.ios), (load.heads(), load.events));
            assert_eq!((found.heads, found.ios), (load.heads(), load.events));
        }
    }
}

/// A full table keeps starts modulo a smaller number, and the result states the largest block that was examined.
#[test]
fn a_full_table_states_its_coverage() {
    let load = Oltp {
        events: 20_000,
        ..pages(4_096, 34, 3)
    };
    let recording = Recording::from_workload(load.iter());
    let whole = recording.profile().places;
    assert_eq!(infer(&whole).examined_bytes, None);
    let mut full = whole.clone();
    let mut random = Rng::new(8);
    full.table = full.table.with_rows_max(1_024);
    for _ in 0..5_000 {
        let (start, len) = (random.below(1 << 30) * 512, 512 * (1 + random.below(100)));
        full.table.add(Op::Discard, start, len, false, None);
    }
    assert!(full.table.is_modulus_lowered());
    let found = infer(&full);
    let largest = found.steps.last().expect("steps").granularity_bytes;
    assert_eq!(found.examined_bytes, Some(largest));
    assert_eq!(largest.0, full.table.modulus_bytes());
}

/// Two loads on one device, one event of each by turns.
fn side_by_side(left: &Oltp, right: &Oltp) -> Recording {
    let events: Vec<SynthEvent> = left
        .iter()
        .zip(right.iter())
        .flat_map(|(left, right)| [left, right])
        .collect();
    let mut recording = Recording::from_workload(events.into_iter());
    recording.events.sort_by_key(|event| event.time_ns);
    recording
}

#[test]
fn two_phases_are_two_answers() {
    // Sector 63 and 34 are where old labels put the first partition, 2048 is where new ones do.
    for (left, right) in [(63, 2048), (34, 2048), (63, 34), (7, 4), (1, 2)] {
        for page_bytes in [4096, 8192, 65_536] {
            // The second part is beyond the first and its scans.
            let first = pages(page_bytes, left, 1);
            let beyond = first.pages * 2 * page_bytes / 512;
            let recording = side_by_side(&first, &pages(page_bytes, beyond + right, 2));
            let found = infer(&recording.profile().places);
            let InferenceVerdict::Two { phases } = found.verdict else {
                panic!("{page_bytes} at {left} and {right}: {:?}", found.verdict);
            };
            let mut offsets = phases.map(|phase| phase.offset_bytes.0);
            let mut expected = [left, right].map(|sector| sector * 512 % page_bytes);
            offsets.sort_unstable();
            expected.sort_unstable();
            assert_eq!(offsets, expected, "{page_bytes}");
            assert_eq!(
                phases.map(|phase| phase.granularity_bytes.0),
                [page_bytes; 2]
            );
            assert_eq!(phases.iter().map(|phase| phase.ios).sum::<u64>(), 6_000);
        }
    }
}

fn reads(starts: impl Iterator<Item = u64>, size_bytes: Option<u64>) -> Places {
    let mut names = Names::default();
    let device = names.device("sda");
    names.device_mut(device).expect("just made").size_bytes = size_bytes;
    let events = starts
        .enumerate()
        .map(|(at, start)| Event::new(at as i64, device, Layer::Bio, Op::Read, start, 4096));
    Recording {
        events: events.collect(),
        names: Arc::new(names),
    }
    .profile()
    .places
}

fn why(places: &Places) -> String {
    match infer(places).verdict {
        InferenceVerdict::NotEnoughData { why } => why,
        other => panic!("expected too little data, found {other:?}"),
    }
}

#[test]
fn random_sectors_fit_no_grid() {
    for seed in 0..10 {
        let mut rng = Rng::new(seed);
        let places = reads((0..2_000).map(|_| rng.below(1 << 31) * 512), None);
        assert_eq!(infer(&places).verdict, InferenceVerdict::NoGrid);
    }
}

#[test]
fn random_pages_have_no_second_phase() {
    for seed in 0..10 {
        let mut rng = Rng::new(seed);
        let places = reads((0..2_000).map(|_| rng.below(1 << 28) * 4096 + 512), None);
        let verdict = infer(&places).verdict;
        let InferenceVerdict::One { phase } = verdict else {
            panic!("{verdict:?}")
        };
        assert_eq!(
            (phase.granularity_bytes, phase.offset_bytes),
            (Bytes(4096), Bytes(512))
        );
    }
}

#[test]
fn too_little_decides_nothing() {
    let aligned = |count| {
        let mut rng = Rng::new(7);
        (0..count).map(move |_| rng.below(1 << 28) * 4096)
    };
    assert!(why(&reads(aligned(199), None)).contains("199 random I/O"));
    assert!(matches!(
        infer(&reads(aligned(200), None)).verdict,
        InferenceVerdict::One { .. }
    ));
    // Seven of the 64ths of a device of 64 GiB, and eight.
    let mut rng = Rng::new(8);
    let mut within = |parts: u64| {
        let starts: Vec<u64> = (0..2_000)
            .map(|n| ((n % parts) << 30) + rng.below(1 << 18) * 4096)
            .collect();
        reads(starts.into_iter(), Some(64 << 30))
    };
    assert!(why(&within(7)).contains("7 of 64 parts"));
    assert!(matches!(
        infer(&within(8)).verdict,
        InferenceVerdict::One { .. }
    ));
    // One start has 15 % of the heads.
    let mut rng = Rng::new(9);
    let hot = (0..2_000).map(|_| {
        if rng.percent(15) {
            4096 << 20
        } else {
            rng.below(1 << 28) * 4096
        }
    });
    assert!(why(&reads(hot, None)).contains("single start"));
    assert!(why(&Places::default()).contains("0 random I/O"));
}

fn real_guest() -> Option<Profile> {
    let path = plumb_testkit::real_traces()?.join("vscsi/cloudPhysicsIO.vscsi");
    let options = ReadOptions {
        format: Some("vscsi".to_owned()),
        ..ReadOptions::default()
    };
    let piece = plumb_trace::open::pieces(&[path]).remove(0);
    let mut reader = plumb_trace::open::open(&piece, &options).expect("a readable trace");
    let mut collector = collector(1 << 20);
    collector.set_clock(Clock::Start);
    let mut batch = plumb_trace::Batch::default();
    while reader.fill(&mut batch).expect("an undamaged trace") != Fill::End {
        collector.fold(&batch);
    }
    Some(only(&collector.finish(reader.info())))
}

/// Counted with a script of ten lines over the 32-byte records, the definition of a stream head word by word.
#[test]
fn a_real_misaligned_guest() {
    plumb_testkit::require!(RealTraces);
    let profile = real_guest().expect("the folder is there");
    let found = infer(&profile.places);
    assert_eq!((found.ios, found.heads), (113_872, 43_102));
    let InferenceVerdict::One { phase } = found.verdict else {
        panic!("{:?}", found.verdict)
    };
    assert_eq!(
        (phase.granularity_bytes, phase.offset_bytes),
        (Bytes(4096), Bytes(3584))
    );
    assert_eq!((phase.heads, phase.ios), (41_891, 90_572));
    let step = &found.steps[3];
    assert_eq!(
        (step.granularity_bytes, step.offset_bytes, step.heads),
        (Bytes(8192), Bytes(7680), 29_362)
    );
    assert_eq!(step.second_heads, 12_529);
    let moved = what_if::shifted(&profile.places.table, &Grid::ASSUMED, 512, Select::DATA)
        .expect("an answer");
    assert_eq!(
        (moved.ios, moved.misaligned),
        (113_872, Bounds::exact(23_300))
    );
    // A shift by the granularity is none, one back undoes one forth.
    for (by, misaligned) in [
        (0, 112_830),
        (4096, 112_830),
        (-3584, 23_300),
        (-3584 - 8192, 23_300),
    ] {
        let moved = what_if::shifted(&profile.places.table, &Grid::ASSUMED, by, Select::DATA);
        let found = moved.expect("an answer").misaligned;
        assert_eq!(found.known(), Some(misaligned), "{by}");
    }
}
