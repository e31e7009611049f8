//! A layout and the I/O that were seen through it, as one diagnosis.

use plumb_diagnose::layout::{Sender, Watch};
use plumb_diagnose::{Finding, GridSource, Joined, Reason, join};
use plumb_geometry::{Bounds, Bytes, Grid, GridKind, SECTOR};
use plumb_model::facts::PartitionStart;
use plumb_model::reason::Counting;
use plumb_model::seen::{FitAfterMove, SentBy};
use plumb_model::{CostOf, Part, Seen, Severity};
use plumb_profile::latency_fit::LatencyByFit;
use plumb_profile::table::Row;
use plumb_profile::{Places, Table};
use plumb_stack::{CellKind, Kind};
use plumb_trace::{Layer, Op};

use crate::common::lab::{JudgedLayout, Lab, kernel};
use crate::common::number;
use crate::facts;

const OFF: &str = "misaligned-partition";
const IO: &str = "misaligned-io";

fn seen(finding: &Finding) -> &Seen {
    finding.seen.as_ref().expect("I/O were seen")
}

/// I/O off the grid, and all.
fn fit(finding: &Finding) -> (u64, u64) {
    let fit = seen(finding).fit.as_ref().expect("a fit");
    (fit.misaligned.known().expect("a number"), fit.ios)
}

/// Reads of 4 KiB through a partition, the first `past` sectors into it, 100 µs each.
fn through(lab: &mut Lab, disk: &str, part: (&str, u64), past: u64, ios: u64) {
    timed(lab, disk, part, (Op::Read, past, ios, 100_000));
}

/// I/O of 4 KiB through a partition: their operation, the sectors into it, their number and the latency of each, ns.
fn timed(lab: &mut Lab, disk: &str, part: (&str, u64), (op, past, ios, ns): (Op, u64, u64, u64)) {
    let table = || Table::new(1 << 20).expect("a modulus");
    let profile = lab.profiles.entry(disk, Layer::Request, table);
    let residue = (part.1 + past) * SECTOR % (1 << 20);
    let row = Row {
        ios,
        timed: ios,
        ns_sum: u128::from(ns * ios),
        ns_squared_sum: u128::from(ios * ns) * u128::from(ns),
        ..Row::default()
    };
    profile.add_residue(op, residue, 4096, false, &row);
    let places = profile.partitions.entry(part.0.to_owned());
    let places = places.or_insert_with(|| Places::with_table(table(), part.1 * SECTOR));
    places.table.add_row(op, residue, 4096, false, &row);
}

fn watched(lab: &mut Lab) {
    let sender = |device: &str, ios| Sender {
        device: device.to_owned(),
        comm: "postgres".to_owned(),
        ios,
        faults: 0,
    };
    lab.known.watch = Some(Watch {
        seconds: 10.0,
        senders: vec![sender("sda1", 300), sender("sda2", 250)],
    });
}

fn joined(lab: Lab, given: &[Grid], check: impl FnOnce(&JudgedLayout, &Joined<'_>)) {
    let stack = lab.builder.finish();
    let mut joined = join(&stack, &lab.known, Some(&lab.profiles), given);
    let judged = JudgedLayout {
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
        assert_eq!(fit(finding), (300, 300));
        let seen = seen(finding);
        assert_eq!((seen.on.as_str(), seen.is_below), ("sda1", false));
        assert_eq!((seen.reads, seen.writes), (300, 0));
        assert_eq!(seen.moved_bytes, Bounds::exact(300 * 4096));
        assert_eq!((seen.seconds, seen.mean_ns), (Some(10.0), Some(100_000.0)));
        let fit = seen.fit.as_ref().expect("a fit");
        let moved = FitAfterMove {
            by_bytes: Bytes(512),
            ios: 300,
            misaligned: Bounds::exact(0),
        };
        assert_eq!(fit.moved, Some(moved));
        // The others of the same disk, length and kind took as long.
        assert!(matches!(
            fit.latency,
            Some(LatencyByFit::Difference {
                difference_ns: 0.0,
                compared: 300,
                ..
            })
        ));
        let sender = SentBy {
            comm: "postgres".to_owned(),
            ios: 300,
        };
        assert_eq!(
            (seen.senders.as_slice(), seen.more_senders),
            ([sender].as_slice(), 0)
        );
        assert_eq!(judged.found_on(IO), [] as [&str; 0], "told twice");
        assert_eq!((joined.seen.len(), joined.too_few.len()), (1, 0));
    });
}

