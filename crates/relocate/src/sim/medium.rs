//! A simulated disk and a simulated journal file, with every write undone at will.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::disk::{Disk, JournalStore};

const PAGE: usize = 4096;

/// Bytes that are zero where nobody wrote; writes can be taken back to any mark.
#[derive(Default)]
pub(crate) struct Medium {
    pages: Vec<Option<Box<[u8; PAGE]>>>,
    /// Overwritten places and lengths, the last one last, with their old content.
    undo: Vec<(u64, usize)>,
    undo_bytes: Vec<u8>,
}

impl Medium {
    pub(crate) fn new(len: u64) -> Self {
        let pages = usize::try_from(len).expect("fits").div_ceil(PAGE);
        Self {
            pages: (0..pages).map(|_| None).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn read(&self, at: u64, buffer: &mut [u8]) {
        let mut at = at as usize;
        let mut rest = buffer;
        while !rest.is_empty() {
            let (page, start) = (at / PAGE, at % PAGE);
            let len = rest.len().min(PAGE - start);
            let (now, later) = rest.split_at_mut(len);
            match &self.pages[page] {
                Some(bytes) => now.copy_from_slice(&bytes[start..start + len]),
                None => now.fill(0),
            }
            (rest, at) = (later, at + len);
        }
    }

    pub(crate) fn write(&mut self, at: u64, bytes: &[u8]) {
        let old = self.undo_bytes.len();
        self.undo_bytes.resize(old + bytes.len(), 0);
        let mut saved = std::mem::take(&mut self.undo_bytes);
        self.read(at, &mut saved[old..]);
        self.undo_bytes = saved;
        self.undo.push((at, bytes.len()));
        self.put(at, bytes);
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        let mut at = at as usize;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (page, start) = (at / PAGE, at % PAGE);
            let len = rest.len().min(PAGE - start);
            let into = self.pages[page].get_or_insert_with(|| Box::new([0; PAGE]));
            into[start..start + len].copy_from_slice(&rest[..len]);
            (rest, at) = (&rest[len..], at + len);
        }
    }

    /// A point to come back to.
    pub(crate) fn mark(&self) -> usize {
        self.undo.len()
    }

    pub(crate) fn back_to(&mut self, mark: usize) {
        while self.undo.len() > mark {
            let (at, len) = self.undo.pop().expect("above the mark");
            let start = self.undo_bytes.len() - len;
            let old = self.undo_bytes.split_off(start);
            self.put(at, &old);
        }
    }
}

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Which {
    Disk,
    Journal,
}

/// A request to one of them.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Write {
        which: Which,
        at: u64,
        bytes: Rc<[u8]>,
    },
    Flush {
        which: Which,
    },
}

/// The duration of a flush of the disk, by the world's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushes {
    Cheap,
    Dear,
    /// Some of them: so that both ways of copying windows take turns.
    Changing,
}

/// The fault of one write to the disk or to the journal, which reports success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteFault {
    /// Nothing is written.
    Dropped,
    /// It goes to this place, and no further than its end.
    Misdirected { to: u64, end: u64 },
}

/// Faulty behaviour of media. It is not undone with the writes.
#[derive(Debug, Default, Clone)]
pub(crate) struct MediaFaults {
    /// Sectors that cannot be read, and whether they can be once they were written.
    pub(crate) unreadable: BTreeMap<(Which, u64), bool>,
    /// This number of writes of one of them are right before one is not.
    pub(crate) write: Option<(Which, u64, WriteFault)>,
    /// This number of flushes of the disk are right; later ones do nothing and report success.
    pub(crate) honest_flushes: Option<u64>,
    /// Faults that came about.
    pub(crate) met: u64,
}

const SECTOR: u64 = 512;

impl MediaFaults {
    fn read(&mut self, which: Which, at: u64, len: usize) -> io::Result<()> {
        let sectors = (which, at / SECTOR)..(which, (at + len as u64).div_ceil(SECTOR));
        if self.unreadable.range(sectors).next().is_none() {
            return Ok(());
        }
        self.met += 1;
        // EIO
        Err(io::Error::from_raw_os_error(5))
    }

    /// The target of a write, if there is one.
    fn write(&mut self, which: Which, at: u64, len: usize) -> Option<(u64, usize)> {
        let fault = match &mut self.write {
            Some((of, 0, fault)) if *of == which => Some(*fault),
            Some((of, right, _)) if *of == which => {
                *right -= 1;
                None
            }
            _ => None,
        };
        let (at, len) = match fault {
            None => (at, len),
            Some(fault) => {
                self.write = None;
                self.met += 1;
                match fault {
                    WriteFault::Dropped => return None,
                    WriteFault::Misdirected { to, end } => (to, len.min((end - to) as usize)),
                }
            }
        };
        for sector in at / SECTOR..(at + len as u64).div_ceil(SECTOR) {
            if self.unreadable.get(&(which, sector)) == Some(&true) {
                self.unreadable.remove(&(which, sector));
            }
        }
        Some((at, len))
    }

    fn lies(&mut self, which: Which) -> bool {
        let Some(honest) = self
            .honest_flushes
            .as_mut()
            .filter(|_| which == Which::Disk)
        else {
            return false;
        };
        if *honest == 0 {
            self.met += 1;
            return true;
        }
        *honest -= 1;
        false
    }
}

