//! The grids that an NVMe namespace states.
//!
//! Fields by their names and bytes in the NVM Express base and NVM command set specifications. The preferred
//! granularity and alignment of writes count only if NSFEAT reports them. NOWS is kept and doubted: drives return a
//! value that suits their firmware, and it is not the mapping unit of flash.

use plumb_geometry::{Bytes, Grid, GridKind};

use super::Identified;
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::{CellKind, GridFact, Source};
use crate::node::keys;
use crate::node_facts::LbaFormat;
use crate::obstacle::GridDoubt;

/// NSFEAT, bit 4: NPWG, NPWA, NPDG, NPDA and NOWS are defined.
const OPTIMAL_PERFORMANCE: u8 = 1 << 4;
/// NSFEAT, bit 1: atomic write units of the namespace are defined.
const ATOMIC_OF_NAMESPACE: u8 = 1 << 1;

/// Byte offsets in Identify Namespace.
mod namespace {
    pub(super) const NSFEAT: usize = 24;
    pub(super) const NLBAF: usize = 25;
    pub(super) const FLBAS: usize = 26;
    pub(super) const NAWUPF: usize = 36;
    pub(super) const NOIOB: usize = 46;
    pub(super) const NPWG: usize = 64;
    pub(super) const NPWA: usize = 66;
    pub(super) const NPDG: usize = 68;
    pub(super) const NPDA: usize = 70;
    pub(super) const NOWS: usize = 72;
    pub(super) const LBAF: usize = 128;
}

/// Byte offset in Identify Controller.
const AWUPF: usize = 528;

/// One of the formats that a namespace may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FormatField {
    lba_bytes: u64,
    metadata_bytes: u16,
    /// 0 best, 3 degraded.
    performance: u8,
}

struct NamespaceFields<'a> {
    namespace: &'a [u8],
    lba_bytes: u64,
}

impl NamespaceFields<'_> {
    fn u16(&self, at: usize) -> u64 {
        u64::from(u16_at(self.namespace, at))
    }

    /// A number of blocks, counted from 0.
    fn blocks(&self, at: usize) -> u64 {
        (self.u16(at) + 1) * self.lba_bytes
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |field| u16::from_le_bytes(*field))
}

fn format(namespace: &[u8], index: usize) -> Option<FormatField> {
    let field: &[u8; 4] = namespace
        .get(namespace::LBAF + 4 * index..)?
        .first_chunk()?;
    // Blocks of 512 bytes to 64 KiB; 0 marks a format that is not there.
    (9..=16).contains(&field[2]).then(|| FormatField {
        lba_bytes: 1 << field[2],
        metadata_bytes: u16::from_le_bytes([field[0], field[1]]),
        performance: field[3] & 3,
    })
}

/// Tells a namespace's grids.
pub(crate) fn tell(builder: &mut Builder, node: NodeId, answer: &Identified) {
    let bytes = &answer.namespace[..];
    let flbas = bytes[namespace::FLBAS];
    let current = usize::from(flbas & 0xf) | usize::from(flbas >> 5 & 3) << 4;
    let Some(FormatField { lba_bytes, .. }) = format(bytes, current) else {
        return builder.note(format!(
            "{}: Identify Namespace names no format in use",
            builder.get(node).name
        ));
    };
    let fields = NamespaceFields {
        namespace: bytes,
        lba_bytes,
    };
    tell_formats(builder, node, bytes, current);
    let mut grid = |granularity: u64, kind, what, field: &str, doubt: Option<GridDoubt>| {
        let Ok(grid) = Grid::new(Bytes(granularity), Bytes(0), kind) else {
            return;
        };
        let source = Source::Drive {
            field: field.to_owned(),
        };
        builder.grid(
            node,
            match doubt {
                Some(why) => GridFact::doubted(grid, what, source, why),
                None => GridFact::believed(grid, what, source),
            },
        );
    };
    let features = bytes[namespace::NSFEAT];
    if features & OPTIMAL_PERFORMANCE != 0 {
        grid(
            fields.blocks(namespace::NPWG),
            GridKind::Unit,
            CellKind::IndirectionUnit,
            "NPWG",
            None,
        );
        grid(
            fields.blocks(namespace::NPWA),
            GridKind::Unit,
            CellKind::WriteAlignment,
            "NPWA",
            None,
        );
        grid(
            fields.blocks(namespace::NPDG),
            GridKind::Unit,
            CellKind::DiscardUnit,
            "NPDG",
            None,
        );
        grid(
            fields.blocks(namespace::NPDA),
            GridKind::Unit,
            CellKind::DiscardUnit,
            "NPDA",
            None,
        );
        if fields.u16(namespace::NOWS) > 0 {
            let why = Some(GridDoubt::PreferredSize);
            grid(
                fields.blocks(namespace::NOWS),
                GridKind::Unit,
                CellKind::IndirectionUnit,
                "NOWS",
                why,
            );
        }
    }
    let boundary = fields.u16(namespace::NOIOB) * lba_bytes;
    grid(
        boundary,
        GridKind::Boundary,
        CellKind::IoBoundary,
        "NOIOB",
        None,
    );
    if features & ATOMIC_OF_NAMESPACE != 0 {
        grid(
            fields.blocks(namespace::NAWUPF),
            GridKind::Unit,
            CellKind::AtomicWrite,
            "NAWUPF",
            None,
        );
    } else if let Some(controller) = &answer.controller {
        let unit = (u64::from(u16_at(&controller[..], AWUPF)) + 1) * lba_bytes;
        grid(unit, GridKind::Unit, CellKind::AtomicWrite, "AWUPF", None);
    }
}

