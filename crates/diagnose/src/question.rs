//! The user's questions to a profile: grids, and layouts to try.

use std::collections::{BTreeMap, BTreeSet};

use plumb_geometry::{Bytes, Grid, SECTOR, lcm_checked};
use plumb_profile::Settings;
use plumb_profile::table::{MODULUS_BYTES, MODULUS_BYTES_MAX};
use plumb_profile::what_if::moved_back;
use plumb_quoting::Command;

pub use plumb_model::facts::GridSource;

use crate::contents::PlacedFileSystem;

/// The questions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Questions {
    /// Grids given by the user.
    pub grids: Vec<Grid>,
    /// Grids that the stack states of the device, judged by where the user gave none; without either 4 KiB at offset 0
    /// is assumed.
    pub stated: Vec<(Grid, GridSource)>,
    /// Partitions, or the device itself, whose own start was found to be off a grid: that is why I/O through them are.
    pub explained: BTreeSet<String>,
    /// File systems on the device and on its partitions, by the name of these, if the stack knows all of their content.
    pub file_systems: BTreeMap<String, Vec<PlacedFileSystem>>,
    /// Chunk of a stripe beneath or to be.
    pub chunk: Option<Grid>,
    /// Members of that stripe.
    pub members: Option<u32>,
    /// Record of a file system or database.
    pub record: Option<Grid>,
    /// All starts moved by this number of bytes.
    pub shift_bytes: Option<i64>,
    /// The command that asks all of this of the same I/O, so that one more question can be added to it. It has no shift.
    pub command: Option<Command>,
}

impl Questions {
    /// The grids to judge by, with where each is from.
    #[must_use]
    pub fn grids(&self) -> Vec<(Grid, GridSource)> {
        match (self.grids.is_empty(), self.stated.is_empty()) {
            (false, _) => self
                .grids
                .iter()
                .map(|grid| (*grid, GridSource::User))
                .collect(),
            (true, false) => self.stated.clone(),
            (true, true) => vec![(Grid::ASSUMED, GridSource::Assumed)],
        }
    }

    /// Settings of profiles that can answer all of it, exactly on the grids asked about.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let asked = self.grids();
        let grids = asked.iter().map(|(grid, _)| *grid);
        let moved = |by| asked.iter().map(move |(grid, _)| moved_back(grid, by));
        let moved = self.shift_bytes.into_iter().flat_map(moved);
        Settings {
            modulus_bytes: self.modulus_bytes(),
            grids: grids
                .clone()
                .chain(moved)
                .chain(self.chunk)
                .chain(self.record)
                .collect(),
            ..Settings::default()
        }
    }

    /// The modulus that residue tables need to answer all of it: a multiple of every grid asked about, and of as large a
    /// power of two as fits into 1 MiB, since a larger table has more rows than it may have and would lose lengths
    /// for starts that nobody asked about. Questions that no table can answer are left out; they answer *unknown*.
    #[must_use]
    pub fn modulus_bytes(&self) -> u64 {
        let chunk = self.chunk.map(|chunk| chunk.granularity());
        let stripe = chunk
            .zip(self.members)
            .and_then(|(chunk, members)| chunk.checked_mul(u64::from(members)));
        let grids = self.grids();
        let wanted = grids
            .iter()
            .map(|(grid, _)| grid.granularity())
            .chain(chunk)
            .chain(stripe)
            .chain(self.record.map(|record| record.granularity()));
        let asked = wanted.fold(SECTOR, |asked, Bytes(granularity)| {
            lcm_checked(asked, granularity)
                .filter(|&both| both <= MODULUS_BYTES_MAX)
                .unwrap_or(asked)
        });
        let most = asked.max(MODULUS_BYTES);
        let powers = std::iter::successors(Some(MODULUS_BYTES), |power| Some(power / 2))
            .take_while(|&p| p > SECTOR);
        let mut both = powers
            .filter_map(|power| lcm_checked(asked, power))
            .filter(|&both| both <= most);
        both.next().unwrap_or(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_modulus_serves_all_grids() {
        let mut questions = Questions::default();
        assert_eq!(questions.modulus_bytes(), 1 << 20);
        questions.chunk = Grid::boundary(Bytes(64 << 10)).ok();
        questions.members = Some(4);
        assert_eq!(questions.modulus_bytes(), 1 << 20);
        questions.members = Some(3);
        assert_eq!(
            questions.modulus_bytes(),
            768 << 10,
            "three chunks and 256 KiB"
        );
        questions.chunk = Grid::boundary(Bytes(48 << 10)).ok();
        questions.members = Some(5);
        assert_eq!(
            questions.modulus_bytes(),
            960 << 10,
            "five chunks and 64 KiB"
        );
        questions.record = Grid::unit(Bytes(7 << 20)).ok();
        assert_eq!(
            questions.modulus_bytes(),
            960 << 10,
            "too large together: that question stays unknown"
        );
        questions = Questions {
            record: questions.record,
            ..Questions::default()
        };
        assert_eq!(questions.modulus_bytes(), 7 << 20);
    }

    #[test]
    fn every_grid_asked_about_divides_the_modulus() {
        for sectors in 1..3000u64 {
            let questions = Questions {
                grids: Grid::unit(Bytes(sectors * 512)).into_iter().collect(),
                ..Questions::default()
            };
            let modulus = questions.modulus_bytes();
            assert!(modulus.is_multiple_of(sectors * 512), "{sectors}");
            assert!(
                modulus <= (1 << 20).max(sectors * 512) && modulus.is_multiple_of(512),
                "{sectors}: {modulus}"
            );
        }
    }
}
