//! The stack as a tree from the disks up, as `lsblk` draws it: each layer, its start on the layer below, and its alignment end
//! to end. A layer over several devices is drawn once and referred to from the others; devices that are alike are
//! drawn once and counted.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use plumb_geometry::{Bytes, SECTOR, SmallSort, natural};
use plumb_stack::node::keys;
use plumb_stack::{CellKind, Chunks, GridFact, Member, Node, NodeId, Overall, Placing, Verdict};

use super::Check;
use super::standing::{gathered, is_same, listed, name, place, verdict};
use crate::format::{bytes, count};
use crate::text::page::{Page, Painted};

/// Layers that are drawn one above the other: more would not fit into 80 columns.
const DEPTH_MAX: usize = 14;
/// Of neighbours that are alike all are drawn up to this number, and only the first beyond it.
const ALIKE_MAX: usize = 3;
/// Different verdicts of one layer that are printed.
const VERDICTS_MAX: usize = 3;

/// A node in its place in the tree.
struct Drawn {
    id: NodeId,
    below: Option<NodeId>,
    is_repeat: bool,
    above: Vec<Drawn>,
    /// Layers above that did not fit.
    cut: usize,
    /// Equal for trees that differ in names and starts alone.
    alike: u64,
}

/// Heading and tree.
pub fn lines(page: &mut Page, check: &Check<'_>) {
    let roots: Vec<NodeId> = check
        .stack
        .roots()
        .into_iter()
        .filter(|id| check.wants(*id))
        .collect();
    if roots.is_empty() {
        return;
    }
    page.heading("Stack, from the devices up");
    let mut seen = HashSet::new();
    let roots: Vec<Drawn> = roots
        .into_iter()
        .map(|id| drawn(check, id, None, &mut seen, 0))
        .collect();
    for (tree, others) in summed_up(&roots) {
        draw(page, check, tree, "", "");
        if !others.is_empty() {
            more(page, check, &others, "", "");
        }
    }
}

fn drawn(
    check: &Check<'_>,
    id: NodeId,
    below: Option<NodeId>,
    seen: &mut HashSet<NodeId>,
    depth: usize,
) -> Drawn {
    let is_repeat = !seen.insert(id);
    let mut above: Vec<NodeId> = check
        .stack
        .above(id)
        .iter()
        .copied()
        .filter(|id| check.wants(*id))
        .collect();
    above.small_sort_by(|a, b| {
        let start = |one: &NodeId| start_on(check.stack.node(*one), id).map(|(start, _)| start);
        let names = (&check.stack.node(*a).name, &check.stack.node(*b).name);
        start(a)
            .cmp(&start(b))
            .then_with(|| natural(names.0, names.1))
    });
    let is_cut = depth + 1 >= DEPTH_MAX;
    let cut = if is_cut && !is_repeat { above.len() } else { 0 };
    if is_repeat || is_cut {
        above.clear();
    }
    let above: Vec<Drawn> = above
        .into_iter()
        .map(|upper| drawn(check, upper, Some(id), seen, depth + 1))
        .collect();
    let alike = likeness(check, id, is_repeat, &above);
    Drawn {
        id,
        below,
        is_repeat,
        above,
        cut,
        alike,
    }
}

/// A number for everything of a node that makes it worth a look of its own.
fn likeness(check: &Check<'_>, id: NodeId, is_repeat: bool, above: &[Drawn]) -> u64 {
    let node = check.stack.node(id);
    let mut hasher = DefaultHasher::new();
    (
        node.kind,
        node.size,
        is_repeat,
        node.word(keys::MODEL),
        node.value(keys::CONTENT),
    )
        .hash(&mut hasher);
    for fact in check.stack.grids(id) {
        (fact.what, fact.grid, fact.is_believed()).hash(&mut hasher);
    }
    if let Some(stand) = check.survey.stand(id) {
        for (on, nodes) in gathered(stand) {
            let verdict = std::mem::discriminant(&on.verdict);
            (
                verdict,
                by(&on.verdict),
                on.fact.what,
                on.fact.grid,
                nodes.len(),
            )
                .hash(&mut hasher);
        }
        stand.lost.len().hash(&mut hasher);
    }
    above
        .iter()
        .map(|one| one.alike)
        .collect::<Vec<_>>()
        .hash(&mut hasher);
    hasher.finish()
}

/// The number in a verdict.
fn by(verdict: &Verdict) -> u64 {
    match verdict {
        Verdict::Misaligned { by } => by.0,
        Verdict::Varies { step } => step.0,
        _ => 0,
    }
}

