//! Arrays, drives and cloud volumes that do not tell their own units: a table that comes with the program, and tables
//! of the user in the same form.
//!
//! A row found by the model of a disk is evidence like any other; if it names a setting or one of several ranges, it is
//! kept as a hint that is not believed. A row that the user picked by name is believed.

use std::collections::HashSet;

use plumb_geometry::{Bytes, Grid, GridError, GridKind, SizeError, parse_size};
use serde::Deserialize;
use thiserror::Error;

use crate::builder::Builder;
use crate::graph::{HOST, NodeId};
use crate::grid::{Belief, CellKind, GridFact, Source};
use crate::node::{Node, Placing, keys};
use crate::obstacle::GridDoubt;

/// Most bytes of a table that are read.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

const BUILT_IN: &str = include_str!("catalogue.toml");

/// The meaning of a row's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Moved as a whole: an allocation unit.
    Unit,
    /// A segment of a hardware stripe: an I/O is cut at its boundaries.
    Segment,
    /// The unit in which flash is mapped.
    Indirection,
    /// Bytes that are counted as one I/O at most: says nothing of alignment.
    Counted,
}

/// One known array, drive or volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownDevice {
    /// Name to pick it by.
    pub name: String,
    /// Patterns of the model, `*` for anything.
    pub models: Vec<String>,
    /// Patterns of the name of a device.
    pub devices: Vec<String>,
    /// The unit, with the offset of the first one.
    pub grid: Grid,
    /// Its role.
    pub role: Role,
    /// Alternatives, if the model alone does not decide.
    pub choice: Option<String>,
    /// The document that says so.
    pub document: String,
}

/// Rows in the order in which they are tried: the first that fits a disk counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    rows: Vec<KnownDevice>,
    joins: Vec<KnownJoin>,
}

/// A disk of a guest and its device on the host, each as `HOST:DEVICE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownJoin {
    /// The disk of the guest.
    pub disk: String,
    /// The device or file of its host.
    pub device: String,
    /// File and line that say so.
    pub place: String,
}

/// Why a table cannot be used.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum CatalogueError {
    /// It is no TOML, or not of this form.
    #[error(
        "{file}:{line}: {found}; expected rows [[array]] with name, unit, kind and document, or [[join]] with disk and device"
    )]
    Form {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The fault there.
        found: String,
    },
    /// A size is none.
    #[error("{file}: {key} of `{row}`")]
    Size {
        /// The file.
        file: String,
        /// The row.
        row: String,
        /// `unit` or `offset`.
        key: &'static str,
        /// Why.
        source: Box<SizeError>,
    },
    /// Unit and offset make no grid.
    #[error("{file}: `{row}`")]
    Grid {
        /// The file.
        file: String,
        /// The row.
        row: String,
        /// Why.
        source: GridError,
    },
    /// No row has this name.
    #[error("no array named `{found}`: expected one of {expected}")]
    NoSuchRow {
        /// The requested name.
        found: String,
        /// All names.
        expected: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    array: Vec<FileRow>,
    #[serde(default)]
    join: Vec<FileJoin>,
}

/// A join as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileJoin {
    disk: toml::Spanned<String>,
    device: String,
}

/// A row as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRow {
    name: String,
    #[serde(default)]
    model: Vec<String>,
    #[serde(default)]
    device: Vec<String>,
    unit: String,
    offset: Option<String>,
    kind: Role,
    choice: Option<String>,
    document: String,
}

impl Catalogue {
    /// The table that comes with the program.
    ///
    /// # Panics
    /// Never: a test reads it.
    #[must_use]
    pub fn built_in() -> Catalogue {
        Catalogue::parse("known arrays", BUILT_IN)
            .expect("the table that comes with the program is in form")
    }

    /// Reads a table.
    ///
    /// # Errors
    /// When it is not in form.
    pub fn parse(file: &str, text: &str) -> Result<Catalogue, CatalogueError> {
        let line = |start: usize| text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        let parsed: File = toml::from_str(text).map_err(|error| CatalogueError::Form {
            file: file.to_owned(),
            line: line(error.span().map_or(0, |span| span.start)),
            found: error.message().replace('\n', ", "),
        })?;
        let rows = parsed.array.into_iter().map(|row| row.checked(file));
        let joins = parsed.join.into_iter().map(|join| KnownJoin {
            place: format!("{file}:{}", line(join.disk.span().start)),
            disk: join.disk.into_inner(),
            device: join.device,
        });
        Ok(Catalogue {
            rows: rows.collect::<Result<_, _>>()?,
            joins: joins.collect(),
        })
    }

