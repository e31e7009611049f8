//! One block of counts of `align.d`: its figures, the words after each, and whether they agree.

use crate::number::{parse_i64, parse_u64};
use crate::reader::{ALL_DEVICES, AlignTotals};
use crate::text::split_words;

pub const UNIT_SECTORS: u64 = 8;
const START_UNIT_BYTES: u64 = UNIT_SECTORS * 512;
pub const LEN_UNIT_BYTES: u64 = 8192;
const SECOND_NS: i64 = 1_000_000_000;

/// A late interval of 5 s is still within these.
const INTERVAL_NS: std::ops::Range<i64> = 4_900_000_000..10_000_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    Elapsed,
    Issued,
    Misaligned,
    BlockOffset,
    ByteOffset,
    OddLength,
    OddPercent,
}

const PHRASES: [(&[&[u8]], Fact); 7] = [
    (&[b"seconds", b"elapsed"], Fact::Elapsed),
    (&[b"IOs", b"issued"], Fact::Issued),
    (&[b"IOs", b"misaligned,"], Fact::Misaligned),
    (&[b"block", b"offset"], Fact::BlockOffset),
    (&[b"byte", b"offset"], Fact::ByteOffset),
    (&[b"IOs", b"non-multiple", b"of", b"8KB"], Fact::OddLength),
    (&[b"Percent", b"non-8k", b"IOs"], Fact::OddPercent),
];

/// The figures of a line with their meanings, empty for a line of another kind; and whether the line is complete.
pub fn facts(line: &[u8]) -> (Vec<(Fact, &[u8])>, bool) {
    let found: Vec<&[u8]> = split_words(line).take(16).collect();
    let (mut rest, mut facts) = (&found[..], Vec::new());
    while let [figure, after @ ..] = rest {
        let Some((phrase, fact)) = PHRASES.iter().find(|(phrase, _)| after.starts_with(phrase))
        else {
            break;
        };
        facts.push((*fact, *figure));
        rest = &after[phrase.len()..];
    }
    (facts, rest.is_empty())
}

/// A length of time as the script prints it, and whether it was printed with the wrong divisor.
pub fn parse_elapsed(figure: &[u8]) -> Option<(Option<i64>, bool)> {
    let at = memchr::memchr(b'.', figure)?;
    let (whole, fraction) = (parse_i64(&figure[..at])?, parse_u64(&figure[at + 1..])?);
    if figure.len() - at != 10 || whole < 0 {
        return None;
    }
    let fraction = i64::try_from(fraction).ok()?;
    let printed = whole.checked_mul(SECOND_NS)?.checked_add(fraction)?;
    let slipped = (whole / 10).checked_mul(SECOND_NS)?.checked_add(fraction)?;
    // With the wrong divisor the last digit before the point is the first one after it, once more.
    let may_slip = whole % 10 == fraction / (SECOND_NS / 10);
    Some(if INTERVAL_NS.contains(&printed) || !may_slip {
        (Some(printed), false)
    } else if INTERVAL_NS.contains(&slipped) {
        (Some(slipped), true)
    } else {
        (None, false)
    })
}

/// The counts of one interval, or of a whole run, as far as they were read.
#[derive(Default)]
pub struct CountBlock {
    pub elapsed_ns: Option<i64>,
    pub issued: Option<u64>,
    pub misaligned: Option<u64>,
    pub byte_offset: Option<u64>,
    pub odd_length: Option<u64>,
}

impl CountBlock {
    /// The totals, when all of them were read and agree with each other.
    pub fn totals(&self) -> Option<AlignTotals> {
        let totals = AlignTotals {
            subject: ALL_DEVICES.to_owned(),
            elapsed_ns: self.elapsed_ns,
            ios: self.issued?,
            misaligned_ios: self.misaligned?,
            start_unit_bytes: START_UNIT_BYTES,
            mean_offset_bytes: self.byte_offset?,
            odd_length_ios: self.odd_length?,
            len_unit_bytes: LEN_UNIT_BYTES,
        };
        let plausible = totals.misaligned_ios <= totals.ios
            && totals.odd_length_ios <= totals.ios
            && totals.mean_offset_bytes < START_UNIT_BYTES
            && (totals.misaligned_ios > 0 || totals.mean_offset_bytes == 0);
        plausible.then_some(totals)
    }

    pub fn is_empty(&self) -> bool {
        self.issued.is_none() && self.misaligned.is_none() && self.odd_length.is_none()
    }
}
