//! What the user asks of a profile: grids, and layouts to try.

use serde::Serialize;

use plumb_geometry::{Bytes, Grid, lcm_checked};
use plumb_profile::table::{MODULUS_BYTES, MODULUS_BYTES_MAX};

/// Where a grid is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GridSource {
    /// Nobody said anything: 4 KiB at offset 0.
    Assumed,
    /// The user gave it.
    User,
}

impl GridSource {
    /// The word used in output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            GridSource::Assumed => "assumed",
            GridSource::User => "given",
        }
    }
}

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Questions {
    /// Grids given by the user; without any, 4 KiB at offset 0 is assumed.
    pub grids: Vec<Grid>,
    /// Chunk of a stripe beneath or to be.
    pub chunk: Option<Grid>,
    /// Members of that stripe.
    pub members: Option<u32>,
    /// Record of a file system or database.
    pub record: Option<Grid>,
    /// All starts moved by so many bytes.
    pub shift_bytes: Option<i64>,
}

impl Questions {
    /// The grids to judge by, with where each is from.
    #[must_use]
    pub fn grids(&self) -> Vec<(Grid, GridSource)> {
        if self.grids.is_empty() {
            vec![(Grid::ASSUMED, GridSource::Assumed)]
        } else {
            self.grids.iter().map(|grid| (*grid, GridSource::User)).collect()
        }
    }

    /// The modulus that residue tables need to answer all of it: 1 MiB or a multiple. Questions that no table can
    /// answer are left out; they answer *unknown*.
    #[must_use]
    pub fn modulus_bytes(&self) -> u64 {
        let chunk = self.chunk.map(|chunk| chunk.granularity());
        let stripe =
            chunk.zip(self.members).and_then(|(chunk, members)| chunk.checked_mul(u64::from(members)));
        let wanted = self
            .grids
            .iter()
            .map(Grid::granularity)
            .chain(chunk)
            .chain(stripe)
            .chain(self.record.map(|record| record.granularity()));
        wanted.fold(MODULUS_BYTES, |modulus, Bytes(granularity)| {
            let both = lcm_checked(modulus, granularity).filter(|both| both.is_multiple_of(512));
            both.filter(|&both| both <= MODULUS_BYTES_MAX).unwrap_or(modulus)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modulus_serves_all_grids() {
        let mut questions = Questions::default();
        assert_eq!(questions.modulus_bytes(), 1 << 20);
        questions.chunk = Grid::boundary(Bytes(48 << 10)).ok();
        assert_eq!(questions.modulus_bytes(), 3 << 20);
        questions.members = Some(5);
        assert_eq!(questions.modulus_bytes(), 15 << 20);
        questions.record = Grid::unit(Bytes(7 << 20)).ok();
        assert_eq!(questions.modulus_bytes(), 15 << 20, "too large: that question stays unknown");
    }
}
