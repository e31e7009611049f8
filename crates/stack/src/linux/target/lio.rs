//! LUNs of the kernel's SCSI target: `target/core/HBA/NAME` is a backstore, `target/FABRIC/WWN/TPG/lun/LUN` has a link to
//! the one that it shows. A backstore that no LUN links to is not exported.

use std::collections::BTreeMap;

use plumb_sys::Directory;

use super::backing::Backing;
use super::{CONFIG, Export};
use crate::linux::Root;
use crate::linux::reader::SysfsReader;
use crate::obstacle::Obstacle;

/// Company that LIO's own identities are of, where none was set: OpenFabrics.
const COMPANY: u32 = 0x1405;
/// Digits behind the company in an identity of NAA type 6.
const VENDOR_DIGITS: usize = 25;

/// A LUN that shows a backstore.
#[derive(Debug)]
struct Lun {
    /// `iscsi`, `loopback`, `vhost`, …
    fabric: String,
    wwn: String,
    group: String,
    lun: String,
    /// `host:channel:target:lun`, on the adapter that the loopback fabric makes.
    address: Option<String>,
}

/// All backstores that some LUN shows.
pub(super) fn read(root: &Root<'_>, reader: &mut SysfsReader) -> Vec<Export> {
    let mut exports = Vec::new();
    let Ok(config) = root.directory.below(&format!("{CONFIG}/target")) else {
        return exports;
    };
    let luns = read_luns(reader, &config);
    let Some(core) = reader.child(&config, "core") else {
        return exports;
    };
    for (backstore, luns) in luns {
        let Some((hba, name)) = backstore.split_once('/') else {
            continue;
        };
        let directory = reader
            .child(&core, hba)
            .and_then(|hba| reader.child(&hba, name));
        match directory {
            Some(directory) => exports.push(one(reader, &directory, &backstore, &luns)),
            None => reader.note(format!(
                "/{CONFIG}/target/core/{backstore} cannot be opened"
            )),
        }
    }
    exports
}

/// LUNs by their backstore.
fn read_luns(reader: &mut SysfsReader, config: &Directory) -> BTreeMap<String, Vec<Lun>> {
    let mut luns: BTreeMap<String, Vec<Lun>> = BTreeMap::new();
    let mut fabrics = config.names().unwrap_or_default();
    fabrics.sort_unstable();
    for fabric in fabrics.iter().filter(|fabric| *fabric != "core") {
        let Some(directory) = reader.child(config, fabric) else {
            continue;
        };
        for wwn in reader.names(config, fabric) {
            let Some(target) = reader.child(&directory, &wwn) else {
                continue;
            };
            for group in reader.names(&directory, &wwn) {
                let Some(group_directory) = reader.child(&target, &group) else {
                    continue;
                };
                for (lun, backstore) in luns_of(reader, &group_directory) {
                    let on_host = reader
                        .word(&group_directory, "address")
                        .filter(|_| fabric == "loopback");
                    let number = lun.trim_start_matches("lun_");
                    let address = on_host.map(|address| format!("{address}:{number}"));
                    let (fabric, wwn, group) = (fabric.clone(), wwn.clone(), group.clone());
                    let lun = Lun {
                        fabric,
                        wwn,
                        group,
                        lun,
                        address,
                    };
                    luns.entry(backstore).or_default().push(lun);
                }
            }
        }
    }
    luns
}

/// LUNs of a portal group, each with its backstore.
fn luns_of(reader: &mut SysfsReader, group: &Directory) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let Some(luns) = reader.child(group, "lun") else {
        return found;
    };
    for lun in reader.names(group, "lun") {
        let Some(directory) = reader.child(&luns, &lun) else {
            continue;
        };
        let links = directory.names().unwrap_or_default();
        let backstore = links.iter().find_map(|link| {
            let target = directory.link(link).ok()?;
            Some(target.split_once("/core/")?.1.to_owned())
        });
        found.extend(backstore.map(|backstore| (lun, backstore)));
    }
    found
}

