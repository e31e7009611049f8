//! Archives of io-profiler, as the XML of `rrdtool dump`.
//!
//! io-profiler stores counts of I/O by length in a round-robin database: a data source of type GAUGE for each power of two, `read-SIZE` and
//! `write-SIZE`, or `SIZE` alone in its first versions. A source has the I/O of SIZE bytes up to, but not including, twice as many. A row of an
//! archive is the mean of the counts that were stored in its time, so that the count of that time is the mean by the number of counts that fit
//! into it. A mean is no whole number: the counts here are rounded so that those of a class differ by at most one I/O from the means, over any
//! number of rows one after the other. `NaN` is unknown: such a class is not in the histogram of its row.
//!
//! An RRD does not state the time of a count. The versions of io-profiler with sources from 256 bytes and without operations count over 10 s, all later
//! ones over 300 s. Left out here: the state of rows that are not over, archives of other functions than AVERAGE, and comments; the times of rows
//! come from `lastupdate`, as `rrdtool restore` computes them. Layout: io-profiler.py of github.com/danfoster/io-profiler, and rrdtool 1.7.2.

use std::collections::{BTreeMap, BTreeSet};

use memchr::memchr;
use memchr::memmem;

use crate::error::{Damage, Error, Place, shown};
use crate::op::Op;
use crate::reader::{Bucket, Distribution, Measured};

/// Elements within each other; those of rrdtool are five.
const DEPTH_MAX: usize = 16;
/// Data sources; io-profiler makes 38 at most.
const SOURCES_MAX: usize = 128;
/// Archives; io-profiler makes five at most.
const ARCHIVES_MAX: usize = 64;
/// Largest SIZE of a source.
const SIZE_MAX: u64 = 1 << 40;
/// Largest mean of a row: its product with the counts of a day is a whole number that a double holds.
const MEAN_MAX: f64 = 1e9;
/// Steps and rows are parts of a day.
const DAY_S: i64 = 86_400;
/// Last second of the year 9999.
const LAST_S: i64 = 253_402_300_799;

/// An RRD of io-profiler.
#[derive(Clone, Debug)]
pub struct RrdDump {
    sources: Vec<RrdSource>,
    /// The finest first.
    archives: Vec<RrdArchive>,
}

/// A class of I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RrdSource {
    /// `None` for all operations.
    op: Option<Op>,
    /// Least length in bytes.
    low: u64,
}

#[derive(Clone, Debug)]
struct RrdArchive {
    row_s: i64,
    /// End of the last row, seconds since 1970.
    end_s: i64,
    /// Row by row, a value for each source.
    means: Vec<f64>,
}

/// The counts of a row of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RrdCounts {
    /// Begin, seconds since 1970.
    pub from_s: i64,
    /// End.
    pub to_s: i64,
    /// Lengths of each operation with a known class.
    pub histograms: Vec<Distribution>,
}

/// Whether a text may be a dump.
#[must_use]
pub fn is_dump(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let head = head.trim_ascii_start();
    head.starts_with(b"<?xml") || head.starts_with(b"<!DOCTYPE rrd") || head.starts_with(b"<rrd>")
}

/// Reads a dump; `name` is for messages.
///
/// # Errors
/// At the first place that no RRD of io-profiler has.
pub fn read(name: &str, text: &[u8]) -> Result<RrdDump, Error> {
    let mut scan = Scan {
        text,
        at: 0,
        line: 1,
        closes: None,
    };
    let read = read_elements(&mut scan);
    read.map_err(|wrong| Error::Malformed {
        path: name.to_owned(),
        damage: Damage {
            place: Place::Line(scan.line),
            found: wrong.found,
            expected: wrong.expected,
        },
    })
}

/// The text found, and the expected one.
struct Wrong {
    found: String,
    expected: String,
}

impl Wrong {
    fn new(found: &[u8], expected: impl Into<String>) -> Wrong {
        Wrong {
            found: shown(found),
            expected: expected.into(),
        }
    }

    fn number(found: usize, what: &str, expected: impl Into<String>) -> Wrong {
        Wrong {
            found: format!("{found} {what}"),
            expected: expected.into(),
        }
    }
}

