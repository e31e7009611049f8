//! The parameters that a file system needs of the layers below, when it is made and afterwards: the stripe, if there is
//! one, and the physical block.
//!
//! The stripe is the true stripe, chunk × members with data: the hints of the kernel are joined with those of the members, and
//! `mkfs` copies them without asking. md RAID 5 of three disks that state 512 KiB shows 524,288 where 131,072 is true.

mod commands;

use std::ops::RangeInclusive;

use plumb_geometry::Bytes;

use crate::error::PlanError;
use crate::plan::{Plan, Subject, Unit};
use commands::FilesystemWork;

/// Sectors of btrfs (mkfs.btrfs(8)).
const BTRFS_SECTORS: RangeInclusive<u64> = 4 << 10..=64 << 10;
/// Records of ZFS (zfsprops(7)).
const ZFS_RECORDS: RangeInclusive<u64> = 512..=16 << 20;
/// Sectors of XFS (mkfs.xfs(8)).
const XFS_SECTORS: RangeInclusive<u64> = 512..=32 << 10;
/// Shortest node of btrfs that is planned: the usual one (mkfs.btrfs(8)).
const BTRFS_NODE: u64 = 16 << 10;

/// Kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// ext4, as well as ext2 and ext3.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// UFS of Solaris.
    Ufs,
    /// ZFS.
    Zfs,
}

impl Type {
    /// Its name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Type::Ext4 => "ext4",
            Type::Xfs => "xfs",
            Type::Btrfs => "btrfs",
            Type::Ufs => "ufs",
            Type::Zfs => "zfs",
        }
    }

    const fn block(self) -> Bytes {
        match self {
            Type::Ufs => Bytes(8192),
            Type::Ext4 | Type::Xfs | Type::Btrfs | Type::Zfs => Bytes(4096),
        }
    }

    /// The blocks that its tool takes, powers of two all of them, and the same in words.
    pub(crate) const fn blocks(self) -> (RangeInclusive<u64>, &'static str) {
        match self {
            Type::Ext4 => (1 << 10..=64 << 10, "a power of two from 1 KiB to 64 KiB"),
            Type::Xfs => (512..=64 << 10, "a power of two from 512 B to 64 KiB"),
            Type::Btrfs => (
                BTRFS_SECTORS,
                "a power of two from 4 KiB to 64 KiB: the sector of btrfs",
            ),
            Type::Ufs => (4 << 10..=8 << 10, "4 KiB or 8 KiB"),
            Type::Zfs => (ZFS_RECORDS, "a power of two from 512 B to 16 MiB"),
        }
    }
}

/// A file system, on a stripe or without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesystemRequest {
    /// Kind.
    pub kind: Type,
    /// Its device node; for ZFS a pool or data set.
    pub device: String,
    /// Its mount point, if it is mounted.
    pub mount: Option<String>,
    /// Chunk of the stripe; `None` without a stripe.
    pub chunk: Option<Bytes>,
    /// Members that hold data: members without parity, and each copy once.
    pub data_members: u64,
    /// Block of the file system; the usual one when not given.
    pub block: Option<Bytes>,
    /// Physical block or larger unit of the disks: ashift of ZFS, sector of btrfs.
    pub physical: Bytes,
    /// Page of the database on it.
    pub page: Option<Bytes>,
}

/// Pools have names that begin with a letter, and none like that of a Solaris disk (zpool-create(8)).
fn check_pool(name: &str) -> Result<(), PlanError> {
    let is_disk = name
        .strip_prefix('c')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_disk {
        return Ok(());
    }
    let expected = "the name of a pool or of a file system in it, such as tank or tank/db: the disks replace DISK in \
                    the command";
    Err(PlanError::OutOfRange {
        what: "the pool",
        found: name.to_owned(),
        expected,
    })
}

