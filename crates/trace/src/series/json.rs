//! `iostat -o JSON` and `sadf -j -- -d` of sysstat: their members are called as the columns are, or nearly so.

use serde_json::{Map, Value};

use super::cells::SeriesCells;
use super::{DeviceRow, Printed, Report, Series, SeriesTool, Tool};
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
        expected: "a whole JSON document of `iostat -o JSON` or `sadf -j`".to_owned(),
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
        ..Series::new(SeriesTool::Iostat(tool(statistics)))
    };
    for report in statistics {
        let timestamp = &report["timestamp"];
        let at = timestamp.as_str().map(str::to_owned).or_else(|| {
            let date = timestamp["date"].as_str()?;
            Some(format!("{date} {}", timestamp["time"].as_str()?))
        });
        let seconds = timestamp["interval"]
            .as_f64()
            .filter(|seconds| *seconds > 0.0);
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
                Some((device, row)) => read.rows.push((device, DeviceRow { seconds, ..row })),
                None => {
                    read.is_damaged = true;
                    series.damage(missing("disk_device, and r/s and w/s or tps", disk));
                }
            }
        }
        // A record of sadf may be of a restart, or of other statistics.
        if report.get("disk").is_some() || series.tool == SeriesTool::Iostat(Tool::Sysstat) {
            series.reports.push(read);
        }
    }
    Ok(series)
}

/// The names of a device in both documents.
const DEVICE: [&str; 2] = ["disk_device", "disk-device"];

fn tool(statistics: &[Value]) -> Tool {
    let mut disks = statistics
        .iter()
        .filter_map(|report| report["disk"].as_array())
        .flatten();
    match disks.any(|disk| disk.get("disk-device").is_some()) {
        true => Tool::Sar,
        false => Tool::Sysstat,
    }
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
    let device = DEVICE
        .iter()
        .find_map(|name| members.get(*name))?
        .as_str()?;
    let mut cells = SeriesCells::default();
    for (name, value) in members
        .iter()
        .filter(|(name, _)| !DEVICE.contains(&name.as_str()))
    {
        cells.put_named(name, number(value)?);
    }
    let has = |name: &str| members.contains_key(name);
    (has("r/s") && has("w/s") || has("tps")).then(|| (device.to_owned(), cells.into_row(0)))
}

/// A number as it was printed; sysstat prints two decimals, which a JSON number may have lost.
fn number(value: &Value) -> Option<Printed> {
    let mut printed = Printed::parse(&value.as_number()?.to_string())?;
    printed.half_step = printed.half_step.min(0.005);
    Some(printed)
}
