//! The packages of the host, from the lists of dpkg and RPM. An upgrade may change the I/O of a program. Databases that RPM made before it
//! used SQLite (Berkeley DB and NDB) are not read.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{File, Metadata};
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plumb_model::facts::{HostFact, HostValue};
use plumb_packages::{PACKAGES_MAX, dpkg};

use super::survey::SeenVersion;

mod rpm_database;

/// The list of dpkg.
const DPKG: &str = "/var/lib/dpkg/status";
/// The database of RPM: the present place and the older one, which often leads to the present one.
const RPM: [&str; 2] = [
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/var/lib/rpm/rpmdb.sqlite",
];
/// Most bytes of the list of dpkg. A desktop with 4,000 packages has 6 MiB.
const DPKG_BYTES_MAX: u64 = 64 << 20;
/// Both managers write for each package that they unpack: a look waits until the list has kept still.
const STILL_FOR: Duration = Duration::from_secs(60);

/// The lists of a host. Each version of a list is read once.
#[derive(Debug)]
pub struct PackageLists {
    lists: [PackageList; 2],
    /// Whether a list was read after the last answer.
    is_new: bool,
}

impl PackageLists {
    /// The lists at their usual places.
    pub fn of_host() -> PackageLists {
        PackageLists::at(vec![DPKG.into()], RPM.map(PathBuf::from).into())
    }

    fn at(dpkg: Vec<PathBuf>, rpm: Vec<PathBuf>) -> PackageLists {
        PackageLists {
            lists: [
                PackageList::new(Manager::Dpkg, dpkg),
                PackageList::new(Manager::Rpm, rpm),
            ],
            is_new: false,
        }
    }

    /// The packages of all lists with their versions, if a list has changed and then kept still for a minute; the first time at once.
    /// `None` on a host without a list, and until each list of the host was read: the packages of the other one would seem to be gone.
    ///
    /// # Errors
    /// If a list cannot be read; once for each version of it.
    pub fn read_new(&mut self) -> Result<Option<BTreeMap<HostFact, HostValue>>, String> {
        self.read_still(STILL_FOR)
    }

    fn read_still(
        &mut self,
        still_for: Duration,
    ) -> Result<Option<BTreeMap<HostFact, HostValue>>, String> {
        for list in &mut self.lists {
            self.is_new |= list.look(still_for)?;
        }
        let known: Option<Vec<_>> = self.lists.iter().map(|list| list.known.as_ref()).collect();
        let Some(known) = known.filter(|_| self.is_new) else {
            return Ok(None);
        };
        self.is_new = false;
        let packages = known.into_iter().flatten().take(PACKAGES_MAX);
        let fact = |(name, version): (&String, &String)| {
            let name = name.clone();
            (HostFact::Package { name }, HostValue::Name(version.clone()))
        };
        Ok(Some(packages.map(fact).collect()))
    }
}

/// The program that writes a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manager {
    Dpkg,
    Rpm,
}

/// The list of one package manager.
#[derive(Debug)]
struct PackageList {
    manager: Manager,
    /// Its places; the first one that is there counts.
    places: Vec<PathBuf>,
    seen: SeenVersion,
    /// The version of the log of a database.
    seen_log: SeenVersion,
    /// The time of a change that has not been read yet.
    changed: Option<Instant>,
    /// Versions by name; empty without a list, `None` until the list was read. A list that is damaged later keeps its packages.
    known: Option<BTreeMap<String, String>>,
}

impl PackageList {
    fn new(manager: Manager, places: Vec<PathBuf>) -> PackageList {
        PackageList {
            manager,
            places,
            seen: SeenVersion::default(),
            seen_log: SeenVersion::default(),
            changed: None,
            known: None,
        }
    }

    /// Reads the list if it is new and has kept still; tells whether it did.
    fn look(&mut self, still_for: Duration) -> Result<bool, String> {
        let (path, file) = match self.find() {
            Ok(Some(found)) => found,
            Ok(None) => {
                self.known.get_or_insert_default();
                return Ok(false);
            }
            Err(why) => {
                return match self.seen.is_new(None) {
                    true => Err(why),
                    false => Ok(false),
                };
            }
        };
        let log = self.log(&path);
        // A log with bytes may be one of a transaction that runs: the first look waits as well.
        let is_first = self.seen.is_unseen() && log.is_none();
        self.note(Some(&file), log.as_ref());
        let is_still = |since: Instant| is_first || since.elapsed() >= still_for;
        if !self.changed.is_some_and(is_still) {
            return Ok(false);
        }
        self.changed = None;
        let log_bytes = log.map_or(0, |log| log.len());
        let read = match self.manager {
            Manager::Dpkg => read_dpkg(&path).map_err(|error| failed(&path, &error)),
            Manager::Rpm => rpm_database::installed(&path, log_bytes),
        };
        // A manager that began to write meanwhile may have mixed two versions: the next look waits for its end.
        let log = self.log(&path);
        self.note(std::fs::metadata(&path).ok().as_ref(), log.as_ref());
        if self.changed.is_some() {
            return Ok(false);
        }
        self.known = Some(read?);
        Ok(true)
    }

    /// The place of the list without links: the log of a database is beside the file itself, and SQLite refuses links.
    fn find(&self) -> Result<Option<(PathBuf, Metadata)>, String> {
        for place in &self.places {
            let resolved = std::fs::canonicalize(place);
            match resolved.and_then(|path| Ok((std::fs::metadata(&path)?, path))) {
                Ok((file, path)) => return Ok(Some((path, file))),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(failed(place, &error)),
            }
        }
        Ok(None)
    }

    /// The log of a database if it has bytes. rpm leaves an empty one.
    fn log(&self, path: &Path) -> Option<Metadata> {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let log = (self.manager == Manager::Rpm).then_some(log)?;
        let log = std::fs::metadata(log).ok()?;
        (log.len() > 0).then_some(log)
    }

    /// Notes the versions of the list and of its log, and the time if one of them is new.
    fn note(&mut self, file: Option<&Metadata>, log: Option<&Metadata>) {
        if self.seen.is_new(file) | self.seen_log.is_new(log) {
            self.changed = Some(Instant::now());
        }
    }
}

fn read_dpkg(path: &Path) -> std::io::Result<BTreeMap<String, String>> {
    let file = File::open(path)?.take(DPKG_BYTES_MAX);
    dpkg::installed(&mut BufReader::new(file))
}

fn failed(path: &Path, error: &dyn Display) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests;
