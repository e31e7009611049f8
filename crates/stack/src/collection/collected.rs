//! The entries of a collection that are no files of its host: answers of its kernel, bytes of its devices.
//!
//! `answers.json` has what ioctls told, `identify/` the pages that NVMe drives returned, `devices.json` what was read of
//! devices and files, `sectors/` the bytes.

use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use plumb_geometry::group_digits;
use serde::{Deserialize, Serialize};

use super::kept::{BYTES_MAX, Kept, KeptDevice, Pieces};
use super::{ArchiveError, Packer, is_plain, shown};
use crate::linux::{Answers, Identified};

const ANSWERS: &str = "answers.json";
const DEVICES: &str = "devices.json";
const IDENTIFY: &str = "identify";
const SECTORS: &str = "sectors";
/// Length of an Identify page.
const PAGE: usize = 4096;

/// What a check asks of a host beside its files.
#[derive(Default)]
pub struct Collected {
    /// What its kernel answered.
    pub answers: Answers,
    /// What was read of its devices.
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

/// Reads them in an unpacked collection.
///
/// # Errors
/// When one is missing or damaged.
pub fn read(file: &str, folder: &Path) -> Result<Collected, ArchiveError> {
    let reading = CollectionReader { file, folder };
    let mut answers: Answers = reading.json(ANSWERS)?;
    reading.identified(&mut answers)?;
    let listed: Listed = reading.json(DEVICES)?;
    let mut disks = Kept::default();
    for device in listed.devices {
        let pieces = reading.pieces(&device)?;
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
    folder: &'a Path,
}

impl CollectionReader<'_> {
    fn json<T: serde::de::DeserializeOwned>(&self, part: &str) -> Result<T, ArchiveError> {
        let bytes = self.bytes(Path::new(part))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            self.wrong(
                part,
                error.to_string(),
                "what `plumb check --collect` writes",
            )
        })
    }

    /// A file of the collection itself, never through a link.
    fn bytes(&self, part: &Path) -> Result<Vec<u8>, ArchiveError> {
        let path = self.folder.join(part);
        if !is_plain(self.folder, &path) {
            return Err(self.wrong(&shown(part), "a link".to_owned(), "a file"));
        }
        fs::read(path).map_err(|error| self.wrong(&shown(part), error.to_string(), "a file"))
    }

    /// Names in a directory of the collection; none where it is missing.
    fn names(&self, part: &Path) -> Vec<String> {
        let path = self.folder.join(part);
        if !is_plain(self.folder, &path) {
            return Vec::new();
        }
        let entries = fs::read_dir(path).into_iter().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    fn identified(&self, answers: &mut Answers) -> Result<(), ArchiveError> {
        for name in self.names(Path::new(IDENTIFY)) {
            let folder = Path::new(IDENTIFY).join(&name);
            let pages = self.names(&folder);
            let page = |name: &str| {
                let part = folder.join(name);
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

    fn page(&self, part: &Path) -> Result<Box<[u8; PAGE]>, ArchiveError> {
        let bytes = self.bytes(part)?;
        let len = group_digits(bytes.len() as u64);
        bytes
            .into_boxed_slice()
            .try_into()
            .map_err(|_| self.wrong(&shown(part), format!("{len} bytes"), "a page of 4,096"))
    }

    /// The bytes of a device: files named for where they begin.
    fn pieces(&self, device: &KeptDevice) -> Result<Pieces, ArchiveError> {
        let folder = PathBuf::from(&device.folder);
        let mut parts = folder.components();
        if !matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(_)), None)
        ) {
            let expected = "the name of a directory below sectors/";
            return Err(self.wrong(DEVICES, format!("the folder {}", shown(&folder)), expected));
        }
        let folder = Path::new(SECTORS).join(folder);
        let (mut pieces, mut all, mut end) = (Pieces::new(), 0, 0);
        let mut starts = Vec::new();
        for name in self.names(&folder) {
            let expected = "a place in bytes";
            let start: u64 = name
                .parse()
                .map_err(|_| self.wrong(&shown(&folder), shown(Path::new(&name)), expected))?;
            starts.push((start, folder.join(name)));
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
            pieces.insert(start, bytes);
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
    use std::os::unix::fs::symlink;

    use super::*;

    /// A collection that leads to files of whoever reads it says so, and gives none of them away.
    #[test]
    fn links_are_not_followed() {
        let folder = plumb_testkit::temp_dir("collected");
        let at = |part: &str| folder.path().join(part);
        let message = || {
            read("c.tar.zst", folder.path())
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        symlink("/etc/hostname", at(ANSWERS)).expect("a link");
        assert_eq!(
            message(),
            "c.tar.zst: answers.json: found a link, expected a file"
        );
        fs::remove_file(at(ANSWERS))
            .and_then(|()| fs::write(at(ANSWERS), "{}"))
            .expect("a file");
        let device = KeptDevice {
            name: "sda".into(),
            folder: "0-sda".into(),
            size_bytes: 1 << 40,
            ..KeptDevice::default()
        };
        let listed = Listed {
            devices: vec![device],
            images: Vec::new(),
        };
        fs::write(at(DEVICES), serde_json::to_vec(&listed).expect("JSON")).expect("a file");
        fs::create_dir_all(at("sectors/0-sda")).expect("a directory");
        symlink("/etc/hostname", at("sectors/0-sda/0")).expect("a link");
        assert_eq!(
            message(),
            "c.tar.zst: sectors/0-sda/0: found a link, expected a file"
        );
        fs::remove_dir_all(at(SECTORS)).expect("it is gone");
        symlink("/etc", at(SECTORS)).expect("a link");
        assert_eq!(message(), "", "there are no bytes then");
    }
}
