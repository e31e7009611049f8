//! Names, places and verdicts as the report of a check says them.

use plumb_geometry::{Bytes, SmallSort, natural};
use plumb_quoting::visible;
use plumb_stack::survey::On;
use plumb_stack::{CellKind, NodeId, Stack, Stand, Verdict};

use crate::text::page::{Page, Painted};

/// Names that a list gives before it counts the rest.
const NAMES_MAX: usize = 6;

/// Longest name that is printed whole.
const NAME_MAX: usize = 40;

/// A name, cut where it would fill a line.
pub fn name(name: &str) -> String {
    let name = visible(name);
    if name.chars().count() <= NAME_MAX {
        return name.into_owned();
    }
    name.chars().take(NAME_MAX - 1).chain(['…']).collect()
}

/// `sda2, sda10 and 3 more`, in the order of the names.
pub fn listed(mut names: Vec<&str>) -> String {
    names.small_sort_by(|one, other| natural(one, other));
    let shown: Vec<String> = names.iter().take(NAMES_MAX).map(|one| name(one)).collect();
    match names.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!(
            "{} and {} more",
            shown.join(", "),
            crate::format::count(more as u64)
        ),
    }
}

/// A place in bytes and sectors: `32,256 B (63 sectors)`.
pub fn place(bytes: Bytes) -> String {
    match bytes.to_sectors_exact() {
        _ if bytes.0 == 0 => "0".to_owned(),
        Some(sectors) => format!("{} B ({sectors})", crate::format::count(bytes.0)),
        None => format!("{} B", crate::format::count(bytes.0)),
    }
}

/// The verdicts of a node, the worst first, each once with all the layers on which it is so.
pub fn gathered(stand: &Stand) -> Vec<(&On, Vec<NodeId>)> {
    let mut gathered: Vec<(&On, Vec<NodeId>)> = Vec::new();
    for on in &stand.on {
        match gathered.iter_mut().find(|(first, _)| is_alike(first, on)) {
            Some((_, nodes)) => nodes.push(on.node),
            None => gathered.push((on, vec![on.node])),
        }
    }
    gathered.small_sort_by_key(|(on, _)| match on.verdict {
        Verdict::Misaligned { .. } => 0,
        Verdict::Varies { .. } => 1,
        Verdict::Unknown { .. } => 2,
        Verdict::Aligned => 3,
    });
    gathered
}

/// Whether two nodes have the same alignment, regardless of the layers below them.
pub fn is_same(one: &Stand, other: &Stand) -> bool {
    let (mine, its) = (gathered(one), gathered(other));
    let all = || {
        mine.iter()
            .zip(&its)
            .all(|((one, _), (other, _))| is_alike(one, other))
    };
    one.lost.is_empty() && other.lost.is_empty() && mine.len() == its.len() && all()
}

fn is_alike(one: &On, other: &On) -> bool {
    let same_verdict = match (&one.verdict, &other.verdict) {
        // The reasons differ in the name of the device alone.
        (Verdict::Unknown { .. }, Verdict::Unknown { .. })
            if one.fact.what == CellKind::Assumed =>
        {
            true
        }
        (one, other) => one == other,
    };
    same_verdict
        && (one.fact.what, one.fact.grid) == (other.fact.what, other.fact.grid)
        && one.fact.source.word() == other.fact.source.word()
}

/// A verdict in a sentence, its first word painted.
pub fn verdict(page: &Page, stack: &Stack, on: &On, nodes: &[NodeId]) -> Painted {
    let names = listed(
        nodes
            .iter()
            .map(|id| stack.node(*id).name.as_str())
            .collect(),
    );
    let grid = if on.fact.what == CellKind::Assumed {
        format!("{}, assumed for {names}", on.fact.granularity())
    } else {
        let offset = match on.fact.grid.offset() {
            Bytes(0) => String::new(),
            offset => format!(" at offset {}", place(offset)),
        };
        let (granularity, what) = (on.fact.granularity(), on.fact.what.text());
        format!(
            "the {granularity} {what}{offset} of {names} ({})",
            on.fact.source.word()
        )
    };
    match &on.verdict {
        Verdict::Aligned => page.painted("32", "aligned") + format!(" to {grid}").as_str(),
        Verdict::Misaligned { by } => {
            let words = format!(" by {} of {grid}", place(*by));
            page.painted("31", "misaligned") + words.as_str()
        }
        Verdict::Varies { step } => {
            let words = format!(
                " in part: chunks are no multiple of {grid}, so the place in it moves by {} from one to the next",
                place(*step)
            );
            page.painted("31", "misaligned") + words.as_str()
        }
        Verdict::Unknown { .. } if on.fact.what == CellKind::Assumed => {
            let granularity = on.fact.granularity();
            let words = format!(" beyond {granularity}: nothing more is known of {names}");
            page.painted("36", "unknown") + words.as_str()
        }
        Verdict::Unknown { why } => {
            page.painted("36", "unknown") + ": " + crate::words::obstacle(why).as_str()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places() {
        assert_eq!(listed(vec!["sda10", "sdb", "sda2"]), "sda2, sda10, sdb");
        assert_eq!(listed(vec!["a"; 8]), "a, a, a, a, a, a and 2 more");
        assert_eq!(name(&"x".repeat(41)).chars().count(), 40);
        assert_eq!(name("sd\x1b[2Ja"), "sd\\u{1b}[2Ja");
        assert_eq!(place(Bytes(32_256)), "32,256 B (63 sectors)");
        assert_eq!(place(Bytes(700)), "700 B");
        assert_eq!(place(Bytes(0)), "0");
    }
}
