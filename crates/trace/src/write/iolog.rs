//! fio's log of I/O, version 3, which `fio --read_iolog` replays.
//!
//! A line is `TIME FILE ACTION OFFSET LENGTH`: time in µs since the first event, offset and length in bytes. FILE is
//! the device's name (at `vfs` the file's, if known) with blanks replaced; fio resolves it, or uses another by
//! `--replay_redirect`. Each is announced by `add` and `open` before its first I/O and closed at the end. fio reads a
//! length into 32 bits, so longer I/O are written in pieces.
//!
//! Not in this format: latency, process, flags; operations other than read, write, trim and sync. The layer is not
//! either: if it is not vfs, it follows `add`, where fio ignores it (tried with fio 3.33) and Plumb does not. So does
//! `untimed` if the source does not tell when the I/O were sent; their times are 0 then. Holes of the source follow the
//! first `close`.

use std::io::{self, Write};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::batch::{Batch, Event, UNKNOWN_NS};
use crate::error::Error;
use crate::op::{Layer, Op};
use crate::source::SourceInfo;
use crate::write::holes::holes_in_words;
use crate::write::{Losses, Output, TraceWriter, Written, known};

/// Longest piece of an I/O in bytes: below 2^32 and a whole number of the largest common units.
const PIECE_BYTES_MAX: u64 = (1 << 32) - (1 << 20);

/// fio reads file names into 256 bytes with the closing zero.
const NAME_BYTES_MAX: usize = 255;

/// Writes fio iolog version 3.
pub struct IologWriter {
    output: Output,
    files: FxHashMap<(u32, u32), usize>,
    names: Vec<String>,
    taken: FxHashSet<String>,
    first_ns: Option<i64>,
    last_us: u64,
    layers: Vec<Layer>,
    events: u64,
    losses: Losses,
}

impl IologWriter {
    /// Begins a log.
    pub fn new(output: Output) -> IologWriter {
        IologWriter {
            output,
            files: FxHashMap::default(),
            names: Vec::new(),
            taken: FxHashSet::default(),
            first_ns: None,
            last_us: 0,
            layers: Vec::new(),
            events: 0,
            losses: Losses::default(),
        }
    }

    fn write_batch(&mut self, batch: &Batch) -> io::Result<()> {
        if self.first_ns.is_none() && !batch.is_empty() {
            writeln!(self.output, "fio version 3 iolog")?;
        }
        for event in batch.events() {
            self.write_event(&event, batch)?;
        }
        known::count_latency(batch, &mut self.losses);
        known::count_sender(batch, &mut self.losses);
        Ok(())
    }

    fn write_event(&mut self, event: &Event, batch: &Batch) -> io::Result<()> {
        let Some(action) = action_of(event) else {
            self.losses.count(
                "operations other than read, write, trim and sync are left out",
                1,
            );
            return Ok(());
        };
        if event.op == Op::WriteZeroes {
            self.losses.count("write-zeroes become writes of data", 1);
        }
        let time_us = self.time_us(event.time_ns);
        let name = self.file(event, batch, time_us)?;
        self.events += 1;
        if !self.layers.contains(&event.layer) {
            self.layers.push(event.layer);
        }
        if event.len_bytes > PIECE_BYTES_MAX {
            self.losses.count("lengths of 4 GiB and more are split", 1);
        }
        let (mut start, mut left) = (event.start_bytes, event.len_bytes);
        loop {
            let piece = left.min(PIECE_BYTES_MAX);
            writeln!(
                self.output,
                "{time_us} {} {action} {start} {piece}",
                self.names[name]
            )?;
            left -= piece;
            if left == 0 {
                return Ok(());
            }
            start = start.saturating_add(piece);
        }
    }

