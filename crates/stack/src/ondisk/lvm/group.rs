//! Volume groups, put together from physical volumes on any disks.

use std::collections::{BTreeMap, HashMap};

use plumb_geometry::{Bytes, GridKind, SECTOR};

use super::{Pv, Section, volumes};
use crate::builder::Builder;
use crate::graph::NodeId;
use crate::grid::{CellKind, Source};
use crate::node::keys;
use crate::obstacle::Obstacle;
use crate::ondisk::content::Cell;
use crate::ondisk::nodes;

/// The parts of all groups found so far.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// Physical volumes by UUID.
    pvs: HashMap<String, NodeId>,
    /// Name and newest text by the group's UUID.
    groups: BTreeMap<String, (String, Section)>,
}

/// A group while its volumes are added.
pub(super) struct VolumeGroup<'a> {
    pub(super) name: String,
    pub(super) text: &'a Section,
    /// Length of an extent.
    pub(super) extent: u64,
    /// Node of each physical volume by the text's name for it, and the start of its extents.
    pub(super) pvs: HashMap<&'a str, (NodeId, u64)>,
}

pub(super) fn source() -> Source {
    Source::OnDisk {
        format: "LVM2".to_owned(),
    }
}

impl Groups {
    pub(crate) fn add(&mut self, node: NodeId, pv: Pv) {
        self.pvs.insert(pv.uuid, node);
        let Some((name, text)) = pv.group else { return };
        let age = |text: &Section| text.number("seqno").unwrap_or(0);
        let id = text.text("id").unwrap_or(&name).to_owned();
        match self.groups.get_mut(&id) {
            Some(known) if age(&known.1) >= age(&text) => {}
            Some(known) => *known = (name, text),
            None => {
                self.groups.insert(id, (name, text));
            }
        }
    }

    /// Makes nodes of all volumes.
    pub(crate) fn tell(&self, builder: &mut Builder) {
        let mut names: HashMap<&str, &str> = HashMap::new();
        for (id, (name, text)) in &self.groups {
            let first = *names.entry(name.as_str()).or_insert(id);
            // Two groups of one name are copies or of two hosts.
            let name = if first == id {
                name.clone()
            } else {
                format!("{name}-{id}")
            };
            let Some(extent) = text
                .number("extent_size")
                .and_then(|sectors| sectors.checked_mul(SECTOR))
            else {
                builder.note(format!(
                    "volume group {name} does not say how long its extents are"
                ));
                continue;
            };
            let pvs = self.pvs_of(builder, &name, text, extent);
            volumes::tell(
                builder,
                &VolumeGroup {
                    name,
                    text,
                    extent,
                    pvs,
                },
            );
        }
    }

    fn pvs_of<'a>(
        &self,
        builder: &mut Builder,
        group: &str,
        text: &'a Section,
        extent: u64,
    ) -> HashMap<&'a str, (NodeId, u64)> {
        let mut found = HashMap::new();
        for (name, pv) in text.sections("physical_volumes") {
            let uuid = pv.text("id").unwrap_or_default().replace('-', "");
            let start = pv
                .number("pe_start")
                .and_then(|sectors| sectors.checked_mul(SECTOR))
                .unwrap_or(0);
            let node = match self.pvs.get(&uuid) {
                Some(node) => {
                    tell_pv(builder, *node, start, extent);
                    *node
                }
                None => {
                    let node = builder.node(&format!("{group}:missing-{name}"));
                    let why = Obstacle::MissingVolume {
                        volume: name.to_owned(),
                        group: group.to_owned(),
                    };
                    builder.opaque(node, why);
                    node
                }
            };
            found.insert(name, (node, start));
        }
        found
    }
}

fn tell_pv(builder: &mut Builder, node: NodeId, start: u64, extent: u64) {
    let source = source();
    builder.fact(node, keys::PE_START, Bytes(start), &source);
    builder.fact(node, keys::PE_SIZE, Bytes(extent), &source);
    let offset = start.checked_rem(extent).unwrap_or(0);
    let cell = Cell {
        len: extent,
        offset,
        what: CellKind::VolumeExtent,
        kind: GridKind::Boundary,
    };
    nodes::tell_cell(builder, node, cell, &source);
}
