//! The size of the I/O of a volume, as well as anything states it.

use plumb_geometry::Bytes;
use plumb_model::{IoSize, IoSizeBasis};
use plumb_profile::Profile;
use plumb_profile::fit::Select;
use plumb_stack::{CellKind, NodeId};
use plumb_trace::Layer;

use super::context::Context;
use crate::rules::IOS_MIN;

/// The size to assume where nothing states it: the page of most processors and block of most file systems.
pub const ASSUMED_IO: Bytes = Bytes(4096);

impl Context<'_> {
    /// The recording of a node: of its device, or of the device below it without a gap.
    pub fn profile(&self, id: NodeId, wanted: impl Fn(Layer) -> bool) -> Option<&Profile> {
        let of = |id: NodeId| {
            self.profiles(id)
                .iter()
                .copied()
                .find(|profile| wanted(profile.layer))
        };
        of(id).or_else(|| of(self.device_of(id)))
    }

    /// The commonest I/O seen, else the page given, else a page or record stated by the node itself, else 4 KiB.
    pub fn io_size(&self, id: NodeId) -> IoSize {
        self.seen_size(id)
            .or_else(|| self.stated_size(id))
            .unwrap_or(IoSize {
                bytes: ASSUMED_IO,
                basis: IoSizeBasis::Assumed,
            })
    }

    fn seen_size(&self, id: NodeId) -> Option<IoSize> {
        let profile = self.profile(id, |_| true)?;
        let table = &profile.places.table;
        let seen = table.count(Select::DATA);
        let (length, ios) = table.commonest_length(Select::DATA)?;
        (seen >= IOS_MIN).then(|| IoSize {
            bytes: Bytes(length),
            basis: IoSizeBasis::Seen {
                on: profile.device.clone(),
                ios,
                of: seen,
            },
        })
    }

    fn stated_size(&self, id: NodeId) -> Option<IoSize> {
        if let Some(page) = self.known.page.filter(|page| page.0 > 0) {
            return Some(IoSize {
                bytes: page,
                basis: IoSizeBasis::Given,
            });
        }
        let grids = &self.stack.node(id).grids;
        let stated = |what: CellKind| {
            grids
                .iter()
                .find(move |fact| fact.what == what && fact.is_believed())
        };
        let fact = stated(CellKind::Page).or_else(|| stated(CellKind::Record))?;
        Some(IoSize {
            bytes: fact.granularity(),
            basis: IoSizeBasis::Stated {
                on: self.name(id).to_owned(),
                what: fact.what,
                source: fact.source.clone(),
            },
        })
    }
}
