//! A volume of Solaris Volume Manager as any of its tools describes it.
//!
//! Descriptions complete each other: `metastat -p` has no sizes, `md.tab` no starts, and a concatenation needs the
//! slices that `prtvtoc` shows. So readers [`declare`] volumes, and [`super::layout`] places them after the last dump.

use std::collections::HashSet;

use plumb_geometry::Bytes;

use crate::builder::{Builder, device_name};
use crate::grid::Source;
use crate::node::{Kind, keys};

/// A device that a volume is built of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Component {
    /// Its name without directories.
    pub(super) name: String,
    /// The start of its data, if stated.
    pub(super) start: Option<Bytes>,
}

impl Component {
    pub(super) fn named(name: &str) -> Component {
        Component {
            name: device_name(name).into_owned(),
            start: None,
        }
    }
}

/// Components side by side; rows follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StripeRow {
    pub(super) components: Vec<Component>,
    /// Of several components; `None` where nobody said.
    pub(super) interlace: Option<Bytes>,
}

/// A run of blocks of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockExtent {
    pub(super) start: Bytes,
    pub(super) len: Bytes,
}

/// How a volume is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VolumeShape {
    /// Concatenation and stripe.
    Rows(Vec<StripeRow>),
    Mirror {
        submirrors: Vec<String>,
        read_policy: &'static str,
        write_policy: &'static str,
        /// Order of resyncs; 0 is never.
        pass: Option<u32>,
    },
    Raid5 {
        columns: Vec<Component>,
        /// Columns when it was made; those attached later hold data only.
        original: usize,
        interlace: Option<Bytes>,
        /// Slots of the pre-write area.
        slots: u64,
    },
    Soft {
        on: String,
        extents: Vec<BlockExtent>,
    },
    /// A soft partition for which metainit chooses the place.
    SoftAnywhere { on: String, align: Option<Bytes> },
    /// A volume with a separate log; its data are on the master.
    Logged { master: String },
}

/// A description; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Volume {
    pub(super) name: String,
    pub(super) shape: VolumeShape,
    pub(super) size: Option<Bytes>,
    pub(super) source: Source,
}

impl Volume {
    /// Whether nothing that decides about places was left out.
    pub(super) fn is_exact(&self) -> bool {
        match &self.shape {
            VolumeShape::Rows(rows) => rows
                .iter()
                .all(|row| row.components.len() < 2 || row.interlace.is_some()),
            VolumeShape::Raid5 {
                interlace, columns, ..
            } => interlace.is_some() && columns.iter().all(|column| column.start.is_some()),
            VolumeShape::SoftAnywhere { .. } => false,
            VolumeShape::Mirror { .. } | VolumeShape::Soft { .. } | VolumeShape::Logged { .. } => {
                true
            }
        }
    }

    fn kind(&self) -> Kind {
        match &self.shape {
            VolumeShape::Rows(rows) if rows.len() == 1 && rows[0].components.len() > 1 => {
                Kind::Stripe
            }
            VolumeShape::Rows(_) => Kind::Concat,
            VolumeShape::Mirror { .. } => Kind::Mirror,
            VolumeShape::Raid5 { .. } => Kind::ParityRaid,
            VolumeShape::Soft { .. } | VolumeShape::SoftAnywhere { .. } => Kind::SoftPartition,
            VolumeShape::Logged { .. } => Kind::LogicalVolume,
        }
    }

    fn size(&self) -> Option<Bytes> {
        match &self.shape {
            VolumeShape::Soft { extents, .. } => extents
                .iter()
                .try_fold(Bytes(0), |sum, extent| sum.checked_add(extent.len)),
            _ => self.size,
        }
    }
}

/// Data that wait for the last dump.
#[derive(Debug, Default)]
pub(crate) struct PendingSolaris {
    pub(super) volumes: Vec<Volume>,
    /// Planned mounts, which real mounts override.
    pub(super) mounts: Vec<super::mounts::Mount>,
    /// Hot spares in use that have a note already.
    pub(super) spares: HashSet<String>,
}

/// Sets the kind of a volume, and keeps its placing for later.
pub(super) fn declare(volume: Volume, builder: &mut Builder) {
    let id = builder.node(&volume.name);
    let source = &volume.source;
    builder.kind(id, volume.kind(), source);
    builder.fact(id, keys::MANAGER, "svm", source);
    if let Some(size) = volume.size() {
        builder.size(id, size, source);
    }
    match &volume.shape {
        VolumeShape::Mirror {
            read_policy,
            write_policy,
            pass,
            ..
        } => {
            builder.fact(id, keys::READ_POLICY, *read_policy, source);
            builder.fact(id, keys::WRITE_POLICY, *write_policy, source);
            if let Some(pass) = pass {
                builder.fact(id, keys::RESYNC_PASS, *pass, source);
            }
        }
        VolumeShape::Raid5 { .. } => builder.fact(id, keys::LEVEL, "raid5", source),
        _ => {}
    }
    builder.solaris.volumes.push(volume);
}
