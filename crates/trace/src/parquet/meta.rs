//! A file's metadata: clock, devices, losses, origin.
//!
//! Everything is in the file's key/value metadata under `plumb.`; lists and counts as JSON. An invalid value is noted
//! and treated as absent: the rows are good without it.

use parquet::file::metadata::KeyValue;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::names::{Device, Names};
use crate::op::Layer;
use crate::parquet::schema::SCHEMA_VERSION;
use crate::reader::IOS_MAX;
use crate::source::{Clock, Counts, Latency, SourceInfo};

/// Key of the schema's version.
pub const SCHEMA: &str = "plumb.schema";
const CLOCK: &str = "plumb.clock";
const UNIX_NS: &str = "plumb.unix_ns_at_zero";
const DEVICES: &str = "plumb.devices";
const LAYERS: &str = "plumb.layers";
const ONE_LAYER_A_DEVICE: &str = "plumb.one_layer_a_device";
const COUNTS: &str = "plumb.counts";
const LATENCY: &str = "plumb.no_latency_because";
const COMPLETIONS_ONLY: &str = "plumb.completions_only";
const IN_ORDER: &str = "plumb.in_order";
const SOURCE: &str = "plumb.source";
const NOTES: &str = "plumb.notes";

/// No trace says as much of itself.
const NOTES_MAX: usize = 256;

#[derive(Serialize, Deserialize)]
struct DeviceEntry {
    name: String,
    size_bytes: Option<u64>,
    logical_block_bytes: Option<u32>,
    #[serde(default)]
    partitions: Vec<PartitionEntry>,
}

#[derive(Serialize, Deserialize)]
struct PartitionEntry {
    name: String,
    start_bytes: u64,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct CountsEntry {
    lost: u64,
    unmatched_issues: u64,
    doubtful_latencies: u64,
    unmatched_completions: u64,
    late_completions: u64,
    late_ns_max: i64,
    out_of_order: u64,
    damaged: u64,
    skipped_bytes: u64,
    missing_files: u64,
}

#[derive(Serialize, Deserialize)]
struct SourceEntry {
    format: String,
    verified: bool,
}

/// The writer's own facts about the rows.
pub struct WriterFacts<'a> {
    /// Devices by name.
    pub devices: &'a [Device],
    /// Layers that the rows have.
    pub layers: &'a [Layer],
    /// Whether the times never go back.
    pub in_order: bool,
}

/// The metadata of a file.
#[must_use]
pub fn write(info: &SourceInfo, seen: &WriterFacts<'_>) -> Vec<KeyValue> {
    let mut pairs = vec![
        pair(SCHEMA, SCHEMA_VERSION.to_string()),
        pair(CLOCK, info.clock.word().to_owned()),
        pair(
            DEVICES,
            json(&seen.devices.iter().map(device_entry).collect::<Vec<_>>()),
        ),
        pair(
            LAYERS,
            json(
                &seen
                    .layers
                    .iter()
                    .map(|layer| layer.word())
                    .collect::<Vec<_>>(),
            ),
        ),
        pair(COUNTS, json(&counts_entry(&info.counts))),
        pair(IN_ORDER, seen.in_order.to_string()),
        pair(
            SOURCE,
            json(&SourceEntry {
                format: info.format.to_owned(),
                verified: info.verified,
            }),
        ),
    ];
    if let Some(unix_ns) = info.unix_ns_at_zero {
        pairs.push(pair(UNIX_NS, unix_ns.to_string()));
    }
    if let Latency::None(reason) = &info.latency {
        pairs.push(pair(LATENCY, reason.clone()));
    }
    if info.one_layer_a_device {
        pairs.push(pair(ONE_LAYER_A_DEVICE, "true".to_owned()));
    }
    if info.completions_only {
        pairs.push(pair(COMPLETIONS_ONLY, "true".to_owned()));
    }
    let cannot = info
        .cannot_tell
        .iter()
        .map(|what| format!("the source cannot tell: {what}"));
    let notes: Vec<String> = info.notes.iter().cloned().chain(cannot).collect();
    if !notes.is_empty() {
        pairs.push(pair(NOTES, json(&notes)));
    }
    pairs
}