    /// Puts the rows of another table before these.
    #[must_use]
    pub fn behind(self, mut first: Catalogue) -> Catalogue {
        first.rows.extend(self.rows);
        first.joins.extend(self.joins);
        first
    }

    /// Disks of guests and their devices on hosts.
    #[must_use]
    pub fn joins(&self) -> &[KnownJoin] {
        &self.joins
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[KnownDevice] {
        &self.rows
    }

    /// The row of a name.
    ///
    /// # Errors
    /// If the name is unknown.
    pub fn named(&self, name: &str) -> Result<&KnownDevice, CatalogueError> {
        let named = self
            .rows
            .iter()
            .find(|row| row.name.eq_ignore_ascii_case(name));
        named.ok_or_else(|| CatalogueError::NoSuchRow {
            found: name.to_owned(),
            expected: self
                .rows
                .iter()
                .map(|row| row.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        })
    }

    /// Adds to each disk the facts of its row; `picked` applies to disks without a known model.
    pub fn apply(&self, builder: &mut Builder, picked: Option<&KnownDevice>) {
        for id in leaves(builder) {
            let node = builder.get(id);
            let by_model = self.rows.iter().find(|row| row.fits(node));
            let is_nameless = node.word(keys::MODEL).is_none();
            match (by_model, picked) {
                (Some(row), _) => row.put(builder, id, false),
                (None, Some(row)) if is_nameless => row.put(builder, id, true),
                _ => {}
            }
        }
    }
}

impl FileRow {
    fn checked(self, file: &str) -> Result<KnownDevice, CatalogueError> {
        let size = |key, text: &str| {
            parse_size(text).map_err(|source| CatalogueError::Size {
                file: file.to_owned(),
                row: self.name.clone(),
                key,
                source: Box::new(source),
            })
        };
        let unit = size("unit", &self.unit)?;
        let offset = self
            .offset
            .as_deref()
            .map_or(Ok(Bytes(0)), |text| size("offset", text))?;
        let kind = if self.kind == Role::Segment {
            GridKind::Boundary
        } else {
            GridKind::Unit
        };
        let grid = Grid::new(unit, offset, kind).map_err(|source| CatalogueError::Grid {
            file: file.to_owned(),
            row: self.name.clone(),
            source,
        })?;
        Ok(KnownDevice {
            name: self.name,
            models: self.model,
            devices: self.device,
            grid,
            role: self.kind,
            choice: self.choice,
            document: self.document,
        })
    }
}

impl KnownDevice {
    fn fits(&self, node: &Node) -> bool {
        let model = node.word(keys::MODEL);
        let by_model =
            model.is_some_and(|model| self.models.iter().any(|pattern| matches(pattern, model)));
        by_model
            || self
                .devices
                .iter()
                .any(|pattern| matches(pattern, &node.name))
    }

    fn put(&self, builder: &mut Builder, id: NodeId, is_picked: bool) {
        let source = Source::Catalogue {
            document: self.document.clone(),
        };
        let what = match self.role {
            Role::Unit | Role::Segment => CellKind::ArrayUnit,
            Role::Indirection => CellKind::IndirectionUnit,
            Role::Counted => {
                let bytes = self.grid.granularity();
                return builder.fact(id, keys::COUNTED_IO, bytes, &source);
            }
        };
        let belief = match &self.choice {
            Some(why) if !is_picked => Belief::Doubted {
                why: GridDoubt::Choice { said: why.clone() },
            },
            _ => Belief::Believed,
        };
        builder.grid(
            id,
            GridFact {
                grid: self.grid,
                what,
                source,
                belief,
            },
        );
    }
}

/// Adds a grid that the user gave to everything that holds sectors.
pub fn give(builder: &mut Builder, grid: Grid) {
    for id in leaves(builder) {
        builder.grid(
            id,
            GridFact::believed(grid, CellKind::ArrayUnit, Source::User),
        );
    }
}

/// Nodes on which bytes end, as [`crate::Stack::is_leaf`] has it: a file where it is read as a disk.
fn leaves(builder: &Builder) -> Vec<NodeId> {
    let carrying: HashSet<NodeId> = builder
        .ids()
        .flat_map(|id| builder.get(id).placing.below())
        .collect();
    let ends = |id: &NodeId| {
        let node = builder.get(*id);
        let is_disk = node.is_read_as_disk() || carrying.contains(id);
        !node.is_seen_through()
            && (node.kind.is_leaf()
                || node.placing == Placing::Leaf && is_disk && node.name != HOST)
    };
    builder.ids().filter(ends).collect()
}

/// Whether a name fits a pattern in which `*` stands for anything, capital or small.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Kind;

    const FROM: Source = Source::User;

    /// Grids of a disk of this model by the built-in table, and of the picked row.
    fn grids(model: Option<&str>, picked: Option<&str>) -> Vec<GridFact> {
        let catalogue = Catalogue::built_in();
        let mut builder = Builder::default();
        let disk = builder.node("sda");
        builder.kind(disk, Kind::Disk, &FROM);
        if let Some(model) = model {
            builder.fact(disk, keys::MODEL, model, &FROM);
        }
        let picked = picked.map(|name| catalogue.named(name).expect("a row"));
        catalogue.apply(&mut builder, picked);
        builder.get(disk).grids.clone()
    }

    #[test]
    fn the_built_in_table_has_the_known_arrays() {
        // Sizes as the two papers and the pull requests have them.
        for (name, bytes) in [
            ("sun-zfs-appliance-8k", 8192),
            ("sun-storedge-9980", 49_152),
            ("sun-t3-32k", 32_768),
            ("sun-t3-64k", 65_536),
            ("sun-storedge-6910-32k", 32_768),
            ("sun-storedge-6910-64k", 65_536),
            ("qlc-16k", 16_384),
            ("qlc-64k", 65_536),
        ] {
            let grids = grids(None, Some(name));
            assert_eq!(grids.len(), 1, "{name}");
            assert_eq!(grids[0].granularity(), Bytes(bytes), "{name}");
            assert!(grids[0].is_believed(), "{name}: the user said so");
        }
    }

    #[test]
    fn a_row_that_names_a_setting_is_only_a_hint() {
        let hint = grids(Some("SUN     ZFS Storage 7320"), None);
        assert!(matches!(&hint[..], [one] if !one.is_believed()), "{hint:?}");
        let drive = grids(Some("INTEL SSDPFWNV153TZ"), None);
        assert!(
            matches!(&drive[..], [one] if one.is_believed() && one.what == CellKind::IndirectionUnit),
            "{drive:?}"
        );
        assert_eq!(
            grids(Some("QEMU HARDDISK"), Some("qlc-64k")),
            [],
            "its model is known, and is no QLC drive"
        );
    }

    #[test]
    fn counted_units_are_no_grid() {
        assert_eq!(grids(None, Some("aws-ebs-ssd")), []);
    }

    #[test]
    fn tables_of_users_go_first() {
        let mine = "[[array]]\nname = 'mine'\ndevice = ['c3t*']\nunit = '64k'\noffset = '17408'\nkind = 'unit'\n\
                    document = 'our array'\n";
        let catalogue =
            Catalogue::built_in().behind(Catalogue::parse("my.toml", mine).expect("in form"));
        let mut builder = Builder::default();
        let disks = ["c3t8d0", "c4t8d0"].map(|name| {
            let disk = builder.node(name);
            builder.kind(disk, Kind::Disk, &FROM);
            disk
        });
        catalogue.apply(&mut builder, None);
        let [one, other] = disks.map(|disk| builder.get(disk).grids.clone());
        assert_eq!(
            (one[0].grid.granularity(), one[0].grid.offset()),
            (Bytes(65_536), Bytes(17_408))
        );
        insta::assert_snapshot!(one[0].source);
        assert_eq!(other, []);
    }

    #[test]
    fn errors_have_a_place() {
        let message = |text: &str| {
            let error = Catalogue::parse("my.toml", text).expect_err("not in form");
            let cause = std::error::Error::source(&error)
                .map(ToString::to_string)
                .unwrap_or_default();
            format!("{error}: {cause}")
                .trim_end_matches(": ")
                .to_owned()
        };
        let row = |unit: &str, offset: &str| {
            format!(
                "[[array]]\nname = 'a'\nunit = '{unit}'\noffset = '{offset}'\nkind = 'unit'\ndocument = ''\n"
            )
        };
        let faults = [
            "\n\n[[array]]\nname = 3\n",
            "[[arrays]]\n",
            &row("8MB", "0"),
            &row("8k", "9k"),
        ];
        let faults = faults.map(message);
        let none = Catalogue::built_in()
            .named("vax")
            .expect_err("no such row")
            .to_string();
        insta::assert_snapshot!(faults.join("\n\n") + "\n\n" + &none);
    }

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("sun*t3*", "SUN     T300", true),
            ("sun*t3", "SUN T300", false),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("*", "", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*a", "a", false),
            ("ä*", "Äb", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
