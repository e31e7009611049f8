//! The text of `tnfdump` from a Solaris kernel trace (prex, tnfxtract). *Unverified*: no real trace of I/O was
//! at hand; the columns are those of the manual page, the probes those of the kernel's source.
//!
//! `Elapsed (ms)  Delta (ms)  PID  LWPID  TID  CPU  Probe Name  Data`, the data as `name: value` pairs that may
//! go on over further lines. Read are the probes
//!
//! | probe | data used | meaning |
//! |---|---|---|
//! | `strategy` | device, block (512 B), size (bytes), buf, flags | a driver is given a buffer; flag 0x40 is a read |
//! | `biodone` | device, block, buf | the buffer is done |
//! | `physio_start` | device, offset (bytes), size, rw | raw I/O begins |
//! | `aphysio_start` | device, blkno, size, bp, rw | asynchronous raw I/O begins |
//!
//! A driver's strategy routine gets the requests to the device node, before the driver cuts them up or converts a
//! slice's block into the disk's: the layer is bio, and a block may count from the start of a slice. A start is ended
//! by the next biodone of its buffer, device and block. physio_start names no buffer, so such I/O have no latency. The
//! thread is the LWP, for kernel threads a number made of the TID. Devices are numbers, printed here as major,minor of
//! the 32-bit form. Elapsed counts from the first event, in ms with six decimals, which is exact in ns.

mod pairs;

use self::pairs::{Awaited, Pairs};
use crate::batch::Event;
use crate::error::Error;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::number::{parse_decimal, parse_hex, parse_u64};
use crate::op::{Layer, Op};
use crate::reader::{ReadOptions, Reader, Sniff};
use crate::source::{Clock, SourceInfo};
use crate::text::{LineError, LineFormat, Sink, TextReader, split_words};
use crate::tool::{check_layer, damaged_at_end, sniff_below_prose};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "tnfdump",
    title: "text of a Solaris kernel trace",
    verified: false,
    unsorted: true,
    about: About {
        families: &[(Family::Solaris, "tnfdump")],
        layer: "bio",
        holds: Holds::Events {
            times: "ns since the first event",
            latency: "strategy to biodone",
        },
        verified_by: "**unverified**: no real trace",
        cannot_tell: "latency of raw I/O by `physio`",
        words: &[
            "Elapsed (ms)",
            "Delta (ms)",
            "PID",
            "LWPID",
            "TID",
            "CPU",
            "Probe Name",
            "Data",
            "strategy",
            "biodone",
            "physio_start",
            "aphysio_start",
            "device: ",
            "block: ",
            "size: ",
            "buf: ",
            "flags: ",
            "offset: ",
            "rw: ",
            "0x40",
        ],
        real: &[],
    },
    sniff,
    open,
};

/// `B_READ` of `sys/buf.h`.
const READ_FLAG: u64 = 0x40;

/// No probe of the kernel has as much data.
const DATA_BYTES_MAX: usize = 4096;

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    let head = [&b"Elapsed"[..], b"(ms)", b"Delta", b"(ms)"];
    sniff_below_prose(prefix, complete, |line| split_words(line).take(4).eq(head))
}

/// An event with possibly incomplete data.
struct PendingEvent {
    time_ns: i64,
    pid: Option<i32>,
    tid: Option<i32>,
    probe: &'static str,
    data: Vec<u8>,
}

const PROBES: [&str; 4] = ["strategy", "biodone", "physio_start", "aphysio_start"];

struct Tnfdump {
    pending: Option<PendingEvent>,
    pairs: Pairs,
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    check_layer(&input.path, options, Some(Layer::Bio))?;
    let mut info = SourceInfo {
        format: FORMAT.name,
        verified: FORMAT.verified,
        layers: vec![Layer::Bio],
        clock: Clock::Start,
        ..SourceInfo::default()
    };
    info.note(
        "a block may count from the start of the slice that was addressed and not from that of the disk",
    );
    let format = Tnfdump {
        pending: None,
        pairs: Pairs::default(),
    };
    Ok(Box::new(TextReader::new(input, format, info)))
}

/// The fields of an event line.
struct EventLine<'line> {
    time_ns: i64,
    pid: Option<i32>,
    tid: Option<i32>,
    probe: &'line [u8],
    data: &'line [u8],
}

/// An event line taken apart. `None` for a line of another kind.
fn event_line(line: &[u8]) -> Option<Result<EventLine<'_>, LineError>> {
    let mut rest = line;
    let mut next = || {
        let from = rest.trim_ascii_start();
        let end = from
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(from.len());
        rest = &from[end..];
        &from[..end]
    };
    let (elapsed, delta, pid) = (next(), next(), next());
    let (lwp, thread, _cpu) = (next(), next(), next());
    let probe = next();
    let time_ns = parse_decimal(elapsed, 6);
    if time_ns.is_none() && parse_decimal(delta, 6).is_none()
        || memchr::memchr(b':', elapsed).is_some()
    {
        return None;
    }
    let Some(time_ns) = time_ns.filter(|&ns| ns >= 0) else {
        return Some(Err(LineError::new(elapsed, "elapsed ms, 0 or more")));
    };
    if probe.is_empty() || parse_u64(pid).is_none() {
        return Some(Err(LineError::new(
            line,
            "PID LWPID TID CPU and a probe after the times",
        )));
    }
    let pid = parse_u64(pid).and_then(|pid| i32::try_from(pid).ok());
    Some(Ok(EventLine {
        time_ns,
        pid,
        tid: thread_number(lwp, thread),
        probe,
        data: rest,
    }))
}

