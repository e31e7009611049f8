//! Holes of a source as words, for formats that have no place for them: `lost=3 missing_files=1 completions_only=1`.
//!
//! A trace with holes tells nothing of streams, and one whose completions are missing nothing of latencies; without the
//! words its copy would seem whole.

use crate::number::parse_u64;
use crate::source::{Counts, SourceInfo};

/// A count of a source that its copy keeps.
struct Hole {
    name: &'static str,
    count: fn(&mut Counts) -> &mut u64,
    /// Whether it matters to latencies alone.
    is_of_latency: bool,
}

/// Whether only completions were recorded, as a number: it is no count of [`Counts`].
const COMPLETIONS_ONLY: &str = "completions_only";

const HOLES: [Hole; 4] = [
    Hole {
        name: "lost",
        count: |counts| &mut counts.lost,
        is_of_latency: false,
    },
    Hole {
        name: "missing_files",
        count: |counts| &mut counts.missing_files,
        is_of_latency: false,
    },
    Hole {
        name: "unmatched_issues",
        count: |counts| &mut counts.unmatched_issues,
        is_of_latency: true,
    },
    Hole {
        name: "doubtful_latencies",
        count: |counts| &mut counts.doubtful_latencies,
        is_of_latency: true,
    },
];

/// The holes that a copy tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holes {
    counts: Counts,
    completions_only: bool,
}

/// The holes of a source in words; `None` where it has none. A copy without latencies leaves out those of latencies.
#[must_use]
pub fn holes_in_words(info: &SourceInfo, has_latency: bool) -> Option<String> {
    let mut counts = info.counts.clone();
    let mut words: Vec<String> = HOLES
        .iter()
        .filter(|hole| has_latency || !hole.is_of_latency)
        .map(|hole| (hole.name, *(hole.count)(&mut counts)))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name}={count}"))
        .collect();
    if info.completions_only {
        words.push(format!("{COMPLETIONS_ONLY}=1"));
    }
    (!words.is_empty()).then(|| words.join(" "))
}

/// The holes that words tell; `None` for other words.
#[must_use]
pub fn parse_holes(words: &[u8]) -> Option<Holes> {
    let mut holes = Holes::default();
    for word in words
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
    {
        let at = word.iter().position(|&byte| byte == b'=')?;
        let (name, count) = (&word[..at], parse_u64(&word[at + 1..])?);
        if name == COMPLETIONS_ONLY.as_bytes() {
            holes.completions_only = count > 0;
        } else {
            let hole = HOLES.iter().find(|hole| hole.name.as_bytes() == name)?;
            *(hole.count)(&mut holes.counts) = count;
        }
    }
    Some(holes)
}

/// Adds holes to the facts about a source.
pub fn add_holes(mut holes: Holes, info: &mut SourceInfo) {
    for hole in &HOLES {
        let count = (hole.count)(&mut info.counts);
        *count = count.saturating_add(*(hole.count)(&mut holes.counts));
    }
    info.completions_only |= holes.completions_only;
    info.note("the trace from which it was converted has holes, which are counted here");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_come_back() {
        let mut info = SourceInfo::default();
        assert_eq!(holes_in_words(&info, true), None);
        (info.counts.lost, info.completions_only) = (7, true);
        info.counts.doubtful_latencies = 40;
        let words = holes_in_words(&info, false).expect("holes");
        assert_eq!(words, "lost=7 completions_only=1");
        let words = holes_in_words(&info, true).expect("holes");
        let separate: Vec<&str> = words.split(' ').collect();
        assert_eq!(
            separate,
            ["lost=7", "doubtful_latencies=40", "completions_only=1"]
        );
        let mut copy = SourceInfo::default();
        add_holes(
            parse_holes(words.as_bytes()).expect("just written"),
            &mut copy,
        );
        assert_eq!(copy.counts, info.counts);
        assert!(copy.completions_only);
        for other in ["lost", "lost=x", "found=1", "lost=-1"] {
            assert_eq!(parse_holes(other.as_bytes()), None, "{other}");
        }
    }
}
