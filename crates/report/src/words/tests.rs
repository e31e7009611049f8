//! One snapshot of the sentences of each rule: examples of its facts, and the report's sentences on them. The examples are
//! beside the sentences (`examples`), or here if rules share them. Other tests compare facts, so that a better sentence changes
//! one snapshot alone.

use plumb_geometry::{Bounds, Bytes, Grid, GridKind, SECTOR, Share};
use plumb_model::action::Manager;
use plumb_model::facts::*;
use plumb_model::reason::Counting;
use plumb_model::seen::{FitAfterMove, SeenFit, SentBy};
use plumb_model::{
    Action, Advice, Class, Confidence, CountedShare, DeviceRef, Disruption, Facts, Finding, GridOf,
    HostLayer, IoSize, IoSizeBasis, LostEvents, Measurement, Obstacle, Place, Precondition, RULES,
    Reason, Remedy, RestsOn, RuleId, Seen, Severity, Target, TargetLayer,
};
use plumb_profile::SingleIo;
use plumb_profile::answers::{IoError, IoFile, Sender};
use plumb_profile::infer::{InferenceVerdict, Phase};
use plumb_profile::latency_fit::LatencyByFit;
use plumb_stack::node_facts::{ContentKind, MirrorReads, VolumeManager};
use plumb_stack::{CellKind, Kind, Source};
use plumb_trace::{Layer, Op};

use crate::words;

fn single(ns: u64, error: Option<IoError>) -> SingleIo {
    SingleIo {
        ns,
        at_ns: 7_000_000_000,
        op: Op::Read,
        start_bytes: 1 << 20,
        len_bytes: 8192,
        sender: Some(Sender {
            comm: "postgres".to_owned(),
            pid: 712,
            cgroup: Some("/system.slice/postgresql.service".to_owned()),
        }),
        file: Some(IoFile {
            inode: 131_074,
            name: Some("16384".to_owned()),
        }),
        error,
    }
}

fn stalled(stall: Stall) -> Facts {
    Facts::StalledIo(StalledIo { stall })
}

/// A change at 2026-11-14 08:00 UTC.
fn changed(window_seconds: u64, beside: Vec<HostChange>) -> ChangeTime {
    ChangeTime {
        since_ns: 1_794_643_200_000_000_000,
        window_seconds,
        windows_before: 31,
        windows_after: 12,
        beside,
        left_out: 0,
    }
}

/// A fact of the host that changed at 2026-11-14 07:06 UTC.
fn host_fact(of: HostFact, before: Option<HostValue>, after: Option<HostValue>) -> HostChange {
    HostChange {
        at_ns: 1_794_640_000_000_000_000,
        is: HostChangeKind::Fact { of, before, after },
    }
}

fn mounted(option: &str) -> HostValue {
    HostValue::FileSystem {
        file_system: "ext4".to_owned(),
        device: "sdb1".to_owned(),
        options: vec!["rw".to_owned(), option.to_owned()],
    }
}

fn part_of_sdb(start_sector: u64) -> HostValue {
    HostValue::Place {
        disk: "sdb".to_owned(),
        start_bytes: sectors(start_sector),
        len_bytes: Bytes(1 << 30),
    }
}

pub(super) fn kernel() -> Source {
    Source::Kernel {
        path: "sys/block/sda/queue/physical_block_size".to_owned(),
    }
}

fn sectors(sectors: u64) -> Bytes {
    Bytes(sectors * SECTOR)
}

fn grid(bytes: u64, what: CellKind, on: &str) -> GridOf {
    GridOf {
        granularity_bytes: Bytes(bytes),
        offset_bytes: Bytes(0),
        what,
        source: kernel(),
        believed: what != CellKind::Assumed,
        on: on.to_owned(),
    }
}

fn block() -> GridOf {
    grid(4096, CellKind::PhysicalBlock, "sda")
}

/// 10 % of a thousand.
fn counted() -> CountedShare {
    CountedShare {
        count: Bounds::exact(100),
        of: 1000,
        share_low: 0.0829,
        share_high: 0.1202,
        lost: None,
    }
}

fn page() -> IoSize {
    IoSize {
        bytes: Bytes(8192),
        basis: IoSizeBasis::Given,
    }
}

fn assumed() -> IoSize {
    IoSize {
        bytes: Bytes(4096),
        basis: IoSizeBasis::Assumed,
    }
}

fn share(numerator: u64, denominator: u64) -> Share {
    Share {
        numerator,
        denominator,
    }
}

fn off(past: u64, wanted: WantedStart) -> MisalignedPartition {
    MisalignedPartition {
        grid: block(),
        past_bytes: Some(sectors(past)),
        varies_by_bytes: None,
        byte: Bytes(0),
        start_bytes: Some(sectors(34)),
        given_bytes: None,
        grids_off: 1,
        grids: 1,
        movers: Vec::new(),
        also_off: Vec::new(),
        not_known: Vec::new(),
        wanted,
    }
}

