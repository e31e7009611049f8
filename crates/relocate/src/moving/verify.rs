//! Reading again what was written.

use super::ahead::{Reading, within};
use super::{Move, MoveError};
use crate::disk::{Disk, JournalStore};
use crate::journal::sum;

impl<D: Disk, J: JournalStore> Move<D, J> {
    /// Holds a window, and those that are read with it, against the sums of what was copied; how many these were.
    pub(super) fn verify(&mut self, index: u64) -> Result<u64, MoveError> {
        let windows = self.script.windows().read_with(index);
        let count = windows.len();
        let reading = Reading::to_verify(&windows);
        let found = self.data_of(&reading)?.bytes;
        let next = self.script.windows().read_with(index + count as u64);
        if !next.is_empty() {
            self.read_ahead(Reading::to_verify(&next));
        }
        let base = reading.base();
        let sums = usize::try_from(index)
            .ok()
            .and_then(|first| self.state.moved.get(first..first + count));
        let sums = sums.unwrap_or_default().to_vec();
        self.meanwhile(1, |_, _| {
            for (index, window) in windows.iter().enumerate() {
                let bytes = &found[within(base, &window.moved)];
                if sums.get(index) != Some(&sum(&[bytes])) {
                    return Err(MoveError::NotAsWritten {
                        at: window.moved.start,
                        len: bytes.len() as u64,
                    });
                }
            }
            Ok(())
        })?;
        self.spare = found;
        Ok(count as u64)
    }
}