fn one(reader: &mut SysfsReader, directory: &Directory, backstore: &str, luns: &[Lun]) -> Export {
    // The short name first: one backstore may be many LUNs, and an IQN fills a line.
    let as_lun = luns
        .iter()
        .map(|lun| format!("{}/{}/{}", lun.wwn, lun.group, lun.lun));
    let names = std::iter::once(backstore.to_owned())
        .chain(as_lun)
        .collect();
    let hba = backstore.split('/').next().unwrap_or_default();
    let kind = hba.rsplit_once('_').map_or(hba, |(kind, _)| kind);
    let info = reader.word(directory, "info").unwrap_or_default();
    let path = reader
        .word(directory, "udev_path")
        .filter(|path| path.starts_with('/'));
    let (backing, size) = backing(kind, &info, path);
    let wwn = reader.child(directory, "wwn");
    let mut of_wwn = |name: &str| wwn.as_ref().and_then(|wwn| reader.word(wwn, name));
    let serial = of_wwn("vpd_unit_serial").and_then(|text| after_colon(&text).map(str::to_owned));
    let company = of_wwn("company_id").and_then(|text| {
        let text = after_colon(&text)
            .unwrap_or(&text)
            .trim_start_matches("0x")
            .to_owned();
        u32::from_str_radix(&text, 16).ok()
    });
    let attributes = reader.child(directory, "attrib");
    let mut attribute = |name: &str| -> Option<u64> {
        attributes
            .as_ref()
            .and_then(|attributes| reader.number(attributes, name, backstore))
    };
    let block = attribute("block_size");
    let bytes = |blocks: Option<u64>| {
        blocks
            .zip(block)
            .and_then(|(blocks, block)| blocks.checked_mul(block))
    };
    let unmap = bytes(attribute("unmap_granularity"));
    let unmap_start = bytes(attribute("unmap_granularity_alignment"));
    // A block device states its own.
    let optimal =
        bytes(attribute("optimal_sectors")).filter(|_| !matches!(kind, "iblock" | "pscsi"));
    let write_cache = attribute("emulate_write_cache").map(|value| value != 0);
    let is_unmapped = attribute("emulate_tpu").is_some_and(|value| value != 0);
    Export {
        names,
        path: format!("{CONFIG}/target/core/{backstore}"),
        by: "lio",
        backstore: kind.to_owned(),
        backing,
        target: luns.first().map(|lun| lun.wwn.clone()),
        transport: luns.first().map(|lun| lun.fabric.clone()),
        unit: luns
            .first()
            .and_then(|lun| lun.lun.trim_start_matches("lun_").parse().ok()),
        size,
        block,
        optimal,
        discard: unmap
            .filter(|_| is_unmapped)
            .map(|unmap| (unmap, unmap_start.unwrap_or(0))),
        write_cache,
        // A passed-through device keeps its identity.
        identity: serial
            .as_deref()
            .filter(|_| kind != "pscsi")
            .map(|serial| identity(company.unwrap_or(COMPANY), serial)),
        serial,
        addresses: luns.iter().filter_map(|lun| lun.address.clone()).collect(),
        ..Export::default()
    }
}

/// `T10 VPD Unit Serial Number: TEXT`.
fn after_colon(text: &str) -> Option<&str> {
    let text = text.split_once(": ")?.1.trim();
    (!text.is_empty()).then_some(text)
}

/// The backing and length of a backstore, if `info` states them.
fn backing(kind: &str, info: &str, path: Option<String>) -> (Backing, Option<u64>) {
    let word = |label: &str| info.split_once(label).map(|(_, rest)| rest.trim_start());
    let number = |label: &str| word(label)?.split_whitespace().next()?.parse::<u64>().ok();
    let or_path = |path: Option<String>| path.map_or_else(Backing::default, Backing::Path);
    match kind {
        "iblock" => {
            let device = number("Major:")
                .zip(number("Minor:"))
                .filter(|device| *device != (0, 0));
            let device = device.and_then(|(major, minor)| {
                Some(Backing::Number(
                    major.try_into().ok()?,
                    minor.try_into().ok()?,
                ))
            });
            (device.unwrap_or_else(|| or_path(path)), None)
        }
        "fileio" => {
            // The name of the file may hold blanks.
            let file = word(" File:")
                .and_then(|rest| rest.rsplit_once("  Size:"))
                .map(|(file, _)| file.to_owned());
            (or_path(file.or(path)), number("  Size:"))
        }
        "pscsi" => {
            let place = ["Host ID:", "Channel ID:", "Target ID:", "LUN:"].map(number);
            match place {
                [Some(host), Some(channel), Some(target), Some(lun)] => (
                    Backing::Address(format!("{host}:{channel}:{target}:{lun}")),
                    None,
                ),
                _ => (or_path(path), None),
            }
        }
        "rd_mcp" => {
            let pages = word("PAGES/PAGE_SIZE:").and_then(|rest| rest.split_whitespace().next());
            let size = pages.and_then(|pages| {
                let (pages, page) = pages.split_once('*')?;
                pages.parse::<u64>().ok()?.checked_mul(page.parse().ok()?)
            });
            (Backing::Memory, size)
        }
        "user" => {
            // The text after the name of the handler may hold a password.
            let handler = word("Config:").and_then(|rest| rest.split(['/', ' ', '\n']).next());
            let handler = handler.map(str::to_owned);
            (
                Backing::Unknown(Obstacle::ServedByProgram { handler }),
                None,
            )
        }
        _ => (or_path(path), None),
    }
}

