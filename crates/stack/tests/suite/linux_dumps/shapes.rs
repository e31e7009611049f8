//! Output of tools that do not run here, written after their manuals, with its meaning.

use plumb_geometry::Bytes;
use plumb_stack::Obstacle;
use plumb_stack::dump;
use plumb_stack::node::keys;
use plumb_stack::node_facts::ContentKind;
use plumb_stack::node_facts::LbaFormat;
use plumb_stack::{Builder, CellKind, Chunks, Kind, Placing, Stack};

use super::support::{named, run_of, stack_of, why};

const LVM: &str = "pvs, vgs, lvs (JSON)";

fn below(stack: &Stack, name: &str) -> Vec<String> {
    named(stack, name)
        .1
        .placing
        .below()
        .iter()
        .map(|id| stack.node(*id).name.clone())
        .collect()
}

/// Bytes of Identify Namespace after the specification's figures: format 1 of 4,096 bytes and 8 of metadata in use, NPWG of
/// 4 blocks, NPWA of 2, NOIOB of 32.
fn namespace() -> Vec<u8> {
    let mut bytes = vec![0u8; 4096];
    for (at, value) in [
        (0, 9u8),
        (8, 9),
        (24, 0x10),
        (25, 1),
        (26, 1),
        (46, 32),
        (64, 3),
        (66, 1),
        (68, 255),
        (70, 255),
    ] {
        bytes[at] = value;
    }
    bytes[128..136].copy_from_slice(&[0, 0, 9, 2, 8, 0, 12, 0]);
    bytes
}

#[test]
fn identify_as_text_and_as_bytes() {
    let plain = "NVME Identify Namespace 1:\nnsze    : 0x9\nnsfeat  : 0x10\nnlbaf   : 1\nflbas   : 0x1\nnoiob   : 32\n\
                 npwg    : 3\nnpwa    : 1\nnpdg    : 255\nnpda    : 255\nlbaf  0 : ms:0   lbads:9  rp:0x2 \n\
                 lbaf  1 : ms:8   lbads:12 rp:0 (in use)\n";
    let long = plain
        .replace("nsfeat  : 0x10\n", "nsfeat  : 0x10\n  [4:4] : 0x1\tNPWG, NPWA, NPDG, NPDA, and NOWS are Supported\n")
        .replace(
            "lbaf  0 : ms:0   lbads:9  rp:0x2 ",
            "LBA Format  0 : Metadata Size: 0   bytes - Data Size: 512 bytes - Relative Performance: 0x2 Good ",
        )
        .replace(
            "lbaf  1 : ms:8   lbads:12 rp:0 (in use)",
            "LBA Format  1 : Metadata Size: 8   bytes - Data Size: 4096 bytes - Relative Performance: 0 Best (in use)",
        );
    for bytes in [plain.as_bytes().to_vec(), long.into_bytes(), namespace()] {
        let mut builder = Builder::default();
        dump::read_bytes("id-ns-nvme3n1.txt", &bytes, &mut builder).expect("reads");
        let stack = builder.finish();
        let node = named(&stack, "nvme3n1").1;
        let grid = |what: CellKind| {
            node.grids
                .iter()
                .find(|fact| fact.what == what)
                .map(|fact| fact.granularity().0)
        };
        assert_eq!(grid(CellKind::IndirectionUnit), Some(16 << 10));
        assert_eq!(grid(CellKind::WriteAlignment), Some(8 << 10));
        assert_eq!(grid(CellKind::IoBoundary), Some(128 << 10));
        assert_eq!(
            node.value(keys::LBA_FORMATS),
            Some(&vec![
                LbaFormat {
                    block: Bytes(512),
                    metadata: Bytes(0),
                    performance: 2,
                    is_in_use: false
                },
                LbaFormat {
                    block: Bytes(4096),
                    metadata: Bytes(8),
                    performance: 0,
                    is_in_use: true
                }
            ])
        );
    }
    // Bytes that are no namespace are text, and no tool's.
    let mut used = namespace();
    used[16] = 10;
    for bytes in [vec![0u8; 4096], vec![0xff; 4096], used] {
        assert!(dump::read_bytes("nvme0n1", &bytes, &mut Builder::default()).is_err());
    }
}

