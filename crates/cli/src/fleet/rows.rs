//! `plumb fleet rows`: the residue rows of all devices as Parquet, for engines that read SQL.
//!
//! `docs/formats/fleet-rows.md` describes the columns. The rows of one host are in memory at a time.

use plumb_fleet::HostIo;
use plumb_trace::parquet::table::{Cells, TableColumn, TableWriter};
use plumb_trace::write::Output;

use super::{joined, next_parts, opened, pass};
use crate::cli::FleetMerging;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Version of the columns.
const VERSION: &str = "1";

/// Columns of numbers, in their order after the words.
const NUMBERS: [&str; 9] = [
    "observed_ns",
    "modulus",
    "residue",
    "length_min",
    "length",
    "continues",
    "ios",
    "timed",
    "device_ns",
];

/// Runs the command.
///
/// # Errors
/// When an input cannot be read, or the output cannot be written.
pub fn run(args: &FleetMerging) -> Result<Exit, Failure> {
    let mut files = opened(args)?;
    let failed = |error: plumb_trace::Error| Failure::failed(&error);
    let output = Output::create(&args.output).map_err(failed)?;
    let mut writer = TableWriter::new(&columns(&HostIo::default()), output).map_err(failed)?;
    let mut end = pass::PassEnd::default();
    while let Some(parts) = next_parts(&mut files)? {
        let host = joined(parts)?;
        end.count(&host);
        writer.add(&columns(&host)).map_err(failed)?;
    }
    let facts = [
        ("plumb.rows.version", VERSION),
        ("plumb.version", env!("CARGO_PKG_VERSION")),
    ];
    writer.finish(&facts).map_err(failed)?;
    output::note_written(&args.output.display().to_string());
    Ok(end.exit())
}

/// The rows of a host, by device and in the order of their keys.
fn columns(host: &HostIo) -> Vec<TableColumn> {
    let (mut devices, mut layers, mut ops) = (Vec::new(), Vec::new(), Vec::new());
    let mut observed = Vec::new();
    let mut numbers: [Vec<i64>; NUMBERS.len() - 1] = Default::default();
    for profile in host.profiles.iter() {
        let table = &profile.places.table;
        let key = (profile.device.clone(), profile.layer);
        let time = host.facts.observed.get(&key);
        let time = time.and_then(|time| time.known_ns()).map(whole);
        let mut rows: Vec<_> = table.iter().collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        for (key, row) in rows {
            devices.push(profile.device.clone());
            layers.push(profile.layer.word().to_owned());
            ops.push(key.op().word().to_owned());
            observed.push(time);
            let length = table.len_bytes(key);
            let cells = [
                table.modulus_bytes(),
                key.residue().saturating_mul(table.unit_bytes()),
                length.low,
                length.high,
                u64::from(key.continues()),
                row.ios,
                row.timed,
                u64::try_from(row.ns_sum).unwrap_or(u64::MAX),
            ];
            for (column, cell) in numbers.iter_mut().zip(cells) {
                column.push(whole(cell));
            }
        }
    }
    let hosts = vec![host.facts.host.clone(); devices.len()];
    let words = [
        ("host", hosts),
        ("device", devices),
        ("layer", layers),
        ("op", ops),
    ];
    let words = words.map(|(name, cells)| (name, Cells::Words(cells)));
    let cells = std::iter::once(Cells::Perhaps(observed)).chain(numbers.map(Cells::Numbers));
    let column = |(name, cells)| TableColumn { name, cells };
    words
        .into_iter()
        .chain(NUMBERS.into_iter().zip(cells))
        .map(column)
        .collect()
}

/// Engines read signed numbers; larger ones become the largest.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
