//! The log of findings. journald gets each change with fields, so that `journalctl PLUMB_RULE=misaligned-io` finds it; another log gets
//! a line on standard error.

use std::os::unix::net::UnixDatagram;
use std::path::Path;

use plumb_model::Severity;
use plumb_quoting::{json, visible};
use plumb_report::history::{FindingChange, finding_change};

use super::judge::Change;
use crate::output;

/// The socket of journald.
const JOURNAL: &str = "/run/systemd/journal/socket";

/// The log of the agent.
pub struct ChangeLog {
    /// A socket for messages to journald; `None` if standard error goes elsewhere.
    journal: Option<UnixDatagram>,
}

impl ChangeLog {
    /// Looks for the log behind standard error.
    pub fn open() -> ChangeLog {
        let is_journal = std::env::var("JOURNAL_STREAM").is_ok_and(|named| is_stderr(&named));
        ChangeLog {
            journal: is_journal.then(UnixDatagram::unbound).and_then(Result::ok),
        }
    }

    /// Logs a change.
    pub fn note(&self, change: &Change) {
        let line = finding_change(change.kind, &change.finding);
        let sent = self.journal.as_ref().is_some_and(|socket| {
            let entry = entry(change, &visible(&line));
            // journald may have been started again meanwhile, so that each message names the socket.
            socket.send_to(&entry, Path::new(JOURNAL)).is_ok()
        });
        if !sent {
            output::say(&line);
        }
    }
}

/// Whether standard error is the stream that systemd named: device and file number.
fn is_stderr(named: &str) -> bool {
    let stat = rustix::fs::fstat(std::io::stderr());
    stat.is_ok_and(|stat| named == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// The fields of a change as journald reads them.
fn entry(change: &Change, line: &str) -> Vec<u8> {
    let finding = &change.finding;
    let priority = match (change.kind, finding.severity) {
        (FindingChange::Gone, _) => "6",
        (_, Severity::Critical) => "3",
        (_, Severity::Warning) => "4",
        (_, Severity::Note) => "5",
    };
    let json = json::exact(finding).unwrap_or_default();
    let fields = [
        ("MESSAGE", line),
        ("PRIORITY", priority),
        ("SYSLOG_IDENTIFIER", "plumb"),
        ("PLUMB_CHANGE", change.kind.word()),
        ("PLUMB_RULE", finding.rule().name()),
        ("PLUMB_SEVERITY", finding.severity.word()),
        ("PLUMB_DEVICE", &finding.target.device),
        ("PLUMB_IDENTITY", change.identity()),
        ("PLUMB_FINDING", &json),
    ];
    let mut entry = Vec::new();
    for (name, value) in fields {
        // The form for values of any bytes: the name, the length, the value.
        entry.extend_from_slice(name.as_bytes());
        entry.push(b'\n');
        entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
        entry.extend_from_slice(value.as_bytes());
        entry.push(b'\n');
    }
    entry
}
