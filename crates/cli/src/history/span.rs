//! A device and a time, as `history:sda@2026-11-01..2026-11-08` names them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plumb_history::{Reader, SeriesFacts, Settings, Span, SpanProfile};
use plumb_profile::codec::Saved;

use super::now_ns;
use crate::agent::config::AgentConfig;
use crate::agent::identity::is_path_of;
use crate::failure::Failure;
use crate::moment::{parse_duration, parse_local, unix_words};

/// Spans of the history that a command line names, each with whether damaged records are missing in it.
pub type ReadSpans = BTreeMap<PathBuf, (Saved, bool)>;

/// The beginning of an argument that names a span.
const PREFIX: &str = "history:";

/// No time.
pub const NEVER: Span = Span {
    from_ns: 0,
    to_ns: 0,
};

/// All time.
pub const EVER: Span = Span::EVER;

const DAY_NS: i64 = 86_400_000_000_000;

/// A device and a time of its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpan {
    /// Name or identity.
    pub device: String,
    time: SpanTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpanTime {
    /// Everything.
    All,
    /// This number of ns before now, or before the end of a history that is older.
    Last(i64),
    /// From and to, ns since 1970.
    Fixed(Span),
}

impl DeviceSpan {
    /// Reads the words behind `history:`.
    ///
    /// # Errors
    /// When they name no device or no time.
    pub fn parse(text: &str) -> Result<DeviceSpan, String> {
        let (device, time) = match text.rsplit_once('@') {
            None => (text, SpanTime::All),
            Some((device, time)) => (device, parse_time(time)?),
        };
        if device.is_empty() {
            return Err(format!(
                "found `{text}`, expected DEVICE or DEVICE@FROM..TO"
            ));
        }
        Ok(DeviceSpan {
            device: device.to_owned(),
            time,
        })
    }

    /// The span that a path stands for; `None` for the path of a file.
    ///
    /// # Errors
    /// When it begins like a span and is none.
    pub fn of_path(path: &Path) -> Option<Result<DeviceSpan, Failure>> {
        let text = path.to_str()?.strip_prefix(PREFIX)?;
        Some(
            DeviceSpan::parse(text).map_err(|why| Failure::usage(format!("{PREFIX}{text}: {why}"))),
        )
    }

    /// The time within the history of a device.
    pub fn within(&self, known: Span) -> Span {
        match self.time {
            SpanTime::All => known,
            // The last window ends in the future while it is open.
            SpanTime::Last(ns) => {
                let to_ns = known.to_ns.min(now_ns());
                Span {
                    from_ns: to_ns.saturating_sub(ns),
                    to_ns,
                }
            }
            SpanTime::Fixed(span) => span,
        }
    }

    /// The series of the device: one for each layer, and of a LUN one for each path.
    ///
    /// # Errors
    /// When the history has no such device.
    pub fn series(&self, reader: &Reader) -> Result<Vec<SeriesFacts>, Failure> {
        let failed = |error| Failure::failed(&error);
        let all = reader.names().map_err(failed)?;
        let mut found = series_of(&all, &self.device);
        if !found.is_empty() {
            reader.find_spans(&mut found).map_err(failed)?;
            return Ok(found);
        }
        let names: Vec<&str> = all.iter().map(SeriesFacts::name).collect();
        let known = match names.as_slice() {
            [] => "it has no device yet".to_owned(),
            names => format!("it has {}", names.join(", ")),
        };
        Err(Failure::missing(format!(
            "the history has no device {}; {known}",
            self.device
        )))
    }
}

/// The series of a device, by a name or its identity; else those of the paths to it. `all` needs no spans.
pub fn series_of(all: &[SeriesFacts], device: &str) -> Vec<SeriesFacts> {
    let name = device.trim_start_matches("/dev/");
    let is_it = |series: &&SeriesFacts| {
        series.identity == device || series.names.iter().any(|(_, known)| known == name)
    };
    let is_path = |series: &&SeriesFacts| is_path_of(&series.identity, device);
    let found: Vec<SeriesFacts> = all.iter().filter(is_it).cloned().collect();
    match found.is_empty() {
        true => all.iter().filter(is_path).cloned().collect(),
        false => found,
    }
}

/// Reads a length of time with days: `15m`, `2h`, `7d`; `None` for other words, and for 0.
pub fn parse_length(text: &str) -> Option<i64> {
    let days = text
        .strip_suffix('d')
        .and_then(|days| days.parse::<i64>().ok());
    let ns = match days {
        Some(days) => days.checked_mul(DAY_NS),
        None => parse_duration(text),
    };
    ns.filter(|ns| *ns > 0)
}

fn parse_time(text: &str) -> Result<SpanTime, String> {
    let expected =
        "expected FROM..TO (2026-11-01..2026-11-08, 2026-11-01T08:00Z..), or a duration (2h, 7d)";
    let Some((from, to)) = text.split_once("..") else {
        return parse_length(text)
            .map(SpanTime::Last)
            .ok_or_else(|| format!("found `{text}`, {expected}"));
    };
    let moment = |text: &str, open: i64| -> Result<i64, String> {
        if text.is_empty() {
            return Ok(open);
        }
        parse_local(text).ok_or_else(|| format!("found `{text}`, {expected}"))
    };
    let span = Span {
        from_ns: moment(from, 0)?,
        to_ns: moment(to, i64::MAX)?,
    };
    if span.is_empty() {
        return Err(format!("found `{text}`, expected a FROM before TO"));
    }
    Ok(SpanTime::Fixed(span))
}

/// A time as reports print it.
pub fn time_words(ns: i64) -> String {
    unix_words(ns.max(0)).unwrap_or_default()
}

