//! Mapped devices, file systems, files, loop devices, paths.

use plumb_geometry::Bytes;
use plumb_stack::Obstacle;
use plumb_stack::node::keys;
use plumb_stack::node_facts::ContentKind;
use plumb_stack::node_facts::MountOptions;
use plumb_stack::{CellKind, Kind, Placing, Verdict};
use plumb_sys::FileExtent;
use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};
use plumb_testkit::temp_dir;

use crate::linux::{Scripted, collect, grid, misaligned, node, verdicts};

/// LVM on a partition at sector 63 whose first extent makes up for it, encryption on top; numbers as the fake gives them.
#[test]
fn tables_are_followed_by_device_number() {
    let dir = temp_dir("mapped");
    let mut fake = FakeHost::new(dir.path());
    fake.disk(&FakeDisk::named("sda")); // 259:0
    fake.partition("sda", 1, 63, 1 << 20); // 259:1
    fake.mapped("dm-0", "vg--a-data", "LVM-x", 65536, &["sda1"]); // 259:2
    fake.mapped("dm-1", "secret", "CRYPT-LUKS2-y", 4096, &["dm-0"]); // 259:3
    fake.mapped("dm-2", "vg--a-lost", "LVM-z", 8192, &["sda1"]); // 259:4
    assert_eq!(
        (fake.number("sda1"), fake.number("dm-1")),
        ("259:1".to_owned(), "259:3".to_owned())
    );
    let kernel = Scripted {
        tables: vec![
            (259, 2, &[(0, 65536, "linear", "259:1 2049")]),
            (
                259,
                3,
                &[(
                    0,
                    4096,
                    "crypt",
                    "aes-xts-plain64 - 0 259:2 32768 1 sector_size:4096",
                )],
            ),
        ],
        ..Scripted::default()
    };
    let (stack, _) = collect(&fake, &kernel);
    assert_eq!(verdicts(&stack, "sda1"), [misaligned(63 * 512 % 4096)]);
    assert_eq!(verdicts(&stack, "vg-a/data"), [Verdict::Aligned]);
    assert_eq!(verdicts(&stack, "/dev/mapper/secret"), [Verdict::Aligned]);
    for alias in ["/dev/dm-0", "/dev/mapper/vg--a-data", "vg--a-data"] {
        assert_eq!(stack.find(alias), stack.find("vg-a/data"), "{alias}");
    }
    let secret = node(&stack, "secret");
    assert_eq!(
        (secret.kind, grid(secret, CellKind::CryptSector)),
        (Kind::Crypt, Some((4096, 0, true)))
    );
    let lost = stack.landings(stack.find("vg-a/lost").expect("it")).lost;
    assert_eq!(lost[0].1, Obstacle::TableNeedsRoot);
    assert_eq!(
        stack.above(stack.find("sda1").expect("it")).len(),
        2,
        "sysfs tells what it stands on"
    );
}

