//! Rules on units, hints, queues and rates: `indirection-unit`, `implausible-hint`, `queue-setting`, `record-mismatch`,
//! `too-few-disks`, `double-counted`.

use plumb_diagnose::{Reason, Severity};
use plumb_geometry::{Bytes, Grid};
use plumb_model::Confidence;
use plumb_model::facts::{BadSetting, HintDoubt, Keeper, RateBasis};
use plumb_stack::node::{FactKey, keys};
use plumb_stack::{CellKind, GridFact, Kind, NodeId, Placing, Source};
use plumb_stack::{GridDoubt, Obstacle};
use plumb_trace::{Layer, Op};

use crate::facts;
use crate::layout::lab::{JudgedLayout, Lab, kernel, number};

fn on_flash(unit: u64, source: Source, page: Option<u64>, ashift: Option<u64>) -> JudgedLayout {
    let mut lab = Lab::default();
    lab.known.page = page.map(Bytes);
    let disk = lab.disk("nvme0n1", 4096, 0);
    lab.grid(disk, CellKind::IndirectionUnit, unit, 0, source);
    let partition = lab.partition("nvme0n1p1", disk, 2048);
    if let Some(ashift) = ashift {
        lab.fact(partition, keys::ASHIFT, ashift);
    }
    lab.judge()
}

#[test]
fn indirection_unit() {
    let rule = "indirection-unit";
    let judged = on_flash(64 << 10, Source::User, Some(8192), None);
    assert_eq!(
        judged.finding(rule).cost.as_ref().map(|cost| cost.value),
        Some(8.0)
    );
    assert_eq!(judged.finding(rule).severity, Severity::Warning);
    assert!(on_flash(16 << 10, Source::User, Some(16 << 10), None).is_silent(rule));
    let reason = Reason::WritesToFlash {
        on: "nvme0n1".to_owned(),
        unit_bytes: Bytes(16 << 10),
    };
    let unsaid = on_flash(16 << 10, Source::User, None, None);
    assert_eq!(*unsaid.unknown(rule), reason);
    assert!(
        on_flash(4096, Source::User, Some(512), None).is_not_asked(rule),
        "what everybody writes"
    );
    let pool = on_flash(16 << 10, Source::User, None, Some(12));
    assert_eq!(number(pool.finding(rule), "written_bytes"), 4096.0, "2^12");
    assert!(on_flash(16 << 10, Source::User, None, Some(14)).is_silent(rule));
    assert!(
        on_flash(16 << 10, Source::User, None, Some(999))
            .whys(rule)
            .len()
            == 1,
        "no such shift"
    );
}

/// NPWG beside a smaller NPWA is a wish.
#[test]
fn preferred_sizes_of_a_drive_are_notes() {
    let drive = |field: &str| Source::Drive {
        field: field.to_owned(),
    };
    let mut lab = Lab::default();
    lab.known.page = Some(Bytes(4096));
    let disk = lab.disk("nvme0n1", 4096, 0);
    lab.grid(disk, CellKind::WriteAlignment, 4096, 0, drive("NPWA"));
    lab.grid(disk, CellKind::IndirectionUnit, 16384, 0, drive("NPWG"));
    lab.partition("nvme0n1p1", disk, 2048);
    assert_eq!(
        lab.judge().finding("indirection-unit").severity,
        Severity::Note
    );
}

fn hinting(optimal: u64, physical: u64) -> JudgedLayout {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", physical, 0);
    lab.grid(disk, CellKind::OptimalIo, optimal, 0, kernel());
    lab.judge()
}

/// 33,553,920 is the statement of USB bridges (util-linux 1221), which LVM 2.03.16 and parted believed.
#[test]
fn implausible_hint() {
    let rule = "implausible-hint";
    let off_block = || HintDoubt::NoMultiple {
        of: CellKind::PhysicalBlock,
        unit_bytes: Bytes(4096),
    };
    let most_bytes = Bytes(16 << 20);
    for (optimal, physical, doubt) in [
        (33_553_920, 512, HintDoubt::Bridge),
        (64 << 20, 512, HintDoubt::TooLarge { most_bytes }),
        (6144, 4096, off_block()),
        (1536, 512, HintDoubt::OddSectors),
        (2048, 4096, off_block()),
    ] {
        let judged = hinting(optimal, physical);
        let facts = facts!(judged.finding(rule), ImplausibleHint);
        assert_eq!(facts.hints[0].doubt, doubt);
        assert_eq!(
            number(judged.finding(rule), "hints.0.stated_bytes"),
            optimal as f64
        );
    }
    assert!(hinting(64 << 10, 4096).is_silent(rule));
    let mut lab = Lab::default();
    lab.disk("sda", 4096, 0);
    assert!(lab.judge().is_not_asked(rule), "nothing is hinted at");
}

