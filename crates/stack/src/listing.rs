//! A stack with the verdicts of a survey, as documents list it: every node with its grids, and nothing summed up.

use std::borrow::Cow;

use plumb_geometry::Bytes;
use serde::Serialize;

use crate::graph::{NodeId, Stack};
use crate::grid::{GridFact, Source};
use crate::node::{Kind, Node, Placing, Problem};
use crate::node_facts::NodeFacts;
use crate::obstacle::Obstacle;
use crate::survey::{Lost, On, Overall, Survey};

/// Runs of a file that a list has unless all are wanted.
const RUNS_MAX: usize = 16;

/// Layers with their verdicts.
#[derive(Clone, Debug, Serialize)]
pub struct ListedStack<'a> {
    nodes: Vec<ListedNode<'a>>,
    host: Option<&'a NodeFacts>,
    problems: &'a [Problem],
}

#[derive(Clone, Debug, Serialize)]
struct ListedNode<'a> {
    id: NodeId,
    name: &'a str,
    aliases: &'a [String],
    host: Option<&'a str>,
    kind: Kind,
    size_bytes: Option<Bytes>,
    #[serde(flatten)]
    placing: ListedPlacing<'a>,
    placed_by: Option<&'a Source>,
    grids: Vec<GridFact>,
    facts: &'a NodeFacts,
    opaque: Option<&'a Obstacle>,
    /// `None` for a node without layers below.
    overall: Option<Overall>,
    verdicts: &'a [On],
    lost: &'a [Lost],
}

/// The place of a node, without most extents of a file that has many.
#[derive(Clone, Debug, Serialize)]
struct ListedPlacing<'a> {
    placing: Cow<'a, Placing>,
    runs_left_out: usize,
}

impl<'a> ListedStack<'a> {
    /// The wanted layers of a stack and its problems; `is_full` lists every extent of every file, else 16 of a file.
    #[must_use]
    pub fn new(
        stack: &'a Stack,
        survey: &'a Survey,
        is_full: bool,
        is_wanted: &dyn Fn(NodeId) -> bool,
    ) -> ListedStack<'a> {
        let nodes = stack.nodes().filter(|(id, _)| is_wanted(*id));
        let nodes = nodes.map(|(id, node)| {
            let stand = survey.stand(id);
            ListedNode {
                id,
                name: &node.name,
                aliases: &node.aliases,
                host: node.host.as_deref(),
                kind: node.kind,
                size_bytes: node.size,
                placing: ListedPlacing::new(node, is_full),
                placed_by: node.placed_by.as_ref(),
                grids: stack.grids(id),
                facts: &node.facts,
                opaque: node.opaque.as_ref(),
                overall: stand.map(|stand| stand.overall),
                verdicts: stand.map_or(&[], |stand| &stand.on),
                lost: stand.map_or(&[], |stand| &stand.lost),
            }
        });
        ListedStack {
            nodes: nodes.collect(),
            host: stack.host().map(|host| &host.facts),
            problems: stack.problems(),
        }
    }
}

impl ListedPlacing<'_> {
    fn new(node: &Node, is_full: bool) -> ListedPlacing<'_> {
        match &node.placing {
            Placing::Parts { parts }
                if node.kind == Kind::File && !is_full && parts.len() > RUNS_MAX =>
            {
                ListedPlacing {
                    placing: Cow::Owned(Placing::Parts {
                        parts: parts[..RUNS_MAX].to_vec(),
                    }),
                    runs_left_out: parts.len() - RUNS_MAX,
                }
            }
            placing => ListedPlacing {
                placing: Cow::Borrowed(placing),
                runs_left_out: 0,
            },
        }
    }
}
