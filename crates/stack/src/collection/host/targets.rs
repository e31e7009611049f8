//! Collects the exports of a host, and the origin of its disks. Configfs holds passwords of initiators beside the files
//! that are needed here, so each file is named, and no directory is copied completely.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Packer, names_in, take_file, take_link};

const LIO: &str = "sys/kernel/config/target";
const NVMET: &str = "sys/kernel/config/nvmet";

/// Files of a backstore.
const BACKSTORE: [&str; 10] = [
    "udev_path",
    "wwn/vpd_unit_serial",
    "wwn/company_id",
    "attrib/block_size",
    "attrib/hw_block_size",
    "attrib/optimal_sectors",
    "attrib/unmap_granularity",
    "attrib/unmap_granularity_alignment",
    "attrib/emulate_tpu",
    "attrib/emulate_write_cache",
];
/// Files of a namespace.
const NAMESPACE: [&str; 4] = ["enable", "device_path", "device_uuid", "device_nguid"];
/// Files of a port.
const PORT: [&str; 3] = ["addr_trtype", "addr_traddr", "addr_trsvcid"];

/// Words in the path of a disk that comes by a fabric.
const FABRICS: [&str; 3] = ["/session", "/tcm_loop_adapter_", "/nvme-fabrics/"];
/// Files of such a disk.
const DISK: [&str; 4] = ["wwid", "nsid", "uuid", "nguid"];
/// Files of the hardware that it seems to be, or of its controller.
const ORIGIN: [&str; 6] = [
    "wwid",
    "vpd_pg80",
    "transport",
    "address",
    "subsysnqn",
    "serial",
];

/// Packs the exports.
pub(super) fn take<W: Write>(packer: &mut Packer<W>, root: &Path) -> io::Result<()> {
    for path in below(root, Path::new(LIO)) {
        if path.ends_with("core") {
            take_backstores(packer, root, &path)?;
        } else {
            take_fabric(packer, root, &path)?;
        }
    }
    for subsystem in below(root, &Path::new(NVMET).join("subsystems")) {
        for namespace in below(root, &subsystem.join("namespaces")) {
            take_files(packer, root, &namespace, &NAMESPACE)?;
        }
    }
    for port in below(root, &Path::new(NVMET).join("ports")) {
        take_files(packer, root, &port, &PORT)?;
        take_links(packer, root, &port.join("subsystems"))?;
    }
    Ok(())
}

fn take_backstores<W: Write>(packer: &mut Packer<W>, root: &Path, core: &Path) -> io::Result<()> {
    for hba in below(root, core) {
        // The configuration of user-space programs may contain a password.
        let is_program = hba
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("user_"));
        for backstore in below(root, &hba) {
            take_files(packer, root, &backstore, &BACKSTORE)?;
            if !is_program {
                take_file(packer, root, &backstore.join("info"))?;
            }
        }
    }
    Ok(())
}

/// Links from LUNs to their backstores, and the addresses of LIO's own adapter.
fn take_fabric<W: Write>(packer: &mut Packer<W>, root: &Path, fabric: &Path) -> io::Result<()> {
    for target in below(root, fabric) {
        for group in below(root, &target) {
            if fabric.ends_with("loopback") {
                take_file(packer, root, &group.join("address"))?;
            }
            for lun in below(root, &group.join("lun")) {
                take_links(packer, root, &lun)?;
            }
        }
    }
    Ok(())
}

/// Packs where a disk comes from.
pub(super) fn take_origin<W: Write>(
    packer: &mut Packer<W>,
    root: &Path,
    device: &Path,
) -> io::Result<()> {
    let path = device.to_string_lossy();
    if !FABRICS.iter().any(|fabric| path.contains(fabric)) {
        return Ok(());
    }
    take_files(packer, root, device, &DISK)?;
    if let Some(hardware) = take_link(packer, root, &device.join("device"))? {
        take_files(packer, root, &hardware, &ORIGIN)?;
    }
    let Some(session) = path.split('/').find(|step| step.starts_with("session")) else {
        return Ok(());
    };
    let number = session.trim_start_matches("session");
    for (path, files) in [
        (
            format!("sys/class/iscsi_session/{session}"),
            &["targetname"][..],
        ),
        (
            format!("sys/class/iscsi_connection/connection{number}:0"),
            &["persistent_address", "persistent_port"],
        ),
    ] {
        if let Some(directory) = take_link(packer, root, Path::new(&path))? {
            take_files(packer, root, &directory, files)?;
        }
    }
    Ok(())
}

fn take_files<W: Write>(
    packer: &mut Packer<W>,
    root: &Path,
    folder: &Path,
    files: &[&str],
) -> io::Result<()> {
    files
        .iter()
        .try_for_each(|file| take_file(packer, root, &folder.join(file)))
}

/// Links in a directory, as they are.
fn take_links<W: Write>(packer: &mut Packer<W>, root: &Path, folder: &Path) -> io::Result<()> {
    for name in names_in(&root.join(folder)) {
        let path = folder.join(name);
        if root.join(&path).is_symlink() {
            take_link(packer, root, &path)?;
        }
    }
    Ok(())
}

