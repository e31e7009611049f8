//! `sfdisk -d` of any age, and `sfdisk -J`. Sectors are logical ones; only newer versions state their size.

use plumb_geometry::Bytes;
use serde_json::Value;

use super::super::text::{anything, count, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::label::{self, LabelRow, PrintedLabel};
use super::lsblk::{json, number};
use crate::builder::Builder;

pub(super) static FORMAT: Format = Format {
    tool: "sfdisk -d",
    is_verified: true,
    sniff,
    read,
};
pub(super) static JSON: Format = Format {
    tool: "sfdisk -J",
    is_verified: true,
    sniff: sniff_json,
    read: read_json,
};

/// `/dev/sda1 : start=     2048, size=  2097152, …`.
fn row(line: &str) -> Option<(&str, u64, u64)> {
    let (name, fields) = line.split_once(" : ").or_else(|| line.split_once(": "))?;
    let number = |key: &str| field(fields, key)?.parse().ok();
    Some((name.trim(), number("start=")?, number("size=")?))
}

fn field<'a>(fields: &'a str, key: &str) -> Option<&'a str> {
    Some(
        fields
            .split(',')
            .find_map(|field| field.trim_start().strip_prefix(key))?
            .trim(),
    )
}

/// Only a GPT states it.
fn last_lba(key: &str, value: &str) -> Option<u64> {
    value.parse().ok().filter(|_| key == "last-lba")
}

fn sniff(input: &Input<'_>) -> Sniff {
    let head = sniff_by(input, |line| {
        line.starts_with("# partition table of ")
            || line == "unit: sectors"
            || line.starts_with("label-id: ")
    });
    head.max(sniff_by(input, |line| row(line).is_some()))
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut label: Option<PrintedLabel> = None;
    let mut kind = None;
    let finish = |builder: &mut Builder, label: Option<PrintedLabel>| {
        if let Some(label) = label {
            label::tell(builder, label);
        }
    };
    for (line, text) in lines(input) {
        let source = input.source(FORMAT.tool, line);
        let (key, value) = text
            .split_once(':')
            .map_or((text, ""), |(key, value)| (key, value.trim()));
        let old_head = text.strip_prefix("# partition table of ");
        if let Some(disk) = old_head.or((key == "device").then_some(value)) {
            finish(builder, label.take());
            label = Some(PrintedLabel {
                kind: kind.take(),
                ..PrintedLabel::new(disk, source)
            });
        } else if text.starts_with('#') {
            continue;
        } else if key == "sector-size" {
            let size = value.parse().ok().filter(|size| *size > 0).map(Bytes);
            count(&mut taken, size.is_some() && label.is_some());
            if let Some(label) = &mut label {
                label.unit = size;
            }
        } else if let (Some(label), Some(last)) = (&mut label, last_lba(key, value)) {
            label.last = Some(last);
        } else if key == "label" {
            // It precedes the device.
            finish(builder, label.take());
            kind = Some(value.to_owned());
        } else if let (Some((name, start, len)), Some(label)) = (row(text), &mut label) {
            taken.understood += 1;
            // Slots of an MBR that are empty.
            if len > 0 {
                let kind = field(text, "type=").map(str::to_owned);
                label.rows.push(LabelRow {
                    name: Some(name.to_owned()),
                    number: None,
                    start,
                    len,
                    kind,
                    source,
                });
            }
        } else if !matches!(
            key,
            "label-id" | "unit" | "first-lba" | "last-lba" | "table-length" | "grain"
        ) {
            taken.passed_over += 1;
        }
    }
    if label.is_some() {
        taken.understood += 1;
    }
    finish(builder, label);
    anything(
        taken,
        input,
        FORMAT.tool,
        "\"device:\" and lines of partitions",
    )
}

fn sniff_json(input: &Input<'_>) -> Sniff {
    let is_own = input.text.trim_start().starts_with('{');
    if is_own {
        sniff_by(input, |line| line.contains("\"partitiontable\""))
    } else {
        Sniff::No
    }
}

fn read_json(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let value = json(input, JSON.tool)?;
    let mut taken = Taken::default();
    let table = value.get("partitiontable").unwrap_or(&Value::Null);
    let word = |value: &Value, key: &str| Some(value.get(key)?.as_str()?.to_owned());
    if let Some(disk) = word(table, "device") {
        taken.understood += 1;
        let mut label = PrintedLabel::new(&disk, input.source(JSON.tool, 0));
        label.kind = word(table, "label");
        label.unit = number(table, "sectorsize")
            .filter(|size| *size > 0)
            .map(Bytes);
        label.last = number(table, "lastlba");
        for part in table
            .get("partitions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let row = word(part, "node")
                .zip(number(part, "start"))
                .zip(number(part, "size"));
            count(&mut taken, row.is_some());
            if let Some(((name, start), len)) = row.filter(|(_, len)| *len > 0) {
                let source = input.source(JSON.tool, 0);
                let kind = word(part, "type");
                label.rows.push(LabelRow {
                    name: Some(name),
                    number: None,
                    start,
                    len,
                    kind,
                    source,
                });
            }
        }
        label::tell(builder, label);
    }
    anything(
        taken,
        input,
        JSON.tool,
        "\"partitiontable\" with \"device\"",
    )
}
