//! Whether a move on a disk has not ended: then its label is the move's, and no other change may touch it.

use plumb_geometry::Extent;
use plumb_label::{Disk, Label, PartId, Partition};

use crate::Marker;
use crate::signatures::markers;

/// The evidence on a disk for an unfinished move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The entry of type *moving*, with its first byte.
    pub entry: Option<(PartId, u64)>,
    /// A mark in a partition, with its byte.
    pub mark: Option<(u64, Marker)>,
}

/// The entry of type *moving*.
#[must_use]
pub fn moving_part(label: &Label) -> Option<&Partition> {
    label.partitions.iter().find(|part| part.kind.is_moving())
}

impl Unfinished {
    /// Looks at the label, and for marks where a move writes them. `block` is the disk's logical block.
    #[must_use]
    pub fn on(
        disk: &dyn Disk,
        label: &Label,
        block: u32,
        ignores_marks: bool,
    ) -> Option<Unfinished> {
        let entry = moving_part(label).map(|part| (part.id, part.extent.start().0));
        let places = label.partitions.iter().map(|part| part.extent);
        let mark = mark_in(disk, block, places).filter(|_| !ignores_marks);
        (entry.is_some() || mark.is_some()).then_some(Unfinished { entry, mark })
    }
}

/// The first mark where a move writes one in any of these places.
#[must_use]
pub fn mark_in(
    disk: &dyn Disk,
    block: u32,
    places: impl IntoIterator<Item = Extent>,
) -> Option<(u64, Marker)> {
    places.into_iter().find_map(|place| {
        let place = place.start().0..place.end().0;
        markers(disk, &place, block).into_iter().next()
    })
}
