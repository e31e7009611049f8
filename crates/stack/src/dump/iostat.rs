//! What `iostat` of Linux and of Solaris have in common: reports of rows below a heading. The first report of several
//! counts from the boot of the host, and is left out; a device that is not in a report had no I/O.

use std::collections::BTreeMap;

use super::solaris::text::{count, lines};
use super::{Input, Taken};

/// What a line is, apart from a row.
pub(super) enum IostatLine<C> {
    /// A new report with these columns.
    Heading(C),
    /// What follows is of no device.
    End,
    /// A row, where there are columns.
    Row,
    /// Neither.
    Other,
}

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

/// Reads all reports; `row` takes a device and its rates out of a line.
pub(super) fn reports<'a, C: Copy>(
    input: &Input<'a>,
    kind: impl Fn(&str) -> IostatLine<C>,
    row: impl Fn(&'a str, C) -> Option<(&'a str, [f64; 2])>,
) -> (Taken, Vec<Rates<'a>>) {
    let mut taken = Taken::default();
    let (mut columns, mut reports) = (None, 0_u64);
    let mut devices: BTreeMap<&str, Sums> = BTreeMap::new();
    for (line, text) in lines(input) {
        match kind(text) {
            IostatLine::Heading(found) => (columns, reports) = (Some(found), reports + 1),
            IostatLine::End => columns = None,
            IostatLine::Other => {}
            IostatLine::Row => {
                let Some(columns) = columns else { continue };
                let row = row(text, columns);
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
