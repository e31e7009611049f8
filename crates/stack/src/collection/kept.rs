//! The parts of devices that a collection keeps: the bytes of labels and superblocks, and the list of reads.
//!
//! Only bytes that a reader recognized are kept. All others read as zeros: a reader found nothing in them, and finds
//! nothing in zeros. So a collection holds no unrecognized content of a device. Of an encrypted volume it holds no key slot,
//! salt, digest or token: its reader keeps other bytes in their place. A read of places that nobody asked for is an error
//! that says so.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use plumb_geometry::SmallSort;
use plumb_label::Disk;
use serde::{Deserialize, Serialize};

use crate::devices::Open;
use crate::ondisk::Counted;

/// Most bytes that are kept of one device: LVM's text, the longest of all, has a mebibyte or some.
pub const BYTES_MAX: u64 = 16 << 20;

/// Bytes of a device by where they begin.
pub type Pieces = BTreeMap<u64, Vec<u8>>;

/// One device: everything but its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptDevice {
    /// Name below `/dev`, or the path of a file.
    pub name: String,
    /// Its directory in the collection.
    pub folder: String,
    /// Length of the device.
    pub size_bytes: u64,
    /// Ranges that were read: start and length, in order and apart. Ranges without kept bytes read as zeros.
    pub read: Vec<(u64, u64)>,
    /// Runs that could not be read, with the error of the system; `None` where it said only that they end too soon.
    pub failed: Vec<(u64, u64, Option<i32>)>,
    /// Why it could not be opened, as error of the system; `None` where it could.
    pub refused: Option<i32>,
}

/// Opens disks elsewhere and records the reads.
pub struct Watching<'a> {
    disks: &'a dyn Open,
    logs: RefCell<Vec<Log>>,
}

#[derive(Default)]
struct Log {
    device: KeptDevice,
    reads: RefCell<Vec<(u64, Vec<u8>)>>,
    failed: RefCell<Vec<(u64, u64, Option<i32>)>>,
    kept: Pieces,
}

/// A disk and the number of its log.
struct LoggingDisk<'a> {
    disk: Box<dyn Disk + 'a>,
    logs: &'a RefCell<Vec<Log>>,
    at: usize,
}

impl<'a> Watching<'a> {
    pub fn new(disks: &'a dyn Open) -> Self {
        Watching {
            disks,
            logs: RefCell::default(),
        }
    }

    /// The bytes to keep of each device.
    pub fn into_kept(self) -> Vec<(KeptDevice, Pieces)> {
        let logs = self.logs.into_inner().into_iter();
        let kept = logs.map(|log| {
            let reads = log.reads.into_inner();
            let read = joined(
                reads
                    .iter()
                    .map(|(start, bytes)| (*start, bytes.len() as u64)),
            );
            (
                KeptDevice {
                    read,
                    failed: log.failed.into_inner(),
                    ..log.device
                },
                log.kept,
            )
        });
        kept.collect()
    }
}

impl Open for Watching<'_> {
    fn open(&self, name: &str) -> io::Result<Box<dyn Disk + '_>> {
        let opened = self.disks.open(name);
        if opened
            .as_ref()
            .is_err_and(|error| error.raw_os_error().is_none())
        {
            return opened;
        }
        let mut logs = self.logs.borrow_mut();
        let at = logs.len();
        let device = KeptDevice {
            name: name.to_owned(),
            folder: folder(at, name),
            size_bytes: opened.as_ref().map_or(0, |disk| disk.size_bytes()),
            refused: opened.as_ref().err().and_then(io::Error::raw_os_error),
            ..KeptDevice::default()
        };
        logs.push(Log {
            device,
            ..Log::default()
        });
        Ok(Box::new(LoggingDisk {
            disk: opened?,
            logs: &self.logs,
            at,
        }))
    }

    fn counted(&self, name: &str, counted: &Counted) {
        let mut logs = self.logs.borrow_mut();
        let Some(log) = logs.iter_mut().rev().find(|log| log.device.name == name) else {
            return;
        };
        let mut room = BYTES_MAX;
        let mut reads = log.reads.borrow_mut();
        let mut has_room = |bytes: &[u8]| {
            room = room.saturating_sub(bytes.len() as u64);
            room > 0
        };
        // Reads that do not fit count as not read, and not as zeros.
        reads.retain(|(_, bytes)| has_room(bytes));
        log.kept = pieces(&reads, counted);
    }
}

impl Disk for LoggingDisk<'_> {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let done = self.disk.read_at(offset_bytes, buffer);
        let logs = self.logs.borrow();
        let log = &logs[self.at];
        match &done {
            Ok(()) => log.reads.borrow_mut().push((offset_bytes, buffer.to_vec())),
            Err(error) => {
                let run = (offset_bytes, buffer.len() as u64, error.raw_os_error());
                log.failed.borrow_mut().push(run);
            }
        }
        done
    }
}

