use std::fs;
use std::process::Command;

use plumb_testkit::require;
use plumb_testkit::wait::RunLimited;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn facts<T: AsRef<str>>(packages: &[(T, T)]) -> BTreeMap<HostFact, HostValue> {
    let fact = |(name, version): &(T, T)| {
        let name = name.as_ref().to_owned();
        let version = HostValue::Name(version.as_ref().to_owned());
        (HostFact::Package { name }, version)
    };
    packages.iter().map(fact).collect()
}

fn of_dpkg(path: &Path) -> PackageLists {
    PackageLists::at(vec![path.to_owned()], vec![])
}

fn of_rpm(path: &Path) -> PackageLists {
    PackageLists::at(vec![], vec![path.to_owned()])
}

/// The output of a program that must succeed.
fn printed(command: &mut Command) -> String {
    let out = command.limited_output();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command:?}: {errors}");
    String::from_utf8(out.stdout).expect("text")
}

/// Puts a list of dpkg with one package in the place of another one, as dpkg does.
fn replace(path: &Path, version: &str) {
    let text = format!("Package: a\nStatus: install ok installed\nVersion: {version}\n");
    let new = path.with_extension("new");
    fs::write(&new, text).expect("written");
    fs::rename(&new, path).expect("renamed");
}

/// As dpkg-query prints them, on a host that has it.
#[test]
fn packages_are_those_of_dpkg_query() {
    require!(Tool("dpkg-query"));
    let format = "${binary:Package}\t${Version}\t${db:Status-Status}\n";
    let lines = printed(Command::new("dpkg-query").args(["-W", "-f", format]));
    let expected: Vec<(&str, &str)> = lines
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once('\t')?;
            let (version, state) = rest.split_once('\t')?;
            (state == "installed").then_some((name, version))
        })
        .collect();
    assert!(expected.len() > 50, "{lines}");
    let read = of_dpkg(Path::new(DPKG)).read_new();
    assert_eq!(read.expect("a list"), Some(facts(&expected)));
}

#[test]
fn a_list_is_read_when_it_has_kept_still() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("status");
    let mut lists = of_dpkg(&path);
    assert_eq!(lists.read_still(HOUR), Ok(None));
    replace(&path, "1");
    assert_eq!(lists.read_still(HOUR), Ok(Some(facts(&[("a", "1")]))));
    assert_eq!(lists.read_still(Duration::ZERO), Ok(None));
    replace(&path, "2");
    assert_eq!(lists.read_still(HOUR), Ok(None));
    let read = lists.read_still(Duration::ZERO);
    assert_eq!(read, Ok(Some(facts(&[("a", "2")]))));
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("a folder");
    assert_eq!(lists.read_still(HOUR), Ok(None));
    let why = lists.read_still(Duration::ZERO).expect_err("a folder");
    assert!(why.contains("Is a directory"), "{why}");
    assert_eq!(lists.read_still(Duration::ZERO), Ok(None));
}

/// The list is a pipe: while it is read, another list takes its place.
#[test]
fn a_list_that_changes_while_it_is_read_is_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("status");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo of coreutils").success());
    let writing = std::thread::spawn({
        let path = path.clone();
        move || {
            // Opening waits for the reader.
            let pipe = File::options().write(true).open(&path);
            replace(&path, "2");
            let list = b"Package: a\nStatus: install ok installed\nVersion: 1\n";
            std::io::Write::write_all(&mut pipe.expect("a pipe"), list).expect("written");
        }
    });
    let mut lists = of_dpkg(&path);
    assert_eq!(lists.read_still(HOUR), Ok(None));
    writing.join().expect("written");
    let read = lists.read_still(Duration::ZERO);
    assert_eq!(read, Ok(Some(facts(&[("a", "2")]))));
}

/// A database of rpm in a folder of its own.
struct RpmHost {
    folder: tempfile::TempDir,
}

/// A package to build.
struct Build {
    name: &'static str,
    epoch: &'static str,
    version: &'static str,
    processor: &'static str,
    files: u32,
}

const SMALL: Build = Build {
    name: "small",
    epoch: "",
    version: "1.2",
    processor: "noarch",
    files: 0,
};

