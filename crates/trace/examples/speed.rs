//! How fast the text formats are read, on one thread: `cargo run --release -p plumb-trace --example speed`.
//!
//! `speed [MIB] [FORMAT]…` makes lines of each format in memory (a piece of some MiB over and over, with times
//! that go on rising), reads them through the format's reader alone and then in time order, and prints MB/s of
//! text. `speed --write FORMAT MIB FILE` writes the same lines to a file.
use std::io::{self, Read, Write};
use std::time::Instant;

use plumb_trace::format::{FORMATS, Format};
use plumb_trace::input::Input;
use plumb_trace::order::Ordered;
use plumb_trace::{Batch, Fill, ReadOptions, Reader};

type Failure = Box<dyn std::error::Error>;

/// Writes the lines of a format, one after the other, from a seeded sequence.
struct Lines {
    format: &'static str,
    row: u64,
    random: u64,
}

const NAMES: [&str; 8] = [
    "msr",
    "systor",
    "alibaba",
    "tencent",
    "spc",
    "disksim",
    "fio-iolog",
    "wpa-csv",
];

impl Lines {
    fn new(format: &'static str) -> Lines {
        Lines {
            format,
            row: 0,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    fn next(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn header(&self) -> &'static str {
        match self.format {
            "fio-iolog" => "fio version 3 iolog\n",
            "wpa-csv" => {
                "IO Type;Priority;Process (Name);Init Time (s);Complete Time (s);IO Time (\u{b5}s);\
                 Disk Service Time (\u{b5}s);Size (B);Min Offset;Max Offset;QD/I;QD/C;Disk;Count\r\n"
            }
            _ => "",
        }
    }

    fn line(&mut self, to: &mut Vec<u8>) {
        let (sector, sectors) = (self.next(1 << 28), 1 + self.next(256));
        let (start, len, write) = (sector * 512, sectors * 512, self.next(2));
        let (took, device) = (500 + self.next(300_000), self.next(1000));
        self.row += 1;
        let us = self.row * 37;
        let (seconds, part) = (us / 1_000_000, us % 1_000_000);
        let letter = ['R', 'W'][write as usize];
        let written = match self.format {
            "msr" => {
                let word = ["Read", "Write"][write as usize];
                let ticks = 128_166_372_000_000_000 + us * 10;
                writeln!(to, "{ticks},hm,{},{word},{start},{len},{took}", device % 2)
            }
            "systor" => {
                let second = 1_456_095_145 + seconds;
                writeln!(
                    to,
                    "{second}.{part:06}000,0.{took:06}000,{letter},{},{start},{len}",
                    device % 6
                )
            }
            "alibaba" => writeln!(
                to,
                "{device},{letter},{start},{len},{}",
                1_577_808_000_000_046 + us
            ),
            "tencent" => writeln!(
                to,
                "{},{sector},{sectors},{write},{device}",
                1_538_323_199 + seconds
            ),
            "spc" => writeln!(
                to,
                "{},{sector},{len},{letter},{seconds}.{part:06}",
                device % 3
            ),
            "disksim" => writeln!(
                to,
                "{} {} {sector} {sectors} {write}",
                us * 1000,
                device % 6
            ),
            "fio-iolog" => {
                let word = ["read", "write"][write as usize];
                writeln!(to, "{us} f.dat {word} {start} {len}")
            }
            _ => {
                let word = ["Read", "Write"][write as usize];
                writeln!(
                    to,
                    "{word};Normal;System;{seconds},{part:06}000;{seconds},{part:06}900;{},{:03};{},{:03};{}.{:03};\
                     0x{start:016X};0x{:016X};1;0;1;1\r",
                    took / 1000,
                    took % 1000,
                    took / 1000,
                    took % 1000,
                    1 + len / 1000,
                    len % 1000,
                    start + (1 + len / 1000) * 1000 + len % 1000 - 1,
                )
            }
        };
        written.expect("memory takes everything");
    }

    fn text(&mut self, bytes: usize) -> Vec<u8> {
        let mut text = self.header().as_bytes().to_vec();
        while text.len() < bytes {
            self.line(&mut text);
        }
        text
    }
}

/// Hands out shared memory as if it were read from somewhere.
struct SharedMemory(std::sync::Arc<Vec<u8>>, usize);

impl Read for SharedMemory {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let bytes = (&self.0[self.1..]).read(to)?;
        self.1 += bytes;
        Ok(bytes)
    }
}

fn timed(mut reader: Box<dyn Reader>) -> Result<(f64, u64), Failure> {
    let mut batch = Batch::default();
    let begun = Instant::now();
    let mut events = 0;
    while reader.fill(&mut batch)? != Fill::End {
        events += batch.len() as u64;
    }
    assert!(reader.info().is_whole(), "{:?}", reader.info().damages);
    Ok((begun.elapsed().as_secs_f64(), events))
}

fn measure(format: &'static Format, mib: usize) -> Result<(), Failure> {
    let text = std::sync::Arc::new(Lines::new(format.name).text(mib << 20));
    let open = || {
        let memory = SharedMemory(std::sync::Arc::clone(&text), 0);
        (format.open)(
            Input::from_reader("memory", Box::new(memory))?,
            &ReadOptions::default(),
        )
    };
    let mut best = [f64::MAX; 2];
    let mut events = 0;
    for _ in 0..3 {
        let (alone, count) = timed(open()?)?;
        let (ordered, _) = timed(Box::new(Ordered::new(open()?)))?;
        best = [best[0].min(alone), best[1].min(ordered)];
        events = count;
    }
    let [alone, ordered] = best.map(|seconds| text.len() as f64 / 1e6 / seconds);
    let ns = best[0] * 1e9 / events as f64;
    println!(
        "{:10} {alone:6.0} MB/s alone, {ordered:6.0} MB/s in order, {ns:5.1} ns a line",
        format.name
    );
    Ok(())
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let known = |word: &str| NAMES.into_iter().find(|name| *name == word);
    if let [flag, format, mib, path] = &words[..]
        && flag == "--write"
    {
        let format = known(format).ok_or("no such format")?;
        std::fs::write(path, Lines::new(format).text(mib.parse::<usize>()? << 20))?;
        return Ok(());
    }
    let (mut mib, mut named) = (64, Vec::new());
    for word in &words {
        match (word.parse(), known(word)) {
            (Ok(size), _) => mib = size,
            (_, Some(name)) => named.push(name),
            _ => {
                return Err(
                    format!("{word} is neither a number of MiB nor one of {NAMES:?}").into(),
                );
            }
        }
    }
    for format in FORMATS.iter().filter(|format| NAMES.contains(&format.name)) {
        if named.is_empty() || named.contains(&format.name) {
            measure(format, mib)?;
        }
    }
    Ok(())
}
