//! The arithmetic under every answer Plumb gives: the start and length of an I/O, and the cells of
//! a grid that it touches.
//!
//! Everything here is integer arithmetic that is exact for every `u64`; a result that does not fit is `None` or an
//! error, never a wrapped or rounded figure. The crate does no I/O, reads no clock and has no thresholds: `diagnose`
//! defines *bad*.
//!
//! - [`units`]: bytes, sectors and nanoseconds as different types; [`parse`]: sizes as typed
//! - [`align`]: rounding up and down, and the next aligned start after an extent
//! - [`extent`], [`grid`], [`fit`]: an I/O, a lattice of boundaries, and one laid on the other
//! - [`bounds`], [`extremes`]: figures with only two known ends, and those of a partly known I/O
//! - [`mod@split_share`]: the share of random I/O across a boundary
//! - [`mod@natural`]: the order of names with numbers
//! - [`order`]: sorting lists of a command in little code
//! - [`parity_layout`]: the rotating layouts of parity arrays, by name

#![forbid(unsafe_code)]

pub mod align;
pub mod bounds;
pub mod extent;
pub mod extremes;
pub mod fit;
pub mod grid;
pub mod natural;
pub mod order;
pub mod parity_layout;
pub mod parse;
pub mod split_share;
pub mod units;

pub use align::{align_down, align_up, next_aligned_start};
pub use bounds::Bounds;
pub use extent::{Extent, ExtentError};
pub use extremes::{Extremes, Lengths};
pub use fit::{Fit, granularity_of_io};
pub use grid::{Grid, GridError, GridKind};
pub use natural::natural;
pub use order::SmallSort;
pub use parity_layout::ParityLayout;
pub use parse::{SizeError, parse_block_size, parse_grid, parse_range, parse_shift, parse_size};
pub use split_share::{Share, crossing_share, split_share, split_share_from};
pub use units::{Bytes, Nanos, SECTOR, Sectors, gcd, group_digits, lcm_checked, plural};
