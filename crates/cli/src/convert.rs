//! `plumb convert`: writes a trace in another format.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::Arc;

use plumb_geometry::group_digits;
use plumb_trace::open;
use plumb_trace::progress::Progress;
use plumb_trace::write::{TraceWriter, Written};
use plumb_trace::{Batch, Fill, Layer, LayerChoice, ReadOptions, Reader, SourceInfo, write};

use crate::cli::Convert;
use crate::exit::Exit;
use crate::failure::{self, Failure};
use crate::inputs;
use crate::notes::notes_of;
use crate::output;
use crate::sandbox::{self, Files};
use crate::select::Filter;
use crate::status::Meter;

/// Runs the command. Without `--layer` every layer of the trace is written where the output can tell them apart.
///
/// # Errors
/// When the trace cannot be read or the output not be written; nothing is left of the output then.
pub fn run(args: &Convert) -> Result<Exit, Failure> {
    output::must_be_apart(std::slice::from_ref(&args.input), &[&args.output])?;
    sandbox::enter(&Files {
        inputs: vec![args.input.clone()],
        outputs: vec![args.output.clone()],
    })?;
    let progress = Arc::default();
    let meter = Meter::of_reading(&progress);
    let options = read_options(args, &progress);
    let mut reader = open::open(&inputs::one_piece(&args.input)?, &options).map_err(failed)?;
    let mut writer =
        write::create(&args.output, args.to.as_deref(), reader.info()).map_err(failed)?;
    let mut filter = Filter::new(&args.select);
    let Some(layers) = copy(&mut *reader, &mut *writer, &mut filter)? else {
        return Ok(Exit::Clean);
    };
    let info = reader.info().clone();
    let missing = missing(args, &filter, &info)?;
    let written = match writer.finish(&info) {
        Err(error) if is_unread(&error) => return Ok(Exit::Clean),
        written => written.map_err(failed)?,
    };
    drop(meter);
    missing.iter().for_each(Failure::print);
    tell(args, &info, &written, &layers);
    Ok(if info.is_whole() && missing.is_empty() {
        Exit::Clean
    } else {
        Exit::Unknown
    })
}

fn read_options(args: &Convert, progress: &Arc<Progress>) -> ReadOptions {
    let target = args.to.as_deref().map_or_else(
        || write::OutputFormat::from_path(&args.output),
        write::OutputFormat::from_name,
    );
    let mut options = args.select.read_options();
    options.progress = Some(Arc::clone(progress));
    if args.select.layer.is_none() && target == Some(write::OutputFormat::Parquet) {
        options.layer = LayerChoice::All;
    }
    options
}

fn failed(error: plumb_trace::Error) -> Failure {
    Failure::failed(&error)
}

/// Whether the reader of the output has gone away, which is no failure.
fn is_unread(error: &plumb_trace::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        if cause
            .downcast_ref::<io::Error>()
            .is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
        {
            return true;
        }
        next = cause.source();
    }
    false
}

/// Hands all events on, and counts those of each layer; `None` when nobody reads them any more.
fn copy(
    reader: &mut dyn Reader,
    writer: &mut dyn TraceWriter,
    filter: &mut Filter<'_>,
) -> Result<Option<BTreeMap<Layer, u64>>, Failure> {
    let mut layers = BTreeMap::new();
    let mut batch = Batch::default();
    loop {
        match reader.fill(&mut batch).map_err(failed)? {
            Fill::Events => {}
            Fill::End => return Ok(Some(layers)),
            _ => {
                return Err(Failure::usage(format!(
                    "{} holds ready-made counts and no single I/O: nothing to convert",
                    reader.info().path
                ))
                .with_help("`plumb analyze` reads it as it is"));
            }
        }
        filter
            .apply(&mut batch, reader.info())
            .map_err(|error| Failure::failed(&error))?;
        for layer in &batch.layer {
            *layers.entry(*layer).or_insert(0) += 1;
        }
        match writer.write(&batch) {
            Err(error) if is_unread(&error) => return Ok(None),
            outcome => outcome.map_err(failed)?,
        }
    }
}

/// The requested devices that are missing; an error if all are.
fn missing(
    args: &Convert,
    filter: &Filter<'_>,
    info: &SourceInfo,
) -> Result<Vec<Failure>, Failure> {
    if let Some(failure) = args.select.missing_partition(filter, &info.path) {
        return Err(failure);
    }
    let missing = args.select.missing_devices(&filter.devices);
    if !missing.is_empty()
        && args
            .select
            .device
            .iter()
            .all(|name| !filter.devices.contains(name))
    {
        return Err(
            Failure::first_of(missing).unwrap_or_else(|| Failure::unknown("nothing to convert"))
        );
    }
    Ok(missing)
}

/// Reports the written file, its gaps, and the unread parts of the source.
fn tell(args: &Convert, info: &SourceInfo, written: &Written, layers: &BTreeMap<Layer, u64>) {
    let events = match layers.len() {
        // No sum: an I/O is seen once on each layer.
        2.. => {
            let each = layers
                .iter()
                .map(|(layer, ios)| format!("{} {}", group_digits(*ios), layer.word()));
            each.collect::<Vec<_>>().join(" and ")
        }
        _ => group_digits(written.events),
    };
    failure::tell(
        "",
        &format!(
            "wrote {}: {events} I/O of {}",
            args.output.display(),
            info.path
        ),
    );
    for loss in &written.losses {
        failure::tell("  not in it: ", &loss.to_string());
    }
    if !info.is_whole() {
        notes_of(info)
            .iter()
            .for_each(|note| failure::tell("  note: ", note));
    }
}
