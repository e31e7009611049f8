//! Document 003: stripes, soft partitions and resyncs of Solaris Volume Manager.

use plumb_geometry::{Bytes, Share, next_aligned_start};
use plumb_plan::softpart::{SoftPartition, paper_offset, place};
use plumb_plan::stripe::{IoStarts, chunk_for, share};
use plumb_plan::{Value, resync, softpart, stripe};
use plumb_testkit::soft_partitions::LISTING;

use crate::seeds::KIB;

/// Document 003: 1 of 4 and 1 of 128, which hold one sector off; none on a boundary; 15/64 and 15/2048 anywhere.
#[test]
fn split_shares() {
    let of = |chunk: u64, base: u64, starts| {
        share(Bytes(8 * KIB), Bytes(chunk), Bytes(base), starts)
            .expect("a share")
            .to_string()
    };
    for (chunk, one_off, any) in [(32 * KIB, "1/4", "15/64"), (1 << 20, "1/128", "15/2048")] {
        assert_eq!(of(chunk, 0, IoStarts::Pages), "0/1");
        assert_eq!(of(chunk, 512, IoStarts::Pages), one_off);
        assert_eq!(of(chunk, 0, IoStarts::AnySector), any);
    }
}

fn stripe(share_max: (u64, u64), segment: Option<u64>) -> stripe::StripeRequest {
    stripe::StripeRequest {
        io: Bytes(8 * KIB),
        base: Bytes(0),
        starts: IoStarts::Pages,
        share_max: Share {
            numerator: share_max.0,
            denominator: share_max.1,
        },
        chunk: None,
        segment: segment.map(Bytes),
        manager: stripe::Manager::Svm,
        members: vec!["c3t1d0s7".to_owned(), "c5t1d0s7".to_owned()],
        parity: 0,
    }
}

/// Document 003: 20 segments of 48 KiB are 960 KiB, the first chunk of whole segments that at most 1 of 120 pages
/// cross.
#[test]
fn chunks_are_whole_segments() {
    assert_eq!(20 * 48 * KIB, 960 * KIB);
    assert_eq!(
        chunk_for(&stripe((1, 120), Some(48 * KIB))),
        Some(Bytes(960 * KIB))
    );
    assert_eq!(chunk_for(&stripe((1, 128), None)), Some(Bytes(1 << 20)));
    assert_eq!(chunk_for(&stripe((1, 4), None)), Some(Bytes(32 * KIB)));
    // 1 MiB, the paper's other advice, cuts a segment of 48 KiB in two.
    let mut asked = stripe((1, 100), Some(48 * KIB));
    asked.chunk = Some(Bytes(1 << 20));
    let plan = stripe::plan(&asked).expect("a plan");
    assert_eq!(
        plan.value("past_segment_bytes"),
        Some(&Value::Count((1 << 20) % (48 * KIB)))
    );
}

/// Document 003: 512 + 2,097,152 + 512 = 2,098,176.
#[test]
fn the_next_soft_partition() {
    assert_eq!(next_aligned_start(512, 2_097_152, 512), Some(2_098_176));
    assert_eq!(paper_offset(512, 2_097_152, 512), Some(2_098_176));
    let request = softpart::SoftpartRequest {
        component: "d10".to_owned(),
        unit: Bytes(256 * KIB),
        base: Bytes(0),
        is_unit_assumed: false,
        off_below: None,
        component_bytes: None,
        existing: vec![one("d11", 512, 2_097_152)],
        new: vec![("d12".to_owned(), Bytes(1024 << 20))],
    };
    let placed = place(&request).expect("places");
    assert_eq!(
        placed
            .iter()
            .map(|one| (one.offset, one.size))
            .collect::<Vec<_>>(),
        [(512, 2_097_152), (2_098_176, 2_097_152)]
    );
    let plan = softpart::plan(&request).expect("a plan");
    let commands: Vec<&str> = plan.remedies[0]
        .steps
        .iter()
        .map(|step| step.command.as_str())
        .collect();
    assert_eq!(commands, ["metainit d12 -p d10 -o 2098176 -b 2097152"]);
}

