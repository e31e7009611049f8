//! The inventory of a fleet: attributes of hosts and of their devices, such as image, rack, kernel or model, as CSV or JSON.
//!
//! CSV (RFC 4180) has a line of names first; JSON is an array of objects with texts and numbers. `host` names the host and is required.
//! With `device`, the other fields are those of one device; without it, or if it is empty, they are those of the host and of all of its
//! devices. An empty field is unknown. Attributes of a path (`image=web-3/`) come from [`attributes_of_path`].

use std::collections::BTreeMap;

use plumb_geometry::plural;
use serde_json::Value;

/// Names and values of attributes.
pub type Attributes = BTreeMap<String, String>;

/// Longest inventory: a million hosts with six attributes.
pub const LEN_BYTES_MAX: u64 = 128 << 20;
/// Most attributes.
const NAMES_MAX: usize = 64;
/// Longest name or value, in bytes.
const TEXT_BYTES_MAX: usize = 256;

/// Parts of a path that no engine uses for a property of a host: the host itself, the time, and the tier of a history.
const NOT_OF_HOSTS: [&str; 10] = [
    "host", "device", "tier", "date", "year", "month", "week", "day", "hour", "dt",
];

/// Why a file is no inventory.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// A line or an object is not as it must be.
    #[error("{unit} {number}: found {found}, expected {expected}")]
    Row {
        /// `line` or `object`.
        unit: &'static str,
        /// Its number, from 1.
        number: usize,
        /// The content of the place.
        found: String,
        /// The allowed content.
        expected: &'static str,
    },
    /// It is no JSON.
    #[error("found no JSON, expected an array of objects")]
    Json(#[from] serde_json::Error),
    /// It is too long.
    #[error("found {0} bytes, expected at most {LEN_BYTES_MAX}")]
    TooLong(u64),
    /// It is no text.
    #[error("found bytes that are no UTF-8, expected text")]
    Text,
}

/// The attributes of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostAttributes {
    /// Those of the host, and of each of its devices.
    pub own: Attributes,
    /// Those of single devices, by name; they come before those of the host.
    pub devices: BTreeMap<String, Attributes>,
}

/// Attributes by host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    hosts: BTreeMap<String, HostAttributes>,
}

impl Inventory {
    /// Reads CSV or JSON: a file that begins with a bracket is JSON.
    ///
    /// # Errors
    /// When a line or an object has no host, or another number of fields than the first line; when a host or a device is there twice; when a
    /// name or a value is longer than 256 bytes, or there are more than 64 names.
    pub fn read(bytes: &[u8]) -> Result<Inventory, InventoryError> {
        let mut inventory = Inventory::default();
        inventory.add_file(bytes)?;
        Ok(inventory)
    }

    /// Adds the hosts of another file.
    ///
    /// # Errors
    /// As [`Inventory::read`]; also when a host or a device is there already.
    pub fn add_file(&mut self, bytes: &[u8]) -> Result<(), InventoryError> {
        let len = bytes.len() as u64;
        if len > LEN_BYTES_MAX {
            return Err(InventoryError::TooLong(len));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| InventoryError::Text)?;
        let text = text.trim_start_matches('\u{feff}');
        match text.trim_start().starts_with('[') {
            true => self.read_json(text),
            false => self.read_csv(text),
        }
    }

    /// Adds facts that were read on a host. They come behind those of the files before.
    pub fn add_facts(&mut self, host: &str, facts: HostAttributes) {
        let known = self.hosts.entry(host.to_owned()).or_default();
        fill(&mut known.own, facts.own);
        for (device, attributes) in facts.devices {
            fill(known.devices.entry(device).or_default(), attributes);
        }
    }

