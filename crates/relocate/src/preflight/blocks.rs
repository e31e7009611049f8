//! The blocks that a move writes, and whether a disk still has them when it goes on: an adapter, or the server of a disk, may
//! state others.

use plumb_geometry::Grid;
use plumb_sys::Limits;

use crate::Unit;
use crate::moving::UNIT_BYTES_MIN;

/// The longest unit of a drive or an array that is written as a whole: with longer ones most neighbours would share a
/// block with the moved partition, and could not be used in the meantime.
const UNIT_BYTES_MAX: u64 = 64 << 10;

/// Physical blocks, as the kernel states them.
#[must_use]
pub fn stated(limits: Limits) -> Unit {
    let bytes = u64::from(limits.physical_block_bytes).max(1);
    Unit {
        bytes,
        offset: u64::try_from(limits.alignment_offset_bytes).unwrap_or(0) % bytes,
    }
}

/// The unit of a move's writes on a disk of such blocks: the longest known unit of the layers below, else the blocks
/// themselves, at least 4 KiB. Pieces of a file may start anywhere in long units: different ones are no grid of the
/// disk.
#[must_use]
pub fn written(block: Unit, known: &[Grid]) -> Unit {
    let unit_of = |grid: &Grid| Unit {
        bytes: grid.granularity().0,
        offset: grid.offset().0,
    };
    let known: Vec<Unit> = known.iter().map(unit_of).collect();
    let own = Unit {
        bytes: block.bytes.max(UNIT_BYTES_MIN),
        offset: block.offset,
    };
    let is_one = |unit: &&Unit| {
        let is_alone = known
            .iter()
            .all(|other| other.bytes != unit.bytes || other.offset == unit.offset);
        is_alone && (own.bytes..=UNIT_BYTES_MAX).contains(&unit.bytes) && makes_up(block, **unit)
    };
    known
        .iter()
        .filter(is_one)
        .max_by_key(|unit| unit.bytes)
        .copied()
        .unwrap_or(own)
}

/// Checks that no block which the disk states now reaches beyond a unit of the move: a torn write could destroy data
/// there.
///
/// # Errors
/// The blocks that it states.
pub fn must_make_up(unit: Unit, limits: Limits) -> Result<(), Unit> {
    let stated = stated(limits);
    match makes_up(stated, unit) {
        true => Ok(()),
        false => Err(stated),
    }
}

/// Whether whole blocks of one kind make up each of the other.
fn makes_up(block: Unit, unit: Unit) -> bool {
    unit.bytes.is_multiple_of(block.bytes) && unit.offset % block.bytes == block.offset
}

#[cfg(test)]
mod tests {
    use plumb_geometry::{Bytes, GridKind};

    use super::*;

    /// Against every block of the disk's beginning, one by one.
    #[test]
    fn no_block_reaches_over_a_boundary_of_units() {
        let grids = [
            (512, 0),
            (4096, 0),
            (4096, 3584),
            (8192, 0),
            (8192, 4096),
            (16_384, 0),
            (16_384, 3584),
        ];
        let grids = grids.map(|(bytes, offset)| Unit { bytes, offset });
        let boundaries = |unit: Unit| (0..16).map(move |number| unit.offset + number * unit.bytes);
        for unit in grids.iter().filter(|unit| unit.bytes >= 4096) {
            for block in grids {
                let is_cut = boundaries(*unit).any(|at| {
                    at >= block.offset && !(at - block.offset).is_multiple_of(block.bytes)
                        || at < block.offset && !(block.offset - at).is_multiple_of(block.bytes)
                });
                assert_eq!(makes_up(block, *unit), !is_cut, "{block:?} in {unit:?}");
            }
        }
    }

    #[test]
    fn the_longest_known_unit_is_written() {
        let unit = |bytes, offset| Unit { bytes, offset };
        let grid =
            |bytes, offset| Grid::new(Bytes(bytes), Bytes(offset), GridKind::Unit).expect("a grid");
        for (block, known, written_whole) in [
            (unit(512, 0), vec![], unit(4096, 0)),
            (unit(4096, 3584), vec![], unit(4096, 3584)),
            (unit(16_384, 0), vec![], unit(16_384, 0)),
            // A file of a disk whose partition is off: its blocks do not begin where the loop device does.
            (
                unit(512, 0),
                vec![grid(512, 0), grid(4096, 1024)],
                unit(4096, 1024),
            ),
            // NVMe drives that map flash in 16 KiB, and state blocks of 4.
            (
                unit(4096, 0),
                vec![grid(4096, 0), grid(16_384, 0)],
                unit(16_384, 0),
            ),
            // An array's unit of 48 KiB is whole blocks too; other or too long units are left out.
            (
                unit(4096, 0),
                vec![grid(49_152, 0), grid(16_384, 512), grid(1 << 20, 0)],
                unit(49_152, 0),
            ),
            (
                unit(4096, 0),
                vec![grid(16_384, 0), grid(16_384, 4096)],
                unit(4096, 0),
            ),
        ] {
            assert_eq!(written(block, &known), written_whole, "{block:?} {known:?}");
        }
    }
}
