//! What a file system has to be told of the stripe below it, when it is made and afterwards.
//!
//! From the true stripe, chunk × members with data: the hints of the kernel are joined with those of the members, and
//! `mkfs` copies them without asking. md RAID 5 of three disks that state 512 KiB shows 524,288 where 131,072 is true.

use std::ops::RangeInclusive;

use plumb_geometry::{Bytes, SECTOR};

use crate::error::PlanError;
use crate::plan::{Harm, Plan, Remedy, Step, Unit};
use crate::shell::word;

/// Largest log stripe unit of XFS (mkfs.xfs(8)).
const XFS_LOG_UNIT_MAX: u64 = 256 << 10;
/// What mkfs.xfs takes instead, above that.
const XFS_LOG_UNIT: u64 = 32 << 10;
/// Stride is a field of 16 bits in blocks (s_raid_stride).
const EXT4_STRIDE_MAX: u64 = u16::MAX as u64;

/// Sectors of btrfs (mkfs.btrfs(8)).
const BTRFS_SECTORS: RangeInclusive<u64> = 4 << 10..=64 << 10;
/// Records of ZFS (zfsprops(7)).
const ZFS_RECORDS: RangeInclusive<u64> = 512..=16 << 20;
/// Records up to here are taken by every pool; longer ones take its feature large_blocks.
const ZFS_SMALL_RECORD_MAX: u64 = 128 << 10;

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
            Type::Btrfs => (BTRFS_SECTORS, "a power of two from 4 KiB to 64 KiB: the sector of btrfs"),
            Type::Ufs => (4 << 10..=8 << 10, "4 KiB or 8 KiB"),
            Type::Zfs => (ZFS_RECORDS, "a power of two from 512 B to 16 MiB"),
        }
    }
}

/// A file system on a stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Kind.
    pub kind: Type,
    /// Where it is, or will be: a device node; for ZFS a pool or data set.
    pub device: String,
    /// Where it is mounted, if it is.
    pub mount: Option<String>,
    /// Chunk of the stripe.
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
    let is_disk = name.strip_prefix('c').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_disk {
        return Ok(());
    }
    let expected = "the name of a pool or of a file system in it, such as tank or tank/db: disks are named where DISK \
                    stands in the command";
    Err(PlanError::OutOfRange { what: "the pool", found: name.to_owned(), expected })
}

/// Whether a tool takes a size, and what it takes in words.
pub(crate) fn check_power(
    what: &'static str,
    size: Bytes,
    of: (RangeInclusive<u64>, &'static str),
) -> Result<(), PlanError> {
    let (range, expected) = of;
    if size.0.is_power_of_two() && range.contains(&size.0) {
        return Ok(());
    }
    Err(PlanError::OutOfRange { what, found: size.to_string(), expected })
}

/// Works out the plan.
///
/// # Errors
/// When the chunk is needed and not given, or is no multiple of the block, or a size is none that the tool takes.
pub fn plan(request: &Request) -> Result<Plan, PlanError> {
    let block = request.block.unwrap_or(request.kind.block());
    if request.kind == Type::Zfs && request.block.is_some() {
        let expected = "none: records of ZFS are as long as the page";
        return Err(PlanError::OutOfRange { what: "the block", found: block.to_string(), expected });
    }
    check_power("the block", block, request.kind.blocks())?;
    let stripe = Stripe::of(request, block)?;
    let mut plan = Plan::new("filesystem", format!("{} on {}", request.kind.word(), request.device));
    if let Some(stripe) = &stripe {
        plan.figure("chunk_bytes", stripe.chunk, Unit::Bytes, "chunk of the stripe");
        plan.figure("data_members", request.data_members, Unit::Count, "members that hold data");
        plan.figure("stripe_bytes", stripe.width, Unit::Bytes, "stripe width: chunk × members with data");
        plan.figure(
            "chunk_blocks",
            stripe.chunk.0 / block.0,
            Unit::Count,
            format!("blocks of {block} in a chunk"),
        );
        plan.figure("stripe_blocks", stripe.width.0 / block.0, Unit::Count, "blocks in the stripe width");
        plan.note(
            "optimal_io_size of a stack is no stripe width: it is joined with the hints of the members. These values \
             are from chunk and members",
        );
    }
    let work = Work { request, block, stripe, device: word(&request.device).into_owned() };
    plan.add(match request.kind {
        Type::Ext4 => work.ext4(),
        Type::Xfs => work.xfs(),
        Type::Btrfs => work.btrfs()?,
        Type::Ufs => work.ufs(),
        Type::Zfs => work.zfs()?,
    });
    plan.note(
        "hints place what is written from now on; they cannot mend a start that is off: check that first",
    );
    Ok(plan)
}

#[derive(Clone, Copy)]
struct Stripe {
    chunk: Bytes,
    width: Bytes,
}

impl Stripe {
    fn of(request: &Request, block: Bytes) -> Result<Option<Stripe>, PlanError> {
        let Some(chunk) = request.chunk else {
            return match request.kind {
                Type::Ext4 | Type::Xfs | Type::Ufs => Err(PlanError::Missing {
                    what: "the chunk of the stripe",
                    give: "give a chunk and its members",
                }),
                Type::Btrfs | Type::Zfs => Ok(None),
            };
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
            return Err(PlanError::NotAMultiple { what, found: chunk, of: "the block", unit: block });
        }
        let width = chunk.checked_mul(request.data_members);
        let width = width.ok_or(PlanError::TooLarge { what: "the stripe width" })?;
        Ok(Some(Stripe { chunk, width }))
    }
}

struct Work<'a> {
    request: &'a Request,
    block: Bytes,
    stripe: Option<Stripe>,
    device: String,
}

