//! Writes a fleet file for benchmarks: `day_tier FILE HOSTS DEVICES`.
//!
//! It holds a day of each device in the detail of the day tier of a history: of ten devices one is busy (2,048 rows), three are light (256), and
//! six are nearly idle (24). Rows differ in start, length, operation and stream; all are timed. The bytes are the same every time.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

use plumb_fleet::{FleetWriter, HostIo};
use plumb_profile::ProfileSet;
use plumb_profile::histogram::log_linear_index;
use plumb_profile::profile::TimeBase;
use plumb_profile::table::{Row, Table};
use plumb_testkit::Rng;
use plumb_trace::{Layer, Op};

/// 2026-11-23 00:00:00 UTC.
const DAY_NS: i64 = 1_795_392_000_000_000_000;
const DAY_LEN_NS: i64 = 24 * 3600 * 1_000_000_000;
const ROWS_MAX: usize = 2048;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, hosts, devices] = &arguments[..] else {
        return Err("usage: day_tier FILE HOSTS DEVICES".into());
    };
    let (hosts, devices): (u64, u64) = (hosts.parse()?, devices.parse()?);
    let mut writer = FleetWriter::new(BufWriter::new(File::create(file)?))?;
    for host in 0..hosts {
        let name = format!("h{host:05}");
        let input = format!("image=img-{}/host={name}/day.plumb", host % 20);
        let mut random = Rng::new(host);
        let mut profiles = ProfileSet::default();
        for device in 0..devices {
            add_device(&mut profiles, device, &mut random);
        }
        writer.add(HostIo::of_input(&name, &input, 1 << 20, true, profiles)?)?;
    }
    writer.finish()?;
    Ok(())
}

fn add_device(profiles: &mut ProfileSet, device: u64, random: &mut Rng) {
    let rows = match device % 10 {
        0 => 2048,
        1..4 => 256,
        _ => 24,
    };
    let name = format!("nvme{device}n1");
    let table = || Table::default().with_rows_max(ROWS_MAX);
    let profile = profiles.entry(&name, Layer::Request, table);
    for row in 0..rows {
        let op = if row % 3 == 0 { Op::Write } else { Op::Read };
        let len_bytes = 4096 << random.below(6);
        let residue = random.below(256) * 4096;
        let ios = 1 + random.below(20_000);
        let ns = 60_000 + len_bytes * 2 + random.below(40_000);
        let sums = Row {
            ios,
            timed: ios,
            ns_sum: u128::from(ios) * u128::from(ns),
            ns_squared_sum: u128::from(ios) * u128::from(ns) * u128::from(ns + ns / 8),
            regions: random.next_u64(),
        };
        profile.add_residue(op, residue, len_bytes, row % 5 == 0, &sums);
        profile.ops[op as usize]
            .device_ns
            .add(log_linear_index(ns), ios);
    }
    profile.time_base = TimeBase::Unix;
    (profile.first_ns, profile.last_ns) = (Some(DAY_NS), Some(DAY_NS + DAY_LEN_NS));
    profile.pieces = 1;
}
