//! I/O by io_uring: one target, known to the kernel beforehand as the memory is, many I/O a call, no allocation for any.
//!
//! A ring belongs to the thread that made it: the kernel then needs no locks, and delivers completions on request.
//! Older kernels work without that.

use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{Builder, IoUring, opcode, squeue};
use rustix::io::Errno;

use crate::io_target::IoTarget;
use crate::memory::{Memory, MemoryShape};

/// For how long a ring that goes away waits for I/O in flight.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// An I/O that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The slot that it had.
    pub slot: u32,
    /// Bytes that were moved, or why none were.
    pub result: Result<u32, Errno>,
}

/// The state of a slot. One I/O at a time uses a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Free,
    Busy,
    /// Sent again, by a thread of the kernel's that may wait.
    Waiting,
}

/// A ring of the kernel's, with the memory that its I/O go through.
pub struct Ring {
    ring: IoUring,
    /// Given back only when nothing is in flight: the kernel writes into it until then.
    memory: ManuallyDrop<Memory>,
    slots: Vec<Slot>,
    /// The last entry of each slot.
    entries: Vec<Option<squeue::Entry>>,
    /// Slots that are to be sent again, with room for all of them.
    again: Vec<u32>,
    in_flight: u32,
    has_fixed_buffers: bool,
    has_timeouts: bool,
    /// Not to be sent to another thread.
    of_one_thread: PhantomData<*const ()>,
}

impl Ring {
    /// Makes a ring for I/O to one target.
    ///
    /// # Errors
    /// When the kernel refuses, or there is no memory.
    pub fn new(target: &IoTarget, shape: MemoryShape) -> Result<Ring, Errno> {
        let memory = ManuallyDrop::new(Memory::new(shape).ok_or(Errno::NOMEM)?);
        let made = build(shape.slots.max(1)).and_then(|ring| {
            ring.submitter()
                .register_files(&[target.as_fd().as_raw_fd()])
                .map_err(errno_of)?;
            Ok(ring)
        });
        let ring = match made {
            Ok(ring) => ring,
            Err(errno) => {
                drop(ManuallyDrop::into_inner(memory));
                return Err(errno);
            }
        };
        let has_fixed_buffers = register(&ring, &memory);
        let has_timeouts = ring.params().is_feature_ext_arg();
        Ok(Ring {
            slots: vec![Slot::Free; memory.slots()],
            entries: vec![None; memory.slots()],
            again: Vec::with_capacity(memory.slots()),
            ring,
            memory,
            in_flight: 0,
            has_fixed_buffers,
            has_timeouts,
            of_one_thread: PhantomData,
        })
    }

    /// Whether the kernel has registered the memory; it has not if more would be locked than this user may lock.
    #[must_use]
    pub fn has_fixed_buffers(&self) -> bool {
        self.has_fixed_buffers
    }

    /// I/O that were queued and have not been taken back.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Queues a read into a slot.
    ///
    /// # Panics
    /// When the slot is busy, or the length beyond it.
    #[inline]
    pub fn queue_read(&mut self, slot: u32, start: u64, len_bytes: u32) {
        let to = self.memory.slot(slot, len_bytes).as_ptr();
        let entry = match self.has_fixed_buffers {
            true => opcode::ReadFixed::new(Fixed(0), to, len_bytes, 0)
                .offset(start)
                .build(),
            false => opcode::Read::new(Fixed(0), to, len_bytes)
                .offset(start)
                .build(),
        };
        self.push(slot, entry);
    }

    /// Queues a write of the content of its slot.
    ///
    /// # Panics
    /// When the slot is busy, or the length beyond it.
    #[inline]
    pub fn queue_write_of_slot(&mut self, slot: u32, start: u64, len_bytes: u32) {
        let from = self.memory.slot(slot, len_bytes).as_ptr();
        self.push_write(slot, from, start, len_bytes);
    }

    /// Queues a write of noise.
    ///
    /// # Panics
    /// When the slot is busy, the length beyond it, or the memory was made without noise.
    #[inline]
    pub fn queue_write_of_noise(&mut self, slot: u32, start: u64, len_bytes: u32) {
        let from = self.memory.noise(len_bytes).as_ptr();
        self.push_write(slot, from, start, len_bytes);
    }

    fn push_write(&mut self, slot: u32, from: *const u8, start: u64, len_bytes: u32) {
        let entry = match self.has_fixed_buffers {
            true => opcode::WriteFixed::new(Fixed(0), from, len_bytes, 0)
                .offset(start)
                .build(),
            false => opcode::Write::new(Fixed(0), from, len_bytes)
                .offset(start)
                .build(),
        };
        self.push(slot, entry);
    }

    /// Queues a flush of the target's caches.
    ///
    /// # Panics
    /// When the slot is busy.
    pub fn queue_fsync(&mut self, slot: u32) {
        self.push(slot, opcode::Fsync::new(Fixed(0)).build());
    }

    #[inline]
    fn push(&mut self, slot: u32, entry: squeue::Entry) {
        let state = &mut self.slots[slot as usize];
        assert!(*state == Slot::Free, "an I/O in a slot that is busy");
        *state = Slot::Busy;
        self.in_flight += 1;
        let entry = entry.user_data(u64::from(slot));
        self.entries[slot as usize] = Some(entry.clone());
        self.hand_over(&entry);
    }

