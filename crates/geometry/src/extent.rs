//! A run of bytes in one address space: its start and its length.
//!
//! Left out: the address space. The caller knows it, and output must name it.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::units::Bytes;

/// Bytes `start` up to but not including `end` of one device, file or layer.
///
/// The end is known to fit 64 bits. A length of 0 is allowed (a flush) and has no
/// [`Fit`](crate::Fit). Serialized as `start_bytes` and `len_bytes`, and checked when read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "RawExtent", try_from = "RawExtent")]
pub struct Extent {
    start: Bytes,
    len: Bytes,
}

/// Why an extent cannot exist.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExtentError {
    /// Start plus length exceeds 64 bits.
    #[error(
        "extent at byte {} with a length of {} bytes ends beyond 64 bits: expected a length of at most {}",
        start.0, len.0, u64::MAX - start.0
    )]
    EndOverflow {
        /// The start asked for.
        start: Bytes,
        /// The length asked for.
        len: Bytes,
    },
}

impl Extent {
    /// An extent of `len` bytes from byte `start` on.
    ///
    /// # Errors
    /// [`ExtentError::EndOverflow`] when the end exceeds 64 bits.
    pub const fn new(start: Bytes, len: Bytes) -> Result<Self, ExtentError> {
        if start.0.checked_add(len.0).is_none() {
            return Err(ExtentError::EndOverflow { start, len });
        }
        Ok(Self { start, len })
    }

    /// First byte.
    #[must_use]
    pub const fn start(self) -> Bytes {
        self.start
    }

    /// Number of bytes; 0 for an extent that covers nothing.
    #[must_use]
    pub const fn len(self) -> Bytes {
        self.len
    }

    /// First byte after the extent.
    #[must_use]
    pub const fn end(self) -> Bytes {
        // Cannot saturate: every way to build an extent proves that the sum fits.
        Bytes(self.start.0.saturating_add(self.len.0))
    }

    /// Whether the length is 0.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len.0 == 0
    }
}

impl fmt::Display for Extent {
    /// `bytes 17,408 to 25,600 (8 KiB)`; the second figure is the first byte after the extent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = |bytes: Bytes| crate::units::group_digits(bytes.0);
        write!(
            f,
            "bytes {} to {} ({})",
            group(self.start),
            group(self.end()),
            self.len
        )
    }
}

/// The serialized form, which carries its unit in the names of its fields.
#[derive(Serialize, Deserialize)]
struct RawExtent {
    start_bytes: Bytes,
    len_bytes: Bytes,
}

impl From<Extent> for RawExtent {
    fn from(extent: Extent) -> Self {
        Self {
            start_bytes: extent.start,
            len_bytes: extent.len,
        }
    }
}

impl TryFrom<RawExtent> for Extent {
    type Error = ExtentError;

    fn try_from(raw: RawExtent) -> Result<Self, ExtentError> {
        Self::new(raw.start_bytes, raw.len_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_must_fit() {
        let last = Extent::new(Bytes(u64::MAX), Bytes(0)).expect("ends at the last position");
        assert_eq!((last.end(), last.is_empty()), (Bytes(u64::MAX), true));
        let error = Extent::new(Bytes(u64::MAX - 3), Bytes(4)).expect_err("one byte too long");
        let (start, len) = (Bytes(u64::MAX - 3), Bytes(4));
        assert_eq!(error, ExtentError::EndOverflow { start, len });
        // The message names the longest length.
        assert!(error.to_string().ends_with(" 3"), "{error}");
    }

    #[test]
    fn display_gives_both_ends() {
        let extent = Extent::new(Bytes(17_408), Bytes(8_192)).expect("small");
        assert_eq!(extent.to_string(), "bytes 17,408 to 25,600 (8 KiB)");
    }
}