#[test]
fn doubts_of_a_source_are_reported() {
    let judge = |kind: Kind, what: CellKind| {
        let mut lab = Lab::default();
        let node = lab.node(kind, "nvme0n1");
        let grid = Grid::unit(Bytes(128 << 10)).expect("a grid");
        lab.builder.grid(
            node,
            GridFact::doubted(grid, what, kernel(), GridDoubt::NoOffset),
        );
        lab.judge()
    };
    let rule = "implausible-hint";
    let judged = judge(Kind::Disk, CellKind::PhysicalBlock);
    let why = GridDoubt::NoOffset;
    let facts = facts!(judged.finding(rule), ImplausibleHint);
    assert_eq!(facts.hints[0].doubt, HintDoubt::Told { why });
    assert!(
        judge(Kind::Loop, CellKind::PhysicalBlock).is_not_asked(rule),
        "not its own word"
    );
    assert!(
        judge(Kind::LogicalVolume, CellKind::OptimalIo).is_silent(rule),
        "worked out by the kernel, and plausible"
    );
    let nows = judge(Kind::Disk, CellKind::IndirectionUnit);
    assert!(
        nows.is_not_asked(rule),
        "NOWS is no unit of the flash, but not nonsense"
    );
    assert!(
        nows.is_not_asked("indirection-unit"),
        "what is not believed is not used"
    );
}

/// md states the least common multiple with the hints of its members: 512 KiB for a true stripe of 128 KiB.
#[test]
fn a_hint_of_an_array_is_not_its_stripe() {
    let mut lab = Lab::default();
    let disks: Vec<(NodeId, u64)> = (0..3)
        .map(|at| {
            let disk = lab.disk(&format!("sd{at}"), 512, 0);
            lab.grid(disk, CellKind::OptimalIo, 512 << 10, 0, kernel());
            (disk, 0)
        })
        .collect();
    let array = lab.chunks("md0", 64 << 10, 1, &disks);
    lab.grid(array, CellKind::OptimalIo, 512 << 10, 0, kernel());
    let right = lab.chunks("md1", 64 << 10, 1, &disks);
    lab.grid(right, CellKind::OptimalIo, 128 << 10, 0, kernel());
    let judged = lab.judge();
    assert_eq!(judged.found_on("implausible-hint"), ["md0"]);
    let facts = facts!(judged.finding("implausible-hint"), ImplausibleHint);
    let doubt = HintDoubt::NotTheStripe {
        stripe_bytes: Bytes(128 << 10),
        is_multiple_of_members: true,
    };
    assert_eq!(facts.hints[0].doubt, doubt);
}

/// A disk with these settings of its queue.
#[derive(Clone, Copy, Default)]
struct Queue {
    read_ahead: Option<u64>,
    max_request: Option<u64>,
    max_request_hardware: Option<u64>,
    scheduler: Option<&'static str>,
    is_rotational: Option<bool>,
}

fn queue(queue: Queue) -> JudgedLayout {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 4096, 0);
    for (key, value) in [
        (keys::READ_AHEAD, queue.read_ahead),
        (keys::MAX_REQUEST, queue.max_request),
        (keys::MAX_REQUEST_HARDWARE, queue.max_request_hardware),
    ] {
        lab.builder.fact_if(disk, key, value.map(Bytes), &kernel());
    }
    let (scheduler, is_rotational) = (queue.scheduler, queue.is_rotational);
    lab.builder
        .fact_if(disk, keys::SCHEDULER, scheduler, &kernel());
    lab.builder
        .fact_if(disk, keys::ROTATIONAL, is_rotational, &kernel());
    lab.judge()
}