/// The formula of document 003 is off wherever the last size is no multiple of the unit.
#[test]
fn the_formula_of_the_paper_fails_for_odd_sizes() {
    let (last, size, unit) = (512, 2_097_153, 512);
    let paper = paper_offset(last, size, unit).expect("small");
    let right = next_aligned_start(last, size, unit).expect("small");
    assert_eq!(paper % unit, 1, "off by the odd sector");
    assert_eq!((right, right % unit), (2_098_176, 0));
}

fn one(name: &str, offset: u64, size: u64) -> SoftPartition {
    SoftPartition {
        name: name.to_owned(),
        extents: vec![(offset, size)],
        mirror: None,
        users: Vec::new(),
    }
}

fn listing(unit: u64) -> softpart::SoftpartRequest {
    softpart::SoftpartRequest {
        component: "d2".to_owned(),
        unit: Bytes(unit),
        base: Bytes(0),
        is_unit_assumed: false,
        off_below: None,
        component_bytes: None,
        existing: LISTING
            .iter()
            .map(|(name, offset, size)| one(name, *offset, *size))
            .collect(),
        new: Vec::new(),
    }
}

/// Each extent begins one sector after the end of the last, as the rule gives for a unit of one sector.
#[test]
fn the_listing_is_packed_behind_headers() {
    let placed = place(&listing(512)).expect("places");
    assert_eq!(placed.len(), 17);
    for one in &placed {
        assert_eq!(Some(one.offset), one.offset_now, "{}", one.name);
    }
    assert_eq!(placed[0].name, "d21");
    assert_eq!(placed[16].name, "d208");
}

/// Put on 8 KiB, every extent is on it, behind the one before with a sector between, and nowhere earlier would do.
#[test]
fn the_listing_is_put_on_a_unit() {
    let placed = place(&listing(8 * KIB)).expect("places");
    let mut free = 0;
    for one in &placed {
        let searched = (free + 1..).find(|at| at % 16 == 0).expect("there is one");
        assert_eq!(one.offset, searched, "{}", one.name);
        free = one.offset + one.size;
    }
    // By hand: 1 → 16; then 16 + 5,344 + 1 = 5,361 → 5,376 = 336 × 16.
    assert_eq!((placed[0].offset, placed[1].offset), (16, 5_376));
    // 61,464,272 = 16 × 3,841,517: d207 is the only one that happens to be on it now.
    let on: Vec<&str> = placed
        .iter()
        .filter(|one| one.past_now == Some(0))
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(on, ["d207"]);
}

/// Document 003: `metasync -r 2048` is 1 MiB, in blocks of 512 bytes; "512-Kbyte blocks" would be 1 GiB.
#[test]
fn resync_blocks_are_of_512_bytes() {
    assert_eq!(resync::blocks(Bytes(1 << 20)), Ok(2048));
    assert_ne!(2048 * 512 * KIB, 1 << 20);
    assert_eq!(2048 * 512 * KIB, 1 << 30);
    assert_eq!(
        resync::blocks(Bytes(32 * KIB)),
        Ok(64),
        "the default of that time"
    );
    assert!(
        resync::blocks(Bytes((1 << 20) + 512)).is_err(),
        "2048 blocks are the most"
    );
    let plan = resync::plan(&resync::ResyncRequest {
        size: Bytes(1 << 20),
        maxphys: Some(Bytes(256 * KIB)),
        mirror: None,
    });
    let plan = plan.expect("a plan");
    let all: String = plan
        .remedies
        .iter()
        .flat_map(|way| &way.steps)
        .map(|s| format!("{}\n", s.command))
        .collect();
    assert!(all.contains("metasync -r 2048\n"), "{all}");
    assert!(
        all.contains("set maxphys=1048576"),
        "maxphys is 256k by default, and must be 1 MiB: {all}"
    );
}
