//! The output of `align.d`, the DTrace script of the white paper on LUN alignment of Oracle Solaris (2012).
//!
//! Every 5 s: `N seconds elapsed`, `N IOs issued`, `N IOs misaligned, N block offset N byte offset`, `N IOs
//! non-multiple of 8KB`, `N Percent non-8k IOs`, and a `quantize()` of the sectors by which starts are off. At the end
//! `Totals`, the counts of each length, that histogram again, and the same lines for the whole run. The script counts
//! requests of the disk driver, by block on the whole disk: the request layer.
//!
//! The script differs from its description: a start is tested modulo 8 sectors, which is 4 KiB and not 8 KiB, so
//! [`crate::AlignTotals::start_unit_bytes`] is 4096; a length is tested against 8 KiB. The seconds are divided by 10^8
//! instead of 10^9 (the figures in the paper are right, so another version printed them): `50.000000284` is read as
//! 5.000000284 s if that fits the interval of 5 s. The total time is kept in 32 bits and is not used. The histogram is
//! never cleared: the last one of a run contains all of it, so only that is passed on. Totals are passed on if there
//! was no interval; else they are compared with the intervals' sum.
//!
//! Verified with the two outputs printed in the paper; their histograms are broken in the available copy: labels and
//! counts are on separate lines. An unreadable row is skipped, and a histogram that does not add up is left out.
//! Counts, histogram and lengths of a run are compared with each other, and impossible values are reported as a
//! [`Contradiction`].

mod block;
mod rows;

use std::collections::BTreeMap;

use self::block::{CountBlock, Fact, facts, parse_elapsed};
use self::rows::{HistogramRows, RowTaken, parse_count};
use crate::error::Error;
use crate::format::quantize::row_range;
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::number::parse_u64;
use crate::op::Layer;
use crate::reader::{
    ALL_DEVICES, AlignTotals, Bucket, Distribution, Fill, Measured, ReadOptions, Reader, Sniff,
};
use crate::source::{Clock, Contradiction, Latency, SourceInfo};
use crate::text::{LineError, LineFormat, Sink, TextReader, split_words};
use crate::tool::{check_layer, damaged_at_end, sniff_below_prose};

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "align.d",
    title: "the DTrace script of Oracle's white paper",
    verified: true,
    unsorted: false,
    about: About {
        families: &[(Family::Solaris, "align.d")],
        layer: "request",
        holds: Holds::Counts("totals: misaligned, mean offset, odd lengths"),
        verified_by: "two printed outputs",
        cannot_tell: "devices, operations, offsets beyond 4 KiB, latency",
        words: &[
            "seconds elapsed",
            " IOs issued",
            " IOs misaligned, ",
            " block offset ",
            " byte offset",
            " IOs non-multiple of 8KB",
            " Percent non-8k IOs",
            "Totals",
            " IO size Count",
            " IO misalignment Count",
            "value  ------------- Distribution ------------- count",
            "|@@@",
        ],
        real: &[],
    },
    sniff,
    open,
};

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    sniff_below_prose(
        prefix,
        complete,
        |line| matches!(facts(line).0[..], [(Fact::Issued, figure)] if parse_u64(figure).is_some()),
    )
}

/// The table of the lines between the counts.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum CountTable {
    #[default]
    None,
    Lengths,
    Histogram,
}

#[derive(Default)]
struct AlignD {
    block: CountBlock,
    in_totals: bool,
    /// The sum of the intervals of this run that were handed on, and how many those are.
    run: RunSum,
    intervals: u64,
    table: CountTable,
    lengths: BTreeMap<i64, u64>,
    /// The histogram that is being read, and the last one of this run.
    rows: HistogramRows,
    last_rows: HistogramRows,
}

/// The counts of a run, as its intervals or its totals have them.
#[derive(Clone, Copy, Default)]
struct RunSum {
    ios: u64,
    misaligned_ios: u64,
    odd_length_ios: u64,
    /// Sum of the offsets in bytes: at least this, and less than this and one byte for each I/O, since the script rounds the
    /// mean down.
    offset_bytes: u128,
}

impl RunSum {
    fn add(&mut self, totals: &AlignTotals) {
        self.ios = self.ios.saturating_add(totals.ios);
        self.misaligned_ios = self.misaligned_ios.saturating_add(totals.misaligned_ios);
        self.odd_length_ios = self.odd_length_ios.saturating_add(totals.odd_length_ios);
        self.offset_bytes += u128::from(totals.ios) * u128::from(totals.mean_offset_bytes);
    }
}

