//! `metastat -p` and md.tab: the lines from which Solaris Volume Manager would make its volumes again.
//!
//! Grammar: metastat(1M), metainit(1M) and md.tab(4). A line is `NAME`, then `ROWS {COUNT COMPONENT… [-i INTERLACE]}
//! [-h POOL]` for stripes and concatenations, `-m SUBMIRROR… [-g|-r] [-S] [PASS]`, `-r COLUMN… [-k] [-i INTERLACE]
//! [-w SLOTS] [-h POOL] [-o COLUMNS]`, `-p COMPONENT {-o OFFSET -b LENGTH}` for soft partitions, or `-t MASTER [LOG]`.
//! `\` continues a line, `#` begins a comment. Offsets and lengths are blocks of 512 bytes; the offset is that of the
//! data, behind the block in which the soft partition is described. Hot spare pools and replicas hold no data.

use plumb_geometry::Bytes;

use super::super::text::{anything, beginning, count};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::{NAME_MAX, on_solaris};
use super::units::{self, blocks};
use super::volume::{BlockExtent, Component, StripeRow, Volume, VolumeShape, declare};
use crate::builder::{Builder, device_name};

/// `metastat -p` of two real hosts.
pub(super) static FORMAT: Format = Format {
    tool: "metastat -p",
    is_verified: true,
    sniff,
    read,
};

/// Slots of a pre-write area where none are named.
pub(super) const PREWRITE_SLOTS: u64 = 10;

/// The meaning of a line.
pub(super) enum Statement {
    /// A volume, and its length where that is a part of it.
    Volume {
        name: String,
        shape: VolumeShape,
        size: Option<Bytes>,
    },
    /// Something that holds no data.
    Other,
}

fn sniff(input: &Input<'_>) -> Sniff {
    let (mut good, mut bad) = (0, 0);
    let beginning: String = beginning(input).flat_map(|line| [line, "\n"]).collect();
    for (_, words) in statements(&beginning) {
        if statement(&split(&words)).is_some() {
            good += 1
        } else {
            bad += 1
        }
    }
    if good > 0 && good >= bad {
        Sniff::Yes
    } else {
        Sniff::No
    }
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    for (line, words) in statements(input.text) {
        let statement = statement(&split(&words));
        count(&mut taken, statement.is_some());
        if let Some(Statement::Volume { name, shape, size }) = statement {
            let source = input.source(FORMAT.tool, line);
            on_solaris(builder, &source);
            declare(
                Volume {
                    name,
                    shape,
                    size,
                    source,
                },
                builder,
            );
        }
    }
    anything(
        taken,
        input,
        FORMAT.tool,
        "a volume as in \"d10 1 1 c0t0d0s0\"",
    )
}

fn split(words: &str) -> Vec<&str> {
    words.split_whitespace().collect()
}

/// Lines with the number of their first one, continued ones joined, without comments.
fn statements(text: &str) -> impl Iterator<Item = (usize, String)> {
    continued(text).filter(|(_, words)| !words.is_empty() && !words.starts_with('#'))
}

/// Lines with the number of their first one, continued ones joined.
pub(super) fn continued(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut lines = text.lines().enumerate();
    std::iter::from_fn(move || {
        let (at, first) = lines.next()?;
        let mut joined = String::new();
        let mut next = Some(first);
        while let Some(line) = next {
            match line.trim().strip_suffix('\\') {
                Some(line) => {
                    joined.push_str(line);
                    joined.push(' ');
                    next = lines.next().map(|(_, line)| line);
                }
                None => {
                    joined.push_str(line.trim());
                    next = None;
                }
            }
        }
        Some((at + 1, joined.trim().to_owned()))
    })
}

/// Reads a line, taken apart into words; `None` where it is no statement.
pub(super) fn statement(words: &[&str]) -> Option<Statement> {
    let (name, rest) = words.split_first()?;
    if !is_name(name) {
        return None;
    }
    let name = device_name(name).into_owned();
    let last = name.rsplit('/').next().unwrap_or_default();
    let numbered = |prefix| {
        last.strip_prefix(prefix)
            .is_some_and(|number: &str| number.parse::<u32>().is_ok())
    };
    if numbered("hsp") || numbered("mddb") {
        return Some(Statement::Other);
    }
    let mut words = Words { rest };
    let (shape, size) = match *rest.first()? {
        "-m" => (mirror(words.skip_one())?, None),
        "-r" => (raid5(words.skip_one())?, None),
        "-p" => soft_partition(words.skip_one())?,
        "-t" => (logged(words.skip_one())?, None),
        _ => (rows(&mut words)?, None),
    };
    Some(Statement::Volume { name, shape, size })
}

/// A name begins with a letter or is a path; options and numbers do not.
fn is_name(word: &str) -> bool {
    let begins_well = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    begins_well && !word.ends_with(':') && word.len() <= NAME_MAX
}

