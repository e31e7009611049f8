//! Overlaps against laying every sector by hand.

use std::collections::BTreeSet;

use plumb_geometry::Bytes;
use proptest::prelude::*;

use super::*;
use crate::builder::Builder;
use crate::grid::Source;
use crate::node::Member;

const FROM: Source = Source::User;

fn stripe(
    builder: &mut Builder,
    name: &str,
    members: &[NodeId],
    chunk: u64,
    parity: u32,
) -> NodeId {
    let id = builder.node(name);
    let members = members
        .iter()
        .map(|node| Member {
            node: *node,
            start: Bytes(0),
        })
        .collect();
    let chunks = Chunks {
        chunk: Bytes(chunk),
        members,
        parity,
        copies: 1,
        layout: None,
    };
    builder.place(id, Placing::Chunks(chunks), &FROM);
    id
}

/// Extents as first sector and length in sectors.
fn soft(builder: &mut Builder, name: &str, below: NodeId, (start, len): (u64, u64)) {
    let id = builder.node(name);
    builder.kind(id, Kind::SoftPartition, &FROM);
    let (start, len) = (Bytes(start * SECTOR), Some(Bytes(len * SECTOR)));
    let part = Part {
        upper: Bytes(0),
        node: below,
        start,
        len,
    };
    builder.place(id, Placing::Parts { parts: vec![part] }, &FROM);
}

fn overlaps(builder: Builder) -> Vec<String> {
    builder
        .finish()
        .problems()
        .iter()
        .map(|problem| problem.text.clone())
        .collect()
}

/// A mirror of two slices, a soft partition on it, and one on a slice.
#[test]
fn a_slice_is_seen_through_a_mirror() {
    for (start, is_found) in [(1000, true), (1099, true), (1100, true), (1101, false)] {
        let mut builder = Builder::default();
        let slices = ["s0", "s1"].map(|name| builder.node(name));
        let mirror = builder.node("d10");
        let members = slices
            .map(|node| Member {
                node,
                start: Bytes(0),
            })
            .to_vec();
        builder.place(mirror, Placing::Copies { members }, &FROM);
        soft(&mut builder, "d11", mirror, (1000, 100));
        soft(&mut builder, "d12", slices[1], (start, 50));
        let found = overlaps(builder);
        assert_eq!(found.len(), usize::from(is_found), "{start}: {found:?}");
        if start == 1100 {
            let text = "d11 on d10 takes sectors 999 to 1,099 of s1, and d12 takes sectors 1,099 to 1,149 there, \
                        headers included";
            assert_eq!(found, [text]);
        }
    }
}

/// Layers above a soft partition are not compared with it; extents beside it are compared with it alone.
#[test]
fn a_soft_partition_contains_its_layers() {
    let mut builder = Builder::default();
    let slice = builder.node("s0");
    soft(&mut builder, "d11", slice, (100, 100));
    soft(&mut builder, "d12", slice, (150, 100));
    let (d11, mirror) = (builder.node("d11"), builder.node("d20"));
    let members = vec![Member {
        node: d11,
        start: Bytes(0),
    }];
    builder.place(mirror, Placing::Copies { members }, &FROM);
    soft(&mut builder, "d21", mirror, (10, 90));
    let found = overlaps(builder);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("d11 takes sectors 100 to 199 of s0, and d12 begins"),
        "{found:?}"
    );
}

/// Neighbours on RAID 5 share the parity of a stripe, and no byte.
#[test]
fn parity_is_shared_by_design() {
    for (first, len, is_found) in [(9, 1, false), (17, 31, true), (1, 15, false)] {
        let mut builder = Builder::default();
        let slices = ["s0", "s1", "s2"].map(|name| builder.node(name));
        let raid = stripe(&mut builder, "d10", &slices, 8 * SECTOR, 1);
        soft(&mut builder, "d11", raid, (first, len));
        soft(&mut builder, "d12", raid, (first + len + 1, 4));
        // Sectors 16 to 23 of a member are those of the stripe that begins at sector 32.
        soft(&mut builder, "d13", slices[2], (20, 2));
        let found = overlaps(builder);
        assert_eq!(found.len(), usize::from(is_found), "{first}: {found:?}");
    }
}

/// Subdisks have no header: one may begin where another ends.
#[test]
fn subdisks_are_side_by_side() {
    for (start, is_found) in [(200, false), (199, true)] {
        let mut builder = Builder::default();
        let disk = builder.node("dg/disk01");
        soft(&mut builder, "dg/disk01-01", disk, (100, 100));
        soft(&mut builder, "dg/disk01-02", disk, (start, 100));
        for name in ["dg/disk01-01", "dg/disk01-02"] {
            let id = builder.node(name);
            builder.fact(id, keys::MANAGER, "vxvm", &FROM);
        }
        assert_eq!(overlaps(builder).len(), usize::from(is_found), "{start}");
    }
}

proptest! {
    /// Against laying every sector by hand: a soft partition on a stripe and one on a member share a sector, or do not.
    #[test]
    fn stripes_are_followed_sector_by_sector(
        members in 1_u64..5, chunk in 1_u64..9,
        upper in (1_u64..100, 1_u64..40), lower in (1_u64..60, 1_u64..20), which in any::<prop::sample::Index>(),
    ) {
        let which = which.index(members as usize) as u64;
        let mut builder = Builder::default();
        let disks: Vec<NodeId> = (0..members).map(|number| builder.node(&format!("s{number}"))).collect();
        let on = stripe(&mut builder, "d10", &disks, chunk * SECTOR, 0);
        soft(&mut builder, "d11", on, upper);
        soft(&mut builder, "d12", disks[which as usize], lower);
        let laid: BTreeSet<(u64, u64)> = (upper.0 - 1..upper.0 + upper.1)
            .map(|sector| (sector / chunk % members, sector / chunk / members * chunk + sector % chunk))
            .collect();
        let is_shared = (lower.0 - 1..lower.0 + lower.1).any(|sector| laid.contains(&(which, sector)));
        prop_assert_eq!(overlaps(builder).len(), usize::from(is_shared));
    }

    /// Against holding each run against all before it.
    #[test]
    fn two_runs_are_enough_to_keep(mut runs in prop::collection::vec((0_u64..60, 0_u64..20, 0_u32..4), 1..20)) {
        runs.sort_unstable();
        let runs: Vec<OccupiedRange> = runs.iter().enumerate().map(|(at, (start, len, component))| {
            let (owner, component) = (NodeId(at as u32), NodeId(*component));
            let extent = Extent { start: *start, end: start + len, owner, component, has_header: false };
            OccupiedRange { start: *start, end: start + len, extent }
        }).collect();
        let is_asked = |one: &Extent, other: &Extent| one.component != other.component;
        let found: Vec<NodeId> = pairs(&runs, is_asked).iter().map(|(_, other)| other.extent.owner).collect();
        let meets = |at: &usize| runs[..*at].iter().any(|before| {
            is_asked(&before.extent, &runs[*at].extent) && runs[*at].start < before.end
        });
        let expected: Vec<NodeId> =
            (0..runs.len()).filter(meets).map(|at| runs[at].extent.owner).collect();
        prop_assert_eq!(found, expected);
    }
}
