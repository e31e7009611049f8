//! The limits of a label: the first possible start, the last possible end, and the unit of starts.
//!
//! GPT: 16,384 bytes of entries behind the header, and the same before the backup (UEFI 2.10, 5.3). Solaris EFI: 8 MiB
//! reserved at the end. SMI: starts are cylinders, and addresses have 31 bits (DK_MAX_BLOCKS of illumos' dklabel.h).

use plumb_geometry::{Bytes, Grid, GridKind, SECTOR};

use crate::error::PlanError;
use crate::nodes::System;

/// Bytes of the entries of a GPT.
const GPT_ENTRIES: u64 = 16_384;
/// Bytes of the reserved partition of a Solaris EFI label.
const EFI_RESERVED: u64 = 8 << 20;
/// Addresses of a DOS label have 32 bits.
const DOS_SECTORS: u64 = 1 << 32;
/// Sectors that boot loaders use behind a DOS label, the label included.
const DOS_GAP_SECTORS: u64 = 63;
/// Blocks of a classic SMI label.
const SMI_SECTORS: u64 = 0x7fff_ffff;
/// Cylinders in front of the data: on SPARC the one that holds the label, on x86 slices 8 (boot) and 9 (alternates).
const SMI_FIRST: u64 = 1;
const SMI_X86_FIRST: u64 = 3;

/// Kind of label, with the facts that a start depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelScheme {
    /// GPT.
    Gpt,
    /// DOS, also called MBR.
    Dos,
    /// GPT as Solaris makes it.
    SolarisEfi,
    /// SMI on SPARC: starts are cylinders with a fixed number of sectors.
    Smi {
        /// Heads × sectors of a track.
        cylinder_sectors: u64,
    },
    /// SMI on x86: as above, counted from the start of an fdisk partition.
    SmiX86 {
        /// Heads × sectors of a track.
        cylinder_sectors: u64,
        /// Start of that fdisk partition.
        fdisk_start: Bytes,
    },
}

impl LabelScheme {
    /// Its kind in one word, as flags have it.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            LabelScheme::Gpt => "gpt",
            LabelScheme::Dos => "dos",
            LabelScheme::SolarisEfi => "efi",
            LabelScheme::Smi { .. } => "smi",
            LabelScheme::SmiX86 { .. } => "smi-x86",
        }
    }
}

/// The limits of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// First byte for data.
    pub first: Bytes,
    /// First byte behind the data; `None` where neither the disk nor the label sets an end.
    pub end: Option<Bytes>,
    /// The unit of starts.
    pub grids: Vec<Grid>,
    /// The unit of lengths.
    pub len_unit: Bytes,
}

/// The limits of a label on a disk.
///
/// # Errors
/// When a disk is too small to hold the label, or cylinders have no length.
pub fn limits(
    label: &LabelScheme,
    sector_bytes: u64,
    disk: Option<Bytes>,
) -> Result<Limits, PlanError> {
    let entries = GPT_ENTRIES.div_ceil(sector_bytes) * sector_bytes;
    let unit = |granularity: u64, offset: u64| {
        let grid = Grid::new(
            Bytes(granularity),
            Bytes(offset % granularity.max(1)),
            GridKind::Unit,
        );
        grid.map_err(|_| PlanError::OutOfRange {
            what: "the length of a cylinder",
            found: granularity.to_string(),
            expected: "at least one sector",
        })
    };
    let (first, last, end_most, grid) = match *label {
        LabelScheme::Gpt => (
            2 * sector_bytes + entries,
            sector_bytes + entries,
            None,
            unit(sector_bytes, 0)?,
        ),
        LabelScheme::SolarisEfi => {
            let last = sector_bytes + entries + EFI_RESERVED;
            (
                2 * sector_bytes + entries,
                last,
                None,
                unit(sector_bytes, 0)?,
            )
        }
        LabelScheme::Dos => {
            let end = DOS_SECTORS.checked_mul(sector_bytes);
            (
                DOS_GAP_SECTORS * sector_bytes,
                0,
                end,
                unit(sector_bytes, 0)?,
            )
        }
        LabelScheme::Smi { cylinder_sectors } => {
            let cylinder = cylinder_bytes(cylinder_sectors)?;
            (
                SMI_FIRST * cylinder,
                0,
                Some(SMI_SECTORS * SECTOR),
                unit(cylinder, 0)?,
            )
        }
        LabelScheme::SmiX86 {
            cylinder_sectors,
            fdisk_start,
        } => {
            let cylinder = cylinder_bytes(cylinder_sectors)?;
            let first = fdisk_start.checked_add(Bytes(SMI_X86_FIRST * cylinder));
            let end = fdisk_start.checked_add(Bytes(SMI_SECTORS * SECTOR));
            let (Some(first), Some(end)) = (first, end) else {
                return Err(PlanError::TooLarge {
                    what: "the start of the fdisk partition",
                });
            };
            (first.0, 0, Some(end.0), unit(cylinder, fdisk_start.0)?)
        }
    };
    let of_disk = disk.map(|disk| disk.0 / sector_bytes * sector_bytes);
    let end = match of_disk.map(|disk| disk.checked_sub(last)) {
        Some(Some(end)) => Some(end.min(end_most.unwrap_or(u64::MAX))),
        Some(None) => {
            return Err(PlanError::NoRoom {
                from: Bytes(0),
                start: Bytes(first),
                needed: Bytes(last),
                end: disk.unwrap_or_default(),
            });
        }
        None => end_most,
    };
    Ok(Limits {
        first: Bytes(first),
        end: end.map(Bytes),
        len_unit: grid.granularity(),
        grids: vec![grid],
    })
}