#[test]
fn the_namespace_is_in_the_name_of_the_file() {
    let mut builder = Builder::default();
    dump::read_bytes("id-ns.bin", &namespace(), &mut builder).expect("reads");
    let stack = builder.finish();
    assert_eq!(stack.nodes().count(), 0);
    insta::assert_snapshot!(stack.notes().join("\n\n"));
}

/// After Red Hat's manual of DM Multipath, with the alias and without; the oldest form after SUSE's.
#[test]
fn multipath_of_three_ages() {
    let new = "mpatha (3600d0230000000000e13955cc3757800) dm-1 WINSYS,SF2372\n\
               size=269G features='0' hwhandler='0' wp=rw\n|-+- policy='round-robin 0' prio=1 status=active\n\
               | `- 6:0:0:0 sdb 8:16 active ready running\n`-+- policy='round-robin 0' prio=1 status=enabled\n\
               \x20 `- 7:0:0:0 sdf 8:80 active ready running\n";
    let unnamed = new.replace(
        "mpatha (3600d0230000000000e13955cc3757800)",
        "3600d0230000000000e13955cc3757800",
    );
    let old = "3600d0230000000000e13955cc3757800\n[size=127 GB][features=\"0\"][hwhandler=\"1 emc\"]\n\
               \\_ round-robin 0 [active][first]\n \\_ 1:0:1:2 sdb 8:16 [ready ][active]\n\
               \\_ round-robin 0 [enabled]\n \\_ 1:0:0:2 sdf 8:80 [ready ][active]\n";
    for (text, name) in [
        (new, "mpatha"),
        (&unnamed, "3600d0230000000000e13955cc3757800"),
        (old, "3600d0230000000000e13955cc3757800"),
    ] {
        let stack = stack_of(&[("multipath -ll", text)]);
        let node = named(&stack, name).1;
        assert_eq!(
            (node.kind, below(&stack, name)),
            (Kind::Multipath, vec!["sdb".to_owned(), "sdf".to_owned()])
        );
        assert_eq!(
            node.word(keys::IDENTITY),
            Some("3600d0230000000000e13955cc3757800")
        );
        assert_eq!(named(&stack, "sdb").1.kind, Kind::Path);
        assert_eq!(stack.find(&format!("/dev/mapper/{name}")), stack.find(name));
    }
}

#[test]
fn pools_with_paths_and_without() {
    let zdb = "MOS Configuration:\n        name: 'tank'\n        vdev_tree:\n            type: 'root'\n            children[0]:\n\
               \x20               type: 'mirror'\n                id: 0\n                ashift: 12\n                children[0]:\n\
               \x20                   type: 'disk'\n                    id: 0\n                    path: '/dev/sda1'\n\
               \x20               children[1]:\n                    type: 'disk'\n                    id: 1\n\
               \x20                   path: '/dev/sdb1'\n            children[1]:\n                type: 'raidz'\n\
               \x20               id: 1\n                nparity: 2\n                ashift: 13\n                children[0]:\n\
               \x20                   type: 'disk'\n                    path: '/dev/sdc1'\n";
    let stack = stack_of(&[("zdb -C", zdb)]);
    assert_eq!(below(&stack, "tank"), ["tank/mirror-0", "tank/raidz-1"]);
    assert_eq!(below(&stack, "tank/mirror-0"), ["sda1", "sdb1"]);
    let Placing::Copies { members } = &named(&stack, "tank/mirror-0").1.placing else {
        panic!("no copies")
    };
    assert_eq!(
        members[0].start,
        Bytes(4 << 20),
        "behind two labels and the gap"
    );
    let raid = named(&stack, "tank/raidz-1").1;
    assert_eq!(
        (raid.number(keys::ASHIFT), raid.word(keys::LEVEL)),
        (Some(13), Some("raidz2"))
    );
    // The same by the names of whole disks: only a label has the partition.
    let status = "  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME        STATE\n\ttank        ONLINE\n\t  mirror-0  ONLINE\n\
                  \t    sda     ONLINE\n\t    sdb     ONLINE\n\nerrors: No known data errors\n";
    let alone = stack_of(&[("zpool status", status)]);
    assert_eq!(why(&alone, "tank/mirror-0"), Obstacle::ZfsPartition);
    let label = |disk: &str| {
        format!("device: /dev/{disk}\nsector-size: 512\n/dev/{disk}1 : start= 2048, size= 99999\n")
    };
    let labels = [label("sda"), label("sdb")];
    let stack = stack_of(&[
        ("zpool status", status),
        ("sfdisk -d", &labels[0]),
        ("sfdisk -d", &labels[1]),
    ]);
    assert_eq!(below(&stack, "tank/mirror-0"), ["sda1", "sdb1"]);
    let shifts: Vec<i128> = stack
        .landings(named(&stack, "tank/mirror-0").0)
        .all
        .iter()
        .filter(|landing| stack.node(landing.on).kind == Kind::Disk)
        .map(|landing| landing.shift)
        .collect();
    assert_eq!(shifts, [(1 << 20) + (4 << 20); 2]);
    let both = stack_of(&[("zpool status", status), ("zdb -C", zdb)]);
    assert_eq!(below(&both, "tank/mirror-0"), ["sda1", "sdb1"]);
}