/// The identity that initiators see as `wwid`: NAA type 6, the company, and the first 25 hexadecimal digits of the serial
/// number, zeros behind (`spc_gen_naa_6h_vendor_specific`).
fn identity(company: u32, serial: &str) -> String {
    let digits = serial
        .chars()
        .filter(char::is_ascii_hexdigit)
        .map(|digit| digit.to_ascii_lowercase());
    let digits: String = digits.take(VENDOR_DIGITS).collect();
    format!("naa.6{:06x}{digits:0<VENDOR_DIGITS$}", company & 0xff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `info` as drivers of Linux 6.1 print it.
    #[test]
    fn devices_behind_a_backstore() {
        let head = "Status: ACTIVATED  Max Queue Depth: 128  SectorSize: 512  HwMaxSectors: 1024\n        ";
        let path = |path: &str| Backing::Path(path.to_owned());
        for (kind, info, expected) in [
            (
                "iblock",
                "iBlock device: sda1  UDEV PATH: /dev/sda1  readonly: 0\n        Major: 8 Minor: 1  CLAIMED: IBLOCK",
                (Backing::Number(8, 1), None),
            ),
            (
                "iblock",
                "  readonly: 0\n        Major: 0 Minor: 0",
                (path("/dev/x"), None),
            ),
            (
                "fileio",
                "TCM FILEIO ID: 0        File: /srv/a b.img  Size: 1048576  Mode: O_DSYNC Async: 0",
                (path("/srv/a b.img"), Some(1_048_576)),
            ),
            (
                "pscsi",
                "SCSI Device Bus Location: Channel ID: 0 Target ID: 1 LUN: 2 Host ID: 3",
                (Backing::Address("3:0:1:2".to_owned()), None),
            ),
            (
                "rd_mcp",
                "TCM RamDisk ID: 0  RamDisk Makeup: rd_mcp  PAGES/PAGE_SIZE: 16384*4096  SG_table_count: 1",
                (Backing::Memory, Some(64 << 20)),
            ),
            (
                "user",
                "Config: rbd/pool/vm  Size: 1073741824",
                (
                    Backing::Unknown(Obstacle::ServedByProgram {
                        handler: Some("rbd".to_owned()),
                    }),
                    None,
                ),
            ),
            ("fileio", "", (path("/dev/x"), None)),
            (
                "rd_mcp",
                "PAGES/PAGE_SIZE: 99999999999999999999*4096",
                (Backing::Memory, None),
            ),
        ] {
            let found = backing(kind, &format!("{head}{info}"), Some("/dev/x".to_owned()));
            assert_eq!(found, expected, "{info}");
        }
    }

    /// By hand: `6`, the company's six digits, then digits of the serial number up to 32 in all.
    #[test]
    fn identities_are_those_that_initiators_see() {
        for (serial, expected) in [
            (
                "a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d",
                "naa.6001405a1b2c3d45e6f4a7b8c9d0e1f2",
            ),
            ("12zz", "naa.60014051200000000000000000000000"),
            ("", "naa.60014050000000000000000000000000"),
        ] {
            assert_eq!(identity(COMPANY, serial), expected, "{serial}");
        }
    }
}
