//! The numbers of the documents that Plumb grew out of, typed from there, and their slips shown as slips.

use plumb_geometry::{Bytes, Extent, Fit, Grid, SECTOR, Share, next_aligned_start};
use plumb_plan::disks::{Raid, counts};
use plumb_plan::partition::{Label, layout, limits};
use plumb_plan::record::{Load, moved};
use plumb_plan::softpart::{SoftPartition, paper_offset, place};
use plumb_plan::stripe::{Starts, chunk_for, share};
use plumb_plan::{Value, disks, partition, resync, softpart, stripe, writes};

const KIB: u64 = 1024;

fn partition(grid: u64, after: u64) -> partition::Request {
    partition::Request {
        device: "/dev/sdb".to_owned(),
        label: Label::Gpt,
        is_new_label: false,
        sector_bytes: 512,
        disk_bytes: None,
        grids: vec![Grid::unit(Bytes(grid)).expect("a grid")],
        are_grids_assumed: false,
        after: Bytes(after * SECTOR),
        before: None,
        size: None,
        number: 1,
        current: None,
        content: None,
    }
}

/// Document 000: 33 sectors of label, so 34 is the first; an 8 KiB access there touches 32–47 and 48–63.
#[test]
fn an_efi_label_puts_the_first_partition_at_sector_34() {
    let first = limits(&Label::Gpt, 512, None).expect("limits").first;
    assert_eq!(first, Bytes(34 * SECTOR));
    assert_eq!(first, Bytes(17 * KIB));
    let access = Extent::new(first, Bytes(8 * KIB)).expect("an extent");
    let fit = Fit::of(access, &Grid::unit(Bytes(8 * KIB)).expect("a grid")).expect("has a length");
    assert_eq!(fit.cells, 2);
    let cells_from = (access.start().0 - fit.head.0) / SECTOR;
    assert_eq!((cells_from, cells_from + 31), (32, 63));
}

/// Document 000: the next starts for 8, 64 and 128 KiB.
#[test]
fn next_starts_after_sector_34() {
    let start = |grid, after| layout(&partition(grid, after)).expect("a layout").start.0 / SECTOR;
    assert_eq!(start(8 * KIB, 34), 48);
    assert_eq!(48 * SECTOR, 24 * KIB);
    assert_eq!(start(8 * KIB, 49), 64);
    assert_eq!(start(64 * KIB, 34), 128);
    assert_eq!(start(128 * KIB, 34), 256);
}

/// Document 000 tests `blkno % 8`, which is 4 KiB, where its text says 8 KiB: a start at sector 40 passes that test.
#[test]
fn a_test_modulo_8_is_one_of_4_kib() {
    let past = |grid: u64| Grid::unit(Bytes(grid)).expect("a grid").past_boundary(Bytes(40 * SECTOR));
    assert_eq!(40 % 8, 0);
    assert_eq!(past(4 * KIB), Bytes(0));
    assert_eq!(past(8 * KIB), Bytes(8 * SECTOR));
    assert_eq!(layout(&partition(4 * KIB, 34)).expect("a layout").start, Bytes(40 * SECTOR));
}

/// Document 000: 71,682 of 72,627 I/O two sectors off make a mean of 1,010.7 bytes; it prints 1,011.
#[test]
fn the_mean_offset_is_that_of_a_start_at_sector_34() {
    let head = Grid::unit(Bytes(4 * KIB)).expect("a grid").past_boundary(Bytes(34 * SECTOR));
    assert_eq!(head, Bytes(1024));
    let mean = 71_682.0 * head.0 as f64 / 72_627.0;
    assert!((mean - 1_010.7).abs() < 0.05, "{mean}");
}

