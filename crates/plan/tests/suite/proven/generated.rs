//! Stacks drawn by lot: partitions, LVM, md, stripes of Solaris Volume Manager, soft partitions, mirrors, file systems, at any
//! sector.

use plumb_geometry::{Bytes, Grid, GridKind, SECTOR};
use plumb_model::Action;
use plumb_stack::node::keys;
use plumb_stack::{
    Builder, CellKind, Chunks, GridFact, Kind, Member, NodeId, Placing, Source, Stack,
};

use super::{advised, violations};
use crate::stack::{FROM, cut, sectors};

/// Stacks that a change is tested with; `PLUMB_STACKS` asks for more.
const STACKS: u64 = 10_000;

/// SplitMix64: <https://prng.di.unimi.it/splitmix64.c>; every seed gives another series.
struct Lot(u64);

impl Lot {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Sectors of each disk.
const DISK: u64 = 1 << 21;

fn disk(lot: &mut Lot, builder: &mut Builder, name: &str, label: &str) -> NodeId {
    let disk = builder.node(name);
    builder.kind(disk, Kind::Disk, &FROM);
    builder.size(disk, sectors(DISK), &FROM);
    builder.fact(disk, keys::LABEL, label, &FROM);
    if lot.below(3) == 0 {
        builder.fact(disk, keys::IDENTITY, format!("naa.{name}"), &FROM);
    }
    let kernel = Source::Kernel {
        path: "sys/block".to_owned(),
    };
    let mut fact = |what, granularity: u64, offset: u64| {
        let grid = Grid::new(Bytes(granularity), Bytes(offset), GridKind::Unit).expect("a grid");
        builder.grid(disk, GridFact::believed(grid, what, kernel.clone()));
    };
    fact(CellKind::LogicalBlock, SECTOR, 0);
    match lot.below(4) {
        0 => {}
        1 => fact(CellKind::PhysicalBlock, 4096, 3584),
        2 => fact(
            CellKind::IndirectionUnit,
            lot.one_of(&[8192, 16_384, 65_536]),
            0,
        ),
        _ => fact(CellKind::PhysicalBlock, 4096, 0),
    }
    if lot.below(5) == 0 {
        builder.fact(disk, keys::READ_AHEAD, Bytes(67108864), &FROM);
    }
    disk
}

/// Partitions that do not overlap, some of them at the next sector behind each other.
fn partitions(lot: &mut Lot, builder: &mut Builder, disk: NodeId) -> Vec<NodeId> {
    let name = builder.get(disk).name.clone();
    let mut from = lot.one_of(&[34, 63, 64, 2047, 2048, 2049]);
    let mut made = Vec::new();
    for number in 1..=1 + lot.below(3) {
        let len = 100_000 + lot.below(200_000);
        let part = cut(
            builder,
            &format!("{name}p{number}"),
            Kind::Partition,
            disk,
            from,
            len,
        );
        builder.size(part, sectors(len), &FROM);
        builder.fact(part, keys::PARTITION_NUMBER, number, &FROM);
        made.push(part);
        from += len + lot.one_of(&[0, 1, 7, 100, 5000]);
    }
    made
}

fn file_system(lot: &mut Lot, builder: &mut Builder, on: NodeId, at: &str, len: u64) {
    let id = cut(builder, at, Kind::FileSystem, on, 0, len);
    let kind = lot.one_of(&["ext4", "xfs", "btrfs"]);
    builder.fact(id, keys::CONTENT, kind, &FROM);
    builder.fact(id, keys::MOUNT, at, &FROM);
    builder.fact(id, keys::FS_BLOCK, Bytes(4096), &FROM);
    if lot.below(2) == 0 {
        let unit = lot.one_of(&[0, 16_384, 65_536, 524_288]);
        builder.fact(id, keys::FS_STRIPE_UNIT, Bytes(unit), &FROM);
        builder.fact(id, keys::FS_STRIPE_WIDTH, Bytes(2 * unit), &FROM);
    }
}

fn chunks(lot: &mut Lot, members: &[NodeId], parity: u32) -> Chunks {
    let start = lot.one_of(&[0, 8, 16, 2048]);
    let members = members.iter().map(|node| Member {
        node: *node,
        start: sectors(start),
    });
    Chunks {
        chunk: Bytes(lot.one_of(&[8192, 16_384, 65_536, 524_288, 1 << 20, 49_152])),
        members: members.collect(),
        parity,
        copies: 1,
        layout: None,
    }
}

/// The layers above a partition of Linux.
fn on_linux(lot: &mut Lot, builder: &mut Builder, parts: &[NodeId], number: usize) {
    let part = parts[0];
    let len = builder.get(part).size.map_or(0, |size| size.0 / SECTOR);
    match lot.below(6) {
        0 => {}
        1 => file_system(lot, builder, part, &format!("/mnt/{number}"), len),
        2 => {
            let start = lot.one_of(&[384, 2048, 2049]);
            builder.fact(part, keys::CONTENT, "LVM2 PV", &FROM);
            builder.fact(part, keys::PE_START, Bytes(start * SECTOR), &FROM);
            let name = format!("vg{number}/data");
            let volume = cut(builder, &name, Kind::LogicalVolume, part, start, 40_960);
            builder.fact(volume, keys::MANAGER, "lvm", &FROM);
            if lot.below(2) == 0 {
                file_system(lot, builder, volume, &format!("/lv/{number}"), 40_960);
            }
        }
        kind if parts.len() >= 3 => {
            let (parity, level) = match kind {
                3 => (0, "raid0"),
                4 => (1, "raid5"),
                _ => (0, "raid1"),
            };
            let array = builder.node(&format!("md{number}"));
            builder.fact(array, keys::MANAGER, "md", &FROM);
            builder.fact(array, keys::LEVEL, level, &FROM);
            let chunks = chunks(lot, parts, parity);
            let placing = match level {
                "raid1" => Placing::Copies {
                    members: chunks.members,
                },
                _ => Placing::Chunks(chunks),
            };
            let kind = match level {
                "raid0" => Kind::Stripe,
                "raid5" => Kind::ParityRaid,
                _ => Kind::Mirror,
            };
            builder.kind(array, kind, &FROM);
            builder.place(array, placing, &FROM);
            if lot.below(2) == 0 {
                file_system(lot, builder, array, &format!("/md/{number}"), 65_536);
            } else {
                builder.fact(array, keys::LABEL, "gpt", &FROM);
                builder.size(array, sectors(150_000), &FROM);
                let start = lot.one_of(&[63, 2048, 2050]);
                let name = format!("md{number}p1");
                let part = cut(builder, &name, Kind::Partition, array, start, 65_536);
                builder.fact(part, keys::PARTITION_NUMBER, 1u64, &FROM);
            }
        }
        _ => {}
    }
}

/// Soft partitions on a slice or a stripe of slices, some behind the header of the one before, some well placed.
fn on_solaris(lot: &mut Lot, builder: &mut Builder, slices: &[NodeId], number: usize) {
    let component = if lot.below(2) == 0 && slices.len() > 1 {
        let stripe = builder.node(&format!("d{number}0"));
        builder.kind(stripe, Kind::Stripe, &FROM);
        builder.fact(stripe, keys::MANAGER, "svm", &FROM);
        let placing = chunks(lot, slices, 0);
        let members = placing.members.into_iter().map(|member| Member {
            start: Bytes(0),
            ..member
        });
        let placing = Chunks {
            members: members.collect(),
            ..placing
        };
        builder.place(stripe, Placing::Chunks(placing), &FROM);
        builder.size(stripe, sectors(180_000), &FROM);
        stripe
    } else {
        slices[0]
    };
    let mut from = 0_u64;
    for volume in 1..=1 + lot.below(4) {
        let start = match lot.below(3) {
            0 => from + 1,
            1 => (from + 1).next_multiple_of(2048),
            _ => from + 1 + lot.below(3000),
        };
        let len = 8192 + lot.below(8192);
        if start + len > 90_000 {
            break;
        }
        let name = format!("d{number}{volume}");
        let part = cut(builder, &name, Kind::SoftPartition, component, start, len);
        builder.fact(part, keys::MANAGER, "svm", &FROM);
        if lot.below(6) == 0 {
            let user = cut(
                builder,
                &format!("d{number}{volume}5"),
                Kind::Concat,
                part,
                0,
                len,
            );
            builder.fact(user, keys::MANAGER, "svm", &FROM);
        }
        from = start + len;
    }
}

fn stack(seed: u64) -> Stack {
    let mut lot = Lot(seed);
    let mut builder = Builder::default();
    let is_solaris = lot.below(3) == 0;
    let count = 1 + lot.below(4);
    let mut first = Vec::new();
    for at in 0..count {
        let name = if is_solaris {
            format!("c0t{at}d0")
        } else {
            format!("nvme{at}n1")
        };
        let label = if is_solaris {
            "efi"
        } else {
            lot.one_of(&["gpt", "dos"])
        };
        let disk = disk(&mut lot, &mut builder, &name, label);
        let parts = partitions(&mut lot, &mut builder, disk);
        if is_solaris {
            for (slice, part) in parts.iter().enumerate() {
                builder.fact(*part, keys::SLICE, slice as u64, &FROM);
            }
        }
        first.push(parts[0]);
    }
    if is_solaris {
        let host = builder.host();
        builder.fact(host, keys::SYSTEM, "solaris", &FROM);
        builder.fact(host, keys::MAXPHYS, Bytes(131072), &FROM);
        on_solaris(&mut lot, &mut builder, &first, 1);
    } else {
        on_linux(&mut lot, &mut builder, &first, 1);
    }
    builder.finish()
}

/// In two halves, since a machine has at least two processors.
#[test]
fn every_recommended_remedy_of_even_stacks_removes_its_finding() {
    hold(0);
}

#[test]
fn every_recommended_remedy_of_odd_stacks_removes_its_finding() {
    hold(1);
}

fn hold(first: u64) {
    let stacks = std::env::var("PLUMB_STACKS");
    let stacks = stacks.map_or(STACKS, |text| text.parse().expect("a number"));
    let (mut findings, mut recommended, mut kinds) = (0, 0, std::collections::BTreeMap::new());
    for seed in (first..stacks).step_by(2) {
        let stack = stack(seed);
        let page = [None, Some(Bytes(8192)), Some(Bytes(2048))][(seed % 3) as usize];
        let diagnosis = advised(&stack, page);
        findings += diagnosis.findings.len();
        for remedy in diagnosis
            .findings
            .iter()
            .filter_map(|one| one.recommended())
        {
            for action in &remedy.actions {
                *kinds.entry(action.word()).or_insert(0_u64) += 1;
            }
        }
        let (count, wrong) = violations(&stack, page, &diagnosis);
        recommended += count;
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
    }
    println!("half of {stacks} stacks, {findings} findings, {recommended} remedies: {kinds:?}");
    for kind in [
        "move",
        "migrate",
        "set-queue",
        "tune-file-system",
        "copy-soft-partition",
    ] {
        assert!(kinds.contains_key(kind), "no stack is remedied by {kind}");
    }
}

/// The property notices remedies that are off by a sector, go over a neighbour, or destroy data.
#[test]
fn a_wrong_remedy_is_noticed() {
    let (mut off, mut over, mut destroyed) = (0, 0, 0);
    for seed in 0..200 {
        let stack = stack(seed);
        let diagnosis = advised(&stack, None);
        for at in 0..diagnosis.findings.len() {
            let is_moved = |finding: &plumb_model::Finding| {
                let actions = finding
                    .recommended()
                    .map(|remedy| remedy.actions.as_slice());
                matches!(actions, Some([Action::Move { .. }]))
            };
            if !is_moved(&diagnosis.findings[at]) {
                continue;
            }
            let planted = |change: &dyn Fn(&mut Action)| {
                let mut planted = diagnosis.clone();
                change(&mut planted.findings[at].remedies[0].actions[0]);
                let (_, wrong) = violations(&stack, None, &planted);
                u64::from(!wrong.is_empty())
            };
            off += planted(&|action| {
                if let Action::Move { to_bytes, .. } = action {
                    to_bytes.0 += SECTOR;
                }
            });
            // Beyond the end of the disk.
            over += planted(&|action| {
                if let Action::Move { to_bytes, .. } = action {
                    to_bytes.0 = DISK * SECTOR - (1 << 20);
                }
            });
            destroyed += planted(&|action| {
                if let Action::Move {
                    partition,
                    to_bytes,
                } = action.clone()
                {
                    *action = Action::Relabel {
                        partition,
                        to_bytes,
                        len_bytes: None,
                    };
                }
            });
            assert_eq!((off, over), (destroyed, destroyed), "seed {seed}");
        }
    }
    assert!(destroyed > 20, "{destroyed} moves");
}