/// Neighbours to draw, and those that are like each of them.
fn summed_up(trees: &[Drawn]) -> Vec<(&Drawn, Vec<&Drawn>)> {
    let mut groups: HashMap<u64, usize> = HashMap::new();
    for tree in trees {
        *groups.entry(tree.alike).or_default() += 1;
    }
    let mut shown: Vec<(&Drawn, Vec<&Drawn>)> = Vec::new();
    let mut first: HashMap<u64, usize> = HashMap::new();
    for tree in trees {
        match first.get(&tree.alike) {
            Some(at) if groups[&tree.alike] > ALIKE_MAX => shown[*at].1.push(tree),
            _ => {
                first.insert(tree.alike, shown.len());
                shown.push((tree, Vec::new()));
            }
        }
    }
    shown
}

/// Draws a node behind `first`, and the layers above it behind `rest`.
fn draw(page: &mut Page, check: &Check<'_>, tree: &Drawn, first: &str, rest: &str) {
    let has_above = !tree.above.is_empty() || tree.cut > 0;
    let beside = format!("{rest}{}", if has_above { "│  " } else { "   " });
    let as_below = stands_as_below(check, tree);
    let mut words = Painted::from(node_words(check, tree));
    if let Some(overall) = as_below {
        words = words + ", " + overall_word(page, overall) + " as below";
    }
    page.wrapped(first, format!("{beside}    "), words);
    if !tree.is_repeat {
        for words in notes(page, check, tree.id, as_below.is_some()) {
            page.wrapped(format!("{beside}  "), format!("{beside}    "), words);
        }
    }
    let groups = summed_up(&tree.above);
    for (at, (one, others)) in groups.iter().enumerate() {
        let is_last = at + 1 == groups.len() && tree.cut == 0;
        let (corner, side) = branch(is_last && others.is_empty());
        draw(
            page,
            check,
            one,
            &format!("{rest}{corner}"),
            &format!("{rest}{side}"),
        );
        if !others.is_empty() {
            let (corner, side) = branch(is_last);
            more(
                page,
                check,
                others,
                &format!("{rest}{corner}"),
                &format!("{rest}{side}"),
            );
        }
    }
    if tree.cut > 0 {
        let words = format!("{} more above; --json has all", count(tree.cut as u64));
        page.wrapped(format!("{rest}└─ "), format!("{rest}   "), &words);
    }
}

/// The verdict of a layer that has the same alignment as the layer under which it is drawn.
fn stands_as_below(check: &Check<'_>, tree: &Drawn) -> Option<Overall> {
    let (mine, below) = (
        check.survey.stand(tree.id)?,
        check.survey.stand(tree.below?)?,
    );
    (!tree.is_repeat && is_same(mine, below)).then_some(mine.overall)
}

fn overall_word(page: &Page, overall: Overall) -> Painted {
    match overall {
        Overall::Misaligned => page.painted("31", "misaligned"),
        Overall::Unknown => page.painted("36", "unknown"),
        Overall::Aligned => page.painted("32", "aligned"),
    }
}

fn branch(is_last: bool) -> (&'static str, &'static str) {
    if is_last {
        ("└─ ", "   ")
    } else {
        ("├─ ", "│  ")
    }
}

fn more(page: &mut Page, check: &Check<'_>, others: &[&Drawn], first: &str, rest: &str) {
    let names = others
        .iter()
        .map(|one| check.stack.node(one.id).name.as_str())
        .collect();
    let words = format!(
        "{} more like it: {}",
        count(others.len() as u64),
        listed(names)
    );
    page.wrapped(first, format!("{rest}  "), &words);
}

/// Name, kind, size and start on the layer below.
fn node_words(check: &Check<'_>, tree: &Drawn) -> String {
    let node = check.stack.node(tree.id);
    let mut words = vec![format!("{}: {}", name(&node.name), node.kind.text())];
    if let Some(level) = node.word(keys::LEVEL) {
        words[0].push_str(&format!(" ({level})"));
    }
    words.extend(node.size.map(|size| bytes(size.0)));
    if let Placing::Chunks(chunks) = &node.placing {
        words.push(chunks_words(chunks));
    }
    words.extend(tree.below.and_then(|below| start_on(node, below)).map(
        |(start, runs)| match runs {
            1 => format!("at {}", place(start)),
            runs => format!(
                "in {} runs, the first at {}",
                count(runs as u64),
                place(start)
            ),
        },
    ));
    if tree.is_repeat {
        words.push("drawn above".to_owned());
    }
    words.extend(node.word(keys::MODEL).map(str::to_owned));
    words.extend(origin(node));
    words.join(", ")
}

