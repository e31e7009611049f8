//! `vxprint -ht`: volumes of the Veritas Volume Manager, their plexes, and the subdisks of those. *Unverified*: written
//! after the manual's headings.
//!
//! A subdisk is a run of a disk's public region, whose own place `vxdisk list` tells. A plex lays its subdisks one
//! after the other or in columns, and a volume has its data on each plex. Lengths are sectors of 512 bytes. Volumes
//! inside volumes, logs and snapshots are passed over.

use std::collections::BTreeMap;

use plumb_geometry::{Bytes, SmallSort};

use super::super::text::{anything, count, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::{NAME_MAX, disk_of, on_solaris};
use super::units::blocks;
use crate::builder::{Builder, device_name};
use crate::graph::NodeId;
use crate::grid::Source;
use crate::node::{Chunks, Kind, Member, Part, Placing, keys};
use crate::obstacle::Obstacle;

pub(super) static FORMAT: Format = Format {
    tool: "vxprint -ht",
    is_verified: false,
    sniff,
    read,
};

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| {
        let mut words = line.split_whitespace();
        words.next() == Some("SD")
            && words.eq([
                "NAME",
                "PLEX",
                "DISK",
                "DISKOFFS",
                "LENGTH",
                "[COL/]OFF",
                "DEVICE",
                "MODE",
            ])
    })
}

/// A subdisk in its plex.
struct Subdisk {
    node: NodeId,
    column: usize,
    offset: Bytes,
    len: Bytes,
}

struct Plex {
    volume: NodeId,
    source: Source,
    len: Bytes,
    /// Chunk and whether one column is parity; absent if subdisks follow each other.
    columns: Option<(Bytes, u32)>,
    subdisks: Vec<Subdisk>,
}

/// The data read so far, by names with the group before them.
#[derive(Default)]
struct Groups {
    group: String,
    plexes: BTreeMap<String, Plex>,
}

impl Groups {
    fn name(&self, name: &str) -> Option<String> {
        (name.len() <= NAME_MAX && name != "-").then(|| format!("{}/{name}", self.group))
    }
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let (mut taken, mut groups) = (Taken::default(), Groups::default());
    for (line, text) in lines(input) {
        let words: Vec<&str> = text.split_whitespace().take(12).collect();
        let source = input.source(FORMAT.tool, line);
        let understood = match words[..] {
            ["dg", name, ..] | ["Disk", "group:", name] if name.len() <= NAME_MAX => {
                groups.group = name.to_owned();
                Some(())
            }
            ["dm", ..] => disk(&words, &groups, &source, builder),
            ["v", ..] => volume(&words, &groups, &source, builder),
            ["pl", ..] => plex(&words, &mut groups, source, builder),
            ["sd", ..] => subdisk(&words, &mut groups, &source, builder),
            _ => continue,
        };
        count(&mut taken, understood.is_some());
    }
    place(groups.plexes, builder);
    anything(
        taken,
        input,
        FORMAT.tool,
        "records of disks, volumes, plexes and subdisks",
    )
}

/// `dm NAME DEVICE TYPE PRIVLEN PUBLEN STATE`
fn disk(words: &[&str], groups: &Groups, source: &Source, builder: &mut Builder) -> Option<()> {
    let &[_, name, device, _, _, len, ..] = words else {
        return None;
    };
    let (name, len) = (groups.name(name)?, blocks(len)?);
    let device = device_name(device);
    let below = disk_of(&device).map(|disk| builder.node(disk));
    let id = builder.node(&name);
    on_solaris(builder, source);
    builder.kind(id, Kind::LogicalVolume, source);
    builder.fact(id, keys::MANAGER, "vxvm", source);
    builder.size(id, len, source);
    let why = Obstacle::PublicRegion {
        device: device.to_string(),
    };
    builder.place(
        id,
        Placing::Unknown {
            members: below.into_iter().collect(),
            why,
        },
        source,
    );
    Some(())
}

