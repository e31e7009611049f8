//! The conclusion of a probe: its verdict, weighed against everything that is known beside the reads.
//!
//! A verdict without a medium, or with another possible cause, is inconclusive. Left out: sentences, which the caller
//! makes of a [`Why`].

use serde::Serialize;

use super::beside::{self, Against, Beside};
use super::media::{Doubt, MediaSurvey};
use super::write_back::{self, WriteDoubt};
use super::{Broken, Candidate, ProbeVerdict, Probed, Reason};

/// The facts beside the reads of a probe.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The places that were looked at first.
    pub survey: &'a MediaSurvey,
    /// Whether the probe wrote back the bytes that it read.
    pub is_writing: bool,
    /// Time of a short write alone, ns; `None` for reads.
    pub lone_write_ns: Option<u64>,
    /// Whether I/O are known to go through a page cache.
    pub passes_cache: bool,
    /// Time that the server of a file takes to answer, ns; `None` without a server.
    pub answer_ns: Option<u64>,
    /// Share of the device's I/O that others made; `None` where nothing counts it.
    pub others_share: Option<f64>,
    /// Whether the target is a block device.
    pub is_device: bool,
}

/// The conclusion of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// Boundaries, and the first one not at 0.
    Misaligned,
    /// Boundaries, the first one at 0.
    Aligned,
    /// No start costs more than the margin.
    NoPenalty,
    /// Undecided. A document has the reason in a field of its own.
    Inconclusive(#[serde(skip)] Why),
}

/// The reason for an inconclusive probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// I/O failed, or could not be made.
    Broken,
    /// No medium answered.
    NotBacked(NotBacked),
    /// Something else hides a penalty, or answers in place of the medium.
    Against(Against),
    /// Time was over before a verdict.
    Time {
        /// Whether more time may bring one: more reads of memory would only show more of memory.
        more_helps: bool,
        /// A doubt besides.
        doubt: Option<Disbelief>,
    },
    /// The user ended it before a verdict.
    Ended {
        /// The grid that the reads had shown by then, without the checks that follow.
        grid: Option<Candidate>,
        /// The largest granularity up to which no start costs more; 0 if none was decided.
        flat_bytes: u64,
        /// A doubt besides.
        doubt: Option<Disbelief>,
    },
    /// The parts that may be used are too short to measure in.
    TooSmall {
        /// Bytes of them, at least 1.
        space_bytes: u64,
        /// A doubt besides.
        doubt: Option<Disbelief>,
    },
    /// There are boundaries from 0 on, and a coarser grid that begins elsewhere is not excluded.
    Coarser {
        /// The grid of these boundaries.
        grid: Option<Candidate>,
        /// A doubt besides.
        doubt: Option<Disbelief>,
    },
    /// The parts that may be used are not at least twice as large as the stated cache.
    Cache {
        /// Bytes of them.
        space_bytes: u64,
    },
}

/// Signs that no medium answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotBacked {
    /// The I/O look like those of memory, or of zeros.
    Doubted(Disbelief),
    /// All places read as zeros, and a probe of writes leaves those alone.
    ZerosLeftAlone {
        /// Places.
        places: u64,
    },
    /// The disk maps no block of it.
    Unmapped,
    /// No part of the file was ever written.
    NeverWritten,
}

/// Doubts about the I/O themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disbelief {
    /// About reads.
    Reads(Doubt),
    /// About writes.
    Writes(WriteDoubt),
}