/// Document 001: records of 128 KiB under pages of 8 KiB; 10 MB/s asked became 120 at the device, within the bound.
#[test]
fn records_of_128_kib_under_pages_of_8_kib() {
    let of = |record| moved(&Load::Page(Bytes(8 * KIB)), Bytes(record)).expect("an answer");
    let large = of(128 * KIB);
    assert_eq!(large.read_amplification(), Some(16.0));
    let seen = 120.0 / 10.0;
    assert!(large.read_amplification().is_some_and(|bound| seen <= bound));
    assert_eq!(large.write_amplification(), Some(32.0), "16 written and 16 read first");
    let small = of(8 * KIB);
    assert_eq!((small.read_amplification(), small.write_amplification()), (Some(1.0), Some(1.0)));
}

/// Document 002: fast at 0 and 4,096, slow at the seven offsets between: where 4 KiB touch one block, or two.
#[test]
fn an_offset_sweep_has_a_period_of_4_kib() {
    let grid = Grid::unit(Bytes(4 * KIB)).expect("a grid");
    let cells: Vec<u64> = (0..=8)
        .map(|step| Extent::new(Bytes(step * 512), Bytes(4 * KIB)).expect("an extent"))
        .map(|extent| Fit::of(extent, &grid).expect("has a length").cells)
        .collect();
    assert_eq!(cells, [1, 2, 2, 2, 2, 2, 2, 2, 1]);
}

/// Document 003: 1 of 4 and 1 of 128, which hold one sector off; none on a boundary; 15/64 and 15/2048 anywhere.
#[test]
fn split_shares() {
    let of = |chunk: u64, base: u64, starts| {
        share(Bytes(8 * KIB), Bytes(chunk), Bytes(base), starts).expect("a share").to_string()
    };
    for (chunk, one_off, any) in [(32 * KIB, "1/4", "15/64"), (1 << 20, "1/128", "15/2048")] {
        assert_eq!(of(chunk, 0, Starts::Pages), "0/1");
        assert_eq!(of(chunk, 512, Starts::Pages), one_off);
        assert_eq!(of(chunk, 0, Starts::AnySector), any);
    }
}

fn stripe(share_max: (u64, u64), segment: Option<u64>) -> stripe::Request {
    stripe::Request {
        io: Bytes(8 * KIB),
        base: Bytes(0),
        starts: Starts::Pages,
        share_max: Share { numerator: share_max.0, denominator: share_max.1 },
        chunk: None,
        segment: segment.map(Bytes),
        manager: stripe::Manager::Svm,
        members: vec!["c3t1d0s7".to_owned(), "c5t1d0s7".to_owned()],
        parity: 0,
    }
}

/// Document 003: 20 segments of 48 KiB are 960 KiB, and that is the first chunk of whole segments of which no more than
/// 1 of 120 pages crosses.
#[test]
fn chunks_are_whole_segments() {
    assert_eq!(20 * 48 * KIB, 960 * KIB);
    assert_eq!(chunk_for(&stripe((1, 120), Some(48 * KIB))), Some(Bytes(960 * KIB)));
    assert_eq!(chunk_for(&stripe((1, 128), None)), Some(Bytes(1 << 20)));
    assert_eq!(chunk_for(&stripe((1, 4), None)), Some(Bytes(32 * KIB)));
    // 1 MiB, the paper's other advice, cuts a segment of 48 KiB in two.
    let mut asked = stripe((1, 100), Some(48 * KIB));
    asked.chunk = Some(Bytes(1 << 20));
    let plan = stripe::plan(&asked).expect("a plan");
    assert_eq!(plan.value("past_segment_bytes"), Some(&Value::Count((1 << 20) % (48 * KIB))));
}

