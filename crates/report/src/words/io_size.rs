//! Sizes of I/O in words.

use plumb_model::{IoSize, IoSizeBasis};

use super::phrase::part_of;

/// The advice about a size that is only assumed; `None` if it is known.
pub(super) fn assumed(io: &IoSize) -> Option<String> {
    io.is_assumed().then(|| {
        format!(
            "I/O of {} are assumed: pass `--page` or a profile to judge by the true size.",
            io.bytes
        )
    })
}

/// How a size is known; `None` if it is only assumed.
pub(super) fn basis(basis: &IoSizeBasis) -> Option<String> {
    Some(match basis {
        IoSizeBasis::Seen { on, ios, of } => format!(
            "The size is that of the commonest I/O seen on {on}: {}.",
            part_of(*ios, *of)
        ),
        IoSizeBasis::Given => "The size is the page that you gave.".to_owned(),
        IoSizeBasis::Stated { on, what, source } => {
            format!(
                "The size is that of the {} of {on} ({source}).",
                what.text()
            )
        }
        IoSizeBasis::Assumed => return None,
    })
}
