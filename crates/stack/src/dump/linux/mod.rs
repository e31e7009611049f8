//! Output of Linux tools about disks, volumes and file systems, and of ZFS on any host.
//!
//! Labels come from [`sfdisk`], [`fdisk`], [`parted`] and [`sgdisk`], all of which give a [`label`]. [`lsblk`] lists
//! the layers, with numbers, but places only partitions; [`dmsetup`], [`lvm`], [`mdstat`] and [`mdadm`] place volumes.
//! None is complete alone, so everything is placed after the last dump: see [`join`].

mod dmsetup;
mod e2fs;
mod fdisk;
mod iostat;
mod label;
mod limits;
mod lsblk;
mod lvm;
mod lvm_place;
mod md;
mod mdadm;
mod mdstat;
mod mounts;
mod multipath;
mod names;
mod nvme;
mod parted;
mod pending;
mod sfdisk;
mod sgdisk;
mod units;
mod xfs_info;
mod zdb;
mod zfs;
mod zfs_get;
mod zpool_status;

use super::Format;
use crate::builder::Builder;

pub(crate) use nvme::identify;
pub(crate) use pending::PendingLinux;

/// The formats, from the narrow to the wide.
pub(super) static FORMATS: &[&Format] = &[
    &lsblk::FORMAT,
    &sfdisk::JSON,
    &lvm::FORMAT,
    &sfdisk::FORMAT,
    &sgdisk::FORMAT,
    &parted::MACHINE,
    &parted::FORMAT,
    &fdisk::FORMAT,
    &mdstat::FORMAT,
    &mdadm::DETAIL,
    &mdadm::EXAMINE,
    &multipath::FORMAT,
    &zpool_status::FORMAT,
    &zdb::FORMAT,
    &zfs_get::FORMAT,
    &xfs_info::FORMAT,
    &e2fs::FORMAT,
    &nvme::FORMAT,
    &iostat::FORMAT,
    &dmsetup::FORMAT,
    &mounts::FINDMNT,
    &mounts::MOUNTS,
    &mounts::MOUNT,
];

/// Places everything that needs more than one dump. Labels come first, because only they may state sectors; then dumps
/// with positions of volumes; then dumps with layers only; last, undescribed devices become unknown.
pub(super) fn join(builder: &mut Builder) {
    label::place_all(builder);
    dmsetup::place_all(builder);
    lvm_place::place_all(builder);
    md::place_all(builder);
    lsblk::place_rest(builder);
    mounts::place_all(builder);
    iostat::tell_all(builder);
    zfs::place_all(builder);
    names::tell_undescribed(builder);
}
