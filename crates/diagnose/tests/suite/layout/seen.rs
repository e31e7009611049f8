//! A layout and the I/O that were seen through it, as one diagnosis.

use plumb_diagnose::layout::{Sender, Watch};
use plumb_diagnose::{GridSource, Joined, join};
use plumb_geometry::{Bytes, Grid, SECTOR};
use plumb_profile::table::Row;
use plumb_profile::{Places, Table};
use plumb_stack::{CellKind, Kind};
use plumb_trace::{Layer, Op};

use crate::layout::lab::{Judged, Lab, evidence, finding_text, kernel};

const OFF: &str = "misaligned-partition";
const IO: &str = "misaligned-io";

/// So many reads of 4 KiB through a partition, the first `past` sectors into it, 100 µs each.
fn through(lab: &mut Lab, disk: &str, part: (&str, u64), past: u64, ios: u64) {
    let table = || Table::new(1 << 20).expect("a modulus");
    let profile = lab.profiles.entry(disk, Layer::Request, table);
    let residue = (part.1 + past) * SECTOR % (1 << 20);
    let (ns, squared) = (100_000, 10_000_000_000);
    let row = Row {
        ios,
        timed: ios,
        ns_sum: u128::from(ns * ios),
        ns_squared_sum: u128::from(ios) * squared,
        ..Row::default()
    };
    profile.add_residue(Op::Read, residue, 4096, false, &row);
    let places = profile.partitions.entry(part.0.to_owned());
    let places = places.or_insert_with(|| Places::with_table(table(), part.1 * SECTOR));
    places.table.add_row(Op::Read, residue, 4096, false, &row);
}

fn watched(lab: &mut Lab) {
    let sender = |device: &str, ios| Sender {
        device: device.to_owned(),
        comm: "postgres".to_owned(),
        ios,
    };
    lab.known.watch = Some(Watch {
        seconds: 10.0,
        senders: vec![sender("sda1", 300), sender("sda2", 250)],
    });
}

