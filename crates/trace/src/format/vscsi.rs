//! VMware vscsi traces (CloudPhysics): fixed binary records without a header, little-endian.
//!
//! Version 1 has 32 bytes: serial u32, length u32 (bytes), segments u32, command u16, version u16, block u64
//! (512 B), time u64 (µs). Version 2 has 40: command u16, version u16, serial u32, length u32, segments u32,
//! block u64, time u64 (µs), response u64 (µs). The high byte of the version field is the version.
//! The time counts from some start of the host, not from 1970.
//!
//! One record is one SCSI command that a virtual machine sent to its virtual disk: the request layer of the
//! guest. Version 1 is verified against a real trace; no real file of version 2 was at hand.

use crate::batch::{BATCH_EVENTS, Batch, Event};
use crate::error::{Damage, Error, Place, shown};
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::op::{Layer, Op};
use crate::reader::{Fill, LayerChoice, ReadOptions, Reader, Sniff};
use crate::source::{Clock, Latency, SourceInfo};
use crate::text::Sink;

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "vscsi",
    title: "VMware, CloudPhysics; binary, version 1 and 2",
    verified: true,
    unsorted: true,
    about: About {
        families: &[(Family::Vmware, "vscsi traces")],
        layer: "request of the guest",
        holds: Holds::Events {
            times: "µs since some start of the host",
            latency: "version 2 only",
        },
        verified_by: "113,872 real commands of version 1; version 2: **unverified**",
        cannot_tell: "latency (version 1); processes",
        words: &[],
        real: &["vscsi/cloudPhysicsIO.vscsi"],
    },
    sniff,
    open,
};

const EXPECTED: &str = "a vscsi record: version 1 or 2 in the version field, a length below 64 MiB";

/// No SCSI command of a virtual disk moves as much at once.
const LEN_BYTES_MAX: u32 = 1 << 26;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Version {
    const fn record_bytes(self) -> usize {
        match self {
            Version::V1 => 32,
            Version::V2 => 40,
        }
    }
}

struct ScsiCommand {
    len_bytes: u32,
    code: u16,
    block: u64,
    time_us: u64,
    response_us: Option<u64>,
}

fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from(u16_at(record, at)) | u32::from(u16_at(record, at + 2)) << 16
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from(u32_at(record, at)) | u64::from(u32_at(record, at + 4)) << 32
}

/// A record of the version, or `None` when it cannot be one. `record` has the version's length.
fn decode(version: Version, record: &[u8]) -> Option<ScsiCommand> {
    let (command, tag) = match version {
        Version::V1 => (
            ScsiCommand {
                len_bytes: u32_at(record, 4),
                code: u16_at(record, 12),
                block: u64_at(record, 16),
                time_us: u64_at(record, 24),
                response_us: None,
            },
            u16_at(record, 14) >> 8,
        ),
        Version::V2 => (
            ScsiCommand {
                len_bytes: u32_at(record, 8),
                code: u16_at(record, 0),
                block: u64_at(record, 16),
                time_us: u64_at(record, 24),
                response_us: Some(u64_at(record, 32)),
            },
            u16_at(record, 2) >> 8,
        ),
    };
    let wanted = if version == Version::V1 { 1 } else { 2 };
    (tag == wanted && command.code <= 0xff && command.len_bytes <= LEN_BYTES_MAX).then_some(command)
}