/// The parts of an XML text.
enum Part<'t> {
    Open(&'t [u8]),
    Close(&'t [u8]),
    /// Text that is not blank, without blanks around it.
    Text(&'t [u8]),
    End,
}

struct Scan<'t> {
    text: &'t [u8],
    at: usize,
    line: u64,
    /// The element that an empty tag has opened.
    closes: Option<&'t [u8]>,
}

impl<'t> Scan<'t> {
    /// Takes bytes, and counts their lines.
    fn take(&mut self, len: usize) -> &'t [u8] {
        let taken = &self.text[self.at..self.at + len];
        self.at += len;
        self.line += memchr::memchr_iter(b'\n', taken).count() as u64;
        taken
    }

    /// Passes over a part that ends with these bytes.
    fn pass(&mut self, end: &str) -> Result<(), Wrong> {
        let rest = &self.text[self.at..];
        match memmem::find(rest, end.as_bytes()) {
            Some(at) => {
                self.take(at + end.len());
                Ok(())
            }
            None => Err(Wrong::new(
                rest,
                format!("`{end}` before the end of the file"),
            )),
        }
    }

    fn next(&mut self) -> Result<Part<'t>, Wrong> {
        if let Some(name) = self.closes.take() {
            return Ok(Part::Close(name));
        }
        loop {
            let rest = &self.text[self.at..];
            let begin = memchr(b'<', rest).unwrap_or(rest.len());
            let text = rest[..begin].trim_ascii();
            if !text.is_empty() {
                // The line of the text itself is that of an error in it.
                let blank = rest.len() - rest.trim_ascii_start().len();
                self.take(blank);
                self.at += text.len();
                self.line += memchr::memchr_iter(b'\n', text).count() as u64;
                return Ok(Part::Text(text));
            }
            self.take(begin);
            let rest = &self.text[self.at..];
            if rest.is_empty() {
                return Ok(Part::End);
            }
            if rest.starts_with(b"<!--") {
                self.pass("-->")?;
            } else if rest.starts_with(b"<?") {
                self.pass("?>")?;
            } else if rest.starts_with(b"<!") {
                // Declarations of entities are in brackets.
                let end = memchr::memchr2(b'>', b'[', rest).filter(|end| rest[*end] == b'>');
                let end =
                    end.ok_or_else(|| Wrong::new(rest, "a document type without declarations"))?;
                self.take(end + 1);
            } else {
                return self.tag();
            }
        }
    }

    fn tag(&mut self) -> Result<Part<'t>, Wrong> {
        let rest = &self.text[self.at..];
        let is_name = |name: &[u8]| {
            let is_letter = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
            !name.is_empty() && name.len() <= 64 && name.iter().all(is_letter)
        };
        let wrong = || Wrong::new(rest, "a tag of rrdtool, such as `<row>`");
        let end = memchr(b'>', rest).ok_or_else(wrong)?;
        let inner = &rest[1..end];
        let (name, is_close) = match inner.strip_prefix(b"/") {
            Some(name) => (name.trim_ascii_end(), true),
            None => (inner, false),
        };
        let (name, is_empty) = match name.strip_suffix(b"/") {
            Some(name) if !is_close => (name.trim_ascii_end(), true),
            _ => (name, false),
        };
        if !is_name(name) {
            return Err(wrong());
        }
        self.take(end + 1);
        if is_close {
            return Ok(Part::Close(name));
        }
        if is_empty {
            self.closes = Some(name);
        }
        Ok(Part::Open(name))
    }
}

/// The parts of a dump that have been read.
#[derive(Default)]
struct Reading {
    step_s: Option<i64>,
    last_update_s: Option<i64>,
    sources: Vec<RrdSource>,
    /// Of the source that is open.
    source: Option<RrdSource>,
    archives: Vec<(i64, Vec<f64>)>,
    archives_seen: usize,
    /// Whether the open archive has means, as far as it is known.
    is_average: Option<bool>,
    steps_per_row: Option<i64>,
    means: Vec<f64>,
    means_in_row: usize,
}

