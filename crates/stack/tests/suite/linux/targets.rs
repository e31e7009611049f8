//! Targets, their exports, and disks that come from a target; blocks and offsets by arithmetic.

use plumb_geometry::{Bytes, SECTOR};
use plumb_stack::Obstacle;
use plumb_stack::node::keys;
use plumb_stack::node_facts::{Exporter, FactKey};
use plumb_stack::{CellKind, Kind, Stack, Verdict};
use plumb_sys::FileExtent;
use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};
use plumb_testkit::temp_dir;

use crate::linux::{Scripted, collect, grid, misaligned, node, stack_of, verdicts};

const IQN: &str = "iqn.2026-11.org.example:disk";
const NQN: &str = "nqn.2026-11.org.example:ssd";
const SERIAL: &str = "01234567-89ab-cdef-0123-456789abcdef";
/// As the rule of LIO has it: 25 digits of the serial number.
const NAA: &str = "naa.60014050123456789abcdef012345678";
const UUID: &str = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";

/// 512-byte blocks on 4 KiB, with partitions at 63 and 2048; the kernel's offsets of these by hand.
fn drive(fake: &mut FakeHost, name: &str) {
    fake.disk(&FakeDisk::named(name));
    fake.partition(name, 1, 63, 80_000);
    fake.attribute(&format!("{name}1"), "alignment_offset", "512");
    fake.partition(name, 2, 100_352, 80_000);
}

fn iblock(fake: &FakeHost, name: &str, device: &str, block: u32) {
    let number = fake.number(device);
    let (major, minor) = number.split_once(':').expect("a number");
    let info = format!(
        "iBlock device: {device}  UDEV PATH: /dev/{device}  readonly: 0\n        Major: {major} Minor: {minor}  CLAIMED: IBLOCK"
    );
    fake.backstore(&format!("iblock_0/{name}"), &info, block, SERIAL);
    fake.lun(
        &format!("iscsi/{IQN}/tpgt_1"),
        0,
        &format!("iblock_0/{name}"),
    );
}

fn exported(device: &str, block: u32) -> Stack {
    let dir = temp_dir("iblock");
    let mut fake = FakeHost::new(dir.path());
    drive(&mut fake, "sda");
    iblock(&fake, "x", device, block);
    stack_of(&fake)
}

const LUN: &str = "iqn.2026-11.org.example:disk/tpgt_1/lun_0";

#[test]
fn a_lun_is_at_the_offset_of_its_partition() {
    for (device, verdict) in [
        ("sda1", misaligned(3584)),
        ("sda2", Verdict::Aligned),
        ("sda", Verdict::Aligned),
    ] {
        let stack = exported(device, 512);
        let lun = node(&stack, LUN);
        assert_eq!(lun.kind, Kind::Export);
        assert_eq!(verdicts(&stack, LUN), [verdict], "{device}");
        assert_eq!(lun.size, node(&stack, device).size);
        for (key, value) in [
            (keys::BACKSTORE, "iblock"),
            (keys::TRANSPORT, "iscsi"),
            (keys::TARGET, IQN),
            (keys::SERIAL, SERIAL),
            (keys::IDENTITY, NAA),
            (keys::WRITE_CACHE, "write back"),
        ] {
            assert_eq!(lun.word(key), Some(value), "{}", key.name);
        }
        assert_eq!(lun.value(keys::EXPORTED_BY), Some(&Exporter::Lio));
        assert_eq!(lun.number(keys::UNIT_NUMBER), Some(0));
        assert_eq!(lun.name, "iblock_0/x");
    }
}

/// READ CAPACITY(16) as LIO fills it in: exponent 3 and alignment in blocks of the device, counted in those exported.
#[test]
fn blocks_are_stated_as_lio_does() {
    for (device, block, physical, offset) in [
        ("sda1", 512, 4096, 512),
        ("sda2", 512, 4096, 0),
        ("sda1", 4096, 32768, 4096),
        ("sda2", 4096, 32768, 0),
    ] {
        let lun = exported(device, block);
        let lun = node(&lun, LUN);
        assert_eq!(
            grid(lun, CellKind::LogicalBlock),
            Some((u64::from(block), 0, true))
        );
        assert_eq!(
            grid(lun, CellKind::PhysicalBlock),
            Some((physical, offset, false)),
            "{device} {block}"
        );
        assert_eq!(grid(lun, CellKind::OptimalIo), None, "that of the device");
    }
}

