//! The role of each disk in one stripe of a parity array: a chunk of data, or one of parity.
//!
//! From `raid5_compute_sector` in the kernel's `drivers/md/raid5.c`, and the layouts named in md(4).

use plumb_geometry::ParityLayout;

/// The roles of the disks in one stripe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Roles {
    disks: u32,
    parity: u32,
    /// The disk with the first parity chunk (P); the second (Q) is on the next disk, cyclically.
    first_parity: u32,
    symmetric: bool,
}

impl Roles {
    /// Roles in stripe number `stripe`, of `disks` disks with `parity` parity chunks (1 or 2, and
    /// less than `disks`).
    pub(super) fn in_stripe(layout: ParityLayout, disks: u32, parity: u32, stripe: u64) -> Self {
        use ParityLayout::{LeftAsymmetric, LeftSymmetric, RightAsymmetric, RightSymmetric};
        let turn = (stripe % u64::from(disks)) as u32;
        let first_parity = match layout {
            LeftAsymmetric | LeftSymmetric => disks - 1 - turn,
            RightAsymmetric | RightSymmetric => turn,
        };
        let symmetric = matches!(layout, LeftSymmetric | RightSymmetric);
        Self {
            disks,
            parity,
            first_parity,
            symmetric,
        }
    }

    /// The disks with parity, P before Q.
    pub(super) fn parity_disks(self) -> impl Iterator<Item = u32> {
        (0..self.parity).map(move |nth| (self.first_parity + nth) % self.disks)
    }

    /// The disk with data chunk number `data` of the stripe, which exists.
    pub(super) fn data_disk(self, data: u32) -> u32 {
        if self.symmetric {
            return (self.first_parity + self.parity + data) % self.disks;
        }
        // If RAID 6 has P on the last disk, Q wraps to disk 0 and precedes all data.
        let wrapped = (self.first_parity + self.parity).saturating_sub(self.disks);
        let shifted = data + wrapped;
        if shifted >= self.first_parity {
            shifted + self.parity
        } else {
            shifted
        }
    }

    /// The inverse: the data chunk of the stripe on `disk`, `None` for parity.
    pub(super) fn data_on(self, disk: u32) -> Option<u32> {
        // Counted from the first parity disk, parity comes first and data after it.
        let past_parity = (disk + self.disks - self.first_parity) % self.disks;
        let symmetric = past_parity.checked_sub(self.parity)?;
        if self.symmetric {
            return Some(symmetric);
        }
        let skipped = self.parity_disks().filter(|&parity| parity < disk).count() as u32;
        Some(disk - skipped)
    }
}
