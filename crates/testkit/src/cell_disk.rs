//! A disk in memory that charges for writes off its cells and not for reads, as one does that has to read and rewrite a
//! partly written cell: served as a file, without root. It notices every write that changes a byte.
//!
//! It speaks the NBD protocol (github.com/NetworkBlockDevice/nbd, doc/proto.md: fixed newstyle, simple replies) to `nbdfuse`.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use crate::charging::Charging;
use crate::rng::Rng;
use crate::tempdir::temp_dir;

/// The credit of a waiting disk: delays of a busy machine on the way to it then cost nothing. With a long credit, a
/// process slower than the disk would not see its charge.
const CREDIT: Duration = Duration::from_millis(4);

/// The charge.
#[derive(Clone, Copy, Debug)]
pub struct CellDisk {
    /// Its length.
    pub size_bytes: u64,
    /// Length of a cell.
    pub cell_bytes: u64,
    /// The start of the first cell, below its length.
    pub offset_bytes: u64,
    /// Time of a write to one cell.
    pub unit: Duration,
    /// Of this, the cost of a read at any start.
    pub read: f64,
    /// Of this, the cost of each further cell that a write touches.
    pub more: f64,
    /// Of this, the additional cost of a write that does not consist of whole cells.
    pub partial: f64,
}

/// One that is served, until it is dropped.
#[derive(Debug)]
pub struct Served {
    charging: Charging,
    state: Arc<CellState>,
}

#[derive(Debug)]
struct CellState {
    bytes: Mutex<Vec<u8>>,
    writes: AtomicU64,
    changes: AtomicU64,
}

impl CellDisk {
    /// Cells of 4 KiB from an offset on in 64 MiB of noise; 1,000 writes a second that touch one, each further one costs `more`.
    /// That is slow enough for the way through a server on a busy machine.
    #[must_use]
    pub fn with_offset(offset_bytes: u64, more: f64) -> CellDisk {
        let unit = Duration::from_millis(1);
        CellDisk {
            size_bytes: 64 << 20,
            cell_bytes: 4096,
            offset_bytes,
            unit,
            read: 0.25,
            more,
            partial: 0.0,
        }
    }

    /// Units of a write.
    fn units(&self, start: u64, len: u64) -> f64 {
        let past = |at: u64| at + self.cell_bytes - self.offset_bytes;
        let cells = past(start + len - 1) / self.cell_bytes - past(start) / self.cell_bytes + 1;
        let is_whole = [start, start + len]
            .iter()
            .all(|&end| past(end).is_multiple_of(self.cell_bytes));
        1.0 + (cells - 1) as f64 * self.more + if is_whole { 0.0 } else { self.partial }
    }

    /// Serves it.
    ///
    /// # Panics
    /// When it does not come up: a test asks for its tools first.
    #[must_use]
    pub fn up(self) -> Served {
        let room = temp_dir("cell-disk");
        let (path, socket) = (room.path().join("device"), room.path().join("socket"));
        std::fs::write(&path, "").expect("a file to serve over");
        let mut bytes = vec![0; self.size_bytes as usize];
        let mut random = Rng::new(self.size_bytes);
        bytes
            .chunks_mut(8)
            .for_each(|word| word.copy_from_slice(&random.next_u64().to_le_bytes()[..word.len()]));
        let state = Arc::new(CellState {
            bytes: Mutex::new(bytes),
            writes: AtomicU64::new(0),
            changes: AtomicU64::new(0),
        });
        let listener = UnixListener::bind(&socket).expect("a socket");
        let served = Arc::clone(&state);
        spawn(move || {
            // The client ends by going away.
            let Ok((stream, _)) = listener.accept() else {
                return;
            };
            let _ = Server {
                disk: self,
                state: served,
                stream,
                free_at: Instant::now(),
            }
            .serve();
        });
        let mut command = Command::new("nbdfuse");
        command
            .arg(&path)
            .arg(format!("nbd+unix:///?socket={}", socket.display()));
        Served {
            charging: Charging::serve(command, path, room),
            state,
        }
    }
}

impl Served {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.charging.path()
    }

    /// Writes that arrived.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.state.writes.load(Relaxed)
    }

    /// Of these, those that changed the content.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.state.changes.load(Relaxed)
    }
}

/// One connection.
struct Server {
    disk: CellDisk,
    state: Arc<CellState>,
    stream: UnixStream,
    /// Until when the disk is busy.
    free_at: Instant,
}

const HANDSHAKE: &[u8] = b"NBDMAGICIHAVEOPT";
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;

impl Server {
    fn serve(&mut self) -> io::Result<()> {
        // Fixed newstyle, no zeroes.
        self.stream
            .write_all(&[HANDSHAKE, &3u16.to_be_bytes()].concat())?;
        self.u32()?;
        self.options()?;
        while self.request()? {}
        Ok(())
    }

