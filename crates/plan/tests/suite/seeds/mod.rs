//! The numbers of the documents that Plumb grew out of, typed from there, and their slips shown as slips: 000 on labels
//! and alignment, 001 on records, 002 on offsets, 003 on volumes, 004 on numbers of disks.

mod disks;
mod starts;
mod volumes;

const KIB: u64 = 1024;
