//! What a probe comes to, and in words why that cannot be told.

use plumb_load::probe::beside::{self as load_beside, Against, Beside};
use plumb_load::probe::media::Doubt;
use plumb_load::probe::write_back::{self, WriteDoubt};
use plumb_load::probe::{ProbeVerdict, Probed, Reason};
use plumb_report::format;
use plumb_report::probe as report;

use super::{ProbeRun, beside, words, writes};

/// How a reason begins where no medium answered.
pub const NOT_BACKED: &str = "not backed by media";

impl ProbeRun {
    /// The verdict, and why it cannot be told where that is so.
    pub(super) fn verdict(&self) -> (report::ReportedVerdict, Option<String>) {
        let probed = match &self.outcome {
            Ok(probed) => probed,
            Err(broken) => {
                let gone = if self.is_gone {
                    "; the device is gone"
                } else {
                    ""
                };
                return (
                    report::ReportedVerdict::Inconclusive,
                    Some(format!("{}{gone}", broken.error)),
                );
            }
        };
        let verdict = match probed.verdict {
            ProbeVerdict::Misaligned => report::ReportedVerdict::Misaligned,
            ProbeVerdict::Aligned => report::ReportedVerdict::Aligned,
            ProbeVerdict::NoPenalty => report::ReportedVerdict::NoPenalty,
            ProbeVerdict::Inconclusive(reason) => {
                return (
                    report::ReportedVerdict::Inconclusive,
                    Some(self.reason(reason, probed)),
                );
            }
        };
        let doubt = match self.writing {
            None => self
                .doubt_of_reads(probed)
                .filter(|doubt| doubt.stands(probed))
                .map(words::doubt),
            Some(_) => self.doubt_of_writes(probed).map(writes::doubt_words),
        };
        let why = doubt.map(|doubt| format!("{NOT_BACKED}: {doubt}"));
        match why.or_else(|| self.against(probed).map(beside::doubt_text)) {
            None => (verdict, None),
            why => (report::ReportedVerdict::Inconclusive, why),
        }
    }

    fn against(&self, probed: &Probed) -> Option<Against> {
        let others_share = self.others.map(|others| others.share);
        let (first_ns, answer_ns) = (self.survey.first_ns, self.answer_ns);
        load_beside::against(
            probed,
            Beside {
                first_ns,
                answer_ns,
                others_share,
            },
        )
    }

    fn doubt_of_reads(&self, probed: &Probed) -> Option<Doubt> {
        self.survey.doubt(self.passes_cache, probed.settled_ns)
    }

    fn doubt_of_writes(&self, probed: &Probed) -> Option<WriteDoubt> {
        write_back::doubt(probed, self.lone_write_ns, self.passes_cache)
    }

    /// Whether memory answers. Zeros may still come from a medium.
    fn is_memory(&self, probed: &Probed) -> bool {
        match self.writing {
            None => {
                matches!(
                    self.doubt_of_reads(probed),
                    Some(Doubt::Memory { .. } | Doubt::Cached { .. })
                )
            }
            Some(_) => self.doubt_of_writes(probed).is_some(),
        }
    }

    fn reason(&self, reason: Reason, probed: &Probed) -> String {
        if let Some(against) = self.against(probed) {
            return beside::doubt_text(against);
        }
        let doubt = match self.writing {
            None => self.doubt_of_reads(probed).map(words::doubt),
            Some(_) => self.doubt_of_writes(probed).map(writes::doubt_words),
        };
        let beside = doubt.map_or(String::new(), |doubt| format!("; {doubt}"));
        match reason {
            // More of it would only show more of what answers in the medium's place.
            Reason::Time if self.is_memory(probed) => {
                format!("time was over before a verdict{beside}")
            }
            Reason::Time => format!("time was over before a verdict: --limit gives more{beside}"),
            Reason::NoRoom
                if self.writing.is_some() && self.survey.places > 0 && probed.space_bytes == 0 =>
            {
                let zeros = words::doubt(Doubt::Zeros {
                    places: self.survey.places,
                });
                format!("{NOT_BACKED}: {zeros}, and nothing is written there")
            }
            Reason::NoRoom if probed.space_bytes == 0 && self.is_device => {
                format!("{NOT_BACKED}: the disk says that no block of it is mapped")
            }
            Reason::NoRoom if probed.space_bytes == 0 => {
                format!("{NOT_BACKED}: no part of it was ever written")
            }
            Reason::NoRoom => {
                format!(
                    "{} are too few to measure in{beside}",
                    format::bytes(probed.space_bytes)
                )
            }
            Reason::Coarser => {
                let open = probed.grid.map_or_else(String::new, words::coarser_open);
                format!("{open}{beside}")
            }
            Reason::Cache => {
                let bytes = format::bytes(probed.space_bytes);
                format!(
                    "smaller than its cache: {bytes} may be read, expected twice the size given with --cache"
                )
            }
        }
    }
}
