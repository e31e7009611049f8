//! `iostat -x -o JSON` of sysstat: its members are called as the columns are.

use serde_json::{Map, Value};

use super::cells::SeriesCells;
use super::{DeviceRow, Printed, Report, Series, Tool};
use crate::error::{Damage, Place, shown};

/// Whether bytes begin like it.
pub fn sniff(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let Some(inside) = text.trim_start().strip_prefix('{') else {
        return false;
    };
    inside.trim_start().starts_with("\"sysstat\"")
}

/// Reads all reports of all hosts.
///
/// # Errors
/// When it is no JSON, or holds no statistics.
pub fn read(bytes: &[u8]) -> Result<Series, Damage> {
    let document: Value = serde_json::from_slice(bytes).map_err(|error| Damage {
        place: Place::Line(error.line() as u64),
        found: error.to_string(),
        expected: "a whole JSON document of `iostat -x -o JSON`".to_owned(),
    })?;
    let hosts = document.pointer("/sysstat/hosts").and_then(Value::as_array);
    let hosts = hosts.ok_or_else(|| missing("/sysstat/hosts", &document))?;
    let [host] = &hosts[..] else {
        let found = format!("{} hosts", hosts.len());
        return Err(Damage {
            place: Place::Line(1),
            found,
            expected: "one host".to_owned(),
        });
    };
    let statistics = host.get("statistics").and_then(Value::as_array);
    let statistics = statistics.ok_or_else(|| missing("statistics", host))?;
    let mut series = Series {
        has_banner: true,
        ..Series::new(Tool::Sysstat)
    };
    for report in statistics {
        let at = report
            .get("timestamp")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let mut read = Report {
            at,
            ..Report::default()
        };
        for disk in report
            .get("disk")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            match row(disk) {
                Some(row) => read.rows.push(row),
                None => {
                    read.is_damaged = true;
                    series.damage(missing("disk_device, r/s and w/s", disk));
                }
            }
        }
        series.reports.push(read);
    }
    Ok(series)
}

fn missing(what: &str, found: &Value) -> Damage {
    let found = shown(found.to_string().as_bytes());
    Damage {
        place: Place::Line(1),
        found,
        expected: format!("a member {what}"),
    }
}

fn row(disk: &Value) -> Option<(String, DeviceRow)> {
    let members: &Map<String, Value> = disk.as_object()?;
    let device = members.get("disk_device")?.as_str()?;
    let mut cells = SeriesCells::default();
    for (name, value) in members.iter().filter(|(name, _)| *name != "disk_device") {
        cells.put_named(name, number(value)?);
    }
    (members.contains_key("r/s") && members.contains_key("w/s"))
        .then(|| (device.to_owned(), cells.into_row(0)))
}

/// A number as it was printed; sysstat prints two decimals, which a JSON number may have lost.
fn number(value: &Value) -> Option<Printed> {
    let mut printed = Printed::parse(&value.as_number()?.to_string())?;
    printed.half_step = printed.half_step.min(0.005);
    Some(printed)
}
