//! Customary starts of partitions: multiples of 1 MiB, or just before them if a disk's physical blocks are shifted.

use plumb_geometry::{Bytes, Grid, GridKind};

const USUAL: u64 = 1 << 20;

/// The grid of customary starts. On a disk whose first aligned byte is not its first, it is shifted down by the
/// distance to the next physical block, as libfdisk does: with blocks of 4 KiB from 3,584 on it begins at sector 2,047.
/// An offset of -1, the kernel's error value, counts as none.
#[must_use]
pub fn usual_grid(physical_block: Bytes, alignment_offset_bytes: i32) -> Grid {
    let offset = u64::try_from(alignment_offset_bytes).unwrap_or(0);
    let short = if offset == 0 {
        0
    } else {
        physical_block.0.saturating_sub(offset) % USUAL
    };
    Grid::new(Bytes(USUAL), Bytes((USUAL - short) % USUAL), GridKind::Unit).unwrap_or(Grid::ASSUMED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meet::next_boundary;

    /// First starts behind a GPT; sfdisk 2.38 chose the second one on a disk made by `scsi_debug physblk_exp=3
    /// lowest_aligned=7`.
    #[test]
    fn first_starts() {
        for (physical, offset, sector) in [
            (512, 0, 2_048),
            (4_096, 3_584, 2_047),
            (4_096, 0, 2_048),
            (4_096, -1, 2_048),
            (4_096, 512, 2_041),
        ] {
            let start = next_boundary(&usual_grid(Bytes(physical), offset), Bytes(34 * 512));
            assert_eq!(
                start,
                Some(Bytes(sector * 512)),
                "{physical} from {offset} on"
            );
        }
    }
}