#[test]
fn queue_setting() {
    let rule = "queue-setting";
    let ahead = queue(Queue {
        read_ahead: Some(67108864),
        ..Queue::default()
    });
    assert_eq!(
        ahead.finding(rule).severity,
        Severity::Warning,
        "64 MiB of the field report"
    );
    let better =
        |judged: &JudgedLayout| match facts!(judged.finding(rule), QueueSetting).settings[0] {
            BadSetting::ReadAhead { better_bytes, .. }
            | BadSetting::Request { better_bytes, .. } => better_bytes,
            BadSetting::Scheduler { .. } => panic!("a size"),
        };
    assert_eq!(better(&ahead), Bytes(128 << 10), "as the kernel has it");
    assert!(
        queue(Queue {
            read_ahead: Some(131072),
            scheduler: Some("none"),
            ..Queue::default()
        })
        .is_silent(rule)
    );
    let cut = queue(Queue {
        max_request: Some(131072),
        max_request_hardware: Some(33553920),
        ..Queue::default()
    });
    assert_eq!(cut.finding(rule).severity, Severity::Note);
    assert_eq!(better(&cut), Bytes(1280 << 10), "as the kernel has it");
    assert!(
        queue(Queue {
            max_request: Some(131072),
            max_request_hardware: Some(131072),
            ..Queue::default()
        })
        .is_silent(rule)
    );
    assert_eq!(
        *queue(Queue {
            max_request: Some(131072),
            ..Queue::default()
        })
        .unknown(rule),
        Reason::HardwareRequest
    );
    let flash = Queue {
        is_rotational: Some(false),
        ..Queue::default()
    };
    let scheduled = queue(Queue {
        scheduler: Some("bfq"),
        ..flash
    });
    assert!(matches!(
        facts!(scheduled.finding(rule), QueueSetting).settings.as_slice(),
        [BadSetting::Scheduler { name, .. }] if name == "bfq"
    ));
    assert!(
        queue(Queue {
            scheduler: Some("bfq"),
            is_rotational: Some(true),
            ..Queue::default()
        })
        .is_silent(rule)
    );
    assert!(
        queue(Queue {
            scheduler: Some("mq-deadline"),
            ..flash
        })
        .is_silent(rule)
    );
    assert!(queue(flash).is_not_asked(rule));
    let md = |read_ahead: u64| {
        let mut lab = Lab::default();
        let disks: Vec<NodeId> = (0..12)
            .map(|at| lab.disk(&format!("sd{at}"), 4096, 0))
            .collect();
        let array = lab.stripe("md0", 512 << 10, &disks);
        lab.fact(array, keys::READ_AHEAD, Bytes(read_ahead));
        lab.judge()
    };
    assert!(
        md(12 << 20).is_silent(rule),
        "two stripes of 6 MiB, as md sets it"
    );
    assert_eq!(md(64 << 20).found_on(rule), ["md0"]);
    assert_eq!(better(&md(64 << 20)), Bytes(12 << 20), "two stripes");
    let both = queue(Queue {
        read_ahead: Some(67108864),
        scheduler: Some("cfq"),
        ..flash
    });
    assert!(
        matches!(
            facts!(both.finding(rule), QueueSetting).settings.as_slice(),
            [BadSetting::ReadAhead { .. }, BadSetting::Scheduler { .. }]
        ),
        "one finding has all of a device, the worst first"
    );
}

fn kept_in(key: FactKey<Bytes>, record: u64, page: Option<u64>) -> JudgedLayout {
    let mut lab = Lab::default();
    lab.known.page = page.map(Bytes);
    let disk = lab.disk("sda", 4096, 0);
    let set = lab.runs(Kind::Dataset, "tank/db", &[(disk, 8192, 1 << 20)]);
    lab.fact(set, key, Bytes(record));
    lab.judge()
}