/// `v NAME RVG KSTATE STATE LENGTH READPOL PREFPLEX UTYPE`
fn volume(words: &[&str], groups: &Groups, source: &Source, builder: &mut Builder) -> Option<()> {
    let &[_, name, _, _, _, len, read_policy, ..] = words else {
        return None;
    };
    let (id, len) = (builder.node(&groups.name(name)?), blocks(len)?);
    builder.kind(id, Kind::LogicalVolume, source);
    builder.fact(id, keys::MANAGER, "vxvm", source);
    builder.size(id, len, source);
    if read_policy == "ROUND" {
        builder.fact(id, keys::READ_POLICY, "round-robin", source);
    }
    Some(())
}

/// `pl NAME VOLUME KSTATE STATE LENGTH LAYOUT NCOL/WID MODE`
fn plex(words: &[&str], groups: &mut Groups, source: Source, builder: &mut Builder) -> Option<()> {
    let &[_, name, volume, _, _, len, layout, columns, ..] = words else {
        return None;
    };
    let (name, len) = (groups.name(name)?, blocks(len)?);
    let chunk = || {
        columns
            .split_once('/')
            .and_then(|(_, chunk)| blocks(chunk))
            .filter(|chunk| chunk.0 > 0)
    };
    let columns = match layout {
        "CONCAT" => None,
        "STRIPE" => Some((chunk()?, 0)),
        "RAID" => Some((chunk()?, 1)),
        _ => return None,
    };
    let volume = builder.node(&groups.name(volume)?);
    groups.plexes.insert(
        name,
        Plex {
            volume,
            source,
            len,
            columns,
            subdisks: Vec::new(),
        },
    );
    Some(())
}

/// `sd NAME PLEX DISK DISKOFFS LENGTH [COL/]OFF DEVICE MODE`
fn subdisk(
    words: &[&str],
    groups: &mut Groups,
    source: &Source,
    builder: &mut Builder,
) -> Option<()> {
    let &[_, name, plex, disk, start, len, place, ..] = words else {
        return None;
    };
    let (name, plex, disk) = (groups.name(name)?, groups.name(plex)?, groups.name(disk)?);
    let (start, len) = (blocks(start)?, blocks(len)?);
    let (column, offset) = place.split_once('/').unwrap_or(("0", place));
    let (column, offset) = (column.parse().ok()?, blocks(offset)?);
    let plex = groups.plexes.get_mut(&plex)?;
    let (node, below) = (builder.node(&name), builder.node(&disk));
    builder.kind(node, Kind::SoftPartition, source);
    builder.fact(node, keys::MANAGER, "vxvm", source);
    builder.size(node, len, source);
    let part = Part {
        upper: Bytes(0),
        node: below,
        start,
        len: Some(len),
    };
    builder.place(node, Placing::Parts { parts: vec![part] }, source);
    plex.subdisks.push(Subdisk {
        node,
        column,
        offset,
        len,
    });
    Some(())
}

/// Places plexes on their subdisks, and volumes on their plexes.
fn place(plexes: BTreeMap<String, Plex>, builder: &mut Builder) {
    let mut volumes: BTreeMap<NodeId, (Vec<Member>, Source)> = BTreeMap::new();
    for (name, mut plex) in plexes {
        plex.subdisks
            .small_sort_by_key(|subdisk| (subdisk.column, subdisk.offset));
        let id = builder.node(&name);
        builder.fact(id, keys::MANAGER, "vxvm", &plex.source);
        builder.size(id, plex.len, &plex.source);
        let (kind, placing) = match plex.columns {
            None => (Kind::Concat, run(&plex.subdisks)),
            Some((chunk, parity)) => {
                let members = columns(&name, &plex, builder);
                let kind = if parity > 0 {
                    Kind::ParityRaid
                } else {
                    Kind::Stripe
                };
                (
                    kind,
                    Placing::Chunks(Chunks {
                        chunk,
                        members,
                        parity,
                        copies: 1,
                        layout: None,
                    }),
                )
            }
        };
        builder.kind(id, kind, &plex.source);
        if !plex.subdisks.is_empty() {
            builder.place(id, placing, &plex.source);
        }
        let member = Member {
            node: id,
            start: Bytes(0),
        };
        volumes
            .entry(plex.volume)
            .or_insert_with(|| (Vec::new(), plex.source))
            .0
            .push(member);
    }
    for (volume, (members, source)) in volumes {
        if members.len() > 1 {
            builder.kind(volume, Kind::Mirror, &source);
        }
        builder.place(volume, Placing::Copies { members }, &source);
    }
}