fn starts() -> Vec<Facts> {
    let partition = WantedStart::Partition {
        up_bytes: sectors(6),
        down_bytes: Some(sectors(2)),
        next: Some(NextStart {
            on: "sda".to_owned(),
            start_bytes: sectors(40),
        }),
    };
    let assumed = MisalignedPartition {
        grid: grid(4096, CellKind::Assumed, "sda"),
        ..off(2, partition.clone())
    };
    let volume = MisalignedPartition {
        movers: vec![Mover {
            device: "sda1".to_owned(),
            on: "sda".to_owned(),
            start_bytes: sectors(63),
            past_bytes: Bytes(3584),
        }],
        also_off: vec![OtherGrid {
            granularity_bytes: Bytes(65_536),
            what: CellKind::Chunk,
            on: "md0".to_owned(),
        }],
        not_known: vec![plumb_stack::Obstacle::NoLabel {
            disk: "sdb".to_owned(),
        }],
        ..off(
            7,
            WantedStart::Layer {
                up_bytes: sectors(1),
            },
        )
    };
    let varies = MisalignedPartition {
        past_bytes: None,
        varies_by_bytes: Some(Bytes(2048)),
        start_bytes: None,
        ..off(0, WantedStart::NoStart)
    };
    let below = WantedStart::BelowFirst {
        differs_on: "sdb".to_owned(),
        mover: "sda1".to_owned(),
        up_bytes: sectors(6),
    };
    let cylinder = WantedStart::Cylinder {
        disk: "c0t0d0".to_owned(),
        next_bytes: Some(sectors(23_112)),
    };
    let soft = WantedStart::SoftPartition {
        up_bytes: sectors(6),
        down_bytes: None,
    };
    let given = MisalignedPartition {
        given_bytes: Some(Bytes(512)),
        ..assumed.clone()
    };
    let drift = |behind: Option<&str>| SoftPartitionDrift {
        component: "d10".to_owned(),
        start_bytes: sectors(1_513),
        past_bytes: sectors(489),
        grid: grid(262_144, CellKind::Chunk, "d10"),
        given_bytes: None,
        behind: behind.map(str::to_owned),
        wanted_bytes: Some(sectors(1_536)),
        rule_of_thumb_bytes: behind.map(|_| sectors(2_024)),
        next_free_bytes: Some(sectors(3_072)),
        source: None,
    };
    let off = |wanted| Facts::MisalignedPartition(off(2, wanted));
    vec![
        off(partition),
        Facts::MisalignedPartition(assumed),
        Facts::MisalignedPartition(given),
        Facts::MisalignedPartition(volume),
        Facts::MisalignedPartition(varies),
        off(below),
        off(cylinder),
        off(soft),
        Facts::SoftPartitionDrift(drift(Some("d11"))),
        Facts::SoftPartitionDrift(drift(None)),
        Facts::DiscardMisaligned(DiscardMisaligned {
            grid: grid(1 << 20, CellKind::DiscardUnit, "sda"),
            past_bytes: sectors(34),
        }),
    ]
}

fn stripes() -> Vec<Facts> {
    let narrow = |io| NarrowStripe {
        chunk_bytes: Bytes(16 << 10),
        members: 4,
        io,
        ios_per_chunk: 2,
        split: Some(share(15, 32)),
        wanted_chunk_bytes: Bytes(1 << 20),
        wanted_split: Some(share(15, 2048)),
        source: None,
    };
    let split = SplitIo {
        chunk_bytes: Bytes(32 << 10),
        on: Some("md0".to_owned()),
        source: None,
        counted: None,
        counted_on: None,
        expected: Some(share(1, 4)),
        io: Some(page()),
        past_bytes: Some(sectors(1)),
        trace: None,
    };
    let seen = SplitIo {
        counted: Some(counted()),
        counted_on: Some("md0p1".to_owned()),
        expected: None,
        io: None,
        past_bytes: Some(Bytes(0)),
        ..split.clone()
    };
    let trace = SplitIo {
        on: None,
        counted_on: None,
        past_bytes: None,
        trace: Some(SplitInTrace {
            random_share: Bounds::exact(0.05),
            commonest: Some(SplitOfLength {
                len_bytes: Bytes(8192),
                split: share(15, 64),
            }),
            longer: Bounds::exact(7),
        }),
        ..seen.clone()
    };
    let parity = ParitySmallWrites {
        stripe_bytes: Bytes(256 << 10),
        data_chunks: 4,
        parity: 1,
        operations: 4,
        counted: None,
        counted_on: None,
        io: Some(page()),
        source: None,
    };
    let two_parities = ParitySmallWrites {
        parity: 2,
        operations: 6,
        counted: Some(counted()),
        io: None,
        ..parity.clone()
    };
    vec![
        Facts::NarrowStripe(narrow(page())),
        Facts::NarrowStripe(narrow(assumed())),
        Facts::SplitIo(split),
        Facts::SplitIo(seen),
        Facts::SplitIo(trace),
        Facts::StripeSegmentMismatch(StripeSegmentMismatch {
            chunk_bytes: Bytes(1 << 20),
            segment: Segment {
                bytes: Bytes(48 << 10),
                on: "c5t0d0".to_owned(),
                source: Source::User,
            },
            past_bytes: Bytes(40 << 10),
            devices_off: 2,
            devices: 2,
            nearest_bytes: vec![Bytes(1008 << 10), Bytes(1056 << 10)],
            proposed_bytes: Some(Bytes(1008 << 10)),
            source: None,
        }),
        Facts::ParitySmallWrites(parity),
        Facts::ParitySmallWrites(two_parities),
        Facts::SoftwareRaid5(SoftwareRaid5 {
            manager: VolumeManager::Svm,
            members: 5,
            parity: 1,
            operations: 4,
            source: kernel(),
        }),
        Facts::SoftwareStripeOnHardwareRaid(SoftwareStripeOnHardwareRaid {
            chunk_bytes: Bytes(64 << 10),
            luns: 2,
            devices: 3,
            lun: "sdb".to_owned(),
            because: ArrayEvidence::Model {
                model: "SUN T300".to_owned(),
            },
        }),
    ]
}

