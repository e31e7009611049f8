//! What the user knows that neither stack nor profile tells.

use plumb_geometry::Bytes;
use plumb_stack::NodeId;

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
}
