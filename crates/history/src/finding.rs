//! Findings as intervals: the time at which each appeared, last changed, and went.

use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension, params};

use crate::tier::Span;

/// Findings that went which a store keeps: a device near a limit could otherwise fill it.
const GONE_MAX: u32 = 10_000;

/// The index of version 4: findings by the time at which they appeared. A finding of two years ago can be present, so the time at which it went
/// is in the index and no bound of the search.
pub(crate) const CREATE_INDEX: &str =
    "CREATE INDEX IF NOT EXISTS finding_time ON finding (appeared_ns, id, went_ns);";

/// The finding of a rule at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingKey {
    /// Name of the rule.
    pub rule: String,
    /// The place, in words that stay the same as long as it is the same place.
    pub place: String,
}

/// A step in the life of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindingStep {
    /// It was found, for the first time or in another form. One that is present goes on with these facts.
    Found {
        /// Its severity.
        severity: String,
        /// The finding as JSON.
        facts: String,
    },
    /// It went.
    Gone,
}

/// A finding from its first to its last time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingInterval {
    /// Rule and place.
    pub key: FindingKey,
    /// Its last severity.
    pub severity: String,
    /// Its last form as JSON.
    pub facts: String,
    /// The time at which it appeared, ns since 1970.
    pub appeared_ns: i64,
    /// The time of its last change.
    pub changed_ns: i64,
    /// The time at which it went; `None` while it is present.
    pub went_ns: Option<i64>,
}

/// A step that waits for being written.
#[derive(Clone, Debug)]
pub(crate) struct FindingNote {
    pub(crate) at_ns: i64,
    pub(crate) key: FindingKey,
    pub(crate) step: FindingStep,
}

/// Writes steps in their order.
pub(crate) fn write(connection: &Connection, notes: &[FindingNote]) -> rusqlite::Result<()> {
    for FindingNote { at_ns, key, step } in notes {
        let FindingKey { rule, place } = key;
        match step {
            // A clock that went back ends no finding before its begin.
            FindingStep::Gone => connection.execute(
                "UPDATE finding SET went_ns = max(?, changed_ns) WHERE rule = ? AND target = ? AND went_ns IS NULL",
                params![at_ns, rule, place],
            )?,
            FindingStep::Found { severity, facts } => {
                let changed = connection.execute(
                    "UPDATE finding SET severity = ?, facts = ?, changed_ns = max(?, changed_ns)
                     WHERE rule = ? AND target = ? AND went_ns IS NULL",
                    params![severity, facts, at_ns, rule, place],
                )?;
                if changed > 0 {
                    continue;
                }
                connection.execute(
                    "INSERT INTO finding (rule, target, severity, facts, appeared_ns, changed_ns) VALUES (?, ?, ?, ?, ?5, ?5)",
                    params![rule, place, severity, facts, at_ns],
                )?
            }
        };
    }
    if !notes.is_empty() {
        connection.execute(
            "DELETE FROM finding WHERE went_ns IS NOT NULL AND id NOT IN
                 (SELECT id FROM finding WHERE went_ns IS NOT NULL ORDER BY went_ns DESC, id DESC LIMIT ?)",
            [GONE_MAX],
        )?;
    }
    Ok(())
}

/// Deletes findings that went before a time.
pub(crate) fn delete_aged(connection: &Connection, keep_from_ns: i64) -> rusqlite::Result<()> {
    connection
        .execute("DELETE FROM finding WHERE went_ns < ?", [keep_from_ns])
        .map(|_| ())
}

/// The numbers of the findings that were present in a span, in the order in which they appeared.
const IDS: &str = "SELECT id FROM finding
    WHERE appeared_ns < ?2 AND (went_ns IS NULL OR went_ns > ?1) ORDER BY appeared_ns, id";

/// Reads one finding of a span after the other, in the order in which they appeared, until `take` breaks.
pub(crate) fn read_each(
    connection: &Connection,
    span: Span,
    mut take: impl FnMut(FindingInterval) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    // A sort of whole rows would hold the facts of all.
    let mut ids = connection.prepare(IDS)?;
    let ids = ids.query_map([span.from_ns, span.to_ns], |row| row.get(0))?;
    let ids: Vec<i64> = ids.collect::<rusqlite::Result<_>>()?;
    let mut statement = connection.prepare(
        "SELECT rule, target, severity, facts, appeared_ns, changed_ns, went_ns FROM finding WHERE id = ?",
    )?;
    for id in ids {
        let finding = statement.query_row([id], |row| {
            Ok(FindingInterval {
                key: FindingKey {
                    rule: row.get(0)?,
                    place: row.get(1)?,
                },
                severity: row.get(2)?,
                facts: row.get(3)?,
                appeared_ns: row.get(4)?,
                changed_ns: row.get(5)?,
                went_ns: row.get(6)?,
            })
        });
        // An agent may delete it meanwhile.
        if let Some(finding) = finding.optional()?
            && take(finding).is_break()
        {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::database::Database;
    use crate::schema::Part;
    use crate::settings::Settings;

    /// The rows, which have some KiB each, are not read for it, and nothing is sorted.
    #[test]
    fn findings_of_a_span_are_searched_in_their_index() {
        let memory = Database::in_memory(Path::new(""), Part::History, &Settings::default());
        assert_eq!(
            memory.expect("memory").query_plan(IDS),
            ["SEARCH finding USING COVERING INDEX finding_time (appeared_ns<?)"]
        );
    }
}