/// Document 003: 512 + 2,097,152 + 512 = 2,098,176.
#[test]
fn the_next_soft_partition() {
    assert_eq!(next_aligned_start(512, 2_097_152, 512), Some(2_098_176));
    assert_eq!(paper_offset(512, 2_097_152, 512), Some(2_098_176));
    let request = softpart::Request {
        component: "d10".to_owned(),
        unit: Bytes(256 * KIB),
        base: Bytes(0),
        component_bytes: None,
        existing: vec![one("d11", 512, 2_097_152)],
        new: vec![("d12".to_owned(), Bytes(1024 << 20))],
    };
    let placed = place(&request).expect("places");
    assert_eq!(
        placed.iter().map(|one| (one.offset, one.size)).collect::<Vec<_>>(),
        [(512, 2_097_152), (2_098_176, 2_097_152)]
    );
    let plan = softpart::plan(&request).expect("a plan");
    let commands: Vec<&str> = plan.remedies[0].steps.iter().map(|step| step.command.as_str()).collect();
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
    SoftPartition { name: name.to_owned(), extents: vec![(offset, size)], mirror: None }
}

/// The listing of document 003, in its order.
const LISTING: [(&str, u64, u64); 17] = [
    ("d208", 61_473_953, 9_680),
    ("d207", 61_464_272, 9_680),
    ("d206", 60_440_255, 1_024_016),
    ("d205", 59_416_238, 1_024_016),
    ("d204", 52_264_621, 7_151_616),
    ("d203", 45_113_004, 7_151_616),
    ("d202", 37_961_387, 7_151_616),
    ("d201", 30_809_770, 7_151_616),
    ("d29", 25_677_481, 5_132_288),
    ("d28", 20_545_192, 5_132_288),
    ("d27", 15_412_903, 5_132_288),
    ("d26", 10_280_614, 5_132_288),
    ("d25", 5_148_325, 5_132_288),
    ("d24", 16_036, 5_132_288),
    ("d23", 10_691, 5_344),
    ("d22", 5_346, 5_344),
    ("d21", 1, 5_344),
];

fn listing(unit: u64) -> softpart::Request {
    softpart::Request {
        component: "d2".to_owned(),
        unit: Bytes(unit),
        base: Bytes(0),
        component_bytes: None,
        existing: LISTING.iter().map(|(name, offset, size)| one(name, *offset, *size)).collect(),
        new: Vec::new(),
    }
}

/// Each extent begins one sector after the end of the last: what the rule gives for a unit of one sector.
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
    let on: Vec<&str> =
        placed.iter().filter(|one| one.past_now == Some(0)).map(|one| one.name.as_str()).collect();
    assert_eq!(on, ["d207"]);
}

/// Document 003: `metasync -r 2048` is 1 MiB, in blocks of 512 bytes; "512-Kbyte blocks" would be 1 GiB.
#[test]
fn resync_blocks_are_of_512_bytes() {
    assert_eq!(resync::blocks(Bytes(1 << 20)), Ok(2048));
    assert_ne!(2048 * 512 * KIB, 1 << 20);
    assert_eq!(2048 * 512 * KIB, 1 << 30);
    assert_eq!(resync::blocks(Bytes(32 * KIB)), Ok(64), "the default of that time");
    assert!(resync::blocks(Bytes((1 << 20) + 512)).is_err(), "2048 blocks are the most");
    let plan = resync::plan(&resync::Request {
        size: Bytes(1 << 20),
        maxphys: Some(Bytes(256 * KIB)),
        mirror: None,
    });
    let plan = plan.expect("a plan");
    let all: String =
        plan.remedies.iter().flat_map(|way| &way.steps).map(|s| s.command.clone() + "\n").collect();
    assert!(all.contains("metasync -r 2048\n"), "{all}");
    assert!(all.contains("set maxphys=1048576"), "maxphys is 256k by default, and must be 1 MiB: {all}");
}

fn disks(raid: Raid) -> disks::Request {
    disks::Request {
        reads: 0.0,
        writes: 265.0,
        growth: 1.0,
        disk_rate: 80.0,
        raid,
        margin: 0.2,
        response_ms: None,
        chunk_kib: 128,
    }
}