impl RpmHost {
    fn new() -> RpmHost {
        let folder = tempfile::tempdir().expect("a folder");
        let host = RpmHost { folder };
        printed(host.rpm("rpm").arg("--initdb"));
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn database(&self) -> PathBuf {
        self.path("db/rpmdb.sqlite")
    }

    /// rpm or rpmbuild without the settings of a user.
    fn rpm(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("HOME", self.folder.path());
        command.arg("--define");
        command.arg(format!("_dbpath {}", self.path("db").display()));
        command
    }

    fn install(&self, build: &Build) {
        let spec = self.path("one.spec");
        let noarch = match build.processor {
            "noarch" => "BuildArch: noarch",
            _ => "",
        };
        let epoch = match build.epoch {
            "" => String::new(),
            epoch => format!("Epoch: {epoch}"),
        };
        let text = format!(
            "Name: {}\nVersion: {}\nRelease: 3\nSummary: s\nLicense: MIT\n{epoch}\n{noarch}\n%description\nd\n\
             %install\nmkdir -p %{{buildroot}}/many\nfor n in $(seq {}); do : > %{{buildroot}}/many/$n; done\n\
             %files\n/many\n",
            build.name, build.version, build.files
        );
        fs::write(&spec, text).expect("written");
        let define = |name: &str| format!("{name} {}", self.path(name).display());
        let rpms = self.path("_rpmdir");
        printed(
            self.rpm("rpmbuild")
                .args(["--quiet", "-bb", "--define", &define("_topdir")])
                .args(["--define", &define("_rpmdir")])
                .args(["--define", "_rpmfilename one.rpm"])
                .args(["--define", "debug_package %{nil}"])
                .arg(&spec),
        );
        printed(
            self.rpm("rpm")
                .args(["-i", "--justdb", "--nodeps"])
                .arg(rpms.join("one.rpm")),
        );
    }

    /// The packages that rpm prints. Versions of one package are joined in the order of their text.
    fn printed(&self) -> Vec<(String, String)> {
        let format = "%{NAME}.%{ARCH}\t%|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\n";
        let text = printed(self.rpm("rpm").args(["-qa", "--qf", format]));
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        let mut packages: Vec<(String, String)> = Vec::new();
        for line in lines {
            let (name, version) = line.split_once('\t').expect("two columns");
            match packages.last_mut().filter(|(last, _)| last == name) {
                Some((_, versions)) => *versions += &format!(", {version}"),
                None => packages.push((name.to_owned(), version.to_owned())),
            }
        }
        packages
    }

    /// The database for changes. Rows of other tables name the packages: SQLite must not ask for them.
    fn open(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.database()).expect("a database");
        connection
            .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF;")
            .expect("a setting");
        connection
    }

    /// Changes the database by SQL, and leaves no log.
    fn change(&self, sql: &str) {
        let connection = self.open();
        connection.execute_batch(sql).expect(sql);
        let end = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: i64 = connection
            .query_row(end, [], |row| row.get(0))
            .expect("an end");
        assert_eq!(busy, 0);
    }

    fn read(&self) -> Result<Option<BTreeMap<HostFact, HostValue>>, String> {
        of_rpm(&self.database()).read_still(HOUR)
    }
}

/// The names and bytes of the files of a folder.
fn files(folder: &Path) -> BTreeMap<std::ffi::OsString, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let read = |entry: fs::DirEntry| {
        let bytes = fs::read(entry.path()).expect("a file");
        (entry.file_name(), bytes)
    };
    entries.map(read).collect()
}