/// 300 reads of 4 KiB touch 2 cells each and 300 others 1 each: 900 cells for 600 needed, in the finding and in the table.
#[test]
fn finding_and_table_have_one_figure() {
    let mut lab = two_partitions();
    through(&mut lab, "sda", ("sda1", 63), 0, 300);
    through(&mut lab, "sda", ("sda1", 63), 1, 300);
    joined(lab, &[], |judged, joined| {
        let cost = judged.finding(OFF).cost.as_ref().expect("a cost");
        assert_eq!((cost.of, cost.value), (CostOf::Cells, 1.5));
        let (_, analysis) = &joined.seen[0];
        let mut places = analysis.places.iter();
        let part = places
            .find(|place| place.name.as_deref() == Some("sda1"))
            .expect("the partition");
        let tally = part.grids[0].all.as_ref().expect("a tally");
        assert_eq!(tally.cells_ratio(), Some(Bounds::exact(1.5)));
    });
}

#[test]
fn io_that_are_off_by_themselves_stay_a_finding() {
    let mut lab = two_partitions();
    through(&mut lab, "sda", ("sda1", 63), 0, 300);
    through(&mut lab, "sda", ("sda2", 2048), 1, 250);
    joined(lab, &[], |judged, _| {
        let finding = judged.finding(IO);
        let part = Part::Partition("sda2".to_owned());
        assert_eq!(finding.target.part, Some(part));
        assert_eq!(
            (
                number(finding, "counted.count"),
                number(finding, "counted.of")
            ),
            (250.0, 250.0)
        );
    });
    // If the start is right as well, the device is judged as ever.
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    lab.partition("sda2", disk, 2048);
    watched(&mut lab);
    through(&mut lab, "sda", ("sda2", 2048), 1, 250);
    joined(lab, &[], |judged, _| {
        assert_eq!(judged.found_on(IO), ["sda"]);
        let offset = facts!(judged.finding(IO), MisalignedIo).offset.as_ref();
        let start = PartitionStart {
            name: "sda2".to_owned(),
            start_bytes: Bytes(1 << 20),
            past_bytes: Bytes(0),
        };
        assert_eq!(offset.expect("an offset").partitions, [start]);
    });
}

/// I/O that a partition sends off by itself would be off also from a start on the grid.
#[test]
fn a_move_is_not_recommended_without_effect() {
    let mut lab = two_partitions();
    through(&mut lab, "sda", ("sda1", 63), 0, 300);
    through(&mut lab, "sda", ("sda1", 63), 3, 101);
    joined(lab, &[], |judged, _| {
        let moved = FitAfterMove {
            by_bytes: Bytes(512),
            ios: 401,
            misaligned: Bounds::exact(101),
        };
        let fit = seen(judged.finding(OFF)).fit.as_ref().expect("a fit");
        assert_eq!(fit.moved, Some(moved));
    });
}

/// Reads and writes through two partitions, the first of them off 4 KiB: the numbers of misaligned ones, and the latency of each,
/// ns. Of aligned reads and writes there are 250 each, of 100 µs.
fn measured(lab: &mut Lab, (reads, reads_ns): (u64, u64), (writes, writes_ns): (u64, u64)) {
    timed(lab, "sda", ("sda1", 63), (Op::Read, 0, reads, reads_ns));
    timed(lab, "sda", ("sda1", 63), (Op::Write, 0, writes, writes_ns));
    timed(lab, "sda", ("sda2", 2048), (Op::Read, 0, 250, 100_000));
    timed(lab, "sda", ("sda2", 2048), (Op::Write, 0, 250, 100_000));
}

fn severity_of(lab: Lab) -> Severity {
    let mut severity = None;
    joined(lab, &[], |judged, _| {
        severity = Some(judged.finding(OFF).severity);
    });
    severity.expect("a finding")
}

/// A misfit that was measured to be no slower is a note: 95 µs and 102 µs are, beside 100 µs for aligned I/O, and 104 µs
/// are not.
#[test]
fn a_start_without_a_cost_is_a_note() {
    for (ns, severity) in [
        (95_000, Severity::Note),
        (102_000, Severity::Note),
        (104_000, Severity::Warning),
    ] {
        let mut lab = two_partitions();
        measured(&mut lab, (300, ns), (300, ns));
        assert_eq!(severity_of(lab), severity, "{ns} ns");
    }
}