    fn time_us(&mut self, time_ns: i64) -> u64 {
        if time_ns == UNKNOWN_NS {
            return self.last_us;
        }
        let first = *self.first_ns.get_or_insert(time_ns);
        let since_ns = i128::from(time_ns) - i128::from(first);
        self.losses
            .count("times are cut to 1 µs", usize::from(since_ns % 1000 != 0));
        let time_us = since_ns.div_euclid(1000);
        // fio waits for each line's time in turn; an earlier one would be late in any case.
        let is_back = time_us < i128::from(self.last_us);
        self.losses.count(
            "times before that of the line above take its time",
            usize::from(is_back),
        );
        self.last_us = self.last_us.max(u64::try_from(time_us).unwrap_or(0));
        self.last_us
    }

    /// The place of the file's name; announces it when it is new.
    fn file(&mut self, event: &Event, batch: &Batch, time_us: u64) -> io::Result<usize> {
        let is_vfs = event.layer == Layer::Vfs;
        self.losses
            .count("file", usize::from(!is_vfs && event.file != 0));
        let file = if is_vfs { event.file } else { 0 };
        if let Some(&place) = self.files.get(&(event.device, file)) {
            return Ok(place);
        }
        let devices = batch.names.devices();
        let device = devices
            .get(event.device as usize)
            .map_or("", |device| device.name.as_str());
        let name = self.free_name(batch.names.word_of(file).unwrap_or(device));
        let layer = if is_vfs {
            String::new()
        } else {
            format!(" layer={}", event.layer.word())
        };
        let untimed = match event.time_ns {
            UNKNOWN_NS => " untimed",
            _ => "",
        };
        writeln!(
            self.output,
            "{time_us} {name} add{layer}{untimed}\n{time_us} {name} open"
        )?;
        self.names.push(name);
        self.files
            .insert((event.device, file), self.names.len() - 1);
        Ok(self.names.len() - 1)
    }

    /// A name that fio can read and that no other file has.
    fn free_name(&mut self, name: &str) -> String {
        let blank = |letter: char| letter.is_whitespace() || letter.is_control();
        let mut plain: String = name
            .chars()
            .map(|letter| if blank(letter) { '_' } else { letter })
            .collect();
        if plain.is_empty() {
            plain.push_str("unnamed");
        }
        let mut free = plain.clone();
        let mut number = 1u64;
        loop {
            while free.len() > NAME_BYTES_MAX {
                plain.pop();
                free.pop();
            }
            if self.taken.insert(free.clone()) {
                return free;
            }
            number += 1;
            while plain.len() > NAME_BYTES_MAX - 21 {
                plain.pop();
            }
            free = format!("{plain}_{number}");
        }
    }

    fn write_end(&mut self, info: &SourceInfo) -> io::Result<()> {
        if self.first_ns.is_none() {
            writeln!(self.output, "fio version 3 iolog")?;
        }
        // As behind `add`, fio reads no further than `close`.
        let mut holes =
            holes_in_words(info, false).map_or_else(String::new, |words| format!(" {words}"));
        for name in &self.names {
            let holes = std::mem::take(&mut holes);
            writeln!(self.output, "{} {name} close{holes}", self.last_us)?;
        }
        Ok(())
    }
}

fn action_of(event: &Event) -> Option<&'static str> {
    match event.op {
        Op::Flush => Some("sync"),
        Op::Other => None,
        _ if event.len_bytes == 0 => None,
        Op::Read => Some("read"),
        Op::Write | Op::WriteZeroes => Some("write"),
        Op::Discard => Some("trim"),
    }
}

impl TraceWriter for IologWriter {
    fn write(&mut self, batch: &Batch) -> Result<(), Error> {
        let outcome = self.write_batch(batch);
        outcome.map_err(|source| Error::Write {
            path: self.output.path(),
            source,
        })
    }

    fn finish(mut self: Box<Self>, info: &SourceInfo) -> Result<Written, Error> {
        let outcome = self.write_end(info);
        outcome.map_err(|source| Error::Write {
            path: self.output.path(),
            source,
        })?;
        if self.layers.len() > 1 {
            let events = usize::try_from(self.events).unwrap_or(usize::MAX);
            self.losses.count(
                "several layers are written as one: the same I/O is there more than once",
                events,
            );
        }
        self.output.commit()?;
        Ok(Written {
            events: self.events,
            losses: self.losses.into_list(),
        })
    }
}
