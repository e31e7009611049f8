//! `iostat` of Solaris without `-x`: the devices in one line, their columns `kps tps serv` below, and a row each interval.
//!
//! `kps` are KiB a second, `tps` I/O a second and `serv` the mean service time in ms, all in whole numbers; reads and
//! writes are not separate. Columns of terminals and processors surround them. With `-D` the columns are `rps wps
//! util`, which is not read.

use plumb_iostat::Printed;

use super::{DeviceRow, OpRow, Report, Series, SeriesTool, Span, Tool};
use crate::error::{Damage, Place, shown};

const OF_DEVICE: [&str; 3] = ["kps", "tps", "serv"];

/// Columns in front of those of the first device, and the number of devices.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BriefColumns {
    front: usize,
    devices: usize,
    width: usize,
}

impl BriefColumns {
    fn of_heading(line: &str) -> Option<BriefColumns> {
        let words: Vec<&str> = line.split_whitespace().take(64).collect();
        let front = words.iter().position(|word| *word == OF_DEVICE[0])?;
        let devices = words[front..]
            .chunks(OF_DEVICE.len())
            .take_while(|columns| **columns == OF_DEVICE)
            .count();
        let is_front = words[..front] == ["tin", "tout"] || front == 0;
        let behind = &words[front + devices * OF_DEVICE.len()..];
        let is_behind = behind.is_empty() || behind.first() == Some(&"us");
        (devices > 0 && is_front && is_behind).then_some(BriefColumns {
            front,
            devices,
            width: words.len(),
        })
    }
}

/// Whether there is a heading among the first lines.
pub fn sniff(text: &str) -> bool {
    text.lines()
        .any(|line| BriefColumns::of_heading(line).is_some())
}

/// Reads all rows.
pub fn read(text: &str) -> Series {
    let mut series = Series::new(SeriesTool::Iostat(Tool::Solaris));
    let mut names: Vec<String> = Vec::new();
    let mut above: Vec<String> = Vec::new();
    let mut columns: Option<BriefColumns> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split_whitespace().take(64).collect();
        let mut damage = |found: String, expected: String| {
            series.damage(Damage {
                place: Place::Line(number),
                found,
                expected,
            });
        };
        if let Some(found) = BriefColumns::of_heading(line) {
            columns = Some(found).filter(|found| found.devices == above.len());
            if columns.is_none() {
                damage(
                    format!("{} names", above.len()),
                    format!("the names of {} devices above the columns", found.devices),
                );
            }
            names.clone_from(&above);
            continue;
        }
        above = words
            .iter()
            .filter(|word| !matches!(**word, "tty" | "cpu"))
            .map(|word| (*word).to_owned())
            .collect();
        let Some(columns) = columns else { continue };
        let numbers: Vec<Printed> = words
            .iter()
            .filter_map(|word| Printed::parse(word))
            .collect();
        if numbers.len() < words.len() || words.is_empty() {
            continue;
        }
        if numbers.len() != columns.width {
            damage(
                shown(line.trim().as_bytes()),
                format!("{} numbers, as in the heading", columns.width),
            );
            continue;
        }
        let cells = numbers[columns.front..].chunks(OF_DEVICE.len());
        let rows = names.iter().zip(cells).filter_map(|(name, cells)| {
            let [kps, tps, serv] = cells else { return None };
            Some((name.clone(), row(*kps, *tps, *serv, number)))
        });
        series.reports.push(Report {
            line: number,
            rows: rows.collect(),
            ..Report::default()
        });
    }
    series
}

fn row(kps: Printed, tps: Printed, serv: Printed, line: u64) -> DeviceRow {
    DeviceRow {
        line,
        undivided: Some(OpRow {
            per_second: tps,
            bytes_per_second: Some(kps.value * 1024.0),
            ms: None,
        }),
        ms: Some(serv),
        span: Span::Response,
        ..DeviceRow::default()
    }
}
