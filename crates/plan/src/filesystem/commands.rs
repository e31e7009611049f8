//! The commands that make each kind of file system, and those that tune one that is there.

use plumb_geometry::{Bytes, SECTOR};
use plumb_model::action::FileSystemKind;
use plumb_model::{Action, DeviceRef};
use plumb_quoting::Command;
use plumb_quoting::names::ZFS;

use super::{BTRFS_NODE, FilesystemRequest, Stripe, Type, check_pool, xfs_sector};
use crate::error::PlanError;
use crate::plan::{Harm, Remedy, Step};

/// Largest log stripe unit of XFS (mkfs.xfs(8)).
const XFS_LOG_UNIT_MAX: u64 = 256 << 10;
/// mkfs.xfs uses this instead, above that.
const XFS_LOG_UNIT: u64 = 32 << 10;
/// Stride is a field of 16 bits in blocks (s_raid_stride).
const EXT4_STRIDE_MAX: u64 = u16::MAX as u64;
/// Records up to here are taken by every pool; longer ones take its feature large_blocks.
const ZFS_SMALL_RECORD_MAX: u64 = 128 << 10;

/// A request with the values computed from it.
pub(super) struct FilesystemWork<'a> {
    pub(super) request: &'a FilesystemRequest,
    pub(super) block: Bytes,
    pub(super) stripe: Option<Stripe>,
    pub(super) device: &'a str,
}

const MAKES_NEW: &str = "everything on the device is lost";
const FROM_COPY: &str = "only from a copy";
const SHORT_BLOCK: &str = "blocks shorter than the physical block: writes of one read it first";

