//! `metastat`: every volume of Solaris Volume Manager with its state, its size and the starts of its components.
//!
//! Sizes are blocks of 512 bytes. *Start Block* comes from the state database: the first block of data on the
//! component, behind a label and replicas, for RAID 5 also behind the pre-write area. If a hot spare replaces a
//! component, the component is still printed; a note says that its data are on the spare. Concatenations and soft
//! partitions were tested with a real host; mirrors, stripes and RAID 5 with examples in documents.

use plumb_geometry::Bytes;

use super::super::text::{anything, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::md_tab::PREWRITE_SLOTS;
use super::names::{NAME_MAX, disk_of, on_solaris};
use super::units::blocks;
use super::volume::{BlockExtent, Component, StripeRow, Volume, VolumeShape, declare};
use crate::builder::{Builder, device_name};
use crate::node::{Kind, keys};

pub(super) static FORMAT: Format = Format {
    tool: "metastat",
    is_verified: true,
    sniff,
    read,
};

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| {
        heading(line.trim()).is_some_and(|heading| heading.what != DescribedObject::Pool)
    })
}

/// The kind of object that a heading describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DescribedObject {
    Rows,
    Mirror,
    Raid5,
    Soft,
    Logged,
    /// Hot spares: they hold no data.
    Pool,
}

struct Heading<'a> {
    name: &'a str,
    what: DescribedObject,
}

/// `d10: Mirror`, `d20: Submirror of d10`.
fn heading(line: &str) -> Option<Heading<'_>> {
    let (name, what) = line.split_once(": ").or_else(|| line.split_once(':'))?;
    let what = match what.trim() {
        "Concat/Stripe" => DescribedObject::Rows,
        "Mirror" => DescribedObject::Mirror,
        "RAID" => DescribedObject::Raid5,
        "Soft Partition" => DescribedObject::Soft,
        "Trans" => DescribedObject::Logged,
        other if other.starts_with("Submirror of ") => DescribedObject::Rows,
        other if name.starts_with("hsp") && other.contains("hot spare") => DescribedObject::Pool,
        other if name.starts_with("hsp") && other == "is empty" => DescribedObject::Pool,
        _ => return None,
    };
    let is_name = !name.is_empty() && name.len() <= NAME_MAX && !name.contains(char::is_whitespace);
    is_name.then_some(Heading { name, what })
}

/// A volume while its lines are read.
struct Draft {
    name: String,
    what: DescribedObject,
    line: usize,
    size: Option<Bytes>,
    interlace: Option<Bytes>,
    rows: Vec<StripeRow>,
    /// Columns of RAID 5 that were attached later begin here.
    original: Option<usize>,
    columns: Vec<Component>,
    submirrors: Vec<String>,
    read_policy: &'static str,
    write_policy: &'static str,
    pass: Option<u32>,
    on: Option<String>,
    extents: Vec<BlockExtent>,
}

impl Draft {
    fn new(heading: &Heading<'_>, line: usize) -> Draft {
        Draft {
            name: device_name(heading.name).into_owned(),
            what: heading.what,
            line,
            size: None,
            interlace: None,
            rows: Vec::new(),
            original: None,
            columns: Vec::new(),
            submirrors: Vec::new(),
            read_policy: "round-robin",
            write_policy: "parallel",
            pass: None,
            on: None,
            extents: Vec::new(),
        }
    }

    /// The shape, if all of it was there.
    fn shape(self) -> Option<VolumeShape> {
        match self.what {
            DescribedObject::Rows => {
                let is_whole =
                    !self.rows.is_empty() && self.rows.iter().all(|row| !row.components.is_empty());
                is_whole.then_some(VolumeShape::Rows(self.rows))
            }
            DescribedObject::Mirror => {
                (!self.submirrors.is_empty()).then_some(VolumeShape::Mirror {
                    submirrors: self.submirrors,
                    read_policy: self.read_policy,
                    write_policy: self.write_policy,
                    pass: self.pass,
                })
            }
            DescribedObject::Raid5 => {
                let original = self.original.unwrap_or(self.columns.len());
                let slots = PREWRITE_SLOTS;
                let (columns, interlace) = (self.columns, self.interlace);
                (original >= 3).then_some(VolumeShape::Raid5 {
                    columns,
                    original,
                    interlace,
                    slots,
                })
            }
            DescribedObject::Soft => {
                let on = self.on?;
                (!self.extents.is_empty()).then_some(VolumeShape::Soft {
                    on,
                    extents: self.extents,
                })
            }
            DescribedObject::Logged => Some(VolumeShape::Logged { master: self.on? }),
            DescribedObject::Pool => None,
        }
    }
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let mut taken = Taken::default();
    let mut draft: Option<Draft> = None;
    let mut is_relocation = false;
    for (line, text) in lines(input) {
        if let Some(heading) = heading(text) {
            finish(draft.take(), input, builder, &mut taken);
            draft = Some(Draft::new(&heading, line));
            taken.understood += 1;
            is_relocation = false;
        } else if text.starts_with("Device Relocation Information") {
            finish(draft.take(), input, builder, &mut taken);
            is_relocation = true;
        } else if is_relocation {
            relocation(text, line, input, builder);
        } else if let Some(draft) = &mut draft {
            take_line(draft, text, builder);
        } else {
            taken.passed_over += 1;
        }
    }
    finish(draft, input, builder, &mut taken);
    anything(taken, input, FORMAT.tool, "a volume as in \"d10: Mirror\"")
}

