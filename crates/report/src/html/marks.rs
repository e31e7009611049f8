//! Boundaries of grids in a picture of starts: of those that the I/O are judged by and of those found.

use plumb_diagnose::analysis::PlaceAnalysis;
use plumb_geometry::Bytes;
use plumb_profile::infer::{Inference, InferenceVerdict};

use crate::format;

/// (granularity, offset) of each phase found.
pub fn phases_of(inference: &Inference) -> impl Iterator<Item = (Bytes, Bytes)> + '_ {
    let phases = match &inference.verdict {
        InferenceVerdict::One { phase } => std::slice::from_ref(phase),
        InferenceVerdict::Two { phases } => phases,
        InferenceVerdict::NoGrid | InferenceVerdict::NotEnoughData { .. } => &[],
    };
    phases
        .iter()
        .map(|phase| (phase.granularity_bytes, phase.offset_bytes))
}

/// Boundaries of one grid, or of several that have the same, with their names.
pub struct Marks {
    /// The positions.
    pub offsets: Vec<Bytes>,
    sources: Vec<&'static str>,
}

impl Marks {
    /// `assumed and inferred grid: boundary at sector 7`.
    #[must_use]
    pub fn text(&self) -> String {
        let places: Vec<String> = self
            .offsets
            .iter()
            .map(|offset| position(*offset))
            .collect();
        let noun = if places.len() == 1 {
            "boundary"
        } else {
            "boundaries"
        };
        format!(
            "{} grid: {noun} at {}",
            self.sources.join(" and "),
            places.join(", ")
        )
    }
}

/// Boundaries of the grids that the I/O are judged by and of those found, as far as they are few within this
/// granularity.
#[must_use]
pub fn marks(place: &PlaceAnalysis, granularity: Bytes) -> Vec<Marks> {
    let judged = place
        .grids
        .iter()
        .map(|fit| (fit.grid.granularity(), fit.grid.offset(), fit.source.word()));
    let found = phases_of(&place.inference).map(|(of, offset)| (of, offset, "inferred"));
    let mut marks: Vec<Marks> = Vec::new();
    for (of, offset, source) in judged.chain(found) {
        let offsets = boundaries(of, offset, granularity);
        match marks.iter_mut().find(|kept| kept.offsets == offsets) {
            _ if offsets.is_empty() => {}
            Some(kept) if kept.sources.contains(&source) => {}
            Some(kept) => kept.sources.push(source),
            None => marks.push(Marks {
                offsets,
                sources: vec![source],
            }),
        }
    }
    marks
}

/// Boundaries of a grid within `whole`: its offset if the grid is as coarse or coarser, all of them if they are at
/// most four, none if they would be more or not the same in every `whole`.
fn boundaries(of: Bytes, offset: Bytes, whole: Bytes) -> Vec<Bytes> {
    if of.0 == 0 || whole.0 == 0 {
        return vec![];
    }
    if of.0.is_multiple_of(whole.0) {
        return vec![Bytes(offset.0 % whole.0)];
    }
    if !whole.0.is_multiple_of(of.0) || whole.0 / of.0 > 4 {
        return vec![];
    }
    (0..whole.0 / of.0)
        .map(|at| Bytes(at * of.0 + offset.0 % of.0))
        .collect()
}

/// `sector 7`, or bytes where it is no whole number of sectors.
fn position(offset: Bytes) -> String {
    match offset.to_sectors_exact() {
        Some(sectors) => format!("sector {}", format::count(sectors.0)),
        None => format!("byte {}", format::count(offset.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_marked_where_they_are_the_same_in_every_whole() {
        for (of, offset, whole, expected) in [
            (4096, 3584, 4096, vec![3584]),
            (65536, 17408, 4096, vec![1024]),
            (1024, 512, 4096, vec![512, 1536, 2560, 3584]),
            (512, 0, 4096, vec![]),
            (3072, 0, 4096, vec![]),
            (12288, 4608, 4096, vec![512]),
        ] {
            let found = boundaries(Bytes(of), Bytes(offset), Bytes(whole));
            assert_eq!(
                found.iter().map(|at| at.0).collect::<Vec<_>>(),
                expected,
                "{of}@{offset} in {whole}"
            );
        }
    }
}