impl Facts<'_> {
    /// The conclusion of a probe that has ended.
    #[must_use]
    pub fn conclude<E>(&self, outcome: &Result<Probed, Broken<E>>) -> Conclusion {
        let Ok(probed) = outcome else {
            return Conclusion::Inconclusive(Why::Broken);
        };
        let conclusion = match probed.verdict {
            ProbeVerdict::Misaligned => Conclusion::Misaligned,
            ProbeVerdict::Aligned => Conclusion::Aligned,
            ProbeVerdict::NoPenalty => Conclusion::NoPenalty,
            ProbeVerdict::Inconclusive(reason) => {
                return Conclusion::Inconclusive(self.why(reason, probed));
            }
        };
        let doubt = self.doubt(probed).filter(|doubt| match doubt {
            Disbelief::Reads(doubt) => doubt.stands(probed),
            Disbelief::Writes(_) => true,
        });
        doubt
            .map(|doubt| Why::NotBacked(NotBacked::Doubted(doubt)))
            .or_else(|| self.against(probed).map(Why::Against))
            .map_or(conclusion, Conclusion::Inconclusive)
    }

    fn against(&self, probed: &Probed) -> Option<Against> {
        beside::against(
            probed,
            Beside {
                first_ns: self.survey.first_ns,
                answer_ns: self.answer_ns,
                others_share: self.others_share,
            },
        )
    }

    fn doubt(&self, probed: &Probed) -> Option<Disbelief> {
        if self.is_writing {
            write_back::doubt(probed, self.lone_write_ns, self.passes_cache).map(Disbelief::Writes)
        } else {
            let doubt = self.survey.doubt(self.passes_cache, probed.settled_ns);
            doubt.map(Disbelief::Reads)
        }
    }

    fn why(&self, reason: Reason, probed: &Probed) -> Why {
        let against = self.against(probed).filter(|_| reason != Reason::Ended);
        if let Some(against) = against {
            return Why::Against(against);
        }
        let doubt = self.doubt(probed);
        let space_bytes = probed.space_bytes;
        match reason {
            Reason::Time => Why::Time {
                more_helps: !doubt.is_some_and(Disbelief::is_of_memory),
                doubt,
            },
            Reason::NoRoom if space_bytes > 0 => Why::TooSmall { space_bytes, doubt },
            Reason::NoRoom if self.is_writing && self.survey.places > 0 => {
                let places = self.survey.places;
                Why::NotBacked(NotBacked::ZerosLeftAlone { places })
            }
            Reason::NoRoom if self.is_device => Why::NotBacked(NotBacked::Unmapped),
            Reason::NoRoom => Why::NotBacked(NotBacked::NeverWritten),
            Reason::Coarser => Why::Coarser {
                grid: probed.grid,
                doubt,
            },
            Reason::Cache => Why::Cache { space_bytes },
            Reason::Ended => self.ended(probed),
        }
    }

    fn ended(&self, probed: &Probed) -> Why {
        let decided = probed.searched.iter();
        let flat = decided.take_while(|one| one.flat_within.is_some()).last();
        Why::Ended {
            grid: probed.grid,
            flat_bytes: flat.map_or(0, |one| one.granularity_bytes),
            doubt: self.doubt(probed),
        }
    }
}

impl Disbelief {
    /// Whether memory answers. Zeros may still come from a medium.
    fn is_of_memory(self) -> bool {
        !matches!(self, Disbelief::Reads(Doubt::Zeros { .. }))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Searched;
    use super::super::drift::PaceCourse;
    use super::*;

    const MS: u64 = 1_000_000;

    fn probed(verdict: ProbeVerdict, space_bytes: u64) -> Result<Probed, Broken<()>> {
        Ok(Probed {
            verdict,
            grid: None,
            penalty: None,
            penalty_len_bytes: 4096,
            crossing: None,
            coarser_within: None,
            searched: Vec::new(),
            bars: Vec::new(),
            reads: 2_000,
            bytes: 4 << 20,
            spent: Duration::from_secs(2),
            settled_ns: None,
            course: PaceCourse::default(),
            cache: None,
            space_bytes,
        })
    }

    fn survey(zeros: u64, first_ns: u64) -> MediaSurvey {
        MediaSurvey {
            places: 256,
            zeros,
            first_ns: Some(first_ns),
            again_ns: Some(first_ns),
            data: Vec::new(),
        }
    }

    fn facts(survey: &MediaSurvey) -> Facts<'_> {
        Facts {
            survey,
            is_writing: false,
            lone_write_ns: None,
            passes_cache: false,
            answer_ns: None,
            others_share: None,
            is_device: true,
        }
    }