#[test]
fn packages_are_those_of_rpm() {
    require!(Tool("rpm"), Tool("rpmbuild"), Tool("gpg"));
    let host = RpmHost::new();
    assert_eq!(host.read(), Ok(Some(BTreeMap::new())));
    host.install(&SMALL);
    for version in ["6.9.0", "6.12.1"] {
        let name = "kernel";
        let processor = std::env::consts::ARCH;
        host.install(&Build {
            name,
            version,
            processor,
            ..SMALL
        });
    }
    for (name, epoch) in [("zero", "0"), ("high", "4294967295")] {
        host.install(&Build {
            name,
            epoch,
            ..SMALL
        });
    }
    // Its header is in many pages.
    host.install(&Build {
        name: "many",
        files: 2_000,
        ..SMALL
    });
    let mut gpg = Command::new("gpg");
    gpg.env("GNUPGHOME", host.folder.path());
    gpg.args(["--batch", "--quiet", "--passphrase", ""]);
    printed(gpg.args(["--quick-generate-key", "a@example.org", "ed25519"]));
    let mut gpg = Command::new("gpg");
    gpg.env("GNUPGHOME", host.folder.path());
    let key = printed(gpg.args(["--armor", "--export"]));
    let mut end = Command::new("gpgconf");
    printed(
        end.env("GNUPGHOME", host.folder.path())
            .args(["--kill", "all"]),
    );
    fs::write(host.path("key"), key).expect("written");
    printed(host.rpm("rpm").arg("--import").arg(host.path("key")));

    let all = host.printed();
    let of_keys = |(name, _): &(String, String)| name == "gpg-pubkey.(none)";
    let (keys, expected): (Vec<_>, Vec<_>) = all.into_iter().partition(of_keys);
    assert_eq!((keys.len(), expected.len()), (1, 5));
    let versions: Vec<&str> = expected.iter().map(|(_, version)| &**version).collect();
    for version in ["1.2-3", "0:1.2-3", "4294967295:1.2-3", "6.12.1-3, 6.9.0-3"] {
        assert!(versions.contains(&version), "{versions:?}");
    }
    let before = files(&host.path("db"));
    assert_eq!(host.read(), Ok(Some(facts(&expected))));
    assert!(before == files(&host.path("db")), "a reader writes nothing");

    // A place that a link leads to, in a folder whose name SQLite has to get as it is.
    let place = host.path("100% é?&#a=b c");
    fs::create_dir(&place).expect("a folder");
    fs::copy(host.database(), place.join("rpmdb.sqlite")).expect("a copy");
    let link = host.path("link");
    std::os::unix::fs::symlink(&place, &link).expect("a link");
    let read = of_rpm(&link.join("rpmdb.sqlite")).read_still(HOUR);
    assert_eq!(read, Ok(Some(facts(&expected))));
    let files = fs::read_dir(&place).expect("a folder").count();
    assert_eq!(files, 1, "a reader makes no file");
}

/// rpm works while its log has bytes. A killed one leaves it.
#[test]
fn a_database_is_read_when_its_log_has_kept_still() {
    require!(Tool("rpm"), Tool("rpmbuild"));
    let host = RpmHost::new();
    host.install(&SMALL);
    let name = "gone";
    host.install(&Build { name, ..SMALL });
    let both = facts(&host.printed());
    let mut lists = of_rpm(&host.database());
    assert_eq!(lists.read_still(HOUR), Ok(Some(both.clone())));

    let writer = host.open();
    writer
        .execute_batch("PRAGMA wal_autocheckpoint = 0; DELETE FROM Packages WHERE hnum = 2;")
        .expect("a transaction");
    let small = facts(&[("small.noarch", "1.2-3")]);
    assert_eq!(lists.read_still(HOUR), Ok(None));
    let mut first = of_rpm(&host.database());
    assert_eq!(first.read_still(HOUR), Ok(None));
    for lists in [&mut lists, &mut first] {
        assert_eq!(lists.read_still(Duration::ZERO), Ok(Some(small.clone())));
        assert_eq!(lists.read_still(Duration::ZERO), Ok(None));
    }

    // The state that a killed rpm leaves.
    let killed = host.path("killed");
    fs::create_dir(&killed).expect("a folder");
    for (name, bytes) in files(&host.path("db")) {
        fs::write(killed.join(name), bytes).expect("a copy");
    }
    let before = files(&killed);
    let mut of_killed = of_rpm(&killed.join("rpmdb.sqlite"));
    assert_eq!(of_killed.read_still(HOUR), Ok(None));
    let read = of_killed.read_still(Duration::ZERO);
    assert_eq!(read, Ok(Some(small.clone())));
    assert!(before == files(&killed), "a reader writes nothing");

    // rpm ends: its log is empty.
    let end = "PRAGMA wal_checkpoint(TRUNCATE)";
    let busy = writer.query_row(end, [], |row| row.get(0));
    assert_eq!(busy, Ok(0));
    assert_eq!(lists.read_still(HOUR), Ok(None));
    assert_eq!(lists.read_still(Duration::ZERO), Ok(Some(small.clone())));
    drop(writer);
    assert_eq!(facts(&host.printed()), small);
}

