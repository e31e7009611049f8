//! The output of `align.bt` and `io-profiler.bt`, two scripts for bpftrace in `collectors/`.
//!
//! `align.bt`, every 5 s: `N ms elapsed, units of N sectors`, then a block for each device (`device 8,0`, `N I/O issued`,
//! `N I/O misaligned, N block offset, N byte offset`, `N I/O of odd length (N percent)`) and the histogram
//! `@sectors_off[8, 0]:` of sectors past a unit; at the end the exact counts `@lengths[8, 0, 4096]: 12`. Each block is a total of
//! its interval.
//!
//! `io-profiler.bt`, every 10 s: a stamp `2026-11-24 10:00:10`, then for each device and operation the histogram
//! `@len_bytes[8, 0, WS]:` and `@bytes[8, 0, WS]: 49152`. The intervals add up. Below the last stamp Ctrl-C prints the rest, an
//! interval of unknown length, with its maps by name: a map that comes again without a stamp between belongs to it, and so does a
//! sum of bytes above its histogram.
//!
//! Rows of a histogram are `[4K, 8K) 12 |@@@|`: from the first value up to below the second, with K, M and G as powers of 1024.
//! Devices print as major and minor number. Layer: request. Left out: `@ios`, which the histogram repeats.
//!
//! Verified against outputs of bpftrace 0.17 over I/O of known number.

use crate::error::Error;
use crate::format::{About, Format, Holds};
use crate::input::Input;
use crate::interval_clock::{IntervalClock, seconds_of_day};
use crate::number::{parse_ios, parse_u64};
use crate::op::{Layer, Op, parse_rwbs};
use crate::reader::{
    AlignTotals, Bucket, CountedTime, Distribution, Fill, Measured, ReadOptions, Reader, Sniff,
};
use crate::source::{Latency, SourceInfo};
use crate::text::{LineError, LineFormat, Sink, TextReader, split_words};
use crate::tool::{check_layer, sniff_below_prose};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "collectors-bt",
    title: "`align.bt` and `io-profiler.bt` of [collectors](../../collectors/README.md)",
    verified: true,
    unsorted: false,
    about: About {
        families: &[],
        layer: "request",
        holds: Holds::Counts("totals: misaligned, mean offset, odd lengths; histograms of length"),
        verified_by: "outputs of a real bpftrace",
        cannot_tell: "starts beyond the unit of the script, streams, latency",
        words: &[
            "Attaching 2 probes...",
            " ms elapsed, units of ",
            " sectors",
            "device 8,0",
            " I/O issued",
            " I/O misaligned, ",
            " block offset, ",
            " byte offset",
            " I/O of odd length (",
            " percent)",
            "@sectors_off[",
            "@lengths[",
            "@len_bytes[",
            "@ios[",
            "@bytes[",
            "]: ",
            "[4K, 8K)",
            "[2, 4)",
            "[1]",
            "|@@@",
        ],
        real: &[],
    },
    sniff,
    open,
};

const SECTOR_BYTES: u64 = 512;

/// Seconds between two prints of `io-profiler.bt`.
const PROFILER_SECONDS: i64 = 10;

/// A map of one of the scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapName {
    SectorsOff,
    Lengths,
    LenBytes,
    Ios,
    Bytes,
}

impl MapName {
    fn from_word(word: &[u8]) -> Option<MapName> {
        Some(match word {
            b"@sectors_off" => MapName::SectorsOff,
            b"@lengths" => MapName::Lengths,
            b"@len_bytes" => MapName::LenBytes,
            b"@ios" => MapName::Ios,
            b"@bytes" => MapName::Bytes,
            _ => return None,
        })
    }
}

/// `@name[major, minor, key]: value`.
struct MapLine<'line> {
    name: MapName,
    device: String,
    key: Option<&'line [u8]>,
    /// Empty above a histogram.
    value: &'line [u8],
}

fn map_line(line: &[u8]) -> Option<MapLine<'_>> {
    let line = line.trim_ascii();
    let open = memchr::memchr(b'[', line)?;
    let close = memchr::memchr(b']', line)?;
    let name = MapName::from_word(&line[..open])?;
    let value = line.get(close + 1..)?.strip_prefix(b":")?.trim_ascii();
    let keys: Vec<&[u8]> = line
        .get(open + 1..close)?
        .split(|&byte| byte == b',')
        .map(<[u8]>::trim_ascii)
        .collect();
    let (major, minor, key) = match keys[..] {
        [major, minor] => (major, minor, None),
        [major, minor, key] => (major, minor, Some(key)),
        _ => return None,
    };
    let (major, minor) = (parse_u64(major)?, parse_u64(minor)?);
    Some(MapLine {
        name,
        device: format!("{major},{minor}"),
        key,
        value,
    })
}