#[test]
fn a_file_is_followed_to_its_disk() {
    let dir = temp_dir("fileio");
    let mut fake = FakeHost::new(dir.path());
    drive(&mut fake, "sda");
    fake.mount("sda2", "/srv", "ext4", "rw");
    fake.write("srv/a b.img", "");
    fake.link("srv/link", "a b.img");
    let info = "TCM FILEIO ID: 0        File: /srv/link  Size: 1048576  Mode: O_DSYNC Async: 0";
    fake.backstore("fileio_1/file", info, 512, SERIAL);
    fake.lun("vhost/naa.5001405000000001/tpgt_1", 3, "fileio_1/file");
    // One sector into a block of the partition, which is on one itself.
    let extent = FileExtent {
        logical_bytes: 0,
        physical_bytes: 8192 + SECTOR,
        len_bytes: 1 << 20,
        ..placed()
    };
    let kernel = Scripted {
        extents: vec![extent],
        ..Scripted::default()
    };
    let (stack, _) = collect(&fake, &kernel);
    let name = "naa.5001405000000001/tpgt_1/lun_3";
    let lun = node(&stack, name);
    assert_eq!(
        (lun.size, lun.word(keys::TRANSPORT)),
        (Some(Bytes(1 << 20)), Some("vhost"))
    );
    assert_eq!(stack.node(lun.placing.below()[0]).name, "/srv/a b.img");
    assert_eq!(verdicts(&stack, name), [misaligned(512)]);
    assert_eq!(
        grid(lun, CellKind::PhysicalBlock),
        Some((512, 0, false)),
        "none is stated"
    );
    assert_eq!(
        grid(lun, CellKind::OptimalIo),
        Some((16384 * 512, 0, false))
    );
}

fn placed() -> FileExtent {
    FileExtent {
        logical_bytes: 0,
        physical_bytes: 0,
        len_bytes: 0,
        flags: 0,
    }
}

#[test]
fn other_backstores() {
    let dir = temp_dir("backstores");
    let mut fake = FakeHost::new(dir.path());
    let place = "sys/devices/pci0000:00/ata1/host3/target3:0:1/3:0:1:2/block/sda".to_owned();
    fake.disk(&FakeDisk {
        place: Some(place),
        ..FakeDisk::named("sda")
    });
    fake.attribute("sda", "../../wwid", "naa.500a");
    let passed = "SCSI Device Bus Location: Channel ID: 0 Target ID: 1 LUN: 2 Host ID: 3";
    for (number, (name, info)) in (0..).zip([
        ("pscsi_0/passed", passed),
        (
            "rd_mcp_1/memory",
            "TCM RamDisk ID: 0  RamDisk Makeup: rd_mcp  PAGES/PAGE_SIZE: 256*4096  SG_table_count: 1",
        ),
        ("user_2/program", "Config: rbd/pool/vm  Size: 1048576"),
        (
            "iblock_3/gone",
            "iBlock device: sdz  UDEV PATH: /dev/sdz  readonly: 0\n Major: 8 Minor: 240  CLAIMED: IBLOCK",
        ),
    ]) {
        fake.backstore(name, info, 512, "");
        fake.lun(&format!("iscsi/{IQN}/tpgt_1"), number, name);
    }
    fake.backstore("rd_mcp_1/unused", "", 512, "");
    let stack = stack_of(&fake);
    assert_eq!(verdicts(&stack, "pscsi_0/passed"), [Verdict::Aligned]);
    assert_eq!(
        grid(node(&stack, "pscsi_0/passed"), CellKind::PhysicalBlock),
        Some((4096, 0, false))
    );
    assert_eq!(
        node(&stack, "pscsi_0/passed").word(keys::IDENTITY),
        Some("naa.500a"),
        "that of the drive"
    );
    assert_eq!(
        node(&stack, "rd_mcp_1/memory").word(keys::IDENTITY),
        None,
        "no serial number, no identity"
    );
    let memory = node(&stack, "rd_mcp_1/memory");
    assert_eq!(memory.size, Some(Bytes(1 << 20)));
    assert_eq!(stack.node(memory.placing.below()[0]).kind, Kind::Ram);
    for (name, why) in [
        (
            "user_2/program",
            Obstacle::ServedByProgram {
                handler: Some("rbd".to_owned()),
            },
        ),
        (
            "iblock_3/gone",
            Obstacle::NotOfHost {
                device: "8:240".to_owned(),
            },
        ),
    ] {
        assert_eq!(node(&stack, name).opaque, Some(why), "{name}");
    }
    assert_eq!(stack.find("rd_mcp_1/unused"), None, "nobody sees it");
}