impl FilesystemWork<'_> {
    fn recreate(&self, command: Command, effect: &str) -> Remedy {
        let make = Remedy::new(Harm::Recreate, "when it is made", effect);
        let remade = self.kind().map(|kind| Action::RecreateFileSystem {
            device: self.device_ref(),
            kind,
            block_bytes: self.block,
            unit_bytes: self.stripe.map(|stripe| stripe.chunk),
            width_bytes: self.stripe.map(|stripe| stripe.width),
        });
        let make = make.action(remade);
        let make = make.step(Step::new(command, MAKES_NEW, FROM_COPY));
        if self.block < self.request.physical {
            make.constraint(SHORT_BLOCK)
        } else {
            make
        }
    }

    fn kind(&self) -> Option<FileSystemKind> {
        match self.request.kind {
            Type::Ext4 => Some(FileSystemKind::Ext),
            Type::Xfs => Some(FileSystemKind::Xfs),
            Type::Btrfs => Some(FileSystemKind::Btrfs),
            Type::Ufs => Some(FileSystemKind::Ufs),
            Type::Zfs => None,
        }
    }

    fn device_ref(&self) -> DeviceRef {
        DeviceRef::named(self.device.to_owned())
    }

    /// The change of a hint. The present hint of the file system is not part of the request.
    fn hint(&self) -> Option<Action> {
        let stripe = self.stripe?;
        Some(Action::TuneFileSystem {
            device: self.device_ref(),
            kind: self.kind()?,
            mount: self.request.mount.clone(),
            block_bytes: self.block,
            unit_bytes: stripe.chunk,
            width_bytes: stripe.width,
            was_unit_bytes: None,
            was_width_bytes: None,
        })
    }

    fn mount(&self) -> &str {
        self.request.mount.as_deref().unwrap_or("/MOUNT")
    }

    fn on_device(&self, command: &'static str) -> Command {
        Command::new(command).path(self.device)
    }

    /// Whether a command names the directory where the file system is mounted.
    pub(super) fn needs_mount(&self) -> bool {
        match self.request.kind {
            Type::Xfs => self.stripe.is_some(),
            Type::Btrfs => self.request.page.is_some(),
            Type::Ext4 | Type::Ufs | Type::Zfs => false,
        }
    }

    pub(super) fn ext4(&self) -> Vec<Remedy> {
        let block = self.block.0;
        let make = || Command::new("mkfs.ext4 -b").arg(block);
        let look = |what: &'static str| {
            Step::look(
                self.on_device("dumpe2fs -h")
                    .pipe(Command::new("grep -i").arg(what)),
            )
        };
        let Some(stripe) = self.stripe else {
            let effect = format!("files begin on blocks of {}", self.block);
            let make = self.recreate(make().path(self.device), &effect);
            return vec![make.step(look("block size"))];
        };
        let (stride, width) = (stripe.chunk.0 / block, stripe.width.0 / block);
        let hinted = |command: Command| {
            command
                .flags("-E")
                .arg(format!("stride={stride},stripe_width={width}"))
                .path(self.device)
        };
        let effect =
            "the allocator begins large files at stripes and spreads its bitmaps over the members";
        let tune = Remedy::new(Harm::Tune, "on the file system that is there", effect)
            .action(self.hint().filter(|_| stride <= EXT4_STRIDE_MAX))
            .step(look("raid"))
            .step(Step::new(
                hinted(Command::new("tune2fs")),
                "none known: a hint in the superblock",
                "tune2fs -E with the values from before; 0 is none",
            ))
            .step(look("raid"))
            .constraint("for files written from now on");
        let make = self.recreate(hinted(make()), effect).step(look("raid"));
        if stride > EXT4_STRIDE_MAX {
            let why =
                "a stride has 16 bits: this chunk is too large for the field, leave stride out";
            return vec![tune.constraint(why), make.constraint(why)];
        }
        vec![tune, make]
    }

    pub(super) fn xfs(&self) -> Vec<Remedy> {
        let block = self.block.0;
        let make = || Command::new("mkfs.xfs -b").arg(format!("size={block}"));
        let Some(stripe) = self.stripe else {
            let sector = xfs_sector(self.request, self.block);
            let command = make()
                .flags("-s")
                .arg(format!("size={sector}"))
                .path(self.device);
            let look =
                Step::look(self.on_device("xfs_db -r -c 'sb 0' -c 'print blocksize sectsize'"));
            let effect = format!(
                "files begin on blocks of {}, log and headers on sectors of {}",
                self.block,
                Bytes(sector)
            );
            return vec![self.recreate(command, &effect).step(look)];
        };
        let (unit, count) = (stripe.chunk.0, self.request.data_members);
        // A stripe unit of the log is a multiple of the block.
        let log = if unit > XFS_LOG_UNIT_MAX {
            XFS_LOG_UNIT.max(block)
        } else {
            unit
        };
        let effect = "allocation groups and large files begin on chunks";
        let size = |bytes: u64| {
            if bytes.is_multiple_of(1024) {
                format!("{}k", bytes / 1024)
            } else {
                bytes.to_string()
            }
        };
        let make = self
            .recreate(
                make()
                    .flags("-d")
                    .arg(format!("su={},sw={count}", size(unit)))
                    .flags("-l")
                    .arg(format!("su={}", size(log)))
                    .path(self.device),
                effect,
            )
            .step(Step::look(self.on_device("xfs_db -r -c 'sb 0' -c 'print unit width'")))
            .constraint(
                "file systems of less than about 1 GiB ignore the stripe, and below 300 MiB none is made",
            );
        let mount = self.mount();
        let options = format!("sunit={},swidth={}", unit / SECTOR, stripe.width.0 / SECTOR);
        let tune = Remedy::new(Harm::Tune, "on the file system that is there", effect)
            .action(self.hint())
            .step(Step::look(Command::new("xfs_info").path(mount)))
            .step(Step::new(
                Command::new("umount").path(mount).and(
                    Command::new("mount -o")
                        .arg(options)
                        .path(self.device)
                        .path(mount),
                ),
                "unmounts it; mount refuses a value that does not fit its allocation groups, and any where xfs_info says sunit=0",
                "mount with the values from before",
            ))
            .constraint(
                "sunit and swidth are in sectors of 512 B here; the superblock keeps them from then on",
            )
            .constraint("for files written from now on; allocation groups stay where they are");
        let far = "log stripe units end at 256 KiB: 32 KiB is given instead";
        if unit > XFS_LOG_UNIT_MAX {
            vec![tune, make.constraint(far)]
        } else {
            vec![tune, make]
        }
    }

    pub(super) fn btrfs(&self) -> Vec<Remedy> {
        let (sector, node) = (self.block.0, self.block.0.max(BTRFS_NODE));
        let make = self
            .recreate(
                Command::new("mkfs.btrfs -s")
                    .arg(sector)
                    .flags("-n")
                    .arg(node)
                    .path(self.device),
                "nodes of 16 KiB or more, on sectors that are physical blocks",
            )
            .constraint(
                "btrfs takes no hint of a stripe, and its own chunks of RAID are 64 KiB, fixed",
            )
            .constraint("sectors above 4 KiB need a kernel that supports them on this page size");
        let mut ways = vec![make];
        ways.extend(self.request.page.map(|_| self.in_place()));
        ways
    }

    /// Pages of a database stay where they are (btrfs(5), `nodatacow`; chattr(1), `C`).
    fn in_place(&self) -> Remedy {
        let directory = format!("{}/DIRECTORY", self.mount());
        Remedy::new(
            Harm::Tune,
            "pages are written over in place",
            "a changed page stays where it is, and files in one piece stay so",
        )
        .step(Step::look(Command::new("lsattr -d").path(&directory)))
        .step(Step::new(
            Command::new("chattr +C").path(&directory),
            "files that are made there from then on have no checksums and are not compressed",
            Command::new("chattr -C").path(&directory),
        ))
        .constraint(
            "DIRECTORY is that of the database, and empty: a file keeps the record size that it was created with",
        )
        .constraint("blocks in a snapshot are written elsewhere once, all the same")
    }

    /// `maxcontig` is how many blocks in a row are one I/O.
    pub(super) fn ufs(&self) -> Vec<Remedy> {
        let block = self.block.0;
        let make = || Command::new("newfs -b").arg(block).flags("-f").arg(block);
        let Some(stripe) = self.stripe else {
            let whole = "fragments are whole blocks, so pages stay on them";
            return vec![self.recreate(make().path(self.device), whole)];
        };
        let contiguous = (stripe.width.0 / block).max(1);
        let effect = "sequential I/O are as long as the stripe width; fragments are whole blocks, so pages stay on them";
        let limit = format!(
            "maxphys must be at least {}: see `plumb plan resync`",
            stripe.width
        );
        vec![
            Remedy::new(Harm::Tune, "on the file system that is there", effect)
                .step(Step::look(
                    self.on_device("fstyp -v")
                        .pipe(Command::new("grep maxcontig")),
                ))
                .step(Step::new(
                    Command::new("tunefs -a").arg(contiguous).path(self.device),
                    "none known: a field of the superblock; unmounted",
                    "tunefs -a with the value from before",
                ))
                .constraint(limit.clone())
                .constraint("the fragment size is fixed once the file system is made"),
            self.recreate(make().flags("-C").arg(contiguous).path(self.device), effect)
                .constraint(limit),
        ]
    }

    pub(super) fn zfs(&self) -> Result<Vec<Remedy>, PlanError> {
        check_pool(self.device)?;
        let ashift = self.block.0.trailing_zeros();
        let pool = self.device.split('/').next().unwrap_or("POOL");
        let make = self
            .recreate(
                Command::new("zpool create -o")
                    .arg(format!("ashift={ashift}"))
                    .name(ZFS, pool)
                    .flags("DISK..."),
                "every block of the pool begins on a physical block",
            )
            .step(Step::look(
                Command::new("zdb -C")
                    .name(ZFS, pool)
                    .pipe(Command::new("grep ashift")),
            ))
            .constraint(
                "ashift is fixed for each top-level vdev: give it to zpool add, attach and replace as well",
            )
            .constraint(
                "an ashift above the physical block costs space, one below it costs reads before writes",
            );
        let mut ways = vec![make];
        if let Some(page) = self.request.page {
            let large = "records above 128 KiB take the feature large_blocks of the pool, and those above \
                         zfs_max_recordsize are refused";
            let records = Remedy::new(
                Harm::Tune,
                "records as long as the page",
                "a page is one record: nothing is read first",
            )
            .step(Step::look(
                Command::new("zfs get -Hp -o value recordsize").name(ZFS, self.device),
            ))
            .step(Step::new(
                Command::new("zfs set")
                    .arg(format!("recordsize={}", page.0))
                    .name(ZFS, self.device),
                "files that exist keep their records",
                "zfs set recordsize with the value from before",
            ))
            .constraint("see `plumb plan record` for the files that exist");
            let is_large = page.0 > ZFS_SMALL_RECORD_MAX;
            ways.push(if is_large {
                records.constraint(large)
            } else {
                records
            });
        }
        Ok(ways)
    }
}
