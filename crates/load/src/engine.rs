//! I/O by a ring, or blocking I/O if the kernel refuses one, with one interface.

use std::time::Duration;

use plumb_sys::{Blocking, Completion, Errno, IoTarget, MemoryShape, Ring};

use crate::outcome::Means;

/// The wanted engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// A ring; blocking I/O if the kernel refuses it.
    #[default]
    Ring,
    /// Blocking I/O.
    Blocking,
}

impl EngineChoice {
    /// The means that this kernel offers, tested with a ring that is not used.
    pub(crate) fn found(self, target: &IoTarget) -> Means {
        let shape = MemoryShape {
            slots: 1,
            len_bytes_max: 1,
            has_noise: false,
        };
        match self {
            EngineChoice::Blocking => Means::Blocking { refused: None },
            EngineChoice::Ring => match Ring::new(target, shape) {
                Ok(ring) => Means::Ring {
                    has_fixed_buffers: ring.has_fixed_buffers(),
                },
                Err(refused) => Means::Blocking {
                    refused: Some(refused),
                },
            },
        }
    }
}

/// Makes I/O for one thread. Slots are numbers below its depth, which is 1 without a ring.
pub(crate) trait Engine: Sized {
    /// Makes ready for I/O to one target.
    fn new(target: &IoTarget, shape: MemoryShape) -> Result<Self, Errno>;

    /// Whether the kernel knows the memory of its I/O beforehand.
    fn has_fixed_buffers(&self) -> bool;

    /// I/O that were queued and have not been taken back.
    fn in_flight(&self) -> u32;

    /// Queues a read into a free slot.
    fn queue_read(&mut self, slot: u32, start: u64, len_bytes: u32);

    /// Queues a write of noise.
    fn queue_write_of_noise(&mut self, slot: u32, start: u64, len_bytes: u32);

    /// Queues a write of the content of a free slot.
    fn queue_write_of_slot(&mut self, slot: u32, start: u64, len_bytes: u32);

    /// Queues a flush of the target's caches into a free slot.
    fn queue_flush(&mut self, slot: u32);

    /// Submits the queue, and waits for a number of completions, or for a time.
    fn submit(&mut self, wait_for: u32, timeout: Duration) -> Result<(), Errno>;

    /// Returns the completed I/O.
    fn reap(&mut self, each: impl FnMut(Completion));
}

impl Engine for Ring {
    fn new(target: &IoTarget, shape: MemoryShape) -> Result<Ring, Errno> {
        Ring::new(target, shape)
    }

    fn has_fixed_buffers(&self) -> bool {
        Ring::has_fixed_buffers(self)
    }

    #[inline]
    fn in_flight(&self) -> u32 {
        Ring::in_flight(self)
    }

    #[inline]
    fn queue_read(&mut self, slot: u32, start: u64, len_bytes: u32) {
        Ring::queue_read(self, slot, start, len_bytes);
    }

    #[inline]
    fn queue_write_of_noise(&mut self, slot: u32, start: u64, len_bytes: u32) {
        Ring::queue_write_of_noise(self, slot, start, len_bytes);
    }

    #[inline]
    fn queue_write_of_slot(&mut self, slot: u32, start: u64, len_bytes: u32) {
        Ring::queue_write_of_slot(self, slot, start, len_bytes);
    }

    fn queue_flush(&mut self, slot: u32) {
        self.queue_fsync(slot);
    }

    #[inline]
    fn submit(&mut self, wait_for: u32, timeout: Duration) -> Result<(), Errno> {
        Ring::submit(self, wait_for, Some(timeout))
    }

    #[inline]
    fn reap(&mut self, each: impl FnMut(Completion)) {
        Ring::reap(self, each);
    }
}

impl Engine for Blocking {
    fn new(target: &IoTarget, shape: MemoryShape) -> Result<Blocking, Errno> {
        Blocking::new(target, shape)
    }

    fn has_fixed_buffers(&self) -> bool {
        false
    }

    fn in_flight(&self) -> u32 {
        Blocking::in_flight(self)
    }

    fn queue_read(&mut self, _: u32, start: u64, len_bytes: u32) {
        Blocking::queue_read(self, start, len_bytes);
    }

    fn queue_write_of_noise(&mut self, _: u32, start: u64, len_bytes: u32) {
        self.queue_write(start, len_bytes, true);
    }

    fn queue_write_of_slot(&mut self, _: u32, start: u64, len_bytes: u32) {
        self.queue_write(start, len_bytes, false);
    }

    fn queue_flush(&mut self, _: u32) {
        self.queue_fsync();
    }

    fn submit(&mut self, _: u32, _: Duration) -> Result<(), Errno> {
        Blocking::submit(self);
        Ok(())
    }

    fn reap(&mut self, each: impl FnMut(Completion)) {
        Blocking::reap(self, each);
    }
}