/// Longest cylinder, so that sums cannot run over: far above 16 heads × 255 sectors × 255.
const CYLINDER_SECTORS_MAX: u64 = 1 << 32;

fn cylinder_bytes(sectors: u64) -> Result<u64, PlanError> {
    if sectors == 0 || sectors > CYLINDER_SECTORS_MAX {
        return Err(PlanError::OutOfRange {
            what: "the number of sectors of a cylinder",
            found: sectors.to_string(),
            expected: "heads × sectors of a track, as prtvtoc prints them",
        });
    }
    Ok(sectors * SECTOR)
}

impl LabelScheme {
    /// Whose label it is.
    #[must_use]
    pub const fn system(&self) -> System {
        match self {
            LabelScheme::Gpt | LabelScheme::Dos => System::Linux,
            LabelScheme::SolarisEfi | LabelScheme::Smi { .. } | LabelScheme::SmiX86 { .. } => {
                System::Solaris
            }
        }
    }

    /// The name of its parts.
    #[must_use]
    pub const fn part_word(&self) -> &'static str {
        match self.system() {
            System::Linux => "partition",
            System::Solaris => "slice",
        }
    }

    /// The unit of lengths, in words.
    #[must_use]
    pub const fn len_word(&self) -> &'static str {
        match self {
            LabelScheme::Smi { .. } | LabelScheme::SmiX86 { .. } => "cylinder",
            LabelScheme::Gpt | LabelScheme::Dos | LabelScheme::SolarisEfi => "logical block",
        }
    }

    /// The cylinder that begins at a byte of the disk, and the length of one.
    #[must_use]
    pub fn cylinder_of(&self, start: Bytes) -> Option<(u64, Bytes)> {
        let (sectors, origin) = match *self {
            LabelScheme::Smi { cylinder_sectors } => (cylinder_sectors, 0),
            LabelScheme::SmiX86 {
                cylinder_sectors,
                fdisk_start,
            } => (cylinder_sectors, fdisk_start.0),
            LabelScheme::Gpt | LabelScheme::Dos | LabelScheme::SolarisEfi => return None,
        };
        let bytes = sectors.checked_mul(SECTOR).filter(|bytes| *bytes > 0)?;
        Some((start.0.checked_sub(origin)? / bytes, Bytes(bytes)))
    }

    /// The device nodes of a part; none where the disk is an image in a file.
    #[must_use]
    pub fn node(&self, device: &str, number: u32) -> Vec<String> {
        match self.system() {
            System::Solaris => {
                let disk = device.rsplit('/').next().unwrap_or(device);
                vec![
                    format!("/dev/dsk/{disk}s{number}"),
                    format!("/dev/rdsk/{disk}s{number}"),
                ]
            }
            System::Linux if !device.starts_with("/dev/") => Vec::new(),
            // A name that ends in a digit takes a p: nvme0n1p1, loop0p1.
            System::Linux if device.ends_with(|last: char| last.is_ascii_digit()) => {
                vec![format!("{device}p{number}")]
            }
            System::Linux => vec![format!("{device}{number}")],
        }
    }

    pub(super) fn check_number(&self, number: u32) -> Result<(), PlanError> {
        let (is_good, expected) = match self {
            LabelScheme::Gpt => ((1..=128).contains(&number), "1 to 128"),
            LabelScheme::Dos => (
                (1..=4).contains(&number),
                "1 to 4: logical partitions are not planned",
            ),
            LabelScheme::SolarisEfi => {
                (number <= 6, "0 to 6: 7 is the whole disk and 8 is reserved")
            }
            LabelScheme::Smi { .. } => (
                number <= 7 && number != 2,
                "0 to 7, but not 2, the whole disk",
            ),
            LabelScheme::SmiX86 { .. } => (
                number <= 7 && number != 2,
                "0 to 7, but not 2; 8 and 9 are boot and alternates",
            ),
        };
        if is_good {
            return Ok(());
        }
        let what = "the number of the partition";
        Err(PlanError::OutOfRange {
            what,
            found: number.to_string(),
            expected,
        })
    }
}
