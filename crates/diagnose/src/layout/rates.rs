//! I/O a second of a device, as somebody counted them: iostat, or a profile by its mean.

use plumb_model::facts::RateBasis;
use plumb_profile::Profile;
use plumb_stack::NodeId;
use plumb_stack::node::keys;
use plumb_trace::Op;

use super::context::Context;

/// The rate of a device.
pub(super) struct Rate {
    /// I/O a second.
    pub(super) ios_per_second: f64,
    /// Of these the share of writes, if that was counted.
    pub(super) write_share: Option<f64>,
    /// The source of the count.
    pub(super) basis: RateBasis,
    /// First and last I/O of a profile, ns of its clock. iostat has one time for all devices.
    window_ns: Option<(i64, i64)>,
}

impl Rate {
    /// Finds the rate that iostat printed for a device, or else the rate that was recorded.
    pub(super) fn find(context: &Context<'_>, id: NodeId) -> Option<Rate> {
        Rate::printed(context, id).or_else(|| Rate::seen(context.profiles(id).first()?))
    }

    fn printed(context: &Context<'_>, id: NodeId) -> Option<Rate> {
        let node = context.stack.node(id);
        let number = |key| node.number(key).filter(|rate: &f64| rate.is_finite());
        let ios_per_second = number(keys::IOS_PER_SECOND).filter(|rate| *rate > 0.0)?;
        let writes = number(keys::WRITES_PER_SECOND).filter(|writes| *writes >= 0.0);
        Some(Rate {
            ios_per_second,
            write_share: writes.map(|writes| (writes / ios_per_second).min(1.0)),
            basis: RateBasis::Printed {
                source: node.fact(keys::IOS_PER_SECOND)?.source.clone(),
            },
            window_ns: None,
        })
    }

    /// The mean over a profile; `None` where it has no span.
    pub(super) fn seen(profile: &Profile) -> Option<Rate> {
        let (first, last) = (profile.first_ns?, profile.last_ns?);
        let span_ns = last.checked_sub(first).filter(|span| *span > 0)?;
        let (ios, writes) = (profile.ios(), profile.op(Op::Write).ios);
        (ios > 0).then(|| Rate {
            ios_per_second: ios as f64 * 1e9 / span_ns as f64,
            write_share: Some(writes as f64 / ios as f64),
            basis: RateBasis::Profile {
                on: profile.device.clone(),
                layer: profile.layer,
            },
            window_ns: Some((first, last)),
        })
    }

    /// Whether two were counted at one time, so that they can be one load: both by iostat, or in windows that meet.
    pub(super) fn is_of_one_time(&self, other: &Rate) -> bool {
        match (self.window_ns, other.window_ns) {
            (None, None) => true,
            (Some(one), Some(other)) => one.0 <= other.1 && other.0 <= one.1,
            _ => false,
        }
    }
}