/// Reads without a cost say nothing about writes, and 29 writes say nothing either.
#[test]
fn a_cost_that_was_not_measured_stays_a_warning() {
    for (writes, severity) in [
        (0, Severity::Warning),
        (29, Severity::Warning),
        (30, Severity::Note),
    ] {
        let mut lab = two_partitions();
        measured(&mut lab, (300, 100_000), (writes, 100_000));
        assert_eq!(severity_of(lab), severity, "{writes} writes");
    }
    // 90 of 100 misaligned I/O must be compared: these writes of 4 KiB have no aligned ones beside them.
    for (writes, severity) in [(65, Severity::Note), (80, Severity::Warning)] {
        let mut lab = two_partitions();
        measured(&mut lab, (300, 100_000), (300, 100_000));
        lengths(&mut lab, ("sda1", 63), writes);
        assert_eq!(severity_of(lab), severity, "{writes} writes");
    }
}

/// Misaligned writes of 8 KiB through a partition.
fn lengths(lab: &mut Lab, part: (&str, u64), ios: u64) {
    let row = Row {
        ios,
        timed: ios,
        ns_sum: u128::from(ios * 100_000),
        ns_squared_sum: u128::from(ios) * 10_000_000_000,
        ..Row::default()
    };
    let residue = part.1 * SECTOR % (1 << 20);
    let profile = lab
        .profiles
        .entry("sda", Layer::Request, || unreachable!("it is there"));
    profile.add_residue(Op::Write, residue, 8192, false, &row);
    let places = profile
        .partitions
        .get_mut(part.0)
        .expect("a partition with I/O");
    places.table.add_row(Op::Write, residue, 8192, false, &row);
}

/// The I/O of another partition on the same disk do not make this one free.
#[test]
fn a_cost_is_that_of_the_partition() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    lab.runs(Kind::Partition, "sda1", &[(disk, 63, 1024)]);
    lab.runs(Kind::Partition, "sda2", &[(disk, 2047, 1024)]);
    lab.partition("sda3", disk, 8192);
    watched(&mut lab);
    for (part, ios, ns) in [
        (("sda1", 63), 10_000, 100_000),
        (("sda2", 2047), 300, 200_000),
        (("sda3", 8192), 300, 100_000),
    ] {
        timed(&mut lab, "sda", part, (Op::Read, 0, ios, ns));
        timed(&mut lab, "sda", part, (Op::Write, 0, ios, ns));
    }
    joined(lab, &[], |judged, _| {
        let mut severities: Vec<(&str, Severity)> = Vec::new();
        for finding in judged
            .diagnosis
            .findings
            .iter()
            .filter(|one| one.rule().name() == OFF)
        {
            severities.push((&finding.target.device, finding.severity));
        }
        severities.sort_unstable();
        assert_eq!(
            severities,
            [("sda1", Severity::Note), ("sda2", Severity::Warning)]
        );
    });
}

/// Tables of a watch are exact on the grids that the stack states: of the disk, and of given ones.
#[test]
fn tables_of_a_watch_have_the_grids_of_the_stack() {
    let stack = two_partitions().builder.finish();
    let of_disk = Grid::new(Bytes(4096), Bytes(0), GridKind::Unit).expect("a grid");
    let tables = plumb_diagnose::joined::settings(&stack, &[]);
    assert_eq!(tables.grids, [of_disk]);
    let given = Grid::new(Bytes(8192), Bytes(512), GridKind::Unit).expect("a grid");
    let tables = plumb_diagnose::joined::settings(&stack, &[given]);
    assert!(tables.grids.contains(&given), "{tables:?}");
}

#[test]
fn a_partition_without_io_is_reported() {
    let mut lab = two_partitions();
    through(&mut lab, "sda", ("sda2", 2048), 0, 250);
    joined(lab, &[], |judged, _| {
        let seen = seen(judged.finding(OFF));
        assert_eq!((seen.ios(), seen.seconds), (0, Some(10.0)));
    });
    // Of a disk that nobody looked at nothing is said.
    let lab = two_partitions();
    joined(lab, &[], |judged, _| {
        assert_eq!(judged.finding(OFF).seen, None);
    });
}

