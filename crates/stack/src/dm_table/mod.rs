//! Lines of a device mapper table: the devices below each target, and the positions on them.
//!
//! The same text comes from the kernel's ioctl and from `dmsetup table`: `START LEN TYPE PARAMS`, in sectors of 512
//! bytes. The kernel's `Documentation/admin-guide/device-mapper` describes PARAMS of each target, and is the source of
//! this module. Left out: keys, and parameters that do not affect positions.
//!
//! [`place()`] adds the meaning of tables to a [`crate::Builder`].

mod place;
mod redundant;
#[cfg(test)]
mod tests;
mod words;

use plumb_geometry::{ParityLayout, Sectors};
use thiserror::Error;

pub(crate) use place::missing;
pub use place::{Mapped, lvm_name, number_of, place};
pub(crate) use redundant::shape;
use words::Words;

/// A device as a table names it: `253:4`, or a path.
pub type DeviceName = String;

/// A device and the first sector on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The device.
    pub device: DeviceName,
    /// First sector.
    pub start: Sectors,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DmLine {
    /// First sector of the mapped device.
    pub start: Sectors,
    /// Length.
    pub len: Sectors,
    /// The mapping of its bytes.
    pub target: DmTarget,
}

/// A target with its parameters about positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DmTarget {
    /// Moved by a constant: `linear`, and targets for tests that map as it does.
    Linear(At),
    /// Chunk by chunk in turn.
    Striped {
        /// Chunk.
        chunk: Sectors,
        /// Members in order.
        members: Vec<At>,
    },
    /// Encrypted, one to one.
    Crypt {
        /// Device and first sector of data.
        data: At,
        /// Sector of the encryption, bytes.
        sector_bytes: u64,
    },
    /// `raid`: md in the device mapper.
    Raid {
        /// `raid5_ls`, as the table says.
        level: String,
        /// Chunks of parity; copies of each chunk; how parity moves.
        shape: RaidShape,
        /// 0 where the level has none.
        chunk: Sectors,
        /// First sector of data on each member.
        data_offset: Sectors,
        /// Members in order; `None` where one is missing.
        members: Vec<Option<DeviceName>>,
    },
    /// `mirror`: copies.
    Mirror {
        /// The copies.
        members: Vec<At>,
    },
    /// Several ways to one disk.
    Multipath {
        /// The paths, of all groups.
        paths: Vec<DeviceName>,
    },
    /// Blocks for thin volumes.
    ThinPool {
        /// Device with the map.
        metadata: DeviceName,
        /// Device with the blocks.
        data: DeviceName,
        /// Block.
        block: Sectors,
    },
    /// A volume of a pool.
    Thin {
        /// The pool.
        pool: DeviceName,
        /// The device that provides unwritten blocks.
        origin: Option<DeviceName>,
    },
    /// A volume and a cache of blocks in front.
    Cache {
        /// Device with the blocks of the cache.
        cache: DeviceName,
        /// Device with all.
        origin: DeviceName,
        /// Block.
        block: Sectors,
    },
    /// A volume and a cache of writes.
    WriteCache {
        /// Device of the cache.
        cache: DeviceName,
        /// Device with all.
        origin: DeviceName,
        /// Block, bytes.
        block_bytes: u64,
    },
    /// A snapshot: later changes are in separate chunks.
    Snapshot {
        /// Its origin.
        origin: DeviceName,
        /// The device that stores the chunks.
        store: DeviceName,
        /// Chunk.
        chunk: Sectors,
    },
    /// The origin of snapshots, one to one.
    SnapshotOrigin(DeviceName),
    /// Checksums beside the data; only the target knows the positions of the data.
    Integrity {
        /// The device.
        device: DeviceName,
        /// Block that one checksum is of, bytes.
        block_bytes: u64,
    },
    /// Checked against a tree of hashes; data one to one.
    Verity {
        /// Device with the data.
        data: DeviceName,
        /// Block that one hash is of, bytes.
        block_bytes: u64,
    },
    /// `error` and `zero`: nothing is below.
    Nothing,
    /// A target that is not known here, with the devices that its parameters name.
    Other {
        /// Its name.
        kind: String,
        /// The parameters that look like device numbers.
        devices: Vec<DeviceName>,
    },
}

/// The placement of a RAID level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaidShape {
    /// Chunks of parity in each stripe.
    pub parity: u32,
    /// Copies of each chunk.
    pub copies: u32,
    /// How parity moves, where it is one of the four layouts.
    pub layout: Option<ParityLayout>,
}

