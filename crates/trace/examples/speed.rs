//! How fast the readers are, on one thread: `cargo run --release -p plumb-trace --example speed`.
//!
//! `speed [MIB] [NAME]…` makes a trace of a number of MiB in memory with each writer of the testkit (`plumb-testkit
//! list` has their names), reads it through the format's reader alone and then in time order, and prints MB/s. A new
//! writer of the testkit is measured here without a change.

use std::io::{self, Read};
use std::time::Instant;

use plumb_testkit::workload::Mixed;
use plumb_testkit::write::{Style, WRITERS, Writer, write_all};
use plumb_trace::format::{FORMATS, Format};
use plumb_trace::input::Input;
use plumb_trace::order::Ordered;
use plumb_trace::{Batch, Fill, ReadOptions, Reader};

type Failure = Box<dyn std::error::Error>;

/// I/O from which the bytes of one are worked out.
const SAMPLE_EVENTS: u64 = 10_000;

fn written(writer: &Writer, events: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let mut sink = (writer.open)(Box::new(&mut bytes), &Style::default())?;
    let load = Mixed {
        events,
        ..Mixed::default()
    };
    write_all(sink.as_mut(), load.iter())?;
    drop(sink);
    Ok(bytes)
}

/// A trace of about this number of bytes.
fn trace(writer: &Writer, bytes: usize) -> Result<Vec<u8>, Failure> {
    let sample = written(writer, SAMPLE_EVENTS)?.len() as u64;
    written(writer, SAMPLE_EVENTS * bytes as u64 / sample)
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
    assert_eq!(
        reader.info().counts.damaged,
        0,
        "{:?}",
        reader.info().damages
    );
    Ok((begun.elapsed().as_secs_f64(), events))
}

fn measure(writer: &Writer, format: &'static Format, mib: usize) -> Result<(), Failure> {
    let trace = std::sync::Arc::new(trace(writer, mib << 20)?);
    let open = || {
        let memory = SharedMemory(std::sync::Arc::clone(&trace), 0);
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
    let [alone, ordered] = best.map(|seconds| trace.len() as f64 / 1e6 / seconds);
    let ns = best[0] * 1e9 / events as f64;
    println!(
        "{:10} {alone:6.0} MB/s alone, {ordered:6.0} MB/s in order, {ns:5.1} ns an I/O",
        writer.name
    );
    Ok(())
}

fn main() -> Result<(), Failure> {
    let (mut mib, mut named) = (64, Vec::new());
    for word in std::env::args().skip(1) {
        if let Ok(size) = word.parse() {
            mib = size;
        } else if WRITERS.iter().any(|writer| writer.name == word) {
            named.push(word);
        } else {
            return Err(
                format!("found {word}, expected a number of MiB or the name of a writer").into(),
            );
        }
    }
    for writer in WRITERS {
        let is_wanted = named.is_empty() || named.iter().any(|name| name == writer.name);
        let format = FORMATS.iter().find(|format| format.name == writer.format);
        // A residue table counts I/O and holds none.
        if let (true, Some(format)) = (is_wanted, format)
            && writer.format != "residue"
        {
            measure(writer, format, mib)?;
        }
    }
    Ok(())
}
