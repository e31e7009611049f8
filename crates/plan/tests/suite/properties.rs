//! Planned starts against a search through every sector.

use plumb_geometry::{Bytes, Grid, GridKind, SECTOR};
use plumb_plan::partition::{LabelScheme, PartitionRequest, layout};
use plumb_plan::softpart::{self, SoftPartition, place};
use plumb_plan::{PlanError, partition};
use proptest::prelude::*;

fn grids() -> impl Strategy<Value = Vec<Grid>> {
    // Grids with their own offsets seldom meet, and only if they meet there is a start to check.
    let offset = prop_oneof![3 => Just(0), 1 => 0_u64..64];
    let one = (0_u32..8, 1_u64..4, offset).prop_map(|(power, odd, offset)| {
        let granularity = (odd << power) * SECTOR;
        Grid::new(
            Bytes(granularity),
            Bytes(offset * SECTOR % granularity),
            GridKind::Unit,
        )
        .expect("a grid")
    });
    prop::collection::vec(one, 1..3)
}

fn labels() -> impl Strategy<Value = LabelScheme> {
    prop_oneof![
        Just(LabelScheme::Gpt),
        Just(LabelScheme::Dos),
        Just(LabelScheme::SolarisEfi),
        (1_u64..300).prop_map(|cylinder_sectors| LabelScheme::Smi { cylinder_sectors }),
        (1_u64..300, 0_u64..500).prop_map(|(cylinder_sectors, at)| LabelScheme::SmiX86 {
            cylinder_sectors,
            fdisk_start: Bytes(at * SECTOR)
        }),
    ]
}

prop_compose! {
    fn requests()(
        grids in grids(),
        label in labels(),
        sector_bytes in prop_oneof![Just(512_u64), Just(4096)],
        disk in prop::option::of(20_000_u64..60_000),
        after in prop_oneof![Just(0), 0_u64..4_000],
        before in prop::option::of(1_000_u64..50_000),
        size in prop::option::of(1_u64..4_000),
        current in prop::option::of(0_u64..4_000),
    ) -> PartitionRequest {
        let is_old = matches!(label, LabelScheme::Smi { .. } | LabelScheme::SmiX86 { .. });
        PartitionRequest {
            device: "/dev/sdb".to_owned(),
            label,
            is_new_label: false,
            sector_bytes: if is_old { 512 } else { sector_bytes },
            disk_bytes: disk.map(|sectors| Bytes(sectors * SECTOR)),
            grids,
            are_grids_assumed: false,
            after: Bytes(after * SECTOR),
            before: before.map(|sectors| Bytes(sectors * SECTOR)),
            size: size.map(|sectors| Bytes(sectors * SECTOR)),
            number: 1,
            current: current.map(|blocks| Bytes(blocks * if is_old { 512 } else { sector_bytes })),
            content: None,
            file_system: None,
            reserved_from: None,
            smaller_by: None,
        }
    }
}

/// First sector that data may take, as the descriptions of the labels have it.
fn first(request: &PartitionRequest) -> u64 {
    let block = request.sector_bytes / SECTOR;
    let of_label = match request.label {
        LabelScheme::Gpt | LabelScheme::SolarisEfi => {
            if block == 1 {
                34
            } else {
                6 * 8
            }
        }
        LabelScheme::Dos => 63 * block,
        LabelScheme::Smi { cylinder_sectors } => cylinder_sectors,
        LabelScheme::SmiX86 {
            cylinder_sectors,
            fdisk_start,
        } => fdisk_start.0 / SECTOR + 3 * cylinder_sectors,
    };
    of_label.max(request.after.0 / SECTOR)
}

/// Whether a sector is on all grids, and one that the label can name.
fn will_do(request: &PartitionRequest, sector: u64) -> bool {
    let on_grids = request
        .grids
        .iter()
        .all(|grid| grid.past_boundary(Bytes(sector * SECTOR)) == Bytes(0));
    let nameable = match request.label {
        LabelScheme::Smi { cylinder_sectors } => sector.is_multiple_of(cylinder_sectors),
        LabelScheme::SmiX86 {
            cylinder_sectors,
            fdisk_start,
        } => sector
            .checked_sub(fdisk_start.0 / SECTOR)
            .is_some_and(|past| past.is_multiple_of(cylinder_sectors)),
        _ => sector.is_multiple_of(request.sector_bytes / SECTOR),
    };
    on_grids && nameable
}

