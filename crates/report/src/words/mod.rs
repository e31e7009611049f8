//! English for findings, and for subjects that rules could not judge: one file for each rule, and the only place with such
//! sentences. Rules fill facts; text, JSON, pages and tests of single sentences all take their words from here.

use plumb_model::{Facts, Finding};

mod action;
mod advice;
mod change_time;
mod cost;
mod discard_misaligned;
mod double_counted;
mod failing_io;
mod geometry_mismatch;
mod implausible_hint;
mod indirection_unit;
mod io_size;
mod latency_grew;
mod looks_sequential;
mod member_skew;
mod mirror_write_copy;
mod misaligned_io;
mod misaligned_partition;
mod misaligned_target;
mod misfit_rose;
mod misstated_grid;
mod narrow_stripe;
mod no_direct_io;
mod no_logging;
mod obstacle;
mod odd_length_io;
mod owner;
mod parity_small_writes;
mod phrase;
mod problem;
mod queue_setting;
mod read_ahead_off;
mod read_ahead_too_large;
mod read_policy;
mod reason;
mod record_mismatch;
mod saturated_device;
mod seen;
mod single_io;
mod single_path;
mod sizes_changed;
mod small_maxphys;
mod small_random_writes;
mod small_resync_io;
mod small_segmap;
mod soft_partition_drift;
mod software_raid5;
mod software_stripe_on_hardware_raid;
mod split_io;
mod stalled_io;
mod stripe_segment_mismatch;
mod target;
mod throughput_inflation;
mod too_few_disks;
mod too_many_metadevices;

pub use action::{precondition, risk};
pub use cost::cost;
pub use misaligned_io::{examined, known_start};
pub use obstacle::{doubt, obstacle};
pub(crate) use owner::command_of;
pub use owner::owner;
pub(crate) use phrase::capital;
pub use reason::reason;
pub use seen::latency;
pub(crate) use seen::{misaligned_through, move_does_not_help};
pub(crate) use single_io::{sender, single_io};
pub use target::{part, target};

/// The share of I/O that a finding counts: `12 of 34 (35.3 %)`; `None` for findings that count none.
#[must_use]
pub fn counted_share(finding: &plumb_model::Finding) -> Option<String> {
    finding
        .facts
        .counted()
        .map(|share| format!("{} I/O", phrase::counted(share)))
}

/// A finding in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentences {
    /// The defect, in one sentence.
    pub summary: String,
    /// Its meaning, its evidence, and the next steps, a sentence or two each.
    pub explanation: Vec<String>,
}

impl Sentences {
    /// A summary without an explanation.
    fn new(summary: impl Into<String>) -> Sentences {
        Sentences {
            summary: summary.into(),
            explanation: Vec::new(),
        }
    }

    /// Adds a sentence, if there is one.
    fn and(mut self, sentence: impl Into<Option<String>>) -> Sentences {
        self.explanation.extend(sentence.into());
        self
    }

    /// Adds a sentence that is always the same.
    fn say(mut self, sentence: &str) -> Sentences {
        self.explanation.push(sentence.to_owned());
        self
    }
}

/// Everything that a report says of a finding beside its cost, its confidence and its commands.
#[must_use]
pub fn finding(finding: &Finding) -> Sentences {
    let mut sentences = of_rule(finding);
    sentences.explanation.extend(seen::sentences(finding));
    let advice = finding.advice.iter().map(advice::sentence);
    sentences.explanation.extend(advice);
    sentences.explanation.extend(action::sentences(finding));
    sentences
}

/// The sentence with the next step for a finding without commands.
pub(crate) fn next_step(finding: &Finding) -> Option<String> {
    let advice = finding.advice.first().map(advice::sentence);
    advice.or_else(|| match &finding.facts {
        Facts::MisalignedIo(facts) => misaligned_io::next_step(facts),
        _ => of_rule(finding).explanation.pop(),
    })
}

/// ` on web1`, for a finding on another host than this one.
pub(crate) fn on_host(finding: &Finding) -> String {
    let host = finding.target.host.as_ref();
    host.map_or_else(String::new, |host| format!(" on {host}"))
}