/// The words of a line that are still to be read.
struct Words<'a> {
    rest: &'a [&'a str],
}

impl<'a> Words<'a> {
    fn skip_one(&mut self) -> &mut Self {
        self.next();
        self
    }

    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// The word, if it is the next one.
    fn option(&mut self, option: &str) -> bool {
        let is_next = self.rest.first() == Some(&option);
        if is_next {
            self.next();
        }
        is_next
    }

    fn name(&mut self) -> Option<&'a str> {
        self.rest.first().filter(|word| is_name(word))?;
        self.next()
    }

    fn components(&mut self) -> Vec<Component> {
        std::iter::from_fn(|| self.name())
            .map(Component::named)
            .collect()
    }

    /// Nothing may be left.
    fn end(&self) -> Option<()> {
        self.rest.is_empty().then_some(())
    }
}

fn rows(words: &mut Words<'_>) -> Option<VolumeShape> {
    let count: usize = words.next()?.parse().ok().filter(|count| *count > 0)?;
    let mut rows = Vec::new();
    for _ in 0..count {
        let width: usize = words.next()?.parse().ok().filter(|width| *width > 0)?;
        let mut components = Vec::new();
        for _ in 0..width {
            components.push(Component::named(words.name()?));
        }
        let interlace = if words.option("-i") {
            Some(interlace(words)?)
        } else {
            None
        };
        rows.push(StripeRow {
            components,
            interlace,
        });
    }
    if words.option("-h") {
        words.next()?;
    }
    words.end()?;
    Some(VolumeShape::Rows(rows))
}

fn interlace(words: &mut Words<'_>) -> Option<Bytes> {
    units::size(words.next()?).filter(|interlace| interlace.0 > 0)
}

fn mirror(words: &mut Words<'_>) -> Option<VolumeShape> {
    let submirrors: Vec<String> = words
        .components()
        .into_iter()
        .map(|component| component.name)
        .collect();
    let (mut read_policy, mut write_policy, mut pass) = ("round-robin", "parallel", None);
    while let Some(word) = words.next() {
        match word {
            "-g" => read_policy = "geometric",
            "-r" => read_policy = "first",
            "-S" => write_policy = "serial",
            _ => {
                pass = Some(word.parse().ok().filter(|pass| *pass <= 9)?);
                words.end()?;
            }
        }
    }
    (!submirrors.is_empty()).then_some(VolumeShape::Mirror {
        submirrors,
        read_policy,
        write_policy,
        pass,
    })
}

fn raid5(words: &mut Words<'_>) -> Option<VolumeShape> {
    let columns = words.components();
    let (mut chunk, mut slots, mut original) = (None, PREWRITE_SLOTS, columns.len());
    while let Some(word) = words.next() {
        match word {
            "-k" => {}
            "-i" => chunk = Some(interlace(words)?),
            "-w" => slots = words.next()?.parse().ok()?,
            "-h" => drop(words.next()?),
            "-o" => {
                original = words
                    .next()?
                    .parse()
                    .ok()
                    .filter(|count| *count <= columns.len())?
            }
            _ => return None,
        }
    }
    (original >= 3).then_some(VolumeShape::Raid5 {
        columns,
        original,
        interlace: chunk,
        slots,
    })
}

fn soft_partition(words: &mut Words<'_>) -> Option<(VolumeShape, Option<Bytes>)> {
    let whole_disk = words.option("-e");
    let mut on = device_name(words.name()?).into_owned();
    if whole_disk {
        // The disk is given a label with all of its space in slice 0.
        on.push_str("s0");
    }
    if words.rest.first() == Some(&"-o") {
        let extents = extents(words)?;
        return Some((VolumeShape::Soft { on, extents }, None));
    }
    let align = if words.option("-A") {
        Some(units::size(words.next()?).filter(|unit| unit.0 > 0)?)
    } else {
        None
    };
    let size = match words.next()? {
        "all" => None,
        word => Some(units::size(word)?),
    };
    words.end()?;
    // All of a component starts at its beginning; other requests have no effect.
    let align = align.filter(|_| size.is_some());
    Some((VolumeShape::SoftAnywhere { on, align }, size))
}

fn extents(words: &mut Words<'_>) -> Option<Vec<BlockExtent>> {
    let mut extents = Vec::new();
    while words.option("-o") {
        let start = blocks(words.next()?)?;
        if !words.option("-b") {
            return None;
        }
        let len = blocks(words.next()?).filter(|len| len.0 > 0)?;
        extents.push(BlockExtent { start, len });
    }
    words.end()?;
    Some(extents)
}