/// Why a line means nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TableError {
    /// A parameter is missing.
    #[error("the parameters of {kind} end before {expected}")]
    Ends {
        /// The target.
        kind: String,
        /// The expected parameter.
        expected: &'static str,
    },
    /// A wrong parameter.
    #[error("{kind}: found {found:?}, expected {expected}")]
    Found {
        /// The target.
        kind: String,
        /// The value found.
        found: String,
        /// The expected value.
        expected: &'static str,
    },
}

/// Reads `START LEN TYPE PARAMS`.
///
/// # Errors
/// If a number or a parameter about positions is missing or out of range.
pub fn parse_line(text: &str) -> Result<DmLine, TableError> {
    let mut words = Words::new("table", text);
    let (start, len) = (
        words.sectors("the first sector")?,
        words.sectors("the length")?,
    );
    let kind = words.word("the name of a target")?;
    parse(start, len, kind, words.rest())
}

/// Like [`parse_line`], for separate fields.
///
/// # Errors
/// As [`parse_line`].
pub fn parse(start: Sectors, len: Sectors, kind: &str, params: &str) -> Result<DmLine, TableError> {
    let mut words = Words::new(kind, params);
    if start
        .0
        .checked_add(len.0)
        .and_then(|end| Sectors(end).to_bytes())
        .is_none()
    {
        return Err(words.found(&len.0.to_string(), "an end below 2^55 sectors"));
    }
    Ok(DmLine {
        start,
        len,
        target: target(kind, &mut words)?,
    })
}

fn target(kind: &str, words: &mut Words<'_>) -> Result<DmTarget, TableError> {
    Ok(match kind {
        // The last two map as linear does, and fail or wait on the way.
        "linear" | "flakey" | "delay" => DmTarget::Linear(words.at()?),
        "striped" => striped(words)?,
        "crypt" => crypt(words)?,
        "raid" => redundant::raid(words)?,
        "mirror" => redundant::mirror(words)?,
        "multipath" => redundant::multipath(words)?,
        "thin-pool" => DmTarget::ThinPool {
            metadata: words.device("the metadata device")?,
            data: words.device("the data device")?,
            block: words.some_sectors("the block")?,
        },
        "thin" => {
            let pool = words.device("the pool")?;
            words.word("the number of the volume")?;
            DmTarget::Thin {
                pool,
                origin: words.next().filter(|word| *word != "-").map(str::to_owned),
            }
        }
        "cache" => {
            words.device("the metadata device")?;
            DmTarget::Cache {
                cache: words.device("the cache device")?,
                origin: words.device("the origin")?,
                block: words.some_sectors("the block")?,
            }
        }
        "writecache" => {
            words.word("p or s")?;
            DmTarget::WriteCache {
                origin: words.device("the origin")?,
                cache: words.device("the cache device")?,
                block_bytes: words.number("the block")?,
            }
        }
        "snapshot" | "snapshot-merge" => {
            let (origin, store) = (words.device("the origin")?, words.device("the store")?);
            words.word("whether it persists")?;
            DmTarget::Snapshot {
                origin,
                store,
                chunk: words.some_sectors("the chunk")?,
            }
        }
        "snapshot-origin" => DmTarget::SnapshotOrigin(words.device("the origin")?),
        "integrity" => integrity(words)?,
        "verity" => {
            words.word("the version")?;
            let data = words.device("the data device")?;
            words.device("the hash device")?;
            DmTarget::Verity {
                data,
                block_bytes: words.number("the data block")?,
            }
        }
        "error" | "zero" => DmTarget::Nothing,
        _ => DmTarget::Other {
            kind: kind.to_owned(),
            devices: words.device_numbers(),
        },
    })
}

fn striped(words: &mut Words<'_>) -> Result<DmTarget, TableError> {
    let count = words.count("the number of stripes")?;
    let chunk = words.some_sectors("the chunk")?;
    let members = (0..count)
        .map(|_| words.at())
        .collect::<Result<Vec<At>, TableError>>()?;
    Ok(DmTarget::Striped { chunk, members })
}

/// `CIPHER KEY IV_OFFSET DEVICE START [COUNT OPTION…]`.
fn crypt(words: &mut Words<'_>) -> Result<DmTarget, TableError> {
    for expected in ["the cipher", "the key", "the IV offset"] {
        words.word(expected)?;
    }
    let data = words.at()?;
    Ok(DmTarget::Crypt {
        data,
        sector_bytes: words.option("sector_size:").unwrap_or(512),
    })
}

/// `DEVICE RESERVED TAG MODE COUNT OPTION…`.
fn integrity(words: &mut Words<'_>) -> Result<DmTarget, TableError> {
    let device = words.device("the device")?;
    Ok(DmTarget::Integrity {
        device,
        block_bytes: words.option("block_size:").unwrap_or(512),
    })
}