/// The steps before the commands of a finding, a sentence each.
pub(crate) fn preconditions(finding: &Finding) -> Vec<String> {
    let recommended = finding.recommended();
    let first = recommended.iter().flat_map(|remedy| remedy.first.iter());
    first.map(precondition).collect()
}

fn of_rule(finding: &Finding) -> Sentences {
    let on = &finding.target;
    match &finding.facts {
        Facts::MisalignedIo(facts) => misaligned_io::words(on, facts),
        Facts::SplitIo(facts) => split_io::words(on, facts),
        Facts::RecordMismatch(facts) => record_mismatch::words(on, facts),
        Facts::OddLengthIo(facts) => odd_length_io::words(on, facts),
        Facts::SmallRandomWrites(facts) => small_random_writes::words(on, facts),
        Facts::LooksSequential(facts) => looks_sequential::words(on, facts),
        Facts::MisfitRose(facts) => misfit_rose::words(on, facts),
        Facts::LatencyGrew(facts) => latency_grew::words(on, facts),
        Facts::SizesChanged(facts) => sizes_changed::words(on, facts),
        Facts::FailingIo(facts) => failing_io::words(on, facts),
        Facts::StalledIo(facts) => stalled_io::words(on, facts),
        Facts::SaturatedDevice(facts) => saturated_device::words(on, facts),
        Facts::MemberSkew(facts) => member_skew::words(on, facts),
        Facts::ThroughputInflation(facts) => throughput_inflation::words(on, facts),
        Facts::MisalignedTarget(facts) => misaligned_target::words(on, facts),
        Facts::MisalignedPartition(facts) => misaligned_partition::words(on, facts),
        Facts::SoftPartitionDrift(facts) => soft_partition_drift::words(on, facts),
        Facts::NarrowStripe(facts) => narrow_stripe::words(on, facts),
        Facts::StripeSegmentMismatch(facts) => stripe_segment_mismatch::words(on, facts),
        Facts::ParitySmallWrites(facts) => parity_small_writes::words(on, facts),
        Facts::IndirectionUnit(facts) => indirection_unit::words(on, facts),
        Facts::GeometryMismatch(facts) => geometry_mismatch::words(on, facts),
        Facts::DiscardMisaligned(facts) => discard_misaligned::words(on, facts),
        Facts::ImplausibleHint(facts) => implausible_hint::words(on, facts),
        Facts::MisstatedGrid(facts) => misstated_grid::words(on, facts),
        Facts::QueueSetting(facts) => queue_setting::words(on, facts),
        Facts::ReadAheadOff(facts) => read_ahead_off::words(on, facts),
        Facts::ReadAheadTooLarge(facts) => read_ahead_too_large::words(on, facts),
        Facts::TooFewDisks(facts) => too_few_disks::words(on, facts),
        Facts::SinglePath(facts) => single_path::words(on, facts),
        Facts::SoftwareStripeOnHardwareRaid(facts) => {
            software_stripe_on_hardware_raid::words(on, facts)
        }
        Facts::SoftwareRaid5(facts) => software_raid5::words(on, facts),
        Facts::ReadPolicy(facts) => read_policy::words(on, facts),
        Facts::MirrorWriteCopy(facts) => mirror_write_copy::words(facts),
        Facts::SmallResyncIo(facts) => small_resync_io::words(facts),
        Facts::SmallMaxphys(facts) => small_maxphys::words(facts),
        Facts::NoDirectIo(facts) => no_direct_io::words(on, facts),
        Facts::NoLogging(facts) => no_logging::words(on, facts),
        Facts::SmallSegmap(facts) => small_segmap::words(facts),
        Facts::TooManyMetadevices(facts) => too_many_metadevices::words(facts),
        Facts::DoubleCounted(facts) => double_counted::words(facts),
        Facts::BrokenLabel(facts)
        | Facts::StrandedBackupLabel(facts)
        | Facts::OverlappingPartitions(facts)
        | Facts::UnfinishedMove(facts)
        | Facts::SectorSizeMismatch(facts)
        | Facts::BrokenSuperblock(facts)
        | Facts::HiddenSectors(facts)
        | Facts::AshiftBelowBlock(facts)
        | Facts::BeyondDevice(facts)
        | Facts::Contradiction(facts) => problem::words(finding.rule(), on, facts),
    }
}