/// Hands a volume over; an incomplete one was cut off.
fn finish(draft: Option<Draft>, input: &Input<'_>, builder: &mut Builder, taken: &mut Taken) {
    let Some(draft) = draft.filter(|draft| draft.what != DescribedObject::Pool) else {
        return;
    };
    let source = input.source(FORMAT.tool, draft.line);
    let (name, size) = (draft.name.clone(), draft.size);
    match draft.shape() {
        Some(shape) => {
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
        None => taken.passed_over += 1,
    }
}

/// A line below a heading. Those that say nothing of places are decoration.
fn take_line(draft: &mut Draft, text: &str, builder: &mut Builder) {
    if let Some((key, value)) = text.split_once(':') {
        return take_value(draft, key, value.trim());
    }
    let words: Vec<&str> = text.split_whitespace().take(8).collect();
    match draft.what {
        DescribedObject::Rows | DescribedObject::Raid5 => {
            if let Some(component) = component(&words) {
                note_spare(draft, &component.name, &words, builder);
                match (draft.what, draft.rows.last_mut()) {
                    (DescribedObject::Rows, Some(row)) => row.components.push(component),
                    (DescribedObject::Raid5, _) => draft.columns.push(component),
                    _ => {}
                }
            }
        }
        DescribedObject::Soft => {
            if let &[number, start, len] = words.as_slice()
                && let (Ok(_), Some(start), Some(len)) =
                    (number.parse::<u32>(), blocks(start), blocks(len))
            {
                draft.extents.push(BlockExtent { start, len });
            }
        }
        DescribedObject::Mirror | DescribedObject::Logged | DescribedObject::Pool => {}
    }
}

fn take_value(draft: &mut Draft, key: &str, value: &str) {
    let number = value.split_whitespace().next().unwrap_or_default();
    let is_numbered = |prefix| {
        key.strip_prefix(prefix)
            .is_some_and(|rest: &str| rest.parse::<u32>().is_ok())
    };
    match key {
        // The second size of RAID 5 is that of its columns.
        "Size" => draft.size = draft.size.or_else(|| blocks(number)),
        "Interlace" => draft.interlace = blocks(number).filter(|interlace| interlace.0 > 0),
        "Concatenated Devices" => draft.original = Some(draft.columns.len()),
        "Device" | "Master Device" => draft.on = Some(device_name(number).into_owned()),
        "Pass" => draft.pass = number.parse().ok(),
        "Read option" if number == "geometric" => draft.read_policy = "geometric",
        "Read option" if number == "first" => draft.read_policy = "first",
        "Write option" if number == "serial" => draft.write_policy = "serial",
        _ if is_numbered("Submirror ") => draft.submirrors.push(device_name(number).into_owned()),
        _ if is_numbered("Stripe ") && draft.what == DescribedObject::Rows => {
            let interlace = value
                .strip_prefix("(interlace: ")
                .and_then(|rest| rest.split_whitespace().next());
            let interlace = interlace
                .and_then(blocks)
                .filter(|interlace| interlace.0 > 0);
            draft.rows.push(StripeRow {
                components: Vec::new(),
                interlace,
            });
        }
        _ => {}
    }
}

/// A row of a table of components: name, start block, whether there is a replica on it.
fn component(words: &[&str]) -> Option<Component> {
    let [name, start, replica, ..] = words else {
        return None;
    };
    (matches!(*replica, "Yes" | "No") && name.len() <= NAME_MAX).then_some(())?;
    Some(Component {
        name: device_name(name).into_owned(),
        start: Some(blocks(start)?),
    })
}

/// Notes a hot spare, which the last column names.
fn note_spare(draft: &Draft, component: &str, words: &[&str], builder: &mut Builder) {
    let spare = words
        .get(4..)
        .and_then(<[_]>::last)
        .map(|name| device_name(name));
    if let Some(spare) = spare.filter(|name| disk_of(name).is_some())
        && builder
            .solaris
            .spares
            .insert(format!("{}/{component}", draft.name))
    {
        builder.note(format!(
            "{}: hot spare {spare} replaces {component}; places are those on {component}",
            draft.name
        ));
    }
}

/// A row of the table of device identities.
fn relocation(text: &str, line: usize, input: &Input<'_>, builder: &mut Builder) {
    let words: Vec<&str> = text.split_whitespace().take(4).collect();
    let &[name, "Yes" | "No", identity] = words.as_slice() else {
        return;
    };
    if disk_of(&device_name(name)).is_none() {
        return;
    }
    let (id, source) = (builder.node(name), input.source(FORMAT.tool, line));
    builder.kind(id, Kind::Disk, &source);
    if identity != "-" {
        builder.fact(id, keys::IDENTITY, identity, &source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings() {
        let what = |line| heading(line).map(|heading| heading.what);
        for (line, expected) in [
            ("d10: Mirror", DescribedObject::Mirror),
            ("set/d20: Submirror of set/d10", DescribedObject::Rows),
            ("hsp001: 1 hot spare", DescribedObject::Pool),
        ] {
            assert_eq!(what(line), Some(expected), "{line}");
        }
        for other in [
            "State: Okay",
            "Device: d50",
            "Stripe 0:",
            "a b: RAID",
            ": RAID",
            "Size: 10 blocks",
        ] {
            assert_eq!(what(other), None, "{other}");
        }
    }
}