/// The volume is misaligned; its I/O were counted on the partition below it.
#[test]
fn a_volume_is_reported_with_the_io_of_its_partition() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    let part = lab.runs(Kind::Partition, "sda1", &[(disk, 63, 1 << 16)]);
    lab.runs(Kind::LogicalVolume, "vg/data", &[(part, 2048, 1 << 15)]);
    watched(&mut lab);
    through(&mut lab, "sda", ("sda1", 63), 2048, 300);
    joined(lab, &[], |judged, _| {
        assert_eq!(judged.found_on(OFF), ["vg/data"]);
        let seen = seen(judged.finding(OFF));
        assert_eq!((seen.on.as_str(), seen.is_below), ("sda1", true));
        assert_eq!(seen.reads, 300);
        assert_eq!(judged.found_on(IO), [] as [&str; 0]);
    });
}

/// The same volume with its own counted I/O: on the grids below, in its own address space, all are off because of its
/// start.
#[test]
fn a_volume_with_counted_io_is_reported_once() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    let part = lab.runs(Kind::Partition, "sda1", &[(disk, 63, 1 << 16)]);
    lab.runs(Kind::LogicalVolume, "vg/data", &[(part, 2048, 1 << 15)]);
    watched(&mut lab);
    lab.seen("vg/data", (0..300).map(|at| (Op::Read, at * 8, 8)));
    joined(lab, &[], |judged, joined| {
        let finding = judged.finding(OFF);
        assert_eq!(fit(finding), (300, 300));
        assert!(!seen(finding).is_below);
        let grid = &joined.seen[0].1.places[0].grids[0].grid;
        assert_eq!(
            grid.offset(),
            Bytes(512),
            "63 + 2,048 sectors are 7 past a block"
        );
        assert_eq!(judged.found_on(IO), [] as [&str; 0], "told twice");
    });
}

/// I/O are judged by the stack's grids of their disk, and no statement of a virtual disk makes them right.
#[test]
fn grids_come_from_the_stack() {
    let judge = |kind: Kind, given: &[Grid], check: &dyn Fn(&JudgedLayout, (Grid, GridSource))| {
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
        let reason = Reason::BeyondShown {
            count: 0,
            of: 300,
            grid: stated,
        };
        assert_eq!(*judged.unknown(IO), reason);
    });
    judge(Kind::Disk, &[Grid::ASSUMED], &|judged, grid| {
        assert_eq!(grid, (Grid::ASSUMED, GridSource::User));
        assert_eq!(number(judged.finding(IO), "counted.count"), 300.0);
    });
}

/// A short look at an idle device does not hide its layout.
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
    let few = Reason::TooFew {
        what: Counting::Ios,
        seen: 199,
        needed: 200,
    };
    assert_eq!(*judge(false).unknown("split-io"), few);
    assert_eq!(number(judge(true).finding("split-io"), "expected"), 0.25);
}

/// Writes below the unit of a flash drive are one finding: that they begin and end within units is the same once more.
#[test]
fn small_writes_of_a_unit_are_reported_once() {
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
                .map(|finding| finding.rule().name())
                .collect();
        });
        found
    };
    assert_eq!(judge(CellKind::IndirectionUnit), ["indirection-unit"]);
    // Of another unit no rule on the layout speaks.
    assert_eq!(judge(CellKind::ArrayUnit), [IO, "odd-length-io"]);
}

/// Nothing in a diagnosis adds up layered devices, so it does not warn of that either.
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

/// A part of the few I/O of an idle host is no finding; the same part of a load is one, and so are nearly all of few.
#[test]
fn a_share_of_idle_io_is_no_finding() {
    // 10 s of watching: 400 I/O are 40 a second, 600 are 60.
    for (off, on, is_found) in [(60, 340, false), (90, 510, true), (390, 10, true)] {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 4096, 0);
        lab.partition("sda1", disk, 2048);
        watched(&mut lab);
        through(&mut lab, "sda", ("sda1", 2048), 1, off);
        through(&mut lab, "sda", ("sda1", 2048), 0, on);
        joined(lab, &[], |judged, _| {
            assert_eq!(
                judged.found_on(IO),
                vec!["sda"; usize::from(is_found)],
                "{off} of {on}"
            );
        });
    }
}
