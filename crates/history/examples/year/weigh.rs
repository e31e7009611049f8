//! The bytes of a year by tier, class of device and column, from a day of each mix. Every window of a year is a copy of one of that day, so the
//! mean record of a class times the number of its windows is the size of the year, without the hours that writing it takes.
//!
//! The pages of the store of the mixes are less full than those of a year, which come in the order of their windows: its size is an upper bound
//! (measured: by 5 %).

use std::path::Path;

use plumb_history::Tier;
use rusqlite::{Connection, OpenFlags};

use crate::load::{Class, MIXES};
use crate::{DAYS, DAYS_OF_HOURS, DAYS_OF_STEPS, DEVICES, Failure, make_mixes, mixes};

/// The columns of a record with their bytes. Those of the totals are numbers of one to eight bytes, 100 together.
const COLUMNS: [&str; 4] = [
    "100",
    "length(profile)",
    "length(senders)",
    "coalesce(length(residues), 0)",
];

/// Windows of a tier in a year of a device that has I/O all the time.
fn windows_of(tier: Tier) -> i64 {
    match tier {
        Tier::FiveMinutes => DAYS_OF_STEPS * 288,
        Tier::Hour => DAYS_OF_HOURS * 24,
        Tier::Day => DAYS,
    }
}

/// Prints the mean bytes of each column, and the MiB of a year with the pages as full as those of the store of the mixes.
pub fn weigh(folder: &Path, seed: u64) -> Result<(), Failure> {
    let folder = make_mixes(folder, &mixes(), seed)?;
    println!("tier class windows totals profile senders residues MiB");
    let mut all = 0.0;
    for (name, tiers) in [
        ("recent.db", &Tier::ALL[..1]),
        ("history.db", &Tier::ALL[1..]),
    ] {
        let file = folder.join(name);
        let connection = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let overhead = overhead_of(&connection, tiers)?;
        println!("{name}: {overhead:.3} bytes in pages for each byte of a record");
        for tier in tiers {
            for (class, devices) in Class::ALL.into_iter().zip(DEVICES) {
                let means = means_of(&connection, *tier, class)?;
                let windows = windows_of(*tier) * devices as i64;
                let bytes = means.iter().sum::<f64>() * windows as f64 * overhead;
                let mib = bytes / f64::from(1 << 20);
                all += mib;
                let [totals, profile, senders, residues] = means.map(f64::round);
                println!(
                    "{} {class:?} {windows} {totals} {profile} {senders} {residues} {mib:.0}",
                    tier.word()
                );
            }
        }
    }
    println!("year {all:.0} MiB, {:.2} GiB", all / 1024.0);
    Ok(())
}

/// Bytes of pages in use for each byte of a record.
fn overhead_of(connection: &Connection, tiers: &[Tier]) -> Result<f64, Failure> {
    let pragma = |name: &str| -> Result<i64, Failure> {
        Ok(connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))?)
    };
    let pages = pragma("page_count")? - pragma("freelist_count")?;
    let used = pages * pragma("page_size")?;
    let mut bytes = 0;
    for tier in tiers {
        let (sum, word) = (COLUMNS.join(" + "), tier.word());
        let sql =
            format!("SELECT sum({sum}) FROM histograms_{word} LEFT JOIN table_{word} USING (id)");
        bytes += connection.query_row(&sql, [], |row| row.get::<_, i64>(0))?;
    }
    Ok(used as f64 / bytes as f64)
}

/// Mean bytes of each column of the records of a class.
fn means_of(connection: &Connection, tier: Tier, class: Class) -> Result<[f64; 4], Failure> {
    let word = tier.word();
    let first = class as i64 * MIXES as i64;
    let mut means = [0.0; 4];
    for (bytes, mean) in COLUMNS.iter().zip(&mut means) {
        let sql = format!(
            "SELECT avg({bytes}) FROM histograms_{word} LEFT JOIN table_{word} USING (id)
             WHERE id % 4096 BETWEEN ? AND ?"
        );
        let last = first + MIXES as i64 - 1;
        *mean = connection.query_row(&sql, [first, last], |row| row.get(0))?;
    }
    Ok(means)
}
