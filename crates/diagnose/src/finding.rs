//! A finding: a defect with the numbers that show it. One without evidence cannot be made.

use plumb_quoting::shell::Undo;
use plumb_quoting::{Command, CommandLine, NoCommand, WayBack};
use serde::Serialize;

use plumb_stack::Kind;
use plumb_trace::Layer;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Worth mending.
    Warning,
    /// Mend it now.
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

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Rests on an assumption that nobody has checked.
    Low,
    /// Rests on what the I/O show, or on a table of known models.
    Medium,
    /// Counted or worked out, on a grid that was given, measured or stated by the system.
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

/// A number that shows a defect, and where it is from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// What it is, as a key: `misaligned_ios`.
    pub name: &'static str,
    /// The number.
    pub value: f64,
    /// Its unit: `ios`, `bytes`, `share`, `ns`, `ratio`.
    pub unit: &'static str,
    /// Where it was counted.
    pub source: String,
}

/// Whether a cost was measured or follows from arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Measured by an experiment.
    Measured,
    /// Arithmetic on what was seen: an upper bound.
    Estimated,
}

/// What a defect costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// How much.
    pub value: f64,
    /// Of what: `cells touched per cell needed`.
    pub unit: &'static str,
    /// How it is known.
    pub basis: Basis,
}

/// One command, or change by hand, of those that mend a defect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// Command to run.
    pub command: CommandLine,
    /// What can go wrong.
    pub risk: &'static str,
    /// The way back.
    pub undo: WayBack,
}

impl Fix {
    /// A step of a remedy.
    ///
    /// # Errors
    /// When a name is one that no command can hold.
    pub fn new(
        command: Command,
        risk: &'static str,
        undo: impl Into<Undo>,
    ) -> Result<Fix, NoCommand> {
        Ok(Fix {
            command: command.line()?,
            risk,
            undo: undo.into().way_back()?,
        })
    }
}

/// Which layer a target is, or was seen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum TargetLayer {
    /// Where I/O were seen.
    Seen(Layer),
    /// What a layer of a stack is.
    Stack(Kind),
    /// A host and its settings.
    Host(HostLayer),
}

/// The layer of what is true of a host as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostLayer {
    /// The only one.
    Host,
}

/// What a defect was found on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Target {
    /// Device as the source names it.
    pub device: String,
    /// Part of it, if not the whole: a partition or a range.
    pub part: Option<String>,
    /// Layer at which the I/O were seen, or which the device is.
    pub layer: TargetLayer,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(part) = &self.part {
            write!(f, "{part} of ")?;
        }
        match self.layer {
            TargetLayer::Seen(layer) => {
                write!(f, "device {} ({} layer)", self.device, layer.word())
            }
            TargetLayer::Stack(Kind::Unknown) => write!(f, "device {}", self.device),
            TargetLayer::Stack(kind) => write!(f, "{} {}", kind.text(), self.device),
            TargetLayer::Host(_) => f.write_str("the host"),
        }
    }
}

/// A defect and what shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    id: &'static str,
    severity: Severity,
    target: Target,
    layer: TargetLayer,
    /// One sentence with N of M.
    summary: String,
    evidence: Vec<Evidence>,
    cost: Option<Cost>,
    confidence: Confidence,
    /// What it means and why, a sentence each.
    explanation: Vec<String>,
    fix: Vec<Fix>,
}

impl Finding {
    /// A finding with its first evidence.
    #[must_use]
    pub fn new(
        id: &'static str,
        severity: Severity,
        target: &Target,
        confidence: Confidence,
        summary: String,
        evidence: Evidence,
    ) -> Finding {
        Finding {
            id,
            severity,
            layer: target.layer,
            target: target.clone(),
            summary,
            evidence: vec![evidence],
            cost: None,
            confidence,
            explanation: Vec::new(),
            fix: Vec::new(),
        }
    }

    /// Adds evidence.
    #[must_use]
    pub fn with_evidence(mut self, evidence: Evidence) -> Finding {
        self.evidence.push(evidence);
        self
    }

    /// Says what it costs.
    #[must_use]
    pub fn with_cost(mut self, cost: Option<Cost>) -> Finding {
        self.cost = cost;
        self
    }

    /// Adds a sentence of explanation.
    #[must_use]
    pub fn explained(mut self, sentence: impl Into<String>) -> Finding {
        self.explanation.push(sentence.into());
        self
    }

    /// Adds a step of the remedy, or the reason why there is no command for it.
    #[must_use]
    pub fn with_fix(mut self, step: Result<Fix, NoCommand>) -> Finding {
        match step {
            Ok(step) => self.fix.push(step),
            Err(why) => self.explain(why.to_string()),
        }
        self
    }

    /// Adds a step of the remedy to a finding that somebody else has made.
    pub fn add_fix(&mut self, step: Fix) {
        self.fix.push(step);
    }

    /// Adds evidence to a finding that somebody else has made.
    pub fn add_evidence(&mut self, evidence: Evidence) {
        self.evidence.push(evidence);
    }

    /// Adds a sentence of explanation to a finding that somebody else has made.
    pub fn explain(&mut self, sentence: impl Into<String>) {
        self.explanation.push(sentence.into());
    }

    /// Name of the defect.
    #[must_use]
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// How bad it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// What it was found on.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// One sentence with N of M.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// The numbers; at least one.
    #[must_use]
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// What it costs, where that can be said.
    #[must_use]
    pub fn cost(&self) -> Option<&Cost> {
        self.cost.as_ref()
    }

    /// How sure it is.
    #[must_use]
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// What it means, a sentence each.
    #[must_use]
    pub fn explanation(&self) -> &[String] {
        &self.explanation
    }

    /// Fixs of the remedy.
    #[must_use]
    pub fn fix(&self) -> &[Fix] {
        &self.fix
    }
}
