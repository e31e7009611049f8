//! Documents 000, 001 and 002: starts of I/O, and the cost of misaligned ones.

use plumb_geometry::{Bytes, Extent, Fit, Grid, SECTOR};
use plumb_plan::partition::{self, LabelScheme, layout, limits};
use plumb_plan::record::{Load, moved};
use plumb_stack::dump::{self, Input};
use plumb_stack::{Builder, node::keys};

use crate::seeds::KIB;

fn partition(grid: u64, after: u64) -> partition::PartitionRequest {
    crate::common::partition(
        "/dev/sdb",
        LabelScheme::Gpt,
        Grid::unit(Bytes(grid)).expect("a grid"),
        after,
    )
}

/// Document 000: 33 sectors of label, so 34 is the first; an 8 KiB access there touches 32–47 and 48–63.
#[test]
fn an_efi_label_puts_the_first_partition_at_sector_34() {
    let first = limits(&LabelScheme::Gpt, 512, None).expect("limits").first;
    assert_eq!(first, Bytes(34 * SECTOR));
    assert_eq!(first, Bytes(17 * KIB));
    let access = Extent::new(first, Bytes(8 * KIB)).expect("an extent");
    let fit = Fit::from_extent(access, &Grid::unit(Bytes(8 * KIB)).expect("a grid"))
        .expect("has a length");
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
    let past = |grid: u64| {
        Grid::unit(Bytes(grid))
            .expect("a grid")
            .past_boundary(Bytes(40 * SECTOR))
    };
    assert_eq!(40 % 8, 0);
    assert_eq!(past(4 * KIB), Bytes(0));
    assert_eq!(past(8 * KIB), Bytes(8 * SECTOR));
    assert_eq!(
        layout(&partition(4 * KIB, 34)).expect("a layout").start,
        Bytes(40 * SECTOR)
    );
}

/// Document 000: 71,682 of 72,627 I/O two sectors off make a mean of 1,010.7 bytes; it prints 1,011.
#[test]
fn the_mean_offset_is_that_of_a_start_at_sector_34() {
    let head = Grid::unit(Bytes(4 * KIB))
        .expect("a grid")
        .past_boundary(Bytes(34 * SECTOR));
    assert_eq!(head, Bytes(1024));
    let mean = 71_682.0 * head.0 as f64 / 72_627.0;
    assert!((mean - 1_010.7).abs() < 0.05, "{mean}");
}

/// Document 000: it prints 1 block, since 1.97 were cut off; and "0 percent" for 484 of 72,627 and for 629 of 94,878, which
/// are 0.67 and 0.66. All of the second are aligned: a start at sector 48 is.
#[test]
fn values_that_align_d_truncates() {
    let grid = Grid::unit(Bytes(4 * KIB)).expect("a grid");
    let head_blocks = grid.past_boundary(Bytes(34 * SECTOR)).0 / SECTOR;
    assert_eq!(71_682 * head_blocks / 72_627, 1);
    assert!((71_682.0 * head_blocks as f64 / 72_627.0 - 1.97_f64).abs() < 0.005);
    for (odd, issued, percent) in [(484_u64, 72_627_u64, 0.67), (629, 94_878, 0.66)] {
        assert_eq!(100 * odd / issued, 0);
        assert!((100.0 * odd as f64 / issued as f64 - percent).abs() < 0.005);
    }
    assert_eq!(
        Grid::unit(Bytes(8 * KIB))
            .expect("a grid")
            .past_boundary(Bytes(48 * SECTOR)),
        Bytes(0)
    );
}

/// The first report of `iostat -xnzcT d 1` in document 000 with the label at sector 34, and with that at 48.
const IOSTAT: [(&str, f64, f64); 2] = [
    (
        "15639.6 42.0 124467.0 0.0 0.1 62.9 0.0 4.0 10 100 c0t6d0",
        4.0,
        15_681.6,
    ),
    (
        "20233.6 56.0 161002.7 0.0 0.1 62.8 0.0 3.1 11 100 c0t6d0",
        3.1,
        20_289.6,
    ),
];

/// Document 000: in flight = rate × time holds of both reports, as read by the reader of iostat: 62.9 at 15,682 a second
/// are 4.0 ms each, and 62.8 at 20,290 are 3.1.
#[test]
fn littles_law_holds_of_iostat() {
    for (row, service_ms, rate) in IOSTAT {
        let text = format!("r/s w/s kr/s kw/s wait actv wsvc_t asvc_t %w %b device\n{row}\n");
        let mut builder = Builder::default();
        let input = Input {
            name: "iostat",
            text: &text,
        };
        assert_eq!(
            dump::read(&input, &mut builder).expect("iostat").tool,
            "iostat"
        );
        let stack = builder.finish();
        let disk = stack.node(stack.find("c0t6d0").expect("a disk"));
        let found = disk.number(keys::IOS_PER_SECOND).expect("a rate");
        assert!((found - rate).abs() < 1e-6, "{found}");
        let words: Vec<f64> = row
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        let in_flight_ms = words[5] * 1000.0 / rate;
        assert_eq!((in_flight_ms * 10.0).round() / 10.0, service_ms, "{row}");
    }
}