/// `2-vg!lv`: a number that tells devices apart, and enough of the name to know it again.
fn folder(at: usize, name: &str) -> String {
    let plain: Vec<char> = name
        .chars()
        .map(|c| if c == '/' || c.is_control() { '!' } else { c })
        .collect();
    let end: String = plain[plain.len().saturating_sub(48)..].iter().collect();
    format!("{at}-{end}")
}

/// Runs in order, those that touch made one.
fn joined(runs: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut runs: Vec<Range<u64>> = runs
        .map(|(start, len)| start..start.saturating_add(len))
        .collect();
    runs.small_sort_by_key(|run| (run.start, run.end));
    let mut joined: Vec<Range<u64>> = Vec::new();
    for run in runs.into_iter().filter(|run| !run.is_empty()) {
        match joined.last_mut() {
            Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
            _ => joined.push(run),
        }
    }
    joined
        .into_iter()
        .map(|run| (run.start, run.end - run.start))
        .collect()
}

/// The bytes read in the ranges that count, or their replacement.
fn pieces(reads: &[(u64, Vec<u8>)], counted: &Counted) -> Pieces {
    let instead = counted.instead.iter();
    let of_instead = instead.map(|(start, bytes)| (*start, bytes.len() as u64));
    let runs = joined(counted.runs.iter().copied().chain(of_instead));
    let mut pieces = Pieces::new();
    for (start, len) in joined(
        reads
            .iter()
            .map(|(start, bytes)| (*start, bytes.len() as u64)),
    ) {
        let whole = start..start + len;
        let mut bytes = vec![0; len as usize];
        for (at, read) in reads.iter().filter(|(at, _)| whole.contains(at)) {
            let at = (at - start) as usize;
            bytes[at..at + read.len()].copy_from_slice(read);
        }
        // Another reader may have recognized something in the same bytes: they stay out all the same.
        for (at, kept) in counted.instead.iter().filter(|(at, _)| whole.contains(at)) {
            let at = (at - start) as usize;
            let len = kept.len().min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&kept[..len]);
        }
        for &(from, len) in &runs {
            let run = from.max(whole.start)..from.saturating_add(len).min(whole.end);
            if !run.is_empty() {
                let within = (run.start - start) as usize..(run.end - start) as usize;
                pieces.insert(run.start, bytes[within].to_vec());
            }
        }
    }
    pieces
}

/// Devices as a collection has them.
#[derive(Default)]
pub struct Kept {
    devices: BTreeMap<String, (KeptDevice, Pieces)>,
}

impl Kept {
    /// No device at all.
    #[cfg(test)]
    pub const NONE: Kept = Kept {
        devices: BTreeMap::new(),
    };

    pub fn add(&mut self, device: KeptDevice, pieces: Pieces) {
        self.devices.insert(device.name.clone(), (device, pieces));
    }
}

impl Open for Kept {
    fn open(&self, name: &str) -> io::Result<Box<dyn Disk + '_>> {
        let (device, pieces) = self.devices.get(name).ok_or(io::ErrorKind::NotFound)?;
        match device.refused {
            Some(error) => Err(io::Error::from_raw_os_error(error)),
            None => Ok(Box::new(KeptDisk { device, pieces })),
        }
    }
}

struct KeptDisk<'a> {
    device: &'a KeptDevice,
    pieces: &'a Pieces,
}

impl Disk for KeptDisk<'_> {
    fn size_bytes(&self) -> u64 {
        self.device.size_bytes
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let len = buffer.len() as u64;
        let end = offset_bytes
            .checked_add(len)
            .filter(|end| *end <= self.device.size_bytes);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let holds =
            |start: u64, len: u64| start <= offset_bytes && end <= start.saturating_add(len);
        if !self
            .device
            .read
            .iter()
            .any(|(start, len)| holds(*start, *len))
        {
            return Err(self.error(offset_bytes, end));
        }
        buffer.fill(0);
        for (start, bytes) in self.pieces.range(..end) {
            let run = (*start).max(offset_bytes)..start.saturating_add(bytes.len() as u64).min(end);
            if !run.is_empty() {
                let (to, from) = (
                    (run.start - offset_bytes) as usize,
                    (run.start - start) as usize,
                );
                let len = (run.end - run.start) as usize;
                buffer[to..to + len].copy_from_slice(&bytes[from..from + len]);
            }
        }
        Ok(())
    }
}

