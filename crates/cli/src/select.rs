//! Takes out of a trace the I/O that are meant.

use std::collections::BTreeSet;

use plumb_geometry::{SmallSort, natural};
use plumb_model::Part;
use plumb_report::words;
use plumb_trace::names::partition_number;
use plumb_trace::{Batch, Device, Layer, LayerChoice, ReadOptions, SourceInfo, UNKNOWN_NS};

use crate::cli::Selection;
use crate::failure::Failure;
use crate::moment::Moment;

/// Devices that are named when one asked for is not among them.
const DEVICES_LISTED: usize = 12;

impl Selection {
    /// How a trace has to be read for it.
    #[must_use]
    pub fn read_options(&self) -> ReadOptions {
        ReadOptions {
            layer: self.layer.map_or(LayerChoice::Lowest, LayerChoice::Only),
            format: self.format.clone(),
            ..ReadOptions::default()
        }
    }

    /// Whether it takes single events apart, which a saved profile cannot.
    #[must_use]
    pub fn needs_events(&self) -> bool {
        !self.op.is_empty()
            || self.partition.is_some()
            || self.range.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }

    /// Whether a profile is of a device and layer that are meant.
    #[must_use]
    pub fn wants(&self, device: &str, layer: Layer) -> bool {
        (self.device.is_empty() || self.device.iter().any(|name| name == device))
            && self.layer.is_none_or(|wanted| wanted == layer)
    }

    /// Reports devices that were asked for and are not among those seen: nothing seen is not nothing wrong.
    #[must_use]
    pub fn missing_devices(&self, seen: &BTreeSet<String>) -> Vec<Failure> {
        let mut listed: Vec<&str> = seen.iter().map(String::as_str).collect();
        listed.small_sort_by(|one, other| natural(one, other));
        listed.truncate(DEVICES_LISTED);
        let more = if seen.len() > DEVICES_LISTED {
            ", …"
        } else {
            ""
        };
        let help = format!("these are: {}{more}", listed.join(", "));
        let missing = self.device.iter().filter(|name| !seen.contains(*name));
        missing
            .map(|name| {
                Failure::missing(format!("no device `{name}` in the input")).with_help(&*help)
            })
            .collect()
    }

    /// The same of a partition that a trace does not reveal.
    #[must_use]
    pub fn missing_partition(&self, filter: &Filter<'_>, path: &str) -> Option<Failure> {
        let number = self.partition?;
        (!filter.saw_partition && filter.seen > 0).then(|| {
            Failure::unknown(format!("{path} does not reveal a partition {number}")).with_help(
                "give the part of the device with --range, for instance --range 63s-100g",
            )
        })
    }

    /// The filters of the events, for the reader of the result; `None` without a filter.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let mut parts = Vec::new();
        if !self.op.is_empty() {
            let words: Vec<&str> = self.op.iter().map(|op| op.word()).collect();
            parts.push(words.join(", "));
        }
        parts.extend(self.part().as_ref().map(words::part));
        parts.extend(self.since.map(|since| format!("from {since} on")));
        parts.extend(self.until.map(|until| format!("before {until}")));
        (!parts.is_empty())
            .then(|| format!("only some of the I/O were asked for: {}", parts.join("; ")))
    }

    /// Whether it counts time from the first I/O of each file.
    #[must_use]
    pub fn counts_from_first(&self) -> bool {
        let moments = [self.since, self.until];
        moments
            .into_iter()
            .flatten()
            .any(|moment| matches!(moment, Moment::SinceFirst(_)))
    }

    /// The part of each device that is meant; `None` for all of it.
    #[must_use]
    pub fn part(&self) -> Option<Part> {
        match (self.partition, self.range) {
            (Some(number), _) => Some(Part::Partition(number.to_string())),
            (None, Some((start_bytes, end_bytes))) => Some(Part::Range {
                start_bytes,
                end_bytes,
            }),
            (None, None) => None,
        }
    }
}

/// Why a selection cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// The trace has no times.
    #[error("{path} does not tell when its I/O were: --since and --until cannot be asked of it")]
    NoTimes {
        /// Input as the user named it.
        path: String,
    },
    /// The trace has no time of day.
    #[error(
        "{path} does not know the time of day: give --since and --until as durations since its first I/O"
    )]
    NoTimeOfDay {
        /// Input as the user named it.
        path: String,
    },
}

