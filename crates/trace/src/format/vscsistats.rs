//! Histograms of `vscsiStats -p all -c` on a VMware ESX host.
//!
//! A section begins with `Histogram: WHAT,virtual machine worldGroupID,N,virtual disk handleID,N (scsiX:Y)`,
//! then `min,` `max,` `mean,` `count,`, a heading and rows `frequency,limit`. A limit is the highest value of
//! its bucket; limits such as 4095 before 4096 single out the round lengths. The last limit is printed twice:
//! its second row holds everything above. Units: bytes, blocks of 512 B, µs; here bytes and ns.
//!
//! The host counts the requests of a virtual machine to one virtual disk: the request layer of the guest, with the
//! latency of the host's storage. A distance is printed from the last block of the command before, so that 1 means
//! sequential; here it counts from that command's end, and 0 is sequential. The distance to the closest of 16 commands
//! before is another measure than distance to the last one, and is left out. There are no individual I/O, so starts,
//! fit and latency by fit are unknown. Verified with a real output.

use crate::error::{Damage, Error, Place, shown};
use crate::format::{About, Family, Format, Holds};
use crate::input::Input;
use crate::number::{parse_i64, parse_ios, parse_u64};
use crate::op::{Layer, Op};
use crate::reader::{Bucket, Distribution, Fill, Measured, ReadOptions, Reader, Sniff};
use crate::source::SourceInfo;
use crate::text::{Fields, LineError, LineFormat, Sink, TextReader, sniff_lines, split_words};
use crate::tool::check_layer;

/// The format's entry in the list.
pub static FORMAT: Format = Format {
    name: "vscsistats",
    title: "`vscsiStats -p all -c` of VMware ESX",
    verified: true,
    unsorted: false,
    about: About {
        families: &[(Family::Vmware, "vscsiStats")],
        layer: "request of the guest",
        holds: Holds::Counts("histograms of length, distance, latency, depth"),
        verified_by: "a real output",
        cannot_tell: "starts, fit, streams, latency by fit",
        words: &[
            "Histogram: ",
            "IO lengths of commands",
            ",virtual machine worldGroupID,",
            ",virtual disk handleID,",
            "(scsi0:0)",
            "min,",
            "max,",
            "mean,",
            "count,",
            "Frequency,Histogram Bucket Limit",
            "distance (in LBNs) between successive",
            "latency of IO interarrival time",
            "latency of ",
            "Read IOs",
            "Writes",
            "number of outstanding",
        ],
        real: &["vscsiStats/algonquin.csv"],
    },
    sniff,
    open,
};

/// No histogram of the tool has nearly this number of buckets.
const BUCKETS_MAX: usize = 1000;

fn sniff(prefix: &[u8], complete: bool) -> Sniff {
    match sniff_lines(prefix, complete, |_| true) {
        Sniff::Yes if prefix.starts_with(b"Histogram: ") && is_head(prefix) => Sniff::Yes,
        Sniff::More => Sniff::More,
        _ => Sniff::No,
    }
}

fn is_head(prefix: &[u8]) -> bool {
    let line = prefix
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    Fields::new(line, b',').nth(1) == Some(b"virtual machine worldGroupID")
}

fn open(input: Input, options: &ReadOptions) -> Result<Box<dyn Reader>, Error> {
    check_layer(&input.path, options, Some(Layer::Request))?;
    let info = SourceInfo {
        format: FORMAT.name,
        verified: FORMAT.verified,
        layers: vec![Layer::Request],
        cannot_tell: vec!["start alignment", "fit", "streams", "latency by fit"],
        ..SourceInfo::default()
    };
    Ok(Box::new(TextReader::new(
        input,
        VscsiStats { current: None },
        info,
    )))
}

/// The measure of a section, by the words of its name; `None` for an unused one.
fn measured(what: &[u8]) -> Option<Measured> {
    let starts = |with: &str| what.starts_with(with.as_bytes());
    if starts("IO lengths") {
        Some(Measured::LenBytes)
    } else if starts("distance (in LBNs) between successive") {
        Some(Measured::SeekBytes)
    } else if starts("latency of IO interarrival time") {
        Some(Measured::InterarrivalNs)
    } else if starts("latency of") {
        Some(Measured::DeviceNs)
    } else if starts("number of outstanding") {
        Some(Measured::Depth)
    } else {
        None
    }
}

fn op(what: &[u8]) -> Option<Op> {
    split_words(what).find_map(|word| match word {
        b"Read" | b"Reads" => Some(Op::Read),
        b"Write" | b"Writes" => Some(Op::Write),
        _ => None,
    })
}

/// The highest value that a printed value may stand for, in our unit.
fn highest(measured: Measured, value: i64) -> Option<i64> {
    match measured {
        // From the end of the command before and not from its last block.
        Measured::SeekBytes => value.checked_sub(1)?.checked_mul(512),
        // A printed µs stands for all the ns in it.
        Measured::DeviceNs | Measured::InterarrivalNs => value.checked_mul(1000)?.checked_add(999),
        Measured::LenBytes | Measured::Depth | Measured::ResidueBytes => Some(value),
    }
}

/// The lowest value that a printed value may stand for, in our unit.
fn lowest(measured: Measured, value: i64) -> Option<i64> {
    match measured {
        Measured::DeviceNs | Measured::InterarrivalNs => value.checked_mul(1000),
        _ => highest(measured, value),
    }
}