/// The seed's database of 8 KiB in records of 128 KiB: 16 times.
#[test]
fn record_mismatch() {
    let rule = "record-mismatch";
    let judged = kept_in(keys::RECORD_SIZE, 128 << 10, Some(8192));
    let finding = judged.finding(rule);
    assert_eq!(number(finding, "read_amplification"), 16.0);
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(number(finding, "write_amplification"), 32.0);
    assert!(kept_in(keys::RECORD_SIZE, 8192, Some(8192)).is_silent(rule));
    assert!(
        kept_in(keys::RECORD_SIZE, 4096, Some(8192)).is_silent(rule),
        "two records to a page"
    );
    assert_eq!(
        kept_in(keys::VOLUME_BLOCK, 16384, Some(8192))
            .finding(rule)
            .severity,
        Severity::Note
    );
    let reason = Reason::IoToRecords {
        keeper: Keeper::Records,
        record_bytes: Bytes(128 << 10),
    };
    assert_eq!(
        *kept_in(keys::RECORD_SIZE, 128 << 10, None).unknown(rule),
        reason
    );
}

/// The paper's 2 KiB pages in UFS blocks of 8 KiB: three quarters are read for nothing, unless I/O are direct.
#[test]
fn pages_in_blocks_of_a_file_system() {
    let rule = "record-mismatch";
    let judge = |options: &str, page: Option<u64>| {
        let mut lab = Lab::default();
        lab.known.page = page.map(Bytes);
        let disk = lab.disk("c0t0d0s6", 512, 0);
        let system = lab.runs(Kind::FileSystem, "/db", &[(disk, 0, 1 << 20)]);
        lab.fact(system, keys::FS_BLOCK, Bytes(8192));
        lab.fact(system, keys::MOUNT_OPTIONS, options);
        lab.judge()
    };
    assert_eq!(
        number(
            judge("rw,logging", Some(2048)).finding(rule),
            "read_amplification"
        ),
        4.0
    );
    assert!(judge("rw,forcedirectio", Some(2048)).is_silent(rule));
    assert!(judge("rw", Some(8192)).is_silent(rule));
    assert!(judge("rw", None).is_not_asked(rule));
}

/// A stripe over disks of 80 I/O a second with a demand of 265 writes, as in the case study.
fn case(disks: usize) -> Lab {
    let mut lab = Lab::default();
    let disks: Vec<NodeId> = (0..disks)
        .map(|at| lab.disk(&format!("c1t{at}d0"), 512, 0))
        .collect();
    lab.stripe("d0", 128 << 10, &disks);
    lab.known.ios_per_second = Some(265.0);
    lab.known.disk_ios_per_second = Some(80.0);
    lab
}

#[test]
fn too_few_disks() {
    let rule = "too-few-disks";
    let judged = case(3).judge();
    let finding = judged.finding(rule);
    assert_eq!(number(finding, "given_ios_per_second"), 240.0);
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(number(finding, "wanted_disks"), 4.0);
    // 320 of 265.
    assert!((number(finding, "wanted_margin") - (320.0 / 265.0 - 1.0)).abs() < 1e-12);
    assert!(case(4).judge().is_silent(rule), "the case study took four");
    let mut lab = case(4);
    lab.known.disk_ios_per_second = None;
    assert_eq!(*lab.judge().unknown(rule), Reason::DiskRate);
    let mut lab = case(4);
    lab.known.ios_per_second = None;
    assert_eq!(*lab.judge().unknown(rule), Reason::Demand);
    assert!(Lab::default().judge().is_not_asked(rule));
}

/// At 265 of 320 a disk is busy 82.8 % of the time: 12.5 ms / (1 − 0.828125) = 72.7 ms.
#[test]
fn four_disks_are_slow() {
    let mut lab = case(4);
    lab.known.response_ns = Some(50e6);
    let judged = lab.judge();
    let finding = judged.finding("too-few-disks");
    assert!((number(finding, "utilisation") - 0.828_125).abs() < 1e-9);
    assert!((number(finding, "response_ns") - 12.5e6 / (1.0 - 0.828_125)).abs() < 1.0);
    assert_eq!(number(finding, "idle_ns"), 12.5e6);
    // 50 ms allow a utilisation of 75 %: 265 / 60 = 4.4.
    assert_eq!(number(finding, "wanted_disks"), 5.0);
    let mut lab = case(4);
    lab.known.response_ns = Some(80e6);
    assert!(lab.judge().is_silent("too-few-disks"));
    let mut lab = case(4);
    lab.known.response_ns = Some(10e6);
    let judged = lab.judge();
    let facts = facts!(judged.finding("too-few-disks"), TooFewDisks);
    assert_eq!(facts.wanted_disks, None, "an idle disk takes 12.5 ms");
}

