//! Guests on hosts that do not exist: the position of a guest's bytes on the disks of its host follows from both by
//! hand.

use plumb_geometry::{Bytes, SECTOR};
use plumb_stack::Obstacle;
use plumb_stack::grid::Source;
use plumb_stack::linux::{self, Elsewhere, Kernel, Root};
use plumb_stack::node::keys;
use plumb_stack::{Builder, CellKind, JoinError, Kind, NodeId, Stack, Survey, Verdict};
use plumb_testkit::fake_sysfs::{FakeDisk, FakeHost};
use proptest::prelude::*;

use super::{Scripted, misaligned};

const GUEST_SECTORS: u64 = 1 << 22;
const LV_UUID: &str = "LVM-u3BhU2dfVh6tcXcPyO9ZKfpBmVyCGRnHZVJBHJ4mKTfYJPtJOw3rUFoBVrFbDmLE";

fn read(fake: &FakeHost, kernel: &dyn Kernel) -> Builder {
    let mut builder = Builder::default();
    let root = Root::open(fake.root(), kernel).expect("the root");
    linux::collect(&root, &mut builder).expect("a host");
    builder
}

/// A guest with a partition on its virtual disk.
fn guest(fake: &mut FakeHost, disk: &FakeDisk, start: u64) {
    fake.disk(disk);
    fake.partition(&disk.name, 1, start, 1 << 20);
}

fn virtual_disk(name: &str) -> FakeDisk {
    FakeDisk {
        sectors: GUEST_SECTORS,
        vendor: String::new(),
        model: String::new(),
        ..FakeDisk::named(name)
    }
}

/// A host with a volume on a physical volume on a partition; all its disks have blocks of 4 KiB.
fn host(fake: &mut FakeHost, pv_start: u64) {
    fake.disk(&FakeDisk::named("sda"));
    fake.partition("sda", 1, pv_start, 1 << 30);
    fake.mapped("dm-0", "vg-guest1", LV_UUID, GUEST_SECTORS, &["sda1"]);
}

/// The volume begins a mebibyte into the physical volume. `259:1` is the partition, `259:2` the volume.
fn kernel() -> Scripted {
    let table: (u32, u32, &[_]) = (259, 2, &[(0, GUEST_SECTORS, "linear", "259:1 2048")]);
    Scripted {
        tables: vec![table],
        ..Scripted::default()
    }
}

/// Two hosts, each with a sda, and the guest's disk on the volume.
fn joined(guest_start: u64, pv_start: u64) -> Stack {
    let dir = plumb_testkit::temp_dir("guests");
    let mut upper = FakeHost::new(&dir.path().join("web1"));
    guest(&mut upper, &virtual_disk("vda"), guest_start);
    upper.disk(&FakeDisk::named("sda"));
    let mut lower = FakeHost::new(&dir.path().join("kvm3"));
    host(&mut lower, pv_start);
    let mut builder = Builder::default();
    builder.absorb(read(&upper, &Elsewhere), "web1");
    builder.absorb(read(&lower, &kernel()), "kvm3");
    let disk = builder.find_on(Some("web1"), "/dev/vda").expect("the disk");
    let volume = builder
        .find_on(Some("kvm3"), "/dev/vg/guest1")
        .expect("the volume");
    builder
        .join(disk, volume, &Source::User)
        .expect("they are of one size");
    builder.finish()
}

fn on_blocks(stack: &Stack, top: &str) -> Vec<(String, Verdict)> {
    let top = stack.find(top).unwrap_or_else(|| panic!("no {top}"));
    let standings = stack
        .standings(top)
        .into_iter()
        .filter(|one| one.fact.what == CellKind::PhysicalBlock);
    standings
        .map(|one| (stack.node(one.landing.on).name.clone(), one.verdict))
        .collect()
}

#[test]
fn misalignment_on_the_host_appears_in_the_guest() {
    for (guest_start, pv_start, expected) in [
        (2048, 2048, Verdict::Aligned),
        (2048, 2049, misaligned(512)),
        (63, 2048, misaligned(63 * 512 % 4096)),
        // One sector too far there, one too few here.
        (63, 2049, Verdict::Aligned),
    ] {
        let stack = joined(guest_start, pv_start);
        let found = on_blocks(&stack, "web1:vda1");
        assert_eq!(
            found,
            [("kvm3:sda".to_owned(), expected)],
            "{guest_start} on {pv_start}"
        );
        let (disk, part) = (
            stack.find("kvm3:sda").expect("it"),
            stack.find("web1:/dev/vda1").expect("it"),
        );
        let survey = Survey::judge(&stack);
        assert!(
            survey
                .stand(part)
                .is_some_and(|stand| stand.lost.is_empty())
        );
        let landing = stack
            .landings(part)
            .all
            .into_iter()
            .find(|one| one.on == disk)
            .expect("it lies there");
        assert_eq!(
            landing.shift,
            i128::from((guest_start + 2048 + pv_start) * SECTOR)
        );
        // The disk of the same name in the guest has nothing to do with it.
        let other = stack.find("web1:sda").expect("it");
        assert!(stack.above(other).is_empty() && stack.is_leaf(other) && other != disk);
        assert!(!stack.is_leaf(stack.find("web1:vda").expect("it")));
        assert_eq!(stack.find("sda"), None, "whose?");
    }
}

#[test]
fn without_the_host_nothing_below_is_known() {
    let dir = plumb_testkit::temp_dir("guests");
    let mut upper = FakeHost::new(dir.path());
    guest(&mut upper, &virtual_disk("vda"), 2048);
    let stack = read(&upper, &Elsewhere).finish();
    let found = on_blocks(&stack, "vda1");
    assert!(
        matches!(&found[..], [(_, Verdict::Unknown { why })] if *why == Obstacle::BelowVirtualDisk { disk: "vda".to_owned(), target: None }),
        "{found:?}"
    );
}

