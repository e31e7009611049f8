//! One entry of a GPT's array.

use crate::bytes::{field, put};
use crate::guid::Guid;

/// Bytes of an entry that the specification defines; larger entries are 128·2ⁿ and end in [`Entry::rest`].
pub const ENTRY_BYTES: u32 = 128;

/// An entry with all its bytes, in use or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Type of the partition; nil for an entry that is not in use.
    pub kind: Guid,
    /// The partition's own GUID.
    pub uuid: Guid,
    /// First logical block.
    pub first_lba: u64,
    /// Last logical block, itself part of the partition.
    pub last_lba: u64,
    /// Attributes: bits 0 to 2 of UEFI, 48 to 63 of the type.
    pub attributes: u64,
    /// Name in UTF-16, ended by a 0 when it is shorter.
    pub name: [u16; 36],
    /// Bytes of a larger entry beyond the first 128.
    pub rest: Vec<u8>,
}

impl Entry {
    /// An entry of `entry_bytes` bytes that is not in use.
    #[must_use]
    pub fn unused(entry_bytes: u32) -> Self {
        Self::decode(&vec![0; entry_bytes.max(ENTRY_BYTES) as usize])
    }

    /// Whether it names a partition.
    #[must_use]
    pub fn is_used(&self) -> bool {
        !self.kind.is_nil()
    }

    /// The name as text; invalid UTF-16 becomes U+FFFD.
    #[must_use]
    pub fn name_text(&self) -> String {
        let end = self
            .name
            .iter()
            .position(|&unit| unit == 0)
            .unwrap_or(self.name.len());
        String::from_utf16_lossy(&self.name[..end])
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut name = [0; 36];
        for (unit, pair) in name.iter_mut().zip(bytes[56..128].chunks_exact(2)) {
            *unit = u16::from_le_bytes(field(pair, 0));
        }
        Self {
            kind: Guid(field(bytes, 0)),
            uuid: Guid(field(bytes, 16)),
            first_lba: u64::from_le_bytes(field(bytes, 32)),
            last_lba: u64::from_le_bytes(field(bytes, 40)),
            attributes: u64::from_le_bytes(field(bytes, 48)),
            name,
            rest: bytes[128..].to_vec(),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; ENTRY_BYTES as usize];
        put(&mut bytes, 0, &self.kind.0);
        put(&mut bytes, 16, &self.uuid.0);
        put(&mut bytes, 32, &self.first_lba.to_le_bytes());
        put(&mut bytes, 40, &self.last_lba.to_le_bytes());
        put(&mut bytes, 48, &self.attributes.to_le_bytes());
        for (unit, pair) in self.name.iter().zip(bytes[56..].chunks_exact_mut(2)) {
            pair.copy_from_slice(&unit.to_le_bytes());
        }
        bytes.extend_from_slice(&self.rest);
        bytes
    }
}
