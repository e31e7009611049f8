//! `iostat -x`, `-xn` and `-xr` of Solaris: I/O a second of each device, volumes and the disks below them alike.
//!
//! Rates are rounded to whole I/O: they are for comparing layers. Without `-n` volume `d26` is called `md26`, and disks
//! by their driver's number, which nothing else here tells.

use plumb_iostat::Tool;

use super::super::iostat::{self, Rates};
use super::super::text::anything;
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::{is_disk, on_solaris};
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

fn sniff(input: &Input<'_>) -> Sniff {
    iostat::sniff(input, Tool::Solaris)
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let (taken, devices) = iostat::reports(input, Tool::Solaris);
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
    builder.fact(id, keys::IOS_PER_SECOND, reads + writes, &source);
    builder.fact(id, keys::WRITES_PER_SECOND, writes, &source);
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

    fn rates(text: &str, names: &[&str]) -> Vec<Option<f64>> {
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
            [Some(1000.0)]
        );
        // Two more reports: one with 30.5 a second, one without a line.
        assert_eq!(
            rates(&[head, since_boot, head, now, head].concat(), &["c1t0d0"]),
            [Some(15.25)]
        );
    }

    #[test]
    fn volumes_are_found_under_both_names() {
        let text = "device    r/s    w/s   Mr/s   Mw/s wait actv  svc_t  %w  %b\nmd26   402.0  0.0  51.4  0.0 0.0 1.0 2.5 0 99\n\
                    ora/md2   402.0  0.0  51.4  0.0 0.0 1.0 2.5 0 99\nssd3,402.0,0.0,51.4,0.0,0.0,1.0,2.5,0,99,\n";
        assert_eq!(
            rates(text, &["d26", "md26", "ora/d2", "ssd3"]),
            [Some(402.0); 4]
        );
    }

    #[test]
    fn rows_of_all_shapes_count() {
        // Only the first row has the columns of terminals and processors.
        let terminals = "device    r/s    w/s   kr/s   kw/s wait actv  svc_t  %w  %b   tin  tout  us sy wt id\n\
                         sd0       1.0    2.0    8.0   16.0  0.0  0.1   30.0   0   1     0   10   1  2  0 97\n\
                         sd1       5.0    0.0   24.0    0.0  0.0  0.1   30.0   0   1\n";
        assert_eq!(rates(terminals, &["sd0", "sd1"]), [Some(3.0), Some(5.0)]);
        let commas = "device    r/s    w/s   kr/s   kw/s wait actv  svc_t  %w  %b\n\
                      sd0       1,0    2,0    8,0   16,0  0,0  0,1   30,0   0   1\n";
        assert_eq!(rates(commas, &["sd0"]), [Some(3.0)]);
    }

    #[test]
    fn linux_is_another() {
        let input = Input {
            name: "iostat",
            text: "Device r/s w/s rkB/s wkB/s rrqm/s wrqm/s %util",
        };
        assert_eq!(sniff(&input), Sniff::No);
    }
}