fn node(builder: &Builder, host: &str, name: &str) -> NodeId {
    builder
        .find_on(Some(host), name)
        .unwrap_or_else(|| panic!("no {name} on {host}"))
}

#[test]
fn wrong_joins_are_refused() {
    let dir = plumb_testkit::temp_dir("guests");
    let mut upper = FakeHost::new(&dir.path().join("web1"));
    guest(&mut upper, &virtual_disk("vda"), 2048);
    guest(
        &mut upper,
        &FakeDisk {
            sectors: 1 << 23,
            ..virtual_disk("vdb")
        },
        2048,
    );
    let mut lower = FakeHost::new(&dir.path().join("kvm3"));
    host(&mut lower, 2048);
    let mut builder = Builder::default();
    builder.absorb(read(&upper, &Elsewhere), "web1");
    builder.absorb(read(&lower, &kernel()), "kvm3");
    let refused = |builder: &mut Builder, disk: &str, (host, below): (&str, &str)| {
        let (disk, below) = (node(builder, "web1", disk), node(builder, host, below));
        builder
            .join(disk, below, &Source::User)
            .expect_err("a wrong join")
    };
    let volume = ("kvm3", "vg/guest1");
    let size = refused(&mut builder, "vdb", volume);
    let expected = (Bytes((1 << 23) * SECTOR), Bytes(GUEST_SECTORS * SECTOR));
    assert!(
        matches!(&size, JoinError::Size { found, expected: it, .. } if (*found, *it) == expected),
        "{size}"
    );
    let part = refused(&mut builder, "vda1", volume);
    assert!(
        matches!(
            part,
            JoinError::NotADisk {
                found: "partition",
                ..
            }
        ),
        "{part}"
    );
    let same = refused(&mut builder, "vda", ("web1", "vdb"));
    assert!(matches!(same, JoinError::OneHost { .. }), "{same}");
    let (disk, below) = (
        node(&builder, "web1", "vda"),
        node(&builder, "kvm3", "vg/guest1"),
    );
    assert_eq!(builder.join(disk, below, &Source::User), Ok(()));
    assert_eq!(
        builder.join(disk, below, &Source::User),
        Ok(()),
        "once more is no other"
    );
    let again = refused(&mut builder, "vda", ("kvm3", "sda"));
    assert!(matches!(again, JoinError::Joined { .. }), "{again}");
}

/// A namespace without a UUID is seen by its NGUID.
#[test]
fn a_namespace_is_seen_by_its_nguid() {
    let dir = plumb_testkit::temp_dir("guests");
    let mut lower = FakeHost::new(dir.path());
    lower.disk(&FakeDisk::named("nvme0n1"));
    lower.namespace(
        "nqn.a",
        1,
        "/dev/nvme0n1",
        "00000000-0000-0000-0000-000000000000",
    );
    let nguid = "sys/kernel/config/nvmet/subsystems/nqn.a/namespaces/1/device_nguid";
    lower.write(nguid, "0123ABCD-0000-0000-0000-000000000007\n");
    let builder = read(&lower, &Elsewhere);
    let shown = builder.get(builder.find("nqn.a/ns1").expect("the export"));
    assert_eq!(
        shown.word(keys::IDENTITY),
        Some("eui.0123abcd000000000000000000000007")
    );
}

/// A LUN of both hosts, and one identity of two units: neither is joined.
#[test]
fn uncertain_joins_are_notes_only() {
    let dir = plumb_testkit::temp_dir("guests");
    let mut builder = Builder::default();
    for name in ["a", "b"] {
        let mut fake = FakeHost::new(&dir.path().join(name));
        for (disk, identity) in [
            ("sda", "naa.5000c500a1b2c3d4"),
            ("sdb", "t10.QEMU    QEMU HARDDISK   drive-0"),
        ] {
            fake.disk(&FakeDisk::named(disk));
            fake.attribute(disk, "device/wwid", identity);
        }
        fake.disk(&FakeDisk::named("nvme0n1"));
        fake.attribute(
            "nvme0n1",
            "wwid",
            "uuid.11111111-2222-3333-4444-555555555555",
        );
        fake.disk(&FakeDisk::named("sdz"));
        fake.namespace("nqn", 1, "/dev/sdz", "11111111-2222-3333-4444-555555555555");
        builder.absorb(read(&fake, &Elsewhere), name);
    }
    builder.join_by_identity();
    let stack = builder.finish();
    assert!(stack.nodes().all(|(_, node)| !node.is_joined));
    let notes = stack.notes().join("\n");
    insta::assert_snapshot!(notes);
    assert!(
        !notes.contains("QEMU HARDDISK"),
        "names that any guest has say nothing: {notes}"
    );
}

#[test]
fn layers_below_override_a_virtual_disk() {
    let stack = joined(2048, 2048);
    let disk = stack.node(stack.find("web1:vda").expect("it"));
    assert_eq!(disk.kind, Kind::VirtualDisk);
    let stated = disk
        .grids
        .iter()
        .find(|fact| fact.what == CellKind::PhysicalBlock)
        .expect("it states one");
    assert!(!stated.is_believed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Any offsets add up.
    #[test]
    fn offsets_add_up(guest_start in 1u64..100_000, pv_start in 1u64..100_000) {
        let stack = joined(guest_start, pv_start);
        let past = (guest_start + 2048 + pv_start) * SECTOR % 4096;
        let expected = if past == 0 { Verdict::Aligned } else { misaligned(past) };
        prop_assert_eq!(on_blocks(&stack, "web1:vda1"), [("kvm3:sda".to_owned(), expected)]);
    }
}