/// Mirrors write twice, RAID 5 takes four operations.
#[test]
fn writes_cost_the_amplification_of_the_layers() {
    let needed = |build: fn(&mut Lab, &[NodeId]), writes: f64| {
        let mut lab = Lab::default();
        let disks: Vec<NodeId> = (0..4)
            .map(|at| lab.disk(&format!("sd{at}"), 512, 0))
            .collect();
        build(&mut lab, &disks);
        lab.known.ios_per_second = Some(100.0);
        lab.known.write_share = Some(writes);
        lab.known.disk_ios_per_second = Some(10.0);
        number(
            lab.judge().finding("too-few-disks"),
            "needed_ios_per_second",
        )
    };
    let mirror = |lab: &mut Lab, disks: &[NodeId]| {
        let sides = [
            lab.stripe("d1", 65536, &disks[..2]),
            lab.stripe("d2", 65536, &disks[2..]),
        ];
        lab.copies(Kind::Mirror, "d0", &sides);
    };
    let raid5 = |lab: &mut Lab, disks: &[NodeId]| {
        let disks: Vec<(NodeId, u64)> = disks.iter().map(|disk| (*disk, 0)).collect();
        lab.chunks("d0", 65536, 1, &disks);
    };
    let paths = |lab: &mut Lab, disks: &[NodeId]| {
        lab.copies(Kind::Multipath, "mpatha", disks);
    };
    assert_eq!(needed(paths, 1.0), 100.0, "a write takes one of the paths");
    assert_eq!(needed(mirror, 1.0), 200.0);
    assert_eq!(needed(mirror, 0.5), 150.0);
    assert_eq!(needed(raid5, 1.0), 400.0);
    assert_eq!(needed(raid5, 0.25), 175.0);
}

#[test]
fn paths_are_no_disks() {
    let mut lab = Lab::default();
    let volumes: Vec<NodeId> = ["mpatha", "mpathb"]
        .iter()
        .map(|name| {
            let paths = [0, 1].map(|at| lab.node(Kind::Path, &format!("{name}-path{at}")));
            lab.copies(Kind::Multipath, name, &paths)
        })
        .collect();
    lab.stripe("d0", 65536, &volumes);
    lab.known.ios_per_second = Some(1000.0);
    lab.known.disk_ios_per_second = Some(80.0);
    assert_eq!(number(lab.judge().finding("too-few-disks"), "disks"), 2.0);
}

/// Unknown starts of slices make no more I/O; a volume of an unknown layout may.
#[test]
fn unknown_starts_cost_no_writes() {
    let judge = |kind| {
        let mut lab = Lab::default();
        let slices: Vec<NodeId> = (0..3)
            .map(|at| {
                let disk = lab.disk(&format!("c1t{at}d0"), 512, 0);
                let slice = lab.node(kind, &format!("c1t{at}d0s0"));
                let placing = Placing::Unknown {
                    members: vec![disk],
                    why: Obstacle::NoLabel {
                        disk: format!("c1t{at}d0"),
                    },
                };
                lab.builder.place(slice, placing, &kernel());
                slice
            })
            .collect();
        lab.stripe("d0", 128 << 10, &slices);
        lab.known.ios_per_second = Some(265.0);
        lab.known.disk_ios_per_second = Some(80.0);
        lab.judge()
    };
    assert_eq!(
        number(
            judge(Kind::Partition).finding("too-few-disks"),
            "given_ios_per_second"
        ),
        240.0
    );
    assert_eq!(
        *judge(Kind::Concat).unknown("too-few-disks"),
        Reason::PlaceOnDisks
    );
}

/// 1,000 writes in 999 ms, on one disk of 80 a second.
#[test]
fn the_demand_may_come_from_a_profile() {
    let mut lab = Lab::default();
    let disk = lab.disk("sda", 512, 0);
    lab.partition("sda1", disk, 2048);
    lab.known.disk_ios_per_second = Some(80.0);
    lab.seen("sda1", (0..1000).map(|at| (Op::Write, at * 64, 8)));
    let judged = lab.judge();
    assert_eq!(
        number(judged.finding("too-few-disks"), "asked_ios_per_second").round(),
        1001.0
    );
}

