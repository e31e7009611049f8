//! `iostat -x`, `-xn` and `-xr` of Solaris: I/O a second of each device, volumes and the disks below them alike.
//!
//! Rates are rounded to whole I/O: they are for comparing layers. Without `-n` volume `d26` is called `md26`, and disks
//! by their driver's number, which nothing else here tells.

use super::super::iostat::{self, IostatLine, Rates};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::is_disk;
use super::text::{anything, on_solaris, sniff_by};
use crate::builder::Builder;
use crate::node::{Kind, keys};

pub(super) static FORMAT: Format = Format {
    tool: "iostat",
    is_verified: true,
    sniff,
    read,
};

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

fn split_words(line: &str) -> Vec<&str> {
    let split = |c: char| c.is_whitespace() || c == ',';
    line.trim()
        .trim_end_matches(',')
        .split(split)
        .filter(|word| !word.is_empty())
        .take(16)
        .collect()
}

/// Linux has no `actv`, which is how the two are told apart.
fn heading(line: &str) -> Option<Columns> {
    let words = split_words(line);
    let at = |name| words.iter().position(|word| *word == name);
    at("actv")?;
    Some(Columns {
        device: at("device")?,
        reads: at("r/s")?,
        writes: at("w/s")?,
        width: words.len(),
    })
}

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| heading(line).is_some())
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let (taken, devices) = iostat::reports(input, kind, row);
    for rates in devices {
        tell(&rates, input, builder);
    }
    anything(
        taken,
        input,
        FORMAT.tool,
        "rates below \"r/s w/s … device\"",
    )
}

fn kind(line: &str) -> IostatLine<Columns> {
    match heading(line) {
        Some(columns) => IostatLine::Heading(columns),
        None if line.contains("extended device statistics") => IostatLine::Other,
        None => IostatLine::Row,
    }
}

fn row(line: &str, columns: Columns) -> Option<(&str, [f64; 2])> {
    let words = split_words(line);
    let rate = |at: usize| {
        words[at]
            .parse::<f64>()
            .ok()
            .filter(|rate| rate.is_finite() && *rate >= 0.0)
    };
    if words.len() != columns.width {
        return None;
    }
    Some((
        words[columns.device],
        [rate(columns.reads)?, rate(columns.writes)?],
    ))
}

fn tell(rates: &Rates<'_>, input: &Input<'_>, builder: &mut Builder) {
    let Rates {
        device,
        line,
        per_second: [reads, writes],
    } = *rates;
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
    let is_driver = DISK_DRIVERS
        .iter()
        .any(|driver| numbered(device, driver).is_some());
    if is_driver || is_disk(device) {
        builder.kind(id, Kind::Disk, &source);
    }
    builder.fact(
        id,
        keys::IOS_PER_SECOND,
        format!("{:.0}", reads + writes),
        &source,
    );
    builder.fact(id, keys::WRITES_PER_SECOND, format!("{writes:.0}"), &source);
}

fn numbered<'a>(device: &'a str, driver: &str) -> Option<&'a str> {
    let number = device.strip_prefix(driver)?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

/// `md26` is `d26`, and `set/md26` is `set/d26`.
fn volume_name(device: &str) -> Option<String> {
    let (set, name) = device
        .rsplit_once('/')
        .map_or(("", device), |(set, name)| (set, name));
    let number = numbered(name, "md")?;
    Some(if set.is_empty() {
        format!("d{number}")
    } else {
        format!("{set}/d{number}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(text: &str, names: &[&str]) -> Vec<Option<u64>> {
        let mut builder = Builder::default();
        read(
            &Input {
                name: "iostat",
                text,
            },
            &mut builder,
        )
        .expect("reads");
        let rate = |name: &&str| {
            builder
                .get(builder.find(name)?)
                .number(keys::IOS_PER_SECOND)
        };
        names.iter().map(rate).collect()
    }

    #[test]
    fn the_first_of_several_reports_is_left_out() {
        let head = "                    extended device statistics\n    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device\n";
        let since_boot = "  900.0  100.0   61.7    0.0  0.0  0.0    0.2    0.7   0   1 c1t0d0\n";
        let now = "   10.0   20.5   97.6   55.1  0.0  0.0    0.0    0.0   0   0 c1t0d0\n";
        assert_eq!(
            rates(&[head, since_boot].concat(), &["c1t0d0"]),
            [Some(1000)]
        );
        // Two more reports: one with 30.5 a second, one without a line.
        assert_eq!(
            rates(&[head, since_boot, head, now, head].concat(), &["c1t0d0"]),
            [Some(15)]
        );
    }

    #[test]
    fn volumes_are_found_under_both_names() {
        let text = "device    r/s    w/s   Mr/s   Mw/s wait actv  svc_t  %w  %b\nmd26   402.0  0.0  51.4  0.0 0.0 1.0 2.5 0 99\n\
                    ora/md2   402.0  0.0  51.4  0.0 0.0 1.0 2.5 0 99\nssd3,402.0,0.0,51.4,0.0,0.0,1.0,2.5,0,99,\n";
        assert_eq!(
            rates(text, &["d26", "md26", "ora/d2", "ssd3"]),
            [Some(402); 4]
        );
    }

    #[test]
    fn linux_is_another() {
        assert_eq!(
            heading("Device r/s w/s rkB/s wkB/s rrqm/s wrqm/s %util"),
            None
        );
    }
}
