//! The database of RPM: a file of SQLite with a table of headers, to which rpm may write at any time. The agent has no right to write
//! there, and it must not delay rpm.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use plumb_packages::PACKAGES_MAX;
use plumb_packages::rpm::{self, RpmHeaderError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::failed;

/// Most bytes of the file and its log.
pub(super) const BYTES_MAX: u64 = 1 << 30;
/// Most bytes of a header. A package with 100,000 files has some 20 MiB.
const HEADER_BYTES_MAX: u32 = 32 << 20;

/// An unusable database.
#[derive(Debug, thiserror::Error)]
enum RpmDatabaseError {
    #[error(transparent)]
    File(#[from] std::io::Error),
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error("found {0} bytes, expected at most {max}", max = BYTES_MAX)]
    Size(u64),
    #[error("package {0}: found no header of at most {max} bytes", max = HEADER_BYTES_MAX)]
    NoHeader(i64),
    #[error("package {number}: {error}")]
    Header { number: i64, error: RpmHeaderError },
    #[error("found headers with more bytes than the file: the database is damaged")]
    Overlap,
}

/// The packages of a database by name. Several versions of a package, as of a kernel, are one value with `, ` between them, in the order
/// of their text. The path has no link; `log_bytes` is the length of the log, which has kept still.
///
/// # Errors
/// If the file is no database of RPM, is damaged or is too large.
pub fn installed(path: &Path, log_bytes: u64) -> Result<BTreeMap<String, String>, String> {
    let found = read(path, log_bytes).map_err(|error| failed(path, &error))?;
    let join = |(name, versions): (String, BTreeSet<String>)| {
        let versions: Vec<String> = versions.into_iter().collect();
        (name, versions.join(", "))
    };
    Ok(found.into_iter().map(join).collect())
}

fn read(
    path: &Path,
    log_bytes: u64,
) -> Result<BTreeMap<String, BTreeSet<String>>, RpmDatabaseError> {
    let mut bytes_left = std::fs::metadata(path)?.len().saturating_add(log_bytes);
    if bytes_left > BYTES_MAX {
        return Err(RpmDatabaseError::Size(bytes_left));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(address(path, log_bytes > 0), flags)?;
    // The schema of a file from elsewhere must not run functions.
    connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;")?;
    // The length of a value is in its row: a longer one is not read.
    let sql = "SELECT hnum, CASE WHEN length(blob) <= ?1 THEN blob END FROM Packages";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([HEADER_BYTES_MAX])?;
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let number = row.get(0)?;
        let ValueRef::Blob(header) = row.get_ref(1)? else {
            return Err(RpmDatabaseError::NoHeader(number));
        };
        // Damaged rows may have their bytes in common. Then the work would have no bound.
        bytes_left = bytes_left
            .checked_sub(header.len() as u64)
            .ok_or(RpmDatabaseError::Overlap)?;
        let package =
            rpm::decode(header).map_err(|error| RpmDatabaseError::Header { number, error })?;
        if let Some(package) = package {
            found
                .entry(package.name)
                .or_default()
                .insert(package.version);
        }
        if found.len() == PACKAGES_MAX {
            break;
        }
    }
    Ok(found)
}

/// The address of a database for SQLite.
///
/// Without a log the file is whole. SQLite then takes no lock, and needs none of the files beside the database (`immutable`). rpm
/// writes a transaction into the log, and at its end it moves the log into the file and empties it: a log with bytes means that rpm works,
/// or that it was killed, or that a reader hindered the move. Until the log has kept still, it is the first. After that, the file alone may lack
/// transactions or have half of one, so SQLite reads both, by the index that rpm keeps, which it must not write (`readonly_shm`).
fn address(path: &Path, has_log: bool) -> String {
    let mut address = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            // A text takes any bytes.
            byte => _ = write!(address, "%{byte:02X}"),
        }
    }
    address
        + match has_log {
            true => "?readonly_shm=1",
            false => "?immutable=1",
        }
}