    /// The attributes of a host, if it is in the inventory.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&HostAttributes> {
        self.hosts.get(name)
    }

    /// The number of hosts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Whether it has no host.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    fn read_json(&mut self, text: &str) -> Result<(), InventoryError> {
        let document: Value = plumb_quoting::json::from_slice(text.as_bytes())?;
        let Value::Array(objects) = document else {
            return Ok(());
        };
        for (at, object) in objects.into_iter().enumerate() {
            let row = RowPlace::new("object", at + 1);
            let Value::Object(object) = object else {
                return Err(row.fault("no object".to_owned(), "an object with a field `host`"));
            };
            let mut fields = Vec::new();
            for (name, value) in object {
                let value = match value {
                    Value::Null => String::new(),
                    Value::String(text) => text,
                    Value::Number(number) => number.to_string(),
                    Value::Bool(is_so) => is_so.to_string(),
                    Value::Array(_) | Value::Object(_) => {
                        return Err(row.fault(name, "texts, numbers, true or false"));
                    }
                };
                fields.push((name, value));
            }
            self.add(row, fields)?;
        }
        Ok(())
    }

    fn read_csv(&mut self, text: &str) -> Result<(), InventoryError> {
        let mut rest = text;
        let mut number = 1;
        let mut names: Option<Vec<String>> = None;
        while !rest.is_empty() {
            let row = RowPlace::new("line", number);
            let (cells, behind) = record(rest)
                .ok_or_else(|| row.fault("a quote".to_owned(), "cells with paired quotes"))?;
            number += rest[..rest.len() - behind.len()].matches('\n').count();
            rest = behind;
            if cells.len() == 1 && cells[0].is_empty() {
                continue;
            }
            let Some(names) = &names else {
                names = Some(cells);
                continue;
            };
            if cells.len() != names.len() {
                let found = plural(cells.len() as u64, "cell");
                return Err(row.fault(found, "as many as in the first line"));
            }
            self.add(row, names.iter().cloned().zip(cells).collect())?;
        }
        Ok(())
    }

    /// Adds the fields of a line or an object.
    fn add(&mut self, row: RowPlace, fields: Vec<(String, String)>) -> Result<(), InventoryError> {
        if fields.len() > NAMES_MAX {
            let found = format!("{} fields", fields.len());
            return Err(row.fault(found, "at most 64"));
        }
        let mut attributes = Attributes::new();
        for (name, value) in fields {
            let [name, value] = [name.trim(), value.trim()];
            if name.len().max(value.len()) > TEXT_BYTES_MAX {
                let found = format!("{} bytes", name.len().max(value.len()));
                return Err(row.fault(found, "names and values of at most 256 bytes"));
            }
            let is_new = value.is_empty()
                || attributes
                    .insert(name.to_owned(), value.to_owned())
                    .is_none();
            if !is_new {
                return Err(row.fault(format!("{name} twice"), "each name once"));
            }
        }
        let host = attributes
            .remove("host")
            .ok_or_else(|| row.fault("no host".to_owned(), "a field `host`"))?;
        let device = attributes.remove("device");
        let known = self.hosts.entry(host.clone()).or_default();
        let (place, name) = match device {
            Some(device) => {
                let name = format!("device {device} of host {host}");
                (known.devices.entry(device).or_default(), name)
            }
            None => (&mut known.own, format!("host {host}")),
        };
        if !place.is_empty() {
            return Err(row.fault(format!("{name} twice"), "each host and device once"));
        }
        *place = attributes;
        Ok(())
    }
}

/// Adds attributes whose names are not there.
fn fill(known: &mut Attributes, others: Attributes) {
    for (name, value) in others {
        known.entry(name).or_insert(value);
    }
}

/// The place of a line or an object, for errors.
#[derive(Clone, Copy)]
struct RowPlace {
    unit: &'static str,
    number: usize,
}

impl RowPlace {
    fn new(unit: &'static str, number: usize) -> RowPlace {
        RowPlace { unit, number }
    }

    fn fault(self, found: String, expected: &'static str) -> InventoryError {
        InventoryError::Row {
            unit: self.unit,
            number: self.number,
            found,
            expected,
        }
    }
}

/// The cells of the first record, and the text behind it; `None` if a quote has no pair, or text follows a cell in quotes.
fn record(text: &str) -> Option<(Vec<String>, &str)> {
    let mut cells = Vec::new();
    let mut rest = text;
    loop {
        let (cell, behind) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_cell(quoted)?,
            None => {
                let end = rest.find([',', '\n']).unwrap_or(rest.len());
                (rest[..end].trim_end_matches('\r').to_owned(), &rest[end..])
            }
        };
        cells.push(cell);
        let behind = behind.strip_prefix('\r').unwrap_or(behind);
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None if behind.is_empty() => return Some((cells, behind)),
            None => return Some((cells, behind.strip_prefix('\n')?)),
        }
    }
}

/// The text of a cell up to its closing quote, and the text behind that. Two quotes stand for one.
fn quoted_cell(text: &str) -> Option<(String, &str)> {
    let mut cell = String::new();
    let mut rest = text;
    loop {
        let (part, behind) = rest.split_once('"')?;
        cell += part;
        match behind.strip_prefix('"') {
            Some(next) => {
                cell.push('"');
                rest = next;
            }
            None => return Some((cell, behind)),
        }
    }
}

/// The attributes of a host in the names of its inputs: parts of paths such as `image=web-3`. A name with different values is left out,
/// because the I/O of these inputs are one sum.
#[must_use]
pub fn attributes_of_path<'a>(inputs: impl IntoIterator<Item = &'a String>) -> Attributes {
    let mut found: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for input in inputs {
        let folders = input.rsplit_once('/').map_or("", |(folders, _)| folders);
        for part in folders.split('/') {
            let Some((name, value)) = part.split_once('=') else {
                continue;
            };
            if name.is_empty() || value.is_empty() || NOT_OF_HOSTS.contains(&name) {
                continue;
            }
            let known = found.entry(name).or_insert(Some(value));
            if *known != Some(value) {
                *known = None;
            }
        }
    }
    found
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect()
}