/// Document 004: 265 a second on disks of 80: three give 240, four 320, with 20 to 30 % to spare wanted.
#[test]
fn four_disks_for_265_writes_a_second() {
    let request = disks(Raid::Raid0);
    let found = counts(&request).expect("numbers");
    assert_eq!((found.load, found.margin), (4, 4));
    assert_eq!((request.outcome(3).capacity, request.outcome(4).capacity), (240.0, 320.0));
    assert!(request.outcome(3).utilisation > 1.0 && request.outcome(3).response_ms.is_none());
    let four = request.outcome(4);
    assert_eq!((four.utilisation * 100.0).round(), 83.0);
    assert!((0.20..0.30).contains(&four.margin), "{}", four.margin);
    // Service 12.5 ms; 1 / (1 - 0.828125) = 5.818...: what 83 % does to response time.
    let response = four.response_ms.expect("no overload");
    assert!((response - 72.727).abs() < 0.001, "{response}");
    assert!((response / request.service_ms() - 5.818).abs() < 0.001);
}

/// Without a margin four disks of 80 carry 318 a second; with a fifth more, 381.6, it takes five.
#[test]
fn a_margin_is_left_over() {
    let mut request = disks(Raid::Raid0);
    request.writes = 318.0;
    let found = counts(&request).expect("numbers");
    assert_eq!((found.load, found.margin, found.all()), (4, 5, 5));
}

/// However tight the limit, the number is the first that answers in time.
#[test]
fn a_response_limit_takes_the_fewest_disks() {
    for limit in [13.0, 15.0, 20.0, 25.0, 50.0, 72.0, 73.0, 100.0, 1000.0] {
        let mut request = disks(Raid::Raid0);
        request.response_ms = Some(limit);
        let found = counts(&request).expect("numbers").response.expect("asked for");
        let in_time =
            |disks| request.outcome(disks).response_ms.is_some_and(|response| response <= limit + 1e-6);
        let searched = (1..1000).find(|disks| in_time(*disks));
        assert_eq!(Some(found), searched, "{limit} ms");
    }
    let mut request = disks(Raid::Raid0);
    request.response_ms = Some(12.5);
    assert!(counts(&request).is_err(), "the disk alone takes 12.5 ms");
}

/// Document 004: 66 × 4 is 264; it asks for 265.
#[test]
fn sixty_six_times_four_is_264() {
    let mut request = disks(Raid::Raid0);
    (request.writes, request.growth) = (66.0, 4.0);
    assert_eq!(request.load(), 264.0);
    assert_eq!(counts(&request).expect("numbers").margin, 4);
}

/// Document 004: eight disks for striped mirrors, and why RAID 5 is out of the question.
#[test]
fn redundancy_costs_writes() {
    let of = |raid| counts(&disks(raid)).expect("numbers");
    assert_eq!(of(Raid::Raid10).margin, 8);
    assert_eq!(of(Raid::Raid5).load, 14, "265 × 4 / 80 = 13.25");
    assert_eq!(of(Raid::Raid6).load, 20, "265 × 6 / 80 = 19.875");
    assert_eq!([Raid::Raid0, Raid::Raid1, Raid::Raid5, Raid::Raid6].map(Raid::write_cost), [1, 2, 4, 6]);
}

/// Document 004: 409 a second in sequence; 70 writes of 16 records are 1,120; both, 218 of 16, are 3,488.
#[test]
fn sequential_and_gathered_writes() {
    let request = writes::Request {
        record: Bytes(512),
        gather: 16,
        demand: Some(265.0),
        random: 80.0,
        sequential: Some(409.0),
        gathered: Some(70.0),
        gathered_sequential: Some(218.0),
    };
    let ways = writes::ways(&request);
    let records: Vec<f64> = ways.iter().filter_map(writes::Way::records_per_second).collect();
    assert_eq!(records, [80.0, 409.0, 1_120.0, 3_488.0]);
    let disks: Vec<Option<u64>> = ways.iter().map(|way| way.disks(request.demand)).collect();
    assert_eq!(disks, [Some(4), Some(1), Some(1), Some(1)]);
    let plan = writes::plan(&request).expect("a plan");
    assert_eq!(plan.value("write_bytes"), Some(&Value::Count(8_192)));
}
