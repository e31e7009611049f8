//! The bounds of a store.

use crate::tier::Tier;

/// The bounds of one tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierSettings {
    /// Time for which records are kept, ns.
    pub keep_ns: i64,
    /// Cap on the rows of a stored table.
    pub rows_max: usize,
    /// Whether sums of squared latencies are stored. They take half of a table.
    pub keep_squares: bool,
    /// Windows of fewer I/O have no table.
    pub table_ios_min: u64,
}

/// The bounds of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Hard cap on the bytes of both files together with their logs.
    pub bytes_max: u64,
    /// The tiers, in the order of [`Tier::ALL`].
    pub tiers: [TierSettings; 3],
    /// Cap on the rows of a table in memory.
    pub open_rows_max: usize,
    /// Most bytes of closed windows that wait in memory while they cannot be written.
    pub waiting_bytes_max: usize,
    /// Name of SQLite's VFS; `None` is the system's own.
    pub vfs: Option<String>,
}

const DAY_NS: i64 = 86_400_000_000_000;

impl Default for Settings {
    fn default() -> Settings {
        // A year of 200 devices needs 1.8 GiB with these caps (docs/benchmarks.md).
        let tier = |days: i64, rows_max, keep_squares, table_ios_min| TierSettings {
            keep_ns: days * DAY_NS,
            rows_max,
            keep_squares,
            table_ios_min,
        };
        Settings {
            bytes_max: 2 << 30,
            tiers: [
                tier(2, 256, true, 64),
                tier(35, 512, false, 64),
                tier(730, 1024, false, 0),
            ],
            open_rows_max: 4096,
            waiting_bytes_max: 16 << 20,
            vfs: None,
        }
    }
}

/// Most bytes of the cap that are set apart for one file's write-ahead log.
const LOG_BYTES: u64 = 16 << 20;

impl Settings {
    /// The bounds of a tier.
    #[must_use]
    pub fn tier(&self, tier: Tier) -> &TierSettings {
        &self.tiers[tier as usize]
    }

    /// The share of the cap of one file, without its log. Pages that one file frees are of no use to the other, so each
    /// has a share of its own: a quarter for two days of 5 minutes.
    #[must_use]
    pub(crate) fn file_bytes_max(&self, is_recent: bool) -> u64 {
        self.share(is_recent) - self.log_bytes_max(is_recent)
    }

    /// The part of that share for the file's write-ahead log. SQLite empties the log at a quarter of it, so one
    /// transaction may be three times as large as the others together.
    #[must_use]
    pub(crate) fn log_bytes_max(&self, is_recent: bool) -> u64 {
        LOG_BYTES.min(self.share(is_recent) / 4)
    }

    fn share(&self, is_recent: bool) -> u64 {
        let quarter = self.bytes_max / 4;
        if is_recent { quarter } else { 3 * quarter }
    }
}
