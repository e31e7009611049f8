//! Passes measurements on as events of a trace, in the order of their issue.
//!
//! Each thread gathers its rows and states with them a lower bound for the time of later ones. Rows before the bound of
//! all threads are put in order and passed on. A thread never waits for this: rows without room are counted as lost.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use plumb_trace::batch::BATCH_EVENTS;
use plumb_trace::{Batch, DeviceId, Event, Layer, Names, Op};

use crate::draw::DrawnIo;
use crate::target::Target;

/// Takes the events of a run, in order.
pub type TraceSink<'a> = dyn FnMut(&Batch) -> Result<(), plumb_trace::Error> + Send + 'a;

/// Rows that a thread gathers before it sends them.
const ROWS: usize = 1024;

/// Parcels that may wait: some 50 MiB of rows.
const WAITING_MAX: usize = 1024;

/// An I/O that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndedIo {
    issued_ns: u64,
    due_ns: u64,
    completed_ns: Option<u64>,
    op: Op,
    start: u64,
    len_bytes: u32,
    /// Orders those of a thread that were issued at the same moment.
    number: u64,
}

impl EndedIo {
    pub fn new(io: DrawnIo, due_ns: u64, issued_ns: u64, completed_ns: Option<u64>) -> EndedIo {
        let op = if io.is_read { Op::Read } else { Op::Write };
        EndedIo {
            issued_ns,
            due_ns,
            completed_ns,
            op,
            start: io.start,
            len_bytes: io.len_bytes,
            number: 0,
        }
    }

    pub fn flush(due_ns: u64, issued_ns: u64, completed_ns: Option<u64>) -> EndedIo {
        EndedIo {
            issued_ns,
            due_ns,
            completed_ns,
            op: Op::Flush,
            start: 0,
            len_bytes: 0,
            number: 0,
        }
    }

    pub fn numbered(self, number: u64) -> EndedIo {
        EndedIo { number, ..self }
    }
}

/// A message of a thread.
pub(crate) struct Parcel {
    thread: usize,
    job: usize,
    rows: Vec<EndedIo>,
    /// No later parcel of this thread has a row that was issued before.
    all_before_ns: u64,
}

/// Gathers the rows of one thread.
pub(crate) struct Tracer {
    thread: usize,
    job: usize,
    rows: Vec<EndedIo>,
    to: SyncSender<Parcel>,
    lost: u64,
}

impl Tracer {
    pub fn new(thread: usize, job: usize, to: SyncSender<Parcel>) -> Tracer {
        Tracer {
            thread,
            job,
            rows: Vec::with_capacity(2 * ROWS),
            to,
            lost: 0,
        }
    }

    #[inline]
    pub fn push(&mut self, row: EndedIo) {
        self.rows.push(row);
    }

    /// Whether enough are gathered.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.rows.len() >= ROWS
    }

    /// Sends the gathered rows.
    pub fn send(&mut self, all_before_ns: u64) {
        let rows = std::mem::replace(&mut self.rows, Vec::with_capacity(2 * ROWS));
        let parcel = Parcel {
            thread: self.thread,
            job: self.job,
            rows,
            all_before_ns,
        };
        if let Err(TrySendError::Full(parcel) | TrySendError::Disconnected(parcel)) =
            self.to.try_send(parcel)
        {
            self.lost += parcel.rows.len() as u64;
        }
    }

    /// Sends the rest, now without haste; returns how many were lost.
    pub fn finish(mut self) -> u64 {
        let rows = std::mem::take(&mut self.rows);
        let parcel = Parcel {
            thread: self.thread,
            job: self.job,
            rows,
            all_before_ns: u64::MAX,
        };
        if let Err(refused) = self.to.send(parcel) {
            self.lost += refused.0.rows.len() as u64;
        }
        self.lost
    }
}

/// The way from threads to the one that writes.
pub(crate) fn channel() -> (SyncSender<Parcel>, Receiver<Parcel>) {
    sync_channel(WAITING_MAX)
}

/// Puts rows in order and hands them on.
pub(crate) struct Gatherer {
    held: Vec<(usize, EndedIo)>,
    all_before_ns: Vec<u64>,
    batch: Batch,
    /// By job.
    places: Vec<(DeviceId, Layer)>,
    pid: Option<i32>,
}

impl Gatherer {
    /// For a number of threads and these targets, a job each.
    pub fn new<'a>(targets: impl Iterator<Item = &'a Target>, threads: usize) -> Gatherer {
        let mut names = Names::default();
        let place = |target: &Target| {
            let id = names.device(&target.trace_name());
            if let Some(device) = names.device_mut(id) {
                device.size_bytes = Some(target.size_bytes());
                device.logical_block_bytes =
                    Some(target.block_bytes()).filter(|_| target.is_direct());
            }
            (
                id,
                if target.is_block_device() {
                    Layer::Bio
                } else {
                    Layer::Vfs
                },
            )
        };
        let places = targets.map(place).collect();
        let batch = Batch {
            names: Arc::new(names),
            ..Batch::default()
        };
        let pid = i32::try_from(std::process::id()).ok();
        Gatherer {
            held: Vec::new(),
            all_before_ns: vec![0; threads],
            batch,
            places,
            pid,
        }
    }

    /// Takes parcels until no more come. After a failure they are taken and dropped, so that nobody waits.
    pub fn run(
        mut self,
        from: &Receiver<Parcel>,
        sink: &mut TraceSink<'_>,
    ) -> Result<(), plumb_trace::Error> {
        let mut written = Ok(());
        for parcel in from {
            if written.is_ok() {
                self.all_before_ns[parcel.thread] = parcel.all_before_ns;
                self.held
                    .extend(parcel.rows.into_iter().map(|row| (parcel.job, row)));
                written = self.hand_on(sink);
            }
        }
        written
    }

    fn hand_on(&mut self, sink: &mut TraceSink<'_>) -> Result<(), plumb_trace::Error> {
        let before_ns = self.all_before_ns.iter().copied().min().unwrap_or(u64::MAX);
        self.held
            .sort_by_key(|(_, row)| (row.issued_ns, row.number));
        let ready = self
            .held
            .partition_point(|(_, row)| row.issued_ns < before_ns);
        for rows in self.held[..ready].chunks(BATCH_EVENTS) {
            self.batch.clear();
            for (job, row) in rows {
                self.batch.push(&event(self.places[*job], self.pid, row));
            }
            sink(&self.batch)?;
        }
        self.held.drain(..ready);
        Ok(())
    }
}

fn event((device, layer): (DeviceId, Layer), pid: Option<i32>, row: &EndedIo) -> Event {
    let ns = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    Event {
        queue_ns: Some(ns(row.issued_ns.saturating_sub(row.due_ns))),
        device_ns: row
            .completed_ns
            .map(|completed_ns| ns(completed_ns - row.issued_ns)),
        pid,
        ..Event::new(
            ns(row.issued_ns),
            device,
            layer,
            row.op,
            row.start,
            u64::from(row.len_bytes),
        )
    }
}
