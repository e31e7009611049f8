//! The facts of a finding as rows of a table: the names and numbers of its JSON, with units.

use plumb_model::Finding;
use plumb_quoting::json;
use serde_json::Value;

use crate::format;

/// A row for each number and word.
pub fn rows(finding: &Finding) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let parts = [json::exact(&finding.facts), json::exact(&finding.seen)];
    let value = |part: String| json::from_slice::<Value>(part.as_bytes()).ok();
    for part in parts.into_iter().flatten().filter_map(value) {
        let facts = part.get("facts").unwrap_or(&part);
        add(&mut rows, "", facts);
    }
    rows
}

/// Adds the values below a name; absent values have no row.
fn add(rows: &mut Vec<Vec<String>>, name: &str, value: &Value) {
    let below = |key: &str| match name {
        "" => key.to_owned(),
        name => format!("{name} {key}"),
    };
    match value {
        Value::Null => {}
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, value)| add(rows, &below(key), value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(at, value)| add(rows, &below(&(at + 1).to_string()), value)),
        Value::String(word) => rows.push(vec![shown(name), word.clone()]),
        Value::Bool(is) => {
            let word = if *is { "yes" } else { "no" };
            rows.push(vec![shown(name), word.to_owned()]);
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            rows.push(vec![shown(name), with_unit(name, number)]);
        }
    }
}

/// A name as words: `grid granularity`.
fn shown(name: &str) -> String {
    let bare = name
        .strip_suffix("_bytes")
        .or_else(|| name.strip_suffix("_ns"))
        .unwrap_or(name);
    let words = bare.split(['_', ' ']).map(|word| match word {
        "ios" => "I/O",
        word => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A number with the unit that its name ends with.
fn with_unit(name: &str, value: f64) -> String {
    let is_whole = value >= 0.0 && value < u64::MAX as f64 && value.fract() == 0.0;
    let last = name.rsplit(' ').next().unwrap_or(name);
    let has_unit = |unit: &str| last == unit || last.ends_with(&format!("_{unit}"));
    if has_unit("bytes") && value >= 0.0 {
        format::bytes(value.round() as u64)
    } else if has_unit("ns") && value >= 0.0 {
        format::ns(value.round() as u64)
    } else if last.contains("share") {
        format::percent(value)
    } else if is_whole {
        format::count(value as u64)
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_the_unit() {
        assert_eq!(shown("grid granularity_bytes"), "grid granularity");
        assert_eq!(shown("asked_ios_per_second"), "asked I/O per second");
        assert_eq!(with_unit("grid granularity_bytes", 4096.0), "4 KiB");
        assert_eq!(with_unit("mean_ns", 1500.0), "1.50 µs");
        assert_eq!(with_unit("counted share_low", 0.0762), "7.6 %");
        assert_eq!(with_unit("ios", 4805.0), "4,805");
        assert_eq!(with_unit("ratio", 1.5), "1.50");
    }
}
