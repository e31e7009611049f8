//! Whether anything is on a disk: remains of formats in it, at its beginning, in each partition, and at the start of
//! the new partition.

use std::io;

use plumb_geometry::{Bytes, Extent};
use plumb_label::Disk;
use plumb_relocate::signatures;
use plumb_stack::grid::Source;
use plumb_stack::node::keys;
use plumb_stack::ondisk::Scan;
use plumb_stack::{Builder, Kind, Stack};

/// The length of a place that is searched for data without a signature.
const FIRST_BYTES: u64 = 1 << 20;

/// Looks for file systems, members of volumes and the like, on the disk and in these places of it; also reports
/// unreadable places, because they are not empty. It reads every place of a probe: a wrong signature is a refusal too
/// many, and a missed one is somebody's data.
pub fn found(disk: &dyn Disk, name: &str, places: &[Extent], block: u32) -> Vec<String> {
    let mut found = superblocks(disk, name, places);
    for place in places {
        let range = place.start().0..place.end().0.min(disk.size_bytes());
        match signatures::find(disk, &range, block.into()) {
            Ok(signatures) => found.extend(signatures.into_iter().map(|signature| {
                format!(
                    "byte {} of {name} has a signature of {}",
                    range.start + signature.range.start,
                    signature.name
                )
            })),
            Err(error) => found.push(format!("{name} cannot be read: {error}")),
        }
    }
    found.dedup();
    found
}

/// Bytes other than zero at the start of these places, where raw data begin too; also unreadable places.
pub fn first_bytes(disk: &dyn Disk, name: &str, places: &[Extent]) -> Vec<String> {
    let found = places.iter().filter_map(|place| {
        let start = place.start().0;
        let mut bytes = vec![0; place.len().0.min(FIRST_BYTES) as usize];
        match disk.read_at(start, &mut bytes) {
            Ok(()) => {
                let at = bytes.iter().position(|byte| *byte != 0)?;
                Some(format!("byte {} of {name} is not zero", start + at as u64))
            }
            Err(error) => Some(format!("{name} cannot be read at byte {start}: {error}")),
        }
    });
    found.collect()
}

/// The formats of a disk or partition and of its content, in words: from its readers, or from signatures without a
/// reader.
pub fn of_whole(disk: &dyn Disk, name: &str, block: u32) -> Vec<String> {
    let stack = scanned(disk, name, &[]);
    let contents = stack
        .nodes()
        .filter_map(|(_, node)| node.value(keys::CONTENT));
    let mut found: Vec<String> = contents.map(ToString::to_string).collect();
    if found.is_empty() {
        let signatures = signatures::find(disk, &(0..disk.size_bytes()), block.into());
        let names = signatures.unwrap_or_default();
        found.extend(names.iter().map(|signature| signature.name.to_owned()));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// By their readers, which know the parts that belong together.
fn superblocks(disk: &dyn Disk, name: &str, places: &[Extent]) -> Vec<String> {
    let stack = scanned(disk, name, places);
    let holds = stack
        .nodes()
        .filter(|(_, node)| matches!(node.kind, Kind::Disk | Kind::Partition));
    let holds = holds.filter_map(|(_, node)| {
        node.value(keys::CONTENT)
            .map(|content| format!("{} holds {content}", node.name))
    });
    holds.chain(stack.notes().iter().cloned()).collect()
}

fn scanned(disk: &dyn Disk, name: &str, places: &[Extent]) -> Stack {
    let mut builder = Builder::default();
    let mut scan = Scan::default();
    let source = Source::User;
    let whole = builder.node(name);
    builder.kind(whole, Kind::Disk, &source);
    scan.probe(&mut builder, disk, whole);
    for place in places {
        let node = builder.node(&format!("byte {} of {name}", place.start().0));
        builder.kind(node, Kind::Partition, &source);
        builder.size(node, place.len(), &source);
        scan.probe_content(
            &mut builder,
            &DiskWindow {
                disk,
                place: *place,
            },
            node,
        );
    }
    scan.finish(&mut builder);
    builder.finish()
}

/// A part of a disk as a disk.
struct DiskWindow<'a> {
    disk: &'a dyn Disk,
    place: Extent,
}

impl Disk for DiskWindow<'_> {
    fn size_bytes(&self) -> u64 {
        let Bytes(start) = self.place.start();
        self.place
            .len()
            .0
            .min(self.disk.size_bytes().saturating_sub(start))
    }

    fn read_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset_bytes
            .checked_add(buffer.len() as u64)
            .filter(|end| *end <= self.size_bytes());
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.disk
            .read_at(self.place.start().0 + offset_bytes, buffer)
    }
}