#[test]
fn a_namespace_states_no_offset() {
    let dir = temp_dir("nvmet");
    let mut fake = FakeHost::new(dir.path());
    drive(&mut fake, "sda");
    fake.link("dev/disk/by-id/ata-1-part1", "../../sda1");
    fake.namespace(NQN, 1, "/dev/disk/by-id/ata-1-part1", UUID);
    fake.namespace(NQN, 2, "/dev/sda2", "00000000-0000-0000-0000-000000000000");
    fake.namespace(NQN, 3, "/dev/none", UUID);
    fake.namespace(NQN, 4, "/dev/sda", UUID);
    fake.write(
        &format!("sys/kernel/config/nvmet/subsystems/{NQN}/namespaces/4/enable"),
        "0\n",
    );
    fake.write("dev/sda1", "");
    let stack = stack_of(&fake);
    let name = |nsid: u32| format!("{NQN}/ns{nsid}");
    for (nsid, verdict) in [(1, misaligned(3584)), (2, Verdict::Aligned)] {
        let namespace = node(&stack, &name(nsid));
        assert_eq!(verdicts(&stack, &name(nsid)), [verdict]);
        assert_eq!(
            grid(namespace, CellKind::LogicalBlock),
            Some((512, 0, true))
        );
        assert_eq!(
            grid(namespace, CellKind::PhysicalBlock),
            Some((4096, 0, false)),
            "NPWG, from 0 on"
        );
        assert_eq!(namespace.word(keys::PORTAL), Some("192.0.2.1:4420"));
    }
    assert_eq!(
        node(&stack, &name(1)).word(keys::IDENTITY),
        Some(&*format!("uuid.{UUID}"))
    );
    assert_eq!(node(&stack, &name(2)).word(keys::IDENTITY), None);
    let device = "/dev/none".to_owned();
    assert_eq!(
        node(&stack, &name(3)).opaque,
        Some(Obstacle::NotOfHost { device })
    );
    assert_eq!(stack.find(&name(4)), None, "not enabled");
}

/// A disk of iSCSI, as the SCSI host 7 of this machine sees it.
fn initiator(fake: &mut FakeHost, name: &str, wwid: &str) {
    let place = format!("sys/devices/platform/host7/session4/target7:0:0/7:0:0:5/block/{name}");
    let (vendor, model) = ("LIO-ORG".to_owned(), "x".to_owned());
    fake.disk(&FakeDisk {
        vendor,
        model,
        sectors: 80_000,
        place: Some(place),
        ..FakeDisk::named(name)
    });
    fake.attribute(name, "../../wwid", wwid);
    fake.attribute(name, "../../vpd_pg80", "");
    fake.write(
        "sys/class/iscsi_session/session4/targetname",
        &format!("{IQN}\n"),
    );
    fake.write(
        "sys/class/iscsi_connection/connection4:0/persistent_address",
        "192.0.2.7\n",
    );
    fake.write(
        "sys/class/iscsi_connection/connection4:0/persistent_port",
        "3260\n",
    );
}

