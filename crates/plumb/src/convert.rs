//! `plumb convert`: writes a trace in another format.

use plumb_geometry::group_digits;
use plumb_trace::open::{self, Piece};
use plumb_trace::{Batch, Fill, LayerChoice, write};

use crate::cli::Convert;
use crate::exit::Exit;
use crate::failure::{self, Failure};
use crate::select::Filter;

/// Runs the command. Without `--layer` every layer of the trace is written where the output can tell them apart.
///
/// # Errors
/// When the trace cannot be read or the output not be written; nothing is left of the output then.
pub fn run(args: &Convert) -> Result<Exit, Failure> {
    let failed = |error: plumb_trace::Error| Failure::failed(&error);
    let piece = one_piece(args)?;
    let target =
        args.to.as_deref().map_or_else(|| write::Target::from_path(&args.output), write::Target::from_name);
    let mut options = args.select.read_options();
    if args.select.layer.is_none() && target == Some(write::Target::Parquet) {
        options.layer = LayerChoice::All;
    }
    let mut reader = open::open(&piece, &options).map_err(failed)?;
    let mut writer = write::create(&args.output, args.to.as_deref(), reader.info()).map_err(failed)?;
    let mut filter = Filter::new(&args.select);
    let mut batch = Batch::default();
    loop {
        match reader.fill(&mut batch).map_err(failed)? {
            Fill::Events => {
                filter.apply(&mut batch, reader.info()).map_err(|error| Failure::failed(&error))?;
                writer.write(&batch).map_err(failed)?;
            }
            Fill::End => break,
            _ => {
                return Err(Failure::usage(format!(
                    "{} holds ready-made counts and no single I/O: nothing to convert",
                    reader.info().path
                ))
                .with_help("`plumb analyze` reads it as it is"));
            }
        }
    }
    let info = reader.info().clone();
    let written = writer.finish(&info).map_err(failed)?;
    let made = format!("{}: {} I/O of {}", args.output.display(), group_digits(written.events), info.path);
    failure::tell("", &made);
    for loss in &written.losses {
        failure::tell("  not in it: ", &loss.to_string());
    }
    for damage in &info.damages {
        failure::tell("  ", &format!("{}, {damage}", info.path));
    }
    Ok(if info.is_whole() { Exit::Clean } else { Exit::Unknown })
}

fn one_piece(args: &Convert) -> Result<Piece, Failure> {
    let mut pieces = open::pieces(std::slice::from_ref(&args.input));
    let Some(piece) = pieces.pop() else {
        return Err(Failure::unknown(format!("{} holds no trace", args.input.display())));
    };
    if pieces.is_empty() {
        return Ok(piece);
    }
    Err(Failure::usage(format!("{} holds several recordings: name one", args.input.display())))
}