fn units() -> Vec<Facts> {
    let requests = RequestsAndRecords {
        record_bytes: Bytes(128 << 10),
        counted: counted(),
        read_amplification: Some(Bounds::exact(16.0)),
        write_amplification: Some(Bounds::exact(32.0)),
        following: Bounds::exact(12),
        commonest: Some(OfLength {
            len_bytes: Bytes(8192),
            ios: 900,
        }),
    };
    let in_place = RequestsAndRecords {
        commonest: Some(OfLength {
            len_bytes: Bytes(128 << 10),
            ios: 900,
        }),
        following: Bounds::exact(0),
        ..requests.clone()
    };
    let pages = |keeper| {
        Facts::RecordMismatch(RecordMismatch::Layout(PagesAndRecords {
            page_bytes: Bytes(8192),
            page_source: Source::User,
            record_bytes: Bytes(128 << 10),
            record_source: kernel(),
            keeper,
            read_amplification: 16.0,
            write_amplification: 32.0,
        }))
    };
    let flash = |written_by| {
        Facts::IndirectionUnit(IndirectionUnit {
            grid: grid(16 << 10, CellKind::IndirectionUnit, "nvme0n1"),
            written_bytes: Bytes(4096),
            written_by,
            amplification: 4.0,
        })
    };
    let stripe = StripeBelow {
        on: "md0".to_owned(),
        chunk_bytes: Bytes(64 << 10),
        data_chunks: 3,
        width_bytes: Some(Bytes(192 << 10)),
    };
    let told = |unit, width, stripe| {
        Facts::GeometryMismatch(GeometryMismatch {
            told_unit_bytes: Bytes(unit),
            told_width_bytes: Some(Bytes(width)),
            source: None,
            stripe,
        })
    };
    let hint = |doubt| Hint {
        what: CellKind::OptimalIo,
        stated_bytes: Bytes(33_553_920),
        source: kernel(),
        doubt,
    };
    let doubts = [
        HintDoubt::Bridge,
        HintDoubt::TooLarge {
            most_bytes: Bytes(16 << 20),
        },
        HintDoubt::NoMultiple {
            of: CellKind::PhysicalBlock,
            unit_bytes: Bytes(4096),
        },
        HintDoubt::OddSectors,
        HintDoubt::NotTheStripe {
            stripe_bytes: Bytes(128 << 10),
            is_multiple_of_members: true,
        },
    ];
    let export = |fault, backstore: Option<&str>| {
        Facts::MisstatedGrid(MisstatedGrid {
            fault,
            stated_bytes: Bytes(512),
            stated_offset_bytes: Bytes(0),
            source: kernel(),
            grid: GridOf {
                offset_bytes: Bytes(512),
                ..block()
            },
            backstore: backstore.map(str::to_owned),
        })
    };
    vec![
        Facts::RecordMismatch(RecordMismatch::Requests(requests)),
        Facts::RecordMismatch(RecordMismatch::Requests(in_place)),
        pages(Keeper::Records),
        pages(Keeper::VolumeBlocks),
        pages(Keeper::Blocks),
        flash(SmallestWrite::Io {
            basis: IoSizeBasis::Seen {
                on: "nvme0n1p1".to_owned(),
                ios: 900,
                of: 1000,
            },
        }),
        flash(SmallestWrite::PoolBlocks),
        flash(SmallestWrite::FileSystemBlocks),
        told(0, 0, Some(stripe.clone())),
        told(4096, 12_288, Some(stripe.clone())),
        told(64 << 10, 512 << 10, Some(stripe)),
        told(64 << 10, 512 << 10, None),
        Facts::ImplausibleHint(ImplausibleHint {
            hints: doubts.map(hint).to_vec(),
        }),
        export(Fault::Refused, Some("iblock")),
        export(Fault::Hidden, Some("fileio")),
        export(Fault::Hidden, None),
        export(Fault::Shifted, Some("nvmet")),
        export(Fault::Shifted, Some("iblock")),
        export(Fault::Larger, Some("pscsi")),
        export(Fault::Larger, Some("fileio")),
    ]
}