#[test]
fn file_systems_swaps_and_files_are_on_devices() {
    let dir = temp_dir("mounts");
    let mut fake = FakeHost::new(dir.path());
    fake.disk(&FakeDisk::named("sda"));
    let (data, swap, pool) = (
        fake.partition("sda", 1, 2048, 1 << 20),
        fake.partition("sda", 2, 63, 8),
        fake.partition("sda", 3, 4096, 8),
    );
    fake.mount(&data, "/srv/my\\040data", "ext4", "rw,stripe=16");
    fake.mount_line(&format!(
        "50 1 {} /sub /bind rw - ext4 /dev/{data} rw",
        fake.number(&data)
    ));
    fake.mount_line(&format!(
        "51 1 0:45 / /pool rw - btrfs /dev/{pool} rw,subvol=/"
    ));
    fake.mount_line("52 1 0:46 / /tmp rw - tmpfs tmpfs rw");
    fake.swap(&format!("/dev/{swap}"), "partition");
    fake.loop_device("loop0", "/bind/disk.img", 1_048_576, 2048);
    fake.loop_device("loop1", "/tmp/disk.img", 0, 2048);
    fake.loop_device("loop2", "/pool/disk.img", 0, 2048);
    fake.loop_device("loop3", "/gone (deleted)", 0, 2048);
    let extent = |logical, physical, len, flags| FileExtent {
        logical_bytes: logical,
        physical_bytes: physical,
        len_bytes: len,
        flags,
    };
    let extents = vec![
        extent(0, 1 << 20, 1 << 20, 0),
        // A neighbour, and one that is not written yet.
        extent(1 << 20, 2 << 20, 1 << 19, 0x800),
        extent(2 << 20, 0, 4096, 0x2 | 0x4),
    ];
    let (stack, _) = collect(
        &fake,
        &Scripted {
            extents,
            ..Scripted::default()
        },
    );

    let ext4 = node(&stack, "/srv/my data");
    assert_eq!(
        (ext4.kind, ext4.value(keys::CONTENT).map(|word| word.text())),
        (Kind::FileSystem, Some("ext4"))
    );
    assert_eq!(
        ext4.value(keys::MOUNT_OPTIONS),
        Some(&MountOptions::from("rw,rw,stripe=16"))
    );
    assert_eq!(verdicts(&stack, "/srv/my data"), [Verdict::Aligned]);
    assert_eq!(stack.find("/bind"), None, "a view of the same file system");
    let swap = "swap on sda2";
    assert_eq!(verdicts(&stack, swap), [misaligned(3584)]);

    // Byte 0 of the loop device is byte 1 MiB of the file, 2 MiB of the file system, 3 MiB of the disk.
    let landings = stack.landings(stack.find("loop0").expect("it"));
    let way: Vec<_> = landings
        .all
        .iter()
        .map(|one| (stack.node(one.on).name.as_str(), one.shift))
        .collect();
    let mib = 1 << 20;
    assert_eq!(
        way,
        [
            ("loop0", 0),
            ("/bind/disk.img", mib),
            ("/srv/my data", 2 * mib),
            ("sda1", 2 * mib),
            ("sda", 3 * mib)
        ]
    );
    insta::assert_snapshot!(stack.notes().join("\n\n"));

    for (name, expected) in [
        (
            "loop1",
            Obstacle::NotOnBlockDevice {
                format: "tmpfs".into(),
            },
        ),
        (
            "loop2",
            Obstacle::PlacesItself {
                format: ContentKind::Btrfs,
            },
        ),
        (
            "loop3",
            Obstacle::FileDeleted {
                file: "/gone".to_owned(),
            },
        ),
    ] {
        let lost = stack.landings(stack.find(name).expect(name)).lost;
        assert!(
            lost.iter().any(|(_, why)| *why == expected),
            "{name}: {lost:?}"
        );
        assert_eq!(verdicts(&stack, name), [], "nothing is said of {name}");
    }
}

#[test]
fn paths_of_nvme_and_bcache_are_joined() {
    let dir = temp_dir("paths");
    let mut fake = FakeHost::new(dir.path());
    for name in ["nvme0n1", "nvme0c0n1", "nvme0c1n1", "nvme1n1"] {
        fake.disk(&FakeDisk::named(name));
    }
    // In a guest, a shared namespace with one path.
    for name in ["nvme2n1", "nvme2c2n1"] {
        fake.disk(&FakeDisk {
            model: "QEMU NVMe Ctrl".to_owned(),
            ..FakeDisk::named(name)
        });
    }
    fake.disk(&FakeDisk {
        sectors: 1000,
        ..FakeDisk::named("sda")
    });
    fake.disk(&FakeDisk {
        sectors: 984,
        ..FakeDisk::named("bcache0")
    });
    let bcache = fake.root().join("sys/devices/virtual/block/bcache0/bcache");
    std::os::unix::fs::symlink("../../../pci0000:00/sda-host/block/sda/bcache", bcache)
        .expect("a link");
    let (stack, _) = collect(
        &fake,
        &Scripted {
            granularity: Some(32),
            ..Scripted::default()
        },
    );
    let unit = |name: &str| {
        grid(node(&stack, name), CellKind::IndirectionUnit).map(|(granularity, ..)| granularity)
    };
    let joined = ["nvme0c0n1", "nvme0c1n1", "nvme0n1", "nvme1n1"].map(unit);
    assert_eq!(
        joined,
        [Some(16 << 10), Some(16 << 10), None, Some(16 << 10)],
        "a fact of leaves"
    );
    assert_eq!(
        grid(node(&stack, "nvme0n1"), CellKind::PhysicalBlock),
        Some((4096, 0, false))
    );
    assert_eq!(node(&stack, "nvme0n1").kind, Kind::Multipath);
    assert_eq!(node(&stack, "nvme0c1n1").kind, Kind::Path);
    assert_eq!(
        (node(&stack, "nvme2n1").kind, node(&stack, "nvme2c2n1").kind),
        (Kind::Multipath, Kind::VirtualDisk)
    );
    let head = stack.landings(stack.find("nvme0n1").expect("it"));
    assert_eq!(head.all.len(), 3, "itself and both paths");
    let Placing::Parts { parts } = &node(&stack, "bcache0").placing else {
        panic!("no parts")
    };
    assert_eq!(parts[0].start, Bytes(8192), "1000 - 984 sectors");
    assert!(stack.problems().is_empty(), "{:?}", stack.problems());
}
