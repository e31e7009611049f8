//! `iostat -x`, `-xn` and `-xr` of Solaris: I/O a second of each device, volumes and the disks below them alike.
//!
//! The first report of several counts from the boot of the host, and is left out. A device that `-z` leaves out of a
//! report had no I/O. Rates are rounded to whole I/O: they are for comparing layers. Without `-n` volume `d26` is
//! called `md26`, and disks by their driver's number, which nothing else here tells.

use std::collections::BTreeMap;

use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::is_disk;
use super::text::{anything, count, lines, on_solaris, sniff_by};
use crate::builder::Builder;
use crate::node::{Kind, keys};

pub(super) static FORMAT: Format = Format { tool: "iostat", is_verified: true, sniff, read };

/// Drivers of disks.
const DISK_DRIVERS: [&str; 5] = ["sd", "ssd", "cmdk", "dad", "blkdev"];

/// Where in a row a device and its rates are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Columns {
    device: usize,
    reads: usize,
    writes: usize,
    width: usize,
}

fn words(line: &str) -> Vec<&str> {
    let split = |c: char| c.is_whitespace() || c == ',';
    line.trim().trim_end_matches(',').split(split).filter(|word| !word.is_empty()).take(16).collect()
}

/// Linux has no `actv`, which is how the two are told apart.
fn heading(line: &str) -> Option<Columns> {
    let words = words(line);
    let at = |name| words.iter().position(|word| *word == name);
    at("actv")?;
    Some(Columns { device: at("device")?, reads: at("r/s")?, writes: at("w/s")?, width: words.len() })
}

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| heading(line).is_some())
}

/// Reads and writes a second of a device, in the first report and summed up in the others.
#[derive(Default)]
struct Rates {
    line: usize,
    first: [f64; 2],
    others: [f64; 2],
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let (mut columns, mut reports) = (None, 0u64);
    let mut devices: BTreeMap<&str, Rates> = BTreeMap::new();
    for (line, text) in lines(input) {
        if let Some(found) = heading(text) {
            (columns, reports) = (Some(found), reports + 1);
            continue;
        }
        if text.contains("extended device statistics") || columns.is_none() {
            continue;
        }
        let row = columns.and_then(|columns| row(text, columns));
        count(&mut taken, row.is_some());
        if let Some((device, seen)) = row {
            let rates = devices.entry(device).or_insert(Rates { line, ..Rates::default() });
            let sums = if reports == 1 { &mut rates.first } else { &mut rates.others };
            sums.iter_mut().zip(seen).for_each(|(sum, seen)| *sum += seen);
        }
    }
    for (device, rates) in devices {
        let mean = rates.others.map(|sum| sum / (reports - 1).max(1) as f64);
        tell(device, if reports > 1 { mean } else { rates.first }, rates.line, input, builder);
    }
    anything(taken, input, FORMAT.tool, "rates below \"r/s w/s … device\"")
}

fn row(line: &str, columns: Columns) -> Option<(&str, [f64; 2])> {
    let words = words(line);
    let rate = |at: usize| words[at].parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate >= 0.0);
    if words.len() != columns.width {
        return None;
    }
    Some((words[columns.device], [rate(columns.reads)?, rate(columns.writes)?]))
}

fn tell(device: &str, [reads, writes]: [f64; 2], line: usize, input: &Input<'_>, builder: &mut Builder) {
    let source = input.source(FORMAT.tool, line);
    on_solaris(builder, &source);
    let id = match volume_name(device) {
        Some(name) => {
            let id = builder.node(&name);
            builder.alias(id, device);
            id
        }
        None => builder.node(device),
    };
    let is_driver = DISK_DRIVERS.iter().any(|driver| numbered(device, driver).is_some());
    if is_driver || is_disk(device) {
        builder.kind(id, Kind::Disk, &source);
    }
    builder.fact(id, keys::IOS_PER_SECOND, format!("{:.0}", reads + writes), &source);
    builder.fact(id, keys::WRITES_PER_SECOND, format!("{writes:.0}"), &source);
}

fn numbered<'a>(device: &'a str, driver: &str) -> Option<&'a str> {
    let number = device.strip_prefix(driver)?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

/// `md26` is `d26`, and `set/md26` is `set/d26`.
fn volume_name(device: &str) -> Option<String> {
    let (set, name) = device.rsplit_once('/').map_or(("", device), |(set, name)| (set, name));
    let number = numbered(name, "md")?;
    Some(if set.is_empty() { format!("d{number}") } else { format!("{set}/d{number}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(text: &str, names: &[&str]) -> Vec<Option<u64>> {
        let mut builder = Builder::default();
        read(&Input { name: "iostat", text }, &mut builder).expect("reads");
        let rate = |name: &&str| builder.get(builder.find(name)?).number(keys::IOS_PER_SECOND);
        names.iter().map(rate).collect()
    }

    #[test]
    fn the_first_of_several_reports_is_left_out() {
        let head = "                    extended device statistics\n    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device\n";
        let since_boot = "  900.0  100.0   61.7    0.0  0.0  0.0    0.2    0.7   0   1 c1t0d0\n";
        let now = "   10.0   20.5   97.6   55.1  0.0  0.0    0.0    0.0   0   0 c1t0d0\n";
        assert_eq!(rates(&[head, since_boot].concat(), &["c1t0d0"]), [Some(1000)]);
        // Two more reports: one with 30.5 a second, one without a line.
        assert_eq!(rates(&[head, since_boot, head, now, head].concat(), &["c1t0d0"]), [Some(15)]);
    }

    #[test]
    fn volumes_are_found_under_both_names() {
        let text = "device    r/s    w/s   Mr/s   Mw/s wait actv  svc_t  %w  %b\nmd26   402.0  0.0  51.4  0.0 0.0 1.0 2.5 0 99\n\
                    ora/md2   402.0  0.0  51.4  0.0 0.0 1.0 2.5 0 99\nssd3,402.0,0.0,51.4,0.0,0.0,1.0,2.5,0,99,\n";
        assert_eq!(rates(text, &["d26", "md26", "ora/d2", "ssd3"]), [Some(402); 4]);
    }

    #[test]
    fn linux_is_another() {
        assert_eq!(heading("Device r/s w/s rkB/s wkB/s rrqm/s wrqm/s %util"), None);
    }
}
