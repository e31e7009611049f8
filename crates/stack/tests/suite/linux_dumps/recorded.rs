//! Output of other machines, in the folder of real traces. Expected values were read by eye, or come from another
//! reader.

use std::fs;

use plumb_geometry::Bytes;
use plumb_stack::Obstacle;
use plumb_stack::ProblemId;
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Kind};
use plumb_testkit::require;

use super::support::{SECTOR, named, run_of, stack_of, verdict, verdict_on, why};

/// Only after `require!(RealTraces)`.
fn real(name: &str) -> String {
    let folder = plumb_testkit::real_traces().expect("checked by the test");
    fs::read_to_string(folder.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

#[test]
fn labels_of_old_and_new_sfdisk() {
    require!(RealTraces);
    for (file, tool, expected) in [
        (
            "jc_centos-7.7_sfdisk-d.out",
            "sfdisk -d",
            &[("sda1", 2048, 2_097_152), ("sda2", 2_099_200, 39_843_840)][..],
        ),
        (
            "jc_centos-7.7_sfdisk-d-multi.out",
            "sfdisk -d",
            &[
                ("sda2", 2_099_200, 39_843_840),
                ("sdb1", 2048, 2_097_152),
                ("sdb2", 2_099_200, 39_843_840),
            ],
        ),
        (
            "jc_centos-8_sfdisk-l.out",
            "fdisk -l",
            &[("sda1", 2048, 2_097_152), ("sda2", 2_099_200, 39_843_840)],
        ),
        (
            "jc_debian10_sfdisk-l2.out",
            "fdisk -l",
            &[
                ("sda1", 2048, 13_258_752),
                ("sda5", 13_262_848, 5_068_800),
                ("sda8", 21_354_496, 45_752_320),
            ],
        ),
        (
            "jc_debian10_sfdisk-l3.out",
            "fdisk -l",
            &[
                ("sda1", 2048, 524_288),
                ("sda3", 483_684_352, 16_433_152),
                ("sda4", 138_545_152, 345_139_200),
            ],
        ),
    ] {
        let stack = stack_of(&[(tool, &real(&format!("partition/{file}")))]);
        for (name, start, len) in expected {
            let disk = &name[..3];
            let expected = Some((start * SECTOR, Some(len * SECTOR), disk.to_owned()));
            assert_eq!(run_of(&stack, name), expected, "{file}");
        }
        assert_eq!(
            stack.find("sda3").is_some(),
            file.contains("l3"),
            "{file}: empty slots are no partitions"
        );
    }
}

#[test]
fn cylinders_are_no_starts() {
    require!(RealTraces);
    let stack = stack_of(&[(
        "fdisk -l",
        &real("partition/jc_centos-7.7_sfdisk-l-multi.out"),
    )]);
    assert_eq!(why(&stack, "sda2"), Obstacle::RoundedCylinders);
}

/// Answers of an interactive fdisk on a disk with an alignment offset of 3584 bytes: partitions were put at 7 and on.
#[test]
fn fdisk_prints_the_alignment_offset() {
    require!(RealTraces);
    for (file, offset, expected) in [
        (
            "util-linux_align-512-4K-63",
            3584,
            &[(1, 7, 0), (2, 20_487, 0), (5, 63_487, 0), (7, 88_063, 0)][..],
        ),
        (
            "util-linux_align-512-4K",
            0,
            &[(1, 2048, 0), (2, 22_528, 0), (5, 65_536, 0), (7, 90_112, 0)],
        ),
    ] {
        let text = real(&format!("partition/{file}")).replace("<removed>", "/dev/sdx");
        let table = &text[text.find("Disk /dev/sdx").expect("a table")..];
        let table = &table[..table.find("\n\nCommand").expect("its end")];
        // The optimal size was removed from the record as well.
        let table = table.replace("4096 bytes / /dev/sdx bytes", "4096 bytes / 32768 bytes");
        let stack = stack_of(&[("fdisk -l", &table)]);
        let disk = named(&stack, "sdx").1;
        let physical = disk
            .grids
            .iter()
            .find(|fact| fact.what == CellKind::PhysicalBlock)
            .expect("a grid");
        assert_eq!(
            (physical.grid.granularity(), physical.grid.offset()),
            (Bytes(4096), Bytes(offset))
        );
        for (number, start, past) in expected {
            let name = format!("sdx{number}");
            assert_eq!(
                run_of(&stack, &name).map(|run| run.0),
                Some(start * SECTOR),
                "{file}"
            );
            assert_eq!(
                verdict_on(&stack, &name, "sdx"),
                [verdict(*past)],
                "{file} {name}"
            );
        }
        assert_eq!(stack.find("sdx4"), None, "an extended partition");
    }
}

/// Names and starts by a search for lines, in which every device has its own.
#[test]
fn lsblk_of_three_machines() {
    require!(RealTraces);
    for file in [
        "lsblk-multi-devs-bcachefs.json",
        "lsblk-simple-nvme.json",
        "lsblk-simple-lvm.json",
    ] {
        let text = real(&format!("partition/{file}"));
        let stack = stack_of(&[("lsblk -J", &text)]);
        let mut name = "";
        let mut partitions = 0;
        for line in text.lines() {
            let value = |key: &str| {
                line.trim()
                    .strip_prefix(key)
                    .map(|rest| rest.trim_end_matches(',').trim_matches('"'))
            };
            name = value("\"name\": \"").unwrap_or(name);
            if let Some(start) = value("\"start\": ").and_then(|start| start.parse::<u64>().ok()) {
                assert_eq!(
                    run_of(&stack, name).map(|run| run.0),
                    Some(start * 512),
                    "{file} {name}"
                );
                partitions += 1;
            }
        }
        let found = stack
            .nodes()
            .filter(|(_, node)| node.kind == Kind::Partition)
            .count();
        assert_eq!(found, partitions, "{file}");
        assert_eq!(stack.problems().len(), 0, "{file}: {:?}", stack.problems());
    }
    let stack = stack_of(&[("lsblk -J", &real("partition/lsblk-simple-lvm.json"))]);
    assert_eq!(
        named(&stack, "vg_foo.4059/lv_foo.4059")
            .1
            .placing
            .below()
            .len(),
        4,
        "as many loop devices below"
    );
}

#[test]
fn pools_with_blocks_that_are_too_small() {
    require!(RealTraces);
    for (file, vdev, disks) in [
        (
            "zpool_status_512_on_4k_zshare.txt",
            "zshare/mirror-0",
            &["ada1", "ada2"][..],
        ),
        (
            "zpool_status_512_on_4k_z2.txt",
            "z2/raidz-0",
            &["gpt/disk12", "gpt/disk17"],
        ),
    ] {
        let stack = stack_of(&[("zpool status", &real(&format!("zfs/{file}")))]);
        assert_eq!(
            named(&stack, vdev).1.number(keys::ASHIFT),
            Some(9),
            "{file}"
        );
        for disk in disks {
            let grids = &named(&stack, disk).1.grids;
            assert!(
                grids.iter().any(|fact| fact.what == CellKind::PhysicalBlock
                    && fact.granularity() == Bytes(4096))
            );
            let about = |problem: &&plumb_stack::Problem| problem.node == stack.find(disk);
            assert_eq!(
                stack
                    .problems()
                    .iter()
                    .filter(about)
                    .map(|it| it.id)
                    .collect::<Vec<_>>(),
                [ProblemId::AshiftBelowBlock]
            );
        }
    }
}

#[test]
fn pools_by_indentation() {
    require!(RealTraces);
    let below = |stack: &plumb_stack::Stack, name: &str| -> Vec<String> {
        named(stack, name)
            .1
            .placing
            .below()
            .iter()
            .map(|id| stack.node(*id).name.clone())
            .collect()
    };
    let stack = stack_of(&[(
        "zpool status",
        &real("zfs/jc_generic_zpool-status-spares.out"),
    )]);
    assert_eq!(
        below(&stack, "tank"),
        [
            "tank/mirror-0",
            "tank/mirror-1",
            "tank/mirror-2",
            "tank/mirror-3"
        ]
    );
    assert_eq!(below(&stack, "tank/mirror-3"), ["sdg", "sdi"]);
    assert_eq!(stack.find("sdf"), None, "a spare holds nothing");
    let stack = stack_of(&[("zpool status", &real("zfs/jc_generic_zpool-status-v.out"))]);
    for (pool, disk) in [
        ("zhgstera6", "726060ALE614-K8JAPRGN:10"),
        ("zint500", "ST3500418AS-5VMSTSSX:5"),
    ] {
        assert_eq!(below(&stack, &format!("{pool}/disk-0")), [disk]);
    }
    let stack = stack_of(&[("zpool status", &real("zfs/jc_generic_zpool-status-v3.out"))]);
    assert_eq!(below(&stack, "tank"), ["tank/disk-0", "tank/disk-1"]);
    for (file, vdev, shift) in [
        ("zdb_C_ashift12_tank.txt", "tank/mirror-0", 12),
        ("zdb_C_ashift9_zroot.txt", "zroot/mirror-0", 9),
    ] {
        let stack = stack_of(&[("zdb -C", &real(&format!("zfs/{file}")))]);
        assert_eq!(
            named(&stack, vdev).1.number(keys::ASHIFT),
            Some(shift),
            "{file}"
        );
    }
}

/// Sums made by hand: 0.13 + 0.11, 0.12 + 0.13; 2.67 + 2.81, 2.38 + 7.18.
#[test]
fn rates_of_two_generations() {
    require!(RealTraces);
    for (file, expected) in [
        (
            "jc_centos-7.7_iostat-x.out",
            [("sda", 0.24, 0.11), ("dm-0", 0.25, 0.13)],
        ),
        (
            "jc_ubuntu-20.10_iostat-x.out",
            [("sda", 5.48, 2.81), ("dm-0", 9.56, 7.18)],
        ),
    ] {
        let stack = stack_of(&[("iostat -x", &real(&format!("iostat/{file}")))]);
        for (name, rate, writes) in expected {
            let node = named(&stack, name).1;
            // iostat prints reads and writes, two digits each.
            let is_near = |key, printed: f64| {
                let found: f64 = node.number(key).expect("a rate");
                assert!((found - printed).abs() < 1e-9, "{file} {name}: {found}");
            };
            is_near(keys::IOS_PER_SECOND, rate);
            is_near(keys::WRITES_PER_SECOND, writes);
        }
    }
}
