//! The user's facts about the disks, for a stack.

use plumb_geometry::Bytes;
use plumb_stack::Builder;
use plumb_stack::catalogue::{self, Catalogue, FILE_BYTES_MAX};

use crate::cli::Beneath;
use crate::failure::Failure;
use crate::inputs;

impl Beneath {
    /// The known arrays: the user's before those that come with the program.
    ///
    /// # Errors
    /// When the user's cannot be read.
    pub fn catalogue(&self) -> Result<Catalogue, Failure> {
        let built_in = Catalogue::built_in();
        let Some(path) = &self.known else {
            return Ok(built_in);
        };
        let bytes = inputs::read(path, FILE_BYTES_MAX)?;
        let mine = Catalogue::parse(
            &path.display().to_string(),
            &String::from_utf8_lossy(&bytes),
        );
        Ok(built_in.behind(mine.map_err(|error| Failure::failed(&error))?))
    }

    /// Adds the user's facts about the disks.
    ///
    /// # Errors
    /// When a known array is named that is none.
    pub fn give(&self, known: &Catalogue, builder: &mut Builder) -> Result<(), Failure> {
        let picked = self
            .disk_type
            .as_deref()
            .map(|name| known.named(name))
            .transpose();
        let picked = picked.map_err(|error| Failure::usage(error.to_string()))?;
        known.apply(builder, picked);
        for grid in self.grid.iter().chain(&self.segment) {
            catalogue::give(builder, *grid);
        }
        Ok(())
    }

    /// Length of the segment.
    #[must_use]
    pub fn segment_bytes(&self) -> Option<Bytes> {
        self.segment.map(|segment| segment.granularity())
    }
}
