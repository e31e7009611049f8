//! `geometry-mismatch` in words.

use plumb_geometry::Bytes;
use plumb_model::Target;
use plumb_model::facts::{GeometryMismatch, StripeBelow};

use super::{Sentences, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &GeometryMismatch) -> Sentences {
    let name = target::name(on);
    let (told, sentences) = (facts.told_unit_bytes, |summary| {
        Sentences::new(summary).say(
            "Stripe unit and width are hints that can be changed without moving data: change them in the superblock, or mount \
             with them.",
        )
    });
    let Some(stripe) = &facts.stripe else {
        return sentences(format!(
            "The superblock of {name} states a stripe unit of {told}, and there is no stripe below."
        ))
        .say(
            "The allocator rounds for nothing. Probably a hint of the drive was taken for a stripe when the file system was \
             created.",
        );
    };
    sentences(summary(&name, facts, stripe)).and(format!(
        "The file system spreads its allocation by the stripe in its superblock: a wrong one puts metadata on few members and \
         splits files. The true one is {} × {} = {}; optimal_io_size of a stacked device is no stripe width.",
        stripe.chunk_bytes,
        stripe.data_chunks,
        width(stripe)
    ))
}

fn summary(name: &str, facts: &GeometryMismatch, stripe: &StripeBelow) -> String {
    let (told, chunk, striped) = (facts.told_unit_bytes, stripe.chunk_bytes, &stripe.on);
    if told == Bytes(0) {
        format!("The superblock of {name} states no stripe, and {striped} has chunks of {chunk}.")
    } else if told != chunk {
        format!(
            "The superblock of {name} states a stripe unit of {told}, and {striped} has chunks of {chunk}."
        )
    } else {
        format!(
            "The superblock of {name} states a stripe width of {}, and that of {striped} is {}.",
            facts.told_width_bytes.unwrap_or_default(),
            width(stripe)
        )
    }
}

fn width(stripe: &StripeBelow) -> String {
    stripe.width_bytes.map_or_else(
        || "more than fits 64 bits".to_owned(),
        |width| width.to_string(),
    )
}