/// Keeps the I/O of one trace that are meant.
pub struct Filter<'a> {
    selection: &'a Selection,
    limits: Option<(i64, i64)>,
    /// I/O that were looked at.
    pub seen: u64,
    /// Whether a partition of the number wanted was revealed.
    pub saw_partition: bool,
    /// Names of the devices that were seen.
    pub devices: BTreeSet<String>,
}

impl<'a> Filter<'a> {
    /// A filter for one trace.
    #[must_use]
    pub fn new(selection: &'a Selection) -> Filter<'a> {
        Filter {
            selection,
            limits: None,
            seen: 0,
            saw_partition: false,
            devices: BTreeSet::new(),
        }
    }

    /// Removes from a batch the events outside the selection.
    ///
    /// # Errors
    /// When a time of day is asked of a trace that has none.
    pub fn apply(&mut self, batch: &mut Batch, info: &SourceInfo) -> Result<(), SelectError> {
        self.seen += batch.len() as u64;
        let selection = self.selection;
        if self.devices.len() < batch.names.devices().len() {
            self.devices = batch
                .names
                .devices()
                .iter()
                .map(|device| device.name.clone())
                .collect();
        }
        if selection.since.is_some() || selection.until.is_some() {
            let (from, to) = self.limits(batch, info)?;
            batch.retain(|batch, row| (from..to).contains(&batch.time_ns[row]));
        }
        if !selection.op.is_empty() {
            batch.retain(|batch, row| selection.op.contains(&batch.op[row]));
        }
        if !selection.device.is_empty() {
            let names = batch.names.clone();
            let meant: Vec<bool> = names
                .devices()
                .iter()
                .map(|device| selection.device.contains(&device.name))
                .collect();
            batch.retain(|batch, row| {
                meant
                    .get(batch.device[row] as usize)
                    .copied()
                    .unwrap_or(false)
            });
        }
        if let Some((first, end)) = selection.range {
            batch.retain(|batch, row| {
                (first.0..end.0).contains(&batch.start_bytes[row]) && batch.len_bytes[row] > 0
            });
        }
        if let Some(number) = selection.partition {
            self.keep_partition(batch, number);
        }
        Ok(())
    }

    fn limits(&mut self, batch: &Batch, info: &SourceInfo) -> Result<(i64, i64), SelectError> {
        if let Some(limits) = self.limits {
            return Ok(limits);
        }
        let first_ns = batch.time_ns.first().copied().unwrap_or(0);
        if first_ns == UNKNOWN_NS {
            return Err(SelectError::NoTimes {
                path: info.path.clone(),
            });
        }
        let at = |moment: Option<Moment>, otherwise| match moment {
            Some(moment) => {
                moment
                    .on_clock_of(info, first_ns)
                    .ok_or_else(|| SelectError::NoTimeOfDay {
                        path: info.path.clone(),
                    })
            }
            None => Ok(otherwise),
        };
        let limits = (
            at(self.selection.since, i64::MIN)?,
            at(self.selection.until, i64::MAX)?,
        );
        self.limits = Some(limits);
        Ok(limits)
    }

    fn keep_partition(&mut self, batch: &mut Batch, number: u32) {
        let names = batch.names.clone();
        let ranges: Vec<Option<(u64, u64)>> = names
            .devices()
            .iter()
            .map(|device| partition_range(device, number))
            .collect();
        self.saw_partition |= ranges.iter().any(Option::is_some);
        batch.retain(|batch, row| {
            let range = ranges.get(batch.device[row] as usize).copied().flatten();
            range.is_some_and(|(first, end)| {
                (first..end).contains(&batch.start_bytes[row]) && batch.len_bytes[row] > 0
            })
        });
    }
}

/// First byte of a partition and of the one after it.
fn partition_range(device: &Device, number: u32) -> Option<(u64, u64)> {
    let (_, first) = device
        .partitions
        .iter()
        .find(|(name, _)| partition_number(&device.name, name) == Some(number))?;
    let next = device
        .partitions
        .iter()
        .map(|(_, first)| *first)
        .filter(|next| next > first)
        .min();
    Some((*first, next.unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_ends_where_the_next_begins() {
        let partitions = vec![("sda1".to_owned(), 1000), ("sda2".to_owned(), 5000)];
        let device = Device {
            name: "sda".to_owned(),
            partitions,
            ..Device::default()
        };
        assert_eq!(partition_range(&device, 1), Some((1000, 5000)));
        assert_eq!(partition_range(&device, 2), Some((5000, u64::MAX)));
        assert_eq!(partition_range(&device, 3), None);
    }
}
