//! Mapped devices: their tables if the kernel gives them, else only the devices below.

use plumb_sys::Mapped as Answer;

use super::device::{Below, SysfsDevice};
use super::{Host, NoAnswer, Root, sysfs};
use crate::builder::Builder;
use crate::dm_table::{self, DmLine, Mapped};
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::{Kind, Placing, keys};
use crate::obstacle::Obstacle;

/// Reads and places every table.
pub(super) fn place_all(
    root: &Root<'_>,
    host: &Host,
    builder: &mut Builder,
    devices: &[SysfsDevice],
) {
    let mut tables = Vec::new();
    for device in devices {
        let Below::Mapped { uuid, slaves, .. } = &device.below else {
            continue;
        };
        let node = host.device(builder, &device.name);
        let answer = match device.number {
            Some((major, minor)) => root.kernel.table(major, minor),
            None => Err(NoAnswer::Elsewhere),
        };
        match answer {
            Ok(answer) => {
                let lines = lines(builder, node, &answer);
                tables.push(Mapped {
                    node,
                    uuid: uuid.clone(),
                    lines,
                });
            }
            Err(error) => without_table(host, builder, node, uuid, slaves, why(&error)),
        }
    }
    let mut resolve = |builder: &mut Builder, name: &str| {
        let known = dm_table::number_of(name).and_then(|number| host.by_number(number));
        known.unwrap_or_else(|| builder.node(name))
    };
    dm_table::place(builder, &tables, &mut resolve, &Source::DeviceMapper);
}

fn lines(builder: &mut Builder, node: NodeId, answer: &Answer) -> Vec<DmLine> {
    use plumb_geometry::Sectors;
    let mut lines = Vec::new();
    for target in &answer.targets {
        let (start, len) = (Sectors(target.start_sectors), Sectors(target.len_sectors));
        match dm_table::parse(start, len, &target.kind, &target.params) {
            Ok(line) => lines.push(line),
            Err(why) => builder.note(format!(
                "a line of the table of {}: {why}",
                builder.get(node).name
            )),
        }
    }
    lines
}

fn why(error: &NoAnswer) -> Obstacle {
    match error {
        NoAnswer::Elsewhere => Obstacle::TableNotCollected,
        other if other.capability().is_some() => Obstacle::TableNeedsRoot,
        other => Obstacle::Refused {
            said: other.to_string(),
        },
    }
}

/// The facts of sysfs alone: the owner, by the uuid, and the devices below.
fn without_table(
    host: &Host,
    builder: &mut Builder,
    node: NodeId,
    uuid: &str,
    slaves: &[String],
    why: Obstacle,
) {
    let source = sysfs(&format!("{}/slaves", builder.get(node).name));
    let (kind, manager) = match uuid.split('-').next() {
        Some("LVM") => (Kind::LogicalVolume, "lvm"),
        Some("CRYPT") => (Kind::Crypt, "dm"),
        Some("mpath") => (Kind::Multipath, "dm"),
        Some(part) if part.starts_with("part") => (Kind::Partition, "dm"),
        _ => (Kind::LogicalVolume, "dm"),
    };
    builder.kind(node, kind, &source);
    builder.fact(node, keys::MANAGER, manager, &source);
    let members: Vec<NodeId> = slaves
        .iter()
        .map(|slave| host.device(builder, slave))
        .collect();
    if members.is_empty() {
        builder.opaque(node, why);
    } else {
        builder.place(node, Placing::Unknown { members, why }, &source);
    }
}
