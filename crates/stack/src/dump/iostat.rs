//! Mean rates of devices from reports of `iostat`, of Linux and of Solaris alike. The first report of several counts from the
//! boot of the host, and is left out; a device that is not in a report had no I/O. `plumb_iostat` knows the columns.

use std::collections::BTreeMap;

use plumb_iostat::{IostatColumns, IostatLine, Tool};

use super::text::{count, lines, sniff_by};
use super::{Input, Sniff, Taken};

/// The mean of a device over the reports that count.
pub(super) struct Rates<'a> {
    pub(super) device: &'a str,
    /// Line of its first row.
    pub(super) line: usize,
    /// Reads and writes a second.
    pub(super) per_second: [f64; 2],
}

/// Reads and writes a second of a device, in the first report and summed up in the others.
#[derive(Default)]
struct Sums {
    line: usize,
    first: [f64; 2],
    others: [f64; 2],
}

/// *Yes* where the beginning has a heading of the tool.
pub(super) fn sniff(input: &Input<'_>, tool: Tool) -> Sniff {
    let is_of_tool = |columns: IostatColumns| columns.tool() == tool;
    sniff_by(input, |line| {
        IostatColumns::of_heading(line).is_some_and(is_of_tool)
    })
}

/// Reads all reports of the tool.
pub(super) fn reports<'a>(input: &Input<'a>, tool: Tool) -> (Taken, Vec<Rates<'a>>) {
    let mut taken = Taken::default();
    let (mut columns, mut reports) = (None, 0_u64);
    let mut devices: BTreeMap<&str, Sums> = BTreeMap::new();
    for (line, text) in lines(input) {
        match IostatLine::parse(text) {
            IostatLine::Heading(found) if found.tool() == tool => {
                columns = Some(found);
                reports += 1;
            }
            IostatLine::Banner | IostatLine::Processors if tool == Tool::Sysstat => columns = None,
            IostatLine::Title if tool == Tool::Solaris => {}
            _ => {
                let Some(columns) = &columns else { continue };
                let row = columns.rates(text);
                count(&mut taken, row.is_some());
                let Some((device, seen)) = row else { continue };
                let sums = devices.entry(device).or_insert(Sums {
                    line,
                    ..Sums::default()
                });
                let sums = if reports == 1 {
                    &mut sums.first
                } else {
                    &mut sums.others
                };
                sums.iter_mut()
                    .zip(seen)
                    .for_each(|(sum, seen)| *sum += seen);
            }
        }
    }
    let rates = devices.into_iter().map(|(device, sums)| {
        let mean = sums
            .others
            .map(|sum| sum / reports.saturating_sub(1).max(1) as f64);
        Rates {
            device,
            line: sums.line,
            per_second: if reports > 1 { mean } else { sums.first },
        }
    });
    (taken, rates.collect())
}
