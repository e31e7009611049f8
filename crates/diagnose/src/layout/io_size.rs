//! How large the I/O of a volume are, as well as anybody knows.

use plumb_geometry::Bytes;
use plumb_profile::Profile;
use plumb_profile::fit::Select;
use plumb_stack::{CellKind, NodeId};
use plumb_trace::Layer;

use super::context::Context;
use crate::finding::{Confidence, Evidence};
use crate::layout::words;
use crate::rules::IOS_MIN;

/// What is taken where nobody knows: the page of most processors and block of most file systems.
pub const ASSUMED_IO: Bytes = Bytes(4096);

/// The size of the usual I/O, which begin at multiples of it.
pub struct IoSize {
    /// The size.
    pub bytes: Bytes,
    /// Who said so.
    pub source: String,
    /// How sure that is.
    pub confidence: Confidence,
}

impl IoSize {
    /// Whether nobody said anything.
    pub fn is_assumed(&self) -> bool {
        self.confidence == Confidence::Low
    }

    /// The size as evidence.
    pub fn evidence(&self) -> Evidence {
        words::bytes("io_bytes", self.bytes, &self.source)
    }
}

impl Context<'_> {
    /// What was recorded of a node: of the device it is, or of the one that it lies on without a gap.
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
            .unwrap_or_else(|| IoSize {
                bytes: ASSUMED_IO,
                source: "assumed: neither a page nor a profile was given".to_owned(),
                confidence: Confidence::Low,
            })
    }

    fn seen_size(&self, id: NodeId) -> Option<IoSize> {
        let profile = self.profile(id, |_| true)?;
        let lengths = profile.places.table.lengths(Select::DATA);
        let seen: u64 = lengths.iter().map(|(_, _, ios)| ios).sum();
        let (length, _, ios) = lengths.into_iter().find(|(_, rounded, _)| !rounded)?;
        (seen >= IOS_MIN).then(|| IoSize {
            bytes: Bytes(length),
            source: format!(
                "commonest of the I/O seen on {}: {ios} of {seen}",
                profile.device
            ),
            confidence: Confidence::High,
        })
    }

    fn stated_size(&self, id: NodeId) -> Option<IoSize> {
        if let Some(page) = self.known.page.filter(|page| page.0 > 0) {
            let source = "page given by the user".to_owned();
            return Some(IoSize {
                bytes: page,
                source,
                confidence: Confidence::High,
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
            source: format!(
                "{} of {}: {}",
                fact.what.text(),
                self.stack.node(id).name,
                fact.source
            ),
            confidence: Confidence::Medium,
        })
    }
}