/// Formats whose block is none are left out.
fn tell_formats(builder: &mut Builder, node: NodeId, bytes: &[u8], current: usize) {
    let count = usize::from(bytes[namespace::NLBAF]).min(63) + 1;
    let mut formats = Vec::new();
    for index in 0..count {
        let Some(FormatField {
            lba_bytes,
            metadata_bytes,
            performance,
        }) = format(bytes, index)
        else {
            continue;
        };
        formats.push(LbaFormat {
            block: Bytes(lba_bytes),
            metadata: Bytes(metadata_bytes.into()),
            performance,
            is_in_use: index == current,
        });
    }
    let source = Source::Drive {
        field: "LBAF".to_owned(),
    };
    builder.fact(node, keys::LBA_FORMATS, formats, &source);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Stack;

    fn stack_of(namespace: [u8; 4096], controller: [u8; 4096]) -> Stack {
        let mut builder = Builder::default();
        let node = builder.node("nvme0n1");
        tell(
            &mut builder,
            node,
            &Identified {
                namespace: Box::new(namespace),
                controller: Some(Box::new(controller)),
            },
        );
        builder.finish()
    }

    /// A namespace of 4 KiB blocks with NPWG 16 KiB, NPWA 8 KiB, NOWS 128 KiB; bytes set by hand after the
    /// specification's figures.
    fn namespace() -> [u8; 4096] {
        let mut bytes = [0; 4096];
        bytes[24] = 0x10; // NSFEAT: OPTPERF
        bytes[25] = 1; // NLBAF: two formats
        bytes[26] = 1; // FLBAS: the second
        bytes[46] = 32; // NOIOB
        bytes[64] = 3; // NPWG: 4 blocks
        bytes[66] = 1; // NPWA: 2 blocks
        bytes[68] = 255; // NPDG: 256 blocks
        bytes[70] = 255; // NPDA
        bytes[72] = 31; // NOWS: 32 blocks
        bytes[128 + 2] = 9; // LBAF 0: 512 bytes
        bytes[128 + 3] = 2;
        bytes[132] = 8; // LBAF 1: 4096 and 8 of metadata
        bytes[132 + 2] = 12;
        bytes
    }

    fn grids(stack: &Stack) -> Vec<(CellKind, u64, bool)> {
        let node = stack.node(stack.find("nvme0n1").expect("it"));
        node.grids
            .iter()
            .map(|fact| (fact.what, fact.granularity().0, fact.is_believed()))
            .collect()
    }

    #[test]
    fn preferences_are_counted_in_blocks_from_0() {
        let mut controller = [0; 4096];
        controller[528] = 7; // AWUPF: 8 blocks
        let stack = stack_of(namespace(), controller);
        assert_eq!(
            grids(&stack),
            [
                (CellKind::IndirectionUnit, 16 << 10, true),
                (CellKind::WriteAlignment, 8 << 10, true),
                (CellKind::DiscardUnit, 1 << 20, true),
                (CellKind::IndirectionUnit, 128 << 10, false),
                (CellKind::IoBoundary, 128 << 10, true),
                (CellKind::AtomicWrite, 32 << 10, true),
            ]
        );
        let node = stack.node(stack.find("nvme0n1").expect("it"));
        let format = |block, metadata, performance, is_in_use| LbaFormat {
            block: Bytes(block),
            metadata: Bytes(metadata),
            performance,
            is_in_use,
        };
        let formats = vec![format(512, 0, 2, false), format(4096, 8, 0, true)];
        assert_eq!(node.value(keys::LBA_FORMATS), Some(&formats));
    }

    #[test]
    fn fields_that_are_not_reported_do_not_count() {
        let mut bytes = namespace();
        bytes[24] = 0;
        bytes[46] = 0;
        assert_eq!(
            grids(&stack_of(bytes, [0; 4096])),
            [(CellKind::AtomicWrite, 4096, true)]
        );
        bytes[24] = 0x02;
        bytes[36] = 1; // NAWUPF: 2 blocks
        assert_eq!(
            grids(&stack_of(bytes, [0; 4096])),
            [(CellKind::AtomicWrite, 8192, true)]
        );
    }

    #[test]
    fn no_format_no_grids() {
        assert_eq!(grids(&stack_of([0; 4096], [0; 4096])), []);
        assert_eq!(grids(&stack_of([0xff; 4096], [0xff; 4096])), []);
    }
}
