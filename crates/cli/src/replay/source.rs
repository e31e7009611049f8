//! The events of one device of a trace, as they were selected.

use std::collections::BTreeSet;
use std::path::Path;

use plumb_geometry::plural;
use plumb_load::replay::EventSource;
use plumb_trace::ahead::ReadAhead;
use plumb_trace::open::{self, Piece};
use plumb_trace::{Batch, Columns, Fill, ReadOptions, Reader, SourceInfo};

use crate::cli::Replay;
use crate::failure::Failure;
use crate::inputs;
use crate::select::{Filter, SelectError};

/// Devices that are named when one must be chosen.
const DEVICES_LISTED: usize = 12;

/// A trace that is being read.
pub struct TraceSource<'a> {
    reader: Box<dyn Reader>,
    filter: Filter<'a>,
    /// Names of the devices with events.
    devices: BTreeSet<String>,
    refused: Option<SelectError>,
    holds_counts: bool,
}

impl<'a> TraceSource<'a> {
    /// Opens the trace.
    ///
    /// # Errors
    /// When it cannot be read, or not twice.
    pub fn open(args: &'a Replay) -> Result<TraceSource<'a>, Failure> {
        let columns = Columns {
            queue_ns: false,
            comm: false,
            cgroup: false,
            file: false,
            ..Columns::ALL
        };
        let options = ReadOptions {
            columns,
            ..args.select.read_options()
        };
        let piece = one_piece(&args.trace_in)?;
        let reader = open::open(&piece, &options).map_err(|error| Failure::failed(&error))?;
        Ok(TraceSource {
            reader: ReadAhead::wrap(reader),
            filter: Filter::new(&args.select),
            devices: BTreeSet::new(),
            refused: None,
            holds_counts: false,
        })
    }

    /// The facts about the trace; complete at its end.
    pub fn info(&self) -> &SourceInfo {
        self.reader.info()
    }

    /// The device whose events were read.
    ///
    /// # Errors
    /// If there is not exactly one, or the selected one is missing.
    pub fn device(&self, args: &Replay) -> Result<String, Failure> {
        if let Some(error) = &self.refused {
            return Err(Failure::usage(error.to_string()));
        }
        let path = &self.info().path;
        if self.holds_counts {
            return Err(Failure::usage(format!(
                "{path} holds ready-made counts and no single I/O: nothing to send"
            )));
        }
        if let Some(failure) = args.select.missing_partition(&self.filter, path) {
            return Err(failure);
        }
        if let Some(failure) = Failure::first_of(args.select.missing_devices(&self.filter.devices))
        {
            return Err(failure);
        }
        let mut names = self.devices.iter();
        match (names.next(), names.next()) {
            (Some(name), None) => Ok(name.clone()),
            (None, _) => Err(Failure::unknown(format!(
                "{path}: found no I/O of those that were asked for"
            ))),
            (Some(_), Some(_)) => Err(self.several(path)),
        }
    }

    fn several(&self, path: &str) -> Failure {
        let found = plural(self.devices.len() as u64, "device");
        let listed: Vec<&str> = self
            .devices
            .iter()
            .take(DEVICES_LISTED)
            .map(String::as_str)
            .collect();
        let more = if self.devices.len() > DEVICES_LISTED {
            ", …"
        } else {
            ""
        };
        Failure::usage(format!(
            "{path}: found I/O of {found}, expected one: name it with --device"
        ))
        .with_help(format!("these are: {}{more}", listed.join(", ")))
    }

    fn note_devices(&mut self, batch: &Batch) {
        let mut last = None;
        for &id in &batch.device {
            if last == Some(id) {
                continue;
            }
            last = Some(id);
            if let Some(device) = batch.names.devices().get(id as usize)
                && !self.devices.contains(&device.name)
            {
                self.devices.insert(device.name.clone());
            }
        }
    }
}

impl EventSource for TraceSource<'_> {
    fn fill(&mut self, batch: &mut Batch) -> Result<bool, plumb_trace::Error> {
        loop {
            match self.reader.fill(batch)? {
                Fill::Events => {}
                Fill::End => return Ok(false),
                Fill::Residue(_) | Fill::Distribution(_) | Fill::Totals(_) => {
                    self.holds_counts = true;
                    return Ok(false);
                }
            }
            if let Err(error) = self.filter.apply(batch, self.reader.info()) {
                self.refused = Some(error);
                return Ok(false);
            }
            if !batch.is_empty() {
                self.note_devices(batch);
                return Ok(true);
            }
        }
    }
}

/// The recording of a file that can be read twice.
fn one_piece(path: &Path) -> Result<Piece, Failure> {
    if path == Path::new("-") {
        return Err(Failure::usage(
            "-: found standard input, expected a file: the trace is read twice",
        )
        .with_help("`plumb convert - FILE.parquet` stores standard input in a file"));
    }
    inputs::one_piece(path)
}
