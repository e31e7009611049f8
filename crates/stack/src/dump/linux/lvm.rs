//! `pvs`, `vgs` and `lvs` with `--reportformat json`, in any mix of columns.
//!
//! Sizes are exact with `--units s` or `b`; other units are rounded to two decimals, so that a first extent at sector
//! 2,049 reads `1.00m` and is no place. Extents and chunks come in known steps, and survive rounding.

use std::collections::BTreeMap;

use plumb_geometry::Bytes;
use serde_json::Value;

use super::super::text::{anything, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::lsblk::json;
use super::names::{self, on_linux};
use super::units::Size;
use crate::builder::{Builder, device_name};
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::{Kind, keys};

pub(super) static FORMAT: Format = Format {
    tool: "pvs, vgs, lvs (JSON)",
    is_verified: true,
    sniff,
    read,
};

/// Lists of a report.
const LISTS: [&str; 5] = ["pv", "vg", "lv", "seg", "pvseg"];
/// Extents are multiples of this, or powers of two (vgcreate(8)).
const EXTENT_STEP: Bytes = Bytes(128 << 10);
/// Stripes are powers of two of at least a page.
const STRIPE_STEP: Bytes = Bytes(4096);

/// The contents of reports about volume groups.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    /// Extent of a group.
    pub(super) extents: BTreeMap<String, Bytes>,
    /// First extent of a physical volume.
    pub(super) starts: BTreeMap<NodeId, Bytes>,
    /// Group of a physical volume, with the source.
    pub(super) groups: BTreeMap<NodeId, (String, Source)>,
    /// Segments by volume, `vg/lv`, and by their place in it.
    pub(super) segments: BTreeMap<String, BTreeMap<u64, Segment>>,
}

/// A segment as printed: sizes are only read when the extent is known.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) len: Option<Size>,
    pub(super) len_extents: Option<u64>,
    pub(super) stripe: Option<Bytes>,
    pub(super) chunk: Option<Bytes>,
    pub(super) pool: Option<String>,
    /// Devices or volumes, and the first extent on each.
    pub(super) devices: Vec<(String, u64)>,
    pub(super) source: Source,
}

fn sniff(input: &Input<'_>) -> Sniff {
    let is_own = input.text.trim_start().starts_with('{');
    if is_own {
        sniff_by(input, |line| line.trim_start().starts_with("\"report\""))
    } else {
        Sniff::No
    }
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let value = json(input, FORMAT.tool)?;
    let source = input.source(FORMAT.tool, 0);
    let mut taken = Taken::default();
    for report in value
        .get("report")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        for list in LISTS {
            let Some(rows) = report.get(list).and_then(Value::as_array) else {
                continue;
            };
            // An empty list is an answer as well.
            taken.understood += 1;
            for row in rows {
                let is_understood = LvmRow(row).tell(builder, &source);
                taken.understood += u64::from(is_understood);
                taken.passed_over += u64::from(!is_understood);
            }
        }
    }
    on_linux(builder, &source);
    anything(
        taken,
        input,
        FORMAT.tool,
        "\"report\" with \"pv\", \"vg\", \"lv\" or \"seg\"",
    )
}

struct LvmRow<'a>(&'a Value);

