//! Why a system call gave no answer.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use thiserror::Error;

/// One failed question to the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SysError {
    /// The kernel wants a privilege that this process does not have.
    #[error("{}: {asked} is not permitted without {capability}", path.display())]
    NotPermitted {
        /// The device or file.
        path: PathBuf,
        /// The request.
        asked: &'static str,
        /// The capability, as capabilities(7) calls it.
        capability: &'static str,
    },
    /// There is no such device or file, or nothing behind its node.
    #[error("{}: nothing is there ({errno})", path.display())]
    NotThere {
        /// The device or file.
        path: PathBuf,
        /// The error of the kernel.
        errno: Errno,
    },
    /// Opened, and not a block device. A tool may have left a regular file under `/dev`.
    #[error("{}: is no block device", path.display())]
    NotABlockDevice {
        /// The path.
        path: PathBuf,
    },
    /// Opened to be measured, and nothing that can be.
    #[error("{}: found {found}, expected a block device or a regular file", path.display())]
    NotATarget {
        /// The path.
        path: PathBuf,
        /// The kind found.
        found: &'static str,
    },
    /// A regular file among the device nodes, which some tool made when the device was not there.
    #[error("{}: found a regular file among the devices, expected a block device: remove the file and attach the device",
        path.display())]
    FileAmongDevices {
        /// The path.
        path: PathBuf,
    },
    /// It can be read and not written.
    #[error("{}: is read-only", path.display())]
    ReadOnly {
        /// The path.
        path: PathBuf,
    },
    /// Somebody uses it, and the kernel does not let it be written by another.
    #[error("{}: {asked}: it is in use: mounted, swapped to, part of a volume, or held by a program", path.display())]
    InUse {
        /// The device.
        path: PathBuf,
        /// The request.
        asked: &'static str,
    },
    /// Another program has the lock of the node.
    #[error("{}: another program has locked it (udev, or a tool that writes labels): try again later", path.display())]
    Locked {
        /// The device.
        path: PathBuf,
    },
    /// The device, driver or file system does not know the question.
    #[error("{}: does not answer to {asked} ({errno})", path.display())]
    NotSupported {
        /// The device or file.
        path: PathBuf,
        /// The request.
        asked: &'static str,
        /// The error of the kernel.
        errno: Errno,
    },
    /// An NVMe drive refused a command.
    #[error("{}: {asked} ended with NVMe status {status:#05x}", path.display())]
    RefusedNvme {
        /// The device.
        path: PathBuf,
        /// The command.
        asked: &'static str,
        /// Status field of the completion, without the phase bit.
        status: u16,
    },
    /// A SCSI drive, or its driver, refused a command.
    #[error("{}: {asked} ended with SCSI status {status:#04x}", path.display())]
    RefusedScsi {
        /// The device.
        path: PathBuf,
        /// The command.
        asked: &'static str,
        /// Status byte; 0 where the driver refused.
        status: u8,
    },
    /// The answer contradicts itself.
    #[error("{}: {asked} answered {found}, expected {expected}", path.display())]
    Malformed {
        /// The device or file.
        path: PathBuf,
        /// The request.
        asked: &'static str,
        /// The answer.
        found: String,
        /// The expected answer.
        expected: &'static str,
    },
    /// Anything else that the kernel said.
    #[error("{}: {asked} failed ({errno})", path.display())]
    Failed {
        /// The device or file.
        path: PathBuf,
        /// The request.
        asked: &'static str,
        /// The error of the kernel.
        errno: Errno,
    },
}

/// A request for a path, and the capability that may be lacking: sorts an `errno` into the right variant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking<'a> {
    pub(crate) path: &'a Path,
    pub(crate) asked: &'static str,
    pub(crate) capability: &'static str,
}

impl Asking<'_> {
    pub(crate) fn error(self, errno: Errno) -> SysError {
        let (path, asked) = (self.path.to_owned(), self.asked);
        match errno {
            Errno::PERM | Errno::ACCESS => SysError::NotPermitted {
                path,
                asked,
                capability: self.capability,
            },
            Errno::NOENT | Errno::NXIO | Errno::NODEV | Errno::NOMEDIUM => {
                SysError::NotThere { path, errno }
            }
            Errno::BUSY => SysError::InUse { path, asked },
            Errno::NOTTY | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL => {
                SysError::NotSupported { path, asked, errno }
            }
            errno => SysError::Failed { path, asked, errno },
        }
    }

    pub(crate) fn malformed(self, found: impl Into<String>, expected: &'static str) -> SysError {
        SysError::Malformed {
            path: self.path.to_owned(),
            asked: self.asked,
            found: found.into(),
            expected,
        }
    }
}