fn joined(lab: Lab, given: &[Grid], check: impl FnOnce(&Judged, &Joined<'_>)) {
    let stack = lab.builder.finish();
    let mut joined = join(&stack, &lab.known, Some(&lab.profiles), given);
    let judged = Judged {
        diagnosis: std::mem::take(&mut joined.diagnosis),
    };
    check(&judged, &joined);
}

/// A disk with blocks of 4 KiB, one partition at sector 63 and one at 1 MiB.
fn two_partitions() -> Lab {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    lab.runs(Kind::Partition, "sda1", &[(disk, 63, 1024)]);
    lab.partition("sda2", disk, 2048);
    watched(&mut lab);
    lab
}

#[test]
fn a_start_explains_the_io_behind_it() {
    let mut lab = two_partitions();
    through(&mut lab, "sda", ("sda1", 63), 0, 300);
    through(&mut lab, "sda", ("sda2", 2048), 0, 250);
    joined(lab, &[], |judged, joined| {
        assert_eq!(judged.found_on(OFF), ["sda1"]);
        let finding = judged.finding(OFF);
        assert_eq!(
            (evidence(finding, "ios_unfit"), evidence(finding, "ios")),
            (300.0, 300.0)
        );
        assert_eq!(evidence(finding, "device_ns_mean"), 100_000.0);
        for said in [
            "I/O through it in 10.0 s: 300 reads and 0 writes, 1.2 MiB; 300 of 300 (100.0 %) start off the 4 KiB",
            "begun 512 B (1 sector) further on, 0 of 300 (0.0 %) of them would still start off it",
            "they took 100.0 µs each on average",
            // The others of the same disk, length and kind took as long.
            "latency difference to fitting I/O of the same kind: +0.0 µs",
            "sent by postgres 300",
        ] {
            assert!(
                finding_text(finding).contains(said),
                "no `{said}` in\n{}",
                finding_text(finding)
            );
        }
        assert_eq!(judged.found_on(IO), [] as [&str; 0], "told twice");
        assert_eq!((joined.seen.len(), joined.too_few.len()), (1, 0));
    });
}

#[test]
fn io_that_are_off_by_themselves_stay_a_finding() {
    let mut lab = two_partitions();
    through(&mut lab, "sda", ("sda1", 63), 0, 300);
    through(&mut lab, "sda", ("sda2", 2048), 1, 250);
    joined(lab, &[], |judged, _| {
        let finding = judged.finding(IO);
        assert_eq!(finding.target().part.as_deref(), Some("partition sda2"));
        assert_eq!(
            (evidence(finding, "ios_unfit"), evidence(finding, "ios")),
            (250.0, 250.0)
        );
    });
    // Where the start is right as well, the device is judged as ever.
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    lab.partition("sda2", disk, 2048);
    watched(&mut lab);
    through(&mut lab, "sda", ("sda2", 2048), 1, 250);
    joined(lab, &[], |judged, _| {
        assert_eq!(judged.found_on(IO), ["sda"]);
        assert!(
            finding_text(judged.finding(IO))
                .contains("partition sda2 begins at sector 2,048, on the grid")
        );
    });
}

/// I/O that a partition sends off by itself would be off also from a start on the grid.
#[test]
fn a_move_is_not_said_to_mend_what_it_does_not() {
    let mut lab = two_partitions();
    through(&mut lab, "sda", ("sda1", 63), 0, 300);
    through(&mut lab, "sda", ("sda1", 63), 3, 101);
    joined(lab, &[], |judged, _| {
        let said = "begun 512 B (1 sector) further on, 101 of 401 (25.2 %) of them would still start off it";
        assert!(
            finding_text(judged.finding(OFF)).contains(said),
            "{}",
            finding_text(judged.finding(OFF))
        );
    });
}

#[test]
fn a_partition_without_io_says_so() {
    let mut lab = two_partitions();
    through(&mut lab, "sda", ("sda2", 2048), 0, 250);
    joined(lab, &[], |judged, _| {
        assert!(finding_text(judged.finding(OFF)).contains("no I/O through it seen in 10.0 s"));
    });
    // Of a disk that nobody looked at nothing is said.
    let lab = two_partitions();
    joined(lab, &[], |judged, _| {
        assert!(
            !finding_text(judged.finding(OFF)).contains("I/O through"),
            "{}",
            finding_text(judged.finding(OFF))
        );
    });
}

/// The volume is what is off; its I/O were counted on the partition that it lies on.
#[test]
fn a_volume_is_told_with_the_io_of_its_partition() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    let part = lab.runs(Kind::Partition, "sda1", &[(disk, 63, 1 << 16)]);
    lab.runs(Kind::LogicalVolume, "vg/data", &[(part, 2048, 1 << 15)]);
    watched(&mut lab);
    through(&mut lab, "sda", ("sda1", 63), 2048, 300);
    joined(lab, &[], |judged, _| {
        assert_eq!(judged.found_on(OFF), ["vg/data"]);
        let said = "I/O through sda1, which it lies on, in 10.0 s: 300 reads";
        assert!(
            finding_text(judged.finding(OFF)).contains(said),
            "{}",
            finding_text(judged.finding(OFF))
        );
        assert_eq!(judged.found_on(IO), [] as [&str; 0]);
    });
}

/// The same volume where its own I/O were counted: on the grids below, as they lie in it, all are off for its start.
#[test]
fn a_volume_of_which_io_were_counted_is_told_once() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    let part = lab.runs(Kind::Partition, "sda1", &[(disk, 63, 1 << 16)]);
    lab.runs(Kind::LogicalVolume, "vg/data", &[(part, 2048, 1 << 15)]);
    watched(&mut lab);
    lab.seen("vg/data", (0..300).map(|at| (Op::Read, at * 8, 8)));
    joined(lab, &[], |judged, joined| {
        let finding = judged.finding(OFF);
        assert_eq!(
            (evidence(finding, "ios_unfit"), evidence(finding, "ios")),
            (300.0, 300.0)
        );
        assert!(
            finding_text(finding).contains("I/O through it in 10.0 s: 300 reads"),
            "{}",
            finding_text(finding)
        );
        let grid = &joined.seen[0].1.places[0].grids[0].grid;
        assert_eq!(
            grid.offset(),
            Bytes(512),
            "63 + 2,048 sectors are 7 past a block"
        );
        assert_eq!(judged.found_on(IO), [] as [&str; 0], "told twice");
    });
}