#[test]
fn records_of_data_sets() {
    let text = "tank\trecordsize\t131072\tdefault\ntank/db\trecordsize\t16384\tlocal\n\
                tank/vol\tvolblocksize\t8192\t-\ntank/vol\trecordsize\t-\t-\n";
    let stack = stack_of(&[("zfs get -Hp", text)]);
    assert_eq!(
        named(&stack, "tank/db")
            .1
            .number(keys::RECORD_SIZE)
            .map(|bytes| bytes.0),
        Some(16384)
    );
    assert_eq!(
        named(&stack, "tank/vol")
            .1
            .number(keys::VOLUME_BLOCK)
            .map(|bytes| bytes.0),
        Some(8192)
    );
    assert_eq!(
        named(&stack, "tank/vol")
            .1
            .number(keys::RECORD_SIZE)
            .map(|bytes| bytes.0),
        None
    );
    assert_eq!(stack.find("/dev/zvol/tank/vol"), stack.find("tank/vol"));
    assert_eq!(below(&stack, "tank/db"), ["tank"]);
    // Without -p sizes are rounded words.
    let stack = stack_of(&[("zfs get -Hp", "tank/db\trecordsize\t16K\tlocal\n")]);
    assert!(named(&stack, "tank/db").1.grids.is_empty());
    insta::assert_snapshot!(stack.notes().join("\n\n"));
}

/// Hidden volumes come into their own with `lvs -a`.
#[test]
fn thin_and_raid_of_lvm() {
    let segment = |volume: &str, more: &str| {
        format!(
            r#"{{"vg_name":"vg", "lv_name":"{volume}", "vg_extent_size":"8192S", "seg_start":"0S", "seg_size":"8192S", {more}}}"#
        )
    };
    let segments = [
        segment(
            "thin",
            r#""segtype":"thin", "pool_lv":"pool", "devices":"""#,
        ),
        segment(
            "pool",
            r#""segtype":"thin-pool", "chunk_size":"128S", "devices":"pool_tdata(0)""#,
        ),
        segment(
            "r5",
            r#""segtype":"raid5", "stripe_size":"256S", "devices":"r5_rimage_0(0),r5_rimage_1(0),r5_rimage_2(0)""#,
        ),
        segment(
            "r1",
            r#""segtype":"raid1", "stripe_size":"0S", "devices":"r1_rimage_0(0),r1_rimage_1(0)""#,
        ),
    ];
    let hidden = segment(
        "[pool_tdata]",
        r#""segtype":"linear", "devices":"/dev/sda(3)""#,
    );
    let report =
        |rows: &[String]| format!("{{\n\"report\": [{{\"seg\": [{}]}}]}}\n", rows.join(",\n"));
    let pv = "{\n\"report\": [{\"pv\": [{\"pv_name\":\"/dev/sda\", \"vg_name\":\"vg\", \"pe_start\":\"2048S\"}]}]}\n";
    let visible = report(&segments);
    let stack = stack_of(&[(LVM, &visible), (LVM, pv)]);
    let hidden_volume = &named(&stack, "vg/pool_tdata").1.opaque;
    assert_eq!(*hidden_volume, Some(Obstacle::HiddenVolume));
    let all = report(&[&segments[..], &[hidden]].concat());
    let stack = stack_of(&[(LVM, &all), (LVM, pv)]);
    let start = (2048 + 3 * 8192) * 512;
    assert_eq!(
        run_of(&stack, "vg/pool_tdata").map(|run| run.0),
        Some(start)
    );
    let thin = named(&stack, "vg/thin").0;
    let landing = stack.landings(thin).all.into_iter().last().expect("a disk");
    assert_eq!(
        (landing.shift, landing.period),
        (i128::from(start) % (64 << 10), Some(Bytes(64 << 10)))
    );
    let Placing::Chunks(Chunks {
        chunk,
        members,
        parity,
        ..
    }) = &named(&stack, "vg/r5").1.placing
    else {
        panic!("no chunks")
    };
    assert_eq!((chunk.0, members.len(), *parity), (128 << 10, 3, 1));
    assert_eq!(named(&stack, "vg/r1").1.kind, Kind::Mirror);
    assert_eq!(below(&stack, "vg/r1"), ["vg/r1_rimage_0", "vg/r1_rimage_1"]);
}