fn settings() -> Vec<Facts> {
    let disks = TooFewDisks {
        asked_ios_per_second: 265.0,
        asked_by: RateBasis::Given,
        needed_ios_per_second: 265.0,
        given_ios_per_second: 320.0,
        disks: 4,
        operations_per_write: 1,
        utilisation: 0.828_125,
        response_ns: Some(72_727_272.7),
        idle_ns: 12_500_000.0,
        wanted_disks: Some(5),
        wanted_margin: Some(0.509),
    };
    let full = TooFewDisks {
        response_ns: None,
        wanted_disks: None,
        wanted_margin: None,
        ..disks.clone()
    };
    let path = |case| {
        Facts::SinglePath(SinglePath {
            paths: 1,
            case,
            source: None,
        })
    };
    let policy = |policy: &str| {
        Facts::ReadPolicy(ReadPolicy {
            policy: MirrorReads::from(policy),
            sides: 2,
            source: kernel(),
        })
    };
    let load = |is_same| {
        Facts::DoubleCounted(DoubleCounted {
            devices: ["md2", "md26", "ssd3"].map(str::to_owned).to_vec(),
            asked_ios_per_second: 402.0,
            asked_by: RateBasis::Given,
            sum_ios_per_second: 1206.0,
            bottom_ios_per_second: 402.0,
            is_same,
        })
    };
    vec![
        Facts::ReadAheadOff(ReadAheadOff {
            reads: 30_754,
            cached_reads: 30_754,
            continuing_reads: 30_751,
            short_bytes: Bytes(16 << 10),
            better_bytes: Bytes(128 << 10),
            source: None,
        }),
        Facts::ReadAheadTooLarge(ReadAheadTooLarge {
            bytes: Bytes(4 << 20),
            better_bytes: Bytes(128 << 10),
            reads: 680,
            cached_reads: 670,
            jumps: 180,
            read_bytes: 250 << 20,
            faults: 180,
            source: None,
        }),
        Facts::QueueSetting(QueueSetting {
            settings: vec![
                BadSetting::ReadAhead {
                    bytes: Bytes(64 << 20),
                    most_bytes: Bytes(4 << 20),
                    better_bytes: Bytes(128 << 10),
                    source: None,
                },
                BadSetting::Request {
                    bytes: Bytes(128 << 10),
                    hardware_bytes: Bytes(1280 << 10),
                    better_bytes: Bytes(1280 << 10),
                    source: None,
                },
                BadSetting::Scheduler {
                    name: "bfq".to_owned(),
                    better: "none".to_owned(),
                    source: None,
                },
            ],
        }),
        Facts::TooFewDisks(disks),
        Facts::TooFewDisks(full),
        path(PathCase::Multipath),
        path(PathCase::Lun {
            because: ArrayEvidence::PathOf {
                device: "mpatha".to_owned(),
            },
        }),
        path(PathCase::Unjoined {
            devices: ["sda", "sdb"].map(str::to_owned).to_vec(),
        }),
        policy("first"),
        policy("geometric"),
        load(true),
        load(false),
    ]
}

fn problems() -> Vec<Facts> {
    let problem = |format: &str, is_move_unfinished| NoticedProblem {
        text: "the primary header has another checksum".to_owned(),
        source: Source::OnDisk {
            format: format.to_owned(),
        },
        is_move_unfinished,
    };
    let plain = || problem("gpt", false);
    vec![
        Facts::BrokenLabel(plain()),
        Facts::BrokenLabel(problem("MBR", false)),
        Facts::BrokenLabel(problem("gpt", true)),
        Facts::StrandedBackupLabel(plain()),
        Facts::OverlappingPartitions(plain()),
        Facts::UnfinishedMove(problem("gpt", true)),
        Facts::SectorSizeMismatch(plain()),
        Facts::BrokenSuperblock(plain()),
        Facts::HiddenSectors(plain()),
        Facts::AshiftBelowBlock(plain()),
        Facts::BeyondDevice(plain()),
        Facts::Contradiction(plain()),
        Facts::Contradiction(NoticedProblem {
            text: "dev1 is 1 GiB and 2 GiB long".to_owned(),
            ..plain()
        }),
    ]
}

fn phase(sector: u64) -> Phase {
    Phase {
        granularity_bytes: Bytes(4096),
        offset_bytes: sectors(sector),
        heads: 400,
        ios: 800,
    }
}

fn offset(verdict: InferenceVerdict, advice: OffsetAdvice) -> IoOffset {
    IoOffset {
        ios: 1000,
        heads: 500,
        verdict,
        examined_bytes: None,
        known_starts: Vec::new(),
        others: Vec::new(),
        partitions: Vec::new(),
        advice,
    }
}

