//! The output of `align.d`, the DTrace script of the white paper on LUN alignment of Oracle Solaris (2012).
//!
//! Every 5 s: `N seconds elapsed`, `N IOs issued`, `N IOs misaligned, N block offset N byte offset`,
//! `N IOs non-multiple of 8KB`, `N Percent non-8k IOs`, and a `quantize()` of the sectors by which starts are
//! off. At the end `Totals`, the counts of each length, that histogram again, and the same lines for the whole
//! run. The script counts where the disk driver sends a request, by block on the whole disk: the request layer.
//!
//! What the script does, other than it says: a start is tested modulo 8 sectors, which is 4 KiB and not 8 KiB,
//! so [`crate::AlignTotals::start_unit_bytes`] is 4096; a length is tested against 8 KiB. The seconds are divided by
//! 10^8 where 10^9 is meant (the figures in the paper are right, so it was printed by another version):
//! `50.000000284` is read as 5.000000284 s where that fits the interval of 5 s. The total time is kept in
//! 32 bits and is not used. The histogram is never cleared: the last one of a run holds all of it, so only that
//! is handed on. Totals are handed on when no interval was; else they are compared with the intervals' sum.
//!
//! Verified against the two outputs printed in the paper; their histograms are broken in the copy at hand. A
//! row that cannot be read is passed over, and a histogram that does not add up is left out.

mod block;

use std::collections::BTreeMap;

use self::block::{CountBlock, Fact, facts, parse_elapsed};
use crate::error::Error;
use crate::format::quantize::{is_distribution, row_range};
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::number::{parse_i64, parse_ios, parse_u64};
use crate::op::Layer;
use crate::reader::{Bucket, Distribution, Fill, IOS_MAX, Measured, ReadOptions, Reader, Sniff};
use crate::source::{Clock, Latency, SourceInfo};
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

/// Which table the lines between the counts belong to.
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
    /// I/O in the intervals of this run that were handed on, and how many those are.
    run_ios: u64,
    intervals: u64,
    table: CountTable,
    lengths: BTreeMap<i64, u64>,
    /// Rows (sectors off, I/O) of the histogram that is being read, and of the last one of this run.
    rows: BTreeMap<i64, u64>,
    last_rows: BTreeMap<i64, u64>,
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
        if is_distribution(line) {
            self.end_histogram(sink);
            self.table = CountTable::Histogram;
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
        let misread = figure == b"O";
        if misread {
            sink.info
                .note("a letter O in place of a count was read as 0");
        }
        let count = if misread { Some(0) } else { parse_ios(figure) };
        let count = count.ok_or_else(|| LineError::new(figure, "a count"))?;
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
        let mut found = split_words(line);
        let (Some(first), last) = (found.next(), found.last()) else {
            return true;
        };
        let value = parse_i64(first);
        let count = last.and_then(|word| {
            if word == b"O" {
                Some(0)
            } else {
                parse_ios(word)
            }
        });
        let table = match self.table {
            CountTable::None => return false,
            CountTable::Lengths => &mut self.lengths,
            CountTable::Histogram => &mut self.rows,
        };
        let fits = |value: i64| self.table == CountTable::Lengths || row_range(value).is_some();
        match (value.filter(|&value| fits(value)), count) {
            (Some(value), Some(count)) => {
                let sum = table.entry(value).or_insert(0);
                *sum = sum.saturating_add(count).min(IOS_MAX);
                true
            }
            _ if value.is_some() || first == b"|" => {
                sink.info.tally("unreadable row");
                sink.info
                    .note("a row of a histogram could not be read and was passed over");
                true
            }
            _ => false,
        }
    }

    /// A histogram of one run only grows; one that does not is of another run.
    fn end_histogram(&mut self, sink: &mut Sink) {
        self.table = CountTable::None;
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return;
        }
        let grows = self
            .last_rows
            .iter()
            .all(|(value, ios)| rows.get(value).unwrap_or(&0) >= ios);
        if !grows {
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
                "the totals of a run count {ios} I/O, its intervals {}: what came after the last interval \
                 is in the histograms only",
                self.run_ios
            ));
            self.run_ios = ios;
            self.end_run(sink);
        } else {
            self.intervals += 1;
            self.run_ios = self.run_ios.saturating_add(ios);
            sink.extras.push_back(Fill::Totals(totals));
        }
        Ok(())
    }

    /// Hands on what is known of a whole run: its lengths and its last histogram.
    fn end_run(&mut self, sink: &mut Sink) {
        let ios = std::mem::take(&mut self.run_ios);
        self.intervals = 0;
        let lengths = std::mem::take(&mut self.lengths);
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
        let sum = rows
            .values()
            .fold(0u64, |sum, ios| sum.saturating_add(*ios));
        // The script's counters are not atomic, so a little may be missing from them.
        if sum.abs_diff(ios) > ios / 100 {
            sink.info.note(format!(
                "a histogram was left out: its rows add up to {sum} where {ios} I/O were issued"
            ));
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
            rows.into_iter().filter_map(bucket).collect(),
            sink,
        );
    }
}

fn push(measured: Measured, buckets: Vec<Bucket>, sink: &mut Sink) {
    if !buckets.is_empty() {
        let subject = "all disks".to_owned();
        let histogram = Distribution {
            subject,
            measured,
            op: None,
            buckets,
            min_max_mean: None,
        };
        sink.extras.push_back(Fill::Distribution(histogram));
    }
}
