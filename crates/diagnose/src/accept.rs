//! Findings that somebody accepts: a report counts them, and neither verdict nor status follows them. The same for layers that
//! a guest cannot see.
//!
//! Files and clocks stay outside: the caller hands in the acceptances and the day.

use std::fmt;

use plumb_model::{Finding, Reason, RuleId, Target, Unjudged};
use plumb_stack::{Kind, NodeId, Obstacle, Stack, Stand, Verdict};
use serde::{Serialize, Serializer};

use crate::rules::Diagnosis;

/// A day of the calendar, `2027-01-31`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day {
    /// Year.
    pub year: u16,
    /// Month, from 1.
    pub month: u8,
    /// Day of the month, from 1.
    pub day: u8,
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The statement that a finding is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Acceptance {
    /// The rule.
    pub rule: RuleId,
    /// The device by any of its names, or its identity; absent for every device.
    pub device: Option<String>,
    /// The reason that somebody gave; absent on a command line.
    pub reason: Option<String>,
    /// The last day, in UTC, on which the statement counts; absent if it never ends.
    pub until: Option<Day>,
    /// File and line of the statement, or the flag.
    pub place: String,
}

impl Acceptance {
    /// Whether the statement is about a finding.
    #[must_use]
    pub fn covers(&self, stack: &Stack, finding: &Finding) -> bool {
        let is_device = |name: &str| {
            let target = &finding.target;
            let bare = name.strip_prefix("/dev/").unwrap_or(name);
            target.device == bare
                || target.identity.as_deref() == Some(name)
                || target.is_host() && name == "host"
                || target.node.is_some() && stack.find(name) == target.node
        };
        self.rule == finding.rule() && self.device.as_deref().is_none_or(is_device)
    }

    /// Whether its last day is over.
    #[must_use]
    pub fn is_over(&self, today: Day) -> bool {
        self.until.is_some_and(|last| last < today)
    }

    /// Whether the statement accepts a finding today.
    #[must_use]
    pub fn accepts(&self, stack: &Stack, finding: &Finding, today: Day) -> bool {
        self.covers(stack, finding) && !self.is_over(today)
    }
}

/// A finding that is accepted; in a document, with its summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AcceptedFinding<F = Finding> {
    /// The finding.
    pub finding: F,
    /// The statement that accepts it.
    pub by: Acceptance,
}

/// Everything that was accepted, and the statements that no longer count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Accepted<F = Finding> {
    /// Findings that are accepted, worst first.
    pub findings: Vec<AcceptedFinding<F>>,
    /// Statements about a finding that no longer count: the day is over.
    pub expired: Vec<Acceptance>,
    /// Statements about no finding.
    pub unused: Vec<Acceptance>,
    /// Whether layers below virtual disks are accepted as they are.
    pub unseen: bool,
}

impl Default for Accepted {
    fn default() -> Accepted {
        Accepted {
            findings: Vec::new(),
            expired: Vec::new(),
            unused: Vec::new(),
            unseen: false,
        }
    }
}

/// Moves accepted findings out of a diagnosis.
pub fn accept(
    diagnosis: &mut Diagnosis,
    stack: &Stack,
    acceptances: &[Acceptance],
    today: Day,
) -> Accepted {
    let mut accepted = Accepted::default();
    let mut is_used = vec![false; acceptances.len()];
    let mut kept = Vec::new();
    for finding in std::mem::take(&mut diagnosis.findings) {
        for (one, is_used) in acceptances.iter().zip(&mut is_used) {
            *is_used |= one.covers(stack, &finding);
        }
        let by = acceptances
            .iter()
            .find(|one| one.accepts(stack, &finding, today));
        match by.cloned() {
            Some(by) => accepted.findings.push(AcceptedFinding { finding, by }),
            None => kept.push(finding),
        }
    }
    diagnosis.findings = kept;
    for (one, is_used) in acceptances.iter().zip(is_used) {
        if !is_used {
            accepted.unused.push(one.clone());
        } else if one.is_over(today) {
            accepted.expired.push(one.clone());
        }
    }
    accepted
}

/// Whether a rule could not judge for one reason alone: the layers below a virtual disk are on another host.
#[must_use]
pub fn is_unseen_alone(stack: &Stack, unjudged: &Unjudged) -> bool {
    match &unjudged.reason {
        Reason::BeyondShown { .. } => true,
        Reason::BeyondAssumed { .. } | Reason::OnAssumedUnit { .. } | Reason::NoGrid => {
            stands_on_virtual_disks(stack, &unjudged.target)
        }
        Reason::NothingBeyond { on, .. } => is_virtual_disk(stack, stack.find(on)),
        Reason::Stack { because, more } => {
            *more == 0 && because.iter().all(|why| is_below(stack, why))
        }
        _ => false,
    }
}

/// Whether everything that is not known of a layer is below a virtual disk.
#[must_use]
pub fn stands_unseen_alone(stack: &Stack, stand: &Stand) -> bool {
    let is_seen_or_below = |verdict: &Verdict| match verdict {
        Verdict::Unknown { why } => is_below(stack, why),
        _ => true,
    };
    stand.on.iter().all(|on| is_seen_or_below(&on.verdict))
        && stand.lost.iter().all(|lost| is_below(stack, &lost.why))
}

fn is_below(stack: &Stack, why: &Obstacle) -> bool {
    match why {
        Obstacle::BelowVirtualDisk { .. } => true,
        Obstacle::NothingBeyond { on, .. } => is_virtual_disk(stack, stack.find(on)),
        _ => false,
    }
}

fn is_virtual_disk(stack: &Stack, id: Option<NodeId>) -> bool {
    id.is_some_and(|id| stack.node(id).kind == Kind::VirtualDisk)
}

/// Whether all devices at the bottom of a target are virtual disks.
fn stands_on_virtual_disks(stack: &Stack, target: &Target) -> bool {
    let id = target.node.or_else(|| stack.find(&target.device));
    let Some(id) = id else { return false };
    let below = stack.under(id);
    let mut leaves = below.iter().filter(|id| stack.is_leaf(**id)).peekable();
    leaves.peek().is_some() && leaves.all(|id| is_virtual_disk(stack, Some(*id)))
}
