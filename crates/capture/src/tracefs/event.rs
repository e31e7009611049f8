//! Events of the block layer, as the kernel's buffer has them.

use plumb_trace::Op;
use plumb_trace::op::parse_rwbs;

use super::format::{EventFormat, Field};

/// The kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EventKind {
    Issue,
    Complete,
    Requeue,
    QueueBio,
    CompleteBio,
    Split,
}

impl EventKind {
    /// All, in the order in which they are switched on: completions first, so that an I/O that was seen to begin is seen to
    /// end.
    pub(super) const ALL: [EventKind; 6] = [
        EventKind::Complete,
        EventKind::CompleteBio,
        EventKind::Requeue,
        EventKind::Split,
        EventKind::QueueBio,
        EventKind::Issue,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            EventKind::Issue => "block_rq_issue",
            EventKind::Complete => "block_rq_complete",
            EventKind::Requeue => "block_rq_requeue",
            EventKind::QueueBio => "block_bio_queue",
            EventKind::CompleteBio => "block_bio_complete",
            EventKind::Split => "block_split",
        }
    }
}

/// Command of a thread, filled up with zeroes.
pub(super) type Comm = [u8; 16];

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) kind: EventKind,
    pub(super) time_ns: u64,
    /// The thread that ran, which only at [`EventKind::QueueBio`] is the one that wants the I/O.
    pub(super) thread: u32,
    pub(super) comm: Comm,
    /// A disk, or a partition.
    pub(super) dev: u32,
    /// On the disk.
    pub(super) sector: u64,
    pub(super) sectors: u64,
    /// The start of the second part of a split I/O.
    pub(super) rest_sector: u64,
    pub(super) op: Op,
    pub(super) flags: i32,
    pub(super) failed: bool,
    /// A command of a driver or of an application, not of the block layer: its place is not one of data.
    pub(super) is_passthrough: bool,
}

/// How events of one kind are read.
pub(super) struct EventShape {
    pub(super) kind: EventKind,
    id: u64,
    common_type: Field,
    thread: Field,
    dev: Field,
    sector: Field,
    rwbs: Field,
    sectors: Option<Field>,
    rest_sector: Option<Field>,
    comm: Option<Field>,
    error: Option<Field>,
    cmd: Option<Field>,
}

impl EventShape {
    /// The missing field, if there is one.
    pub(super) fn new(kind: EventKind, format: &EventFormat) -> Result<EventShape, &'static str> {
        let needed = |name: &'static str| format.field(name).ok_or(name);
        let is_split = kind == EventKind::Split;
        Ok(EventShape {
            kind,
            id: format.id,
            common_type: needed("common_type")?,
            thread: needed("common_pid")?,
            dev: needed("dev")?,
            sector: needed("sector")?,
            rwbs: needed("rwbs")?,
            sectors: if is_split {
                None
            } else {
                Some(needed("nr_sector")?)
            },
            rest_sector: if is_split {
                Some(needed("new_sector")?)
            } else {
                None
            },
            comm: format.field("comm"),
            // Called `errors` before Linux 4.14.
            error: format.field("error").or_else(|| format.field("errors")),
            cmd: format.field("cmd"),
        })
    }

    /// `None` when it is of another kind, or cut off.
    pub(super) fn event(&self, time_ns: u64, bytes: &[u8]) -> Option<Event> {
        if self.common_type.number(bytes)? != self.id {
            return None;
        }
        let or_zero = |field: Option<Field>| field.map_or(Some(0), |field| field.number(bytes));
        let sectors = or_zero(self.sectors)?;
        let (op, flags) = parse_rwbs(self.rwbs.text(bytes)?, sectors);
        let has_command = self
            .cmd
            .and_then(|cmd| cmd.text_elsewhere(bytes))
            .is_some_and(|cmd| !cmd.is_empty());
        let mut comm = Comm::default();
        let letters = self.comm.map_or(Some(&[][..]), |field| field.text(bytes))?;
        comm.iter_mut()
            .zip(letters)
            .for_each(|(to, letter)| *to = *letter);
        Some(Event {
            kind: self.kind,
            time_ns,
            thread: self.thread.number(bytes)? as u32,
            comm,
            dev: self.dev.number(bytes)? as u32,
            sector: self.sector.number(bytes)?,
            sectors,
            rest_sector: or_zero(self.rest_sector)?,
            op,
            flags,
            failed: is_failure(or_zero(self.error)? as i32),
            is_passthrough: has_command || op == Op::Other && sectors == 0,
        })
    }
}

/// Whether an I/O that ended with this errno has failed. An operation that the device refuses, and an I/O that was asked not to
/// wait, are no failures. `is_failure` in `bpf/kernel.h` decides the same.
fn is_failure(error: i32) -> bool {
    const EAGAIN: i32 = 11;
    const EOPNOTSUPP: i32 = 95;
    error != 0 && error != -EAGAIN && error != -EOPNOTSUPP
}

impl Event {
    pub(super) fn len_bytes(&self) -> u64 {
        self.sectors.saturating_mul(512)
    }

    /// The sector behind it.
    pub(super) fn end(&self) -> u64 {
        self.sector.saturating_add(self.sectors)
    }
}