/// Whether a tool accepts a size, and the accepted sizes in words.
pub(crate) fn check_power(
    what: &'static str,
    size: Bytes,
    of: (RangeInclusive<u64>, &'static str),
) -> Result<(), PlanError> {
    let (range, expected) = of;
    if size.0.is_power_of_two() && range.contains(&size.0) {
        return Ok(());
    }
    Err(PlanError::OutOfRange {
        what,
        found: size.to_string(),
        expected,
    })
}

/// Works out the plan.
///
/// # Errors
/// When the chunk is no multiple of the block, or a size is none that the tool takes.
pub fn plan(request: &FilesystemRequest) -> Result<Plan, PlanError> {
    let block = block(request)?;
    check_page(request)?;
    let stripe = Stripe::from_request(request, block)?;
    let mut plan = Plan::new(
        "filesystem",
        format!("{} on {}", request.kind.word(), request.device),
    );
    plan.subject = Some(Subject {
        device: request.device.clone(),
        number: None,
    });
    block_figures(&mut plan, request, block);
    if let Some(stripe) = &stripe {
        stripe_figures(&mut plan, request, block, stripe);
    }
    let work = FilesystemWork {
        request,
        block,
        stripe,
        device: &request.device,
    };
    plan.add(match request.kind {
        Type::Ext4 => work.ext4(),
        Type::Xfs => work.xfs(),
        Type::Btrfs => work.btrfs(),
        Type::Ufs => work.ufs(),
        Type::Zfs => work.zfs()?,
    });
    if request.mount.is_some() && !work.needs_mount() {
        plan.note("none of these commands needs the mount point");
    }
    notes(&mut plan, request, block);
    Ok(plan)
}

/// The block of the file system; of btrfs its sector, of ZFS the least that it writes.
fn block(request: &FilesystemRequest) -> Result<Bytes, PlanError> {
    let kind = request.kind;
    let usual = match kind {
        Type::Ext4 | Type::Xfs | Type::Ufs => kind.block(),
        // Nothing shorter is written.
        Type::Btrfs => {
            let least = request.physical.max(kind.block());
            check_power("the physical block", least, kind.blocks())?;
            least
        }
        Type::Zfs => {
            let expected = "a power of two from 512 B to 64 KiB";
            check_power(
                "the physical block",
                request.physical,
                (512..=64 << 10, expected),
            )?;
            request.physical
        }
    };
    let Some(block) = request.block else {
        return Ok(usual);
    };
    if kind == Type::Zfs {
        let expected = "none: records of ZFS are as long as the page";
        return Err(PlanError::OutOfRange {
            what: "the block",
            found: block.to_string(),
            expected,
        });
    }
    check_power("the block", block, kind.blocks())?;
    Ok(block)
}

fn check_page(request: &FilesystemRequest) -> Result<(), PlanError> {
    match (request.kind, request.page) {
        (Type::Zfs, Some(page)) => check_power("the page", page, Type::Zfs.blocks()),
        (_, Some(Bytes(0))) => {
            let expected = "at least one sector of 512 B";
            Err(PlanError::OutOfRange {
                what: "the page",
                found: "0".to_owned(),
                expected,
            })
        }
        _ => Ok(()),
    }
}

/// The sector of XFS, the unit of the log and the headers, and no longer than the block.
fn xfs_sector(request: &FilesystemRequest, block: Bytes) -> u64 {
    request
        .physical
        .0
        .clamp(*XFS_SECTORS.start(), *XFS_SECTORS.end())
        .min(block.0)
}

fn block_figures(plan: &mut Plan, request: &FilesystemRequest, block: Bytes) {
    let words = match request.kind {
        Type::Btrfs => "sector of the file system",
        Type::Zfs => "shortest write of the pool: 2^ashift",
        Type::Ext4 | Type::Xfs | Type::Ufs => "block of the file system",
    };
    plan.figure("block_bytes", block, Unit::Bytes, words);
    match request.kind {
        Type::Xfs => {
            let sector = xfs_sector(request, block);
            plan.figure(
                "sector_bytes",
                sector,
                Unit::Bytes,
                "sector of the file system",
            );
        }
        Type::Btrfs => {
            plan.figure(
                "node_bytes",
                block.0.max(BTRFS_NODE),
                Unit::Bytes,
                "node of its trees",
            );
        }
        Type::Ext4 | Type::Ufs | Type::Zfs => {}
    }
    plan.figure(
        "physical_bytes",
        request.physical,
        Unit::Bytes,
        "physical block of the disks",
    );
    if let Some(page) = request.page {
        plan.figure("page_bytes", page, Unit::Bytes, "page of the database");
    }
}

fn stripe_figures(plan: &mut Plan, request: &FilesystemRequest, block: Bytes, stripe: &Stripe) {
    plan.figure(
        "chunk_bytes",
        stripe.chunk,
        Unit::Bytes,
        "chunk of the stripe",
    );
    plan.figure(
        "data_members",
        request.data_members,
        Unit::Count,
        "members that hold data",
    );
    plan.figure(
        "stripe_bytes",
        stripe.width,
        Unit::Bytes,
        "stripe width: chunk × members with data",
    );
    let words = format!("blocks of {block} in a chunk");
    plan.figure("chunk_blocks", stripe.chunk.0 / block.0, Unit::Count, words);
    plan.figure(
        "stripe_blocks",
        stripe.width.0 / block.0,
        Unit::Count,
        "blocks in the stripe width",
    );
    plan.note(
        "optimal_io_size of a stack is no stripe width: it is joined with the hints of the members. These values \
         are from chunk and members",
    );
}

fn notes(plan: &mut Plan, request: &FilesystemRequest, block: Bytes) {
    if let Some(page) = request.page.filter(|page| !page.0.is_multiple_of(block.0)) {
        plan.note(format!(
            "a page of {page} is no multiple of {block}: the last block is read before a part of it is written, unless \
             it is in the cache"
        ));
    }
    let takes_stripe = matches!(request.kind, Type::Ext4 | Type::Xfs | Type::Ufs);
    if takes_stripe && request.chunk.is_none() {
        plan.note(
            "no stripe was given, so the command sets none: right on one disk and on a mirror. On any other array give its \
             chunk and its members",
        );
    }
    plan.note(match request.chunk {
        Some(_) => {
            "hints place data that are written from now on; they cannot correct a misaligned start: check that first"
        }
        None => "blocks are aligned with those of the disk only if the device starts on one: check that first",
    });
}

#[derive(Clone, Copy)]
struct Stripe {
    chunk: Bytes,
    width: Bytes,
}

impl Stripe {
    fn from_request(
        request: &FilesystemRequest,
        block: Bytes,
    ) -> Result<Option<Stripe>, PlanError> {
        let Some(chunk) = request.chunk else {
            return Ok(None);
        };
        if request.data_members == 0 {
            let expected = "at least 1: members less those that hold parity";
            return Err(PlanError::OutOfRange {
                what: "the members with data",
                found: "0".to_owned(),
                expected,
            });
        }
        if chunk.0 == 0 || !chunk.0.is_multiple_of(block.0) {
            let what = "the chunk";
            return Err(PlanError::NotAMultiple {
                what,
                found: chunk,
                of: "the block",
                unit: block,
            });
        }
        let width = chunk.checked_mul(request.data_members);
        let width = width.ok_or(PlanError::TooLarge {
            what: "the stripe width",
        })?;
        Ok(Some(Stripe { chunk, width }))
    }
}
