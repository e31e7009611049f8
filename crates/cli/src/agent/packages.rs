//! The packages of the host, from the list of dpkg. An upgrade may change the I/O of a program.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use plumb_model::facts::{HostFact, HostValue};

use super::survey::SeenVersion;

/// The list of dpkg.
pub const FILE: &str = "/var/lib/dpkg/status";
/// Most bytes of it. A desktop with 4,000 packages has 6 MiB.
const BYTES_MAX: u64 = 64 << 20;
/// Most packages that are followed.
const PACKAGES_MAX: usize = 8_000;
/// dpkg writes the list for each package that it unpacks: a look waits until it has kept still.
const STILL_FOR: Duration = Duration::from_secs(60);

/// The list of packages. Each version of it is read once.
#[derive(Debug, Default)]
pub struct PackageFile {
    seen: SeenVersion,
    /// The time of a change that has not been read yet.
    changed: Option<Instant>,
}

impl PackageFile {
    /// The packages with their versions, if the list has changed and then kept still for a minute; the first time at once. `None` on a
    /// host without dpkg.
    ///
    /// # Errors
    /// If the list cannot be read; once for each version of it.
    pub fn read_new(
        &mut self,
        path: &Path,
    ) -> Result<Option<BTreeMap<HostFact, HostValue>>, String> {
        self.read_still(path, STILL_FOR)
    }

    fn read_still(
        &mut self,
        path: &Path,
        still_for: Duration,
    ) -> Result<Option<BTreeMap<HostFact, HostValue>>, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => match self.seen.is_new(None) {
                true => return Err(failed(error)),
                false => return Ok(None),
            },
        };
        let is_first = self.seen.is_unseen();
        if self.seen.is_new(Some(&metadata)) {
            self.changed = Some(Instant::now());
        }
        let is_still = |since: Instant| is_first || since.elapsed() >= still_for;
        if !self.changed.is_some_and(is_still) {
            return Ok(None);
        }
        self.changed = None;
        let file = std::fs::File::open(path).map_err(failed)?;
        installed(BufReader::new(file.take(BYTES_MAX)))
            .map(Some)
            .map_err(failed)
    }
}

/// The installed packages of a list: paragraphs of lines `Field: value`. A package that may be there for several processors has the
/// processor behind its name, as dpkg prints it.
fn installed(list: impl BufRead) -> std::io::Result<BTreeMap<HostFact, HostValue>> {
    let mut found = BTreeMap::new();
    let mut package = Paragraph::default();
    for line in list.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        match line.split_once(": ") {
            _ if line.trim().is_empty() => std::mem::take(&mut package).note(&mut found),
            // A line that begins with a space continues a field.
            _ if line.starts_with([' ', '\t']) => {}
            Some(("Package", name)) => package.name = Some(name.trim().to_owned()),
            Some(("Version", version)) => package.version = Some(version.trim().to_owned()),
            Some(("Architecture", processor)) => package.processor = processor.trim().to_owned(),
            Some(("Multi-Arch", word)) => package.is_one_of_several = word.trim() == "same",
            // Wanted state, error flag, state.
            Some(("Status", words)) => {
                package.is_installed = words.split_whitespace().nth(2) == Some("installed");
            }
            _ => {}
        }
    }
    package.note(&mut found);
    Ok(found)
}

/// A package in the list.
#[derive(Default)]
struct Paragraph {
    name: Option<String>,
    version: Option<String>,
    processor: String,
    is_one_of_several: bool,
    is_installed: bool,
}

