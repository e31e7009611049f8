//! An NVMe drive whose Identify data are chosen: a target of NVMe/TCP in user space, with one namespace in memory.
//!
//! Emulated drives state the same NPWG and NPWA, if any; with Linux's own host (`nvme-tcp`) this one is a drive as any other,
//! with the numbers that a test wants. Data structures and rules are those of the NVM Express specifications: base 2.0, NVM
//! command set 1.0, TCP transport 1.0.
//!
//! Left out, and refused by status: digests, discovery, authentication, fused commands, discards, Write Zeroes, more than one
//! namespace. An Asynchronous Event Request is kept and never answered, since nothing ever happens. Keep Alive is answered and
//! not enforced. Everything is served in order, one thread a queue: nothing about its speed means anything.

mod command;
mod drive;
mod namespace;
mod pdu;
mod queue;
#[cfg(test)]
mod tests;

use std::io;
use std::net::TcpListener;
use std::sync::atomic::AtomicU16;
use std::sync::{Arc, Mutex};

pub use drive::Drive;

use namespace::Namespace;

/// A qualified name is no longer.
pub const NAME_BYTES_MAX: usize = 223;
/// Entries of a queue.
const QUEUE_ENTRIES: u16 = 128;

/// A mistake of a host or of the target's starter.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The connection broke.
    #[error("connection: {0}")]
    Io(#[from] io::Error),
    /// A PDU of a type that no host sends.
    #[error("PDU of type {kind:#04x}, which no host sends")]
    Type {
        /// The type.
        kind: u8,
    },
    /// A field of a PDU that cannot be.
    #[error("PDU of type {kind:#04x} has a {what} of {found}, expected {expected}")]
    Header {
        /// The type.
        kind: u8,
        /// The field, as the specification calls it.
        what: &'static str,
        /// The value found.
        found: usize,
        /// The expected value; for a length the least.
        expected: usize,
    },
    /// A PDU that may not come now.
    #[error("{what}")]
    Order {
        /// Its name, with the reason.
        what: &'static str,
    },
    /// The host ended the connection.
    #[error("the host ended the connection with status {status}")]
    Terminated {
        /// FES.
        status: u16,
    },
    /// A field of the drive that there is not, or that cannot have this value.
    #[error(
        "{assignment}: expected a field of the drive and a value that it may have, as npwg=3 or lba=4096"
    )]
    Field {
        /// The value given.
        assignment: String,
    },
}

/// A subsystem: the drive, its blocks, and the shared state of its controllers.
#[derive(Debug)]
pub struct Subsystem {
    name: String,
    drive: Drive,
    namespace: Mutex<Namespace>,
    /// The next controller ID; IDs begin at 1.
    next_controller: AtomicU16,
}

impl Subsystem {
    /// A drive behind a qualified name (`nqn.…`).
    #[must_use]
    pub fn new(name: &str, drive: Drive) -> Self {
        let len_bytes = drive.nsze.saturating_mul(drive.lba_bytes.into());
        Subsystem {
            name: name.to_owned(),
            namespace: Mutex::new(Namespace::new(len_bytes)),
            drive,
            next_controller: AtomicU16::new(1),
        }
    }
}

/// Serves every connection, each on a thread of its own, and does not return; how one ended early goes to stderr.
///
/// # Errors
/// When no connection can be accepted.
pub fn serve(listener: &TcpListener, subsystem: Subsystem) -> Result<(), TargetError> {
    let subsystem = Arc::new(subsystem);
    loop {
        let (stream, host) = listener.accept()?;
        let subsystem = Arc::clone(&subsystem);
        std::thread::spawn(move || {
            if let Err(error) = queue::serve(&stream, &subsystem) {
                eprintln!("{host}: {error}");
            }
        });
    }
}
