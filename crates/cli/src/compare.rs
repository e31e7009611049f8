//! `plumb compare`: observations before a change beside observations after it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plumb_diagnose::compare::{CompareOutcome, Compared, Comparison, Terms, compare};
use plumb_report::bench::sweep_text;
use plumb_report::compare::{json, sweep_json, text};
use plumb_report::html;

use crate::bench;
use crate::cli::Compare;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::history::span::read_all;
use crate::output;
use crate::sandbox::{self, Files};

mod offsets;
mod pairs;
mod side;
mod stretches;

use pairs::{Pair, Pairs};
use side::Side;

/// Runs the command.
///
/// # Errors
/// When a side could not be read, or a requested file could not be written.
pub fn run(args: &Compare) -> Result<Exit, Failure> {
    let inputs: Vec<PathBuf> = [&args.before]
        .into_iter()
        .chain(&args.after)
        .cloned()
        .collect();
    let (spans, inputs) = read_all(&inputs, args.state_dir.as_deref())?;
    let page: Vec<&Path> = args.html.iter().map(PathBuf::as_path).collect();
    output::may_write(&inputs, &page)?;
    sandbox::enter(&Files {
        inputs,
        outputs: args.html.iter().cloned().collect(),
    })?;
    let before = Side::read(&args.before, &spans, args)?;
    let Some(after) = &args.after else {
        return judge_sweep(args, &before);
    };
    let mut sides = [before, Side::read(after, &spans, args)?];
    let pairs = pairs::pair_devices(&sides, &args.device)?;
    let [before, after] = &mut sides;
    before.read_again(args, pairs.pairs.iter().map(|pair| pair.before.as_str()))?;
    after.read_again(args, pairs.pairs.iter().map(|pair| pair.after.as_str()))?;
    let comparisons: Vec<Comparison> = pairs
        .pairs
        .iter()
        .map(|pair| {
            let terms = Terms {
                margin: args.margin,
                paired_by_user: pair.is_by_user,
                is_forced: args.force,
                ..Terms::default()
            };
            compare(
                &sides[0].observed(&pair.before),
                &sides[1].observed(&pair.after),
                &terms,
            )
        })
        .collect();
    print(args, &sides, &comparisons, &pairs)?;
    Ok(exit_of(&sides, &comparisons))
}

/// Judges the sweep of offsets that one file holds.
fn judge_sweep(args: &Compare, side: &Side) -> Result<Exit, Failure> {
    let Some(series) = side.series() else {
        return Err(
            Failure::usage("compare needs two inputs: BEFORE and AFTER").with_help(
                "one input is enough where it holds Vdbench's results of a sweep of offsets",
            ),
        );
    };
    let sweep = offsets::judge(side.path(), series)?;
    let exit = match bench::sweep::exit(&sweep) {
        Exit::Clean if side.is_partial() => Exit::Unknown,
        exit => exit,
    };
    let shown = if args.json {
        sweep_json(&crate::this_run::now(), side.path(), &sweep)
            .map_err(|error| Failure::failed(&error))?
            + "\n"
    } else {
        sweep_text(&sweep, output::paper(args.color))
    };
    let written = args.html.as_ref().map_or(Ok(()), |path| {
        output::write_file(path, html::sweep(&sweep).as_bytes())
    });
    output::print(&shown)?;
    written?;
    Ok(exit)
}

fn print(
    args: &Compare,
    sides: &[Side; 2],
    comparisons: &[Comparison],
    pairs: &Pairs,
) -> Result<(), Failure> {
    let names = [sides[0].path(), sides[1].path()];
    let of_pairs = pairs.pairs.iter().filter_map(Pair::note);
    let notes: BTreeSet<String> = sides.iter().flat_map(Side::notes).chain(of_pairs).collect();
    let notes: Vec<String> = notes.into_iter().collect();
    let terms = Terms::default();
    let compared = Compared {
        inputs: names,
        margin: args.margin.share(),
        level: terms.level.value(),
        comparisons,
        left_out: &pairs.left_out,
        notes: &notes,
    };
    let version = env!("CARGO_PKG_VERSION");
    let shown = if args.json {
        json(&crate::this_run::now(), &compared).map_err(|error| Failure::failed(&error))? + "\n"
    } else {
        output::drawn(text(&compared, output::paper(args.color)))
    };
    // A file that could not be written is no reason to keep the answer back.
    let written = args.html.as_ref().map_or(Ok(()), |path| {
        output::write_file(path, html::compared(version, &compared).as_bytes())
    });
    output::print(&shown)?;
    written
}

fn exit_of(sides: &[Side; 2], comparisons: &[Comparison]) -> Exit {
    let any = |wanted: &[CompareOutcome]| {
        comparisons
            .iter()
            .any(|one| wanted.contains(&one.verdict.outcome))
    };
    if any(&[CompareOutcome::Worse]) {
        Exit::Findings
    } else if any(&[CompareOutcome::Inconclusive, CompareOutcome::NotComparable])
        || sides.iter().any(Side::is_partial)
    {
        Exit::Unknown
    } else {
        Exit::Clean
    }
}