fn pair(key: &str, value: String) -> KeyValue {
    KeyValue::new(key.to_owned(), value)
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

fn device_entry(device: &Device) -> DeviceEntry {
    let partition = |(name, start): &(String, u64)| PartitionEntry {
        name: name.clone(),
        start_bytes: *start,
    };
    DeviceEntry {
        name: device.name.clone(),
        size_bytes: device.size_bytes,
        logical_block_bytes: device.logical_block_bytes,
        partitions: device.partitions.iter().map(partition).collect(),
    }
}

fn counts_entry(counts: &Counts) -> CountsEntry {
    CountsEntry {
        lost: counts.lost,
        unmatched_issues: counts.unmatched_issues,
        doubtful_latencies: counts.doubtful_latencies,
        unmatched_completions: counts.unmatched_completions,
        late_completions: counts.late_completions,
        late_ns_max: counts.late_ns_max,
        out_of_order: counts.out_of_order,
        damaged: counts.damaged,
        skipped_bytes: counts.skipped_bytes,
        missing_files: counts.missing_files,
    }
}

/// The metadata outside of [`SourceInfo`] and [`Names`].
#[derive(Debug, Default)]
pub struct Said {
    /// The version of the schema, unchanged.
    pub schema: Option<String>,
    /// Layers of the rows; `None` when it is not said.
    pub layers: Option<Vec<Layer>>,
    /// Whether the rows are said to be in order of time.
    pub in_order: bool,
}

/// Takes the metadata of a file in.
#[must_use]
pub fn read(pairs: &[KeyValue], info: &mut SourceInfo, names: &mut Names) -> Said {
    let value = |key: &str| {
        pairs
            .iter()
            .find(|pair| pair.key == key)
            .and_then(|pair| pair.value.as_deref())
    };
    let said = Said {
        schema: value(SCHEMA).map(str::to_owned),
        layers: value(LAYERS).and_then(|text| parse::<Vec<Layer>>(LAYERS, text, info)),
        in_order: value(IN_ORDER) == Some("true"),
    };
    info.clock = value(CLOCK).and_then(Clock::from_word).unwrap_or_default();
    info.unix_ns_at_zero = value(UNIX_NS).and_then(|text| parse(UNIX_NS, text, info));
    info.one_layer_a_device = value(ONE_LAYER_A_DEVICE) == Some("true");
    info.completions_only = value(COMPLETIONS_ONLY) == Some("true");
    if let Some(reason) = value(LATENCY) {
        info.latency = Latency::None(reason.to_owned());
    }
    if let Some(source) = value(SOURCE).and_then(|text| parse::<SourceEntry>(SOURCE, text, info)) {
        info.verified = source.verified;
        if source.format != info.format && !source.format.is_empty() {
            info.note(format!("converted from {}", source.format));
        }
    }
    if let Some(counts) = value(COUNTS).and_then(|text| parse(COUNTS, text, info)) {
        take_counts(&counts, &mut info.counts);
    }
    for device in value(DEVICES)
        .and_then(|text| parse::<Vec<DeviceEntry>>(DEVICES, text, info))
        .unwrap_or_default()
    {
        take_device(device, names);
    }
    let notes = value(NOTES)
        .and_then(|text| parse::<Vec<String>>(NOTES, text, info))
        .unwrap_or_default();
    for note in notes.into_iter().take(NOTES_MAX) {
        info.note(note);
    }
    said
}

fn parse<T: DeserializeOwned>(key: &str, text: &str, info: &mut SourceInfo) -> Option<T> {
    let parsed = serde_json::from_str(text);
    if parsed.is_err() {
        info.note(format!(
            "metadata {key} cannot be understood and is taken as absent"
        ));
    }
    parsed.ok()
}

fn take_counts(entry: &CountsEntry, counts: &mut Counts) {
    // Reading adds to some of them, so none may be at the end of its range.
    let bounded = |count: u64| count.min(IOS_MAX);
    counts.lost = bounded(entry.lost);
    counts.unmatched_issues = bounded(entry.unmatched_issues);
    counts.doubtful_latencies = bounded(entry.doubtful_latencies);
    counts.unmatched_completions = bounded(entry.unmatched_completions);
    counts.late_completions = bounded(entry.late_completions);
    counts.late_ns_max = entry.late_ns_max;
    counts.damaged = bounded(entry.damaged);
    counts.skipped_bytes = bounded(entry.skipped_bytes);
    counts.missing_files = bounded(entry.missing_files);
}

fn take_device(entry: DeviceEntry, names: &mut Names) {
    let id = names.device(&entry.name);
    if let Some(device) = names.device_mut(id) {
        device.size_bytes = entry.size_bytes;
        device.logical_block_bytes = entry.logical_block_bytes;
        device.partitions = entry
            .partitions
            .into_iter()
            .map(|partition| (partition.name, partition.start_bytes))
            .collect();
    }
}
