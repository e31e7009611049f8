//! A finding: a defect of a target with the facts that show it.

use plumb_geometry::Bounds;
use plumb_profile::latency_fit::LatencyByFit;
use plumb_quoting::CommandLine;
use serde::{Deserialize, Serialize};

use crate::advice::{Advice, Fix};
use crate::reason::Reason;
use crate::remedy::Remedy;
use crate::rule::{Category, Facts, RuleId};
use crate::seen::Seen;
use crate::target::Target;

/// How bad a defect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Worth repairing.
    Warning,
    /// Repair it now.
    Critical,
}

impl Severity {
    /// The word used in output and in flags.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

/// Numbers of findings by severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeverityCounts {
    /// Critical findings.
    pub critical: u64,
    /// Warnings.
    pub warnings: u64,
    /// Notes.
    pub notes: u64,
}

impl SeverityCounts {
    /// The numbers of some findings.
    #[must_use]
    pub fn count(findings: &[Finding]) -> SeverityCounts {
        let mut counts = SeverityCounts::default();
        for finding in findings {
            match finding.severity {
                Severity::Critical => counts.critical += 1,
                Severity::Warning => counts.warnings += 1,
                Severity::Note => counts.notes += 1,
            }
        }
        counts
    }
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// It rests on an assumption that nobody has checked.
    Low,
    /// Based on the I/O, or on a table of known models.
    Medium,
    /// It was counted or computed on a grid that was given, measured or stated by the system.
    High,
}

impl Confidence {
    /// One step less.
    #[must_use]
    pub const fn lowered(self) -> Confidence {
        match self {
            Confidence::High => Confidence::Medium,
            Confidence::Medium | Confidence::Low => Confidence::Low,
        }
    }

    /// The word used in output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Confidence::Low => "low",
            Confidence::Medium => "medium",
            Confidence::High => "high",
        }
    }
}

/// Whether a cost was measured or follows from arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// An experiment measured it.
    Measured,
    /// Arithmetic on the observed I/O: an upper bound.
    Estimated,
}

/// The quantity that a cost is a multiple or a number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostOf {
    /// Blocks touched per block needed.
    Cells,
    /// Commands per command needed.
    Commands,
    /// Bytes moved per byte asked for.
    MovedBytes,
    /// Bytes of whole cells per byte asked for, with all starts on the grid.
    CellBytes,
    /// Bytes at the device per byte asked of the file system.
    DeviceBytes,
    /// Bytes moved per byte written.
    WrittenBytes,
    /// Bytes that flash programs per byte written.
    ProgrammedBytes,
    /// Disk operations per small write.
    DiskOperations,
    /// Writes that one gathered write could hold.
    GatheredWrites,
    /// Load of the busiest member per load of an even share.
    MemberLoad,
    /// Reads on the busiest side of a mirror per read of an even share.
    SideReads,
    /// Units kept per discarded range.
    KeptUnits,
    /// Mean response times of an idle disk.
    IdleResponses,
    /// Times of a read on the grid.
    ReadTimes,
    /// Times of a write on the grid.
    WriteTimes,
}

/// The cost of a defect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The quantity.
    pub of: CostOf,
    /// How the cost is known.
    pub basis: Basis,
    /// The amount, or the least where detail was lost.
    pub value: f64,
    /// The most where detail was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_max: Option<f64>,
}

/// A ratio below this is no cost.
const COST_RATIO_MIN: f64 = 1.005;

impl Cost {
    /// A cost that follows from arithmetic.
    #[must_use]
    pub const fn estimated(of: CostOf, value: f64) -> Cost {
        Cost {
            of,
            basis: Basis::Estimated,
            value,
            value_max: None,
        }
    }

    /// A ratio that follows from arithmetic, with both of its ends; `None` if it is 1, that is no cost.
    #[must_use]
    pub fn of_ratio(of: CostOf, ratio: Bounds<f64>) -> Option<Cost> {
        (ratio.high >= COST_RATIO_MIN).then(|| Cost {
            value_max: (ratio.low < ratio.high).then_some(ratio.high),
            ..Cost::estimated(of, ratio.low)
        })
    }

    /// A cost that an experiment measured.
    #[must_use]
    pub const fn measured(of: CostOf, value: f64) -> Cost {
        Cost {
            of,
            basis: Basis::Measured,
            value,
            value_max: None,
        }
    }
}

/// A defect and the facts that show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule and its facts.
    #[serde(flatten)]
    pub facts: Facts,
    /// How bad it is.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// The target with the defect.
    pub target: Target,
    /// Its cost, if known.
    pub cost: Option<Cost>,
    /// I/O through the target while its devices were watched; absent if nothing was watched.
    pub seen: Option<Seen>,
    /// The command that confirms a finding of low confidence. It only reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<CommandLine>,
    /// Obstacles to a remedy, or facts to know before its commands are run.
    pub advice: Vec<Advice>,
    /// Ways to remove it that were proven, or need a measurement; the best first.
    pub remedies: Vec<Remedy>,
    /// Commands of the recommended remedy, in order.
    pub fix: Vec<Fix>,
}

impl Finding {
    /// A finding without a cost or a remedy.
    #[must_use]
    pub const fn new(
        facts: Facts,
        target: Target,
        severity: Severity,
        confidence: Confidence,
    ) -> Finding {
        Finding {
            facts,
            severity,
            confidence,
            target,
            cost: None,
            seen: None,
            confirm: None,
            advice: Vec::new(),
            remedies: Vec::new(),
            fix: Vec::new(),
        }
    }

    /// The rule that found it.
    #[must_use]
    pub const fn rule(&self) -> RuleId {
        self.facts.rule()
    }

    /// The remedy that a report recommends.
    #[must_use]
    pub fn recommended(&self) -> Option<&Remedy> {
        self.remedies.first().filter(|best| best.is_recommended())
    }

    /// The latency of misaligned I/O against that of the others; `None` for a finding without misaligned I/O, and if none
    /// was timed.
    #[must_use]
    pub fn latency_by_fit(&self) -> Option<&LatencyByFit> {
        match &self.facts {
            Facts::MisalignedIo(facts) => facts.latency.as_ref(),
            Facts::MisalignedPartition(_) => self.seen.as_ref()?.latency_by_fit(),
            _ => None,
        }
    }

    /// Whether the user can act on it: a report leaves out notes without an action. A rule about a layout or a setting
    /// with a plan names its commands. The other rules say in words how to change the use, except those that only inform.
    #[must_use]
    pub fn has_action(&self) -> bool {
        let rule = self.rule().rule();
        match rule.plan {
            Some(_) if rule.category != Category::Io => {
                !self.fix.is_empty() || !self.remedies.is_empty()
            }
            _ => !matches!(
                rule.id,
                RuleId::DoubleCounted | RuleId::ImplausibleHint | RuleId::HiddenSectors
            ),
        }
    }

    /// States the cost.
    #[must_use]
    pub fn with_cost(mut self, cost: impl Into<Option<Cost>>) -> Finding {
        self.cost = cost.into();
        self
    }

    /// Adds a step of the remedy, or the reason why there is no command for it.
    #[must_use]
    pub fn with_fix(mut self, step: Result<Fix, plumb_quoting::NoCommand>) -> Finding {
        match step {
            Ok(step) => self.fix.push(step),
            Err(why) => self.advice.push(Advice::NoCommand {
                why: why.to_string(),
            }),
        }
        self
    }
}

/// A rule that could not tell, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unjudged {
    /// The rule.
    pub rule: RuleId,
    /// The target that it could not judge.
    pub target: Target,
    /// Why not.
    pub reason: Reason,
}
