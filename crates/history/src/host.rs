//! Facts about the host over time: its kernel, its mounts, its partitions. A fact has a name and a value, and is stored when its value is
//! another one than before.

use rusqlite::{Connection, params};

/// Values that a store keeps: a host that mounts and unmounts all day could otherwise fill it.
const ROWS_MAX: u32 = 20_000;

/// The value of a fact from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFactRow {
    /// The time at which it was seen, ns since 1970.
    pub at_ns: i64,
    /// Name of the fact, in words that stay the same.
    pub name: String,
    /// The value; `None` if the thing is gone.
    pub value: Option<String>,
}

/// The table of schema version 2.
pub(crate) const CREATE: &str = "CREATE TABLE host_fact (
     id INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, name TEXT NOT NULL, value TEXT);
 CREATE INDEX host_fact_of ON host_fact (name, id);";

/// Writes the values that differ from the last ones.
pub(crate) fn write(connection: &Connection, rows: &[HostFactRow]) -> rusqlite::Result<()> {
    for HostFactRow { at_ns, name, value } in rows {
        connection.execute(
            "INSERT INTO host_fact (at_ns, name, value) SELECT ?1, ?2, ?3
             WHERE ?3 IS NOT (SELECT value FROM host_fact WHERE name = ?2 ORDER BY id DESC LIMIT 1)",
            params![at_ns, name, value],
        )?;
    }
    if !rows.is_empty() {
        // The last value of each fact stays: without it the next one would look new. Of a thing that is gone nothing has to stay.
        connection.execute(
            "DELETE FROM host_fact WHERE id <= (SELECT id FROM host_fact ORDER BY id DESC LIMIT 1 OFFSET ?)
                 AND (value IS NULL OR id < (SELECT max(id) FROM host_fact AS later WHERE later.name = host_fact.name))",
            [ROWS_MAX],
        )?;
    }
    Ok(())
}

/// Deletes values that another one replaced before a time, and things that went before it.
pub(crate) fn delete_aged(connection: &Connection, before_ns: i64) -> rusqlite::Result<()> {
    connection
        .execute(
            "DELETE FROM host_fact WHERE value IS NULL AND at_ns < ?1 OR EXISTS
                 (SELECT 1 FROM host_fact AS later WHERE later.name = host_fact.name AND later.id > host_fact.id AND later.at_ns < ?1)",
            [before_ns],
        )
        .map(|_| ())
}

/// All values, in the order in which they were seen.
pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Vec<HostFactRow>> {
    let mut statement =
        connection.prepare("SELECT at_ns, name, value FROM host_fact ORDER BY id")?;
    let rows = statement.query_map([], |row| {
        Ok(HostFactRow {
            at_ns: row.get(0)?,
            name: row.get(1)?,
            value: row.get(2)?,
        })
    })?;
    rows.collect()
}

/// The names of facts that have a value now.
pub(crate) fn present(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(
        "SELECT name FROM host_fact AS one WHERE value IS NOT NULL
             AND id = (SELECT max(id) FROM host_fact AS later WHERE later.name = one.name)",
    )?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.collect()
}
