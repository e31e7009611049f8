//! The replacement of a signature during the move of its partition: text that names the journal.
//!
//! Text, so that no probe reads a magic number in it, and so that a person who looks at the disk is informed.

use crate::moving::JournalId;
use crate::moving::plan::Plan;

const MAGIC: &[u8] = b"PLUMB IS MOVING THIS\n";
/// One marker fills a sector; it is repeated over the whole signature.
const LEN: usize = 512;
const ID_AT: usize = MAGIC.len();
const SUM_AT: usize = ID_AT + 33;
const PATH_AT: usize = SUM_AT + 17;

/// The content of a marker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Marker {
    /// Name of the journal.
    pub journal: JournalId,
    /// Its path, when the move began; empty where it was too long to be noted.
    pub path: String,
}

impl Marker {
    fn for_plan(plan: &Plan) -> Self {
        let path = if plan.journal_path.len() < LEN - PATH_AT {
            plan.journal_path.clone()
        } else {
            String::new()
        };
        Self {
            journal: plan.journal,
            path,
        }
    }

    pub(crate) fn encode(&self) -> [u8; LEN] {
        let text = format!("{}\n{:016x}\n{}\n", self.journal, self.sum(), self.path);
        let mut bytes = [0; LEN];
        bytes[..ID_AT].copy_from_slice(MAGIC);
        bytes[ID_AT..ID_AT + text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    fn sum(&self) -> u64 {
        crate::journal::sum(&[&self.journal.0, self.path.as_bytes()])
    }

    /// The marker where a partition of type *moving* begins, on the disk at byte `start`.
    ///
    /// # Errors
    /// The error of the system if the disk cannot be read.
    pub fn at(disk: &dyn plumb_label::Disk, start: u64) -> std::io::Result<Option<Self>> {
        let mut sector = [0; LEN];
        disk.read_at(start, &mut sector)?;
        Ok(Self::decode(&sector))
    }

    /// The marker that a sector begins with.
    #[must_use]
    pub fn decode(sector: &[u8]) -> Option<Self> {
        let text = sector.get(..LEN)?.strip_prefix(MAGIC)?;
        let mut lines = text
            .split(|byte| *byte == b'\n')
            .map(|line| std::str::from_utf8(line).ok());
        let (id, sum, path) = (lines.next()??, lines.next()??, lines.next()??);
        let number = u128::from_str_radix(id, 16)
            .ok()
            .filter(|_| id.len() == 32)?;
        let marker = Self {
            journal: JournalId(number.to_be_bytes()),
            path: path.to_owned(),
        };
        (u64::from_str_radix(sum, 16) == Ok(marker.sum())).then_some(marker)
    }
}

/// Markers for `len` bytes, whole sectors.
pub(crate) fn fill(plan: &Plan, len: u64) -> Vec<u8> {
    let marker = Marker::for_plan(plan).encode();
    marker
        .iter()
        .copied()
        .cycle()
        .take(usize::try_from(len).unwrap_or(usize::MAX))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moving::plan::tests::plan;

    #[test]
    fn a_marker_names_its_journal() {
        let mut plan = plan(0, 8192, 512);
        plan.journal_path = "/var/lib/plumb/sda1.journal".to_owned();
        let bytes = fill(&plan, 1024);
        for sector in bytes.chunks(512) {
            let marker = Marker::decode(sector).expect("a marker");
            assert_eq!(
                (marker.journal, marker.path),
                (plan.journal, plan.journal_path.clone())
            );
        }
        let mut spoiled = bytes.clone();
        spoiled[ID_AT] ^= 1;
        assert_eq!(Marker::decode(&spoiled), None);
        assert_eq!(Marker::decode(&bytes[..511]), None);
        assert_eq!(Marker::decode(&[0; 512]), None);
    }

    #[test]
    fn a_path_that_is_too_long_is_left_out() {
        let mut plan = plan(0, 8192, 512);
        for (len, kept) in [
            (LEN - PATH_AT - 1, true),
            (LEN - PATH_AT, false),
            (4000, false),
        ] {
            plan.journal_path = "x".repeat(len);
            let marker = Marker::decode(&fill(&plan, 512)).expect("a marker");
            assert_eq!(!marker.path.is_empty(), kept, "{len}");
        }
    }
}
