//! Reads devices through a child process, so that a device that does not answer keeps no command waiting.
//!
//! A read of a hung device cannot be interrupted, and a process with such a read cannot end: not even a thread of its own would
//! do. The child waits in its place. The command leaves it behind and starts another one for the next device.
//!
//! The child serves one request after the other. Request: 1 byte for the kind, 8 for a number, 4 for a length. To open,
//! the length is that of the path, which follows; to read, the number is the first byte. Answer: 4 bytes for an errno
//! or 0, 8 for a number, and the bytes read. The number is the size of the opened device. All are little-endian.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumb_geometry::group_digits;
use plumb_label::Disk;
use plumb_stack::devices;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::status::Meter;

/// The only argument of a child.
pub const ARGUMENT: &str = "__read-devices";

/// Time for an answer. A disk that is spinning up may take longer: a second run finds it ready.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same after a device has not answered: several on one path hang together.
const PATIENCE_LATER: Duration = Duration::from_secs(1);
/// The longest single read; longer ones are cut.
const READ_BYTES_MAX: usize = 1 << 20;
/// Labels and superblocks take many short reads of a few places: one request brings the bytes around the first of them. The
/// kernel reads as much at once for the first read of a place.
const CHUNK_BYTES: u64 = 16 << 10;
/// Chunks that are kept of a device.
const CHUNKS_MAX: usize = 256;
/// A device is read no further when this many reads failed and none succeeded: a dying disk takes seconds for each failure.
/// The labels at both ends of a disk are within the first of them.
const FAILED_MAX: u32 = 16;
const REQUEST_BYTES: usize = 13;
const ANSWER_BYTES: usize = 12;
const OPEN: u8 = 1;
const READ: u8 = 2;

/// Devices and files of this host, with a limit on the time of each read.
pub struct DeviceReader {
    reader: RefCell<Option<Rc<Reader>>>,
    patience_later: Cell<bool>,
    opened: Arc<Mutex<OpenedDevices>>,
    _meter: Meter,
}

/// The devices that were opened so far.
#[derive(Default)]
struct OpenedDevices {
    count: u64,
    last: String,
}

impl Default for DeviceReader {
    fn default() -> DeviceReader {
        let opened = Arc::<Mutex<OpenedDevices>>::default();
        let told = Arc::clone(&opened);
        DeviceReader {
            reader: RefCell::default(),
            patience_later: Cell::default(),
            opened,
            _meter: Meter::start(move |elapsed| {
                let opened = told.lock().unwrap_or_else(PoisonError::into_inner);
                opened.words(elapsed)
            }),
        }
    }
}

impl OpenedDevices {
    /// `reading sdb, device 12, for 3 s so far`.
    fn words(&self, elapsed: Duration) -> String {
        format!(
            "reading {}, device {}, for {:.0} s so far",
            self.last,
            group_digits(self.count),
            elapsed.as_secs_f64()
        )
    }
}

/// A child and the pipes to it.
struct Reader {
    child: RefCell<Child>,
    requests: RefCell<ChildStdin>,
    answers: RefCell<ChildStdout>,
    /// Whether a request was not answered in time: the answer would be taken for that to the next one.
    is_stuck: Cell<bool>,
}

/// The open device of a child. A child has one open at a time; the next device gets another child in the meantime.
struct RemoteDisk<'a> {
    devices: &'a DeviceReader,
    reader: Rc<Reader>,
    size_bytes: u64,
    /// Chunks by their start; the error number of one that cannot be read as a whole.
    chunks: RefCell<BTreeMap<u64, Result<Vec<u8>, i32>>>,
    /// Whether any read succeeded.
    is_readable: Cell<bool>,
    /// Reads that failed, and the error number of the last one.
    failures: Cell<(u32, i32)>,
}

