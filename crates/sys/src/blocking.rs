//! Blocking I/O: one in flight, for kernels that refuse io_uring. It has the interface of a ring.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use crate::io_target::IoTarget;
use crate::memory::{Memory, MemoryShape};
use crate::ring::Completion;

/// One I/O at a time through its own memory.
pub struct Blocking {
    fd: OwnedFd,
    memory: Memory,
    queued: Option<Queued>,
    done: Option<Completion>,
}

/// An I/O in the queue.
#[derive(Clone, Copy)]
enum Queued {
    Read {
        start: u64,
        len_bytes: u32,
    },
    Write {
        start: u64,
        len_bytes: u32,
        is_noise: bool,
    },
    Fsync,
}

impl Blocking {
    /// Makes ready for I/O to one target; of the slots there is one.
    ///
    /// # Errors
    /// When there are no more files or memory.
    pub fn new(target: &IoTarget, shape: MemoryShape) -> Result<Blocking, Errno> {
        let memory = Memory::new(MemoryShape { slots: 1, ..shape }).ok_or(Errno::NOMEM)?;
        let fd = rustix::io::fcntl_dupfd_cloexec(target.as_fd(), 0)?;
        Ok(Blocking {
            fd,
            memory,
            queued: None,
            done: None,
        })
    }

    /// 1 between the queueing of an I/O and its being taken back.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        u32::from(self.queued.is_some() || self.done.is_some())
    }

    /// Queues a read.
    ///
    /// # Panics
    /// When an I/O is in flight, or the length beyond the memory.
    pub fn queue_read(&mut self, start: u64, len_bytes: u32) {
        self.queue(Queued::Read { start, len_bytes });
    }

    /// Queues a write: of noise, or of the bytes read last.
    ///
    /// # Panics
    /// When an I/O is in flight, or the length beyond the memory.
    pub fn queue_write(&mut self, start: u64, len_bytes: u32, is_noise: bool) {
        self.queue(Queued::Write {
            start,
            len_bytes,
            is_noise,
        });
    }

    /// Queues a flush of the target's caches.
    ///
    /// # Panics
    /// When an I/O is in flight.
    pub fn queue_fsync(&mut self) {
        self.queue(Queued::Fsync);
    }

    fn queue(&mut self, io: Queued) {
        assert!(
            self.in_flight() == 0,
            "an I/O while another one is in flight"
        );
        self.queued = Some(io);
    }

    /// Does the queued I/O.
    pub fn submit(&mut self) {
        let Some(queued) = self.queued.take() else {
            return;
        };
        let moved = match queued {
            Queued::Read { start, len_bytes } => {
                rustix::io::pread(&self.fd, self.memory.slot_mut(len_bytes), start)
            }
            Queued::Write {
                start,
                len_bytes,
                is_noise: true,
            } => rustix::io::pwrite(&self.fd, self.memory.noise_bytes(len_bytes), start),
            Queued::Write {
                start,
                len_bytes,
                is_noise: false,
            } => rustix::io::pwrite(&self.fd, self.memory.slot_mut(len_bytes), start),
            Queued::Fsync => rustix::fs::fsync(&self.fd).map(|()| 0),
        };
        let result = moved.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
        self.done = Some(Completion { slot: 0, result });
    }

    /// Returns the completed I/O.
    pub fn reap(&mut self, each: impl FnMut(Completion)) {
        self.done.take().into_iter().for_each(each);
    }
}
