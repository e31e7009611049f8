//! The tables of the two files, and the steps from each schema version to the next.

use rusqlite::Connection;

use crate::finding;
use crate::glance;
use crate::host;
use crate::tier::Tier;

/// `application_id` of both files: "PLMB".
pub const APPLICATION_ID: i64 = 0x504c_4d42;

/// Newest schema version that this program knows.
pub const NEWEST: i64 = 4;

/// Series in a file: an identifier of a record is the number of its window times this, plus the number of its series. So
/// the records of a window are neighbours, and a window is deleted as one range.
pub const SERIES_MAX: u32 = 4096;

/// One of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `recent.db`: 5 minutes. It may be thrown away.
    Recent,
    /// `history.db`: hours, days, open windows, findings, facts about the host.
    History,
}

impl Part {
    /// The part that keeps a tier.
    #[must_use]
    pub const fn of_tier(tier: Tier) -> Part {
        if tier.is_recent() {
            Part::Recent
        } else {
            Part::History
        }
    }

    /// Name of the file.
    #[must_use]
    pub const fn file_name(self) -> &'static str {
        match self {
            Part::Recent => "recent.db",
            Part::History => "history.db",
        }
    }

    /// Its tiers, the finest first.
    pub fn tiers(self) -> impl Iterator<Item = Tier> {
        Tier::ALL
            .into_iter()
            .filter(move |tier| Part::of_tier(*tier) == self)
    }
}

/// Takes a file one version further. The caller holds a transaction.
///
/// # Errors
/// Those of SQLite.
pub fn step(connection: &Connection, part: Part, from_version: i64) -> rusqlite::Result<()> {
    match from_version {
        0 => create(connection, part),
        1 if part == Part::History => connection.execute_batch(host::CREATE),
        2 => add_sums(connection, part),
        // Residue tables have shared sums of latencies, too, which programs before cannot read.
        3 if part == Part::History => connection.execute_batch(finding::CREATE_INDEX),
        _ => Ok(()),
    }
}

/// The name in `meta` of the time from which all windows have checksums.
pub const SUMS_FROM: &str = "sums_from_ns";

/// The checksums of version 3. Records that are there have none: to write them again would take a log as long as the file.
fn add_sums(connection: &Connection, part: Part) -> rusqlite::Result<()> {
    for tier in part.tiers() {
        let tier = tier.word();
        connection.execute_batch(&format!(
            "ALTER TABLE glance_{tier} ADD COLUMN sum INTEGER;
             ALTER TABLE histograms_{tier} ADD COLUMN sum INTEGER;"
        ))?;
    }
    if part == Part::History {
        connection.execute_batch("ALTER TABLE open ADD COLUMN sum INTEGER;")?;
    }
    // A record that is written later is of a window that begins later, or has its sums all the same.
    let upto = "(SELECT coalesce(max(value), 0) FROM meta WHERE name = 'upto_ns')";
    connection.execute_batch(&format!(
        "INSERT OR REPLACE INTO meta VALUES ('{SUMS_FROM}', {upto});"
    ))
}

/// The tables of version 1.
fn create(connection: &Connection, part: Part) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
         CREATE TABLE series (
             series INTEGER PRIMARY KEY, identity TEXT NOT NULL, layer TEXT NOT NULL,
             UNIQUE (identity, layer));
         CREATE TABLE name (
             series INTEGER NOT NULL, from_ns INTEGER NOT NULL, name TEXT NOT NULL,
             PRIMARY KEY (series, from_ns)) WITHOUT ROWID;",
    )?;
    for tier in part.tiers() {
        let (tier, columns) = (tier.word(), glance::COLUMNS);
        connection.execute_batch(&format!(
            "CREATE TABLE glance_{tier} (id INTEGER PRIMARY KEY, {columns});
             CREATE TABLE histograms_{tier} (id INTEGER PRIMARY KEY, profile BLOB, senders BLOB);
             CREATE TABLE table_{tier} (id INTEGER PRIMARY KEY, residues BLOB);"
        ))?;
    }
    if part == Part::History {
        connection.execute_batch(
            "CREATE TABLE open (
                 tier TEXT NOT NULL, series INTEGER NOT NULL, number INTEGER NOT NULL,
                 base BLOB, profile BLOB NOT NULL, senders BLOB NOT NULL,
                 PRIMARY KEY (tier, series));
             CREATE TABLE finding (
                 id INTEGER PRIMARY KEY, rule TEXT NOT NULL, target TEXT NOT NULL,
                 severity TEXT NOT NULL, facts TEXT NOT NULL,
                 appeared_ns INTEGER NOT NULL, changed_ns INTEGER NOT NULL, went_ns INTEGER);
             CREATE INDEX finding_now ON finding (rule, target) WHERE went_ns IS NULL;",
        )?;
    }
    Ok(())
}
