//! The log of findings. journald gets each change with fields, so that `journalctl PLUMB_RULE=misaligned-io` finds it; another log gets
//! a line on standard error.

use std::os::unix::net::UnixDatagram;
use std::path::Path;

use plumb_model::Severity;
use plumb_model::result::history::FindingChange;
use plumb_quoting::{json, visible};
use plumb_report::history::finding_change;

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

    /// Logs a change, with the file of a recording of its device.
    pub fn note(&self, change: &Change, recording: Option<&Path>) {
        let finding = &change.finding;
        let priority = match (change.kind, finding.severity) {
            (FindingChange::Gone, _) => "6",
            (_, Severity::Critical) => "3",
            (_, Severity::Warning) => "4",
            (_, Severity::Note) => "5",
        };
        let json = json::exact(finding).unwrap_or_default();
        let fields = [
            ("PLUMB_CHANGE", change.kind.word()),
            ("PLUMB_RULE", finding.rule().name()),
            ("PLUMB_SEVERITY", finding.severity.word()),
            ("PLUMB_DEVICE", &finding.target.device),
            ("PLUMB_IDENTITY", change.identity()),
            ("PLUMB_FINDING", &json),
        ];
        let line = finding_change(change.kind, finding);
        self.send(&line, priority, &fields, recording);
    }

    /// Logs a step of a recording of a device, with its file if it has one.
    pub fn note_recording(&self, device: &str, recording: Option<&Path>, line: &str) {
        self.send(line, "5", &[("PLUMB_DEVICE", device)], recording);
    }

    fn send(&self, line: &str, priority: &str, fields: &[(&str, &str)], recording: Option<&Path>) {
        let sent = self.journal.as_ref().is_some_and(|socket| {
            let entry = entry(&visible(line), priority, fields, recording);
            // journald may have been started again meanwhile, so that each message names the socket.
            socket.send_to(&entry, Path::new(JOURNAL)).is_ok()
        });
        if !sent {
            output::say(line);
        }
    }
}

/// Whether standard error is the stream that systemd named: device and file number.
fn is_stderr(named: &str) -> bool {
    let stat = rustix::fs::fstat(std::io::stderr());
    stat.is_ok_and(|stat| named == format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// A line with its fields as journald reads them.
fn entry(line: &str, priority: &str, fields: &[(&str, &str)], recording: Option<&Path>) -> Vec<u8> {
    let recording = recording.map(|path| path.display().to_string());
    let recording = recording
        .iter()
        .map(|path| ("PLUMB_RECORDING", path.as_str()));
    let first = [
        ("MESSAGE", line),
        ("PRIORITY", priority),
        ("SYSLOG_IDENTIFIER", "plumb"),
    ];
    let mut entry = Vec::new();
    for (name, value) in first
        .into_iter()
        .chain(fields.iter().copied())
        .chain(recording)
    {
        // The form for values of any bytes: the name, the length, the value.
        entry.extend_from_slice(name.as_bytes());
        entry.push(b'\n');
        entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
        entry.extend_from_slice(value.as_bytes());
        entry.push(b'\n');
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form of systemd's page on its native protocol: name, line feed, length as 8 bytes, value, line feed.
    #[test]
    fn an_entry_names_the_recording() {
        let fields = [("PLUMB_DEVICE", "sdb")];
        let made = entry("a line", "5", &fields, Some(Path::new("/a/b.parquet")));
        let field = |name: &str, value: &str| {
            let mut field = format!("{name}\n").into_bytes();
            field.extend([value.len() as u8, 0, 0, 0, 0, 0, 0, 0]);
            field.extend(format!("{value}\n").bytes());
            field
        };
        let expected = [
            field("MESSAGE", "a line"),
            field("PRIORITY", "5"),
            field("SYSLOG_IDENTIFIER", "plumb"),
            field("PLUMB_DEVICE", "sdb"),
            field("PLUMB_RECORDING", "/a/b.parquet"),
        ];
        assert_eq!(made, expected.concat());
        let without = entry("a line", "5", &fields, None);
        assert_eq!(without, expected[..4].concat());
    }
}