/// Document 000: 15,900 to 20,200 a second is 27 % more and not 20, and 3.9 to 3.3 ms is 15 % less. With 64 requests
/// outstanding 3.9 ms fit 15,900, while 3.3 ms do not fit 20,200, which would be 67 at once; 3.1 as iostat printed do.
#[test]
fn the_gain_is_27_percent() {
    assert_eq!(((20_200.0 / 15_900.0 - 1.0) * 100.0_f64).round(), 27.0);
    assert_eq!(((1.0 - 3.3 / 3.9) * 100.0_f64).round(), 15.0);
    let in_flight = |rate: f64, ms: f64| (rate * ms / 1000.0).round();
    assert_eq!(
        [
            in_flight(15_900.0, 3.9),
            in_flight(20_200.0, 3.3),
            in_flight(20_200.0, 3.1)
        ],
        [62.0, 67.0, 63.0]
    );
}

/// Document 001: with records of 128 KiB a page moves 131,072 bytes, in the bin above 65,536; the document's
/// "65536-13072" lacks a digit, and no I/O could be in it. With records of 8 KiB they are in the bin from 4 to 8 KiB.
#[test]
fn the_bins_of_requests() {
    for (record, above, up_to) in [(128 * KIB, 65_536, 131_072), (8 * KIB, 4_096, 8_192)] {
        let moved = moved(&Load::Page(Bytes(8 * KIB)), Bytes(record)).expect("an answer");
        let pages = moved.read / u128::from(8 * KIB);
        let request = moved.read_moved / pages;
        assert!(above < request && request <= up_to, "{request}");
        assert!(request > 13_072 || record == 8 * KIB);
    }
}

/// Document 001: records of 128 KiB under pages of 8 KiB; 10 MB/s asked became 120 at the device, within the bound.
#[test]
fn records_of_128_kib_under_pages_of_8_kib() {
    let of = |record| moved(&Load::Page(Bytes(8 * KIB)), Bytes(record)).expect("an answer");
    let large = of(128 * KIB);
    assert_eq!(large.read_amplification(), Some(16.0));
    let seen = 120.0 / 10.0;
    assert!(
        large
            .read_amplification()
            .is_some_and(|bound| seen <= bound)
    );
    assert_eq!(
        large.write_amplification(),
        Some(32.0),
        "16 written and 16 read first"
    );
    let small = of(8 * KIB);
    assert_eq!(
        (small.read_amplification(), small.write_amplification()),
        (Some(1.0), Some(1.0))
    );
}

/// Document 002: fast at 0 and 4,096, slow at the seven offsets between: 4 KiB touch one block, or two.
#[test]
fn an_offset_sweep_has_a_period_of_4_kib() {
    let grid = Grid::unit(Bytes(4 * KIB)).expect("a grid");
    let cells: Vec<u64> = (0..=8)
        .map(|step| Extent::new(Bytes(step * 512), Bytes(4 * KIB)).expect("an extent"))
        .map(|extent| Fit::from_extent(extent, &grid).expect("has a length").cells)
        .collect();
    assert_eq!(cells, [1, 2, 2, 2, 2, 2, 2, 2, 1]);
    // I/O a second at each offset: those that touch two blocks are 5.3 to 5.6 times slower, the others alike.
    let rates = [
        19_223.0, 3_655.5, 3_634.0, 3_633.0, 3_614.5, 3_604.0, 3_602.5, 3_597.5, 20_050.5,
    ];
    let of = |wanted: u64| {
        let found = rates
            .iter()
            .zip(&cells)
            .filter(move |(_, cells)| **cells == wanted);
        found.map(|(rate, _)| *rate).collect::<Vec<f64>>()
    };
    let (fast, slow) = (of(1), of(2));
    let (least, most) = (fast[0] / slow[0], fast[1] / slow[6]);
    assert_eq!(
        ((least * 10.0).round(), (most * 10.0).round()),
        (53.0, 56.0),
        "{least} {most}"
    );
    assert!(
        slow.is_sorted_by(|a, b| a > b) && fast[1] / fast[0] < 1.05,
        "{slow:?} {fast:?}"
    );
}