/// Whether only these scripts print such a line.
fn is_of_script(line: &[u8]) -> bool {
    let is_elapsed = elapsed(line).is_some();
    is_elapsed
        || map_line(line).is_some_and(|map| {
            matches!(map.name, MapName::SectorsOff | MapName::LenBytes) && map.value.is_empty()
        })
}

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    sniff_below_prose(prefix, complete, is_of_script)
}

/// ms and sectors of `5000 ms elapsed, units of 8 sectors`.
fn elapsed(line: &[u8]) -> Option<(u64, u64)> {
    let words: Vec<&[u8]> = split_words(line).collect();
    match words[..] {
        [ms, b"ms", b"elapsed,", b"units", b"of", sectors, b"sectors"] => {
            let sectors = parse_u64(sectors).filter(|sectors| (1..=1 << 32).contains(sectors))?;
            Some((parse_u64(ms)?, sectors))
        }
        _ => None,
    }
}

/// Seconds since midnight of `2026-11-24 10:00:10`.
fn stamp(line: &[u8]) -> Option<i64> {
    let words: Vec<&[u8]> = split_words(line).collect();
    let [date, time] = words[..] else { return None };
    let is_date = date.len() == 10 && (date[4], date[7]) == (b'-', b'-');
    is_date.then(|| seconds_of_day(time))?
}

/// A row of a histogram: lowest value, and the value above the highest.
fn histogram_row(line: &[u8]) -> Result<Bucket, LineError> {
    let bad = || LineError::new(line, "a row of a histogram: `[4K, 8K) COUNT |@@@|`");
    let line = line.trim_ascii();
    let close = memchr::memchr2(b')', b']', line).ok_or_else(bad)?;
    let ends: Vec<&[u8]> = line
        .get(1..close)
        .ok_or_else(bad)?
        .split(|&byte| byte == b',')
        .map(<[u8]>::trim_ascii)
        .collect();
    let (low, high) = match ends[..] {
        [value] => {
            let value = scaled(value).ok_or_else(bad)?;
            (value, value)
        }
        [low, above] => {
            let (low, above) = (scaled(low).ok_or_else(bad)?, scaled(above).ok_or_else(bad)?);
            let high = above.checked_sub(1).filter(|high| *high >= low);
            (low, high.ok_or_else(bad)?)
        }
        _ => return Err(bad()),
    };
    let ios = split_words(&line[close + 1..])
        .next()
        .and_then(parse_ios)
        .ok_or_else(bad)?;
    Ok(Bucket {
        low: Some(low),
        high: Some(high),
        ios,
    })
}

/// `4K` as 4096.
fn scaled(word: &[u8]) -> Option<i64> {
    let (digits, shift) = match word.split_last()? {
        (b'K', digits) => (digits, 10),
        (b'M', digits) => (digits, 20),
        (b'G', digits) => (digits, 30),
        (b'T', digits) => (digits, 40),
        _ => (word, 0),
    };
    i64::try_from(parse_u64(digits)?)
        .ok()?
        .checked_mul(1 << shift)
}

/// A histogram with rows, or a sum of bytes, still to come.
struct OpenHistogram {
    found: Distribution,
    /// Operation as it was printed: the map of bytes repeats it.
    letters: Vec<u8>,
    /// Bytes in a unit of the values.
    unit: i64,
}

/// Counts of a device, with lines of its block still to come.
struct OpenBlock {
    totals: AlignTotals,
    has_all: bool,
}

struct CollectorsBt {
    clock: IntervalClock,
    has_stamps: bool,
    /// Time and unit of the interval of `align.bt`.
    elapsed: Option<(u64, u64)>,
    block: Option<OpenBlock>,
    /// Histograms since the last stamp.
    histograms: Vec<OpenHistogram>,
    /// Whether rows of the last of them may follow.
    in_rows: bool,
    /// Sums of bytes by device and letters that came before their histograms.
    bytes: Vec<(String, Vec<u8>, u64)>,
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    check_layer(&input.path, options, Some(Layer::Request))?;
    let mut info = SourceInfo {
        format: FORMAT.name,
        verified: FORMAT.verified,
        layers: vec![Layer::Request],
        latency: Latency::None("the scripts count I/O and time none".to_owned()),
        cannot_tell: vec!["streams", "latency"],
        ..SourceInfo::default()
    };
    info.note("counters of bpftrace are not atomic: with many processors some I/O may be missing");
    let format = CollectorsBt {
        clock: IntervalClock::new(PROFILER_SECONDS),
        has_stamps: false,
        elapsed: None,
        block: None,
        histograms: Vec::new(),
        in_rows: false,
        bytes: Vec::new(),
    };
    Ok(Box::new(TextReader::new(input, format, info)))
}