fn run(subdisks: &[Subdisk]) -> Placing {
    let part = |one: &Subdisk| Part {
        upper: one.offset,
        node: one.node,
        start: Bytes(0),
        len: Some(one.len),
    };
    Placing::Parts {
        parts: subdisks.iter().map(part).collect(),
    }
}

/// The columns of a plex in order; one of several subdisks is a layer of its own.
fn columns(name: &str, plex: &Plex, builder: &mut Builder) -> Vec<Member> {
    let groups = plex.subdisks.chunk_by(|a, b| a.column == b.column);
    let node = |subdisks: &[Subdisk]| match subdisks {
        [one] => one.node,
        several => {
            let id = builder.node(&format!("{name} column {}", several[0].column));
            builder.kind(id, Kind::Concat, &plex.source);
            builder.place(id, run(several), &plex.source);
            id
        }
    };
    groups
        .map(node)
        .map(|node| Member {
            node,
            start: Bytes(0),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump::{self, join};

    const HEADINGS: &str = "DG NAME         NCONFIG      NLOG     MINORS   GROUP-ID\n\
        DM NAME         DEVICE       TYPE     PRIVLEN  PUBLEN   STATE\n\
        V  NAME         RVG/VSET/CO  KSTATE   STATE    LENGTH   READPOL   PREFPLEX UTYPE\n\
        PL NAME         VOLUME       KSTATE   STATE    LENGTH   LAYOUT    NCOL/WID MODE\n\
        SD NAME         PLEX         DISK     DISKOFFS LENGTH   [COL/]OFF DEVICE   MODE\n\n";
    const RECORDS: &str = "dg slicedg      default      default  62000    1266597358.55.ms1\n\
        dm t8           c1t8d0s2     auto     4455     35358848 -\n\
        dm t9           c1t9d0s2     auto     4455     35358848 -\n\
        v  vol          -            ENABLED  ACTIVE   4000     ROUND     -        fsgen\n\
        pl vol-01       vol          ENABLED  ACTIVE   4000     STRIPE    2/128    RW\n\
        sd t8-01        vol-01       t8       100      2000     0/0       c1t8d0   ENA\n\
        sd t9-01        vol-01       t9       0        1000     1/0       c1t9d0   ENA\n\
        sd t9-02        vol-01       t9       5000     1000     1/1000    c1t9d0   ENA\n\
        pl vol-02       vol          ENABLED  ACTIVE   4000     CONCAT    -        RW\n\
        sd t9-03        vol-02       t9       9000     4000     0         c1t9d0   ENA\n";
    const DISK: &str = "Device:    c1t8d0s2\ndisk:      name=t8 id=1\ngroup:     name=slicedg id=1\n\
        public:    slice=4 offset=0 len=35358848 disk_offset=9424\n";

    #[test]
    fn a_mirror_of_a_stripe_and_a_concatenation() {
        let volumes = [HEADINGS, RECORDS].concat();
        for texts in [[volumes.as_str(), DISK], [DISK, &volumes]] {
            let mut builder = Builder::default();
            for text in texts {
                let read = dump::read(&Input { name: "text", text }, &mut builder).expect("reads");
                assert_eq!(read.taken.passed_over, 0);
            }
            join(&mut builder);
            let stack = builder.finish();
            let vol = stack.find("slicedg/vol").expect("it");
            assert_eq!(stack.node(vol).kind, Kind::Mirror);
            let landings = stack.landings(vol);
            let on = |name: &str| {
                let found = landings
                    .all
                    .iter()
                    .find(|one| stack.node(one.on).name == name);
                found.map(|one| (one.shift / 512, one.period.map(|period| period.0 / 512)))
            };
            // 9424 + 100 is 52 past a multiple of 128.
            assert_eq!(on("c1t8d0"), Some(((9424 + 100) % 128, Some(128))));
            let column = "slicedg/vol-01 column 1";
            assert_eq!(on(column), Some((0, Some(128))));
            // The start of the public region of the other disk is unknown.
            assert_eq!(on("c1t9d0"), None);
            assert!(landings.lost.iter().any(|(_, why)| *why
                == Obstacle::PublicRegion {
                    device: "c1t9d0s2".to_owned()
                }));
            assert_eq!(stack.problems(), []);
        }
    }
}
