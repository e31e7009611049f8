//! Outputs of tracing tools: events with the names of their device and command, and things ready made.

use std::path::Path;

use plumb_trace::input::Input;
use plumb_trace::open::{open_input, pieces};
use plumb_trace::{Batch, Event, Fill, ReadOptions, SourceInfo};

/// Everything a source gives: events with the names of their device and command, ready-made things, info.
pub struct All {
    pub events: Vec<(String, String, Event)>,
    pub extras: Vec<Fill>,
    pub info: SourceInfo,
}

pub fn drain(mut reader: Box<dyn plumb_trace::Reader>) -> Result<All, plumb_trace::Error> {
    let mut all = All {
        events: Vec::new(),
        extras: Vec::new(),
        info: SourceInfo::default(),
    };
    let mut batch = Batch::default();
    loop {
        match reader.fill(&mut batch)? {
            Fill::End => break,
            Fill::Events => all.events.extend(batch.events().map(|event| {
                let device = batch.names.devices()[event.device as usize].name.clone();
                let comm = batch
                    .names
                    .word_of(event.comm)
                    .unwrap_or_default()
                    .to_owned();
                (device, comm, event)
            })),
            extra => all.extras.push(extra),
        }
    }
    all.info = reader.info().clone();
    Ok(all)
}

pub fn read_with(text: &[u8], options: &ReadOptions) -> Result<All, plumb_trace::Error> {
    let input = Input::from_reader("test", Box::new(std::io::Cursor::new(text.to_vec())))?;
    drain(open_input(input, options)?)
}

pub fn read(text: &str) -> All {
    read_with(text.as_bytes(), &ReadOptions::default()).expect(text)
}

pub fn read_file(path: &Path) -> All {
    let piece = pieces(&[path.to_owned()]).remove(0);
    drain(plumb_trace::open::open(&piece, &ReadOptions::default()).expect("opens")).expect("reads")
}

pub fn error_of(text: &[u8]) -> String {
    read_with(text, &ReadOptions::default())
        .err()
        .map_or_else(String::new, |error| error.to_string())
}

pub fn sums(all: &All) -> (usize, u64, i64) {
    let bytes = all.events.iter().map(|(_, _, event)| event.len_bytes).sum();
    let ns = all
        .events
        .iter()
        .filter_map(|(_, _, event)| event.device_ns)
        .sum();
    (all.events.len(), bytes, ns)
}

pub fn count(all: &All, keep: impl Fn(&(String, String, Event)) -> bool) -> usize {
    all.events.iter().filter(|event| keep(event)).count()
}

/// The text cut anywhere, and with any bit flipped.
pub fn no_cut_and_no_flipped_bit_panics(sample: &str) {
    for at in 0..sample.len() {
        let _ = read_with(&sample.as_bytes()[..at], &ReadOptions::default());
        for bit in 0..8 {
            let mut flipped = sample.as_bytes().to_vec();
            flipped[at] ^= 1 << bit;
            let _ = read_with(&flipped, &ReadOptions::default());
        }
    }
}

/// A line without an end after a text that gives one thing.
pub fn the_text_before_an_endless_line_stays(good: &str) {
    let endless = "x".repeat(2 << 20);
    let all = read(&format!("{good}{endless}"));
    assert_eq!(all.events.len() + all.extras.len(), 1, "{good}");
    assert!(!all.info.is_whole(), "{good}");
}