/// The script's counters are not atomic, so that a little may be missing from them, and I/O come while it prints.
fn differ(one: u64, other: u64) -> bool {
    const STRAY_IOS: u64 = 10;
    one.abs_diff(other) > one.max(other) / 100 + STRAY_IOS
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    check_layer(&input.path, options, Some(Layer::Request))?;
    let mut info = SourceInfo {
        format: FORMAT.name,
        verified: FORMAT.verified,
        layers: vec![Layer::Request],
        clock: Clock::Start,
        latency: Latency::None("align.d does not time".to_owned()),
        cannot_tell: vec![
            "offset beyond 4 KiB",
            "streams",
            "latency",
            "devices",
            "operation",
        ],
        ..SourceInfo::default()
    };
    info.note("align.d tests starts against 4 KiB, although it speaks of 8 KiB, and lengths against 8 KiB");
    Ok(Box::new(TextReader::new(input, AlignD::default(), info)))
}

impl LineFormat for AlignD {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        let (facts, whole) = facts(line);
        if !facts.is_empty() {
            self.end_histogram(sink);
            let before = self.begin_block(facts[0].0, sink);
            for (fact, figure) in facts {
                self.take(fact, figure, sink)?;
            }
            return if whole {
                before
            } else {
                Err(LineError::new(line, "nothing after the counts"))
            };
        }
        if rows::is_heading(line) {
            self.end_histogram(sink);
            self.table = CountTable::Histogram;
            self.rows.line = sink.line;
        } else if split_words(line).eq([b"Totals"]) {
            self.end_histogram(sink);
            let before = self.end_block(sink);
            self.in_totals = true;
            return before;
        } else if split_words(line).eq([&b"IO"[..], b"size", b"Count"]) {
            self.table = CountTable::Lengths;
        } else if !self.row(line, sink) {
            self.end_histogram(sink);
            sink.info.tally("other line");
        }
        Ok(())
    }

    fn end(&mut self, sink: &mut Sink) {
        self.end_histogram(sink);
        if let Err(error) = self.end_block(sink) {
            damaged_at_end(error, &mut sink.info);
        }
        self.end_run(sink);
    }
}

impl AlignD {
    /// A new block begins with its seconds or, where they are missing, with the I/O issued.
    fn begin_block(&mut self, fact: Fact, sink: &mut Sink) -> Result<(), LineError> {
        let begins = matches!(fact, Fact::Elapsed | Fact::Issued) && self.block.issued.is_some();
        if begins { self.end_block(sink) } else { Ok(()) }
    }

    fn take(&mut self, fact: Fact, figure: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        if fact == Fact::Elapsed {
            let (elapsed_ns, slipped) = parse_elapsed(figure).ok_or_else(|| {
                LineError::new(figure, "seconds with nine digits after the point")
            })?;
            if slipped {
                sink.info
                    .note("the seconds were printed with a wrong divisor and are read as a tenth");
            }
            self.block.elapsed_ns = elapsed_ns.filter(|_| !self.in_totals);
            return Ok(());
        }
        if figure == b"O" {
            sink.info
                .note("a letter O in place of a count was read as 0");
        }
        let count = parse_count(figure).ok_or_else(|| LineError::new(figure, "a count"))?;
        match fact {
            Fact::Issued => self.block.issued = Some(count),
            Fact::Misaligned => self.block.misaligned = Some(count),
            Fact::ByteOffset => self.block.byte_offset = Some(count),
            Fact::OddLength => self.block.odd_length = Some(count),
            // These follow from the others.
            Fact::Elapsed | Fact::BlockOffset | Fact::OddPercent => {}
        }
        Ok(())
    }

    /// Takes a row of the table that is being read; says whether the line is one.
    fn row(&mut self, line: &[u8], sink: &mut Sink) -> bool {
        let taken = match self.table {
            CountTable::None => {
                return split_words(line).next().is_none();
            }
            CountTable::Lengths => rows::take_length(&mut self.lengths, line),
            CountTable::Histogram => self.rows.take(line),
        };
        if taken == RowTaken::Unreadable {
            sink.info.tally("unreadable row");
            sink.info
                .note("a row of a histogram could not be read and was passed over");
        }
        taken != RowTaken::Other
    }