/// The layers below are invisible, and its name at its target is known.
#[test]
fn a_disk_of_another_host() {
    let dir = temp_dir("initiator");
    let mut fake = FakeHost::new(dir.path());
    initiator(&mut fake, "sdb", NAA);
    // Page 80h: length 5, in the fourth byte.
    let page = b"\0\x80\0\x05ab-c1\0";
    let place = fake
        .root()
        .join("sys/devices/platform/host7/session4/target7:0:0/7:0:0:5/vpd_pg80");
    std::fs::write(place, page).expect("a page");
    fake.partition("sdb", 1, 2048, 8);
    let place = "sys/devices/virtual/nvme-fabrics/ctl/nvme1/nvme1n1".to_owned();
    fake.disk(&FakeDisk {
        model: "Linux".to_owned(),
        place: Some(place),
        ..FakeDisk::named("nvme1n1")
    });
    for (file, text) in [
        ("../transport", "tcp"),
        ("../subsysnqn", NQN),
        ("../address", "traddr=192.0.2.1,trsvcid=4420"),
        ("nsid", "2"),
        ("uuid", UUID),
        ("wwid", &format!("uuid.{UUID}")),
    ] {
        fake.attribute("nvme1n1", file, text);
    }
    let stack = stack_of(&fake);
    let facts = |name: &str, unit: u64, expected: &[(FactKey<String>, &str)]| {
        let node = node(&stack, name);
        assert_eq!(node.kind, Kind::VirtualDisk, "{name}");
        for (key, value) in expected {
            assert_eq!(node.word(*key), Some(*value), "{name} {}", key.name);
        }
        assert_eq!(node.number(keys::UNIT_NUMBER), Some(unit), "{name}");
    };
    facts(
        "sdb",
        5,
        &[
            (keys::TRANSPORT, "iscsi"),
            (keys::TARGET, IQN),
            (keys::PORTAL, "192.0.2.7:3260"),
            (keys::SERIAL, "ab-c1"),
            (keys::IDENTITY, NAA),
        ],
    );
    facts(
        "nvme1n1",
        2,
        &[
            (keys::TRANSPORT, "tcp"),
            (keys::TARGET, NQN),
            (keys::PORTAL, "traddr=192.0.2.1,trsvcid=4420"),
            (keys::UUID, UUID),
            (keys::IDENTITY, &format!("uuid.{UUID}")),
        ],
    );
    let why = Obstacle::BelowVirtualDisk {
        disk: "sdb".to_owned(),
        target: Some(IQN.to_owned()),
    };
    assert_eq!(verdicts(&stack, "sdb1"), [Verdict::Unknown { why }]);
}

/// A drive or array on Fibre Channel states its own blocks, and is believed as before.
#[test]
fn fibre_channel_is_no_software() {
    let dir = temp_dir("fc");
    let mut fake = FakeHost::new(dir.path());
    let place = "sys/devices/pci0000:00/host2/rport-2:0-1/target2:0:0/2:0:0:1/block/sda".to_owned();
    fake.disk(&FakeDisk {
        place: Some(place),
        ..FakeDisk::named("sda")
    });
    fake.write(
        "sys/class/fc_remote_ports/rport-2:0-1/port_name",
        "0x50060e8000000001\n",
    );
    fake.partition("sda", 1, 2048, 8);
    let stack = stack_of(&fake);
    assert_eq!(node(&stack, "sda").kind, Kind::Disk);
    assert_eq!(
        node(&stack, "sda").word(keys::TARGET),
        Some("0x50060e8000000001")
    );
    assert_eq!(verdicts(&stack, "sda1"), [Verdict::Aligned]);
}

/// Target and initiator on one host: the partition of the initiator is judged on the drive of the target. 63 and a
/// start of 2049 cancel each other; the disk's own statement counts no more.
#[test]
fn an_initiator_is_above_its_target() {
    let dir = temp_dir("loopback");
    let mut fake = FakeHost::new(dir.path());
    drive(&mut fake, "sda");
    iblock(&fake, "x", "sda1", 512);
    initiator(&mut fake, "sdb", NAA);
    fake.attribute("sdb", "queue/physical_block_size", "65536");
    fake.partition("sdb", 1, 2048, 8);
    fake.partition("sdb", 2, 2049, 8);
    let stack = stack_of(&fake);
    assert_eq!(
        node(&stack, "sdb").placing.below(),
        [stack.find(LUN).expect("the export")]
    );
    assert_eq!(verdicts(&stack, "sdb1"), [misaligned(3584)]);
    assert_eq!(verdicts(&stack, "sdb2"), [Verdict::Aligned]);
    assert!(!stack.is_leaf(stack.find("sdb").expect("it")));
    let sdb1 = stack.find("sdb1").expect("it");
    assert!(
        !stack
            .standings(sdb1)
            .iter()
            .any(|one| one.fact.what == CellKind::Assumed),
        "all is known"
    );
}

