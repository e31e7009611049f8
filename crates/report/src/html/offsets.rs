//! The offset of the I/O, by granularity, compared with random starts, and the verdict on it.

use plumb_diagnose::Analysis;
use plumb_diagnose::analysis::PlaceAnalysis;
use plumb_geometry::Bytes;
use plumb_profile::infer::{InferenceVerdict, Phase};

use super::markup::Markup;
use super::page::{NONE, share_of, table};
use crate::{format, words};

/// Draws the tables of all places.
pub fn draw(m: &mut Markup, analysis: &Analysis) {
    for place in &analysis.places {
        match &place.name {
            Some(name) if super::phases::is_whole(place, analysis) => {
                m.leaf(
                    "p",
                    &[("class", "dim")],
                    &format!("The offsets of {name} are those of the device."),
                );
            }
            _ if !place.inference.steps.is_empty() => one(m, place),
            _ => {}
        }
    }
}

fn one(m: &mut Markup, place: &PlaceAnalysis) {
    let inference = &place.inference;
    if let Some(largest) = inference.examined_bytes {
        m.leaf("p", &[("class", "dim")], &words::examined(largest));
    }
    let rows = inference.steps.iter().map(|step| {
        vec![
            step.granularity_bytes.to_string(),
            position(step.offset_bytes),
            share_of(step.heads, inference.heads),
            share_of(step.ios, inference.ios),
            share_of(step.chance_heads, inference.heads),
            step.second_offset_bytes
                .map_or_else(|| NONE.to_owned(), position),
            share_of(step.second_heads, inference.heads),
        ]
    });
    let columns = [
        "granularity",
        "best offset",
        "of random I/O",
        "of all I/O",
        "if spread evenly",
        "second best",
        "of random I/O",
    ];
    let name = place.name.as_ref().map_or_else(
        || "device".to_owned(),
        |name| format!("{name}, in the address space of the device"),
    );
    table(
        m,
        &format!("Offset of the I/O, {name}"),
        &columns,
        &rows.collect::<Vec<_>>(),
    );
    m.leaf("p", &[], &verdict(&inference.verdict));
}

fn verdict(verdict: &InferenceVerdict) -> String {
    match verdict {
        InferenceVerdict::One { phase } => format!("One grid: {}.", phase_text(phase)),
        InferenceVerdict::Two {
            phases: [first, second],
        } => {
            format!(
                "Two grids: {}; and {}.",
                phase_text(first),
                phase_text(second)
            )
        }
        InferenceVerdict::NoGrid => {
            "No one or two offsets hold most random I/O, on any grid.".to_owned()
        }
        InferenceVerdict::NotEnoughData { why } => format!("Not enough data: {why}."),
    }
}

fn phase_text(phase: &Phase) -> String {
    format!(
        "{} at {}",
        phase.granularity_bytes,
        position(phase.offset_bytes)
    )
}

/// `0`, or an offset in bytes and sectors.
fn position(offset: Bytes) -> String {
    match offset.to_sectors_exact() {
        _ if offset.0 == 0 => "offset 0".to_owned(),
        Some(sectors) => format!("{} ({sectors})", format::bytes(offset.0)),
        None => format!("{} B", format::count(offset.0)),
    }
}
