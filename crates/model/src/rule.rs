//! The registry of rules. Exit statuses, the index of findings, schemas and completions are derived from it.
//!
//! The judgement and the thresholds of a rule are in `diagnose`: constants belong beside their code.

use plumb_stack::ProblemId;
use serde::{Deserialize, Serialize};

use crate::counted::CountedShare;
use crate::facts::*;
use crate::io_size::IoSize;

/// The subject of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// I/O, recorded or measured.
    Io,
    /// The place of data on the layers below.
    Layout,
    /// Settings, paths and load.
    Setting,
}

/// A kind of plan, by the thing that it changes. `plumb-plan` makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanKind {
    /// The start of a partition, or of all soft partitions of a component.
    Start,
    /// The stripe configured in a file system.
    FileSystem,
    /// The chunk of a stripe.
    Chunk,
    /// The record or block that holds pages.
    Record,
    /// The size of the I/O that resync a mirror.
    Resync,
    /// Settings of a queue.
    Queue,
}

/// Everything about a rule but the way it judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The rule.
    pub id: RuleId,
    /// Its name: that of the defect, and of its page.
    pub name: &'static str,
    /// The defect in one line, for the index of findings.
    pub title: &'static str,
    /// Its subject.
    pub category: Category,
    /// Input that it needs beside a trace or a layout, in Markdown, for the index of findings.
    pub needs: &'static str,
    /// Whether a check is *unknown* if the rule cannot tell. Rules on settings, paths and load need facts that a layout
    /// does not hold: the report says that they cannot tell, and the exit status stays.
    pub decides: bool,
    /// The plan that remedies its findings.
    pub plan: Option<PlanKind>,
    /// Its page, in Markdown.
    pub page_text: &'static str,
}

impl Rule {
    /// Its page below the root of the repository.
    #[must_use]
    pub fn page(&self) -> String {
        format!("docs/findings/{}.md", self.name)
    }
}

macro_rules! rules {
    ($($variant:ident($facts:ty) $name:literal, $category:ident, $decides:literal, $plan:expr,
        $title:literal, $needs:literal;)*) => {
        /// The name of a rule, as a type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum RuleId {
            $(
                #[doc = $title]
                #[serde(rename = $name)]
                $variant,
            )*
        }

        /// The facts of a rule.
        #[allow(clippy::large_enum_variant, reason = "a report holds tens of findings, and each is moved a few times")]
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "rule", content = "facts")]
        pub enum Facts {
            $(
                #[doc = $title]
                #[serde(rename = $name)]
                $variant($facts),
            )*
        }

        impl Facts {
            /// The rule whose facts they are.
            #[must_use]
            pub const fn rule(&self) -> RuleId {
                match self {
                    $(Facts::$variant(_) => RuleId::$variant,)*
                }
            }
        }

        impl Facts {
            /// The share of I/O that the finding counts, if it counts one.
            #[must_use]
            pub fn counted(&self) -> Option<&CountedShare> {
                match self {
                    Facts::MisalignedIo(facts) => Some(&facts.counted),
                    Facts::OddLengthIo(facts) => Some(&facts.counted),
                    Facts::SmallRandomWrites(facts) => Some(&facts.counted),
                    Facts::LooksSequential(facts) => Some(&facts.counted),
                    Facts::MemberSkew(facts) => Some(&facts.counted),
                    Facts::RecordMismatch(RecordMismatch::Requests(facts)) => Some(&facts.counted),
                    _ => None,
                }
            }

            /// The size of the I/O that the finding is for, if it is for one.
            #[must_use]
            pub fn io_size(&self) -> Option<&IoSize> {
                match self {
                    Facts::NarrowStripe(facts) => Some(&facts.io),
                    Facts::SplitIo(facts) => facts.io.as_ref(),
                    Facts::ParitySmallWrites(facts) => facts.io.as_ref(),
                    _ => None,
                }
            }
        }

        /// All rules, by their ids.
        pub static RULES: &[Rule] = &[
            $(Rule {
                id: RuleId::$variant,
                name: $name,
                title: $title,
                category: Category::$category,
                needs: $needs,
                decides: $decides,
                plan: $plan,
                page_text: include_str!(concat!("../../../docs/findings/", $name, ".md")),
            },)*
        ];
    };
}

use PlanKind::{Chunk, FileSystem, Queue, Record, Resync, Start};

