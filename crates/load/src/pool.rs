//! Blocking I/O, a thread for each slot, behind the same interface as a ring: for one thread that sends many I/O if the
//! kernel refuses io_uring.

use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plumb_sys::{Blocking, Completion, Errno, IoTarget, MemoryShape};

use crate::engine::Engine;

/// A command for a thread.
#[derive(Clone, Copy)]
enum Call {
    Read { start: u64, len_bytes: u32 },
    WriteNoise { start: u64, len_bytes: u32 },
    WriteSlot { start: u64, len_bytes: u32 },
    Flush,
}

/// Threads that wait in the place of one.
pub(crate) struct Pool {
    calls: Vec<SyncSender<Call>>,
    done: Receiver<Completion>,
    ready: Vec<Completion>,
    in_flight: u32,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    fn call(&mut self, slot: u32, call: Call) {
        // The thread lives until the pool goes, and a slot has one call at a time.
        let taken = self.calls[slot as usize].try_send(call);
        assert!(taken.is_ok(), "an I/O in a slot that is busy");
        self.in_flight += 1;
    }
}

impl Engine for Pool {
    fn new(target: &IoTarget, shape: MemoryShape) -> Result<Pool, Errno> {
        let (ended, done) = channel();
        let mut pool = Pool {
            calls: Vec::new(),
            done,
            ready: Vec::new(),
            in_flight: 0,
            threads: Vec::new(),
        };
        for slot in 0..shape.slots {
            let blocking = Blocking::new(target, shape)?;
            let (calls, taken) = sync_channel(1);
            let ended = ended.clone();
            let work = move || {
                serve(slot, blocking, &taken, |completion| {
                    // Nobody takes it any more when the pool has gone.
                    let _ = ended.send(completion);
                });
            };
            let thread = std::thread::Builder::new().spawn(work);
            pool.threads.push(
                thread.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN))?,
            );
            pool.calls.push(calls);
        }
        Ok(pool)
    }

    fn has_fixed_buffers(&self) -> bool {
        false
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }

    fn queue_read(&mut self, slot: u32, start: u64, len_bytes: u32) {
        self.call(slot, Call::Read { start, len_bytes });
    }

    fn queue_write_of_noise(&mut self, slot: u32, start: u64, len_bytes: u32) {
        self.call(slot, Call::WriteNoise { start, len_bytes });
    }

    fn queue_write_of_slot(&mut self, slot: u32, start: u64, len_bytes: u32) {
        self.call(slot, Call::WriteSlot { start, len_bytes });
    }

    fn queue_flush(&mut self, slot: u32) {
        self.call(slot, Call::Flush);
    }

    fn submit(&mut self, wait_for: u32, timeout: Duration) -> Result<(), Errno> {
        let until = Instant::now() + timeout;
        let wait_for = wait_for.min(self.in_flight) as usize;
        self.ready.extend(self.done.try_iter());
        while self.ready.len() < wait_for {
            let left = until.saturating_duration_since(Instant::now());
            match self.done.recv_timeout(left) {
                Ok(completion) => self.ready.push(completion),
                Err(_) => break,
            }
        }
        Ok(())
    }

    fn reap(&mut self, each: impl FnMut(Completion)) {
        self.ready.extend(self.done.try_iter());
        self.in_flight -= self.ready.len() as u32;
        self.ready.drain(..).for_each(each);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.calls.clear();
        // A call that never ends would keep its thread, and every thread that waits for it.
        if self.in_flight == 0 {
            for thread in self.threads.drain(..) {
                let _ = thread.join();
            }
        }
    }
}

/// Does one call after the other until no more come.
fn serve(
    slot: u32,
    mut blocking: Blocking,
    calls: &Receiver<Call>,
    mut tell: impl FnMut(Completion),
) {
    for call in calls {
        match call {
            Call::Read { start, len_bytes } => blocking.queue_read(start, len_bytes),
            Call::WriteNoise { start, len_bytes } => blocking.queue_write(start, len_bytes, true),
            Call::WriteSlot { start, len_bytes } => blocking.queue_write(start, len_bytes, false),
            Call::Flush => blocking.queue_fsync(),
        }
        blocking.submit();
        blocking.reap(|completion| tell(Completion { slot, ..completion }));
    }
}
