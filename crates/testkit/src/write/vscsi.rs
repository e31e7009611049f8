//! VMware vscsi trace: fixed little-endian records of 32 bytes (version 1) or 40 (version 2), no header.
//!
//! Version 1: serial u32, length u32, scatter-gather entries u32, command u16, version u16, block u64, µs u64.
//! Version 2: command u16, version u16, serial u32, length u32, entries u32, block u64, µs u64, response µs u64.
//! The format has no device: the events of all devices end up in one trace, as of one virtual disk.

use super::{EventSink, WriteError, Writer, fit_u32};
use crate::event::{SynthEvent, SynthOp};
use std::io::Write;

/// The entry of version 1 in the list of writers.
pub static V1: Writer = Writer {
    name: "vscsi1",
    format: "vscsi",
    open: |sink, _| Ok(Box::new(Vscsi::new(sink, VscsiVersion::V1))),
};

/// The entry of version 2.
pub static V2: Writer = Writer {
    name: "vscsi2",
    format: "vscsi",
    open: |sink, _| Ok(Box::new(Vscsi::new(sink, VscsiVersion::V2))),
};

/// Version of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VscsiVersion {
    /// 32 bytes, no response time.
    V1,
    /// 40 bytes.
    V2,
}

/// One record before it has bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VscsiRecord {
    /// Serial number.
    pub serial: u32,
    /// Length in bytes.
    pub len_bytes: u32,
    /// Scatter-gather entries.
    pub entries: u32,
    /// SCSI operation code.
    pub command: u16,
    /// Low byte of the version field, of no known meaning; 0 in the trace at hand.
    pub minor: u8,
    /// Block of 512 bytes.
    pub block: u64,
    /// Microseconds since the host came up.
    pub time_us: u64,
}

impl VscsiRecord {
    /// Appends the 32 bytes of version 1.
    pub fn encode_v1(&self, out: &mut Vec<u8>) {
        for word in [self.serial, self.len_bytes, self.entries] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&self.command.to_le_bytes());
        out.extend_from_slice(&[self.minor, 1]);
        out.extend_from_slice(&self.block.to_le_bytes());
        out.extend_from_slice(&self.time_us.to_le_bytes());
    }

    /// Appends the 40 bytes of version 2.
    pub fn encode_v2(&self, response_us: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.command.to_le_bytes());
        out.extend_from_slice(&[self.minor, 2]);
        for word in [self.serial, self.len_bytes, self.entries] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        for long in [self.block, self.time_us, response_us] {
            out.extend_from_slice(&long.to_le_bytes());
        }
    }
}

/// A writer of vscsi records.
pub struct Vscsi<W: Write> {
    sink: W,
    version: VscsiVersion,
    buffer: Vec<u8>,
    serial: u32,
}

/// Clock of the host at the workload's zero, µs: a real trace counts from the host's start.
const ORIGIN_US: u64 = 5_000_000_000_000;

impl<W: Write> Vscsi<W> {
    /// Writes to `sink`. Buffered here.
    pub fn new(sink: W, version: VscsiVersion) -> Self {
        Self {
            sink,
            version,
            buffer: Vec::with_capacity(1 << 17),
            serial: 0x8000_0000,
        }
    }

    fn drain(&mut self) -> Result<(), WriteError> {
        self.sink.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// The ten-byte command, or the sixteen-byte one where the block needs it.
fn command(op: SynthOp, block: u64) -> u16 {
    let short = u32::try_from(block).is_ok();
    match (op, short) {
        (SynthOp::Read, true) => 0x28,
        (SynthOp::Read, false) => 0x88,
        (SynthOp::Write, true) => 0x2a,
        (SynthOp::Write, false) => 0x8a,
        (SynthOp::Discard, _) => 0x42,
        (SynthOp::Flush, _) => 0x35,
    }
}

impl<W: Write> EventSink for Vscsi<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        let record = VscsiRecord {
            serial: self.serial,
            len_bytes: fit_u32(event, "length", event.len_bytes)?,
            entries: event.len_bytes.div_ceil(4096) as u32,
            command: command(event.op, event.sector()),
            minor: 0,
            block: event.sector(),
            time_us: ORIGIN_US.saturating_add_signed(event.time_ns / 1000),
        };
        self.serial = self.serial.wrapping_add(1);
        match (self.version, event.device_ns) {
            (VscsiVersion::V1, _) => record.encode_v1(&mut self.buffer),
            (VscsiVersion::V2, ns) => {
                record.encode_v2(ns.unwrap_or(0).unsigned_abs() / 1000, &mut self.buffer);
            }
        }
        if self.buffer.len() >= (1 << 17) - 64 {
            self.drain()?;
        }
        Ok(true)
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        self.drain()?;
        Ok(self.sink.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::fixture::{READ, SharedBytes, WRITE};
    use crate::write::write_all;

    fn bytes_of(version: VscsiVersion) -> Vec<u8> {
        let bytes = SharedBytes::default();
        write_all(&mut Vscsi::new(bytes.clone(), version), [READ, WRITE]).expect("memory");
        bytes.take()
    }

    /// 5,000,002,000,000 µs is 0x048c27395000 + 2,000,000.
    const READ_TIME: [u8; 8] = 5_000_002_000_000u64.to_le_bytes();

    #[test]
    fn version_1_has_its_fields_in_place() {
        let bytes = bytes_of(VscsiVersion::V1);
        assert_eq!(bytes.len(), 64);
        assert_eq!(bytes[0..4], [0, 0, 0, 0x80], "serial");
        assert_eq!(bytes[4..8], [0, 0x20, 0, 0], "length");
        assert_eq!(bytes[8..12], [2, 0, 0, 0], "entries");
        assert_eq!(bytes[12..16], [0x28, 0, 0, 1], "command and version");
        assert_eq!(bytes[16..24], [63, 0, 0, 0, 0, 0, 0, 0], "block");
        assert_eq!(bytes[24..32], READ_TIME, "time");
        assert_eq!(bytes[32..36], [1, 0, 0, 0x80], "serial of the second");
        assert_eq!(bytes[44..48], [0x2a, 0, 0, 1], "the second writes");
    }

    #[test]
    fn version_2_has_its_fields_in_place() {
        let bytes = bytes_of(VscsiVersion::V2);
        assert_eq!(bytes.len(), 80);
        assert_eq!(bytes[0..4], [0x28, 0, 0, 2], "command and version");
        assert_eq!(bytes[4..8], [0, 0, 0, 0x80], "serial");
        assert_eq!(bytes[8..12], [0, 0x20, 0, 0], "length");
        assert_eq!(bytes[12..16], [2, 0, 0, 0], "entries");
        assert_eq!(bytes[16..24], [63, 0, 0, 0, 0, 0, 0, 0], "block");
        assert_eq!(bytes[24..32], READ_TIME, "time");
        assert_eq!(bytes[32..40], [87, 0, 0, 0, 0, 0, 0, 0], "response");
        assert_eq!(bytes[72..80], [0; 8], "a response that was not seen is 0");
    }

    #[test]
    fn far_blocks_take_the_long_command() {
        assert_eq!(command(SynthOp::Read, 1 << 32), 0x88);
        assert_eq!(command(SynthOp::Write, (1 << 32) - 1), 0x2a);
    }
}
