//! The JSON document of `plumb check`: every node with its grids and verdicts, nothing summed up.

use std::borrow::Cow;
use std::collections::BTreeMap;

use plumb_diagnose::accept::{Acceptance, Accepted};
use plumb_geometry::Bytes;
use plumb_model::result::check::CheckInput;
use plumb_model::{Finding, RuleId, Severity, Target};
use plumb_stack::node::NodeFacts;
use plumb_stack::survey::{Lost, On, Tally};
use plumb_stack::{GridFact, Kind, Node, NodeId, Obstacle, Overall, Placing, Problem, Source};
use serde::Serialize;

use super::Check;
use crate::json::{Document, FindingOut, UnjudgedOut, finding, findings, unknown};

#[derive(Serialize)]
struct NodeOut<'a> {
    id: NodeId,
    name: &'a str,
    aliases: &'a [String],
    host: Option<&'a str>,
    kind: Kind,
    size_bytes: Option<Bytes>,
    #[serde(flatten)]
    placing: PlacingOut<'a>,
    placed_by: Option<&'a Source>,
    grids: Vec<GridFact>,
    facts: &'a NodeFacts,
    opaque: Option<&'a Obstacle>,
    /// `None` for a node without layers below.
    overall: Option<Overall>,
    verdicts: &'a [On],
    lost: &'a [Lost],
}

/// Runs of a file that a document has unless all are asked for.
const RUNS_MAX: usize = 16;

/// The place of a node, without most extents of a file that has many.
#[derive(Serialize)]
struct PlacingOut<'a> {
    placing: Cow<'a, Placing>,
    runs_left_out: usize,
}

impl PlacingOut<'_> {
    fn new(node: &Node, is_full: bool) -> PlacingOut<'_> {
        match &node.placing {
            Placing::Parts { parts }
                if node.kind == Kind::File && !is_full && parts.len() > RUNS_MAX =>
            {
                PlacingOut {
                    placing: Cow::Owned(Placing::Parts {
                        parts: parts[..RUNS_MAX].to_vec(),
                    }),
                    runs_left_out: parts.len() - RUNS_MAX,
                }
            }
            placing => PlacingOut {
                placing: Cow::Borrowed(placing),
                runs_left_out: 0,
            },
        }
    }
}

#[derive(Serialize)]
struct StackOut<'a> {
    nodes: Vec<NodeOut<'a>>,
    host: Option<&'a NodeFacts>,
    problems: &'a [Problem],
}

/// A finding that is accepted, and the statement that accepts it.
#[derive(Serialize)]
struct AcceptedFindingOut<'a> {
    finding: FindingOut<'a>,
    by: &'a Acceptance,
}

/// Everything that was accepted, with statements that no longer count.
#[derive(Serialize)]
struct AcceptedOut<'a> {
    findings: Vec<AcceptedFindingOut<'a>>,
    expired: &'a [Acceptance],
    unused: &'a [Acceptance],
    unseen: bool,
}

impl AcceptedOut<'_> {
    fn new(accepted: &Accepted) -> AcceptedOut<'_> {
        let findings = accepted.findings.iter();
        let findings = findings.map(|one| AcceptedFindingOut {
            finding: finding(&one.finding),
            by: &one.by,
        });
        AcceptedOut {
            findings: findings.collect(),
            expired: &accepted.expired,
            unused: &accepted.unused,
            unseen: accepted.unseen,
        }
    }
}

/// Numbers of findings on other devices than those asked about.
#[derive(Default, Serialize)]
struct ElsewhereOut {
    critical: u64,
    warnings: u64,
    notes: u64,
}

impl ElsewhereOut {
    fn count(findings: &[Finding]) -> ElsewhereOut {
        let mut numbers = ElsewhereOut::default();
        for finding in findings {
            match finding.severity {
                Severity::Critical => numbers.critical += 1,
                Severity::Warning => numbers.warnings += 1,
                Severity::Note => numbers.notes += 1,
            }
        }
        numbers
    }
}

/// The stack with its verdicts, and the parts that were not found.
#[derive(Serialize)]
pub(crate) struct CheckResult<'a> {
    stack: StackOut<'a>,
    summary: BTreeMap<Kind, Tally>,
    unknown: Vec<UnjudgedOut<'a>>,
    accepted: AcceptedOut<'a>,
    elsewhere: ElsewhereOut,
    silent: &'a [RuleId],
    unread: &'a [Target],
    notes: &'a [String],
}

/// The document.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn json(check: &Check<'_>) -> Result<String, serde_json::Error> {
    let document: Document<'_, &CheckInput, _> = Document {
        schema: "plumb.check/2",
        run: check.run,
        inputs: check.inputs.iter().collect(),
        verdict: Some(check.verdict()),
        findings: findings(&check.diagnosis.findings),
        result: result(check),
    };
    plumb_quoting::json::pretty(&document)
}

/// The result of the document.
pub(crate) fn result<'a>(check: &Check<'a>) -> CheckResult<'a> {
    let stack = check.stack;
    let nodes = stack
        .nodes()
        .filter(|(id, _)| check.wants(*id))
        .map(|(id, node)| {
            let stand = check.survey.stand(id);
            NodeOut {
                id,
                name: &node.name,
                aliases: &node.aliases,
                host: node.host.as_deref(),
                kind: node.kind,
                size_bytes: node.size,
                placing: PlacingOut::new(node, check.is_full),
                placed_by: node.placed_by.as_ref(),
                grids: stack.grids(id),
                facts: &node.facts,
                opaque: node.opaque.as_ref(),
                overall: stand.map(|stand| stand.overall),
                verdicts: stand.map_or(&[], |stand| &stand.on),
                lost: stand.map_or(&[], |stand| &stand.lost),
            }
        });
    CheckResult {
        stack: StackOut {
            nodes: nodes.collect(),
            host: stack.host().map(|host| &host.facts),
            problems: stack.problems(),
        },
        summary: check.survey.tallies(stack, |id| check.wants(id)),
        unknown: unknown(&check.diagnosis.unknown),
        accepted: AcceptedOut::new(check.accepted),
        elsewhere: ElsewhereOut::count(check.elsewhere),
        silent: &check.diagnosis.silent,
        unread: check.unread,
        notes: check.notes,
    }
}
