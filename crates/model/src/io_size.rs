//! The size of the usual I/O of a volume, as well as anything states it.

use plumb_geometry::Bytes;
use plumb_stack::{CellKind, Source};
use serde::{Deserialize, Serialize};

use crate::finding::Confidence;

/// The size of the usual I/O, which start at multiples of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoSize {
    /// The size.
    pub bytes: Bytes,
    /// How it is known.
    pub basis: IoSizeBasis,
}

/// How a size is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum IoSizeBasis {
    /// The commonest of the I/O that were seen.
    Seen {
        /// The device.
        on: String,
        /// I/O of that size.
        ios: u64,
        /// All I/O.
        of: u64,
    },
    /// The user gave the page.
    Given,
    /// The layer states a page or record.
    Stated {
        /// The layer.
        on: String,
        /// The kind of the size.
        what: CellKind,
        /// Its source.
        source: Source,
    },
    /// Nothing states it.
    Assumed,
}

impl IoSize {
    /// Whether nothing states it.
    #[must_use]
    pub fn is_assumed(&self) -> bool {
        self.basis == IoSizeBasis::Assumed
    }

    /// How sure a conclusion from it is.
    #[must_use]
    pub const fn confidence(&self) -> Confidence {
        match self.basis {
            IoSizeBasis::Seen { .. } | IoSizeBasis::Given => Confidence::High,
            IoSizeBasis::Stated { .. } => Confidence::Medium,
            IoSizeBasis::Assumed => Confidence::Low,
        }
    }
}
