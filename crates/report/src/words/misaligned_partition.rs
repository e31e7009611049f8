//! `misaligned-partition` in words.

use plumb_geometry::Bytes;
use plumb_model::Target;
use plumb_model::facts::{MisalignedPartition, WantedStart};
use plumb_stack::CellKind;

use super::phrase::{assumed, list, place, sector, unit};
use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &MisalignedPartition) -> Sentences {
    Sentences::new(summary(on, facts))
        .and(assumed(&facts.grid, facts.given_bytes))
        .and(start(facts))
        .and(movers(facts))
        .and(also_off(facts))
        .and(not_known(facts))
        .and(wanted(facts))
}

fn summary(on: &Target, facts: &MisalignedPartition) -> String {
    let name = target::name(on);
    let boundary = if facts.grid.what == CellKind::Assumed {
        format!(
            "an assumed {} boundary of {}",
            facts.grid.granularity_bytes, facts.grid.on
        )
    } else {
        format!("a boundary of {}", unit(&facts.grid))
    };
    match (facts.past_bytes, facts.varies_by_bytes) {
        (Some(past), _) => format!("{name} starts {} past {boundary}.", place(past)),
        (None, Some(step)) => format!(
            "Some chunks of {name} are off {}: chunks move the start by multiples of {}.",
            unit(&facts.grid),
            place(step)
        ),
        (None, None) => format!("{name} is off {}.", unit(&facts.grid)),
    }
}

fn start(facts: &MisalignedPartition) -> Option<String> {
    let start = facts.start_bytes?;
    let which = match facts.byte {
        Bytes(0) => "Its first byte".to_owned(),
        byte => format!("Its byte {byte}"),
    };
    Some(format!(
        "{which} is at {} of {}.",
        place(start),
        facts.grid.on
    ))
}

fn movers(facts: &MisalignedPartition) -> Option<String> {
    let movers: Vec<String> = facts
        .movers
        .iter()
        .map(|mover| {
            format!(
                "{} starts at {} of {}, {} past the unit",
                mover.device,
                place(mover.start_bytes),
                mover.on,
                mover.past_bytes
            )
        })
        .collect();
    (!movers.is_empty()).then(|| format!("On the way down {}.", list(&movers)))
}

fn also_off(facts: &MisalignedPartition) -> Option<String> {
    let others: Vec<String> = facts
        .also_off
        .iter()
        .map(|other| {
            let (size, what) = (other.granularity_bytes, other.what.text());
            format!("the {size} {what} of {}", other.on)
        })
        .collect();
    (!others.is_empty()).then(|| format!("It is off {} as well.", list(&others)))
}

fn not_known(facts: &MisalignedPartition) -> Option<String> {
    let not_known: Vec<String> = facts.not_known.iter().map(super::obstacle).collect();
    (!not_known.is_empty())
        .then(|| format!("Not all layers below are known: {}.", not_known.join("; ")))
}

fn wanted(facts: &MisalignedPartition) -> String {
    let down = |down: &Option<Bytes>| match down {
        Some(down) => format!(", or down by {}", place(*down)),
        None => String::new(),
    };
    match &facts.wanted {
        WantedStart::NoStart => "No other start helps: create the layers between again, with chunks and extents that are \
                                 multiples of the unit."
            .to_owned(),
        WantedStart::BelowFirst {
            differs_on,
            mover,
            up_bytes,
        } => format!(
            "The same bytes are elsewhere in a unit of {differs_on}, so no other start of its own helps: first move the \
             start of {mover} up by {}, and then check again.",
            place(*up_bytes)
        ),
        WantedStart::Cylinder { disk, next_bytes } => match next_bytes {
            Some(next) => format!(
                "Its start must be a cylinder that is on the unit: the next one is at {} of {disk}.",
                place(*next)
            ),
            None => "Its start must be a cylinder that is on the unit.".to_owned(),
        },
        WantedStart::Partition {
            up_bytes,
            down_bytes,
            next,
        } => {
            let to = next.as_ref().map_or_else(String::new, |next| {
                format!(", to {} of {}", sector(next.start_bytes), next.on)
            });
            format!("Move its start up by {}{to}{}.", place(*up_bytes), down(down_bytes))
        }
        WantedStart::SoftPartition {
            up_bytes,
            down_bytes,
        } => format!(
            "Create it again with an offset moved up by {}{}, and copy the data.",
            place(*up_bytes),
            down(down_bytes)
        ),
        WantedStart::Layer { up_bytes } => format!(
            "Move its start, or that of a layer between, up by {}: the layer that is easiest to move will do.",
            place(*up_bytes)
        ),
    }
}