    #[inline]
    fn hand_over(&mut self, entry: &squeue::Entry) {
        // SAFETY: the memory of the entry is a slot, which no other I/O has until this one is reaped, or noise, which nobody
        // changes; both live until nothing is in flight.
        let pushed = unsafe { self.ring.submission().push(entry) };
        assert!(pushed.is_ok(), "the ring has an entry for each slot");
    }

    /// Sends those again that the kernel could not send without waiting, by a thread of its own that may wait. The
    /// kernel does so by itself except for I/O that a mapped device has split, if one part found no tag at the disk
    /// (`io_rw_should_reissue` of io_uring/rw.c gives up if that part ends in an interrupt).
    fn send_again(&mut self) {
        while let Some(slot) = self.again.pop() {
            if let Some(entry) = self.entries[slot as usize].clone() {
                self.slots[slot as usize] = Slot::Waiting;
                self.hand_over(&entry.flags(squeue::Flags::ASYNC));
            }
        }
    }

    /// Submits the queue, and waits for a number of completions, or for a time.
    ///
    /// # Errors
    /// When the kernel takes nothing at all. That time is over, a signal came, or it is busy, is none.
    pub fn submit(&mut self, wait_for: u32, timeout: Option<Duration>) -> Result<(), Errno> {
        let waits_for_all = wait_for >= self.in_flight;
        let wait_for = wait_for.min(self.in_flight) as usize;
        if waits_for_all && !self.ring.submission().is_empty() {
            // One call that submits and waits puts this thread to sleep at once, and a wake-up takes longer than an I/O to
            // memory. Such an I/O ends before the second call, which then does not sleep. With other I/O in flight the
            // thread seldom sleeps, and one call is faster.
            accepted(self.ring.submitter().submit())?;
        }
        let submitted = match timeout.filter(|_| wait_for > 0 && self.has_timeouts) {
            Some(timeout) => {
                let at = Timespec::new()
                    .sec(timeout.as_secs())
                    .nsec(timeout.subsec_nanos());
                let args = SubmitArgs::new().timespec(&at);
                self.ring.submitter().submit_with_args(wait_for, &args)
            }
            None => self.ring.submitter().submit_and_wait(wait_for),
        };
        accepted(submitted)
    }

    /// Returns the completed I/O.
    #[inline]
    pub fn reap(&mut self, mut each: impl FnMut(Completion)) {
        for entry in self.ring.completion() {
            // An entry that this ring queued itself.
            let slot = entry.user_data() as u32;
            let result = entry.result();
            let result =
                u32::try_from(result).map_err(|_| Errno::from_raw_os_error(result.wrapping_neg()));
            if result == Err(Errno::AGAIN) && self.slots[slot as usize] == Slot::Busy {
                self.again.push(slot);
                continue;
            }
            self.slots[slot as usize] = Slot::Free;
            self.in_flight -= 1;
            each(Completion { slot, result });
        }
        self.send_again();
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let until = Instant::now() + LAST_WAIT;
        while self.in_flight > 0 && Instant::now() < until {
            if self.submit(1, Some(Duration::from_millis(100))).is_err() {
                break;
            }
            self.reap(|_| ());
        }
        if self.in_flight == 0 {
            // SAFETY: nothing is in flight, and the memory is not used again.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
        // Else it is left to the kernel, which may still write into it.
    }
}

/// Tells the kernel the memory; whether it took it.
fn register(ring: &IoUring, memory: &Memory) -> bool {
    let (base, len) = memory.whole();
    // SAFETY: the memory is initialized, and nobody looks at it through this slice.
    let whole = unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), len) };
    let vectors = [io::IoSliceMut::new(whole)];
    // SAFETY: IoSliceMut is laid out as an iovec is. The memory outlives the ring's last I/O, see `Ring::drop`.
    unsafe {
        let vectors = std::slice::from_raw_parts(vectors.as_ptr().cast(), vectors.len());
        ring.submitter().register_buffers(vectors).is_ok()
    }
}

/// A ring as good as this kernel makes them: the flags are of Linux 6.6, 6.1, 5.19 and 5.1.
fn build(entries: u32) -> Result<IoUring, Errno> {
    let best: [fn(&mut Builder); 4] = [
        |ring| {
            ring.setup_single_issuer()
                .setup_defer_taskrun()
                .setup_submit_all()
                .setup_no_sqarray();
        },
        |ring| {
            ring.setup_single_issuer()
                .setup_defer_taskrun()
                .setup_submit_all();
        },
        |ring| {
            ring.setup_coop_taskrun().setup_submit_all();
        },
        |_| (),
    ];
    let mut refused = Errno::INVAL;
    for flags in best {
        let mut builder = IoUring::builder();
        flags(&mut builder);
        match builder.build(entries) {
            Ok(ring) => return Ok(ring),
            Err(error) => refused = errno_of(error),
        }
        if refused != Errno::INVAL {
            break;
        }
    }
    Err(refused)
}

/// Whether the kernel took the call. Entries that it did not take stay in the queue, and go with the next call.
fn accepted(submitted: io::Result<usize>) -> Result<(), Errno> {
    match submitted.map_err(errno_of) {
        Ok(_) | Err(Errno::TIME | Errno::INTR | Errno::AGAIN | Errno::BUSY) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn errno_of(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
