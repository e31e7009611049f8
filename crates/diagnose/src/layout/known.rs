//! Facts that only the user has, neither stack nor profile.

use plumb_geometry::Bytes;
use plumb_stack::NodeId;

/// A look at the devices of a stack, whose profiles are handed over beside it. A device without a profile was not looked at;
/// one that had no I/O has an empty one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watch {
    /// How long it took.
    pub seconds: f64,
    /// The senders of I/O.
    pub senders: Vec<Sender>,
}

/// I/O that a process sent to a disk or partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The disk or partition.
    pub device: String,
    /// Command of the process.
    pub comm: String,
    /// I/O.
    pub ios: u64,
    /// Page faults of the process during the watch that waited for a disk, of any device.
    pub faults: u64,
}

/// Each absent where nobody said anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// Size of the usual I/O, which begin at multiples of it: a database page.
    pub page: Option<Bytes>,
    /// Segment of the hardware arrays below, where the stack states none.
    pub segment: Option<Bytes>,
    /// I/O a second that are asked of a volume, or will be.
    pub ios_per_second: Option<f64>,
    /// Of these the share of writes, 0 to 1; the worst, all of them, where not given.
    pub write_share: Option<f64>,
    /// The volume that they are asked of; the only one with disks below where not given.
    pub volume: Option<NodeId>,
    /// I/O a second that one disk gives.
    pub disk_ios_per_second: Option<f64>,
    /// Longest mean response time that will do, ns.
    pub response_ns: Option<f64>,
    /// How the profiles came about, where they are of this very time.
    pub watch: Option<Watch>,
}
