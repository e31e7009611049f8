//! The verdict of a command that judges, as its document has it. `report` makes the sentence.

use serde::{Serialize, Serializer};

/// The word of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Nothing is wrong.
    Ok,
    /// I/O or a layout does not fit.
    Misfit,
    /// A label, a setting or a device is at fault.
    Problem,
    /// Something could not be judged.
    Unknown,
    /// A measurement does not tell.
    Inconclusive,
}

impl Word {
    /// The word as it is printed.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Word::Ok => "OK",
            Word::Misfit => "MISFIT",
            Word::Problem => "PROBLEM",
            Word::Unknown => "UNKNOWN",
            Word::Inconclusive => "INCONCLUSIVE",
        }
    }
}

impl Serialize for Word {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

/// A verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The word.
    pub word: Word,
    /// The sentence behind the word, with a full stop.
    pub sentence: String,
    /// A shorter sentence, for the last line of a long report.
    #[serde(skip)]
    pub short: Option<String>,
}

impl Verdict {
    /// A verdict of a measurement, whose sentence names the target.
    #[must_use]
    pub fn measured(word: Word, sentence: impl Into<String>) -> Verdict {
        Verdict {
            word,
            sentence: sentence.into(),
            short: None,
        }
    }
}
