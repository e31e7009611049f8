//! The entries of a collection that are no files of its host: answers of its kernel, bytes of its devices.
//!
//! `answers.json` has results of ioctls, `identify/` the pages that NVMe drives returned, `devices.json` the list of
//! ranges read from devices and files, `sectors/` their bytes.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;

use plumb_geometry::group_digits;
use plumb_sys::{Errno, FileTree};
use serde::{Deserialize, Serialize};

use super::entries::shown;
use super::kept::{BYTES_MAX, Kept, KeptDevice, Pieces};
use super::{ArchiveError, Packer};
use crate::linux::{Answers, Identified};

const ANSWERS: &str = "answers.json";
const DEVICES: &str = "devices.json";
const IDENTIFY: &str = "identify";
const SECTORS: &str = "sectors";
/// Length of an Identify page.
const PAGE: usize = 4096;

/// The answers that a check needs of a host beside its files.
#[derive(Default)]
pub struct Collected {
    /// The answers of its kernel.
    pub answers: Answers,
    /// The bytes read of its devices.
    pub disks: Kept,
    /// Images of guests that were asked for, by their paths.
    pub images: Vec<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    devices: Vec<KeptDevice>,
    images: Vec<String>,
}

/// Adds answers and bytes; tells how many bytes, and of how many devices.
pub fn pack<W: Write>(
    packer: &mut Packer<W>,
    answers: &Answers,
    kept: Vec<(KeptDevice, Pieces)>,
    images: Vec<String>,
) -> io::Result<(u64, u64)> {
    packer.file(Path::new(ANSWERS), &serde_json::to_vec_pretty(answers)?)?;
    for (name, pages) in answers.identified() {
        let folder = Path::new(IDENTIFY).join(name);
        packer.file(&folder.join("namespace"), &pages.namespace[..])?;
        if let Some(controller) = &pages.controller {
            packer.file(&folder.join("controller"), &controller[..])?;
        }
    }
    let (mut bytes_kept, mut devices_kept) = (0, 0);
    let mut devices = Vec::with_capacity(kept.len());
    for (device, pieces) in kept {
        let folder = Path::new(SECTORS).join(&device.folder);
        devices_kept += u64::from(!pieces.is_empty());
        for (start, bytes) in pieces {
            bytes_kept += bytes.len() as u64;
            packer.file(&folder.join(start.to_string()), &bytes)?;
        }
        devices.push(device);
    }
    packer.file(
        Path::new(DEVICES),
        &serde_json::to_vec_pretty(&Listed { devices, images })?,
    )?;
    Ok((bytes_kept, devices_kept))
}

/// Reads them in the files of a collection; links are not followed.
///
/// # Errors
/// When one is missing or damaged.
pub(super) fn read(file: &str, tree: &FileTree) -> Result<Collected, ArchiveError> {
    let reading = CollectionReader { file, tree };
    let mut answers: Answers = reading.json(ANSWERS)?;
    reading.identified(&mut answers)?;
    let listed: Listed = reading.json(DEVICES)?;
    let mut disks = Kept::default();
    let mut folders = HashSet::new();
    for device in listed.devices {
        let pieces = reading.pieces(&device)?;
        // Else a list of names would copy the bytes of one device as often as it is long.
        if !folders.insert(device.folder.clone()) {
            let found = format!("the folder {} twice", shown(&device.folder));
            return Err(reading.wrong(DEVICES, found, "one for each device"));
        }
        disks.add(device, pieces);
    }
    Ok(Collected {
        answers,
        disks,
        images: listed.images,
    })
}

struct CollectionReader<'a> {
    file: &'a str,
    tree: &'a FileTree,
}