/// As iostat prints it: of 300 a second 100 are writes, and a mirror makes 200 of those.
#[test]
fn the_demand_may_come_from_iostat() {
    let mut lab = Lab::default();
    let disks = ["sda", "sdb"].map(|name| lab.disk(name, 512, 0));
    let mirror = lab.copies(Kind::Mirror, "md0", &disks);
    lab.fact(mirror, keys::IOS_PER_SECOND, 300.0);
    lab.fact(mirror, keys::WRITES_PER_SECOND, 100.0);
    lab.known.disk_ios_per_second = Some(80.0);
    let judged = lab.judge();
    let finding = judged.finding("too-few-disks");
    assert_eq!(number(finding, "asked_ios_per_second"), 300.0);
    assert_eq!(number(finding, "needed_ios_per_second"), 400.0);
    assert_eq!(number(finding, "given_ios_per_second"), 160.0);
}

/// Two layers that were recorded at one time are one load, as with iostat; on different days they are two.
#[test]
fn recorded_layers_are_counted_once() {
    let judge = |days: [u64; 2], ios: [u64; 2]| {
        let mut lab = Lab::default();
        let disk = lab.disk("sda", 512, 0);
        let volume = lab.runs(Kind::Concat, "md0", &[(disk, 0, 1 << 20)]);
        lab.partition("md0p1", volume, 2048);
        for (name, (day, ios)) in ["sda", "md0"].into_iter().zip(days.into_iter().zip(ios)) {
            lab.seen_from(
                name,
                day * 86_400_000_000_000,
                (0..ios).map(|at| (Op::Read, at * 64, 8)),
            );
        }
        lab.judge()
    };
    // An I/O each ms: the window of 1,001 is a second.
    let judged = judge([3, 3], [1001, 1001]);
    let finding = judged.finding("double-counted");
    assert_eq!(number(finding, "asked_ios_per_second"), 1001.0);
    assert_eq!(number(finding, "sum_ios_per_second"), 2002.0);
    let basis = RateBasis::Profile {
        on: "md0".to_owned(),
        layer: Layer::Bio,
    };
    assert_eq!(facts!(finding, DoubleCounted).asked_by, basis);
    assert!(
        judge([3, 4], [1001, 1001]).is_silent("double-counted"),
        "two loads of two days"
    );
    assert!(
        judge([3, 3], [1001, 0]).is_silent("double-counted"),
        "one layer is no layers"
    );
}

/// The paper's iostat: md26 on md2 on ssd3, each with 402 reads a second.
#[test]
fn double_counted() {
    let rule = "double-counted";
    let judge = |rates: [Option<f64>; 3]| {
        let mut lab = Lab::default();
        let disk = lab.bare("ssd3");
        let volume = lab.runs(Kind::Concat, "md2", &[(disk, 0, 1 << 20)]);
        let soft = lab.runs(Kind::SoftPartition, "md26", &[(volume, 8, 1 << 10)]);
        for (id, rate) in [disk, volume, soft].into_iter().zip(rates) {
            if let Some(rate) = rate {
                lab.fact(id, keys::IOS_PER_SECOND, rate);
            }
        }
        lab.judge()
    };
    let judged = judge([Some(402.0); 3]);
    let finding = judged.finding(rule);
    let facts = facts!(finding, DoubleCounted);
    assert_eq!(facts.devices, ["md2", "md26", "ssd3"]);
    assert_eq!(
        (facts.sum_ios_per_second, facts.bottom_ios_per_second),
        (1206.0, 402.0)
    );
    assert!(facts.is_same);
    assert_eq!(finding.confidence, Confidence::High);
    assert_eq!(finding.target.device, "md26");
    assert_eq!(number(finding, "asked_ios_per_second"), 402.0);
    let more = judge([Some(600.0), None, Some(402.0)]);
    assert_eq!(
        more.finding(rule).confidence,
        Confidence::Medium,
        "others use the disk as well"
    );
    assert!(
        judge([Some(402.0), None, None]).is_silent(rule),
        "one layer is no layers"
    );
    assert!(judge([None, None, None]).is_not_asked(rule));
    assert!(
        judge([Some(f64::NAN), None, None]).is_not_asked(rule),
        "no number"
    );
}
