//! NVMe Identify: the data of a controller or namespace about itself, as the 4096 bytes that it returned.

use std::ffi::c_void;

use rustix::ioctl::{Opcode, opcode};

use crate::block::BlockDevice;
use crate::error::{Asking, SysError};
use crate::ioctl::{Argument, ioctl};

/// Length of every Identify structure.
pub const IDENTIFY: usize = 4096;

/// Opcode of the Identify command.
const COMMAND: u8 = 0x06;

/// The structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identify {
    /// CNS 01h: the controller.
    Controller,
    /// CNS 00h: the namespace of the device.
    Namespace,
    /// CNS 05h with the NVM command set: the additions of newer namespaces.
    NamespaceOfCommandSet,
}

impl Identify {
    const fn text(self) -> &'static str {
        match self {
            Identify::Controller => "Identify Controller",
            Identify::Namespace => "Identify Namespace",
            Identify::NamespaceOfCommandSet => "Identify Namespace of the NVM command set",
        }
    }

    const fn structure(self) -> u32 {
        match self {
            Identify::Controller => 0x01,
            Identify::Namespace => 0x00,
            Identify::NamespaceOfCommandSet => 0x05,
        }
    }
}

/// `struct nvme_passthru_cmd` of <linux/nvme_ioctl.h>.
#[repr(C)]
#[derive(Default)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    rsvd1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<AdminCommand>() == 72);
const _: () = assert!(std::mem::offset_of!(AdminCommand, addr) == 24);
const _: () = assert!(std::mem::offset_of!(AdminCommand, cdw10) == 40);

const ADMIN_COMMAND: Opcode = opcode::read_write::<AdminCommand>(b'N', 0x41);
const NAMESPACE_ID: Opcode = opcode::none(b'N', 0x40);

/// A command with the buffer that its answer goes to.
struct AdminRequest {
    command: AdminCommand,
    answer: Box<[u8; IDENTIFY]>,
}

// SAFETY: the kernel writes `result` inside the command, and at most `data_len` bytes to `addr`: both are set here, to the
// boxed buffer and its length, and the box lives as long as the request.
unsafe impl Argument for AdminRequest {
    fn address(&mut self) -> *mut c_void {
        self.command.addr = self.answer.as_mut_ptr() as u64;
        self.command.data_len = IDENTIFY as u32;
        std::ptr::from_mut(&mut self.command).cast()
    }
}

/// Asks the drive behind an open namespace.
///
/// # Errors
/// When the device is no NVMe namespace, the process is not permitted, or the drive refuses.
pub fn identify(device: &BlockDevice, which: Identify) -> Result<Box<[u8; IDENTIFY]>, SysError> {
    let asking = Asking {
        path: device.path(),
        asked: which.text(),
        capability: "CAP_SYS_ADMIN",
    };
    let nsid = ioctl(device, NAMESPACE_ID, &mut 0u32).map_err(|errno| asking.error(errno))?;
    let command = AdminCommand {
        opcode: COMMAND,
        nsid: if which == Identify::Controller {
            0
        } else {
            nsid as u32
        },
        cdw10: which.structure(),
        ..AdminCommand::default()
    };
    let mut request = AdminRequest {
        command,
        answer: Box::new([0; IDENTIFY]),
    };
    match ioctl(device, ADMIN_COMMAND, &mut request).map_err(|errno| asking.error(errno))? {
        0 => Ok(request.answer),
        status => Err(SysError::RefusedNvme {
            path: device.path().to_owned(),
            asked: which.text(),
            status: status as u16 & 0x7fff,
        }),
    }
}
