//! What this host shows to others as a disk, and under which identity: the targets of SCSI (LIO) and NVMe (nvmet), as
//! configfs has them.
//!
//! The identity is put as the kernel of the other side shows it in `wwid`. LIO makes it of the unit serial: NAA 6, the
//! company, and the first 25 hexadecimal digits of the serial (`spc_gen_naa_6h_vendor_specific` of the kernel). nvmet shows
//! the UUID of a namespace, and its NGUID where there is none.

use std::collections::BTreeMap;

use super::{Host, Root};
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::keys;

const LIO: &str = "sys/kernel/config/target/core";
const NVMET: &str = "sys/kernel/config/nvmet/subsystems";
/// OpenFabrics, which LIO stands under where no other company is set.
const COMPANY: &str = "001405";
/// Digits of the serial in an identity of NAA 6.
const SERIAL_DIGITS: usize = 25;
/// No attribute is longer.
const PAGE: usize = 4096;

/// Identities of one node, and who shows it.
type Shown = BTreeMap<NodeId, (&'static str, Vec<String>)>;

/// Notes on each device or file that is shown by a target under which identities.
pub(super) fn tell(root: &Root<'_>, host: &Host, builder: &mut Builder) {
    let mut shown = Shown::new();
    for adapter in names(root, LIO) {
        for unit in names(root, &format!("{LIO}/{adapter}")) {
            of_lio(root, host, builder, &format!("{LIO}/{adapter}/{unit}"), &mut shown);
        }
    }
    for subsystem in names(root, NVMET) {
        for namespace in names(root, &format!("{NVMET}/{subsystem}/namespaces")) {
            let path = format!("{NVMET}/{subsystem}/namespaces/{namespace}");
            of_nvmet(root, host, builder, &path, &mut shown);
        }
    }
    for (node, (target, mut identities)) in shown {
        identities.sort();
        identities.dedup();
        let source = Source::Kernel { path: "/sys/kernel/config".to_owned() };
        builder.fact(node, keys::EXPORTED_BY, target, &source);
        builder.fact(node, keys::EXPORTED_AS, identities.join(" "), &source);
    }
}

fn names(root: &Root<'_>, path: &str) -> Vec<String> {
    let mut names = root.directory.below(path).and_then(|it| it.names()).unwrap_or_default();
    names.sort_unstable();
    names
}

fn word(root: &Root<'_>, path: &str) -> Option<String> {
    let text = root.directory.read_below(path, PAGE).ok()?;
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn of_lio(root: &Root<'_>, host: &Host, builder: &mut Builder, unit: &str, shown: &mut Shown) {
    // `T10 VPD Unit Serial Number: 6f1d…`
    let serial = word(root, &format!("{unit}/wwn/vpd_unit_serial"));
    let Some(serial) = serial.as_deref().and_then(|text| text.rsplit(": ").next()) else { return };
    let company = word(root, &format!("{unit}/wwn/company_id"));
    let Some(identity) = naa(company.as_deref().unwrap_or(COMPANY), serial) else { return };
    let number = word(root, &format!("{unit}/info")).as_deref().and_then(number_in);
    let node = number.and_then(|number| host.by_number(number)).or_else(|| {
        let path = word(root, &format!("{unit}/udev_path"))?;
        of_path(root, host, builder, &path)
    });
    if let Some(node) = node {
        shown.entry(node).or_insert(("lio", Vec::new())).1.push(identity);
    }
}

fn of_nvmet(root: &Root<'_>, host: &Host, builder: &mut Builder, namespace: &str, shown: &mut Shown) {
    let field = |name: &str| word(root, &format!("{namespace}/{name}"));
    if field("enable").as_deref() == Some("0") {
        return;
    }
    let is_set = |digits: &String| digits.bytes().any(|digit| digit.is_ascii_hexdigit() && digit != b'0');
    let uuid = field("device_uuid").filter(is_set).map(|uuid| format!("uuid.{}", uuid.to_lowercase()));
    let nguid = || {
        let nguid = field("device_nguid").filter(is_set)?;
        Some(format!("eui.{}", nguid.replace('-', "").to_lowercase()))
    };
    let Some(identity) = uuid.or_else(nguid) else { return };
    let node = field("device_path").and_then(|path| of_path(root, host, builder, &path));
    if let Some(node) = node {
        shown.entry(node).or_insert(("nvmet", Vec::new())).1.push(identity);
    }
}

fn of_path(root: &Root<'_>, host: &Host, builder: &mut Builder, path: &str) -> Option<NodeId> {
    match path.starts_with("/dev/") {
        true => builder.find(path),
        false => path.starts_with('/').then(|| host.file(root, builder, path)),
    }
}

/// `Major: 253 Minor: 4` in what LIO says of a block device.
fn number_in(info: &str) -> Option<(u32, u32)> {
    let behind = |name: &str| {
        let (_, rest) = info.split_once(name)?;
        rest.split_whitespace().next()?.parse().ok()
    };
    Some((behind("Major: ")?, behind("Minor: ")?))
}

fn naa(company: &str, serial: &str) -> Option<String> {
    let company = company.trim_start_matches("0x").to_lowercase();
    let digits: String =
        serial.chars().filter(char::is_ascii_hexdigit).take(SERIAL_DIGITS).collect::<String>().to_lowercase();
    // A shorter serial is filled up with zeros, and then not unique for sure.
    (digits.len() == SERIAL_DIGITS && company.len() == 6).then(|| format!("naa.6{company}{digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand after the function of the kernel: one digit in the low half of byte 3, then 24 more.
    #[test]
    fn identities_of_lio() {
        let serial = "6f1d1c0e-92a5-4f7c-b6a0-0e1f0a5b2c3d";
        assert_eq!(naa(COMPANY, serial).as_deref(), Some("naa.60014056f1d1c0e92a54f7cb6a00e1f0"));
        assert_eq!(naa("0x00ABCD", serial).as_deref(), Some("naa.600abcd6f1d1c0e92a54f7cb6a00e1f0"));
        assert_eq!(naa(COMPANY, "disk-1"), None);
    }

    #[test]
    fn numbers_of_lio() {
        let info = "Status: ACTIVATED  Max Queue Depth: 128  SectorSize: 512\n        iBlock device: dm-4  UDEV PATH: \
                    /dev/vg0/guest1  readonly: 0\n        Major: 253 Minor: 4  CLAIMED: IBLOCK\n";
        assert_eq!(number_in(info), Some((253, 4)));
        assert_eq!(number_in("Major: x"), None);
    }
}
