//! The tables of `fdisk -l` and `sfdisk -l`, with the limits of the disk. Old versions count in cylinders, rounded.

use plumb_geometry::Bytes;

use super::super::text::{anything, count, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::label::{self, LabelRow, PrintedLabel};
use super::limits::{self, PrintedLimits};
use super::names;
use crate::builder::{Builder, device_name};
use crate::linux::Family;
use crate::node::keys;
use crate::obstacle::Obstacle;

pub(super) static FORMAT: Format = Format {
    tool: "fdisk -l",
    is_verified: true,
    sniff,
    read,
};

/// A disk that is being read.
struct FdiskDisk {
    label: PrintedLabel,
    size: Option<u64>,
    model: Option<String>,
    limits: PrintedLimits,
    /// Names of the columns.
    columns: Vec<String>,
}

fn sniff(input: &Input<'_>) -> Sniff {
    let heading = |line: &str| line.trim_start().starts_with("Device ") && line.contains(" Start ");
    match sniff_by(input, |line| {
        line.starts_with("Units: ") || line.starts_with("Units = ")
    }) {
        Sniff::Yes => Sniff::Yes,
        _ => sniff_by(input, heading).min(sniff_by(input, |line| line.starts_with("Disk "))),
    }
}

/// `512 bytes / 4096 bytes`.
fn pair(value: &str) -> Option<(u64, u64)> {
    let (first, second) = value.split_once(" / ")?;
    let bytes = |word: &str| word.trim().strip_suffix(" bytes")?.parse().ok();
    Some((bytes(first)?, bytes(second)?))
}

impl FdiskDisk {
    /// Lines of the head; `false` for any other line.
    fn head(&mut self, text: &str) -> bool {
        // Remarks: `Partition 1 does not start on physical sector boundary.`
        if text.starts_with("Disk identifier") || text.starts_with("Partition ") {
            return true;
        }
        let Some((key, value)) = text.split_once(": ").or_else(|| text.split_once(" = ")) else {
            return false;
        };
        match key.trim() {
            "Units" if value.contains("cylinders of") => {
                self.label.unusable = Some(Obstacle::RoundedCylinders)
            }
            "Units" => {
                // `sectors of 1 * 512 = 512 bytes`
                let bytes = value
                    .rsplit("= ")
                    .next()
                    .and_then(|rest| rest.strip_suffix(" bytes"));
                self.label.unit = bytes
                    .and_then(|bytes| bytes.parse().ok())
                    .filter(|it| *it > 0)
                    .map(Bytes);
            }
            "Sector size (logical/physical)" => {
                let sizes = pair(value);
                self.limits.logical = sizes.map(|(logical, _)| logical);
                self.limits.physical = sizes.map(|(_, physical)| physical);
            }
            "I/O size (minimum/optimal)" => {
                let sizes = pair(value);
                self.limits.minimum_io = sizes.map(|(minimum, _)| minimum);
                self.limits.optimal_io = sizes.map(|(_, optimal)| optimal);
            }
            "Alignment offset" => {
                self.limits.alignment_offset =
                    value.strip_suffix(" bytes").and_then(|it| it.parse().ok());
            }
            "Disklabel type" | "Disk label type" => self.label.kind = Some(value.trim().to_owned()),
            "Disk model" => self.model = Some(value.trim().to_owned()),
            _ => return false,
        }
        true
    }

    /// `DEVICE [*] START END …`, by the heading; the mark of a bootable partition is blank for most.
    fn row(&self, text: &str) -> Option<(String, u64, u64)> {
        let mut words: Vec<&str> = text.split_whitespace().take(16).collect();
        let mut columns = self.columns.iter().map(String::as_str).collect::<Vec<_>>();
        if let Some(at) = columns.iter().position(|column| *column == "Boot") {
            columns.remove(at);
            if words.get(at) == Some(&"*") {
                words.remove(at);
            }
        }
        let word = |name: &str| {
            words
                .get(columns.iter().position(|column| *column == name)?)
                .copied()
        };
        let name = word("Device")?;
        if self.label.unusable.is_some() {
            return name.starts_with("/dev/").then(|| (name.to_owned(), 0, 1));
        }
        let (start, end): (u64, u64) = (word("Start")?.parse().ok()?, word("End")?.parse().ok()?);
        Some((
            name.to_owned(),
            start,
            end.checked_sub(start)?.checked_add(1)?,
        ))
    }

    fn finish(mut self, builder: &mut Builder) {
        let disk = names::device(builder, &self.label.disk);
        let source = self.label.source.clone();
        if let Some(size) = self.size {
            builder.size(disk, Bytes(size), &source);
        }
        if let Some(model) = self.model.filter(|model| !model.is_empty()) {
            let family = Family::from_name(&device_name(&self.label.disk));
            builder.kind(disk, crate::linux::kind_of(family, &model), &source);
            builder.fact(disk, keys::MODEL, model, &source);
        }
        if self.label.disk.starts_with("/dev/") {
            let name = device_name(&self.label.disk).into_owned();
            let family = if name.starts_with("mapper/") {
                Family::Mapped
            } else {
                Family::from_name(&name)
            };
            limits::tell(builder, disk, family, &self.limits, &source);
        }
        // A table of somebody else's partitions: old sfdisk repeats that of the disk below a mapped device.
        let disk = self.label.disk.clone();
        self.label.rows.retain(|row| {
            row.name
                .as_deref()
                .is_some_and(|name| name.starts_with(disk.as_str()))
        });
        label::tell(builder, self.label);
    }
}

/// `Disk /dev/sda: 20 GiB, 21474836480 bytes, 41943040 sectors`; of old versions the size in cylinders.
fn disk(line: &str) -> Option<(&str, Option<u64>)> {
    let (disk, sizes) = line.strip_prefix("Disk ")?.split_once(": ")?;
    let is_one = !disk.contains(' ') && disk != "model";
    let bytes = sizes
        .split(", ")
        .find_map(|size| size.strip_suffix(" bytes")?.parse().ok());
    let is_size = bytes.is_some() || sizes.contains("cylinders");
    (is_one && is_size).then_some((disk, bytes))
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut found: Option<FdiskDisk> = None;
    for (line, text) in lines(input) {
        let source = input.source(FORMAT.tool, line);
        if let Some((disk, size)) = disk(text) {
            taken.understood += 1;
            let new = FdiskDisk {
                label: PrintedLabel::new(disk, source),
                size,
                model: None,
                limits: PrintedLimits::default(),
                columns: Vec::new(),
            };
            if let Some(done) = found.replace(new) {
                done.finish(builder);
            }
            continue;
        }
        let Some(found) = &mut found else { continue };
        if text.starts_with("Device ") {
            found.columns = text
                .split_whitespace()
                .take(16)
                .map(str::to_owned)
                .collect();
        } else if found.columns.is_empty() {
            count(&mut taken, found.head(text));
        } else if let Some((name, start, len)) = found.row(text) {
            taken.understood += 1;
            // An empty slot, which old versions show.
            if !text.ends_with("Empty") {
                found.label.rows.push(LabelRow {
                    name: Some(name),
                    number: None,
                    start,
                    len,
                    kind: None,
                    source,
                });
            }
        } else if !found.head(text) {
            taken.passed_over += 1;
        }
    }
    if let Some(found) = found {
        found.finish(builder);
    }
    anything(
        taken,
        input,
        FORMAT.tool,
        "\"Disk …:\" and rows of partitions",
    )
}