fn read_elements(scan: &mut Scan<'_>) -> Result<RrdDump, Wrong> {
    let mut reading = Reading::default();
    let mut path: Vec<&[u8]> = Vec::new();
    let mut done = None;
    loop {
        match scan.next()? {
            Part::Open(name) => {
                if path.is_empty() && (name != b"rrd" || done.is_some()) {
                    return Err(Wrong::new(name, "one element `rrd`"));
                }
                if path.len() == DEPTH_MAX {
                    return Err(Wrong::new(
                        name,
                        format!("at most {DEPTH_MAX} elements within each other"),
                    ));
                }
                path.push(name);
            }
            Part::Text(text) => reading.take_text(&path, text)?,
            Part::Close(name) => {
                let open = path.last().copied().unwrap_or(b"");
                if open != name {
                    let expected = match open {
                        b"" => "no end of an element".to_owned(),
                        open => format!("`</{}>`", String::from_utf8_lossy(open)),
                    };
                    let found = [b"</", name, b">"].concat();
                    return Err(Wrong::new(&found, expected));
                }
                reading.end(&path)?;
                path.pop();
                if path.is_empty() {
                    done = Some(std::mem::take(&mut reading).finish()?);
                }
            }
            Part::End => {
                if let Some(done) = done {
                    return Ok(done);
                }
                let open = path.last().copied().unwrap_or(b"rrd");
                let expected = format!("`</{}>`", String::from_utf8_lossy(open));
                return Err(Wrong {
                    found: "the end of the file".to_owned(),
                    expected,
                });
            }
        }
    }
}

fn whole(text: &[u8], allowed: std::ops::RangeInclusive<i64>, what: &str) -> Result<i64, Wrong> {
    let number = crate::number::parse_i64(text).filter(|number| allowed.contains(number));
    let expected = || format!("{what} from {} to {}", allowed.start(), allowed.end());
    number.ok_or_else(|| Wrong::new(text, expected()))
}

impl Reading {
    fn take_text(&mut self, path: &[&[u8]], text: &[u8]) -> Result<(), Wrong> {
        match path {
            [b"rrd", b"step"] => {
                self.step_s = Some(whole(text, 1..=DAY_S, "seconds of a step")?);
            }
            [b"rrd", b"lastupdate"] => {
                let seconds = whole(text, 1..=LAST_S, "seconds since 1970")?;
                self.last_update_s = Some(seconds);
            }
            [b"rrd", b"ds", b"name"] => self.source = Some(source(text)?),
            [b"rrd", b"ds", b"type"] if text != b"GAUGE" => {
                return Err(Wrong::new(text, "the type GAUGE, as io-profiler has it"));
            }
            [b"rrd", b"rra", b"cf"] => self.is_average = Some(text == b"AVERAGE"),
            [b"rrd", b"rra", b"pdp_per_row"] => {
                self.steps_per_row = Some(whole(text, 1..=DAY_S, "steps of a row")?);
            }
            [b"rrd", b"rra", b"database", b"row", b"v"] => {
                let mean = std::str::from_utf8(text).ok();
                let mean: Option<f64> = mean.and_then(|text| text.parse().ok());
                let is_mean = |mean: &f64| mean.is_nan() || (0.0..=MEAN_MAX).contains(mean);
                let expected = "a count from 0 to 1000000000, or NaN";
                let mean = mean.filter(is_mean);
                let mean = mean.ok_or_else(|| Wrong::new(text, expected))?;
                self.means_in_row += 1;
                // More are an error at the end of the row.
                if self.means_in_row <= self.sources.len() {
                    self.means.push(mean);
                }
            }
            [] => return Err(Wrong::new(text, "the element `rrd`")),
            _ => {}
        }
        Ok(())
    }

    /// Takes the end of the innermost element.
    fn end(&mut self, path: &[&[u8]]) -> Result<(), Wrong> {
        match path {
            [b"rrd", b"ds"] => self.end_source(),
            [b"rrd", b"rra", b"database", b"row"] => {
                let found = std::mem::take(&mut self.means_in_row);
                let expected = self.sources.len();
                if found != expected {
                    let words = format!("{expected}, one for each data source");
                    return Err(Wrong::number(found, "values in a row", words));
                }
                Ok(())
            }
            [b"rrd", b"rra"] => self.end_archive(),
            _ => Ok(()),
        }
    }

