//! Archives of io-profiler: their rows as profiles for the history, and the ranges that the means of a window leave.
//!
//! A row has counts by length and no single I/O. A profile keeps them as a ready-made histogram, so that no figure takes them for I/O that
//! Plumb has counted.

use std::path::Path;

use plumb_history::Span;
use plumb_model::result::history::{CountRange, HistoryAverages};
use plumb_profile::imported::Measured;
use plumb_profile::profile::TimeBase;
use plumb_profile::{Profile, Settings};
use plumb_quoting::visible;
use plumb_trace::input::Input;
use plumb_trace::{Layer, Op, rrd};

use super::span::time_words;
use crate::cli::HistoryImport;
use crate::failure::Failure;
use crate::{inputs, output};

/// Longest dump; the largest of io-profiler has 4 MiB.
const DUMP_BYTES_MAX: u64 = 64 << 20;
/// Bytes that tell a dump from a profile.
const HEAD_BYTES: usize = 64;
const SECOND_NS: i64 = 1_000_000_000;
/// Classes that an I/O on a disk can have, as far as io-profiler stores them: 512 B to 4 MiB.
const CLASSES: std::ops::RangeInclusive<u32> = 9..=21;

/// Whether an input is a dump.
///
/// # Errors
/// When it cannot be read.
pub fn is_dump(input: &mut Input) -> Result<bool, Failure> {
    let head = input.peek(HEAD_BYTES);
    Ok(rrd::is_dump(head.map_err(|error| Failure::failed(&error))?))
}

/// The rows of a dump that the history keeps, each with its time.
///
/// # Errors
/// When it is no RRD of io-profiler, or has no row for the history.
pub fn profiles(
    input: Input,
    file: &Path,
    args: &HistoryImport,
    (oldest_ns, now_ns): (i64, i64),
) -> Result<Vec<(Span, Profile)>, Failure> {
    let name = input.path.clone();
    let text = inputs::whole(input, DUMP_BYTES_MAX)?;
    let dump = rrd::read(&name, &text).map_err(|error| Failure::failed(&error))?;
    let device = device_of(file);
    let over_s = match args.counted_over {
        Some(time) => i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        None => dump.counted_over_s(),
    };
    let table = Settings::default().table();
    let table = table.map_err(|error| Failure::failed(&error))?;
    let rows = dump.counts(over_s);
    let all = rows.len();
    let mut profiles = Vec::new();
    for row in rows {
        let span = Span {
            from_ns: row.from_s * SECOND_NS,
            to_ns: row.to_s * SECOND_NS,
        };
        if span.to_ns > now_ns {
            return Err(Failure::usage(format!(
                "{}: found a row that ends at {}, expected a time before now",
                visible(&name),
                time_words(span.to_ns)
            )));
        }
        if span.to_ns < oldest_ns {
            continue;
        }
        let mut profile = Profile::new(&device, Layer::Bio, table.clone());
        profile.pieces = 1;
        profile.time_base = TimeBase::Unix;
        profile.first_ns = Some(span.from_ns);
        profile.last_ns = Some(span.to_ns - 1);
        for histogram in &row.histograms {
            profile.imported.add_histogram(histogram);
        }
        profiles.push((span, profile));
    }
    let kept = profiles.len();
    if kept == 0 {
        return Err(Failure::usage(format!(
            "{}: found {} with a known value, expected one after {}, from which on the history keeps windows",
            visible(&name),
            plumb_geometry::plural(all as u64, "row"),
            time_words(oldest_ns)
        )));
    }
    output::say(&format!(
        "{}: {} of {device} are means of counts over {over_s} s (--counted-over)",
        visible(&name),
        plumb_geometry::plural(kept as u64, "row"),
    ));
    if kept < all {
        let rows = plumb_geometry::plural((all - kept) as u64, "row");
        let oldest = time_words(oldest_ns);
        output::say(&format!("left out {rows} that ended before {oldest}"));
    }
    Ok(profiles)
}

