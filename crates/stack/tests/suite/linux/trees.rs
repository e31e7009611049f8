//! Trees that are damaged, and large ones.

use plumb_stack::linux::{self, Elsewhere, LinuxError, Root};
use plumb_stack::node::keys;
use plumb_stack::node_facts::KernelOffset;
use plumb_stack::{Builder, CellKind};
use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};
use plumb_testkit::temp_dir;

use crate::linux::{Scripted, collect, grid, node};

#[test]
fn damaged_trees_give_notes() {
    let dir = temp_dir("damaged");
    let mut fake = FakeHost::new(dir.path());
    for disk in ["sda", "sdb", "sdc"] {
        fake.disk(&FakeDisk::named(disk));
    }
    fake.attribute("sda", "queue/physical_block_size", "four");
    fake.attribute("sda", "alignment_offset", "-1");
    fake.attribute("sda", "discard_alignment", "-1");
    fake.attribute("sda", "queue/discard_max_bytes", "4096");
    fake.attribute("sda", "queue/discard_granularity", "4096");
    std::fs::remove_file(
        fake.root()
            .join("sys/devices/pci0000:00/sdb-host/block/sdb/size"),
    )
    .expect("removed");
    std::fs::remove_dir_all(
        fake.root()
            .join("sys/devices/pci0000:00/sdc-host/block/sdc/queue"),
    )
    .expect("removed");
    let class = fake.root().join("sys/class/block");
    std::os::unix::fs::symlink("sdz", class.join("sdz")).expect("a circle");
    std::os::unix::fs::symlink("/etc", class.join("sdy")).expect("a way out");
    std::fs::write(class.join("sdx"), "a file").expect("a file");
    fake.write(
        "proc/self/mountinfo",
        "\u{0}\nno mount\n1 2 999:9 / /x rw - ext4 /dev/none rw\n",
    );
    let (stack, _) = collect(&fake, &Scripted::default());
    let notes = stack.notes().join("\n");
    for expected in [
        "sda/physical_block_size: found \"four\"",
        "block/sdz cannot be opened",
        "block/sdx cannot",
    ] {
        assert!(notes.contains(expected), "{expected}: {notes}");
    }
    let sda = node(&stack, "sda");
    assert_eq!(
        (
            grid(sda, CellKind::PhysicalBlock),
            sda.number(keys::ALIGNMENT_OFFSET)
        ),
        (None, Some(KernelOffset::GaveUp))
    );
    assert_eq!(
        grid(sda, CellKind::DiscardUnit),
        Some((4096, 0, false)),
        "the kernel gave up"
    );
    assert!(!notes.contains("alignment"), "-1 has a meaning: {notes}");
    assert_eq!(stack.find("sdb"), None, "no size, no device");
    assert_eq!(
        grid(node(&stack, "sdc"), CellKind::PhysicalBlock),
        Some((8192, 0, true)),
        "asked by ioctl"
    );

    let error = Root::open(&dir.path().join("none"), &Elsewhere)
        .err()
        .expect("no root");
    assert!(matches!(error, LinuxError::Root { .. }), "{error}");
    let empty = temp_dir("empty");
    let root = Root::open(empty.path(), &Elsewhere).expect("a root");
    let error = linux::collect(&root, &mut Builder::default()).expect_err("no sysfs");
    assert!(matches!(error, LinuxError::NoDevices { .. }), "{error}");
}

/// Work grows with the devices, by no more than some thirty files each; partitions and devices without a medium need
/// few. There are enough of them for several threads.
#[test]
fn reading_is_one_pass() {
    let dir = temp_dir("many");
    let mut fake = FakeHost::new(dir.path());
    let (disks, partitions) = (20, 14);
    for number in 0..disks {
        let name = format!("sd{number}x");
        fake.disk(&FakeDisk::named(&name));
        for partition in 1..=partitions {
            fake.partition(&name, partition, 2048 * u64::from(partition), 8);
        }
        fake.disk(&FakeDisk {
            sectors: 0,
            ..FakeDisk::named(&format!("loop{number}"))
        });
    }
    let (stack, host) = collect(&fake, &Elsewhere);
    assert_eq!(stack.nodes().count(), disks * (1 + partitions as usize));
    let (disks, partitions) = (disks as u64, u64::from(partitions));
    let work = host.work();
    assert!(work.files <= disks * (26 + 6 * partitions + 1), "{work:?}");
    assert!(work.directories <= disks * (3 + partitions + 1), "{work:?}");
    assert!(
        work.files >= disks * (15 + 4 * partitions),
        "too few to be true: {work:?}"
    );
}
