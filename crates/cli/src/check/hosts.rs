//! Several hosts in one check: their names, and the host's device of each guest's disk.

use std::collections::HashMap;
use std::path::Path;

use plumb_stack::catalogue::Catalogue;
use plumb_stack::grid::Source;
use plumb_stack::{Builder, NodeId};

use crate::cli::{Check, HostedName, Join};
use crate::failure::Failure;

/// Longest name of a host (gethostname(2)).
const NAME_MAX: usize = 64;

/// A host that was read, under construction.
pub struct HostDraft {
    /// Its name: its own, or that of its file.
    pub name: String,
    /// Name of the file without `.tar.zst`.
    pub file: String,
    /// Its facts.
    pub builder: Builder,
}

/// A wanted join, with its source.
pub struct Wanted {
    join: Join,
    /// `--join TEXT`, or file and line.
    place: String,
    /// Whether it must be of the hosts that were read: joins in a file may be of others.
    must_be: bool,
}

/// The host of a side: among the hosts read, or this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Here,
    At(usize),
}

/// The hosts of one check.
#[derive(Default)]
pub struct Hosts {
    /// Those that were read.
    pub read: Vec<HostDraft>,
    /// The name of this host.
    pub here: Option<String>,
}

/// All joins that the user gave, those of the command line first.
///
/// # Errors
/// When one in a file is none.
pub fn wanted(args: &Check, known: &Catalogue) -> Result<Vec<Wanted>, Failure> {
    let typed = args.join.iter().map(|join| {
        let place = format!("--join {}={}", join.disk, join.device);
        Ok(Wanted {
            join: join.clone(),
            place,
            must_be: true,
        })
    });
    let noted = known.joins().iter().map(|join| {
        let side = |text: &str| match HostedName::parse(text) {
            Ok(side) if side.host.is_some() => Ok(side),
            _ => Err(Failure::usage(format!(
                "{}: found `{text}`, expected HOST:DEVICE",
                join.place
            ))),
        };
        let sides = Join {
            disk: side(&join.disk)?,
            device: side(&join.device)?,
        };
        Ok(Wanted {
            join: sides,
            place: join.place.clone(),
            must_be: false,
        })
    });
    typed.chain(noted).collect()
}

/// A name that tells hosts apart in `HOST:DEVICE`; `None` where nothing is left of it.
pub fn plain_name(text: &str) -> Option<String> {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = text
        .trim()
        .chars()
        .filter(is_plain)
        .take(NAME_MAX)
        .collect();
    (!name.is_empty()).then_some(name)
}

/// Name of a collection's file without directory and ending.
pub fn name_of_file(path: &Path) -> String {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let stem = name.split(".tar").next().unwrap_or_default();
    plain_name(stem).unwrap_or_else(|| "host".to_owned())
}

impl Hosts {
    /// Adds a host. If two have the same name, both get the names of their files.
    pub fn add(&mut self, own: Option<String>, file: String, builder: Builder) {
        let name = own.unwrap_or_else(|| file.clone());
        self.read.push(HostDraft {
            name,
            file,
            builder,
        });
        let names: Vec<String> = self.read.iter().map(|host| host.name.clone()).collect();
        let is_shared = |name: &String| {
            names.iter().filter(|other| *other == name).count() > 1
                || self.here.as_ref() == Some(name)
        };
        for (at, host) in self.read.iter_mut().enumerate() {
            if is_shared(&names[at]) {
                host.name.clone_from(&host.file);
            }
        }
        // Files of one name are in different directories.
        for at in 1..self.read.len() {
            if self.read[..at]
                .iter()
                .any(|other| other.name == self.read[at].name)
            {
                self.read[at].name = format!("{}-{}", self.read[at].file, at + 1);
            }
        }
    }

    fn find(&self, host: &str) -> Option<Where> {
        let named = self.read.iter().position(|known| known.name == host);
        let at = named.or_else(|| self.read.iter().position(|known| known.file == host));
        at.map(Where::At)
            .or_else(|| (self.here.as_deref() == Some(host)).then_some(Where::Here))
    }

    /// The hosts of disk and device; `None` for a host that was not read.
    fn sides(&self, join: &Join) -> (Option<Where>, Option<Where>) {
        let side = |side: &HostedName| {
            side.host
                .as_deref()
                .map_or(Some(Where::Here), |host| self.find(host))
        };
        // Without any host it is a disk of this one on the only other.
        let device = match (&join.disk.host, &join.device.host, self.read.len()) {
            (None, None, 1) => Some(Where::At(0)),
            _ => side(&join.device),
        };
        (side(&join.disk), device)
    }

    /// The devices of this host in the joins; `None` if there are no such joins.
    pub fn asked_here(&self, wanted: &[Wanted]) -> Option<Vec<String>> {
        let mut names = Vec::new();
        for Wanted { join, .. } in wanted {
            let (disk, device) = self.sides(join);
            if disk.is_none() || device.is_none() {
                continue;
            }
            let sides = [(disk, &join.disk), (device, &join.device)];
            names.extend(
                sides
                    .into_iter()
                    .filter(|side| side.0 == Some(Where::Here))
                    .map(|side| side.1.name.clone()),
            );
        }
        (!names.is_empty()).then_some(names)
    }