impl KeptDisk<'_> {
    /// Why bytes cannot be read.
    fn error(&self, start: u64, end: u64) -> io::Error {
        let meets = |from: u64, len: u64| from < end && start < from.saturating_add(len);
        let failed = self
            .device
            .failed
            .iter()
            .find(|(from, len, _)| meets(*from, *len));
        match failed {
            Some((.., Some(error))) => io::Error::from_raw_os_error(*error),
            Some((.., None)) => io::ErrorKind::UnexpectedEof.into(),
            None => io::Error::new(io::ErrorKind::NotFound, "it was not kept by the collection"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 64 << 10;
    /// Bytes that cannot be read, and with which error: EIO.
    const BAD: Range<u64> = 20_000..20_512;
    const EIO: i32 = 5;

    /// Every byte encodes its position, and none is zero.
    struct Numbered;

    impl Disk for Numbered {
        fn size_bytes(&self) -> u64 {
            LEN
        }

        fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
            let run = offset_bytes..offset_bytes + buffer.len() as u64;
            if run.start < BAD.end && BAD.start < run.end {
                return Err(io::Error::from_raw_os_error(EIO));
            }
            for (byte, at) in buffer.iter_mut().zip(run) {
                *byte = (at % 251) as u8 + 1;
            }
            Ok(())
        }
    }

    struct One;

    impl Open for One {
        fn open(&self, name: &str) -> io::Result<Box<dyn Disk + '_>> {
            match name {
                "sda" => Ok(Box::new(Numbered)),
                _ => Err(io::Error::from_raw_os_error(13)),
            }
        }
    }

    /// The result of reading a range of a disk.
    fn read_run(disk: &dyn Disk, start: u64, len: usize) -> Result<Vec<u8>, Option<i32>> {
        let mut bytes = vec![0xee; len];
        disk.read_at(start, &mut bytes)
            .map(|()| bytes)
            .map_err(|error| error.raw_os_error())
    }

    /// The kept bytes after these reads, with these ranges recognized, and with these bytes as replacements.
    fn kept(reads: &[(u64, usize)], counted: &[(u64, u64)], instead: &[(u64, Vec<u8>)]) -> Kept {
        let watching = Watching::new(&One);
        let disk = watching.open("sda").expect("a disk");
        for (start, len) in reads {
            let _ = read_run(&*disk, *start, *len);
        }
        drop(disk);
        let counted = Counted {
            runs: counted.to_vec(),
            instead: instead.to_vec(),
        };
        watching.counted("sda", &counted);
        assert!(watching.open("sdb").is_err());
        let mut kept = Kept::default();
        for (device, pieces) in watching.into_kept() {
            kept.add(device, pieces);
        }
        kept
    }

    #[test]
    fn relevant_bytes_are_kept_and_others_are_zeros() {
        let reads = [
            (0, 512),
            (512, 512),
            (256, 512),
            (4096, 4096),
            (19_900, 200),
            (65_000, 536),
        ];
        let kept = kept(&reads, &[(100, 500), (4096, 100), (8000, 50_000)], &[]);
        let disk = kept.open("sda").expect("it is kept");
        assert_eq!(disk.size_bytes(), LEN);
        let counts = |at: u64| {
            (100..600).contains(&at) || (4096..4196).contains(&at) || (8000..58_000).contains(&at)
        };
        for (start, len) in reads {
            let expected = read_run(&Numbered, start, len).map(|bytes| {
                let bytes = bytes.into_iter().zip(start..);
                bytes
                    .map(|(byte, at)| if counts(at) { byte } else { 0 })
                    .collect::<Vec<_>>()
            });
            assert_eq!(read_run(&*disk, start, len), expected, "{len} from {start}");
        }
        assert_eq!(read_run(&*disk, 19_950, 100), Err(Some(EIO)));
        // Read by nobody, and beyond the end.
        for (start, len) in [
            (1024, 1),
            (1000, 100),
            (10_000, 10),
            (LEN - 1, 2),
            (u64::MAX, 1),
        ] {
            assert_eq!(
                read_run(&*disk, start, len),
                Err(None),
                "{len} from {start}"
            );
        }
    }

    /// Even if other parts of the same bytes were recognized.
    #[test]
    fn secrets_are_replaced() {
        let instead = [(4096, vec![0; 4096]), (4100, b"{}".to_vec())];
        for counted in [&[][..], &[(0, LEN)]] {
            let kept = kept(&[(0, 512), (4096, 4096)], counted, &instead);
            let disk = kept.open("sda").expect("it is kept");
            let mut expected = vec![0; 4096];
            expected[4..6].copy_from_slice(b"{}");
            assert_eq!(read_run(&*disk, 4096, 4096), Ok(expected), "{counted:?}");
        }
    }

    #[test]
    fn refused_devices_remain_refused() {
        let kept = kept(&[], &[], &[]);
        let error = kept.open("sdb").err().expect("it was refused");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(
            kept.open("sdc").err().expect("nobody asked").kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_device_keeps_no_more_than_it_may() {
        let reads = vec![(0, vec![1; BYTES_MAX as usize]), (BYTES_MAX, vec![1; 512])];
        let watching = Watching::new(&One);
        drop(watching.open("sda"));
        watching.logs.borrow()[0].reads.replace(reads);
        let all = Counted {
            runs: vec![crate::devices::ALL],
            ..Counted::default()
        };
        watching.counted("sda", &all);
        let (device, pieces) = watching.into_kept().remove(0);
        assert!(pieces.values().map(Vec::len).sum::<usize>() as u64 <= BYTES_MAX);
        assert!(
            device
                .read
                .iter()
                .all(|(start, len)| start + len <= BYTES_MAX),
            "{:?}",
            device.read
        );
    }
}