impl LineFormat for CollectorsBt {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        if let Some(map) = map_line(line) {
            self.in_rows = false;
            return self.map(&map, line, sink);
        }
        let is_row = line.first() == Some(&b'[') && memchr::memchr(b'|', line).is_some();
        if self.in_rows && is_row {
            return self.row(line);
        }
        self.in_rows = false;
        if let Some(of_day) = stamp(line) {
            self.close_histograms(sink);
            self.clock.stamp(of_day);
            self.has_stamps = true;
            sink.info.tally("interval");
        } else if let Some(found) = elapsed(line) {
            self.close_histograms(sink);
            self.elapsed = Some(found);
            sink.info.tally("interval");
        } else if let Err(error) = self.block_line(line, sink) {
            // The rest of the block has no total to belong to.
            self.block = None;
            return Err(error);
        }
        Ok(())
    }

    fn end(&mut self, sink: &mut Sink) {
        self.close_histograms(sink);
    }
}

impl CollectorsBt {
    fn map(&mut self, map: &MapLine<'_>, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        match map.name {
            MapName::SectorsOff => {
                self.begin(map, Measured::ResidueBytes, SECTOR_BYTES as i64, sink)
            }
            MapName::LenBytes => self.begin(map, Measured::LenBytes, 1, sink),
            MapName::Lengths => self.exact_length(map, line),
            MapName::Bytes => self.sum_of_bytes(map, line, sink),
            MapName::Ios => Ok(()),
        }
    }

    fn begin(
        &mut self,
        map: &MapLine<'_>,
        measured: Measured,
        unit: i64,
        sink: &mut Sink,
    ) -> Result<(), LineError> {
        let letters = map.key.unwrap_or_default().to_vec();
        let is_again = self.histograms.iter().any(|open| {
            (&open.found.subject, &open.letters, open.found.measured)
                == (&map.device, &letters, measured)
        });
        if is_again {
            self.begin_rest(sink);
        }
        let is_same =
            |(device, of, _): &&(String, Vec<u8>, u64)| *device == map.device && *of == letters;
        let bytes = self.bytes.iter().find(is_same).map(|(.., bytes)| *bytes);
        self.histograms.push(OpenHistogram {
            found: Distribution {
                subject: map.device.clone(),
                measured,
                op: operation(map.key),
                buckets: Vec::new(),
                min_max_mean: None,
                interval: self.interval(measured),
                bytes: bytes.filter(|_| measured == Measured::LenBytes),
            },
            letters,
            unit,
        });
        self.in_rows = true;
        sink.info.tally("histogram");
        Ok(())
    }

    /// The interval of a histogram that begins here. The rest below the last stamp adds up with the others and has no time of its
    /// own, so it gets an empty one.
    fn interval(&self, measured: Measured) -> Option<CountedTime> {
        if measured == Measured::LenBytes && self.has_stamps {
            return self.clock.interval();
        }
        Some(CountedTime {
            from_ns: 0,
            to_ns: 0,
        })
    }

    fn row(&mut self, line: &[u8]) -> Result<(), LineError> {
        let bucket = histogram_row(line)?;
        let Some(open) = self.histograms.last_mut() else {
            return Ok(());
        };
        let unit = open.unit;
        let in_bytes = |value: Option<i64>| value.map(|value| value.saturating_mul(unit));
        let bucket = Bucket {
            low: in_bytes(bucket.low),
            high: in_bytes(bucket.high),
            ..bucket
        };
        let buckets = &mut open.found.buckets;
        if buckets.last().is_some_and(|last| last.high >= bucket.low) {
            return Err(LineError::new(line, "values that rise from row to row"));
        }
        buckets.push(bucket);
        Ok(())
    }

    /// A line of `@lengths`: a row of a histogram with one length in each.
    fn exact_length(&mut self, map: &MapLine<'_>, line: &[u8]) -> Result<(), LineError> {
        let bad = || LineError::new(line, "`@lengths[MAJOR, MINOR, BYTES]: COUNT`");
        let length = map.key.and_then(parse_u64).ok_or_else(bad)?;
        let length = i64::try_from(length).map_err(|_| bad())?;
        let ios = parse_ios(map.value).ok_or_else(bad)?;
        let bucket = Bucket {
            low: Some(length),
            high: Some(length),
            ios,
        };
        let known = self.histograms.iter_mut().find(|open| {
            open.found.subject == map.device && open.found.measured == Measured::LenBytes
        });
        let Some(open) = known else {
            self.histograms.push(OpenHistogram {
                found: Distribution {
                    subject: map.device.clone(),
                    measured: Measured::LenBytes,
                    op: None,
                    buckets: vec![bucket],
                    min_max_mean: None,
                    interval: None,
                    bytes: None,
                },
                letters: Vec::new(),
                unit: 1,
            });
            return Ok(());
        };
        // bpftrace sorts a map by its counts.
        let buckets = &mut open.found.buckets;
        let at = buckets.partition_point(|bucket| bucket.low < Some(length));
        buckets.insert(at, bucket);
        Ok(())
    }

    /// Begins the interval that Ctrl-C prints. It has no stamp, so its length is unknown.
    fn begin_rest(&mut self, sink: &mut Sink) {
        self.close_histograms(sink);
        self.has_stamps = false;
        self.bytes.clear();
    }

    fn sum_of_bytes(
        &mut self,
        map: &MapLine<'_>,
        line: &[u8],
        sink: &mut Sink,
    ) -> Result<(), LineError> {
        let bytes = parse_u64(map.value)
            .ok_or_else(|| LineError::new(line, "`@bytes[MAJOR, MINOR, LETTERS]: BYTES`"))?;
        let letters = map.key.unwrap_or_default();
        let known = self
            .histograms
            .iter_mut()
            .find(|open| open.found.subject == map.device && open.letters == letters);
        match known {
            Some(open) if open.found.bytes.is_none() => open.found.bytes = Some(bytes),
            _ => {
                if self.bytes.is_empty() {
                    self.begin_rest(sink);
                }
                self.bytes
                    .push((map.device.clone(), letters.to_vec(), bytes));
            }
        }
        Ok(())
    }

    /// A line of the block of a device, or another line.
    fn block_line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let words: Vec<&[u8]> = split_words(line).collect();
        let bad = || LineError::new(line, "counts of a device as align.bt prints them");
        match (&words[..], &mut self.block) {
            ([b"device", device], _) => {
                let (_, sectors) = self.elapsed.ok_or_else(bad)?;
                let unit_bytes = sectors * SECTOR_BYTES;
                self.block = Some(OpenBlock {
                    totals: AlignTotals {
                        subject: String::from_utf8_lossy(device).into_owned(),
                        elapsed_ns: self
                            .elapsed
                            .and_then(|(ms, _)| i64::try_from(ms).ok()?.checked_mul(1_000_000)),
                        start_unit_bytes: unit_bytes,
                        len_unit_bytes: unit_bytes,
                        ..AlignTotals::default()
                    },
                    has_all: false,
                });
            }
            ([issued, b"I/O", b"issued"], Some(block)) => {
                block.totals.ios = parse_ios(issued).ok_or_else(bad)?;
            }
            (
                [
                    off,
                    b"I/O",
                    b"misaligned,",
                    _,
                    b"block",
                    b"offset,",
                    mean,
                    b"byte",
                    b"offset",
                ],
                Some(block),
            ) => {
                block.totals.misaligned_ios = parse_ios(off).ok_or_else(bad)?;
                block.totals.mean_offset_bytes = parse_u64(mean).ok_or_else(bad)?;
            }
            ([odd, b"I/O", b"of", b"odd", b"length", ..], Some(block)) => {
                block.totals.odd_length_ios = parse_ios(odd).ok_or_else(bad)?;
                block.has_all = true;
            }
            _ => sink.info.tally("other line"),
        }
        if let Some(block) = self.block.take_if(|block| block.has_all) {
            let totals = block.totals;
            if totals.misaligned_ios > totals.ios || totals.odd_length_ios > totals.ios {
                return Err(LineError::new(line, "no more I/O than were issued"));
            }
            sink.extras.push_back(Fill::Totals(totals));
        }
        Ok(())
    }

    /// Hands on the histograms of an interval.
    fn close_histograms(&mut self, sink: &mut Sink) {
        let open = std::mem::take(&mut self.histograms);
        let counted = open
            .into_iter()
            .filter(|open| open.found.buckets.iter().any(|bucket| bucket.ios > 0));
        sink.extras
            .extend(counted.map(|open| Fill::Distribution(open.found)));
        self.in_rows = false;
    }
}

/// The operation of the kernel's letters; `None` without letters, and for other operations than reads and writes.
fn operation(letters: Option<&[u8]>) -> Option<Op> {
    let letters = letters.filter(|letters| !letters.is_empty())?;
    Some(parse_rwbs(letters, SECTOR_BYTES).0)
}
