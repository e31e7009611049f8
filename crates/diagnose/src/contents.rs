//! File systems on a device and its partitions as a stack knows them: their first bytes, and the length of their blocks.
//!
//! I/O that are off a grid while all these begin on it are not the fault of a layout: either the blocks of the file system are
//! shorter than the grid, or the application chooses the offsets in its files.

use plumb_geometry::{Bytes, Grid};
use plumb_model::facts::FileSystemBlock;
use plumb_stack::node::Placing;
use plumb_stack::{CellKind, Kind, NodeId, Stack};

/// A file system on a device, at the end of a chain of layers that each begin at one place of the layer below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedFileSystem {
    /// The file system and its block.
    pub block: FileSystemBlock,
    /// Its first bytes on the device, one for each of its runs.
    starts: Vec<Bytes>,
}

impl PlacedFileSystem {
    /// Whether all of it is at multiples of the grid.
    #[must_use]
    pub fn is_on(&self, grid: &Grid, device_starts_at: u64) -> bool {
        let mut starts = self.starts.iter();
        starts.all(|start| grid.past_boundary(Bytes(start.0 + device_starts_at)) == Bytes(0))
    }
}

/// The file systems on a device. `None` when something on it places its bytes in another way than in runs, when the block of a
/// file system is not known, or when nothing is known to be on it.
pub(crate) fn file_systems(stack: &Stack, device: NodeId) -> Option<Vec<PlacedFileSystem>> {
    let mut found = Vec::new();
    add(stack, device, &[Bytes(0)], &mut found)?;
    (!found.is_empty()).then_some(found)
}

fn add(
    stack: &Stack,
    below: NodeId,
    starts: &[Bytes],
    found: &mut Vec<PlacedFileSystem>,
) -> Option<()> {
    for &id in stack.above(below) {
        let node = stack.node(id);
        let Placing::Parts { parts } = &node.placing else {
            return None;
        };
        let starts: Vec<Bytes> = parts
            .iter()
            .filter(|part| part.node == below)
            .flat_map(|part| starts.iter().map(|start| Bytes(start.0 + part.start.0)))
            .collect();
        if node.kind != Kind::FileSystem {
            // A partition or a volume without known layers above may contain anything.
            (!stack.above(id).is_empty()).then_some(())?;
            add(stack, id, &starts, found)?;
            continue;
        }
        let mut grids = node.grids.iter();
        let block =
            grids.find(|fact| fact.what == CellKind::FileSystemBlock && fact.is_believed())?;
        (block.grid.offset() == Bytes(0)).then_some(())?;
        found.push(PlacedFileSystem {
            block: FileSystemBlock {
                name: node.name.clone(),
                block_bytes: block.granularity(),
            },
            starts,
        });
    }
    Some(())
}