    fn end_source(&mut self) -> Result<(), Wrong> {
        let Some(source) = self.source.take() else {
            return Err(Wrong::new(b"<ds>", "a data source with a name"));
        };
        if self.archives_seen > 0 {
            return Err(Wrong::new(b"<ds>", "all data sources before the archives"));
        }
        if self.sources.contains(&source) {
            return Err(Wrong::new(b"<ds>", "each data source once"));
        }
        if self.sources.len() == SOURCES_MAX {
            let most = format!("at most {SOURCES_MAX}");
            return Err(Wrong::number(SOURCES_MAX + 1, "data sources", most));
        }
        let is_alike = |known: &RrdSource| known.op.is_some() == source.op.is_some();
        if !self.sources.iter().all(is_alike) {
            let expected = "data sources of reads and writes, or of both together";
            return Err(Wrong::new(b"<ds>", expected));
        }
        self.sources.push(source);
        Ok(())
    }

    fn end_archive(&mut self) -> Result<(), Wrong> {
        self.archives_seen += 1;
        if self.archives_seen > ARCHIVES_MAX {
            let most = format!("at most {ARCHIVES_MAX}");
            return Err(Wrong::number(self.archives_seen, "archives", most));
        }
        let means = std::mem::take(&mut self.means);
        let (is_average, steps) = (self.is_average.take(), self.steps_per_row.take());
        let is_average = is_average.ok_or_else(|| Wrong::new(b"</rra>", "an archive with `cf`"))?;
        let steps = steps.ok_or_else(|| Wrong::new(b"</rra>", "an archive with `pdp_per_row`"))?;
        let step_s = self.step_s;
        let step_s = step_s.ok_or_else(|| Wrong::new(b"</rra>", "`step` before the archives"))?;
        let row_s = step_s * steps;
        if DAY_S % row_s != 0 {
            return Err(Wrong {
                found: format!("an archive with rows of {row_s} s"),
                expected: "rows that divide a day".to_owned(),
            });
        }
        if is_average && !means.is_empty() {
            self.archives.push((row_s, means));
        }
        Ok(())
    }

    fn finish(self) -> Result<RrdDump, Wrong> {
        let missing = |what: &str| Wrong::new(b"</rrd>", format!("a dump with `{what}`"));
        let last_update_s = self.last_update_s.ok_or_else(|| missing("lastupdate"))?;
        if self.sources.is_empty() {
            return Err(missing("ds"));
        }
        let mut archives: Vec<RrdArchive> = Vec::new();
        for (row_s, means) in self.archives {
            let at = archives.partition_point(|finer| finer.row_s <= row_s);
            let archive = RrdArchive {
                row_s,
                end_s: last_update_s - last_update_s % row_s,
                means,
            };
            archives.insert(at, archive);
        }
        if archives.is_empty() {
            return Err(Wrong::new(b"</rrd>", "an archive of AVERAGE with rows"));
        }
        Ok(RrdDump {
            sources: self.sources,
            archives,
        })
    }
}

/// Reads the name of a data source.
fn source(name: &[u8]) -> Result<RrdSource, Wrong> {
    let (op, size) = match (name.strip_prefix(b"read-"), name.strip_prefix(b"write-")) {
        (Some(size), _) => (Some(Op::Read), size),
        (_, Some(size)) => (Some(Op::Write), size),
        _ => (None, name),
    };
    let low = crate::number::parse_u64(size).filter(|low| low.is_power_of_two());
    let low = low.filter(|low| *low <= SIZE_MAX);
    let expected = "a data source read-SIZE, write-SIZE or SIZE with a power of two of bytes";
    let low = low.ok_or_else(|| Wrong::new(name, expected))?;
    Ok(RrdSource { op, low })
}

impl RrdArchive {
    /// Begin of the first row, seconds since 1970.
    fn begin_s(&self, sources: usize) -> i64 {
        self.end_s - self.row_s * (self.means.len() / sources) as i64
    }
}

impl RrdDump {
    /// Seconds over which the version of io-profiler with these data sources counts.
    #[must_use]
    pub fn counted_over_s(&self) -> i64 {
        let is_first = |source: &RrdSource| source.op.is_none() && source.low >= 256;
        match self.sources.iter().all(is_first) {
            true => 10,
            false => 300,
        }
    }