#[test]
fn file_systems_that_place_their_blocks() {
    let mounts =
        "TARGET SOURCE FSTYPE OPTIONS\n/ /dev/sda1 ext4 rw\n├─/data /dev/sda2[/sub] btrfs rw\n";
    let stack = stack_of(&[("findmnt", mounts)]);
    let format = ContentKind::Btrfs;
    assert_eq!(why(&stack, "/data"), Obstacle::PlacesItself { format });
    assert_eq!(
        (below(&stack, "/data"), run_of(&stack, "/").map(|run| run.0)),
        (vec!["sda2".to_owned()], Some(0))
    );
}

/// The target of an iSCSI disk may state anything; a drive is believed.
#[test]
fn lsblk_detects_disks_of_another_host() {
    for (transport, kind) in [
        ("iscsi", Kind::VirtualDisk),
        ("sas", Kind::Disk),
        ("fc", Kind::Disk),
    ] {
        let text = format!(
            r#"{{"blockdevices": [{{"name": "sda", "type": "disk", "model": "LUN C-Mode", "phy-sec": 4096, "tran": "{transport}"}}]}}"#
        );
        let stack = stack_of(&[("lsblk -J", &text)]);
        assert_eq!(named(&stack, "sda").1.kind, kind, "{transport}");
    }
}

#[test]
fn hints_of_lsblk_are_checked() {
    let disk = |optimal: u64| {
        format!(
            r#"{{"blockdevices": [{{"name": "sda", "type": "disk", "phy-sec": 512, "min-io": 512, "opt-io": {optimal}}}]}}"#
        )
    };
    for (optimal, is_believed) in [(33_553_920, false), (65_536, true), (32 << 20, false)] {
        let stack = stack_of(&[("lsblk -J", &disk(optimal))]);
        let grids = &named(&stack, "sda").1.grids;
        let hint = grids
            .iter()
            .find(|fact| fact.what == CellKind::OptimalIo)
            .expect("a hint");
        assert_eq!(hint.is_believed(), is_believed, "{optimal}");
    }
    // Numbers are words in old versions; without START there is no place.
    let old = r#"{"blockdevices": [{"name": "sda", "maj:min": "8:0", "rm": "0", "size": "20G", "type": "disk", "children": [
        {"name": "sda1", "size": "1G", "type": "part", "mountpoint": "/boot"}]}]}"#;
    let stack = stack_of(&[("lsblk -J", old)]);
    assert_eq!(why(&stack, "sda1"), Obstacle::NoStartColumn);
    assert_eq!(
        (named(&stack, "sda").1.size, below(&stack, "/boot")),
        (None, vec!["sda1".to_owned()])
    );
}

/// `zone-sz` of a disk without zones is its `chunk_sectors`, as lsblk 2.38.1 prints it of an NVMe drive with an NOIOB.
#[test]
fn a_zone_is_one_of_a_zoned_disk() {
    for (zoned, zones) in [("none", 0), ("host-managed", 1)] {
        let text = format!(
            r#"{{"blockdevices": [{{"name": "sda", "type": "disk", "phy-sec": 512, "zoned": "{zoned}", "zone-sz": 131072}}]}}"#
        );
        let mut builder = Builder::default();
        dump::read_bytes("lsblk.json", text.as_bytes(), &mut builder).expect("reads");
        let stack = builder.finish();
        let grids = &named(&stack, "sda").1.grids;
        assert_eq!(
            grids
                .iter()
                .filter(|fact| fact.what == CellKind::Zone)
                .count(),
            zones,
            "{zoned}"
        );
    }
}
