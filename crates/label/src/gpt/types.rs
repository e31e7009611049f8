//! Names of partition types. Those of Solaris are the `#define`s of illumos `sys/efi_partition.h` (the table in that
//! file's comment is shifted by one against them); the others are those that util-linux prints.

use crate::guid::Guid;

/// A file system of Linux.
pub const LINUX: Guid = Guid::from_u128(0x0fc63daf_8483_4772_8e79_3d69d8477de4);
/// Reserved partition of a Solaris EFI label: tag 11, the last one, 8 MiB as a rule.
pub const SOLARIS_RESERVED: Guid = solaris(0x6a945a3b);
/// Solaris's type for `usr`, which members of ZFS pools have on every system.
pub const SOLARIS_USR: Guid = solaris(0x6a898cc3);

/// A partition that is being moved; drawn at random for this purpose.
pub const MOVING: Guid = Guid::from_u128(0x9c3f6a52_71d8_4be0_a4c7_5d2e80b1f963);

/// Types of Solaris differ in their first field only.
const fn solaris(first: u32) -> Guid {
    Guid::from_u128((first as u128) << 96 | 0x1dd2_11b2_99a6_0800_2073_6631)
}

const NAMES: [(Guid, &str); 37] = [
    (MOVING, "being moved"),
    (
        Guid::from_u128(0xc12a7328_f81f_11d2_ba4b_00a0c93ec93b),
        "EFI System",
    ),
    (
        Guid::from_u128(0x024dee41_33e7_11d3_9d69_0008c781f39f),
        "MBR partition scheme",
    ),
    (
        Guid::from_u128(0x21686148_6449_6e6f_744e_656564454649),
        "BIOS boot",
    ),
    (
        Guid::from_u128(0x9e1a2d38_c612_4316_aa26_8b49521e5a8b),
        "PowerPC PReP boot",
    ),
    (LINUX, "Linux filesystem"),
    (
        Guid::from_u128(0x0657fd6d_a4ab_43c4_84e5_0933c84b4f4f),
        "Linux swap",
    ),
    (
        Guid::from_u128(0xe6d6d379_f507_44c2_a23c_238f2a3df928),
        "Linux LVM",
    ),
    (
        Guid::from_u128(0xa19d880f_05fc_4d3b_a006_743f0f84911e),
        "Linux RAID",
    ),
    (
        Guid::from_u128(0x8da63339_0007_60c0_c436_083ac8230908),
        "Linux reserved",
    ),
    (
        Guid::from_u128(0x933ac7e1_2eb4_4f13_b844_0e14e2aef915),
        "Linux home",
    ),
    (
        Guid::from_u128(0x3b8f8425_20e0_4f3b_907f_1a25a76f98e8),
        "Linux server data",
    ),
    (
        Guid::from_u128(0x4f68bce3_e8cd_4db1_96e7_fbcaf984b709),
        "Linux root (x86-64)",
    ),
    (
        Guid::from_u128(0xbc13c2ff_59e6_4262_a352_b275fd6f7172),
        "Linux extended boot",
    ),
    (
        Guid::from_u128(0xca7d7ccb_63ed_4c53_861c_1742536059cc),
        "LUKS",
    ),
    (
        Guid::from_u128(0xe3c9e316_0b5c_4db8_817d_f92df00215ae),
        "Microsoft reserved",
    ),
    (
        Guid::from_u128(0xebd0a0a2_b9e5_4433_87c0_68b6b72699c7),
        "Microsoft basic data",
    ),
    (
        Guid::from_u128(0x5808c8aa_7e8f_42e0_85d2_e1e90434cfb3),
        "Microsoft LDM metadata",
    ),
    (
        Guid::from_u128(0xaf9b60a0_1431_4f62_bc68_3311714a69ad),
        "Microsoft LDM data",
    ),
    (
        Guid::from_u128(0xde94bba4_06d1_4d40_a16a_bfd50179d6ac),
        "Windows recovery environment",
    ),
    (
        Guid::from_u128(0x48465300_0000_11aa_aa11_00306543ecac),
        "Apple HFS/HFS+",
    ),
    (
        Guid::from_u128(0x7c3457ef_0000_11aa_aa11_00306543ecac),
        "Apple APFS",
    ),
    (
        Guid::from_u128(0x516e7cb4_6ecf_11d6_8ff8_00022d09712b),
        "FreeBSD data",
    ),
    (
        Guid::from_u128(0x516e7cba_6ecf_11d6_8ff8_00022d09712b),
        "FreeBSD ZFS",
    ),
    (
        Guid::from_u128(0xaa31e02a_400f_11db_9590_000c2911d1b8),
        "VMware VMFS",
    ),
    (solaris(0x6a82cb45), "Solaris boot"),
    (solaris(0x6a85cf4d), "Solaris root"),
    (solaris(0x6a87c46f), "Solaris swap"),
    (SOLARIS_USR, "Solaris /usr or ZFS"),
    (solaris(0x6a8b642b), "Solaris backup"),
    (solaris(0x6a8ef2e9), "Solaris /var"),
    (solaris(0x6a90ba39), "Solaris /home"),
    (solaris(0x6a9283a5), "Solaris alternate sectors"),
    (SOLARIS_RESERVED, "Solaris reserved"),
    (solaris(0x6a9630d1), "Symantec public region"),
    (solaris(0x6a980767), "Symantec CDS"),
    (solaris(0x6a96237f), "Solaris unassigned"),
];

/// The name of a type; `None` if the table does not have it.
#[must_use]
pub fn name(kind: Guid) -> Option<&'static str> {
    NAMES
        .iter()
        .find(|(guid, _)| *guid == kind)
        .map(|&(_, name)| name)
}

/// Whether a type is one of Solaris's, known by name or not.
#[must_use]
pub fn is_solaris(kind: Guid) -> bool {
    let fixed = |guid: Guid| [&guid.0[3..4], &guid.0[4..]].concat();
    fixed(kind) == fixed(SOLARIS_RESERVED)
}