    /// The counts of all times that are known, in order: those of the finest archive that has a time. `counted_over_s` is the time
    /// of each count.
    #[must_use]
    pub fn counts(&self, counted_over_s: i64) -> Vec<RrdCounts> {
        let mut owed = vec![0.0; self.sources.len()];
        let mut counts = Vec::new();
        for (archive, from_s, to_s) in self.parts() {
            let first_s = archive.begin_s(self.sources.len());
            let rows = archive.means.chunks_exact(self.sources.len());
            for (means, begin_s) in rows.zip((first_s..).step_by(archive.row_s as usize)) {
                let end_s = begin_s + archive.row_s;
                if begin_s < from_s || end_s > to_s {
                    continue;
                }
                let per_row = archive.row_s as f64 / counted_over_s.max(1) as f64;
                let histograms = self.histograms(means, per_row, &mut owed);
                if !histograms.is_empty() {
                    counts.push(RrdCounts {
                        from_s: begin_s,
                        to_s: end_s,
                        histograms,
                    });
                }
            }
        }
        counts
    }

    /// The archives with the time that each one serves, the oldest time first: no two times overlap.
    fn parts(&self) -> Vec<(&RrdArchive, i64, i64)> {
        let mut parts: Vec<(&RrdArchive, i64, i64)> = Vec::new();
        for archive in &self.archives {
            let begin_s = archive.begin_s(self.sources.len());
            let mut end_s = archive.end_s;
            if let Some((_, from_s, to_s)) = parts.last_mut() {
                // A row here that begins before the finer rows has some of their I/O: these go, if rows are left behind it.
                let whole_s = from_s.div_euclid(archive.row_s) * archive.row_s;
                let next_s = whole_s + if whole_s < *from_s { archive.row_s } else { 0 };
                end_s = whole_s;
                if next_s <= *to_s && next_s <= archive.end_s {
                    *from_s = next_s;
                    end_s = next_s;
                }
            }
            if begin_s < end_s {
                parts.push((archive, begin_s, end_s));
            }
        }
        parts.reverse();
        parts
    }

    /// The histograms of a row; `owed` is the difference of all means to their whole counts so far.
    fn histograms(&self, means: &[f64], per_row: f64, owed: &mut [f64]) -> Vec<Distribution> {
        let mut classes: BTreeMap<RrdSource, u64> = BTreeMap::new();
        for ((source, mean), owed) in self.sources.iter().zip(means).zip(owed) {
            if mean.is_nan() {
                continue;
            }
            let exact = mean * per_row + *owed;
            let ios = exact.round().max(0.0);
            *owed = exact - ios;
            classes.insert(*source, ios as u64);
        }
        let ops: BTreeSet<Option<Op>> = classes.keys().map(|source| source.op).collect();
        let of_op = |op: Option<Op>| {
            let classes = classes.iter().filter(|(source, _)| source.op == op);
            let bucket = |(source, ios): (&RrdSource, &u64)| Bucket {
                low: Some(source.low.cast_signed()),
                high: Some((source.low * 2 - 1).cast_signed()),
                ios: *ios,
            };
            Distribution {
                subject: String::new(),
                measured: Measured::LenBytes,
                op,
                buckets: classes.map(bucket).collect(),
                min_max_mean: None,
                interval: None,
                bytes: None,
            }
        };
        ops.into_iter().map(of_op).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dump with these lines in place of the archives.
    fn dump(sources: &[&str], archives: &str) -> String {
        let source = |name: &&str| {
            format!(
                "<ds><name> {name} </name><type> GAUGE </type><minimal_heartbeat>600</minimal_heartbeat></ds>\n"
            )
        };
        let sources: String = sources.iter().map(source).collect();
        // 2025-11-29 21:20:00 UTC, by `date -u -d @1764451200`.
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!DOCTYPE rrd SYSTEM \"https://oss.oetiker.ch/rrdtool/rrdtool.dtd\">\n<!-- Round Robin\nDatabase Dump -->\n\
             <rrd>\n<version>0003</version>\n<step>300</step> <!-- Seconds -->\n<lastupdate>1764451230</lastupdate>\n{sources}{archives}</rrd>\n"
        )
    }

    fn archive(steps: u32, rows: &[&[f64]]) -> String {
        let value = |mean: &f64| format!("<v>{mean:.10e}</v>");
        let row = |row: &&[f64]| {
            let values: String = row.iter().map(value).collect();
            format!("<!-- a time --> <row>{values}</row>\n")
        };
        let rows: String = rows.iter().map(row).collect();
        format!(
            "<rra><cf>AVERAGE</cf><pdp_per_row>{steps}</pdp_per_row><params><xff>5.0e-01</xff></params>\
             <cdp_prep><ds><value>NaN</value></ds></cdp_prep><database>\n{rows}</database></rra>\n"
        )
    }

