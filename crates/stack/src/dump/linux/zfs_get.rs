//! `zfs get -Hp`: record sizes of data sets, blocks of volumes, mount points. *Unverified*: columns after zfs-get(8).

use plumb_geometry::{Bytes, Grid, GridKind};

use super::super::text::{anything, count, lines};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use crate::builder::Builder;
use crate::grid::{CellKind, GridFact};
use crate::node::{Kind, Placing, keys};
use crate::obstacle::Obstacle;

pub(super) static FORMAT: Format = Format {
    tool: "zfs get -Hp",
    is_verified: false,
    sniff,
    read,
};

/// Properties that are of use here; the others are passed over without a word.
const PROPERTIES: [&str; 3] = ["recordsize", "volblocksize", "mountpoint"];

/// `DATASET PROPERTY VALUE SOURCE`, parted by tabs.
fn row(line: &str) -> Option<[&str; 3]> {
    let mut columns = line.split('\t');
    let row = [columns.next()?, columns.next()?, columns.next()?];
    (columns.next().is_some() && columns.next().is_none() && !row[0].is_empty()).then_some(row)
}

fn sniff(input: &Input<'_>) -> Sniff {
    let mut said = lines(input).take(300).map(|(_, line)| line).peekable();
    let has_own = said.peek().is_some()
        && input
            .text
            .lines()
            .take(300)
            .any(|line| row(line).is_some_and(|row| PROPERTIES.contains(&row[1])));
    if has_own && said.all(|line| row(line).is_some()) {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    for (line, text) in lines(input) {
        let row = row(text);
        count(&mut taken, row.is_some());
        let Some([name, property, value]) =
            row.filter(|[_, property, value]| PROPERTIES.contains(property) && *value != "-")
        else {
            continue;
        };
        let source = input.source(FORMAT.tool, line);
        let node = builder.node(name);
        if let Some((pool, _)) = name.split_once('/') {
            let pool = builder.node(pool);
            builder.kind(node, Kind::Dataset, &source);
            builder.kind(pool, Kind::Pool, &source);
            let why = Obstacle::SpreadOverVdevs;
            builder.place(
                node,
                Placing::Unknown {
                    members: vec![pool],
                    why,
                },
                &source,
            );
        } else {
            // The first data set of a pool bears its name, and is one node with it.
            builder.kind(node, Kind::Pool, &source);
        }
        let key = match property {
            "recordsize" => keys::RECORD_SIZE,
            "volblocksize" => keys::VOLUME_BLOCK,
            _ => {
                if value.starts_with('/') {
                    builder.fact(node, keys::MOUNT, value, &source);
                }
                continue;
            }
        };
        let bytes = value
            .parse::<u64>()
            .ok()
            .filter(|bytes| bytes.is_power_of_two());
        let Some(grid) =
            bytes.and_then(|bytes| Grid::new(Bytes(bytes), Bytes(0), GridKind::Unit).ok())
        else {
            builder.note(format!(
                "{source}: found {property} {value:?}, expected bytes: use `zfs get -Hp`"
            ));
            continue;
        };
        builder.fact(node, key, grid.granularity(), &source);
        builder.grid(
            node,
            GridFact::believed(grid, CellKind::Record, source.clone()),
        );
        if property == "volblocksize" {
            builder.alias(node, &format!("zvol/{name}"));
        }
    }
    anything(
        taken,
        input,
        FORMAT.tool,
        "DATASET, PROPERTY, VALUE and SOURCE, parted by tabs",
    )
}
