//! What the fuzzer found, input by input: small, and each with what was wrong.

use std::io::Cursor;
use std::path::Path;

use plumb_trace::format::FORMATS;
use plumb_trace::input::Input;
use plumb_trace::open::open_input;
use plumb_trace::{Batch, Error, Event, Fill, ReadOptions, SourceInfo};

/// Everything that a format makes of bytes.
struct All {
    events: Vec<Event>,
    ready_made: Vec<Fill>,
    info: SourceInfo,
}

fn read(format: &str, bytes: &[u8]) -> Result<All, Error> {
    let input = Input::from_reader("input", Box::new(Cursor::new(bytes.to_vec())))?;
    let options = ReadOptions { format: Some(format.to_owned()), ..ReadOptions::default() };
    let mut reader = open_input(input, &options)?;
    let (mut events, mut ready_made) = (Vec::new(), Vec::new());
    let mut batch = Batch::default();
    loop {
        match reader.fill(&mut batch)? {
            Fill::Events => events.extend(batch.events()),
            Fill::End => break,
            other => ready_made.push(other),
        }
    }
    Ok(All { events, ready_made, info: reader.info().clone() })
}

/// A new format has to get a target too: the name of the format in small letters, `_` for every other sign.
#[test]
fn every_format_has_a_fuzz_target() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).unwrap();
    for format in FORMATS {
        let target = format.name.to_lowercase().replace(|sign: char| !sign.is_alphanumeric(), "_");
        assert!(manifest.contains(&format!("name = \"{target}\"\n")), "no fuzz target {target}");
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(&target);
        assert!(seeds.read_dir().is_ok_and(|mut seeds| seeds.next().is_some()), "no seed for {target}");
    }
}

/// Counts near 2^64 made the sums of the profile overflow: a table may count no more than can have been.
#[test]
fn residue_counts_that_cannot_be() {
    let head = "# plumb-residue 1 unit=512 modulus=2048\n";
    let check = |rows: &str, kept: usize, damaged: u64| {
        let all = read("residue", format!("{head}{rows}").as_bytes()).unwrap();
        let [Fill::Residue(table)] = &all.ready_made[..] else { panic!("one table of {rows}") };
        assert_eq!((table.rows.len(), all.info.counts.damaged), (kept, damaged), "{rows}");
        assert!(all.events.is_empty());
    };
    check("sda R 7 8 281474976710656\n", 1, 0);
    check("sda R 7 8 1\nsda R 7 8 281474976710656\n", 1, 1);
    check("sda R 7 8 1\nsda W 7 8 18446744073709551615\nsda W 7 8 2\n", 2, 1);
    check("sda R 7 8 3 3 9\nsda R 7 8 1 1 340282366920938463463374607431768211455\n", 1, 1);
}

/// Counts of ready-made histograms overflowed in the same way.
#[test]
fn histogram_counts_that_cannot_be() {
    let heading = "bitesize\n  value  ------------- Distribution ------------- count\n";
    let check = |rows: &str, buckets: usize, damaged: u64| {
        let all = read("quantize", format!("{heading}{rows}").as_bytes()).unwrap();
        let [Fill::Distribution(histogram)] = &all.ready_made[..] else { panic!("one histogram of {rows}") };
        assert_eq!((histogram.buckets.len(), all.info.counts.damaged), (buckets, damaged), "{rows}");
    };
    check("  512 |@@ 3\n 1024 |@ 281474976710656\n", 2, 0);
    check("  512 |@@ 3\n 1024 |@ 281474976710657\n", 1, 1);
    check("  512 |@@ 3\n 1024 |@ 18446744073709551615\n", 1, 1);
}