const MAKES_NEW: &str = "everything on the device is lost";
const FROM_COPY: &str = "only from a copy";

impl Work<'_> {
    fn recreate(&self, command: String, effect: &str) -> Remedy {
        Remedy::new(Harm::Recreate, "when it is made", effect).step(Step::new(command, MAKES_NEW, FROM_COPY))
    }

    fn ext4(&self) -> Vec<Remedy> {
        let Some(stripe) = self.stripe else { return Vec::new() };
        let (device, block) = (&self.device, self.block.0);
        let (stride, width) = (stripe.chunk.0 / block, stripe.width.0 / block);
        let options = format!("-E stride={stride},stripe_width={width}");
        let effect = "the allocator begins large files at stripes and spreads its bitmaps over the members";
        let verify = Step::look(format!("dumpe2fs -h {device} | grep -i raid"));
        let tune = Remedy::new(Harm::Tune, "on the file system that is there", effect)
            .step(Step::look(format!("dumpe2fs -h {device} | grep -i raid")))
            .step(Step::new(
                format!("tune2fs {options} {device}"),
                "none known: a hint in the superblock",
                "tune2fs -E with the values from before; 0 is none",
            ))
            .step(verify.clone())
            .constraint("for files written from now on");
        let make = self.recreate(format!("mkfs.ext4 -b {block} {options} {device}"), effect).step(verify);
        if stride > EXT4_STRIDE_MAX {
            let why = "a stride has 16 bits: this chunk is too large for the field, leave stride out";
            return vec![tune.constraint(why), make.constraint(why)];
        }
        vec![tune, make]
    }

    fn xfs(&self) -> Vec<Remedy> {
        let Some(stripe) = self.stripe else { return Vec::new() };
        let device = &self.device;
        let (unit, count) = (stripe.chunk.0, self.request.data_members);
        let log = if unit > XFS_LOG_UNIT_MAX { XFS_LOG_UNIT } else { unit };
        let effect = "allocation groups and large files begin on chunks";
        let size = |bytes: u64| {
            if bytes.is_multiple_of(1024) { format!("{}k", bytes / 1024) } else { bytes.to_string() }
        };
        let make = self
            .recreate(
                format!(
                    "mkfs.xfs -b size={} -d su={},sw={count} -l su={} {device}",
                    self.block.0,
                    size(unit),
                    size(log)
                ),
                effect,
            )
            .step(Step::look(format!("xfs_db -r -c 'sb 0' -c 'print unit width' {device}")))
            .constraint(
                "file systems of less than about 1 GiB ignore the stripe, and below 300 MiB none is made",
            );
        let mount = self.request.mount.as_deref().unwrap_or("/MOUNT");
        let options = format!("sunit={},swidth={}", unit / SECTOR, stripe.width.0 / SECTOR);
        let tune = Remedy::new(Harm::Tune, "on the file system that is there", effect)
            .step(Step::look(format!("xfs_info {}", word(mount))))
            .step(Step::new(
                format!("umount {0} && mount -o {options} {device} {0}", word(mount)),
                "unmounts it; a value that does not fit its allocation groups is refused at mount",
                "mount with the values from before",
            ))
            .constraint(
                "sunit and swidth are in sectors of 512 B here; the superblock keeps them from then on",
            )
            .constraint("for files written from now on; allocation groups stay where they are");
        let far = "log stripe units end at 256 KiB: 32 KiB is given instead";
        if unit > XFS_LOG_UNIT_MAX { vec![tune, make.constraint(far)] } else { vec![tune, make] }
    }

    /// Its sector is the block of the file system: nothing shorter is written.
    fn btrfs(&self) -> Result<Vec<Remedy>, PlanError> {
        let physical = self.request.physical.0;
        let least = Bytes(physical.max(*BTRFS_SECTORS.start()));
        let sector = self.request.block.unwrap_or(least);
        check_power("the physical block", least, Type::Btrfs.blocks())?;
        let make = self
            .recreate(
                format!("mkfs.btrfs -s {} -n {} {}", sector.0, sector.0.max(16 << 10), self.device),
                "nodes of 16 KiB or more, on sectors that are physical blocks",
            )
            .constraint("btrfs takes no hint of a stripe, and its own chunks of RAID are 64 KiB, fixed")
            .constraint("sectors above 4 KiB need a kernel that supports them on this page size");
        let part = "sectors shorter than the physical block: writes of one read it first";
        Ok(vec![if sector.0 < physical { make.constraint(part) } else { make }])
    }

    /// `maxcontig` is how many blocks in a row are one I/O.
    fn ufs(&self) -> Vec<Remedy> {
        let Some(stripe) = self.stripe else { return Vec::new() };
        let (device, block) = (&self.device, self.block.0);
        let contiguous = (stripe.width.0 / block).max(1);
        let effect = "sequential I/O are as long as the stripe width; fragments are whole blocks, so pages stay on them";
        let limit = format!("maxphys must be at least {}: see `plumb plan resync`", stripe.width);
        vec![
            Remedy::new(Harm::Tune, "on the file system that is there", effect)
                .step(Step::look(format!("fstyp -v {device} | grep maxcontig")))
                .step(Step::new(
                    format!("tunefs -a {contiguous} {device}"),
                    "none known: a field of the superblock; unmounted",
                    "tunefs -a with the value from before",
                ))
                .constraint(limit.clone())
                .constraint("the fragment size is fixed once the file system is made"),
            self.recreate(format!("newfs -b {block} -f {block} -C {contiguous} {device}"), effect)
                .constraint(limit),
        ]
    }

    fn zfs(&self) -> Result<Vec<Remedy>, PlanError> {
        let expected = "a power of two from 512 B to 64 KiB";
        check_power("the physical block", self.request.physical, (512..=64 << 10, expected))?;
        check_pool(&self.device)?;
        let physical = self.request.physical.0;
        let ashift = physical.trailing_zeros();
        let pool = self.device.split('/').next().unwrap_or("POOL").to_owned();
        let make = self
            .recreate(
                format!("zpool create -o ashift={ashift} {pool} DISK..."),
                "every block of the pool begins on a physical block",
            )
            .step(Step::look(format!("zdb -C {pool} | grep ashift")))
            .constraint(
                "ashift is fixed for each top-level vdev: give it to zpool add, attach and replace as well",
            )
            .constraint(
                "an ashift above the physical block costs space, one below it costs reads before writes",
            );
        let mut ways = vec![make];
        if let Some(page) = self.request.page {
            check_power("the page", page, Type::Zfs.blocks())?;
            let large = "records above 128 KiB take the feature large_blocks of the pool, and those above \
                         zfs_max_recordsize are refused";
            let records = Remedy::new(
                Harm::Tune,
                "records as long as the page",
                "a page is one record: nothing is read first",
            )
            .step(Step::look(format!("zfs get -Hp -o value recordsize {}", self.device)))
            .step(Step::new(
                format!("zfs set recordsize={} {}", page.0, self.device),
                "none: files that exist keep their records",
                "zfs set recordsize with the value from before",
            ))
            .constraint("see `plumb plan record` for the files that exist");
            let is_large = page.0 > ZFS_SMALL_RECORD_MAX;
            ways.push(if is_large { records.constraint(large) } else { records });
        }
        Ok(ways)
    }
}
