//! CSV as the MSR Cambridge traces have it, without a header line.
//!
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`: times in units of 100 ns, the first a Windows
//! FILETIME (since 1601-01-01 UTC), offset and size in bytes, type `Read` or `Write`. If the time of day is not known,
//! time 0 of the trace is written as 1970-01-01 and that is returned as a loss. An unknown time is left empty, and an
//! unknown response time too: a 0 would be one.
//!
//! A device `NAME_NUMBER` becomes host and disk number; any other becomes the host, with disk number 0.

use std::io::{self, Write};

use crate::batch::{Batch, Event, UNKNOWN_NS};
use crate::error::Error;
use crate::op::{Layer, Op};
use crate::source::{Clock, SourceInfo};
use crate::write::holes::holes_in_words;
use crate::write::{Losses, Output, TraceWriter, Written, known};

/// FILETIME of 1970-01-01: 11,644,473,600 s in units of 100 ns.
const FILETIME_OF_1970: i128 = 116_444_736_000_000_000;

/// The start of the line after the last event with the holes of the source.
pub const HOLES: &str = "# plumb: ";

/// Writes MSR Cambridge CSV.
pub struct MsrWriter {
    output: Output,
    unix_ns_at_zero: Option<i64>,
    events: u64,
    losses: Losses,
}

impl MsrWriter {
    /// Begins a file; `info` tells the time of day of time 0.
    pub fn new(output: Output, info: &SourceInfo) -> MsrWriter {
        let unix_ns_at_zero = if info.clock == Clock::Unix {
            Some(0)
        } else {
            info.unix_ns_at_zero
        };
        MsrWriter {
            output,
            unix_ns_at_zero,
            events: 0,
            losses: Losses::default(),
        }
    }

    fn write_event(&mut self, event: &Event, batch: &Batch) -> io::Result<()> {
        let kind = match event.op {
            Op::Read => "Read",
            Op::Write => "Write",
            _ => {
                self.losses
                    .count("operations other than read and write are left out", 1);
                return Ok(());
            }
        };
        let is_timed = event.time_ns != UNKNOWN_NS;
        let since_1970 = event.time_ns.checked_add(self.unix_ns_at_zero.unwrap_or(0));
        let unix_ns = since_1970.filter(|_| is_timed);
        if is_timed && unix_ns.is_none() {
            self.losses
                .count("events before 1677 or after 2262 are left out", 1);
            return Ok(());
        }
        let filetime = unix_ns.map_or_else(String::new, |ns| {
            (i128::from(ns.div_euclid(100)) + FILETIME_OF_1970).to_string()
        });
        let is_of_day_lost = is_timed && self.unix_ns_at_zero.is_none();
        self.losses.count(
            "time of day: time 0 of the trace is written as 1970-01-01",
            usize::from(is_of_day_lost),
        );
        let is_layer_lost = event.layer != Layer::Request;
        self.losses.count(
            "layer: they are read back as I/O of the request layer",
            usize::from(is_layer_lost),
        );
        let response_ns = event.device_ns.unwrap_or(0).max(0);
        let response = event
            .device_ns
            .map(|_| (response_ns / 100).to_string())
            .unwrap_or_default();
        let cut = unix_ns.is_some_and(|ns| ns.rem_euclid(100) != 0) || response_ns % 100 != 0;
        self.losses
            .count("times are cut to 100 ns", usize::from(cut));
        let device = batch
            .names
            .devices()
            .get(event.device as usize)
            .map_or("", |device| device.name.as_str());
        let (host, disk) = host_and_disk(device);
        self.losses.count(
            "devices get a disk number 0 (NAME_0)",
            usize::from(disk.is_none()),
        );
        let host: String = host
            .chars()
            .map(|letter| if is_plain(letter) { letter } else { '_' })
            .collect();
        self.events += 1;
        writeln!(
            self.output,
            "{filetime},{host},{},{kind},{},{},{}",
            disk.unwrap_or("0"),
            event.start_bytes,
            event.len_bytes,
            response
        )
    }
}

fn is_plain(letter: char) -> bool {
    letter != ',' && letter != '"' && !letter.is_control()
}

/// `hm_0` is disk 0 of host `hm`.
fn host_and_disk(device: &str) -> (&str, Option<&str>) {
    match device.rsplit_once('_') {
        Some((host, disk))
            if !host.is_empty()
                && (1..=9).contains(&disk.len())
                && disk.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            (host, Some(disk))
        }
        _ => (if device.is_empty() { "unnamed" } else { device }, None),
    }
}

impl TraceWriter for MsrWriter {
    fn write(&mut self, batch: &Batch) -> Result<(), Error> {
        known::count_context(batch, &mut self.losses);
        for event in batch.events() {
            self.write_event(&event, batch)
                .map_err(|source| Error::Write {
                    path: self.output.path(),
                    source,
                })?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, info: &SourceInfo) -> Result<Written, Error> {
        if let Some(words) = holes_in_words(info, true) {
            let written = writeln!(self.output, "{HOLES}{words}");
            written.map_err(|source| Error::Write {
                path: self.output.path(),
                source,
            })?;
        }
        self.output.commit()?;
        Ok(Written {
            events: self.events,
            losses: self.losses.into_list(),
        })
    }
}