rules! {
    MisalignedIo(MisalignedIo) "misaligned-io", Io, true, None,
        "I/O start off the grid", "nothing; `--grid` confirms it";
    SplitIo(SplitIo) "split-io", Io, true, Some(Chunk),
        "I/O touch more chunks than their length needs", "`--chunk`; from a layout `--page` or a profile";
    RecordMismatch(RecordMismatch) "record-mismatch", Io, true, Some(Record),
        "pages or requests and records differ in size or place",
        "`--record` and a trace of the vfs layer; from a layout `--page`";
    OddLengthIo(OddLengthIo) "odd-length-io", Io, true, None,
        "the length is no multiple of the unit", "nothing; `--grid` confirms it";
    SmallRandomWrites(SmallRandomWrites) "small-random-writes", Io, false, None,
        "small writes that continue no stream", "issue order";
    LooksSequential(LooksSequential) "looks-sequential", Io, false, None,
        "random I/O of a size that passes for sequential", "issue order";
    MemberSkew(MemberSkew) "member-skew", Io, true, None,
        "members of a stripe are loaded unevenly", "`--chunk`, `--members`";
    ThroughputInflation(ThroughputInflation) "throughput-inflation", Io, true, None,
        "the device moves far more bytes than applications asked for", "`plumb watch --app`";
    FailingIo(FailingIo) "failing-io", Io, false, None,
        "reads, writes or flushes fail", "a source that notes errors";
    StalledIo(StalledIo) "stalled-io", Io, false, None,
        "I/O wait for seconds", "a watch, or a source with times of completion";
    SaturatedDevice(SaturatedDevice) "saturated-device", Io, false, None,
        "the device is busy all the time and I/O wait for each other", "a watch, or a source with times of completion";
    MisfitRose(MisfitRose) "misfit-rose", Io, false, None,
        "the share of I/O off 4 KiB rose and stayed up", "a history";
    LatencyGrew(LatencyGrew) "latency-grew", Io, false, None,
        "latency at equal load grew and stayed up", "a history";
    SizesChanged(SizesChanged) "sizes-changed", Io, false, None,
        "the mix of I/O sizes changed and stayed so", "a history";
    MisalignedTarget(MisalignedTarget) "misaligned-target", Io, true, None,
        "blocks start at an offset, measured", "`plumb probe`";
    MisalignedPartition(MisalignedPartition) "misaligned-partition", Layout, true, Some(Start),
        "data start off a grid of a layer below", "nothing; `--grid` confirms it";
    SoftPartitionDrift(SoftPartitionDrift) "soft-partition-drift", Layout, true, Some(Start),
        "headers push extents off the unit", "`metastat -p`";
    NarrowStripe(NarrowStripe) "narrow-stripe", Layout, false, Some(Chunk),
        "the chunk of a stripe is small against the I/O", "`--page` or a profile";
    StripeSegmentMismatch(StripeSegmentMismatch) "stripe-segment-mismatch", Layout, true, Some(Chunk),
        "a software chunk is no multiple of the segment of the array below", "a known array or `--segment`";
    ParitySmallWrites(ParitySmallWrites) "parity-small-writes", Layout, false, None,
        "writes of less than a full stripe on parity RAID", "`--page` or a profile";
    IndirectionUnit(IndirectionUnit) "indirection-unit", Layout, true, None,
        "writes are smaller than the unit of the flash below", "a unit; `--page`, an ashift or a profile";
    GeometryMismatch(GeometryMismatch) "geometry-mismatch", Layout, true, Some(FileSystem),
        "a file system is configured for another stripe than the one below it", "its superblock";
    DiscardMisaligned(DiscardMisaligned) "discard-misaligned", Layout, true, None,
        "data start off the unit of discards", "nothing";
    ImplausibleHint(ImplausibleHint) "implausible-hint", Layout, true, None,
        "a stated size cannot be true", "nothing";
    MisstatedGrid(MisstatedGrid) "misstated-grid", Layout, true, None,
        "an export states another grid than the one below it",
        "a target's configfs, or a virtual disk joined with the layers below";
    QueueSetting(QueueSetting) "queue-setting", Setting, false, Some(Queue),
        "read-ahead, request size or scheduler costs performance", "a live Linux host";
    ReadAheadOff(ReadAheadOff) "read-ahead-off", Setting, false, Some(Queue),
        "sequential reads through the page cache are short because read-ahead is off", "a live watch with BPF";
    ReadAheadTooLarge(ReadAheadTooLarge) "read-ahead-too-large", Setting, false, Some(Queue),
        "random reads of mapped files bring in far more than is used", "a live watch with BPF";
    TooFewDisks(TooFewDisks) "too-few-disks", Setting, false, None,
        "more I/O are asked than the disks give", "`--disk-rate`; `--writes`, a profile or `iostat`";
    SinglePath(SinglePath) "single-path", Setting, false, None,
        "a LUN of an array has one path, or several unjoined", "nothing";
    SoftwareStripeOnHardwareRaid(SoftwareStripeOnHardwareRaid) "software-stripe-on-hardware-raid", Layout, true, None,
        "a software stripe consists of LUNs that an array already stripes", "nothing";
    SoftwareRaid5(SoftwareRaid5) "software-raid5", Layout, true, None,
        "parity is computed in software", "nothing";
    ReadPolicy(ReadPolicy) "read-policy", Setting, false, None,
        "a mirror does not share its reads evenly", "`metastat -p`";
    MirrorWriteCopy(MirrorWriteCopy) "mirror-write-copy", Setting, false, None,
        "writes to mirrors are copied first", "`/etc/system`";
    SmallResyncIo(SmallResyncIo) "small-resync-io", Setting, false, Some(Resync),
        "mirrors are resynced in small pieces", "`/etc/system`";
    SmallMaxphys(SmallMaxphys) "small-maxphys", Setting, false, Some(Resync),
        "the kernel cuts large I/O", "`/etc/system`";
    NoDirectIo(NoDirectIo) "no-direct-io", Setting, false, None,
        "a database on UFS goes through the file cache", "mount options, `--page`";
    NoLogging(NoLogging) "no-logging", Setting, false, None,
        "a UFS file system has no log", "mount options";
    SmallSegmap(SmallSegmap) "small-segmap", Setting, false, None,
        "the window of UFS on its cache is small", "`/etc/system`, mount options";
    TooManyMetadevices(TooManyMetadevices) "too-many-metadevices", Layout, true, None,
        "more metadevices than are needed, or possible", "`metastat -p`; `md.conf`";
    DoubleCounted(DoubleCounted) "double-counted", Layout, false, None,
        "rates of layered devices are one load", "`iostat` or a profile";
    BrokenLabel(NoticedProblem) "broken-label", Layout, true, None,
        "a label, or one copy of it, is damaged", "the disk";
    StrandedBackupLabel(NoticedProblem) "stranded-backup-label", Layout, true, None,
        "the backup of a label is not at the end of the disk", "the disk";
    OverlappingPartitions(NoticedProblem) "overlapping-partitions", Layout, true, None,
        "two partitions or soft partitions share bytes", "the disk, `metastat -p`";
    UnfinishedMove(NoticedProblem) "unfinished-move", Layout, true, None,
        "a move of a partition has not ended", "the disk";
    SectorSizeMismatch(NoticedProblem) "sector-size-mismatch", Layout, true, None,
        "a label is for sectors of another size", "the disk";
    BrokenSuperblock(NoticedProblem) "broken-superblock", Layout, true, None,
        "a superblock or the header of a virtual disk is damaged", "the disk, an image";
    HiddenSectors(NoticedProblem) "hidden-sectors", Layout, true, None,
        "a file system notes another start of its partition", "the disk";
    AshiftBelowBlock(NoticedProblem) "ashift-below-block", Layout, true, None,
        "ZFS writes less than a block of the disk", "`zpool status`";
    BeyondDevice(NoticedProblem) "beyond-device", Layout, true, None,
        "a layer ends beyond the layer below it", "both sizes";
    Contradiction(NoticedProblem) "contradiction", Layout, true, None,
        "sources contradict each other", "two sources";
}

