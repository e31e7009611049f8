//! `dmsetup table`: lines of tables with the name of the device before them. Devices below are named by number, which
//! lsblk or LVM can tell; those of SCSI disks never change.

use std::collections::HashMap;

use super::super::text::{anything, count, lines};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::{self, of_number, on_linux};
use super::pending::DmsetupLine;
use crate::builder::Builder;
use crate::dm_table::{self, Mapped, number_of};
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::{Kind, keys};
use crate::node_facts::VolumeManager;
use crate::obstacle::Obstacle;

pub(super) static FORMAT: Format = Format {
    tool: "dmsetup table",
    is_verified: true,
    sniff,
    read,
};

/// Its output if nothing is mapped.
const NONE: &str = "No devices found";

/// `NAME: START LEN TYPE PARAMS`; a device without a table has nothing behind its name.
fn split(line: &str) -> Option<(&str, &str)> {
    let (name, table) = line
        .split_once(": ")
        .or_else(|| Some((line.strip_suffix(':')?, "")))?;
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some((name, table.trim()))
}

fn is_table(line: &str) -> bool {
    let Some((_, table)) = split(line) else {
        return false;
    };
    let mut words = table.split_whitespace();
    let is_number = |word: Option<&str>| word.is_some_and(|word| word.parse::<u64>().is_ok());
    is_number(words.next())
        && is_number(words.next())
        && words
            .next()
            .is_some_and(|kind| kind.starts_with(|c: char| c.is_ascii_lowercase()))
}

fn sniff(input: &Input<'_>) -> Sniff {
    let mut lines = lines(input).take(50).map(|(_, line)| line).peekable();
    let is_one = lines.peek().is_some() && lines.all(|line| line == NONE || split(line).is_some());
    let has_table = input
        .text
        .lines()
        .take(50)
        .any(|line| line.trim() == NONE || is_table(line.trim()));
    if is_one && has_table {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    for (line, text) in lines(input) {
        let source = input.source(FORMAT.tool, line);
        on_linux(builder, &source);
        if text == NONE {
            taken.understood += 1;
            continue;
        }
        let Some((name, table)) = split(text) else {
            taken.passed_over += 1;
            continue;
        };
        let parsed = if table.is_empty() {
            Ok(None)
        } else {
            dm_table::parse_line(table).map(Some)
        };
        count(&mut taken, parsed.is_ok());
        match parsed {
            Ok(line) => builder.linux.tables.push(DmsetupLine {
                name: name.to_owned(),
                line,
                source,
            }),
            Err(why) => builder.note(format!("{source}: {why}")),
        }
    }
    anything(taken, input, FORMAT.tool, "NAME: START LENGTH TARGET …")
}

/// Places every table.
pub(super) fn place_all(builder: &mut Builder) {
    let tables = std::mem::take(&mut builder.linux.tables);
    // All names before any table, since tables name each other.
    let nodes: Vec<NodeId> = tables
        .iter()
        .map(|table| names::mapped(builder, &table.name, false))
        .collect();
    let mut files: Vec<(Source, Vec<Mapped>, HashMap<NodeId, usize>)> = Vec::new();
    for (DmsetupLine { line, source, .. }, node) in tables.into_iter().zip(nodes) {
        let source = whole(source);
        let file = match files.iter_mut().find(|(known, ..)| *known == source) {
            Some(file) => file,
            None => {
                files.push((source, Vec::new(), HashMap::new()));
                let last = files.len() - 1;
                &mut files[last]
            }
        };
        let at = *file.2.entry(node).or_insert_with(|| {
            let is_lvm = builder.get(node).value(keys::MANAGER) == Some(&VolumeManager::Lvm)
                || builder.get(node).kind == Kind::LogicalVolume;
            let is_part = builder.get(node).kind == Kind::Partition;
            let uuid = if is_lvm {
                "LVM-"
            } else if is_part {
                "part"
            } else {
                ""
            };
            file.1.push(Mapped {
                node,
                uuid: uuid.to_owned(),
                lines: Vec::new(),
            });
            file.1.len() - 1
        });
        file.1[at].lines.extend(line);
    }
    for (source, tables, _) in files {
        dm_table::place(builder, &tables, &mut resolve, &source);
    }
}

fn whole(source: Source) -> Source {
    match source {
        Source::Dump { tool, file, .. } => Source::Dump {
            tool,
            file,
            line: 0,
        },
        source => source,
    }
}

/// The node of a device below.
fn resolve(builder: &mut Builder, name: &str) -> NodeId {
    let Some(number) = number_of(name) else {
        return names::device(builder, name);
    };
    if let Some(known) = builder.linux.numbers.get(&number) {
        return *known;
    }
    if let Some(fixed) = of_number(number) {
        return builder.node(&fixed);
    }
    let node = builder.node(name);
    builder.opaque(
        node,
        Obstacle::NumberAlone {
            number: name.to_owned(),
        },
    );
    node
}
