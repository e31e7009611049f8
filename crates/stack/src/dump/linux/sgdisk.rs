//! `sgdisk -p`: GPT alone, in logical sectors. It prints numbers of partitions, and not their names.

use plumb_geometry::Bytes;

use super::super::text::{anything, count, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::label::{self, LabelRow, PrintedLabel};
use super::limits::{self, PrintedLimits};
use super::names;
use crate::builder::{Builder, device_name};
use crate::linux::Family;

pub(super) static FORMAT: Format = Format {
    tool: "sgdisk -p",
    is_verified: true,
    sniff,
    read,
};

const HEADING: &str = "Number  Start (sector)";

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| line.starts_with(HEADING))
}

/// `Sector size (logical/physical): 512/4096 bytes`, or the logical one alone.
fn sectors(line: &str) -> Option<(u64, Option<u64>)> {
    let rest = line.strip_prefix("Sector size (")?;
    let (which, sizes) = rest.split_once("): ")?;
    let sizes = sizes.strip_suffix(" bytes")?;
    match which {
        "logical" => Some((sizes.parse().ok()?, None)),
        "logical/physical" => {
            let (logical, physical) = sizes.split_once('/')?;
            Some((logical.parse().ok()?, Some(physical.parse().ok()?)))
        }
        _ => None,
    }
}

/// `Disk /dev/sda: 131072 sectors, 64.0 MiB`.
fn head(line: &str) -> Option<(&str, u64)> {
    let (disk, size) = line.strip_prefix("Disk ")?.rsplit_once(": ")?;
    Some((disk, size.split_once(" sectors")?.0.parse().ok()?))
}

fn row(line: &str) -> Option<(u32, u64, u64)> {
    let mut words = line.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let (first, last): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((number, first, last.checked_sub(first)?.checked_add(1)?))
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut found: Option<(PrintedLabel, u64, PrintedLimits)> = None;
    let mut is_table = false;
    for (line, text) in lines(input) {
        let source = input.source(FORMAT.tool, line);
        if let Some((disk, size)) = head(text) {
            finish(builder, found.take());
            is_table = false;
            taken.understood += 1;
            let label = PrintedLabel {
                kind: Some("gpt".to_owned()),
                ..PrintedLabel::new(disk, source)
            };
            found = Some((label, size, PrintedLimits::default()));
        } else if let (Some((label, _, limits)), Some((logical, physical))) =
            (&mut found, sectors(text))
        {
            label.unit = Some(Bytes(logical)).filter(|logical| logical.0 > 0);
            (limits.logical, limits.physical) = (Some(logical), physical);
        } else if text.starts_with(HEADING) {
            is_table = true;
        } else if let (Some((label, ..)), true) = (&mut found, is_table) {
            let row = row(text);
            count(&mut taken, row.is_some());
            if let Some((number, start, len)) = row {
                label.rows.push(LabelRow {
                    name: None,
                    number: Some(number),
                    start,
                    len,
                    kind: None,
                    source,
                });
            }
        }
    }
    finish(builder, found);
    anything(
        taken,
        input,
        FORMAT.tool,
        "\"Disk …: … sectors\" and rows of partitions",
    )
}

fn finish(builder: &mut Builder, found: Option<(PrintedLabel, u64, PrintedLimits)>) {
    let Some((label, size, limits)) = found else {
        return;
    };
    let disk = names::device(builder, &label.disk);
    if let Some(size) = label.unit.and_then(|unit| unit.checked_mul(size)) {
        builder.size(disk, size, &label.source);
    }
    if label.disk.starts_with("/dev/") {
        let family = Family::from_name(&device_name(&label.disk));
        limits::tell(builder, disk, family, &limits, &label.source);
    }
    label::tell(builder, label);
}