/// The device of a file as io-profiler names it: `iosizesd0.rrd`, dumped to `iosizesd0.xml`.
fn device_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut stem = name.as_ref();
    for end in [".gz", ".zst", ".xml", ".rrd"] {
        stem = stem.strip_suffix(end).unwrap_or(stem);
    }
    let device = stem.strip_prefix("iosize").unwrap_or(stem);
    let device = device.trim_start_matches(['-', '_']);
    match device.is_empty() {
        true => name.into_owned(),
        false => device.to_owned(),
    }
}

/// The ranges of a profile that has means; `None` if it has none.
pub fn averages(profile: &Profile) -> Option<HistoryAverages> {
    let lengths = profile.imported.histograms.iter();
    let mut lengths = lengths.filter(|one| one.measured == Measured::LenBytes);
    let first = lengths.next()?;
    let of_op = |op: Option<Op>| ranges(profile, op);
    Some(if first.op.is_none() {
        let (ios, bytes) = of_op(None);
        HistoryAverages {
            ios,
            bytes,
            reads: None,
            writes: None,
        }
    } else {
        let (reads, read_bytes) = of_op(Some(Op::Read));
        let (writes, write_bytes) = of_op(Some(Op::Write));
        HistoryAverages {
            ios: sum(reads, writes),
            bytes: sum(read_bytes, write_bytes),
            reads: Some(reads),
            writes: Some(writes),
        }
    })
}

fn sum(one: CountRange, other: CountRange) -> CountRange {
    CountRange {
        low: one.low.saturating_add(other.low),
        high: one
            .high
            .zip(other.high)
            .map(|(one, other)| one.saturating_add(other)),
    }
}

/// The I/O of an operation and their bytes. The count of a class is within one I/O of the means, and its lengths are those of the class. Without a
/// class there is no upper bound.
fn ranges(profile: &Profile, op: Option<Op>) -> (CountRange, CountRange) {
    let unknown = CountRange { low: 0, high: None };
    let mut all: Option<(CountRange, CountRange)> = None;
    for histogram in &profile.imported.histograms {
        if histogram.measured != Measured::LenBytes || histogram.op != op {
            continue;
        }
        let (mut ios, mut bytes) = ([0u64; 2], [0u64; 2]);
        for (low, high, count) in &histogram.buckets {
            let ends = [low.unwrap_or(0), high.unwrap_or(i64::MAX)];
            let counts = [count.saturating_sub(1), count.saturating_add(1)];
            for at in 0..2 {
                let end = u64::try_from(ends[at]).unwrap_or(0);
                ios[at] = ios[at].saturating_add(counts[at]);
                bytes[at] = bytes[at].saturating_add(counts[at].saturating_mul(end));
            }
        }
        let has = |power: u32| {
            let low = Some(1i64 << power);
            histogram.buckets.iter().any(|(begin, ..)| *begin == low)
        };
        let is_whole = CLASSES.into_iter().all(has);
        let range = |[low, high]: [u64; 2]| CountRange {
            low,
            high: is_whole.then_some(high),
        };
        let (ios, bytes) = (range(ios), range(bytes));
        all = Some(match all {
            Some(known) => (sum(known.0, ios), sum(known.1, bytes)),
            None => (ios, bytes),
        });
    }
    all.unwrap_or((unknown, unknown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_those_of_io_profiler() {
        for (file, device) in [
            ("rrds/iosizesd0.xml", "sd0"),
            ("iosize-sd0.rrd.xml.gz", "sd0"),
            (
                "iosize_devices_pci@0,0_disk@1,0:a,raw.xml",
                "devices_pci@0,0_disk@1,0:a,raw",
            ),
            ("lun7.xml", "lun7"),
            ("iosize.xml", "iosize.xml"),
            ("-", "-"),
        ] {
            assert_eq!(device_of(Path::new(file)), device, "{file}");
        }
    }
}
