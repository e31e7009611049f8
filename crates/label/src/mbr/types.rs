//! Names of the one-byte types of an MBR's partitions, as util-linux prints them.

/// A GPT follows.
pub const PROTECTIVE: u8 = 0xee;
/// A file system of Linux.
pub const LINUX: u8 = 0x83;
/// Linux swap, and before that Solaris on x86.
pub const SOLARIS_OLD: u8 = 0x82;
/// Solaris on x86.
pub const SOLARIS: u8 = 0xbf;
/// A partition that is being moved: one of the types that are free for uses of one's own.
pub const MOVING: u8 = 0x7f;

/// Whether it contains logical partitions: as DOS, as Windows 95 and as Linux wrote it.
#[must_use]
pub const fn is_extended(kind: u8) -> bool {
    matches!(kind, 0x05 | 0x0f | 0x85)
}

const NAMES: [(u8, &str); 36] = [
    (0x00, "Empty"),
    (0x01, "FAT12"),
    (0x04, "FAT16 <32M"),
    (0x05, "Extended"),
    (0x06, "FAT16"),
    (0x07, "HPFS/NTFS/exFAT"),
    (0x0b, "W95 FAT32"),
    (0x0c, "W95 FAT32 (LBA)"),
    (0x0e, "W95 FAT16 (LBA)"),
    (0x0f, "W95 Ext'd (LBA)"),
    (0x11, "Hidden FAT12"),
    (0x12, "Compaq diagnostics"),
    (0x14, "Hidden FAT16 <32M"),
    (0x16, "Hidden FAT16"),
    (0x17, "Hidden HPFS/NTFS"),
    (0x1b, "Hidden W95 FAT32"),
    (0x1c, "Hidden W95 FAT32 (LBA)"),
    (0x1e, "Hidden W95 FAT16 (LBA)"),
    (0x27, "Hidden NTFS WinRE"),
    (0x41, "PPC PReP Boot"),
    (0x42, "SFS"),
    (SOLARIS_OLD, "Linux swap / Solaris"),
    (LINUX, "Linux"),
    (0x85, "Linux extended"),
    (0x86, "NTFS volume set"),
    (0x8e, "Linux LVM"),
    (0xa5, "FreeBSD"),
    (0xa6, "OpenBSD"),
    (0xa8, "Darwin UFS"),
    (0xa9, "NetBSD"),
    (0xaf, "HFS / HFS+"),
    (0xbe, "Solaris boot"),
    (SOLARIS, "Solaris"),
    (PROTECTIVE, "GPT"),
    (0xef, "EFI (FAT-12/16/32)"),
    (0xfd, "Linux raid autodetect"),
];

/// The name of a type; `None` if the table does not have it.
#[must_use]
pub fn name(kind: u8) -> Option<&'static str> {
    NAMES
        .iter()
        .find(|(number, _)| *number == kind)
        .map(|&(_, name)| name)
}