impl RuleId {
    /// Everything about the rule.
    #[must_use]
    pub fn rule(self) -> &'static Rule {
        &RULES[self as usize]
    }

    /// The name used in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.rule().name
    }

    /// The rule of a name; `None` for any other word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<RuleId> {
        RULES
            .iter()
            .find(|rule| rule.name == name)
            .map(|rule| rule.id)
    }
}

impl std::fmt::Display for RuleId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl From<ProblemId> for RuleId {
    fn from(id: ProblemId) -> RuleId {
        match id {
            ProblemId::BrokenLabel => RuleId::BrokenLabel,
            ProblemId::StrandedBackupLabel => RuleId::StrandedBackupLabel,
            ProblemId::OverlappingPartitions => RuleId::OverlappingPartitions,
            ProblemId::UnfinishedMove => RuleId::UnfinishedMove,
            ProblemId::SectorSizeMismatch => RuleId::SectorSizeMismatch,
            ProblemId::HiddenSectors => RuleId::HiddenSectors,
            ProblemId::BrokenSuperblock => RuleId::BrokenSuperblock,
            ProblemId::AshiftBelowBlock => RuleId::AshiftBelowBlock,
            ProblemId::BeyondDevice => RuleId::BeyondDevice,
            ProblemId::Contradiction => RuleId::Contradiction,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [`RuleId::rule`] takes the id for an index.
    #[test]
    fn rules_are_in_the_order_of_their_ids() {
        for (at, rule) in RULES.iter().enumerate() {
            assert_eq!(rule.id as usize, at, "{}", rule.name);
            assert_eq!(RuleId::from_name(rule.name), Some(rule.id));
            assert_eq!(
                serde_json::to_value(rule.id).expect("a name"),
                serde_json::Value::from(rule.name)
            );
        }
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RULES.len());
    }
}