/// A thread of a process goes by the number of its LWP. Threads of the kernel have none (0): their address tells them
/// apart, shifted so that the part that differs fits.
fn thread_number(lwp: &[u8], thread: &[u8]) -> Option<i32> {
    let lwp = parse_u64(lwp).and_then(|lwp| i32::try_from(lwp).ok());
    match lwp {
        Some(0) => {
            let address = parse_hex(thread)?;
            i32::try_from(address >> 3 & 0x7fff_ffff).ok()
        }
        lwp => lwp,
    }
}

/// The value of a name among `name: value` pairs.
fn value(data: &[u8], name: &str) -> Option<u64> {
    let mut found = split_words(data);
    while let Some(word) = found.next() {
        if word.strip_suffix(b":") == Some(name.as_bytes()) {
            let word = found.next()?;
            return if word.starts_with(b"0x") {
                parse_hex(word)
            } else {
                parse_u64(word)
            };
        }
    }
    None
}

fn device_name(device: u64) -> String {
    match u32::try_from(device) {
        Ok(device) => format!("{},{}", device >> 18, device & 0x3_ffff),
        Err(_) => device.to_string(),
    }
}

impl LineFormat for Tnfdump {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let Some(event) = event_line(line) else {
            match &mut self.pending {
                Some(pending) if pending.data.len() + line.len() < DATA_BYTES_MAX => {
                    pending.data.push(b' ');
                    pending.data.extend_from_slice(line);
                }
                _ => sink.info.tally("other line"),
            }
            return Ok(());
        };
        let before = self.settle(sink);
        let EventLine {
            time_ns,
            pid,
            tid,
            probe,
            data,
        } = event?;
        match PROBES.iter().find(|known| known.as_bytes() == probe) {
            Some(probe) => {
                sink.info.tally(probe);
                let data = data[..data.len().min(DATA_BYTES_MAX)].to_vec();
                self.pending = Some(PendingEvent {
                    time_ns,
                    pid,
                    tid,
                    probe,
                    data,
                });
            }
            None => sink.info.tally("other probe"),
        }
        before
    }

    fn end(&mut self, sink: &mut Sink) {
        if let Err(error) = self.settle(sink) {
            damaged_at_end(error, &mut sink.info);
        }
        self.pairs.drain_rest(sink);
    }
}

impl Tnfdump {
    /// Takes in the event whose data is now complete.
    fn settle(&mut self, sink: &mut Sink) -> Result<(), LineError> {
        let Some(pending) = self.pending.take() else {
            return Ok(());
        };
        let bad = || {
            LineError::new(
                &pending.data,
                "device, block, size and buffer as `name: value`",
            )
        };
        let get = |name| value(&pending.data, name);
        let device = get("device").ok_or_else(bad)?;
        match pending.probe {
            "biodone" => {
                let (block, buf) = (get("block").ok_or_else(bad)?, get("buf").ok_or_else(bad)?);
                self.pairs
                    .complete(pending.time_ns, Awaited { buf, device, block }, sink);
            }
            "physio_start" => {
                sink.info
                    .note("raw I/O (physio) has no latency here: its start names no buffer");
                let (start, flags) = (get("offset").ok_or_else(bad)?, get("rw").ok_or_else(bad)?);
                self.start(&pending, device, (start, flags), None, sink)?;
            }
            probe => {
                let raw = probe == "aphysio_start";
                let names = if raw {
                    ["blkno", "rw", "bp"]
                } else {
                    ["block", "flags", "buf"]
                };
                let [block, flags, buf] = names.map(get);
                let (block, flags, buf) = (
                    block.ok_or_else(bad)?,
                    flags.ok_or_else(bad)?,
                    buf.ok_or_else(bad)?,
                );
                let start = block.checked_mul(512).ok_or_else(bad)?;
                self.start(&pending, device, (start, flags), Some((buf, block)), sink)?;
            }
        }
        self.pairs.drain(sink);
        Ok(())
    }

    fn start(
        &mut self,
        pending: &PendingEvent,
        device: u64,
        (start, flags): (u64, u64),
        awaited: Option<(u64, u64)>,
        sink: &mut Sink,
    ) -> Result<(), LineError> {
        let bad = || LineError::new(&pending.data, "a size in bytes, with its end below 2^64");
        let len = value(&pending.data, "size").ok_or_else(bad)?;
        start.checked_add(len).ok_or_else(bad)?;
        let op = if flags & READ_FLAG != 0 {
            Op::Read
        } else {
            Op::Write
        };
        let id = sink.names.device(&device_name(device));
        let mut event = Event::new(pending.time_ns, id, Layer::Bio, op, start, len);
        (event.pid, event.tid) = (pending.pid, pending.tid);
        let awaited = awaited.map(|(buf, block)| Awaited { buf, device, block });
        self.pairs.start(event, awaited, sink);
        Ok(())
    }
}
