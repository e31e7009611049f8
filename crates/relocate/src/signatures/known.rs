//! Positions and bytes of signatures.
//!
//! Positions and bytes from `libblkid` of util-linux (2.38 and 2026-08), and copies that only the format's own tools
//! read. Nothing else of a superblock is verified: unnecessarily hidden bytes come back unharmed.

/// The start of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// Bytes from the beginning.
    Start(u64),
    /// The end, rounded down to a multiple of the first number, less the second.
    End(u64, u64),
}

use At::{End, Start};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Name, place and bytes.
pub(super) const KNOWN: &[(&str, At, &[u8])] = &[
    ("ext", Start(1080), b"\x53\xef"),
    ("xfs", Start(0), b"XFSB"),
    ("xfs log", Start(0), b"\xfe\xed\xba\xbe"),
    ("ntfs", Start(3), b"NTFS    "),
    ("ntfs", End(512, 509), b"NTFS    "),
    ("exfat", Start(3), b"EXFAT   "),
    ("exfat", Start(12 * 512 + 3), b"EXFAT   "),
    ("exfat", Start(12 * 4 * KIB + 3), b"EXFAT   "),
    ("fat or boot sector", Start(510), b"\x55\xaa"),
    ("fat", Start(54), b"FAT"),
    ("fat", Start(82), b"FAT"),
    ("fat", Start(6 * 512 + 82), b"FAT32   "),
    ("fat", Start(6 * 4 * KIB + 82), b"FAT32   "),
    ("BitLocker", Start(3), b"-FVE-FS-"),
    ("BitLocker", Start(3), b"MSWIN4.1"),
    ("ReFS", Start(3), b"ReFS\0"),
    ("btrfs", Start(64 * KIB + 64), b"_BHRfS_M"),
    ("btrfs", Start(64 * MIB + 64), b"_BHRfS_M"),
    ("btrfs", Start(256 * GIB + 64), b"_BHRfS_M"),
    ("LVM2", Start(24), b"LVM2 001"),
    ("LVM2", Start(512 + 24), b"LVM2 001"),
    ("LVM2", Start(1024 + 24), b"LVM2 001"),
    ("LVM2", Start(1536 + 24), b"LVM2 001"),
    ("LVM1", Start(0), b"HM"),
    ("LVM snapshot", Start(0), b"SnAp"),
    ("dm-verity", Start(0), b"verity\0\0"),
    ("dm-integrity", Start(0), b"integrt\0"),
    ("LUKS", Start(0), b"LUKS\xba\xbe"),
    ("LUKS", Start(16 * KIB), b"SKUL\xba\xbe"),
    ("LUKS", Start(32 * KIB), b"SKUL\xba\xbe"),
    ("LUKS", Start(64 * KIB), b"SKUL\xba\xbe"),
    ("LUKS", Start(128 * KIB), b"SKUL\xba\xbe"),
    ("LUKS", Start(256 * KIB), b"SKUL\xba\xbe"),
    ("LUKS", Start(512 * KIB), b"SKUL\xba\xbe"),
    ("LUKS", Start(MIB), b"SKUL\xba\xbe"),
    ("LUKS", Start(2 * MIB), b"SKUL\xba\xbe"),
    ("LUKS", Start(4 * MIB), b"SKUL\xba\xbe"),
    ("FileVault", Start(88), b"CS"),
    ("md", Start(0), b"\xfc\x4e\x2b\xa9"),
    ("md", Start(4 * KIB), b"\xfc\x4e\x2b\xa9"),
    ("md", End(4 * KIB, 8 * KIB), b"\xfc\x4e\x2b\xa9"),
    ("md 0.90", End(64 * KIB, 64 * KIB), b"\xfc\x4e\x2b\xa9"),
    ("md 0.90", End(64 * KIB, 64 * KIB), b"\xa9\x2b\x4e\xfc"),
    (
        "bcache",
        Start(4 * KIB + 24),
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca",
    ),
    (
        "bcachefs",
        Start(4 * KIB + 24),
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9",
    ),
    (
        "bcachefs",
        Start(2 * MIB + 24),
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9",
    ),
    (
        "bcachefs",
        End(512, MIB - 24),
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9",
    ),
    ("DRBD", End(4 * KIB, 4 * KIB - 60), b"\x83\x74\x02\x6b"),
    ("DRBD", End(4 * KIB, 4 * KIB - 60), b"\x83\x74\x02\x6c"),
    ("DRBD", End(4 * KIB, 4 * KIB - 60), b"\x83\x74\x02\x6d"),
    ("DRBD manage", Start(0), b"$DRBDmgr=q"),
    ("DRBD proxy", Start(0), b"DRBDdlh*"),
    ("VDO", Start(0), b"dmvdo001"),
    ("Stratis", Start(512 + 4), b"!Stra0tis\x86\xff\x02^Arh"),
    ("Stratis", Start(9 * 512 + 4), b"!Stra0tis\x86\xff\x02^Arh"),
    ("ceph", Start(0), b"bluestore block device"),
    ("Intel RAID", End(512, 1024), b"Intel Raid ISM Cfg Sig. "),
    (
        "Intel RAID",
        End(4 * KIB, 8 * KIB),
        b"Intel Raid ISM Cfg Sig. ",
    ),
    ("DDF", End(512, 512), b"\xde\x11\xde\x11"),
    ("DDF", End(512, 257 * 512), b"\xde\x11\xde\x11"),
    ("LSI RAID", End(512, 512), b"$XIDE$"),
    ("JMicron RAID", End(512, 512), b"JM"),
    ("VIA RAID", End(512, 512), b"\x55\xaa"),
    (
        "Silicon Image RAID",
        End(512, 512 - 96),
        b"\x00\x00\x00\x2f",
    ),
    ("Adaptec RAID", End(512, 512), b"\x37\xfc\x4d\x1e"),
    ("NVIDIA RAID", End(512, 1024), b"NVIDIA  "),
    (
        "HighPoint RAID",
        End(512, 11 * 512 - 32),
        b"\xf3\x16\x78\x5a",
    ),
    (
        "HighPoint RAID",
        End(512, 11 * 512 - 32),
        b"\xfd\x16\x78\x5a",
    ),
    ("HighPoint RAID", Start(4640), b"\xf0\x16\x78\x5a"),
    ("HighPoint RAID", Start(4640), b"\xfd\x16\x78\x5a"),
    ("apfs", Start(32), b"NXSB"),
    ("hfs", Start(1024), b"BD"),
    ("hfs+", Start(1024), b"H+"),
    ("hfs+", Start(1024), b"HX"),
    ("hfs", End(512, 1024), b"BD"),
    ("hfs+", End(512, 1024), b"H+"),
    ("hfs+", End(512, 1024), b"HX"),
    ("jfs", Start(32 * KIB), b"JFS1"),
    ("jfs", Start(60 * KIB), b"JFS1"),
    ("f2fs", Start(1024), b"\x10\x20\xf5\xf2"),
    ("f2fs", Start(5 * KIB), b"\x10\x20\xf5\xf2"),
    ("erofs", Start(1024), b"\xe2\xe1\xf5\xe0"),
    ("nilfs2", Start(1024 + 6), b"\x34\x34"),
    ("nilfs2", End(4 * KIB, 4 * KIB - 6), b"\x34\x34"),
    ("nilfs2", End(4 * KIB, 8 * KIB - 6), b"\x34\x34"),
    ("reiserfs", Start(8 * KIB + 20), b"ReIsErFs"),
    ("reiserfs", Start(8 * KIB + 52), b"ReIsErFs"),
    ("reiserfs", Start(64 * KIB + 52), b"ReIsEr"),
    ("reiser4", Start(64 * KIB), b"ReIsEr4"),
    ("gfs", Start(64 * KIB), b"\x01\x16\x19\x70"),
    ("scoutfs", Start(64 * KIB + 4), b"\x8b\x42\x3c\x10"),
    ("ocfs", Start(8 * KIB), b"OracleCFS"),
    ("ocfs2", Start(KIB), b"OCFSV2"),
    ("ocfs2", Start(2 * KIB), b"OCFSV2"),
    ("ocfs2", Start(4 * KIB), b"OCFSV2"),
    ("ocfs2", Start(8 * KIB), b"OCFSV2"),
    ("Oracle ASM", Start(32), b"ORCLDISK"),
    ("vmfs", Start(2 * MIB), b"\x5e\xf1\xab\x2f"),
    ("vmfs", Start(MIB), b"\x0d\xd0\x01\xc0"),
    ("vxfs", Start(KIB), b"\xf5\xfc\x01\xa5"),
    ("vxfs", Start(8 * KIB), b"\xa5\x01\xfc\xf5"),
    ("iso9660", Start(32 * KIB + 1), b"CD001"),
    ("iso9660", Start(32 * KIB + 9), b"CDROM"),
    ("udf", Start(32 * KIB + 1), b"BEA01"),
    ("udf", Start(32 * KIB + 1), b"NSR0"),
    ("hpfs", Start(8 * KIB), b"\x49\xe8\x95\xf9"),
    ("minix", Start(1040), b"\x7f\x13"),
    ("minix", Start(1040), b"\x8f\x13"),
    ("minix", Start(1040), b"\x13\x7f"),
    ("minix", Start(1040), b"\x13\x8f"),
    ("minix", Start(1040), b"\x68\x24"),
    ("minix", Start(1040), b"\x78\x24"),
    ("minix", Start(1040), b"\x24\x68"),
    ("minix", Start(1040), b"\x24\x78"),
    ("minix", Start(1048), b"\x5a\x4d"),
    ("minix", Start(1048), b"\x4d\x5a"),
    ("netware", Start(4 * KIB), b"SPB5"),
    ("sysv", Start(2 * KIB), b"\x2b\x55\x44"),
    ("sysv", Start(2 * KIB), b"\x44\x55\x2b"),
    ("befs", Start(32), b"BFS1"),
    ("befs", Start(32), b"1SFB"),
    ("befs", Start(512 + 32), b"BFS1"),
    ("befs", Start(512 + 32), b"1SFB"),
    ("bfs", Start(0), b"\xce\xfa\xad\x1b"),
    ("cramfs", Start(0), b"\x45\x3d\xcd\x28"),
    ("cramfs", Start(0), b"\x28\xcd\x3d\x45"),
    ("romfs", Start(0), b"-rom1fs-"),
    ("squashfs", Start(0), b"hsqs"),
    ("squashfs", Start(0), b"sqsh"),
    ("zonefs", Start(0), b"SFOZ"),
    ("exfs", Start(0), b"EXFS"),
    ("ubi", Start(0), b"UBI#"),
];

