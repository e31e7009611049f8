//! `format`: the list of disks, `verify`, and `partition` `print`, of VTOC and EFI labels, as a whole session or cut out.
//!
//! Slices of a VTOC are printed in cylinders; how many sectors a cylinder has follows from heads and sectors in the
//! disk's summary, else from the blocks and cylinders of a row. Sectors of an EFI label are printed without their
//! length; it is the one with which the size in the row agrees. A print does not name its disk: a line of the session
//! before does, or the file's name. Of several prints of one disk the last one of a label as it is on the disk counts.

use std::collections::HashMap;

use super::super::text::{anything, count, lines, sniff_by};
use super::super::{DumpError, Format, Input, Sniff, Taken};
use super::names::{is_disk, on_solaris};
use super::prtvtoc::disk_of_file;
use super::table::{Geometry, Print, row, table};
use crate::builder::{Builder, device_name};
use crate::node::{Kind, keys};

pub(super) static FORMAT: Format = Format {
    tool: "format",
    is_verified: true,
    sniff,
    read,
};

fn sniff(input: &Input<'_>) -> Sniff {
    sniff_by(input, |line| {
        let line = line.trim();
        line.starts_with("Total disk cylinders available:")
            || line.starts_with("Total disk sectors available:")
            || line.starts_with("AVAILABLE DISK SELECTIONS")
            || line.starts_with("Primary label contents")
            || table(line).is_some()
    })
}

/// `<SUN146G cyl 14087 alt 2 hd 24 sec 848>`, with a volume's name behind it or not.
fn summary(line: &str) -> Option<(String, Geometry)> {
    let (_, rest) = line.split_once('<')?;
    let words: Vec<&str> = rest
        .split('>')
        .next()?
        .split_whitespace()
        .take(64)
        .collect();
    let after = |key| {
        words
            .iter()
            .rposition(|word| *word == key)
            .and_then(|at| words.get(at + 1)?.parse().ok())
    };
    let heads: Option<u64> = after("hd");
    let model_len = words
        .iter()
        .rposition(|word| *word == "cyl")
        .unwrap_or(words.len());
    let cylinder_sectors = heads.and_then(|heads| heads.checked_mul(after("sec")?));
    Some((
        words[..model_len].join(" "),
        Geometry {
            cylinder_sectors,
            cylinders: after("cyl"),
        },
    ))
}

#[derive(Default)]
struct FormatSession {
    selections: HashMap<u32, String>,
    geometries: HashMap<String, Geometry>,
    disk: Option<String>,
    /// Of the label that is being described.
    current: Geometry,
    heads: Option<u64>,
    is_draft: bool,
    prints: Vec<Print>,
    is_in_table: bool,
}

fn read(input: &Input<'_>, builder: &mut Builder) -> Result<Taken, DumpError> {
    let (mut taken, mut session) = (Taken::default(), FormatSession::default());
    for (line, text) in lines(input) {
        session.take(text, line, input, builder, &mut taken);
    }
    let mut last: HashMap<Option<String>, &Print> = HashMap::new();
    for print in &session.prints {
        let known = last
            .get(&print.disk)
            .is_some_and(|known| print.is_draft && !known.is_draft);
        if !known {
            last.insert(print.disk.clone(), print);
        }
    }
    for print in session.prints.iter().filter(|print| {
        last.get(&print.disk)
            .is_some_and(|at| at.line == print.line)
    }) {
        let disk = print
            .disk
            .clone()
            .unwrap_or_else(|| disk_of_file(input, builder));
        print.tell(disk, input, builder);
    }
    anything(taken, input, FORMAT.tool, "disks or a table of slices")
}

impl FormatSession {
    fn take(
        &mut self,
        text: &str,
        line: usize,
        input: &Input<'_>,
        builder: &mut Builder,
        taken: &mut Taken,
    ) {
        if self.is_in_table {
            let columns = self.prints.last().map(|print| print.columns);
            let row = columns.and_then(|columns| row(text, columns, line));
            let looks_like_one = text.starts_with(|c: char| c.is_ascii_digit());
            if looks_like_one {
                count(taken, row.is_some());
            }
            self.is_in_table = looks_like_one;
            if let (Some(row), Some(print)) = (row, self.prints.last_mut()) {
                print.rows.push(row);
            }
            if looks_like_one {
                return;
            }
        }
        if let Some(columns) = table(text) {
            self.is_in_table = true;
            taken.understood += 1;
            self.prints.push(Print {
                disk: self.disk.clone(),
                columns,
                geometry: self.known_geometry(),
                is_draft: self.is_draft,
                line,
                rows: Vec::new(),
            });
            return;
        }
        if self.take_disk(text, line, input, builder) || self.take_geometry(text) {
            taken.understood += 1;
        }
    }

