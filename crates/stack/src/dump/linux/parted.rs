//! `parted unit s print`, and with `-m`. Other units but `B` are rounded for people, and give no place.

use plumb_geometry::Bytes;

use super::super::text::{anything, count, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::label::{self, LabelRow, PrintedLabel};
use super::limits::{self, PrintedLimits};
use super::names;
use crate::builder::{Builder, device_name};
use crate::linux::Family;
use crate::obstacle::Obstacle;

pub(super) static FORMAT: Format = Format {
    tool: "parted print",
    is_verified: true,
    sniff,
    read,
};
pub(super) static MACHINE: Format = Format {
    tool: "parted -m print",
    is_verified: true,
    sniff: sniff_machine,
    read: read_machine,
};

/// A position as printed: sectors, bytes, or rounded.
#[derive(Clone, Copy, PartialEq)]
enum Position {
    Sectors(u64),
    Bytes(u64),
    Rounded,
}

fn position(word: &str) -> Option<Position> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let number = || word[..digits].parse().ok();
    match &word[digits..] {
        "s" => number().map(Position::Sectors),
        "B" => number().map(Position::Bytes),
        _ if digits > 0 => Some(Position::Rounded),
        _ => None,
    }
}

/// A label that is being read.
struct PartedLabel {
    tool: &'static str,
    label: PrintedLabel,
    size: Option<Position>,
    limits: PrintedLimits,
}

impl PartedLabel {
    fn new(
        disk: &str,
        size: &str,
        input: &Input<'_>,
        tool: &'static str,
        line: usize,
    ) -> PartedLabel {
        let label = PrintedLabel::new(disk, input.source(tool, line));
        PartedLabel {
            tool,
            label,
            size: position(size),
            limits: PrintedLimits::default(),
        }
    }

    fn row(
        &mut self,
        number: Option<u32>,
        start: &str,
        end: &str,
        input: &Input<'_>,
        line: usize,
    ) -> bool {
        let (Some(number), Some(start), Some(end)) = (number, position(start), position(end))
        else {
            return false;
        };
        let (unit, start, end) = match (start, end) {
            (Position::Sectors(start), Position::Sectors(end)) => (None, start, end),
            (Position::Bytes(start), Position::Bytes(end)) => (Some(Bytes(1)), start, end),
            _ => {
                self.label.unusable = Some(Obstacle::RoundedByParted);
                (None, 0, 0)
            }
        };
        let Some(len) = end.checked_sub(start).and_then(|len| len.checked_add(1)) else {
            return false;
        };
        self.label.unit = unit
            .or(self.limits.logical.map(Bytes))
            .filter(|unit| unit.0 > 0);
        let source = input.source(self.tool, line);
        self.label.rows.push(LabelRow {
            name: None,
            number: Some(number),
            start,
            len,
            kind: None,
            source,
        });
        true
    }

    fn finish(self, builder: &mut Builder) {
        let PartedLabel {
            label,
            size,
            limits,
            ..
        } = self;
        let disk = names::device(builder, &label.disk);
        let size = match size {
            Some(Position::Sectors(sectors)) => limits
                .logical
                .and_then(|unit| Bytes(unit).checked_mul(sectors)),
            Some(Position::Bytes(bytes)) => Some(Bytes(bytes)),
            _ => None,
        };
        if let Some(size) = size {
            builder.size(disk, size, &label.source);
        }
        if label.disk.starts_with("/dev/") {
            limits::tell(
                builder,
                disk,
                Family::from_name(&device_name(&label.disk)),
                &limits,
                &label.source,
            );
        }
        label::tell(builder, label);
    }
}

/// The kernel's word for parted's `msdos`.
fn kind(word: &str) -> Option<String> {
    let word = if word == "msdos" { "dos" } else { word };
    (word != "unknown" && word != "loop").then(|| word.to_owned())
}

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| {
        line.starts_with("Partition Table: ") || line == "Disk Flags:"
    })
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut found: Option<PartedLabel> = None;
    let mut is_table = false;
    for (line, text) in lines(input) {
        let (key, value) = text.split_once(": ").unwrap_or((text, ""));
        if let Some((disk, size)) = text
            .strip_prefix("Disk ")
            .and_then(|rest| rest.rsplit_once(": "))
        {
            if disk == "Flags" {
                continue;
            }
            if let Some(done) =
                found.replace(PartedLabel::new(disk, size, input, FORMAT.tool, line))
            {
                done.finish(builder);
            }
            (is_table, taken.understood) = (false, taken.understood + 1);
        } else if let (Some(found), "Sector size (logical/physical)") = (&mut found, key) {
            let bytes = |word: &str| word.strip_suffix('B')?.parse().ok();
            let (logical, physical) = value.split_once('/').unwrap_or((value, ""));
            (found.limits.logical, found.limits.physical) = (bytes(logical), bytes(physical));
        } else if let (Some(found), "Partition Table") = (&mut found, key) {
            found.label.kind = kind(value);
        } else if text.starts_with("Number ") {
            is_table = true;
        } else if let (Some(found), true) = (&mut found, is_table) {
            let words: Vec<&str> = text.split_whitespace().take(4).collect();
            let [number, start, end, _] = words[..] else {
                taken.passed_over += 1;
                continue;
            };
            // Lines of free space begin with a position.
            if position(number)
                .is_none_or(|it| it == Position::Rounded && number.parse::<u32>().is_ok())
            {
                count(
                    &mut taken,
                    found.row(number.parse().ok(), start, end, input, line),
                );
            }
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

fn is_unit(line: &str) -> bool {
    matches!(line, "BYT;" | "CHS;" | "CYL;")
}

fn sniff_machine(input: &Input<'_>) -> Sniff {
    sniff_by(input, is_unit)
}

/// A disk is `PATH:SIZE:TRANSPORT:LOGICAL:PHYSICAL:LABEL:MODEL:FLAGS;`, a partition `NUMBER:START:END:SIZE:FS:NAME:FLAGS;`.
fn read_machine(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut found: Option<PartedLabel> = None;
    for (line, text) in lines(input) {
        if is_unit(text) {
            if let Some(done) = found.take() {
                done.finish(builder);
            }
            continue;
        }
        let fields: Vec<&str> = text.trim_end_matches(';').split(':').take(9).collect();
        match (&mut found, &fields[..]) {
            (None, &[disk, size, _, logical, physical, label, ..]) => {
                taken.understood += 1;
                let mut new = PartedLabel::new(disk, size, input, MACHINE.tool, line);
                (new.limits.logical, new.limits.physical) =
                    (logical.parse().ok(), physical.parse().ok());
                new.label.kind = kind(label);
                found = Some(new);
            }
            (Some(_), &[_, _, _, _, "free", ..]) => {}
            (Some(found), &[number, start, end, ..]) => {
                count(
                    &mut taken,
                    found.row(number.parse().ok(), start, end, input, line),
                );
            }
            _ => taken.passed_over += 1,
        }
    }
    if let Some(found) = found {
        found.finish(builder);
    }
    anything(
        taken,
        input,
        MACHINE.tool,
        "\"BYT;\", a line of the disk, lines of partitions",
    )
}