/// I/O are judged by what the stack states of their disk, and nothing a virtual disk states makes them right.
#[test]
fn grids_come_from_the_stack() {
    let judge = |kind: Kind, given: &[Grid], check: &dyn Fn(&Judged, (Grid, GridSource))| {
        let mut lab = Lab::default();
        let disk = lab.node(kind, "sda");
        lab.grid(disk, CellKind::PhysicalBlock, 16 << 10, 512, kernel());
        watched(&mut lab);
        through(&mut lab, "sda", ("sda1", 2049), 0, 300);
        joined(lab, given, |judged, joined| {
            let fit = &joined.seen[0].1.places[0].grids[0];
            check(judged, (fit.grid, fit.source));
        });
    };
    let stated =
        Grid::new(Bytes(16 << 10), Bytes(512), plumb_geometry::GridKind::Unit).expect("a grid");
    judge(Kind::Disk, &[], &|judged, grid| {
        assert_eq!(grid, (stated, GridSource::Stated));
        assert!(
            judged.is_silent(IO),
            "sector 2,049 is on 16 KiB at offset 512"
        );
    });
    judge(Kind::VirtualDisk, &[], &|judged, grid| {
        assert_eq!(grid, (stated, GridSource::Shown));
        assert!(
            judged
                .unknown(IO)
                .contains("what is below it cannot be seen"),
            "{}",
            judged.unknown(IO)
        );
    });
    judge(Kind::Disk, &[Grid::ASSUMED], &|judged, grid| {
        assert_eq!(grid, (Grid::ASSUMED, GridSource::User));
        assert_eq!(evidence(judged.finding(IO), "ios_unfit"), 300.0);
    });
}

/// A short look at a device that has little to do does not hide what its layout tells.
#[test]
fn few_io_hide_nothing() {
    let judge = |watch: bool| {
        let mut lab = Lab::default();
        lab.known.page = Some(Bytes(8192));
        let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
        let parts = disks.map(|disk| {
            lab.runs(
                Kind::Partition,
                &format!("p{disk:?}"),
                &[(disk, 2048, 1 << 20)],
            )
        });
        let stripe = lab.stripe("d10", 32 << 10, &parts);
        lab.runs(Kind::SoftPartition, "d11", &[(stripe, 65, 1 << 18)]);
        lab.seen("d11", (0..199).map(|at| (Op::Read, at * 4, 2)));
        if watch {
            watched(&mut lab);
        }
        lab.judge()
    };
    assert_eq!(judge(false).unknown("split-io"), "199 I/O seen, 200 needed");
    assert_eq!(
        evidence(judge(true).finding("split-io"), "split_share_expected"),
        0.25
    );
}

/// Writes below the unit of a flash drive are one finding: that they begin and end within units is the same once more.
#[test]
fn small_writes_of_a_unit_are_told_once() {
    let judge = |unit: CellKind| {
        let mut lab = Lab::default();
        lab.known.page = Some(Bytes(4096));
        let disk = lab.disk("sda", 4096, 0);
        lab.grid(disk, unit, 16 << 10, 0, kernel());
        lab.partition("sda1", disk, 2048);
        watched(&mut lab);
        through(&mut lab, "sda", ("sda1", 2048), 8, 300);
        let mut found = Vec::new();
        joined(lab, &[], |judged, _| {
            found = judged
                .diagnosis
                .findings
                .iter()
                .map(plumb_diagnose::Finding::id)
                .collect();
        });
        found
    };
    assert_eq!(judge(CellKind::IndirectionUnit), ["indirection-unit"]);
    // Of another unit no rule on the layout speaks.
    assert_eq!(judge(CellKind::ArrayUnit), [IO, "odd-length-io"]);
}

/// Nothing in a diagnosis adds up devices that stand on each other, so it does not warn of that either.
#[test]
fn layered_devices_are_no_finding() {
    let layered = || {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 4096, 0);
        lab.runs(Kind::LogicalVolume, "vg/data", &[(disk, 2048, 1 << 16)]);
        for device in ["sda", "vg/data"] {
            lab.seen(device, (0..300).map(|at| (Op::Read, 2048 + at * 8, 8)));
        }
        lab
    };
    assert_eq!(layered().judge().found_on("double-counted"), ["vg/data"]);
    joined(layered(), &[], |judged, joined| {
        assert_eq!(judged.found_on("double-counted"), [] as [&str; 0]);
        assert_eq!(
            joined
                .seen
                .iter()
                .map(|(_, analysis)| analysis.ios)
                .collect::<Vec<_>>(),
            [300, 300]
        );
    });
}