    fn known_geometry(&self) -> Geometry {
        let of_disk = self
            .disk
            .as_ref()
            .and_then(|disk| self.geometries.get(disk))
            .copied()
            .unwrap_or_default();
        Geometry {
            cylinder_sectors: self.current.cylinder_sectors.or(of_disk.cylinder_sectors),
            cylinders: self.current.cylinders.or(of_disk.cylinders),
        }
    }

    /// Lines that list disks or choose one.
    fn take_disk(
        &mut self,
        text: &str,
        line: usize,
        input: &Input<'_>,
        builder: &mut Builder,
    ) -> bool {
        if let Some((number, rest)) = text.split_once(". ")
            && let (Ok(number), Some(name)) = (number.parse(), rest.split_whitespace().next())
            && is_disk(&device_name(name))
        {
            let name = device_name(name).into_owned();
            let (id, source) = (builder.node(&name), input.source(FORMAT.tool, line));
            on_solaris(builder, &source);
            builder.kind(id, Kind::Disk, &source);
            if let Some((model, geometry)) = summary(rest) {
                builder.fact(id, keys::MODEL, model, &source);
                if let Some(sectors) = geometry.cylinder_sectors {
                    builder.fact(id, keys::CYLINDER_SECTORS, sectors, &source);
                }
                self.geometries.insert(name.clone(), geometry);
            }
            self.selections.insert(number, name);
            return true;
        }
        let chosen = if let Some(number) = text.strip_prefix("Specify disk (enter its number)") {
            let number = number
                .rsplit([':', ' '])
                .next()
                .and_then(|number| number.parse::<u32>().ok());
            number.and_then(|number| self.selections.get(&number).cloned())
        } else {
            let name = text
                .strip_prefix("selecting ")
                .and_then(|rest| rest.split([':', ' ']).next());
            name.map(|name| device_name(name).into_owned())
                .filter(|name| is_disk(name))
        };
        if chosen.is_some() {
            (self.disk, self.current) = (chosen, Geometry::default());
            return true;
        }
        false
    }