fn version_of(prefix: &[u8]) -> Option<Version> {
    [Version::V2, Version::V1].into_iter().find(|version| {
        let bytes = version.record_bytes();
        prefix.len() >= bytes
            && prefix
                .chunks_exact(bytes)
                .take(2)
                .all(|record| decode(*version, record).is_some())
    })
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    if prefix.len() < 80 && !complete {
        return Sniff::More;
    }
    if version_of(prefix).is_some() {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

/// Operation of a SCSI command code; `Other` for those that move no blocks of a disk.
fn op_of(code: u16) -> Op {
    match code {
        0x08 | 0x28 | 0x88 | 0xa8 => Op::Read,
        0x0a | 0x2a | 0x8a | 0xaa | 0x2e | 0x8e | 0xae => Op::Write,
        0x35 | 0x91 => Op::Flush,
        0x42 => Op::Discard,
        0x41 | 0x93 => Op::WriteZeroes,
        _ => Op::Other,
    }
}

struct VscsiReader {
    input: Input,
    version: Version,
    sink: Sink,
    device: u32,
    ended: bool,
}

fn open(mut input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    let path = input.path.clone();
    let prefix = input.peek(80)?;
    let Some(version) = version_of(prefix) else {
        let damage = Damage {
            place: Place::Byte(0),
            found: shown(prefix),
            expected: EXPECTED.to_owned(),
        };
        return Err(Error::Malformed { path, damage });
    };
    if let LayerChoice::Only(asked) = options.layer
        && asked != Layer::Request
    {
        return Err(Error::NoLayer {
            path,
            asked,
            present: Layer::Request.word().to_owned(),
        });
    }
    let latency = match version {
        Version::V1 => Latency::None("version 1 of vscsi records no response time".to_owned()),
        Version::V2 => Latency::Known,
    };
    let info = SourceInfo {
        path,
        format: FORMAT.name,
        verified: version == Version::V1,
        layers: vec![Layer::Request],
        clock: Clock::Boot,
        latency,
        ..SourceInfo::default()
    };
    let mut sink = Sink::new(info);
    let device = sink.names.device("0");
    Ok(Box::new(VscsiReader {
        input,
        version,
        sink,
        device,
        ended: false,
    }))
}

impl VscsiReader {
    fn read_records(&mut self) -> Result<(), Error> {
        let record_bytes = self.version.record_bytes();
        while self.sink.batch.len() < BATCH_EVENTS {
            let shown_bytes = self.input.peek(record_bytes)?;
            if shown_bytes.len() < record_bytes {
                let left = shown_bytes.len();
                self.ended = true;
                if left > 0 {
                    self.damage(
                        format!("{left} bytes before the end"),
                        format!("a record of {record_bytes} bytes"),
                    );
                }
                return Ok(());
            }
            let record = &shown_bytes[..record_bytes];
            match decode(self.version, record)
                .ok_or_else(|| shown(record))
                .and_then(|command| {
                    event_of(&command, self.device)
                        .ok_or_else(|| format!("block {} at {} µs", command.block, command.time_us))
                }) {
                Ok(event) => self.sink.push(&event),
                Err(found) => self.damage(found, EXPECTED.to_owned()),
            }
            self.sink.info.counts.records += 1;
            self.input.consume(record_bytes);
        }
        Ok(())
    }

    fn damage(&mut self, found: String, expected: String) {
        let place = Place::Byte(self.input.offset());
        self.sink.info.damage(Damage {
            place,
            found,
            expected,
        });
    }
}

fn event_of(command: &ScsiCommand, device: u32) -> Option<Event> {
    let start = command.block.checked_mul(512)?;
    let time_ns = i64::try_from(command.time_us).ok()?.checked_mul(1000)?;
    start.checked_add(u64::from(command.len_bytes))?;
    let op = op_of(command.code);
    let mut event = Event::new(
        time_ns,
        device,
        Layer::Request,
        op,
        start,
        u64::from(command.len_bytes),
    );
    if let Some(response_us) = command.response_us {
        event.device_ns = Some(i64::try_from(response_us).ok()?.checked_mul(1000)?);
    }
    Some(event)
}

impl Reader for VscsiReader {
    fn fill(&mut self, batch: &mut Batch) -> Result<Fill, Error> {
        batch.clear();
        if !self.ended {
            let outcome = self.read_records();
            self.sink.stop_on(outcome, &mut self.ended)?;
        }
        Ok(self.sink.next_fill(batch))
    }

    fn info(&self) -> &SourceInfo {
        &self.sink.info
    }
}