/// The origin of a disk, or the target that shows an export, and its type.
fn origin(node: &Node) -> Option<String> {
    let transport = node.word(keys::TRANSPORT).map(str::to_owned)?;
    let unit = node
        .number(keys::UNIT_NUMBER)
        .map(|unit| format!("unit {unit} "))
        .unwrap_or_default();
    let target = node
        .word(keys::TARGET)
        .map(|target| format!("{unit}of {target} "));
    Some(format!("{}over {transport}", target.unwrap_or_default()))
}

fn chunks_words(chunks: &Chunks) -> String {
    let over = chunks.members.len();
    let parity = if chunks.parity > 0 {
        format!(", {} of them parity", chunks.parity)
    } else {
        String::new()
    };
    format!("chunks of {} over {over}{parity}", bytes(chunks.chunk.0))
}

/// The start of a node's first run on a device below, and the number of its runs there.
fn start_on(node: &Node, below: NodeId) -> Option<(Bytes, usize)> {
    let of_members = |members: &[Member]| {
        let mut mine = members.iter().filter(|member| member.node == below);
        mine.next().map(|member| (member.start, 1 + mine.count()))
    };
    match &node.placing {
        Placing::Parts { parts } => {
            let mut mine = parts.iter().filter(|part| part.node == below);
            mine.next().map(|part| (part.start, 1 + mine.count()))
        }
        Placing::Chunks(chunks) => of_members(&chunks.members),
        Placing::Copies { members } => of_members(members),
        Placing::Blocks { member, .. } => Some((member.start, 1)),
        Placing::Leaf | Placing::Unknown { .. } => None,
    }
}

/// Whether a grid is worth a word in the tree: it decides, or I/O are cut at it, and it is more than a sector.
fn is_shown(fact: &GridFact) -> bool {
    let is_cut = matches!(
        fact.what,
        CellKind::IoBoundary | CellKind::ParityStripe | CellKind::Record | CellKind::VolumeExtent
    );
    (fact.what.decides() || is_cut) && fact.granularity().0 > SECTOR
}

/// The notes of a node below its own line: the grids of a device, the verdicts of a layer.
fn notes(page: &Page, check: &Check<'_>, id: NodeId, is_as_below: bool) -> Vec<Painted> {
    let stack = check.stack;
    let mut notes = Vec::new();
    let own = stack.grids(id);
    let shown = own
        .iter()
        .filter(|fact| fact.is_believed() && is_shown(fact));
    let mut grids: Vec<String> = shown
        .map(|fact| {
            let offset = match fact.grid.offset() {
                Bytes(0) => String::new(),
                offset => format!(" at offset {}", place(offset)),
            };
            format!(
                "{} {}{offset} ({})",
                fact.granularity(),
                fact.what.text(),
                fact.source.word()
            )
        })
        .collect();
    if stack.is_leaf(id) {
        let assumed = stack
            .deciding_grids(id)
            .into_iter()
            .find(|fact| fact.what == CellKind::Assumed);
        grids.extend(
            assumed
                .map(|fact| format!("{} assumed, since none larger is known", fact.granularity())),
        );
    }
    if !grids.is_empty() {
        notes.push(format!("grid: {}", grids.join(", ")).into());
    }
    notes.extend(
        stack
            .node(id)
            .opaque
            .as_ref()
            .map(|why| Painted::from(crate::words::obstacle(why))),
    );
    let stand = check.survey.stand(id).filter(|_| !is_as_below);
    let Some(stand) = stand else { return notes };
    let verdicts = gathered(stand);
    // An unknown layer above cannot be said to compensate.
    let is_right = |above: &NodeId| {
        check
            .survey
            .stand(*above)
            .is_some_and(|it| it.overall == Overall::Aligned)
    };
    let mends = stack.above(id).iter().any(is_right);
    for (at, (on, nodes)) in verdicts.iter().take(VERDICTS_MAX).enumerate() {
        let mut words = verdict(page, stack, on, nodes);
        if at == 0 && mends && stand.overall == Overall::Misaligned {
            words = words + "; a layer above compensates for it";
        }
        notes.push(words);
    }
    if verdicts.len() > VERDICTS_MAX {
        let more = count((verdicts.len() - VERDICTS_MAX) as u64);
        notes.push(format!("and {more} more, see --json").into());
    }
    for lost in stand.lost.iter().take(VERDICTS_MAX) {
        let whose = &stack.node(lost.node).name;
        let below = if lost.node == id {
            String::new()
        } else {
            format!("below {}: ", name(whose))
        };
        let why = format!(": {below}{}", crate::words::obstacle(&lost.why));
        notes.push(page.painted("36", "unknown") + why.as_str());
    }
    notes
}