    /// One graph of all hosts: devices of this one keep their names, those of the others follow the name of theirs.
    /// `known` are nodes of this host that were found otherwise than by name.
    ///
    /// # Errors
    /// When a join is not possible.
    pub fn into_one(
        mut self,
        here: Option<Builder>,
        known: &HashMap<String, NodeId>,
        wanted: &[Wanted],
    ) -> Result<Builder, Failure> {
        let is_alone = here.is_none() && self.read.len() == 1;
        if is_alone {
            let alone = wanted.iter().find(|one| one.must_be);
            return match (alone, self.read.pop()) {
                (None, Some(host)) => Ok(host.builder),
                (alone, _) => Err(not_two(alone.map_or("--join", |one| one.place.as_str()))),
            };
        }
        let mut builder = here.unwrap_or_default();
        for host in &mut self.read {
            builder.absorb(std::mem::take(&mut host.builder), &host.name);
        }
        for one in wanted {
            self.join(&mut builder, known, one)?;
        }
        builder.join_by_identity();
        Ok(builder)
    }

    fn join(
        &self,
        builder: &mut Builder,
        known: &HashMap<String, NodeId>,
        one: &Wanted,
    ) -> Result<(), Failure> {
        let (disk, device) = match self.sides(&one.join) {
            (Some(disk), Some(device)) => (disk, device),
            _ if !one.must_be => return Ok(()),
            (None, _) => return Err(self.no_host(one, &one.join.disk)),
            (_, None) => return Err(self.no_host(one, &one.join.device)),
        };
        let find = |side: &HostedName, at: Where| {
            let host = match at {
                Where::Here => None,
                Where::At(at) => Some(self.read[at].name.as_str()),
            };
            let of_here = || {
                if at == Where::Here {
                    known.get(&side.name).copied()
                } else {
                    None
                }
            };
            // The disk in an image is the guest's, unless it is the image itself.
            let in_image = builder.find_on(host, &format!("{}:disk", side.name));
            in_image.or_else(of_here).or_else(|| builder.find_on(host, &side.name)).ok_or_else(|| {
                let host = host.map_or_else(|| "this host".to_owned(), str::to_owned);
                Failure::usage(format!("{}: found no {} on {host}", one.place, side.name)).with_help(
                    "names are those of lsblk or paths below /dev; an image has to be gathered with --images",
                )
            })
        };
        let (disk, device) = (find(&one.join.disk, disk)?, find(&one.join.device, device)?);
        builder
            .join(disk, device, &Source::User)
            .map_err(|error| Failure::usage(format!("{}: {error}", one.place)))
    }

    fn no_host(&self, one: &Wanted, side: &HostedName) -> Failure {
        let host = side.host.as_deref().unwrap_or_default();
        let names: Vec<&str> = self.read.iter().map(|host| host.name.as_str()).collect();
        Failure::usage(format!(
            "{}: found no host {host}, expected one of {}",
            one.place,
            names.join(", ")
        ))
    }
}

/// A join within a single host.
pub fn not_two(place: &str) -> Failure {
    Failure::usage(format!(
        "{place}: found one host, expected a guest and its host"
    ))
    .with_help("give the collection of the other one with --from; `plumb check --collect` makes it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_taken_apart() {
        let side = |host: Option<&str>, name: &str| HostedName {
            host: host.map(str::to_owned),
            name: name.to_owned(),
        };
        for (text, expected) in [
            ("vda", side(None, "vda")),
            ("web1:vda", side(Some("web1"), "vda")),
            ("kvm3:/dev/vg/a", side(Some("kvm3"), "/dev/vg/a")),
            (
                "/dev/disk/by-path/pci-0:1",
                side(None, "/dev/disk/by-path/pci-0:1"),
            ),
        ] {
            assert_eq!(HostedName::parse(text), Ok(expected), "{text}");
        }
        for text in ["", ":vda", "web1:"] {
            assert!(HostedName::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn hosts_of_one_name_are_called_as_their_files() {
        let mut hosts = Hosts {
            here: Some("kvm3".to_owned()),
            ..Hosts::default()
        };
        for (own, file) in [
            ("a", "one"),
            ("a", "two"),
            ("b", "three"),
            ("kvm3", "four"),
            ("b2", "one"),
        ] {
            hosts.add(Some(own.to_owned()), file.to_owned(), Builder::default());
        }
        let names: Vec<&str> = hosts.read.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["one", "two", "b", "four", "b2"]);
        assert_eq!(hosts.find("two"), Some(Where::At(1)));
        assert_eq!(hosts.find("three"), Some(Where::At(2)), "by its file");
        assert_eq!(hosts.find("kvm3"), Some(Where::Here));
        assert_eq!(hosts.find("c"), None);
    }

    #[test]
    fn names_of_files() {
        for (path, expected) in [
            ("/x/web1.tar.zst", "web1"),
            ("a b:c.tar.zst", "abc"),
            ("-", "-"),
            ("/x/…", "host"),
        ] {
            assert_eq!(name_of_file(Path::new(path)), expected);
        }
    }
}
