//! Label changes on disks: the writes and their positions, the old bytes saved before, the kernel updated after.
//!
//! A [`Change`] is computed from the label and knows the old bytes of every place that it writes, so that it can be
//! printed before it is done, kept in a file ([`saved`]), and undone. Nothing here checks whether the disk is in use:
//! callers that open it do.
//!
//! - [`edit`]: a partition at another place; [`new`]: a label with one; [`mod@mend`]: a GPT with a broken or stranded copy
//! - [`hidden`]: the label of a partition on its way; [`derived`]: whether a journal has that one
//! - [`change`]: the writes with the flushes between; [`saved`]: their file
//! - [`kernel`]: changes of the kernel's partitions

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