/// First sector behind the data, as the descriptions of the labels have it.
fn end(request: &PartitionRequest) -> Option<u64> {
    let block = request.sector_bytes / SECTOR;
    let tail = match request.label {
        LabelScheme::Gpt => {
            if block == 1 {
                33
            } else {
                5 * 8
            }
        }
        LabelScheme::SolarisEfi => (if block == 1 { 33 } else { 5 * 8 }) + 16_384,
        _ => 0,
    };
    let disk = request
        .disk_bytes
        .map(|disk| disk.0 / SECTOR / block * block - tail);
    [disk, request.before.map(|before| before.0 / SECTOR)]
        .into_iter()
        .flatten()
        .min()
}

/// The period of every combination above: grids and blocks divide 768 sectors, and a cylinder has at most 300.
const FAR: u64 = 768 * 300;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn a_start_is_on_all_grids_the_smallest_and_within_limits(request in requests()) {
        let searched = (first(&request)..first(&request) + FAR).find(|sector| will_do(&request, *sector));
        match layout(&request) {
            Ok(layout) => {
                let start = layout.start.0 / SECTOR;
                prop_assert_eq!(Some(start), searched);
                let len = layout.len.map(|len| len.0 / SECTOR);
                prop_assert!(len.is_none_or(|len| len > 0));
                if let Some(end) = end(&request) {
                    prop_assert!(start + len.unwrap_or(1) <= end, "{start} + {len:?} in {end}");
                }
                if let (Some(size), Some(len)) = (request.size, len) {
                    prop_assert!(len * SECTOR >= size.0);
                }
            }
            Err(PlanError::NoCommonBoundary { .. }) => prop_assert_eq!(searched, None),
            Err(PlanError::NoRoom { needed, .. }) => {
                let end = end(&request).expect("only an end leaves no room");
                let start = searched.expect("there is a start");
                prop_assert!(start + needed.0 / SECTOR > end);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
        // A plan says something of every request that has a layout or becomes smaller a little, and never falls over.
        let fitted = partition::fitted(request.clone());
        prop_assert_eq!(partition::plan(&request).is_ok(), fitted.is_ok());
        if let (Ok(fitted), Err(_)) = (&fitted, layout(&request)) {
            let (size, by) = (fitted.size.expect("a length"), fitted.smaller_by.expect("smaller"));
            prop_assert!(by <= partition::SMALLER_MAX && Some(Bytes(size.0 + by.0)) == request.size);
            prop_assert!(layout(fitted).is_ok());
        }
    }

    #[test]
    fn soft_partitions_are_on_the_unit_apart_and_as_early_as_can_be(
        unit in 1_u64..300,
        base in 0_u64..1_000,
        sizes in prop::collection::vec((1_u64..500, 1_u64..900), 1..20),
    ) {
        let mut at = 0;
        let mut existing = Vec::new();
        for (number, (gap, size)) in sizes.iter().enumerate() {
            at += gap;
            existing.push(SoftPartition { name: format!("d{number}"), extents: vec![(at, *size)], mirror: None, users: Vec::new() });
            at += size;
        }
        let request = softpart::SoftpartRequest {
            component: "c1t0d0s0".to_owned(),
            unit: Bytes(unit * SECTOR),
            is_unit_assumed: false,
            off_below: None,
            base: Bytes(base * SECTOR),
            component_bytes: None,
            existing,
            new: vec![("dnew".to_owned(), Bytes(SECTOR))],
        };
        let placed = place(&request).expect("places");
        prop_assert_eq!(placed.len(), sizes.len() + 1);
        let mut free = 0;
        for one in &placed {
            let from = one.offset_now.unwrap_or(0).max(free + 1);
            let searched = (from..).find(|at| (base + at).is_multiple_of(unit));
            prop_assert_eq!(Some(one.offset), searched);
            free = one.offset + one.size;
        }
        prop_assert!(softpart::plan(&request).is_ok());
    }
}