    #[test]
    fn verdicts_need_a_medium_and_a_quiet_device() {
        let (media, zeros, memory) = (survey(0, MS), survey(256, MS), survey(0, 5_000));
        let reads = |doubt| {
            Conclusion::Inconclusive(Why::NotBacked(NotBacked::Doubted(Disbelief::Reads(doubt))))
        };
        let busy = Conclusion::Inconclusive(Why::Against(Against::Others { share: 0.5 }));
        for (survey, others_share, verdict, expected) in [
            (
                &media,
                None,
                ProbeVerdict::Misaligned,
                Conclusion::Misaligned,
            ),
            (&media, None, ProbeVerdict::Aligned, Conclusion::Aligned),
            (&media, None, ProbeVerdict::NoPenalty, Conclusion::NoPenalty),
            (&media, Some(0.5), ProbeVerdict::NoPenalty, busy),
            (
                &media,
                Some(0.5),
                ProbeVerdict::Aligned,
                Conclusion::Aligned,
            ),
            (
                &zeros,
                None,
                ProbeVerdict::NoPenalty,
                reads(Doubt::Zeros { places: 256 }),
            ),
            // The doubt comes before the other users.
            (
                &memory,
                Some(0.5),
                ProbeVerdict::NoPenalty,
                reads(Doubt::Memory { ns: 5_000 }),
            ),
        ] {
            let facts = Facts {
                others_share,
                ..facts(survey)
            };
            assert_eq!(facts.conclude(&probed(verdict, 1 << 30)), expected);
        }
        let cached = Facts {
            is_writing: true,
            passes_cache: true,
            ..facts(&media)
        };
        let doubt = Disbelief::Writes(WriteDoubt::PageCache);
        assert_eq!(
            cached.conclude(&probed(ProbeVerdict::NoPenalty, 1 << 30)),
            Conclusion::Inconclusive(Why::NotBacked(NotBacked::Doubted(doubt)))
        );
        let broken = Err(Broken {
            error: (),
            reads: 7,
            bytes: 7 << 12,
        });
        assert_eq!(
            facts(&media).conclude(&broken),
            Conclusion::Inconclusive(Why::Broken)
        );
    }

    /// All granularities up to that one are decided.
    #[test]
    fn an_interrupted_probe_prints_decided_grids() {
        let media = survey(0, MS);
        let flat = |granularities: &[(u64, bool)]| {
            let searched = granularities
                .iter()
                .map(|&(granularity_bytes, is_flat)| Searched {
                    granularity_bytes,
                    len_bytes: 1024,
                    flat_within: is_flat.then_some(0.01),
                });
            let mut probed = probed(ProbeVerdict::Inconclusive(Reason::Ended), 1 << 30);
            if let Ok(probed) = &mut probed {
                probed.searched = searched.collect();
            }
            // I/O of other programs are no reason.
            let facts = Facts {
                others_share: Some(0.5),
                ..facts(&media)
            };
            match facts.conclude(&probed) {
                Conclusion::Inconclusive(Why::Ended { flat_bytes, .. }) => flat_bytes,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(flat(&[]), 0);
        assert_eq!(flat(&[(4096, false), (16_384, true)]), 0);
        assert_eq!(
            flat(&[(4096, true), (16_384, true), (65_536, false)]),
            16_384
        );
    }

    #[test]
    fn reasons_name_the_way_out() {
        let (media, zeros, memory) = (survey(0, MS), survey(256, MS), survey(0, 5_000));
        let of_zeros = Some(Disbelief::Reads(Doubt::Zeros { places: 256 }));
        let of_memory = Some(Disbelief::Reads(Doubt::Memory { ns: 5_000 }));
        let time = |more_helps, doubt| Why::Time { more_helps, doubt };
        for (survey, is_writing, is_device, reason, space_bytes, expected) in [
            (&media, false, true, Reason::Time, 1 << 30, time(true, None)),
            (
                &zeros,
                false,
                true,
                Reason::Time,
                1 << 30,
                time(true, of_zeros),
            ),
            (
                &memory,
                false,
                true,
                Reason::Time,
                1 << 30,
                time(false, of_memory),
            ),
            (
                &media,
                false,
                true,
                Reason::NoRoom,
                4096,
                Why::TooSmall {
                    space_bytes: 4096,
                    doubt: None,
                },
            ),
            (
                &media,
                false,
                true,
                Reason::NoRoom,
                0,
                Why::NotBacked(NotBacked::Unmapped),
            ),
            (
                &media,
                false,
                false,
                Reason::NoRoom,
                0,
                Why::NotBacked(NotBacked::NeverWritten),
            ),
            (
                &zeros,
                true,
                true,
                Reason::NoRoom,
                0,
                Why::NotBacked(NotBacked::ZerosLeftAlone { places: 256 }),
            ),
            (
                &media,
                false,
                true,
                Reason::Cache,
                1 << 20,
                Why::Cache {
                    space_bytes: 1 << 20,
                },
            ),
            (
                &media,
                false,
                true,
                Reason::Coarser,
                1 << 30,
                Why::Coarser {
                    grid: None,
                    doubt: None,
                },
            ),
        ] {
            let facts = Facts {
                is_writing,
                is_device,
                ..facts(survey)
            };
            let verdict = ProbeVerdict::Inconclusive(reason);
            let found = facts.conclude(&probed(verdict, space_bytes));
            assert_eq!(found, Conclusion::Inconclusive(expected), "{reason:?}");
        }
    }
}
