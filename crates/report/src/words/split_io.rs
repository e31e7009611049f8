//! `split-io` in words.

use plumb_geometry::Bytes;
use plumb_model::facts::{SplitInTrace, SplitIo};
use plumb_model::{CountedShare, Target};

use super::phrase::{counted, interval, place, share};
use super::{Sentences, io_size, target};
use crate::format::{count_within, percent_within};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &SplitIo) -> Sentences {
    let mut sentences = Sentences::new(summary(on, facts));
    if let Some(counted) = &facts.counted {
        sentences.explanation.extend(interval(counted));
    }
    if let (Some(counted), Some(trace)) = (&facts.counted, &facts.trace) {
        sentences.explanation.extend(in_trace(counted, trace));
    }
    if let Some(io) = &facts.io {
        sentences = sentences
            .and(io_size::assumed(io))
            .and(io_size::basis(&io.basis));
    }
    sentences.and(place_on_chunks(facts))
}

fn summary(on: &Target, facts: &SplitIo) -> String {
    let (name, chunk) = (target::name(on), facts.chunk_bytes);
    let of = facts
        .on
        .as_ref()
        .map_or_else(String::new, |striped| format!(" of {striped}"));
    match (&facts.counted, facts.expected, &facts.io) {
        (Some(share), ..) => {
            let at = facts.counted_on.as_ref().unwrap_or(&name);
            format!(
                "{} I/O on {at} touch more {chunk} chunks{of} than their length needs.",
                counted(share)
            )
        }
        (None, Some(expected), Some(io)) => format!(
            "{} I/O of {} on {name} must cross a boundary of {chunk} chunks{of} (expected from the layout).",
            share(expected),
            io.bytes
        ),
        _ => format!("I/O on {name} cross boundaries of {chunk} chunks{of}."),
    }
}

fn in_trace(counted: &CountedShare, trace: &SplitInTrace) -> Vec<String> {
    let mut sentences = vec![format!(
        "Random starts would split {} of them.",
        percent_within(trace.random_share)
    )];
    sentences.extend(trace.commonest.map(|commonest| {
        format!(
            "The commonest length, {}, at a random sector is split in {} of the cases with this chunk.",
            commonest.len_bytes, commonest.split
        )
    }));
    if counted.value() > 1.5 * trace.random_share.high {
        sentences.push(
            "That is more than chance: the I/O are off the chunks, so look at their offset."
                .to_owned(),
        );
    }
    if trace.longer.low > 0 {
        sentences.push(format!(
            "{} more touch several chunks because they are longer than one: the size of the chunk is the cause, not their place.",
            count_within(trace.longer)
        ));
    }
    sentences
}

fn place_on_chunks(facts: &SplitIo) -> Option<String> {
    let past = facts.past_bytes?;
    let on = facts.on.as_deref().unwrap_or("the stripe");
    Some(match past {
        Bytes(0) => format!(
            "It starts on a chunk of {on}: a chunk that is a multiple of the I/O size, or a larger one, lowers the share."
        ),
        past => format!(
            "It starts {} past a chunk boundary of {on}. If it starts on one, I/O at multiples of their size that fit a chunk \
             are never split.",
            place(past)
        ),
    })
}
