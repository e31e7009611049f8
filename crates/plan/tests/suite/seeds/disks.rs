//! Document 004: the number of disks for a rate, and the gain of other ways of writing.

use plumb_geometry::Bytes;
use plumb_plan::disks::{self, Raid, counts};
use plumb_plan::{Value, writes};

fn disks(raid: Raid) -> disks::DisksRequest {
    disks::DisksRequest {
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
    assert_eq!(
        (request.outcome(3).capacity, request.outcome(4).capacity),
        (240.0, 320.0)
    );
    assert!(request.outcome(3).utilisation > 1.0 && request.outcome(3).response_ms.is_none());
    let four = request.outcome(4);
    assert_eq!((four.utilisation * 100.0).round(), 83.0);
    assert!((0.20..0.30).contains(&four.margin), "{}", four.margin);
    // Service 12.5 ms; 1 / (1 - 0.828125) = 5.818...: the effect of 83 % on response time.
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
        let found = counts(&request)
            .expect("numbers")
            .response
            .expect("asked for");
        let in_time = |disks| {
            request
                .outcome(disks)
                .response_ms
                .is_some_and(|response| response <= limit + 1e-6)
        };
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
    assert_eq!(
        [Raid::Raid0, Raid::Raid1, Raid::Raid5, Raid::Raid6].map(Raid::write_cost),
        [1, 2, 4, 6]
    );
}

/// Document 004: 409 a second in sequence; 70 writes of 16 records are 1,120; both, 218 of 16, are 3,488.
#[test]
fn sequential_and_gathered_writes() {
    let request = writes::WritesRequest {
        record: Bytes(512),
        gather: 16,
        demand: Some(265.0),
        random: 80.0,
        sequential: Some(409.0),
        gathered: Some(70.0),
        gathered_sequential: Some(218.0),
    };
    let ways = writes::ways(&request);
    let records: Vec<f64> = ways
        .iter()
        .filter_map(writes::WriteWay::records_per_second)
        .collect();
    assert_eq!(records, [80.0, 409.0, 1_120.0, 3_488.0]);
    let disks: Vec<Option<u64>> = ways.iter().map(|way| way.disks(request.demand)).collect();
    assert_eq!(disks, [Some(4), Some(1), Some(1), Some(1)]);
    let plan = writes::plan(&request).expect("a plan");
    assert_eq!(plan.value("write_bytes"), Some(&Value::Count(8_192)));
}

/// The model of `plan disks` keeps the same law: the number waiting or in service is rate × response, u / (1 − u) of
/// M/M/1.
#[test]
fn littles_law_holds_of_the_plan() {
    let request = disks(Raid::Raid0);
    for count in 4..12 {
        let one = request.outcome(count);
        let rate_of_a_disk = request.load() / count as f64;
        let in_flight = rate_of_a_disk * one.response_ms.expect("no overload") / 1000.0;
        let expected = one.utilisation / (1.0 - one.utilisation);
        assert!(
            (in_flight - expected).abs() < 1e-9,
            "{count}: {in_flight} {expected}"
        );
    }
}