    /// A histogram of one run only grows; one that does not is of another run.
    fn end_histogram(&mut self, sink: &mut Sink) {
        self.table = CountTable::None;
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return;
        }
        if !rows.continues(&self.last_rows) {
            self.end_run(sink);
        }
        self.last_rows = rows;
    }

    fn end_block(&mut self, sink: &mut Sink) -> Result<(), LineError> {
        let block = std::mem::take(&mut self.block);
        if block.is_empty() {
            return Ok(());
        }
        let Some(totals) = block.totals() else {
            let issued = block.issued.unwrap_or(0);
            let found =
                format!("a block of {issued} I/O with counts missing or against each other");
            return Err(LineError {
                found,
                expected: "issued, misaligned, byte offset and odd lengths",
            });
        };
        let ios = totals.ios;
        if std::mem::take(&mut self.in_totals) && self.intervals > 0 {
            sink.info.note(format!(
                "the totals of a run count {ios} I/O, its intervals {}: later I/O are in the histograms \
                 only",
                self.run.ios
            ));
            self.run = RunSum::default();
            self.run.add(&totals);
            self.end_run(sink);
        } else {
            self.intervals += 1;
            self.run.add(&totals);
            sink.extras.push_back(Fill::Totals(totals));
        }
        Ok(())
    }

    /// Passes on the facts about a whole run: its lengths and its last histogram.
    fn end_run(&mut self, sink: &mut Sink) {
        let run = std::mem::take(&mut self.run);
        self.intervals = 0;
        let lengths = std::mem::take(&mut self.lengths);
        if !lengths.is_empty() {
            compare_lengths(&lengths, &run, &mut sink.info);
        }
        let exact = |(len, ios): (i64, u64)| Bucket {
            low: Some(len),
            high: Some(len),
            ios,
        };
        push(
            Measured::LenBytes,
            lengths.into_iter().map(exact).collect(),
            sink,
        );
        let rows = std::mem::take(&mut self.last_rows);
        if rows.is_empty() || !compare_histogram(&rows, &run, &mut sink.info) {
            return;
        }
        let sectors = |sectors: i64| Some(sectors.saturating_mul(512));
        let bucket = |(value, ios)| {
            let (low, high) = row_range(value)?;
            Some(Bucket {
                low: sectors(low),
                high: sectors(high),
                ios,
            })
        };
        push(
            Measured::ResidueBytes,
            rows.rows.into_iter().filter_map(bucket).collect(),
            sink,
        );
    }
}

/// Holds the counts of each length against those of the run.
fn compare_lengths(lengths: &BTreeMap<i64, u64>, run: &RunSum, info: &mut SourceInfo) {
    let sum = |wanted: fn(i64) -> bool| {
        let of = lengths.iter().filter(|(len, _)| wanted(**len));
        of.fold(0u64, |sum, (_, ios)| sum.saturating_add(*ios))
    };
    let counted = sum(|_| true);
    if differ(counted, run.ios) {
        info.contradict(Contradiction::LengthSum {
            counted,
            issued: run.ios,
        });
    }
    let odd = sum(|len| len % block::LEN_UNIT_BYTES as i64 != 0);
    if differ(odd, run.odd_length_ios) {
        info.contradict(Contradiction::OddLengths {
            counted: odd,
            printed: run.odd_length_ios,
            unit_bytes: block::LEN_UNIT_BYTES,
        });
    }
}

/// Holds the histogram against the counts of the run; says whether it adds up to them.
fn compare_histogram(rows: &HistogramRows, run: &RunSum, info: &mut SourceInfo) -> bool {
    let line = rows.line;
    for (from, ios) in rows.impossible() {
        info.contradict(Contradiction::ImpossibleRemainder {
            line,
            from_sectors: from,
            unit_sectors: block::UNIT_SECTORS,
            ios,
        });
    }
    let counted = rows.off_unit();
    if differ(counted, run.misaligned_ios) {
        info.contradict(Contradiction::Misaligned {
            line,
            counted,
            printed: run.misaligned_ios,
            issued: run.ios,
        });
    }
    let sum = rows.sum();
    if differ(sum, run.ios) {
        info.contradict(Contradiction::HistogramSum {
            line,
            counted: sum,
            issued: run.ios,
        });
        return false;
    }
    let [low, high] = rows.offset_bytes();
    let printed = run.offset_bytes;
    let slack = |bytes: u128| bytes / 100 + 4096;
    if low > printed + u128::from(run.ios) + slack(low) || high + slack(printed) < printed {
        let mean = |bytes: u128| (bytes / u128::from(run.ios.max(1))) as u64;
        info.contradict(Contradiction::MeanOffset {
            line,
            counted_low: mean(low),
            counted_high: mean(high),
            printed: mean(printed),
        });
    }
    true
}

fn push(measured: Measured, buckets: Vec<Bucket>, sink: &mut Sink) {
    if !buckets.is_empty() {
        let histogram = Distribution {
            subject: ALL_DEVICES.to_owned(),
            measured,
            op: None,
            buckets,
            min_max_mean: None,
            interval: None,
            bytes: None,
        };
        sink.extras.push_back(Fill::Distribution(histogram));
    }
}
