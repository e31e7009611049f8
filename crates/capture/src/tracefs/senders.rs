//! The senders of I/O: events name the thread that queued a bio, and the position of that bio identifies the sender of
//! a request.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

use plumb_trace::pending::{IoKey, Recent};

use super::event::{Comm, Event};
use crate::filter::Filter;
use crate::reading::{ALIGNMENTS, SECTOR_POWER, alignment_of};

/// Processes on a disk; the kernel's programs have room for as many.
const PROCESSES_MAX: usize = 1 << 12;
/// Number of I/O in flight with a recorded thread.
const IN_FLIGHT_MAX: usize = 1 << 16;

/// The sender of a bio.
#[derive(Clone, Copy, Debug)]
pub(super) struct BioSender {
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) comm: Comm,
    /// The disk or partition that it used.
    pub(super) dev: u32,
    pub(super) is_wanted: bool,
}

/// The I/O of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    pub(super) comm: Comm,
    pub(super) ios: u64,
    pub(super) bytes: u64,
    pub(super) by_alignment: [u64; ALIGNMENTS],
    pub(super) threads: BTreeSet<u32>,
}

/// Processes of threads. Events name threads alone.
#[derive(Default)]
pub(super) struct Processes(HashMap<(u32, Comm), u32>);

impl Processes {
    /// Finds the process of a thread. A thread that has already ended counts as a process of its own.
    pub(super) fn find_or_read(&mut self, thread: u32, comm: Comm) -> u32 {
        *self
            .0
            .entry((thread, comm))
            .or_insert_with(|| process_of(thread).unwrap_or(thread))
    }

    /// Numbers may come to mean other threads.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))?
        .trim()
        .parse()
        .ok()
}

/// Senders of one disk.
#[derive(Default)]
pub(super) struct Senders {
    by_place: Recent<BioSender>,
    in_flight: HashMap<IoKey, InFlight>,
    sent: BTreeMap<(u32, u32), Sent>,
    /// I/O that were sent back, and have been counted.
    back: Recent<()>,
    of_unlisted_process: u64,
}

struct InFlight {
    dev_process: (u32, u32),
    thread: u32,
    since_ns: u64,
}

impl Senders {
    /// Records the sender of a bio.
    pub(super) fn queue(
        &mut self,
        event: &Event,
        filter: &Filter,
        processes: &mut Processes,
    ) -> BioSender {
        let process = processes.find_or_read(event.thread, event.comm);
        let is_wanted = filter.pid.is_none_or(|pid| pid == process)
            && filter
                .comm
                .as_deref()
                .is_none_or(|comm| is_called(event.comm, comm));
        let (thread, comm, dev) = (event.thread, event.comm, event.dev);
        let sender = BioSender {
            process,
            thread,
            comm,
            dev,
            is_wanted,
        };
        self.by_place.insert(IoKey::place(0, event.sector), sender);
        sender
    }

    /// The rest of a split bio has the same sender.
    pub(super) fn split(&mut self, sector: u64, rest_sector: u64) {
        if let Some(sender) = self.at(sector) {
            self.by_place.insert(IoKey::place(0, rest_sector), sender);
        }
    }

    /// The sender of the I/O at a sector; `None` if it is forgotten.
    pub(super) fn at(&self, sector: u64) -> Option<BioSender> {
        self.by_place.get(IoKey::place(0, sector)).copied()
    }

    /// Counts an I/O that begins.
    pub(super) fn begin(&mut self, event: &Event, sender: &BioSender) {
        let key = IoKey::place(0, event.sector);
        let is_again = self.back.remove(key).is_some();
        let dev_process = (sender.dev, sender.process);
        if self.sent.len() >= PROCESSES_MAX && !self.sent.contains_key(&dev_process) {
            self.of_unlisted_process += 1;
            return;
        }
        let sent = self.sent.entry(dev_process).or_default();
        sent.comm = sender.comm;
        if !is_again {
            sent.ios += 1;
            sent.bytes += event.len_bytes();
            sent.by_alignment[alignment_of(event.sector << SECTOR_POWER)] += 1;
        }
        if self.in_flight.len() < IN_FLIGHT_MAX {
            let in_flight = InFlight {
                dev_process,
                thread: sender.thread,
                since_ns: event.time_ns,
            };
            self.in_flight.insert(key, in_flight);
        }
    }

    /// An I/O went back to the queue, and will begin again.
    pub(super) fn back(&mut self, sector: u64) {
        self.back.insert(IoKey::place(0, sector), ());
    }

    pub(super) fn end(&mut self, sector: u64) {
        self.in_flight.remove(&IoKey::place(0, sector));
    }

    /// The I/O of each process on each disk or partition since the last call, and bios of processes without room.
    pub(super) fn take(&mut self, oldest_ns: u64) -> (BTreeMap<(u32, u32), Sent>, u64) {
        self.in_flight
            .retain(|_, in_flight| in_flight.since_ns >= oldest_ns);
        let mut sent = std::mem::take(&mut self.sent);
        for in_flight in self.in_flight.values() {
            if let Some(sent) = sent.get_mut(&in_flight.dev_process) {
                sent.threads.insert(in_flight.thread);
            }
        }
        sent.retain(|_, sent| sent.ios > 0);
        (sent, std::mem::take(&mut self.of_unlisted_process))
    }
}

/// The letters up to the first that is 0.
pub(super) fn comm_text(comm: Comm) -> String {
    let letters = comm.split(|&letter| letter == 0).next().unwrap_or(&[]);
    String::from_utf8_lossy(letters).into_owned()
}

/// As the kernel keeps it, cut to its maximum length.
fn is_called(comm: Comm, wanted: &str) -> bool {
    let kept = &wanted.as_bytes()[..wanted.len().min(comm.len() - 1)];
    comm.split(|&letter| letter == 0).next() == Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_compared_as_the_kernel_keeps_them() {
        let comm = |name: &str| {
            let mut comm = Comm::default();
            comm[..name.len()].copy_from_slice(name.as_bytes());
            comm
        };
        assert!(is_called(
            comm("a-command-longe"),
            "a-command-longer-than-that"
        ));
        assert!(is_called(comm("dd"), "dd"));
        assert!(!is_called(comm("dd"), "ddd"));
        assert!(!is_called(comm("ddd"), "dd"));
        assert_eq!(comm_text(comm("dd")), "dd");
    }

    #[test]
    fn threads_belong_to_their_process() {
        let here = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .cast_unsigned();
        let mut processes = Processes::default();
        assert_eq!(
            processes.find_or_read(here, Comm::default()),
            std::process::id()
        );
        assert_eq!(processes.find_or_read(u32::MAX, Comm::default()), u32::MAX);
    }
}