impl devices::Open for DeviceReader {
    fn open(&self, name: &str) -> io::Result<Box<dyn Disk + '_>> {
        {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            opened.count += 1;
            name.clone_into(&mut opened.last);
        }
        let path = Path::new("/dev").join(name);
        let Some(reader) = self.reader() else {
            // Without a child there is no limit, and the device is read all the same.
            return Ok(Box::new(devices::open_disk(&path)?));
        };
        let path = path.as_os_str().as_bytes();
        let size_bytes = self.ask(&reader, (OPEN, 0, path.len()), path, &mut [])?;
        let disk = RemoteDisk {
            devices: self,
            reader,
            size_bytes,
            chunks: RefCell::default(),
            is_readable: Cell::new(false),
            failures: Cell::default(),
        };
        // The first read tells whether it answers; an error of the medium is met again by those that need the bytes.
        let mut first = [0; 512];
        if size_bytes >= first.len() as u64
            && let Err(error) = disk.read_at(0, &mut first)
            && disk.reader.is_stuck.get()
        {
            return Err(error);
        }
        Ok(Box::new(disk))
    }
}

impl Disk for RemoteDisk<'_> {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = offset_bytes - offset_bytes % CHUNK_BYTES;
        let within = (offset_bytes - start) as usize;
        if buffer.len() <= CHUNK_BYTES as usize - within {
            self.fill_chunk(start)?;
            let chunks = self.chunks.borrow();
            if let Some(Ok(chunk)) = chunks.get(&start)
                && let Some(bytes) = chunk.get(within..within + buffer.len())
            {
                buffer.copy_from_slice(bytes);
                return Ok(());
            }
        }
        // A bad sector does not hide those beside it.
        self.read_now(offset_bytes, buffer)
    }
}

impl RemoteDisk<'_> {
    /// Reads a chunk unless it was tried before.
    ///
    /// # Errors
    /// When the child does not answer, or the device is not worth another read.
    fn fill_chunk(&self, start: u64) -> io::Result<()> {
        if self.chunks.borrow().contains_key(&start) {
            return Ok(());
        }
        let len = CHUNK_BYTES.min(self.size_bytes.saturating_sub(start));
        let mut chunk = vec![0; len as usize];
        let read = match self.read_now(start, &mut chunk) {
            Ok(()) => Ok(chunk),
            Err(error) if self.reader.is_stuck.get() => return Err(error),
            Err(error) => Err(errno_of(&error)),
        };
        let mut chunks = self.chunks.borrow_mut();
        if chunks.len() >= CHUNKS_MAX {
            chunks.clear();
        }
        chunks.insert(start, read);
        Ok(())
    }

    /// Asks the child.
    fn read_now(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let (failed, last) = self.failures.get();
        if failed >= FAILED_MAX && !self.is_readable.get() {
            return Err(io::Error::other(format!(
                "Plumb tried no other place after {FAILED_MAX} failed reads; the last error: {}",
                error_of(last)
            )));
        }
        let mut at = offset_bytes;
        for piece in buffer.chunks_mut(READ_BYTES_MAX) {
            let request = (READ, at, piece.len());
            let read = self.devices.ask(&self.reader, request, &[], piece);
            if let Err(error) = read {
                self.failures.set((failed + 1, errno_of(&error)));
                return Err(error);
            }
            at += piece.len() as u64;
        }
        self.is_readable
            .set(self.is_readable.get() || !buffer.is_empty());
        Ok(())
    }
}

impl DeviceReader {
    /// A child that answers; `None` where none can be started.
    fn reader(&self) -> Option<Rc<Reader>> {
        let mut reader = self.reader.borrow_mut();
        if reader
            .as_ref()
            .is_none_or(|reader| reader.is_stuck.get() || Rc::strong_count(reader) > 1)
        {
            *reader = Reader::start().ok().map(Rc::new);
        }
        reader.clone()
    }

    /// Sends a request and waits for the answer, but no longer than the patience.
    fn ask(
        &self,
        reader: &Reader,
        (kind, at, len): (u8, u64, usize),
        path: &[u8],
        buffer: &mut [u8],
    ) -> io::Result<u64> {
        let patience = match self.patience_later.get() {
            true => PATIENCE_LATER,
            false => PATIENCE,
        };
        if reader.is_stuck.get() {
            return Err(late(patience));
        }
        let answered = reader.ask((kind, at, len), path, buffer, Instant::now() + patience);
        match answered {
            Ok(answer) => answer,
            Err(error) => {
                reader.is_stuck.set(true);
                if error.kind() == io::ErrorKind::TimedOut {
                    self.patience_later.set(true);
                    return Err(late(patience));
                }
                Err(error)
            }
        }
    }
}

fn late(patience: Duration) -> io::Error {
    let seconds = patience.as_secs();
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("no answer within {seconds} s"),
    )
}

