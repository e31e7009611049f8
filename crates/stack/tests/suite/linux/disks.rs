//! Disks, their statements, and partitions.

use plumb_geometry::{Bytes, SECTOR};
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Kind, Verdict};
use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};
use plumb_testkit::temp_dir;

use crate::linux::{grid, misaligned, node, stack_of, verdicts};

/// Four starts on three drives, with the answers of arithmetic: (512·start − offset) mod 4096.
#[test]
fn partitions_are_judged_on_the_grid_of_their_disk() {
    let dir = temp_dir("partitions");
    let mut fake = FakeHost::new(dir.path());
    fake.disk(&FakeDisk::named("sda"));
    fake.disk(&FakeDisk {
        alignment_offset: 3584,
        ..FakeDisk::named("sdb")
    });
    fake.disk(&FakeDisk {
        logical: 4096,
        ..FakeDisk::named("nvme0n1")
    });
    let starts = [34, 63, 2047, 2048];
    for disk in ["sda", "sdb", "nvme0n1"] {
        for (number, start) in (1..).zip(starts) {
            fake.partition(disk, number, start, 1);
        }
    }
    // The kernel's word for a partition is derived from the disk's, and must not count again.
    fake.attribute("sdb4", "alignment_offset", "3584");
    let stack = stack_of(&fake);
    let of = |disk: &str| {
        (1..=4)
            .map(|number| verdicts(&stack, &format!("{disk}{number}")))
            .collect::<Vec<_>>()
    };
    let plain = [1024, 3584, 3584, 0];
    let moved = [1536, 0, 0, 512];
    let expected = |phases: [u64; 4]| {
        let verdict = |phase| {
            if phase == 0 {
                Verdict::Aligned
            } else {
                misaligned(phase)
            }
        };
        phases.map(|phase| vec![verdict(phase)]).to_vec()
    };
    assert_eq!(of("sda"), expected(plain));
    assert_eq!(of("sdb"), expected(moved));
    assert_eq!(of("nvme0n1p"), expected(plain));
    let part = node(&stack, "nvme0n1p3");
    assert_eq!(
        (part.kind, part.size),
        (Kind::Partition, Some(Bytes(SECTOR)))
    );
    assert_eq!(part.number(keys::PARTITION_NUMBER), Some(3));
    assert!(
        stack.problems().is_empty() && stack.notes().is_empty(),
        "{:?}",
        stack.notes()
    );
}

#[test]
fn a_disk_states_grids_and_settings() {
    let dir = temp_dir("disk");
    let mut fake = FakeHost::new(dir.path());
    fake.disk(&FakeDisk {
        optimal_io: 65_535 * 512,
        chunk_sectors: 256,
        discard_granularity: 8192,
        discard_alignment: 512,
        ..FakeDisk::named("sda")
    });
    fake.disk(&FakeDisk {
        optimal_io: 1 << 20,
        chunk_sectors: 524_288,
        zoned: "host-managed".to_owned(),
        ..FakeDisk::named("sdb")
    });
    let stack = stack_of(&fake);
    let sda = node(&stack, "/dev/sda");
    assert_eq!(sda.kind, Kind::Disk);
    assert_eq!(grid(sda, CellKind::LogicalBlock), Some((512, 0, true)));
    assert_eq!(grid(sda, CellKind::OptimalIo), Some((33_553_920, 0, false)));
    assert_eq!(grid(sda, CellKind::IoBoundary), Some((128 << 10, 0, true)));
    assert_eq!(grid(sda, CellKind::DiscardUnit), Some((8192, 512, true)));
    for (key, value) in [
        (keys::MODEL, "ATA PLAIN DRIVE"),
        (keys::SCHEDULER, "mq-deadline"),
        (keys::WRITE_CACHE, "write back"),
    ] {
        assert_eq!(sda.word(key), Some(value), "{}", key.name);
    }
    assert_eq!(sda.number(keys::READ_AHEAD), Some(Bytes(131_072)));
    assert_eq!(sda.number(keys::MAX_REQUEST), Some(Bytes(1_310_720)));
    assert_eq!(sda.number(keys::QUEUE_DEPTH), Some(64));
    assert_eq!(sda.number(keys::ROTATIONAL), Some(true));
    let sdb = node(&stack, "sdb");
    assert_eq!(grid(sdb, CellKind::Zone), Some((256 << 20, 0, true)));
    assert_eq!(grid(sdb, CellKind::OptimalIo), Some((1 << 20, 0, true)));
    assert_eq!(grid(sdb, CellKind::DiscardUnit), None, "discards are off");
    assert_eq!(
        sdb.value(keys::ZONED).map(|word| word.text()),
        Some("host-managed")
    );
}

/// Limits that Linux 6.1 works out (`nvme_update_disk_info`) of NPWG 16 KiB and of none, NOWS 0 and AWUPF 0: one block of
/// optimal I/O is no statement. Of NOWS 32 KiB it states that.
#[test]
fn one_block_is_no_optimal_size() {
    for (npwg, optimal_io, logical, expected) in [
        (16 << 10, 512, 512, None),
        (512, 512, 512, None),
        (16 << 10, 4096, 4096, None),
        (16 << 10, 32 << 10, 512, Some((32 << 10, 0, true))),
        (16 << 10, 8 << 10, 512, Some((8 << 10, 0, false))),
    ] {
        let dir = temp_dir("nvme");
        let mut fake = FakeHost::new(dir.path());
        let physical = logical;
        let minimum_io = npwg.max(u64::from(logical));
        fake.disk(&FakeDisk {
            optimal_io,
            logical,
            physical,
            minimum_io,
            ..FakeDisk::named("nvme0n1")
        });
        let stack = stack_of(&fake);
        let drive = node(&stack, "nvme0n1");
        assert_eq!(
            grid(drive, CellKind::OptimalIo),
            expected,
            "{npwg} {optimal_io} {logical}"
        );
        assert_eq!(
            grid(drive, CellKind::MinimumIo),
            Some((minimum_io, 0, true))
        );
    }
}

#[test]
fn disks_of_a_hypervisor_are_virtual() {
    let dir = temp_dir("virtual");
    let mut fake = FakeHost::new(dir.path());
    let kinds = [
        ("vda", "", "", Kind::VirtualDisk),
        ("xvda", "", "", Kind::VirtualDisk),
        ("sda", "VMware", "Virtual disk", Kind::VirtualDisk),
        ("sdb", "QEMU", "QEMU HARDDISK", Kind::VirtualDisk),
        ("sdc", "Msft", "Virtual Disk", Kind::VirtualDisk),
        ("sdd", "Google", "PersistentDisk", Kind::VirtualDisk),
        (
            "nvme1n1",
            "",
            "Amazon Elastic Block Store",
            Kind::VirtualDisk,
        ),
        ("nvme2n1", "", "SAMSUNG MZ7L3960", Kind::Disk),
        ("sde", "SUN", "T300", Kind::Disk),
        ("zram0", "", "", Kind::Ram),
    ];
    for (name, vendor, model, _) in kinds {
        let (vendor, model) = (vendor.to_owned(), model.to_owned());
        fake.disk(&FakeDisk {
            vendor,
            model,
            ..FakeDisk::named(name)
        });
    }
    let stack = stack_of(&fake);
    for (name, .., kind) in kinds {
        assert_eq!(node(&stack, name).kind, kind, "{name}");
    }
    assert!(
        matches!(verdicts(&stack, "vda")[..], [Verdict::Unknown { .. }]),
        "below is not seen"
    );
}
