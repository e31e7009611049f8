//! Labels of disks, printed by any tool.
//!
//! Positions are counted in logical sectors, which not every tool states; another dump of the disk may. So labels are
//! placed after the last dump.

use plumb_geometry::{Bytes, SECTOR, group_digits};

use super::names;
use crate::builder::{Builder, device_name};
use crate::graph::NodeId;
use crate::grid::{CellKind, Source};
use crate::linux::{Family, kind_of};
use crate::node::{Kind, Part, Placing, Problem, keys};
use crate::obstacle::Obstacle;
use crate::problem_ids::ProblemId;

/// Tag of the slice that a Solaris EFI label keeps for itself (`V_RESERVED` of illumos' `sys/vtoc.h`).
const SOLARIS_RESERVED: u64 = 11;

/// A label as a tool prints it.
#[derive(Clone, Debug)]
pub(super) struct PrintedLabel {
    /// The disk, as printed.
    pub(super) disk: String,
    /// Unit of starts and lengths: a logical sector, or a byte; `None` where it is a sector of unknown size.
    pub(super) unit: Option<Bytes>,
    /// Why starts mean nothing: they were rounded for people.
    pub(super) unusable: Option<Obstacle>,
    /// `gpt`, `dos`, …
    pub(super) kind: Option<String>,
    /// The last unit that the label gives to partitions, where it says so.
    pub(super) last: Option<u64>,
    pub(super) rows: Vec<LabelRow>,
    pub(super) source: Source,
}

/// A partition.
#[derive(Clone, Debug)]
pub(super) struct LabelRow {
    /// Its name, where it is printed.
    pub(super) name: Option<String>,
    pub(super) number: Option<u32>,
    /// First unit, and units.
    pub(super) start: u64,
    pub(super) len: u64,
    /// Its purpose, as printed: a GUID, a code or words.
    pub(super) kind: Option<String>,
    pub(super) source: Source,
}

impl LabelRow {
    /// Whether a label of Solaris keeps it for itself: by its GUID, by the words of util-linux, by the code of gdisk.
    fn is_solaris_reserved(&self) -> bool {
        let is = |kind: &str| {
            kind.eq_ignore_ascii_case("6A945A3B-1DD2-11B2-99A6-080020736631")
                || kind.eq_ignore_ascii_case("BF07")
                || kind == "Solaris reserved 1"
        };
        self.kind.as_deref().is_some_and(is)
    }
}

impl PrintedLabel {
    pub(super) fn new(disk: &str, source: Source) -> PrintedLabel {
        let disk = disk.to_owned();
        PrintedLabel {
            disk,
            unit: None,
            unusable: None,
            kind: None,
            last: None,
            rows: Vec::new(),
            source,
        }
    }

    fn number(&self, row: &LabelRow) -> Option<u32> {
        row.number
            .or_else(|| number_of(&self.disk, row.name.as_deref()?))
    }

    /// Starts of the logical partitions of an MBR, in order.
    fn logicals(&self) -> Vec<u64> {
        let is_mbr = self.kind.as_deref() != Some("gpt");
        let is_logical =
            |row: &&LabelRow| is_mbr && self.number(row).is_some_and(|number| number > 4);
        let mut starts: Vec<u64> = self
            .rows
            .iter()
            .filter(is_logical)
            .map(|row| row.start)
            .collect();
        starts.sort_unstable();
        starts
    }

    /// Whether a partition holds logical ones: nobody stores data there, and the kernel gives it another length.
    fn is_extended(&self, row: &LabelRow, logicals: &[u64]) -> bool {
        let next = logicals.get(logicals.partition_point(|start| *start <= row.start));
        self.number(row).is_some_and(|number| number <= 4)
            && next.is_some_and(|next| *next < row.start.saturating_add(row.len))
    }
}

/// Sets the kind of the disk, and keeps the label until the sector size is known.
pub(super) fn tell(builder: &mut Builder, label: PrintedLabel) {
    names::on_linux(builder, &label.source);
    let disk = names::device(builder, &label.disk);
    if !label.disk.starts_with("/dev/") {
        builder.kind(disk, Kind::File, &label.source);
        builder.opaque(disk, Obstacle::ImageFile);
    } else {
        let name = device_name(&label.disk).into_owned();
        let family = Family::from_name(&name);
        if family == Family::Loop {
            builder.kind(disk, Kind::Loop, &label.source);
        } else if !family.is_stacked()
            && !name.contains('/')
            && builder.get(disk).kind == Kind::Unknown
        {
            builder.kind(disk, kind_of(family, ""), &label.source);
        }
    }
    if let Some(kind) = &label.kind {
        builder.fact(disk, keys::LABEL, kind.as_str(), &label.source);
    }
    builder.linux.labels.push(label);
}

