//! fio iolog, versions 2 and 3: a header line, then `FILE ACTION` and `FILE ACTION OFFSET LENGTH`, bytes.
//!
//! Version 3 puts microseconds since the start before each line. Version 2 has none, but `wait` lines that
//! count from the wait before; under 100 µs fio drops them, so shorter gaps are gathered into the next.
//! A device is added and opened when it first appears.

use super::line::Lines;
use super::{EventSink, WriteError, Writer, fit_u32};
use crate::event::{SynthEvent, SynthOp, device_name};
use std::collections::BTreeMap;
use std::io::Write;
use std::rc::Rc;

/// The entry of version 2 in the list of writers.
pub static V2: Writer = Writer {
    name: "iolog2",
    format: "fio-iolog",
    open: |sink, _| Ok(Box::new(FioIolog::new(sink, IologVersion::V2)?)),
};

/// The entry of version 3.
pub static V3: Writer = Writer {
    name: "iolog3",
    format: "fio-iolog",
    open: |sink, _| Ok(Box::new(FioIolog::new(sink, IologVersion::V3)?)),
};

/// Shorter waits are dropped by fio.
const SHORTEST_WAIT_US: i64 = 100;

/// Version of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IologVersion {
    /// With `wait` lines.
    V2,
    /// With times.
    V3,
}

/// A writer of iologs.
pub struct FioIolog<W: Write> {
    lines: Lines<W>,
    version: IologVersion,
    files: BTreeMap<u32, Rc<str>>,
    waited_us: i64,
    last_us: i64,
}

impl<W: Write> FioIolog<W> {
    /// Writes the header to `sink`. Buffered here.
    ///
    /// # Errors
    /// Of the sink.
    pub fn new(sink: W, version: IologVersion) -> Result<Self, WriteError> {
        let mut lines = Lines::new(sink);
        lines
            .text(if version == IologVersion::V2 {
                "fio version 2 iolog"
            } else {
                "fio version 3 iolog"
            })
            .end()?;
        Ok(Self {
            lines,
            version,
            files: BTreeMap::new(),
            waited_us: 0,
            last_us: 0,
        })
    }

    fn stamp(&mut self, now_us: i64) {
        if self.version == IologVersion::V3 {
            self.lines.int(now_us).ch(' ');
        }
    }

    /// The name of a device's node, after its add and open.
    fn file(&mut self, device: u32, now_us: i64) -> Result<Rc<str>, WriteError> {
        if let Some(name) = self.files.get(&device) {
            return Ok(Rc::clone(name));
        }
        let name: Rc<str> = format!("/dev/{}", device_name(device)).into();
        for action in [" add", " open"] {
            self.stamp(now_us);
            self.lines.text(&name).text(action).end()?;
        }
        self.files.insert(device, Rc::clone(&name));
        Ok(name)
    }
}

impl<W: Write> EventSink for FioIolog<W> {
    fn event(&mut self, event: &SynthEvent) -> Result<bool, WriteError> {
        let length = fit_u32(event, "length", event.len_bytes)?;
        let now_us = event.time_ns / 1000;
        let name = self.file(event.device, now_us)?;
        if self.version == IologVersion::V2 && now_us - self.waited_us >= SHORTEST_WAIT_US {
            self.lines
                .text(&name)
                .text(" wait ")
                .int(now_us - self.waited_us)
                .text(" 0")
                .end()?;
            self.waited_us = now_us;
        }
        let action = match event.op {
            SynthOp::Read => " read ",
            SynthOp::Write => " write ",
            SynthOp::Discard => " trim ",
            SynthOp::Flush => " sync ",
        };
        self.stamp(now_us);
        self.lines
            .text(&name)
            .text(action)
            .int(event.start_bytes)
            .ch(' ')
            .int(length)
            .end()?;
        self.last_us = now_us;
        Ok(true)
    }

    fn finish(&mut self) -> Result<(), WriteError> {
        for name in std::mem::take(&mut self.files).into_values() {
            self.stamp(self.last_us);
            self.lines.text(&name).text(" close").end()?;
        }
        Ok(self.lines.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::fixture::{FLUSH, READ, WRITE, text_of};

    #[test]
    fn version_3_stamps_every_line() {
        let (text, _) = text_of(
            |w| FioIolog::new(w, IologVersion::V3).expect("memory"),
            &[READ, FLUSH],
        );
        let expected = "fio version 3 iolog\n\
                        2000000 /dev/sdb add\n\
                        2000000 /dev/sdb open\n\
                        2000000 /dev/sdb read 32256 8192\n\
                        4000000 /dev/sda add\n\
                        4000000 /dev/sda open\n\
                        4000000 /dev/sda sync 0 0\n\
                        4000000 /dev/sda close\n\
                        4000000 /dev/sdb close\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn version_2_waits_from_the_wait_before() {
        let soon = SynthEvent {
            time_ns: READ.time_ns + 60_000,
            ..READ
        };
        let later = SynthEvent {
            time_ns: READ.time_ns + 120_000,
            op: SynthOp::Discard,
            ..READ
        };
        let make = |w| FioIolog::new(w, IologVersion::V2).expect("memory");
        let (text, _) = text_of(make, &[READ, soon, later, WRITE]);
        let expected = "fio version 2 iolog\n\
                        /dev/sdb add\n\
                        /dev/sdb open\n\
                        /dev/sdb wait 2000000 0\n\
                        /dev/sdb read 32256 8192\n\
                        /dev/sdb read 32256 8192\n\
                        /dev/sdb wait 120 0\n\
                        /dev/sdb trim 32256 8192\n\
                        /dev/sda add\n\
                        /dev/sda open\n\
                        /dev/sda wait 999880 0\n\
                        /dev/sda write 1048576 65536\n\
                        /dev/sda close\n\
                        /dev/sdb close\n";
        assert_eq!(text, expected);
    }
}
