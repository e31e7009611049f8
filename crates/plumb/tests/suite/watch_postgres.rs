//! `plumb watch` beside PostgreSQL on a disk that charges for misaligned I/O: see `lab/watch-postgres`.

use std::path::Path;
use std::process::Command;

use plumb_testkit::{Machine, require};
use serde_json::Value;

/// The totals of one start, over all intervals.
struct StartTotals {
    intervals: Vec<Value>,
    total: Value,
    text: String,
    status: String,
    transactions_per_second: f64,
}

fn seen(directory: &Path, name: &str) -> StartTotals {
    let read = |ending: &str| {
        let path = directory.join(format!("{name}.{ending}"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let intervals = read("json")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a document"))
        .collect();
    let total = serde_json::from_str(&read("total.json")).expect("a document");
    let transactions_per_second = read("tps").trim().parse().expect("a rate");
    StartTotals {
        intervals,
        total,
        text: read("txt"),
        status: read("status").trim().to_owned(),
        transactions_per_second,
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value, name: &str) -> u64 {
    value[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no number {name} in {value}"))
}

impl StartTotals {
    fn profiles(&self) -> impl Iterator<Item = &Value> {
        self.intervals
            .iter()
            .flat_map(|interval| list(&interval["result"], "profiles"))
    }

    /// I/O of the partition that begins at this sector, how many are off 4 KiB, and by how many bytes in all.
    fn of_partition(&self, ending: &str, sector: u64) -> [u64; 3] {
        let mut sums = [0; 3];
        for place in self.profiles().flat_map(|profile| list(profile, "places")) {
            if !place["name"]
                .as_str()
                .is_some_and(|name| name.ends_with(ending))
            {
                continue;
            }
            assert_eq!(number(place, "first_byte"), sector * 512);
            let all = &place["grids"][0]["all"];
            for (sum, name) in sums.iter_mut().zip(["ios", "misaligned", "head_bytes_sum"]) {
                *sum += number(all, name);
            }
        }
        sums
    }

    /// Whose I/O, how many, how many of them off the grid.
    fn processes(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let all = self
            .intervals
            .iter()
            .flat_map(|interval| list(&interval["result"], "processes"));
        all.map(|one| {
            (
                one["comm"].as_str().unwrap_or(""),
                number(one, "ios"),
                number(one, "misaligned"),
            )
        })
    }
}

#[test]
fn postgres_at_sector_34_and_moved() {
    require!(
        Bpf,
        Loop,
        Root,
        Tool("nbdkit"),
        Tool("nbdfuse"),
        Tool("fio"),
        Tool("pgbench"),
        Tool("sgdisk")
    );
    require!(Tool("partx"), Tool("mkfs.ext4"), Tool("runuser"));
    let server = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    if !server
        .map(|version| version.path().join("bin/initdb"))
        .any(|initdb| initdb.exists())
    {
        let why = "no PostgreSQL server under /usr/lib/postgresql";
        plumb_testkit::skip!(why);
    }
    let out = tempfile::tempdir().expect("a directory");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/watch-postgres");
    let machine = Machine::watched();
    let mut command = Command::new(script);
    command.arg(out.path()).arg(env!("CARGO_BIN_EXE_plumb"));
    let done = plumb_testkit::wait::output_of(&mut command);
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let [first, moved] = ["34", "aligned"].map(|name| seen(out.path(), name));
    at_34(&first);
    silent(&moved);
    let gain = moved.transactions_per_second / first.transactions_per_second;
    // The kernel's own clock again: medians of all reads, in buckets of a 16th.
    let [slow, fast] = [&first, &moved].map(|seen| median_ns(&seen.total));
    let is_faster = gain > 1.4 && slow > 2.0 * fast;
    // A busy machine wakes the threads of the disk late: that adds the same time to three delays and to one.
    if !is_faster && let Some(why) = machine.was_busy() {
        plumb_testkit::undecided!(why);
    }
    assert!(
        is_faster,
        "{} transactions/s and {slow} ns at 34, {} and {fast} ns behind it",
        first.transactions_per_second, moved.transactions_per_second
    );
}

fn median_ns(total: &Value) -> f64 {
    total["result"]["profiles"][0]["ops"][0]["device"]["p50_ns"]
        .as_f64()
        .expect("a latency of reads")
}

fn at_34(seen: &StartTotals) {
    // Sector 34 is 2 of 8, which is 1,024 bytes past 4 KiB.
    let [ios, misaligned, head_bytes] = seen.of_partition("p1", 34);
    assert!(ios > 500, "{ios}");
    assert_eq!((misaligned, head_bytes), (ios, ios * 1024));
    let [beside, misaligned, _] = seen.of_partition("p2", 321 * 2048);
    assert!(
        beside >= 503 && misaligned == 0,
        "{beside} with fio's 503, {misaligned} of them off"
    );
    let (mut of_postgres, mut of_fio) = (0, 0);
    for (comm, ios, misaligned) in seen.processes() {
        match comm {
            "postgres" => {
                of_postgres += ios;
                assert_eq!(misaligned, ios);
            }
            "fio" => {
                of_fio += ios;
                assert_eq!(misaligned, 0);
            }
            _ => {}
        }
    }
    assert!(
        of_postgres > 500 && of_fio == 503,
        "{of_postgres}, {of_fio}"
    );
    assert_eq!(seen.status, "1");
    assert!(
        seen.text.contains("WARNING  misaligned-io: partition loop"),
        "{}",
        seen.text
    );
    assert!(
        !seen
            .text
            .lines()
            .any(|line| line.starts_with("WARNING") && line.contains("p2 of"))
    );
    // By construction an I/O off the grid waits for three delays of a millisecond, and one of fio's, on it, for one.
    let latency = &seen.total["result"]["profiles"][0]["places"][0]["grids"][0]["latency"];
    assert_eq!(latency["outcome"], "difference", "{latency}");
    let [fitting_ns, low_ns] =
        ["fitting_mean_ns", "low_ns"].map(|name| latency[name].as_f64().unwrap_or(0.0));
    assert!(fitting_ns > 1e6 && low_ns > 0.3e6, "{latency}");
}

fn silent(seen: &StartTotals) {
    let [ios, misaligned, _] = seen.of_partition("p2", 321 * 2048);
    assert!(ios > 500 && misaligned == 0, "{misaligned} of {ios}");
    assert!(seen.processes().any(|(comm, ..)| comm == "postgres"));
    assert!(seen.processes().all(|(_, _, misaligned)| misaligned == 0));
    // It has no grid, so it does not call the disk clean.
    assert_eq!(seen.status, "3");
    let flat = seen.text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        !flat.contains("WARNING") && flat.contains("unknown beyond 4 KiB"),
        "{}",
        seen.text
    );
}