#[test]
fn a_damaged_database_is_an_error() {
    require!(Tool("rpm"), Tool("rpmbuild"));
    let host = RpmHost::new();
    host.install(&SMALL);
    let whole = fs::read(host.database()).expect("a database");
    let fails = |sql: &str, expected: &str| {
        fs::write(host.database(), &whole).expect("written");
        host.change(sql);
        let why = host.read().expect_err(sql);
        let path = host.database().display().to_string();
        assert!(why.starts_with(&path) && why.contains(expected), "{why}");
    };
    fails(
        "UPDATE Packages SET blob = zeroblob(8)",
        "package 1: found no NAME",
    );
    fails(
        "UPDATE Packages SET blob = substr(blob, 2)",
        "package 1: found a header of",
    );
    let no_header = "package 1: found no header of at most 33554432 bytes";
    fails("UPDATE Packages SET blob = 'a text'", no_header);
    fails("UPDATE Packages SET blob = zeroblob(33554433)", no_header);
    fails("DROP TABLE Packages", "no such table");
    let overlap = "ALTER TABLE Packages RENAME TO Saved; CREATE VIEW Packages AS WITH RECURSIVE
         n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 1000) SELECT n AS hnum, blob FROM n, Saved";
    fails(overlap, "more bytes than the file");

    for (bytes, expected) in [
        (&b""[..], "no such table"),
        (&b"no database, but a text\n"[..], "not a database"),
    ] {
        fs::write(host.database(), bytes).expect("written");
        let why = host.read().expect_err("no database");
        assert!(why.contains(expected), "{why}");
    }
    let file = File::create(host.database()).expect("a file");
    file.set_len(rpm_database::BYTES_MAX + 1)
        .expect("a sparse file");
    let why = host.read().expect_err("a large file");
    assert!(why.contains("expected at most 1073741824"), "{why}");

    // Half of a file, and flipped bits: the packages or an error.
    let small = facts(&[("small.noarch", "1.2-3")]);
    let mut is_read = [0, 0];
    for at in (0..whole.len()).step_by(1009) {
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        for bytes in [&whole[..at], &changed] {
            fs::write(host.database(), bytes).expect("written");
            is_read[usize::from(host.read().is_ok())] += 1;
        }
    }
    assert!(is_read.iter().all(|&count| count > 0), "{is_read:?}");
    fs::write(host.database(), &whole).expect("written");
    assert_eq!(host.read(), Ok(Some(small)));
}

/// The packages of one list do not go because the other one changes, or cannot be read.
#[test]
fn both_lists_of_a_host_count() {
    require!(Tool("rpm"), Tool("rpmbuild"));
    let host = RpmHost::new();
    host.install(&SMALL);
    let whole = fs::read(host.database()).expect("a database");
    let status = host.path("status");
    let absent = host.path("absent/rpmdb.sqlite");
    let new = || PackageLists::at(vec![status.clone()], vec![absent.clone(), host.database()]);
    let at = |version: &str| facts(&[("a", version), ("small.noarch", "1.2-3")]);
    let damage = || {
        // In the place of the file: the other version has another number.
        fs::write(host.path("damaged"), "a text").expect("written");
        fs::rename(host.path("damaged"), host.database()).expect("renamed");
    };

    replace(&status, "1");
    let mut lists = new();
    assert_eq!(lists.read_still(HOUR), Ok(Some(at("1"))));
    replace(&status, "2");
    assert_eq!(lists.read_still(Duration::ZERO), Ok(Some(at("2"))));
    damage();
    assert!(lists.read_still(Duration::ZERO).is_err());
    assert_eq!(lists.read_still(Duration::ZERO), Ok(None));
    replace(&status, "3");
    assert_eq!(lists.read_still(Duration::ZERO), Ok(Some(at("3"))));

    let mut lists = new();
    assert!(lists.read_still(HOUR).is_err());
    replace(&status, "4");
    assert_eq!(lists.read_still(Duration::ZERO), Ok(None));
    fs::write(host.path("whole"), &whole).expect("written");
    fs::rename(host.path("whole"), host.database()).expect("renamed");
    assert_eq!(lists.read_still(Duration::ZERO), Ok(Some(at("4"))));
}
