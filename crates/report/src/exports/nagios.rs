//! One line for Nagios, Icinga and others that run its plugins: status, verdict, performance data.
//!
//! The form is that of the Monitoring Plugins development guidelines: text, a bar, `label=value;warn;crit;min;max`.

use plumb_model::Severity;
use plumb_quoting::visible;

use super::{layers, number_of};
use crate::check::Check;
use crate::verdict::Outcome;

/// The status of a plugin, which is its exit status as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginStatus {
    /// No finding counts.
    Ok,
    /// Findings count, but no critical one.
    Warning,
    /// A critical finding counts.
    Critical,
    /// Something could not be judged, or the check failed.
    Unknown,
}

impl PluginStatus {
    /// The exit status.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            PluginStatus::Ok => 0,
            PluginStatus::Warning => 1,
            PluginStatus::Critical => 2,
            PluginStatus::Unknown => 3,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            PluginStatus::Ok => "OK",
            PluginStatus::Warning => "WARNING",
            PluginStatus::Critical => "CRITICAL",
            PluginStatus::Unknown => "UNKNOWN",
        }
    }

    fn new(check: &Check<'_>) -> PluginStatus {
        match check.outcome {
            Outcome::Clean => PluginStatus::Ok,
            Outcome::Unknown(_) => PluginStatus::Unknown,
            Outcome::Findings => match number_of(check, Severity::Critical) {
                0 => PluginStatus::Warning,
                _ => PluginStatus::Critical,
            },
        }
    }
}

/// The line of a check, and the status with which the plugin ends.
#[must_use]
pub fn nagios(check: &Check<'_>) -> (String, PluginStatus) {
    let status = PluginStatus::new(check);
    let verdict = check.verdict();
    let layers = layers(check);
    let (devices, _) = check.extent();
    let numbers = [
        ("critical", number_of(check, Severity::Critical)),
        ("warnings", number_of(check, Severity::Warning)),
        ("notes", number_of(check, Severity::Note)),
        ("accepted", check.accepted.findings.len()),
        ("devices", devices),
    ];
    let mut measured: Vec<(&str, u64)> = numbers
        .iter()
        .map(|(label, number)| (*label, *number as u64))
        .collect();
    measured.extend([
        ("layers", layers.nodes),
        ("misaligned_layers", layers.misaligned),
        ("unknown_layers", layers.unknown),
    ]);
    let measured: Vec<String> = measured
        .iter()
        .map(|(label, number)| format!("{label}={number};;;0"))
        .collect();
    let sentence = format!("{}: {}", verdict.word.text(), verdict.sentence);
    let line = line(status, &sentence);
    (format!("{line} | {}\n", measured.join(" ")), status)
}

/// The line of a check that failed. The status is [`PluginStatus::Unknown`].
#[must_use]
pub fn nagios_failure(words: &str) -> String {
    line(PluginStatus::Unknown, words) + "\n"
}

/// A bar would begin the performance data, and a line end the text.
fn line(status: PluginStatus, words: &str) -> String {
    let words = visible(words).replace('|', "/");
    format!("PLUMB {} - {words}", status.word())
}
