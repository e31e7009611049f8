//! Output of `sadf` for a file of `sar`: `-d -- -d`, rows of semicolons below a heading, and `-p -- -d`, a line for
//! each number. JSON is in `json.rs`. XML is recognized and refused.

use plumb_iostat::Printed;

use super::cells::SeriesCells;
use super::{DeviceRow, Report, Series, SeriesTool, Tool};
use crate::error::{Damage, Place, shown};

/// Whether there is a heading of `-d`, or a line of `-p` with a number of a disk.
pub fn sniff(text: &str) -> bool {
    text.lines()
        .any(|line| heading(line).is_some() || number_of_disk(line).is_some())
}

/// Whether it is the XML document of sysstat.
pub fn is_xml(text: &str) -> bool {
    text.trim_start().starts_with("<?xml") && text.contains("<sysstat")
}

/// Why the XML document is refused.
pub fn xml_damage() -> Damage {
    Damage {
        place: Place::Line(1),
        found: "the XML document of sadf -x".to_owned(),
        expected: "JSON (sadf -j FILE -- -d) or rows (sadf -d FILE -- -d)".to_owned(),
    }
}

/// The names behind host, interval and time.
fn heading(line: &str) -> Option<Vec<String>> {
    let names = line.strip_prefix("# hostname;interval;timestamp;")?;
    let names: Vec<String> = names.trim().split(';').map(str::to_owned).collect();
    let has = |name: &str| names.iter().any(|found| found == name);
    (has("DEV") && has("tps")).then_some(names)
}

/// Host, seconds, time, device, name and number of a line of `-p`.
fn number_of_disk(line: &str) -> Option<[&str; 6]> {
    let words: Vec<&str> = line.trim_end().split('\t').take(7).collect();
    let words: [&str; 6] = words.try_into().ok()?;
    let is_of_disk = ["tps", "rkB/s", "wkB/s", "rd_sec/s", "wr_sec/s"].contains(&words[4]);
    (is_of_disk && Printed::parse(words[5]).is_some()).then_some(words)
}

struct SadfReader {
    series: Series,
    names: Vec<String>,
    /// Time, device and length of the interval of the row that `-p` gives number by number, and its numbers.
    open: Option<(String, String, f64, SeriesCells)>,
}

/// Reads all rows.
pub fn read(text: &str) -> Series {
    let mut reader = SadfReader {
        series: Series::new(SeriesTool::Iostat(Tool::Sar)),
        names: Vec::new(),
        open: None,
    };
    for (number, line) in (1..).zip(text.lines()) {
        let read = if let Some(names) = heading(line) {
            reader.names = names;
            Ok(())
        } else if line.starts_with("# hostname;") {
            // The heading of another table.
            reader.names = Vec::new();
            Ok(())
        } else if line.starts_with('#') || line.contains("LINUX-RESTART") || line.trim().is_empty()
        {
            Ok(())
        } else if line.contains(';') {
            reader.row(line, number)
        } else {
            reader.number(line)
        };
        if let Err((found, expected)) = read {
            let report = reader.series.reports.last_mut();
            report
                .into_iter()
                .for_each(|report| report.is_damaged = true);
            reader.series.damage(Damage {
                place: Place::Line(number),
                found,
                expected,
            });
        }
    }
    reader.close();
    reader.series
}

/// In place of a device, in tables of the whole host such as `sar -b`.
const NO_DEVICE: &str = "-";

type Damaged = (String, String);

fn seconds_of(word: &str) -> Result<f64, Damaged> {
    let seconds = word.parse::<u32>().ok().filter(|seconds| *seconds > 0);
    seconds.map(f64::from).ok_or_else(|| {
        (
            shown(word.as_bytes()),
            "an interval of 1 s or more".to_owned(),
        )
    })
}

fn printed(word: &str) -> Result<Printed, Damaged> {
    Printed::parse(word).ok_or_else(|| (shown(word.as_bytes()), "a number of 0 or more".to_owned()))
}

impl SadfReader {
    fn row(&mut self, line: &str, number: u64) -> Result<(), Damaged> {
        let words: Vec<&str> = line.trim().split(';').collect();
        let expected = self.names.len() + 3;
        if self.names.is_empty() {
            return Ok(());
        }
        if words.len() != expected {
            return Err((
                format!("{} fields", words.len()),
                format!("{expected} fields, as in the heading"),
            ));
        }
        let seconds = seconds_of(words[1])?;
        let mut cells = SeriesCells::default();
        let mut device = "";
        for (name, word) in self.names.iter().zip(&words[3..]) {
            if name == "DEV" {
                device = word;
            } else {
                cells.put_named(name, printed(word)?);
            }
        }
        let device = device.to_owned();
        self.put(words[2], device, seconds, cells, number);
        Ok(())
    }

    fn number(&mut self, line: &str) -> Result<(), Damaged> {
        let words: Vec<&str> = line.trim_end().split('\t').collect();
        let [_, seconds, at, device, name, value] = words[..] else {
            return Err((
                shown(line.as_bytes()),
                "host, seconds, time, device, name and number between tabs".to_owned(),
            ));
        };
        let seconds = seconds_of(seconds)?;
        let value = printed(value)?;
        let is_open = self
            .open
            .as_ref()
            .is_some_and(|(time, of, ..)| time == at && of == device);
        if !is_open {
            self.close();
            self.open = Some((
                at.to_owned(),
                device.to_owned(),
                seconds,
                SeriesCells::default(),
            ));
        }
        if let Some((.., cells)) = &mut self.open {
            cells.put_named(name, value);
        }
        Ok(())
    }

    fn close(&mut self) {
        if let Some((at, device, seconds, cells)) = self.open.take()
            && cells.has_all_rate()
            && device != NO_DEVICE
        {
            self.put(&at, device, seconds, cells, 0);
        }
    }

    fn put(&mut self, at: &str, device: String, seconds: f64, cells: SeriesCells, line: u64) {
        let reports = &mut self.series.reports;
        if reports
            .last()
            .is_none_or(|last| last.at.as_deref() != Some(at))
        {
            reports.push(Report {
                line,
                at: Some(at.to_owned()),
                ..Report::default()
            });
        }
        let row = DeviceRow {
            seconds: Some(seconds),
            ..cells.into_row(line)
        };
        if let Some(report) = reports.last_mut() {
            report.rows.push((device, row));
        }
    }
}
