//! Commands: submission queue entries and their answers.

use super::pdu::{COMMAND_BYTES, COMPLETION_BYTES, u16_at, u32_at};

/// Opcodes of the admin queue.
pub(super) mod admin {
    pub(in super::super) const GET_LOG_PAGE: u8 = 0x02;
    pub(in super::super) const IDENTIFY: u8 = 0x06;
    pub(in super::super) const SET_FEATURES: u8 = 0x09;
    pub(in super::super) const ASYNC_EVENT_REQUEST: u8 = 0x0c;
    pub(in super::super) const KEEP_ALIVE: u8 = 0x18;
    pub(in super::super) const FABRICS: u8 = 0x7f;
}

/// Types of a Fabrics command.
pub(super) mod fabrics {
    pub(in super::super) const PROPERTY_SET: u8 = 0x00;
    pub(in super::super) const CONNECT: u8 = 0x01;
    pub(in super::super) const PROPERTY_GET: u8 = 0x04;
}

/// Opcodes of I/O queues.
pub(super) mod io {
    pub(in super::super) const FLUSH: u8 = 0x00;
    pub(in super::super) const WRITE: u8 = 0x01;
    pub(in super::super) const READ: u8 = 0x02;
}

/// Status codes, their type (SCT) in the upper byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status(pub(super) u16);

impl Status {
    pub(super) const INVALID_OPCODE: Status = Status(0x001);
    pub(super) const INVALID_FIELD: Status = Status(0x002);
    pub(super) const INVALID_NAMESPACE: Status = Status(0x00b);
    pub(super) const SEQUENCE_ERROR: Status = Status(0x00c);
    pub(super) const DATA_LENGTH_INVALID: Status = Status(0x00f);
    pub(super) const LBA_OUT_OF_RANGE: Status = Status(0x080);
    pub(super) const CONNECT_INVALID: Status = Status(0x182);
}

/// How a command ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Well: the first two dwords of the completion, and data for the host.
    Done { result: u64, data: Vec<u8> },
    /// With a status.
    Failed(Status),
    /// Not at all.
    Never,
}

impl Answer {
    pub(super) fn done() -> Self {
        Answer::result(0)
    }

    pub(super) fn result(result: u64) -> Self {
        Answer::Done {
            result,
            data: Vec::new(),
        }
    }

    pub(super) fn data(data: Vec<u8>) -> Self {
        Answer::Done { result: 0, data }
    }
}

/// The position of a command's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataLocation {
    /// Inside the capsule.
    Capsule,
    /// To be moved by PDUs of their own.
    Transport,
}

/// A submission queue entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct NvmeCommand([u8; COMMAND_BYTES]);

impl NvmeCommand {
    pub(super) fn new(entry: [u8; COMMAND_BYTES]) -> Self {
        NvmeCommand(entry)
    }

    pub(super) fn opcode(&self) -> u8 {
        self.0[0]
    }

    pub(super) fn id(&self) -> u16 {
        u16_at(&self.0, 2)
    }

    pub(super) fn namespace_id(&self) -> u32 {
        self.dword(1)
    }

    /// FCTYPE of a Fabrics command.
    pub(super) fn fabrics_type(&self) -> u8 {
        self.0[4]
    }

    /// CDWn.
    pub(super) fn dword(&self, n: usize) -> u32 {
        u32_at(&self.0, 4 * n)
    }

    /// CDWn and the next as one number.
    pub(super) fn two_dwords(&self, n: usize) -> u64 {
        u64::from(self.dword(n)) | u64::from(self.dword(n + 1)) << 32
    }

    /// Length of the data, by the SGL descriptor in DPTR.
    pub(super) fn data_len(&self) -> u32 {
        u32_at(&self.0, 32)
    }

    /// By the type of the SGL descriptor: a data block as offset into the capsule (01h), or one of the transport (5Ah).
    pub(super) fn place(&self) -> Option<DataLocation> {
        match self.0[39] {
            0x01 => Some(DataLocation::Capsule),
            0x5a => Some(DataLocation::Transport),
            _ => None,
        }
    }

    /// Whether the host has data for the controller: the lowest bits of the opcode, or of FCTYPE, are 01b.
    pub(super) fn takes_data(&self) -> bool {
        let kind = if self.opcode() == admin::FABRICS {
            self.fabrics_type()
        } else {
            self.opcode()
        };
        kind & 3 == 1
    }

    /// The completion queue entry; `head` is that of the submission queue.
    pub(super) fn completion(
        &self,
        queue: u16,
        head: u16,
        result: u64,
        status: Status,
    ) -> [u8; COMPLETION_BYTES] {
        // Bit 0 is the phase, which a network has none of; bit 15 says not to try again.
        let status = if status.0 == 0 {
            0
        } else {
            status.0 << 1 | 1 << 15
        };
        let mut entry = [0; COMPLETION_BYTES];
        entry[..8].copy_from_slice(&result.to_le_bytes());
        for (at, value) in [(8, head), (10, queue), (12, self.id()), (14, status)] {
            entry[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        entry
    }
}
