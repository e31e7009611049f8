//! Histograms and totals that tools made, and events with the names of their devices.

use std::path::Path;

use plumb_trace::input::Input;
use plumb_trace::open::{open_input, pieces};
use plumb_trace::{AlignTotals, Batch, Bucket, Distribution, Event, Fill, ReadOptions, SourceInfo};

pub struct All {
    pub events: Vec<(String, Event)>,
    pub histograms: Vec<Distribution>,
    pub totals: Vec<AlignTotals>,
    pub info: SourceInfo,
}

pub fn drain(mut reader: Box<dyn plumb_trace::Reader>) -> Result<All, plumb_trace::Error> {
    let info = SourceInfo::default();
    let mut all = All {
        events: Vec::new(),
        histograms: Vec::new(),
        totals: Vec::new(),
        info,
    };
    let mut batch = Batch::default();
    loop {
        match reader.fill(&mut batch)? {
            Fill::End => break,
            Fill::Events => all.events.extend(batch.events().map(|event| {
                (
                    batch.names.devices()[event.device as usize].name.clone(),
                    event,
                )
            })),
            Fill::Distribution(histogram) => all.histograms.push(histogram),
            Fill::Totals(totals) => all.totals.push(totals),
            Fill::Residue(_) => panic!("no residue table here"),
        }
    }
    all.info = reader.info().clone();
    Ok(all)
}

pub fn try_read(text: &[u8]) -> Result<All, plumb_trace::Error> {
    let input = Input::from_reader("test", Box::new(std::io::Cursor::new(text.to_vec())))?;
    drain(open_input(input, &ReadOptions::default())?)
}

pub fn read(text: &str) -> All {
    try_read(text.as_bytes()).expect(text)
}

pub fn try_file(path: &Path) -> Result<All, plumb_trace::Error> {
    let piece = pieces(&[path.to_owned()]).remove(0);
    drain(plumb_trace::open::open(&piece, &ReadOptions::default())?)
}

pub fn sum(histogram: &Distribution) -> u64 {
    histogram.buckets.iter().map(|bucket| bucket.ios).sum()
}

pub fn bucket(low: i64, high: i64, ios: u64) -> Bucket {
    Bucket {
        low: Some(low),
        high: Some(high),
        ios,
    }
}

pub const DISTRIBUTION: &str =
    "           value  ------------- Distribution ------------- count    \n";

/// The text cut anywhere, and with any bit flipped.
pub fn no_cut_and_no_flipped_bit_panics(sample: &str) {
    for at in 0..sample.len() {
        let _ = try_read(&sample.as_bytes()[..at]);
        for bit in 0..8 {
            let mut flipped = sample.as_bytes().to_vec();
            flipped[at] ^= 1 << bit;
            let _ = try_read(&flipped);
        }
    }
}

/// A line without an end after a text that gives one thing.
pub fn the_text_before_an_endless_line_stays(good: &str) {
    let endless = "9".repeat(2 << 20);
    let all = read(&format!("{good}{endless}"));
    assert_eq!(
        all.events.len() + all.histograms.len() + all.totals.len(),
        1,
        "{good}"
    );
    assert!(!all.info.is_whole(), "{good}");
}