impl CollectionReader<'_> {
    fn json<T: serde::de::DeserializeOwned>(&self, part: &str) -> Result<T, ArchiveError> {
        serde_json::from_slice(self.bytes(part)?).map_err(|error| {
            self.wrong(
                part,
                error.to_string(),
                "an archive of `plumb check --collect`",
            )
        })
    }

    fn bytes(&self, part: &str) -> Result<&[u8], ArchiveError> {
        let bytes = self.tree.file(part);
        bytes.map_err(|errno| {
            let found = match errno {
                Errno::LOOP => "a link".to_owned(),
                errno => errno.to_string(),
            };
            self.wrong(&shown(part), found, "a file")
        })
    }

    /// Names in a directory of the collection; none where it is missing.
    fn names(&self, part: &str) -> Vec<String> {
        self.tree.names(part).unwrap_or_default()
    }

    fn identified(&self, answers: &mut Answers) -> Result<(), ArchiveError> {
        for name in self.names(IDENTIFY) {
            let folder = format!("{IDENTIFY}/{name}");
            let pages = self.names(&folder);
            let page = |name: &str| {
                let part = format!("{folder}/{name}");
                pages
                    .iter()
                    .any(|known| known == name)
                    .then(|| self.page(&part))
                    .transpose()
            };
            let controller = page("controller")?;
            if let Some(namespace) = page("namespace")? {
                answers.add_identified(
                    &name,
                    Identified {
                        namespace,
                        controller,
                    },
                );
            }
        }
        Ok(())
    }

    fn page(&self, part: &str) -> Result<Box<[u8; PAGE]>, ArchiveError> {
        let bytes = self.bytes(part)?;
        let len = group_digits(bytes.len() as u64);
        <[u8; PAGE]>::try_from(bytes)
            .map(Box::new)
            .map_err(|_| self.wrong(&shown(part), format!("{len} bytes"), "a page of 4,096"))
    }

    /// The bytes of a device: files named for where they begin.
    fn pieces(&self, device: &KeptDevice) -> Result<Pieces, ArchiveError> {
        let is_name = !["", ".", ".."].contains(&&*device.folder);
        if !is_name || device.folder.contains('/') {
            let expected = "the name of a directory below sectors/";
            let found = format!("the folder `{}`", shown(&device.folder));
            return Err(self.wrong(DEVICES, found, expected));
        }
        let folder = format!("{SECTORS}/{}", device.folder);
        let (mut pieces, mut all, mut end) = (Pieces::new(), 0, 0);
        let mut starts = Vec::new();
        for name in self.names(&folder) {
            let expected = "a place in bytes";
            let start: u64 = name
                .parse()
                .map_err(|_| self.wrong(&shown(&folder), shown(&name), expected))?;
            starts.push((start, format!("{folder}/{name}")));
        }
        starts.sort();
        for (start, part) in starts {
            let bytes = self.bytes(&part)?;
            all += bytes.len() as u64;
            let next = start
                .checked_add(bytes.len() as u64)
                .filter(|next| *next <= device.size_bytes);
            let Some(next) = next.filter(|_| start >= end && all <= BYTES_MAX) else {
                let found = format!("{} bytes", group_digits(bytes.len() as u64));
                let expected = "runs apart, inside of the device, of 16 MiB together";
                return Err(self.wrong(&shown(&part), found, expected));
            };
            end = next;
            pieces.insert(start, bytes.to_vec());
        }
        Ok(pieces)
    }

    fn wrong(&self, part: &str, found: String, expected: &'static str) -> ArchiveError {
        ArchiveError::Part {
            file: self.file.to_owned(),
            part: part.to_owned(),
            found,
            expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(folder: &str) -> KeptDevice {
        KeptDevice {
            name: "sda".into(),
            folder: folder.into(),
            size_bytes: 1 << 40,
            ..KeptDevice::default()
        }
    }

    /// The message for a collection with these devices and the added entries.
    fn message(devices: Vec<KeptDevice>, add: impl Fn(&mut FileTree)) -> String {
        let mut tree = FileTree::new(1 << 20);
        add(&mut tree);
        let images = Vec::new();
        let listed = serde_json::to_vec(&Listed { devices, images }).expect("JSON");
        tree.add_file(DEVICES, listed).expect("room");
        let read = read("c.tar.zst", &tree);
        read.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    fn answers(tree: &mut FileTree) {
        tree.add_file(ANSWERS, b"{}".to_vec()).expect("room");
    }

    /// A collection with links to files of the reading host is refused, and reveals nothing of them.
    #[test]
    fn links_are_not_followed() {
        let one = message(Vec::new(), |tree| {
            tree.add_link(ANSWERS, "/etc/hostname").expect("room");
        });
        let other = message(vec![device("0-sda")], |tree| {
            answers(tree);
            let link = tree.add_link("sectors/0-sda/0", "/etc/hostname");
            link.expect("room");
        });
        insta::assert_snapshot!([one, other].join("\n\n"));
        let said = message(vec![device("0-sda")], |tree| {
            answers(tree);
            tree.add_link(SECTORS, "/etc").expect("room");
        });
        assert_eq!(said, "", "there are no bytes then");
    }

    /// A short list must not make many copies of long files.
    #[test]
    fn each_device_has_its_own_bytes() {
        let two = vec![device("0-sda"), device("0-sda")];
        let mut messages = vec![message(two, answers)];
        for folder in ["..", ".", "", "a/b", "/etc"] {
            messages.push(message(vec![device(folder)], answers));
        }
        insta::assert_snapshot!(messages.join("\n\n"));
    }
}