fn misaligned_io() -> Vec<Facts> {
    let one = InferenceVerdict::One { phase: phase(7) };
    let shift = |blocks| OffsetAdvice::Shift {
        up_bytes: sectors(1),
        blocks_bytes: blocks,
        misaligned: Bounds::exact(12),
        ios: 1000,
    };
    let within = |block| OffsetAdvice::WithinFileSystems {
        file_systems: vec![FileSystemBlock {
            name: "/srv/mail".to_owned(),
            block_bytes: Bytes(block),
        }],
    };
    let other = |continues_streams| OtherOffset {
        offset_bytes: sectors(4),
        ios: 120,
        heads: 3,
        continues_streams,
    };
    let partition = |past| PartitionStart {
        name: "8,1".to_owned(),
        start_bytes: sectors(63),
        past_bytes: Bytes(past),
    };
    let known = IoOffset {
        examined_bytes: Some(Bytes(64 << 10)),
        known_starts: vec![Some(KnownStart::Sector63)],
        others: vec![other(true), other(false)],
        ..offset(one.clone(), shift(None))
    };
    let parted = IoOffset {
        partitions: vec![partition(0), partition(3584)],
        ..offset(one.clone(), OffsetAdvice::OnGrid)
    };
    let two = InferenceVerdict::Two {
        phases: [phase(7), phase(3)],
    };
    let few = InferenceVerdict::NotEnoughData {
        why: "4 random I/O seen, 200 needed".to_owned(),
    };
    let offsets = [
        (GridSource::User, Some(known)),
        (GridSource::Stated, Some(parted)),
        (
            GridSource::Assumed,
            Some(offset(one.clone(), shift(Some(Bytes(8192))))),
        ),
        (GridSource::Shown, Some(offset(two, OffsetAdvice::EachPart))),
        (
            GridSource::User,
            Some(offset(InferenceVerdict::NoGrid, OffsetAdvice::Nothing)),
        ),
        (GridSource::User, Some(offset(few, OffsetAdvice::Nothing))),
        (
            GridSource::User,
            Some(offset(one.clone(), OffsetAdvice::NoShift)),
        ),
        (
            GridSource::User,
            Some(offset(one.clone(), OffsetAdvice::InFiles)),
        ),
        (GridSource::Stated, Some(offset(one.clone(), within(4096)))),
        (GridSource::Stated, Some(offset(one, within(1024)))),
        (GridSource::Tested, None),
    ];
    let latency = LatencyByFit::Difference {
        difference_ns: 1_500.0,
        low_ns: -100.0,
        high_ns: 3_100.0,
        fitting_mean_ns: 90_000.0,
        unfitting_mean_ns: 91_500.0,
        compared: 90,
        compared_writes: 0,
        unfitting: 100,
        strata: 2,
    };
    let mut facts: Vec<MisalignedIo> = offsets
        .into_iter()
        .map(|(grid_source, offset)| MisalignedIo {
            grid: Grid::new(Bytes(4096), Bytes(0), GridKind::Unit).expect("a grid"),
            grid_source,
            counted: counted(),
            is_outside_partitions: false,
            mean_past_bytes: Some(2048.0),
            offset,
            latency: None,
        })
        .collect();
    facts[0].latency = Some(latency);
    facts[0].counted.lost = Some(LostEvents {
        events: 100,
        share_low: 0.0909,
        share_high: 0.1818,
    });
    facts.push(MisalignedIo {
        is_outside_partitions: true,
        mean_past_bytes: None,
        offset: None,
        ..facts[1].clone()
    });
    facts.into_iter().map(Facts::MisalignedIo).collect()
}

