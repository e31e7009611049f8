//! Damaged disks: the fuzzer's seeds, which are of real tools, with bytes changed.

use std::fs;
use std::path::Path;

use plumb_stack::ondisk::Scan;
use plumb_stack::{Builder, Stack};
use proptest::prelude::*;

use crate::ondisk::sparse::Sparse;

fn seeds() -> Vec<Sparse> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/ondisk");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("seeds")
        .map(|file| file.expect("a file").path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| Sparse::decode(&fs::read(file).expect("a seed")))
        .collect()
}

fn stack_of(disk: &Sparse) -> Stack {
    let (mut builder, mut scan) = (Builder::default(), Scan::default());
    let id = builder.node("disk.img");
    scan.probe_image(&mut builder, disk, id);
    scan.finish(&mut builder);
    builder.finish()
}

/// Each seed is of a known format, with a file system, a volume, an array or a virtual disk.
#[test]
fn seeds_are_found() {
    let seeds = seeds();
    assert!(seeds.len() >= 15, "{} seeds", seeds.len());
    for seed in &seeds {
        let stack = stack_of(seed);
        assert!(
            stack.nodes().count() > 1,
            "{:?}",
            stack.nodes().collect::<Vec<_>>()
        );
        assert_eq!(stack.problems(), []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Nothing panics, and every node can be folded.
    #[test]
    fn damage_is_no_panic(
        seed in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..512_usize, any::<u8>()), 1..8),
        len in prop::option::of(0..1_u64 << 30),
    ) {
        thread_local!(static SEEDS: Vec<Sparse> = seeds());
        let mut disk = SEEDS.with(|seeds| seed.get(seeds).clone());
        for (sector, at, byte) in changes {
            let number = *sector.get(&disk.sectors.keys().copied().collect::<Vec<_>>());
            if let Some(bytes) = disk.sectors.get_mut(&number) {
                bytes[at] = byte;
            }
        }
        disk.len = len.unwrap_or(disk.len);
        let stack = stack_of(&disk);
        for (id, _) in stack.nodes() {
            let standings = stack.standings(id);
            prop_assert!(standings.iter().all(|one| one.top == id));
        }
    }
}
