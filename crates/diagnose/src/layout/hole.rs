//! Data in a hole: later writes there get their position from the layers above the hole, so misaligned layers above it
//! have to be reported now.

use plumb_stack::{NodeId, Standing};

use super::context::{Context, Top};

/// The layers below a top layer that reach grids which the top layer itself does not, because it ends in a hole
/// between; each with the phase of the top layer's blocks there.
pub fn layers_above(context: &Context<'_>, top: &Top) -> Vec<(NodeId, Vec<Standing>)> {
    let mut layers: Vec<(NodeId, Vec<Standing>)> = Vec::new();
    for hole in context.stack.holes(&top.landings) {
        for layer in hole.via.iter().skip(1).copied() {
            let on_layer = top
                .landings
                .all
                .iter()
                .find(|landing| landing.via.ends_with(&[layer]));
            let Some(shift) = on_layer.filter(|at| at.period.is_none()).map(|at| at.shift) else {
                continue;
            };
            if layers.iter().any(|(known, _)| *known == layer) {
                continue;
            }
            let mut standings = context.stack.standings(layer);
            standings.retain(|standing| is_beyond(standing, hole.on) && !is_judged(top, standing));
            for standing in &mut standings {
                standing.landing.shift += shift;
                standing.verdict = context.stack.verdict(&standing.landing, &standing.fact);
                standing.landing.shift -= shift;
            }
            layers.push((layer, standings));
        }
    }
    layers
}

/// Whether it is of a layer below that one.
fn is_beyond(standing: &Standing, hole: NodeId) -> bool {
    standing.landing.on != hole && standing.landing.via.contains(&hole)
}

/// Whether other bytes of the top are on that grid.
fn is_judged(top: &Top, standing: &Standing) -> bool {
    top.standings
        .iter()
        .any(|known| known.landing.on == standing.landing.on && known.fact == standing.fact)
}