fn io() -> Vec<Facts> {
    let inflation = |direction, is_cached| {
        Facts::ThroughputInflation(ThroughputInflation {
            direction,
            calls: 1000,
            asked_bytes: Bytes(8_000 << 10),
            device_bytes: Bytes(96_000 << 10),
            ratio: 12.0,
            is_cached,
            read_first_bytes: (direction == Direction::Write).then_some(Bytes(2_000 << 10)),
        })
    };
    vec![
        Facts::OddLengthIo(OddLengthIo {
            unit_bytes: Bytes(4096),
            counted: counted(),
            commonest: vec![OfLength {
                len_bytes: Bytes(1536),
                ios: 100,
            }],
            is_seen: true,
        }),
        Facts::SmallRandomWrites(SmallRandomWrites {
            longest_bytes: Bytes(16 << 10),
            counted: counted(),
            gathered: 16,
            gathered_writes: 7,
            per_second: Some(100.1),
        }),
        Facts::LooksSequential(LooksSequential {
            from_bytes: Bytes(64 << 10),
            below_bytes: Bytes(1 << 20),
            counted: counted(),
            of_that_size: 150,
        }),
        Facts::MemberSkew(MemberSkew {
            member: 2,
            members: 4,
            counted: CountedShare {
                count: Bounds::exact(400),
                ..counted()
            },
            ratio: 1.6,
        }),
        inflation(Direction::Read, false),
        inflation(Direction::Write, true),
        Facts::FailingIo(FailingIo {
            ops: vec![
                FailedIos {
                    op: FailingOp::Read,
                    failed: 2961,
                    ios: Some(3961),
                },
                FailedIos {
                    op: FailingOp::Flush,
                    failed: 1,
                    ios: None,
                },
            ],
            first: vec![single(15_000_000, Some(IoError::Medium))],
        }),
        Facts::FailingIo(FailingIo {
            ops: vec![FailedIos {
                op: FailingOp::Write,
                failed: 3,
                ios: Some(1000),
            }],
            first: Vec::new(),
        }),
        Facts::MisfitRose(MisfitRose {
            time: changed(86_400, Vec::new()),
            share_before: 0.004,
            share_after: 0.83,
            rise: Bounds {
                low: 0.79,
                high: 0.86,
            },
        }),
        Facts::MisfitRose(MisfitRose {
            time: changed(
                3600,
                vec![
                    host_fact(
                        HostFact::Kernel,
                        Some(HostValue::Name("6.1.0-27-amd64".to_owned())),
                        Some(HostValue::Name("6.12.9".to_owned())),
                    ),
                    host_fact(
                        HostFact::Mount {
                            path: "/data".to_owned(),
                        },
                        Some(mounted("noatime")),
                        Some(mounted("sync")),
                    ),
                    host_fact(
                        HostFact::Mount {
                            path: "/srv".to_owned(),
                        },
                        None,
                        Some(mounted("rw")),
                    ),
                    host_fact(
                        HostFact::Partition {
                            device: "sdb1".to_owned(),
                        },
                        Some(part_of_sdb(2048)),
                        Some(part_of_sdb(34)),
                    ),
                    host_fact(
                        HostFact::Scheduler {
                            device: "sdb".to_owned(),
                        },
                        Some(HostValue::Name("none".to_owned())),
                        None,
                    ),
                    HostChange {
                        at_ns: 1_794_640_060_000_000_000,
                        is: HostChangeKind::Appeared {
                            rule: RuleId::MisalignedPartition,
                            device: "sdb1".to_owned(),
                        },
                    },
                    HostChange {
                        at_ns: 1_794_640_120_000_000_000,
                        is: HostChangeKind::Gone {
                            rule: RuleId::SinglePath,
                            device: "sdc".to_owned(),
                        },
                    },
                ],
            ),
            share_before: 0.0,
            share_after: 1.0,
            rise: Bounds {
                low: 1.0,
                high: 1.0,
            },
        }),
        Facts::LatencyGrew(LatencyGrew {
            time: ChangeTime {
                left_out: 70,
                ..changed(
                    86_400,
                    vec![
                        host_fact(
                            HostFact::Package {
                                name: "mariadb-server".to_owned(),
                            },
                            Some(HostValue::Name("1:10.11.6-0+deb12u1".to_owned())),
                            Some(HostValue::Name("1:10.11.14-0+deb12u2".to_owned())),
                        ),
                        host_fact(
                            HostFact::Volume {
                                device: "md0".to_owned(),
                            },
                            Some(HostValue::Volume {
                                volume: "parity RAID".to_owned(),
                                chunk_bytes: Some(Bytes(524_288)),
                                members: ["sdb", "sdc", "sdd"].map(str::to_owned).to_vec(),
                            }),
                            Some(HostValue::Volume {
                                volume: "parity RAID".to_owned(),
                                chunk_bytes: Some(Bytes(524_288)),
                                members: ["sdb", "sde", "sdd"].map(str::to_owned).to_vec(),
                            }),
                        ),
                        host_fact(
                            HostFact::Volume {
                                device: "dm-3".to_owned(),
                            },
                            None,
                            Some(HostValue::Volume {
                                volume: "crypt".to_owned(),
                                chunk_bytes: None,
                                members: vec!["sdf1".to_owned()],
                            }),
                        ),
                    ],
                )
            },
            ratio: Bounds {
                low: 1.82,
                high: 2.17,
            },
            median_before_ns: 412_000,
            median_after_ns: 815_000,
            loads: 1,
        }),
        Facts::LittleHeadroom(LittleHeadroom {
            time: changed(86_400, Vec::new()),
            ratio: Bounds {
                low: 2.31,
                high: 2.68,
            },
            rate_before: 118.0,
            rate_after: 291.5,
            highest_rate: 322.0,
            median_highest_ns: 9_300_000,
            median_low_ns: 4_100_000,
        }),
        Facts::SizesChanged(SizesChanged {
            time: changed(86_400, Vec::new()),
            most_changed: 1,
            change: Bounds {
                low: -0.43,
                high: -0.38,
            },
            shares_before: [0.0, 0.8, 0.2, 0.0, 0.0],
            shares_after: [0.0, 0.4, 0.2, 0.0, 0.4],
        }),
        stalled(Stall::Silent {
            in_flight: 4,
            for_ns: 3_020_000_000,
            oldest: Some(single(3_400_000_000, None)),
        }),
        stalled(Stall::LeftBehind {
            in_flight: 1,
            oldest: single(6_000_000_000, None),
        }),
        stalled(Stall::WasSilent {
            for_ns: 3_600_000_000,
            slowest: None,
        }),
        stalled(Stall::Slow {
            ios: 2,
            limit_ns: 2_000_000_000,
            longest_ns: 3_000_000_000,
            median_ns: 212_000,
            slowest: Some(single(3_050_000_000, None)),
        }),
        Facts::SaturatedDevice(SaturatedDevice {
            busy_share: 0.998,
            depth_mean: 31.4,
            mean_ns: 161e6,
            served_ns: 5.1e6,
            ios_per_second: 196.0,
            bytes_per_second: 1.6e6,
        }),
        Facts::MisalignedTarget(MisalignedTarget {
            granularity_bytes: Bytes(4096),
            offset_bytes: Bytes(1024),
            op: Direction::Read,
            measured: 5_000,
            penalty: None,
        }),
    ]
}