impl Paragraph {
    fn note(self, found: &mut BTreeMap<HostFact, HostValue>) {
        let (Some(mut name), Some(version), true) = (self.name, self.version, self.is_installed)
        else {
            return;
        };
        if self.is_one_of_several {
            name = format!("{name}:{}", self.processor);
        }
        if found.len() < PACKAGES_MAX {
            found.insert(HostFact::Package { name }, HostValue::Name(version));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
Package: bash
Essential: yes
Status: install ok installed
Architecture: amd64
Multi-Arch: foreign
Version: 5.2.15-2+b2
Description: GNU Bourne Again SHell
 Version: none of the package
 Bash is a shell.

Package: libc6
Status: hold ok installed
Architecture: amd64
Multi-Arch: same
Version: 2.36-9+deb12u4

Package: vim
Status: deinstall ok config-files
Architecture: amd64
Version: 2:9.0.1378-2

Package: broken
Status: install ok installed

Package: dash
Status: install reinstreq half-installed
Version: 0.5.12-2

Package: zstd
Version: 1.5.4+dfsg2-5
Status: install ok installed";

    fn facts(packages: &[(&str, &str)]) -> BTreeMap<HostFact, HostValue> {
        let fact = |(name, version): &(&str, &str)| {
            let name = (*name).to_owned();
            let version = HostValue::Name((*version).to_owned());
            (HostFact::Package { name }, version)
        };
        packages.iter().map(fact).collect()
    }

    #[test]
    fn installed_packages_have_their_versions() {
        let expected = facts(&[
            ("bash", "5.2.15-2+b2"),
            ("libc6:amd64", "2.36-9+deb12u4"),
            ("zstd", "1.5.4+dfsg2-5"),
        ]);
        assert_eq!(installed(LIST.as_bytes()).expect("a list"), expected);
        // Any bytes are a list.
        for cut in 0..LIST.len() {
            installed(&LIST.as_bytes()[..cut]).expect("a list");
        }
        installed(&[0xff, 0xfe, b':', b' ', 0, b'\n'][..]).expect("a list");
    }

    /// As dpkg-query prints them, on a host that has it.
    #[test]
    fn packages_are_those_of_dpkg_query() {
        plumb_testkit::require!(Tool("dpkg-query"));
        let format = "${binary:Package}\t${Version}\t${db:Status-Status}\n";
        let printed = std::process::Command::new("dpkg-query")
            .args(["-W", "-f", format])
            .output()
            .expect("dpkg-query runs");
        let printed = String::from_utf8(printed.stdout).expect("text");
        let expected: Vec<(&str, &str)> = printed
            .lines()
            .filter_map(|line| {
                let (name, rest) = line.split_once('\t')?;
                let (version, state) = rest.split_once('\t')?;
                (state == "installed").then_some((name, version))
            })
            .collect();
        assert!(expected.len() > 50, "{printed}");
        let read = PackageFile::default().read_new(Path::new(FILE));
        assert_eq!(read.expect("a list"), Some(facts(&expected)));
    }

    #[test]
    fn a_list_is_read_when_it_has_kept_still() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("status");
        let mut file = PackageFile::default();
        let hour = Duration::from_secs(3600);
        assert_eq!(file.read_still(&path, hour), Ok(None));
        let write = |version: &str| {
            let text = format!("Package: a\nStatus: install ok installed\nVersion: {version}\n");
            let new = folder.path().join("new");
            std::fs::write(&new, text).expect("written");
            std::fs::rename(&new, &path).expect("renamed");
        };
        write("1");
        assert_eq!(file.read_still(&path, hour), Ok(Some(facts(&[("a", "1")]))));
        assert_eq!(file.read_still(&path, Duration::ZERO), Ok(None));
        write("2");
        assert_eq!(file.read_still(&path, hour), Ok(None));
        assert_eq!(
            file.read_still(&path, Duration::ZERO),
            Ok(Some(facts(&[("a", "2")])))
        );
        std::fs::remove_file(&path).expect("removed");
        std::fs::create_dir(&path).expect("a folder");
        assert_eq!(file.read_still(&path, hour), Ok(None));
        let why = file
            .read_still(&path, Duration::ZERO)
            .expect_err("a folder");
        assert!(why.contains("Is a directory"), "{why}");
        assert_eq!(file.read_still(&path, Duration::ZERO), Ok(None));
    }
}