/// The profiles of a span, as if they had been saved; and whether damaged records are missing in them.
///
/// # Errors
/// When the history cannot be read, or has nothing of that device and time.
pub fn saved(span: &DeviceSpan, state_dir: &Path) -> Result<(Saved, bool), Failure> {
    let reader = open(state_dir)?;
    let (mut saved, mut is_partial) = (Saved::default(), false);
    for series in span.series(&reader)? {
        let time = span.within(series.span.unwrap_or(EVER));
        is_partial |= add_series(&reader, &series, time, state_dir, &mut saved)?;
    }
    if saved.sources.is_empty() {
        return Err(no_ios(&span.device));
    }
    Ok((saved, is_partial))
}

/// Why a span has no profile.
pub fn no_ios(device: &str) -> Failure {
    Failure::unknown(format!("the history has no I/O of {device} in that time"))
}

/// Adds the I/O of a series in a time, if it has any; returns whether damaged records are missing in them.
///
/// # Errors
/// When the history cannot be read.
pub fn add_series(
    reader: &Reader,
    series: &SeriesFacts,
    time: Span,
    state_dir: &Path,
    saved: &mut Saved,
) -> Result<bool, Failure> {
    let found = reader
        .profile(series, time)
        .map_err(|error| Failure::failed(&error))?;
    let Some(found) = found else {
        return Ok(false);
    };
    let (from, to) = (time_words(found.span.from_ns), time_words(found.span.to_ns));
    saved.sources.insert(format!(
        "history of {} in {}: {from} to {to}",
        series.name(),
        state_dir.display()
    ));
    saved.notes.extend(notes_of(series, &found));
    saved.profiles.add(&found.profile);
    Ok(found.damaged > 0)
}

/// Sentences about the I/O of a span that a reader must know.
pub fn notes_of(series: &SeriesFacts, found: &SpanProfile) -> Vec<String> {
    let name = series.name();
    let damaged = (found.damaged > 0)
        .then(|| format!("{} damaged records of {name} are left out", found.damaged));
    let untabled = (found.untabled_ios > 0).then(|| {
        let ios = plumb_geometry::group_digits(found.untabled_ios);
        format!("{ios} I/O of {name} are of quiet windows, which have totals and no places")
    });
    damaged.into_iter().chain(untabled).collect()
}

/// Reads all spans among the inputs of a command, before it gives up the right to open the history; the other inputs are files.
///
/// # Errors
/// As [`saved`], and for a span that is none.
pub fn read_all(
    inputs: &[PathBuf],
    named: Option<&Path>,
) -> Result<(ReadSpans, Vec<PathBuf>), Failure> {
    let (mut spans, mut files) = (ReadSpans::new(), Vec::new());
    for path in inputs {
        match DeviceSpan::of_path(path) {
            Some(span) => {
                spans.insert(path.clone(), saved(&span?, &folder(named)?)?);
            }
            None => files.push(path.clone()),
        }
    }
    Ok((spans, files))
}

/// The folder of a history to read: a named one, else that of the agent's configuration.
///
/// # Errors
/// If the configuration cannot be read, or has a mistake.
pub fn folder(named: Option<&Path>) -> Result<PathBuf, Failure> {
    match named {
        Some(named) => Ok(named.to_owned()),
        None => Ok(AgentConfig::of_store(None, None)?.state_dir),
    }
}

/// Opens a history to read it.
///
/// # Errors
/// When it is missing or cannot be read.
pub fn open(state_dir: &Path) -> Result<Reader, Failure> {
    open_with(state_dir, &Settings::default())
}

/// Opens a history with the bounds of its agent.
///
/// # Errors
/// As [`open`].
pub fn open_with(state_dir: &Path, settings: &Settings) -> Result<Reader, Failure> {
    Reader::open(state_dir, settings).map_err(|error| {
        let failure = Failure::failed(&error);
        match error {
            plumb_history::HistoryError::Missing { .. } => {
                failure.with_help("`plumb agent` writes it; --state-dir names another folder")
            }
            _ => failure,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_a_device_and_a_time() {
        let parse = |text| DeviceSpan::parse(text).expect(text);
        // 20,758 days after 1970.
        let day = |days: i64| (20_758 + days) * DAY_NS;
        let local = |text| parse_local(text).expect(text);
        let span = |from_ns, to_ns| SpanTime::Fixed(Span { from_ns, to_ns });
        for (text, time) in [
            ("sda", SpanTime::All),
            ("sda@2h", SpanTime::Last(7_200_000_000_000)),
            ("sda@7d", SpanTime::Last(7 * DAY_NS)),
            (
                "sda@2026-11-01T00:00Z..2026-11-08T02:00+02:00",
                span(day(0), day(7)),
            ),
            (
                "sda@2026-11-01..2026-11-08",
                span(local("2026-11-01"), local("2026-11-08T00:00")),
            ),
            (
                "sda@2026-11-01T00:00:10Z..",
                span(day(0) + 10_000_000_000, i64::MAX),
            ),
            ("sda@..2026-11-01", span(0, local("2026-11-01 00:00:00"))),
        ] {
            let parsed = parse(text);
            assert_eq!(
                (parsed.device.as_str(), parsed.time),
                ("sda", time),
                "{text}"
            );
        }
        assert_eq!(parse("a@b@1h").device, "a@b");
        for bad in [
            "",
            "@2h",
            "sda@",
            "sda@0",
            "sda@x",
            "sda@2026-11-08..2026-11-01",
            "sda@monday..",
        ] {
            assert!(DeviceSpan::parse(bad).is_err(), "{bad}");
        }
    }
}