/// Places all partitions.
pub(super) fn place_all(builder: &mut Builder) {
    for label in std::mem::take(&mut builder.linux.labels) {
        place(builder, &label);
    }
}

fn place(builder: &mut Builder, label: &PrintedLabel) {
    let disk = names::device(builder, &label.disk);
    let stated = builder
        .get(disk)
        .grids
        .iter()
        .find(|fact| fact.what == CellKind::LogicalBlock);
    let unit = label
        .unit
        .or(stated.map(|fact| fact.granularity()))
        .unwrap_or_else(|| {
            if label.unusable.is_none() && !label.rows.is_empty() {
                builder.note(format!(
                    "{}: no sector size is stated, 512 bytes are taken",
                    label.source
                ));
            }
            Bytes(SECTOR)
        });
    let logicals = label.logicals();
    for row in &label.rows {
        if label.is_extended(row, &logicals) {
            if let Some(start) = unit
                .checked_mul(row.start)
                .filter(|_| label.unusable.is_none())
            {
                builder.fact(disk, keys::EXTENDED_START, start, &row.source);
            }
            continue;
        }
        let name = match (&row.name, row.number) {
            (Some(name), _) => name.clone(),
            (None, Some(number)) => names::partition(&label.disk, number),
            (None, None) => continue,
        };
        let node = builder.node(&name);
        if node == disk {
            continue;
        }
        builder.kind(node, Kind::Partition, &row.source);
        if let Some(number) = row.number.or_else(|| number_of(&label.disk, &name)) {
            builder.fact(node, keys::PARTITION_NUMBER, number, &row.source);
        }
        if row.is_solaris_reserved() {
            builder.fact(node, keys::PARTITION_TAG, SOLARIS_RESERVED, &row.source);
        }
        let bytes = |count: u64| unit.checked_mul(count);
        let placing = match (&label.unusable, bytes(row.start), bytes(row.len)) {
            (Some(why), ..) => Placing::Unknown {
                members: vec![disk],
                why: why.clone(),
            },
            (None, Some(start), Some(len)) if start.checked_add(len).is_some() => {
                builder.size(node, len, &row.source);
                Placing::Parts {
                    parts: vec![Part {
                        upper: Bytes(0),
                        node: disk,
                        start,
                        len: Some(len),
                    }],
                }
            }
            _ => Placing::Unknown {
                members: vec![disk],
                why: Obstacle::Beyond64Bits {
                    source: Some(row.source.clone()),
                },
            },
        };
        builder.place(node, placing, &row.source);
        let disk_end = builder
            .get(disk)
            .size
            .map_or(u64::MAX, |size| size.0 / unit.0);
        if let Some(problem) = beyond_last(label, row, (node, &name), disk_end) {
            builder.problem(problem);
        }
    }
}

/// A partition behind the last unit of its label. The builder itself tells of one that ends beyond its disk.
fn beyond_last(
    label: &PrintedLabel,
    row: &LabelRow,
    (node, name): (NodeId, &str),
    disk_end: u64,
) -> Option<Problem> {
    let last = label.last?;
    let row_last = row.start.saturating_add(row.len).checked_sub(1)?;
    let text = || {
        let name = device_name(name);
        let (ends, last) = (group_digits(row_last), group_digits(last));
        format!(
            "{name} ends at sector {ends}, and the last one that the label gives to partitions is {last}"
        )
    };
    (row_last > last && row_last < disk_end).then(|| Problem {
        node: Some(node),
        id: ProblemId::BeyondDevice,
        text: text(),
        source: row.source.clone(),
    })
}

/// The number that a partition's name ends with, behind the name of its disk.
fn number_of(disk: &str, name: &str) -> Option<u32> {
    let rest = name.strip_prefix(disk)?;
    rest.strip_prefix("-part")
        .or(rest.strip_prefix('p'))
        .unwrap_or(rest)
        .parse()
        .ok()
}