/// Both, their requests, and their faults.
pub(crate) struct World {
    pub(crate) disk: Medium,
    pub(crate) journal: Medium,
    pub(crate) disk_bytes: u64,
    pub(crate) journal_bytes: u64,
    pub(crate) logical: u32,
    pub(crate) physical: u32,
    /// The start of the first physical block.
    pub(crate) unit_offset: u64,
    pub(crate) events: Option<Vec<Event>>,
    /// How many reads, writes and flushes there were since this was last set to 0.
    pub(crate) asked: u64,
    /// The one that fails.
    pub(crate) fails: Option<u64>,
    pub(crate) faults: MediaFaults,
    pub(crate) clock: Clock,
}

/// The time, which advances with writes and flushes.
pub(crate) struct Clock {
    now: Instant,
    flushes: Flushes,
    count: u64,
}

impl Clock {
    pub(crate) fn new(flushes: Flushes) -> Self {
        Self {
            now: Instant::now(),
            flushes,
            count: 0,
        }
    }

    /// A byte takes a nanosecond.
    fn written(&mut self, len: usize) {
        self.now += Duration::from_nanos(len as u64);
    }

    fn flushed(&mut self) {
        self.count += 1;
        let is_dear = match self.flushes {
            Flushes::Cheap => false,
            Flushes::Dear => true,
            Flushes::Changing => self.count % 8 < 5,
        };
        self.now += if is_dear {
            Duration::from_millis(1)
        } else {
            Duration::ZERO
        };
    }
}

pub(crate) type Shared = Rc<RefCell<World>>;

impl World {
    pub(crate) fn medium(&mut self, which: Which) -> &mut Medium {
        match which {
            Which::Disk => &mut self.disk,
            Which::Journal => &mut self.journal,
        }
    }

    fn journal_block(&self) -> u32 {
        self.physical.max(4096)
    }

    fn ask(&mut self) -> io::Result<()> {
        self.asked += 1;
        if self.fails == Some(self.asked - 1) {
            return Err(io::Error::other("simulated"));
        }
        Ok(())
    }

    /// Whole logical blocks; a journal is written in whole blocks of its own.
    fn check(&self, which: Which, at: u64, len: usize, writes: bool) -> io::Result<()> {
        let (end, block) = match which {
            Which::Disk => (self.disk_bytes, u64::from(self.logical)),
            Which::Journal if writes => (self.journal_bytes, self.journal_block().into()),
            Which::Journal => (self.journal_bytes, 4096),
        };
        let is_whole = at.is_multiple_of(block) && (len as u64).is_multiple_of(block);
        let is_within = at.checked_add(len as u64).is_some_and(|last| last <= end);
        if is_whole && is_within {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        }
    }

    fn read(&mut self, which: Which, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.check(which, at, buffer.len(), false)?;
        self.ask()?;
        self.faults.read(which, at, buffer.len())?;
        self.medium(which).read(at, buffer);
        Ok(())
    }

    /// A write that fails has written its first half.
    fn write(&mut self, which: Which, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.check(which, at, bytes.len(), true)?;
        let asked = self.ask();
        self.clock.written(bytes.len());
        let len = if asked.is_ok() {
            bytes.len()
        } else {
            (bytes.len() / 2).next_multiple_of(512).min(bytes.len())
        };
        let Some((at, len)) = self.faults.write(which, at, len) else {
            return asked;
        };
        self.medium(which).write(at, &bytes[..len]);
        if let Some(events) = &mut self.events {
            events.push(Event::Write {
                which,
                at,
                bytes: bytes[..len].into(),
            });
        }
        asked
    }

    fn flush(&mut self, which: Which) -> io::Result<()> {
        self.ask()?;
        if which == Which::Disk {
            self.clock.flushed();
        }
        if self.faults.lies(which) {
            return Ok(());
        }
        if let Some(events) = &mut self.events {
            events.push(Event::Flush { which });
        }
        Ok(())
    }

    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.disk.mark(), self.journal.mark())
    }

    pub(crate) fn back_to(&mut self, mark: (usize, usize)) {
        self.disk.back_to(mark.0);
        self.journal.back_to(mark.1);
    }
}

/// The disk of a world.
#[derive(Clone)]
pub(crate) struct SimDisk(pub(crate) Shared);

impl Disk for SimDisk {
    fn len_bytes(&self) -> u64 {
        self.0.borrow().disk_bytes
    }

    fn logical_block_bytes(&self) -> u32 {
        self.0.borrow().logical
    }

    fn physical_block_bytes(&self) -> u32 {
        self.0.borrow().physical
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.borrow_mut().read(Which::Disk, at, buffer)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().write(Which::Disk, at, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush(Which::Disk)
    }

    /// As late as possible: overwrites by the work would be seen.
    fn read_while<T>(
        &mut self,
        at: u64,
        buffer: &mut [u8],
        work: impl FnOnce(&mut Self) -> T,
    ) -> (T, io::Result<()>) {
        let done = work(self);
        (done, self.read_at(at, buffer))
    }

    fn now(&self) -> Instant {
        self.0.borrow().clock.now
    }
}

/// The journal file of a world.
#[derive(Clone)]
pub(crate) struct SimStore(pub(crate) Shared);

impl JournalStore for SimStore {
    fn len_bytes(&self) -> u64 {
        self.0.borrow().journal_bytes
    }

    fn block_bytes(&self) -> u32 {
        self.0.borrow().journal_block()
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.borrow_mut().read(Which::Journal, at, buffer)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().write(Which::Journal, at, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush(Which::Journal)
    }
}