    /// Lines that tell of cylinders.
    fn take_geometry(&mut self, text: &str) -> bool {
        if let Some(name) = text.strip_prefix("Current partition table (") {
            self.is_draft = !name.starts_with("original");
            return true;
        }
        if text.starts_with("Primary label contents") {
            (self.current, self.is_draft) = (Geometry::default(), false);
            return true;
        }
        if let Some(available) = text.strip_prefix("Total disk cylinders available:") {
            self.current.cylinders = available
                .split_whitespace()
                .next()
                .and_then(|count| count.parse().ok());
            return true;
        }
        let Some((key, value)) = text.split_once('=') else {
            return false;
        };
        let number = value.trim().parse::<u64>().ok();
        match (key.trim(), number) {
            ("ascii name", _) => {
                self.current = summary(value)
                    .map(|(_, geometry)| geometry)
                    .unwrap_or_default();
                true
            }
            ("ncyl", Some(count)) => {
                self.current.cylinders = Some(count);
                true
            }
            ("nhead", Some(heads)) => {
                self.heads = Some(heads);
                true
            }
            ("nsect", Some(sectors)) => {
                let heads = self.heads.take();
                self.current.cylinder_sectors = heads.and_then(|heads| heads.checked_mul(sectors));
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use plumb_geometry::Bytes;

    use super::*;

    #[test]
    fn summaries() {
        let found = summary("0. c1t0d0 <SUN146G cyl 14087 alt 2 hd 24 sec 848>  root").expect("it");
        let geometry = Geometry {
            cylinder_sectors: Some(24 * 848),
            cylinders: Some(14_087),
        };
        assert_eq!(found, ("SUN146G".to_owned(), geometry));
        let found = summary("1. c1t1d0 <HITACHI-HDS7230SASUN300G-A5A0-279.40GB>").expect("it");
        assert_eq!(
            found,
            (
                "HITACHI-HDS7230SASUN300G-A5A0-279.40GB".to_owned(),
                Geometry::default()
            )
        );
    }

    /// A session with two disks; the second one's label is changed and not written.
    #[test]
    fn a_session_names_its_disks() {
        let text = "AVAILABLE DISK SELECTIONS:\n  0. c1t0d0 <DEFAULT cyl 1000 alt 2 hd 255 sec 63>\n\
            \x20     /pci@0,0/sd@0,0\n  1. c1t1d0 <SUN18G cyl 7506 alt 2 hd 19 sec 248>\n\
            Specify disk (enter its number): 1\nselecting c1t1d0\nformat> partition\npartition> print\n\
            Current partition table (original):\nTotal disk cylinders available: 7506 + 2 (reserved cylinders)\n\n\
            Part      Tag    Flag     Cylinders        Size            Blocks\n\
            \x20 0       root    wm       3 -  102      230.08MB    (100/0/0)    471200\n\
            \x20 1 unassigned    wu       0               0         (0/0/0)           0\n\n\
            Current partition table (unnamed):\n\
            Part      Tag    Flag     Cylinders        Size            Blocks\n\
            \x20 0       root    wm       8 -  107      230.08MB    (100/0/0)    471200\n\n";
        let mut builder = Builder::default();
        let taken = read(
            &Input {
                name: "session",
                text,
            },
            &mut builder,
        )
        .expect("reads");
        assert_eq!(taken.passed_over, 0);
        let stack = builder.finish();
        let node = stack.node(stack.find("c1t1d0s0").expect("it"));
        let crate::Placing::Parts { parts } = &node.placing else {
            panic!("{node:?}")
        };
        assert_eq!(
            (parts[0].start, node.size),
            (Bytes(3 * 4712 * 512), Some(Bytes(471_200 * 512)))
        );
        assert_eq!(stack.node(parts[0].node).name, "c1t1d0");
        assert!(stack.find("c1t0d0s0").is_none());
        assert_eq!(stack.problems(), []);
    }

    /// The output of verify before a table decides; a row that contradicts it is no slice.
    #[test]
    fn heads_and_sectors_count_more_than_rows() {
        let text = "selecting c1t0d0\nPrimary label contents:\n\nVolume name = <        >\n\
            ascii name  = <SUN18G cyl 7506 alt 2 hd 19 sec 248>\npcyl        = 7508\nncyl        = 7506\n\
            acyl        =    2\nnhead       =   19\nnsect       =  248\n\
            Part      Tag    Flag     Cylinders        Size            Blocks\n\
            \x20 0       root    wm       0 -   99       48.83MB    (100/0/0)    100000\n\
            \x20 1       swap    wu     100 -  199      230.08MB    (100/0/0)    471200\n\
            \x20 7       home    wm    7500 - 7506       16.11MB    (7/0/0)       32984\n";
        let mut builder = Builder::default();
        read(
            &Input {
                name: "verify",
                text,
            },
            &mut builder,
        )
        .expect("reads");
        let stack = builder.finish();
        let disk = stack.node(stack.find("c1t0d0").expect("it"));
        assert_eq!(disk.number(keys::CYLINDER_SECTORS), Some(4712));
        assert!(stack.find("c1t0d0s0").is_none());
        assert_eq!(
            stack.node(stack.find("c1t0d0s1").expect("it")).size,
            Some(Bytes(471_200 * 512))
        );
        // The last cylinder is 7505.
        let texts: Vec<&str> = stack
            .problems()
            .iter()
            .map(|problem| problem.text.as_str())
            .collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(
            texts[0].contains("slice 0") && texts[1].contains("slice 7"),
            "{texts:?}"
        );
    }

    #[test]
    fn sectors_of_an_efi_label_are_as_long_as_their_sizes_say() {
        let text = "Total disk sectors available: 1000 + 2048 (reserved sectors)\n\
            Part      Tag    Flag     First Sector          Size          Last Sector\n\
            \x20 0        usr    wm               256       1.00GB              262399\n";
        let mut builder = Builder::default();
        read(
            &Input {
                name: "c5t0d0.txt",
                text,
            },
            &mut builder,
        )
        .expect("reads");
        let stack = builder.finish();
        assert_eq!(
            stack.node(stack.find("c5t0d0s0").expect("it")).size,
            Some(Bytes(1 << 30))
        );
    }
}