fn target(facts: &Facts) -> Target {
    let target = Target::seen("8,0", None, Layer::Request);
    match facts {
        Facts::MisalignedIo(_)
        | Facts::OddLengthIo(_)
        | Facts::SmallRandomWrites(_)
        | Facts::LooksSequential(_)
        | Facts::MemberSkew(_)
        | Facts::FailingIo(_)
        | Facts::StalledIo(_)
        | Facts::MisfitRose(_)
        | Facts::LatencyGrew(_)
        | Facts::LittleHeadroom(_)
        | Facts::SizesChanged(_)
        | Facts::SaturatedDevice(_)
        | Facts::ThroughputInflation(_)
        | Facts::RecordMismatch(RecordMismatch::Requests(_)) => target,
        Facts::SplitIo(facts) if facts.trace.is_some() => target,
        Facts::MirrorWriteCopy(_)
        | Facts::SmallResyncIo(_)
        | Facts::SmallMaxphys(_)
        | Facts::SmallSegmap(_)
        | Facts::TooManyMetadevices(_) => Target {
            device: "(host)".to_owned(),
            layer: TargetLayer::Host(HostLayer::Host),
            ..target
        },
        _ => Target {
            device: "dev1".to_owned(),
            layer: TargetLayer::Stack(Kind::Partition),
            ..target
        },
    }
}

fn finding(facts: Facts) -> Finding {
    let target = target(&facts);
    Finding::new(facts, target, Severity::Warning, Confidence::High)
}

fn findings() -> Vec<Finding> {
    let facts = [
        misaligned_io(),
        io(),
        starts(),
        stripes(),
        units(),
        settings(),
        problems(),
        // generated by make docs: examples
        super::mirror_write_copy::examples(),
        super::no_direct_io::examples(),
        super::no_logging::examples(),
        super::small_maxphys::examples(),
        super::small_resync_io::examples(),
        super::small_segmap::examples(),
        super::too_many_metadevices::examples(),
        // end
    ];
    facts.concat().into_iter().map(finding).collect()
}

fn sentences(finding: &Finding) -> String {
    let words = words::finding(finding);
    let explanation = words.explanation.iter().map(|one| format!("\n- {one}"));
    words.summary + &explanation.collect::<String>()
}

#[test]
fn sentences_of_each_rule() {
    let findings = findings();
    for rule in RULES {
        let of_rule: Vec<String> = findings
            .iter()
            .filter(|finding| finding.rule() == rule.id)
            .map(sentences)
            .collect();
        assert!(!of_rule.is_empty(), "{} has no examples", rule.name);
        insta::assert_snapshot!(rule.name, of_rule.join("\n\n"));
    }
}

/// A reader of a sentence needs its end, and no sentence may hold a hole.
#[test]
fn sentences_are_whole() {
    for finding in findings() {
        let words = words::finding(&finding);
        for sentence in std::iter::once(&words.summary).chain(&words.explanation) {
            assert!(sentence.ends_with('.'), "{}: {sentence}", finding.rule());
            assert!(
                !sentence.contains("  ") && !sentence.contains(".."),
                "{}: {sentence}",
                finding.rule()
            );
        }
    }
}

/// Each finding is the same after a way through JSON.
#[test]
fn findings_read_back() {
    for finding in findings() {
        let text = serde_json::to_string(&finding).expect("JSON");
        let back: Finding =
            serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}"));
        assert_eq!(back, finding);
    }
}

#[test]
fn io_through_a_start() {
    let mut finding = finding(starts().remove(0));
    let fit = SeenFit {
        ios: 300,
        misaligned: Bounds::exact(300),
        cells_ratio: Some(Bounds::exact(1.5)),
        moved: Some(FitAfterMove {
            by_bytes: sectors(6),
            ios: 300,
            misaligned: Bounds::exact(0),
        }),
        latency: Some(LatencyByFit::NotComparable {
            why: "no aligned I/O of the same kind".to_owned(),
        }),
    };
    let seen = Seen {
        on: "sda1".to_owned(),
        is_below: true,
        layer: Layer::Request,
        seconds: Some(10.0),
        reads: 211,
        writes: 89,
        moved_bytes: Bounds::exact(300 * 4096),
        mean_ns: Some(100_000.0),
        fit: Some(fit),
        senders: vec![SentBy {
            comm: "postgres".to_owned(),
            ios: 300,
        }],
        more_senders: 1,
    };
    finding.seen = Some(seen.clone());
    let with_io = sentences(&finding);
    finding.seen = Some(Seen {
        reads: 0,
        writes: 0,
        ..seen
    });
    insta::assert_snapshot!(format!("{with_io}\n\n{}", sentences(&finding)));
}

#[test]
fn advice() {
    let mut finding = finding(Facts::NoLogging(NoLogging {
        is_switched_off: true,
        source: None,
    }));
    let text = |text: &str| text.to_owned();
    finding.advice = vec![
        Advice::AttachImage,
        Advice::AttachLoop,
        Advice::SeeOther {
            component: text("d10"),
            rule: RuleId::SoftPartitionDrift,
            target: finding.target.clone(),
        },
        Advice::NoPlan {
            why: text("found no room"),
        },
        Advice::NoCommand {
            why: text("no command is given: the name holds a tab"),
        },
        Advice::RunOn {
            host: Some(text("kvm3")),
            changes: Some(text("kvm3:sdb1")),
        },
        Advice::RunOn {
            host: None,
            changes: None,
        },
        Advice::Empty,
        Advice::NoneKeepsData {
            device: text("md0"),
            plan: text("stripe"),
        },
        Advice::AssumedStart {
            planned_bytes: Bytes(1 << 20),
            is_reduced: false,
        },
        Advice::AssumedStart {
            planned_bytes: Bytes(256 << 10),
            is_reduced: true,
        },
        Advice::Recommended {
            harm: text("keeps the data"),
            title: text("move the start"),
        },
        Advice::Constraint {
            text: text("unmount it first"),
        },
    ];
    insta::assert_snapshot!(sentences(&finding));
}

