//! The four rotating layouts of md's parity arrays, as md(4) names them.
//!
//! Left out: the layouts without rotation (RAID 4, parity first or last), those for exchange with
//! DDF controllers, and the `-6` forms that exist while RAID 5 becomes RAID 6.

use serde::{Deserialize, Serialize};

/// The position of parity in each stripe, and the start of a stripe's data.
///
/// *Left*: parity begins on the last disk and moves down; *right*: on the first, and moves up.
/// *Symmetric*: data begins after the parity and wraps around; *asymmetric*: data begins on the
/// first disk and skips the parity.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum ParityLayout {
    /// Parity moves down, data skips it.
    LeftAsymmetric,
    /// Parity moves up, data skips it.
    RightAsymmetric,
    /// Parity moves down, data follows it. The default of mdadm.
    #[default]
    LeftSymmetric,
    /// Parity moves up, data follows it.
    RightSymmetric,
}