impl Reader {
    fn start() -> io::Result<Reader> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Reader {
            child: RefCell::new(child),
            requests: RefCell::new(requests),
            answers: RefCell::new(answers),
            is_stuck: Cell::new(false),
        })
    }

    /// The answer of the system inside; outside that the child does not give one.
    fn ask(
        &self,
        (kind, at, len): (u8, u64, usize),
        path: &[u8],
        buffer: &mut [u8],
        deadline: Instant,
    ) -> io::Result<io::Result<u64>> {
        let mut request = vec![kind];
        request.extend(at.to_le_bytes());
        request.extend((len as u32).to_le_bytes());
        request.extend(path);
        let mut requests = self.requests.borrow_mut();
        requests.write_all(&request)?;
        requests.flush()?;
        let mut head = [0; ANSWER_BYTES];
        self.receive(&mut head, deadline)?;
        let (errno, number) = head.split_at(4);
        let errno = i32::from_le_bytes(errno.try_into().unwrap_or_default());
        if errno != 0 {
            return Ok(Err(error_of(errno)));
        }
        self.receive(buffer, deadline)?;
        Ok(Ok(u64::from_le_bytes(
            number.try_into().unwrap_or_default(),
        )))
    }

    fn receive(&self, mut rest: &mut [u8], deadline: Instant) -> io::Result<()> {
        let mut answers = self.answers.borrow_mut();
        while !rest.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            let is_ready = {
                let mut waited = [PollFd::from_borrowed_fd(answers.as_fd(), PollFlags::IN)];
                match poll(&mut waited, Some(&left)) {
                    Err(rustix::io::Errno::INTR) => continue,
                    other => other?,
                }
            };
            if is_ready == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match answers.read(rest)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => rest = &mut rest[read..],
            }
        }
        Ok(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let child = self.child.get_mut();
        let _ = child.kill();
        // One that waits for a device ends when that answers, and is nobody's child by then.
        if !self.is_stuck.get() {
            let _ = child.wait();
        }
    }
}

/// `UnexpectedEof` has no errno: this stands for it.
const SHORT: i32 = -1;

fn error_of(errno: i32) -> io::Error {
    match errno {
        SHORT => io::ErrorKind::UnexpectedEof.into(),
        errno => io::Error::from_raw_os_error(errno),
    }
}

fn errno_of(error: &io::Error) -> i32 {
    const EIO: i32 = 5;
    const EINVAL: i32 = 22;
    match (error.raw_os_error(), error.kind()) {
        (Some(errno), _) => errno,
        (None, io::ErrorKind::UnexpectedEof) => SHORT,
        (None, io::ErrorKind::InvalidInput) => EINVAL,
        _ => EIO,
    }
}

/// Serves requests until there are no more.
///
/// # Errors
/// When a request is none, or nobody takes the answer.
pub fn serve() -> io::Result<()> {
    let (mut requests, mut answers) = (io::stdin().lock(), io::stdout().lock());
    let mut open: Option<Box<dyn Disk>> = None;
    let mut request = [0; REQUEST_BYTES];
    let mut bytes = Vec::new();
    while requests.read_exact(&mut request).is_ok() {
        let at = u64::from_le_bytes(request[1..9].try_into().unwrap_or_default());
        let len = u32::from_le_bytes(request[9..].try_into().unwrap_or_default()) as usize;
        if len > READ_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes.resize(len, 0);
        let answer = match (request[0], &open) {
            (OPEN, _) => {
                requests.read_exact(&mut bytes)?;
                let path = Path::new(std::ffi::OsStr::from_bytes(&bytes));
                let opened = devices::open_disk(path);
                bytes.clear();
                opened.map(|disk| open.insert(Box::new(disk)).size_bytes())
            }
            (READ, Some(disk)) => disk.read_at(at, &mut bytes).map(|()| 0),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        match answer {
            Ok(number) => {
                answers.write_all(&0_i32.to_le_bytes())?;
                answers.write_all(&number.to_le_bytes())?;
                answers.write_all(&bytes)?;
            }
            Err(error) => {
                answers.write_all(&errno_of(&error).to_le_bytes())?;
                answers.write_all(&0_u64.to_le_bytes())?;
            }
        }
        answers.flush()?;
    }
    Ok(())
}