#[derive(Default)]
struct HistogramSection {
    /// `None` in a section that is left out.
    measured: Option<Measured>,
    subject: String,
    op: Option<Op>,
    /// min, max, mean.
    extremes: [Option<i64>; 3],
    count: Option<u64>,
    limits: Vec<(i64, u64)>,
    /// A line of it could not be read, so it is left out.
    broken: bool,
}

struct VscsiStats {
    current: Option<HistogramSection>,
}

fn head(line: &[u8]) -> Result<HistogramSection, LineError> {
    let bad = || {
        LineError::new(
            line,
            "`Histogram: WHAT,virtual machine worldGroupID,N,virtual disk handleID,N`",
        )
    };
    let mut fields = Fields::new(line.strip_prefix(b"Histogram: ").ok_or_else(bad)?, b',');
    let what = fields.next().ok_or_else(bad)?;
    let (_, vm, _, disk) = (fields.next(), fields.next(), fields.next(), fields.next());
    let (vm, disk) = (vm.ok_or_else(bad)?, disk.ok_or_else(bad)?);
    let subject = format!(
        "vm {} disk {}",
        String::from_utf8_lossy(vm),
        String::from_utf8_lossy(disk)
    );
    Ok(HistogramSection {
        measured: measured(what),
        subject,
        op: op(what),
        ..HistogramSection::default()
    })
}

impl HistogramSection {
    fn take(&mut self, line: &[u8]) -> Result<(), LineError> {
        let bad = || LineError::new(line, "`frequency,limit` or one of min, max, mean and count");
        let at = memchr::memchr(b',', line).ok_or_else(bad)?;
        let (name, value) = (&line[..at], &line[at + 1..]);
        match name {
            b"min" => self.extremes[0] = Some(parse_i64(value).ok_or_else(bad)?),
            b"max" => self.extremes[1] = Some(parse_i64(value).ok_or_else(bad)?),
            b"mean" => self.extremes[2] = Some(parse_i64(value).ok_or_else(bad)?),
            b"count" => self.count = Some(parse_u64(value).ok_or_else(bad)?),
            b"Frequency" => {}
            _ => {
                let row = (
                    parse_i64(value).ok_or_else(bad)?,
                    parse_ios(name).ok_or_else(bad)?,
                );
                let overflowed = self.limits.windows(2).any(|pair| pair[0].0 == pair[1].0);
                let falls = self.limits.last().is_some_and(|last| row.0 < last.0);
                if overflowed || falls || self.limits.len() == BUCKETS_MAX {
                    return Err(LineError::new(
                        line,
                        "limits that rise up to the last, which comes twice",
                    ));
                }
                self.limits.push(row);
            }
        }
        Ok(())
    }

    /// The histogram; `None` when its rows do not add up to its count or a figure overflows.
    fn finish(self, measured: Measured) -> Option<Distribution> {
        let sum = self
            .limits
            .iter()
            .try_fold(0u64, |sum, (_, ios)| sum.checked_add(*ios));
        if sum.is_none() || sum != self.count {
            return None;
        }
        let signed = measured == Measured::SeekBytes;
        let mut buckets = Vec::with_capacity(self.limits.len());
        let mut before: Option<i64> = None;
        for &(limit, ios) in &self.limits {
            let low = match before {
                Some(before) => Some(lowest(measured, before.checked_add(1)?)?),
                None if signed => None,
                None => Some(0),
            };
            let high = if before == Some(limit) {
                None
            } else {
                Some(highest(measured, limit)?)
            };
            buckets.push(Bucket { low, high, ios });
            before = Some(limit);
        }
        let min_max_mean = match self.extremes {
            [Some(min), Some(max), Some(mean)] => Some((
                lowest(measured, min)?,
                lowest(measured, max)?,
                lowest(measured, mean)?,
            )),
            _ => None,
        };
        Some(Distribution {
            subject: self.subject,
            measured,
            op: self.op,
            buckets,
            min_max_mean,
            interval: None,
            bytes: None,
        })
    }
}

impl LineFormat for VscsiStats {
    fn line(&mut self, line: &[u8], sink: &mut Sink) -> Result<(), LineError> {
        if !line.starts_with(b"Histogram: ") {
            let current = self
                .current
                .as_mut()
                .ok_or_else(|| LineError::new(line, "a section `Histogram: …`"))?;
            let outcome = current.take(line);
            current.broken |= outcome.is_err();
            return outcome;
        }
        // The section before ends here; its missing parts are reported at its position.
        self.end(sink);
        self.current = Some(head(line)?);
        sink.info.tally("histogram");
        Ok(())
    }

    fn end(&mut self, sink: &mut Sink) {
        let Some(section) = self.current.take() else {
            return;
        };
        let Some(measured) = section.measured else {
            sink.info.note(
                "a histogram of another measure than length, distance to the last command, latency, \
                 interarrival or depth was left out",
            );
            return;
        };
        if section.broken {
            return;
        }
        let subject = section.subject.clone();
        match section.finish(measured) {
            Some(distribution) => sink.extras.push_back(Fill::Distribution(distribution)),
            None => sink.info.damage(Damage {
                place: Place::Line(sink.info.counts.records),
                found: format!(
                    "a histogram of {} that ends before this line",
                    shown(subject.as_bytes())
                ),
                expected: "rows that add up to its count".to_owned(),
            }),
        }
    }
}