/// Obstacles of a remedy.
#[test]
fn obstacles() {
    let mut finding = finding(Facts::NoLogging(NoLogging {
        is_switched_off: true,
        source: None,
    }));
    let worse = |severity| Obstacle::Worse {
        rule: RuleId::OverlappingPartitions,
        target: finding.target.clone(),
        severity,
    };
    let obstacles = [
        Obstacle::Remains,
        Obstacle::BecomesUnknown,
        worse(Some(Severity::Warning)),
        worse(None),
        Obstacle::NotModelled,
        Obstacle::NotJudged,
    ];
    finding.advice = obstacles
        .into_iter()
        .map(|obstacle| Advice::NoRemedy {
            device: "sda1".to_owned(),
            plan: "partition".to_owned(),
            obstacle,
        })
        .collect();
    insta::assert_snapshot!(sentences(&finding));
}

/// Steps that must be done first, and effects that the model shows.
#[test]
fn remedies() {
    let text = |text: &str| text.to_owned();
    let first = vec![
        Precondition::Unmount {
            mount: text("/srv"),
        },
        Precondition::BootOtherMedia,
        Precondition::Release {
            volume: text("d151"),
        },
        Precondition::Backup {
            device: text("d94"),
        },
        Precondition::OtherPartition,
    ];
    let proven = |rests_on| Class::Proven { rests_on };
    let on = RestsOn::Grid {
        what: CellKind::PhysicalBlock,
        on: text("vda"),
    };
    let io = RestsOn::IoSize { bytes: Bytes(4096) };
    let partial = Class::Partial {
        now: 0.25,
        remains: 0.0625,
    };
    let measured = |with| Class::NeedsMeasurement { with };
    let cases = [
        (proven(None), Place::KnownEmpty, first),
        (proven(Some(on)), Place::KnownEmpty, Vec::new()),
        (proven(Some(io)), Place::KnownEmpty, Vec::new()),
        (proven(None), Place::MayHoldData, Vec::new()),
        (partial, Place::MayHoldData, Vec::new()),
        (
            measured(Measurement::Replay),
            Place::MayHoldData,
            Vec::new(),
        ),
        (measured(Measurement::Bench), Place::MayHoldData, Vec::new()),
    ];
    let shown = cases.map(|(class, place, first)| {
        let mut finding = finding(Facts::NoLogging(NoLogging {
            is_switched_off: true,
            source: None,
        }));
        let destroys = Action::RecreateStripe {
            volume: device("md0"),
            manager: Manager::Md,
            members: vec![device("/dev/sda"), device("/dev/sdb")],
            parity: 0,
            chunk_bytes: Bytes(1 << 20),
        };
        let disruption = Disruption::RestoreFromBackup;
        finding.remedies = vec![Remedy::new(class, disruption, place, first, vec![destroys])];
        sentences(&finding)
    });
    insta::assert_snapshot!(shown.join("\n\n"));
}

fn device(name: &str) -> DeviceRef {
    DeviceRef::named(name.to_owned())
}

/// The clause that follows the name of a target.
#[test]
fn reasons() {
    let on = || "sda".to_owned();
    let reasons = [
        Reason::TooFew {
            what: Counting::Ios,
            seen: 199,
            needed: 200,
        },
        Reason::TooFew {
            what: Counting::Pieces { members: 64 },
            seen: 400,
            needed: 3200,
        },
        Reason::Lost {
            count: 0,
            of: 1000,
            lost: 60,
        },
        Reason::BeyondAssumed {
            count: 0,
            of: 1000,
            granularity_bytes: Bytes(4096),
        },
        Reason::BeyondShown {
            count: 0,
            of: 1000,
            grid: Grid::ASSUMED,
        },
        Reason::BelowRecords {
            layer: Layer::Request,
        },
        Reason::NotSynced,
        Reason::Stack {
            because: vec![plumb_stack::Obstacle::NoChunk, plumb_stack::Obstacle::RaidZ],
            more: 3,
        },
        Reason::HoldsLayer {
            layer: ContentKind::LvmMember,
        },
        Reason::ChunksBetween {
            devices: vec!["md0".to_owned(), on()],
        },
        Reason::FewSplitForAssumed {
            io: assumed(),
            on: on(),
            split: share(0, 1),
        },
        Reason::OnAssumedUnit {
            grid: grid(4096, CellKind::Assumed, "sda"),
            given_bytes: None,
        },
        Reason::DriveOrLun { device: on() },
        Reason::StripeNotVisible {
            told_bytes: Bytes(65_536),
            on: on(),
        },
        Reason::MountOptions,
    ];
    let named = reasons.iter().map(words::reason);
    let bare = reasons
        .iter()
        .map(|reason| words::reason(&reason.without_names()));
    let lines: Vec<String> = named
        .zip(bare)
        .map(|(named, bare)| match named == bare {
            true => named,
            false => format!("{named}\n  without names: {bare}"),
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}
