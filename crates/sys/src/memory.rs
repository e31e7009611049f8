//! Memory that I/O go into and come from: slots of one length, and a stretch of noise that writes are taken from.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// An alignment of memory that every device and file system accepts.
const ALIGN_BYTES: usize = 4096;

/// Noise beyond the longest write, so that writes differ.
const NOISE_BYTES: usize = 1 << 20;

/// How much memory I/O need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShape {
    /// I/O in flight at most, above 0.
    pub slots: u32,
    /// Length of the longest I/O, above 0.
    pub len_bytes_max: u32,
    /// Whether anything is written that was not read.
    pub has_noise: bool,
}

/// Slots and noise in one piece, each slot at a multiple of 4 KiB.
#[derive(Debug)]
pub(crate) struct Memory {
    base: NonNull<u8>,
    layout: Layout,
    slots: usize,
    slot_bytes: usize,
    len_bytes_max: usize,
    noise_bytes: usize,
    /// The position of the next write's data.
    noise_at: usize,
}

// SAFETY: the memory belongs to this value alone; nothing in it is tied to a thread.
unsafe impl Send for Memory {}

impl Memory {
    /// Takes memory for it; `None` where the lengths do not fit an address space.
    pub fn new(shape: MemoryShape) -> Option<Memory> {
        let len_bytes_max = shape.len_bytes_max as usize;
        let slot_bytes = len_bytes_max.checked_next_multiple_of(ALIGN_BYTES)?;
        let noise_bytes = if shape.has_noise {
            slot_bytes.checked_add(NOISE_BYTES)?
        } else {
            0
        };
        let slots = shape.slots as usize;
        let all = slots
            .checked_mul(slot_bytes)?
            .checked_add(noise_bytes)
            .filter(|&all| all > 0)?;
        let layout = Layout::from_size_align(all, ALIGN_BYTES).ok()?;
        // SAFETY: the layout's size is above 0.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else {
            handle_alloc_error(layout)
        };
        let mut memory = Memory {
            base,
            layout,
            slots,
            slot_bytes,
            len_bytes_max,
            noise_bytes,
            noise_at: 0,
        };
        memory.make_noise();
        Some(memory)
    }

    /// Fills the noise with incompressible data: a Weyl sequence through the mixer of SplitMix64.
    fn make_noise(&mut self) {
        let at = self.slots * self.slot_bytes;
        // SAFETY: the noise is behind the slots in memory that this value owns and that is initialized.
        let noise =
            unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(at), self.noise_bytes) };
        for (word, bytes) in noise.chunks_exact_mut(8).enumerate() {
            let mut mixed = (word as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bytes.copy_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
        }
    }

    /// All of it.
    pub fn whole(&self) -> (NonNull<u8>, usize) {
        (self.base, self.layout.size())
    }

    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The beginning of a slot.
    ///
    /// # Panics
    /// When there is no such slot, or it is shorter.
    #[inline]
    pub fn slot(&self, slot: u32, len_bytes: u32) -> NonNull<u8> {
        let slot = slot as usize;
        assert!(
            slot < self.slots && len_bytes as usize <= self.len_bytes_max,
            "an I/O beyond its memory"
        );
        // SAFETY: the slot is within the allocation.
        unsafe { self.base.add(slot * self.slot_bytes) }
    }

    /// The first slot as bytes, for I/O that end before the call returns.
    pub fn slot_mut(&mut self, len_bytes: u32) -> &mut [u8] {
        let at = self.slot(0, len_bytes);
        // SAFETY: `slot` has checked the length; the memory is initialized and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), len_bytes as usize) }
    }

    /// [`Memory::noise`] as bytes.
    pub fn noise_bytes(&mut self, len_bytes: u32) -> &[u8] {
        let at = self.noise(len_bytes);
        // SAFETY: `noise` has checked the length; the memory is initialized.
        unsafe { std::slice::from_raw_parts(at.as_ptr(), len_bytes as usize) }
    }

    /// Noise of this length, another piece each time.
    ///
    /// # Panics
    /// If there is no noise, or it is shorter.
    #[inline]
    pub fn noise(&mut self, len_bytes: u32) -> NonNull<u8> {
        let len_bytes = len_bytes as usize;
        assert!(
            self.noise_bytes > 0 && len_bytes <= self.len_bytes_max,
            "a write beyond its memory"
        );
        let at = self.noise_at;
        self.noise_at = if at + ALIGN_BYTES <= NOISE_BYTES {
            at + ALIGN_BYTES
        } else {
            0
        };
        // SAFETY: `at` is at most NOISE_BYTES, and the noise is longer than that by the longest length.
        unsafe { self.base.add(self.slots * self.slot_bytes + at) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: taken in `new` with this layout, and given back once.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_separate_and_aligned() {
        let memory = Memory::new(MemoryShape {
            slots: 3,
            len_bytes_max: 5000,
            has_noise: false,
        })
        .expect("small");
        let at = |slot| memory.slot(slot, 5000).as_ptr() as usize;
        assert_eq!(
            (at(0) % 4096, at(1) - at(0), at(2) - at(1)),
            (0, 8192, 8192)
        );
        assert_eq!(memory.whole().1, 3 * 8192);
    }

    #[test]
    fn noise_stays_inside_and_differs() {
        let mut memory = Memory::new(MemoryShape {
            slots: 1,
            len_bytes_max: 4096,
            has_noise: true,
        })
        .expect("small");
        let (base, all) = memory.whole();
        let mut firsts = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let piece = memory.noise(4096);
            let at = piece.as_ptr() as usize - base.as_ptr() as usize;
            assert!(at >= 4096 && at + 4096 <= all, "{at}");
            // SAFETY: just checked to be inside, and initialized.
            firsts.insert(unsafe { piece.cast::<u64>().read() });
        }
        assert_eq!(firsts.len(), 257);
    }

    #[test]
    #[should_panic(expected = "beyond its memory")]
    fn a_longer_io_is_refused() {
        let memory = Memory::new(MemoryShape {
            slots: 1,
            len_bytes_max: 512,
            has_noise: false,
        })
        .expect("small");
        memory.slot(0, 513);
    }

    #[test]
    fn sizes_beyond_the_address_space_are_refused() {
        let shape = MemoryShape {
            slots: 0,
            len_bytes_max: 0,
            has_noise: false,
        };
        assert!(Memory::new(shape).is_none());
    }
}
