//! `plumb fleet rows`: sums over the rows are the numbers of the report.

use std::fs;

use plumb_testkit::Rng;

use crate::common::{Folder, msr, plumb};
use crate::history::parquet_rows;

/// Sums by arithmetic on the I/O themselves equal sums over the rows, on a grid with an offset.
#[test]
fn rows_have_every_io() {
    let folder = Folder::new("fleet-rows");
    let mut rng = Rng::new(11);
    let mut truth = [0u64; 4];
    for host in ["a", "b"] {
        let ios: Vec<(char, u64, u64)> = (0..2_003)
            .map(|_| {
                let (start, len) = (512 * rng.below(1 << 22), 512 * (1 + rng.below(64)));
                (if rng.percent(30) { 'W' } else { 'R' }, start, len)
            })
            .collect();
        for (op, start, len) in &ios {
            let (from, to) = (start + 16_384 - 1536, start + len + 16_384 - 1536);
            let cells = to.div_ceil(16_384) - from / 16_384;
            truth[0] += 1;
            truth[1] += u64::from(*op == 'W');
            truth[2] += u64::from(from % 16_384 != 0);
            truth[3] += cells - len.div_ceil(16_384);
        }
        fs::create_dir_all(folder.path("in").join(host)).expect("room");
        fs::write(folder.path("in").join(host).join("x.csv"), msr(ios)).expect("room");
    }
    let [source, fleet, rows] =
        ["in", "fleet", "rows.parquet"].map(|name| folder.path(name).display().to_string());
    plumb(["fleet", "profile", &source, "-o", &fleet]).ends(0);
    plumb(["fleet", "rows", &fleet, "-o", &rows]).ends(0);
    let mut sums = [0u64; 4];
    for row in parquet_rows(folder.path("rows.parquet").as_path()) {
        let number = |name: &str| row[name].parse::<u64>().expect("a number");
        assert_eq!(number("length"), number("length_min"));
        assert_eq!(number("modulus"), 1 << 20);
        assert_eq!(number("observed_ns"), 2_002_000_000);
        assert!(["a", "b"].contains(&row["host"].as_str()));
        let past = (number("residue") + 16_384 - 1536) % 16_384;
        let (ios, len) = (number("ios"), number("length"));
        sums[0] += ios;
        sums[1] += if row["op"] == "write" { ios } else { 0 };
        sums[2] += if past == 0 { 0 } else { ios };
        sums[3] += ios * ((past + len).div_ceil(16_384) - len.div_ceil(16_384));
    }
    assert_eq!(sums, truth);
}
