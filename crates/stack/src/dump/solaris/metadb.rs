//! `metadb`: positions of the replicas of the state database. Solaris Volume Manager starts data on such a slice behind
//! them. *Unverified* except for examples in documents.

use std::collections::BTreeMap;

use plumb_geometry::Bytes;

use super::super::text::{anything, count, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::on_solaris;
use super::units::blocks;
use crate::builder::{Builder, device_name};
use crate::node::keys;

pub(super) static FORMAT: Format = Format {
    tool: "metadb",
    is_verified: false,
    sniff,
    read,
};

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| {
        line.contains("first blk") && line.contains("block count")
    })
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut ends: BTreeMap<String, (Bytes, usize)> = BTreeMap::new();
    for (line, text) in lines(input) {
        if text.contains("first blk") || is_legend(text) {
            continue;
        }
        let replica = replica(text);
        count(&mut taken, replica.is_some());
        if let Some((slice, Some(end))) = replica {
            let known = ends.entry(slice).or_insert((end, line));
            known.0 = known.0.max(end);
        }
    }
    for (slice, (end, line)) in ends {
        let (id, source) = (builder.node(&slice), input.source(FORMAT.tool, line));
        on_solaris(builder, &source);
        builder.fact(id, keys::REPLICAS_END, end, &source);
    }
    anything(
        taken,
        input,
        FORMAT.tool,
        "flags, first block, block count and device",
    )
}

/// `metadb -i` explains the flags: one letter, a dash, a sentence.
fn is_legend(text: &str) -> bool {
    text.get(1..4) == Some(" - ")
}

/// The slice of a replica, and the end of it where that is known.
fn replica(text: &str) -> Option<(String, Option<Bytes>)> {
    let mut words = text.split_whitespace().rev();
    let slice = words.next().filter(|name| name.starts_with("/dev/"))?;
    let (len, first) = (words.next()?, words.next()?);
    let end = match (first, len) {
        ("unknown", _) | (_, "unknown") => None,
        (first, len) => Some(blocks(first)?.checked_add(blocks(len)?)?),
    };
    Some((device_name(slice).into_owned(), end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_end_at_the_last_block_of_the_last() {
        let text = "        flags           first blk       block count\n\
                    \x20    a m  p  luo        16              8192            /dev/dsk/c0t0d0s7\n\
                    \x20    a    p  luo        8208            8192            /dev/dsk/c0t0d0s7\n\
                    \x20     W   p  l          16              8192            /dev/dsk/c2t3d0s1\n\
                    \x20     M     p          unknown         unknown         /dev/dsk/c1t1d0s3\n\
                    \x20r - replica does not have device relocation information\n";
        let mut builder = Builder::default();
        let taken = read(
            &Input {
                name: "metadb",
                text,
            },
            &mut builder,
        )
        .expect("reads");
        assert_eq!(
            taken,
            Taken {
                understood: 4,
                passed_over: 0
            }
        );
        let end = |name: &str| {
            builder
                .find(name)
                .and_then(|id| builder.get(id).number(keys::REPLICAS_END))
        };
        assert_eq!(end("c0t0d0s7"), Some(Bytes(16_400 * 512)));
        assert_eq!(end("c2t3d0s1"), Some(Bytes(8_208 * 512)));
        assert_eq!(end("c1t1d0s3"), None);
    }
}
