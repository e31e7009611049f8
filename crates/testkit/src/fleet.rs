//! A fleet of hosts with planted faults: recordings in the MSR format below folders such as `image=web-3/rack=r17/host=h0042`, and an
//! inventory of models, kernels and sites.
//!
//! Every host has two devices with 240 I/O each on a grid of 8 KiB: reads of 16 KiB, and writes of 32 KiB or, on a fifth of the hosts, of 8 KiB.
//! Attributes are drawn apart from each other, but each rack is in one site. Without any plan, one host in 100 has a
//! partition at sector 34, and one device in 400 answers four times as slowly.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use crate::rng::Rng;

/// The image whose partitions start at sector 63, on 3 % of the hosts.
pub const BAD_IMAGE: &str = "web-3";
/// The array model with a unit of 8 KiB whose hosts take it for 4 KiB, on 6 % of the hosts.
pub const BAD_MODEL: &str = "AX-20";
/// The kernel that splits writes after 121 sectors, on 8 % of the hosts.
pub const BAD_KERNEL: &str = "6.1.0-9";
/// The rack behind a slow path: each I/O takes three times as long. It has 25 hosts.
pub const BAD_RACK: &str = "r17";

const IOS: u64 = 240;
const HOSTS_OF_RACK: u64 = 25;
const RACKS_OF_SITE: u64 = 20;
/// 2026-11-23 00:00:00 UTC as a file time: 100 ns since 1601.
const ORIGIN_FILETIME: u64 = 134_398_656_000_000_000;
const DAY_FILETIME: u64 = 24 * 3600 * 10_000_000;
/// Hosts that stopped four days before the others.
pub const SILENT: [u64; 3] = [11, 512, 1300];

/// A fleet.
#[derive(Clone, Copy, Debug)]
pub struct PlantedFleet {
    /// Hosts.
    pub hosts: u64,
    /// The seed.
    pub seed: u64,
    /// Whether the four faults are planted.
    pub has_faults: bool,
}

/// A host with its attributes.
struct PlantedHost {
    name: String,
    image: String,
    rack: String,
    site: String,
    model: &'static str,
    kernel: &'static str,
}

/// Names with the hosts of 100 that have them.
fn drawn(random: &mut Rng, of: &[(&'static str, u64)]) -> &'static str {
    let mut left = random.below(of.iter().map(|(_, share)| share).sum());
    for (name, share) in of {
        if left < *share {
            return name;
        }
        left -= share;
    }
    ""
}

impl PlantedFleet {
    /// Writes the recordings below `root/in`, and `root/inventory.csv`.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        let mut random = Rng::announced("planted fleet", self.seed);
        let mut inventory = "host,site,model,kernel\n".to_owned();
        for number in 0..self.hosts {
            let host = host(number, &mut random);
            let folder = format!(
                "in/image={}/rack={}/host={}",
                host.image, host.rack, host.name
            );
            let folder = root.join(folder);
            fs::create_dir_all(&folder)?;
            fs::write(
                folder.join("day.csv"),
                self.recording(number, &host, &mut random),
            )?;
            let (site, model, kernel) = (&host.site, host.model, host.kernel);
            // Writing to a string does not fail.
            let _ = writeln!(inventory, "{},{site},{model},{kernel}", host.name);
        }
        fs::write(root.join("inventory.csv"), inventory)
    }

    fn recording(&self, number: u64, host: &PlantedHost, random: &mut Rng) -> String {
        let has = |is_so: bool| self.has_faults && is_so;
        let stray = random.below(100) == 0;
        let past_sectors = match (host.image.as_str(), host.model) {
            (BAD_IMAGE, _) if self.has_faults => 63,
            (_, BAD_MODEL) if self.has_faults => 8,
            _ if stray => 34,
            _ => 0,
        };
        let begin = match SILENT.contains(&number) {
            true => ORIGIN_FILETIME - 4 * DAY_FILETIME,
            false => ORIGIN_FILETIME + random.below(DAY_FILETIME / 8),
        };
        let write_bytes = if random.below(5) == 0 {
            8192
        } else {
            65_536 >> 1
        };
        let is_split = has(host.kernel == BAD_KERNEL);
        let write_bytes = if is_split { 65_536 } else { write_bytes };
        let mut text = String::new();
        for device in 0..2 {
            let own = if random.below(400) == 0 { 4 } else { 1 };
            let path = if has(host.rack == BAD_RACK) { 3 } else { 1 };
            // A device is up to a tenth faster or slower than its like.
            let percent = (90 + random.below(21)) * own * path;
            for at in 0..IOS {
                let is_read = at % 5 < 3;
                let len = if is_read { 16_384 } else { write_bytes };
                let start = random.below(1 << 20) * 65_536 + past_sectors * 512;
                let first = if is_split && !is_read { 121 * 512 } else { len };
                let time = begin + at * 10_000;
                let mut line = |time: u64, start: u64, len: u64| {
                    let op = if is_read { "Read" } else { "Write" };
                    let us = 80 + len / 1024 + random.below(40);
                    let response = us * 10 * percent / 100;
                    let _ = writeln!(text, "{time},srv,{device},{op},{start},{len},{response}");
                };
                line(time, start, first);
                if first < len {
                    line(time + 1, start + first, len - first);
                }
            }
        }
        text
    }
}

fn host(number: u64, random: &mut Rng) -> PlantedHost {
    let rack = number / HOSTS_OF_RACK;
    let image = match random.below(100) {
        0..3 => BAD_IMAGE.to_owned(),
        other => format!("img-{}", other % 19),
    };
    PlantedHost {
        name: format!("h{number:04}"),
        image,
        rack: format!("r{rack}"),
        site: format!("s{}", rack / RACKS_OF_SITE),
        model: drawn(
            random,
            &[
                (BAD_MODEL, 6),
                ("AX-10", 34),
                ("ZR-1", 30),
                ("ZR-2", 20),
                ("Q-7", 10),
            ],
        ),
        kernel: drawn(
            random,
            &[
                (BAD_KERNEL, 8),
                ("6.1.0-8", 32),
                ("6.12.4", 40),
                ("5.15.0", 20),
            ],
        ),
    }
}