fn logged(words: &mut Words<'_>) -> Option<VolumeShape> {
    let master = device_name(words.name()?).into_owned();
    words.name();
    words.end()?;
    Some(VolumeShape::Logged { master })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(line: &str) -> Option<(String, VolumeShape)> {
        match statement(&split(line))? {
            Statement::Volume { name, shape, .. } => Some((name, shape)),
            Statement::Other => None,
        }
    }

    fn named(names: &[&str]) -> Vec<Component> {
        names.iter().map(|name| Component::named(name)).collect()
    }

    #[test]
    fn stripes_and_concatenations() {
        let (name, found) =
            shape("d10 2 2 c1t0d0s0 c2t0d0s0 -i 32b 1 /dev/dsk/c3t0d0s0 -h hsp001").expect("rows");
        let rows = vec![
            StripeRow {
                components: named(&["c1t0d0s0", "c2t0d0s0"]),
                interlace: Some(Bytes(16 << 10)),
            },
            StripeRow {
                components: named(&["c3t0d0s0"]),
                interlace: None,
            },
        ];
        assert_eq!((name.as_str(), found), ("d10", VolumeShape::Rows(rows)));
    }

    #[test]
    fn mirrors() {
        let mirror = |line: &str| match shape(line).expect("a mirror").1 {
            VolumeShape::Mirror {
                submirrors,
                read_policy,
                write_policy,
                pass,
            } => (submirrors.join(" "), read_policy, write_policy, pass),
            other => panic!("{other:?}"),
        };
        let both = || "set/d1 set/d2".to_owned();
        for (line, expected) in [
            (
                "set/d0 -m set/d1 set/d2 1",
                (both(), "round-robin", "parallel", Some(1)),
            ),
            (
                "set/d0 -m /dev/md/set/rdsk/d1 set/d2 -g -S 0",
                (both(), "geometric", "serial", Some(0)),
            ),
            ("d0 -m d1 -r", ("d1".to_owned(), "first", "parallel", None)),
        ] {
            assert_eq!(mirror(line), expected, "{line}");
        }
    }

    #[test]
    fn raid_5() {
        let (_, found) =
            shape("d45 -r c2t3d0s2 c3t0d0s2 c4t0d0s2 c5t0d0s2 -k -i 32b -w 12 -h hsp1 -o 3")
                .expect("it");
        let columns = named(&["c2t3d0s2", "c3t0d0s2", "c4t0d0s2", "c5t0d0s2"]);
        assert_eq!(
            found,
            VolumeShape::Raid5 {
                columns,
                original: 3,
                interlace: Some(Bytes(16 << 10)),
                slots: 12
            }
        );
    }

    #[test]
    fn soft_partitions() {
        let run = |start: u64, len: u64| BlockExtent {
            start: Bytes(start * 512),
            len: Bytes(len * 512),
        };
        let (_, found) =
            shape("d52 -p d50 -o 20971584 -b 134217728  -o 465567904 -b 41943040 ").expect("it");
        let extents = vec![run(20_971_584, 134_217_728), run(465_567_904, 41_943_040)];
        assert_eq!(
            found,
            VolumeShape::Soft {
                on: "d50".to_owned(),
                extents
            }
        );
        let (_, found) = shape("d1 -p -e c1t1d0 2g").expect("it");
        assert_eq!(
            found,
            VolumeShape::SoftAnywhere {
                on: "c1t1d0s0".to_owned(),
                align: None
            }
        );
    }

    #[test]
    fn other_lines_are_none() {
        for line in [
            "d10",
            "d10 0",
            "d10 1 1",
            "d10 1 0",
            "d10 1 2 c1t0d0s0",
            "d10 1 1 c1t0d0s0 c1t0d0s1",
            "10 1 1 c1t0d0s0",
            "d10 -m",
            "d10 -m d1 d2 11",
            "d10 -m d1 1 2",
            "d10 -r c1t0d0s0 c1t0d0s1",
            "d10 -p d1 -o 5",
            "d10 -p d1",
            "d10 -p d1 -o 5 -b 0",
            "d10 -p d1 -o -5 -b 3",
            "d10 1 2 a b -i 0b",
            "d10: Mirror",
            "2 5 01 0 71127180 71127179",
            "d1 -p d2 -o 36028797018963968 -b 1",
            "d1 -r a b c -o 4",
            "d10 18446744073709551615 1 c1t0d0s0",
        ] {
            assert!(shape(line).is_none(), "{line}");
        }
    }

    #[test]
    fn lines_go_on_behind_a_backslash() {
        let text = "# a comment\nd1 2 1 a \\  \n\t1 b\n\nd2 1 1 c \\";
        let found: Vec<_> = statements(text)
            .map(|(line, words)| (line, split(&words).join(" ")))
            .collect();
        assert_eq!(
            found,
            [(2, "d1 2 1 a 1 b".to_owned()), (5, "d2 1 1 c".to_owned())]
        );
    }
}
