//! A profile with a partition moved, against the grid moved back.

use std::sync::Arc;

use plumb_geometry::{Bytes, Grid};
use plumb_profile::fit::Select;
use plumb_profile::{Collector, Places, Profile, Settings, what_if};
use plumb_trace::{Batch, Event, Layer, Names, Op, SourceInfo};

/// A profile of reads at these sectors, of one KiB each.
fn profile(sectors: impl IntoIterator<Item = u64>) -> Profile {
    let mut names = Names::default();
    names.device("sda");
    let mut batch = Batch {
        names: Arc::new(names),
        ..Batch::default()
    };
    for (at, sector) in sectors.into_iter().enumerate() {
        let at = at as i64 * 1_000_000;
        batch.push(&Event::new(at, 0, Layer::Bio, Op::Read, sector * 512, 1024));
    }
    let settings = Settings {
        modulus_bytes: 1 << 20,
        ..Settings::default()
    };
    let mut collector = Collector::new(&settings).expect("a modulus");
    collector.fold(&batch);
    let set = collector.finish(&SourceInfo::default());
    set.iter().next().expect("a device").clone()
}

#[test]
fn starts_move_with_their_partition() {
    let all = profile((0..500).map(|at| 63 + at * 7));
    let part = Places {
        first_byte: 63 * 512,
        ..all.places.clone()
    };
    let mut parted = all.clone();
    parted.partitions.insert("sda1".to_owned(), part);
    for by in [512_i128, -512, 3584, 1 << 20, 999_936] {
        let moved = parted
            .with_part_moved("sda1", by)
            .expect("all I/O are in it");
        for unit in [4096, 65_536, 1 << 20] {
            let grid = Grid::unit(Bytes(unit)).expect("a grid");
            let expected =
                what_if::shifted(&all.places.table, &grid, by as i64, Select::DATA).expect("tells");
            let found = moved.places.table.fit(&grid, Select::DATA).expect("tells");
            assert_eq!(found, expected, "{by} {unit}");
        }
        assert_eq!(moved.partitions["sda1"].first_byte as i128, 63 * 512 + by);
    }
    // The destination of I/O outside every partition is unknown.
    let mut outside = parted.clone();
    outside.places = profile((0..501).map(|at| 63 + at * 7)).places;
    assert!(outside.with_part_moved("sda1", 512).is_none());
    assert!(parted.with_part_moved("sda2", 512).is_none());
}
