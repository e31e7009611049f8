//! Sentences on why a probe is inconclusive.

use plumb_load::probe::conclusion::{Disbelief, NotBacked, Why};
use plumb_load::probe::media::Doubt;
use plumb_report::format;

use super::{ProbeRun, beside, words, writes};

/// The beginning of a reason where no medium answered.
const NOT_BACKED: &str = "not backed by media";

impl ProbeRun {
    /// The reason in words.
    pub(super) fn reason(&self, why: Why) -> String {
        match why {
            Why::Broken => {
                let error = self.outcome.as_ref().err().map(|broken| &broken.error);
                let error = error.map_or_else(String::new, ToString::to_string);
                let gone = if self.is_gone {
                    "; the device is gone"
                } else {
                    ""
                };
                format!("{error}{gone}")
            }
            Why::NotBacked(not_backed) => format!("{NOT_BACKED}: {}", not_backed_words(not_backed)),
            Why::Against(against) => beside::doubt_text(against),
            Why::Time { more_helps, doubt } => {
                let help = if more_helps {
                    ": --limit gives more"
                } else {
                    ""
                };
                format!("time was over before a verdict{help}{}", appended(doubt))
            }
            Why::Ended {
                grid,
                flat_bytes,
                doubt,
            } => format!("{}{}", words::ended(grid, flat_bytes), appended(doubt)),
            Why::TooSmall { space_bytes, doubt } => format!(
                "{} are too few to measure in{}",
                format::bytes(space_bytes),
                appended(doubt)
            ),
            Why::Coarser { grid, doubt } => {
                let open = grid.map_or_else(String::new, words::coarser_open);
                format!("{open}{}", appended(doubt))
            }
            Why::Cache { space_bytes } => format!(
                "smaller than its cache: {} may be read, expected twice the size given with --cache",
                format::bytes(space_bytes)
            ),
        }
    }
}

fn not_backed_words(not_backed: NotBacked) -> String {
    match not_backed {
        NotBacked::Doubted(doubt) => doubt_words(doubt),
        NotBacked::ZerosLeftAlone { places } => {
            let zeros = words::doubt(Doubt::Zeros { places });
            format!("{zeros}, and nothing is written there")
        }
        NotBacked::Unmapped => "the disk says that no block of it is mapped".to_owned(),
        NotBacked::NeverWritten => "no part of it was ever written".to_owned(),
    }
}

fn doubt_words(doubt: Disbelief) -> String {
    match doubt {
        Disbelief::Reads(doubt) => words::doubt(doubt),
        Disbelief::Writes(doubt) => writes::doubt_words(doubt),
    }
}

/// A doubt behind another reason.
fn appended(doubt: Option<Disbelief>) -> String {
    doubt.map_or_else(String::new, |doubt| format!("; {}", doubt_words(doubt)))
}