/// By the address on the adapter of LIO's loopback, without any serial number.
#[test]
fn an_adapter_names_its_disk() {
    let dir = temp_dir("adapter");
    let mut fake = FakeHost::new(dir.path());
    drive(&mut fake, "sda");
    let number = fake.number("sda1");
    let (major, minor) = number.split_once(':').expect("a number");
    fake.backstore(
        "iblock_0/x",
        &format!("Major: {major} Minor: {minor}  CLAIMED: IBLOCK"),
        512,
        "",
    );
    let group = "loopback/naa.5001405000000001/tpgt_1";
    fake.lun(group, 4, "iblock_0/x");
    fake.write(
        &format!("sys/kernel/config/target/{group}/address"),
        "7:0:1\n",
    );
    for (name, lun) in [("sdb", 4), ("sdc", 5)] {
        let place = format!(
            "sys/devices/tcm_loop_0/tcm_loop_adapter_0/host7/target7:0:1/7:0:1:{lun}/block/{name}"
        );
        let vendor = "LIO-ORG".to_owned();
        fake.disk(&FakeDisk {
            vendor,
            place: Some(place),
            ..FakeDisk::named(name)
        });
    }
    let stack = stack_of(&fake);
    assert_eq!(verdicts(&stack, "sdb"), [misaligned(3584)]);
    assert_eq!(node(&stack, "sdb").word(keys::TRANSPORT), Some("loopback"));
    assert!(
        node(&stack, "sdc").placing.below().is_empty(),
        "another LUN"
    );
}

/// Paths of one namespace that this host exports to itself.
#[test]
fn paths_are_above_the_namespace_too() {
    let dir = temp_dir("nvme-tcp");
    let mut fake = FakeHost::new(dir.path());
    drive(&mut fake, "sda");
    fake.namespace(NQN, 1, "/dev/sda1", UUID);
    let head = "sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1".to_owned();
    fake.disk(&FakeDisk {
        place: Some(head),
        ..FakeDisk::named("nvme1n1")
    });
    let path = "sys/devices/virtual/nvme-fabrics/ctl/nvme1/nvme1c1n1".to_owned();
    fake.disk(&FakeDisk {
        place: Some(path),
        ..FakeDisk::named("nvme1c1n1")
    });
    fake.attribute("nvme1c1n1", "../transport", "tcp");
    fake.attribute("nvme1c1n1", "wwid", &format!("uuid.{UUID}"));
    fake.partition("nvme1n1", 1, 2048, 8);
    let stack = stack_of(&fake);
    assert_eq!(node(&stack, "nvme1n1").kind, Kind::Multipath);
    assert_eq!(verdicts(&stack, "nvme1n1p1"), [misaligned(3584)]);
}

/// Uncertain pairs are not joined: two exports of one serial number, and a LUN that is passed on.
#[test]
fn doubtful_identities_join_nothing() {
    let dir = temp_dir("twins");
    let mut fake = FakeHost::new(dir.path());
    drive(&mut fake, "sda");
    iblock(&fake, "x", "sda1", 512);
    fake.backstore("iblock_0/y", "Major: 0 Minor: 0", 512, SERIAL);
    fake.lun(&format!("iscsi/{IQN}/tpgt_1"), 1, "iblock_0/y");
    initiator(&mut fake, "sdb", NAA);
    let stack = stack_of(&fake);
    assert!(node(&stack, "sdb").placing.below().is_empty());
    insta::assert_snapshot!(stack.notes().join("\n\n"));

    let dir = temp_dir("handed-on");
    let mut fake = FakeHost::new(dir.path());
    initiator(&mut fake, "sdb", NAA);
    iblock(&fake, "x", "sdb", 512);
    let stack = stack_of(&fake);
    assert!(node(&stack, "sdb").placing.below().is_empty());
    assert!(stack.problems().is_empty(), "{:?}", stack.problems());
}

#[test]
fn damaged_targets_give_notes() {
    let dir = temp_dir("damaged-target");
    let mut fake = FakeHost::new(dir.path());
    drive(&mut fake, "sda");
    iblock(&fake, "x", "sda1", 512);
    let core = "sys/kernel/config/target/core";
    fake.write(&format!("{core}/iblock_0/x/attrib/block_size"), "many\n");
    fake.lun(&format!("iscsi/{IQN}/tpgt_1"), 1, "iblock_9/none");
    fake.lun(&format!("iscsi/{IQN}/tpgt_1"), 2, "../../../../etc");
    fake.write(
        "sys/kernel/config/target/iscsi/discovery_auth/password",
        "secret\n",
    );
    fake.write("sys/kernel/config/nvmet/subsystems/file", "");
    let stack = stack_of(&fake);
    let notes = stack.notes().join("\n");
    for expected in [
        "iblock_0/x/block_size: found \"many\"",
        "iblock_9/none cannot be opened",
    ] {
        assert!(notes.contains(expected), "{notes}");
    }
    assert!(!notes.contains("secret"));
    assert_eq!(
        grid(node(&stack, LUN), CellKind::LogicalBlock),
        Some((512, 0, true)),
        "that of the device"
    );
}