/// Bytes of swap space and of an image of hibernation, at the end of its first page.
pub(super) const SWAP: [&[u8]; 6] = [
    b"SWAP-SPACE",
    b"SWAPSPACE2",
    b"S1SUSPEND",
    b"S2SUSPEND",
    b"ULSUSPEND",
    b"LINHIB0001",
];
/// Sizes of a page.
pub(super) const PAGES: [u64; 5] = [4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB];

/// Magic numbers of UFS, in the byte order of either kind of machine, and the possible positions of superblocks.
pub(super) const UFS: [u32; 6] = [
    0x0001_1954,
    0x1954_0119,
    0x0019_5612,
    0x0009_5014,
    0x0061_2195,
    0x0523_1994,
];
pub(super) const UFS_AT: [u64; 4] = [0, 8 * KIB, 64 * KIB, 256 * KIB];
pub(super) const UFS_MAGIC: u64 = 1372;

/// Position of Promise's RAID metadata, in sectors from the end.
pub(super) const PROMISE: &[u8] = b"Promise Technology, Inc.";
pub(super) const PROMISE_SECTORS: [u64; 13] = [
    63, 255, 256, 16, 399, 591, 675, 735, 911, 974, 991, 951, 3087,
];

/// ZFS: four labels, each with a list of names and values, and a ring of superblocks behind it.
pub(super) const ZFS_LABEL: u64 = 256 * KIB;
pub(super) const ZFS_LIST: u64 = 16 * KIB;
pub(super) const ZFS_RING: u64 = 128 * KIB;
pub(super) const ZFS_NAME: &[u8] = b"pool_guid";
pub(super) const ZFS_MAGIC: [&[u8]; 2] = [b"\x0c\xb1\xba\x00\0\0\0\0", b"\0\0\0\0\x00\xba\xb1\x0c"];
