//! `indirection-unit` in words.

use plumb_model::Target;
use plumb_model::facts::{IndirectionUnit, SmallestWrite};

use super::phrase::unit;
use super::{Sentences, io_size, target};

/// The sentences of its finding.
pub(super) fn words(on: &Target, facts: &IndirectionUnit) -> Sentences {
    let (what, basis) = match &facts.written_by {
        SmallestWrite::Io { basis } => ("I/O", io_size::basis(basis)),
        SmallestWrite::PoolBlocks => ("Pool blocks (2^ashift)", None),
        SmallestWrite::FileSystemBlocks => ("File-system blocks", None),
    };
    let summary = format!(
        "{what} of {} on {} are smaller than {}.",
        facts.written_bytes,
        target::name(on),
        unit(&facts.grid)
    );
    Sentences::new(summary)
        .and(basis)
        .say("For a random write of less than a unit the drive reads the unit, changes it and writes it elsewhere.")
        .and(format!(
            "This is an upper bound: sequential writes fill units. If you can choose, use blocks, records or an ashift that \
             make writes of {} or more.",
            facts.grid.granularity_bytes
        ))
}
