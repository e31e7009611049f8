//! Disks that come from another host: by which transport, from which target, as which of its units.
//!
//! The directory of a device shows its transport. iSCSI adds a session to the path
//! (`…/host2/session1/target2:0:0/2:0:0:0/block/sdb`), Fibre Channel a remote port, LIO's loopback its own adapter, and
//! controllers of NVMe over fabrics are below `nvme-fabrics`. Left out: SRP and SAS expanders, which name no target for
//! a join.

use plumb_sys::Directory;

use super::Root;
use super::reader::SysfsReader;
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::keys;

/// The origin of a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fabric {
    /// `iscsi`, `loopback`, `fc`; for NVMe the controller's word: `tcp`, `rdma`, `fc`, `loop`.
    transport: String,
    is_nvme: bool,
    /// IQN, NQN, or the name of a port.
    target: Option<String>,
    /// LUN, or number of the namespace.
    unit: Option<u64>,
    portal: Option<String>,
    serial: Option<String>,
    uuid: Option<String>,
    nguid: Option<String>,
}

impl Fabric {
    /// Whether it is a disk of a target, which has layers below that this host does not see. By Fibre Channel come drives
    /// and LUNs of arrays too, and those state their own blocks.
    pub(super) fn is_software(&self) -> bool {
        self.is_nvme || self.transport != FIBRE_CHANNEL
    }

    /// Adds the origin of a disk.
    pub(super) fn tell(&self, builder: &mut Builder, node: NodeId, source: &Source) {
        builder.fact(node, keys::TRANSPORT, self.transport.as_str(), source);
        builder.fact_if(node, keys::UNIT_NUMBER, self.unit, source);
        for (key, value) in [
            (keys::TARGET, &self.target),
            (keys::PORTAL, &self.portal),
            (keys::SERIAL, &self.serial),
            (keys::UUID, &self.uuid),
            (keys::NGUID, &self.nguid),
        ] {
            if let Some(value) = value {
                builder.fact(node, key, value.as_str(), source);
            }
        }
    }
}

const FIBRE_CHANNEL: &str = "fc";

/// `2:0:1:0` of the directory of a SCSI disk, and of no other.
pub(super) fn address_of(link: &str) -> Option<&str> {
    let mut steps = link.rsplit('/').skip(1);
    let is_block = steps.next()? == "block";
    let address = steps.next().filter(|_| is_block)?;
    let is_address = address.split(':').count() == 4
        && address
            .bytes()
            .all(|byte| byte == b':' || byte.is_ascii_digit());
    is_address.then_some(address)
}

/// Reads the origin of a device, by the link to it in the class and its directories: its own and that of its transport.
/// `None` for devices in this host.
pub(super) fn read(
    root: &Root<'_>,
    reader: &mut SysfsReader,
    link: &str,
    (own, transport): (&Directory, &Directory),
) -> Option<Fabric> {
    if link.contains("/nvme-fabrics/") {
        return Some(of_nvme(reader, own, transport));
    }
    let address = address_of(link)?;
    let step = |prefix: &str| {
        link.split('/')
            .find(|step| step.starts_with(prefix) && *step != prefix)
    };
    let unit = address.rsplit(':').next().and_then(|lun| lun.parse().ok());
    let mut fabric = if let Some(session) = step("session") {
        of_session(root, reader, session)
    } else if step("tcm_loop_adapter_").is_some() {
        Fabric {
            transport: "loopback".to_owned(),
            ..Fabric::default()
        }
    } else {
        let port = step("rport-")?;
        let target = attribute(
            root,
            reader,
            &format!("sys/class/fc_remote_ports/{port}"),
            "port_name",
        );
        Fabric {
            transport: FIBRE_CHANNEL.to_owned(),
            target,
            ..Fabric::default()
        }
    };
    fabric.unit = unit;
    fabric.serial = serial(reader, transport);
    Some(fabric)
}

fn of_nvme(reader: &mut SysfsReader, own: &Directory, controller: &Directory) -> Fabric {
    Fabric {
        transport: reader
            .word(controller, "transport")
            .unwrap_or_else(|| "fabrics".to_owned()),
        is_nvme: true,
        target: reader.word(controller, "subsysnqn"),
        portal: reader.word(controller, "address"),
        serial: reader.word(controller, "serial"),
        unit: reader.text(own, "nsid").and_then(|nsid| nsid.parse().ok()),
        uuid: reader.word(own, "uuid"),
        nguid: reader.word(own, "nguid"),
    }
}

/// The target of an iSCSI session, and the portal of its first connection.
fn of_session(root: &Root<'_>, reader: &mut SysfsReader, session: &str) -> Fabric {
    let target = attribute(
        root,
        reader,
        &format!("sys/class/iscsi_session/{session}"),
        "targetname",
    );
    let number = session.trim_start_matches("session");
    let connection = format!("sys/class/iscsi_connection/connection{number}:0");
    let address = attribute(root, reader, &connection, "persistent_address");
    let port = attribute(root, reader, &connection, "persistent_port");
    let portal = address.map(|address| match port {
        Some(port) => format!("{address}:{port}"),
        None => address,
    });
    Fabric {
        transport: "iscsi".to_owned(),
        target,
        portal,
        ..Fabric::default()
    }
}

fn attribute(
    root: &Root<'_>,
    reader: &mut SysfsReader,
    directory: &str,
    name: &str,
) -> Option<String> {
    reader.directories += 1;
    let directory = root.directory.below(directory).ok()?;
    reader.word(&directory, name)
}

/// The unit serial number: VPD page 80h, a head of four bytes and text.
fn serial(reader: &mut SysfsReader, transport: &Directory) -> Option<String> {
    reader.files += 1;
    let mut buffer = [0; 260];
    let page = transport.read("vpd_pg80", &mut buffer).ok()?;
    let &[_, 0x80, high, low, ref text @ ..] = page else {
        return None;
    };
    let len = usize::from(u16::from_be_bytes([high, low])).min(text.len());
    let text = std::str::from_utf8(&text[..len])
        .ok()?
        .trim_matches(['\0', ' ']);
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_scsi_disks() {
        for (link, expected) in [
            (
                "../../devices/platform/host2/session1/target2:0:0/2:0:0:7/block/sdb",
                Some("2:0:0:7"),
            ),
            ("../../devices/pci0000:00/nvme/nvme0/nvme0n1", None),
            ("../../devices/virtual/block/loop0", None),
            ("../../devices/a/1:2:3:x/block/sda", None),
            ("../../devices/a/1:2:3/block/sda", None),
            ("", None),
        ] {
            assert_eq!(address_of(link), expected, "{link}");
        }
    }
}
