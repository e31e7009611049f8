//! The system's facts about a disk beyond its bytes. A trait, so that the simulation can make situations that no test
//! could make on a real host.

use std::io;
use std::path::Path;

use plumb_geometry::Grid;
use plumb_sys::{KernelPartition, Limits};

use super::identity::Attachment;
use super::journal_place::{JournalPlaceError, JournalSite};

/// The system around a partition that is to be moved. Each answer is that of the moment in which it is asked for.
pub trait Host {
    /// Everything that uses the partition, in words: mounts, volumes, arrays, paging.
    fn partition_users(&self) -> Vec<String>;

    /// Everything that uses its disk as a whole, and not by way of a partition.
    fn disk_users(&self) -> Vec<String>;

    /// Processes that can write to the disk as a whole or to the partition, in words: a virtual machine or a database on a
    /// raw device shows nothing else.
    ///
    /// # Errors
    /// The error of the system.
    fn writers(&self) -> io::Result<Vec<String>>;

    /// Everything that uses another partition of the disk or has it open, by its number.
    fn neighbour_users(&self, number: u32) -> Vec<String>;

    /// Partitions of the disk that the kernel knows, containers of logical ones included.
    ///
    /// # Errors
    /// The error of the system.
    fn partitions(&self) -> io::Result<Vec<KernelPartition>>;

    /// Whether the disk is set read-only: it may open for writing all the same, and fail at the first write.
    fn is_read_only(&self) -> bool;

    /// Whether the host has to write its zones in order, from their beginning.
    fn has_ordered_zones(&self) -> bool;

    /// Size and blocks of the disk.
    fn limits(&self) -> Limits;

    /// Blocks that the layers below write as a whole, in bytes of the disk.
    fn write_units(&self) -> Vec<Grid>;

    /// World Wide Name, serial number or the like of the disk; empty where it has none.
    fn identity(&self) -> String;

    /// The kernel's number of the disk.
    fn attachment(&self) -> Option<Attachment>;

    /// The physical disks below the partition, by the kernel's names.
    fn disks(&self) -> Vec<String>;

    /// The devices below the directory of a journal.
    ///
    /// # Errors
    /// Why that cannot be known.
    fn journal_site(&self, journal: &Path) -> Result<JournalSite, JournalPlaceError>;
}