    /// Until the client continues with the transmission; other requests are not supported.
    fn options(&mut self) -> io::Result<()> {
        const GO: u32 = 7;
        const ACK: u32 = 1;
        const INFO: u32 = 3;
        const UNSUPPORTED: u32 = (1 << 31) + 1;
        loop {
            self.u64()?;
            let (option, len) = (self.u32()?, self.u32()?);
            self.bytes(len as usize)?;
            if option != GO {
                self.option_reply(option, UNSUPPORTED, &[])?;
                continue;
            }
            // Information on the export: size; flags, flush and force unit access.
            let flags = 0b1101u16;
            let info = [
                &[0, 0],
                &self.disk.size_bytes.to_be_bytes()[..],
                &flags.to_be_bytes(),
            ]
            .concat();
            self.option_reply(GO, INFO, &info)?;
            return self.option_reply(GO, ACK, &[]);
        }
    }

    fn option_reply(&mut self, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
        let numbers = [option, kind, data.len() as u32]
            .map(u32::to_be_bytes)
            .concat();
        self.stream
            .write_all(&[&OPTION_REPLY.to_be_bytes()[..], &numbers, data].concat())
    }

    /// One request; whether another one may come.
    fn request(&mut self) -> io::Result<bool> {
        let magic = self.u32()?;
        assert_eq!(magic, REQUEST, "a request");
        let (kind, cookie) = (self.u32()? & 0xffff, self.u64()?);
        let (start, len) = (self.u64()?, self.u32()?);
        let range = start as usize..start as usize + len as usize;
        let mut data = Vec::new();
        let units = match kind {
            0 => {
                data.extend_from_slice(&self.memory()[range]);
                self.disk.read
            }
            1 => {
                let written = self.bytes(len as usize)?;
                let is_change = {
                    let memory = &mut self.memory()[range];
                    let is_change = *memory != written;
                    memory.copy_from_slice(&written);
                    is_change
                };
                self.state.writes.fetch_add(1, Relaxed);
                self.state.changes.fetch_add(u64::from(is_change), Relaxed);
                self.disk.units(start, len.into())
            }
            2 => return Ok(false),
            _ => 0.0,
        };
        self.charge(units);
        let head = [
            &REPLY.to_be_bytes()[..],
            &0u32.to_be_bytes(),
            &cookie.to_be_bytes(),
        ]
        .concat();
        self.stream.write_all(&[head, data].concat())?;
        Ok(true)
    }

    fn charge(&mut self, units: f64) {
        let now = Instant::now();
        let earliest = now.checked_sub(CREDIT).unwrap_or(now);
        self.free_at = self.free_at.max(earliest) + self.disk.unit.mul_f64(units);
        sleep(self.free_at.saturating_duration_since(now));
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.state
            .bytes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn u32(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.stream
            .read_exact(&mut bytes)
            .map(|()| u32::from_be_bytes(bytes))
    }

    fn u64(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.stream
            .read_exact(&mut bytes)
            .map(|()| u64::from_be_bytes(bytes))
    }

    fn bytes(&mut self, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).map(|()| bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn units_are_of_cells() {
        let disk = CellDisk {
            partial: 0.5,
            ..CellDisk::with_offset(1024, 1.0)
        };
        for (start, len, units) in [
            (1024, 4096, 1.0),
            (0, 4096, 2.5),
            (1024, 8192, 2.0),
            (512, 1024, 2.5),
            (1024, 512, 1.5),
            (4608, 512, 1.5),
            (5120, 4096, 1.0),
        ] {
            assert_eq!(disk.units(start, len), units, "{start}+{len}");
        }
    }

    #[test]
    fn a_write_that_changes_something_is_noticed() {
        crate::require!(Tool("nbdfuse"), Tool("fusermount3"));
        let disk = CellDisk {
            size_bytes: 1 << 20,
            ..CellDisk::with_offset(0, 1.0)
        }
        .up();
        let file = File::options()
            .read(true)
            .write(true)
            .open(disk.path())
            .expect("it is served");
        let mut block = [0; 4096];
        file.read_exact_at(&mut block, 8192).expect("its bytes");
        assert!(block.iter().any(|byte| *byte != 0));
        file.write_all_at(&block, 8192)
            .and_then(|()| file.sync_all())
            .expect("it takes writes");
        assert_eq!((disk.writes() > 0, disk.changes()), (true, 0));
        block[7] ^= 1;
        file.write_all_at(&block, 8192)
            .and_then(|()| file.sync_all())
            .expect("it takes writes");
        assert_eq!(disk.changes(), 1);
    }
}
