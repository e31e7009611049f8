//! Labels changed on disks: what is to be written where, the old bytes saved before, the kernel told after.
//!
//! A [`Change`] is computed from the label as it was read and knows the old bytes of every place that it writes, so that
//! it can be shown before it is done, kept in a file ([`saved`]), and gone back. Nothing here asks whether the disk is in
//! use: that is for whoever opens it.
//!
//! - [`edit`]: a partition at another place; [`new`]: a label with one; [`mod@mend`]: a GPT with a broken or stranded copy
//! - [`hidden`]: the label of a partition on its way; [`derived`]: whether a journal has that one
//! - [`change`]: the writes with the flushes between; [`saved`]: their file
//! - [`kernel`]: which partitions the kernel has to hear of

pub mod change;
pub mod derived;
pub mod edit;
pub mod hidden;
pub mod kernel;
pub mod mend;
pub mod new;
pub mod saved;

pub use change::{Change, ChangeError, ChangeStep};
pub use derived::{NotDerived, must_be_derived};
pub use edit::EditError;
pub use hidden::{LabelMove, label_move};
pub use kernel::{KernelStep, kernel_steps};
pub use mend::{MendError, Mended, mend};
pub use new::{NewIds, NewKind, NewLabel};
pub use saved::{SavedLabel, SavedLabelError};
