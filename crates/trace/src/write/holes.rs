//! Holes of a source as words, for formats that have no place for them: `lost=3 missing_files=1 completions_only=1`.
//!
//! A trace with holes tells nothing of streams; without the words its copy would seem whole.

use crate::number::parse_u64;
use crate::source::SourceInfo;

const LOST: &str = "lost";
const MISSING_FILES: &str = "missing_files";
const COMPLETIONS_ONLY: &str = "completions_only";

/// The holes of a source in words; `None` where it has none.
#[must_use]
pub fn holes_in_words(info: &SourceInfo) -> Option<String> {
    let counts = [
        (LOST, info.counts.lost),
        (MISSING_FILES, info.counts.missing_files),
        (COMPLETIONS_ONLY, u64::from(info.completions_only)),
    ];
    let words: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name}={count}"))
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The holes that words tell, by their places in [`holes_in_words`]; `None` for other words.
#[must_use]
pub fn parse_holes(words: &[u8]) -> Option<[u64; 3]> {
    let mut holes = [0; 3];
    for word in words
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
    {
        let at = word.iter().position(|&byte| byte == b'=')?;
        let (name, count) = (&word[..at], parse_u64(&word[at + 1..])?);
        let mut names = [LOST, MISSING_FILES, COMPLETIONS_ONLY].iter();
        let place = names.position(|known| known.as_bytes() == name)?;
        holes[place] = count;
    }
    Some(holes)
}

/// Adds holes to the facts about a source.
pub fn add_holes([lost, missing_files, completions_only]: [u64; 3], info: &mut SourceInfo) {
    let counts = &mut info.counts;
    counts.lost = counts.lost.saturating_add(lost);
    counts.missing_files = counts.missing_files.saturating_add(missing_files);
    info.completions_only |= completions_only > 0;
    info.note("the trace from which it was converted has holes, which are counted here");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_come_back() {
        let mut info = SourceInfo::default();
        assert_eq!(holes_in_words(&info), None);
        (info.counts.lost, info.completions_only) = (7, true);
        let words = holes_in_words(&info).expect("holes");
        assert_eq!(words, "lost=7 completions_only=1");
        assert_eq!(parse_holes(words.as_bytes()), Some([7, 0, 1]));
        for other in ["lost", "lost=x", "found=1", "lost=-1"] {
            assert_eq!(parse_holes(other.as_bytes()), None, "{other}");
        }
    }
}