/// Directories in a directory; links are none.
fn below(root: &Path, folder: &Path) -> Vec<PathBuf> {
    let paths = names_in(&root.join(folder))
        .into_iter()
        .map(|name| folder.join(name));
    paths
        .filter(|path| fs::symlink_metadata(root.join(path)).is_ok_and(|found| found.is_dir()))
        .collect()
}

#[cfg(test)]
mod tests {
    use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};
    use serde_json::Value;

    use super::super::super::Contents;
    use super::super::super::kept::Kept;
    use super::super::Origin;
    use super::*;
    use crate::builder::Builder;
    use crate::linux::{self, Elsewhere, Root};

    /// All nodes with all that is known of them.
    fn known(root: &Root<'_>) -> Vec<Value> {
        let mut builder = Builder::default();
        linux::collect(root, &mut builder).expect("a host");
        let nodes = builder.finish();
        nodes
            .nodes()
            .map(|(_, node)| serde_json::to_value(node).expect("JSON"))
            .collect()
    }

    fn host(root: &Path) -> FakeHost {
        let mut host = FakeHost::new(root);
        host.disk(&FakeDisk::named("sda"));
        host.partition("sda", 1, 63, 80_000);
        let number = host.number("sda1");
        let (major, minor) = number.split_once(':').expect("a number");
        let info = format!("Major: {major} Minor: {minor}  CLAIMED: IBLOCK");
        host.backstore("iblock_0/x", &info, 512, "0123-4567");
        host.backstore("user_1/y", "Config: rbd/secret", 512, "");
        host.lun("iscsi/iqn.2026-11.org.example:disk/tpgt_1", 0, "iblock_0/x");
        host.lun("loopback/naa.5001405000000001/tpgt_1", 2, "iblock_0/x");
        host.lun("loopback/naa.5001405000000001/tpgt_1", 3, "user_1/y");
        let config = "sys/kernel/config";
        let loopback = format!("{config}/target/loopback/naa.5001405000000001/tpgt_1");
        host.write(&format!("{loopback}/address"), "7:0:1\n");
        host.namespace(
            "nqn.2026-11.org.example:ssd",
            1,
            "/dev/sda1",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        );
        for secret in [
            "target/iscsi/discovery_auth/password",
            "target/iscsi/iqn.2026-11.org.example:disk/tpgt_1/auth/password",
            "target/iscsi/iqn.2026-11.org.example:disk/tpgt_1/acls/iqn.secret/auth/password",
            "nvmet/hosts/nqn.secret/dhchap_key",
        ] {
            host.write(&format!("{config}/{secret}"), "secret\n");
        }
        for (name, place) in [
            (
                "sdb",
                "sys/devices/tcm_loop_0/tcm_loop_adapter_0/host7/target7:0:1/7:0:1:2/block/sdb",
            ),
            (
                "sdc",
                "sys/devices/platform/host8/session3/target8:0:0/8:0:0:1/block/sdc",
            ),
            (
                "nvme1n1",
                "sys/devices/virtual/nvme-fabrics/ctl/nvme1/nvme1n1",
            ),
        ] {
            host.disk(&FakeDisk {
                place: Some(place.to_owned()),
                ..FakeDisk::named(name)
            });
        }
        host.attribute("sdc", "../../wwid", "naa.6001405");
        host.write(
            "sys/class/iscsi_session/session3/targetname",
            "iqn.2026-11.org.example:other\n",
        );
        host.write(
            "sys/class/iscsi_connection/connection3:0/persistent_address",
            "192.0.2.1\n",
        );
        for (file, text) in [
            ("../transport", "tcp"),
            ("../subsysnqn", "nqn.x"),
            ("nsid", "1"),
        ] {
            host.attribute("nvme1n1", file, text);
        }
        host
    }

    #[test]
    fn targets_and_origins_are_in_a_collection_and_secrets_are_not() {
        let folder = plumb_testkit::temp_dir("targets");
        let here = folder.path().join("here");
        host(&here);
        let mut bytes = Vec::new();
        let origin = Origin {
            root: &here,
            kernel: &Elsewhere,
            disks: &Kept::NONE,
            images: &[],
            asks_tools: false,
        };
        super::super::collect(&origin, &mut bytes).expect("a collection");
        let there = Contents::read("c.tar.zst", &bytes).expect("a whole collection");
        let mine = known(&Root::open(&here, &Elsewhere).expect("a root"));
        let its = known(&there.root(&Elsewhere).expect("a root"));
        for name in [
            "iblock_0/x",
            "user_1/y",
            "nqn.2026-11.org.example:ssd/ns1",
            "nvme1n1",
            "sdc",
        ] {
            assert!(mine.iter().any(|node| node["name"] == name), "no {name}");
        }
        assert_eq!(mine.len(), its.len());
        // Of a program's backstore only its existence is recorded.
        for (mine, its) in mine
            .iter()
            .zip(&its)
            .filter(|(mine, _)| mine["name"] != "user_1/y")
        {
            assert_eq!(mine, its);
        }
        let tar = zstd::decode_all(&bytes[..]).expect("a frame");
        let holds = |word: &[u8]| tar.windows(word.len()).any(|window| window == word);
        assert!(holds(b"0123-4567") && !holds(b"secret"));
    }
}
