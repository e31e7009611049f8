//! Output of Solaris about its disks and volumes.
//!
//! Volumes of Solaris Volume Manager come from [`md_tab`] (`metastat -p`, md.tab), [`metainit`] and [`metastat`], all
//! of which give a [`volume`]; labels of disks from [`prtvtoc`] and [`format`], which give a [`label`]. Positions are
//! computed after the last dump, in [`layout`].

mod format;
mod iostat;
mod label;
mod layout;
mod md_tab;
mod metadb;
mod metainit;
mod metastat;
mod mounts;
mod names;
mod prtvtoc;
mod system;
mod table;
mod units;
mod volume;
mod vxdisk;
mod vxprint;

use super::Format;
use crate::builder::Builder;

pub(crate) use volume::PendingSolaris;

/// The formats, from the narrow to the wide.
pub(super) static FORMATS: &[&Format] = &[
    &metastat::FORMAT,
    &metadb::FORMAT,
    &format::FORMAT,
    &iostat::FORMAT,
    &vxdisk::FORMAT,
    &vxprint::FORMAT,
    &prtvtoc::FORMAT,
    &metainit::FORMAT,
    &md_tab::FORMAT,
    &mounts::MNTTAB,
    &mounts::VFSTAB,
    &mounts::MOUNT,
    &system::MD_CONF,
    &system::SYSTEM,
];

/// Places the volumes, connects slices with their disks, and tells of file systems that are to be mounted.
pub(super) fn join(builder: &mut Builder) {
    layout::place_all(builder);
    mounts::tell_planned(builder);
}