    fn counts(text: &str, over_s: i64) -> Vec<(i64, i64, Vec<u64>)> {
        let dump = read("a.xml", text.as_bytes()).expect("a dump");
        let counts = dump.counts(over_s);
        let counts = counts.into_iter().map(|row| {
            let buckets = row.histograms.iter().flat_map(|one| &one.buckets);
            (row.from_s, row.to_s, buckets.map(|one| one.ios).collect())
        });
        counts.collect()
    }

    const END_S: i64 = 1_764_451_200;

    #[test]
    fn rows_are_counts_of_their_time() {
        let text = dump(
            &["read-4096", "write-8192"],
            &archive(1, &[&[f64::NAN, f64::NAN], &[10.0, f64::NAN], &[5.5, 7.0]]),
        );
        let found = read("a.xml", text.as_bytes()).expect("a dump");
        assert_eq!(found.counted_over_s(), 300);
        let rows = found.counts(300);
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].from_s, rows[0].to_s), (END_S - 600, END_S - 300));
        let [reads] = &rows[0].histograms[..] else {
            panic!("writes are unknown: {rows:?}");
        };
        let bucket = Bucket {
            low: Some(4096),
            high: Some(8191),
            ios: 10,
        };
        assert_eq!(
            (reads.op, &reads.buckets[..]),
            (Some(Op::Read), &[bucket][..])
        );
        // A mean of 10 s is there 30 times in 300 s.
        assert_eq!(
            counts(&text, 10),
            [
                (END_S - 600, END_S - 300, vec![300]),
                (END_S - 300, END_S, vec![165, 210])
            ]
        );
    }

    #[test]
    fn versions_of_io_profiler_count_over_their_time() {
        let over = |sources: &[&str]| {
            let text = dump(sources, &archive(1, &[&vec![1.0; sources.len()]]));
            read("a", text.as_bytes()).expect("a dump").counted_over_s()
        };
        assert_eq!(over(&["256", "512"]), 10);
        assert_eq!(over(&["32", "64", "256"]), 300);
        assert_eq!(over(&["read-256", "write-256"]), 300);
    }

    /// Thirds of an I/O are not lost: three rows of 1/3 are one I/O, and a sum of rows is never a whole I/O off.
    #[test]
    fn rounding_does_not_add_up() {
        let means = [1.0 / 3.0, 0.4, 0.6, 2.5, 0.0, 1e6 + 0.7, 0.3];
        let rows: Vec<Vec<f64>> = means.iter().map(|mean| vec![*mean]).collect();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let found = counts(&dump(&["4096"], &archive(1, &rows)), 300);
        for from in 0..means.len() {
            for to in from + 1..=means.len() {
                let exact: f64 = means[from..to].iter().sum();
                let sum: u64 = found[from..to].iter().map(|(_, _, ios)| ios[0]).sum();
                assert!(
                    (sum as f64 - exact).abs() <= 1.0,
                    "{from}..{to}: {sum} {exact}"
                );
            }
        }
    }

    /// A time comes from the finest archive that has it, and no time counts twice.
    #[test]
    fn archives_do_not_overlap() {
        // Rows of 300 s from 20:50 on, and of 900 s from 20:15 to 21:15: 20:45 to 21:00 has rows of both.
        let fine: Vec<&[f64]> = vec![&[1.0]; 6];
        let coarse: Vec<&[f64]> = vec![&[10.0]; 4];
        let text = dump(&["4096"], &(archive(3, &coarse) + &archive(1, &fine)));
        let found = counts(&text, 300);
        let times: Vec<(i64, i64)> = found
            .iter()
            .map(|(from, to, _)| (from - END_S, to - END_S))
            .collect();
        assert_eq!(
            times,
            [
                (-3900, -3000),
                (-3000, -2100),
                (-2100, -1200),
                (-1200, -900),
                (-900, -600),
                (-600, -300),
                (-300, 0)
            ]
        );
        let ios: Vec<u64> = found.iter().map(|(_, _, ios)| ios[0]).collect();
        assert_eq!(ios, [30, 30, 30, 1, 1, 1, 1]);
        // Fine rows of less than a coarse row stay, and the coarse one that has them goes.
        let text = dump(&["4096"], &(archive(1, &fine[..1]) + &archive(12, &coarse)));
        let found = counts(&text, 300);
        let times: Vec<(i64, i64)> = found
            .iter()
            .map(|(from, to, _)| (from - END_S, to - END_S))
            .collect();
        // Hours end at 21:00.
        let ends = [-4, -3, -2, -1].map(|hour| (hour * 3600 - 1200, hour * 3600 + 2400));
        assert_eq!(times, [&ends[..], &[(-300, 0)]].concat());
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let good = dump(&["read-4096"], &archive(1, &[&[1.0], &[2.0]]));
        let with = |from: &str, to: &str| {
            assert!(good.contains(from), "{from}");
            good.replacen(from, to, 1)
        };
        for (text, message) in [
            (
                String::new(),
                "a.xml, line 1: found the end of the file, expected `</rrd>`",
            ),
            (
                "<html></html>".to_owned(),
                "a.xml, line 1: found `html`, expected one element `rrd`",
            ),
            (
                with("<step>300", "<step>0"),
                "a.xml, line 7: found `0`, expected seconds of a step from 1 to 86400",
            ),
            (
                with("read-4096", "ds0"),
                "a.xml, line 9: found `ds0`, expected a data source read-SIZE, write-SIZE or SIZE with a power of two of bytes",
            ),
            (
                with("read-4096", "read-4095"),
                "a.xml, line 9: found `read-4095`, expected a data source read-SIZE, write-SIZE or SIZE with a power of two of bytes",
            ),
            (
                with("GAUGE", "COUNTER"),
                "a.xml, line 9: found `COUNTER`, expected the type GAUGE, as io-profiler has it",
            ),
            (
                with("<v>1.0000000000e0</v>", ""),
                "a.xml, line 11: found 0 values in a row, expected 1, one for each data source",
            ),
            (
                with("<v>1.0000000000e0</v>", "<v>1</v><v>1</v>"),
                "a.xml, line 11: found 2 values in a row, expected 1, one for each data source",
            ),
            (
                with("<v>1.0000000000e0</v>", "<v>-1</v>"),
                "a.xml, line 11: found `-1`, expected a count from 0 to 1000000000, or NaN",
            ),
            (
                with("<v>1.0000000000e0</v>", "<v>&amp;</v>"),
                "a.xml, line 11: found `&amp;`, expected a count from 0 to 1000000000, or NaN",
            ),
            (
                with("<pdp_per_row>1<", "<pdp_per_row>7<"),
                "a.xml, line 13: found an archive with rows of 2100 s, expected rows that divide a day",
            ),
            (
                with("</database>", "</databases>"),
                "a.xml, line 13: found `</databases>`, expected `</database>`",
            ),
            (
                with("<step>300</step>", ""),
                "a.xml, line 13: found `</rra>`, expected `step` before the archives",
            ),
            (
                good.clone() + "<rrd></rrd>",
                "a.xml, line 15: found `rrd`, expected one element `rrd`",
            ),
            (
                with("AVERAGE", "MAX"),
                "a.xml, line 14: found `</rrd>`, expected an archive of AVERAGE with rows",
            ),
            (
                with(
                    "SYSTEM \"https://oss.oetiker.ch/rrdtool/rrdtool.dtd\"",
                    "[<!ENTITY a \"b\">]",
                ),
                r#"a.xml, line 2: found `<!DOCTYPE rrd [<!ENTITY a \"b\">]>\n<!-- Round Robi…`, expected a document type without declarations"#,
            ),
        ] {
            let error = read("a.xml", text.as_bytes()).expect_err(message);
            assert_eq!(error.to_string(), message);
        }
    }

    /// A cut dump has no end, wherever the cut is.
    #[test]
    fn every_cut_is_an_error() {
        let good = dump(&["read-4096"], &archive(1, &[&[1.0], &[2.0]]));
        assert!(is_dump(good.as_bytes()));
        let whole = good.trim_end().len();
        for cut in 0..whole {
            assert!(read("a", &good.as_bytes()[..cut]).is_err(), "{cut}");
        }
        let deep = "<rrd>".to_owned() + &"<a>".repeat(100_000);
        let error = read("a", deep.as_bytes()).expect_err("too deep");
        insta::assert_snapshot!(error);
    }
}