impl LvmRow<'_> {
    /// A column that has a value.
    fn word(&self, column: &str) -> Option<&str> {
        self.0
            .get(column)?
            .as_str()
            .map(str::trim)
            .filter(|word| !word.is_empty())
    }

    fn number<N: std::str::FromStr>(&self, column: &str) -> Option<N> {
        self.word(column)?.parse().ok()
    }

    fn size(&self, column: &str) -> Option<Size> {
        Size::lvm(self.word(column)?)
    }

    fn tell(&self, builder: &mut Builder, source: &Source) -> bool {
        let group = self.tell_group(builder);
        let physical = self.tell_physical(builder, source);
        let logical = self.tell_logical(builder, source);
        group || physical || logical
    }

    fn tell_group(&self, builder: &mut Builder) -> bool {
        let Some(group) = self.word("vg_name") else {
            return false;
        };
        let extent = self
            .size("vg_extent_size")
            .and_then(|size| size.exact().or(size.multiple_of(EXTENT_STEP)));
        if let Some(extent) = extent.filter(|extent| extent.0 > 0) {
            builder
                .linux
                .volumes
                .extents
                .entry(group.to_owned())
                .or_insert(extent);
        }
        true
    }

    fn tell_physical(&self, builder: &mut Builder, source: &Source) -> bool {
        let Some(name) = self.word("pv_name").filter(|name| name.starts_with('/')) else {
            return false;
        };
        let node = names::device(builder, name);
        builder.fact(node, keys::CONTENT, "LVM2 PV", source);
        if let Some(number) = self.number("pv_major").zip(self.number("pv_minor")) {
            builder.linux.numbers.entry(number).or_insert(node);
        }
        if let Some(group) = self.word("vg_name") {
            builder
                .linux
                .volumes
                .groups
                .entry(node)
                .or_insert_with(|| (group.to_owned(), source.clone()));
        }
        if let Some(size) = self.size("dev_size").and_then(Size::exact) {
            builder.size(node, size, source);
        }
        if let Some(size) = self.size("pe_start") {
            match size.exact() {
                Some(start) => {
                    builder.fact(node, keys::PE_START, start, source);
                    builder.linux.volumes.starts.entry(node).or_insert(start);
                }
                None => builder.note(format!(
                    "{source}: pe_start of {} is rounded: use `--units s`",
                    device_name(name)
                )),
            }
        }
        true
    }

    /// The name of a volume with its group; hidden ones are printed in brackets.
    fn volume(&self) -> Option<String> {
        let name = self
            .word("lv_name")?
            .trim_start_matches('[')
            .trim_end_matches(']');
        Some(format!("{}/{name}", self.word("vg_name")?))
    }

    fn tell_logical(&self, builder: &mut Builder, source: &Source) -> bool {
        let Some(volume) = self.volume() else {
            return false;
        };
        let node = names::device(builder, &volume);
        builder.kind(node, Kind::LogicalVolume, source);
        builder.fact(node, keys::MANAGER, "lvm", source);
        if let Some((major, minor)) = self
            .number("lv_kernel_major")
            .zip(self.number("lv_kernel_minor"))
        {
            builder.linux.numbers.entry((major, minor)).or_insert(node);
            builder.alias(node, &format!("dm-{minor}"));
        }
        if let Some(size) = self.size("lv_size").and_then(Size::exact) {
            builder.size(node, size, source);
        }
        if let Some(segment) = self.segment(source) {
            let start = self
                .size("seg_start")
                .and_then(Size::exact)
                .map(|start| start.0);
            let segments = builder.linux.volumes.segments.entry(volume).or_default();
            // Without an exact start they come in order.
            let start = start.unwrap_or_else(|| {
                segments
                    .keys()
                    .last()
                    .map_or(0, |last| last.saturating_add(1))
            });
            segments.entry(start).or_insert(segment);
        }
        true
    }

    fn segment(&self, source: &Source) -> Option<Segment> {
        let step = |size: Size| size.exact().or(size.multiple_of(STRIPE_STEP));
        let stripe = self
            .size("stripe_size")
            .or(self.size("stripesize"))
            .and_then(step);
        let chunk = self
            .size("chunk_size")
            .or(self.size("chunksize"))
            .and_then(step);
        let devices = match self.word("devices") {
            Some(devices) => devices.split(',').filter_map(in_brackets).collect(),
            None => self
                .word("seg_pe_ranges")
                .unwrap_or("")
                .split_whitespace()
                .filter_map(range)
                .collect(),
        };
        Some(Segment {
            group: self.word("vg_name")?.to_owned(),
            kind: self.word("segtype")?.to_owned(),
            len: self.size("seg_size"),
            len_extents: self.number("seg_size_pe"),
            stripe: stripe.filter(|stripe| stripe.0 > 0),
            chunk: chunk.filter(|chunk| chunk.0 > 0),
            pool: self
                .word("pool_lv")
                .map(|pool| pool.trim_matches(['[', ']']).to_owned()),
            devices,
            source: source.clone(),
        })
    }
}

/// `/dev/sda(16)`.
fn in_brackets(word: &str) -> Option<(String, u64)> {
    let (name, extent) = word.trim().strip_suffix(')')?.rsplit_once('(')?;
    Some((
        name.trim_matches(['[', ']']).to_owned(),
        extent.parse().ok()?,
    ))
}

/// `/dev/sda:16-31`.
fn range(word: &str) -> Option<(String, u64)> {
    let (name, range) = word.rsplit_once(':')?;
    Some((
        name.trim_matches(['[', ']']).to_owned(),
        range.split_once('-')?.0.parse().ok()?,
    ))
}
